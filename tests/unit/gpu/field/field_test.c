// SPDX-License-Identifier: Apache-2.0
/* Distance fields against a loop over all pairs of voxels in reach. */
#include "tests/support/test.h"

#include "tests/support/field/field_model.h"

#include "gpu/field/field_math.h"

#define N_SPECS 7

/* Boxes within scenes and beyond them, of one word along z and of several, with distances
 * smaller than the box and larger. */
static const struct vxd_field_spec specs[N_SPECS] = {
    {{0, 0, 0}, {32, 32, 32}, 5, VXD_FIELD_UNKNOWN_FREE, 0.05},
    {{16, 0, 8}, {32, 16, 24}, 127, VXD_FIELD_UNKNOWN_IGNORED, 0.1},
    {{-8, -16, -8}, {16, 8, 64}, 4, VXD_FIELD_UNKNOWN_OCCUPIED, 1.0},
    {{0, 0, -72}, {8, 8, 72}, 70, VXD_FIELD_UNKNOWN_IGNORED, 0.25},
    {{24, 24, 24}, {48, 80, 40}, 1, VXD_FIELD_UNKNOWN_FREE, 0.05},
    {{-128, 0, 0}, {144, 8, 8}, 20, VXD_FIELD_UNKNOWN_FREE, 0.05},
    {{8, -136, 0}, {16, 160, 8}, 24, VXD_FIELD_UNKNOWN_OCCUPIED, 0.05},
};

static void one_field(struct gpu_env *env, const struct vxd_svdag_format *format,
                      const struct vxd_field_spec *spec, int kind)
{
    uint32_t *codes = field_model_codes(format, kind, (uint64_t)kind + 1);
    struct gpu_svdag_scene scene;
    struct vxd_field *field = NULL;
    struct field_model model;
    struct vxd_err err = {0};

    field_model_scene(env, format, codes, NULL, &scene);
    field_model_make(format, codes, spec, &model);
    CHECK_INT(vxd_field_create(env->queue, spec, &field, &err), VXD_OK);
    field_model_update(env, field, &scene, scene.root);
    CHECK_INT(field_model_compare(env, field, &model), 0);
    vxd_field_destroy(env->queue, field);
    field_model_free(&model);
    gpu_svdag_scene_free(env->queue, &scene);
    free(codes);
}

static void all_fields(struct gpu_env *env)
{
    static const struct vxd_svdag_format formats[2] = {{5, 4, true}, {5, 0, false}};

    for (int i = 0; i < N_SPECS; i++) {
        for (int kind = 0; kind < FIELD_MODEL_KINDS; kind++) {
            if ((i * FIELD_MODEL_KINDS + kind) % vxd_test_slow() == 0) {
                one_field(env, &formats[(i + kind) % 2], &specs[i], kind);
            }
        }
    }
}

static void test_field_of_any_scene_box_and_policy_is_the_loops(void)
{
    gpu_each_backend(all_fields);
}

static void large_field(struct gpu_env *env)
{
    static const struct vxd_svdag_format format = {6, 4, true};
    static const struct vxd_field_spec spec = {
        {0, 0, 0}, {64, 64, 64}, 3, VXD_FIELD_UNKNOWN_FREE, 0.05};

    one_field(env, &format, &spec, 4);
}

static void test_field_of_64_voxels_a_side_is_the_loops(void)
{
    gpu_each_backend(large_field);
}

/* Some voxels of a ball change: obstacles come and go. */
static uint32_t *changed_codes(const struct vxd_svdag_format *format,
                               const uint32_t *codes, uint64_t seed)
{
    int side = 1 << format->depth;
    size_t n = (size_t)side * (size_t)side * (size_t)side;
    uint32_t *changed = gpu_alloc(n * sizeof *changed);
    int at[3];

    memcpy(changed, codes, n * sizeof *changed);
    for (int axis = 0; axis < 3; axis++) {
        at[axis] = (int)(gpu_random(&seed) % (uint64_t)side);
    }
    for (size_t i = 0; i < n; i++) {
        int x = (int)(i / (size_t)(side * side)) - at[0];
        int y = (int)(i / (size_t)side) % side - at[1];
        int z = (int)i % side - at[2];

        if (x * x + y * y + z * z <= 16 && gpu_random(&seed) % 2 == 0) {
            changed[i] = changed[i] >= GPU_SVDAG_MATERIAL ? 0 : GPU_SVDAG_MATERIAL;
        }
    }
    return changed;
}

/* A field goes to another version and back, and is left in the middle of an update. */
static void one_change(struct gpu_env *env, const struct vxd_svdag_format *format,
                       const struct vxd_field_spec *spec, int kind)
{
    uint32_t *codes[2] = {field_model_codes(format, kind, (uint64_t)kind + 7), NULL};
    struct gpu_svdag_scene scene;
    struct vxd_field *field = NULL;
    struct field_model models[2];

    codes[1] = changed_codes(format, codes[0], (uint64_t)kind * 3 + 5);
    field_model_scene(env, format, codes[0], codes[1], &scene);
    for (int i = 0; i < 2; i++) {
        field_model_make(format, codes[i], spec, &models[i]);
    }
    CHECK_INT(vxd_field_create(env->queue, spec, &field, NULL), VXD_OK);
    field_model_update(env, field, &scene, scene.root);
    field_model_update(env, field, &scene, scene.other);
    CHECK_INT(field_model_compare(env, field, &models[1]), 0);
    field_model_update(env, field, &scene, scene.other);
    CHECK_INT(field_model_compare(env, field, &models[1]), 0);
    CHECK_INT(vxd_field_update(env->queue, field, scene.svdag, scene.root, 0, 1, NULL),
              VXD_OK);
    field_model_update(env, field, &scene, scene.root);
    CHECK_INT(field_model_compare(env, field, &models[0]), 0);
    field_model_update(env, field, &scene, scene.other);
    vxd_field_forget(field);
    field_model_update(env, field, &scene, scene.root);
    CHECK_INT(field_model_compare(env, field, &models[0]), 0);
    vxd_field_destroy(env->queue, field);
    for (int i = 0; i < 2; i++) {
        field_model_free(&models[i]);
        free(codes[i]);
    }
    gpu_svdag_scene_free(env->queue, &scene);
}

static void all_changes(struct gpu_env *env)
{
    static const struct vxd_svdag_format format = {5, 4, true};

    for (int i = 0; i < N_SPECS; i++) {
        for (int kind = 0; kind < FIELD_MODEL_KINDS; kind++) {
            if ((i * FIELD_MODEL_KINDS + kind) % (4 * vxd_test_slow()) == 3) {
                one_change(env, &format, &specs[i], kind);
            }
        }
    }
}

static void test_field_after_changes_is_the_one_made_from_scratch(void)
{
    gpu_each_backend(all_changes);
}

enum {
    LINE = 240
};

/* A line's squares at random: of few obstacles, of many, and none within reach here and there. */
static void random_line(uint64_t *seed, int reach, int16_t squares[LINE])
{
    uint64_t share = gpu_random(seed) % 3;
    int sign = 1;

    for (int i = 0; i < LINE; i++) {
        bool is_far = gpu_random(seed) % 3 < share;
        int root = 1 + (int)(gpu_random(seed) % (uint64_t)reach);

        sign = gpu_random(seed) % (share == 0 ? 2 : 30) == 0 ? -sign : sign;
        squares[i] = (int16_t)(sign * (is_far ? (int)VXD_FIELD_FAR : root * root));
    }
}

static void put_line_minima(const int16_t squares[LINE],
                            int16_t minima[2][LINE / VXD_FIELD_BLOCK])
{
    for (int block = 0; block < LINE / VXD_FIELD_BLOCK; block++) {
        minima[0][block] = minima[1][block] = VXD_FIELD_FAR;
        for (int i = 0; i < VXD_FIELD_BLOCK; i++) {
            int16_t square = squares[block * VXD_FIELD_BLOCK + i];
            int16_t other = (int16_t)-square;

            square = square > 0 ? square : 0;
            other = other > 0 ? other : 0;
            minima[0][block] = square < minima[0][block] ? square : minima[0][block];
            minima[1][block] = other < minima[1][block] ? other : minima[1][block];
        }
    }
}

/* The rule at the head of field_math.h, of all candidates. */
static int best_of_line(const int16_t squares[LINE], int reach, int target, int *step)
{
    int sign = squares[target] < 0 ? -1 : 1;
    int best = reach * reach + 1;

    *step = 0;
    for (int i = 0; i < LINE; i++) {
        int square = sign * squares[i] > 0 ? sign * squares[i] : 0;

        square += (i - target) * (i - target);
        if (square < best) {
            best = square;
            *step = i - target;
        }
    }
    return sign * (best > reach * reach ? (int)VXD_FIELD_FAR : best);
}

static void check_line(const int16_t squares[LINE], int reach)
{
    int16_t minima[2][LINE / VXD_FIELD_BLOCK];
    struct vxd_field_line line = {squares, {minima[0], minima[1]}, 1, LINE, reach};
    int n_wrong = 0;

    put_line_minima(squares, minima);
    for (int first = 0; first < LINE; first += VXD_FIELD_BLOCK) {
        for (int sign = -1; sign <= 1; sign += 2) {
            int next = first + VXD_FIELD_BLOCK;
            int best[VXD_FIELD_BLOCK];

            vxd_field_line_block(
                &line, sign, first, vxd_field_line_place(&line, sign, first),
                next < LINE ? vxd_field_line_place(&line, sign, next) : LINE - 1, best);
            for (int j = 0; j < VXD_FIELD_BLOCK; j++) {
                int step;
                int other_step;
                int square =
                    vxd_field_block_square(&line, sign, first, j, best[j], &step);

                if (squares[first + j] * sign > 0) {
                    n_wrong +=
                        square != best_of_line(squares, reach, first + j, &other_step) ||
                        step != other_step;
                }
            }
        }
    }
    CHECK_INT(n_wrong, 0);
}

static void test_targets_of_a_block_have_the_best_candidates_of_their_line(void)
{
    static const int reaches[] = {1, 2, 7, 8, 9, 40, 127};
    int16_t squares[LINE];
    uint64_t seed = 11;

    for (int i = 0; i < 2000; i++) {
        int reach = reaches[i % 7];

        random_line(&seed, reach, squares);
        check_line(squares, reach);
    }
}

/* A field of so many parts that each pass has more than one, made part by part. */
static void many_parts(struct gpu_env *env)
{
    static const struct vxd_svdag_format format = {4, 0, false};
    static const struct vxd_field_spec spec = {
        {0, 0, 0}, {64, 136, 1024}, 3, VXD_FIELD_UNKNOWN_FREE, 0.05};
    struct gpu_svdag_voxel voxel = {gpu_svdag_morton(9, 10, 11), GPU_SVDAG_MATERIAL};
    struct gpu_svdag_scene scene;
    struct vxd_field *field = NULL;
    struct vxd_err err = {0};
    int32_t low[3] = {8, 8, 8};
    int32_t high[3] = {9, 9, 9};
    struct vxd_buffer d_square = gpu_to_device(env, NULL, sizeof(int32_t));
    struct vxd_field_arrays out = {.squares = d_square.ptr};
    int32_t *square;
    size_t n_parts;

    gpu_svdag_scene_build(env->queue, &format, &voxel, 1, &scene);
    CHECK_INT(vxd_field_create(env->queue, &spec, &field, NULL), VXD_OK);
    n_parts = vxd_field_n_parts(field);
    CHECK(gpu_is_cuda(env) || n_parts > 12);
    for (size_t i = 0; i < n_parts; i++) {
        CHECK_INT(
            vxd_field_update(env->queue, field, scene.svdag, scene.root, i, 1, &err),
            VXD_OK);
        gpu_wait(env);
    }
    CHECK_INT(vxd_field_update(env->queue, field, scene.svdag, scene.root, 1, 1, &err),
              VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, "first");
    high[0] = 65;
    CHECK_INT(vxd_field_read(env->queue, field, low, high, &out, &err),
              VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, "high");
    high[0] = 9;
    CHECK_INT(vxd_field_read(env->queue, field, low, high, &out, &err), VXD_OK);
    square = gpu_to_host(env, &d_square);
    CHECK_INT(*square, 0); /* 1 + 4 + 9 is more than 9 */
    free(square);
    low[2] = 10;
    high[2] = 11;
    CHECK_INT(vxd_field_read(env->queue, field, low, high, &out, &err), VXD_OK);
    square = gpu_to_host(env, &d_square);
    CHECK_INT(*square, 6);
    free(square);
    vxd_device_free(env->queue, &d_square);
    vxd_field_destroy(env->queue, field);
    gpu_svdag_scene_free(env->queue, &scene);
}

static void test_field_made_part_by_part_is_whole(void)
{
    if (vxd_test_slow() > 10) {
        SKIP("millions of voxels are slow here");
    }
    gpu_each_backend(many_parts);
}

static void check_refused(struct gpu_env *env, struct vxd_field_spec spec,
                          const char *field_name)
{
    struct vxd_field *field = NULL;
    struct vxd_err err = {0};

    CHECK_INT(vxd_field_create(env->queue, &spec, &field, &err), VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, field_name);
    CHECK_INT(vxd_field_bytes(env->context, &spec), 0);
    CHECK(field == NULL);
}

static void test_field_of_a_wrong_spec_is_refused(void)
{
    struct vxd_field_spec spec = specs[0];
    struct vxd_field *field = NULL;
    struct vxd_err err = {0};
    struct gpu_env env;

    gpu_env_create(&env, VXD_BACKEND_CPU, 1, (size_t)1 << 20, 0);
    spec.low[1] = 4;
    check_refused(&env, spec, "low");
    spec = specs[0];
    spec.high[2] = 0;
    check_refused(&env, spec, "high");
    spec.high[2] = INT32_MAX - 7;
    spec.low[2] = INT32_MIN;
    check_refused(&env, spec, "high");
    spec = specs[0];
    spec.max_distance = 128;
    check_refused(&env, spec, "max_distance");
    spec.max_distance = 0;
    check_refused(&env, spec, "max_distance");
    spec = specs[0];
    spec.unknown = (enum vxd_field_unknown)3;
    check_refused(&env, spec, "unknown");
    spec = specs[0];
    spec.voxel_size_m = NAN;
    check_refused(&env, spec, "voxel_size_m");
    spec = specs[0];
    spec.high[0] = 1024;
    CHECK(vxd_field_bytes(env.context, &spec) > (size_t)1 << 20);
    CHECK_INT(vxd_field_create(env.queue, &spec, &field, &err), VXD_RESOURCE_EXHAUSTED);
    gpu_env_destroy(&env);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_field_of_any_scene_box_and_policy_is_the_loops),
    VXD_TEST(test_field_of_64_voxels_a_side_is_the_loops),
    VXD_TEST(test_field_after_changes_is_the_one_made_from_scratch),
    VXD_TEST(test_targets_of_a_block_have_the_best_candidates_of_their_line),
    VXD_TEST(test_field_made_part_by_part_is_whole),
    VXD_TEST(test_field_of_a_wrong_spec_is_refused),
};

VXD_TEST_MAIN(tests)
