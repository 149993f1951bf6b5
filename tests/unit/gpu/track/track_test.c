// SPDX-License-Identifier: Apache-2.0
/* Tracking against exact poses of a ray-traced room; derivatives against differences; what must be
 * LOST; equal bits on all backends and with any number of threads. */
#include "gpu/track/track.h"
#include "gpu/track/track_internal.h"
#include "gpu/track/track_math.h"
#include "tests/support/test.h"
#include "tests/support/track/track_scene.h"

#include <math.h>

#define WIDTH 160
#define HEIGHT 120
#define VOXEL_M 0.02
#define NOISE 0.0015

/* ---- Derivatives ---- */

static void random_vector(uint64_t *state, float low, float high, float out[3])
{
    for (int i = 0; i < 3; i++) {
        out[i] = gpu_random_float(state, low, high);
    }
}

/* The point exp(x) p in double. */
static void moved(const double x[6], const float p[3], float out[3])
{
    double r[9];

    vxd_track_rotation(x + 3, r);
    for (int i = 0; i < 3; i++) {
        out[i] = (float)(r[3 * i] * (double)p[0] + r[3 * i + 1] * (double)p[1] +
                         r[3 * i + 2] * (double)p[2] + x[i]);
    }
}

/* The residual of a point: to a plane, or of grey at its projection in a picture. */
struct residual {
    struct vxd_track_level level;
    float at[3];
    float n[3];
    bool is_grey;
};

static void evaluate(const struct residual *what, const float q[3],
                     struct vxd_track_row *row)
{
    struct vxd_track_pair pair;
    float u;
    float v;

    if (!what->is_grey) {
        vxd_track_plane_row(&what->level.rule, q, what->at, what->n, row);
        return;
    }
    CHECK(vxd_track_project(&what->level.camera, q, &u, &v));
    vxd_track_fetch_corners(&what->level, (int)v * what->level.camera.width + (int)u,
                            &pair);
    vxd_track_grey_row(&what->level.rule, &what->level.camera, q, u - (float)(int)u,
                       v - (float)(int)v, pair.corners, 0.5f, row);
}

/* Compares a row with central differences of its residual. */
static void check_row(const struct residual *what, const float q[3])
{
    struct vxd_track_row row;
    const double step = 5e-4;

    evaluate(what, q, &row);
    for (int k = 0; k < 6; k++) {
        double x[6] = {0};
        struct vxd_track_row high;
        struct vxd_track_row low;
        float p[3];
        double expected;
        double found = (double)(k < 3 ? row.t[k] : row.r[k - 3]);

        x[k] = step;
        moved(x, q, p);
        evaluate(what, p, &high);
        x[k] = -step;
        moved(x, q, p);
        evaluate(what, p, &low);
        expected = ((double)high.residual - (double)low.residual) / (2 * step);
        CHECK(fabs(found - expected) < 2e-3 * (1 + fabs(expected)));
    }
}

static void test_rows_are_derivatives_of_residuals(void)
{
    float planes[VXD_TRACK_N_PLANES * 40 * 30];
    struct residual what = {
        .level = {.model = {.planes = planes, .n = 40 * 30, .width = 40, .height = 30},
                  .camera = {40, 30, 2, 2.5f, 19, 14},
                  .rule = {.robust = {1, 0, 0},
                           .plane_scale = 0.02f,
                           .grey_scale = 0.1f,
                           .grey_m = 1}}};
    uint64_t state = 7;

    for (int i = 0; i < VXD_TRACK_N_PLANES * 40 * 30; i++) { /* a plane of greys */
        planes[i] = 0.1f + 0.02f * (float)(i % 40) + 0.01f * (float)(i / 40 % 30);
    }
    for (int round = 0; round < 200; round++) {
        float q[3];

        random_vector(&state, -1, 1, q);
        random_vector(&state, -1, 1, what.at);
        random_vector(&state, -1, 1, what.n);
        what.is_grey = false;
        check_row(&what, q);
        q[2] = gpu_random_float(&state, 0.5f, 2);
        what.is_grey = true;
        check_row(&what, q);
    }
}

static void test_weights_are_those_of_huber_and_tukey(void)
{
    static const float huber[3] = {1, 0, 0};
    static const float tukey[3] = {0, 1, 0};
    static const float squares[3] = {0, 0, 1};

    CHECK(vxd_track_weight(huber, 0.5f, 0) == 1 &&
          vxd_track_weight(huber, 0.5f, -0.5f) == 1);
    CHECK(fabsf(vxd_track_weight(huber, 0.5f, -2) - 0.25f) < 1e-6f);
    CHECK(vxd_track_weight(tukey, 0.5f, 0) == 1 &&
          vxd_track_weight(tukey, 0.5f, 0.6f) == 0);
    CHECK(fabsf(vxd_track_weight(tukey, 1, 0.5f) - 0.5625f) < 1e-6f);
    CHECK(vxd_track_weight(squares, 0.5f, 100) == 1);
}

/* ---- Poses ---- */

static struct vxd_volume *new_volume(struct gpu_env *env)
{
    struct vxd_volume_spec spec = {.voxel_size_m = VOXEL_M,
                                   .block_edge = 8,
                                   .truncation_m = 4 * VOXEL_M,
                                   .has_colour = true,
                                   .origin_m = {0.3, -0.1, 0.2}};
    struct vxd_volume *volume = NULL;
    struct vxd_err err = {0};

    CHECK_INT(vxd_volume_create(env->queue, &spec, &volume, &err), VXD_OK);
    return volume;
}

/* A shot on the device; its frame points there. */
struct upload {
    struct vxd_volume_frame frame;
    struct vxd_buffer depth;
    struct vxd_buffer colour;
};

static void upload(struct gpu_env *env, const struct track_shot *shot, struct upload *out)
{
    size_t n = (size_t)shot->frame.camera.width * (size_t)shot->frame.camera.height;

    out->frame = shot->frame;
    out->depth = gpu_to_device(env, shot->depth, n * sizeof(float));
    out->colour = gpu_to_device(env, shot->colour, 3 * n);
    gpu_wait(env);
    out->frame.depth = out->depth.ptr;
    out->frame.colour = out->colour.ptr;
}

static void upload_free(struct gpu_env *env, struct upload *upload)
{
    vxd_device_free(env->queue, &upload->depth);
    vxd_device_free(env->queue, &upload->colour);
    gpu_wait(env);
}

static void integrate(struct gpu_env *env, struct vxd_volume *volume,
                      enum track_scene scene, const struct vxd_volume_pose *pose,
                      uint64_t seed)
{
    struct vxd_volume_camera camera = track_camera(WIDTH, HEIGHT);
    struct vxd_volume_activation done;
    struct track_shot shot;
    struct upload device;
    struct vxd_err err = {0};

    track_shoot(scene, &camera, pose, NOISE, seed, &shot);
    upload(env, &shot, &device);
    CHECK_INT(vxd_volume_integrate(env->queue, volume, &device.frame, &done, &err),
              VXD_OK);
    gpu_wait(env);
    upload_free(env, &device);
    track_shot_free(&shot);
}

static struct vxd_track_result track(struct gpu_env *env, struct vxd_volume *volume,
                                     const struct track_shot *shot,
                                     const struct vxd_volume_pose *prior,
                                     const struct vxd_track_options *options)
{
    struct vxd_track_result result;
    struct upload device;
    struct vxd_err err = {0};

    upload(env, shot, &device);
    device.frame.T_map_camera = *prior;
    CHECK_INT(vxd_track(env->queue, volume, &device.frame, options, &result, &err),
              VXD_OK);
    upload_free(env, &device);
    return result;
}

static uint64_t digest_of_results;

static void add_to_digest(const struct vxd_track_result *result)
{
    digest_of_results =
        gpu_digest(digest_of_results, &result->T_map_camera, sizeof result->T_map_camera);
    digest_of_results =
        gpu_digest(digest_of_results, result->information, sizeof result->information);
    digest_of_results =
        gpu_digest(digest_of_results, &result->n_inliers, sizeof result->n_inliers);
}

/* Every method and weight finds a camera that moved by 4 cm and 2.5 degrees. */
static void expect_moved_camera(struct gpu_env *env)
{
    static uint64_t first_digest;
    struct vxd_volume_camera camera = track_camera(WIDTH, HEIGHT);
    struct vxd_volume_pose prior = track_pose(0, 0, -0.3, 0, 5, 0);
    struct vxd_volume_pose now = track_pose(0.03, -0.02, -0.28, 2, 4, 1);
    struct vxd_volume *volume = new_volume(env);
    struct track_shot shot;

    digest_of_results = GPU_FNV_START;
    for (uint64_t i = 0; i < 4; i++) {
        integrate(env, volume, TRACK_ROOM, &prior, i);
    }
    track_shoot(TRACK_ROOM, &camera, &now, NOISE, 99, &shot);
    for (int method = 0; method < 3; method++) {
        for (int robust = 0; robust < 3; robust++) {
            struct vxd_track_options options = {.method = method, .robust = robust};
            struct vxd_track_result result = track(env, volume, &shot, &prior, &options);
            bool is_grey = method == VXD_TRACK_INTENSITY;

            CHECK_INT(result.status, VXD_TRACK_OK);
            CHECK(track_apart_m(&result.T_map_camera, &now) < (is_grey ? 0.012 : 0.004));
            CHECK(track_apart_deg(&result.T_map_camera, &now) < (is_grey ? 0.5 : 0.15));
            CHECK(result.fitness > 0.6 && result.fitness <= 1);
            CHECK(result.rmse_m > 1e-4 && result.rmse_m < 0.02);
            add_to_digest(&result);
        }
    }
    track_shot_free(&shot);
    vxd_volume_destroy(env->queue, volume);
    first_digest = first_digest == 0 ? digest_of_results : first_digest;
    CHECK(first_digest == digest_of_results); /* of all backends and numbers of threads */
}

static void test_moved_camera_is_found_with_the_same_bits_everywhere(void)
{
    gpu_each_backend(expect_moved_camera);
}

/* The information is that of distances to planes, for small movements in the camera's frame. */
static void expect_information(struct gpu_env *env)
{
    struct vxd_volume_camera camera = track_camera(WIDTH, HEIGHT);
    struct vxd_volume_pose pose = track_pose(0, 0, -0.3, 0, 5, 0);
    struct vxd_track_options options = {.robust = VXD_TRACK_SQUARES};
    struct vxd_volume *volume = new_volume(env);
    struct vxd_track_result result;
    struct track_shot shot;
    double trace = 0;

    for (uint64_t i = 0; i < 2; i++) {
        integrate(env, volume, TRACK_ROOM, &pose, i);
    }
    track_shoot(TRACK_ROOM, &camera, &pose, NOISE, 5, &shot);
    result = track(env, volume, &shot, &pose, &options);
    for (int i = 0; i < 6; i++) {
        trace += i < 3 ? result.information[7 * i] : 0;
        for (int j = 0; j < 6; j++) {
            CHECK(fabs(result.information[6 * i + j] - result.information[6 * j + i]) <
                  1e-6 * (double)result.n_inliers);
        }
    }
    /* Normals have unit length. */
    CHECK(fabs(trace / (double)result.n_inliers - 1) < 1e-4);
    CHECK(result.constraint > 0.01);
    track_shot_free(&shot);
    vxd_volume_destroy(env->queue, volume);
}

static void test_information_is_that_of_the_planes(void)
{
    gpu_each_backend(expect_information);
}

/* A closed loop, frame after frame, each integrated at the pose that was found. */
static void expect_loop(struct gpu_env *env)
{
    enum {
        N = 60
    };
    struct vxd_volume_camera camera = track_camera(WIDTH, HEIGHT);
    struct vxd_volume *volume = new_volume(env);
    struct vxd_track_options options = {.method = VXD_TRACK_POINT_TO_PLANE};
    struct vxd_track_state state = {0};
    struct vxd_volume_pose first = track_loop_pose(0, N);
    double squares = 0;

    integrate(env, volume, TRACK_ROOM, &first, 1000);
    vxd_track_accept(&state, &first);
    for (int i = 1; i <= N; i++) {
        struct vxd_volume_pose truth = track_loop_pose(i, N);
        struct vxd_volume_pose prior;
        struct vxd_volume_activation done;
        struct vxd_track_result result;
        struct track_shot shot;
        struct vxd_err err = {0};

        vxd_track_predict(&state, &prior);
        track_shoot(TRACK_ROOM, &camera, &truth, NOISE, 1000 + (uint64_t)i, &shot);
        result = track(env, volume, &shot, &prior, &options);
        CHECK_INT(result.status, VXD_TRACK_OK);
        CHECK(track_apart_m(&result.T_map_camera, &truth) < 0.03);
        squares += pow(track_apart_m(&result.T_map_camera, &truth), 2);
        vxd_track_accept(&state, &result.T_map_camera);
        shot.frame.T_map_camera = result.T_map_camera;
        CHECK_INT(vxd_volume_integrate(env->queue, volume, &shot.frame, &done, &err),
                  VXD_OK);
        gpu_wait(env);
        track_shot_free(&shot);
    }
    CHECK(sqrt(squares / N) < 0.012);
    vxd_volume_destroy(env->queue, volume);
}

/* On one backend: that all are alike is the first test's. */
static void test_closed_loop_ends_where_it_began(void)
{
    struct gpu_env env;

    gpu_env_create(&env, VXD_BACKEND_CPU, 2, 0, 0);
    expect_loop(&env);
    gpu_env_destroy(&env);
}

/* ---- LOST ---- */

static void expect_lost(struct gpu_env *env, struct vxd_volume *volume,
                        const struct track_shot *shot,
                        const struct vxd_volume_pose *prior, enum vxd_track_reason reason)
{
    struct vxd_track_options options = {.method = VXD_TRACK_POINT_TO_PLANE};
    struct vxd_track_result result = track(env, volume, shot, prior, &options);

    CHECK_INT(result.status, VXD_TRACK_LOST);
    CHECK_INT(result.reason, reason);
    CHECK(memcmp(&result.T_map_camera, prior, sizeof *prior) == 0);
}

static void expect_wall(struct gpu_env *env)
{
    struct vxd_volume_camera camera = track_camera(WIDTH, HEIGHT);
    struct vxd_volume_pose prior = track_pose(0, 0, 0, 0, 0, 0);
    struct vxd_volume_pose now = track_pose(0.03, 0.01, 0.01, 1, 0, 0);
    struct vxd_track_options hybrid = {.method = VXD_TRACK_HYBRID};
    struct vxd_track_options intensity = {.method = VXD_TRACK_INTENSITY};
    struct vxd_track_result result;

    for (int scene = TRACK_WALL; scene <= TRACK_PAINTED; scene++) {
        struct vxd_volume *volume = new_volume(env);
        struct track_shot shot;

        for (uint64_t i = 0; i < 3; i++) {
            integrate(env, volume, (enum track_scene)scene, &prior, i);
        }
        track_shoot((enum track_scene)scene, &camera, &now, NOISE, 9, &shot);
        expect_lost(env, volume, &shot, &prior, VXD_TRACK_SINGULAR);
        result = track(env, volume, &shot, &prior, &hybrid);
        if (scene == TRACK_WALL) { /* nothing to hold on to but noise */
            CHECK_INT(result.reason, VXD_TRACK_SINGULAR);
            result = track(env, volume, &shot, &prior, &intensity);
            CHECK_INT(result.reason, VXD_TRACK_SINGULAR);
        } else {
            CHECK_INT(result.status, VXD_TRACK_OK);
            CHECK(track_apart_m(&result.T_map_camera, &now) < 0.008);
        }
        track_shot_free(&shot);
        vxd_volume_destroy(env->queue, volume);
    }
}

static void test_blank_wall_is_lost_and_a_painted_one_is_held_by_its_colours(void)
{
    gpu_each_backend(expect_wall);
}

static void expect_jumps(struct gpu_env *env)
{
    struct vxd_volume_camera camera = track_camera(WIDTH, HEIGHT);
    struct vxd_volume_pose prior = track_pose(0, 0, -0.3, 0, 5, 0);
    const struct vxd_volume_pose jumps[] = {
        track_pose(0, 0, -0.3, 100, 5, 0), track_pose(0, 0, -0.3, 180, 0, 0),
        track_pose(0.9, 0, 0.2, 0, 5, 0), track_pose(-0.8, -0.5, -1.2, 30, 20, 0),
        track_pose(0, 0, -0.3, 0, 5, 90)};
    struct vxd_volume *volume = new_volume(env);
    struct track_shot shot;

    track_shoot(TRACK_ROOM, &camera, &prior, NOISE, 3, &shot);
    expect_lost(env, volume, &shot, &prior, VXD_TRACK_TOO_FEW_INLIERS); /* empty */
    for (uint64_t i = 0; i < 3; i++) {
        integrate(env, volume, TRACK_ROOM, &prior, i);
    }
    for (size_t i = 0; i < (size_t)WIDTH * HEIGHT; i++) {
        shot.depth[i] = NAN;
    }
    expect_lost(env, volume, &shot, &prior, VXD_TRACK_NO_DEPTH);
    track_shot_free(&shot);
    for (size_t i = 0; i < sizeof jumps / sizeof jumps[0]; i++) {
        struct vxd_track_options options = {.method = VXD_TRACK_POINT_TO_PLANE};
        struct vxd_track_result result;

        track_shoot(TRACK_ROOM, &camera, &jumps[i], NOISE, 50 + i, &shot);
        result = track(env, volume, &shot, &prior, &options);
        CHECK_INT(result.status, VXD_TRACK_LOST);
        CHECK(result.reason != VXD_TRACK_FOUND);
        track_shot_free(&shot);
    }
    vxd_volume_destroy(env->queue, volume);
}

static void test_jump_no_depth_and_an_empty_volume_are_lost(void)
{
    gpu_each_backend(expect_jumps);
}

static void expect_limit(struct gpu_env *env)
{
    struct vxd_volume_camera camera = track_camera(WIDTH, HEIGHT);
    struct vxd_volume_pose prior = track_pose(0, 0, -0.3, 0, 5, 0);
    struct vxd_volume_pose now = track_pose(0.03, 0, -0.3, 0, 5, 0);
    struct vxd_track_options options = {.max_translation_m = 0.01};
    struct vxd_volume *volume = new_volume(env);
    struct vxd_track_result result;
    struct track_shot shot;

    integrate(env, volume, TRACK_ROOM, &prior, 1);
    track_shoot(TRACK_ROOM, &camera, &now, NOISE, 3, &shot);
    result = track(env, volume, &shot, &prior, &options);
    CHECK_INT(result.reason, VXD_TRACK_MOVED_TOO_FAR);
    options.max_translation_m = 0;
    options.max_rotation_deg = 1e-6;
    result = track(env, volume, &shot, &prior, &options);
    CHECK_INT(result.reason, VXD_TRACK_MOVED_TOO_FAR);
    track_shot_free(&shot);
    vxd_volume_destroy(env->queue, volume);
}

static void test_movement_beyond_the_limit_is_lost(void)
{
    gpu_each_backend(expect_limit);
}

/* An image of more pixels than the finest level has. */
static void expect_large(struct gpu_env *env)
{
    struct vxd_volume_camera large = track_camera(1024, 640);
    struct vxd_volume_pose prior = track_pose(0, 0, -0.3, 0, 5, 0);
    struct vxd_volume_pose now = track_pose(0.02, -0.01, -0.29, 1, 5, 0);
    struct vxd_track_options options = {.method = VXD_TRACK_HYBRID};
    struct vxd_volume *volume = new_volume(env);
    struct vxd_track_result result;
    struct track_shot shot;

    for (uint64_t i = 0; i < 3; i++) {
        integrate(env, volume, TRACK_ROOM, &prior, i);
    }
    track_shoot(TRACK_ROOM, &large, &now, NOISE, 3, &shot);
    result = track(env, volume, &shot, &prior, &options);
    CHECK_INT(result.status, VXD_TRACK_OK);
    CHECK(track_apart_m(&result.T_map_camera, &now) < 0.003);
    track_shot_free(&shot);
    vxd_volume_destroy(env->queue, volume);
}

static void test_large_image_is_averaged_down(void)
{
    struct gpu_env env;

    gpu_env_create(&env, VXD_BACKEND_CPU, 2, 0, 0);
    expect_large(&env);
    gpu_env_destroy(&env);
}

/* What a lens bends is found as well as what it does not: the pixels of the room, seen from there. */
static void expect_lens(struct gpu_env *env)
{
    struct vxd_volume_camera camera = track_camera(WIDTH, HEIGHT);
    struct vxd_volume_pose prior = track_pose(0, 0, -0.3, 0, 5, 0);
    struct vxd_volume_pose now = track_pose(0.02, -0.01, -0.29, 1, 5, 0);
    struct vxd_track_options options = {.method = VXD_TRACK_HYBRID};
    struct vxd_volume *volume = new_volume(env);
    struct vxd_track_result result;
    struct track_shot shot;

    for (uint64_t i = 0; i < 2; i++) {
        integrate(env, volume, TRACK_ROOM, &prior, i);
    }
    camera.distortion[0] = -0.18;
    camera.distortion[1] = 0.03;
    camera.distortion[2] = 0.002;
    track_shoot(TRACK_ROOM, &camera, &now, NOISE, 3, &shot);
    result = track(env, volume, &shot, &prior, &options);
    CHECK_INT(result.status, VXD_TRACK_OK);
    CHECK(track_apart_m(&result.T_map_camera, &now) < 0.004);
    CHECK(track_apart_deg(&result.T_map_camera, &now) < 0.15);
    track_shot_free(&shot);
    vxd_volume_destroy(env->queue, volume);
}

static void test_lens_is_undone(void)
{
    gpu_each_backend(expect_lens);
}

/* ---- Arguments and state ---- */

static void expect_errors(struct gpu_env *env)
{
    static const struct {
        struct vxd_track_options options;
        const char *field;
    } wrong[] = {{{.method = 3}, "method"},
                 {{.robust = 3}, "robust"},
                 {{.n_levels = 5}, "iterations"},
                 {{.n_levels = 2, .iterations = {3, 101}}, "iterations"},
                 {{.n_levels = 1}, "iterations"},
                 {{.max_distance_m = -1}, "max_distance_m"},
                 {{.robust_scale_m = NAN}, "robust_scale_m"},
                 {{.intensity_scale = 11}, "intensity_scale"},
                 {{.intensity_m = INFINITY}, "intensity_m"},
                 {{.min_weight = -1}, "min_weight"},
                 {{.max_pixels = 999}, "max_pixels"},
                 {{.min_fitness = 1.5}, "min_fitness"},
                 {{.min_agreement = 2}, "min_agreement"},
                 {{.min_constraint = 2}, "min_constraint"},
                 {{.max_translation_m = 1e9}, "max_translation_m"},
                 {{.max_rotation_deg = 181}, "max_rotation_deg"}};
    struct vxd_volume_camera camera = track_camera(16, 16);
    struct vxd_volume_pose pose = track_pose(0, 0, 0, 0, 0, 0);
    struct vxd_track_options hybrid = {.method = VXD_TRACK_HYBRID};
    struct vxd_volume *volume = new_volume(env);
    struct vxd_track_result result;
    struct track_shot shot;
    struct vxd_err err = {0};

    track_shoot(TRACK_WALL, &camera, &pose, 0, 1, &shot);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        CHECK_INT(
            vxd_track(env->queue, volume, &shot.frame, &wrong[i].options, &result, &err),
            VXD_INVALID_ARGUMENT);
        CHECK_STR(err.field, wrong[i].field);
    }
    shot.frame.colour = NULL;
    CHECK_INT(vxd_track(env->queue, volume, &shot.frame, &hybrid, &result, &err),
              VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, "colour");
    shot.frame.camera.fx = NAN;
    CHECK_INT(
        vxd_track(env->queue, volume, &shot.frame, &wrong[0].options, &result, &err),
        VXD_INVALID_ARGUMENT);
    hybrid.method = VXD_TRACK_POINT_TO_PLANE;
    CHECK_INT(vxd_track(env->queue, volume, &shot.frame, &hybrid, &result, &err),
              VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, "camera");
    track_shot_free(&shot);
    vxd_volume_destroy(env->queue, volume);
}

/* Images of one row, and of one pixel, are too small to track, and no more than that. */
static void expect_slivers(struct gpu_env *env)
{
    static const int sizes[][2] = {{4000, 1}, {1, 4000}, {1, 1}, {3, 700}};
    struct vxd_track_options options = {.max_pixels = 1000};
    struct vxd_volume_pose pose = track_pose(0, 0, 0, 0, 0, 0);
    struct vxd_volume *volume = new_volume(env);

    integrate(env, volume, TRACK_WALL, &pose, 1);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct vxd_volume_camera camera = track_camera(sizes[i][0], sizes[i][1]);
        struct vxd_track_result result;
        struct track_shot shot;

        camera.fx = 400;
        camera.fy = 400;
        track_shoot(TRACK_WALL, &camera, &pose, 0, 1, &shot);
        result = track(env, volume, &shot, &pose, &options);
        CHECK_INT(result.status, VXD_TRACK_LOST);
        track_shot_free(&shot);
    }
    vxd_volume_destroy(env->queue, volume);
}

static void test_slivers_are_lost(void)
{
    gpu_each_backend(expect_slivers);
}

static void test_wrong_arguments_are_named(void)
{
    gpu_each_backend(expect_errors);
}

static void test_prediction_goes_on_as_before(void)
{
    struct vxd_volume_pose poses[4];
    struct vxd_volume_pose expected;
    struct vxd_track_state state = {0};

    vxd_track_predict(&state, &expected);
    CHECK(expected.rotation[0] == 1 && expected.translation[0] == 0);
    /* It turns about the axis along which it moves. */
    for (int i = 0; i < 4; i++) {
        poses[i] = track_pose(0, 0, 0.1 * i, 0, 0, 10 * i);
    }
    vxd_track_accept(&state, &poses[0]);
    vxd_track_predict(&state, &expected);
    CHECK(track_apart_m(&expected, &poses[0]) < 1e-12);
    for (int i = 1; i < 3; i++) {
        vxd_track_accept(&state, &poses[i]);
        vxd_track_predict(&state, &expected);
        CHECK(track_apart_m(&expected, &poses[i + 1]) < 1e-12);
        CHECK(track_apart_deg(&expected, &poses[i + 1]) < 1e-5);
    }
    vxd_track_lose(&state);
    vxd_track_predict(&state, &expected);
    CHECK(track_apart_m(&expected, &poses[2]) < 1e-12);
}

/* --- Filtered depths --- */

static void check_filter(struct gpu_env *env, int width, int height, uint64_t *state)
{
    size_t n = (size_t)width * (size_t)height;
    float *depths = gpu_alloc(n * sizeof *depths);
    struct vxd_buffer source = {NULL, 0, VXD_SPACE_DEVICE};
    struct vxd_buffer scratch = gpu_to_device(env, NULL, n * sizeof(float));
    struct vxd_buffer filtered = {NULL, 0, VXD_SPACE_DEVICE};
    struct vxd_buffer planes =
        gpu_to_device(env, NULL, n * VXD_TRACK_N_PLANES * sizeof(float));
    struct vxd_track_work work;
    struct vxd_err err = {0};
    float *found;

    for (size_t i = 0; i < n; i++) { /* a rough wall with holes and an edge */
        depths[i] = (i % 11 < 6 ? 1.0f : 1.6f) + gpu_random_float(state, 0, 0.02f);
        depths[i] = gpu_random(state) % 9 == 0 ? 0 : depths[i];
    }
    source = gpu_to_device(env, depths, n * sizeof *depths);
    memset(depths, 0xff, n * sizeof *depths); /* NaN: each pixel is to be written */
    filtered = gpu_to_device(env, depths, n * sizeof *depths);
    {
        const struct vxd_track_live_call call = {
            .source = {.camera = {.width = width,
                                  .height = height,
                                  .fx = 50,
                                  .fy = 50,
                                  .cx = 0.5f * (float)width,
                                  .cy = 0.5f * (float)height},
                       .depth = source.ptr,
                       .depth_scale = 1,
                       .depth_min = 0.1f,
                       .depth_max = 4,
                       .stride = 1},
            .image = {planes.ptr, n, width, height},
            .is_filtered = true,
            .depths = scratch.ptr,
            .filtered = filtered.ptr,
            .work = &work};

        CHECK_INT(vxd_track_live_cpu(env->queue, &call, &err), VXD_OK);
    }
    free(depths);
    depths = gpu_to_host(env, &source);
    found = gpu_to_host(env, &filtered);
    for (size_t i = 0; i < n; i++) {
        float expected = vxd_track_filter(depths, width, height, (int)(i % (size_t)width),
                                          (int)(i / (size_t)width));

        CHECK(memcmp(&found[i], &expected, sizeof expected) == 0);
    }
    free(found);
    free(depths);
    vxd_device_free(env->queue, &planes);
    vxd_device_free(env->queue, &filtered);
    vxd_device_free(env->queue, &scratch);
    vxd_device_free(env->queue, &source);
}

/* The CPU takes many pixels at a time, and those of the rim apart. */
static void test_filtered_depth_is_the_rules_at_every_pixel(void)
{
    static const int sizes[][2] = {{1, 1}, {3, 4},  {4, 9},  {5, 5},
                                   {6, 3}, {23, 9}, {70, 12}};
    uint64_t state = 23;
    struct gpu_env env;

    gpu_env_create(&env, VXD_BACKEND_CPU, 2, 0, 0);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        check_filter(&env, sizes[i][0], sizes[i][1], &state);
    }
    gpu_env_destroy(&env);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_filtered_depth_is_the_rules_at_every_pixel),
    VXD_TEST(test_rows_are_derivatives_of_residuals),
    VXD_TEST(test_weights_are_those_of_huber_and_tukey),
    VXD_TEST(test_moved_camera_is_found_with_the_same_bits_everywhere),
    VXD_TEST(test_information_is_that_of_the_planes),
    VXD_TEST(test_closed_loop_ends_where_it_began),
    VXD_TEST(test_blank_wall_is_lost_and_a_painted_one_is_held_by_its_colours),
    VXD_TEST(test_jump_no_depth_and_an_empty_volume_are_lost),
    VXD_TEST(test_movement_beyond_the_limit_is_lost),
    VXD_TEST(test_large_image_is_averaged_down),
    VXD_TEST(test_lens_is_undone),
    VXD_TEST(test_slivers_are_lost),
    VXD_TEST(test_wrong_arguments_are_named),
    VXD_TEST(test_prediction_goes_on_as_before),
};

VXD_TEST_MAIN(tests)
