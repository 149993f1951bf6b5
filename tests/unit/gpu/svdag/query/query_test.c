// SPDX-License-Identifier: Apache-2.0
/* Values, nearest voxels, overlaps and counts, against loops over all voxels of dense
 * grids and of sparse deep scenes. */
#include "tests/support/test.h"

#include <pthread.h>

#include "gpu/svdag/edit/edit.h"
#include "gpu/svdag/query/query.h"
#include "tests/support/svdag/svdag_run.h"
#include "tests/support/svdag/svdag_scene.h"
#include "tests/support/gpu/gpu_helpers.h"

enum {
    N_FORMATS = 8
};

static const struct vxd_svdag_format formats[N_FORMATS] = {
    {4, 0, false}, {5, 0, false}, {5, 0, true},   {5, 4, false},
    {5, 4, true},  {4, 8, true},  {5, 16, false}, {4, 16, true}};
static const struct vxd_svdag_format deep_formats[3] = {
    {17, 0, false}, {21, 4, true}, {21, 16, false}};

/* A scene together with its voxels; the grid is NULL for deep scenes. */
struct model {
    struct vxd_svdag_format format;
    uint32_t *grid;
    struct gpu_svdag_voxel *voxels;
    size_t n;
    struct gpu_svdag_scene scene;
};

static void model_open(struct gpu_env *env, const struct vxd_svdag_format *format,
                       uint64_t seed, struct model *out)
{
    out->format = *format;
    out->grid = NULL;
    if (format->depth > 6) {
        out->n = 500;
        out->voxels = gpu_svdag_random_voxels(format, seed, &out->n);
    } else {
        out->grid = gpu_svdag_random_grid(format, seed);
        out->voxels = gpu_svdag_grid_voxels(out->grid, format->depth, &out->n);
    }
    gpu_svdag_scene_build(env->queue, format, out->voxels, out->n, &out->scene);
}

static void model_close(struct gpu_env *env, struct model *model)
{
    gpu_svdag_scene_free(env->queue, &model->scene);
    free(model->voxels);
    free(model->grid);
}

/* Runs body on a model of each format. */
static void each_model(struct gpu_env *env,
                       void (*body)(struct gpu_env *env, const struct model *model))
{
    struct model model;

    for (int i = 0; i < N_FORMATS + 3; i++) {
        model_open(env, i < N_FORMATS ? &formats[i] : &deep_formats[i - N_FORMATS],
                   (uint64_t)i + 77, &model);
        body(env, &model);
        model_close(env, &model);
    }
}

static unsigned state_of(uint32_t code)
{
    return code == 0                ? VXD_SVDAG_UNKNOWN
           : code == GPU_SVDAG_FREE ? VXD_SVDAG_FREE
                                    : VXD_SVDAG_OCCUPIED;
}

static uint32_t code_at(const struct model *model, const int32_t at[3])
{
    int32_t side = (int32_t)1 << model->format.depth;
    struct gpu_svdag_voxel key;
    const struct gpu_svdag_voxel *found;

    for (int axis = 0; axis < 3; axis++) {
        if (at[axis] < 0 || at[axis] >= side) {
            return 0;
        }
    }
    key.morton = gpu_svdag_morton((uint32_t)at[0], (uint32_t)at[1], (uint32_t)at[2]);
    found = bsearch(&key, model->voxels, model->n, sizeof key, gpu_svdag_voxel_compare);
    return found != NULL ? found->code : 0;
}

/* --- values ---------------------------------------------------------------------------- */

static void values_of_model(struct gpu_env *env, const struct model *model)
{
    enum {
        N = 20000
    };
    static const int32_t odd[6] = {-1, INT32_MIN, INT32_MAX, 1 << 21, 0, 1 << 30};
    int32_t side = (int32_t)1 << model->format.depth;
    int32_t *voxels = gpu_alloc(N * 3 * sizeof *voxels);
    struct vxd_buffer d_voxels;
    struct vxd_buffer d_states = gpu_to_device(env, NULL, N);
    struct vxd_buffer d_values = gpu_to_device(env, NULL, N * sizeof(uint16_t));
    uint64_t state = 9;
    uint8_t *states;
    uint16_t *values;

    for (int i = 0; i < N; i++) {
        uint32_t at[3];

        gpu_svdag_unmorton(model->voxels[gpu_random(&state) % model->n].morton, at);
        for (int axis = 0; axis < 3; axis++) {
            int32_t any = (int32_t)(gpu_random(&state) % (uint64_t)side);

            voxels[3 * i + axis] = i % 16 == 0  ? odd[gpu_random(&state) % 6]
                                   : i % 4 == 1 ? any
                                                : (int32_t)at[axis] + i % 4 / 2;
        }
    }
    d_voxels = gpu_to_device(env, voxels, N * 3 * sizeof *voxels);
    CHECK(vxd_svdag_values(env->queue, model->scene.svdag, model->scene.root,
                           d_voxels.ptr, N, d_states.ptr, d_values.ptr, NULL) == VXD_OK);
    states = gpu_to_host(env, &d_states);
    values = gpu_to_host(env, &d_values);
    for (int i = 0; i < N; i++) {
        uint32_t code = code_at(model, voxels + 3 * i);

        REQUIRE(states[i] == state_of(code));
        REQUIRE(values[i] ==
                (code >= GPU_SVDAG_MATERIAL ? code - GPU_SVDAG_MATERIAL : 0));
    }
    free(values);
    free(states);
    vxd_device_free(env->queue, &d_values);
    vxd_device_free(env->queue, &d_states);
    vxd_device_free(env->queue, &d_voxels);
    free(voxels);
}

static void all_values(struct gpu_env *env)
{
    each_model(env, values_of_model);
}

static void test_values_at_any_index_are_the_voxels(void)
{
    gpu_each_backend(all_values);
}

/* --- nearest --------------------------------------------------------------------------- */

static uint64_t square_to(const int64_t point[3], const uint32_t at[3])
{
    uint64_t square = 0;

    for (int axis = 0; axis < 3; axis++) {
        int64_t d = (int64_t)at[axis] * 256 + 128 - point[axis];

        square += (uint64_t)(d * d);
    }
    return square;
}

/* Index of the first of the nearest in Morton order, n where there is none. */
static size_t nearest_of(const struct model *model, const int64_t point[3],
                         int64_t radius, uint64_t *best)
{
    size_t found = model->n;

    *best = (uint64_t)radius * (uint64_t)radius;
    for (size_t i = 0; i < model->n; i++) {
        uint32_t at[3];
        uint64_t square;

        if (model->voxels[i].code < GPU_SVDAG_MATERIAL) {
            continue;
        }
        gpu_svdag_unmorton(model->voxels[i].morton, at);
        square = square_to(point, at);
        if (square < *best || (square == *best && found == model->n)) {
            *best = square;
            found = i;
        }
    }
    return found;
}

/* Points on centres and borders of voxels, where many voxels are equally near, and random
 * points, inside and outside. */
static void random_points(const struct model *model, int64_t *points, int64_t *radii,
                          int n)
{
    int64_t side = (int64_t)256 << model->format.depth;
    uint64_t state = 21;

    for (int i = 0; i < n; i++) {
        for (int axis = 0; axis < 3; axis++) {
            int64_t any = (int64_t)(gpu_random(&state) % (uint64_t)(2 * side)) - side / 2;

            points[3 * i + axis] = i % 4 == 0   ? any
                                   : i % 4 == 1 ? any / 128 * 128
                                   : i % 4 == 2 ? any / 1024 * 1024
                                                : any / 256 * 256 + 128;
        }
        radii[i] = i % 3 == 0   ? (int64_t)1 << 30
                   : i % 3 == 1 ? (int64_t)(gpu_random(&state) % (uint64_t)side)
                                : (int64_t)(gpu_random(&state) % 4) * 256;
    }
    points[0] = -((int64_t)1 << 31) + 1; /* the largest coordinates that are allowed */
    points[4] = ((int64_t)1 << 31) - 1;
}

static void nearest_in_model(struct gpu_env *env, const struct model *model)
{
    enum {
        N = 400
    };
    int64_t points[3 * N];
    int64_t radii[N];
    struct vxd_buffer d_points;
    struct vxd_buffer d_radii;
    struct vxd_buffer d_voxels = gpu_to_device(env, NULL, 3 * N * sizeof(int32_t));
    struct vxd_buffer d_squares = gpu_to_device(env, NULL, N * sizeof(uint64_t));
    struct vxd_buffer d_values = gpu_to_device(env, NULL, N * sizeof(uint16_t));
    int32_t *voxels;
    uint64_t *squares;
    uint16_t *values;

    random_points(model, points, radii, N);
    d_points = gpu_to_device(env, points, sizeof points);
    d_radii = gpu_to_device(env, radii, sizeof radii);
    CHECK(vxd_svdag_nearest(env->queue, model->scene.svdag, model->scene.root,
                            d_points.ptr, d_radii.ptr, N, d_voxels.ptr, d_squares.ptr,
                            d_values.ptr, NULL) == VXD_OK);
    voxels = gpu_to_host(env, &d_voxels);
    squares = gpu_to_host(env, &d_squares);
    values = gpu_to_host(env, &d_values);
    for (int i = 0; i < vxd_test_rounds(N); i++) {
        uint64_t square;
        size_t found = nearest_of(model, points + 3 * i, radii[i], &square);
        uint32_t at[3] = {UINT32_MAX, UINT32_MAX, UINT32_MAX};

        if (found < model->n) {
            gpu_svdag_unmorton(model->voxels[found].morton, at);
        }
        REQUIRE(squares[i] == (found < model->n ? square : 0));
        for (int axis = 0; axis < 3; axis++) {
            REQUIRE(voxels[3 * i + axis] == (int32_t)at[axis]);
        }
        REQUIRE(values[i] ==
                (found < model->n ? model->voxels[found].code - GPU_SVDAG_MATERIAL : 0));
    }
    free(values);
    free(squares);
    free(voxels);
    vxd_device_free(env->queue, &d_radii);
    vxd_device_free(env->queue, &d_points);
    vxd_device_free(env->queue, &d_values);
    vxd_device_free(env->queue, &d_squares);
    vxd_device_free(env->queue, &d_voxels);
}

static void all_nearest(struct gpu_env *env)
{
    each_model(env, nearest_in_model);
}

static void test_nearest_of_any_point_is_the_loops_first_of_equals(void)
{
    gpu_each_backend(all_nearest);
}

/* --- regions --------------------------------------------------------------------------- */

static bool region_has(const struct vxd_svdag_region *region, const int64_t at[3])
{
    __int128 square = 0;

    for (int axis = 0; axis < 3; axis++) {
        int64_t centre = at[axis] * 256 + 128;
        __int128 d = (__int128)centre - region->centre[axis];

        if (region->r < 0 &&
            (centre < region->low[axis] || centre >= region->high[axis])) {
            return false;
        }
        square += d * d;
    }
    return region->r < 0 || square <= (__int128)region->r * region->r;
}

/* Counts voxels in a region of a deep scene: for a box from its bounds, for a ball by a
 * loop over the few set voxels. */
static uint64_t deep_volume(const struct vxd_svdag_region *region, int64_t side)
{
    uint64_t volume = 1;
    int64_t low[3];
    int64_t high[3];

    for (int axis = 0; axis < 3; axis++) {
        int64_t r = region->r < 0 ? 0 : region->r / 256 + 2;
        int64_t centre = region->centre[axis] / 256;

        low[axis] = region->r < 0 ? 0 : centre - r < 0 ? 0 : centre - r;
        high[axis] = region->r < 0 ? side : centre + r > side ? side : centre + r;
        if (region->r < 0) {
            while (low[axis] < side && low[axis] * 256 + 128 < region->low[axis]) {
                low[axis]++;
            }
            while (high[axis] > low[axis] &&
                   (high[axis] - 1) * 256 + 128 >= region->high[axis]) {
                high[axis]--;
            }
        }
        volume *= (uint64_t)(high[axis] > low[axis] ? high[axis] - low[axis] : 0);
    }
    if (region->r < 0 || volume == 0) {
        return volume;
    }
    volume = 0;
    for (int64_t x = low[0]; x < high[0]; x++) {
        for (int64_t y = low[1]; y < high[1]; y++) {
            for (int64_t z = low[2]; z < high[2]; z++) {
                volume += region_has(region, (int64_t[3]){x, y, z});
            }
        }
    }
    return volume;
}

/* Random regions of any size and place, aligned or not, some beyond the range of all
 * numbers. */
static void random_region(const struct model *model, int i, uint64_t *state,
                          struct vxd_svdag_region *out)
{
    int64_t side = (int64_t)256 << model->format.depth;
    bool is_deep = model->grid == NULL;
    uint32_t at[3];

    gpu_svdag_unmorton(model->voxels[gpu_random(state) % model->n].morton, at);
    for (int axis = 0; axis < 3; axis++) {
        int64_t size =
            (int64_t)(gpu_random(state) % (uint64_t)(i % 5 == 0 ? side : 2048));
        int64_t low =
            is_deep && i % 3 != 0
                ? (int64_t)at[axis] * 256 - size / 2
                : (int64_t)(gpu_random(state) % (uint64_t)(2 * side)) - side / 2;
        int64_t align = i % 4 == 0 ? 1024 : i % 4 == 1 ? 128 : 1;

        out->low[axis] = low / align * align;
        out->high[axis] = (low + size) / align * align;
        out->centre[axis] = low / align * align;
    }
    out->r = i % 2 == 0 ? -1
             : is_deep  ? (int64_t)(gpu_random(state) % 5000)
                        : (int64_t)(gpu_random(state) % (uint64_t)side);
    if (i == 6) {
        out->low[0] = INT64_MIN;
        out->high[1] = INT64_MAX;
        out->low[2] = INT64_MIN;
        out->high[2] = INT64_MAX;
    }
    if (i == 8) {
        for (int axis = 0; axis < 3; axis++) {
            out->low[axis] = -((int64_t)1 << 31) + 1;
            out->high[axis] = ((int64_t)1 << 31) - 1;
        }
    }
}

/* counts[0] is occupied, counts[1] FREE; returns the states that occur. */
static unsigned region_loop(const struct model *model,
                            const struct vxd_svdag_region *region, uint64_t counts[2])
{
    int64_t side = (int64_t)1 << model->format.depth;
    uint64_t n_other = 0;

    counts[0] = 0;
    counts[1] = 0;
    for (size_t i = 0; i < model->n; i++) {
        uint32_t at[3];

        gpu_svdag_unmorton(model->voxels[i].morton, at);
        counts[model->voxels[i].code == GPU_SVDAG_FREE] +=
            region_has(region, (int64_t[3]){at[0], at[1], at[2]});
    }
    n_other = deep_volume(region, side) - counts[0] - counts[1];
    return (n_other != 0 ? (unsigned)VXD_SVDAG_UNKNOWN : 0u) |
           (counts[0] != 0 ? (unsigned)VXD_SVDAG_OCCUPIED : 0u) |
           (counts[1] != 0 ? (unsigned)VXD_SVDAG_FREE : 0u);
}

/* Queries the first n of the regions: a few regions are split among threads, many run one
 * per thread. */
static void compare_regions(struct gpu_env *env, const struct model *model,
                            const struct vxd_svdag_region *regions, size_t n,
                            const uint8_t *states, const uint64_t *counts)
{
    struct vxd_buffer d_regions = gpu_to_device(env, regions, n * sizeof *regions);
    struct vxd_buffer d_states = gpu_to_device(env, NULL, n);
    struct vxd_buffer d_counts = gpu_to_device(env, NULL, n * 2 * sizeof *counts);
    uint8_t *got_states;
    uint64_t *got_counts;

    CHECK(vxd_svdag_overlap(env->queue, model->scene.svdag, model->scene.root,
                            d_regions.ptr, n, d_states.ptr, NULL) == VXD_OK);
    CHECK(vxd_svdag_count(env->queue, model->scene.svdag, model->scene.root,
                          d_regions.ptr, n, d_counts.ptr, NULL) == VXD_OK);
    got_states = gpu_to_host(env, &d_states);
    got_counts = gpu_to_host(env, &d_counts);
    for (size_t i = 0; i < n; i++) {
        if (got_states[i] != states[i] || got_counts[2 * i] != counts[2 * i] ||
            got_counts[2 * i + 1] != counts[2 * i + 1]) {
            (void)fprintf(stderr, "region %zu: %u %llu %llu, expected %u %llu %llu\n", i,
                          got_states[i], (unsigned long long)got_counts[2 * i],
                          (unsigned long long)got_counts[2 * i + 1], states[i],
                          (unsigned long long)counts[2 * i],
                          (unsigned long long)counts[2 * i + 1]);
            CHECK(false);
            break;
        }
    }
    free(got_counts);
    free(got_states);
    vxd_device_free(env->queue, &d_counts);
    vxd_device_free(env->queue, &d_states);
    vxd_device_free(env->queue, &d_regions);
}

static void regions_of_model(struct gpu_env *env, const struct model *model)
{
    enum {
        N = 60
    };
    struct vxd_svdag_region regions[N];
    uint8_t states[N];
    uint64_t counts[2 * N];
    uint64_t state = 31;

    for (int i = 0; i < N; i++) {
        random_region(model, i, &state, regions + i);
        states[i] = (uint8_t)region_loop(model, regions + i, counts + 2 * i);
    }
    compare_regions(env, model, regions, N, states, counts);
    compare_regions(env, model, regions, 10, states, counts);
}

static void all_regions(struct gpu_env *env)
{
    each_model(env, regions_of_model);
}

static void test_regions_overlap_and_hold_what_loops_count(void)
{
    gpu_each_backend(all_regions);
}

/* A uniform deep scene: its counts are not those of any node, and reach 2^63. */
static void uniform_regions(struct gpu_env *env)
{
    struct vxd_svdag_format format = {21, 4, true};
    int64_t all = (int64_t)1 << 29;
    struct vxd_svdag_region regions[3] = {
        {{0, 0, 0}, {all, all, all}, {0, 0, 0}, -1},
        {{-5, -5, -5}, {256 * 10, all, 256}, {0, 0, 0}, -1},
        {{0, 0, 0}, {0, 0, 0}, {all / 2, all / 2, all / 2}, 256 * 20}};
    uint64_t volumes[3] = {(uint64_t)1 << 63, (uint64_t)10 << 21, 0};
    struct model model = {.format = format};

    gpu_svdag_scene_build(env->queue, &format, NULL, 0, &model.scene);
    volumes[2] = deep_volume(regions + 2, (int64_t)1 << 21);
    for (uint32_t value = 14; value <= 15; value++) {
        uint64_t counts[6] = {0};
        uint8_t states[3];

        model.scene.root = VXD_SVDAG_UNIFORM | value;
        for (int i = 0; i < 3; i++) {
            counts[2 * i + (value == 15)] = volumes[i];
            states[i] = value == 15 ? VXD_SVDAG_FREE : VXD_SVDAG_OCCUPIED;
        }
        compare_regions(env, &model, regions, 3, states, counts);
    }
    gpu_svdag_scene_free(env->queue, &model.scene);
}

static void test_regions_of_uniform_scenes_are_their_volume(void)
{
    gpu_each_backend(uniform_regions);
}

/* A ball without a radius has the voxel whose centre it is at, and none beside it. */
static void single_points(struct gpu_env *env)
{
    struct vxd_svdag_format format = {6, 4, true};
    struct vxd_svdag_region regions[4] = {
        {{0, 0, 0}, {0, 0, 0}, {128, 128, 128}, 0},
        {{0, 0, 0}, {0, 0, 0}, {63 * 256 + 128, 5 * 256 + 128, 128}, 0},
        {{0, 0, 0}, {0, 0, 0}, {128, 129, 128}, 0},
        {{0, 0, 0}, {256 * 64, 256 * 64, 256 * 64}, {-128, 128, 128}, 0}};
    const uint64_t counts[8] = {1, 0, 1};
    const uint8_t states[4] = {VXD_SVDAG_OCCUPIED, VXD_SVDAG_OCCUPIED};
    struct model model = {.format = format};

    gpu_svdag_scene_build(env->queue, &format, NULL, 0, &model.scene);
    model.scene.root = VXD_SVDAG_UNIFORM | 14;
    compare_regions(env, &model, regions, 4, states, counts);
    gpu_svdag_scene_free(env->queue, &model.scene);
}

static void test_region_without_a_radius_is_one_voxels_centre(void)
{
    gpu_each_backend(single_points);
}

/* --- beside edits ---------------------------------------------------------------------- */

struct edits {
    struct vxd_queue *queue;
    struct vxd_svdag *svdag;
    uint32_t root;
    int n;
    bool is_fine;
};

/* Adds overlapping balls that always need new nodes. */
static void *edit_thread(void *context)
{
    struct edits *edits = context;
    uint64_t state = 4;

    edits->is_fine = true;
    for (int i = 0; i < edits->n && edits->is_fine; i++) {
        struct vxd_svdag_op op = {.action = i % 3 == 0 ? VXD_SVDAG_ERASE : VXD_SVDAG_FILL,
                                  .value = (uint32_t)i % 16};
        struct vxd_svdag_edit_result result;

        op.shape.kind = VXD_SVDAG_BALL;
        op.shape.r = (int64_t)(gpu_random(&state) % 8000);
        for (int axis = 0; axis < 3; axis++) {
            op.shape.a[axis] = (int64_t)(gpu_random(&state) % (256 << 9));
        }
        edits->is_fine = vxd_svdag_edit_wait(edits->queue, edits->svdag, edits->root, &op,
                                             1, &result, NULL) == VXD_OK;
        edits->root = edits->is_fine ? result.root : edits->root;
    }
    return NULL;
}

/* Adds the voxels of a model one by one to a scene that can be edited on any backend. */
static bool make_editable(struct gpu_env *env, const struct model *model,
                          struct edits *out)
{
    struct vxd_svdag_spec spec = {.format = model->format,
                                  .store = gpu_svdag_store(&model->format)};
    struct vxd_svdag_op *ops = gpu_alloc(model->n * sizeof *ops);
    struct vxd_svdag_edit_result result;
    bool is_made;

    for (size_t i = 0; i < model->n; i++) {
        uint32_t at[3];

        ops[i] =
            (struct vxd_svdag_op){.value = model->voxels[i].code - GPU_SVDAG_MATERIAL};
        gpu_svdag_unmorton(model->voxels[i].morton, at);
        for (int axis = 0; axis < 3; axis++) {
            ops[i].shape.low[axis] = (int64_t)at[axis] * VXD_SVDAG_UNIT;
            ops[i].shape.high[axis] = ops[i].shape.low[axis] + VXD_SVDAG_UNIT;
        }
    }
    is_made = vxd_svdag_create(env->queue, &spec, &out->svdag, NULL) == VXD_OK &&
              vxd_svdag_edit_wait(env->queue, out->svdag, VXD_SVDAG_EMPTY, ops, model->n,
                                  &result, NULL) == VXD_OK &&
              result.n_added == model->n;
    out->root = is_made ? result.root : VXD_SVDAG_EMPTY;
    free(ops);
    return is_made;
}

static void queries_beside_edits(struct gpu_env *env)
{
    struct vxd_svdag_format format = {9, 4, false};
    struct vxd_svdag_region all = {
        {0, 0, 0}, {256 << 9, 256 << 9, 256 << 9}, {0, 0, 0}, -1};
    struct edits edits = {.n = 60};
    struct model model;
    struct model edited;
    pthread_t thread;
    void *joined;

    model_open(env, &format, 15, &model);
    REQUIRE(make_editable(env, &model, &edits));
    edited = model;
    edited.scene.svdag = edits.svdag;
    edited.scene.root = edits.root;
    REQUIRE(vxd_queue_create(env->context, &edits.queue, NULL) == VXD_OK);
    REQUIRE(pthread_create(&thread, NULL, edit_thread, &edits) == 0);
    for (int round = 0; round < 20; round++) {
        uint64_t counts[2] = {model.n, 0};
        uint8_t states = VXD_SVDAG_OCCUPIED | VXD_SVDAG_UNKNOWN;

        nearest_in_model(env, &edited);
        compare_regions(env, &edited, &all, 1, &states, counts);
    }
    CHECK(pthread_join(thread, &joined) == 0);
    CHECK(edits.is_fine);
    CHECK(edits.root != edited.scene.root);
    nearest_in_model(env, &edited);
    vxd_queue_destroy(edits.queue);
    vxd_svdag_destroy(env->queue, edits.svdag);
    model_close(env, &model);
}

static void test_queries_beside_edits_answer_for_their_root(void)
{
    gpu_each_backend(queries_beside_edits);
}

static void test_query_without_arrays_is_refused(void)
{
    struct vxd_svdag_format format = {4, 0, false};
    struct gpu_svdag_scene scene;
    struct gpu_env env;
    struct vxd_err err = {0};
    struct vxd_queue *queue;

    gpu_env_create(&env, VXD_BACKEND_CPU, 1, 0, 0);
    queue = env.queue;
    gpu_svdag_scene_build(queue, &format, NULL, 0, &scene);
    CHECK(vxd_svdag_values(queue, scene.svdag, 0, NULL, 0, NULL, NULL, &err) == VXD_OK);
    CHECK(vxd_svdag_values(queue, scene.svdag, 0, NULL, 1, NULL, NULL, &err) ==
          VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, "voxels");
    CHECK(vxd_svdag_cast_rays(queue, scene.svdag, 0, NULL, NULL, NULL, 1, NULL, &err) ==
          VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, "origins");
    CHECK(vxd_svdag_nearest(queue, scene.svdag, 0, NULL, NULL, 1, NULL, NULL, NULL,
                            &err) == VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, "points");
    CHECK(vxd_svdag_overlap(queue, scene.svdag, 0, NULL, 1, NULL, &err) ==
          VXD_INVALID_ARGUMENT);
    CHECK(vxd_svdag_count(queue, scene.svdag, 0, NULL, 1, NULL, &err) ==
          VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, "regions");
    CHECK(vxd_queue_wait(queue, &err) == VXD_OK);
    gpu_svdag_scene_free(queue, &scene);
    gpu_env_destroy(&env);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_values_at_any_index_are_the_voxels),
    VXD_TEST(test_nearest_of_any_point_is_the_loops_first_of_equals),
    VXD_TEST(test_regions_overlap_and_hold_what_loops_count),
    VXD_TEST(test_regions_of_uniform_scenes_are_their_volume),
    VXD_TEST(test_region_without_a_radius_is_one_voxels_centre),
    VXD_TEST(test_queries_beside_edits_answer_for_their_root),
    VXD_TEST(test_query_without_arrays_is_refused),
};

VXD_TEST_MAIN(tests)
