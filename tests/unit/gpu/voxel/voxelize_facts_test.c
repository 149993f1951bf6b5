// SPDX-License-Identifier: Apache-2.0
/* Properties that hold for any implementation: symmetries of voxelization, and counts
 * that others recorded for real scans. */
#include "tests/support/gpu/voxelize_cases.h"
#include "tests/support/gpu/voxelize_oracle.h"
#include "tests/support/test.h"

enum {
    N = 20000,
    N_CHANNELS = 2
};

struct cloud {
    float positions[3 * N];
    float features[N_CHANNELS * N];
    uint32_t batch_starts[4];
};

/* Positions are multiples of 1/1024 m, so that sums with them are exact. */
static struct cloud *make_cloud(void)
{
    struct cloud *cloud = gpu_alloc(sizeof *cloud);
    uint64_t seed = 21;

    for (size_t i = 0; i < (size_t)3 * N; i++) {
        cloud->positions[i] = (float)((int)(gpu_random(&seed) % 8192) - 4096) / 1024.0f;
    }
    for (size_t i = 0; i < (size_t)N_CHANNELS * N; i++) {
        cloud->features[i] = gpu_random_float(&seed, -5, 5);
    }
    cloud->batch_starts[0] = 0;
    cloud->batch_starts[1] = N;
    return cloud;
}

static struct vxd_voxelize_args args_of(const struct cloud *cloud)
{
    return (struct vxd_voxelize_args){.positions = cloud->positions,
                                      .features = cloud->features,
                                      .n_points = N,
                                      .n_channels = N_CHANNELS,
                                      .batch_starts = cloud->batch_starts,
                                      .n_batch = 1,
                                      .rule = VXD_RULE_MINKOWSKI,
                                      .size_m = {0.25f, 0.5f, 0.125f}};
}

static void permute(struct gpu_env *env)
{
    struct cloud *cloud = make_cloud();
    struct cloud *shuffled = gpu_alloc(sizeof *shuffled);
    uint32_t *from = gpu_alloc(N * sizeof *from);
    struct vxd_voxelize_args args = args_of(cloud);
    struct gpu_voxels a;
    struct gpu_voxels b;
    uint64_t seed = 4;
    size_t n_wrong = 0;

    for (uint32_t i = 0; i < N; i++) {
        uint32_t k = (uint32_t)(gpu_random(&seed) % (i + 1));

        from[i] = from[k];
        from[k] = i;
    }
    for (size_t i = 0; i < N; i++) {
        memcpy(shuffled->positions + 3 * i, cloud->positions + 3 * (size_t)from[i],
               3 * sizeof(float));
        memcpy(shuffled->features + N_CHANNELS * i,
               cloud->features + N_CHANNELS * (size_t)from[i],
               N_CHANNELS * sizeof(float));
    }
    gpu_voxelize(env, &args, &a);
    args.positions = shuffled->positions;
    args.features = shuffled->features;
    gpu_voxelize(env, &args, &b);
    REQUIRE(a.n_voxels == b.n_voxels);
    CHECK(a.n_voxels > 1000 && a.n_voxels < N);
    CHECK_INT(memcmp(a.coords, b.coords, a.n_voxels * 4 * sizeof *a.coords), 0);
    CHECK_INT(memcmp(a.counts, b.counts, a.n_voxels * sizeof *a.counts), 0);
    CHECK_INT(memcmp(a.totals, b.totals, sizeof *a.totals), 0);
    CHECK_INT(memcmp(a.min, b.min, a.n_voxels * N_CHANNELS * sizeof *a.min), 0);
    CHECK_INT(memcmp(a.max, b.max, a.n_voxels * N_CHANNELS * sizeof *a.max), 0);
    for (size_t i = 0; i < N; i++) {
        n_wrong += b.inverse[i] != a.inverse[from[i]] ? 1 : 0;
    }
    CHECK_INT(n_wrong, 0);
    gpu_voxels_free(&a);
    gpu_voxels_free(&b);
    free(from);
    free(shuffled);
    free(cloud);
}

static void test_permuted_points_give_the_same_voxels(void)
{
    gpu_each_backend(permute);
}

static void translate(struct gpu_env *env)
{
    static const int shift[3] = {-1000, 77, 4096};
    struct cloud *cloud = make_cloud();
    struct vxd_voxelize_args args = args_of(cloud);
    struct gpu_voxels a;
    struct gpu_voxels b;
    size_t n_wrong = 0;

    args.order = VXD_ORDER_FIRST_POINT;
    gpu_voxelize(env, &args, &a);
    for (size_t i = 0; i < (size_t)3 * N; i++) {
        cloud->positions[i] += (float)shift[i % 3] * args.size_m[i % 3];
    }
    gpu_voxelize(env, &args, &b);
    REQUIRE(a.n_voxels == b.n_voxels);
    for (size_t i = 0; i < a.n_voxels; i++) {
        for (size_t axis = 0; axis < 3; axis++) {
            n_wrong +=
                b.coords[4 * i + 1 + axis] != a.coords[4 * i + 1 + axis] + shift[axis]
                    ? 1
                    : 0;
        }
    }
    CHECK_INT(n_wrong, 0);
    CHECK_INT(memcmp(a.inverse, b.inverse, N * sizeof *a.inverse), 0);
    CHECK_INT(memcmp(a.counts, b.counts, a.n_voxels * sizeof *a.counts), 0);
    CHECK_INT(memcmp(a.mean, b.mean, a.n_voxels * N_CHANNELS * sizeof *a.mean), 0);
    gpu_voxels_free(&a);
    gpu_voxels_free(&b);
    free(cloud);
}

static void test_translation_by_whole_voxels_moves_coordinates_only(void)
{
    gpu_each_backend(translate);
}

/* Compares the rows of sample `sample` of the batch with a run of that sample alone. */
static void check_alone(struct gpu_env *env, const struct vxd_voxelize_args *batched_args,
                        const struct gpu_voxels *batched, int sample)
{
    uint32_t begin = batched_args->batch_starts[sample];
    uint32_t starts[2] = {0, batched_args->batch_starts[sample + 1] - begin};
    uint32_t first_row = batched->starts[sample];
    struct vxd_voxelize_args args = *batched_args;
    struct gpu_voxels alone;
    size_t n_wrong = 0;
    size_t m;

    args.positions += 3 * (size_t)begin;
    args.features += N_CHANNELS * (size_t)begin;
    args.n_points = starts[1];
    args.batch_starts = starts;
    args.n_batch = 1;
    gpu_voxelize(env, &args, &alone);
    m = alone.n_voxels;
    REQUIRE(m == batched->starts[sample + 1] - first_row);
    CHECK_INT(memcmp(alone.totals, batched->totals + sample, sizeof *alone.totals), 0);
    CHECK_INT(memcmp(alone.counts, batched->counts + first_row, m * 4), 0);
    CHECK_INT(memcmp(alone.mean, batched->mean + (size_t)first_row * N_CHANNELS,
                     m * N_CHANNELS * sizeof(float)),
              0);
    CHECK_INT(memcmp(alone.points, batched->points + (size_t)first_row * N_CHANNELS * 2,
                     m * 2 * N_CHANNELS * sizeof(float)),
              0);
    for (size_t i = 0; i < m; i++) {
        n_wrong += alone.first_point[i] + begin != batched->first_point[first_row + i];
        n_wrong += batched->coords[4 * (first_row + i)] != sample;
        n_wrong += memcmp(alone.coords + 4 * i + 1,
                          batched->coords + 4 * (first_row + i) + 1, 12) != 0;
    }
    for (uint32_t i = 0; i < starts[1]; i++) {
        int32_t expected = alone.inverse[i];

        expected = expected < 0 ? -1 : expected + (int32_t)first_row;
        n_wrong += batched->inverse[begin + i] != expected;
    }
    CHECK_INT(n_wrong, 0);
    gpu_voxels_free(&alone);
}

static void batch(struct gpu_env *env)
{
    struct cloud *cloud = make_cloud();
    struct vxd_voxelize_args args = args_of(cloud);

    args.n_batch = 3;
    cloud->batch_starts[1] = 12345;
    cloud->batch_starts[2] = 12345;
    cloud->batch_starts[3] = N;
    args.max_points = 2;
    args.max_voxels = 3000;
    for (int order = 0; order < 2; order++) {
        struct gpu_voxels batched;

        args.order = (enum vxd_voxel_order)order;
        gpu_voxelize(env, &args, &batched);
        for (int sample = 0; sample < 3; sample++) {
            check_alone(env, &args, &batched, sample);
        }
        gpu_voxels_free(&batched);
    }
    free(cloud);
}

static void test_batched_samples_equal_samples_alone(void)
{
    gpu_each_backend(batch);
}

/* Catalogue, fact 7. */
static void spconv_scan(struct gpu_env *env)
{
    size_t n = 0;
    float *points = gpu_read_spconv_scan(&n);
    uint32_t starts[2] = {0, (uint32_t)n};
    struct vxd_voxelize_args args = {.positions = points,
                                     .features = points,
                                     .n_points = n,
                                     .n_channels = 3,
                                     .batch_starts = starts,
                                     .n_batch = 1,
                                     .size_m = {0.1f, 0.1f, 0.1f},
                                     .has_range = true,
                                     .range_lo_m = {-80, -80, -2},
                                     .range_hi_m = {80, 80, 6}};
    struct gpu_voxels actual;
    struct gpu_voxels expected;
    size_t n_wrong = 0;

    REQUIRE(points != NULL && n == 198130);
    gpu_voxelize(env, &args, &actual);
    CHECK_INT(actual.n_voxels, 125562);
    for (size_t i = 0; i < actual.n_voxels; i++) {
        n_wrong += memcmp(actual.first + 3 * i,
                          points + 3 * (size_t)actual.first_point[i], 12) != 0;
    }
    CHECK_INT(n_wrong, 0);
    gpu_oracle(&args, &expected);
    CHECK_INT(gpu_compare(env->name, &args, &actual, &expected), 0);
    gpu_voxels_free(&actual);
    gpu_voxels_free(&expected);
    free(points);
}

static void test_spconv_benchmark_scan_has_125562_voxels(void)
{
    gpu_each_backend(spconv_scan);
}

/* Catalogue, fact 3: float16 records through the decoder. */
static void nuscenes_scan(struct gpu_env *env)
{
    size_t n_bytes = 0;
    void *records = gpu_read_data("lidar/nuscenes_10sweep_ff9eff.f16.bin", &n_bytes);
    size_t n = n_bytes / 10;
    uint32_t starts[2] = {0, (uint32_t)n};
    struct vxd_buffer data = gpu_to_device(env, records, n_bytes);
    struct vxd_buffer positions = gpu_to_device(env, NULL, n * 12);
    struct vxd_buffer features = gpu_to_device(env, NULL, n * 20);
    struct vxd_cloud cloud = {.data = data.ptr, .n_points = n, .point_step = 10};
    struct vxd_voxelize_args args = {.n_points = n,
                                     .n_channels = 5,
                                     .batch_starts = starts,
                                     .n_batch = 1,
                                     .size_m = {0.075f, 0.075f, 0.2f},
                                     .has_range = true,
                                     .range_lo_m = {-54, -54, -5},
                                     .range_hi_m = {54, 54, 3}};
    struct gpu_voxels voxels;
    float *host_positions;
    float *host_features;

    CHECK_INT(n, 271156);
    cloud.n_channels = 5;
    for (uint32_t i = 0; i < 5; i++) {
        struct vxd_field field = {2 * i, VXD_FLOAT16, 1, 0};

        if (i < 3) {
            cloud.position[i] = field;
            cloud.rotation[4 * i] = 1;
        }
        cloud.channels[i].field = field;
    }
    CHECK_INT(vxd_cloud_decode(env->queue, &cloud, positions.ptr, features.ptr, NULL),
              VXD_OK);
    gpu_wait(env);
    host_positions = gpu_to_host(env, &positions);
    host_features = gpu_to_host(env, &features);
    args.positions = host_positions;
    args.features = host_features;
    gpu_voxelize(env, &args, &voxels);
    CHECK_INT(voxels.n_voxels, 105086);
    CHECK_INT(voxels.totals[0].n_used + voxels.totals[0].n_out_of_range, n);
    gpu_voxels_free(&voxels);
    free(host_positions);
    free(host_features);
    free(records);
    vxd_device_free(env->queue, &data);
    vxd_device_free(env->queue, &positions);
    vxd_device_free(env->queue, &features);
}

static void test_nuscenes_ten_sweeps_have_105086_voxels_of_centerpoint(void)
{
    size_t n_bytes = 0;
    void *records = gpu_read_data("lidar/nuscenes_10sweep_ff9eff.f16.bin", &n_bytes);

    if (records == NULL) {
        SKIP("no data directory (set VOXELD_DATA)");
    }
    free(records);
    gpu_each_backend(nuscenes_scan);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_permuted_points_give_the_same_voxels),
    VXD_TEST(test_translation_by_whole_voxels_moves_coordinates_only),
    VXD_TEST(test_batched_samples_equal_samples_alone),
    VXD_TEST(test_spconv_benchmark_scan_has_125562_voxels),
    VXD_TEST(test_nuscenes_ten_sweeps_have_105086_voxels_of_centerpoint),
};

VXD_TEST_MAIN(tests)
