// SPDX-License-Identifier: Apache-2.0
/* Rays, against the reference of svdag_ray_rule.h for the rule stated in ray_math.h. */
#include "tests/support/test.h"

#include <float.h>
#include <math.h>

#include "gpu/svdag/query/query.h"
#include "tests/support/svdag/svdag_ray_rule.h"
#include "tests/support/svdag/svdag_scene.h"
#include "tests/support/gpu/gpu_helpers.h"

enum {
    N_FORMATS = 8,
    N_KINDS = 14
};

static const struct vxd_svdag_format formats[N_FORMATS] = {
    {4, 0, false}, {6, 0, false}, {5, 0, true},   {5, 4, false},
    {6, 4, true},  {5, 8, true},  {5, 16, false}, {4, 16, true}};

static double random_unit(uint64_t *state)
{
    return (double)(gpu_random(state) >> 11) * 0x1p-53;
}

/* The direction from o to a random point of the scene. */
static void aim(const double o[3], double d[3], double side, uint64_t *state)
{
    for (int axis = 0; axis < 3; axis++) {
        d[axis] = random_unit(state) * side - o[axis];
    }
}

static void random_ray(int kind, double side, double o[3], double d[3], uint64_t *state)
{
    static const double scales[8] = {1e-310, 1e-300, 1e-160,  5e-324,
                                     1e160,  1e300,  1.7e308, 1e-120};
    double far = 0;

    for (int axis = 0; axis < 3; axis++) {
        o[axis] = random_unit(state) * side;
        d[axis] = random_unit(state) * 2 - 1;
    }
    switch (kind) {
    case 0: /* from inside */
        return;
    case 1: /* from outside, at the scene */
    case 2: /* from outside, mostly past it */
        for (int axis = 0; axis < 3; axis++) {
            o[axis] = (random_unit(state) * 5 - 2) * side;
        }
        if (kind == 1) {
            aim(o, d, side, state);
        }
        return;
    case 3: /* edges and corners, crossed exactly */
    case 4:
    case 5:
        for (int axis = 0; axis < 3; axis++) {
            o[axis] = floor((random_unit(state) * 1.5 - 0.25) * side) +
                      (kind == 4                ? 0.5
                       : kind == 5 && axis == 1 ? 0.25
                                                : 0);
            d[axis] = floor(random_unit(state) * 5) - 2;
        }
        return;
    case 6: /* along axes, zeros of both signs */
    case 7:
        for (int axis = 0; axis < 3; axis++) {
            d[axis] = gpu_random(state) % 2 == 0   ? 0.0
                      : gpu_random(state) % 2 == 0 ? -0.0
                                                   : d[axis];
            o[axis] = kind == 7 ? floor(o[axis]) : o[axis];
        }
        return;
    case 8: /* components of any size */
        for (int axis = 0; axis < 3; axis++) {
            d[axis] *= scales[gpu_random(state) % 8];
        }
        return;
    case 9: /* all of one size, however small or large */
        far = scales[gpu_random(state) % 8];
        for (int axis = 0; axis < 3; axis++) {
            d[axis] = d[axis] < 0 ? -far : far;
        }
        return;
    case 10: /* on the borders of the scene */
        for (int axis = 0; axis < 3; axis++) {
            o[axis] = gpu_random(state) % 2 == 0   ? o[axis]
                      : gpu_random(state) % 2 == 0 ? 0
                                                   : side;
        }
        return;
    case 11: /* far out, where doubles are coarse */
    case 12:
        far = kind == 11 ? 1e15 : 1e17;
        for (int axis = 0; axis < 3; axis++) {
            o[axis] = (random_unit(state) * 2 - 1) * far;
        }
        aim(o, d, side, state);
        return;
    default: /* of extreme size, or far out along one axis */
        o[gpu_random(state) % 3] = gpu_random(state) % 2 == 0 ? 1e300 : -1e18;
        aim(o, d, side, state);
        return;
    }
}

static struct vxd_svdag_hit *cast(struct gpu_env *env,
                                  const struct gpu_svdag_scene *scene,
                                  const double *origins, const double *directions,
                                  const double *ranges, size_t n)
{
    size_t n_bytes = 3 * n * sizeof(double);
    struct vxd_buffer d_origins = gpu_to_device(env, origins, n_bytes);
    struct vxd_buffer d_directions = gpu_to_device(env, directions, n_bytes);
    struct vxd_buffer d_ranges = {NULL, 0, VXD_SPACE_DEVICE};
    struct vxd_buffer d_hits = gpu_to_device(env, NULL, n * sizeof(struct vxd_svdag_hit));
    struct vxd_svdag_hit *hits;

    if (ranges != NULL) {
        d_ranges = gpu_to_device(env, ranges, n * sizeof *ranges);
    }
    CHECK(vxd_svdag_cast_rays(env->queue, scene->svdag, scene->root, d_origins.ptr,
                              d_directions.ptr, d_ranges.ptr, n, d_hits.ptr,
                              NULL) == VXD_OK);
    hits = gpu_to_host(env, &d_hits);
    vxd_device_free(env->queue, &d_origins);
    vxd_device_free(env->queue, &d_directions);
    vxd_device_free(env->queue, &d_ranges);
    vxd_device_free(env->queue, &d_hits);
    return hits;
}

static bool same_hit(const struct vxd_svdag_hit *a, const struct vxd_svdag_hit *b)
{
    return memcmp(&a->distance, &b->distance, sizeof a->distance) == 0 &&
           memcmp(a->voxel, b->voxel, sizeof a->voxel) == 0 && a->value == b->value &&
           a->normal == b->normal && a->bad == b->bad;
}

static void print_ray(const char *what, const double *o, const double *d,
                      const struct vxd_svdag_hit *hit)
{
    (void)fprintf(stderr, "%s: from %a %a %a by %a %a %a: %d %d %d at %a, face %d\n",
                  what, o[0], o[1], o[2], d[0], d[1], d[2], (int)hit->voxel[0],
                  (int)hit->voxel[1], (int)hit->voxel[2], hit->distance,
                  (int)hit->normal);
}

/* A random range: at the hit, just before it, none, or arbitrary. */
static double random_range(double distance, double side, uint64_t *state)
{
    switch (gpu_random(state) % 4) {
    case 0:
        return (double)INFINITY;
    case 1:
        return distance > 0 ? distance : 0;
    case 2:
        return distance > 0 ? nextafter(distance, 0) : side;
    default:
        return random_unit(state) * side;
    }
}

enum {
    N_RAYS = 6000,
    N_DEEP_RAYS = 3000
};

/* Casts n rays, and again with limited ranges, and compares with `expected`, which are
 * hits at any distance. */
static void compare_rays(struct gpu_env *env, const struct gpu_svdag_scene *scene,
                         const double *origins, const double *directions,
                         struct vxd_svdag_hit *expected, size_t n, double side,
                         uint64_t *state)
{
    double *ranges = gpu_alloc(n * sizeof *ranges);
    size_t n_hits = 0;

    for (int round = 0; round < 2; round++) {
        struct vxd_svdag_hit *hits =
            cast(env, scene, origins, directions, round == 0 ? NULL : ranges, n);

        for (size_t i = 0; i < n; i++) {
            n_hits += hits[i].distance >= 0;
            if (!same_hit(hits + i, expected + i)) {
                print_ray("expected", origins + 3 * i, directions + 3 * i, expected + i);
                print_ray("answered", origins + 3 * i, directions + 3 * i, hits + i);
                CHECK(false);
                break;
            }
        }
        free(hits);
        for (size_t i = 0; i < n && round == 0; i++) {
            ranges[i] = random_range(expected[i].distance, side, state);
            if (expected[i].distance > ranges[i]) {
                expected[i] = (struct vxd_svdag_hit){-1.0, {-1, -1, -1}, 0, 0, 0};
            }
        }
    }
    CHECK(n_hits > n / 8);
    free(ranges);
}

static void dense_rays(struct gpu_env *env, const struct vxd_svdag_format *format,
                       uint64_t seed)
{
    uint32_t *grid = gpu_svdag_random_grid(format, seed);
    size_t n_voxels;
    struct gpu_svdag_voxel *voxels =
        gpu_svdag_grid_voxels(grid, format->depth, &n_voxels);
    double *origins = gpu_alloc(3 * N_RAYS * sizeof *origins);
    double *directions = gpu_alloc(3 * N_RAYS * sizeof *directions);
    struct vxd_svdag_hit *expected = gpu_alloc(N_RAYS * sizeof *expected);
    struct gpu_svdag_scene scene;
    uint64_t state = seed;
    int side = 1 << format->depth;

    gpu_svdag_scene_build(env->queue, format, voxels, n_voxels, &scene);
    for (int i = 0; i < N_RAYS; i++) {
        random_ray(i % N_KINDS, side, origins + 3 * i, directions + 3 * i, &state);
        gpu_svdag_cast_dense(grid, side, origins + 3 * i, directions + 3 * i,
                             expected + i);
    }
    compare_rays(env, &scene, origins, directions, expected, N_RAYS, side, &state);
    gpu_svdag_scene_free(env->queue, &scene);
    free(expected);
    free(directions);
    free(origins);
    free(voxels);
    free(grid);
}

static void all_dense_rays(struct gpu_env *env)
{
    for (int i = 0; i < N_FORMATS; i++) {
        dense_rays(env, &formats[i], (uint64_t)i + 1);
    }
}

static void test_rays_in_dense_grids_hit_what_single_steps_hit(void)
{
    gpu_each_backend(all_dense_rays);
}

/* Rays towards a random point in or next to a voxel, so that most hit. */
static void aim_at_voxel(const struct gpu_svdag_voxel *voxel, const double o[3],
                         double d[3], uint64_t *state)
{
    uint32_t at[3];

    gpu_svdag_unmorton(voxel->morton, at);
    for (int axis = 0; axis < 3; axis++) {
        d[axis] = (double)at[axis] + random_unit(state) * 1.2 - 0.1 - o[axis];
    }
}

static void deep_rays(struct gpu_env *env, const struct vxd_svdag_format *format)
{
    double side = (double)(1u << format->depth);
    size_t n_voxels = 400;
    struct gpu_svdag_voxel *voxels = gpu_svdag_random_voxels(format, 11, &n_voxels);
    double *origins = gpu_alloc(3 * N_DEEP_RAYS * sizeof *origins);
    double *directions = gpu_alloc(3 * N_DEEP_RAYS * sizeof *directions);
    struct vxd_svdag_hit *expected = gpu_alloc(N_DEEP_RAYS * sizeof *expected);
    struct gpu_svdag_scene scene;
    uint64_t state = 5;

    gpu_svdag_scene_build(env->queue, format, voxels, n_voxels, &scene);
    for (int i = 0; i < N_DEEP_RAYS; i++) {
        random_ray(i % N_KINDS, side, origins + 3 * i, directions + 3 * i, &state);
        if (i % N_KINDS < 3 || i % N_KINDS > 9) {
            aim_at_voxel(voxels + gpu_random(&state) % n_voxels, origins + 3 * i,
                         directions + 3 * i, &state);
        }
        gpu_svdag_cast_voxels(voxels, n_voxels, origins + 3 * i, directions + 3 * i,
                              expected + i);
    }
    compare_rays(env, &scene, origins, directions, expected, N_DEEP_RAYS, side, &state);
    gpu_svdag_scene_free(env->queue, &scene);
    free(expected);
    free(directions);
    free(origins);
    free(voxels);
}

static void all_deep_rays(struct gpu_env *env)
{
    static const struct vxd_svdag_format deep[3] = {
        {17, 0, false}, {21, 4, true}, {21, 16, false}};

    for (int i = 0; i < 3; i++) {
        deep_rays(env, deep + i);
    }
}

static void test_rays_in_deep_scenes_hit_the_first_of_few_voxels(void)
{
    gpu_each_backend(all_deep_rays);
}

static void bad_rays(struct gpu_env *env)
{
    static const double origins[8][3] = {{1, 1, 1},
                                         {(double)NAN, 1, 1},
                                         {1, (double)INFINITY, 1},
                                         {1, 1, 1},
                                         {1, 1, 1},
                                         {1, 1, 1},
                                         {1, 1, 1},
                                         {1, 1, 1}};
    static const double directions[8][3] = {{1, 0, 0},
                                            {1, 0, 0},
                                            {1, 0, 0},
                                            {0, (double)NAN, 0},
                                            {0, 0, -(double)INFINITY},
                                            {0, -0.0, 0},
                                            {1, 0, 0},
                                            {1, 0, 0}};
    static const double ranges[8] = {(double)INFINITY, 9, 9, 9, 9, 9, (double)NAN, -1};
    struct vxd_svdag_format format = {4, 0, false};
    struct gpu_svdag_voxel voxel = {gpu_svdag_morton(1, 1, 1), GPU_SVDAG_MATERIAL};
    struct gpu_svdag_scene scene;
    struct vxd_svdag_hit *hits;

    gpu_svdag_scene_build(env->queue, &format, &voxel, 1, &scene);
    hits = cast(env, &scene, origins[0], directions[0], ranges, 8);
    for (int i = 0; i < 8; i++) {
        CHECK_INT(hits[i].bad, i > 0);
        CHECK_INT(hits[i].voxel[0], i == 0 ? 1 : -1);
        CHECK(hits[i].distance == (i == 0 ? 0.0 : -1.0));
        CHECK_INT(hits[i].normal, 0);
    }
    free(hits);
    gpu_svdag_scene_free(env->queue, &scene);
}

static void test_rays_that_are_bad_hit_nothing_and_say_so(void)
{
    gpu_each_backend(bad_rays);
}

/* Roots that are not nodes. */
static void uniform_rays(struct gpu_env *env)
{
    static const double origin[3] = {-4, 7.5, 9.5};
    static const double direction[3] = {2, 0, 0};
    struct vxd_svdag_format format = {21, 4, true};
    struct gpu_svdag_scene scene;
    struct vxd_svdag_hit *hits;

    gpu_svdag_scene_build(env->queue, &format, NULL, 0, &scene);
    for (int i = 0; i < 3; i++) {
        scene.root = i == 0 ? VXD_SVDAG_EMPTY : VXD_SVDAG_UNIFORM | (i == 1 ? 15u : 3u);
        hits = cast(env, &scene, origin, direction, NULL, 1);
        CHECK(hits->distance == (i == 2 ? 4.0 : -1.0));
        CHECK_INT(hits->voxel[0], i == 2 ? 0 : -1);
        CHECK_INT(hits->voxel[1], i == 2 ? 7 : -1);
        CHECK_INT(hits->value, i == 2 ? 3 : 0);
        CHECK_INT(hits->normal, i == 2 ? -1 : 0);
        CHECK_INT(hits->bad, 0);
        free(hits);
    }
    gpu_svdag_scene_free(env->queue, &scene);
}

static void test_rays_in_uniform_scenes_hit_their_border(void)
{
    gpu_each_backend(uniform_rays);
}

/* A ray whose planes on one axis are never crossed, because the time per voxel overflows;
 * it starts on such a plane, so the next one is 0 voxels away and infinitely late. */
static void endless_rays(struct gpu_env *env)
{
    static const double origins[2][3] = {{2, 5, 5}, {2.5, 5, 5}};
    static const double directions[2][3] = {{0, -5e-324, 1}, {1, 5e-324, -5e-324}};
    struct vxd_svdag_format format = {4, 0, false};
    struct gpu_svdag_voxel voxels[2] = {{gpu_svdag_morton(2, 5, 9), GPU_SVDAG_MATERIAL},
                                        {gpu_svdag_morton(7, 5, 5), GPU_SVDAG_MATERIAL}};
    struct gpu_svdag_scene scene;
    struct vxd_svdag_hit *hits;

    qsort(voxels, 2, sizeof *voxels, gpu_svdag_voxel_compare);
    gpu_svdag_scene_build(env->queue, &format, voxels, 2, &scene);
    hits = cast(env, &scene, origins[0], directions[0], NULL, 2);
    CHECK(hits[0].distance == 4.0);
    CHECK_INT(hits[0].voxel[2], 9);
    CHECK_INT(hits[0].normal, -3);
    CHECK(hits[1].distance == 4.5);
    CHECK_INT(hits[1].voxel[0], 7);
    CHECK_INT(hits[1].normal, -1);
    free(hits);
    gpu_svdag_scene_free(env->queue, &scene);
}

static void test_rays_from_a_plane_that_they_never_cross_go_on(void)
{
    gpu_each_backend(endless_rays);
}

/* So many rays that each GPU thread casts several; then a few of them again. */
static void many_rays(struct gpu_env *env)
{
    enum {
        N = 150000,
        FEW = 500,
        SIDE = 64
    };
    static const struct vxd_svdag_format format = {6, 4, true};
    uint32_t *grid = gpu_svdag_random_grid(&format, 6);
    size_t n_voxels;
    struct gpu_svdag_voxel *voxels = gpu_svdag_grid_voxels(grid, format.depth, &n_voxels);
    double *origins = gpu_alloc((size_t)3 * N * sizeof *origins);
    double *directions = gpu_alloc((size_t)3 * N * sizeof *directions);
    struct gpu_svdag_scene scene;
    struct vxd_svdag_hit *all;
    uint64_t state = 8;

    gpu_svdag_scene_build(env->queue, &format, voxels, n_voxels, &scene);
    for (size_t i = 0; i < N; i++) {
        random_ray((int)(gpu_random(&state) % N_KINDS), SIDE, origins + 3 * i,
                   directions + 3 * i, &state);
    }
    all = cast(env, &scene, origins, directions, NULL, N);
    for (size_t first = 0; first + FEW <= N; first += (size_t)9 * FEW + 7) {
        struct vxd_svdag_hit *few =
            cast(env, &scene, origins + 3 * first, directions + 3 * first, NULL, FEW);

        for (size_t i = 0; i < FEW; i++) {
            CHECK(same_hit(all + first + i, few + i));
        }
        free(few);
    }
    free(all);
    gpu_svdag_scene_free(env->queue, &scene);
    free(directions);
    free(origins);
    free(voxels);
    free(grid);
}

static void test_rays_many_at_once_hit_what_few_do(void)
{
    gpu_each_backend(many_rays);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_rays_in_dense_grids_hit_what_single_steps_hit),
    VXD_TEST(test_rays_in_deep_scenes_hit_the_first_of_few_voxels),
    VXD_TEST(test_rays_that_are_bad_hit_nothing_and_say_so),
    VXD_TEST(test_rays_in_uniform_scenes_hit_their_border),
    VXD_TEST(test_rays_many_at_once_hit_what_few_do),
    VXD_TEST(test_rays_from_a_plane_that_they_never_cross_go_on),
};

VXD_TEST_MAIN(tests)
