// SPDX-License-Identifier: Apache-2.0
/* Ray casting on a GPU: a thread projects a block into the range image, then a thread casts a
 * pixel's ray. A thread block takes 16 x 8 pixels and a warp 8 x 4 of them, so that its rays read
 * the same lines. All arithmetic is in volume_cast_math.h.
 *
 * Moved: the rays read some ten voxels each, mostly from the first-level cache; 4 to 32 bytes out
 * a pixel. */
#include "gpu/core/core_cuda.h"
#include "gpu/volume/volume_internal.h"

#define RANGE_THREADS 128
#define CAST_THREADS 128
#define CAST_WIDTH 16
#define CAST_HEIGHT VXD_CAST_TILE

static __global__ void __launch_bounds__(RANGE_THREADS)
    range_kernel(const __grid_constant__ struct vxd_cast_call call)
{
    size_t i = (size_t)blockIdx.x * RANGE_THREADS + threadIdx.x;
    size_t entry;
    struct vxd_cast_box box;

    if (i >= call.n) {
        return;
    }
    entry = call.entries != NULL ? (size_t)call.entries[i] : i;
    if (call.view.stamps[entry] == 0 ||
        !vxd_cast_project(&call, call.view.keys + 3 * entry, &box)) {
        return;
    }
    for (int y = box.first_y; y <= box.last_y; y++) {
        for (int x = box.first_x; x <= box.last_x; x++) {
            (void)atomicMin(&call.range_min[y * call.tiles_x + x],
                            vxd_float_bits(box.z_min));
            (void)atomicMax(&call.range_max[y * call.tiles_x + x],
                            vxd_float_bits(box.z_max));
        }
    }
}

static __global__ void __launch_bounds__(CAST_THREADS)
    cast_kernel(const __grid_constant__ struct vxd_cast_call call)
{
    unsigned lane = threadIdx.x & 31;
    unsigned warp = threadIdx.x >> 5;
    int u = (int)(blockIdx.x * CAST_WIDTH + (warp & 1) * 8 + (lane & 7));
    int v = (int)((blockIdx.y + call.first_row) * CAST_HEIGHT + (warp >> 1) * 4 +
                  (lane >> 3));

    if (u < call.camera.width && v < call.camera.height) {
        vxd_cast_pixel(&call, u, v);
    }
}

enum vxd_status vxd_volume_cast_cuda(struct vxd_queue *queue,
                                     const struct vxd_cast_call *call,
                                     struct vxd_err *err)
{
    dim3 grid((unsigned)(call->camera.width + CAST_WIDTH - 1) / CAST_WIDTH,
              (unsigned)(call->end_row - call->first_row));
    cudaStream_t stream = (cudaStream_t)queue->stream;
    enum vxd_status status;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    if (call->range_min != NULL && call->n > 0) {
        range_kernel<<<(unsigned)((call->n + RANGE_THREADS - 1) / RANGE_THREADS),
                       RANGE_THREADS, 0, stream>>>(*call);
        VXD_TRY(vxd_cuda_launched(queue->context, "range_kernel", err));
    }
    cast_kernel<<<grid, CAST_THREADS, 0, stream>>>(*call);
    VXD_TRY(vxd_cuda_launched(queue->context, "cast_kernel", err));
out:
    return status;
}
