// SPDX-License-Identifier: Apache-2.0
/* Stable radix sort of 64-bit keys with 32-bit values. */
#ifndef VXD_GPU_CORE_RADIX_SORT_H
#define VXD_GPU_CORE_RADIX_SORT_H

#include "gpu/core/queue.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Scratch of vxd_sort_pairs for n pairs on this queue's backend, in bytes; 0 on overflow
 * or n above 2^31 - 1, which vxd_sort_pairs refuses. At least 256 otherwise. */
size_t vxd_sort_pairs_scratch_bytes(const struct vxd_queue *queue, size_t n);

/* Sorts by bits [begin_bit, end_bit) of the keys, ascending; equal keys keep their order.
 *
 * in/out  keys    n uint64, device memory; values n uint32, device memory
 *         tmp_keys, tmp_values   the same sizes; overwritten
 *         scratch  device memory of at least vxd_sort_pairs_scratch_bytes(queue, n)
 * out     the sorted pairs are in keys/values
 * errors  INVALID_ARGUMENT  bits not 0 <= begin < end <= 64, n above 2^31 - 1
 * sync    asynchronous
 * Keys wider than 64 bits: sort by the low part, then (stably) by the high part. */
enum vxd_status vxd_sort_pairs(struct vxd_queue *queue, uint64_t *keys, uint32_t *values,
                               uint64_t *tmp_keys, uint32_t *tmp_values, size_t n,
                               int begin_bit, int end_bit, void *scratch,
                               size_t scratch_bytes, struct vxd_err *err);

#ifdef __cplusplus
}
#endif
#endif
