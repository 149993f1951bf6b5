// SPDX-License-Identifier: Apache-2.0
/* The frame map on the CPU: the blocks that the rays of a frame's pixels touch.
 *
 * Pixels are processed in strips of a row. Depths, directions and the end cells of all rays of a
 * strip are computed in plain loops, which the compiler vectorizes; then a pixel whose ends are
 * those of the pixel before, one step apart at most, is skipped, and the cells of the others are
 * walked. Most cells are among the recent ones of the thread, which it keeps in a small table in
 * front of the shared frame map. */
#include "gpu/volume/volume_internal.h"

#define STRIP 256
#define PIECE_SLOTS ((size_t)1 << 15)
#define PIECE_ROWS ((size_t)8)
#define PIECE_BLOCKS ((size_t)1024)
#define N_RECENT 1024 /* a power of two */

struct touch {
    struct vxd_touch_call call;
    uint32_t n_known;
    uint32_t n_new;
    uint32_t n_dropped;
    uint32_t n_taken;
};

/* The rays of a strip: depths, then the ends of each in blocks. */
struct strip {
    float z[STRIP];
    float from[3][STRIP];
    float to[3][STRIP];
    int32_t from_cell[3][STRIP];
    int32_t to_cell[3][STRIP];
};

static void load_depths(const struct vxd_frame_form *frame, size_t first, int n, float *z)
{
    if (frame->is_u16 != 0) {
        const uint16_t *raw = (const uint16_t *)frame->depth + first;

        for (int i = 0; i < n; i++) {
            z[i] = vxd_frame_depth_of(frame, vxd_frame_raw_u16(raw[i]));
        }
    } else {
        const float *raw = (const float *)frame->depth + first;

        for (int i = 0; i < n; i++) {
            z[i] = vxd_frame_depth_of(frame, raw[i]);
        }
    }
    if (frame->mask != NULL) {
        for (int i = 0; i < n; i++) {
            z[i] = frame->mask[first + (size_t)i] == 0 ? 0 : z[i];
        }
    }
}

/* Moves the ends of a strip's rays as the control grid does. Neighbouring pixels mostly share a cell
 * of it. */
static void shift_rays(const struct vxd_frame_form *frame, const float *x, const float *y,
                       int n, struct strip *strip, struct vxd_deform_cell *cell)
{
    for (int i = 0; i < n; i++) {
        float shift[3];

        if (!(strip->z[i] > 0)) {
            continue;
        }
        vxd_frame_shift(frame, cell, x[i], y[i], strip->z[i], shift);
        for (int axis = 0; axis < 3; axis++) {
            strip->from[axis][i] = vxd_frame_shifted(strip->from[axis][i], shift[axis]);
            strip->to[axis][i] = vxd_frame_shifted(strip->to[axis][i], shift[axis]);
            strip->from_cell[axis][i] = vxd_frame_floor(strip->from[axis][i]);
            strip->to_cell[axis][i] = vxd_frame_floor(strip->to[axis][i]);
        }
    }
}

static void aim(const struct vxd_frame_form *frame, int u, int v, int n,
                struct strip *strip, struct vxd_deform_cell *cell)
{
    float x[STRIP];
    float y[STRIP];

    if (frame->camera.is_distorted != 0) {
        for (int i = 0; i < n; i++) {
            x[i] = y[i] = 0;
            if (strip->z[i] > 0) {
                vxd_camera_ray(&frame->camera, (float)(u + i), (float)v, &x[i], &y[i]);
            }
        }
    } else {
        for (int i = 0; i < n; i++) {
            x[i] = vxd_divf(vxd_subf((float)(u + i), frame->camera.cx), frame->camera.fx);
            y[i] = vxd_divf(vxd_subf((float)v, frame->camera.cy), frame->camera.fy);
        }
    }
    for (int axis = 0; axis < 3; axis++) {
        for (int i = 0; i < n; i++) {
            float direction = vxd_frame_direction(frame, axis, x[i], y[i]);
            float from = vxd_frame_position(frame, axis, direction,
                                            vxd_frame_near(frame, strip->z[i]));
            float to = vxd_frame_position(frame, axis, direction,
                                          vxd_frame_far(frame, strip->z[i]));

            strip->from[axis][i] = from;
            strip->to[axis][i] = to;
            strip->from_cell[axis][i] = vxd_frame_floor(from);
            strip->to_cell[axis][i] = vxd_frame_floor(to);
        }
    }
    if (frame->is_deformed != 0) {
        shift_rays(frame, x, y, n, strip, cell);
    }
}

/* Puts a new block of the frame into the list of known or of new ones. */
static void list_block(struct touch *touch, uint64_t tag)
{
    const struct vxd_touch_call *call = &touch->call;
    int32_t entry = vxd_volume_find_block(&call->view, tag);
    uint32_t most = (call->slot_mask + 1) / 2;
    uint32_t at;

    if (entry != VXD_NO_ENTRY) {
        at = __atomic_fetch_add(&touch->n_known, 1, __ATOMIC_RELAXED);
        if (at < most) {
            call->entries[at] = entry;
        }
    } else {
        at = __atomic_fetch_add(&touch->n_new, 1, __ATOMIC_RELAXED);
        if (at < most) {
            call->codes[at] = vxd_block_morton(tag);
        }
    }
}

static void put_block(struct touch *touch, uint64_t tag)
{
    uint64_t *tags = touch->call.tags;
    uint32_t mask = touch->call.slot_mask;
    uint32_t slot = vxd_block_hash(tag) & mask;

    for (;;) {
        uint64_t here = __atomic_load_n(&tags[slot], __ATOMIC_RELAXED);

        if (here == VXD_BLOCK_EMPTY) {
            if (__atomic_load_n(&touch->n_taken, __ATOMIC_RELAXED) > (mask + 1) / 2) {
                return; /* the frame map is too small; the caller tries a larger one */
            }
            if (__atomic_compare_exchange_n(&tags[slot], &here, tag, false,
                                            __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
                (void)__atomic_fetch_add(&touch->n_taken, 1, __ATOMIC_RELAXED);
                list_block(touch, tag);
                return;
            }
        }
        if (here == tag) {
            return;
        }
        slot = (slot + 1) & mask;
    }
}

/* Returns false where the ray leaves the range of keys. */
static bool touch_ray(struct touch *touch, const struct strip *strip, int i,
                      uint64_t recent[N_RECENT])
{
    const int32_t *base = touch->call.frame.base;
    float from[3] = {strip->from[0][i], strip->from[1][i], strip->from[2][i]};
    float to[3] = {strip->to[0][i], strip->to[1][i], strip->to[2][i]};
    int32_t from_cell[3] = {strip->from_cell[0][i], strip->from_cell[1][i],
                            strip->from_cell[2][i]};
    int32_t to_cell[3] = {strip->to_cell[0][i], strip->to_cell[1][i],
                          strip->to_cell[2][i]};
    struct vxd_cell_walk walk;
    int n_left;

    if (!vxd_frame_keeps(&touch->call.frame, from_cell, to_cell)) {
        return false;
    }
    vxd_cell_walk_start(&walk, from, to, from_cell, to_cell);
    n_left = vxd_cell_walk_n_left(&walk);
    for (;;) {
        uint64_t tag = vxd_block_tag(base[0] + walk.cell[0], base[1] + walk.cell[1],
                                     base[2] + walk.cell[2]);
        uint64_t *last = &recent[(tag ^ tag >> 18 ^ tag >> 36) & (N_RECENT - 1)];

        if (*last != tag) {
            *last = tag;
            put_block(touch, tag);
        }
        if (n_left-- == 0) {
            return true;
        }
        vxd_cell_walk_next(&walk);
    }
}

/* Whether ray i takes the way of ray j: the same end cells, on one line of the grid. */
static bool same_way(const struct strip *strip, int i, int j)
{
    int n_axes = 0;

    for (int axis = 0; axis < 3; axis++) {
        if (strip->from_cell[axis][i] != strip->from_cell[axis][j] ||
            strip->to_cell[axis][i] != strip->to_cell[axis][j]) {
            return false;
        }
        n_axes += strip->from_cell[axis][i] != strip->to_cell[axis][i] ? 1 : 0;
    }
    return n_axes <= 1;
}

static void touch_strip(struct touch *touch, int u, int v, int n, struct strip *strip,
                        struct vxd_deform_cell *cell, uint64_t recent[N_RECENT])
{
    const struct vxd_touch_call *call = &touch->call;
    size_t first = (size_t)v * (size_t)call->frame.camera.width + (size_t)u;
    uint32_t n_dropped = 0;
    int last = -1;

    load_depths(&call->frame, first, n, strip->z);
    memcpy(call->depth + 1 + first, strip->z, (size_t)n * sizeof(float));
    aim(&call->frame, u, v, n, strip, cell);
    for (int i = 0; i < n; i++) {
        if (strip->z[i] > 0 && (last < 0 || !same_way(strip, i, last))) {
            bool is_inside = touch_ray(touch, strip, i, recent);

            n_dropped += is_inside ? 0 : 1;
            last = is_inside ? i : -1;
        }
    }
    if (n_dropped > 0) {
        (void)__atomic_fetch_add(&touch->n_dropped, n_dropped, __ATOMIC_RELAXED);
    }
}

static void touch_piece(void *args, size_t begin, size_t end)
{
    struct touch *touch = args;
    int width = touch->call.frame.camera.width;
    struct strip strip;
    struct vxd_deform_cell cell = {.is_loaded = 0};
    uint64_t recent[N_RECENT];

    memset(recent, 0xff, sizeof recent);
    for (size_t v = begin; v < end; v++) {
        for (int u = 0; u < width; u += STRIP) {
            touch_strip(touch, u, (int)v, width - u < STRIP ? width - u : STRIP, &strip,
                        &cell, recent);
        }
    }
}

static void empty_piece(void *args, size_t begin, size_t end)
{
    const struct touch *touch = args;

    memset(touch->call.tags + begin, 0xff, (end - begin) * sizeof *touch->call.tags);
}

static enum vxd_status touch_job(struct vxd_pool *pool, const void *args,
                                 struct vxd_err *err)
{
    struct touch touch = {.call = *(const struct vxd_touch_call *)args};

    (void)err;
    touch.call.depth[0] = 0;
    vxd_parallel_for(pool, (size_t)touch.call.slot_mask + 1, PIECE_SLOTS, empty_piece,
                     &touch);
    vxd_parallel_for(pool, (size_t)touch.call.frame.camera.height, PIECE_ROWS,
                     touch_piece, &touch);
    *touch.call.counts = (struct vxd_frame_counts){.n_known = touch.n_known,
                                                   .n_new = touch.n_new,
                                                   .n_dropped = touch.n_dropped,
                                                   .n_taken = touch.n_taken};
    *touch.call.report = *touch.call.counts;
    return VXD_OK;
}

enum vxd_status vxd_volume_touch_cpu(struct vxd_queue *queue,
                                     const struct vxd_touch_call *call,
                                     struct vxd_err *err)
{
    return vxd_queue_push(queue, touch_job, call, sizeof *call, err);
}

static void reach_piece(void *args, size_t begin, size_t end)
{
    const struct vxd_reach_call *call = args;

    for (size_t i = begin; i < end; i++) {
        if (vxd_volume_reaches(call, call->active[i])) {
            call->entries[__atomic_fetch_add(call->n_reached, 1, __ATOMIC_RELAXED)] =
                call->active[i];
        }
    }
}

static enum vxd_status reach_job(struct vxd_pool *pool, const void *args,
                                 struct vxd_err *err)
{
    struct vxd_reach_call call = *(const struct vxd_reach_call *)args;

    (void)err;
    vxd_parallel_for(pool, call.n, PIECE_BLOCKS, reach_piece, &call);
    return VXD_OK;
}

enum vxd_status vxd_volume_reach_cpu(struct vxd_queue *queue,
                                     const struct vxd_reach_call *call,
                                     struct vxd_err *err)
{
    return vxd_queue_push(queue, reach_job, call, sizeof *call, err);
}

struct code_keys {
    const uint64_t *codes;
    size_t n;
    int32_t *keys;
};

static enum vxd_status code_keys_job(struct vxd_pool *pool, const void *args,
                                     struct vxd_err *err)
{
    const struct code_keys *call = args;

    (void)pool;
    (void)err;
    for (size_t i = 0; i < call->n; i++) {
        vxd_block_key(vxd_block_tag_of_morton(call->codes[i]), call->keys + 3 * i);
    }
    return VXD_OK;
}

enum vxd_status vxd_volume_code_keys_cpu(struct vxd_queue *queue, const uint64_t *codes,
                                         size_t n, int32_t *keys, struct vxd_err *err)
{
    struct code_keys call = {codes, n, keys};

    return vxd_queue_push(queue, code_keys_job, &call, sizeof call, err);
}
