// SPDX-License-Identifier: Apache-2.0
/* Odometry against exact poses of a ray-traced street, a plain model of its map, and other programs'
 * poses of real scans; what must be LOST; equal bits on all backends and with any number of threads. */
#include "gpu/odometry/odometry.h"
#include "gpu/odometry/odometry_math.h"
#include "gpu/voxel/cloud.h"
#include "tests/support/gpu/gpu_helpers.h"
#include "tests/support/limits.h"
#include "tests/support/odometry/street.h"
#include "tests/support/test.h"

#include <math.h>

static const struct street_lidar lidar = {
    .beams = 32, .columns = 700, .range_m = 90, .noise_m = 0.01, .is_instant = true};

/* ---- Helpers ---- */

static struct vxd_odometry *new_odometry(struct gpu_env *env,
                                         const struct vxd_odometry_options *options)
{
    struct vxd_odometry *odometry = NULL;
    struct vxd_err err = {0};

    if (vxd_odometry_create(env->queue, options, NULL, &odometry, &err) != VXD_OK) {
        (void)fprintf(stderr, "vxd_odometry_create: %s %s\n", err.field, err.message);
        exit(1);
    }
    return odometry;
}

/* Registers points of host memory. */
static struct vxd_odometry_result register_points(struct gpu_env *env,
                                                  struct vxd_odometry *odometry,
                                                  const float *points, size_t n,
                                                  int64_t stamp_ns)
{
    struct vxd_buffer buffer = gpu_to_device(env, points, n * 3 * sizeof(float));
    struct vxd_odometry_scan scan = {
        .points = buffer.ptr, .n_points = n, .stamp_ns = stamp_ns};
    struct vxd_odometry_result result = {0};
    struct vxd_err err = {0};

    if (vxd_odometry_register(env->queue, odometry, &scan, &result, &err) != VXD_OK) {
        (void)fprintf(stderr, "vxd_odometry_register: %s %s\n", err.field, err.message);
        exit(1);
    }
    vxd_device_free(env->queue, &buffer);
    gpu_wait(env);
    return result;
}

static struct vxd_odometry_result drive(struct gpu_env *env,
                                        struct vxd_odometry *odometry,
                                        enum street_kind kind, double step)
{
    struct vxd_odometry_result result;
    struct street_scan scan;

    if (!street_shoot(kind, &lidar, step, (uint64_t)(10 * step) + 5, &scan)) {
        exit(1);
    }
    result = register_points(env, odometry, scan.points, scan.n, 0);
    street_free(&scan);
    return result;
}

/* Where the sensor is after a step, in the frame of the first scan. */
static struct vxd_volume_pose truth(double step)
{
    struct vxd_volume_pose first = street_pose(0);
    struct vxd_volume_pose now = street_pose(step);

    return street_between(&first, &now);
}

/* A digest of the map that does not depend on entries' numbers. */
static uint64_t digest_map(struct gpu_env *env, struct vxd_odometry *odometry)
{
    struct vxd_hashmap_image image;
    struct vxd_err err = {0};
    uint64_t sum = 0;

    if (vxd_hashmap_export(env->queue, vxd_odometry_map(odometry), &image, &err) !=
        VXD_OK) {
        exit(1);
    }
    for (size_t i = 0; i < image.n_entries; i++) {
        uint64_t digest =
            gpu_digest(GPU_FNV_START, (const char *)image.keys.ptr + 12 * i, 12);

        digest = gpu_digest(digest, (const char *)image.values[0].ptr + 4 * i, 4);
        sum += gpu_digest(digest,
                          (const char *)image.values[1].ptr +
                              12 * (size_t)VXD_ODOMETRY_SLOTS * i,
                          12 * (size_t)VXD_ODOMETRY_SLOTS);
    }
    vxd_hashmap_image_free(&image);
    return sum;
}

/* ---- The map ---- */

struct model_voxel {
    int32_t key[3];
    uint32_t count;
    float points[VXD_ODOMETRY_SLOTS][3];
};

static int cell_of(float x, float size)
{
    return (int)floorf(x / size);
}

static bool equal_cell(const float *a, const float *b, float size)
{
    return cell_of(a[0], size) == cell_of(b[0], size) &&
           cell_of(a[1], size) == cell_of(b[1], size) &&
           cell_of(a[2], size) == cell_of(b[2], size);
}

/* A plain model of the first scan's map: the first point of each half voxel, at most max_points a
 * voxel, none nearer than sqrt(1 / max_points) voxels. Voxels of 1 m, so that nothing rounds. */
static size_t make_model(const float *points, size_t n, int max_points,
                         struct model_voxel *voxels)
{
    size_t n_voxels = 0;

    for (size_t i = 0; i < n; i++) {
        const float *p = points + 3 * i;
        struct model_voxel *voxel = voxels;
        bool is_first = p[0] == p[0];
        bool is_near = false;

        for (size_t k = 0; k < i && is_first; k++) {
            is_first = !equal_cell(points + 3 * k, p, 0.5f);
        }
        if (!is_first) {
            continue;
        }
        while (voxel < voxels + n_voxels &&
               !(voxel->key[0] == cell_of(p[0], 1) && voxel->key[1] == cell_of(p[1], 1) &&
                 voxel->key[2] == cell_of(p[2], 1))) {
            voxel++;
        }
        if (voxel == voxels + n_voxels) {
            n_voxels++;
            *voxel = (struct model_voxel){
                .key = {cell_of(p[0], 1), cell_of(p[1], 1), cell_of(p[2], 1)}};
        }
        for (uint32_t k = 0; k < voxel->count; k++) {
            float d2 = 0;

            for (int axis = 0; axis < 3; axis++) {
                float d = voxel->points[k][axis] - (p[axis] - (float)voxel->key[axis]);

                d2 += d * d;
            }
            is_near = is_near || d2 < 1.0f / (float)max_points;
        }
        if (!is_near && voxel->count < (uint32_t)max_points) {
            for (int axis = 0; axis < 3; axis++) {
                voxel->points[voxel->count][axis] = p[axis] - (float)voxel->key[axis];
            }
            voxel->count++;
        }
    }
    return n_voxels;
}

static void expect_model(struct gpu_env *env)
{
    enum {
        N = 6000
    };
    static struct model_voxel voxels[N];
    struct vxd_odometry_options options = {.max_points = 7, .voxel_size_m = 1};
    struct vxd_odometry *odometry = new_odometry(env, &options);
    struct vxd_odometry_result result;
    struct vxd_hashmap_image image;
    struct vxd_err err = {0};
    float *points = gpu_alloc(N * 3 * sizeof *points);
    uint64_t state = 21;
    size_t n_voxels;

    for (int i = 0; i < 3 * N; i++) { /* whole 128ths, which floats have exactly */
        points[i] = floorf(gpu_random_float(&state, -6, 6) * 128) / 128;
    }
    for (int i = 0; i < N; i += 500) {
        points[3 * i] = NAN;
    }
    n_voxels = make_model(points, N, 7, voxels);
    result = register_points(env, odometry, points, N, 0);
    CHECK(result.is_first);
    CHECK_INT(result.status, VXD_ODOMETRY_OK);
    CHECK_INT(result.n_used, N - N / 500);
    CHECK_INT(vxd_hashmap_export(env->queue, vxd_odometry_map(odometry), &image, &err),
              VXD_OK);
    CHECK_INT(image.n_entries, n_voxels);
    for (size_t i = 0; i < image.n_entries; i++) {
        const int32_t *key = (const int32_t *)image.keys.ptr + 3 * i;
        const float *row =
            (const float *)image.values[1].ptr + 3 * (size_t)VXD_ODOMETRY_SLOTS * i;
        const struct model_voxel *voxel = voxels;

        while (voxel < voxels + n_voxels &&
               memcmp(voxel->key, key, sizeof voxel->key) != 0) {
            voxel++;
        }
        REQUIRE(voxel < voxels + n_voxels);
        CHECK_INT(((const uint32_t *)image.values[0].ptr)[i], voxel->count);
        for (uint32_t k = 0; k < voxel->count; k++) {
            for (int axis = 0; axis < 3; axis++) {
                CHECK(row[axis * VXD_ODOMETRY_SLOTS + (int)k] == voxel->points[k][axis]);
            }
        }
    }
    vxd_hashmap_image_free(&image);
    vxd_odometry_destroy(env->queue, odometry);
    free(points);
}

static void test_map_is_that_of_a_plain_model(void)
{
    gpu_each_backend(expect_model);
}

/* ---- Drives ---- */

static void expect_drive(struct gpu_env *env, enum vxd_odometry_method method)
{
    struct vxd_odometry_options options = {.method = method};
    struct vxd_odometry *odometry = new_odometry(env, &options);
    int n = 1 + vxd_test_rounds(24);
    bool on_planes = method == VXD_ODOMETRY_POINT_TO_PLANE;
    struct vxd_odometry_result result = {0};

    for (int i = 0; i < n; i++) {
        struct vxd_volume_pose expected = truth(i);

        result = drive(env, odometry, STREET_TOWN, i);
        CHECK_INT(result.status, VXD_ODOMETRY_OK);
        CHECK_INT(result.is_first, i == 0);
        CHECK(street_apart_m(&expected, &result.T_map_sensor) <
              (on_planes ? 0.02 + 0.003 * i : 0.15));
        CHECK(street_apart_deg(&expected, &result.T_map_sensor) <
              (on_planes ? 0.2 : 0.6));
        for (int k = 0; k < 6 && i > 0; k++) {
            CHECK(result.covariance[7 * k] > 0 && result.covariance[7 * k] < 0.01);
        }
    }
    vxd_odometry_destroy(env->queue, odometry);
}

static void test_drive_through_a_street_follows_the_poses(void)
{
    struct gpu_env env;

    gpu_env_create(&env, VXD_BACKEND_CPU, 2, 0, 0);
    expect_drive(&env, VXD_ODOMETRY_POINT_TO_POINT);
    expect_drive(&env, VXD_ODOMETRY_POINT_TO_PLANE);
    gpu_env_destroy(&env);
}

/* Points of a scan in the sensor's frame at its end, by the motion that odometry knows. */
static void deskew(struct gpu_env *env, const struct vxd_odometry *odometry,
                   const struct street_scan *scan, float *out)
{
    static const double identity[4] = {0, 0, 0, 1};
    static const double zero[3] = {0};
    const struct vxd_field time = {12, VXD_FLOAT32, 1, 0};
    struct vxd_cloud cloud = {.n_points = scan->n,
                              .point_step = 16,
                              .position = {{0, VXD_FLOAT32, 1, 0},
                                           {4, VXD_FLOAT32, 1, 0},
                                           {8, VXD_FLOAT32, 1, 0}},
                              .rotation = {1, 0, 0, 0, 1, 0, 0, 0, 1}};
    float *records = gpu_alloc(scan->n * 16);
    struct vxd_buffer input;
    struct vxd_buffer output = gpu_to_device(env, NULL, scan->n * 12);
    struct vxd_volume_pose begin;
    struct vxd_err err = {0};
    double q[4];
    float *found;

    for (size_t i = 0; i < scan->n; i++) {
        memcpy(records + 4 * i, scan->points + 3 * i, 12);
        records[4 * i + 3] = scan->times[i];
    }
    input = gpu_to_device(env, records, scan->n * 16);
    cloud.data = input.ptr;
    vxd_odometry_get_motion(odometry, &begin);
    q[3] = sqrt(1 + begin.rotation[0] + begin.rotation[4] + begin.rotation[8]) / 2;
    q[0] = (begin.rotation[7] - begin.rotation[5]) / (4 * q[3]);
    q[1] = (begin.rotation[2] - begin.rotation[6]) / (4 * q[3]);
    q[2] = (begin.rotation[3] - begin.rotation[1]) / (4 * q[3]);
    memcpy(cloud.translation, begin.translation, sizeof cloud.translation);
    vxd_cloud_set_motion(&cloud, &time, q, identity, 1, zero);
    CHECK_INT(vxd_cloud_decode(env->queue, &cloud, output.ptr, NULL, &err), VXD_OK);
    found = gpu_to_host(env, &output);
    memcpy(out, found, scan->n * 12);
    free(found);
    vxd_device_free(env->queue, &output);
    vxd_device_free(env->queue, &input);
    gpu_wait(env);
    free(records);
}

/* Root of the mean square error of motions between scans, metres. */
static double drive_moving(struct gpu_env *env, bool with_deskew)
{
    enum {
        N = 40,
        FIRST = 10
    };
    struct street_lidar moving = lidar;
    struct vxd_odometry_options options = {.method = VXD_ODOMETRY_POINT_TO_PLANE};
    struct vxd_odometry *odometry = new_odometry(env, &options);
    struct vxd_volume_pose before = {{0}, {0}};
    double squares = 0;

    moving.is_instant = false;
    for (int i = 0; i < N; i++) {
        struct vxd_odometry_result result;
        struct street_scan scan;

        if (!street_shoot(STREET_TOWN, &moving, i, (uint64_t)i + 77, &scan)) {
            exit(1);
        }
        if (with_deskew) {
            deskew(env, odometry, &scan, scan.points);
        }
        result = register_points(env, odometry, scan.points, scan.n, 0);
        CHECK_INT(result.status, VXD_ODOMETRY_OK);
        if (i >= FIRST) {
            struct vxd_volume_pose a = street_pose(i - 1);
            struct vxd_volume_pose b = street_pose(i);
            struct vxd_volume_pose expected = street_between(&a, &b);
            struct vxd_volume_pose found = street_between(&before, &result.T_map_sensor);

            squares += pow(street_apart_m(&expected, &found), 2);
        }
        before = result.T_map_sensor;
        street_free(&scan);
    }
    vxd_odometry_destroy(env->queue, odometry);
    return sqrt(squares / (N - FIRST));
}

static void test_scans_of_a_moving_sensor_are_deskewed(void)
{
    struct gpu_env env;
    double with;
    double without;

    if (vxd_test_slow() > 10) {
        SKIP("takes minutes here");
    }
    gpu_env_create(&env, VXD_BACKEND_CPU, 2, 0, 0);
    with = drive_moving(&env, true);
    without = drive_moving(&env, false);
    if (!(with < 0.04 && with < 0.8 * without)) {
        (void)fprintf(stderr, "%g m with, %g m without\n", with, without);
    }
    CHECK(with < 0.04 && with < 0.8 * without);
    gpu_env_destroy(&env);
}

/* Voxels beyond the range are forgotten. */
static void test_map_forgets_what_is_beyond_the_range(void)
{
    struct vxd_odometry_options options = {
        .max_range_m = 30, .voxel_size_m = 1, .method = VXD_ODOMETRY_POINT_TO_PLANE};
    struct vxd_odometry_info info;
    struct vxd_hashmap_image image;
    struct vxd_odometry *odometry;
    struct gpu_env env;
    struct vxd_err err = {0};
    double most = 0;

    if (vxd_test_slow() > 10) {
        SKIP("takes minutes here");
    }
    gpu_env_create(&env, VXD_BACKEND_CPU, 2, 0, 0);
    odometry = new_odometry(&env, &options);
    for (int i = 0; i < 50; i++) { /* 60 m */
        CHECK_INT(drive(&env, odometry, STREET_TOWN, i).status, VXD_ODOMETRY_OK);
    }
    vxd_odometry_get_info(odometry, &info);
    CHECK_INT(info.n_scans, 50);
    CHECK_INT(vxd_hashmap_export(env.queue, vxd_odometry_map(odometry), &image, &err),
              VXD_OK);
    CHECK_INT(image.n_entries, info.n_voxels);
    for (size_t i = 0; i < image.n_entries; i++) {
        double square = 0;

        for (int k = 0; k < 3; k++) {
            double d = ((const int32_t *)image.keys.ptr)[3 * i + (size_t)k] + 0.5 -
                       info.T_map_sensor.translation[k];

            square += d * d;
        }
        most = square > most ? square : most;
    }
    CHECK(sqrt(most) < 30 + 30.0 / 20 + 1.3 + 1);
    vxd_hashmap_image_free(&image);
    vxd_odometry_destroy(env.queue, odometry);
    gpu_env_destroy(&env);
}

/* ---- Equal bits ---- */

static uint64_t digests[2];
static bool has_digests;

static void expect_bits(struct gpu_env *env)
{
    const struct street_lidar small = {
        .beams = 16, .columns = 300, .range_m = 60, .noise_m = 0.02, .is_instant = true};

    for (int method = 0; method < 2; method++) {
        struct vxd_odometry_options options = {
            .max_range_m = 60,
            .voxel_size_m = 0.8,
            .method = (enum vxd_odometry_method)method,
            .robust = method == 0 ? VXD_ODOMETRY_GEMAN_MCCLURE : VXD_ODOMETRY_HUBER,
            .min_fitness = 0.1};
        struct vxd_odometry *odometry = new_odometry(env, &options);
        uint64_t digest = GPU_FNV_START;

        for (int i = 0; i < 4; i++) {
            struct vxd_odometry_result result;
            struct street_scan scan;

            /* Over four metres in all, so that voxels are removed, too. */
            if (!street_shoot(STREET_TOWN, &small, 30 + i * (i > 2 ? 1.2 : 0.5), 9,
                              &scan)) {
                exit(1);
            }
            result = register_points(env, odometry, scan.points, scan.n, 0);
            if (i == 1) {
                CHECK_INT(result.status, VXD_ODOMETRY_OK);
                CHECK(result.n_iterations > 1);
            }
            digest = gpu_digest(digest, &result.T_map_sensor, sizeof result.T_map_sensor);
            digest = gpu_digest(digest, result.covariance, sizeof result.covariance);
            digest = gpu_digest(digest, &result.n_inliers, sizeof result.n_inliers);
            digest = gpu_digest(digest, &result.rmse_m, sizeof result.rmse_m);
            digest = gpu_digest(digest, &result.n_iterations, sizeof result.n_iterations);
            digest += digest_map(env, odometry);
            street_free(&scan);
        }
        if (has_digests) {
            CHECK(digest == digests[method]);
        }
        digests[method] = digest;
        vxd_odometry_destroy(env->queue, odometry);
    }
    has_digests = true;
}

static void test_poses_and_maps_have_the_same_bits_everywhere(void)
{
    has_digests = false;
    gpu_each_backend(expect_bits);
}

/* ---- LOST ---- */

/* Points of a place that was never seen. */
static void make_elsewhere(size_t n, float *out)
{
    uint64_t state = 4;

    for (size_t i = 0; i < n; i++) {
        out[3 * i] = gpu_random_float(&state, -40, 40);
        out[3 * i + 1] = gpu_random_float(&state, -40, 40);
        out[3 * i + 2] = gpu_random_float(&state, -30, 30);
    }
}

static void expect_lost_scan(struct gpu_env *env)
{
    enum {
        N = 20000
    };
    struct vxd_odometry_options options = {.method = VXD_ODOMETRY_POINT_TO_PLANE};
    struct vxd_odometry *odometry = new_odometry(env, &options);
    struct vxd_odometry_result result = {0};
    struct vxd_volume_pose expected;
    float *points = gpu_alloc(N * 3 * sizeof *points);
    uint64_t map;

    for (int i = 0; i < 4; i++) {
        CHECK_INT(drive(env, odometry, STREET_TOWN, i).status, VXD_ODOMETRY_OK);
    }
    map = digest_map(env, odometry);
    make_elsewhere(N, points);
    for (int i = 4; i < 6; i++) { /* two scans in a row */
        result = register_points(env, odometry, points, N, 0);
        CHECK_INT(result.status, VXD_ODOMETRY_LOST);
        CHECK_INT(result.reason, VXD_ODOMETRY_TOO_FEW_INLIERS);
        CHECK_INT(result.n_lost, i - 3);
        CHECK(memcmp(&result.T_map_sensor, &result.predicted, sizeof result.predicted) ==
              0);
        /* The prediction goes on. */
        expected = truth(i);
        CHECK(street_apart_m(&expected, &result.T_map_sensor) < 0.3);
        CHECK(map == digest_map(env, odometry));
    }
    for (int i = 6; i < 9; i++) {
        result = drive(env, odometry, STREET_TOWN, i);
        expected = truth(i);
        CHECK_INT(result.status, VXD_ODOMETRY_OK);
        CHECK_INT(result.n_lost, 0);
        CHECK(street_apart_m(&expected, &result.T_map_sensor) < 0.15);
    }
    vxd_odometry_destroy(env->queue, odometry);
    free(points);
}

static void test_stream_survives_scans_that_are_lost(void)
{
    struct gpu_env env;

    gpu_env_create(&env, VXD_BACKEND_CPU, 2, 0, 0);
    expect_lost_scan(&env);
    gpu_env_destroy(&env);
}

static void test_tunnel_and_a_bare_field_are_lost(void)
{
    static const enum street_kind kinds[] = {STREET_TUNNEL, STREET_FIELD};
    struct gpu_env env;

    gpu_env_create(&env, VXD_BACKEND_CPU, 2, 0, 0);
    for (int k = 0; k < 2; k++) {
        for (int method = 0; method < 2; method++) {
            struct vxd_odometry_options options = {.method =
                                                       (enum vxd_odometry_method)method};
            struct vxd_odometry *odometry = new_odometry(&env, &options);
            int n_lost = 0;

            for (int i = 0; i < 5; i++) {
                struct vxd_odometry_result result = drive(&env, odometry, kinds[k], i);

                n_lost += result.status == VXD_ODOMETRY_LOST;
                CHECK(i == 0 || kinds[k] != STREET_TUNNEL ||
                      result.reason == VXD_ODOMETRY_SINGULAR);
            }
            CHECK_INT(n_lost, 4);
            vxd_odometry_destroy(env.queue, odometry);
        }
    }
    gpu_env_destroy(&env);
}

static void expect_jump(struct gpu_env *env)
{
    struct vxd_odometry_options options = {.max_translation_m = 0.2};
    struct vxd_odometry *odometry = new_odometry(env, &options);
    struct vxd_odometry_result result;

    (void)drive(env, odometry, STREET_TOWN, 30);
    result = drive(env, odometry, STREET_TOWN, 31); /* 1.3 m */
    CHECK_INT(result.reason, VXD_ODOMETRY_MOVED_TOO_FAR);
    vxd_odometry_destroy(env->queue, odometry);
    options = (struct vxd_odometry_options){.max_iterations = 1};
    odometry = new_odometry(env, &options);
    (void)drive(env, odometry, STREET_TOWN, 30);
    result = drive(env, odometry, STREET_TOWN, 30.5);
    CHECK_INT(result.reason, VXD_ODOMETRY_NOT_CONVERGED);
    vxd_odometry_destroy(env->queue, odometry);
}

static void test_jump_and_too_few_steps_are_lost(void)
{
    struct gpu_env env;

    gpu_env_create(&env, VXD_BACKEND_CPU, 2, 0, 0);
    expect_jump(&env);
    gpu_env_destroy(&env);
}

/* ---- Motion ---- */

static void test_prediction_follows_stamps_and_priors(void)
{
    const int64_t step_ns = 100000000;
    struct vxd_odometry_options options = {.method = VXD_ODOMETRY_POINT_TO_PLANE};
    struct vxd_odometry *odometry;
    struct vxd_odometry_result result;
    struct vxd_volume_pose predicted;
    struct vxd_volume_pose expected;
    struct street_scan scan;
    struct vxd_err err = {0};
    struct gpu_env env;

    gpu_env_create(&env, VXD_BACKEND_CPU, 2, 0, 0);
    odometry = new_odometry(&env, &options);
    for (int i = 0; i < 4; i++) {
        if (!street_shoot(STREET_TOWN, &lidar, i, 3, &scan)) {
            exit(1);
        }
        (void)register_points(&env, odometry, scan.points, scan.n, (i + 1) * step_ns);
        street_free(&scan);
    }
    vxd_odometry_predict(odometry, 7 * step_ns, &predicted); /* two scans are missing */
    expected = truth(6);
    CHECK(street_apart_m(&expected, &predicted) < 0.4);
    if (!street_shoot(STREET_TOWN, &lidar, 6, 3, &scan)) {
        exit(1);
    }
    result = register_points(&env, odometry, scan.points, scan.n, 7 * step_ns);
    CHECK_INT(result.status, VXD_ODOMETRY_OK);
    CHECK(street_apart_m(&expected, &result.T_map_sensor) < 0.15);
    vxd_odometry_predict(odometry, 8 * step_ns, &predicted);
    expected = truth(7);
    CHECK(street_apart_m(&expected, &predicted) < 0.3);
    {
        struct vxd_odometry_scan late = {
            .points = scan.points, .n_points = scan.n, .stamp_ns = 7 * step_ns};

        CHECK_INT(vxd_odometry_register(env.queue, odometry, &late, &result, &err),
                  VXD_INVALID_ARGUMENT);
        CHECK_STR(err.field, "stamp_ns");
        late.stamp_ns = 0;
        late.has_prior = true;
        CHECK_INT(vxd_odometry_register(env.queue, odometry, &late, &result, &err),
                  VXD_INVALID_ARGUMENT); /* zeros are no rotation */
        CHECK_STR(err.field, "prior");
        late.prior = truth(6);
        CHECK_INT(vxd_odometry_register(env.queue, odometry, &late, &result, &err),
                  VXD_OK);
        CHECK_INT(result.status, VXD_ODOMETRY_OK);
        CHECK(memcmp(&late.prior, &result.predicted, sizeof late.prior) == 0);
        late.prior.translation[0] = 1e9;
        CHECK_INT(vxd_odometry_register(env.queue, odometry, &late, &result, &err),
                  VXD_OUT_OF_RANGE);
    }
    street_free(&scan);
    vxd_odometry_destroy(env.queue, odometry);
    gpu_env_destroy(&env);
}

static void expect_reset(struct gpu_env *env)
{
    struct vxd_odometry_options options = {0};
    struct vxd_odometry *odometry = new_odometry(env, &options);
    struct vxd_volume_pose initial = street_pose(3);
    struct vxd_odometry_info info;
    struct vxd_odometry_result result;
    struct vxd_err err = {0};

    (void)drive(env, odometry, STREET_TOWN, 0);
    (void)drive(env, odometry, STREET_TOWN, 0.5);
    CHECK_INT(vxd_odometry_reset(env->queue, odometry, &initial, &err), VXD_OK);
    vxd_odometry_get_info(odometry, &info);
    CHECK_INT(info.n_scans, 0);
    CHECK_INT(info.n_voxels, 0);
    result = drive(env, odometry, STREET_TOWN, 3);
    CHECK(result.is_first);
    CHECK(street_apart_m(&initial, &result.T_map_sensor) == 0);
    initial.rotation[0] = 3;
    CHECK_INT(vxd_odometry_reset(env->queue, odometry, &initial, &err),
              VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, "initial");
    vxd_odometry_destroy(env->queue, odometry);
}

static void test_reset_begins_anew_at_a_pose(void)
{
    gpu_each_backend(expect_reset);
}

/* ---- Hostile input ---- */

static void expect_hostile(struct gpu_env *env)
{
    enum {
        N = 4000
    };
    struct vxd_odometry_options options = {0};
    struct vxd_odometry *odometry = new_odometry(env, &options);
    struct vxd_odometry_result result;
    float *points = gpu_alloc(N * 3 * sizeof *points);
    uint64_t map;

    CHECK_INT(register_points(env, odometry, points, 0, 0).reason,
              VXD_ODOMETRY_TOO_FEW_POINTS);
    (void)drive(env, odometry, STREET_TOWN, 0);
    map = digest_map(env, odometry);
    CHECK_INT(register_points(env, odometry, points, 0, 0).reason,
              VXD_ODOMETRY_TOO_FEW_POINTS);
    for (int kind = 0; kind < 6; kind++) {
        static const float values[] = {NAN, INFINITY, -INFINITY, 3e38f, 1e-30f, 0.25f};

        for (int i = 0; i < 3 * N; i++) {
            points[i] = values[kind];
        }
        result = register_points(env, odometry, points, N, 0);
        CHECK_INT(result.status, VXD_ODOMETRY_LOST);
        CHECK_INT(result.reason, VXD_ODOMETRY_TOO_FEW_POINTS);
        CHECK_INT(result.n_used, kind == 5 ? N : 0);
        CHECK_INT(result.n_map, kind == 5 ? 1 : 0);
        CHECK(map == digest_map(env, odometry));
    }
    /* On a line, beyond what is known: pairs there are few. */
    for (int i = 0; i < N; i++) {
        points[3 * i] = points[3 * i + 1] = points[3 * i + 2] = (float)i * 0.014f;
    }
    result = register_points(env, odometry, points, N, 0);
    CHECK_INT(result.status, VXD_ODOMETRY_LOST);
    CHECK(map == digest_map(env, odometry));
    vxd_odometry_destroy(env->queue, odometry);
    free(points);
}

static void test_hostile_points_are_lost_and_leave_the_map(void)
{
    gpu_each_backend(expect_hostile);
}

static void test_options_outside_of_their_ranges_are_named(void)
{
    static const struct {
        struct vxd_odometry_options options;
        const char *field;
    } wrong[] = {{{.method = 2}, "method"},
                 {{.robust = 3}, "robust"},
                 {{.max_range_m = -1}, "max_range_m"},
                 {{.max_range_m = NAN}, "max_range_m"},
                 {{.max_range_m = 1e300}, "max_range_m"},
                 {{.min_range_m = 101}, "min_range_m"},
                 {{.voxel_size_m = 1e-9}, "voxel_size_m"},
                 {{.voxel_size_m = 200}, "voxel_size_m"},
                 {{.voxel_size_m = INFINITY}, "voxel_size_m"},
                 {{.max_points = 21}, "max_points"},
                 {{.max_points = -1}, "max_points"},
                 {{.initial_threshold_m = NAN}, "initial_threshold_m"},
                 {{.min_motion_m = -1}, "min_motion_m"},
                 {{.max_iterations = 501}, "max_iterations"},
                 {{.convergence = 2}, "convergence"},
                 {{.inlier_m = -1}, "inlier_m"},
                 {{.min_fitness = 1.1}, "min_fitness"},
                 {{.min_constraint = 2}, "min_constraint"},
                 {{.max_translation_m = 1e9}, "max_translation_m"},
                 {{.max_rotation_deg = 181}, "max_rotation_deg"}};
    struct vxd_odometry_options options = {.max_bytes = 1000};
    struct vxd_odometry *odometry = NULL;
    struct vxd_odometry_scan scan = {.n_points = VXD_ODOMETRY_MAX_SCAN_POINTS + 1};
    struct vxd_odometry_result result;
    struct gpu_env env;
    struct vxd_err err = {0};

    gpu_env_create(&env, VXD_BACKEND_CPU, 1, 0, 0);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        CHECK_INT(
            vxd_odometry_create(env.queue, &wrong[i].options, NULL, &odometry, &err),
            VXD_INVALID_ARGUMENT);
        CHECK_STR(err.field, wrong[i].field);
    }
    CHECK_INT(vxd_odometry_create(env.queue, &options, NULL, &odometry, &err),
              VXD_RESOURCE_EXHAUSTED);
    options.max_bytes = 0;
    odometry = new_odometry(&env, &options);
    CHECK_INT(vxd_odometry_register(env.queue, odometry, &scan, &result, &err),
              VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, "n_points");
    vxd_odometry_destroy(env.queue, odometry);
    gpu_env_destroy(&env);
}

/* A map at its limit refuses a scan and stays as it was. */
static enum vxd_status check_options(void *user, void *structure, struct vxd_err *err)
{
    struct vxd_odometry_options options = *(struct vxd_odometry_options *)structure;

    (void)user;
    return vxd_odometry_options_init(&options, err);
}

static void test_options_are_taken_up_to_the_ends_of_their_ranges(void)
{
#define REAL(name, low, high)                                                            \
    TEST_LIMIT(struct vxd_odometry_options, name, #name, low, high)
#define COUNT(name, high)                                                                \
    TEST_LIMIT_INT(struct vxd_odometry_options, name, #name, 0, high)
    static const struct test_limit limits[] = {COUNT(method, 1),
                                               COUNT(robust, 2),
                                               COUNT(max_points, 20),
                                               COUNT(max_iterations, 500),
                                               REAL(max_range_m, 1e-2, 1e4),
                                               REAL(initial_threshold_m, 1e-6, 1e4),
                                               REAL(min_motion_m, 1e-9, 1e4),
                                               REAL(convergence, 1e-9, 1),
                                               REAL(inlier_m, 1e-7, 1e4),
                                               REAL(min_fitness, 1e-6, 1),
                                               REAL(min_constraint, 1e-9, 1),
                                               REAL(max_translation_m, 1e-6, 1e4),
                                               REAL(max_rotation_deg, 1e-6, 180)};
    static const struct test_limit of_range[] = {REAL(min_range_m, 0, 128),
                                                 REAL(voxel_size_m, 128.0 / 4096, 128)};
#undef REAL
#undef COUNT
    struct vxd_odometry_options options = {.method = VXD_ODOMETRY_POINT_TO_PLANE};
    struct test_limited of = {&options, sizeof options, check_options, NULL};

    test_limits(&of, limits, sizeof limits / sizeof limits[0]);
    options.max_range_m = 128;
    test_limits(&of, of_range, sizeof of_range / sizeof of_range[0]);
}

static void test_options_without_numbers_are_the_defaults(void)
{
    struct vxd_odometry_options options = {.max_range_m = 50};
    struct vxd_err err = {0};

    REQUIRE(vxd_odometry_options_init(&options, &err) == VXD_OK);
    CHECK(options.max_range_m == 50 && options.min_range_m == 0);
    CHECK(options.voxel_size_m == 0.5);
    CHECK_INT(options.max_points, 20);
    CHECK(options.initial_threshold_m == 1);
    CHECK(fabs(options.min_motion_m - 0.05) < 1e-12);
    CHECK_INT(options.max_iterations, 100);
    CHECK(options.convergence == 1e-4);
    CHECK(fabs(options.inlier_m - 0.15) < 1e-12);
    CHECK(options.min_fitness == 0.35 && options.min_constraint == 0.015);
    CHECK(options.max_translation_m == 2.5 && options.max_rotation_deg == 20);
}

static void test_map_at_its_limit_refuses_a_scan(void)
{
    struct vxd_odometry_options options = {.max_bytes = (size_t)5 << 20};
    struct vxd_odometry *odometry;
    struct vxd_odometry_scan scan = {.n_points = 0};
    struct vxd_odometry_result result;
    struct vxd_odometry_info info;
    enum {
        N = 60000
    };
    float *points = gpu_alloc(N * 3 * sizeof *points);
    struct gpu_env env;
    struct vxd_err err = {0};

    gpu_env_create(&env, VXD_BACKEND_CPU, 1, 0, 0);
    odometry = new_odometry(&env, &options);
    make_elsewhere(N, points);
    scan.points = points;
    scan.n_points = N;
    CHECK_INT(vxd_odometry_register(env.queue, odometry, &scan, &result, &err),
              VXD_RESOURCE_EXHAUSTED);
    vxd_odometry_get_info(odometry, &info);
    CHECK_INT(info.n_scans, 0);
    CHECK_INT(info.n_voxels, 0);
    CHECK_INT(register_points(&env, odometry, points, 2000, 0).status, VXD_ODOMETRY_OK);
    vxd_odometry_destroy(env.queue, odometry);
    gpu_env_destroy(&env);
    free(points);
}

/* ---- Real scans ---- */

/* Two scans of KITTI, a tenth of a second apart. Recorded: small_gicp 1.0.1 (GICP, 0.1 m), and
 * kiss-icp 1.3.0 (voxels of 1 m, without deskewing: KITTI has done that). */
static void test_scans_of_kitti_lie_where_other_programs_put_them(void)
{
    static const struct vxd_volume_pose recorded[] = {
        [VXD_ODOMETRY_POINT_TO_PLANE] = {.rotation = {0.999994, -0.003170, -0.001574,
                                                      0.003165, 0.999989, -0.003357,
                                                      0.001584, 0.003352, 0.999993},
                                         .translation = {0.683429, 0.002594, 0.005957}},
        [VXD_ODOMETRY_POINT_TO_POINT] = {.rotation = {0.999995, -0.002880, -0.000960,
                                                      0.002879, 0.999995, -0.001516,
                                                      0.000964, 0.001514, 0.999998},
                                         .translation = {0.696571, 0.008101, 0.017818}}};
    struct gpu_env env;

    gpu_env_create(&env, VXD_BACKEND_CPU, 2, 0, 0);
    for (int method = 0; method < 2; method++) {
        struct vxd_odometry_options options = {.method =
                                                   (enum vxd_odometry_method)method};
        struct vxd_odometry *odometry = new_odometry(&env, &options);
        struct vxd_odometry_result result = {0};

        for (int i = 0; i < 2; i++) {
            size_t n_bytes = 0;
            float *file = gpu_read_data(i == 0 ? "lidar/kitti_seq_000000.bin"
                                               : "lidar/kitti_seq_000001.bin",
                                        &n_bytes);
            size_t n = n_bytes / 16;

            if (file == NULL) {
                vxd_odometry_destroy(env.queue, odometry);
                gpu_env_destroy(&env);
                SKIP("the scans are not here");
            }
            for (size_t k = 0; k < n; k++) {
                memmove(file + 3 * k, file + 4 * k, 12);
            }
            result = register_points(&env, odometry, file, n, 0);
            free(file);
        }
        CHECK_INT(result.status, VXD_ODOMETRY_OK);
        CHECK(street_apart_m(&recorded[method], &result.T_map_sensor) < 0.02);
        CHECK(street_apart_deg(&recorded[method], &result.T_map_sensor) < 0.1);
        vxd_odometry_destroy(env.queue, odometry);
    }
    gpu_env_destroy(&env);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_map_is_that_of_a_plain_model),
    VXD_TEST(test_drive_through_a_street_follows_the_poses),
    VXD_TEST(test_scans_of_a_moving_sensor_are_deskewed),
    VXD_TEST(test_map_forgets_what_is_beyond_the_range),
    VXD_TEST(test_poses_and_maps_have_the_same_bits_everywhere),
    VXD_TEST(test_stream_survives_scans_that_are_lost),
    VXD_TEST(test_tunnel_and_a_bare_field_are_lost),
    VXD_TEST(test_jump_and_too_few_steps_are_lost),
    VXD_TEST(test_prediction_follows_stamps_and_priors),
    VXD_TEST(test_reset_begins_anew_at_a_pose),
    VXD_TEST(test_hostile_points_are_lost_and_leave_the_map),
    VXD_TEST(test_options_outside_of_their_ranges_are_named),
    VXD_TEST(test_options_are_taken_up_to_the_ends_of_their_ranges),
    VXD_TEST(test_options_without_numbers_are_the_defaults),
    VXD_TEST(test_map_at_its_limit_refuses_a_scan),
    VXD_TEST(test_scans_of_kitti_lie_where_other_programs_put_them),
};

VXD_TEST_MAIN(tests)
