// SPDX-License-Identifier: Apache-2.0
/* Tracking on the CPU. Rows of the normal equations are made 128 pixels at a time, in steps of
 * which each is a loop without branches over arrays that stay in the first-level cache. All
 * arithmetic is in track_math.h. */
#include "gpu/track/track_internal.h"

#define PIECE_ROWS ((size_t)8)
#define PIECE_STRIPS ((size_t)4)

enum {
    LANES = VXD_TRACK_LANES
};

/* Each loop once for any machine and once for AVX2. Flattened, so that what is called is compiled
 * for the function's instructions too. */
#if defined(__x86_64__)
#define LOOP(name)                                                                       \
    __attribute__((flatten)) static void name##_base(void *args, size_t begin,           \
                                                     size_t end)                         \
    {                                                                                    \
        name(args, begin, end);                                                          \
    }                                                                                    \
    __attribute__((flatten, target("avx2"))) static void name##_avx2(                    \
        void *args, size_t begin, size_t end)                                            \
    {                                                                                    \
        name(args, begin, end);                                                          \
    }
#define PICK(name) (__builtin_cpu_supports("avx2") ? name##_avx2 : name##_base)
#else
#define LOOP(name)                                                                       \
    __attribute__((flatten)) static void name##_base(void *args, size_t begin,           \
                                                     size_t end)                         \
    {                                                                                    \
        name(args, begin, end);                                                          \
    }
#define PICK(name) name##_base
#endif

/* ---- The image ---- */

static inline void depth_rows(const struct vxd_track_live_call *call, size_t begin,
                              size_t end)
{
    size_t width = (size_t)call->image.width;

    for (size_t v = begin; v < end; v++) {
        for (size_t u = 0; u < width; u++) {
            call->depths[v * width + u] =
                vxd_track_mean_depth(&call->source, (int)u, (int)v);
        }
    }
}
LOOP(depth_rows)

/* Pixels of the rim by the rule itself; those inside by one tap after the other over a row, which
 * adds the same terms in the same order. */
static inline void filter_row(const struct vxd_track_live_call *call, int v)
{
    enum {
        R = VXD_TRACK_FILTER_RADIUS
    };
    int width = call->image.width;
    int height = call->image.height;
    const float *row = call->depths + (size_t)v * (size_t)width;
    float *out = call->filtered + (size_t)v * (size_t)width;
    bool is_rim = v < R || v >= height - R || width <= 2 * R;

    for (int left = is_rim ? width : R; left < width - R; left += LANES) {
        int n = left + LANES < width - R ? LANES : width - R - left;
        float inverse[LANES];
        float sum[LANES] = {0};
        float weights[LANES] = {0};

        for (int i = 0; i < n; i++) {
            inverse[i] = vxd_track_filter_inverse(row[left + i]);
        }
        for (int dv = -R; dv <= R; dv++) {
            for (int du = -R; du <= R; du++) {
                const float *others = row + (ptrdiff_t)dv * width + du;

                for (int i = 0; i < n; i++) {
                    vxd_track_add_neighbour(row[left + i], inverse[i], others[left + i],
                                            (float)(du * du + dv * dv), &sum[i],
                                            &weights[i]);
                }
            }
        }
        for (int i = 0; i < n; i++) {
            out[left + i] = vxd_track_filtered(row[left + i], sum[i], weights[i]);
        }
    }
    for (int u = 0; u < width; u++) {
        if (is_rim || u < R || u >= width - R) {
            out[u] = vxd_track_filter(call->depths, width, height, u, v);
        }
    }
}

static inline void filter_rows(const struct vxd_track_live_call *call, size_t begin,
                               size_t end)
{
    for (size_t v = begin; v < end; v++) {
        filter_row(call, (int)v);
    }
}
LOOP(filter_rows)

static inline void point_rows(const struct vxd_track_live_call *call, size_t begin,
                              size_t end)
{
    const float *depths = call->is_filtered ? call->filtered : call->depths;
    int width = call->image.width;

    for (size_t v = begin; v < end; v++) {
        for (int u = 0; u < width; u++) {
            float p[3];

            vxd_track_point(&call->source, u, (int)v,
                            depths[v * (size_t)width + (size_t)u], p);
            vxd_track_put_point(&call->source, &call->image, u, (int)v, p);
        }
    }
}
LOOP(point_rows)

static inline void normal_rows(const struct vxd_track_live_call *call, size_t begin,
                               size_t end)
{
    for (size_t v = begin; v < end; v++) {
        for (int u = 0; u < call->image.width; u++) {
            vxd_track_put_normal(&call->image, u, (int)v);
        }
    }
}
LOOP(normal_rows)

static enum vxd_status live_job(struct vxd_pool *pool, const void *args,
                                struct vxd_err *err)
{
    struct vxd_track_live_call call = *(const struct vxd_track_live_call *)args;
    size_t height = (size_t)call.image.height;

    (void)err;
    vxd_track_begin(call.work);
    vxd_parallel_for(pool, height, PIECE_ROWS, PICK(depth_rows), &call);
    if (call.is_filtered) {
        vxd_parallel_for(pool, height, PIECE_ROWS, PICK(filter_rows), &call);
    }
    vxd_parallel_for(pool, height, PIECE_ROWS, PICK(point_rows), &call);
    vxd_parallel_for(pool, height, PIECE_ROWS, PICK(normal_rows), &call);
    return VXD_OK;
}

enum vxd_status vxd_track_live_cpu(struct vxd_queue *queue,
                                   const struct vxd_track_live_call *call,
                                   struct vxd_err *err)
{
    return vxd_queue_push(queue, live_job, call, sizeof *call, err);
}

/* ---- The model, and the pyramids ---- */

/* An image and the one of half its width and height that is made of it. */
struct halves {
    struct vxd_track_image from;
    struct vxd_track_image to;
};

static inline void model_rows(const struct vxd_track_pyramids_call *call, size_t begin,
                              size_t end)
{
    for (size_t v = begin; v < end; v++) {
        for (int u = 0; u < call->model[0].width; u++) {
            vxd_track_put_model(&call->model[0], &call->camera, call->to_camera,
                                call->depth, call->normal, call->colour, u, (int)v);
        }
    }
}
LOOP(model_rows)

static inline void halve_rows(const struct halves *halves, size_t begin, size_t end)
{
    for (size_t v = begin; v < end; v++) {
        for (int u = 0; u < halves->to.width; u++) {
            vxd_track_put_half(&halves->from, &halves->to, u, (int)v);
        }
    }
}
LOOP(halve_rows)

static void halve(struct vxd_pool *pool, const struct vxd_track_image *images,
                  int n_levels)
{
    for (int k = 1; k < n_levels; k++) {
        struct halves halves = {images[k - 1], images[k]};

        vxd_parallel_for(pool, (size_t)halves.to.height, PIECE_ROWS, PICK(halve_rows),
                         &halves);
    }
}

static enum vxd_status pyramids_job(struct vxd_pool *pool, const void *args,
                                    struct vxd_err *err)
{
    struct vxd_track_pyramids_call call = *(const struct vxd_track_pyramids_call *)args;

    (void)err;
    vxd_parallel_for(pool, (size_t)call.model[0].height, PIECE_ROWS, PICK(model_rows),
                     &call);
    halve(pool, call.live, call.n_levels);
    halve(pool, call.model, call.n_levels);
    return VXD_OK;
}

enum vxd_status vxd_track_pyramids_cpu(struct vxd_queue *queue,
                                       const struct vxd_track_pyramids_call *call,
                                       struct vxd_err *err)
{
    return vxd_queue_push(queue, pyramids_job, call, sizeof *call, err);
}

/* ---- Rows and sums ---- */

/* Up to LANES pairs, an array a number. */
struct pairs {
    float q[3][LANES];
    float m[3][LANES];
    float at[3][LANES];
    float n[3][LANES];
    float grey[LANES];
    float corners[4][LANES];
    float part_u[LANES];
    float part_v[LANES];
    int32_t is_valid[LANES];
    int32_t is_overlap[LANES];
    int32_t pixel[LANES];
    int32_t corner[LANES];
};

static inline void put3(float to[3][LANES], size_t i, const float from[3])
{
    to[0][i] = from[0];
    to[1][i] = from[1];
    to[2][i] = from[2];
}

static inline void take3(float to[3], float (*from)[LANES], size_t i)
{
    to[0] = from[0][i];
    to[1] = from[1][i];
    to[2] = from[2][i];
}

static inline void associate(const struct vxd_track_level *level, const float T[12],
                             size_t first, size_t n, struct pairs *pairs)
{
    for (size_t i = 0; i < n; i++) {
        struct vxd_track_pair pair;
        int32_t corner;

        pairs->pixel[i] = vxd_track_associate(level, T, first + i, &pair, &corner);
        pairs->corner[i] = corner;
        put3(pairs->q, i, pair.q);
        put3(pairs->m, i, pair.m);
        pairs->grey[i] = pair.grey;
        pairs->part_u[i] = pair.part_u;
        pairs->part_v[i] = pair.part_v;
        pairs->is_valid[i] = pair.is_valid;
        pairs->is_overlap[i] = pair.is_overlap;
    }
}

static inline void fetch(const struct vxd_track_level *level, size_t n,
                         struct pairs *pairs)
{
    struct vxd_track_pair pair;

    for (size_t i = 0; i < n; i++) {
        vxd_track_fetch(level, pairs->pixel[i], &pair);
        put3(pairs->at, i, pair.at);
        put3(pairs->n, i, pair.n);
    }
    for (size_t i = 0; level->rule.use_grey != 0 && i < n; i++) {
        vxd_track_fetch_corners(level, pairs->corner[i], &pair);
        for (int k = 0; k < 4; k++) {
            pairs->corners[k][i] = pair.corners[k];
        }
    }
}

static inline void add(const struct vxd_track_level *level, size_t n, struct pairs *pairs,
                       float *sums)
{
    bool has_both = level->rule.use_plane != 0 && level->rule.use_grey != 0;
    float values[VXD_TRACK_N_SUMS * LANES];
    float *to = has_both ? values : sums;

    if (has_both) {
        memset(values, 0, sizeof values);
    }
    for (size_t i = 0; i < n; i++) {
        struct vxd_track_pair pair;

        take3(pair.q, pairs->q, i);
        take3(pair.m, pairs->m, i);
        take3(pair.at, pairs->at, i);
        take3(pair.n, pairs->n, i);
        pair.grey = pairs->grey[i];
        pair.corners[0] = pairs->corners[0][i];
        pair.corners[1] = pairs->corners[1][i];
        pair.corners[2] = pairs->corners[2][i];
        pair.corners[3] = pairs->corners[3][i];
        pair.part_u = pairs->part_u[i];
        pair.part_v = pairs->part_v[i];
        pair.is_valid = pairs->is_valid[i];
        pair.is_overlap = pairs->is_overlap[i];
        vxd_track_add_pair(level, &pair, to + i, LANES);
    }
    for (size_t i = 0; has_both && i < (size_t)VXD_TRACK_N_SUMS * LANES; i++) {
        vxd_track_add(&sums[i], values[i]);
    }
}

static inline void sum_strip(const struct vxd_track_level *level, const float T[12],
                             size_t strip)
{
    float sums[VXD_TRACK_N_SUMS * LANES];
    float *out = level->strips + strip;
    size_t first = strip * VXD_TRACK_STRIP;
    size_t end = first + VXD_TRACK_STRIP;
    struct pairs pairs;

    memset(sums, 0, sizeof sums);
    memset(pairs.corners, 0, sizeof pairs.corners);
    end = end < level->live.n ? end : level->live.n;
    for (size_t at = first; at < end; at += LANES) {
        size_t n = end - at < LANES ? end - at : LANES;

        associate(level, T, at, n, &pairs);
        fetch(level, n, &pairs);
        add(level, n, &pairs, sums);
    }
    for (size_t half = LANES / 2; half > 0; half /= 2) {
        for (size_t k = 0; k < VXD_TRACK_N_SUMS; k++) {
            for (size_t i = 0; i < half; i++) {
                vxd_track_add(&sums[k * LANES + i], sums[k * LANES + i + half]);
            }
        }
    }
    for (size_t k = 0; k < VXD_TRACK_N_SUMS; k++) {
        out[k * level->n_strips] = sums[k * LANES];
    }
}

/* The rule's switches are constants in each copy of the loop, which is vector code then. */
static inline void sum_strips(const struct vxd_track_level *level, size_t begin,
                              size_t end)
{
    struct vxd_track_level own = *level;
    float T[12];

    memcpy(T, level->work->T, sizeof T);
    for (size_t strip = begin; strip < end; strip++) {
        if (level->rule.use_grey == 0) {
            own.rule.use_plane = 1;
            own.rule.use_grey = 0;
            sum_strip(&own, T, strip);
        } else if (level->rule.use_plane == 0) {
            own.rule.use_plane = 0;
            own.rule.use_grey = 1;
            sum_strip(&own, T, strip);
        } else {
            own.rule.use_plane = 1;
            own.rule.use_grey = 1;
            sum_strip(&own, T, strip);
        }
    }
}
LOOP(sum_strips)

/* Sums of all strips, by lanes, then pairwise. */
static void reduce(const struct vxd_track_level *level)
{
    for (size_t k = 0; k < VXD_TRACK_N_SUMS; k++) {
        double lanes[VXD_TRACK_STRIP_LANES] = {0};

        for (size_t strip = 0; strip < level->n_strips; strip++) {
            double *lane = &lanes[strip % VXD_TRACK_STRIP_LANES];

            *lane = vxd_addd(*lane, (double)level->strips[k * level->n_strips + strip]);
        }
        for (size_t half = VXD_TRACK_STRIP_LANES / 2; half > 0; half /= 2) {
            for (size_t i = 0; i < half; i++) {
                lanes[i] = vxd_addd(lanes[i], lanes[i + half]);
            }
        }
        level->work->sums[k] = lanes[0];
    }
}

static enum vxd_status iterate_job(struct vxd_pool *pool, const void *args,
                                   struct vxd_err *err)
{
    struct vxd_track_iterate_call call = *(const struct vxd_track_iterate_call *)args;
    struct vxd_track_level *level = &call.level;
    int n_left = call.n;
    bool is_last = call.n == 0;

    (void)err;
    while (level->work->is_singular == 0) {
        vxd_parallel_for(pool, level->n_strips, PIECE_STRIPS, PICK(sum_strips), level);
        reduce(level);
        level->work->is_done = 0;
        if (is_last) {
            break;
        }
        vxd_track_step(level->work);
        is_last = --n_left == 0 || level->work->is_done != 0;
        if (is_last && !call.sums_after) {
            break;
        }
    }
    if (call.report != NULL) {
        *call.report = *level->work;
    }
    return VXD_OK;
}

enum vxd_status vxd_track_iterate_cpu(struct vxd_queue *queue,
                                      const struct vxd_track_iterate_call *call,
                                      struct vxd_err *err)
{
    return vxd_queue_push(queue, iterate_job, call, sizeof *call, err);
}
