// SPDX-License-Identifier: Apache-2.0
/* CUDA backend of nearest voxels: a thread a point; nearest_math.h decides. The threads
 * of a warp diverge. The stack of a thread lies in its local memory, where one line of L1
 * holds a height for the whole warp while its threads are at the same height.
 *
 * Bytes: 32 in and 22 out a point, and the nodes that are visited. */
#ifndef VXD_GPU_SVDAG_QUERY_NEAREST_CUDA_H
#define VXD_GPU_SVDAG_QUERY_NEAREST_CUDA_H

#include "gpu/svdag/query/nearest_math.h"
#include "gpu/svdag/query/tree_walk_cuda.h"

#define VXD_SVDAG_NEAREST_THREADS 128

template <bool IS_SPLIT>
static __global__ void __launch_bounds__(VXD_SVDAG_NEAREST_THREADS)
    nearest_kernel(const __grid_constant__ struct vxd_svdag_nearest_call call)
{
    size_t i = (size_t)blockIdx.x * VXD_SVDAG_NEAREST_THREADS + threadIdx.x;

    if (i < call.n) {
        vxd_svdag_nearest_answer(&call.view, call.root, call.points + 3 * i,
                                 call.radii[i], call.voxels + 3 * i, call.squares + i,
                                 call.values != NULL ? call.values + i : NULL);
    }
}

template <bool IS_SPLIT>
static enum vxd_status vxd_svdag_nearest_launch(struct vxd_queue *queue,
                                                const struct vxd_svdag_nearest_call *call,
                                                struct vxd_err *err)
{
    static_assert(IS_SPLIT == VXD_SVDAG_IS_SPLIT_FORM,
                  "a translation unit is compiled for one form of stores");
    unsigned n_blocks = 0;
    enum vxd_status status;

    VXD_TRY(vxd_svdag_blocks_of(call->n, VXD_SVDAG_NEAREST_THREADS, &n_blocks, err));
    VXD_TRY(vxd_cuda_enter(queue->context, err));
    nearest_kernel<IS_SPLIT>
        <<<n_blocks, VXD_SVDAG_NEAREST_THREADS, 0, (cudaStream_t)queue->stream>>>(*call);
    VXD_TRY(vxd_cuda_launched(queue->context, "nearest_kernel", err));
out:
    return status;
}

#endif
