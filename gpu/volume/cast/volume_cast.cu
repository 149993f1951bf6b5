// SPDX-License-Identifier: Apache-2.0
/* Ray casting on a GPU: a thread projects a block into the range image, then a thread casts a
 * pixel's ray. A thread block takes 16 x 8 pixels and a warp 8 x 4 of them, so that its rays read
 * the same lines. All arithmetic is in volume_cast_math.h.
 *
 * Moved: the rays read some ten voxels each, mostly from the first-level cache; 4 to 32 bytes out
 * a pixel. */
#include "gpu/core/core_cuda.h"
#include "gpu/volume/cast/volume_cast_internal.h"

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

static __device__ __forceinline__ void cast_own_pixel(const struct vxd_cast_call *call)
{
    unsigned lane = threadIdx.x & 31;
    unsigned warp = threadIdx.x >> 5;
    int u = (int)(blockIdx.x * CAST_WIDTH + (warp & 1) * 8 + (lane & 7));
    int v = (int)((blockIdx.y + call->first_row) * CAST_HEIGHT + (warp >> 1) * 4 +
                  (lane >> 3));

    if (u < call->camera.width && v < call->camera.height) {
        vxd_cast_pixel(call, u, v);
    }
}

/* For volumes whose neighbours are not known. */
static __global__ void __launch_bounds__(CAST_THREADS)
    cast_unlinked_kernel(const __grid_constant__ struct vxd_cast_call call)
{
    cast_own_pixel(&call);
}

/* What is the same for all rays of a kind of volume is a constant of its kernel: the code of the
 * march must stay small, or warps wait for instructions. */
template <int SHIFT, bool IS_COMPACT, bool HAS_COLOUR>
static __global__ void __launch_bounds__(CAST_THREADS)
    cast_kernel(const __grid_constant__ struct vxd_cast_call call)
{
    struct vxd_cast_call own = call;

    own.view.shift = SHIFT;
    own.view.edge = 1 << SHIFT;
    own.view.is_compact = IS_COMPACT ? 1 : 0;
    own.colour = HAS_COLOUR ? call.colour : NULL;
    __builtin_assume(own.view.neighbours != NULL);
    cast_own_pixel(&own);
}

using launch_fn = void (*)(const struct vxd_cast_call *call, dim3 grid,
                           cudaStream_t stream);

static void launch_unlinked(const struct vxd_cast_call *call, dim3 grid,
                            cudaStream_t stream)
{
    cast_unlinked_kernel<<<grid, CAST_THREADS, 0, stream>>>(*call);
}

template <int SHIFT, bool IS_COMPACT, bool HAS_COLOUR>
static void launch(const struct vxd_cast_call *call, dim3 grid, cudaStream_t stream)
{
    cast_kernel<SHIFT, IS_COMPACT, HAS_COLOUR><<<grid, CAST_THREADS, 0, stream>>>(*call);
}

template <int SHIFT> static launch_fn launch_of(const struct vxd_cast_call *call)
{
    bool is_compact = call->view.is_compact != 0;

    if (call->view.neighbours == NULL) {
        return launch_unlinked;
    }
    return call->colour != NULL
               ? (is_compact ? launch<SHIFT, true, true> : launch<SHIFT, false, true>)
               : (is_compact ? launch<SHIFT, true, false> : launch<SHIFT, false, false>);
}

enum vxd_status vxd_volume_cast_cuda(struct vxd_queue *queue,
                                     const struct vxd_cast_call *call,
                                     struct vxd_err *err)
{
    dim3 grid((unsigned)(call->camera.width + CAST_WIDTH - 1) / CAST_WIDTH,
              (unsigned)(call->end_row - call->first_row));
    cudaStream_t stream = (cudaStream_t)queue->stream;
    launch_fn launch_cast =
        call->view.shift == 3 ? launch_of<3>(call) : launch_of<4>(call);
    enum vxd_status status;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    if (call->range_min != NULL && call->n > 0) {
        range_kernel<<<(unsigned)((call->n + RANGE_THREADS - 1) / RANGE_THREADS),
                       RANGE_THREADS, 0, stream>>>(*call);
        VXD_TRY(vxd_cuda_launched(queue->context, "range_kernel", err));
    }
    launch_cast(call, grid, stream);
    VXD_TRY(vxd_cuda_launched(queue->context, "cast_kernel", err));
out:
    return status;
}
