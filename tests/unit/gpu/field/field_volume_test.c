// SPDX-License-Identifier: Apache-2.0
/* Fields of volumes: which voxels are obstacles against the model of scenes' fields, distances that
 * are finer than voxels against surfaces known exactly, and updates against fields made anew. */
#include "tests/support/test.h"

#include <math.h>

#include "gpu/volume/volume.h"
#include "tests/support/field/field_model.h"

enum {
    EDGE = 8,
    N_VOXELS = EDGE * EDGE * EDGE,
    N_POINTS = 600
};

static const struct vxd_volume_spec spec_of = {
    .voxel_size_m = 0.05, .block_edge = EDGE, .truncation_m = 0.2};

/* The signed distance of a place in metres to a surface; NaN where nothing is to be known. */
typedef double surface_fn(const double p[3]);

static double ball(const double p[3])
{
    double x = p[0] - 0.713, y = p[1] - 0.692, z = p[2] - 0.731;

    return sqrt(x * x + y * y + z * z) - 0.437;
}

static double slope(const double p[3])
{
    return (2 * p[0] + p[1] - 3 * p[2] + 0.219) / sqrt(14.0);
}

/* Observes n_blocks^3 blocks from key (0, 0, 0) on. */
static struct vxd_volume *make_volume(struct gpu_env *env,
                                      const struct vxd_volume_spec *spec, int n_blocks,
                                      surface_fn *surface)
{
    size_t n = (size_t)n_blocks * (size_t)n_blocks * (size_t)n_blocks;
    int32_t *keys = gpu_alloc(n * 3 * sizeof *keys);
    float *distances = gpu_alloc(n * N_VOXELS * sizeof *distances);
    const struct vxd_volume_observation observation = {
        .n = n, .keys = keys, .distances = distances};
    struct vxd_volume *volume = NULL;
    struct vxd_err err = {0};
    size_t n_new = 0;

    for (size_t b = 0; b < n; b++) {
        keys[3 * b] = (int32_t)b / n_blocks / n_blocks;
        keys[3 * b + 1] = (int32_t)b / n_blocks % n_blocks;
        keys[3 * b + 2] = (int32_t)b % n_blocks;
        for (int v = 0; v < N_VOXELS; v++) {
            const double p[3] = {(keys[3 * b] * EDGE + v % EDGE + 0.5) * 0.05,
                                 (keys[3 * b + 1] * EDGE + v / EDGE % EDGE + 0.5) * 0.05,
                                 (keys[3 * b + 2] * EDGE + v / EDGE / EDGE + 0.5) * 0.05};

            double d = surface(p);

            distances[N_VOXELS * b + (size_t)v] = (float)(d < -0.2 ? -0.2 : d);
        }
    }
    CHECK_INT(vxd_volume_create(env->queue, spec, &volume, &err), VXD_OK);
    CHECK_INT(vxd_volume_observe(env->queue, volume, &observation, &n_new, &err), VXD_OK);
    CHECK_INT(n_new, n);
    free(keys);
    free(distances);
    return volume;
}

static void update(struct gpu_env *env, struct vxd_field *field,
                   const struct vxd_volume *volume)
{
    CHECK_INT(vxd_field_update_volume(env->queue, field, volume, 0, 0,
                                      vxd_field_n_parts(field), NULL),
              VXD_OK);
    gpu_wait(env);
}

static struct vxd_field *make_field(struct gpu_env *env, const struct vxd_volume *volume,
                                    int reach, enum vxd_field_unknown unknown)
{
    const struct vxd_field_spec spec = {{-8, -8, -8}, {40, 40, 40}, reach, unknown, 0.05};
    struct vxd_field *field = NULL;

    CHECK_INT(vxd_field_create(env->queue, &spec, &field, NULL), VXD_OK);
    update(env, field, volume);
    return field;
}

static void drop(struct gpu_env *env, struct vxd_volume *volume, struct vxd_field *field)
{
    vxd_field_destroy(env->queue, field);
    vxd_volume_destroy(env->queue, volume);
    gpu_wait(env);
}

/* --- distances ------------------------------------------------------------------------------ */

/* Asks at random places, and returns the largest error in voxels; what is beyond `most` voxels
 * need only be as far. */
static double largest_error(struct gpu_env *env, const struct vxd_volume *volume,
                            const struct vxd_field *field, surface_fn *surface,
                            double most, double *largest_turn)
{
    double points[3 * N_POINTS];
    struct vxd_buffer d_points, d_distances, d_gradients;
    uint64_t state = 5;
    double worst = 0;
    double sum = 0;
    size_t n_asked;
    float *distances, *gradients;

    for (size_t i = 0; i < 3 * N_POINTS; i++) {
        points[i] = (double)gpu_random_float(&state, 2.5f, 25.5f);
    }
    d_points = gpu_to_device(env, points, sizeof points);
    d_distances = gpu_to_device(env, NULL, N_POINTS * sizeof(float));
    d_gradients = gpu_to_device(env, NULL, 3 * N_POINTS * sizeof(float));
    CHECK_INT(vxd_field_query_volume(env->queue, field, volume, 0, d_points.ptr, N_POINTS,
                                     d_distances.ptr, d_gradients.ptr, NULL),
              VXD_OK);
    distances = gpu_to_host(env, &d_distances);
    gradients = gpu_to_host(env, &d_gradients);
    *largest_turn = 0;
    n_asked = 0;
    for (size_t i = 0; i < N_POINTS; i++) {
        const double p[3] = {points[3 * i] * 0.05, points[3 * i + 1] * 0.05,
                             points[3 * i + 2] * 0.05};
        double truth = surface(p);
        double slopes = 0;
        double to_border = 32;

        for (size_t axis = 0; axis < 3; axis++) {
            to_border =
                fmin(to_border, fmin(points[3 * i + axis], 32 - points[3 * i + axis]));
        }
        if (truth < 0 && to_border < 2 - truth / 0.05) {
            continue; /* what is unknown outside of the volume is free, and may be nearer */
        }
        n_asked++;
        if (fabs(truth) > most * 0.05) {
            CHECK(fabs((double)distances[i]) > (most - 0.2) * 0.05);
            continue;
        }
        worst = fmax(worst, fabs((double)distances[i] - truth) / 0.05);
        sum += fabs((double)distances[i] - truth) / 0.05;
        for (size_t axis = 0; axis < 3; axis++) {
            double q[3] = {p[0], p[1], p[2]};

            q[axis] += 1e-6;
            slopes += (double)gradients[3 * i + axis] * (surface(q) - truth) / 1e-6;
        }
        *largest_turn = fmax(*largest_turn, 1 - slopes);
    }
    CHECK(n_asked > N_POINTS / 3);
    CHECK(sum / (double)n_asked < 0.05);
    free(distances);
    free(gradients);
    vxd_device_free(env->queue, &d_points);
    vxd_device_free(env->queue, &d_distances);
    vxd_device_free(env->queue, &d_gradients);
    return worst;
}

static void expect_fine_distances(struct gpu_env *env)
{
    struct vxd_volume *volume = make_volume(env, &spec_of, 4, slope);
    struct vxd_field *field = make_field(env, volume, 20, VXD_FIELD_UNKNOWN_FREE);
    double turn;

    /* A plane is exact but where the point's foot lies beyond the rims of the nearest discs. */
    CHECK(largest_error(env, volume, field, slope, 6, &turn) < 0.1);
    CHECK(turn < 0.05);
    drop(env, volume, field);
    volume = make_volume(env, &spec_of, 4, ball);
    field = make_field(env, volume, 20, VXD_FIELD_UNKNOWN_FREE);
    /* The discs touch a ball of 8.7 voxels, so at their rims they are off by 0.06 besides. */
    CHECK(largest_error(env, volume, field, ball, 8, &turn) < 0.25);
    CHECK(turn < 0.2);
    drop(env, volume, field);
}

static void test_field_of_volume_is_finer_than_its_voxels(void)
{
    gpu_each_backend(expect_fine_distances);
}

/* --- obstacles ------------------------------------------------------------------------------- */

static const struct vxd_svdag_format format = {5, 0, true};
static uint32_t *codes;

/* What the model's scene has there, as a distance. */
static double of_codes(const double p[3])
{
    int x = (int)(p[0] / 0.05), y = (int)(p[1] / 0.05), z = (int)(p[2] / 0.05);
    uint32_t code = codes[(x * 32 + y) * 32 + z];

    return code == 0 ? (double)NAN : code == GPU_SVDAG_FREE ? 0.03 : -0.02;
}

static void expect_obstacles(struct gpu_env *env)
{
    for (int kind = 2; kind < FIELD_MODEL_KINDS; kind++) {
        for (int unknown = 0; unknown < 3; unknown++) {
            struct vxd_field_spec spec = {
                {-8, -8, -8}, {40, 40, 40}, 5, (enum vxd_field_unknown)unknown, 0.05};
            struct field_model model;
            struct vxd_volume *volume;
            struct vxd_field *field;

            codes = field_model_codes(&format, kind, 9);
            volume = make_volume(env, &spec_of, 4, of_codes);
            field = make_field(env, volume, 5, (enum vxd_field_unknown)unknown);
            field_model_make(&format, codes, &spec, &model);
            CHECK_INT(field_model_compare(env, field, &model), 0);
            field_model_free(&model);
            drop(env, volume, field);
            free(codes);
        }
    }
}

static void test_field_of_volume_is_the_models(void)
{
    gpu_each_backend(expect_obstacles);
}

/* --- updates --------------------------------------------------------------------------------- */

static uint64_t digest_of(struct gpu_env *env, const struct vxd_field *field)
{
    const int32_t low[3] = {-8, -8, -8};
    const int32_t high[3] = {40, 40, 40};
    struct vxd_buffer squares = gpu_to_device(env, NULL, 48 * 48 * 48 * 4);
    struct vxd_buffer nearest = gpu_to_device(env, NULL, 48 * 48 * 48 * 12);
    const struct vxd_field_arrays out = {NULL, squares.ptr, nearest.ptr};
    void *a, *b;
    uint64_t digest;

    CHECK_INT(vxd_field_read(env->queue, field, low, high, &out, NULL), VXD_OK);
    a = gpu_to_host(env, &squares);
    b = gpu_to_host(env, &nearest);
    digest =
        gpu_digest(gpu_digest(GPU_FNV_START, a, squares.n_bytes), b, nearest.n_bytes);
    free(a);
    free(b);
    vxd_device_free(env->queue, &squares);
    vxd_device_free(env->queue, &nearest);
    return digest;
}

static void expect_updates(struct gpu_env *env)
{
    const struct vxd_volume_region middle = {.low = {0.5, 0.5, 0.2},
                                             .high = {0.9, 0.9, 0.7}};
    struct vxd_volume *volume = make_volume(env, &spec_of, 4, ball);
    struct vxd_field *field = make_field(env, volume, 20, VXD_FIELD_UNKNOWN_FREE);
    uint64_t whole = digest_of(env, field);
    struct vxd_field *anew;
    size_t n_removed;

    CHECK_INT(vxd_volume_clear(env->queue, volume, &middle, &n_removed, NULL), VXD_OK);
    update(env, field, volume);
    anew = make_field(env, volume, 20, VXD_FIELD_UNKNOWN_FREE);
    CHECK(digest_of(env, field) != whole);
    CHECK(digest_of(env, field) == digest_of(env, anew));
    vxd_field_destroy(env->queue, anew);
    drop(env, volume, field);
}

static void test_field_of_volume_follows_changes(void)
{
    gpu_each_backend(expect_updates);
}

/* --- observations ------------------------------------------------------------------------------ */

static void expect_observations(struct gpu_env *env)
{
    struct vxd_volume_spec spec = spec_of;
    float distances[N_VOXELS];
    uint8_t labels[N_VOXELS];
    const int32_t key[3] = {-3, 2, 7};
    const int32_t far[3] = {1 << 20, 0, 0};
    struct vxd_volume_observation in = {
        .n = 1, .keys = key, .distances = distances, .labels = labels, .weight = 2};
    struct vxd_volume *volume = NULL;
    struct vxd_volume_blocks blocks;
    struct vxd_err err = {0};
    int32_t *entries = NULL;
    size_t n = 0;

    spec.has_labels = true;
    spec.max_weight = 5;
    CHECK_INT(vxd_volume_create(env->queue, &spec, &volume, &err), VXD_OK);
    for (int turn = 0; turn < 3; turn++) {
        for (int v = 0; v < N_VOXELS; v++) {
            distances[v] = v % 4 == 0   ? NAN
                           : v % 4 == 1 ? -0.3f
                           : v % 4 == 2 ? 0.9f
                                        : 0.1f;
            distances[v] += turn == 1 && v % 4 == 3 ? -0.05f : 0;
            labels[v] = (uint8_t)(turn == 2 ? 9 : 4);
        }
        CHECK_INT(vxd_volume_observe(env->queue, volume, &in, &n, &err), VXD_OK);
        CHECK_INT(n, turn == 0);
    }
    in.keys = far;
    CHECK_INT(vxd_volume_observe(env->queue, volume, &in, &n, &err),
              VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, "keys");
    CHECK_INT(vxd_volume_list_changed(env->queue, volume, 0, &entries, &n, &err), VXD_OK);
    CHECK_INT(n, 1);
    CHECK_INT(vxd_volume_read_blocks(env->queue, volume, entries, 1, true, &blocks, &err),
              VXD_OK);
    CHECK(memcmp(blocks.keys, key, sizeof key) == 0);
    CHECK_INT(blocks.stamps[0], 3);
    for (int v = 0; v < N_VOXELS; v++) {
        float d = ((const float *)blocks.layers[0])[v];
        float w = ((const float *)blocks.layers[1])[v];
        uint64_t votes = ((const uint64_t *)blocks.layers[2])[v];

        CHECK(w == (v % 4 < 2 ? 0.0f : 5.0f));
        CHECK(v % 4 != 2 || d == 1.0f);
        /* (2 * 0.5 + 2 * 0.25) / 4, and with 2 * 0.5 of 6 */
        CHECK(v % 4 != 3 || fabsf(d - (0.375f + 0.125f / 3)) < 1e-6f);
        CHECK(votes == (v % 4 == 3 ? 0x09010402u : 0));
    }
    vxd_volume_blocks_free(env->queue, &blocks);
    free(entries);
    vxd_volume_destroy(env->queue, volume);
    gpu_wait(env);
}

static void test_volume_observes_distances_of_others(void)
{
    gpu_each_backend(expect_observations);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_field_of_volume_is_finer_than_its_voxels),
    VXD_TEST(test_field_of_volume_is_the_models),
    VXD_TEST(test_field_of_volume_follows_changes),
    VXD_TEST(test_volume_observes_distances_of_others),
};

VXD_TEST_MAIN(tests)
