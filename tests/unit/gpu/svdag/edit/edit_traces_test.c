// SPDX-License-Identifier: Apache-2.0
/* The recorded editing sessions of tests/data/svdag_traces, ball by ball and as lists: at
 * full scale against voxels counted by columns, and scaled down against a plain grid.
 * Recorded numbers are at half scale: positions and radii are doubled, and balls stand on
 * voxel centres. */
#include "tests/support/test.h"

#include <math.h>

#include "tests/support/svdag/svdag_grid.h"
#include "tests/support/svdag/svdag_run.h"
#include "tests/support/svdag/svdag_scene.h"

enum {
    MAX_BALLS = 256,
    DEPTH = 17,
    SMALL_DEPTH = 7,
    N_VALUES = 15,
    LIST = 5 /* balls per list */
};

struct ball {
    int64_t centre[3]; /* voxels */
    int64_t r;
    bool is_added;
};

struct trace {
    struct ball balls[MAX_BALLS];
    size_t n;
    uint64_t n_voxels; /* voxels of the union of all balls, if it was counted */
};

/* The session under test, global because functions run on each backend take no other
 * argument. */
static struct trace trace;

/* Lines other than balls (camera positions) are skipped. */
static void read_trace(const char *name)
{
    char path[128];
    size_t n_bytes = 0;
    char *bytes;
    char *text;

    (void)snprintf(path, sizeof path, "dag_traces/%s", name);
    bytes = gpu_read_test_data(path, &n_bytes);
    REQUIRE(bytes != NULL);
    text = gpu_alloc(n_bytes + 1);
    memcpy(text, bytes, n_bytes);
    text[n_bytes] = '\0';
    free(bytes);
    trace = (struct trace){0};
    for (const char *line = text; line != NULL && *line != '\0';) {
        double numbers[4];
        char is_added = '\0';

        if (sscanf(line, "EditSphere,%lf,%lf,%lf,%lf,%c", &numbers[0], &numbers[1],
                   &numbers[2], &numbers[3], &is_added) == 5) {
            struct ball *ball = &trace.balls[trace.n++];

            for (int axis = 0; axis < 3; axis++) {
                ball->centre[axis] = 2 * (int64_t)numbers[axis];
            }
            ball->r = 2 * (int64_t)numbers[3];
            ball->is_added = is_added == 't' || is_added == 'T';
        }
        line = strchr(line, '\n');
        line = line != NULL ? line + 1 : NULL;
    }
    free(text);
}

static struct vxd_svdag_op op_of(const struct ball *ball, size_t i)
{
    struct vxd_svdag_op op = {.action = ball->is_added ? VXD_SVDAG_FILL : VXD_SVDAG_ERASE,
                              .value = (uint32_t)(i % N_VALUES)};

    op.shape.kind = VXD_SVDAG_BALL;
    op.shape.r = ball->r * VXD_SVDAG_UNIT;
    for (int axis = 0; axis < 3; axis++) {
        op.shape.a[axis] = ball->centre[axis] * VXD_SVDAG_UNIT + VXD_SVDAG_UNIT / 2;
    }
    return op;
}

/* Counts by columns ------------------------------------------------------------------------ */

/* The integer square root of n. */
static int64_t root_of(int64_t n)
{
    int64_t root = (int64_t)sqrt((double)n);

    while (root * root > n) {
        root--;
    }
    while ((root + 1) * (root + 1) <= n) {
        root++;
    }
    return root;
}

struct interval {
    int64_t low;
    int64_t high; /* voxels in the column */
};

static int compare_intervals(const void *a, const void *b)
{
    int64_t left = ((const struct interval *)a)->low;
    int64_t right = ((const struct interval *)b)->low;

    return left < right ? -1 : left > right;
}

/* Voxels of one column that are in any ball. */
static uint64_t count_column(int64_t x, int64_t y)
{
    struct interval intervals[MAX_BALLS];
    size_t n = 0;
    int64_t end = INT64_MIN;
    uint64_t n_voxels = 0;

    for (size_t i = 0; i < trace.n; i++) {
        const struct ball *ball = &trace.balls[i];
        int64_t dx = x - ball->centre[0];
        int64_t dy = y - ball->centre[1];
        int64_t left = ball->r * ball->r - dx * dx - dy * dy;

        if (left >= 0) {
            int64_t half = root_of(left);

            intervals[n++] =
                (struct interval){ball->centre[2] - half, ball->centre[2] + half};
        }
    }
    if (n > 1) {
        qsort(intervals, n, sizeof intervals[0], compare_intervals);
    }
    for (size_t i = 0; i < n; i++) {
        int64_t low = intervals[i].low > end ? intervals[i].low : end + 1;

        if (intervals[i].high >= low) {
            n_voxels += (uint64_t)(intervals[i].high - low + 1);
            end = intervals[i].high;
        }
    }
    return n_voxels;
}

static void find_bounds(int64_t low[3], int64_t high[3])
{
    for (int axis = 0; axis < 3; axis++) {
        low[axis] = INT64_MAX;
        high[axis] = INT64_MIN;
        for (size_t i = 0; i < trace.n; i++) {
            int64_t c = trace.balls[i].centre[axis];
            int64_t r = trace.balls[i].r;

            low[axis] = c - r < low[axis] ? c - r : low[axis];
            high[axis] = c + r > high[axis] ? c + r : high[axis];
        }
    }
}

static uint64_t count_voxels(void)
{
    int64_t low[3];
    int64_t high[3];
    uint64_t n = 0;

    find_bounds(low, high);
    for (int64_t x = low[0]; x <= high[0]; x++) {
        for (int64_t y = low[1]; y <= high[1]; y++) {
            n += count_column(x, y);
        }
    }
    return n;
}

/* Full scale ------------------------------------------------------------------------------- */

static struct vxd_svdag *make_svdag(struct gpu_env *env, int depth)
{
    struct vxd_svdag_spec spec = {.format = {depth, 4, false}};

    spec.store = gpu_svdag_store(&spec.format);
    return gpu_svdag_create(env, &spec);
}

/* Applies all balls, n_list per edit; gives the last root and the number of voxels
 * added. */
static uint32_t edit_all(struct gpu_env *env, struct vxd_svdag *svdag, size_t n_list,
                         uint64_t *n_added)
{
    struct vxd_svdag_op ops[MAX_BALLS];
    uint32_t root = VXD_SVDAG_EMPTY;

    *n_added = 0;
    for (size_t i = 0; i < trace.n; i++) {
        ops[i] = op_of(&trace.balls[i], i);
    }
    for (size_t i = 0; i < trace.n; i += n_list) {
        size_t n = trace.n - i < n_list ? trace.n - i : n_list;
        struct vxd_svdag_edit_result result;
        struct vxd_err err = {0};

        CHECK_INT(gpu_svdag_edit(env, svdag, root, ops + i, n, &result, &err), VXD_OK);
        CHECK_STR(err.message, "");
        CHECK_INT(result.n_removed, 0);
        *n_added += result.n_added;
        root = result.root;
    }
    return root;
}

/* Ball by ball and in lists: equal voxels have equal roots, whatever edits produced
 * them. */
static void replay(struct gpu_env *env)
{
    struct vxd_svdag *svdag = make_svdag(env, DEPTH);
    struct vxd_svdag_summary summary = {0};
    uint64_t n_added;
    uint32_t root = edit_all(env, svdag, 1, &n_added);

    CHECK_INT(n_added, trace.n_voxels);
    CHECK_INT(vxd_svdag_verify(env->queue, svdag, root, &summary, NULL), VXD_OK);
    CHECK_INT(summary.n_occupied, trace.n_voxels);
    CHECK_INT(edit_all(env, svdag, LIST, &n_added), root);
    CHECK_INT(n_added, trace.n_voxels);
    vxd_svdag_destroy(env->queue, svdag);
}

/* The whole session as one edit, in a new store and in one that already holds its
 * nodes. */
static void replay_at_once(struct gpu_env *env)
{
    struct vxd_svdag_summary summaries[2] = {{0}, {0}};

    for (int i = 0; i < 2; i++) {
        struct vxd_svdag *svdag = make_svdag(env, DEPTH);
        uint64_t n_added;
        uint32_t root = edit_all(env, svdag, i == 0 ? 1 : MAX_BALLS, &n_added);

        CHECK_INT(n_added, trace.n_voxels);
        CHECK_INT(vxd_svdag_verify(env->queue, svdag, root, &summaries[i], NULL), VXD_OK);
        vxd_svdag_destroy(env->queue, svdag);
    }
    CHECK(memcmp(summaries[0].digest, summaries[1].digest, sizeof summaries[0].digest) ==
          0);
    CHECK(memcmp(summaries[0].n_nodes, summaries[1].n_nodes,
                 sizeof summaries[0].n_nodes) == 0);
}

/* Reads a session of n balls and counts its voxels. */
static void prepare(const char *name, size_t n)
{
    read_trace(name);
    CHECK_INT(trace.n, n);
    trace.n_voxels = count_voxels();
}

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define SKIP_IF_SLOW SKIP("minutes under sanitizers; the small scale has all of its code")
#else
#define SKIP_IF_SLOW (void)0
#endif

static void test_trace_of_small_strokes_has_the_voxels_of_its_balls(void)
{
    SKIP_IF_SLOW;
    prepare("replay_edits_add_2.csv", 65);
    gpu_each_backend(replay);
}

static void test_trace_of_short_edits_has_the_voxels_of_its_balls(void)
{
    SKIP_IF_SLOW;
    prepare("epiccitadel_edits_short.csv", 15);
    gpu_each_backend(replay_at_once);
}

static void test_trace_of_large_edits_has_the_voxels_of_its_balls(void)
{
    SKIP_IF_SLOW;
    prepare("epiccitadel_large_edits.csv", 12);
    gpu_each_backend(replay);
}

/* Reduced scale ---------------------------------------------------------------------------- */

/* The session's balls, scaled down to a small scene; every third one removes. Scaled
 * coordinates are not whole voxels, so surfaces are anywhere between centres. */
static void make_small(struct vxd_svdag_op *ops)
{
    int64_t low[3];
    int64_t high[3];
    int64_t extent = 1;
    const int64_t scene_units = ((int64_t)1 << SMALL_DEPTH) * VXD_SVDAG_UNIT;

    find_bounds(low, high);
    for (int axis = 0; axis < 3; axis++) {
        extent = high[axis] - low[axis] > extent ? high[axis] - low[axis] : extent;
    }
    for (size_t i = 0; i < trace.n; i++) {
        const struct ball *ball = &trace.balls[i];

        ops[i] = op_of(ball, i);
        ops[i].action = i % 3 == 2 ? VXD_SVDAG_ERASE : VXD_SVDAG_FILL;
        ops[i].shape.r = ball->r * scene_units / extent;
        for (int axis = 0; axis < 3; axis++) {
            ops[i].shape.a[axis] =
                (ball->centre[axis] - low[axis]) * scene_units / extent;
        }
    }
}

/* The summary of the grid's voxels in another store. */
static struct vxd_svdag_summary summary_of_grid(const struct gpu_svdag_grid *grid)
{
    struct vxd_svdag_summary summary = {0};
    struct gpu_env env;
    struct vxd_svdag *svdag;

    gpu_env_open(&env, VXD_BACKEND_CPU, 1, 0, 0);
    svdag = make_svdag(&env, SMALL_DEPTH);
    CHECK_INT(vxd_svdag_verify(env.queue, svdag, gpu_svdag_grid_put(grid, svdag),
                               &summary, NULL),
              VXD_OK);
    vxd_svdag_destroy(env.queue, svdag);
    gpu_env_close(&env);
    return summary;
}

static void replay_small(struct gpu_env *env)
{
    const struct vxd_svdag_format format = {SMALL_DEPTH, 4, false};
    struct vxd_svdag *svdag = make_svdag(env, SMALL_DEPTH);
    struct vxd_svdag_op ops[MAX_BALLS];
    struct gpu_svdag_grid before;
    struct gpu_svdag_grid grid;
    struct vxd_svdag_edit_result result = {.root = VXD_SVDAG_EMPTY};
    struct vxd_svdag_summary got = {0};
    struct vxd_svdag_summary want;
    uint32_t root;

    make_small(ops);
    gpu_svdag_grid_make(&grid, &format);
    gpu_svdag_grid_make(&before, &format);
    for (size_t i = 0; i < trace.n; i++) {
        struct vxd_svdag_edit_result forced = {0};

        gpu_svdag_grid_copy(&before, &grid);
        gpu_svdag_grid_edit(&grid, &ops[i], 1);
        gpu_svdag_grid_change(&before, &grid, &forced);
        CHECK_INT(gpu_svdag_edit(env, svdag, result.root, &ops[i], 1, &result, NULL),
                  VXD_OK);
        CHECK_INT(result.n_added, forced.n_added);
        CHECK_INT(result.n_removed, forced.n_removed);
        CHECK_INT(result.n_changed, forced.n_changed);
    }
    root = result.root;
    CHECK_INT(vxd_svdag_verify(env->queue, svdag, root, &got, NULL), VXD_OK);
    want = summary_of_grid(&grid);
    CHECK_INT(got.n_occupied, want.n_occupied);
    CHECK(got.n_occupied > 1000);
    CHECK(memcmp(got.digest, want.digest, sizeof got.digest) == 0);
    CHECK(memcmp(got.n_nodes, want.n_nodes, sizeof got.n_nodes) == 0);
    CHECK_INT(gpu_svdag_edit(env, svdag, VXD_SVDAG_EMPTY, ops, trace.n, &result, NULL),
              VXD_OK);
    CHECK_INT(result.root, root);
    CHECK_INT(result.n_added, got.n_occupied);
    gpu_svdag_grid_free(&grid);
    gpu_svdag_grid_free(&before);
    vxd_svdag_destroy(env->queue, svdag);
}

static void test_traces_made_small_are_those_of_a_plain_grid(void)
{
    static const char *const names[] = {"replay_edits_add_2.csv",
                                        "epiccitadel_edits_short.csv",
                                        "epiccitadel_large_edits.csv"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        read_trace(names[i]);
        gpu_each_backend(replay_small);
    }
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_trace_of_small_strokes_has_the_voxels_of_its_balls),
    VXD_TEST(test_trace_of_short_edits_has_the_voxels_of_its_balls),
    VXD_TEST(test_trace_of_large_edits_has_the_voxels_of_its_balls),
    VXD_TEST(test_traces_made_small_are_those_of_a_plain_grid)};

VXD_TEST_MAIN(tests)
