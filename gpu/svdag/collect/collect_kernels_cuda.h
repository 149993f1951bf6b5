// SPDX-License-Identifier: Apache-2.0
/* What the kernels of collections share: marks and launches. For .cu files only; they
 * read stores of both forms (VXD_SVDAG_ANY_FORM). */
#ifndef VXD_GPU_SVDAG_COLLECT_COLLECT_KERNELS_CUDA_H
#define VXD_GPU_SVDAG_COLLECT_COLLECT_KERNELS_CUDA_H

#include "gpu/core/core_cuda.h"
#include "gpu/svdag/store/store_cuda.h"
#include "gpu/svdag/collect/collect_device.h"

#define VXD_SVDAG_COLLECT_THREADS 256

/* Blocks for n elements, a thread each, up to a limit; kernels loop over the rest. */
static inline unsigned vxd_svdag_collect_device_blocks(const struct vxd_queue *queue,
                                                       uint64_t n)
{
    uint64_t most = (uint64_t)queue->context->info.n_multiprocessors * 8;
    uint64_t needed = (n + VXD_SVDAG_COLLECT_THREADS - 1) / VXD_SVDAG_COLLECT_THREADS;

    return (unsigned)(needed < 1 ? 1 : needed < most ? needed : most);
}

/* Launches a kernel; jumps to out: on failure. */
#define VXD_SVDAG_COLLECT_LAUNCH(queue, n_blocks, kernel, ...)                           \
    do {                                                                                 \
        VXD_TRY(vxd_cuda_enter((queue)->context, err));                                  \
        kernel<<<(n_blocks), VXD_SVDAG_COLLECT_THREADS, 0,                               \
                 (cudaStream_t)(queue)->stream>>>(__VA_ARGS__);                          \
        VXD_TRY(vxd_cuda_launched((queue)->context, #kernel, err));                      \
    } while (0)

/* The group of marks of a node; NULL where the node is not marked. */
VXD_SVDAG_DEVICE const struct vxd_svdag_mark *
vxd_svdag_find_mark(const struct vxd_svdag_mark *marks, uint32_t ref,
                    struct vxd_svdag_mark *out)
{
    const struct vxd_svdag_mark *at = &marks[ref / VXD_SVDAG_MARK_WORDS];
    const uint2 both = *(const uint2 *)(const void *)at;

    out->bits = both.x;
    out->base = both.y;
    return (both.x & vxd_svdag_mark_bit(ref)) != 0 ? at : NULL;
}

#endif
