// SPDX-License-Identifier: Apache-2.0
/* Scans and lists of voxels, against plain grids and traversals. Linked with --wrap, so
 * that every allocation can fail in turn. */
#include "tests/support/test.h"

#include <math.h>

#include "gpu/svdag/scan/scan.h"
#include "tests/support/failing_alloc.h"
#include "tests/support/svdag/svdag_rays.h"
#include "tests/support/svdag/svdag_run.h"
#include "tests/support/gpu/gpu_helpers.h"

enum {
    N_FORMATS = 5,
    MAX_POINTS = 300,
    REAL_DEPTH = 8 /* of 0.5 m: 128 m */
};

static const struct vxd_svdag_format formats[N_FORMATS] = {
    {5, 0, false}, {5, 0, true}, {5, 4, true}, {5, 8, false}, {5, 16, true}};

static void free_result(struct gpu_env *env, struct vxd_svdag_scan_result *result)
{
    gpu_svdag_list_free(env, &result->hits);
    gpu_svdag_list_free(env, &result->passed);
    gpu_svdag_ends_free(env, &result->ends);
}

static uint64_t bytes_of(const struct gpu_env *env)
{
    struct vxd_memory_usage usage;

    vxd_context_get_memory(env->context, &usage);
    return usage.device_bytes + usage.host_bytes;
}

/* Scans ------------------------------------------------------------------------------------ */

static void random_point(const struct vxd_svdag_scan *scan, int64_t side, uint64_t *state,
                         float point[3])
{
    uint64_t kind = gpu_random(state) % 32;

    do {
        for (int a = 0; a < 3; a++) {
            float margin = kind < 4 ? (float)side : 2;
            float low = (float)-scan->base[a];

            point[a] = gpu_random_float(state, low - margin, low + (float)side + margin);
            point[a] = kind == 5 ? floorf(point[a]) : point[a];
        }
        if (kind == 6) {
            point[gpu_random(state) % 3] = NAN;
        } else if (kind == 7) {
            point[gpu_random(state) % 3] = gpu_random(state) % 2 == 0 ? INFINITY : -1e30F;
        } else if (kind == 8) { /* along an axis */
            point[gpu_random(state) % 3] = (float)scan->origin[0];
        }
        kind = 9; /* all the special ones may depend on rounding */
    } while (!gpu_svdag_point_is_clear(scan, point));
}

static void random_scan(struct vxd_svdag_scan *scan,
                        const struct vxd_svdag_format *format, uint64_t *state,
                        float *points, uint16_t *values)
{
    int64_t side = (int64_t)1 << format->depth;
    uint64_t where = gpu_random(state) % 8;

    *scan = (struct vxd_svdag_scan){.points = points,
                                    .n = gpu_random(state) % MAX_POINTS,
                                    .carve = gpu_random(state) % 8 != 0,
                                    .discretize = gpu_random(state) % 4 == 0};
    scan->value = (uint32_t)(gpu_random(state) % vxd_svdag_n_materials(format));
    scan->values = gpu_random(state) % 4 == 0 ? NULL : values;
    if (gpu_random(state) % 2 == 0) {
        scan->max_range =
            1.386 + (double)(gpu_random(state) % (uint64_t)(2 * side)) * 0.75;
    }
    for (int a = 0; a < 3; a++) {
        double margin = where == 0 ? 3.0 * (double)side : where == 1 ? 5.0 : 0.0;

        scan->base[a] = (int64_t)(gpu_random(state) % 2000) - 1000;
        scan->origin[a] =
            -(double)scan->base[a] - margin +
            (double)(gpu_random(state) >> 11) * 0x1p-53 * ((double)side + 2 * margin);
        scan->origin[a] = where == 2 && a == 0 ? floor(scan->origin[a]) : scan->origin[a];
    }
    if (where == 3) {
        scan->origin[0] = -1e12;
    }
    for (size_t i = 0; i < scan->n; i++) {
        random_point(scan, side, state, points + 3 * i);
        if (i > 0 && gpu_random(state) % 4 == 0) { /* repeats an earlier point */
            memcpy(points + 3 * i, points + 3 * (gpu_random(state) % i),
                   3 * sizeof *points);
        }
        values[i] = (uint16_t)(gpu_random(state) % vxd_svdag_n_materials(format));
    }
}

static void scan_cases(struct gpu_env *env, const struct vxd_svdag_format *format,
                       int n_cases, uint64_t seed)
{
    float points[3 * MAX_POINTS];
    uint16_t values[MAX_POINTS];
    struct gpu_svdag_scan_grid grid;
    uint64_t n_passed = 0;
    int n = vxd_test_rounds(n_cases);

    gpu_svdag_scan_grid_make(&grid, format->depth);
    for (int k = 0; k < n; k++) {
        struct vxd_svdag_scan scan;
        struct vxd_svdag_scan_result result;
        struct vxd_err err = {0};
        uint64_t state = seed * 1000003 + (uint64_t)k;

        random_scan(&scan, format, &state, points, values);
        gpu_svdag_scan_grid_run(&grid, &scan);
        CHECK_INT(gpu_svdag_scan(env, format, &scan, &result, &err), VXD_OK);
        CHECK_INT(gpu_svdag_scan_grid_compare(&grid, &result), 0);
        n_passed += result.n_passed_voxels;
        free_result(env, &result);
    }
    CHECK(n_passed > 0 || n == 1);
    CHECK_INT(bytes_of(env), 0);
    gpu_svdag_scan_grid_free(&grid);
}

static void random_points(struct gpu_env *env)
{
    const struct vxd_svdag_format smallest = {4, 8, true};
    const struct vxd_svdag_format middle = {6, 0, false};
    const struct vxd_svdag_format large = {7, 8, true};

    for (int f = 0; f < N_FORMATS; f++) {
        scan_cases(env, &formats[f], 100, (uint64_t)f);
    }
    scan_cases(env, &smallest, 100, 100);
    scan_cases(env, &middle, 30, 101);
    scan_cases(env, &large, 6, 102);
}

static void test_scan_of_random_points_is_that_of_a_dense_walk(void)
{
    gpu_each_backend(random_points);
}

static bool lists_equal(const struct vxd_svdag_voxels *a,
                        const struct vxd_svdag_voxels *b)
{
    size_t n_values = 0;
    bool is_equal = a->n == b->n && (a->values == NULL) == (b->values == NULL);

    for (size_t i = 0; i < a->n && is_equal; i++) {
        is_equal = a->codes[i] == b->codes[i] && a->masks[i] == b->masks[i];
        n_values += (size_t)__builtin_popcountll(a->masks[i]);
    }
    return is_equal && (a->values == NULL || a->n == 0 ||
                        memcmp(a->values, b->values, n_values * sizeof *a->values) == 0);
}

/* Scans in steps ------------------------------------------------------------------------- */

enum {
    N_FAR = 20000,
    N_FAR_STEPS = 4 /* on a CPU: hits, some of the rays, the others, the list */
};

/* Rays through a scene of 1024^3, too many for one step. */
static void far_points(struct vxd_svdag_scan *scan, float *points, uint16_t *values)
{
    uint64_t state = 77;

    for (size_t i = 0; i < (size_t)3 * N_FAR; i++) {
        points[i] = gpu_random_float(&state, 0, 1024);
    }
    for (size_t i = 0; i < N_FAR; i++) {
        values[i] = (uint16_t)(gpu_random(&state) % 15);
    }
    *scan = (struct vxd_svdag_scan){.points = points,
                                    .values = values,
                                    .n = N_FAR,
                                    .origin = {0.5, 0.5, 0.5},
                                    .carve = true,
                                    .wants_ends = true};
}

/* Makes at most *n steps of a scan, and counts them. */
static enum vxd_status make_steps(struct gpu_env *env,
                                  const struct vxd_svdag_format *format,
                                  const struct vxd_svdag_scan *scan, int *n,
                                  struct vxd_svdag_scan_result *out)
{
    struct vxd_svdag_scanning *scanning;
    bool is_done = false;
    int n_made = 0;
    enum vxd_status status =
        vxd_svdag_scan_begin(env->queue, format, scan, &scanning, NULL);

    *out = (struct vxd_svdag_scan_result){0};
    while (status == VXD_OK && !is_done && n_made < *n) {
        status = vxd_svdag_scan_step(env->queue, scanning, out, &is_done, NULL);
        n_made++;
    }
    vxd_svdag_scan_end(scanning);
    *n = n_made;
    return status;
}

static void in_steps(struct gpu_env *env)
{
    static float points[3 * N_FAR];
    static uint16_t values[N_FAR];
    const struct vxd_svdag_format format = {10, 4, true};
    struct vxd_svdag_scan scan;
    struct vxd_svdag_scan_result whole;
    struct vxd_svdag_scan_result result;
    int n = INT32_MAX;

    if (gpu_is_cuda(env)) {
        return; /* its scans have one step, and the arrays above are not on the device */
    }
    far_points(&scan, points, values);
    REQUIRE(gpu_svdag_scan(env, &format, &scan, &whole, NULL) == VXD_OK);
    REQUIRE(make_steps(env, &format, &scan, &n, &result) == VXD_OK);
    CHECK(n >= N_FAR_STEPS);
    CHECK(lists_equal(&result.hits.voxels, &whole.hits.voxels));
    CHECK(lists_equal(&result.passed.voxels, &whole.passed.voxels));
    CHECK_INT(result.n_passed_voxels, whole.n_passed_voxels);
    REQUIRE(result.ends.n == whole.ends.n);
    CHECK(memcmp(result.ends.ends, whole.ends.ends,
                 3 * whole.ends.n * sizeof *whole.ends.ends) == 0);
    free_result(env, &result);
    free_result(env, &whole);
    for (n = 0; n < N_FAR_STEPS; n++) { /* given up after so many */
        CHECK_INT(make_steps(env, &format, &scan, &n, &result), VXD_OK);
        gpu_wait(env);
        CHECK_INT(bytes_of(env), 0);
    }
}

static void test_scan_in_steps_is_the_scan_at_once(void)
{
    gpu_each_backend(in_steps);
}

static void nothing_or_copies(struct gpu_env *env)
{
    const struct vxd_svdag_format format = {10, 4, true};
    static float points[3 * 5000];
    static uint16_t values[5000];
    struct vxd_svdag_scan scan = {
        .points = points, .values = values, .origin = {0.5, 0.5, 0.5}, .carve = true};
    struct vxd_svdag_scan_result result;
    struct vxd_err err = {0};

    CHECK_INT(gpu_svdag_scan(env, &format, &scan, &result, &err), VXD_OK);
    CHECK(result.hits.voxels.n == 0 && result.passed.voxels.n == 0);
    CHECK(result.hits.memory.ptr == NULL && result.passed.memory.ptr == NULL);
    free_result(env, &result);
    for (size_t i = 0; i < 5000; i++) {
        points[3 * i] = 100.25F;
        points[3 * i + 1] = 0.25F;
        points[3 * i + 2] = 0.75F;
        values[i] = (uint16_t)(i % 15);
    }
    scan.n = 1;
    CHECK_INT(gpu_svdag_scan(env, &format, &scan, &result, &err), VXD_OK);
    CHECK_INT(result.n_hit_voxels, 1);
    CHECK_INT(result.n_passed_voxels, 100);
    CHECK_INT(result.passed.voxels.n, 25);
    free_result(env, &result);
    scan.n = 5000;
    CHECK_INT(gpu_svdag_scan(env, &format, &scan, &result, &err), VXD_OK);
    CHECK_INT(result.n_hit, 5000);
    CHECK_INT(result.n_hit_voxels, 1);
    CHECK_INT(result.n_passed_voxels, 100);
    REQUIRE(result.hits.voxels.n == 1);
    CHECK_INT(result.hits.voxels.values[0], 4999 % 15);
    free_result(env, &result);
    scan.origin[0] = 100.9; /* in the same voxel as the point */
    CHECK_INT(gpu_svdag_scan(env, &format, &scan, &result, &err), VXD_OK);
    CHECK_INT(result.n_passed_voxels, 0);
    free_result(env, &result);
    CHECK_INT(bytes_of(env), 0);
}

static void test_scan_of_nothing_or_of_copies_is_counted(void)
{
    gpu_each_backend(nothing_or_copies);
}

/* Marks the voxels of a list in a grid of 32^3 leaves' codes. */
static void mark_list(const struct vxd_svdag_voxels *list, uint64_t *masks)
{
    for (size_t i = 0; i < list->n; i++) {
        masks[list->codes[i]] |= list->masks[i];
    }
}

/* A sensor that moves: what each point's ray passes is what it passes in a scan of its own. */
static void moving(struct gpu_env *env)
{
    enum {
        N = 60,
        N_LEAVES = 512 /* of 32^3 voxels */
    };
    const struct vxd_svdag_format format = {5, 0, true};
    float points[3 * N];
    float origins[3 * N];
    uint64_t hit[N_LEAVES] = {0};
    uint64_t passed[N_LEAVES] = {0};
    uint64_t all_hit[N_LEAVES] = {0};
    uint64_t all_passed[N_LEAVES] = {0};
    struct vxd_svdag_scan scan = {.points = points,
                                  .origins = origins,
                                  .n = N,
                                  .base = {16, 16, 16},
                                  .carve = true};
    struct vxd_svdag_scan_result result;
    uint64_t state = 8;

    for (size_t i = 0; i < (size_t)3 * N; i++) {
        points[i] = gpu_random_float(&state, -15, 15);
        origins[i] = gpu_random_float(&state, -4, 4);
    }
    origins[5] = NAN;
    REQUIRE(gpu_svdag_scan(env, &format, &scan, &result, NULL) == VXD_OK);
    mark_list(&result.hits.voxels, all_hit);
    mark_list(&result.passed.voxels, all_passed);
    CHECK_INT(result.n_non_finite, 1);
    CHECK_INT(result.n_hit, N - 1);
    free_result(env, &result);
    for (size_t i = 0; i < N; i++) {
        struct vxd_svdag_scan one = scan;

        one.points = points + 3 * i;
        one.origins = NULL;
        one.n = i == 1 ? 0 : 1; /* the one without a finite origin */
        for (size_t a = 0; a < 3; a++) {
            one.origin[a] =
                i == 1 ? 0 : (floor((double)origins[3 * i + a] * 256) + 0.5) / 256;
        }
        REQUIRE(gpu_svdag_scan(env, &format, &one, &result, NULL) == VXD_OK);
        mark_list(&result.hits.voxels, hit);
        mark_list(&result.passed.voxels, passed);
        free_result(env, &result);
    }
    for (size_t i = 0; i < N_LEAVES; i++) {
        CHECK(all_hit[i] == hit[i]);
        CHECK(all_passed[i] == (passed[i] & ~hit[i]));
    }
}

static void test_rays_of_a_moving_sensor_start_where_it_was(void)
{
    gpu_each_backend(moving);
}

static void check_refused(struct gpu_env *env, const struct vxd_svdag_format *format,
                          const struct vxd_svdag_scan *scan, const char *field)
{
    struct vxd_svdag_scan_result result;
    struct vxd_err err = {0};

    CHECK_INT(gpu_svdag_scan(env, format, scan, &result, &err), VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, field);
    free_result(env, &result);
    CHECK_INT(bytes_of(env), 0);
}

static void bad_arguments(struct gpu_env *env)
{
    const struct vxd_svdag_format format = {8, 4, true};
    const struct vxd_svdag_format shallow = {3, 4, true};
    const struct vxd_svdag_format odd = {8, 5, true};
    const float point[3] = {1, 2, 3};
    const uint16_t reserved[1] = {15};
    const struct vxd_svdag_scan good = {.points = point, .n = 1, .carve = true};
    struct vxd_svdag_scan scan = good;

    check_refused(env, &shallow, &scan, "depth");
    check_refused(env, &odd, &scan, "material_bits");
    scan.n = ((size_t)1 << 28) + 1;
    check_refused(env, &format, &scan, "n");
    scan = good;
    scan.origin[1] = NAN;
    check_refused(env, &format, &scan, "origin");
    scan.origin[1] = INFINITY;
    check_refused(env, &format, &scan, "origin");
    scan = good;
    scan.max_range = -1;
    check_refused(env, &format, &scan, "max_range");
    scan.max_range = NAN;
    check_refused(env, &format, &scan, "max_range");
    scan = good;
    scan.base[2] = INT64_MIN;
    check_refused(env, &format, &scan, "base");
    scan = good;
    scan.value = 15; /* the value of FREE voxels */
    check_refused(env, &format, &scan, "value");
    scan = good;
    scan.n_rays_only = 2;
    check_refused(env, &format, &scan, "n_rays_only");
    scan = good;
    scan.values = reserved;
    check_refused(env, &format, &scan, "values");
}

static void test_scan_of_bad_arguments_is_refused(void)
{
    gpu_each_backend(bad_arguments);
}

/* Rays in all directions: enough for several allocations of bricks. */
static float *points_around(size_t n)
{
    float *points = gpu_alloc(n * 3 * sizeof *points);
    uint64_t state = 3;

    for (size_t i = 0; i < 3 * n; i++) {
        points[i] = gpu_random_float(&state, 0, 1024);
    }
    return points;
}

static void test_scan_over_the_budget_leaves_nothing_behind(void)
{
    const struct vxd_svdag_format format = {10, 0, true};
    const size_t n = 500;
    float *points = points_around(n);
    struct vxd_svdag_scan scan = {
        .points = points, .n = n, .origin = {512, 512, 512}, .carve = true};
    int n_refused = 0;
    bool has_fit = false;

    for (size_t budget = 4096; !has_fit; budget += budget / 4) {
        struct vxd_svdag_scan_result result;
        struct vxd_err err = {0};
        struct gpu_env env;
        enum vxd_status status;

        gpu_env_create(&env, VXD_BACKEND_CPU, 3, budget, 0);
        status = gpu_svdag_scan(&env, &format, &scan, &result, &err);
        CHECK(status == VXD_OK || status == VXD_RESOURCE_EXHAUSTED);
        CHECK(status == VXD_OK || err.message[0] != '\0');
        has_fit = status == VXD_OK;
        n_refused += !has_fit;
        free_result(&env, &result);
        CHECK_INT(bytes_of(&env), 0);
        gpu_env_destroy(&env);
        REQUIRE(budget < (size_t)1 << 30);
    }
    CHECK(n_refused > 10);
    free(points);
}

static void scan_with_failing_allocations(bool in_steps)
{
    const struct vxd_svdag_format format = {10, 0, true};
    float *points = points_around(100);
    struct vxd_svdag_scan scan = {.points = points,
                                  .n = 100,
                                  .origin = {512, 512, 512},
                                  .carve = true,
                                  .wants_ends = true};
    bool has_run = false;

    for (int k = 0; !has_run; k++) {
        struct vxd_svdag_scan_result result;
        struct vxd_err err = {0};
        struct gpu_env env;
        int n_steps = INT32_MAX;
        enum vxd_status status;

        gpu_env_create(&env, VXD_BACKEND_CPU, 1, 0, 0);
        fail_allocation(k);
        status = in_steps ? make_steps(&env, &format, &scan, &n_steps, &result)
                          : gpu_svdag_scan(&env, &format, &scan, &result, &err);
        has_run = !stop_failing();
        /* A memory cache that fails to keep a block frees it. */
        CHECK(status == VXD_RESOURCE_EXHAUSTED || status == VXD_OK);
        CHECK(!has_run || status == VXD_OK);
        free_result(&env, &result);
        CHECK_INT(bytes_of(&env), 0);
        gpu_env_destroy(&env);
        REQUIRE(k < 1000);
    }
    free(points);
}

static void test_scan_with_every_allocation_failing_in_turn_fails_cleanly(void)
{
    scan_with_failing_allocations(false);
    scan_with_failing_allocations(true);
}

/* Ends of rays ------------------------------------------------------------------------------ */

/* The middles of n cells. */
static float *middles_of(const int32_t *cells, size_t n)
{
    float *points = gpu_alloc((3 * n + 1) * sizeof *points);

    for (size_t i = 0; i < 3 * n; i++) {
        points[i] = ((float)cells[i] + 0.5F) / 256;
    }
    return points;
}

/* The voxel of an end, as it is in a scene. */
static void voxel_of(const struct vxd_svdag_scan *scan, const int32_t *end,
                     int64_t voxel[3])
{
    for (int a = 0; a < 3; a++) {
        voxel[a] = (end[a] >> 8) + scan->base[a];
    }
}

/* The values of hits by their ends: those of the list, a voxel after the other. */
static uint16_t *values_of(const struct vxd_svdag_scan *scan,
                           const struct vxd_svdag_scan_result *result)
{
    const struct vxd_svdag_ray_ends *ends = &result->ends;
    uint16_t *values = gpu_alloc((ends->n + 1) * sizeof *values);
    size_t at = 0;

    for (size_t i = 0; i < ends->n_hits; i++) {
        int64_t last[3];
        int64_t voxel[3];

        voxel_of(scan, ends->ends + 3 * i, voxel);
        voxel_of(scan, ends->ends + 3 * (i > 0 ? i - 1 : 0), last);
        at += memcmp(voxel, last, sizeof last) != 0 ? 1 : 0;
        values[i] = result->hits.voxels.values[at];
    }
    return values;
}

/* Scans by the ends of another scan's rays. */
static void scan_again(struct gpu_env *env, const struct vxd_svdag_format *format,
                       const struct vxd_svdag_scan *scan,
                       const struct vxd_svdag_scan_result *first)
{
    const struct vxd_svdag_ray_ends *ends = &first->ends;
    struct vxd_svdag_scan again = {.n = ends->n,
                                   .n_rays_only = ends->n - ends->n_hits,
                                   .carve = true,
                                   .wants_ends = true};
    float *points = middles_of(ends->ends, ends->n);
    float *origins = ends->origins != NULL ? middles_of(ends->origins, ends->n) : NULL;
    uint16_t *values = values_of(scan, first);
    struct vxd_svdag_scan_result result;

    memcpy(again.base, scan->base, sizeof again.base);
    memcpy(again.origin, scan->origin, sizeof again.origin);
    again.points = points;
    again.origins = origins;
    again.values = values;
    CHECK_INT(gpu_svdag_scan(env, format, &again, &result, NULL), VXD_OK);
    CHECK(lists_equal(&result.hits.voxels, &first->hits.voxels));
    CHECK(lists_equal(&result.passed.voxels, &first->passed.voxels));
    CHECK_INT(result.ends.n, ends->n);
    CHECK_INT(result.ends.n_hits, ends->n_hits);
    free_result(env, &result);
    free(points);
    free(origins);
    free(values);
}

static void repeated(struct gpu_env *env)
{
    float points[3 * MAX_POINTS];
    float origins[3 * MAX_POINTS];
    uint16_t values[MAX_POINTS];
    size_t n_kept = 0;
    size_t n_far = 0;

    for (int k = 0; k < vxd_test_rounds(300); k++) {
        const struct vxd_svdag_format *format = &formats[k % N_FORMATS];
        struct vxd_svdag_scan scan;
        struct vxd_svdag_scan_result result;
        uint64_t state = 77000 + (uint64_t)k;

        random_scan(&scan, format, &state, points, values);
        for (size_t i = 0; i < 3 * scan.n; i++) {
            origins[i] = (float)scan.origin[i % 3] + gpu_random_float(&state, -2, 2);
        }
        scan.origins = k % 3 == 0 ? origins : NULL;
        scan.carve = true;
        scan.wants_ends = true;
        REQUIRE(gpu_svdag_scan(env, format, &scan, &result, NULL) == VXD_OK);
        n_kept += result.ends.n > 0;
        n_far += result.ends.n == 0 && scan.n > 0;
        if (result.ends.n > 0) {
            scan_again(env, format, &scan, &result);
        }
        free_result(env, &result);
    }
    CHECK(vxd_test_rounds(300) < 300 || (n_kept > 50 && n_far > 0));
    CHECK_INT(bytes_of(env), 0);
}

static void test_scan_by_the_ends_of_rays_gives_the_same_lists(void)
{
    gpu_each_backend(repeated);
}

/* Lists ------------------------------------------------------------------------------------ */

static void list_case(struct gpu_env *env, const struct vxd_svdag_format *format,
                      uint64_t *state)
{
    const int32_t side = 1 << format->depth;
    const size_t n_cells = (size_t)1 << (3 * format->depth);
    const size_t n = gpu_random(state) % 20000;
    const bool has_values = gpu_random(state) % 2 == 0;
    int32_t *voxels = gpu_alloc(n * 3 * sizeof *voxels);
    uint16_t *values = gpu_alloc(n * sizeof *values);
    int32_t *expected = gpu_alloc(n_cells * sizeof *expected);
    int32_t *actual = gpu_alloc(n_cells * sizeof *actual);
    uint8_t *grid = gpu_alloc(n_cells);
    struct vxd_svdag_voxel_list list;
    struct vxd_err err = {0};
    uint64_t n_outside = 0;
    uint64_t n_reported;
    uint64_t n_voxels;
    size_t n_wrong = 0;

    memset(expected, -1, n_cells * sizeof *expected);
    memset(actual, 0, n_cells * sizeof *actual);
    memset(grid, 0, n_cells);
    for (size_t i = 0; i < n; i++) {
        int32_t *v = voxels + 3 * i;
        bool is_in = true;

        for (int a = 0; a < 3; a++) {
            v[a] = (int32_t)(gpu_random(state) % (uint64_t)(side + 4)) - 2;
            v[a] = gpu_random(state) % 1000 == 0 ? INT32_MIN : v[a];
            is_in = is_in && v[a] >= 0 && v[a] < side;
        }
        values[i] = (uint16_t)(gpu_random(state) % vxd_svdag_n_materials(format));
        n_outside += !is_in;
        if (is_in) {
            expected[((int64_t)v[0] * side + v[1]) * side + v[2]] = values[i];
        }
    }
    CHECK_INT(gpu_svdag_list(env, format, voxels, has_values ? values : NULL, n, &list,
                             &n_reported, &err),
              VXD_OK);
    CHECK_INT(n_reported, n_outside);
    CHECK((list.voxels.values != NULL) == (has_values && list.voxels.n > 0));
    CHECK(gpu_svdag_list_to_grid(&list.voxels, side, grid, actual, &n_voxels));
    for (size_t i = 0; i < n_cells; i++) {
        n_wrong += (grid[i] != 0) != (expected[i] >= 0) ||
                   (has_values && grid[i] != 0 && actual[i] != expected[i]);
    }
    CHECK_INT(n_wrong, 0);
    gpu_svdag_list_free(env, &list);
    free(voxels);
    free(values);
    free(expected);
    free(actual);
    free(grid);
}

static void random_voxels(struct gpu_env *env)
{
    uint64_t state = 5;

    for (int k = 0; k < 60; k++) {
        list_case(env, &formats[k % N_FORMATS], &state);
    }
    CHECK_INT(bytes_of(env), 0);
}

static void test_list_of_random_voxels_holds_them_all(void)
{
    gpu_each_backend(random_voxels);
}

static void no_voxels(struct gpu_env *env)
{
    const struct vxd_svdag_format format = {5, 8, true};
    const int32_t voxel[3] = {1, 2, 3};
    const uint16_t reserved[1] = {255};
    struct vxd_svdag_voxel_list list;
    struct vxd_err err = {0};
    uint64_t n_outside = 7;

    CHECK_INT(gpu_svdag_list(env, &format, NULL, NULL, 0, &list, &n_outside, &err),
              VXD_OK);
    CHECK(list.voxels.n == 0 && n_outside == 0);
    CHECK_INT(gpu_svdag_list(env, &format, voxel, reserved, 1, &list, &n_outside, &err),
              VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, "values");
    gpu_svdag_list_free(env, &list);
}

static void test_list_of_no_voxels_or_bad_values_is_empty(void)
{
    gpu_each_backend(no_voxels);
}

static void real_drive(struct gpu_env *env)
{
    const char *const names[2] = {"lidar/kitti_seq_000000.bin",
                                  "lidar/kitti_seq_000001.bin"};
    const struct vxd_svdag_format format = {REAL_DEPTH, 0, true};
    struct gpu_svdag_scan_grid grid;

    gpu_svdag_scan_grid_make(&grid, REAL_DEPTH);
    for (int k = 0; k < 2; k++) {
        struct vxd_svdag_scan scan = {.base = {128, 128, 128},
                                      .origin = {0.03, -0.07, 0.01},
                                      .max_range = k == 0 ? 0 : 61.7,
                                      .carve = true};
        struct vxd_svdag_scan_result result;
        struct vxd_err err = {0};
        size_t n_bytes;
        float *records = gpu_read_data(names[k], &n_bytes);
        size_t n = 0;

        if (records == NULL) {
            gpu_svdag_scan_grid_free(&grid);
            return;
        }
        for (size_t i = 0; i < n_bytes / 16;
             i++) { /* in place: keeps 3 of every 4 floats */
            float point[3] = {2 * records[4 * i], 2 * records[4 * i + 1],
                              2 * records[4 * i + 2]};

            if (gpu_svdag_point_is_clear(&scan, point)) {
                memcpy(records + 3 * n, point, sizeof point);
                n++;
            }
        }
        CHECK(n > n_bytes / 16 - 100);
        scan.points = records;
        scan.n = n;
        gpu_svdag_scan_grid_run(&grid, &scan);
        CHECK_INT(gpu_svdag_scan(env, &format, &scan, &result, &err), VXD_OK);
        CHECK_INT(gpu_svdag_scan_grid_compare(&grid, &result), 0);
        CHECK(result.n_hit_voxels > 4000 && result.n_passed_voxels > 30000);
        free_result(env, &result);
        free(records);
    }
    gpu_svdag_scan_grid_free(&grid);
}

static void test_scan_of_a_real_drive_is_that_of_a_dense_walk(void)
{
    size_t n_bytes;
    void *records = gpu_read_data("lidar/kitti_seq_000000.bin", &n_bytes);

    if (records == NULL) {
        SKIP("no data directory");
    }
    free(records);
    gpu_each_backend(real_drive);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_scan_of_random_points_is_that_of_a_dense_walk),
    VXD_TEST(test_scan_of_nothing_or_of_copies_is_counted),
    VXD_TEST(test_scan_in_steps_is_the_scan_at_once),
    VXD_TEST(test_rays_of_a_moving_sensor_start_where_it_was),
    VXD_TEST(test_scan_of_bad_arguments_is_refused),
    VXD_TEST(test_scan_by_the_ends_of_rays_gives_the_same_lists),
    VXD_TEST(test_scan_over_the_budget_leaves_nothing_behind),
    VXD_TEST(test_scan_with_every_allocation_failing_in_turn_fails_cleanly),
    VXD_TEST(test_list_of_random_voxels_holds_them_all),
    VXD_TEST(test_list_of_no_voxels_or_bad_values_is_empty),
    VXD_TEST(test_scan_of_a_real_drive_is_that_of_a_dense_walk),
};

VXD_TEST_MAIN(tests)
