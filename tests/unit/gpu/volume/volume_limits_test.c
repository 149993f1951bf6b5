// SPDX-License-Identifier: Apache-2.0
/* The numbers that volumes take: each up to both ends of its range, and not beyond. */
#include "gpu/volume/scan/scan_internal.h"
#include "gpu/volume/volume_internal.h"
#include "tests/support/limits.h"
#include "tests/support/volume/volume_helpers.h"

#define N(array) (sizeof(array) / sizeof(array)[0])

static const struct vxd_volume_pose identity = {{1, 0, 0, 0, 1, 0, 0, 0, 1}, {0}};

/* --- specs ---------------------------------------------------------------------------------- */

static enum vxd_status check_spec(void *user, void *structure, struct vxd_err *err)
{
    (void)user;
    return vxd_volume_check_spec(structure, err);
}

/* The truncation goes with the size of a voxel. */
static enum vxd_status check_scaled_spec(void *user, void *structure, struct vxd_err *err)
{
    struct vxd_volume_spec spec = *(struct vxd_volume_spec *)structure;

    (void)user;
    spec.truncation_m = 2 * spec.voxel_size_m;
    return vxd_volume_check_spec(&spec, err);
}

static void test_spec_is_taken_up_to_the_ends_of_its_ranges(void)
{
    static const struct test_limit limits[] = {
        TEST_LIMIT(struct vxd_volume_spec, truncation_m, "truncation_m", 0.25, 16),
        TEST_LIMIT(struct vxd_volume_spec, origin_m[0], "origin_m", -1e9, 1e9),
        TEST_LIMIT(struct vxd_volume_spec, origin_m[1], "origin_m", -1e9, 1e9),
        TEST_LIMIT(struct vxd_volume_spec, origin_m[2], "origin_m", -1e9, 1e9),
        TEST_LIMIT_INT(struct vxd_volume_spec, form, "form", 0, 1),
        TEST_LIMIT(struct vxd_volume_spec, max_weight, "max_weight", 1, 65535)};
    static const struct test_limit size[] = {
        TEST_LIMIT(struct vxd_volume_spec, voxel_size_m, "voxel_size_m", 1e-4, 100)};
    struct vxd_volume_spec spec = {
        .voxel_size_m = 0.25, .block_edge = 8, .truncation_m = 1};
    struct test_limited of = {&spec, sizeof spec, check_spec, NULL};
    struct vxd_err err = {0};

    test_limits(&of, limits, N(limits));
    of.check = check_scaled_spec;
    test_limits(&of, size, N(size));
    spec.capacity = VXD_HASHMAP_MAX_CAPACITY;
    CHECK_INT(vxd_volume_check_spec(&spec, &err), VXD_OK);
    spec.capacity++;
    CHECK_INT(vxd_volume_check_spec(&spec, &err), VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, "capacity");
}

/* --- frames --------------------------------------------------------------------------------- */

static enum vxd_status check_frame(void *user, void *structure, struct vxd_err *err)
{
    return vxd_volume_check_frame(user, structure, err);
}

/* The depths of good frames are from 0.25 to 3 metres, so the next number above or below is known. */
static void try_frames(struct vxd_volume *volume, struct vxd_volume_frame *frame)
{
    static const struct test_limit limits[] = {
        TEST_LIMIT(struct vxd_volume_frame, depth_scale, "depth_scale", 1e-6, 1e6),
        TEST_LIMIT(struct vxd_volume_frame, depth_min_m, "depth_max_m", 0, 3 - 0x1p-51),
        TEST_LIMIT(struct vxd_volume_frame, depth_max_m, "depth_max_m", 0.25 + 0x1p-54,
                   1000),
        TEST_LIMIT(struct vxd_volume_frame, carve_m, "carve_m", 0, 1000),
        TEST_LIMIT_INT(struct vxd_volume_frame, weighting, "weighting", 0, 1),
        TEST_LIMIT(struct vxd_volume_frame, weight, "weight", 1e-6, 65535),
        TEST_LIMIT(struct vxd_volume_frame, T_map_camera.translation[0], "T_map_camera",
                   -1e9, 1e9),
        TEST_LIMIT(struct vxd_volume_frame, T_map_camera.translation[2], "T_map_camera",
                   -1e9, 1e9),
        /* A row of the rotation is 1 long to 1e-3 of its square. */
        TEST_LIMIT(struct vxd_volume_frame, T_map_camera.rotation[1], "T_map_camera",
                   -1e-3, 1e-3),
        TEST_LIMIT(struct vxd_volume_frame, T_map_camera.rotation[5], "T_map_camera",
                   -1e-3, 1e-3)};
    /* Half the image and its centre are 50 pixels: at most 100 focal lengths. */
    static const struct test_limit lengths[] = {
        TEST_LIMIT(struct vxd_volume_frame, camera.fx, "camera", 0.5, 1e7),
        TEST_LIMIT(struct vxd_volume_frame, camera.fy, "camera", 0.5, 1e7)};
    static const struct test_limit cameras[] = {
        TEST_LIMIT_INT(struct vxd_volume_frame, camera.width, "camera", 1, 16384),
        TEST_LIMIT_INT(struct vxd_volume_frame, camera.height, "camera", 1, 16384),
        TEST_LIMIT(struct vxd_volume_frame, camera.cx, "camera", -1e6, 1e6),
        TEST_LIMIT(struct vxd_volume_frame, camera.cy, "camera", -1e6, 1e6),
        TEST_LIMIT(struct vxd_volume_frame, camera.distortion[0], "camera", -1e3, 1e3),
        TEST_LIMIT(struct vxd_volume_frame, camera.distortion[1], "camera", -1e3, 1e3),
        TEST_LIMIT(struct vxd_volume_frame, camera.distortion[7], "camera", -1e3, 1e3)};
    struct test_limited of = {frame, sizeof *frame, check_frame, volume};
    struct vxd_err err = {0};

    test_limits(&of, limits, N(limits));
    test_limits(&of, lengths, N(lengths));
    frame->camera.fx = frame->camera.fy = 2e4;
    test_limits(&of, cameras, N(cameras));
    frame->camera.width = 16384;
    frame->camera.height = 2048; /* 2^25 pixels */
    CHECK_INT(vxd_volume_check_frame(volume, frame, &err), VXD_OK);
    frame->camera.height++;
    CHECK_INT(vxd_volume_check_frame(volume, frame, &err), VXD_INVALID_ARGUMENT);
}

static void expect_frames(struct gpu_env *env)
{
    const struct vxd_volume_spec spec = {
        .voxel_size_m = 0.03, .block_edge = 8, .truncation_m = 0.1};
    struct vxd_volume_frame frame = {
        .camera = {.width = 48, .height = 36, .fx = 50, .fy = 50, .cx = 2, .cy = 14},
        .T_map_camera = identity,
        .depth = "",
        .dtype = VXD_UINT16,
        .depth_min_m = 0.25,
        .depth_max_m = 3};
    struct vxd_volume *volume = NULL;
    struct vxd_err err = {0};

    REQUIRE(vxd_volume_create(env->queue, &spec, &volume, &err) == VXD_OK);
    try_frames(volume, &frame);
    vxd_volume_destroy(env->queue, volume);
    gpu_wait(env);
}

static void test_frame_is_taken_up_to_the_ends_of_its_ranges(void)
{
    gpu_each_backend(expect_frames);
}

/* --- lidars and scans ----------------------------------------------------------------------- */

static enum vxd_status check_lidar(void *user, void *structure, struct vxd_err *err)
{
    (void)user;
    return vxd_volume_check_lidar(structure, 60, err);
}

static void test_lidar_is_taken_up_to_the_ends_of_its_ranges(void)
{
    static const char azimuth[] = "lidar.azimuth_span_deg";
    static const char elevation[] = "lidar.elevations_deg";
    static const struct test_limit limits[] = {
        TEST_LIMIT_INT(struct vxd_volume_lidar, rows, "lidar", 2, VXD_LIDAR_MAX_ROWS),
        TEST_LIMIT_INT(struct vxd_volume_lidar, columns, "lidar", 1,
                       VXD_LIDAR_MAX_COLUMNS),
        TEST_LIMIT(struct vxd_volume_lidar, azimuth_begin_deg, azimuth, -720, 720),
        TEST_LIMIT(struct vxd_volume_lidar, azimuth_span_deg, azimuth, 0.1, 360),
        TEST_LIMIT(struct vxd_volume_lidar, azimuth_span_deg, azimuth, -360, -0.1)};
    double elevations[3] = {32, 0, -32};
    struct vxd_volume_lidar lidar = {.rows = 16,
                                     .columns = 100,
                                     .top_deg = 32,
                                     .bottom_deg = -32,
                                     .azimuth_span_deg = 360};
    struct test_limited of = {&lidar, sizeof lidar, check_lidar, NULL};
    struct vxd_err err = {0};

    test_limits(&of, limits, N(limits));
    lidar.rows = 3;
    lidar.elevations_deg = elevations;
    CHECK_INT(vxd_volume_check_lidar(&lidar, 32, &err), VXD_OK);
    for (int row = 0; row < 3; row += 2) {
        double before = elevations[row];

        elevations[row] = nextafter(before, row == 0 ? 90 : -90);
        CHECK_INT(vxd_volume_check_lidar(&lidar, 32, &err), VXD_INVALID_ARGUMENT);
        CHECK_STR(err.field, elevation);
        elevations[row] = before;
    }
    elevations[1] = -32 + 0x1p-9; /* above 0.001 */
    CHECK_INT(vxd_volume_check_lidar(&lidar, 32, &err), VXD_OK);
    elevations[1] = -32 + 0x1p-10;
    CHECK_INT(vxd_volume_check_lidar(&lidar, 32, &err), VXD_INVALID_ARGUMENT);
    elevations[1] = 32 - 0x1p-10; /* by a row above it */
    CHECK_INT(vxd_volume_check_lidar(&lidar, 32, &err), VXD_INVALID_ARGUMENT);
}

static enum vxd_status check_scan(void *user, void *structure, struct vxd_err *err)
{
    struct vxd_lidar_form form;

    return vxd_lidar_form_init(user, structure, &form, err);
}

static void expect_scans(struct gpu_env *env)
{
    static const struct test_limit limits[] = {
        TEST_LIMIT_INT(struct vxd_volume_scan, method, "method", 0, 1),
        TEST_LIMIT_INT(struct vxd_volume_scan, time_column, "features", -1, 4),
        TEST_LIMIT_INT(struct vxd_volume_scan, normal_column, "features", -1, 2),
        TEST_LIMIT_INT(struct vxd_volume_scan, label_column, "features", -1, 4),
        TEST_LIMIT(struct vxd_volume_scan, image_time, "image_time", 0, 1),
        TEST_LIMIT(struct vxd_volume_scan, range_min_m, "depth_max_m", 0, 3 - 0x1p-51),
        TEST_LIMIT(struct vxd_volume_scan, range_max_m, "depth_max_m", 0.25 + 0x1p-54,
                   1000),
        TEST_LIMIT(struct vxd_volume_scan, carve_m, "carve_m", 0, 1000),
        TEST_LIMIT_INT(struct vxd_volume_scan, weighting, "weighting", 0, 1),
        TEST_LIMIT(struct vxd_volume_scan, weight, "weight", 1e-6, 65535)};
    /* 65536 blocks of 8 voxels of 1/1024 m are 512 m. */
    static const struct test_limit carve[] = {
        TEST_LIMIT(struct vxd_volume_scan, carve_m, "carve_m", 0, 512)};
    struct vxd_volume_spec spec = {
        .voxel_size_m = 0.25, .block_edge = 8, .truncation_m = 0.5};
    struct vxd_volume_scan scan = {.features = (const float *)(const void *)"",
                                   .n_features = 5,
                                   .time_column = -1,
                                   .normal_column = -1,
                                   .label_column = -1,
                                   .lidar = {.rows = 16,
                                             .columns = 100,
                                             .top_deg = 10,
                                             .bottom_deg = -10,
                                             .azimuth_span_deg = 360},
                                   .T_map_sensor = identity,
                                   .T_map_sensor_end = identity,
                                   .range_min_m = 0.25,
                                   .range_max_m = 3};
    struct test_limited of = {&scan, sizeof scan, check_scan, NULL};
    struct vxd_volume *volume = NULL;
    struct vxd_err err = {0};

    for (int i = 0; i < 2; i++) {
        REQUIRE(vxd_volume_create(env->queue, &spec, &volume, &err) == VXD_OK);
        of.user = volume;
        test_limits(&of, i == 0 ? limits : carve, i == 0 ? N(limits) : N(carve));
        vxd_volume_destroy(env->queue, volume);
        gpu_wait(env);
        spec.voxel_size_m = 0x1p-10;
        spec.truncation_m = 0x1p-9;
    }
}

static void test_scan_is_taken_up_to_the_ends_of_its_ranges(void)
{
    gpu_each_backend(expect_scans);
}

/* --- decay ---------------------------------------------------------------------------------- */

struct decay_on {
    struct gpu_env *env;
    struct vxd_volume *volume;
};

static enum vxd_status check_decay(void *user, void *structure, struct vxd_err *err)
{
    const struct decay_on *on = user;
    size_t n_removed;

    return vxd_volume_decay(on->env->queue, on->volume, structure, &n_removed, err);
}

static void expect_decays(struct gpu_env *env)
{
    static const struct test_limit limits[] = {
        TEST_LIMIT(struct vxd_volume_decay, factor, "factor", 0, 1),
        TEST_LIMIT(struct vxd_volume_decay, min_weight, "min_weight", 0, 65535)};
    static const struct test_limit ball[] = {
        TEST_LIMIT(struct vxd_volume_decay, region.radius, "radius", 0, INFINITY)};
    const struct vxd_volume_spec spec = {
        .voxel_size_m = 0.03, .block_edge = 8, .truncation_m = 0.1};
    struct vxd_volume_decay decay = {.region = {.low = {-1, -1, -1}, .high = {2, 2, 2}},
                                     .factor = 0.5};
    struct decay_on on = {env, NULL};
    struct test_limited of = {&decay, sizeof decay, check_decay, &on};
    struct vxd_err err = {0};

    REQUIRE(vxd_volume_create(env->queue, &spec, &on.volume, &err) == VXD_OK);
    test_limits(&of, limits, N(limits));
    decay.region.low[1] = 2; /* equal corners are a box without voxels */
    CHECK_INT(check_decay(&on, &decay, &err), VXD_OK);
    decay.region.low[1] = nextafter(2, 3);
    CHECK_INT(check_decay(&on, &decay, &err), VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, "high");
    decay.region = (struct vxd_volume_region){.is_ball = true, .radius = 1};
    test_limits(&of, ball, N(ball));
    vxd_volume_destroy(env->queue, on.volume);
    gpu_wait(env);
}

static void test_decay_is_taken_up_to_the_ends_of_its_ranges(void)
{
    gpu_each_backend(expect_decays);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_spec_is_taken_up_to_the_ends_of_its_ranges),
    VXD_TEST(test_frame_is_taken_up_to_the_ends_of_its_ranges),
    VXD_TEST(test_lidar_is_taken_up_to_the_ends_of_its_ranges),
    VXD_TEST(test_scan_is_taken_up_to_the_ends_of_its_ranges),
    VXD_TEST(test_decay_is_taken_up_to_the_ends_of_its_ranges),
};

VXD_TEST_MAIN(tests)
