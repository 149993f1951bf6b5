// SPDX-License-Identifier: Apache-2.0
/* The traversal of rays, long rays, and the effect of scans on a scene. */
#include "tests/support/test.h"

#include <math.h>

#include "gpu/svdag/scan/carve_math.h"
#include "gpu/svdag/store/store.h"
#include "tests/support/svdag/svdag_rays.h"
#include "tests/support/svdag/svdag_run.h"

static void free_result(struct gpu_env *env, struct vxd_svdag_scan_result *result)
{
    gpu_svdag_list_free(env, &result->hits);
    gpu_svdag_list_free(env, &result->passed);
}

/* Traversals
 * ------------------------------------------------------------------------------ */

static void test_walk_along_a_diagonal_steps_x_then_y_then_z(void)
{
    const double origin[3] = {0.5, 3.5, 7.5};
    const double ends[2][3] = {{9.5, 12.5, 16.5}, {-8.5, -5.5, -1.5}};

    for (int k = 0; k < 2; k++) {
        struct vxd_svdag_walk walk;
        int64_t last[3] = {0, 3, 7};

        REQUIRE(vxd_svdag_walk_begin(&walk, origin, ends[k]));
        for (int i = 0; i < 27; i++) {
            last[i % 3] += k == 0 ? 1 : -1;
            REQUIRE(vxd_svdag_walk_next(&walk));
            CHECK(memcmp(walk.voxel, last, sizeof last) == 0);
        }
        CHECK(!vxd_svdag_walk_next(&walk));
        CHECK(!vxd_svdag_walk_next(&walk));
    }
}

/* Coordinates that are sensitive to rounding: near and on planes, tiny, and far out. */
static double nasty(uint64_t *state)
{
    double whole = (double)(int64_t)(gpu_random(state) % 64) - 32;

    switch (gpu_random(state) % 7) {
    case 0:
        return whole;
    case 1:
        return nextafter(whole, 1e9);
    case 2:
        return nextafter(whole, -1e9);
    case 3:
        return whole + 0.5;
    case 4:
        return ldexp(whole, -1060);
    case 5:
        return whole + ldexp(1.0, -30);
    default:
        return whole + (double)(gpu_random(state) >> 11) * 0x1p-53;
    }
}

static void test_walk_of_any_numbers_ends_in_the_points_voxel(void)
{
    const double shifts[4] = {0, 1e6, -3e9, 1099511627776.0};
    uint64_t state = 1;
    size_t n_wrong = 0;

    for (int k = 0; k < 200000; k++) {
        double shift = shifts[k % 4];
        double origin[3];
        double end[3];
        int64_t n = 0;
        struct vxd_svdag_walk walk;

        for (int a = 0; a < 3; a++) {
            origin[a] = nasty(&state) + shift;
            end[a] = gpu_random(&state) % 8 == 0 ? origin[a] : nasty(&state) + shift;
            n += llabs((long long)(floor(end[a]) - floor(origin[a])));
        }
        REQUIRE(vxd_svdag_walk_begin(&walk, origin, end));
        while (vxd_svdag_walk_next(&walk)) {
            n--;
        }
        n_wrong += n != 0;
        for (int a = 0; a < 3; a++) {
            n_wrong += walk.voxel[a] != (int64_t)floor(end[a]);
        }
    }
    CHECK_INT(n_wrong, 0);
}

static void test_walk_too_long_or_too_far_is_refused(void)
{
    const double near[3] = {0, 0, 0};
    const double at_most[3] = {0, VXD_SVDAG_MAX_RAY_VOXELS, 0};
    const double longer[3] = {1, VXD_SVDAG_MAX_RAY_VOXELS, 0};
    const double far[3] = {1e13, 0, 0};
    const double further[3] = {1e300, -1e300, 1e300};
    struct vxd_svdag_walk walk;

    CHECK(vxd_svdag_walk_begin(&walk, near, at_most));
    CHECK(!vxd_svdag_walk_begin(&walk, near, longer));
    CHECK(!vxd_svdag_walk_begin(&walk, far, far));
    CHECK(!vxd_svdag_walk_begin(&walk, near, further));
    CHECK(!vxd_svdag_walk_begin(&walk, further, near));
}

/* Rays of thousands of voxels, through bricks and out of the scene, agree with the
 * traversal. */
static void one_long_ray(struct gpu_env *env)
{
    const struct vxd_svdag_format format = {12, 0, false};
    uint64_t state = 9;

    for (int k = 0; k < 300; k++) {
        float point[3];
        double end[3];
        struct vxd_svdag_scan scan = {.points = point, .n = 1, .carve = true};
        struct vxd_svdag_scan_result result;
        struct vxd_svdag_walk walk;
        struct vxd_err err = {0};
        uint64_t n = 0;
        size_t n_missing = 0;
        bool is_hit = true;

        for (int a = 0; a < 3; a++) {
            point[a] = gpu_random_float(&state, -2000, 6000);
            scan.origin[a] = (double)gpu_random_float(&state, -2000, 6000);
            end[a] = (floor((double)point[a] * 256) + 0.5) / 256; /* of its cell */
            is_hit = is_hit && point[a] >= 0 && point[a] < 4096;
        }
        CHECK_INT(gpu_svdag_scan(env, &format, &scan, &result, &err), VXD_OK);
        CHECK_INT(result.n_hit, is_hit);
        CHECK_INT(result.n_outside, !is_hit);
        REQUIRE(vxd_svdag_walk_begin(&walk, scan.origin, end));
        for (;;) {
            const struct vxd_svdag_voxels *list = &result.passed.voxels;
            int64_t v[3] = {walk.voxel[0], walk.voxel[1], walk.voxel[2]};
            uint64_t code;
            size_t i = 0;

            if (!vxd_svdag_walk_next(&walk)) {
                break;
            }
            if (!vxd_svdag_is_inside(v, 12)) {
                continue;
            }
            n++;
            code = vxd_svdag_voxel_code((uint64_t)v[0], (uint64_t)v[1], (uint64_t)v[2]);
            for (size_t step = (size_t)1 << 14; step > 0; step /= 2) {
                i += i + step <= list->n && list->codes[i + step - 1] <= code / 64 ? step
                                                                                   : 0;
            }
            n_missing += i == 0 || list->codes[i - 1] != code / 64 ||
                         (list->masks[i - 1] >> code % 64 & 1) == 0;
        }
        CHECK_INT(n_missing, 0);
        CHECK_INT(result.n_passed_voxels, n);
        free_result(env, &result);
    }
}

static void test_scan_of_one_long_ray_is_the_walk(void)
{
    gpu_each_backend(one_long_ray);
}

static void longest_ray(struct gpu_env *env)
{
    const struct vxd_svdag_format format = {21, 0, true};
    const float points[6] = {16383, 0.5F, 0.5F, 16500, 0.5F, 1.5F};
    struct vxd_svdag_scan scan = {
        .points = points, .n = 2, .origin = {0.5, 0.5, 0.5}, .carve = true};
    struct vxd_svdag_scan_result result;
    struct vxd_err err = {0};

    CHECK_INT(gpu_svdag_scan(env, &format, &scan, &result, &err), VXD_OK);
    CHECK_INT(result.n_hit, 2);
    CHECK_INT(result.n_passed_voxels, 16383);
    free_result(env, &result);
    scan.max_range = 16000;
    CHECK_INT(gpu_svdag_scan(env, &format, &scan, &result, &err), VXD_OK);
    CHECK_INT(result.n_hit, 0);
    CHECK_INT(result.n_beyond, 2);
    CHECK(result.n_passed_voxels >= 16000 && result.n_passed_voxels <= 32001);
    free_result(env, &result);
    for (int a = 0; a < 3; a++) { /* the far corner of the largest scene */
        scan.base[a] = ((int64_t)1 << 21) - 16384;
    }
    scan.max_range = 0;
    scan.n = 1;
    CHECK_INT(gpu_svdag_scan(env, &format, &scan, &result, &err), VXD_OK);
    CHECK_INT(result.n_hit, 1);
    CHECK_INT(result.n_passed_voxels, 16383);
    free_result(env, &result);
}

static void test_scan_beyond_the_longest_ray_hits_without_one(void)
{
    gpu_each_backend(longest_ray);
}

/* Points of few voxels at some distance, whose rays all differ: what each ray passes alone
 * is passed when they come together, and with one ray a voxel some of it is not. */
static void rays_together(struct gpu_env *env)
{
    enum {
        N = 400,
        SIDE = 64,
        N_VOXELS = SIDE * SIDE * SIDE
    };
    const struct vxd_svdag_format format = {6, 0, true};
    static float points[3 * N];
    struct gpu_svdag_scan_grid apart;
    struct gpu_svdag_scan_grid together;
    struct vxd_svdag_scan scan = {.origin = {1.3, 2.7, 1.9}, .carve = true};
    struct vxd_svdag_scan_result result;
    struct vxd_err err = {0};
    uint64_t n_together;
    uint64_t state = 5;

    for (int i = 0; i < N; i++) {
        for (int a = 0; a < 3; a++) {
            points[3 * i + a] = gpu_random_float(&state, 50, 54);
        }
    }
    gpu_svdag_scan_grid_make(&apart, format.depth);
    gpu_svdag_scan_grid_make(&together, format.depth);
    memset(apart.passed, 0, N_VOXELS);
    memset(apart.hit, 0, N_VOXELS);
    memset(together.passed, 0, N_VOXELS);
    scan.n = 1;
    for (int i = 0; i < N; i++) {
        uint64_t n_voxels;

        scan.points = points + 3 * i;
        CHECK_INT(gpu_svdag_scan(env, &format, &scan, &result, &err), VXD_OK);
        CHECK(gpu_svdag_list_to_grid(&result.passed.voxels, SIDE, apart.passed, NULL,
                                     &n_voxels));
        CHECK(gpu_svdag_list_to_grid(&result.hits.voxels, SIDE, apart.hit, NULL,
                                     &n_voxels));
        free_result(env, &result);
    }
    scan.points = points;
    scan.n = N;
    CHECK_INT(gpu_svdag_scan(env, &format, &scan, &result, &err), VXD_OK);
    CHECK(gpu_svdag_list_to_grid(&result.passed.voxels, SIDE, together.passed, NULL,
                                 &n_together));
    for (size_t i = 0; i < N_VOXELS; i++) {
        CHECK_INT(together.passed[i], apart.passed[i] != 0 && apart.hit[i] == 0);
    }
    free_result(env, &result);
    scan.discretize = true;
    CHECK_INT(gpu_svdag_scan(env, &format, &scan, &result, &err), VXD_OK);
    CHECK(result.n_passed_voxels < n_together);
    free_result(env, &result);
    gpu_svdag_scan_grid_free(&together);
    gpu_svdag_scan_grid_free(&apart);
}

static void test_scan_empties_what_lies_before_each_point(void)
{
    gpu_each_backend(rays_together);
}

/* Scenes ----------------------------------------------------------------------------------- */

/* The nearest of a room's walls (hit from inside) and a box's faces (hit from outside)
 * along a ray. */
static double distance_to(const double origin[3], const double direction[3],
                          const double box[2][3], bool is_room)
{
    double enter = 0;
    double leave = 1e9;

    for (int a = 0; a < 3; a++) {
        double t0 = (box[0][a] - origin[a]) / direction[a];
        double t1 = (box[1][a] - origin[a]) / direction[a];

        enter = fmax(enter, fmin(t0, t1));
        leave = fmin(leave, fmax(t0, t1));
    }
    return is_room ? leave : enter <= leave ? enter : 1e9;
}

enum {
    N_RAYS = 20000
};

/* A scan from the middle of a room with one box in it; each point lies slightly behind a
 * surface. */
static void sense(const double origin[3], const double box[2][3], float *points)
{
    const double room[2][3] = {{4, 4, 4}, {124, 124, 60}};

    for (int i = 0; i < N_RAYS; i++) { /* directions by the golden angle */
        double z = 1 - (2 * i + 1.0) / N_RAYS;
        double angle = 2.399963229728653 * i;
        double direction[3] = {sqrt(1 - z * z) * cos(angle), sqrt(1 - z * z) * sin(angle),
                               z};
        double distance = fmin(distance_to(origin, direction, room, true),
                               distance_to(origin, direction, box, false));

        for (int a = 0; a < 3; a++) {
            points[3 * i + a] = (float)(origin[a] + (distance + 0.01) * direction[a]);
        }
    }
}

static void integrate(struct gpu_env *env, struct vxd_svdag *svdag, const float *points,
                      const double origin[3], struct vxd_svdag_edit_result *state)
{
    const struct vxd_svdag_format *format = &vxd_svdag_get_spec(svdag)->format;
    struct vxd_svdag_scan scan = {.points = points,
                                  .n = N_RAYS,
                                  .origin = {origin[0], origin[1], origin[2]},
                                  .carve = true};
    struct vxd_svdag_op ops[2] = {
        {.shape = {.kind = VXD_SVDAG_VOXELS},
         .action = format->tracks_free ? VXD_SVDAG_SET_FREE : VXD_SVDAG_ERASE},
        {.shape = {.kind = VXD_SVDAG_VOXELS}, .action = VXD_SVDAG_FILL}};
    struct vxd_svdag_scan_result result;
    struct vxd_err err = {0};

    REQUIRE(gpu_svdag_scan(env, format, &scan, &result, &err) == VXD_OK);
    ops[0].shape.voxels = result.passed.voxels;
    ops[1].shape.voxels = result.hits.voxels;
    CHECK_INT(gpu_svdag_edit(env, svdag, state->root, ops, 2, state, &err), VXD_OK);
    free_result(env, &result);
}

static size_t occupied_in(struct gpu_env *env, const struct vxd_svdag *svdag,
                          uint32_t root, const double box[2][3])
{
    struct vxd_svdag_image image;
    size_t n = 0;

    gpu_svdag_image_open(env, svdag, &image);
    for (uint32_t x = (uint32_t)box[0][0]; x < (uint32_t)box[1][0]; x++) {
        for (uint32_t y = (uint32_t)box[0][1]; y < (uint32_t)box[1][1]; y++) {
            for (uint32_t z = (uint32_t)box[0][2]; z < (uint32_t)box[1][2]; z++) {
                uint32_t value;

                n += vxd_svdag_voxel(&image.view, root, x, y, z, &value) ==
                     VXD_SVDAG_OCCUPIED;
            }
        }
    }
    gpu_svdag_image_close(env, &image);
    return n;
}

static void moved_object(struct gpu_env *env)
{
    const double origin[3] = {64.3, 63.8, 30.1};
    const double before[2][3] = {{90, 60, 20}, {100, 72, 40}};
    const double after[2][3] = {{30, 80, 20}, {40, 92, 40}};
    float *points = gpu_alloc((size_t)N_RAYS * 3 * sizeof *points);

    for (int f = 0; f < 2; f++) {
        const struct vxd_svdag_spec spec = {.format = {7, 0, f == 1}};
        struct vxd_svdag_edit_result state = {.root = VXD_SVDAG_EMPTY};
        struct vxd_svdag *svdag;
        struct vxd_err err = {0};

        REQUIRE(vxd_svdag_create(env->queue, &spec, &svdag, &err) == VXD_OK);
        sense(origin, before, points);
        integrate(env, svdag, points, origin, &state);
        CHECK(occupied_in(env, svdag, state.root, before) > 150);
        CHECK_INT(occupied_in(env, svdag, state.root, after), 0);
        sense(origin, after, points);
        integrate(env, svdag, points, origin, &state);
        CHECK_INT(occupied_in(env, svdag, state.root, before), 0);
        CHECK(occupied_in(env, svdag, state.root, after) > 150);
        CHECK(state.n_removed > 150);
        vxd_svdag_destroy(env->queue, svdag);
    }
    free(points);
}

static void test_scan_after_an_object_moved_clears_where_it_was(void)
{
    gpu_each_backend(moved_object);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_walk_along_a_diagonal_steps_x_then_y_then_z),
    VXD_TEST(test_walk_of_any_numbers_ends_in_the_points_voxel),
    VXD_TEST(test_walk_too_long_or_too_far_is_refused),
    VXD_TEST(test_scan_of_one_long_ray_is_the_walk),
    VXD_TEST(test_scan_beyond_the_longest_ray_hits_without_one),
    VXD_TEST(test_scan_empties_what_lies_before_each_point),
    VXD_TEST(test_scan_after_an_object_moved_clears_where_it_was),
};

VXD_TEST_MAIN(tests)
