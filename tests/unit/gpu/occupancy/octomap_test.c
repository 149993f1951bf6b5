// SPDX-License-Identifier: Apache-2.0
/* The same scans from the same places into OctoMap's library and into a scene that fuses by
 * log-odds: equal occupied, free and unknown voxels, log-odds within one step.
 *
 * Rules in which the two differ:
 *   numbers    OctoMap adds floats (0.847, -0.405), we add steps of 0.0338 (25, -12): each
 *              update is off by at most 0.0024
 *   rays       OctoMap walks with a float direction and errors of about 1e-7 a voxel of
 *              length, we by times exact to 2^-52; so a ray that crosses two planes at nearly
 *              the same point may pass another voxel. Points with such rays are left out of
 *              the first test. The second has all points of a real drive, and bounds how many
 *              voxels differ */
#include "tests/support/test.h"

#include <math.h>

#include "gpu/occupancy/occupancy.h"
#include "gpu/svdag/edit/edit.h"
#include "gpu/svdag/query/query.h"
#include "tests/support/occupancy/octomap_map.h"
#include "tests/support/svdag/svdag_run.h"

enum {
    DEPTH = 7,
    SIDE = 1 << DEPTH,
    N_VOXELS = SIDE * SIDE * SIDE,
    N_POINTS = 1500,
    N_SCANS = 8
};

/* Voxels between crossings that a float's direction keeps apart. */
#define CLEAR 2e-4

struct pair {
    struct gpu_env *env;
    struct vxd_svdag *svdag;
    struct vxd_occupancy *layer;
    uint32_t root;
    double step;
    struct octomap_map *octomap;
};

static const struct vxd_svdag_spec spec = {.format = {DEPTH, 0, true}};

static void begin(struct pair *pair, struct gpu_env *env)
{
    struct vxd_occupancy_odds odds = {0};
    struct vxd_occupancy_rule rule;

    REQUIRE(vxd_occupancy_rule_of(&odds, &rule, NULL) == VXD_OK);
    *pair = (struct pair){.env = env,
                          .svdag = gpu_svdag_create(env, &spec),
                          .root = VXD_SVDAG_EMPTY,
                          .step = rule.step,
                          .octomap = octomap_map_new()};
    REQUIRE(vxd_occupancy_create(env->queue, &rule, DEPTH, &pair->layer, NULL) == VXD_OK);
}

static void end(struct pair *pair)
{
    vxd_occupancy_destroy(pair->env->queue, pair->layer);
    vxd_svdag_destroy(pair->env->queue, pair->svdag);
    gpu_wait(pair->env);
    octomap_map_free(pair->octomap);
}

static void integrate(struct pair *pair, const float *points, size_t n,
                      const float origin[3], double max_range)
{
    struct vxd_queue *queue = pair->env->queue;
    const struct vxd_svdag_scan scan = {
        .points = points,
        .n = n,
        .origin = {(double)origin[0], (double)origin[1], (double)origin[2]},
        .max_range = max_range,
        .carve = true};
    struct vxd_svdag_op ops[2] = {
        {.shape = {.kind = VXD_SVDAG_VOXELS}, .action = VXD_SVDAG_FILL},
        {.shape = {.kind = VXD_SVDAG_VOXELS}, .action = VXD_SVDAG_SET_FREE}};
    struct vxd_svdag_scan_result seen;
    struct vxd_svdag_edit_result result;
    struct vxd_occupancy_plan *plan;
    struct vxd_svdag_scan on_device = scan;
    struct vxd_buffer sent = gpu_to_device(pair->env, points, n * 3 * sizeof *points);
    struct vxd_err err = {0};

    octomap_map_insert(pair->octomap, points, n, origin, max_range);
    on_device.points = sent.ptr;
    REQUIRE(vxd_svdag_scan_voxels(queue, &spec.format, &on_device, &seen, &err) ==
            VXD_OK);
    gpu_wait(pair->env);
    ops[0].shape.voxels = seen.hits.voxels;
    REQUIRE(vxd_occupancy_plan_scan(queue, pair->layer, pair->svdag, pair->root,
                                    &seen.hits.voxels, 1, &seen.passed.voxels, 1, &plan,
                                    &ops[1].shape.voxels, &err) == VXD_OK);
    REQUIRE(vxd_svdag_edit_wait(queue, pair->svdag, pair->root, ops, 2, &result, &err) ==
            VXD_OK);
    REQUIRE(vxd_occupancy_apply(queue, pair->layer, plan, &err) == VXD_OK);
    pair->root = result.root;
    vxd_occupancy_plan_free(queue, plan);
    vxd_svdag_voxel_list_free(queue, &seen.hits);
    vxd_svdag_voxel_list_free(queue, &seen.passed);
    vxd_device_free(queue, &sent);
    gpu_wait(pair->env);
}

struct difference {
    size_t n_known;  /* voxels that OctoMap has observed */
    size_t n_states; /* whose state differs */
    size_t n_odds;   /* of equal state, whose log-odds differ by more than a step */
};

static void compare(struct pair *pair, struct difference *out)
{
    struct gpu_env *env = pair->env;
    int32_t *voxels = gpu_alloc((size_t)N_VOXELS * 3 * sizeof *voxels);
    struct vxd_buffer odds = gpu_to_device(env, NULL, N_VOXELS);
    struct vxd_buffer states = gpu_to_device(env, NULL, N_VOXELS);
    struct vxd_buffer sent;
    int8_t *our_odds;
    uint8_t *our_states;

    *out = (struct difference){0};
    for (int32_t i = 0; i < N_VOXELS; i++) {
        voxels[3 * i] = i / SIDE / SIDE;
        voxels[3 * i + 1] = i / SIDE % SIDE;
        voxels[3 * i + 2] = i % SIDE;
    }
    sent = gpu_to_device(env, voxels, (size_t)N_VOXELS * 3 * sizeof *voxels);
    CHECK_INT(vxd_occupancy_values(env->queue, pair->layer, pair->svdag, pair->root,
                                   sent.ptr, N_VOXELS, odds.ptr, NULL),
              VXD_OK);
    CHECK_INT(vxd_svdag_values(env->queue, pair->svdag, pair->root, sent.ptr, N_VOXELS,
                               states.ptr, NULL, NULL),
              VXD_OK);
    our_odds = gpu_to_host(env, &odds);
    our_states = gpu_to_host(env, &states);
    for (size_t i = 0; i < N_VOXELS; i++) {
        float theirs = 0;
        int is_occupied = 0;
        int is_known =
            octomap_map_find(pair->octomap, voxels + 3 * i, &theirs, &is_occupied);
        int want = !is_known     ? VXD_SVDAG_UNKNOWN
                   : is_occupied ? VXD_SVDAG_OCCUPIED
                                 : VXD_SVDAG_FREE;

        out->n_known += is_known != 0;
        if (our_states[i] != want) {
            out->n_states++;
        } else if (is_known &&
                   fabs(our_odds[i] * pair->step - (double)theirs) > pair->step) {
            out->n_odds++;
        }
    }
    free(our_odds);
    free(our_states);
    free(voxels);
    vxd_device_free(env->queue, &sent);
    vxd_device_free(env->queue, &odds);
    vxd_device_free(env->queue, &states);
    gpu_wait(env);
}

/* A plane that a ray crosses. */
struct crossing {
    double at; /* distance from the origin, voxels */
    int axis;
};

static int by_distance(const void *a, const void *b)
{
    const struct crossing *left = a;
    const struct crossing *right = b;

    return (left->at > right->at) - (left->at < right->at);
}

/* The planes between an origin and an end, in order; SIZE_MAX where two are too close to each
 * other, or the end to one. */
static size_t crossings_of(const double from[3], const double to[3],
                           struct crossing at[3 * SIDE + 1])
{
    double length = 0;
    size_t n = 0;

    for (int a = 0; a < 3; a++) {
        length += (to[a] - from[a]) * (to[a] - from[a]);
    }
    length = sqrt(length);
    for (int a = 0; a < 3; a++) {
        double low = floor(fmin(from[a], to[a])) + 1;

        if (fabs(to[a] - round(to[a])) < CLEAR) {
            return SIZE_MAX;
        }
        for (; low <= fmax(from[a], to[a]); low++) {
            at[n++] =
                (struct crossing){(low - from[a]) / ((to[a] - from[a]) / length), a};
        }
    }
    qsort(at, n, sizeof *at, by_distance);
    for (size_t i = 1; i < n; i++) {
        if (at[i].at - at[i - 1].at < CLEAR) {
            return SIZE_MAX;
        }
    }
    return n;
}

/* Whether a ray's crossings and end are far enough from each other, and from planes: it then
 * crosses the same planes to the middle of its end's cell of 1/256 voxel, where ours ends. */
static bool is_clear(const float origin[3], const float point[3], double max_range)
{
    static struct crossing exact[3 * SIDE + 1];
    static struct crossing ours[3 * SIDE + 1];
    double from[3];
    double to[3];
    double middle[3];
    double length = 0;
    double reach;
    size_t n;

    for (int a = 0; a < 3; a++) {
        from[a] = (double)origin[a];
        length += ((double)point[a] - from[a]) * ((double)point[a] - from[a]);
    }
    length = sqrt(length);
    reach = length < max_range ? length : max_range;
    if (fabs(length - max_range) < 0.01) {
        return false;
    }
    for (int a = 0; a < 3; a++) {
        to[a] = from[a] + ((double)point[a] - from[a]) * reach / length;
        middle[a] = (floor(to[a] * 256) + 0.5) / 256;
    }
    n = crossings_of(from, to, exact);
    if (n == SIZE_MAX || crossings_of(from, middle, ours) != n) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        if (exact[i].axis != ours[i].axis) {
            return false;
        }
    }
    return true;
}

/* A box-shaped room with a moving pillar, from a moving sensor; some rays end at the
 * range. */
static void sense(int scan, uint64_t *state, const float origin[3], double max_range,
                  float *points)
{
    for (int i = 0; i < N_POINTS;) {
        double direction[3];
        double t = 1e9;

        for (int a = 0; a < 3; a++) {
            double far;

            direction[a] = (double)gpu_random_float(state, -1, 1);
            far = direction[a] > 0 ? 100 : 20;
            t = fmin(t, (far - (double)origin[a]) / direction[a]);
        }
        if (i % 4 == 0) { /* the pillar stands elsewhere each time */
            t *= 0.4 + 0.1 * (scan % 4);
        }
        for (int a = 0; a < 3; a++) {
            points[3 * i + a] = (float)((double)origin[a] + t * direction[a]) +
                                gpu_random_float(state, -0.4F, 0.4F);
        }
        i += is_clear(origin, points + 3 * i, max_range);
    }
}

static void rooms(struct gpu_env *env)
{
    float *points = gpu_alloc((size_t)N_POINTS * 3 * sizeof *points);
    struct difference difference;
    struct pair pair;
    uint64_t state = 11;

    begin(&pair, env);
    for (int scan = 0; scan < N_SCANS; scan++) {
        const float origin[3] = {50.3F + 2.1F * (float)scan, 47.8F, 61.4F};

        sense(scan, &state, origin, 45, points);
        integrate(&pair, points, N_POINTS, origin, 45);
        if (scan % 4 != 3) {
            continue;
        }
        compare(&pair, &difference);
        CHECK(difference.n_known > 20000);
        CHECK_INT(difference.n_states, 0);
        CHECK_INT(difference.n_odds, 0);
    }
    end(&pair);
    free(points);
}

static void test_scans_of_a_room_give_octomaps_states(void)
{
    gpu_each_backend(rooms);
}

/* Points of a scan in quarter metres around the scene's middle; NULL: no data. */
static float *read_scan(const char *name, size_t *n)
{
    size_t n_bytes;
    float *rows = gpu_read_data(name, &n_bytes);

    *n = n_bytes / 16;
    for (size_t i = 0; rows != NULL && i < *n; i++) {
        for (int a = 0; a < 3; a++) {
            rows[3 * i + (size_t)a] = 4 * rows[4 * i + (size_t)a] + SIDE / 2;
        }
    }
    return rows;
}

static void drives(struct gpu_env *env)
{
    static const char *const names[2] = {"lidar/kitti_seq_000000.bin",
                                         "lidar/kitti_seq_000001.bin"};
    const float origin[3] = {SIDE / 2 + 0.03F, SIDE / 2 - 0.07F, SIDE / 2 + 0.01F};
    struct difference difference;
    struct pair pair;

    begin(&pair, env);
    for (int k = 0; k < 2; k++) {
        size_t n;
        float *points = read_scan(names[k], &n);

        REQUIRE(points != NULL);
        integrate(&pair, points, n, origin, 60);
        free(points);
    }
    compare(&pair, &difference);
    (void)printf("     of %zu voxels %zu in another state, %zu with other log-odds\n",
                 difference.n_known, difference.n_states, difference.n_odds);
    CHECK(difference.n_known > 30000);
    /* Rays through edges: a few of 10,000 voxels. */
    CHECK(difference.n_states * 2000 <= difference.n_known);
    CHECK(difference.n_odds * 2000 <= difference.n_known);
    end(&pair);
}

static void test_scans_of_a_real_drive_give_octomaps_states(void)
{
    size_t n;
    float *points = read_scan("lidar/kitti_seq_000001.bin", &n);

    if (points == NULL) {
        SKIP("no data directory");
    }
    free(points);
    gpu_each_backend(drives);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_scans_of_a_room_give_octomaps_states),
    VXD_TEST(test_scans_of_a_real_drive_give_octomaps_states),
};

VXD_TEST_MAIN(tests)
