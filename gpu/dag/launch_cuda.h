// SPDX-License-Identifier: Apache-2.0
/* Launching passes: cooperative grids of as many blocks as a device runs at once. */
#ifndef VXD_GPU_DAG_LAUNCH_CUDA_H
#define VXD_GPU_DAG_LAUNCH_CUDA_H

#include "gpu/core/cuda_check.h"
#include "gpu/dag/pass_cuda.h"

/* Files of passes are compiled once a store: another form defines both before it includes them. */
#ifndef VXD_DAG_PASS_STORE
#define VXD_DAG_PASS_STORE struct vxd_dag_arena_cuda
#define VXD_DAG_PASS_FORM(name) name
#endif

/* Launches a kernel of a pass, and of a second argument where there is one. */
static inline enum vxd_status vxd_dag_launch_pass(struct vxd_queue *queue,
                                                  const void *kernel,
                                                  const struct vxd_dag_pass *pass,
                                                  const void *editor, size_t shared_bytes,
                                                  const char *name, struct vxd_err *err)
{
    /* Neither is written through these. */
    void *args[2] = {(void *)pass, (void *)editor};
    int n_blocks = 0;
    enum vxd_status status = VXD_OK;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    VXD_TRY(
        VXD_CUDA(queue->context,
                 cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                      (int)shared_bytes),
                 err));
    VXD_TRY(VXD_CUDA(queue->context,
                     cudaOccupancyMaxActiveBlocksPerMultiprocessor(
                         &n_blocks, kernel, VXD_DAG_TEAM_THREADS, shared_bytes),
                     err));
    if (n_blocks < 1) {
        status = vxd_fail(err, VXD_INTERNAL, NULL, "%s does not fit on the device", name);
        goto out;
    }
    n_blocks *= queue->context->info.n_multiprocessors;
    VXD_TRY(vxd_cuda_status(queue->context,
                            cudaLaunchCooperativeKernel(kernel, dim3((unsigned)n_blocks),
                                                        dim3(VXD_DAG_TEAM_THREADS), args,
                                                        shared_bytes,
                                                        (cudaStream_t)queue->stream),
                            name, err));
out:
    return status;
}

#endif
