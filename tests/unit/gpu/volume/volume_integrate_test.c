// SPDX-License-Identifier: Apache-2.0
/* Integration against the same in double, voxel by voxel, and the touched blocks against slab
 * tests of all rays; equal results of all backends. */
#include "tests/support/test.h"
#include "tests/support/volume/volume_helpers.h"

#include <math.h>

#include "gpu/volume/volume_math.h"

#define WIDTH 64
#define HEIGHT 48
#define N_SHOTS 4

struct run {
    const char *name;
    struct vxd_volume_spec spec;
    enum vxd_dtype dtype;
    enum vxd_volume_weighting weighting;
    double weight;
    bool has_colour;
    bool has_colour_camera;
    bool is_distorted;
    double bound; /* of distances, in truncations */
};

static const struct run runs[] = {
    {"full 8",
     {.voxel_size_m = 0.02, .block_edge = 8, .truncation_m = 0.08},
     VXD_UINT16,
     VXD_VOLUME_WEIGHT_CONST,
     0,
     false,
     false,
     false,
     1e-5},
    {"full 16, colour, 1/z^2",
     {.voxel_size_m = 0.025,
      .block_edge = 16,
      .truncation_m = 0.1,
      .origin_m = {0.013, -0.4, 0.2},
      .has_colour = true,
      .max_weight = 2},
     VXD_FLOAT32,
     VXD_VOLUME_WEIGHT_INV_Z2,
     0.7,
     true,
     false,
     false,
     1e-5},
    {"compact 8, colour camera",
     {.voxel_size_m = 0.02,
      .block_edge = 8,
      .truncation_m = 0.06,
      .form = VXD_VOLUME_COMPACT,
      .has_colour = true},
     VXD_UINT16,
     VXD_VOLUME_WEIGHT_INV_Z2,
     16,
     true,
     true,
     false,
     1e-3},
    {"full 8, lens",
     {.voxel_size_m = 0.02, .block_edge = 8, .truncation_m = 0.08},
     VXD_FLOAT32,
     VXD_VOLUME_WEIGHT_CONST,
     3,
     false,
     false,
     true,
     1e-5},
    {"full 8, far from the map's zero",
     {.voxel_size_m = 0.02,
      .block_edge = 8,
      .truncation_m = 0.08,
      .origin_m = {-3000, 0, 0}},
     VXD_UINT16,
     VXD_VOLUME_WEIGHT_CONST,
     0,
     false,
     false,
     false,
     1e-5},
};

#define N_RUNS ((int)(sizeof runs / sizeof runs[0]))

static void take_shots(struct gpu_env *env, const struct run *run,
                       struct volume_shot shots[N_SHOTS])
{
    struct vxd_volume_camera camera = volume_camera(WIDTH, HEIGHT);

    if (run->is_distorted) {
        const double k[8] = {-0.21, 0.06, 0.001, -0.0015, 0.01, 0.02, 0.003, 0.001};

        memcpy(camera.distortion, k, sizeof k);
    }
    for (int i = 0; i < N_SHOTS; i++) {
        struct vxd_volume_pose pose = volume_pose(i);

        volume_shoot(env, &camera, &pose, run->dtype, run->has_colour, &shots[i]);
        shots[i].frame.weighting = run->weighting;
        shots[i].frame.weight = run->weight;
        if (run->has_colour_camera) {
            shots[i].frame.has_colour_camera = true;
            shots[i].frame.colour_camera = volume_camera(WIDTH, HEIGHT);
            shots[i].frame.colour_camera.cx += 3;
            shots[i].frame.T_depth_colour = volume_pose(2);
            memcpy(shots[i].frame.T_depth_colour.translation,
                   (double[3]){0.03, -0.01, 0.005}, 3 * sizeof(double));
        }
    }
}

static void free_shots(struct gpu_env *env, struct volume_shot shots[N_SHOTS])
{
    for (int i = 0; i < N_SHOTS; i++) {
        volume_shot_free(env, &shots[i]);
    }
}

static struct vxd_volume *integrate_all(struct gpu_env *env,
                                        const struct vxd_volume_spec *spec,
                                        const struct volume_shot *shots)
{
    struct vxd_volume *volume = NULL;
    struct vxd_err err = {0};
    size_t n_new = 0;

    CHECK_INT(vxd_volume_create(env->queue, spec, &volume, &err), VXD_OK);
    for (int i = 0; volume != NULL && i < N_SHOTS; i++) {
        struct vxd_volume_activation done;

        CHECK_INT(vxd_volume_integrate(env->queue, volume, &shots[i].frame, &done, &err),
                  VXD_OK);
        CHECK_INT(done.n_dropped, 0);
        n_new += done.n_new;
    }
    if (volume != NULL) {
        struct vxd_volume_info info;

        gpu_wait(env);
        vxd_volume_get_info(volume, &info);
        CHECK_INT(info.n_blocks, n_new);
        CHECK_INT(info.version, N_SHOTS);
    }
    return volume;
}

struct errors {
    size_t n_voxels;
    size_t n_ties;
    size_t n_wrong;
    double worst; /* distance */
};

/* Compares one voxel; ties are counted only. */
static void compare_voxel(const struct run *run, const struct volume_host *host,
                          const struct volume_shot *shots, unsigned touching,
                          size_t block, int index, struct errors *errors)
{
    int n = run->spec.block_edge * run->spec.block_edge * run->spec.block_edge;
    size_t row = block * (size_t)n + (size_t)index;
    struct volume_voxel expected;
    double wrong;
    bool is_wrong;

    volume_oracle(&run->spec, shots, touching, host->keys + 3 * block, index, &expected);
    errors->n_voxels++;
    if (expected.is_tie) {
        errors->n_ties++;
        return;
    }
    wrong = fabs(host->distances[row] - expected.distance);
    errors->worst = wrong > errors->worst ? wrong : errors->worst;
    is_wrong = !(wrong <= run->bound) ||
               !(fabs(host->weights[row] - expected.weight) <= 1e-4 * expected.weight);
    if (host->colours != NULL) {
        for (int c = 0; c < 3; c++) {
            is_wrong = is_wrong || fabs(host->colours[4 * row + (size_t)c] / 256.0 -
                                        expected.colour[c]) > 0.02;
        }
        is_wrong = is_wrong ||
                   host->colours[4 * row + 3] != (uint16_t)floor(expected.colour_weight);
    }
    if (is_wrong && errors->n_wrong++ < 3) {
        (void)fprintf(stderr,
                      "%s: block %zu voxel %d: %.7f x %.5f, expected %.7f x %.5f\n",
                      run->name, block, index, host->distances[row], host->weights[row],
                      expected.distance, expected.weight);
    }
}

/* The shots that touch a block, a bit each; 0 where one is in doubt. */
static unsigned touching_shots(double *const segments[N_SHOTS], const int32_t key[3])
{
    unsigned touching = 0;

    for (int i = 0; i < N_SHOTS; i++) {
        int meets = volume_meets(segments[i], (size_t)WIDTH * HEIGHT, key);

        if (meets < 0) {
            return 0;
        }
        touching |= meets > 0 ? 1u << i : 0;
    }
    CHECK(touching != 0);
    return touching;
}

static void compare_volume(const struct run *run, const struct volume_host *host,
                           const struct volume_shot *shots)
{
    int n = run->spec.block_edge * run->spec.block_edge * run->spec.block_edge;
    double *segments[N_SHOTS];
    struct errors errors = {0};
    size_t n_doubts = 0;

    for (int i = 0; i < N_SHOTS; i++) {
        segments[i] = volume_segments(&run->spec, &shots[i]);
    }
    for (size_t block = 0; block < host->n; block += (size_t)vxd_test_slow()) {
        unsigned touching = touching_shots(segments, host->keys + 3 * block);

        n_doubts += touching == 0 ? 1 : 0;
        for (int index = 0; touching != 0 && index < n; index++) {
            compare_voxel(run, host, shots, touching, block, index, &errors);
        }
    }
    CHECK_INT(errors.n_wrong, 0);
    CHECK(errors.worst <= run->bound);
    CHECK(errors.n_ties < errors.n_voxels / 100);
    CHECK(n_doubts < 1 + host->n / 50);
    for (int i = 0; i < N_SHOTS; i++) {
        free(segments[i]);
    }
}

static void expect_oracle(struct gpu_env *env)
{
    for (int r = 0; r < N_RUNS; r++) {
        struct volume_shot shots[N_SHOTS];
        struct volume_host host;
        struct vxd_volume *volume;

        take_shots(env, &runs[r], shots);
        volume = integrate_all(env, &runs[r].spec, shots);
        volume_read(env, volume, &host);
        CHECK(host.n > 30);
        compare_volume(&runs[r], &host, shots);
        volume_host_free(&host);
        vxd_volume_destroy(env->queue, volume);
        free_shots(env, shots);
        gpu_wait(env);
    }
}

static void test_volume_integrated_frames_equal_double_arithmetic(void)
{
    gpu_each_backend(expect_oracle);
}

static bool is_in(const struct volume_host *host, const int32_t key[3])
{
    for (size_t i = 0; i < host->n; i++) {
        if (memcmp(host->keys + 3 * i, key, 3 * sizeof *key) == 0) {
            return true;
        }
    }
    return false;
}

/* Every block of the box around the volume, and one around that, is in it exactly where a ray
 * meets it. */
static void expect_touched_blocks(struct gpu_env *env)
{
    const struct run *run = &runs[0];
    int32_t low[3] = {INT32_MAX, INT32_MAX, INT32_MAX};
    int32_t high[3] = {INT32_MIN, INT32_MIN, INT32_MIN};
    struct volume_shot shots[N_SHOTS];
    struct vxd_volume_activation done;
    struct vxd_volume *volume = NULL;
    struct volume_host host;
    struct vxd_err err = {0};
    double *segments;
    int n_wrong = 0;
    int n_doubts = 0;

    take_shots(env, run, shots);
    REQUIRE(vxd_volume_create(env->queue, &run->spec, &volume, &err) == VXD_OK);
    CHECK_INT(vxd_volume_activate(env->queue, volume, &shots[1].frame, &done, &err),
              VXD_OK);
    volume_read(env, volume, &host);
    CHECK_INT(done.n_blocks, host.n);
    segments = volume_segments(&run->spec, &shots[1]);
    for (size_t i = 0; i < 3 * host.n; i++) {
        low[i % 3] = host.keys[i] < low[i % 3] ? host.keys[i] : low[i % 3];
        high[i % 3] = host.keys[i] > high[i % 3] ? host.keys[i] : high[i % 3];
    }
    for (int32_t z = low[2] - 1; z <= high[2] + 1; z++) {
        for (int32_t y = low[1] - 1; y <= high[1] + 1; y++) {
            for (int32_t x = low[0] - 1; x <= high[0] + 1; x++) {
                int32_t key[3] = {x, y, z};
                int meets = volume_meets(segments, (size_t)WIDTH * HEIGHT, key);

                n_doubts += meets < 0 ? 1 : 0;
                n_wrong += meets >= 0 && (meets > 0) != is_in(&host, key) ? 1 : 0;
            }
        }
    }
    CHECK_INT(n_wrong, 0);
    CHECK(n_doubts < 5);
    free(segments);
    volume_host_free(&host);
    vxd_volume_destroy(env->queue, volume);
    free_shots(env, shots);
    gpu_wait(env);
}

static void test_volume_blocks_are_those_that_rays_meet(void)
{
    gpu_each_backend(expect_touched_blocks);
}

/* Blocks whose centre is within reach observe a carving frame wherever their voxels are, and
 * their labels take votes, as in brute force. */
static void expect_carved(struct gpu_env *env)
{
    struct run run = runs[0];
    struct volume_shot shots[N_SHOTS];
    struct volume_host before;
    struct volume_host host;
    struct vxd_volume_activation done;
    struct vxd_volume *volume = NULL;
    struct vxd_err err = {0};
    struct errors errors = {0};
    uint8_t labels[WIDTH * HEIGHT];
    struct vxd_buffer d_labels;
    size_t n_reached = 0;
    size_t n_labels = 0;
    size_t n_wrong = 0;

    for (int i = 0; i < WIDTH * HEIGHT; i++) {
        labels[i] = (uint8_t)(i % 5 == 0 ? 0 : 7);
    }
    d_labels = gpu_to_device(env, labels, sizeof labels);
    run.spec.has_labels = true;
    take_shots(env, &run, shots);
    REQUIRE(vxd_volume_create(env->queue, &run.spec, &volume, &err) == VXD_OK);
    CHECK_INT(vxd_volume_integrate(env->queue, volume, &shots[0].frame, &done, &err),
              VXD_OK);
    CHECK_INT(done.n_carved, 0);
    volume_read(env, volume, &before);
    shots[3].frame.carve_m = 1.4;
    shots[3].frame.labels = d_labels.ptr;
    CHECK_INT(vxd_volume_integrate(env->queue, volume, &shots[3].frame, &done, &err),
              VXD_OK);
    CHECK(done.n_carved > 0);
    volume_read(env, volume, &host);
    for (size_t block = 0; block < host.n; block++) {
        const int32_t *key = host.keys + 3 * block;
        double away = 0;
        bool is_old = false;

        for (size_t b = 0; b < before.n; b++) {
            is_old = is_old || (before.stamps[b] != 0 &&
                                memcmp(before.keys + 3 * b, key, 3 * sizeof *key) == 0);
        }
        for (int k = 0; k < 3; k++) {
            double centre = (key[k] + 0.5) * 8 * run.spec.voxel_size_m;

            away += pow(centre - shots[3].frame.T_map_camera.translation[k], 2);
        }
        if (!is_old || fabs(sqrt(away) - 1.4) < 1e-6 || sqrt(away) > 1.4) {
            continue; /* other tests know these */
        }
        n_reached++;
        for (int index = 0; index < 512; index++) {
            uint32_t label = vxd_label_of_votes(host.labels[block * 512 + (size_t)index]);
            const struct volume_shot both[2] = {shots[0], shots[3]};
            struct volume_voxel last;

            compare_voxel(&run, &host, both, 3, block, index, &errors);
            volume_oracle(&run.spec, &shots[3], 1, key, index, &last);
            n_labels += label != 0 ? 1 : 0;
            n_wrong += !last.is_tie && label != 0 &&
                               !(label == 7 && last.weight > 0 && last.distance < 1)
                           ? 1
                           : 0;
        }
    }
    CHECK(n_reached > 10 && n_labels > 100);
    CHECK_INT(n_wrong, 0);
    CHECK_INT(errors.n_wrong, 0);
    volume_host_free(&before);
    volume_host_free(&host);
    vxd_volume_destroy(env->queue, volume);
    vxd_device_free(env->queue, &d_labels);
    free_shots(env, shots);
    gpu_wait(env);
}

static void test_volume_carved_blocks_observe_the_frame_as_in_brute_force(void)
{
    gpu_each_backend(expect_carved);
}

static uint64_t first_digests[N_RUNS];

static void expect_equal_digests(struct gpu_env *env)
{
    for (int r = 0; r < N_RUNS; r++) {
        struct volume_shot shots[N_SHOTS];
        struct volume_host host;
        struct vxd_volume *volume;
        uint64_t digest;

        take_shots(env, &runs[r], shots);
        volume = integrate_all(env, &runs[r].spec, shots);
        volume_read(env, volume, &host);
        digest = volume_digest(&host);
        if (first_digests[r] == 0) {
            first_digests[r] = digest;
        }
        CHECK(digest == first_digests[r]);
        volume_host_free(&host);
        vxd_volume_destroy(env->queue, volume);
        free_shots(env, shots);
        gpu_wait(env);
    }
}

static void test_volume_is_equal_on_every_backend_bit_for_bit(void)
{
    gpu_each_backend(expect_equal_digests);
}

/* Ranges of any size fuse every block once. The second time there are no new blocks, so that a GPU fuses
 * a whole frame before the host knows which blocks it touches. */
static void expect_ranges_as_whole(struct gpu_env *env)
{
    struct volume_shot shots[N_SHOTS];
    struct vxd_volume *whole;
    struct vxd_volume *parts = NULL;
    struct vxd_volume_info infos[2];
    struct volume_host a;
    struct volume_host b;
    struct vxd_err err = {0};

    take_shots(env, &runs[1], shots);
    whole = integrate_all(env, &runs[1].spec, shots);
    REQUIRE(vxd_volume_create(env->queue, &runs[1].spec, &parts, &err) == VXD_OK);
    for (int at_shot = 0; at_shot < 2 * N_SHOTS; at_shot++) {
        int i = at_shot % N_SHOTS;
        struct vxd_volume_activation done;
        struct vxd_volume_activation again;

        CHECK_INT(vxd_volume_activate(env->queue, parts, &shots[i].frame, &done, &err),
                  VXD_OK);
        if (at_shot >= N_SHOTS) {
            CHECK_INT(
                vxd_volume_integrate(env->queue, whole, &shots[i].frame, &again, &err),
                VXD_OK);
            CHECK_INT(again.n_new, 0);
            CHECK_INT(again.n_blocks, done.n_blocks);
            CHECK_INT(again.n_dropped, done.n_dropped);
        }
        for (size_t at = 0; at < done.n_blocks; at += 7) {
            size_t end = at + 7 < done.n_blocks ? at + 7 : done.n_blocks;

            CHECK_INT(vxd_volume_fuse(env->queue, parts, &shots[i].frame, at, end, &err),
                      VXD_OK);
        }
        CHECK_INT(vxd_volume_fuse(env->queue, parts, &shots[i].frame, 0,
                                  done.n_blocks + 1, &err),
                  VXD_INVALID_ARGUMENT);
    }
    vxd_volume_get_info(whole, &infos[0]);
    vxd_volume_get_info(parts, &infos[1]);
    CHECK_INT(infos[0].version, infos[1].version);
    volume_read(env, whole, &a);
    volume_read(env, parts, &b);
    CHECK(volume_digest(&a) == volume_digest(&b));
    volume_host_free(&a);
    volume_host_free(&b);
    vxd_volume_destroy(env->queue, whole);
    vxd_volume_destroy(env->queue, parts);
    free_shots(env, shots);
    gpu_wait(env);
}

static void test_volume_fused_in_ranges_is_as_in_one(void)
{
    gpu_each_backend(expect_ranges_as_whole);
}

/* Weights of 70,000 observations of one pose, 25 a frame: Open3D's 16-bit weights wrap there. */
static void expect_saturation(struct gpu_env *env)
{
    const struct vxd_volume_spec specs[2] = {{.voxel_size_m = 0.05,
                                              .block_edge = 8,
                                              .truncation_m = 0.05,
                                              .max_weight = 65535},
                                             {.voxel_size_m = 0.05,
                                              .block_edge = 8,
                                              .truncation_m = 0.05,
                                              .form = VXD_VOLUME_COMPACT,
                                              .has_colour = true}};
    for (int s = 0; s < 2; s++) {
        struct vxd_volume_camera camera = volume_camera(2, 2);
        struct vxd_volume_pose pose = volume_pose(2);
        struct vxd_volume_activation done;
        struct vxd_volume *volume = NULL;
        struct volume_shot shot;
        struct volume_host host;
        struct vxd_err err = {0};
        float most = 0;
        double weight = s == 0 ? 65535 : 255;
        int n_frames = vxd_test_rounds(s == 0 ? 2800 : 400);
        double sum = n_frames * (s == 0 ? 25.0 : 1.0);

        volume_shoot(env, &camera, &pose, VXD_UINT16, true, &shot);
        shot.frame.weight = s == 0 ? 25 : 1;
        REQUIRE(vxd_volume_create(env->queue, &specs[s], &volume, &err) == VXD_OK);
        CHECK_INT(vxd_volume_integrate(env->queue, volume, &shot.frame, &done, &err),
                  VXD_OK);
        for (int i = 1; i < n_frames; i++) {
            CHECK_INT(
                vxd_volume_fuse(env->queue, volume, &shot.frame, 0, done.n_blocks, &err),
                VXD_OK);
            if (i % 500 == 0) {
                gpu_wait(env);
            }
        }
        volume_read(env, volume, &host);
        for (size_t i = 0; i < host.n * 512; i++) {
            most = host.weights[i] > most ? host.weights[i] : most;
            CHECK(host.weights[i] == 0 || host.weights[i] == most);
        }
        CHECK(most == (float)(sum < weight ? sum : weight));
        volume_host_free(&host);
        vxd_volume_destroy(env->queue, volume);
        volume_shot_free(env, &shot);
        gpu_wait(env);
    }
}

static void test_volume_weights_saturate(void)
{
    gpu_each_backend(expect_saturation);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_volume_integrated_frames_equal_double_arithmetic),
    VXD_TEST(test_volume_blocks_are_those_that_rays_meet),
    VXD_TEST(test_volume_carved_blocks_observe_the_frame_as_in_brute_force),
    VXD_TEST(test_volume_is_equal_on_every_backend_bit_for_bit),
    VXD_TEST(test_volume_fused_in_ranges_is_as_in_one),
    VXD_TEST(test_volume_weights_saturate),
};

VXD_TEST_MAIN(tests)
