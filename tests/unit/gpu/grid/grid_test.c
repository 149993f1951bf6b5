// SPDX-License-Identifier: Apache-2.0
/* Grids, against loops over all voxels of dense scenes and of sparse deep ones; costs against the
 * distances to all obstacles; clusters against a flood. Grids are made at once and in parts. */
#include "tests/support/test.h"

#include <math.h>

#include "gpu/grid/grid.h"
#include "gpu/svdag/diff/diff.h"
#include "tests/support/failing_alloc.h"
#include "tests/support/gpu/gpu_helpers.h"
#include "tests/support/svdag/svdag_scene.h"

enum {
    N_FORMATS = 7
};

static const struct vxd_svdag_format formats[N_FORMATS] = {
    {4, 0, false}, {6, 0, true},   {5, 4, true},  {6, 4, true},
    {5, 8, true},  {17, 0, false}, {21, 16, true}};

/* A scene, and what its voxels are. */
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

/* A grid by a loop over the set voxels. */
struct expected {
    uint32_t n_x, n_y;
    uint8_t *states;
    int32_t *low, *top;
    double *sum;
    double *n;
};

static void expect(const struct model *model, const struct vxd_grid_box *box,
                   struct expected *out)
{
    size_t n_cells;

    out->n_x = (uint32_t)(box->high[0] - box->low[0]);
    out->n_y = (uint32_t)(box->high[1] - box->low[1]);
    n_cells = (size_t)out->n_x * out->n_y;
    out->states = gpu_alloc(n_cells);
    out->low = gpu_alloc(n_cells * sizeof *out->low);
    out->top = gpu_alloc(n_cells * sizeof *out->top);
    out->sum = gpu_alloc(n_cells * sizeof *out->sum);
    out->n = gpu_alloc(n_cells * sizeof *out->n);
    for (size_t i = 0; i < n_cells; i++) {
        out->states[i] = VXD_SVDAG_UNKNOWN;
        out->low[i] = INT32_MAX;
        out->top[i] = INT32_MIN;
        out->sum[i] = 0;
        out->n[i] = 0;
    }
    for (size_t i = 0; i < model->n; i++) {
        uint32_t at[3];
        bool is_in = true;
        size_t cell;

        gpu_svdag_unmorton(model->voxels[i].morton, at);
        for (int axis = 0; axis < 3; axis++) {
            is_in = is_in && at[axis] >= box->low[axis] && at[axis] < box->high[axis];
        }
        if (!is_in) {
            continue;
        }
        cell = (size_t)(at[1] - box->low[1]) * out->n_x + (size_t)(at[0] - box->low[0]);
        if (model->voxels[i].code == GPU_SVDAG_FREE) {
            out->states[cell] = out->states[cell] == VXD_SVDAG_OCCUPIED
                                    ? VXD_SVDAG_OCCUPIED
                                    : VXD_SVDAG_FREE;
            continue;
        }
        out->states[cell] = VXD_SVDAG_OCCUPIED;
        out->low[cell] =
            (int32_t)at[2] < out->low[cell] ? (int32_t)at[2] : out->low[cell];
        out->top[cell] =
            (int32_t)at[2] > out->top[cell] ? (int32_t)at[2] : out->top[cell];
        out->sum[cell] += at[2];
        out->n[cell] += 1;
    }
}

static void expected_free(struct expected *expected)
{
    free(expected->states);
    free(expected->low);
    free(expected->top);
    free(expected->sum);
    free(expected->n);
}

/* Rows in n_parts parts, the last first. */
static struct vxd_grid_rows part_of(uint32_t n, uint32_t part, uint32_t n_parts)
{
    struct vxd_grid_rows rows = {(uint32_t)((uint64_t)n * (n_parts - 1 - part) / n_parts),
                                 (uint32_t)((uint64_t)n * (n_parts - part) / n_parts)};

    return rows;
}

static void check_states(struct gpu_env *env, const struct model *model,
                         const struct vxd_grid_box *box, const struct expected *expected)
{
    size_t n = (size_t)expected->n_x * expected->n_y;

    for (uint32_t n_parts = 1; n_parts < 4; n_parts += 2) {
        struct vxd_buffer d = gpu_to_device(env, NULL, n + 1);
        uint8_t *got;

        for (uint32_t part = 0; part < n_parts; part++) {
            struct vxd_grid_rows rows = part_of(expected->n_y, part, n_parts);

            CHECK(vxd_grid_states(env->queue, model->scene.svdag, model->scene.root, box,
                                  &rows, d.ptr, NULL) == VXD_OK);
        }
        got = gpu_to_host(env, &d);
        CHECK(memcmp(got, expected->states, n) == 0);
        CHECK_INT(got[n], 0xa5);
        free(got);
        vxd_device_free(env->queue, &d);
    }
}

static bool same_float(float a, double b)
{
    return isnan(a) ? isnan(b) : a == (float)b;
}

/* The slope by the definition of grid.h, in metres a metre. */
static double expected_slope(const struct expected *e, uint32_t x, uint32_t y)
{
    double squares = 0;

    if (e->n[y * e->n_x + x] == 0) {
        return NAN;
    }
    for (int axis = 0; axis < 2; axis++) {
        size_t apart = axis == 0 ? 1 : e->n_x;
        size_t cell = (size_t)y * e->n_x + x;
        bool has_low = (axis == 0 ? x : y) > 0 && e->n[cell - apart] > 0;
        bool has_high =
            (axis == 0 ? x + 1 < e->n_x : y + 1 < e->n_y) && e->n[cell + apart] > 0;
        size_t low = has_low ? cell - apart : cell;
        size_t high = has_high ? cell + apart : cell;
        double run = (has_low ? 1 : 0) + (has_high ? 1 : 0);
        double rise = (double)e->top[high] - (double)e->top[low];

        squares += run == 0 ? NAN : rise / run * (rise / run);
    }
    return sqrt(squares);
}

static void check_heights(struct gpu_env *env, const struct model *model,
                          const struct vxd_grid_box *box, const struct expected *expected)
{
    size_t n = (size_t)expected->n_x * expected->n_y;
    struct vxd_buffer d = gpu_to_device(env, NULL, 5 * n * sizeof(float) + 1);
    float *at = d.ptr;
    struct vxd_grid_heights heights = {-3.5,   0.1,        at,
                                       at + n, at + 2 * n, (int32_t *)(at + 3 * n)};
    unsigned n_wrong = 0;
    float *got;

    for (uint32_t part = 0; part < 3; part++) {
        struct vxd_grid_rows rows = part_of(expected->n_y, part, 3);

        CHECK(vxd_grid_heights(env->queue, model->scene.svdag, model->scene.root, box,
                               &rows, &heights, NULL) == VXD_OK);
    }
    for (uint32_t part = 0; part < 2; part++) {
        struct vxd_grid_rows rows = part_of(expected->n_y, part, 2);

        CHECK(vxd_grid_slope(env->queue, heights.top, expected->n_x, expected->n_y, &rows,
                             at + 4 * n, NULL) == VXD_OK);
    }
    got = gpu_to_host(env, &d);
    for (size_t i = 0; i < n; i++) {
        bool has = expected->n[i] > 0;
        double mean = has ? expected->sum[i] / expected->n[i] : NAN;
        int32_t top;

        memcpy(&top, &got[3 * n + i], sizeof top);
        n_wrong += !same_float(got[i], has ? -3.5 + (expected->low[i] + 0.5) * 0.1 : NAN);
        n_wrong +=
            !same_float(got[n + i], has ? -3.5 + (expected->top[i] + 0.5) * 0.1 : NAN);
        n_wrong += !same_float(got[2 * n + i], -3.5 + (mean + 0.5) * 0.1);
        n_wrong += top != expected->top[i];
        n_wrong += !(fabs(got[4 * n + i] -
                          expected_slope(expected, (uint32_t)(i % expected->n_x),
                                         (uint32_t)(i / expected->n_x))) <=
                     1e-6 * fabs((double)got[4 * n + i])) &&
                   !(isnan(got[4 * n + i]) &&
                     isnan(expected_slope(expected, (uint32_t)(i % expected->n_x),
                                          (uint32_t)(i / expected->n_x))));
    }
    CHECK_INT(n_wrong, 0);
    free(got);
    vxd_device_free(env->queue, &d);
}

/* A box around a random set voxel, or anywhere; sides of up to 90 cells. */
static void random_box(const struct model *model, int i, uint64_t *state,
                       struct vxd_grid_box *box)
{
    int64_t side = (int64_t)1 << model->format.depth;
    uint32_t at[3];

    gpu_svdag_unmorton(model->voxels[gpu_random(state) % model->n].morton, at);
    for (int axis = 0; axis < 3; axis++) {
        int64_t size = 1 + (int64_t)(gpu_random(state) % 90);

        box->low[axis] =
            (int64_t)at[axis] - (int64_t)(gpu_random(state) % (uint64_t)size);
        box->high[axis] = box->low[axis] + size;
        if (i == 0) { /* all heights of a small scene, and around it */
            box->low[axis] = side <= 64 ? -3 : box->low[axis];
            box->high[axis] = side <= 64 ? side + 5 : box->high[axis];
        }
    }
    if (i == 1) { /* all heights of any scene */
        box->low[2] = INT64_MIN;
        box->high[2] = INT64_MAX;
    }
    if (i == 2) { /* beside the scene */
        box->low[0] = side;
        box->high[0] = side + 20;
    }
}

static void columns_of_backend(struct gpu_env *env)
{
    for (int f = 0; f < N_FORMATS; f++) {
        uint64_t state = 11;
        struct model model;

        model_open(env, &formats[f], (uint64_t)f + 1, &model);
        for (int i = 0; i < 3 + vxd_test_rounds(12); i++) {
            struct vxd_grid_box box;
            struct expected expected;

            random_box(&model, i, &state, &box);
            expect(&model, &box, &expected);
            check_states(env, &model, &box, &expected);
            check_heights(env, &model, &box, &expected);
            expected_free(&expected);
        }
        model_close(env, &model);
    }
}

static void test_columns_are_those_of_loops_over_voxels(void)
{
    gpu_each_backend(columns_of_backend);
}

static void whole_roots(struct gpu_env *env)
{
    const struct vxd_svdag_format format = {21, 4, true};
    const struct vxd_grid_box box = {{-2, 5, 100}, {7, 9, INT64_MAX}};
    const struct vxd_grid_rows rows = {0, 4};
    struct model model;
    struct vxd_buffer d = gpu_to_device(env, NULL, 36);
    struct vxd_buffer d_heights = gpu_to_device(env, NULL, 4 * 36 * sizeof(float));
    float *at = d_heights.ptr;
    const struct vxd_grid_heights heights = {0,       1,       at,
                                             at + 36, at + 72, (int32_t *)(at + 108)};
    static const uint32_t roots[3] = {VXD_SVDAG_EMPTY, VXD_SVDAG_UNIFORM | 3,
                                      VXD_SVDAG_UNIFORM | 15};
    static const uint8_t states[3] = {VXD_SVDAG_UNKNOWN, VXD_SVDAG_OCCUPIED,
                                      VXD_SVDAG_FREE};

    model_open(env, &format, 1, &model);
    for (int i = 0; i < 3; i++) {
        uint8_t *got;
        float *got_heights;

        CHECK(vxd_grid_states(env->queue, model.scene.svdag, roots[i], &box, &rows, d.ptr,
                              NULL) == VXD_OK);
        CHECK(vxd_grid_heights(env->queue, model.scene.svdag, roots[i], &box, &rows,
                               &heights, NULL) == VXD_OK);
        got = gpu_to_host(env, &d);
        got_heights = gpu_to_host(env, &d_heights);
        CHECK_INT(got[0], VXD_SVDAG_UNKNOWN); /* beside the scene */
        CHECK_INT(got[2], states[i]);
        CHECK_INT(got[35], states[i]);
        CHECK(i == 1 ? got_heights[2] == 100.5F && got_heights[38] == 2097151.5F &&
                           got_heights[74] == 1048626.0F
                     : isnan(got_heights[2]));
        CHECK(isnan(got_heights[1]));
        free(got_heights);
        free(got);
    }
    model_close(env, &model);
    vxd_device_free(env->queue, &d_heights);
    vxd_device_free(env->queue, &d);
}

static void test_empty_and_uniform_scenes_have_columns(void)
{
    gpu_each_backend(whole_roots);
}

/* --- costs ------------------------------------------------------------------------------- */

static void test_cost_table_is_nav2s(void)
{
    struct vxd_grid_inflation inflation = {0.05, 0.325, 0.55, 3.0};
    static uint8_t costs[VXD_GRID_COST_ENTRIES];
    struct vxd_err err = {0};
    uint32_t radius = 0;

    REQUIRE(vxd_grid_cost_table(&inflation, &radius, costs, &err) == VXD_OK);
    CHECK_INT(radius, 11);
    CHECK_INT(costs[0], 254);
    CHECK_INT(costs[1], 253);
    CHECK_INT(costs[36], 253); /* 0.30 m */
    /* (unsigned char)(252 * exp(-3 * (d - 0.325))) of d = 0.35, 0.40, 0.55 m */
    CHECK_INT(costs[49], 233);
    CHECK_INT(costs[64], 201);
    CHECK_INT(costs[121], 128);
    inflation.inflation_m = 0.3;
    CHECK_INT(vxd_grid_cost_table(&inflation, &radius, costs, &err),
              VXD_INVALID_ARGUMENT);
    CHECK_STR(err.message, "0.3 m is less than the robot's radius, 0.325 m");
    inflation.inflation_m = 9.1;
    CHECK_INT(vxd_grid_cost_table(&inflation, &radius, costs, &err),
              VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, "inflation_m");
    inflation.scale = NAN;
    CHECK_INT(vxd_grid_cost_table(&inflation, &radius, costs, &err),
              VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, "scale");
}

/* The cost of a cell by the distances to all obstacles. */
static uint8_t expected_cost(const uint8_t *states, uint32_t n_x, uint32_t n_y,
                             uint32_t cell, uint32_t radius, const uint8_t *costs,
                             enum vxd_grid_unknown unknown)
{
    uint32_t nearest = UINT32_MAX;
    uint8_t cost;

    for (uint32_t i = 0; i < n_x * n_y; i++) {
        if (states[i] == VXD_SVDAG_OCCUPIED ||
            (unknown == VXD_GRID_UNKNOWN_LETHAL && states[i] == VXD_SVDAG_UNKNOWN)) {
            int64_t dx = (int64_t)(i % n_x) - (int64_t)(cell % n_x);
            int64_t dy = (int64_t)(i / n_x) - (int64_t)(cell / n_x);
            uint32_t square = (uint32_t)(dx * dx + dy * dy);

            nearest = square < nearest ? square : nearest;
        }
    }
    cost = nearest <= radius * radius ? costs[nearest] : 0;
    if (states[cell] == VXD_SVDAG_UNKNOWN && unknown == VXD_GRID_UNKNOWN_KEPT &&
        cost < 253) {
        return 255;
    }
    return cost;
}

static void check_costs(struct gpu_env *env, uint32_t n_x, uint32_t n_y, uint32_t radius,
                        uint64_t seed, enum vxd_grid_unknown unknown)
{
    const struct vxd_grid_inflation inflation = {1, radius / 3.0, radius, 0.05};
    static uint8_t costs[VXD_GRID_COST_ENTRIES];
    size_t n = (size_t)n_x * n_y;
    uint8_t *states = gpu_alloc(n);
    struct vxd_buffer d_states;
    struct vxd_buffer d_costs;
    struct vxd_buffer d_squares = gpu_to_device(env, NULL, n * sizeof(uint16_t));
    struct vxd_buffer d_out = gpu_to_device(env, NULL, n + 1);
    uint32_t radius_made = 0;
    unsigned n_wrong = 0;
    uint8_t *got;

    CHECK(vxd_grid_cost_table(&inflation, &radius_made, costs, NULL) == VXD_OK);
    CHECK_INT(radius_made, radius);
    for (size_t i = 0; i < n; i++) {
        uint64_t r = gpu_random(&seed);

        states[i] = r % 97 == 0          ? VXD_SVDAG_OCCUPIED
                    : r / 97 % 3000 == 0 ? VXD_SVDAG_UNKNOWN
                    : i / n_x % 8 < 2    ? VXD_SVDAG_UNKNOWN
                                         : VXD_SVDAG_FREE;
        if (unknown == VXD_GRID_UNKNOWN_LETHAL && r % 5 != 0 &&
            states[i] == VXD_SVDAG_UNKNOWN) {
            states[i] = VXD_SVDAG_FREE;
        }
    }
    d_states = gpu_to_device(env, states, n);
    d_costs = gpu_to_device(env, costs, radius * radius + 1);
    for (uint32_t part = 0; part < 3; part++) {
        struct vxd_grid_rows rows = part_of(n_y, part, 3);

        CHECK(vxd_grid_row_squares(env->queue, d_states.ptr, n_x, n_y, &rows, radius,
                                   unknown, d_squares.ptr, NULL) == VXD_OK);
    }
    for (uint32_t part = 0; part < 2; part++) {
        struct vxd_grid_rows rows = part_of(n_y, part, 2);

        CHECK(vxd_grid_costs(env->queue, d_states.ptr, d_squares.ptr, n_x, n_y, &rows,
                             radius, unknown, d_costs.ptr, d_out.ptr, NULL) == VXD_OK);
    }
    got = gpu_to_host(env, &d_out);
    for (uint32_t i = 0; i < n; i += (uint32_t)vxd_test_slow()) {
        n_wrong += got[i] != expected_cost(states, n_x, n_y, i, radius, costs, unknown);
    }
    CHECK_INT(n_wrong, 0);
    CHECK_INT(got[n], 0xa5);
    free(got);
    vxd_device_free(env->queue, &d_out);
    vxd_device_free(env->queue, &d_squares);
    vxd_device_free(env->queue, &d_costs);
    vxd_device_free(env->queue, &d_states);
    free(states);
}

static void costs_of_backend(struct gpu_env *env)
{
    check_costs(env, 1, 1, 0, 1, VXD_GRID_UNKNOWN_KEPT);
    check_costs(env, 33, 1, 5, 2, VXD_GRID_UNKNOWN_FREE);
    check_costs(env, 1, 70, 180, 3, VXD_GRID_UNKNOWN_KEPT);
    check_costs(env, 64, 31, 4, 4, VXD_GRID_UNKNOWN_LETHAL);
    check_costs(env, 97, 50, 11, 5, VXD_GRID_UNKNOWN_KEPT);
    check_costs(env, 97, 50, 60, 6, VXD_GRID_UNKNOWN_FREE);
    check_costs(env, 1100, 4, 180, 7, VXD_GRID_UNKNOWN_KEPT);
}

static void test_costs_are_those_of_the_nearest_obstacle(void)
{
    gpu_each_backend(costs_of_backend);
}

/* --- frontiers --------------------------------------------------------------------------- */

static bool is_frontier(const uint8_t *states, const uint32_t n[3], const uint32_t at[3])
{
    if (states[(at[0] * n[1] + at[1]) * n[2] + at[2]] != VXD_SVDAG_FREE) {
        return false;
    }
    for (int side = 0; side < 6; side++) {
        uint32_t to[3] = {at[0], at[1], at[2]};

        to[side / 2] += side % 2 == 0 ? 1 : UINT32_MAX;
        if (to[side / 2] < n[side / 2] &&
            states[(to[0] * n[1] + to[1]) * n[2] + to[2]] == VXD_SVDAG_UNKNOWN) {
            return true;
        }
    }
    return false;
}

/* Gives the cells of one cluster a label, by a flood from one of them. */
static uint64_t flood(uint8_t *marked, const uint32_t n[3], uint32_t start,
                      uint32_t *labels, uint32_t label, double sums[3])
{
    uint32_t *stack = gpu_alloc((size_t)n[0] * n[1] * n[2] * sizeof *stack);
    size_t n_stack = 1;
    uint64_t n_cells = 0;

    stack[0] = start;
    marked[start] = 0;
    while (n_stack > 0) {
        uint32_t cell = stack[--n_stack];
        uint32_t at[3] = {cell / n[2] / n[1], cell / n[2] % n[1], cell % n[2]};

        labels[cell] = label;
        n_cells++;
        for (int axis = 0; axis < 3; axis++) {
            sums[axis] += at[axis];
        }
        for (int i = 0; i < 27; i++) {
            uint32_t to[3] = {at[0] + (uint32_t)(i / 9) - 1,
                              at[1] + (uint32_t)(i / 3 % 3) - 1,
                              at[2] + (uint32_t)(i % 3) - 1};
            uint32_t other = (to[0] * n[1] + to[1]) * n[2] + to[2];

            if (to[0] < n[0] && to[1] < n[1] && to[2] < n[2] && marked[other]) {
                marked[other] = 0;
                stack[n_stack++] = other;
            }
        }
    }
    free(stack);
    return n_cells;
}

static void check_clusters(struct gpu_env *env, const uint8_t *states,
                           const uint32_t n[3], const uint32_t *marks, uint64_t min_cells)
{
    uint32_t n_cells = n[0] * n[1] * n[2];
    uint8_t *marked = gpu_alloc(n_cells);
    uint32_t *labels = gpu_alloc(n_cells * sizeof *labels);
    uint32_t *cells;
    uint32_t *of_cluster;
    struct vxd_clusters *clusters = NULL;
    const struct vxd_cluster *list = NULL;
    size_t n_list = 0;
    size_t n_kept = 0;
    size_t n_wrong = 0;

    for (uint32_t i = 0; i < n_cells; i++) {
        const uint32_t at[3] = {i / n[2] / n[1], i / n[2] % n[1], i % n[2]};

        marked[i] = is_frontier(states, n, at);
        labels[i] = UINT32_MAX;
        n_wrong += marked[i] != (marks[i / 32] >> i % 32 & 1);
    }
    CHECK_INT(n_wrong, 0);
    REQUIRE(vxd_clusters_create(vxd_queue_context(env->queue), marks, n, &clusters,
                                NULL) == VXD_OK);
    while (!vxd_clusters_step(clusters, 3)) {
    }
    REQUIRE(vxd_clusters_finish(clusters, min_cells, &list, &n_list, NULL) == VXD_OK);
    for (size_t i = 0; i < n_list; i++) {
        double sums[3] = {0, 0, 0};

        REQUIRE(marked[list[i].first]);
        CHECK_INT(list[i].n_cells,
                  flood(marked, n, (uint32_t)list[i].first, labels, (uint32_t)i, sums));
        CHECK(list[i].n_cells >= min_cells);
        CHECK(i == 0 || list[i].n_cells < list[i - 1].n_cells ||
              (list[i].n_cells == list[i - 1].n_cells &&
               list[i].first > list[i - 1].first));
        for (int axis = 0; axis < 3; axis++) {
            CHECK(list[i].centre[axis] == sums[axis] / (double)list[i].n_cells);
        }
        n_kept += (size_t)list[i].n_cells;
    }
    REQUIRE(vxd_clusters_n_cells(clusters) == n_kept);
    cells = gpu_alloc((n_kept + 1) * sizeof *cells);
    of_cluster = gpu_alloc((n_kept + 1) * sizeof *of_cluster);
    vxd_clusters_cells(clusters, cells, of_cluster);
    for (size_t i = 0; i < n_kept; i++) {
        n_wrong +=
            labels[cells[i]] != of_cluster[i] || (i > 0 && cells[i] <= cells[i - 1]);
    }
    CHECK_INT(n_wrong, 0);
    /* What is left over is smaller. */
    for (uint32_t i = 0; i < n_cells; i++) {
        double sums[3] = {0, 0, 0};

        CHECK(!marked[i] || flood(marked, n, i, labels, 0, sums) < min_cells);
    }
    free(of_cluster);
    free(cells);
    vxd_clusters_destroy(clusters);
    free(labels);
    free(marked);
}

/* Marks of an array, made in two parts; freed by the caller. */
static uint32_t *make_marks(struct gpu_env *env, const struct vxd_buffer *states,
                            const uint32_t n[3])
{
    uint32_t n_words = (n[0] * n[1] * n[2] + 31) / 32;
    struct vxd_buffer d = gpu_to_device(env, NULL, n_words * sizeof(uint32_t));
    uint32_t *marks;

    for (uint32_t part = 0; part < 2; part++) {
        struct vxd_grid_rows words = part_of(n_words, part, 2);

        CHECK(vxd_grid_mark_frontiers(env->queue, states->ptr, n, &words, d.ptr, NULL) ==
              VXD_OK);
    }
    marks = gpu_to_host(env, &d);
    vxd_device_free(env->queue, &d);
    return marks;
}

static void frontiers_of_backend(struct gpu_env *env)
{
    static const uint32_t shapes[5][3] = {
        {1, 1, 1}, {1, 40, 53}, {1, 1, 33}, {7, 20, 18}, {31, 2, 9}};
    uint64_t seed = 8;

    for (int s = 0; s < 5; s++) {
        uint32_t n = shapes[s][0] * shapes[s][1] * shapes[s][2];
        uint8_t *states = gpu_alloc(n);
        struct vxd_buffer d;
        uint32_t *marks;

        for (uint32_t i = 0; i < n; i++) {
            uint64_t r = gpu_random(&seed) % 100;

            states[i] = r < 6    ? VXD_SVDAG_UNKNOWN
                        : r < 60 ? VXD_SVDAG_FREE
                                 : VXD_SVDAG_OCCUPIED;
        }
        d = gpu_to_device(env, states, n);
        marks = make_marks(env, &d, shapes[s]);
        check_clusters(env, states, shapes[s], marks, 1);
        check_clusters(env, states, shapes[s], marks, 3);
        free(marks);
        vxd_device_free(env->queue, &d);
        free(states);
    }
}

static void test_frontiers_and_clusters_are_those_of_a_flood(void)
{
    gpu_each_backend(frontiers_of_backend);
}

/* A dense array of a scene, through its export. */
static void frontiers_of_scene(struct gpu_env *env)
{
    const struct vxd_svdag_format format = {5, 4, true};
    const struct vxd_svdag_export box = {{3, 1, 0}, {32, 30, 27}, 0, false};
    const uint32_t n[3] = {29, 29, 27};
    struct vxd_buffer d = gpu_to_device(env, NULL, (size_t)29 * 29 * 27);
    struct model model;
    uint32_t *marks;
    uint8_t *states;

    model_open(env, &format, 4, &model);
    CHECK(vxd_svdag_export_dense(env->queue, model.scene.svdag, model.scene.root, &box,
                                 d.ptr, NULL, NULL) == VXD_OK);
    marks = make_marks(env, &d, n);
    states = gpu_to_host(env, &d);
    check_clusters(env, states, n, marks, 2);
    free(states);
    free(marks);
    model_close(env, &model);
    vxd_device_free(env->queue, &d);
}

static void test_frontiers_of_a_scene_in_space(void)
{
    gpu_each_backend(frontiers_of_scene);
}

/* Joins two marks with allocation k failing, on a context that keeps no blocks yet; false once none
 * fails. */
static bool fail_one(long k)
{
    static const uint32_t marks[2] = {0x80000001u, 1u};
    static const uint32_t n[3] = {1, 2, 20};
    struct vxd_clusters *clusters = NULL;
    const struct vxd_cluster *list = NULL;
    struct vxd_err err = {0};
    struct gpu_env env;
    size_t n_list = 0;
    enum vxd_status status;
    bool reached;

    gpu_env_create(&env, VXD_BACKEND_CPU, 1, 0, 0);
    fail_allocation(k);
    status = vxd_clusters_create(env.context, marks, n, &clusters, &err);
    if (status == VXD_OK) {
        CHECK(vxd_clusters_step(clusters, 2));
        status = vxd_clusters_finish(clusters, 1, &list, &n_list, &err);
    }
    reached = stop_failing();
    CHECK_INT(status, reached ? VXD_RESOURCE_EXHAUSTED : VXD_OK);
    CHECK(reached ? err.message[0] != '\0' : n_list == 2);
    vxd_clusters_destroy(clusters);
    gpu_env_destroy(&env);
    return reached;
}

static void test_clusters_without_memory_are_refused(void)
{
    long k = 0;

    while (fail_one(k)) {
        k++;
    }
    CHECK(k >= 5);
}

static void test_more_frontier_cells_than_are_joined_are_refused(void)
{
    static const uint32_t n[3] = {1, 4096, 2048};
    size_t n_words = VXD_GRID_MAX_FRONTIER_CELLS / 32 + 1;
    uint32_t *marks = gpu_alloc((size_t)4096 * 2048 / 8);
    struct vxd_clusters *clusters = NULL;
    struct vxd_err err = {0};
    struct gpu_env env;

    gpu_env_create(&env, VXD_BACKEND_CPU, 1, 0, 0);
    memset(marks, 0, (size_t)4096 * 2048 / 8);
    memset(marks, 0xff, n_words * sizeof *marks);
    CHECK_INT(vxd_clusters_create(env.context, marks, n, &clusters, &err),
              VXD_RESOURCE_EXHAUSTED);
    CHECK_STR(err.field, "box");
    CHECK(clusters == NULL);
    gpu_env_destroy(&env);
    free(marks);
}

/* Cells that do not touch: as many clusters as are listed, one more, and those of a size that
 * none has. */
static void test_more_clusters_than_are_listed_are_refused(void)
{
    static const uint32_t n[3] = {1, 2048, 2048};
    const struct {
        size_t n_cells;
        uint64_t min_cells;
        enum vxd_status status;
        size_t n_list;
    } cases[3] = {{VXD_GRID_MAX_CLUSTERS, 1, VXD_OK, VXD_GRID_MAX_CLUSTERS},
                  {VXD_GRID_MAX_CLUSTERS + 1, 1, VXD_RESOURCE_EXHAUSTED, 0},
                  {VXD_GRID_MAX_CLUSTERS + 1, 2, VXD_OK, 0}};
    size_t n_bytes = (size_t)2048 * 2048 / 8;
    uint32_t *marks = gpu_alloc(n_bytes);
    struct gpu_env env;

    gpu_env_create(&env, VXD_BACKEND_CPU, 1, 0, 0);
    for (int k = 0; k < 3; k++) {
        struct vxd_clusters *clusters = NULL;
        const struct vxd_cluster *list = NULL;
        struct vxd_err err = {0};
        size_t n_list = 0;

        memset(marks, 0, n_bytes);
        for (size_t i = 0; i < cases[k].n_cells; i++) {
            size_t cell = i / 1024 * 2 * 2048 + i % 1024 * 2;

            marks[cell / 32] |= 1u << cell % 32;
        }
        REQUIRE(vxd_clusters_create(env.context, marks, n, &clusters, &err) == VXD_OK);
        while (!vxd_clusters_step(clusters, 4096)) {
        }
        CHECK_INT(vxd_clusters_finish(clusters, cases[k].min_cells, &list, &n_list, &err),
                  cases[k].status);
        CHECK_INT(n_list, cases[k].n_list);
        CHECK_STR(err.field, cases[k].status == VXD_OK ? "" : "min_cells");
        vxd_clusters_destroy(clusters);
    }
    gpu_env_destroy(&env);
    free(marks);
}

/* --- refusals ---------------------------------------------------------------------------- */

static void refusals(struct gpu_env *env)
{
    const struct vxd_svdag_format format = {4, 0, false};
    struct vxd_grid_box box = {{0, 0, 0}, {65537, 1, 1}};
    struct vxd_grid_rows rows = {0, 1};
    const uint32_t none[3] = {1, 0, 1};
    struct vxd_err err = {0};
    struct model model;
    uint8_t byte;

    model_open(env, &format, 1, &model);
    CHECK_INT(vxd_grid_states(env->queue, model.scene.svdag, 0, &box, &rows, &byte, &err),
              VXD_INVALID_ARGUMENT);
    CHECK_STR(err.message,
              "the grid has more than 65536 cells along x; take a smaller box");
    box.high[0] = 65536;
    box.high[1] = 2000;
    CHECK_INT(vxd_grid_check_box(&box, &err), VXD_INVALID_ARGUMENT);
    CHECK_STR(err.message, "the grid has 65536 x 2000 cells, at most 67108864 are "
                           "possible; take a smaller box");
    box.high[2] = 0;
    CHECK_INT(vxd_grid_check_box(&box, &err), VXD_INVALID_ARGUMENT);
    box.high[0] = 4;
    box.high[1] = 4;
    box.low[0] = INT64_MIN;
    CHECK_INT(vxd_grid_check_box(&box, &err), VXD_INVALID_ARGUMENT);
    box.low[0] = 0;
    box.high[2] = 1;
    rows.end = 5;
    CHECK_INT(vxd_grid_states(env->queue, model.scene.svdag, 0, &box, &rows, &byte, &err),
              VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, "rows");
    rows.end = 4;
    CHECK_INT(vxd_grid_states(env->queue, model.scene.svdag, 0, &box, &rows, NULL, &err),
              VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, "states");
    CHECK_INT(vxd_grid_row_squares(env->queue, &byte, 4, 4, &rows, 181,
                                   VXD_GRID_UNKNOWN_KEPT, (uint16_t *)(void *)&rows,
                                   &err),
              VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, "radius");
    CHECK_INT(vxd_grid_mark_frontiers(env->queue, &byte, none, &rows, NULL, &err),
              VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, "n");
    model_close(env, &model);
}

static void test_what_makes_no_grid_is_refused(void)
{
    gpu_each_backend(refusals);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_columns_are_those_of_loops_over_voxels),
    VXD_TEST(test_empty_and_uniform_scenes_have_columns),
    VXD_TEST(test_cost_table_is_nav2s),
    VXD_TEST(test_costs_are_those_of_the_nearest_obstacle),
    VXD_TEST(test_frontiers_and_clusters_are_those_of_a_flood),
    VXD_TEST(test_frontiers_of_a_scene_in_space),
    VXD_TEST(test_clusters_without_memory_are_refused),
    VXD_TEST(test_more_frontier_cells_than_are_joined_are_refused),
    VXD_TEST(test_more_clusters_than_are_listed_are_refused),
    VXD_TEST(test_what_makes_no_grid_is_refused),
};

VXD_TEST_MAIN(tests)
