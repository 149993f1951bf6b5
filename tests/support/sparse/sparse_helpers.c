// SPDX-License-Identifier: Apache-2.0
#include "tests/support/sparse/sparse_helpers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MUST(expression)                                                                 \
    do {                                                                                 \
        if ((expression) != VXD_OK) {                                                    \
            (void)fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, err.message);       \
            exit(EXIT_FAILURE);                                                          \
        }                                                                                \
    } while (0)

void gpu_coord_set_alloc(struct gpu_env *env, struct gpu_coord_set *out, size_t capacity,
                         const int32_t shape[3])
{
    struct vxd_err err = {0};

    *out = (struct gpu_coord_set){.n_rows = 0};
    out->block = gpu_to_device(env, NULL, vxd_coord_set_bytes(capacity));
    MUST(vxd_coord_set_layout(out->block.ptr, capacity, shape, &out->coord_set, &err));
}

void gpu_coord_set_free(struct gpu_env *env, struct gpu_coord_set *coord_set)
{
    free(coord_set->coords);
    vxd_device_free(env->queue, &coord_set->block);
    gpu_wait(env);
}

void gpu_coord_set_fetch(struct gpu_env *env, struct gpu_coord_set *coord_set)
{
    static const int32_t once[3] = {1, 1, 1};
    struct vxd_buffer coords = gpu_to_device(
        env, NULL, (coord_set->coord_set.capacity + 1) * 4 * sizeof(int32_t));
    struct vxd_err err = {0};

    MUST(vxd_coord_set_coords(env->queue, &coord_set->coord_set, once, 1, coords.ptr,
                              NULL, &err));
    MUST(vxd_queue_copy(env->queue, &coord_set->n_rows, coord_set->coord_set.n_rows,
                        sizeof coord_set->n_rows, &err));
    free(coord_set->coords);
    coord_set->coords = gpu_to_host(env, &coords);
    vxd_device_free(env->queue, &coords);
}

enum vxd_status gpu_coord_set_make(struct gpu_env *env, const int32_t *coords, size_t n,
                                   int n_samples, const int32_t shape[3], size_t capacity,
                                   int32_t *rows, struct gpu_coord_set *out)
{
    struct vxd_buffer d_coords = gpu_to_device(env, coords, n * 4 * sizeof *coords);
    struct vxd_buffer d_rows = gpu_to_device(env, NULL, n * sizeof *rows);
    struct vxd_buffer scratch =
        gpu_to_device(env, NULL, vxd_coord_set_scratch_bytes(env->queue, n, capacity));
    struct vxd_err err = {0};
    enum vxd_status status;

    gpu_coord_set_alloc(env, out, capacity, shape);
    VXD_TRY(vxd_coord_set_make(env->queue, d_coords.ptr, n, n_samples, &out->coord_set,
                               rows != NULL ? d_rows.ptr : NULL, scratch.ptr,
                               scratch.n_bytes, &err));
    VXD_TRY(vxd_queue_wait(env->queue, &err));
    gpu_coord_set_fetch(env, out);
    if (rows != NULL) {
        MUST(vxd_queue_copy(env->queue, rows, d_rows.ptr, n * sizeof *rows, &err));
    }
out:
    vxd_device_free(env->queue, &d_coords);
    vxd_device_free(env->queue, &d_rows);
    vxd_device_free(env->queue, &scratch);
    gpu_wait(env);
    return status;
}

enum vxd_status gpu_coord_set_derive(struct gpu_env *env, enum vxd_sparse_derive rule,
                                     const struct vxd_sparse_geometry *geometry,
                                     const struct gpu_coord_set *in,
                                     const int32_t shape[3], size_t capacity,
                                     struct gpu_coord_set *out)
{
    size_t n = vxd_sparse_derive_candidates(rule, geometry, in->coord_set.capacity);
    struct vxd_buffer scratch =
        gpu_to_device(env, NULL, vxd_coord_set_scratch_bytes(env->queue, n, capacity));
    struct vxd_err err = {0};
    enum vxd_status status;

    gpu_coord_set_alloc(env, out, capacity, shape);
    VXD_TRY(vxd_coord_set_derive(env->queue, rule, geometry, &in->coord_set,
                                 &out->coord_set, scratch.ptr, scratch.n_bytes, &err));
    VXD_TRY(vxd_queue_wait(env->queue, &err));
    gpu_coord_set_fetch(env, out);
out:
    vxd_device_free(env->queue, &scratch);
    gpu_wait(env);
    return status;
}

void gpu_map_build(struct gpu_env *env, const struct vxd_sparse_geometry *geometry,
                   const struct gpu_coord_set *in, const struct gpu_coord_set *out,
                   struct gpu_map *map)
{
    int n_taps = geometry->kernel[0] * geometry->kernel[1] * geometry->kernel[2];
    size_t n_scratch = vxd_kernel_map_scratch_bytes(env->queue, n_taps, out->n_rows);
    struct vxd_buffer scratch = gpu_to_device(env, NULL, n_scratch);
    struct vxd_err err = {0};
    size_t n_bytes;

    map->block =
        gpu_to_device(env, NULL, vxd_kernel_map_bytes(env->queue, n_taps, out->n_rows));
    MUST(vxd_kernel_map_layout(env->queue, map->block.ptr, n_taps, out->n_rows, &map->map,
                               &err));
    MUST(vxd_kernel_map_build(env->queue, geometry, &in->coord_set, &out->coord_set,
                              &map->map, scratch.ptr, scratch.n_bytes, &err));
    n_bytes = (size_t)n_taps * map->map.capacity * sizeof *map->table;
    map->table = gpu_alloc(n_bytes);
    MUST(vxd_queue_copy(env->queue, map->table, map->map.table, n_bytes, &err));
    MUST(vxd_queue_copy(env->queue, &map->n_pairs, map->map.n_pairs, sizeof map->n_pairs,
                        &err));
    vxd_device_free(env->queue, &scratch);
    gpu_wait(env);
}

void gpu_map_free(struct gpu_env *env, struct gpu_map *map)
{
    free(map->table);
    vxd_device_free(env->queue, &map->block);
    gpu_wait(env);
}

/* Dense grids --------------------------------------------------------------------------- */

void gpu_grid_make(struct gpu_grid *out, const int32_t lo[3], const int32_t n[3],
                   int n_samples, int n_channels)
{
    size_t n_values = (size_t)n_samples * (size_t)n[0] * (size_t)n[1] * (size_t)n[2] *
                      (size_t)n_channels;

    memcpy(out->lo, lo, sizeof out->lo);
    memcpy(out->n, n, sizeof out->n);
    out->n_samples = n_samples;
    out->n_channels = n_channels;
    out->values = gpu_alloc(n_values * sizeof *out->values);
    memset(out->values, 0, n_values * sizeof *out->values);
}

void gpu_grid_free(struct gpu_grid *grid)
{
    free(grid->values);
}

double *gpu_grid_at(const struct gpu_grid *grid, const int32_t c[4])
{
    size_t at = (size_t)c[0];

    for (int axis = 0; axis < 3; axis++) {
        int32_t in_box = c[1 + axis] - grid->lo[axis];

        if (in_box < 0 || in_box >= grid->n[axis]) {
            return NULL;
        }
        at = at * (size_t)grid->n[axis] + (size_t)in_box;
    }
    return grid->values + at * (size_t)grid->n_channels;
}

/* The coordinate of a grid's cell by number; false after the last. */
static bool grid_cell(const struct gpu_grid *grid, size_t number, int32_t c[4])
{
    for (int axis = 2; axis >= 0; axis--) {
        c[1 + axis] = grid->lo[axis] + (int32_t)(number % (size_t)grid->n[axis]);
        number /= (size_t)grid->n[axis];
    }
    c[0] = (int32_t)number;
    return number < (size_t)grid->n_samples;
}

static bool is_zero(const struct gpu_grid *grid, const double *values)
{
    for (int i = 0; i < grid->n_channels; i++) {
        if (values[i] != 0) {
            return false;
        }
    }
    return true;
}

static void add_product(const struct gpu_grid *in, const double *x, const float *weights,
                        const struct gpu_grid *out, double *y)
{
    for (int i = 0; i < in->n_channels; i++) {
        for (int j = 0; j < out->n_channels; j++) {
            y[j] += x[i] * (weights != NULL ? weights[i * out->n_channels + j] : 1.0);
        }
    }
}

/* Every cell that is not zero scatters: solves input = output * stride - padding + tap
 * * dilation by trying all possible outputs. */
static void scatter_cell(const struct gpu_grid *in, const int32_t c[4],
                         const struct vxd_sparse_geometry *g, const float *weights,
                         struct gpu_grid *out)
{
    int tap = 0;

    for (int rx = 0; rx < g->kernel[0]; rx++) {
        for (int ry = 0; ry < g->kernel[1]; ry++) {
            for (int rz = 0; rz < g->kernel[2]; rz++, tap++) {
                int r[3] = {rx, ry, rz};
                int32_t o[4] = {c[0], 0, 0, 0};
                bool meets = true;
                double *y;

                for (int a = 0; a < 3; a++) {
                    if (g->transposed) {
                        o[1 + a] = c[1 + a] * g->stride[a] - g->padding[a] +
                                   r[a] * g->dilation[a];
                        continue;
                    }
                    meets = false;
                    for (int32_t t = out->lo[a]; t < out->lo[a] + out->n[a]; t++) {
                        if (t * g->stride[a] - g->padding[a] + r[a] * g->dilation[a] ==
                            c[1 + a]) {
                            o[1 + a] = t;
                            meets = true;
                        }
                    }
                    if (!meets) {
                        break;
                    }
                }
                y = meets ? gpu_grid_at(out, o) : NULL;
                if (y != NULL) {
                    add_product(in, gpu_grid_at(in, c),
                                weights != NULL
                                    ? weights + tap * in->n_channels * out->n_channels
                                    : NULL,
                                out, y);
                }
            }
        }
    }
}

void gpu_grid_conv(const struct gpu_grid *in, const struct vxd_sparse_geometry *geometry,
                   const float *weights, struct gpu_grid *out)
{
    int32_t c[4];

    for (size_t number = 0; grid_cell(in, number, c); number++) {
        if (!is_zero(in, gpu_grid_at(in, c))) {
            scatter_cell(in, c, geometry, weights, out);
        }
    }
}

/* Random cases -------------------------------------------------------------------------- */

static int pick(uint64_t *state, int low, int high)
{
    return low + (int)(gpu_random(state) % (uint64_t)(high - low + 1));
}

bool gpu_sparse_case_is_subm(const struct gpu_sparse_case *item)
{
    const struct vxd_sparse_geometry *g = &item->geometry;

    for (int axis = 0; axis < 3; axis++) {
        if (g->stride[axis] != 1 || g->transposed || g->kernel[axis] % 2 == 0 ||
            g->padding[axis] != g->kernel[axis] / 2 * g->dilation[axis]) {
            return false;
        }
    }
    return true;
}

static void pick_geometry(struct gpu_sparse_case *out, int number, uint64_t *state)
{
    struct vxd_sparse_geometry *g = &out->geometry;
    bool is_subm = number % 5 == 0;
    bool is_even_sided = number % 3 == 0;

    g->transposed = number % 5 == 1;
    out->rule = number % 5 == 2 ? VXD_DERIVE_FLOOR : VXD_DERIVE_SUPPORT;
    for (int axis = 0; axis < 3; axis++) {
        g->kernel[axis] = is_even_sided && axis > 0 ? g->kernel[0] : pick(state, 1, 5);
        if (number % 7 == 6 && axis == number % 3) {
            g->kernel[axis] = pick(state, 6, 7);
        }
        g->kernel[axis] = is_subm ? g->kernel[axis] | 1 : g->kernel[axis];
        g->stride[axis] = is_subm ? 1 : pick(state, 1, 3);
        g->dilation[axis] = pick(state, 1, 2);
        g->padding[axis] = is_subm || out->rule == VXD_DERIVE_FLOOR
                               ? g->kernel[axis] / 2 * g->dilation[axis]
                               : pick(state, 0, 3);
        if (out->rule == VXD_DERIVE_FLOOR && g->kernel[axis] % 2 == 0) {
            g->padding[axis] = 0;
        }
    }
}

void gpu_sparse_case_make(struct gpu_sparse_case *out, int number)
{
    static const int32_t none[3] = {0, 0, 0};
    uint64_t state = (uint64_t)number * 977 + 5;
    struct vxd_sparse_geometry *g = &out->geometry;
    bool is_bounded = number % 2 == 0;
    struct gpu_grid box;
    int32_t c[4];
    size_t n_cells;

    *out = (struct gpu_sparse_case){.n_samples = pick(&state, 1, 3)};
    pick_geometry(out, number, &state);
    is_bounded = is_bounded && out->rule == VXD_DERIVE_SUPPORT;
    for (int axis = 0; axis < 3; axis++) {
        out->in_n[axis] = pick(&state, 3, 11);
        out->in_lo[axis] = is_bounded ? 0 : pick(&state, -20, 3);
        out->shape[axis] = is_bounded ? out->in_n[axis] : 0;
    }
    if (is_bounded && vxd_sparse_out_shape(g, out->shape, none, out->out_shape, NULL)) {
        for (int axis = 0; axis < 3; axis++) { /* otherwise the shape would be empty */
            g->padding[axis] = g->kernel[axis] / 2 * g->dilation[axis];
        }
        (void)vxd_sparse_out_shape(g, out->shape, none, out->out_shape, NULL);
    }
    for (int axis = 0; axis < 3; axis++) {
        int32_t lo = out->in_lo[axis];
        int32_t hi = lo + out->in_n[axis];
        int s = g->stride[axis];

        out->out_lo[axis] = is_bounded ? 0 : g->transposed ? lo * s - 4 : lo / s - 20;
        out->out_n[axis] = (g->transposed ? hi * s + 16 : hi / s + 8) - out->out_lo[axis];
        if (is_bounded) {
            out->out_n[axis] = out->out_shape[axis];
        }
    }
    n_cells = (size_t)(out->n_samples * out->in_n[0] * out->in_n[1] * out->in_n[2]);
    out->coords = gpu_alloc((n_cells + 1) * 4 * sizeof *out->coords);
    gpu_grid_make(&box, out->in_lo, out->in_n, out->n_samples, 1);
    for (size_t i = 0; grid_cell(&box, i, c); i++) {
        if (pick(&state, 0, 99) < 4 + number % 4 * 8) {
            memcpy(out->coords + 4 * out->n++, c, sizeof c);
        }
    }
    gpu_grid_free(&box);
    for (size_t i = out->n; i > 1; i--) {
        size_t j = gpu_random(&state) % i;

        memcpy(c, out->coords + 4 * j, sizeof c);
        memcpy(out->coords + 4 * j, out->coords + 4 * (i - 1), sizeof c);
        memcpy(out->coords + 4 * (i - 1), c, sizeof c);
    }
}

void gpu_sparse_case_free(struct gpu_sparse_case *item)
{
    free(item->coords);
}

void gpu_sparse_case_coord_sets(struct gpu_env *env, const struct gpu_sparse_case *item,
                                struct gpu_coord_set *in, struct gpu_coord_set *out)
{
    struct vxd_err err = {0};
    size_t bound = vxd_sparse_derive_bound(item->rule, &item->geometry, item->n,
                                           item->out_shape, item->n_samples);

    MUST(gpu_coord_set_make(env, item->coords, item->n, item->n_samples, item->shape,
                            item->n, NULL, in));
    if (gpu_sparse_case_is_subm(item)) {
        MUST(gpu_coord_set_make(env, item->coords, item->n, item->n_samples, item->shape,
                                item->n + 7, NULL, out));
        return;
    }
    MUST(gpu_coord_set_derive(env, item->rule, &item->geometry, in, item->out_shape,
                              bound, out));
}
