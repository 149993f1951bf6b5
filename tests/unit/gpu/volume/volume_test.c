// SPDX-License-Identifier: Apache-2.0
/* Volumes as objects: what they refuse, the byte cap, images without depth, removal, copies, and
 * access for extraction. */
#include "tests/support/test.h"
#include "tests/support/volume/volume_helpers.h"

#include <math.h>

#define WIDTH 48
#define HEIGHT 36

static const struct vxd_volume_spec spec = {
    .voxel_size_m = 0.03, .block_edge = 8, .truncation_m = 0.1, .has_colour = true};

/* A volume with the shots of n poses; frees the shots. */
static void integrate_shots(struct gpu_env *env, struct vxd_volume *volume, int first,
                            int end)
{
    struct vxd_volume_camera camera = volume_camera(WIDTH, HEIGHT);
    struct vxd_err err = {0};

    for (int i = first; i < end; i++) {
        struct vxd_volume_pose pose = volume_pose(i);
        struct vxd_volume_activation done;
        struct volume_shot shot;

        volume_shoot(env, &camera, &pose, VXD_UINT16, true, &shot);
        CHECK_INT(vxd_volume_integrate(env->queue, volume, &shot.frame, &done, &err),
                  VXD_OK);
        gpu_wait(env);
        volume_shot_free(env, &shot);
    }
}

static struct vxd_volume *make_volume(struct gpu_env *env,
                                      const struct vxd_volume_spec *of, int n)
{
    struct vxd_volume *volume = NULL;
    struct vxd_err err = {0};

    CHECK_INT(vxd_volume_create(env->queue, of, &volume, &err), VXD_OK);
    if (volume != NULL) {
        integrate_shots(env, volume, 0, n);
    }
    return volume;
}

static uint64_t digest_of(struct gpu_env *env, struct vxd_volume *volume)
{
    struct volume_host host;
    uint64_t digest;

    volume_read(env, volume, &host);
    digest = volume_digest(&host);
    volume_host_free(&host);
    return digest;
}

static void refuse_spec(struct gpu_env *env, struct vxd_volume_spec bad,
                        const char *field)
{
    struct vxd_volume *volume = NULL;
    struct vxd_err err = {0};

    CHECK_INT(vxd_volume_create(env->queue, &bad, &volume, &err), VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, field);
    CHECK(volume == NULL);
    CHECK_INT(vxd_volume_block_bytes(&bad), 0);
}

static void expect_specs_refused(struct gpu_env *env)
{
    static const double sizes[] = {0, -1, 1e-5, 1000, NAN, INFINITY};
    struct vxd_volume_spec bad;

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        bad = spec;
        bad.voxel_size_m = sizes[i];
        refuse_spec(env, bad, "voxel_size_m");
        bad = spec;
        bad.truncation_m = sizes[i];
        refuse_spec(env, bad, "truncation_m");
    }
    bad = spec;
    bad.block_edge = 4;
    refuse_spec(env, bad, "block_edge");
    bad = spec;
    bad.origin_m[2] = NAN;
    refuse_spec(env, bad, "origin_m");
    bad = spec;
    bad.form = (enum vxd_volume_form)2;
    refuse_spec(env, bad, "form");
    bad = spec;
    bad.max_weight = 0.5;
    refuse_spec(env, bad, "max_weight");
    bad = spec;
    bad.capacity = SIZE_MAX;
    refuse_spec(env, bad, "capacity");
    CHECK_INT(vxd_volume_block_bytes(&spec), 512 * 16 + 12 + 8);
}

static void test_volume_specs_out_of_range_are_refused(void)
{
    gpu_each_backend(expect_specs_refused);
}

static void refuse_frame(struct gpu_env *env, struct vxd_volume *volume,
                         const struct vxd_volume_frame *frame, const char *field)
{
    struct vxd_volume_activation done;
    struct vxd_err err = {0};

    CHECK_INT(vxd_volume_integrate(env->queue, volume, frame, &done, &err),
              VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, field);
}

/* Intrinsics, lenses and poses that would divide by zero, overflow or fold over. */
static void refuse_cameras(struct gpu_env *env, struct vxd_volume *volume,
                           const struct vxd_volume_frame *good)
{
    static const double bad[] = {0, -500, 1e-3, 1e9, NAN, INFINITY};
    struct vxd_volume_frame frame;

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        frame = *good;
        frame.camera.fx = bad[i];
        refuse_frame(env, volume, &frame, "camera");
        frame = *good;
        frame.camera.fy = bad[i];
        refuse_frame(env, volume, &frame, "camera");
    }
    frame = *good;
    frame.camera.cx = NAN;
    refuse_frame(env, volume, &frame, "camera");
    frame = *good;
    frame.camera.width = 0;
    refuse_frame(env, volume, &frame, "camera");
    frame = *good;
    frame.camera.height = 1 << 20;
    refuse_frame(env, volume, &frame, "camera");
    frame = *good;
    frame.camera.width = frame.camera.height = 16384; /* above all pixels */
    refuse_frame(env, volume, &frame, "camera");
    frame = *good;
    frame.camera.distortion[0] = -3; /* folds over within the image */
    refuse_frame(env, volume, &frame, "camera");
    frame = *good;
    frame.camera.distortion[7] = NAN;
    refuse_frame(env, volume, &frame, "camera");
    frame = *good;
    frame.T_map_camera.rotation[0] = 2;
    refuse_frame(env, volume, &frame, "T_map_camera");
    frame = *good;
    for (int i = 0; i < 3; i++) { /* a reflection */
        frame.T_map_camera.rotation[i] *= -1;
    }
    refuse_frame(env, volume, &frame, "T_map_camera");
    frame = *good;
    frame.T_map_camera.translation[1] = NAN;
    refuse_frame(env, volume, &frame, "T_map_camera");
    frame = *good;
    frame.has_colour_camera = true;
    refuse_frame(env, volume, &frame, "colour_camera");
}

static void expect_frames_refused(struct gpu_env *env)
{
    struct vxd_volume *volume = make_volume(env, &spec, 1);
    struct vxd_volume_camera camera = volume_camera(WIDTH, HEIGHT);
    struct vxd_volume_pose pose = volume_pose(1);
    uint64_t before = digest_of(env, volume);
    struct vxd_volume_cast_args cast = {
        .camera = camera, .T_map_camera = pose, .depth_max_m = 3};
    struct vxd_volume_frame frame;
    struct volume_shot shot;
    struct vxd_err err = {0};

    volume_shoot(env, &camera, &pose, VXD_UINT16, true, &shot);
    refuse_cameras(env, volume, &shot.frame);
    frame = shot.frame;
    frame.depth = NULL;
    refuse_frame(env, volume, &frame, "depth");
    frame = shot.frame;
    frame.dtype = VXD_UINT8;
    refuse_frame(env, volume, &frame, "dtype");
    frame = shot.frame;
    frame.depth_scale = -1;
    refuse_frame(env, volume, &frame, "depth_scale");
    frame = shot.frame;
    frame.depth_max_m = frame.depth_min_m;
    refuse_frame(env, volume, &frame, "depth_max_m");
    frame = shot.frame;
    frame.weighting = (enum vxd_volume_weighting)7;
    refuse_frame(env, volume, &frame, "weighting");
    frame = shot.frame;
    frame.weight = INFINITY;
    refuse_frame(env, volume, &frame, "weight");
    cast.weight_threshold = NAN;
    CHECK_INT(vxd_volume_cast(env->queue, volume, &cast, &err), VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, "weight_threshold");
    cast.weight_threshold = 0;
    cast.depth_max_m = 1e6;
    CHECK_INT(vxd_volume_cast(env->queue, volume, &cast, &err), VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, "depth_max_m");
    CHECK(digest_of(env, volume) == before);
    volume_shot_free(env, &shot);
    vxd_volume_destroy(env->queue, volume);
    gpu_wait(env);
}

static void test_volume_hostile_frames_are_refused(void)
{
    gpu_each_backend(expect_frames_refused);
}

/* NaN, infinite, negative and masked pixels observe nothing, and huge scales drop everything. */
static void expect_no_depth(struct gpu_env *env)
{
    static const float bad[] = {NAN, INFINITY, -INFINITY, -1, 0, 5, 0.1f, 1e30f};
    struct vxd_volume_camera camera = volume_camera(WIDTH, HEIGHT);
    struct vxd_volume_pose pose = volume_pose(1);
    struct vxd_volume *volume = make_volume(env, &spec, 0);
    struct vxd_volume_activation done;
    struct volume_shot shot;
    struct vxd_buffer depth;
    struct vxd_buffer mask;
    struct vxd_err err = {0};
    float pixels[WIDTH * HEIGHT];
    uint16_t raw[WIDTH * HEIGHT];
    uint8_t none[WIDTH * HEIGHT] = {0};

    volume_shoot(env, &camera, &pose, VXD_FLOAT32, false, &shot);
    for (int i = 0; i < WIDTH * HEIGHT; i++) {
        pixels[i] = bad[i % 8];
        raw[i] = i % 2 != 0 ? 65535 : 0;
    }
    depth = gpu_to_device(env, pixels, sizeof pixels);
    shot.frame.depth = depth.ptr;
    CHECK_INT(vxd_volume_integrate(env->queue, volume, &shot.frame, &done, &err), VXD_OK);
    CHECK_INT(done.n_blocks, 0);
    vxd_device_free(env->queue, &depth);
    depth = gpu_to_device(env, raw, sizeof raw);
    shot.frame.depth = depth.ptr;
    shot.frame.dtype = VXD_UINT16;
    shot.frame.depth_max_m = 100;
    CHECK_INT(vxd_volume_integrate(env->queue, volume, &shot.frame, &done, &err), VXD_OK);
    CHECK_INT(done.n_blocks, 0);
    mask = gpu_to_device(env, none, sizeof none);
    shot.frame.depth = shot.d_depth.ptr;
    shot.frame.dtype = VXD_FLOAT32;
    shot.frame.mask = mask.ptr;
    CHECK_INT(vxd_volume_integrate(env->queue, volume, &shot.frame, &done, &err), VXD_OK);
    CHECK_INT(done.n_blocks, 0);
    shot.frame.mask = NULL;
    shot.frame.T_map_camera.translation[0] = 1e9; /* past the range of keys */
    CHECK_INT(vxd_volume_integrate(env->queue, volume, &shot.frame, &done, &err), VXD_OK);
    CHECK_INT(done.n_blocks, 0);
    CHECK_INT(done.n_dropped, WIDTH * HEIGHT);
    gpu_wait(env);
    vxd_device_free(env->queue, &mask);
    vxd_device_free(env->queue, &depth);
    volume_shot_free(env, &shot);
    vxd_volume_destroy(env->queue, volume);
    gpu_wait(env);
}

static void test_volume_pixels_without_depth_observe_nothing(void)
{
    gpu_each_backend(expect_no_depth);
}

/* At its byte cap a volume refuses a frame and is as before. */
static void expect_cap(struct gpu_env *env)
{
    struct vxd_volume_spec capped = spec;
    struct vxd_volume_camera camera = volume_camera(WIDTH, HEIGHT);
    struct vxd_volume_pose pose = volume_pose(1);
    struct vxd_volume_activation done;
    struct vxd_volume_info info;
    struct volume_shot shot;
    struct vxd_volume *volume;
    struct vxd_err err = {0};
    uint64_t before;
    size_t n_blocks;

    volume = make_volume(env, &spec, 1);
    vxd_volume_get_info(volume, &info);
    n_blocks = info.n_blocks;
    vxd_volume_destroy(env->queue, volume);
    capped.capacity = n_blocks;
    capped.max_bytes = (n_blocks + n_blocks / 10) * vxd_volume_block_bytes(&spec);
    volume = make_volume(env, &capped, 1); /* bytes a block: the layers' sum + 10 % */
    before = digest_of(env, volume);
    volume_shoot(env, &camera, &pose, VXD_UINT16, true, &shot);
    CHECK_INT(vxd_volume_integrate(env->queue, volume, &shot.frame, &done, &err),
              VXD_RESOURCE_EXHAUSTED);
    CHECK(digest_of(env, volume) == before);
    vxd_volume_get_info(volume, &info);
    CHECK_INT(info.n_blocks, n_blocks);
    CHECK_INT(info.version, 1);
    pose = volume_pose(0); /* the first frame again needs no new block */
    volume_shot_free(env, &shot);
    volume_shoot(env, &camera, &pose, VXD_UINT16, true, &shot);
    CHECK_INT(vxd_volume_integrate(env->queue, volume, &shot.frame, &done, &err), VXD_OK);
    CHECK_INT(done.n_new, 0);
    CHECK_INT(done.n_blocks, n_blocks);
    gpu_wait(env);
    volume_shot_free(env, &shot);
    vxd_volume_destroy(env->queue, volume);
    gpu_wait(env);
}

static void test_volume_at_its_byte_cap_refuses_and_is_unchanged(void)
{
    gpu_each_backend(expect_cap);
}

/* What is left of `before` after clearing voxels whose centre is in a box. */
static void check_cleared_box(const struct volume_host *before,
                              const struct volume_host *after,
                              const struct vxd_volume_region *box)
{
    size_t at = 0;

    for (size_t i = 0; i < before->n; i++) {
        const int32_t *key = before->keys + 3 * i;
        bool is_kept = false;
        bool is_same = true;

        for (int v = 0; v < 512; v++) {
            int32_t p[3] = {v % 8, v / 8 % 8, v / 64};
            bool is_in = true;
            float weight = before->weights[512 * i + (size_t)v];

            for (int axis = 0; axis < 3; axis++) {
                double centre = (key[axis] * 8 + p[axis] + 0.5) * spec.voxel_size_m;

                is_in = is_in && centre >= box->low[axis] && centre < box->high[axis];
            }
            is_kept = is_kept || !is_in;
            if (at < after->n && memcmp(after->keys + 3 * at, key, 12) == 0) {
                is_same = is_same &&
                          after->weights[512 * at + (size_t)v] == (is_in ? 0 : weight);
            }
        }
        if (is_kept) {
            CHECK(at < after->n && memcmp(after->keys + 3 * at, key, 12) == 0);
            CHECK(is_same);
            at++;
        }
    }
    CHECK_INT(at, after->n);
}

static void expect_removal(struct gpu_env *env)
{
    struct vxd_volume *volume = make_volume(env, &spec, 2);
    struct vxd_volume_region box = {.low = {-0.51, -0.4, 0.8},
                                    .high = {0.17, 0.33, 1.75}};
    struct vxd_volume_region ball = {
        .is_ball = true, .centre = {0, 0, VOLUME_BALL_Z}, .radius = 0.5};
    struct volume_host before;
    struct volume_host after;
    struct vxd_volume_info info;
    struct vxd_err err = {0};
    size_t n_removed = 0;
    size_t n_outside = 0;

    volume_read(env, volume, &before);
    CHECK_INT(vxd_volume_clear(env->queue, volume, &box, &n_removed, &err), VXD_OK);
    CHECK(n_removed > 0);
    volume_read(env, volume, &after);
    CHECK_INT(after.n, before.n - n_removed);
    check_cleared_box(&before, &after, &box);
    vxd_volume_get_info(volume, &info);
    CHECK_INT(info.version, 3);
    CHECK_INT(info.removed_version, 3);
    volume_host_free(&before);
    for (size_t i = 0; i < after.n; i++) {
        double squares = 0;

        for (int axis = 0; axis < 3; axis++) {
            double d =
                (after.keys[3 * i + (size_t)axis] + 0.5) * 0.24 - ball.centre[axis];

            squares += d * d;
        }
        n_outside += squares > 0.25 ? 1 : 0;
    }
    CHECK_INT(vxd_volume_clear(env->queue, volume, &ball, &n_removed, &err), VXD_OK);
    CHECK_INT(n_removed, n_outside);
    CHECK(n_outside > 0 && n_outside < after.n);
    volume_host_free(&after);
    box.high[1] = NAN;
    CHECK_INT(vxd_volume_clear(env->queue, volume, &box, &n_removed, &err),
              VXD_INVALID_ARGUMENT);
    ball.radius = 0;
    CHECK_INT(vxd_volume_clear(env->queue, volume, &ball, &n_removed, &err), VXD_OK);
    vxd_volume_get_info(volume, &info);
    CHECK_INT(info.n_blocks, 0);
    gpu_wait(env);
    vxd_volume_destroy(env->queue, volume);
    gpu_wait(env);
}

static void test_volume_removal_leaves_what_is_outside(void)
{
    gpu_each_backend(expect_removal);
}

/* A removal raises the version whatever it finds: of no keys, of keys that are not there, of all
 * that are there, and in a volume without blocks. */
static void expect_versions(struct gpu_env *env)
{
    static const int32_t strangers[6] = {1000, 0, 0, 0, -1000, 3};
    struct vxd_volume *volume = make_volume(env, &spec, 1);
    struct vxd_buffer no_block = gpu_to_device(env, strangers, sizeof strangers);
    struct vxd_buffer blocks;
    struct volume_host host;
    struct vxd_volume_info before;
    struct vxd_err err = {0};

    volume_read(env, volume, &host);
    blocks = gpu_to_device(env, host.keys, host.n * 12);
    vxd_volume_get_info(volume, &before);
    for (unsigned i = 1; i <= 4; i++) {
        const struct vxd_buffer *keys = i < 3 ? &no_block : &blocks;
        size_t n = i == 1 ? 0 : i == 2 ? 2 : host.n;
        struct vxd_volume_info info;

        CHECK_INT(vxd_volume_remove(env->queue, volume, keys->ptr, n, &err), VXD_OK);
        vxd_volume_get_info(volume, &info);
        CHECK_INT(info.version, before.version + i);
        CHECK_INT(info.n_blocks, i < 3 ? host.n : 0);
        CHECK_INT(info.removed_version, i == 1   ? before.removed_version
                                        : i == 4 ? before.version + 3
                                                 : before.version + i);
    }
    vxd_device_free(env->queue, &no_block);
    vxd_device_free(env->queue, &blocks);
    volume_host_free(&host);
    vxd_volume_destroy(env->queue, volume);
    gpu_wait(env);
}

static void test_volume_removal_raises_the_version_by_one(void)
{
    gpu_each_backend(expect_versions);
}

/* Frames after a removal find their blocks again. */
static void expect_reuse(struct gpu_env *env)
{
    struct vxd_volume *volume = make_volume(env, &spec, 1);
    struct vxd_volume_region ball = {.is_ball = true};
    struct vxd_volume_camera camera = volume_camera(WIDTH, HEIGHT);
    struct vxd_volume_pose pose = volume_pose(0);
    struct vxd_volume_activation done;
    struct volume_host host;
    struct volume_host again;
    struct volume_shot shot;
    struct vxd_err err = {0};
    size_t n_removed;

    volume_read(env, volume, &host);
    CHECK_INT(vxd_volume_clear(env->queue, volume, &ball, &n_removed, &err), VXD_OK);
    CHECK_INT(n_removed, host.n);
    volume_shoot(env, &camera, &pose, VXD_UINT16, true, &shot);
    CHECK_INT(vxd_volume_fuse(env->queue, volume, &shot.frame, 0, 0, &err),
              VXD_FAILED_PRECONDITION);
    CHECK_INT(vxd_volume_integrate(env->queue, volume, &shot.frame, &done, &err), VXD_OK);
    CHECK_INT(done.n_new, host.n);
    volume_read(env, volume, &again);
    CHECK(memcmp(host.keys, again.keys, 12 * host.n) == 0);
    CHECK(memcmp(host.weights, again.weights, 2048 * host.n) == 0);
    CHECK(memcmp(host.distances, again.distances, 2048 * host.n) == 0);
    volume_host_free(&host);
    volume_host_free(&again);
    volume_shot_free(env, &shot);
    vxd_volume_destroy(env->queue, volume);
    gpu_wait(env);
}

static void test_volume_emptied_takes_frames_as_a_new_one(void)
{
    gpu_each_backend(expect_reuse);
}

static void expect_copies(struct gpu_env *env)
{
    struct vxd_volume_camera camera = volume_camera(WIDTH, HEIGHT);
    struct vxd_volume_pose pose = volume_pose(3);
    struct vxd_volume *volume = make_volume(env, &spec, 2);
    struct vxd_volume *copy = NULL;
    struct vxd_volume *adopted = NULL;
    struct vxd_volume_spec other = spec;
    struct vxd_volume_activation done;
    struct vxd_hashmap_image image;
    struct vxd_hashmap *map = NULL;
    struct volume_shot shot;
    struct vxd_err err = {0};
    uint64_t before = digest_of(env, volume);

    REQUIRE(vxd_volume_copy(env->queue, volume, env->queue, &copy, &err) == VXD_OK);
    CHECK(digest_of(env, copy) == before);
    volume_shoot(env, &camera, &pose, VXD_UINT16, true, &shot);
    CHECK_INT(vxd_volume_integrate(env->queue, copy, &shot.frame, &done, &err), VXD_OK);
    CHECK(digest_of(env, copy) != before);
    CHECK(digest_of(env, volume) == before);
    REQUIRE(vxd_hashmap_export(env->queue, vxd_volume_map(volume), &image, &err) ==
            VXD_OK);
    REQUIRE(vxd_hashmap_import(env->queue, &image, &map, &err) == VXD_OK);
    REQUIRE(vxd_volume_adopt(env->queue, &spec, 2, 0, map, &adopted, &err) == VXD_OK);
    CHECK(digest_of(env, adopted) == before);
    CHECK_INT(vxd_volume_integrate(env->queue, volume, &shot.frame, &done, &err), VXD_OK);
    CHECK_INT(vxd_volume_integrate(env->queue, adopted, &shot.frame, &done, &err),
              VXD_OK);
    CHECK(digest_of(env, volume) == digest_of(env, adopted));
    CHECK(digest_of(env, copy) == digest_of(env, adopted));
    vxd_volume_destroy(env->queue, adopted);
    REQUIRE(vxd_hashmap_import(env->queue, &image, &map, &err) == VXD_OK);
    other.block_edge = 16;
    CHECK_INT(vxd_volume_adopt(env->queue, &other, 2, 0, map, &adopted, &err),
              VXD_INVALID_ARGUMENT);
    vxd_hashmap_image_free(&image);
    vxd_volume_destroy(env->queue, copy);
    vxd_volume_destroy(env->queue, volume);
    volume_shot_free(env, &shot);
    gpu_wait(env);
}

static void test_volume_copies_go_on_as_their_original(void)
{
    gpu_each_backend(expect_copies);
}

static int32_t entry_of(const struct volume_host *host, const int32_t key[3])
{
    for (size_t i = 0; i < host->n; i++) {
        if (memcmp(host->keys + 3 * i, key, 12) == 0) {
            return host->entries[i];
        }
    }
    return VXD_NO_ENTRY;
}

static void expect_access(struct gpu_env *env)
{
    struct vxd_volume *volume = make_volume(env, &spec, 3);
    struct volume_host host;
    struct vxd_buffer entries;
    struct vxd_err err = {0};
    int32_t *changed;
    size_t n = 0;
    size_t n_recent = 0;

    volume_read(env, volume, &host);
    entries = gpu_to_device(env, NULL, host.n * sizeof(int32_t));
    CHECK_INT(vxd_volume_changed_since(env->queue, volume, 2, entries.ptr, &n, &err),
              VXD_OK);
    changed = gpu_to_host(env, &entries);
    for (size_t i = 0; i < host.n; i++) {
        if (host.stamps[i] > 2) {
            CHECK(n_recent < n && changed[n_recent] == host.entries[i]);
            n_recent++;
        }
    }
    CHECK_INT(n, n_recent);
    CHECK(n > 0 && n < host.n);
    free(changed);
    CHECK_INT(vxd_volume_changed_since(env->queue, volume, 3, entries.ptr, &n, &err),
              VXD_OK);
    CHECK_INT(n, 0);
    CHECK_INT(vxd_volume_changed_since(env->queue, volume, 0, entries.ptr, &n, &err),
              VXD_OK);
    CHECK(n > 0 && n <= host.n);
    vxd_device_free(env->queue, &entries);
    volume_host_free(&host);
    vxd_volume_destroy(env->queue, volume);
    gpu_wait(env);
}

static void test_volume_changed_blocks_are_listed(void)
{
    gpu_each_backend(expect_access);
}

static size_t count_wrong_neighbours(struct gpu_env *env, struct vxd_volume *volume)
{
    struct volume_host host;
    struct vxd_buffer entries;
    struct vxd_buffer neighbours;
    struct vxd_err err = {0};
    int32_t *found;
    size_t n_wrong = 0;

    volume_read(env, volume, &host);
    CHECK(host.n > 0);
    entries = gpu_to_device(env, host.entries, host.n * sizeof(int32_t));
    neighbours = gpu_to_device(env, NULL, 27 * host.n * sizeof(int32_t));
    CHECK_INT(vxd_volume_neighbours(env->queue, volume, entries.ptr, host.n,
                                    neighbours.ptr, &err),
              VXD_OK);
    found = gpu_to_host(env, &neighbours);
    for (size_t i = 0; i < host.n; i++) {
        const int32_t *key = host.keys + 3 * i;

        for (int c = 0; c < 27; c++) {
            int32_t at[3] = {key[0] + c / 9 - 1, key[1] + c / 3 % 3 - 1,
                             key[2] + c % 3 - 1};

            n_wrong += found[27 * i + (size_t)c] != entry_of(&host, at) ? 1 : 0;
        }
    }
    free(found);
    vxd_device_free(env->queue, &entries);
    vxd_device_free(env->queue, &neighbours);
    volume_host_free(&host);
    return n_wrong;
}

/* Neighbours are kept, so each way in which blocks come and go is tried. */
static void expect_neighbours(struct gpu_env *env)
{
    const struct vxd_volume_region region = {.is_ball = true, .radius = 1.2};
    struct vxd_volume *volume = make_volume(env, &spec, 1);
    struct vxd_volume *copy;
    struct vxd_err err = {0};
    size_t n_removed = 0;

    CHECK_INT(count_wrong_neighbours(env, volume), 0);
    integrate_shots(env, volume, 1, 3);
    CHECK_INT(count_wrong_neighbours(env, volume), 0);
    REQUIRE(vxd_volume_clear(env->queue, volume, &region, &n_removed, &err) == VXD_OK);
    CHECK(n_removed > 0);
    CHECK_INT(count_wrong_neighbours(env, volume), 0);
    REQUIRE(vxd_volume_copy(env->queue, volume, env->queue, &copy, &err) == VXD_OK);
    CHECK_INT(count_wrong_neighbours(env, copy), 0);
    integrate_shots(env, copy, 0, 2);
    CHECK_INT(count_wrong_neighbours(env, copy), 0);
    vxd_volume_destroy(env->queue, copy);
    vxd_volume_destroy(env->queue, volume);
    gpu_wait(env);
}

static void test_volume_neighbours_are_right_as_blocks_come_and_go(void)
{
    gpu_each_backend(expect_neighbours);
}

/* Rows are taken a piece at a time: an image of 600 columns whose first 320 have no depth observes
 * what one of the last 280 does. */
static void expect_wide(struct gpu_env *env)
{
    enum {
        WIDE = 600,
        FIRST = 320,
        LINES = 30
    };
    struct vxd_volume_camera camera = volume_camera(WIDE, LINES);
    struct vxd_volume_pose pose = volume_pose(1);
    uint64_t digests[2];

    for (int is_wide = 0; is_wide < 2; is_wide++) {
        struct vxd_volume *volume = make_volume(env, &spec, 0);
        struct vxd_volume_activation done;
        struct volume_host found;
        struct volume_shot shot;
        struct vxd_buffer depth;
        struct vxd_err err = {0};
        int width = is_wide != 0 ? WIDE : WIDE - FIRST;
        float *pixels = gpu_alloc(sizeof(float) * (size_t)width * LINES);

        volume_shoot(env, &camera, &pose, VXD_FLOAT32, false, &shot);
        for (int i = 0; i < width * LINES; i++) {
            int u = i % width + (WIDE - width);

            pixels[i] =
                u >= FIRST ? ((const float *)shot.depth)[i / width * WIDE + u] : 0;
        }
        depth = gpu_to_device(env, pixels, sizeof(float) * (size_t)width * LINES);
        shot.frame.depth = depth.ptr;
        shot.frame.camera.width = width;
        shot.frame.camera.cx -= WIDE - width;
        CHECK_INT(vxd_volume_integrate(env->queue, volume, &shot.frame, &done, &err),
                  VXD_OK);
        volume_read(env, volume, &found);
        CHECK(found.n > 10);
        digests[is_wide] = volume_digest(&found);
        volume_host_free(&found);
        free(pixels);
        vxd_device_free(env->queue, &depth);
        volume_shot_free(env, &shot);
        vxd_volume_destroy(env->queue, volume);
        gpu_wait(env);
    }
    CHECK(digests[0] == digests[1]);
}

static void test_volume_wide_image_observes_what_its_columns_do(void)
{
    gpu_each_backend(expect_wide);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_volume_wide_image_observes_what_its_columns_do),
    VXD_TEST(test_volume_specs_out_of_range_are_refused),
    VXD_TEST(test_volume_hostile_frames_are_refused),
    VXD_TEST(test_volume_pixels_without_depth_observe_nothing),
    VXD_TEST(test_volume_at_its_byte_cap_refuses_and_is_unchanged),
    VXD_TEST(test_volume_removal_leaves_what_is_outside),
    VXD_TEST(test_volume_removal_raises_the_version_by_one),
    VXD_TEST(test_volume_emptied_takes_frames_as_a_new_one),
    VXD_TEST(test_volume_copies_go_on_as_their_original),
    VXD_TEST(test_volume_changed_blocks_are_listed),
    VXD_TEST(test_volume_neighbours_are_right_as_blocks_come_and_go),
};

VXD_TEST_MAIN(tests)
