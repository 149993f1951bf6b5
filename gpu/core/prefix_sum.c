// SPDX-License-Identifier: Apache-2.0
#include "gpu/core/prefix_sum.h"

#include "gpu/core/core_cpu.h"

#define MAX_ITEMS ((size_t)INT32_MAX)

size_t vxd_scan_scratch_bytes(const struct vxd_queue *queue, size_t n)
{
    if (n > MAX_ITEMS) {
        return 0;
    }
    if (VXD_ON_CUDA(queue->context)) {
        return vxd_scan_scratch_bytes_cuda(n);
    }
    return vxd_scan_scratch_bytes_cpu(queue->context->info.n_threads, n);
}

enum vxd_status vxd_scan_exclusive(struct vxd_queue *queue, const uint32_t *in,
                                   uint32_t *out, size_t n, void *scratch,
                                   size_t scratch_bytes, struct vxd_err *err)
{
    if (n > MAX_ITEMS) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "n", "%zu counts, at most %zu", n,
                        MAX_ITEMS);
    }
    if (scratch_bytes < vxd_scan_scratch_bytes(queue, n)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "scratch_bytes",
                        "%zu bytes of scratch, needed are %zu", scratch_bytes,
                        vxd_scan_scratch_bytes(queue, n));
    }
    if (VXD_ON_CUDA(queue->context)) {
        return vxd_scan_exclusive_cuda(queue, in, out, n, scratch, scratch_bytes, err);
    }
    return vxd_scan_exclusive_cpu(queue, in, out, n, scratch, err);
}
