// SPDX-License-Identifier: Apache-2.0
/* Fuses a frame into blocks on the CPU, a slice of a block (8 x 8 or 16 x 16 voxels) at a time:
 * where its voxels project, what was measured there, and the running averages. The loops over a
 * slice have constant lengths and no branches, so the compiler vectorizes them; for x86-64 they
 * are compiled a second time with AVX2 (products are still rounded before they are added). A
 * slice that observes nothing is left after the gather, without touching the volume's memory. */
#include "gpu/volume/volume_internal.h"

#define PIECE_BLOCKS ((size_t)16)
#define MAX_SLICE 256
#define MAX_EDGE 16

#if defined(__GNUC__)
#define ALWAYS_INLINE inline __attribute__((always_inline))
#else
#define ALWAYS_INLINE inline
#endif

/* What the voxels of a slice see. */
struct slice {
    float x[MAX_SLICE]; /* in the camera's frame, metres */
    float y[MAX_SLICE];
    float z[MAX_SLICE];
    int32_t item[MAX_SLICE]; /* pixel + 1 of the depth image; 0: none */
    float depth[MAX_SLICE];
    float distance[MAX_SLICE]; /* in units of the truncation, at most 1 */
    float weight[MAX_SLICE];   /* of the observation; 0: there is none */
};

/* The frame's numbers that the loops use, in one place for the compiler. */
struct fuse_block {
    const struct vxd_fuse_call *call;
    double at[3];
    float step[3];
    double corners[8][3]; /* where the frame is deformed */
};

/* Positions of the voxels of slice z. */
static ALWAYS_INLINE void place_voxels(const struct fuse_block *block, int edge, int z,
                                       struct slice *slice)
{
    const struct vxd_frame_form *frame = &block->call->frame;
    float *const to[3] = {slice->x, slice->y, slice->z};

    for (int axis = 0; axis < 3; axis++) {
        float step = block->step[axis];

        for (int y = 0; y < edge; y++) {
            float first = vxd_frame_row_at(frame, block->at, axis, y, z);
            float *row = to[axis] + (size_t)(y * edge);

            if (frame->is_deformed != 0) {
                vxd_frame_bent_row(block->corners, edge, axis, y, z, &first, &step);
            }

            for (int x = 0; x < edge; x++) {
                row[x] = vxd_addf(first, vxd_mulf(step, (float)x));
            }
        }
    }
}

/* As vxd_camera_pixel of a camera without distortion, plus 1. */
static ALWAYS_INLINE void project(const struct vxd_camera_form *camera, int n,
                                  struct slice *slice)
{
    float fx = camera->fx;
    float fy = camera->fy;
    float cx = camera->cx;
    float cy = camera->cy;
    float width = (float)camera->width;
    float height = (float)camera->height;
    int32_t row = camera->width;

    for (int i = 0; i < n; i++) {
        float inverse = vxd_divf(1.0f, slice->z[i]);
        float u =
            vxd_addf(vxd_addf(vxd_mulf(fx, vxd_mulf(slice->x[i], inverse)), cx), 0.5f);
        float v =
            vxd_addf(vxd_addf(vxd_mulf(fy, vxd_mulf(slice->y[i], inverse)), cy), 0.5f);
        int32_t seen =
            (slice->z[i] > 0) & (u >= 0) & (v >= 0) & (u < width) & (v < height);
        int32_t column = (int32_t)(seen != 0 ? u : 0.0f);
        int32_t line = (int32_t)(seen != 0 ? v : 0.0f);

        slice->item[i] = seen != 0 ? line * row + column + 1 : 0;
    }
}

/* Observed distances and weights; returns whether there is any. */
static ALWAYS_INLINE bool observe(const struct fuse_block *block, int edge,
                                  struct slice *slice)
{
    const struct vxd_fuse_call *call = block->call;
    float truncation = call->frame.truncation;
    int n = edge * edge;
    int32_t any = 0;

    for (int i = 0; i < n; i++) {
        slice->depth[i] = call->depth[slice->item[i]];
    }
    for (int i = 0; i < n; i++) {
        float d = vxd_subf(slice->depth[i], slice->z[i]);
        float scaled = vxd_divf(d, truncation);
        int32_t use = (slice->depth[i] > 0) & (scaled >= -1.0f);

        slice->distance[i] = scaled < 1.0f ? scaled : 1.0f;
        slice->weight[i] = use != 0 ? 1.0f : 0.0f;
        any |= use;
    }
    if (any == 0) {
        return false;
    }
    for (int i = 0; i < n; i++) {
        slice->weight[i] = vxd_mulf(
            slice->weight[i],
            vxd_frame_weight(&call->frame, slice->depth[i] > 0 ? slice->depth[i] : 1,
                             call->view.max_weight, call->view.is_compact));
    }
    return true;
}

static ALWAYS_INLINE void average_full(const struct slice *slice, int n, float max_weight,
                                       float *restrict distances, float *restrict weights)
{
    for (int i = 0; i < n; i++) {
        float w_new = slice->weight[i];
        float w = weights[i];
        float d = vxd_average(distances[i], w, slice->distance[i], w_new);

        distances[i] = w_new > 0 ? d : distances[i];
        weights[i] = w_new > 0 ? vxd_weight_sum(w, w_new, max_weight) : w;
    }
}

static ALWAYS_INLINE void average_compact(const struct slice *slice, int n,
                                          float max_weight, uint16_t *distances,
                                          uint8_t *weights)
{
    for (int i = 0; i < n; i++) {
        float w_new = slice->weight[i];

        if (w_new > 0) {
            float w = (float)weights[i];
            float d = vxd_average(vxd_float_of_half(distances[i]), w, slice->distance[i],
                                  w_new);

            distances[i] = vxd_half_of_float(d);
            weights[i] = (uint8_t)(int32_t)vxd_weight_sum(w, w_new, max_weight);
        }
    }
}

static void mix_colours(const struct vxd_fuse_call *call, const struct slice *slice,
                        int n, uint16_t *colours)
{
    const struct vxd_frame_form *frame = &call->frame;

    for (int i = 0; i < n; i++) {
        if (slice->weight[i] > 0 && slice->distance[i] < 1) {
            int32_t pixel =
                frame->has_colour_camera != 0
                    ? vxd_frame_colour_pixel(frame, slice->x[i], slice->y[i], slice->z[i])
                    : slice->item[i] - 1;

            if (pixel >= 0) {
                vxd_frame_mix_colour(colours + 4 * (size_t)i,
                                     frame->colour + 3 * (size_t)pixel,
                                     call->view.max_weight);
            }
        }
    }
}

static void vote(const struct vxd_fuse_call *call, const struct slice *slice, int n,
                 size_t row)
{
    for (int i = 0; i < n; i++) {
        uint32_t label = slice->weight[i] > 0 && slice->distance[i] < 1
                             ? call->frame.labels[slice->item[i] - 1]
                             : 0;

        if (label != 0) {
            vxd_volume_vote(&call->view, row + (size_t)i, label);
        }
    }
}

static ALWAYS_INLINE void fuse_block(const struct vxd_fuse_call *call, int32_t entry,
                                     int edge, struct vxd_deform_cell *cell)
{
    const struct vxd_volume_view *view = &call->view;
    const struct vxd_frame_form *frame = &call->frame;
    struct fuse_block block = {.call = call};
    struct slice slice;
    int n = edge * edge;
    bool any = false;

    vxd_frame_block_at(frame, view->keys + 3 * (size_t)entry, edge, block.at);
    for (int axis = 0; axis < 3; axis++) {
        block.step[axis] = vxd_frame_row_step(frame, axis);
    }
    for (int k = 0; frame->is_deformed != 0 && k < 8; k++) {
        vxd_frame_corner_at(frame, view->keys + 3 * (size_t)entry, edge, k, cell,
                            block.corners[k]);
    }
    for (int z = 0; z < edge; z++) {
        size_t row = vxd_voxel_row(view, entry, (uint32_t)(z * n));

        place_voxels(&block, edge, z, &slice);
        if (frame->camera.is_distorted == 0) {
            project(&frame->camera, n, &slice);
        } else {
            for (int i = 0; i < n; i++) {
                slice.item[i] =
                    vxd_camera_pixel(&frame->camera, slice.x[i], slice.y[i], slice.z[i]) +
                    1;
            }
        }
        if (!observe(&block, edge, &slice)) {
            continue;
        }
        any = true;
        if (view->is_compact != 0) {
            average_compact(&slice, n, view->max_weight,
                            (uint16_t *)view->distances + row,
                            (uint8_t *)view->weights + row);
        } else {
            average_full(&slice, n, view->max_weight, (float *)view->distances + row,
                         (float *)view->weights + row);
        }
        if (frame->colour != NULL) {
            mix_colours(call, &slice, n, view->colours + 4 * row);
        }
        if (frame->labels != NULL) {
            vote(call, &slice, n, row);
        }
    }
    if (any) {
        view->stamps[entry] = call->version;
    }
}

static ALWAYS_INLINE void fuse_any(const struct vxd_fuse_call *call, size_t begin,
                                   size_t end)
{
    struct vxd_deform_cell cell = {.is_loaded = 0};

    if (call->view.edge == 8) {
        for (size_t i = begin; i < end; i++) {
            fuse_block(call, call->entries[i], 8, &cell);
        }
    } else {
        for (size_t i = begin; i < end; i++) {
            fuse_block(call, call->entries[i], 16, &cell);
        }
    }
}

static void fuse_base(void *args, size_t begin, size_t end)
{
    fuse_any(args, begin, end);
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static void fuse_avx2(void *args, size_t begin,
                                                      size_t end)
{
    fuse_any(args, begin, end);
}
#endif

static vxd_loop_fn pick_fuse(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) {
        return fuse_avx2;
    }
#endif
    return fuse_base;
}

static enum vxd_status fuse_job(struct vxd_pool *pool, const void *args,
                                struct vxd_err *err)
{
    struct vxd_fuse_call call = *(const struct vxd_fuse_call *)args;

    (void)err;
    vxd_parallel_for(pool, call.n, PIECE_BLOCKS, pick_fuse(), &call);
    return VXD_OK;
}

enum vxd_status vxd_volume_fuse_cpu(struct vxd_queue *queue,
                                    const struct vxd_fuse_call *call, struct vxd_err *err)
{
    return vxd_queue_push(queue, fuse_job, call, sizeof *call, err);
}
