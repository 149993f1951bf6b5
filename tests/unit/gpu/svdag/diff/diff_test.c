// SPDX-License-Identifier: Apache-2.0
/* Diffs, against a loop over all voxels of both scenes: dense scenes, deep scenes of few
 * voxels, wide surfaces that occupy many threads, and uniform scenes, which have more
 * cells than memory could hold. */
#include "tests/support/test.h"

#include <pthread.h>
#include <stdatomic.h>

#include "gpu/svdag/diff/diff.h"
#include "gpu/svdag/edit/edit.h"
#include "tests/support/svdag/svdag_scene.h"
#include "tests/support/svdag/svdag_versions.h"

enum {
    N_FORMATS = 8,
    N_BOXES = 30
};

static const struct vxd_svdag_format formats[N_FORMATS] = {
    {4, 0, false}, {6, 0, false}, {5, 0, true},   {5, 4, false},
    {5, 4, true},  {4, 8, true},  {5, 16, false}, {6, 16, true}};

/* A voxel that differs between the scenes. */
struct delta {
    uint64_t morton;
    uint8_t bits;
};

struct model {
    int depth;
    struct delta *deltas; /* ascending */
    size_t n;
    struct gpu_svdag_scene scene; /* root: before; other: after */
};

static uint8_t bits_of(uint32_t before, uint32_t after)
{
    const bool was_set = before >= GPU_SVDAG_MATERIAL;
    const bool is_set = after >= GPU_SVDAG_MATERIAL;
    int bits = 0;

    bits |= is_set && !was_set ? VXD_SVDAG_DIFF_ADDED : 0;
    bits |= was_set && !is_set ? VXD_SVDAG_DIFF_REMOVED : 0;
    bits |= was_set && is_set && before != after ? VXD_SVDAG_DIFF_CHANGED : 0;
    bits |=
        after == GPU_SVDAG_FREE && before != GPU_SVDAG_FREE ? VXD_SVDAG_DIFF_FREED : 0;
    bits |=
        before == GPU_SVDAG_FREE && after != GPU_SVDAG_FREE ? VXD_SVDAG_DIFF_UNFREED : 0;
    return (uint8_t)bits;
}

/* The voxels that differ between two ascending lists. */
static void model_open(struct gpu_env *env, const struct vxd_svdag_format *format,
                       struct gpu_svdag_voxel *const voxels[2], const size_t n[2],
                       struct model *out)
{
    const struct gpu_svdag_voxel *const both[2] = {voxels[0], voxels[1]};
    size_t at[2] = {0, 0};

    out->depth = format->depth;
    out->deltas = gpu_alloc((n[0] + n[1]) * sizeof *out->deltas);
    out->n = 0;
    while (at[0] < n[0] || at[1] < n[1]) {
        uint64_t next[2];
        uint64_t morton;
        uint32_t codes[2];

        for (int i = 0; i < 2; i++) {
            next[i] = at[i] < n[i] ? voxels[i][at[i]].morton : UINT64_MAX;
        }
        morton = next[0] < next[1] ? next[0] : next[1];
        for (int i = 0; i < 2; i++) {
            codes[i] = next[i] == morton ? voxels[i][at[i]++].code : 0;
        }
        out->deltas[out->n].morton = morton;
        out->deltas[out->n].bits = bits_of(codes[0], codes[1]);
        out->n += out->deltas[out->n].bits != 0;
    }
    gpu_svdag_scene_build_two(env->queue, format, both, n, &out->scene);
    free(voxels[0]);
    free(voxels[1]);
}

static void model_close(struct gpu_env *env, struct model *model)
{
    gpu_svdag_scene_free(env->queue, &model->scene);
    free(model->deltas);
}

/* Computes result rows by a loop. */
struct rows {
    int32_t *cells;
    uint8_t *changes;
    size_t n;
};

static bool box_has(const struct vxd_svdag_diff_box *box, const uint32_t at[3])
{
    for (int axis = 0; axis < 3; axis++) {
        if (at[axis] < box->low[axis] || at[axis] >= box->high[axis]) {
            return false;
        }
    }
    return true;
}

static void loop_rows(const struct model *model, const struct vxd_svdag_diff_box *box,
                      struct rows *out)
{
    uint64_t last = UINT64_MAX;

    out->cells = gpu_alloc(model->n * 3 * sizeof *out->cells + 1);
    out->changes = gpu_alloc(model->n + 1);
    out->n = 0;
    for (size_t i = 0; i < model->n; i++) {
        uint64_t cell = model->deltas[i].morton >> (3 * box->level);
        uint32_t at[3];

        gpu_svdag_unmorton(model->deltas[i].morton, at);
        if (!box_has(box, at)) {
            continue;
        }
        if (cell != last) {
            for (int axis = 0; axis < 3; axis++) {
                out->cells[3 * out->n + (size_t)axis] = (int32_t)(at[axis] >> box->level);
            }
            out->changes[out->n++] = 0;
            last = cell;
        }
        out->changes[out->n - 1] |= model->deltas[i].bits;
    }
}

static void rows_free(struct rows *rows)
{
    free(rows->cells);
    free(rows->changes);
}

/* Requests some of the rows, with or without their changes. */
static void compare(struct gpu_env *env, const struct model *model,
                    const struct vxd_svdag_diff_box *box, const struct rows *rows,
                    uint64_t first, uint64_t limit, bool has_changes)
{
    size_t from = first < rows->n ? (size_t)first : rows->n;
    size_t n = limit < rows->n - from ? (size_t)limit : rows->n - from;
    struct vxd_buffer d_cells = gpu_to_device(env, NULL, n * 3 * sizeof(int32_t) + 1);
    struct vxd_buffer d_changes = gpu_to_device(env, NULL, n + 1);
    struct vxd_buffer d_n = gpu_to_device(env, NULL, 2 * sizeof(uint64_t));
    uint8_t *cells;
    uint8_t *changes;
    uint64_t *got;

    CHECK(vxd_svdag_diff(env->queue, model->scene.svdag, model->scene.root,
                         model->scene.other, box, first, limit, d_cells.ptr,
                         has_changes ? d_changes.ptr : NULL, d_n.ptr, NULL) == VXD_OK);
    cells = gpu_to_host(env, &d_cells);
    changes = gpu_to_host(env, &d_changes);
    got = gpu_to_host(env, &d_n);
    CHECK_INT(got[0], n);
    CHECK_INT(got[1], rows->n);
    CHECK(memcmp(cells, rows->cells + 3 * from, n * 3 * sizeof(int32_t)) == 0);
    CHECK_INT(cells[n * 3 * sizeof(int32_t)], 0xa5);
    CHECK(!has_changes || memcmp(changes, rows->changes + from, n) == 0);
    CHECK_INT(changes[has_changes ? n : 0], 0xa5);
    free(got);
    free(changes);
    free(cells);
    vxd_device_free(env->queue, &d_n);
    vxd_device_free(env->queue, &d_changes);
    vxd_device_free(env->queue, &d_cells);
}

static void compare_all(struct gpu_env *env, const struct model *model,
                        const struct vxd_svdag_diff_box *box, uint64_t *state)
{
    struct rows rows;

    loop_rows(model, box, &rows);
    compare(env, model, box, &rows, 0, 0, false);
    compare(env, model, box, &rows, 0, UINT64_MAX, true);
    compare(env, model, box, &rows, 0, rows.n, false);
    for (int part = 0; part < 3; part++) {
        compare(env, model, box, &rows, gpu_random(state) % (rows.n + 2),
                gpu_random(state) % (rows.n + 2), part % 2 == 0);
    }
    rows_free(&rows);
}

/* Compares every level of the whole scene, then boxes. */
static void boxes_of_model(struct gpu_env *env, const struct model *model,
                           uint64_t *state)
{
    const int64_t side = (int64_t)1 << model->depth;

    for (int i = 0; i < N_BOXES; i++) {
        struct vxd_svdag_diff_box box = {{0, 0, 0}, {side, side, side}, i};

        if (i > model->depth) {
            uint32_t at[3] = {0, 0, 0};

            if (model->n > 0) {
                gpu_svdag_unmorton(model->deltas[gpu_random(state) % model->n].morton,
                                   at);
            }
            box.level = (int)(gpu_random(state) % (uint64_t)(model->depth + 1));
            for (int axis = 0; axis < 3; axis++) {
                int64_t size = (int64_t)(gpu_random(state) % (uint64_t)side) + 1;

                size = i % 3 == 0 ? (size - 1) % 16 + 1 : size;
                box.low[axis] = i % 2 == 0 ? (int64_t)at[axis] - size / 2
                                           : (int64_t)at[axis] - size + 1;
                box.high[axis] = i == N_BOXES - 1 ? INT64_MAX : box.low[axis] + size;
                box.low[axis] = i == N_BOXES - 1 ? INT64_MIN : box.low[axis];
            }
        }
        compare_all(env, model, &box, state);
    }
}

/* Two unrelated scenes, or a scene and the same scene after a few boxes. */
static void dense_open(struct gpu_env *env, const struct vxd_svdag_format *format,
                       uint64_t seed, struct model *out)
{
    const size_t n_all = (size_t)1 << 3 * format->depth;
    uint32_t *grids[2];
    struct gpu_svdag_voxel *voxels[2];
    size_t n[2];
    uint64_t state = seed;

    grids[0] = gpu_svdag_random_grid(format, seed);
    grids[1] = gpu_svdag_random_grid(format, seed + 100);
    for (size_t i = 0; i < n_all && seed % 4 != 0; i++) {
        /* A plane, or single voxels. */
        bool stays = seed % 4 == 1 ? i >> 2 * format->depth != 5
                                   : gpu_random(&state) % (seed % 4 == 2 ? 40 : 800) != 0;

        grids[1][i] = stays ? grids[0][i] : grids[1][i];
    }
    for (int i = 0; i < 2; i++) {
        voxels[i] = gpu_svdag_grid_voxels(grids[i], format->depth, &n[i]);
        free(grids[i]);
    }
    model_open(env, format, voxels, n, out);
}

static void dense(struct gpu_env *env)
{
    uint64_t state = 3;

    for (uint64_t i = 0; i < 4 * N_FORMATS; i++) {
        struct model model;

        dense_open(env, &formats[i % N_FORMATS], i / N_FORMATS + 4 * i + 4, &model);
        boxes_of_model(env, &model, &state);
        model_close(env, &model);
    }
}

static void test_diff_of_any_box_and_level_is_the_loop_in_order(void)
{
    gpu_each_backend(dense);
}

/* The voxels of one scene with some removed, others of another material, and a few
 * more. */
static void deep(struct gpu_env *env)
{
    static const struct vxd_svdag_format deep_formats[4] = {
        {17, 0, false}, {21, 4, true}, {21, 16, false}, {21, 0, true}};
    uint64_t state = 4;

    for (uint64_t i = 0; i < 8; i++) {
        const struct vxd_svdag_format *format = &deep_formats[i % 4];
        struct gpu_svdag_voxel *voxels[2];
        size_t n[2] = {300, 400};
        struct model model;

        voxels[0] = gpu_svdag_random_voxels(format, i + 1, &n[0]);
        voxels[1] = gpu_svdag_random_voxels(format, i / 4 == 0 ? i + 1 : i + 50, &n[1]);
        n[0] = i == 3 ? 0 : n[0];
        for (size_t k = 0; k < n[1] && i / 4 == 0; k += 1 + gpu_random(&state) % 30) {
            voxels[1][k].code = voxels[1][k].code == GPU_SVDAG_FREE ? GPU_SVDAG_MATERIAL
                                : format->tracks_free               ? GPU_SVDAG_FREE
                                                                    : voxels[1][k].code;
        }
        model_open(env, format, voxels, n, &model);
        boxes_of_model(env, &model, &state);
        model_close(env, &model);
    }
}

static void test_diff_of_few_voxels_in_deep_scenes_is_the_loop_in_order(void)
{
    gpu_each_backend(deep);
}

/* A wavy surface, and the same surface with a hill moved and a strip recoloured. */
static void wide_open(struct gpu_env *env, struct model *out)
{
    enum {
        SIDE = 512
    };
    static const struct vxd_svdag_format format = {9, 4, true};
    struct gpu_svdag_voxel *voxels[2];
    size_t n[2] = {0, 0};

    for (int i = 0; i < 2; i++) {
        voxels[i] = gpu_alloc((size_t)SIDE * SIDE * 2 * sizeof *voxels[i]);
        for (uint32_t x = 0; x < SIDE; x++) {
            for (uint32_t y = 0; y < SIDE; y++) {
                const bool is_hill = i == 1 && x > 40 && x < 350 && y < 400;
                const uint32_t z =
                    200 + x * y / 900 % 90 + (x * 7 + y * 3) % 5 + (is_hill ? 3 : 0);

                voxels[i][n[i]].morton = gpu_svdag_morton(x, y, z);
                voxels[i][n[i]++].code =
                    GPU_SVDAG_MATERIAL + (x / 16 + y / 64 + (i == 1 && y > 450)) % 15;
                if (x > 100 && x < 300 && y > 250u - 100u * (unsigned)i) {
                    voxels[i][n[i]].morton = gpu_svdag_morton(x, y, z - 100);
                    voxels[i][n[i]++].code = GPU_SVDAG_FREE;
                }
            }
        }
        qsort(voxels[i], n[i], sizeof *voxels[i], gpu_svdag_voxel_compare);
    }
    model_open(env, &format, voxels, n, out);
}

/* A few voxels in each of 32^3 cells of 16 voxels a side. */
static void scattered_open(struct gpu_env *env, struct model *out)
{
    static const struct vxd_svdag_format format = {9, 8, true};
    const size_t n_cells = (size_t)1 << 15;
    struct gpu_svdag_voxel *voxels[2];
    size_t n[2] = {0, 0};
    uint64_t state = 12;

    voxels[0] = gpu_alloc(n_cells * 4 * sizeof *voxels[0]);
    voxels[1] = gpu_alloc(n_cells * 4 * sizeof *voxels[1]);
    for (uint64_t i = 0; i < n_cells; i++) {
        for (uint64_t k = 0; k < 4; k++) {
            uint64_t morton = i << 12 | k << 10 | gpu_random(&state) % 1024;

            for (int side = 0; side < 2; side++) {
                uint64_t kind = gpu_random(&state) % 4;

                if (kind < 3) {
                    voxels[side][n[side]].morton = morton;
                    voxels[side][n[side]++].code = GPU_SVDAG_FREE + (uint32_t)kind;
                }
            }
        }
    }
    model_open(env, &format, voxels, n, out);
}

static void scattered(struct gpu_env *env)
{
    struct model model;
    uint64_t state = 7;

    scattered_open(env, &model);
    for (int level = 2; level <= 9; level++) {
        struct vxd_svdag_diff_box box = {{0, 0, 0}, {512, 512, 512}, level};

        compare_all(env, &model, &box, &state);
        box.low[2] = 70;
        box.high[1] = 333;
        compare_all(env, &model, &box, &state);
    }
    model_close(env, &model);
}

static void test_diff_of_many_large_cells_is_the_loop_in_order(void)
{
    gpu_each_backend(scattered);
}

static void wide(struct gpu_env *env)
{
    struct model model;
    uint64_t state = 6;

    wide_open(env, &model);
    CHECK(model.n > 200000);
    for (int level = 0; level <= 9; level++) {
        struct vxd_svdag_diff_box box = {{0, 0, 0}, {512, 512, 512}, level};

        compare_all(env, &model, &box, &state);
        box.low[1] = 3;
        box.high[0] = 501;
        box.high[2] = 255;
        compare_all(env, &model, &box, &state);
    }
    model_close(env, &model);
}

static void test_diff_of_wide_surfaces_comes_whole_and_in_windows(void)
{
    gpu_each_backend(wide);
}

/* --- whole scenes ---------------------------------------------------------------------- */

/* Requests n rows from `first` on, of cells that are uniform. */
static void compare_whole(struct gpu_env *env, const struct vxd_svdag *svdag,
                          const uint32_t roots[2], int level, uint64_t first,
                          unsigned bits)
{
    enum {
        LIMIT = 3000
    };
    const struct vxd_svdag_diff_box box = {
        {INT64_MIN, INT64_MIN, INT64_MIN}, {INT64_MAX, INT64_MAX, INT64_MAX}, level};
    const uint64_t n_all = (uint64_t)1 << 3 * (21 - level);
    const uint64_t n = n_all - first < LIMIT ? n_all - first : LIMIT;
    struct vxd_buffer d_cells = gpu_to_device(env, NULL, LIMIT * 3 * sizeof(int32_t));
    struct vxd_buffer d_changes = gpu_to_device(env, NULL, LIMIT);
    struct vxd_buffer d_n = gpu_to_device(env, NULL, 2 * sizeof(uint64_t));
    int32_t *cells;
    uint8_t *changes;
    uint64_t *got;

    CHECK(vxd_svdag_diff(env->queue, svdag, roots[0], roots[1], &box, first, LIMIT,
                         d_cells.ptr, d_changes.ptr, d_n.ptr, NULL) == VXD_OK);
    cells = gpu_to_host(env, &d_cells);
    changes = gpu_to_host(env, &d_changes);
    got = gpu_to_host(env, &d_n);
    CHECK_INT(got[0], n);
    CHECK(got[1] == n_all);
    for (uint64_t i = 0; i < n; i++) {
        uint32_t cell[3];

        gpu_svdag_unmorton(first + i, cell);
        CHECK(memcmp(cell, cells + 3 * i, sizeof cell) == 0);
        CHECK_INT(changes[i], bits);
    }
    free(got);
    free(changes);
    free(cells);
    vxd_device_free(env->queue, &d_n);
    vxd_device_free(env->queue, &d_changes);
    vxd_device_free(env->queue, &d_cells);
}

static void whole(struct gpu_env *env)
{
    static const struct vxd_svdag_format format = {21, 4, true};
    static const struct {
        uint32_t roots[2];
        unsigned bits;
    } cases[5] = {
        {{VXD_SVDAG_EMPTY, VXD_SVDAG_UNIFORM | 3}, VXD_SVDAG_DIFF_ADDED},
        {{VXD_SVDAG_UNIFORM | 3, VXD_SVDAG_EMPTY}, VXD_SVDAG_DIFF_REMOVED},
        {{VXD_SVDAG_UNIFORM | 3, VXD_SVDAG_UNIFORM | 4}, VXD_SVDAG_DIFF_CHANGED},
        {{VXD_SVDAG_UNIFORM | 3, VXD_SVDAG_UNIFORM | 15},
         VXD_SVDAG_DIFF_REMOVED | VXD_SVDAG_DIFF_FREED},
        {{VXD_SVDAG_UNIFORM | 15, VXD_SVDAG_UNIFORM | 0},
         VXD_SVDAG_DIFF_ADDED | VXD_SVDAG_DIFF_UNFREED}};
    const uint64_t n_voxels = (uint64_t)1 << 63;
    struct gpu_svdag_scene scene;

    gpu_svdag_scene_build(env->queue, &format, NULL, 0, &scene);
    for (int i = 0; i < 5; i++) {
        compare_whole(env, scene.svdag, cases[i].roots, 0, 0, cases[i].bits);
        compare_whole(env, scene.svdag, cases[i].roots, 0, n_voxels / 3, cases[i].bits);
        compare_whole(env, scene.svdag, cases[i].roots, 0, n_voxels - 20, cases[i].bits);
        compare_whole(env, scene.svdag, cases[i].roots, 5, 12345678901, cases[i].bits);
        compare_whole(env, scene.svdag, cases[i].roots, 21, 0, cases[i].bits);
    }
    gpu_svdag_scene_free(env->queue, &scene);
}

static void test_diff_of_whole_scenes_is_counted_and_skipped_at_once(void)
{
    gpu_each_backend(whole);
}

/* --- beside edits ---------------------------------------------------------------------- */

struct reader {
    struct gpu_env env; /* with a queue of its own */
    const struct vxd_svdag *svdag;
    uint32_t roots[2];
    uint64_t n_expected;
    atomic_bool stops;
    atomic_size_t n_wrong;
};

static void *read_diffs(void *args)
{
    static const struct vxd_svdag_diff_box box = {{0, 0, 0}, {64, 64, 64}, 1};
    struct reader *reader = args;

    while (!atomic_load(&reader->stops)) {
        uint64_t n[2] = {0, 0};
        int32_t cells[3 * 64];
        uint8_t changes[64];

        atomic_fetch_add(&reader->n_wrong,
                         vxd_svdag_diff(reader->env.queue, reader->svdag,
                                        reader->roots[0], reader->roots[1], &box, 5, 64,
                                        cells, changes, n, NULL) != VXD_OK);
        gpu_wait(&reader->env);
        atomic_fetch_add(&reader->n_wrong, n[1] != reader->n_expected);
    }
    return NULL;
}

static void test_diff_beside_edits_disturbs_none(void)
{
    static const struct vxd_svdag_format format = {6, 4, true};
    struct reader reader = {0};
    struct vxd_svdag_op op = {.action = VXD_SVDAG_FILL};
    struct vxd_svdag_edit_result result;
    struct vxd_svdag *svdag;
    struct gpu_env env;
    pthread_t thread;
    uint64_t seed = 9;

    gpu_env_create(&env, VXD_BACKEND_CPU, 3, 0, 0);
    svdag = gpu_svdag_versions_store(&env, &format, 0);
    op.shape.kind = VXD_SVDAG_BOX;
    for (int axis = 0; axis < 3; axis++) {
        op.shape.high[axis] = 20 * VXD_SVDAG_UNIT;
    }
    CHECK_INT(
        vxd_svdag_edit_wait(env.queue, svdag, VXD_SVDAG_EMPTY, &op, 1, &result, NULL),
        VXD_OK);
    reader.env = env;
    REQUIRE(vxd_queue_create(env.context, &reader.env.queue, NULL) == VXD_OK);
    reader.svdag = svdag;
    reader.roots[1] = result.root;
    reader.n_expected = 1000;
    atomic_init(&reader.stops, false);
    atomic_init(&reader.n_wrong, 0);
    REQUIRE(pthread_create(&thread, NULL, read_diffs, &reader) == 0);
    for (int i = 0; i < 150; i++) {
        op = gpu_svdag_random_op(&format, &seed);
        CHECK_INT(
            vxd_svdag_edit_wait(env.queue, svdag, result.root, &op, 1, &result, NULL),
            VXD_OK);
    }
    atomic_store(&reader.stops, true);
    (void)pthread_join(thread, NULL);
    CHECK_INT(atomic_load(&reader.n_wrong), 0);
    vxd_queue_destroy(reader.env.queue);
    vxd_svdag_destroy(env.queue, svdag);
    gpu_env_destroy(&env);
}

static void refused(struct gpu_env *env)
{
    static const struct vxd_svdag_format format = {5, 0, false};
    struct vxd_svdag_diff_box box = {{0, 0, 0}, {32, 32, 32}, 6};
    struct gpu_svdag_scene scene;
    struct vxd_err err = {0};
    uint64_t n[2];
    int32_t cell[3];

    gpu_svdag_scene_build(env->queue, &format, NULL, 0, &scene);
    CHECK_INT(
        vxd_svdag_diff(env->queue, scene.svdag, 0, 0, &box, 0, 1, cell, NULL, n, &err),
        VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, "level");
    box.level = -1;
    CHECK_INT(
        vxd_svdag_diff(env->queue, scene.svdag, 0, 0, &box, 0, 1, cell, NULL, n, &err),
        VXD_INVALID_ARGUMENT);
    box.level = 5;
    CHECK_INT(
        vxd_svdag_diff(env->queue, scene.svdag, 0, 0, &box, 0, 1, NULL, NULL, n, &err),
        VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, "cells");
    CHECK_INT(
        vxd_svdag_diff(env->queue, scene.svdag, 0, 0, &box, 0, 0, NULL, NULL, NULL, &err),
        VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, "n_cells");
    gpu_svdag_scene_free(env->queue, &scene);
}

static void test_diff_of_wrong_levels_and_arrays_is_refused(void)
{
    gpu_each_backend(refused);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_diff_of_any_box_and_level_is_the_loop_in_order),
    VXD_TEST(test_diff_of_few_voxels_in_deep_scenes_is_the_loop_in_order),
    VXD_TEST(test_diff_of_many_large_cells_is_the_loop_in_order),
    VXD_TEST(test_diff_of_wide_surfaces_comes_whole_and_in_windows),
    VXD_TEST(test_diff_of_whole_scenes_is_counted_and_skipped_at_once),
    VXD_TEST(test_diff_beside_edits_disturbs_none),
    VXD_TEST(test_diff_of_wrong_levels_and_arrays_is_refused)};

VXD_TEST_MAIN(tests)
