// SPDX-License-Identifier: Apache-2.0
/* What volumes keep and what they forget: decay and the farthest blocks against plain loops, and a
 * volume that is written again from its blocks. */
#include "tests/support/test.h"
#include "tests/support/volume/volume_helpers.h"

#include <math.h>

#define WIDTH 48
#define HEIGHT 36
#define N_VOXELS 512

static const struct vxd_volume_spec specs[] = {
    {.voxel_size_m = 0.03, .block_edge = 8, .truncation_m = 0.1, .has_colour = true},
    {.voxel_size_m = 0.03,
     .block_edge = 8,
     .truncation_m = 0.1,
     .form = VXD_VOLUME_COMPACT,
     .max_weight = 3,
     .origin_m = {0.4, -7, 2}}};

static enum vxd_status shoot(struct gpu_env *env, struct vxd_volume *volume, int pose_i,
                             struct vxd_err *err)
{
    struct vxd_volume_camera camera = volume_camera(WIDTH, HEIGHT);
    struct vxd_volume_pose pose = volume_pose(pose_i);
    struct vxd_volume_activation done;
    struct volume_shot shot;
    enum vxd_status status;

    volume_shoot(env, &camera, &pose, VXD_UINT16, true, &shot);
    status = vxd_volume_integrate(env->queue, volume, &shot.frame, &done, err);
    gpu_wait(env);
    volume_shot_free(env, &shot);
    return status;
}

static struct vxd_volume *make_volume(struct gpu_env *env,
                                      const struct vxd_volume_spec *spec, int n)
{
    struct vxd_volume *volume = NULL;
    struct vxd_err err = {0};

    CHECK_INT(vxd_volume_create(env->queue, spec, &volume, &err), VXD_OK);
    for (int i = 0; i < n; i++) {
        CHECK_INT(shoot(env, volume, i, &err), VXD_OK);
    }
    return volume;
}

static void drop(struct gpu_env *env, struct vxd_volume *volume)
{
    vxd_volume_destroy(env->queue, volume);
    gpu_wait(env);
}

/* --- decay ---------------------------------------------------------------------------------- */

static bool is_in(const struct vxd_volume_spec *spec,
                  const struct vxd_volume_region *region, const int32_t key[3], int v)
{
    const int at[3] = {v % 8, v / 8 % 8, v / 64};
    double squares = 0;
    bool inside = true;

    for (int axis = 0; axis < 3; axis++) {
        double centre =
            spec->origin_m[axis] + (key[axis] * 8 + at[axis] + 0.5) * spec->voxel_size_m;
        double block = spec->origin_m[axis] + (key[axis] + 0.5) * 8 * spec->voxel_size_m;
        double d = block - region->centre[axis];

        squares += d * d;
        inside = inside && centre >= region->low[axis] && centre < region->high[axis];
    }
    return region->is_ball ? squares > region->radius * region->radius : inside;
}

static int find_key(const struct volume_host *host, const int32_t key[3])
{
    for (size_t i = 0; i < host->n; i++) {
        if (memcmp(host->keys + 3 * i, key, 12) == 0) {
            return (int)i;
        }
    }
    return -1;
}

/* Decays as plainly as possible and compares every voxel. Returns how many blocks should go. */
static size_t check_decay(const struct vxd_volume_spec *spec,
                          const struct vxd_volume_decay *decay,
                          const struct volume_host *before,
                          const struct volume_host *after)
{
    bool is_compact = spec->form == VXD_VOLUME_COMPACT;
    size_t n_gone = 0;
    size_t n_wrong = 0;

    for (size_t i = 0; i < before->n; i++) {
        const int32_t *key = before->keys + 3 * i;
        float weights[N_VOXELS];
        bool is_touched = false;
        float most = 0;
        int at = find_key(after, key);

        for (int v = 0; v < N_VOXELS; v++) {
            bool decays = is_in(spec, &decay->region, key, v);
            float weight = before->weights[N_VOXELS * i + (size_t)v];

            weights[v] = decays ? weight * (float)decay->factor : weight;
            weights[v] = is_compact ? floorf(weights[v]) : weights[v];
            is_touched = is_touched || decays;
            most = fmaxf(most, weights[v]);
        }
        if (is_touched && (most == 0 || most < (float)decay->min_weight)) {
            n_gone++;
            n_wrong += at >= 0 ? 1 : 0;
            continue;
        }
        CHECK(at >= 0 && after->entries[at] == before->entries[i]);
        CHECK(after->stamps[at] ==
              (is_touched ? after->info.version : before->stamps[i]));
        for (int v = 0; v < N_VOXELS; v++) {
            size_t from = N_VOXELS * i + (size_t)v;
            size_t to = N_VOXELS * (size_t)at + (size_t)v;

            n_wrong += after->weights[to] != weights[v] ? 1 : 0;
            n_wrong +=
                after->distances[to] != (weights[v] > 0 ? before->distances[from] : 0)
                    ? 1
                    : 0;
            if (after->colours != NULL && is_in(spec, &decay->region, key, v)) {
                n_wrong += after->colours[4 * to + 3] !=
                                   (uint16_t)((float)before->colours[4 * from + 3] *
                                              (float)decay->factor)
                               ? 1
                               : 0;
            }
        }
    }
    CHECK_INT(n_wrong, 0);
    return n_gone;
}

static void expect_decay(struct gpu_env *env)
{
    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
        const struct vxd_volume_spec *spec = &specs[i];
        const double *o = spec->origin_m;
        const struct vxd_volume_decay decays[] = {
            {.region = {.low = {o[0] - 0.5, o[1] - 0.4, o[2] + 0.8},
                        .high = {o[0] + 0.17, o[1] + 0.33, o[2] + 1.75}},
             .factor = 0.4,
             .min_weight = 0.9},
            {.region = {.is_ball = true, .centre = {0.1, 0, 1.3}, .radius = 0.45},
             .factor = 0.7},
            {.region = {.low = {-1e6, -1e6, -1e6}, .high = {1e6, 1e6, 1e6}},
             .factor = 0.9,
             .min_weight = 1.2},
            {.region = {.low = {-1e6, -1e6, -1e6}, .high = {1e6, 1e6, 1e6}},
             .factor = 0}};
        struct vxd_volume *volume = make_volume(env, spec, 3);
        size_t n_all = 0;

        for (size_t d = 0; d < sizeof decays / sizeof decays[0]; d++) {
            struct volume_host before;
            struct volume_host after;
            struct vxd_err err = {0};
            size_t n_removed = 0;

            volume_read(env, volume, &before);
            CHECK_INT(vxd_volume_decay(env->queue, volume, &decays[d], &n_removed, &err),
                      VXD_OK);
            volume_read(env, volume, &after);
            CHECK_INT(n_removed, check_decay(spec, &decays[d], &before, &after));
            CHECK_INT(after.n, before.n - n_removed);
            CHECK_INT(after.info.version, before.info.version + 1);
            n_all += n_removed;
            volume_host_free(&before);
            volume_host_free(&after);
        }
        CHECK(n_all > 0);
        drop(env, volume);
    }
}

static void test_volume_decay_is_that_of_a_plain_loop(void)
{
    gpu_each_backend(expect_decay);
}

/* Two voxels of a block, their votes and colours, before and after a decay of one of them, which
 * may leave votes alone. */
static void one_label_decay(struct gpu_env *env, bool keeps_votes)
{
    struct vxd_volume_spec spec = specs[0];
    const struct vxd_volume_decay decay = {
        .region = {.low = {0, 0, 0}, .high = {0.03, 0.03, 0.03}},
        .factor = 0.6,
        .keeps_votes = keeps_votes};
    const int32_t key[3] = {0, 0, 0};
    const int32_t entry = 0;
    const uint64_t stamp = 1;
    float distances[N_VOXELS] = {0.25f, -0.5f};
    float weights[N_VOXELS] = {10, 10};
    uint16_t colours[4 * N_VOXELS] = {256, 512, 1024, 5, 256, 512, 1024, 5};
    /* Label 7 with 20 votes, 3 with 2, 9 with 1, 200 with 255. */
    uint64_t votes[N_VOXELS] = {0xc8ff090103020714u, 0xc8ff090103020714u};
    const struct vxd_volume_blocks blocks = {
        .n = 1,
        .entries = &entry,
        .keys = key,
        .stamps = &stamp,
        .layers = {distances, weights, colours, votes}};
    struct vxd_volume *volume = NULL;
    struct volume_host after;
    struct vxd_err err = {0};
    size_t n_removed;

    spec.has_labels = true;
    CHECK_INT(vxd_volume_create(env->queue, &spec, &volume, &err), VXD_OK);
    CHECK_INT(vxd_volume_write_blocks(env->queue, volume, &blocks, 1, 0, &err), VXD_OK);
    CHECK_INT(vxd_volume_decay(env->queue, volume, &decay, &n_removed, &err), VXD_OK);
    volume_read(env, volume, &after);
    CHECK_INT(after.n, 1);
    CHECK(after.weights[0] == 10 * 0.6f && after.weights[1] == 10);
    CHECK(after.distances[0] == 0.25f && after.distances[1] == -0.5f);
    /* 153, 0 (forgotten), 1, 12: rounded down, as the weight of the colour is. */
    CHECK(after.labels[0] == (keeps_votes ? votes[0] : 0xc89900000301070cu));
    CHECK(after.labels[1] == votes[1]);
    CHECK(memcmp(after.colours,
                 ((const uint16_t[8]){256, 512, 1024, 3, 256, 512, 1024, 5}), 16) == 0);
    volume_host_free(&after);
    drop(env, volume);
}

static void expect_label_decay(struct gpu_env *env)
{
    one_label_decay(env, false);
    one_label_decay(env, true);
}

static void test_volume_decay_takes_votes_and_colours_with_it(void)
{
    gpu_each_backend(expect_label_decay);
}

static void expect_bad_decays(struct gpu_env *env)
{
    struct vxd_volume *volume = make_volume(env, &specs[0], 1);
    struct vxd_volume_decay decay = {.region = {.is_ball = true}, .factor = 1.5};
    struct vxd_err err = {0};
    size_t n_removed;

    CHECK_INT(vxd_volume_decay(env->queue, volume, &decay, &n_removed, &err),
              VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, "factor");
    decay.factor = 1;
    decay.min_weight = NAN;
    CHECK_INT(vxd_volume_decay(env->queue, volume, &decay, &n_removed, &err),
              VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, "min_weight");
    decay.min_weight = 0;
    decay.region.radius = -1;
    CHECK_INT(vxd_volume_decay(env->queue, volume, &decay, &n_removed, &err),
              VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, "radius");
    drop(env, volume);
}

static void test_volume_decay_out_of_range_is_refused(void)
{
    gpu_each_backend(expect_bad_decays);
}

/* --- the farthest blocks -------------------------------------------------------------------- */

static double square_of(const struct vxd_volume_spec *spec, const int32_t key[3],
                        const double point[3])
{
    double squares = 0;

    for (int axis = 0; axis < 3; axis++) {
        double d = spec->origin_m[axis] + (key[axis] + 0.5) * 8 * spec->voxel_size_m -
                   point[axis];

        squares += d * d;
    }
    return squares;
}

static void expect_forgetting(struct gpu_env *env)
{
    struct vxd_volume_spec spec = specs[0];
    struct vxd_volume *volume = make_volume(env, &spec, 1);
    struct vxd_volume_region box = {.low = {-9, -9, 1.5}, .high = {9, 9, 9}};
    const double point[3] = {0.3, -0.1, 0.2};
    struct volume_host before;
    struct volume_host after;
    struct vxd_err err = {0};
    int32_t *keys = NULL;
    size_t n_removed = 0;
    size_t n_keys = 0;
    size_t capacity;
    double nearest_gone = INFINITY;

    /* Pose 0 without the wall: pose 4 lacks blocks, and the map must not grow for them. */
    CHECK_INT(vxd_volume_clear(env->queue, volume, &box, &n_removed, &err), VXD_OK);
    capacity = vxd_hashmap_capacity(vxd_volume_map(volume));
    vxd_hashmap_set_max_bytes(vxd_volume_map(volume), 1);
    for (int i = 1; i < 8 && shoot(env, volume, i, &err) == VXD_OK; i++) {
    }
    CHECK_INT(err.code, VXD_RESOURCE_EXHAUSTED);
    volume_read(env, volume, &before);
    CHECK_INT(vxd_volume_forget_farthest(env->queue, volume, point, &keys, &n_keys, &err),
              VXD_OK);
    CHECK(n_keys >= capacity / 16 && n_keys < before.n);
    volume_read(env, volume, &after);
    CHECK_INT(after.n, before.n - n_keys);
    for (size_t i = 0; i < n_keys; i++) {
        CHECK(find_key(&before, keys + 3 * i) >= 0);
        CHECK(find_key(&after, keys + 3 * i) < 0);
        nearest_gone = fmin(nearest_gone, square_of(&spec, keys + 3 * i, point));
    }
    /* What is as far and stays was touched by the activation that was refused: the next one, of
     * the same image, finds it there. */
    for (size_t i = 0; i < after.n; i++) {
        int at = find_key(&before, after.keys + 3 * i);

        CHECK(at >= 0 && before.entries[at] == after.entries[i]);
        CHECK(memcmp(before.weights + N_VOXELS * (size_t)at, after.weights + N_VOXELS * i,
                     N_VOXELS * sizeof(float)) == 0);
    }
    CHECK(isfinite(nearest_gone));
    CHECK_INT(after.info.removed_version, after.info.version);
    CHECK_INT(vxd_hashmap_capacity(vxd_volume_map(volume)), capacity);
    free(keys);
    CHECK_INT(vxd_volume_forget_farthest(env->queue, volume, point, &keys, &n_keys, &err),
              VXD_OK); /* there is room now */
    CHECK_INT(n_keys, 0);
    volume_host_free(&before);
    volume_host_free(&after);
    drop(env, volume);
}

static void test_volume_full_forgets_its_farthest_blocks(void)
{
    gpu_each_backend(expect_forgetting);
}

/* --- blocks on the host --------------------------------------------------------------------- */

/* Brings what changed in one volume since a version into another one, in two parts. */
static void bring_over(struct gpu_env *env, struct vxd_volume *from,
                       struct vxd_volume *to, uint64_t since)
{
    struct vxd_volume_info info;
    struct vxd_volume_blocks blocks;
    struct vxd_err err = {0};
    int32_t *entries = NULL;
    size_t n = 0;

    vxd_volume_get_info(from, &info);
    if (info.removed_version > since) {
        CHECK_INT(vxd_volume_list_changed(env->queue, from, 0, &entries, &n, &err),
                  VXD_OK);
        CHECK_INT(
            vxd_volume_read_blocks(env->queue, from, entries, n, false, &blocks, &err),
            VXD_OK);
        CHECK_INT(vxd_volume_keep_only(env->queue, to, blocks.keys, n, &err), VXD_OK);
        vxd_volume_blocks_free(env->queue, &blocks);
        free(entries);
    }
    CHECK_INT(vxd_volume_list_changed(env->queue, from, since, &entries, &n, &err),
              VXD_OK);
    for (size_t first = 0; first < n; first += n / 2 + 1) {
        size_t n_now = n - first < n / 2 + 1 ? n - first : n / 2 + 1;

        CHECK_INT(vxd_volume_read_blocks(env->queue, from, entries + first, n_now, true,
                                         &blocks, &err),
                  VXD_OK);
        CHECK_INT(vxd_volume_write_blocks(env->queue, to, &blocks, info.version,
                                          info.removed_version, &err),
                  VXD_OK);
        vxd_volume_blocks_free(env->queue, &blocks);
    }
    free(entries);
}

static void expect_equal(struct gpu_env *env, struct vxd_volume *a, struct vxd_volume *b)
{
    struct volume_host x;
    struct volume_host y;

    volume_read(env, a, &x);
    volume_read(env, b, &y);
    CHECK_INT(x.n, y.n);
    CHECK(memcmp(x.entries, y.entries, x.n * sizeof *x.entries) == 0);
    CHECK(memcmp(x.stamps, y.stamps, x.n * sizeof *x.stamps) == 0);
    CHECK(volume_digest(&x) == volume_digest(&y));
    CHECK_INT(x.info.version, y.info.version);
    CHECK_INT(x.info.removed_version, y.info.removed_version);
    volume_host_free(&x);
    volume_host_free(&y);
}

static void expect_bringing_over(struct gpu_env *env)
{
    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
        struct vxd_volume *a = make_volume(env, &specs[i], 0);
        struct vxd_volume *b = make_volume(env, &specs[i], 0);
        const struct vxd_volume_region ball = {
            .is_ball = true, .centre = {0, 0, 1}, .radius = 0.7};
        struct vxd_err err = {0};
        uint64_t since = 0;

        for (int step = 0; step < 6; step++) {
            struct vxd_volume_info info;
            size_t n_removed;

            if (step == 3) {
                CHECK_INT(vxd_volume_clear(env->queue, a, &ball, &n_removed, &err),
                          VXD_OK);
            } else {
                CHECK_INT(shoot(env, a, step, &err), VXD_OK);
            }
            bring_over(env, a, b, since);
            expect_equal(env, a, b);
            vxd_volume_get_info(a, &info);
            since = info.version;
        }
        CHECK_INT(shoot(env, a, 6, &err), VXD_OK); /* and both go on alike */
        CHECK_INT(shoot(env, b, 6, &err), VXD_OK);
        expect_equal(env, a, b);
        drop(env, a);
        drop(env, b);
    }
}

static void test_volume_of_anothers_blocks_is_equal_and_goes_on_alike(void)
{
    gpu_each_backend(expect_bringing_over);
}

static void expect_bad_blocks(struct gpu_env *env)
{
    struct vxd_volume *a = make_volume(env, &specs[0], 1);
    struct vxd_volume *b = make_volume(env, &specs[0], 0);
    struct vxd_volume_blocks blocks;
    struct vxd_err err = {0};
    const int32_t far_key[3] = {1 << 20, 0, 0};
    const int32_t *keys;
    int32_t *entries = NULL;
    size_t n = 0;

    CHECK_INT(vxd_volume_list_changed(env->queue, a, 0, &entries, &n, &err), VXD_OK);
    CHECK_INT(
        vxd_volume_read_blocks(env->queue, a, entries + 1, n - 1, true, &blocks, &err),
        VXD_OK);
    CHECK_INT(vxd_volume_write_blocks(env->queue, b, &blocks, 1, 0, &err), VXD_DATA_LOSS);
    keys = blocks.keys;
    blocks.keys = far_key;
    blocks.n = 1;
    CHECK_INT(vxd_volume_write_blocks(env->queue, b, &blocks, 1, 0, &err), VXD_DATA_LOSS);
    blocks.keys = keys;
    vxd_volume_blocks_free(env->queue, &blocks);
    free(entries);
    drop(env, a);
    drop(env, b);
}

static void test_volume_blocks_of_another_volume_are_data_loss(void)
{
    gpu_each_backend(expect_bad_blocks);
}

/* --- layers of all kinds -------------------------------------------------------------------- */

enum {
    N_LAYERED = 6, /* blocks */
    N_LAYERS = 5,
    MAX_VOXEL_BYTES = 16,
    LAYER_BYTES = N_LAYERED * N_VOXELS * MAX_VOXEL_BYTES
};

static const int32_t layered_keys[3 * N_LAYERED] = {0, 0, 0,  1, 0, 0, 0, 1,  0,
                                                    0, 0, -1, 2, 0, 0, 1, -1, 3};

/* Reads all blocks, and compares each voxel's bytes of each layer: zeros where it is in the box,
 * else what was written. */
static void check_layers(struct gpu_env *env, struct vxd_volume *volume,
                         uint8_t layers[N_LAYERS][LAYER_BYTES],
                         const struct vxd_volume_region *box)
{
    static const uint8_t zeros[MAX_VOXEL_BYTES];
    struct vxd_volume_layer kinds[VXD_VOLUME_MAX_LAYERS];
    struct vxd_volume_blocks blocks;
    struct vxd_volume_info info;
    struct vxd_err err = {0};
    int32_t *entries = NULL;
    size_t n = 0;

    vxd_volume_get_info(volume, &info);
    REQUIRE(vxd_volume_get_layers(volume, kinds) == N_LAYERS);
    CHECK_INT(vxd_volume_list_changed(env->queue, volume, 0, &entries, &n, &err), VXD_OK);
    CHECK_INT(n, N_LAYERED);
    REQUIRE(vxd_volume_read_blocks(env->queue, volume, entries, n, true, &blocks, &err) ==
            VXD_OK);
    CHECK(memcmp(blocks.keys, layered_keys, sizeof layered_keys) == 0);
    for (int k = 0; k < N_LAYERS; k++) {
        size_t voxel_bytes =
            kinds[k].n_elements * vxd_dtype_bytes(kinds[k].dtype) / N_VOXELS;
        const uint8_t *rows = blocks.layers[k];
        size_t n_wrong = 0;

        REQUIRE(rows != NULL && voxel_bytes <= MAX_VOXEL_BYTES);
        for (size_t i = 0; i < (size_t)N_LAYERED * N_VOXELS; i++) {
            bool is_gone =
                box != NULL && is_in(&info.spec, box, layered_keys + 3 * (i / N_VOXELS),
                                     (int)(i % N_VOXELS));
            const uint8_t *expected = is_gone ? zeros : layers[k] + voxel_bytes * i;

            n_wrong += memcmp(rows + voxel_bytes * i, expected, voxel_bytes) != 0 ? 1 : 0;
        }
        CHECK_INT(n_wrong, 0);
    }
    vxd_volume_blocks_free(env->queue, &blocks);
    free(entries);
}

static void one_layered(struct gpu_env *env, enum vxd_volume_form form)
{
    const struct vxd_volume_spec spec = {.voxel_size_m = 0.25,
                                         .block_edge = 8,
                                         .truncation_m = 0.5,
                                         .form = form,
                                         .has_colour = true,
                                         .has_labels = true,
                                         .has_albedo = true};
    const struct vxd_volume_region box = {.low = {0.5, -0.25, -0.75},
                                          .high = {2.75, 2.5, 1.25}};
    static const int32_t entries[N_LAYERED] = {0, 1, 2, 3, 4, 5};
    static const uint64_t stamps[N_LAYERED] = {1, 2, 3, 4, 5, 6};
    struct vxd_volume *volume = make_volume(env, &spec, 0);
    struct vxd_volume *copy = NULL;
    struct vxd_volume_blocks blocks = {
        .n = N_LAYERED, .entries = entries, .keys = layered_keys, .stamps = stamps};
    static uint8_t layers[N_LAYERS][LAYER_BYTES];
    uint64_t state = 5;
    struct vxd_err err = {0};
    size_t n_removed = 1;

    for (int k = 0; k < N_LAYERS; k++) {
        for (size_t i = 0; i < LAYER_BYTES; i++) {
            layers[k][i] = (uint8_t)(1 + gpu_random(&state) % 200);
        }
        blocks.layers[k] = layers[k];
    }
    CHECK_INT(vxd_volume_write_blocks(env->queue, volume, &blocks, 6, 0, &err), VXD_OK);
    check_layers(env, volume, layers, NULL);
    REQUIRE(vxd_volume_copy(env->queue, volume, env->queue, &copy, &err) == VXD_OK);
    CHECK_INT(vxd_volume_clear(env->queue, volume, &box, &n_removed, &err), VXD_OK);
    CHECK_INT(n_removed, 0);
    check_layers(env, volume, layers, &box);
    check_layers(env, copy, layers, NULL);
    drop(env, copy);
    drop(env, volume);
}

static void expect_layers(struct gpu_env *env)
{
    one_layered(env, VXD_VOLUME_FULL);
    one_layered(env, VXD_VOLUME_COMPACT);
}

static void test_volume_layers_of_all_kinds_are_copied_and_cleared(void)
{
    gpu_each_backend(expect_layers);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_volume_decay_is_that_of_a_plain_loop),
    VXD_TEST(test_volume_decay_takes_votes_and_colours_with_it),
    VXD_TEST(test_volume_decay_out_of_range_is_refused),
    VXD_TEST(test_volume_full_forgets_its_farthest_blocks),
    VXD_TEST(test_volume_of_anothers_blocks_is_equal_and_goes_on_alike),
    VXD_TEST(test_volume_blocks_of_another_volume_are_data_loss),
    VXD_TEST(test_volume_layers_of_all_kinds_are_copied_and_cleared),
};

VXD_TEST_MAIN(tests)
