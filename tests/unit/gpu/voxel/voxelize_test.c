// SPDX-License-Identifier: Apache-2.0
/* Voxelization against the oracle, and what it refuses. */
#include <float.h>
#include <math.h>

#include "tests/support/gpu/voxelize_cases.h"
#include "tests/support/gpu/voxelize_oracle.h"
#include "tests/support/test.h"

static void check_case(struct gpu_env *env, enum gpu_cloud_kind kind, size_t n,
                       int config)
{
    struct gpu_case item;
    struct gpu_voxels actual;
    struct gpu_voxels expected;
    char label[160];

    gpu_case_make(&item, kind, n, config);
    (void)snprintf(label, sizeof label, "%s %s", env->name, item.name);
    gpu_oracle(&item.args, &expected);
    gpu_voxelize(env, &item.args, &actual);
    CHECK_INT(gpu_compare(label, &item.args, &actual, &expected), 0);
    gpu_voxels_free(&actual);
    gpu_voxels_free(&expected);
    gpu_case_free(&item);
}

static void small_sizes(struct gpu_env *env)
{
    static const size_t sizes[] = {0, 1, 255, 256, 257, 1023, 1024, 1025, 5000};

    for (int kind = 0; kind < GPU_N_CLOUD_KINDS; kind++) {
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            for (int config = 0; config < GPU_N_CONFIGS; config++) {
                check_case(env, (enum gpu_cloud_kind)kind, sizes[i], config);
            }
        }
    }
}

static void test_voxelize_of_small_clouds_equals_oracle(void)
{
    gpu_each_backend(small_sizes);
}

/* Only coordinates and counts are requested, for which shorter code is used than for
 * all outputs. */
static void check_coords_alone(struct gpu_env *env, enum gpu_cloud_kind kind, size_t n,
                               int config)
{
    struct gpu_case item;
    struct gpu_voxels all;
    struct vxd_voxels out = {0};
    struct vxd_err err = {0};

    gpu_case_make(&item, kind, n, config);
    gpu_voxelize(env, &item.args, &all);
    struct vxd_voxelize_args args = item.args;
    size_t n_batch = (size_t)args.n_batch;
    size_t m = vxd_voxelize_capacity(&args);
    struct vxd_buffer buffers[] = {
        gpu_to_device(env, NULL, n_batch * sizeof *out.totals),
        gpu_to_device(env, NULL, (n_batch + 1) * sizeof *out.starts),
        gpu_to_device(env, NULL, m * 4 * sizeof *out.coords),
        gpu_to_device(env, NULL, m * sizeof *out.counts),
        gpu_to_device(env, args.positions, n * 3 * sizeof(float))};
    const void *expected[] = {all.totals, all.starts, all.coords, all.counts};
    size_t n_bytes[] = {n_batch * sizeof *out.totals, (n_batch + 1) * sizeof *out.starts,
                        all.n_voxels * 4 * sizeof *out.coords,
                        all.n_voxels * sizeof *out.counts};

    out = (struct vxd_voxels){.capacity = m,
                              .totals = buffers[0].ptr,
                              .starts = buffers[1].ptr,
                              .coords = buffers[2].ptr,
                              .counts = buffers[3].ptr};
    args.positions = buffers[4].ptr;
    args.features = NULL;
    args.n_channels = 0;
    CHECK_INT(vxd_voxelize(env->queue, &args, &out, &err), VXD_OK);
    for (int i = 0; i < 4; i++) {
        void *actual = gpu_to_host(env, &buffers[i]);

        CHECK(memcmp(actual, expected[i], n_bytes[i]) == 0);
        free(actual);
    }
    for (int i = 0; i < 5; i++) {
        vxd_device_free(env->queue, &buffers[i]);
    }
    gpu_wait(env);
    gpu_voxels_free(&all);
    gpu_case_free(&item);
}

static void coords_alone(struct gpu_env *env)
{
    static const size_t sizes[] = {1, 257, 5000};

    for (int kind = 0; kind < GPU_N_CLOUD_KINDS; kind++) {
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            for (int config = 0; config < GPU_N_CONFIGS; config++) {
                check_coords_alone(env, (enum gpu_cloud_kind)kind, sizes[i], config);
            }
        }
    }
}

static void test_voxelize_of_coordinates_alone_gives_the_same_voxels(void)
{
    gpu_each_backend(coords_alone);
}

enum {
    N_LATTICE_POINTS = 400
};

/* Any magnitude from below the least normal number to almost the greatest, either
 * sign. */
static float random_magnitude(uint64_t *seed)
{
    float value =
        ldexpf(gpu_random_float(seed, 1, 2), (int)(gpu_random(seed) % 270) - 145);

    return gpu_random(seed) % 2 == 0 ? value : -value;
}

/* Extents of few to many cells, near zero and so far from it that cells lose bits. */
static void random_lattice(uint64_t *seed, struct vxd_voxelize_args *args)
{
    args->rule = gpu_random(seed) % 2 == 0 ? VXD_RULE_SPCONV : VXD_RULE_MINKOWSKI;
    args->has_range = args->rule == VXD_RULE_SPCONV || gpu_random(seed) % 4 != 0;
    for (int axis = 0; axis < 3; axis++) {
        float size = fabsf(random_magnitude(seed));
        float offset = gpu_random_float(seed, -1, 1);

        args->size_m[axis] = size;
        offset *= size * ldexpf(1, (int)(gpu_random(seed) % 24));
        args->range_lo_m[axis] = gpu_random(seed) % 4 == 0 ? 0.0f : offset;
        args->range_hi_m[axis] =
            args->range_lo_m[axis] +
            size * ldexpf(gpu_random_float(seed, 0.4f, 2), (int)(gpu_random(seed) % 21));
    }
}

/* On borders, one unit in the last place beside them, and anywhere. */
static float random_position(uint64_t *seed, const struct vxd_voxelize_args *args,
                             int axis)
{
    float lo = args->range_lo_m[axis];
    float hi = args->range_hi_m[axis];
    float size = args->size_m[axis];

    switch (gpu_random(seed) % 8) {
    case 0:
        lo = gpu_random(seed) % 2 == 0 ? lo : hi;
        break;
    case 1:
        lo = gpu_random(seed) % 2 == 0 ? 0.0f : -0.0f;
        break;
    case 2:
        return random_magnitude(seed);
    case 3:
        lo = size * 1048576.0f * (gpu_random(seed) % 2 == 0 ? 1.0f : -1.0f);
        break;
    case 4:
        lo = size * (float)((int)(gpu_random(seed) % 64) - 32);
        break;
    case 5:
        lo = lo + size * (float)(gpu_random(seed) % 64);
        break;
    default:
        return lo + (hi - lo) * gpu_random_float(seed, -0.1f, 1.1f);
    }
    switch (gpu_random(seed) % 3) {
    case 0:
        return nextafterf(lo, -FLT_MAX);
    case 1:
        return nextafterf(lo, FLT_MAX);
    default:
        return lo;
    }
}

static void random_lattices(struct gpu_env *env)
{
    static float positions[3 * N_LATTICE_POINTS];
    uint64_t seed = 42;
    int n_run = 0;

    for (int i = 0; i < 2000; i++) {
        uint32_t starts[4] = {0, (uint32_t)(gpu_random(&seed) % N_LATTICE_POINTS), 0,
                              N_LATTICE_POINTS};
        struct vxd_voxelize_args args = {.positions = positions,
                                         .features = positions,
                                         .n_points = N_LATTICE_POINTS,
                                         .n_channels = 3,
                                         .batch_starts = starts,
                                         .n_batch = 3};
        struct gpu_voxels actual;
        struct gpu_voxels expected;
        char label[64];

        starts[2] = starts[1];
        args.order = i % 3 == 0 ? VXD_ORDER_FIRST_POINT : VXD_ORDER_MORTON;
        args.max_voxels = i % 5 == 0 ? 20 : 0;
        args.max_points = i % 7 == 0 ? 2 : i % 9 == 3 ? 1 + (uint32_t)i % 4 : 0;
        random_lattice(&seed, &args);
        for (int k = 0; k < 3 * N_LATTICE_POINTS; k++) {
            positions[k] = random_position(&seed, &args, k % 3);
        }
        if (vxd_voxelize_scratch_bytes(env->queue, &args) == 0) {
            continue; /* not 1 to 2^20 cells */
        }
        (void)snprintf(label, sizeof label, "%s lattice %d", env->name, i);
        gpu_oracle(&args, &expected);
        gpu_voxelize(env, &args, &actual);
        CHECK_INT(gpu_compare(label, &args, &actual, &expected), 0);
        n_run += expected.n_voxels > 0 ? 1 : 0;
        gpu_voxels_free(&actual);
        gpu_voxels_free(&expected);
    }
    CHECK(n_run > 500);
}

static void test_voxelize_of_random_lattices_equals_oracle(void)
{
    gpu_each_backend(random_lattices);
}

static void large_sizes(struct gpu_env *env)
{
    for (int kind = 0; kind < GPU_N_CLOUD_KINDS; kind++) {
        for (int config = 0; config < GPU_N_CONFIGS; config++) {
            if (config != 11) { /* 64 channels */
                check_case(env, (enum gpu_cloud_kind)kind,
                           (size_t)vxd_test_rounds(100000), config);
            }
        }
    }
}

static void test_voxelize_of_large_clouds_equals_oracle(void)
{
    gpu_each_backend(large_sizes);
}

static void one_giant_voxel(struct gpu_env *env)
{
    check_case(env, GPU_CLOUD_SAME, 140001, 1);
    check_case(env, GPU_CLOUD_MIXED, 300000, 0);
    check_case(env, GPU_CLOUD_MIXED, 60000, 11);
}

static void test_voxelize_with_giant_voxels_sums_block_by_block(void)
{
    gpu_each_backend(one_giant_voxel);
}

/* Valid arguments, for tests that make one of them invalid. */
struct request {
    struct vxd_voxelize_args args;
    struct vxd_voxels out;
    uint32_t batch_starts[3];
    struct vxd_buffer memory;
};

static void request_make(struct gpu_env *env, struct request *request)
{
    float points[12] = {0.5f, 0.5f, 0.5f, 1.5f, 0.5f, 0.5f,
                        0.5f, 2.5f, 0.5f, 0.6f, 0.5f, 0.5f};
    struct vxd_voxelize_args args = {.n_points = 4,
                                     .n_channels = 3,
                                     .n_batch = 2,
                                     .size_m = {1, 1, 1},
                                     .has_range = true,
                                     .range_hi_m = {4, 4, 4}};
    char *device;

    *request = (struct request){.args = args, .batch_starts = {0, 2, 4}};
    request->memory = gpu_to_device(env, NULL, 8192);
    device = request->memory.ptr;
    CHECK_INT(vxd_queue_copy(env->queue, device, points, sizeof points, NULL), VXD_OK);
    gpu_wait(env);
    request->args.positions = (const float *)(void *)device;
    request->args.features = request->args.positions;
    request->args.batch_starts = request->batch_starts;
    request->out.capacity = 4;
    request->out.totals = (void *)(device + 1024);
    request->out.starts = (void *)(device + 2048);
    request->out.coords = (void *)(device + 3072);
    request->out.mean = (void *)(device + 4096);
}

static void expect_refusal(struct gpu_env *env, const struct request *request,
                           const char *field, int line)
{
    struct vxd_err err = {0};
    enum vxd_status status =
        vxd_voxelize(env->queue, &request->args, &request->out, &err);

    if (status != VXD_INVALID_ARGUMENT || strcmp(err.field, field) != 0 ||
        err.code != VXD_INVALID_ARGUMENT || err.message[0] == '\0') {
        (void)fprintf(stderr, "line %d: status %d, field \"%s\", expected \"%s\": %s\n",
                      line, (int)status, err.field, field, err.message);
        CHECK(false && "refused as documented");
    }
}

#define REFUSE(field, spoil)                                                             \
    do {                                                                                 \
        struct request r = good;                                                         \
                                                                                         \
        r.args.batch_starts = r.batch_starts;                                            \
        spoil;                                                                           \
        expect_refusal(env, &r, field, __LINE__);                                        \
    } while (0)

static void bad_arguments(struct gpu_env *env)
{
    struct request good;

    request_make(env, &good);
    REFUSE("n_points", r.args.n_points = (size_t)INT32_MAX + 1);
    REFUSE("n_channels", r.args.n_channels = -1);
    REFUSE("n_channels", r.args.n_channels = VXD_MAX_CHANNELS + 1);
    REFUSE("n_batch", r.args.n_batch = 0);
    REFUSE("n_batch", r.args.n_batch = VXD_MAX_BATCH + 1);
    REFUSE("batch_starts", r.args.batch_starts = NULL);
    REFUSE("batch_starts", r.batch_starts[0] = 1);
    REFUSE("batch_starts", r.batch_starts[2] = 3);
    REFUSE("batch_starts", r.batch_starts[1] = 5);
    REFUSE("rule", r.args.rule = (enum vxd_voxel_rule)3);
    REFUSE("order", r.args.order = (enum vxd_voxel_order)7);
    REFUSE("size_m", r.args.size_m[1] = 0);
    REFUSE("size_m", r.args.size_m[2] = -1);
    REFUSE("size_m", r.args.size_m[0] = NAN);
    REFUSE("size_m", r.args.size_m[0] = INFINITY);
    REFUSE("size_m", r.args.size_m[0] = 100);    /* no cell */
    REFUSE("size_m", r.args.size_m[0] = 1e-6f);  /* too many */
    REFUSE("size_m", r.args.size_m[0] = 1e-44f); /* infinitely many */
    REFUSE("range", r.args.has_range = false);
    REFUSE("range", r.args.range_hi_m[0] = NAN);
    REFUSE("range", r.args.range_lo_m[0] = -INFINITY);
    REFUSE("range", r.args.range_hi_m[2] = 0);
    REFUSE("range", (r.args.rule = VXD_RULE_MINKOWSKI, r.args.range_hi_m[2] = -1));
    REFUSE("positions", r.args.positions = NULL);
    REFUSE("features", r.args.features = NULL);
    REFUSE("totals", r.out.totals = NULL);
    REFUSE("starts", r.out.starts = NULL);
    REFUSE("capacity", r.out.capacity = 3);
    REFUSE("max_points", (r.out.points = r.out.mean, r.args.max_voxels = 1));
    REFUSE("max_voxels", (r.out.points = r.out.mean, r.args.max_points = 1));

    CHECK_INT(vxd_voxelize(env->queue, &good.args, &good.out, NULL), VXD_OK);
    CHECK_INT(vxd_queue_wait(env->queue, NULL), VXD_OK);
    good.args.size_m[0] = 0;
    CHECK_INT(vxd_voxelize_scratch_bytes(env->queue, &good.args), 0);
    vxd_device_free(env->queue, &good.memory);
}

static void test_voxelize_with_bad_arguments_names_the_field(void)
{
    gpu_each_backend(bad_arguments);
}

static void test_voxelize_over_the_budget_leaves_everything_usable(void)
{
    struct gpu_env env;
    struct request request;
    struct vxd_memory_usage before;
    struct vxd_memory_usage after;
    struct vxd_buffer rest;
    struct vxd_err err = {0};
    uint32_t *starts;

    gpu_env_create(&env, VXD_BACKEND_CPU, 2, 100000, 0);
    request_make(&env, &request);
    vxd_context_get_memory(env.context, &before);
    REQUIRE(vxd_device_alloc(env.queue, 100000 - before.device_bytes - 256, &rest,
                             &err) == VXD_OK);
    CHECK_INT(vxd_voxelize(env.queue, &request.args, &request.out, &err),
              VXD_RESOURCE_EXHAUSTED);
    CHECK_INT(vxd_queue_wait(env.queue, NULL), VXD_OK);
    starts = gpu_to_host(&env, &request.memory);
    CHECK_INT(starts[512], 0xa5a5a5a5u); /* nothing was written */
    free(starts);
    vxd_device_free(env.queue, &rest);
    CHECK_INT(vxd_queue_wait(env.queue, NULL), VXD_OK);
    CHECK_INT(vxd_voxelize(env.queue, &request.args, &request.out, &err), VXD_OK);
    CHECK_INT(vxd_queue_wait(env.queue, &err), VXD_OK);
    starts = gpu_to_host(&env, &request.memory);
    CHECK_INT(starts[512 + 2], 4);
    free(starts);
    vxd_context_get_memory(env.context, &after);
    CHECK_INT(after.device_bytes, before.device_bytes);
    CHECK(after.device_peak_bytes <= 100000);
    vxd_device_free(env.queue, &request.memory);
    gpu_env_destroy(&env);
}

static void test_voxelize_capacity_is_the_smaller_bound(void)
{
    struct vxd_voxelize_args args = {.n_points = 1000, .n_batch = 3};

    CHECK_INT(vxd_voxelize_capacity(&args), 1000);
    args.max_voxels = 100;
    CHECK_INT(vxd_voxelize_capacity(&args), 300);
    args.max_voxels = UINT32_MAX;
    CHECK_INT(vxd_voxelize_capacity(&args), 1000);
}

static void test_grid_of_centerpoint_is_1440_by_1440_by_40(void)
{
    struct vxd_voxelize_args args = {.has_range = true,
                                     .size_m = {0.075f, 0.075f, 0.2f},
                                     .range_lo_m = {-54, -54, -5},
                                     .range_hi_m = {54, 54, 3}};
    int32_t grid[3] = {0, 0, 0};

    CHECK_INT(vxd_voxelize_grid(&args, grid, NULL), VXD_OK);
    CHECK_INT(grid[0], 1440);
    CHECK_INT(grid[1], 1440);
    CHECK_INT(grid[2], 40);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_voxelize_of_small_clouds_equals_oracle),
    VXD_TEST(test_voxelize_of_coordinates_alone_gives_the_same_voxels),
    VXD_TEST(test_voxelize_of_random_lattices_equals_oracle),
    VXD_TEST(test_voxelize_of_large_clouds_equals_oracle),
    VXD_TEST(test_voxelize_with_giant_voxels_sums_block_by_block),
    VXD_TEST(test_voxelize_with_bad_arguments_names_the_field),
    VXD_TEST(test_voxelize_over_the_budget_leaves_everything_usable),
    VXD_TEST(test_voxelize_capacity_is_the_smaller_bound),
    VXD_TEST(test_grid_of_centerpoint_is_1440_by_1440_by_40),
};

VXD_TEST_MAIN(tests)
