// SPDX-License-Identifier: Apache-2.0
/* Launching passes: cooperative grids of as many blocks as a device runs at once. */
#ifndef VXD_GPU_SVDAG_EDIT_KERNEL_EDIT_LAUNCH_CUDA_H
#define VXD_GPU_SVDAG_EDIT_KERNEL_EDIT_LAUNCH_CUDA_H

#include "gpu/core/core_cuda.h"
#include "gpu/svdag/edit_kernel/edit_kernel_cuda.h"

/* Files of passes are compiled once a store: another form defines both before it includes them. */
#ifndef VXD_SVDAG_KERNEL_STORE
#define VXD_SVDAG_KERNEL_STORE struct vxd_svdag_arena_cuda
#define VXD_SVDAG_KERNEL_FORM(name) name
#endif

/* A kernel of passes. What fits is asked for once, as the answers take as long as a launch. */
struct vxd_svdag_kernel {
    const void *function;
    size_t shared_bytes; /* dynamic */
    const char *name;
    uint32_t
        fits; /* 0 at first; the device that ran it last << 8 | blocks of a multiprocessor + 1 */
};

/* Blocks of the kernel that a multiprocessor runs at once; of several threads each may ask. */
static inline enum vxd_status vxd_svdag_kernel_fits(struct vxd_queue *queue,
                                                    struct vxd_svdag_kernel *kernel,
                                                    int *out, struct vxd_err *err)
{
    const uint32_t device = (uint32_t)queue->context->device << 8;
    const uint32_t known = __atomic_load_n(&kernel->fits, __ATOMIC_ACQUIRE);
    enum vxd_status status = VXD_OK;

    if (known != 0 && (known & ~0xffu) == device) {
        *out = (int)(known & 0xffu) - 1;
        return VXD_OK;
    }
    VXD_TRY(VXD_CUDA(queue->context,
                     cudaFuncSetAttribute(kernel->function,
                                          cudaFuncAttributeMaxDynamicSharedMemorySize,
                                          (int)kernel->shared_bytes),
                     err));
    VXD_TRY(VXD_CUDA(
        queue->context,
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(
            out, kernel->function, VXD_SVDAG_BLOCK_THREADS, kernel->shared_bytes),
        err));
    __atomic_store_n(&kernel->fits, device | (uint32_t)(*out + 1), __ATOMIC_RELEASE);
out:
    return status;
}

/* Launches a kernel of a pass, and of a second argument where there is one. */
static inline enum vxd_status
vxd_svdag_launch_edit_kernel(struct vxd_queue *queue, struct vxd_svdag_kernel *kernel,
                             const struct vxd_svdag_kernel_args *args, const void *editor,
                             struct vxd_err *err)
{
    /* Neither is written through these. */
    void *parameters[2] = {(void *)args, (void *)editor};
    int n_blocks = 0;
    enum vxd_status status = VXD_OK;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    VXD_TRY(vxd_svdag_kernel_fits(queue, kernel, &n_blocks, err));
    if (n_blocks < 1) {
        status = vxd_fail(err, VXD_INTERNAL, NULL, "%s does not fit on the device",
                          kernel->name);
        goto out;
    }
    n_blocks *= queue->context->info.n_multiprocessors;
    VXD_TRY(vxd_cuda_status(
        queue->context,
        cudaLaunchCooperativeKernel(kernel->function, dim3((unsigned)n_blocks),
                                    dim3(VXD_SVDAG_BLOCK_THREADS), parameters,
                                    kernel->shared_bytes, (cudaStream_t)queue->stream),
        kernel->name, err));
out:
    return status;
}

#endif
