// SPDX-License-Identifier: Apache-2.0
/* Exclusive prefix sum of 32-bit counts. */
#ifndef VXD_GPU_CORE_PREFIX_SUM_H
#define VXD_GPU_CORE_PREFIX_SUM_H

#include "gpu/core/queue.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Scratch of vxd_scan_exclusive for n items, bytes; 0 on n above 2^31 - 1. */
size_t vxd_scan_scratch_bytes(const struct vxd_queue *queue, size_t n);

/* out[i] = in[0] + ... + in[i - 1] (modulo 2^32), for i in 0 .. n: out holds n + 1 items,
 * the last the total. in and out are uint32 device memory; they may be the same array of n + 1.
 * errors  INVALID_ARGUMENT  n above 2^31 - 1
 * sync    asynchronous */
enum vxd_status vxd_scan_exclusive(struct vxd_queue *queue, const uint32_t *in,
                                   uint32_t *out, size_t n, void *scratch,
                                   size_t scratch_bytes, struct vxd_err *err);

#ifdef __cplusplus
}
#endif
#endif
