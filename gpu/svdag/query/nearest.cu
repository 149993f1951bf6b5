// SPDX-License-Identifier: Apache-2.0
/* CUDA twin of nearest voxels: a thread a point, all of it in nearest_math.h. Threads of a warp
 * go different ways; what a thread keeps of its way lies in its local memory, one line of L1 a
 * height for the whole warp where they are at the same height. */
#include "gpu/svdag/query/nearest_math.h"
#include "gpu/svdag/query/query_cuda.h"

#define NEAREST_THREADS 128

static __global__ void __launch_bounds__(NEAREST_THREADS)
    nearest_kernel(const __grid_constant__ struct vxd_svdag_nearest_call call)
{
    size_t i = (size_t)blockIdx.x * NEAREST_THREADS + threadIdx.x;

    if (i < call.n) {
        vxd_svdag_nearest_answer(&call.view, call.root, call.points + 3 * i,
                                 call.radii[i], call.voxels + 3 * i, call.squares + i,
                                 call.values != NULL ? call.values + i : NULL);
    }
}

enum vxd_status
VXD_SVDAG_FORM(vxd_svdag_nearest)(struct vxd_queue *queue,
                                  const struct vxd_svdag_nearest_call *call,
                                  struct vxd_err *err)
{
    unsigned n_blocks = 0;
    enum vxd_status status;

    VXD_TRY(vxd_svdag_blocks_of(call->n, NEAREST_THREADS, &n_blocks, err));
    VXD_TRY(vxd_cuda_enter(queue->context, err));
    nearest_kernel<<<n_blocks, NEAREST_THREADS, 0, (cudaStream_t)queue->stream>>>(*call);
    VXD_TRY(vxd_cuda_launched(queue->context, "nearest_kernel", err));
out:
    return status;
}
