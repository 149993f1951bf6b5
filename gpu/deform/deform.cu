// SPDX-License-Identifier: Apache-2.0
/* Control grids on a GPU: a thread a point. The table and the offsets of a living room's grid (some
 * 100 KB) stay in the first two levels of cache.
 *
 * Moved: 12 bytes a point in and out, twice that with normals. */
#include "gpu/core/core_cuda.h"
#include "gpu/deform/deform_internal.h"

#define N_THREADS 128

static __global__ void __launch_bounds__(N_THREADS)
    apply_kernel(const __grid_constant__ struct vxd_deform_call call)
{
    size_t i = (size_t)blockIdx.x * N_THREADS + threadIdx.x;
    struct vxd_deform_cell cell;

    cell.is_loaded = 0;
    if (i < call.args.n) {
        vxd_deform_apply_one(&call, &cell, i);
    }
}

enum vxd_status vxd_deform_apply_cuda(struct vxd_queue *queue,
                                      const struct vxd_deform_call *call,
                                      struct vxd_err *err)
{
    enum vxd_status status;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    apply_kernel<<<(unsigned)((call->args.n + N_THREADS - 1) / N_THREADS), N_THREADS, 0,
                   (cudaStream_t)queue->stream>>>(*call);
    VXD_TRY(vxd_cuda_launched(queue->context, "apply_kernel", err));
out:
    return status;
}
