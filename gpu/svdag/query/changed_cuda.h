// SPDX-License-Identifier: Apache-2.0
/* CUDA backend of the newest change of voxels: a thread a voxel, which compares neighbouring roots
 * until they differ; changed_math.h decides.
 *
 * Bytes: 12 in and 4 out a voxel, and two nodes a level and pair of roots, as far down as they
 * differ. */
#ifndef VXD_GPU_SVDAG_QUERY_CHANGED_CUDA_H
#define VXD_GPU_SVDAG_QUERY_CHANGED_CUDA_H

#include "gpu/svdag/node/node_math.h"
#include "gpu/svdag/query/tree_walk_cuda.h"

#define VXD_SVDAG_CHANGED_THREADS 128

template <bool IS_SPLIT>
static __global__ void __launch_bounds__(VXD_SVDAG_CHANGED_THREADS)
    changed_kernel(const __grid_constant__ struct vxd_svdag_changed_call call)
{
    size_t i = (size_t)blockIdx.x * VXD_SVDAG_CHANGED_THREADS + threadIdx.x;

    if (i < call.n) {
        call.indices[i] = vxd_svdag_changed_answer(&call.view, call.roots, call.n_roots,
                                                   call.voxels + 3 * i);
    }
}

template <bool IS_SPLIT>
static enum vxd_status vxd_svdag_changed_launch(struct vxd_queue *queue,
                                                const struct vxd_svdag_changed_call *call,
                                                struct vxd_err *err)
{
    static_assert(IS_SPLIT == VXD_SVDAG_IS_SPLIT_FORM,
                  "a translation unit is compiled for one form of stores");
    unsigned n_blocks = 0;
    enum vxd_status status;

    VXD_TRY(vxd_svdag_blocks_of(call->n, VXD_SVDAG_CHANGED_THREADS, &n_blocks, err));
    VXD_TRY(vxd_cuda_enter(queue->context, err));
    changed_kernel<IS_SPLIT>
        <<<n_blocks, VXD_SVDAG_CHANGED_THREADS, 0, (cudaStream_t)queue->stream>>>(*call);
    VXD_TRY(vxd_cuda_launched(queue->context, "changed_kernel", err));
out:
    return status;
}

#endif
