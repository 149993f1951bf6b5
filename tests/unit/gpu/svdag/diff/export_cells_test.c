// SPDX-License-Identifier: Apache-2.0
/* Exports, against loops over all voxels of dense grids and of sparse deep scenes. */
#include "tests/support/test.h"

#include "gpu/svdag/diff/diff.h"
#include "tests/support/svdag/svdag_scene.h"
#include "tests/support/gpu/gpu_helpers.h"

enum {
    N_FORMATS = 8,
    N_BOXES = 40
};

static const struct vxd_svdag_format formats[N_FORMATS] = {
    {4, 0, false}, {6, 0, false}, {5, 0, true},   {5, 4, false},
    {5, 4, true},  {4, 8, true},  {5, 16, false}, {6, 16, true}};

/* Computes the rows of an export by a loop. */
struct rows {
    int32_t *cells;
    uint16_t *values;
    uint64_t *counts;
    size_t n;
};

struct model {
    struct vxd_svdag_format format;
    struct gpu_svdag_voxel *voxels;
    size_t n;
    struct gpu_svdag_scene scene;
};

static void model_open(struct gpu_env *env, const struct vxd_svdag_format *format,
                       uint64_t seed, struct model *out)
{
    out->format = *format;
    if (format->depth > 6) {
        out->n = 300;
        out->voxels = gpu_svdag_random_voxels(format, seed, &out->n);
    } else {
        uint32_t *grid = gpu_svdag_random_grid(format, seed);

        out->voxels = gpu_svdag_grid_voxels(grid, format->depth, &out->n);
        free(grid);
    }
    gpu_svdag_scene_build(env->queue, format, out->voxels, out->n, &out->scene);
}

static void model_close(struct gpu_env *env, struct model *model)
{
    gpu_svdag_scene_free(env->queue, &model->scene);
    free(model->voxels);
}

static bool box_has(const struct vxd_svdag_export *box, const uint32_t at[3])
{
    for (int axis = 0; axis < 3; axis++) {
        if (at[axis] < box->low[axis] || at[axis] >= box->high[axis]) {
            return false;
        }
    }
    return true;
}

static uint16_t value_of(const struct vxd_svdag_format *format, uint32_t code)
{
    return (uint16_t)(code == GPU_SVDAG_FREE ? (uint32_t)vxd_svdag_free_value(format)
                                             : code - GPU_SVDAG_MATERIAL);
}

/* Voxels are in Morton order, and so are their cells. */
static void loop_rows(const struct model *model, const struct vxd_svdag_export *box,
                      struct rows *out)
{
    uint64_t last = UINT64_MAX;

    out->cells = gpu_alloc(model->n * 3 * sizeof *out->cells);
    out->values = gpu_alloc(model->n * sizeof *out->values);
    out->counts = gpu_alloc(model->n * sizeof *out->counts);
    out->n = 0;
    for (size_t i = 0; i < model->n; i++) {
        uint64_t cell = model->voxels[i].morton >> (3 * box->level);
        uint32_t at[3];

        gpu_svdag_unmorton(model->voxels[i].morton, at);
        if ((model->voxels[i].code == GPU_SVDAG_FREE) != box->free || !box_has(box, at)) {
            continue;
        }
        if (cell != last) {
            for (int axis = 0; axis < 3; axis++) {
                out->cells[3 * out->n + (size_t)axis] = (int32_t)(at[axis] >> box->level);
            }
            out->values[out->n] = value_of(&model->format, model->voxels[i].code);
            out->counts[out->n] = 0;
            out->n++;
            last = cell;
        }
        out->counts[out->n - 1]++;
    }
}

static void rows_free(struct rows *rows)
{
    free(rows->cells);
    free(rows->values);
    free(rows->counts);
}

/* Exports some of the rows, with or without the optional arrays. */
static void compare_rows(struct gpu_env *env, const struct model *model,
                         const struct vxd_svdag_export *box, const struct rows *rows,
                         uint64_t first, uint64_t limit, bool has_all)
{
    size_t from = first < rows->n ? (size_t)first : rows->n;
    size_t n = limit < rows->n - from ? (size_t)limit : rows->n - from;
    struct vxd_buffer d_cells = gpu_to_device(env, NULL, n * 3 * sizeof(int32_t) + 1);
    struct vxd_buffer d_values = gpu_to_device(env, NULL, n * sizeof(uint16_t) + 1);
    struct vxd_buffer d_counts = gpu_to_device(env, NULL, n * sizeof(uint64_t) + 1);
    struct vxd_buffer d_n = gpu_to_device(env, NULL, sizeof(uint64_t));
    uint8_t *cells;
    uint8_t *values;
    uint8_t *counts;
    uint64_t *got;

    CHECK(vxd_svdag_export_cells(env->queue, model->scene.svdag, model->scene.root, box,
                                 first, limit, d_cells.ptr, has_all ? d_values.ptr : NULL,
                                 has_all ? d_counts.ptr : NULL, d_n.ptr, NULL) == VXD_OK);
    cells = gpu_to_host(env, &d_cells);
    values = gpu_to_host(env, &d_values);
    counts = gpu_to_host(env, &d_counts);
    got = gpu_to_host(env, &d_n);
    CHECK_INT(*got, n);
    CHECK(memcmp(cells, rows->cells + 3 * from, n * 3 * sizeof(int32_t)) == 0);
    CHECK_INT(cells[n * 3 * sizeof(int32_t)], 0xa5);
    if (has_all) {
        CHECK(memcmp(values, rows->values + from, n * sizeof(uint16_t)) == 0);
        CHECK(memcmp(counts, rows->counts + from, n * sizeof(uint64_t)) == 0);
        CHECK_INT(values[n * sizeof(uint16_t)], 0xa5);
        CHECK_INT(counts[n * sizeof(uint64_t)], 0xa5);
    }
    free(got);
    free(counts);
    free(values);
    free(cells);
    vxd_device_free(env->queue, &d_n);
    vxd_device_free(env->queue, &d_counts);
    vxd_device_free(env->queue, &d_values);
    vxd_device_free(env->queue, &d_cells);
}

static void compare_count(struct gpu_env *env, const struct model *model,
                          const struct vxd_svdag_export *box, size_t n)
{
    struct vxd_buffer d_n = gpu_to_device(env, NULL, sizeof(uint64_t));
    uint64_t *got;

    CHECK(vxd_svdag_count_cells(env->queue, model->scene.svdag, model->scene.root, box,
                                d_n.ptr, NULL) == VXD_OK);
    got = gpu_to_host(env, &d_n);
    CHECK(*got == n);
    free(got);
    vxd_device_free(env->queue, &d_n);
}

static void random_box(const struct model *model, int i, uint64_t *state,
                       struct vxd_svdag_export *box)
{
    int64_t side = (int64_t)1 << model->format.depth;
    uint32_t at[3];

    gpu_svdag_unmorton(model->voxels[gpu_random(state) % model->n].morton, at);
    box->level = (int)(gpu_random(state) % (uint64_t)(model->format.depth + 1));
    box->free = model->format.tracks_free && i % 3 == 0;
    for (int axis = 0; axis < 3; axis++) {
        int64_t size = (int64_t)(gpu_random(state) % (uint64_t)side) + 1;

        box->low[axis] = i % 2 == 0
                             ? (int64_t)at[axis] - size / 2
                             : (int64_t)(gpu_random(state) % (uint64_t)(2 * side)) - side;
        box->high[axis] = box->low[axis] + size;
        if (i < 16) { /* the whole scene */
            box->low[axis] = i % 2 == 0 ? 0 : INT64_MIN;
            box->high[axis] = i % 2 == 0 ? side : INT64_MAX;
            box->level = i / 2 <= model->format.depth ? i / 2 : 0;
        }
    }
}

static void cells_of_model(struct gpu_env *env, const struct model *model)
{
    uint64_t state = 3;

    for (int i = 0; i < N_BOXES; i++) {
        struct vxd_svdag_export box;
        struct rows rows;

        random_box(model, i, &state, &box);
        loop_rows(model, &box, &rows);
        compare_count(env, model, &box, rows.n);
        compare_rows(env, model, &box, &rows, 0, UINT64_MAX, true);
        compare_rows(env, model, &box, &rows, 0, rows.n, false);
        for (int part = 0; part < 4; part++) {
            compare_rows(env, model, &box, &rows, gpu_random(&state) % (rows.n + 2),
                         gpu_random(&state) % (rows.n + 2), part % 2 == 0);
        }
        rows_free(&rows);
    }
}

static void all_cells(struct gpu_env *env)
{
    static const struct vxd_svdag_format deep[3] = {
        {17, 0, false}, {21, 4, true}, {21, 16, false}};
    struct model model;

    for (int i = 0; i < N_FORMATS + 3; i++) {
        model_open(env, i < N_FORMATS ? &formats[i] : &deep[i - N_FORMATS],
                   (uint64_t)i + 5, &model);
        cells_of_model(env, &model);
        model_close(env, &model);
    }
}

static void test_cells_of_any_box_and_level_are_the_loops_in_order(void)
{
    gpu_each_backend(all_cells);
}

/* --- dense arrays ---------------------------------------------------------------------- */

/* Computes the array by a loop over the set voxels of each cell. */
static void loop_dense(const struct model *model, const struct vxd_svdag_export *box,
                       const int64_t size[3], uint8_t *states, uint16_t *values)
{
    size_t n = (size_t)(size[0] * size[1] * size[2]);
    uint64_t volume = (uint64_t)1 << (3 * box->level);
    uint64_t *n_set = gpu_alloc(n * sizeof *n_set);

    memset(n_set, 0, n * sizeof *n_set);
    memset(states, 0, n);
    memset(values, 0, n * sizeof *values);
    for (size_t i = 0; i < model->n; i++) {
        bool is_free = model->voxels[i].code == GPU_SVDAG_FREE;
        uint32_t at[3];
        size_t cell = 0;

        gpu_svdag_unmorton(model->voxels[i].morton, at);
        if (!box_has(box, at)) {
            continue;
        }
        for (int axis = 0; axis < 3; axis++) {
            cell = cell * (size_t)size[axis] +
                   (size_t)((at[axis] - box->low[axis]) >> box->level);
        }
        if (!is_free && (states[cell] & VXD_SVDAG_OCCUPIED) == 0) {
            values[cell] = value_of(&model->format, model->voxels[i].code);
        }
        states[cell] |= is_free ? VXD_SVDAG_FREE : VXD_SVDAG_OCCUPIED;
        n_set[cell]++;
    }
    for (size_t i = 0; i < n; i++) {
        states[i] |= n_set[i] < volume ? VXD_SVDAG_UNKNOWN : 0;
    }
    free(n_set);
}

static void compare_dense(struct gpu_env *env, const struct model *model,
                          const struct vxd_svdag_export *box, bool has_values)
{
    int64_t size[3];
    size_t n = 1;
    struct vxd_buffer d_states;
    struct vxd_buffer d_values;
    uint8_t *states;
    uint16_t *values;
    uint8_t *got_states;
    uint16_t *got_values;

    for (int axis = 0; axis < 3; axis++) {
        size[axis] = (box->high[axis] - box->low[axis]) >> box->level;
        n *= (size_t)size[axis];
    }
    states = gpu_alloc(n);
    values = gpu_alloc(n * sizeof *values);
    loop_dense(model, box, size, states, values);
    d_states = gpu_to_device(env, NULL, n);
    d_values = gpu_to_device(env, NULL, n * sizeof *values);
    CHECK(vxd_svdag_export_dense(env->queue, model->scene.svdag, model->scene.root, box,
                                 d_states.ptr, has_values ? d_values.ptr : NULL,
                                 NULL) == VXD_OK);
    got_states = gpu_to_host(env, &d_states);
    got_values = gpu_to_host(env, &d_values);
    CHECK(memcmp(states, got_states, n) == 0);
    CHECK(!has_values || memcmp(values, got_values, n * sizeof *values) == 0);
    free(got_values);
    free(got_states);
    vxd_device_free(env->queue, &d_values);
    vxd_device_free(env->queue, &d_states);
    free(values);
    free(states);
}

static void all_dense(struct gpu_env *env)
{
    static const struct vxd_svdag_format deep = {21, 8, true};
    uint64_t state = 8;

    for (int i = 0; i <= N_FORMATS; i++) {
        struct model model;

        model_open(env, i < N_FORMATS ? &formats[i] : &deep, (uint64_t)i + 40, &model);
        for (int j = 0; j < N_BOXES; j++) {
            struct vxd_svdag_export box = {.free = j % 2 == 0};
            uint32_t at[3];

            box.level = (int)(gpu_random(&state) % (uint64_t)(model.format.depth + 1));
            gpu_svdag_unmorton(model.voxels[gpu_random(&state) % model.n].morton, at);
            for (int axis = 0; axis < 3; axis++) {
                int64_t n = (int64_t)(gpu_random(&state) % 20) + 1;

                box.low[axis] =
                    (((int64_t)at[axis] >> box.level) - n / 2 - j % 3) * (1 << box.level);
                box.high[axis] = box.low[axis] + n * (1 << box.level);
            }
            compare_dense(env, &model, &box, j % 4 != 0);
        }
        model_close(env, &model);
    }
}

static void test_dense_of_any_box_and_level_are_the_loops(void)
{
    gpu_each_backend(all_dense);
}

/* --- edges ----------------------------------------------------------------------------- */

/* A wavy surface, and FREE voxels below one of its hills: wide enough to occupy many
 * threads. */
static void surface_open(struct gpu_env *env, struct model *out)
{
    enum {
        SIDE = 512
    };
    size_t most = (size_t)SIDE * SIDE * 2;

    out->format = (struct vxd_svdag_format){9, 4, true};
    out->voxels = gpu_alloc(most * sizeof *out->voxels);
    out->n = 0;
    for (uint32_t x = 0; x < SIDE; x++) {
        for (uint32_t y = 0; y < SIDE; y++) {
            uint32_t z = 200 + x * y / 900 % 90 + (x * 7 + y * 3) % 5;

            out->voxels[out->n].morton = gpu_svdag_morton(x, y, z);
            out->voxels[out->n++].code = GPU_SVDAG_MATERIAL + (x / 16 + y / 64) % 15;
            if (x > 100 && x < 300 && y > 250) {
                out->voxels[out->n].morton = gpu_svdag_morton(x, y, z - 100);
                out->voxels[out->n++].code = GPU_SVDAG_FREE;
            }
        }
    }
    qsort(out->voxels, out->n, sizeof *out->voxels, gpu_svdag_voxel_compare);
    gpu_svdag_scene_build(env->queue, &out->format, out->voxels, out->n, &out->scene);
}

static void surface_cells(struct gpu_env *env)
{
    static const struct vxd_svdag_export boxes[5] = {
        {{0, 0, 0}, {512, 512, 512}, 0, false},
        {{3, 5, 0}, {509, 500, 490}, 1, false},
        {{0, 0, 0}, {512, 512, 512}, 0, true},
        {{0, 7, 1}, {512, 512, 512}, 2, true},
        {{0, 1, 0}, {511, 512, 512}, 4, false}};
    struct model model;

    surface_open(env, &model);
    for (int i = 0; i < 5; i++) {
        struct rows rows;
        size_t n;

        loop_rows(&model, &boxes[i], &rows);
        n = rows.n;
        CHECK(n > 1000);
        compare_count(env, &model, &boxes[i], n);
        compare_rows(env, &model, &boxes[i], &rows, 0, UINT64_MAX, true);
        compare_rows(env, &model, &boxes[i], &rows, n / 3, n / 2, true);
        compare_rows(env, &model, &boxes[i], &rows, n - 77, 77, false);
        compare_rows(env, &model, &boxes[i], &rows, n / 2, 1, true);
        rows_free(&rows);
    }
    model_close(env, &model);
}

static void test_cells_of_a_wide_surface_come_whole_and_in_windows(void)
{
    gpu_each_backend(surface_cells);
}

/* Checks one export of a uniform scene. */
static void compare_uniform(struct gpu_env *env, const struct gpu_svdag_scene *scene,
                            const struct vxd_svdag_export *box, uint64_t first,
                            uint64_t limit, const struct rows *expected)
{
    struct vxd_buffer d_cells = gpu_to_device(env, NULL, limit * 3 * sizeof(int32_t));
    struct vxd_buffer d_values = gpu_to_device(env, NULL, limit * sizeof(uint16_t));
    struct vxd_buffer d_counts = gpu_to_device(env, NULL, limit * sizeof(uint64_t));
    struct vxd_buffer d_n = gpu_to_device(env, NULL, sizeof(uint64_t));
    struct rows got;
    uint64_t *n;

    CHECK(vxd_svdag_export_cells(env->queue, scene->svdag, scene->root, box, first, limit,
                                 d_cells.ptr, d_values.ptr, d_counts.ptr, d_n.ptr,
                                 NULL) == VXD_OK);
    got.cells = gpu_to_host(env, &d_cells);
    got.values = gpu_to_host(env, &d_values);
    got.counts = gpu_to_host(env, &d_counts);
    n = gpu_to_host(env, &d_n);
    CHECK_INT(*n, expected->n);
    CHECK(memcmp(got.cells, expected->cells, expected->n * 3 * sizeof(int32_t)) == 0);
    CHECK(memcmp(got.values, expected->values, expected->n * sizeof(uint16_t)) == 0);
    CHECK(memcmp(got.counts, expected->counts, expected->n * sizeof(uint64_t)) == 0);
    free(n);
    rows_free(&got);
    vxd_device_free(env->queue, &d_n);
    vxd_device_free(env->queue, &d_counts);
    vxd_device_free(env->queue, &d_values);
    vxd_device_free(env->queue, &d_cells);
}

/* Uniform roots have more cells than a loop counts. */
static void uniform_cells(struct gpu_env *env)
{
    enum {
        LAST = (1 << 21) - 1
    };
    int32_t last[6] = {LAST, LAST, LAST - 1, LAST, LAST, LAST};
    int32_t middle[3] = {1 << 20, 0, 0};
    int32_t whole[3] = {0, 0, 0};
    uint16_t values[2] = {7, 7};
    uint64_t ones[2] = {1, 1};
    uint64_t all = (uint64_t)1 << 63;
    struct vxd_svdag_format format = {21, 4, true};
    struct vxd_svdag_export box = {.high = {INT64_MAX, INT64_MAX, INT64_MAX}};
    struct model model;

    gpu_svdag_scene_build(env->queue, &format, NULL, 0, &model.scene);
    model.scene.root = VXD_SVDAG_UNIFORM | 7;
    compare_count(env, &model, &box, all);
    compare_uniform(env, &model.scene, &box, all - 2, 5,
                    &(struct rows){last, values, ones, 2});
    compare_uniform(env, &model.scene, &box, all / 2, 1,
                    &(struct rows){middle, values, ones, 1});
    box.level = 21;
    compare_uniform(env, &model.scene, &box, 0, 2,
                    &(struct rows){whole, values, &all, 1});
    gpu_svdag_scene_free(env->queue, &model.scene);
}

static void test_cells_of_uniform_scene_are_counted_and_skipped_at_once(void)
{
    gpu_each_backend(uniform_cells);
}

static void test_export_of_wrong_boxes_is_refused(void)
{
    struct vxd_svdag_format format = {4, 0, false};
    struct vxd_svdag_export box = {.high = {16, 16, 16}, .level = 5};
    struct gpu_svdag_scene scene;
    struct gpu_env env;
    struct vxd_err err = {0};
    uint64_t n = 7;
    uint8_t states[8];

    gpu_env_create(&env, VXD_BACKEND_CPU, 1, 0, 0);
    gpu_svdag_scene_build(env.queue, &format, NULL, 0, &scene);
    CHECK(vxd_svdag_count_cells(env.queue, scene.svdag, 0, &box, &n, &err) ==
          VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, "level");
    box.level = 3;
    CHECK(vxd_svdag_export_cells(env.queue, scene.svdag, 0, &box, 0, 1, NULL, NULL, NULL,
                                 &n, &err) == VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, "cells");
    CHECK(vxd_svdag_export_cells(env.queue, scene.svdag, 0, &box, 0, 0, NULL, NULL, NULL,
                                 &n, &err) == VXD_OK);
    box.low[1] = 4;
    CHECK(vxd_svdag_export_dense(env.queue, scene.svdag, 0, &box, states, NULL, &err) ==
          VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, "low");
    box.low[1] = -8;
    box.high[2] = (int64_t)1 << 62;
    CHECK(vxd_svdag_export_dense(env.queue, scene.svdag, 0, &box, states, NULL, &err) ==
          VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, "high");
    box.low[2] = -((int64_t)1 << 62) * 2;
    CHECK(vxd_svdag_export_dense(env.queue, scene.svdag, 0, &box, states, NULL, &err) ==
          VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, "high");
    box.high[0] = -8; /* no cell at all */
    CHECK(vxd_svdag_export_dense(env.queue, scene.svdag, 0, &box, NULL, NULL, &err) ==
          VXD_OK);
    for (int axis = 0; axis < 3; axis++) { /* nor where two axes have some */
        struct vxd_svdag_export flat = {.high = {16, 16, 16}, .level = 3};

        flat.high[axis] = 0;
        CHECK(vxd_svdag_export_dense(env.queue, scene.svdag, 0, &flat, NULL, NULL,
                                     &err) == VXD_OK);
    }
    gpu_wait(&env);
    CHECK_INT(n, 0);
    gpu_svdag_scene_free(env.queue, &scene);
    gpu_env_destroy(&env);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_cells_of_any_box_and_level_are_the_loops_in_order),
    VXD_TEST(test_dense_of_any_box_and_level_are_the_loops),
    VXD_TEST(test_cells_of_a_wide_surface_come_whole_and_in_windows),
    VXD_TEST(test_cells_of_uniform_scene_are_counted_and_skipped_at_once),
    VXD_TEST(test_export_of_wrong_boxes_is_refused),
};

VXD_TEST_MAIN(tests)
