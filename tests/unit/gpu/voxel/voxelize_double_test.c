// SPDX-License-Identifier: Apache-2.0
/* The rule DOUBLE: quantization in float64, against the formula on each point. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/voxel/voxel.h"
#include "tests/support/gpu/gpu_helpers.h"
#include "tests/support/test.h"

enum {
    N = 20000
};

static const double size_m[3] = {0.1, 0.05, 1.0 / 3};

/* On borders as float64 has them, one unit in the last place beside them, anywhere, not finite, and too
 * far. */
static double random_position(uint64_t *seed, double size)
{
    double border = (double)((int)(gpu_random(seed) % 4001) - 2000) * size;

    switch (gpu_random(seed) % 16) {
    case 0:
        return border;
    case 1:
        return nextafter(border, -INFINITY);
    case 2:
        return nextafter(border, INFINITY);
    case 3:
        return gpu_random(seed) % 64 == 0 ? NAN : border;
    case 4:
        return gpu_random(seed) % 64 == 0 ? size * 1048576.0 * 1.5 : border;
    default:
        return border + size * (double)gpu_random_float(seed, 0, 1);
    }
}

/* Records of three float64, and what decoding gives of them. */
struct cloud {
    double *records;
    struct vxd_buffer exact;
    struct vxd_buffer positions;
};

static void decode(struct gpu_env *env, const double translation[3], struct cloud *out)
{
    uint64_t seed = 11;
    struct vxd_buffer data;
    struct vxd_cloud cloud = {.n_points = N,
                              .point_step = 3 * sizeof(double),
                              .rotation = {1, 0, 0, 0, 1, 0, 0, 0, 1}};
    struct vxd_err err = {0};

    out->records = gpu_alloc(3 * N * sizeof(double));
    for (size_t i = 0; i < 3 * N; i++) {
        out->records[i] = random_position(&seed, size_m[i % 3]);
    }
    data = gpu_to_device(env, out->records, 3 * N * sizeof(double));
    out->exact = gpu_to_device(env, NULL, 3 * N * sizeof(double));
    out->positions = gpu_to_device(env, NULL, 3 * N * sizeof(float));
    for (uint32_t axis = 0; axis < 3; axis++) {
        cloud.position[axis] =
            (struct vxd_field){axis * sizeof(double), VXD_FLOAT64, 1, 0};
        cloud.translation[axis] = translation[axis];
    }
    cloud.data = data.ptr;
    cloud.exact = out->exact.ptr;
    CHECK_INT(vxd_cloud_decode(env->queue, &cloud, out->positions.ptr, NULL, &err),
              VXD_OK);
    gpu_wait(env);
    vxd_device_free(env->queue, &data);
}

static void cloud_free(struct gpu_env *env, struct cloud *cloud)
{
    vxd_device_free(env->queue, &cloud->exact);
    vxd_device_free(env->queue, &cloud->positions);
    gpu_wait(env);
    free(cloud->records);
}

static void exact_positions(struct gpu_env *env)
{
    const double translation[3] = {1e6, -0.1, 1.0 / 3};
    struct cloud cloud;
    double *exact;
    float *positions;
    size_t n_wrong = 0;

    decode(env, translation, &cloud);
    exact = gpu_to_host(env, &cloud.exact);
    positions = gpu_to_host(env, &cloud.positions);
    for (size_t i = 0; i < 3 * N; i++) {
        double expected = cloud.records[i] + translation[i % 3];
        float rounded = (float)expected;

        if (isfinite(cloud.records[i - i % 3] + cloud.records[i - i % 3 + 1] +
                     cloud.records[i - i % 3 + 2])) { /* a NaN is in all three */
            n_wrong += memcmp(&exact[i], &expected, sizeof expected) != 0;
            n_wrong += positions[i] != rounded;
        } else {
            n_wrong += !isnan(exact[i]) || !isnan(positions[i]);
        }
    }
    CHECK_INT(n_wrong, 0);
    free(exact);
    free(positions);
    cloud_free(env, &cloud);
}

static void test_decode_gives_positions_before_they_are_rounded(void)
{
    gpu_each_backend(exact_positions);
}

/* What the rule says of a point; false: it is dropped. */
static bool coordinate_of(const double *p, const struct vxd_voxelize_args *args,
                          int32_t c[3])
{
    for (int axis = 0; axis < 3; axis++) {
        double q = floor(p[axis] / size_m[axis]);

        if (!isfinite(p[axis]) || q < -1048576 || q >= 1048576 ||
            (args->has_range && (p[axis] < (double)args->range_lo_m[axis] ||
                                 p[axis] >= (double)args->range_hi_m[axis]))) {
            return false;
        }
        c[axis] = (int32_t)q;
    }
    return true;
}

static void check_grouping(struct gpu_env *env, const struct cloud *cloud, bool has_range,
                           enum vxd_voxel_order order)
{
    static const uint32_t starts[3] = {0, N / 3, N};
    struct vxd_voxelize_args args = {.positions = cloud->positions.ptr,
                                     .exact = cloud->exact.ptr,
                                     .n_points = N,
                                     .batch_starts = starts,
                                     .n_batch = 2,
                                     .rule = VXD_RULE_DOUBLE,
                                     .order = order,
                                     .has_range = has_range,
                                     .range_lo_m = {-50, -20, -100},
                                     .range_hi_m = {90, 70, 300}};
    struct vxd_buffer buffers[4] = {
        gpu_to_device(env, NULL, 2 * sizeof(struct vxd_voxel_totals)),
        gpu_to_device(env, NULL, 3 * sizeof(uint32_t)),
        gpu_to_device(env, NULL, (size_t)N * 4 * sizeof(int32_t)),
        gpu_to_device(env, NULL, (size_t)N * sizeof(int32_t))};
    struct vxd_voxels out = {.capacity = N,
                             .totals = buffers[0].ptr,
                             .starts = buffers[1].ptr,
                             .coords = buffers[2].ptr,
                             .inverse = buffers[3].ptr};
    struct vxd_err err = {0};
    uint32_t *first_voxels;
    int32_t *coords;
    int32_t *inverse;
    size_t n_wrong = 0;
    size_t n_dropped = 0;
    uint32_t n_used = 0;

    for (int axis = 0; axis < 3; axis++) {
        args.exact_size_m[axis] = size_m[axis];
        args.size_m[axis] = (float)size_m[axis];
    }
    CHECK_INT(vxd_voxelize(env->queue, &args, &out, &err), VXD_OK);
    gpu_wait(env);
    first_voxels = gpu_to_host(env, &buffers[1]);
    coords = gpu_to_host(env, &buffers[2]);
    inverse = gpu_to_host(env, &buffers[3]);
    for (size_t i = 0; i < N; i++) {
        int32_t c[3] = {0, 0, 0};
        int32_t sample = i < N / 3 ? 0 : 1;

        if (!coordinate_of(cloud->records + 3 * i, &args, c)) {
            n_wrong += inverse[i] != -1;
            n_dropped++;
            continue;
        }
        n_used++;
        n_wrong += inverse[i] < 0 || (uint32_t)inverse[i] >= first_voxels[2] ||
                   coords[4 * inverse[i]] != sample ||
                   memcmp(&coords[4 * inverse[i] + 1], c, sizeof c) != 0;
    }
    for (uint32_t v = 1; v < first_voxels[2]; v++) { /* each voxel stands there once */
        n_wrong += memcmp(&coords[4 * v], &coords[4 * (v - 1)], 4 * sizeof *coords) == 0;
    }
    CHECK_INT(n_wrong, 0);
    CHECK(n_dropped > 0 && n_used > N / 100);
    free(first_voxels);
    free(coords);
    free(inverse);
    for (int i = 0; i < 4; i++) {
        vxd_device_free(env->queue, &buffers[i]);
    }
    gpu_wait(env);
}

static void groupings(struct gpu_env *env)
{
    const double translation[3] = {0, 0, 0};
    struct cloud cloud;

    decode(env, translation, &cloud);
    check_grouping(env, &cloud, false, VXD_ORDER_MORTON);
    check_grouping(env, &cloud, true, VXD_ORDER_MORTON);
    check_grouping(env, &cloud, false, VXD_ORDER_FIRST_POINT);
    cloud_free(env, &cloud);
}

static void test_voxelize_in_double_follows_the_formula(void)
{
    gpu_each_backend(groupings);
}

static void refusals(struct gpu_env *env)
{
    static const uint32_t starts[2] = {0, 1};
    float position[3] = {0, 0, 0};
    struct vxd_voxelize_args args = {.positions = position,
                                     .n_points = 1,
                                     .batch_starts = starts,
                                     .n_batch = 1,
                                     .rule = VXD_RULE_DOUBLE,
                                     .size_m = {1, 1, 1},
                                     .exact_size_m = {1, 1, 1}};
    struct vxd_voxel_totals totals;
    uint32_t first_voxels[2];
    struct vxd_voxels out = {.capacity = 1, .totals = &totals, .starts = first_voxels};
    struct vxd_err err = {0};

    CHECK_INT(vxd_voxelize(env->queue, &args, &out, &err), VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, "exact");
    args.exact = (const double[3]){0, 0, 0};
    args.exact_size_m[1] = NAN;
    CHECK_INT(vxd_voxelize(env->queue, &args, &out, &err), VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, "exact_size_m");
}

static void test_voxelize_in_double_needs_its_arguments(void)
{
    gpu_each_backend(refusals);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_decode_gives_positions_before_they_are_rounded),
    VXD_TEST(test_voxelize_in_double_follows_the_formula),
    VXD_TEST(test_voxelize_in_double_needs_its_arguments),
};

VXD_TEST_MAIN(tests)
