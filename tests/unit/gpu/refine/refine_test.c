// SPDX-License-Identifier: Apache-2.0
/* Refinement of a ball whose relief, paint and light are known; the same bits on all backends and
 * however work is divided; what is refused, and that nothing changes before the end. */
#include "gpu/refine/refine.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/refine/refine_internal.h"
#include "gpu/volume/volume_math.h"
#include "tests/support/gpu/gpu_helpers.h"
#include "tests/support/refine/refine_scene.h"
#include "tests/support/test.h"

#define MAX_KEYFRAMES 16
#define ALL 1e15 /* work: everything at once */

static const struct refine_scene tiny = {.radius_m = 0.02,
                                         .relief_m = 0.0005,
                                         .wavelength_m = 0.012,
                                         .n_keyframes = 3,
                                         .width = 48,
                                         .height = 36};
static const struct refine_scene ball = {.radius_m = 0.04,
                                         .relief_m = 0.001,
                                         .wavelength_m = 0.016,
                                         .n_keyframes = 12,
                                         .width = 200,
                                         .height = 150};

struct run {
    struct gpu_env *env;
    struct refine_scene scene;
    struct vxd_refine_options options;
    struct vxd_refine_keyframe keyframes[MAX_KEYFRAMES];
    uint8_t *images;
    struct vxd_volume *volume;
    struct vxd_refine *refine;
    struct vxd_volume *made;
};

static void begin(struct gpu_env *env, const struct refine_scene *scene, double voxel_m,
                  struct run *run)
{
    struct vxd_volume_spec spec = {.voxel_size_m = voxel_m,
                                   .block_edge = 8,
                                   .truncation_m = 6 * voxel_m,
                                   .origin_m = {0.1, -3, 0.25},
                                   .has_albedo = true};
    struct vxd_err err = {0};

    memset(run, 0, sizeof *run);
    run->env = env;
    run->scene = *scene;
    vxd_refine_options_init(&run->options);
    refine_scene_shoot(scene, run->keyframes, &run->images);
    CHECK_INT(vxd_volume_create(env->queue, &spec, &run->volume, &err), VXD_OK);
    CHECK_INT(refine_scene_integrate(scene, env->queue, run->volume, &err), VXD_OK);
}

static void end(struct run *run)
{
    vxd_refine_destroy(run->env->queue, run->refine);
    vxd_volume_destroy(run->env->queue, run->made);
    vxd_volume_destroy(run->env->queue, run->volume);
    gpu_wait(run->env);
    free(run->images);
}

static enum vxd_status create(struct run *run, struct vxd_err *err)
{
    vxd_refine_destroy(run->env->queue, run->refine);
    return vxd_refine_create(run->env->queue, run->volume, run->keyframes,
                             (size_t)run->scene.n_keyframes, &run->options, &run->refine,
                             err);
}

static enum vxd_status work(struct run *run, double work_ns, struct vxd_err *err)
{
    enum vxd_status status = create(run, err);
    bool is_done = false;

    while (status == VXD_OK && !is_done) {
        status = vxd_refine_step(run->env->queue, run->refine, run->volume, work_ns,
                                 &is_done, err);
    }
    if (status == VXD_OK && run->options.makes_volume) {
        vxd_volume_destroy(run->env->queue, run->made);
        run->made = vxd_refine_take_volume(run->refine);
        CHECK(run->made != NULL);
    } else if (status == VXD_OK) {
        status = vxd_refine_apply(run->env->queue, run->refine, run->volume, err);
    }
    return status;
}

/* Of keys, distances, weights and albedo; not of stamps. */
static uint64_t digest_of(struct gpu_env *env, struct vxd_volume *volume)
{
    struct vxd_volume_blocks blocks = {0};
    struct vxd_volume_layer layers[VXD_VOLUME_MAX_LAYERS];
    int32_t *entries = NULL;
    uint64_t digest = GPU_FNV_START;
    struct vxd_err err = {0};
    size_t n = 0;

    CHECK_INT(vxd_volume_list_changed(env->queue, volume, 0, &entries, &n, &err), VXD_OK);
    CHECK_INT(vxd_volume_read_blocks(env->queue, volume, entries, n, true, &blocks, &err),
              VXD_OK);
    digest = gpu_digest(digest, blocks.keys, n * 3 * sizeof(int32_t));
    for (int i = 0; i < vxd_volume_get_layers(volume, layers); i++) {
        digest = gpu_digest(digest, blocks.layers[i],
                            n * layers[i].n_elements * vxd_dtype_bytes(layers[i].dtype));
    }
    vxd_volume_blocks_free(env->queue, &blocks);
    free(entries);
    return digest;
}

static struct refine_score score_of(struct run *run, struct vxd_volume *volume)
{
    struct refine_score score;
    struct vxd_err err = {0};

    CHECK_INT(refine_scene_score(&run->scene, run->env->queue, volume, &score, &err),
              VXD_OK);
    return score;
}

/* Runs the body on the CPU: what is asked there does not depend on the backend. */
static void on_cpu(void (*body)(struct gpu_env *env))
{
    struct gpu_env env;

    gpu_env_create(&env, VXD_BACKEND_CPU, 2, 0, 0);
    body(&env);
    gpu_env_destroy(&env);
}

static void expect_relief(struct gpu_env *env)
{
    struct refine_score before;
    struct refine_score after;
    struct vxd_err err = {0};
    struct vxd_volume_camera camera;
    struct vxd_volume_pose pose;
    struct run run;

    begin(env, &ball, 0.002, &run);
    run.options.makes_volume = true;
    run.options.upsample = 1;
    before = score_of(&run, run.volume);
    CHECK_INT(work(&run, 2e7, &err), VXD_OK);
    after = score_of(&run, run.made);
    CHECK(before.normal_deg > 5);
    CHECK(after.normal_deg < before.normal_deg / 2);
    CHECK(after.surface_mm < before.surface_mm);
    CHECK(after.correlation >= 0.95);
    CHECK(after.n_vertices > 3 * before.n_vertices);
    vxd_refine_get_keyframe(run.refine, 3, &camera, &pose);
    for (int k = 0; k < 3; k++) {
        CHECK(fabs(pose.translation[k] - run.keyframes[3].T_map_camera.translation[k]) <
              2e-3);
    }
    end(&run);
}

static void test_relief_and_paint_are_found(void)
{
    on_cpu(expect_relief);
}

static void expect_lamps(struct gpu_env *env)
{
    struct refine_scene scene = ball;
    struct refine_score one;
    struct refine_score many;
    struct vxd_err err = {0};
    struct run run;

    scene.has_lamps = true;
    begin(env, &scene, 0.002, &run);
    run.options.makes_volume = true;
    CHECK_INT(work(&run, ALL, &err), VXD_OK);
    one = score_of(&run, run.made);
    run.options.subvolume_m = 0.025;
    CHECK_INT(work(&run, ALL, &err), VXD_OK);
    many = score_of(&run, run.made);
    CHECK(many.normal_deg < 0.95 * one.normal_deg);
    CHECK(many.correlation > one.correlation + 0.05);
    end(&run);
}

static void test_varying_light_beats_one_light_under_two_lamps(void)
{
    on_cpu(expect_lamps);
}

static void expect_intrinsics(struct gpu_env *env)
{
    double focal = 0;
    struct vxd_err err = {0};
    struct run run;

    begin(env, &ball, 0.002, &run);
    for (int i = 0; i < ball.n_keyframes; i++) {
        run.keyframes[i].camera.fx *= 1.01;
        run.keyframes[i].camera.fy *= 1.01;
        focal += run.keyframes[i].camera.fx;
    }
    run.options.refine_intrinsics = true;
    run.options.keep_poses = true;
    CHECK_INT(work(&run, ALL, &err), VXD_OK);
    for (int i = 0; i < ball.n_keyframes; i++) {
        struct vxd_volume_camera camera;
        struct vxd_volume_pose pose;

        vxd_refine_get_keyframe(run.refine, (size_t)i, &camera, &pose);
        focal -= camera.fx;
    }
    focal /= ball.n_keyframes * run.keyframes[0].camera.fx;
    CHECK(fabs(focal - 0.01 / 1.01) < 0.005); /* of 1 % less than half is left */
    end(&run);
}

static void test_focal_length_is_found(void)
{
    on_cpu(expect_intrinsics);
}

static uint64_t first_digest;

static void expect_same_bits(struct gpu_env *env)
{
    uint64_t digest;
    struct vxd_err err = {0};
    struct run run;

    begin(env, &tiny, 0.002, &run);
    run.options.makes_volume = true;
    run.options.upsample = 1;
    run.options.subvolume_m = 0.03;
    run.options.rounds = 2;
    run.options.iterations = 1;
    run.options.cg_iterations = 3;
    run.options.refine_intrinsics = true;
    CHECK_INT(work(&run, gpu_is_cuda(env) ? ALL : 3e5, &err), VXD_OK);
    digest = digest_of(env, run.made);
    run.options.upsample = 0;
    run.options.makes_volume = false;
    run.options.refine_intrinsics = false;
    run.options.solver = VXD_REFINE_ADAM;
    CHECK_INT(work(&run, ALL, &err), VXD_OK);
    digest ^= digest_of(env, run.volume);
    first_digest = first_digest == 0 ? digest : first_digest;
    CHECK(digest == first_digest);
    end(&run);
}

static void test_bits_are_equal_on_all_backends(void)
{
    gpu_each_backend(expect_same_bits);
}

static void expect_untouched(struct gpu_env *env)
{
    uint64_t before;
    struct vxd_volume_info info;
    struct vxd_volume_info later;
    struct vxd_err err = {0};
    struct run run;
    bool is_done = false;

    begin(env, &tiny, 0.002, &run);
    before = digest_of(env, run.volume);
    vxd_volume_get_info(run.volume, &info);
    CHECK_INT(create(&run, &err), VXD_OK);
    CHECK_INT(vxd_refine_apply(env->queue, run.refine, run.volume, &err),
              VXD_FAILED_PRECONDITION);
    for (int i = 0; i < 40 && !is_done; i++) { /* stopped somewhere */
        CHECK_INT(
            vxd_refine_step(env->queue, run.refine, run.volume, 1e6, &is_done, &err),
            VXD_OK);
    }
    vxd_refine_destroy(env->queue, run.refine);
    run.refine = NULL;
    vxd_volume_get_info(run.volume, &later);
    CHECK(digest_of(env, run.volume) == before && later.version == info.version);
    /* What is kept stays, bit for bit, in a new volume. */
    run.options.keep_distances = true;
    run.options.keep_poses = true;
    run.options.iterations = 1;
    CHECK_INT(work(&run, ALL, &err), VXD_OK);
    vxd_volume_get_info(run.volume, &later);
    CHECK(later.version == info.version + 1);
    CHECK(digest_of(env, run.volume) != before); /* the albedo */
    end(&run);
}

static void test_volume_is_as_it_was_before_the_end(void)
{
    on_cpu(expect_untouched);
}

/* Losses come before each joint step, level after level and round after round, and within a round the energy
 * falls unless a step says that the one before it was taken back. */
static void check_losses(const struct run *run, size_t n)
{
    const struct vxd_refine_loss *losses = vxd_refine_losses(run->refine);
    size_t n_in_round = (size_t)run->options.iterations + 1; /* and one after the last */
    size_t n_rounds = (size_t)run->options.rounds;

    REQUIRE(n == (size_t)(run->options.upsample + 1) * n_rounds * n_in_round);
    for (size_t i = 0; i < n; i++) {
        const struct vxd_refine_loss *loss = &losses[i];
        double energy = loss->data + loss->smooth + loss->init + loss->chroma;

        CHECK_INT(loss->level, i / (n_rounds * n_in_round));
        CHECK_INT(loss->round, i / n_in_round % n_rounds);
        CHECK(loss->data > 0 && loss->smooth >= 0 && loss->init >= 0);
        CHECK(loss->chroma >= 0 && loss->light >= 0 && isfinite(energy + loss->light));
        if (i % n_in_round > 0 && !loss->rejected) {
            const struct vxd_refine_loss *last = loss - 1;

            CHECK(energy <=
                  (last->data + last->smooth + last->init + last->chroma) * (1 + 1e-6));
        }
    }
}

static void expect_progress(struct gpu_env *env)
{
    struct vxd_refine_progress progress;
    struct vxd_err err = {0};
    double fraction = 0;
    size_t n_losses = 0;
    bool is_done = false;
    int level = 0;
    struct run run;

    begin(env, &tiny, 0.002, &run);
    run.options.makes_volume = true;
    run.options.upsample = 1;
    run.options.rounds = 2;
    run.options.iterations = 3;
    run.options.cg_iterations = 4;
    REQUIRE(create(&run, &err) == VXD_OK);
    while (!is_done) {
        REQUIRE(vxd_refine_step(env->queue, run.refine, run.volume, 1e6, &is_done,
                                &err) == VXD_OK);
        vxd_refine_get_progress(run.refine, &progress);
        CHECK(progress.fraction >= fraction && progress.fraction <= 1);
        CHECK(progress.n_losses >= n_losses && progress.level >= level);
        fraction = progress.fraction;
        n_losses = progress.n_losses;
        level = progress.level;
    }
    CHECK(fraction == 1);
    CHECK_INT(level, 1);
    check_losses(&run, n_losses);
    end(&run);
}

static void test_progress_goes_up_and_losses_go_down(void)
{
    on_cpu(expect_progress);
}

/* Of the distances of all blocks. */
static uint64_t digest_of_distances(struct gpu_env *env, struct vxd_volume *volume)
{
    struct vxd_volume_blocks blocks = {0};
    int32_t *entries = NULL;
    uint64_t digest;
    size_t n = 0;

    CHECK_INT(vxd_volume_list_changed(env->queue, volume, 0, &entries, &n, NULL), VXD_OK);
    CHECK_INT(vxd_volume_read_blocks(env->queue, volume, entries, n, true, &blocks, NULL),
              VXD_OK);
    digest = gpu_digest(GPU_FNV_START, blocks.layers[0], n * 512 * sizeof(float));
    vxd_volume_blocks_free(env->queue, &blocks);
    free(entries);
    return digest;
}

static void expect_kept(struct gpu_env *env)
{
    for (int kept = 0; kept < 3; kept++) { /* nothing, distances, poses */
        struct vxd_volume_camera camera;
        struct vxd_volume_pose pose;
        struct vxd_err err = {0};
        bool is_same_pose = true;
        uint64_t distances;
        struct run run;

        begin(env, &tiny, 0.002, &run);
        run.options.rounds = 1;
        run.options.iterations = 1;
        run.options.keep_distances = kept == 1;
        run.options.keep_poses = kept == 2;
        distances = digest_of_distances(env, run.volume);
        REQUIRE(work(&run, ALL, &err) == VXD_OK);
        CHECK((digest_of_distances(env, run.volume) == distances) == (kept == 1));
        for (int i = 0; i < tiny.n_keyframes; i++) {
            vxd_refine_get_keyframe(run.refine, (size_t)i, &camera, &pose);
            for (int k = 0; k < 3; k++) {
                is_same_pose =
                    is_same_pose &&
                    pose.translation[k] == run.keyframes[i].T_map_camera.translation[k];
            }
        }
        CHECK(is_same_pose == (kept == 2));
        end(&run);
    }
}

static void test_what_is_to_be_kept_is_kept(void)
{
    on_cpu(expect_kept);
}

static void expect_refused(struct run *run, enum vxd_status status, const char *field)
{
    uint64_t before = digest_of(run->env, run->volume);
    struct vxd_err err = {0};

    CHECK_INT(work(run, ALL, &err), status);
    CHECK_STR(err.field, field);
    CHECK(strlen(err.message) > 8);
    CHECK(digest_of(run->env, run->volume) == before);
}

static void expect_errors(struct gpu_env *env)
{
    struct vxd_refine_options options;
    struct vxd_refine_keyframe keyframe;
    struct run run;

    begin(env, &tiny, 0.002, &run);
    options = run.options;
    keyframe = run.keyframes[1];

    run.keyframes[1].camera.fx = 0;
    expect_refused(&run, VXD_INVALID_ARGUMENT, "keyframes[1].camera.fx");
    run.keyframes[1].camera.fx = 1e300;
    expect_refused(&run, VXD_INVALID_ARGUMENT, "keyframes[1].camera.fx");
    run.keyframes[1].camera.fx = NAN;
    expect_refused(&run, VXD_INVALID_ARGUMENT, "keyframes[1].camera.fx");
    run.keyframes[1] = keyframe;
    run.keyframes[1].camera.cx = INFINITY;
    expect_refused(&run, VXD_INVALID_ARGUMENT, "keyframes[1].camera.cx");
    run.keyframes[1] = keyframe;
    run.keyframes[1].T_map_camera.rotation[0] = 3;
    expect_refused(&run, VXD_INVALID_ARGUMENT, "keyframes[1].T_map_camera");
    run.keyframes[1] = keyframe;
    for (int k = 0; k < 3; k++) { /* it looks away */
        run.keyframes[1].T_map_camera.translation[k] *= -1;
    }
    expect_refused(&run, VXD_INVALID_ARGUMENT, "keyframes[1]");
    run.keyframes[1] = keyframe;

    run.options.max_unknowns = 100;
    expect_refused(&run, VXD_RESOURCE_EXHAUSTED, "max_unknowns");
    run.options = options;
    run.options.min_weight = 60000;
    expect_refused(&run, VXD_INVALID_ARGUMENT, "band_m");
    run.options = options;
    run.options.band_m = 0.5;
    expect_refused(&run, VXD_INVALID_ARGUMENT, "band_m");
    run.options = options;
    run.options.upsample = 1;
    expect_refused(&run, VXD_INVALID_ARGUMENT, "upsample");
    run.options = options;
    run.options.rounds = 100;
    run.options.iterations = 100;
    expect_refused(&run, VXD_INVALID_ARGUMENT, "iterations");
    run.options = options;
    run.options.smooth = NAN;
    expect_refused(&run, VXD_INVALID_ARGUMENT, "smooth");
    end(&run);
}

static void test_wrong_arguments_are_named(void)
{
    on_cpu(expect_errors);
}

/* Halves the voxels of a volume of one block of 8 x 8 x 8 known voxels. */
static enum vxd_status halve(struct gpu_env *env, const int32_t key[3],
                             struct vxd_volume **made, struct vxd_err *err)
{
    enum {
        N_VOXELS = 8 * 8 * 8
    };
    static float distances[N_VOXELS];
    static float weights[N_VOXELS];
    const struct vxd_volume_spec spec = {
        .voxel_size_m = 0.01, .block_edge = 8, .truncation_m = 0.06};
    const int32_t entry = 0;
    const uint64_t stamp = 1;
    const struct vxd_volume_blocks blocks = {.n = 1,
                                             .entries = &entry,
                                             .keys = key,
                                             .stamps = &stamp,
                                             .layers = {distances, weights}};
    struct vxd_volume *volume = NULL;
    enum vxd_status status;

    for (int i = 0; i < N_VOXELS; i++) {
        weights[i] = 10;
    }
    CHECK_INT(vxd_volume_create(env->queue, &spec, &volume, err), VXD_OK);
    CHECK_INT(vxd_volume_write_blocks(env->queue, volume, &blocks, 1, 0, err), VXD_OK);
    status = vxd_refine_make_volume(env->queue, volume, 1, (size_t)1 << 28, made, err);
    vxd_volume_destroy(env->queue, volume);
    return status;
}

/* Of a block come eight whose keys are twice its own, and one more; those are within 2^20 - 2. */
static void expect_range(struct gpu_env *env)
{
    static const int32_t ends[4] = {-524288, -524287, 524286, 524287};

    for (int i = 0; i < 12; i++) {
        int32_t key[3] = {0, -1, 2};
        bool is_within = i % 4 == 1 || i % 4 == 2;
        struct vxd_volume *made = NULL;
        struct vxd_volume_blocks blocks = {0};
        int32_t *entries = NULL;
        struct vxd_err err = {0};
        size_t n = 0;

        key[i / 4] = ends[i % 4];
        CHECK_INT(halve(env, key, &made, &err), is_within ? VXD_OK : VXD_OUT_OF_RANGE);
        CHECK_STR(err.field, is_within ? "" : "upsample");
        if (made == NULL) {
            continue;
        }
        CHECK_INT(vxd_volume_list_changed(env->queue, made, 0, &entries, &n, &err),
                  VXD_OK);
        CHECK_INT(n, is_within ? 8 : 0);
        CHECK_INT(
            vxd_volume_read_blocks(env->queue, made, entries, n, false, &blocks, &err),
            VXD_OK);
        for (size_t k = 0; k < 3 * n; k++) {
            CHECK(blocks.keys[k] == 2 * key[k % 3] ||
                  blocks.keys[k] == 2 * key[k % 3] + 1);
        }
        vxd_volume_blocks_free(env->queue, &blocks);
        free(entries);
        vxd_volume_destroy(env->queue, made);
    }
}

static void test_halved_voxels_beyond_the_range_of_blocks_are_refused(void)
{
    on_cpu(expect_range);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_relief_and_paint_are_found),
    VXD_TEST(test_varying_light_beats_one_light_under_two_lamps),
    VXD_TEST(test_focal_length_is_found),
    VXD_TEST(test_bits_are_equal_on_all_backends),
    VXD_TEST(test_volume_is_as_it_was_before_the_end),
    VXD_TEST(test_progress_goes_up_and_losses_go_down),
    VXD_TEST(test_what_is_to_be_kept_is_kept),
    VXD_TEST(test_wrong_arguments_are_named),
    VXD_TEST(test_halved_voxels_beyond_the_range_of_blocks_are_refused),
};

VXD_TEST_MAIN(tests)
