// SPDX-License-Identifier: Apache-2.0
/* CUDA twin of states of voxels: a thread a voxel, all of it in values_math.h.
 *
 * Moved: 12 bytes in, 3 out a voxel, and a node a level of which the upper ones stay in L1. */
#include "gpu/svdag/query/query_cuda.h"
#include "gpu/svdag/query/values_math.h"

#define VALUES_THREADS 256

static __global__ void __launch_bounds__(VALUES_THREADS)
    values_kernel(const __grid_constant__ struct vxd_svdag_values_call call)
{
    size_t i = (size_t)blockIdx.x * VALUES_THREADS + threadIdx.x;
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

enum vxd_status VXD_SVDAG_FORM(vxd_svdag_values)(struct vxd_queue *queue,
                                                 const struct vxd_svdag_values_call *call,
                                                 struct vxd_err *err)
{
    unsigned n_blocks = 0;
    enum vxd_status status;

    VXD_TRY(vxd_svdag_blocks_of(call->n, VALUES_THREADS, &n_blocks, err));
    VXD_TRY(vxd_cuda_enter(queue->context, err));
    values_kernel<<<n_blocks, VALUES_THREADS, 0, (cudaStream_t)queue->stream>>>(*call);
    VXD_TRY(vxd_cuda_launched(queue->context, "values_kernel", err));
out:
    return status;
}
