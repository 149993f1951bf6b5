// SPDX-License-Identifier: Apache-2.0
/* CUDA backend of states of voxels: a thread a voxel; values_math.h decides.
 *
 * Bytes: 12 in and 3 out a voxel, and a node a level, of which the upper ones stay in
 * L1. */
#ifndef VXD_GPU_SVDAG_QUERY_VALUES_CUDA_H
#define VXD_GPU_SVDAG_QUERY_VALUES_CUDA_H

#include "gpu/svdag/query/tree_walk_cuda.h"
#include "gpu/svdag/query/values_math.h"

#define VXD_SVDAG_VALUES_THREADS 256

template <bool IS_SPLIT>
static __global__ void __launch_bounds__(VXD_SVDAG_VALUES_THREADS)
    values_kernel(const __grid_constant__ struct vxd_svdag_values_call call)
{
    size_t i = (size_t)blockIdx.x * VXD_SVDAG_VALUES_THREADS + threadIdx.x;
    uint16_t value;

    if (i >= call.n) {
        return;
    }
    call.states[i] = (uint8_t)vxd_svdag_values_answer(&call.view, call.root,
                                                      call.voxels + 3 * i, &value);
    if (call.values != NULL) {
        call.values[i] = value;
    }
}

template <bool IS_SPLIT>
static enum vxd_status vxd_svdag_values_launch(struct vxd_queue *queue,
                                               const struct vxd_svdag_values_call *call,
                                               struct vxd_err *err)
{
    static_assert(IS_SPLIT == VXD_SVDAG_IS_SPLIT_FORM,
                  "a translation unit is compiled for one form of stores");
    unsigned n_blocks = 0;
    enum vxd_status status;

    VXD_TRY(vxd_svdag_blocks_of(call->n, VXD_SVDAG_VALUES_THREADS, &n_blocks, err));
    VXD_TRY(vxd_cuda_enter(queue->context, err));
    values_kernel<IS_SPLIT>
        <<<n_blocks, VXD_SVDAG_VALUES_THREADS, 0, (cudaStream_t)queue->stream>>>(*call);
    VXD_TRY(vxd_cuda_launched(queue->context, "values_kernel", err));
out:
    return status;
}

#endif
