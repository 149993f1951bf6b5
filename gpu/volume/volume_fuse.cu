// SPDX-License-Identifier: Apache-2.0
/* Fuses a frame into blocks on a GPU. A thread takes a column of voxels along z, so that a warp
 * reads and writes whole lines, four voxels at a time: first it gathers what was measured at all
 * four, then it loads the four averages, then it stores them, so that no load waits for another;
 * of eight, fewer warps would fit.
 * The depth image (1.2 MB of 640 x 480) stays in the second-level cache. Voxels that observe
 * nothing are not read.
 *
 * Moved: 8 bytes a voxel (3 compact, 16 with colour) in and out: 7,700 blocks of 8^3 voxels are
 * 63 MB, 0.016 ms at 4.0 TB/s. */
#include "gpu/core/core_cuda.h"
#include "gpu/volume/volume_internal.h"

#define N_THREADS 256
#define N_BATCH 4

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

/* Some voxels of a column: what they observe, then their averages. */
struct batch {
    float p[N_BATCH][3]; /* in the camera's frame */
    int32_t pixel[N_BATCH];
    float depth[N_BATCH];
    float distance[N_BATCH];
    float weight[N_BATCH]; /* 0: observes nothing */
};

/* Observations of the batch of voxels from z on of column (x, y). at: the block's; IS_BENT: its
 * corners. */
template <int EDGE, bool IS_BENT>
static __device__ __forceinline__ bool
observe(const struct vxd_fuse_call *call, const double at[3], const double corners[8][3],
        float x, int y, int z, struct batch *batch)
{
    const struct vxd_frame_form *frame = &call->frame;
    bool any = false;

#pragma unroll
    for (int i = 0; i < N_BATCH; i++) {
        float *p = batch->p[i];

        for (int axis = 0; axis < 3; axis++) {
            float first;
            float step;

            if (IS_BENT) {
                vxd_frame_bent_row(corners, EDGE, axis, y, z + i, &first, &step);
            } else {
                first = vxd_frame_row_at(frame, at, axis, y, z + i);
                step = vxd_frame_row_step(frame, axis);
            }
            p[axis] = vxd_addf(first, vxd_mulf(step, x));
        }
        batch->pixel[i] = vxd_camera_pixel(&frame->camera, p[0], p[1], p[2]);
        batch->depth[i] = __ldg(call->depth + 1 + batch->pixel[i]); /* item 0 is 0 */
    }
#pragma unroll
    for (int i = 0; i < N_BATCH; i++) {
        float d = vxd_divf(vxd_subf(batch->depth[i], batch->p[i][2]), frame->truncation);
        bool is_seen = batch->depth[i] > 0 && d >= -1.0f;

        batch->distance[i] = d < 1.0f ? d : 1.0f;
        batch->weight[i] =
            is_seen ? vxd_frame_weight(frame, batch->depth[i], call->view.max_weight,
                                       call->view.is_compact)
                    : 0;
        any = any || is_seen;
    }
    return any;
}

/* Averages the batch into rows first, first + stride, ... */
static __device__ __forceinline__ void average(const struct vxd_volume_view *view,
                                               size_t first, size_t stride,
                                               const struct batch *batch)
{
    float w[N_BATCH];
    float d[N_BATCH];

#pragma unroll
    for (int i = 0; i < N_BATCH; i++) {
        size_t row = first + (size_t)i * stride;

        w[i] = batch->weight[i] > 0 ? vxd_volume_weight(view, row) : 0;
        d[i] = batch->weight[i] > 0 ? vxd_volume_distance(view, row) : 0;
    }
#pragma unroll
    for (int i = 0; i < N_BATCH; i++) {
        size_t row = first + (size_t)i * stride;
        float mean = vxd_average(d[i], w[i], batch->distance[i], batch->weight[i]);
        float sum = vxd_weight_sum(w[i], batch->weight[i], view->max_weight);

        if (batch->weight[i] > 0 && view->is_compact != 0) {
            ((uint16_t *)view->distances)[row] = vxd_half_of_float(mean);
            ((uint8_t *)view->weights)[row] = (uint8_t)(int32_t)sum;
        } else if (batch->weight[i] > 0) {
            ((float *)view->distances)[row] = mean;
            ((float *)view->weights)[row] = sum;
        }
    }
}

static __device__ __forceinline__ void mix_colours(const struct vxd_fuse_call *call,
                                                   size_t first, size_t stride,
                                                   const struct batch *batch)
{
    const struct vxd_frame_form *frame = &call->frame;

#pragma unroll
    for (int i = 0; i < N_BATCH; i++) {
        const float *p = batch->p[i];
        int32_t pixel = batch->pixel[i];

        if (batch->weight[i] > 0 && batch->distance[i] < 1.0f) {
            if (frame->has_colour_camera != 0) {
                pixel = vxd_frame_colour_pixel(frame, p[0], p[1], p[2]);
            }
            if (pixel >= 0) {
                mix_colour(call, first + (size_t)i * stride, pixel);
            }
        }
    }
}

static __device__ __forceinline__ void vote(const struct vxd_fuse_call *call,
                                            size_t first, size_t stride,
                                            const struct batch *batch)
{
#pragma unroll
    for (int i = 0; i < N_BATCH; i++) {
        uint32_t label = batch->weight[i] > 0 && batch->distance[i] < 1.0f
                             ? call->frame.labels[batch->pixel[i]]
                             : 0;

        if (label != 0) {
            vxd_volume_vote(&call->view, first + (size_t)i * stride, label);
        }
    }
}

/* IS_BENT: eight threads of a block move its corners back through the control grid; what the grid has
 * around them stays in their registers. Colours and labels are looked for then. */
template <int EDGE, bool IS_COMPACT, bool HAS_COLOUR, bool HAS_LABELS, bool IS_BENT>
static __global__ void __launch_bounds__(N_THREADS)
    fuse_kernel(const __grid_constant__ struct vxd_fuse_call all)
{
    struct vxd_fuse_call call = all;
    const int n_columns = EDGE * EDGE; /* whole warps a block */
    size_t block = (size_t)blockIdx.x * (N_THREADS / n_columns) + threadIdx.x / n_columns;
    unsigned column = threadIdx.x % n_columns;
    int x = (int)(column % EDGE);
    int y = (int)(column / EDGE);
    __shared__ double corners[IS_BENT ? N_THREADS / (EDGE * EDGE) : 1][8][3];
    const unsigned part = IS_BENT ? threadIdx.x / n_columns : 0;
    int32_t entry;
    double at[3];
    bool any = false;

    if (call.counts != NULL) {
        call.n = vxd_volume_fuses_ahead(call.counts, call.most_taken, call.n)
                     ? call.counts->n_known
                     : 0;
    }
    call.view.edge = EDGE; /* the same for all blocks, so constants */
    call.view.shift = EDGE == 8 ? 3 : 4;
    call.view.is_compact = IS_COMPACT ? 1 : 0;
    call.frame.colour = HAS_COLOUR ? all.frame.colour : NULL;
    if (IS_BENT) {
        if (block < call.n && column < 8) {
            struct vxd_deform_cell cell;

            cell.is_loaded = 0;
            vxd_frame_corner_at(&call.frame,
                                call.view.keys + 3 * (size_t)call.entries[block], EDGE,
                                (int)column, &cell, corners[part][column]);
        }
        __syncthreads();
    }
    if (block >= call.n) {
        return;
    }
    entry = call.entries[block];
    vxd_frame_block_at(&call.frame, call.view.keys + 3 * (size_t)entry, EDGE, at);
    for (int z = 0; z < EDGE; z += N_BATCH) {
        size_t first =
            vxd_voxel_row(&call.view, entry, column + (uint32_t)(z * n_columns));
        struct batch batch;

        if (observe<EDGE, IS_BENT>(&call, at, corners[part], (float)x, y, z, &batch)) {
            any = true;
            average(&call.view, first, n_columns, &batch);
            if (call.frame.colour != NULL) {
                mix_colours(&call, first, n_columns, &batch);
            }
            if (HAS_LABELS && (!IS_BENT || call.frame.labels != NULL)) {
                vote(&call, first, n_columns, &batch);
            }
        }
    }
    if (__any_sync(0xffffffffu, any ? 1 : 0) != 0 && (threadIdx.x & 31) == 0) {
        (void)atomicMax((unsigned long long *)&call.view.stamps[entry],
                        (unsigned long long)call.version);
    }
}

template <int EDGE, bool IS_COMPACT>
static void launch(const struct vxd_fuse_call *call, cudaStream_t stream)
{
    unsigned n = (unsigned)(EDGE == 8 ? (call->n + 3) / 4 : call->n);

    if (call->frame.is_deformed != 0) {
        fuse_kernel<EDGE, IS_COMPACT, true, true, true>
            <<<n, N_THREADS, 0, stream>>>(*call);
    } else if (call->frame.labels !=
               NULL) { /* rarer: it looks whether there are colours */
        fuse_kernel<EDGE, IS_COMPACT, true, true, false>
            <<<n, N_THREADS, 0, stream>>>(*call);
    } else if (call->frame.colour != NULL) {
        fuse_kernel<EDGE, IS_COMPACT, true, false, false>
            <<<n, N_THREADS, 0, stream>>>(*call);
    } else {
        fuse_kernel<EDGE, IS_COMPACT, false, false, false>
            <<<n, N_THREADS, 0, stream>>>(*call);
    }
}

enum vxd_status vxd_volume_fuse_cuda(struct vxd_queue *queue,
                                     const struct vxd_fuse_call *call,
                                     struct vxd_err *err)
{
    cudaStream_t stream = (cudaStream_t)queue->stream;
    enum vxd_status status;

    if (vxd_volume_is_plain(call)) {
        return vxd_volume_fuse_plain_cuda(queue, call, err);
    }
    VXD_TRY(vxd_cuda_enter(queue->context, err));
    if (call->view.edge == 8) {
        (call->view.is_compact != 0 ? launch<8, true> : launch<8, false>)(call, stream);
    } else {
        (call->view.is_compact != 0 ? launch<16, true> : launch<16, false>)(call, stream);
    }
    VXD_TRY(vxd_cuda_launched(queue->context, "fuse_kernel", err));
out:
    return status;
}
