// SPDX-License-Identifier: Apache-2.0
/* Fuses a frame into blocks on a GPU. A thread block takes a block of the volume, a thread every
 * 256th voxel of it, so that a warp reads and writes whole lines. The depth image (1.2 MB of
 * 640 x 480) stays in the second-level cache. Voxels that observe nothing are not read.
 *
 * Moved: 8 bytes a voxel (3 compact, 16 with colour) in and out: 6,465 blocks of 8^3 voxels are
 * 53 MB, 0.013 ms at 4.1 TB/s. */
#include "gpu/core/core_cuda.h"
#include "gpu/volume/volume_internal.h"

#define N_THREADS 256

static __device__ __forceinline__ void average(const struct vxd_volume_view *view,
                                               size_t row, float distance, float weight)
{
    float w = vxd_volume_weight(view, row);
    float d = vxd_average(vxd_volume_distance(view, row), w, distance, weight);
    float sum = vxd_weight_sum(w, weight, view->max_weight);

    if (view->is_compact != 0) {
        ((uint16_t *)view->distances)[row] = vxd_half_of_float(d);
        ((uint8_t *)view->weights)[row] = (uint8_t)(int32_t)sum;
    } else {
        ((float *)view->distances)[row] = d;
        ((float *)view->weights)[row] = sum;
    }
}

/* A voxel's colour is one load and one store of 8 bytes. */
static __device__ __forceinline__ void mix_colour(const struct vxd_fuse_call *call,
                                                  size_t row, int32_t pixel)
{
    uint64_t *at = (uint64_t *)call->view.colours + row;
    uint64_t bits = *at;
    uint16_t voxel[4] = {(uint16_t)bits, (uint16_t)(bits >> 16), (uint16_t)(bits >> 32),
                         (uint16_t)(bits >> 48)};

    vxd_frame_mix_colour(voxel, call->frame.colour + 3 * (size_t)pixel,
                         call->view.max_weight);
    *at = (uint64_t)voxel[0] | (uint64_t)voxel[1] << 16 | (uint64_t)voxel[2] << 32 |
          (uint64_t)voxel[3] << 48;
}

/* Returns whether voxel `index` of a block observed something. */
static __device__ __forceinline__ bool fuse_voxel(const struct vxd_fuse_call *call,
                                                  int32_t entry, const double at[3],
                                                  uint32_t index)
{
    const struct vxd_frame_form *frame = &call->frame;
    const struct vxd_volume_view *view = &call->view;
    uint32_t mask = (uint32_t)view->edge - 1;
    float x = (float)(index & mask);
    int y = (int)(index >> view->shift & mask);
    int z = (int)(index >> (2 * view->shift));
    float p[3];
    int32_t pixel;
    float depth;
    float distance;
    size_t row;

    for (int axis = 0; axis < 3; axis++) {
        p[axis] = vxd_addf(vxd_frame_row_at(frame, at, axis, y, z),
                           vxd_mulf(vxd_frame_row_step(frame, axis), x));
    }
    pixel = vxd_camera_pixel(&frame->camera, p[0], p[1], p[2]);
    if (pixel < 0) {
        return false;
    }
    depth = __ldg(call->depth + 1 + pixel);
    distance = vxd_divf(vxd_subf(depth, p[2]), frame->truncation);
    if (!(depth > 0 && distance >= -1.0f)) {
        return false;
    }
    distance = distance < 1.0f ? distance : 1.0f;
    row = vxd_voxel_row(view, entry, index);
    average(view, row, distance,
            vxd_frame_weight(frame, depth, view->max_weight, view->is_compact));
    if (frame->colour != NULL && distance < 1.0f) {
        if (frame->has_colour_camera != 0) {
            pixel = vxd_frame_colour_pixel(frame, p[0], p[1], p[2]);
        }
        if (pixel >= 0) {
            mix_colour(call, row, pixel);
        }
    }
    return true;
}

static __global__ void __launch_bounds__(N_THREADS)
    fuse_kernel(const __grid_constant__ struct vxd_fuse_call call)
{
    int32_t entry = call.entries[blockIdx.x];
    uint32_t n_voxels = (uint32_t)vxd_volume_block_voxels(&call.view);
    double at[3];
    bool any = false;

    vxd_frame_block_at(&call.frame, call.view.keys + 3 * (size_t)entry, call.view.edge,
                       at);
    for (uint32_t index = threadIdx.x; index < n_voxels; index += N_THREADS) {
        any = fuse_voxel(&call, entry, at, index) || any;
    }
    if (__syncthreads_or(any ? 1 : 0) != 0 && threadIdx.x == 0) {
        call.view.stamps[entry] = call.version;
    }
}

enum vxd_status vxd_volume_fuse_cuda(struct vxd_queue *queue,
                                     const struct vxd_fuse_call *call,
                                     struct vxd_err *err)
{
    enum vxd_status status;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    fuse_kernel<<<(unsigned)call->n, N_THREADS, 0, (cudaStream_t)queue->stream>>>(*call);
    VXD_TRY(vxd_cuda_launched(queue->context, "fuse_kernel", err));
out:
    return status;
}
