// SPDX-License-Identifier: Apache-2.0
#include "gpu/core/radix_sort.h"

#include "gpu/core/core_cpu.h"

#define MAX_ITEMS ((size_t)INT32_MAX)

size_t vxd_sort_pairs_scratch_bytes(const struct vxd_queue *queue, size_t n)
{
    if (n > MAX_ITEMS) {
        return 0;
    }
    if (VXD_ON_CUDA(queue->context)) {
        return vxd_sort_pairs_scratch_bytes_cuda(n);
    }
    return vxd_sort_pairs_scratch_bytes_cpu(queue->context->info.n_threads, n);
}

enum vxd_status vxd_sort_pairs(struct vxd_queue *queue, uint64_t *keys, uint32_t *values,
                               uint64_t *tmp_keys, uint32_t *tmp_values, size_t n,
                               int begin_bit, int end_bit, void *scratch,
                               size_t scratch_bytes, struct vxd_err *err)
{
    if (n > MAX_ITEMS) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "n", "%zu pairs, at most %zu", n,
                        MAX_ITEMS);
    }
    if (begin_bit < 0 || end_bit <= begin_bit || end_bit > 64) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "begin_bit",
                        "bits [%d, %d) are not a range within [0, 64)", begin_bit,
                        end_bit);
    }
    if (scratch_bytes < vxd_sort_pairs_scratch_bytes(queue, n)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "scratch_bytes",
                        "%zu bytes of scratch, needed are %zu", scratch_bytes,
                        vxd_sort_pairs_scratch_bytes(queue, n));
    }
    if (n == 0) {
        return VXD_OK;
    }
    if (VXD_ON_CUDA(queue->context)) {
        return vxd_sort_pairs_cuda(queue, keys, values, tmp_keys, tmp_values, n,
                                   begin_bit, end_bit, scratch, scratch_bytes, err);
    }
    return vxd_sort_pairs_cpu(queue, keys, values, tmp_keys, tmp_values, n, begin_bit,
                              end_bit, scratch, err);
}
