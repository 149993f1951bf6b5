// SPDX-License-Identifier: Apache-2.0
/* Copies, erosion and dilation, against a plain loop over all voxels, in small scenes of
 * every format. */
#include "tests/support/test.h"

#include "gpu/svdag/scan/scan.h"
#include "gpu/svdag/brush/noise_math.h"
#include "tests/support/svdag/svdag_run.h"
#include "tests/support/svdag/svdag_scene.h"
#include "tests/support/gpu/gpu_helpers.h"

__extension__ typedef __int128 wide;

enum {
    UNSET = -1,
    FREE = -2,
    N_FORMATS = 7
};

static const struct vxd_svdag_format formats[N_FORMATS] = {
    {4, 0, false}, {4, 0, true},   {4, 4, false}, {4, 4, true},
    {4, 8, true},  {4, 16, false}, {4, 16, true}};

/* A scene and its expected voxels: a material, UNSET or FREE per voxel, x slowest. */
struct scene {
    struct gpu_env env;
    struct vxd_svdag *svdag;
    uint32_t root;
    int64_t side;
    size_t n;
    int32_t *voxels;
    int32_t *before;
};

static void require_ok(enum vxd_status status, const struct vxd_err *err)
{
    if (status != VXD_OK) {
        (void)fprintf(stderr, "status %d: %s: %s\n", (int)status, err->field,
                      err->message);
        exit(EXIT_FAILURE);
    }
}

static void open_scene(struct scene *scene, const struct gpu_env *env,
                       const struct vxd_svdag_format *format)
{
    const struct vxd_svdag_spec spec = {.format = *format,
                                        .store = gpu_svdag_store(format)};
    struct vxd_err err = {0};

    scene->env = *env;
    require_ok(vxd_svdag_create(scene->env.queue, &spec, &scene->svdag, &err), &err);
    scene->root = VXD_SVDAG_EMPTY;
    scene->side = (int64_t)1 << format->depth;
    scene->n = (size_t)(scene->side * scene->side * scene->side);
    scene->voxels = gpu_alloc(scene->n * sizeof *scene->voxels);
    scene->before = gpu_alloc(scene->n * sizeof *scene->before);
    for (size_t i = 0; i < scene->n; i++) {
        scene->voxels[i] = UNSET;
    }
}

static void close_scene(struct scene *scene)
{
    vxd_svdag_destroy(scene->env.queue, scene->svdag);
    free(scene->voxels);
    free(scene->before);
}

static void edit(struct scene *scene, const struct vxd_svdag_op *ops, size_t n,
                 struct vxd_svdag_edit_result *result)
{
    struct vxd_err err = {0};

    require_ok(
        gpu_svdag_edit(&scene->env, scene->svdag, scene->root, ops, n, result, &err),
        &err);
    scene->root = result->root;
}

/* Adds to the scene the voxels of the grid that are FREE, or those that are occupied. */
static void put_voxels(struct scene *scene, bool free_ones)
{
    const struct vxd_svdag_format *format = &vxd_svdag_get_spec(scene->svdag)->format;
    int32_t *indices = gpu_alloc(scene->n * 3 * sizeof *indices);
    uint16_t *values = gpu_alloc(scene->n * sizeof *values);
    struct vxd_svdag_voxel_list list;
    struct vxd_svdag_edit_result result;
    struct vxd_svdag_op op = {.action = free_ones ? VXD_SVDAG_SET_FREE : VXD_SVDAG_FILL,
                              .shape = {.kind = VXD_SVDAG_VOXELS}};
    struct vxd_err err = {0};
    uint64_t n_outside;
    size_t n = 0;

    for (size_t i = 0; i < scene->n; i++) {
        if (free_ones ? scene->voxels[i] == FREE : scene->voxels[i] >= 0) {
            indices[3 * n] = (int32_t)((int64_t)i / scene->side / scene->side);
            indices[3 * n + 1] = (int32_t)((int64_t)i / scene->side % scene->side);
            indices[3 * n + 2] = (int32_t)((int64_t)i % scene->side);
            values[n] = free_ones ? 0 : (uint16_t)scene->voxels[i];
            n++;
        }
    }
    require_ok(gpu_svdag_list(&scene->env, format, indices, free_ones ? NULL : values, n,
                              &list, &n_outside, &err),
               &err);
    op.shape.voxels = list.voxels;
    edit(scene, &op, 1, &result);
    gpu_svdag_list_free(&scene->env, &list);
    free(indices);
    free(values);
}

/* Adds uniform cubes of any size and single voxels, of few materials. */
static void fill_randomly(struct scene *scene, uint64_t *state)
{
    const struct vxd_svdag_format *format = &vxd_svdag_get_spec(scene->svdag)->format;
    uint32_t n_materials = vxd_svdag_n_materials(format);
    uint64_t n_kinds = (n_materials < 3 ? n_materials : 3) + 2;

    for (int k = 0; k < 30; k++) {
        int64_t size = (int64_t)1 << gpu_random(state) % (uint64_t)(format->depth);
        int64_t low[3];
        uint64_t kind = gpu_random(state) % n_kinds;
        int32_t voxel = kind == 0   ? UNSET
                        : kind == 1 ? (format->tracks_free ? FREE : UNSET)
                                    : (int32_t)(n_materials - (kind - 1));

        for (int a = 0; a < 3; a++) {
            low[a] = (int64_t)(gpu_random(state) % (uint64_t)(scene->side / size)) * size;
        }
        for (int64_t i = 0; i < size * size * size; i++) {
            int64_t x = low[0] + i / size / size;
            int64_t y = low[1] + i / size % size;
            int64_t z = low[2] + i % size;

            scene->voxels[(x * scene->side + y) * scene->side + z] = voxel;
        }
    }
    scene->root = VXD_SVDAG_EMPTY;
    if (format->tracks_free) {
        put_voxels(scene, true);
    }
    put_voxels(scene, false);
}

static int32_t voxel_of(const struct scene *scene, const int32_t *voxels,
                        const int64_t at[3])
{
    for (int a = 0; a < 3; a++) {
        if (at[a] < 0 || at[a] >= scene->side) {
            return UNSET;
        }
    }
    return voxels[(at[0] * scene->side + at[1]) * scene->side + at[2]];
}

/* Checks every voxel, the rules of the encoding, and the counts of the change. */
static void check_scene(struct scene *scene, const struct vxd_svdag_edit_result *result)
{
    struct vxd_svdag_summary summary;
    struct vxd_svdag_image image;
    struct vxd_err err = {0};
    uint64_t n_occupied = 0;
    uint64_t n_added = 0;
    uint64_t n_removed = 0;
    uint64_t n_changed = 0;
    uint64_t n_freed = 0;
    size_t n_wrong = 0;

    gpu_svdag_image_open(&scene->env, scene->svdag, &image);
    for (size_t i = 0; i < scene->n; i++) {
        uint32_t value;
        unsigned state = vxd_svdag_voxel(
            &image.view, scene->root, (uint32_t)((int64_t)i / scene->side / scene->side),
            (uint32_t)((int64_t)i / scene->side % scene->side),
            (uint32_t)((int64_t)i % scene->side), &value);
        int32_t actual = state == VXD_SVDAG_UNKNOWN ? UNSET
                         : state == VXD_SVDAG_FREE  ? FREE
                                                    : (int32_t)value;
        int32_t old = scene->before[i];
        int32_t now = scene->voxels[i];

        n_wrong += actual != now;
        n_occupied += now >= 0;
        n_added += now >= 0 && old < 0;
        n_removed += now < 0 && old >= 0;
        n_changed += now >= 0 && old >= 0 && now != old;
        n_freed += now == FREE && old != FREE;
    }
    gpu_svdag_image_close(&scene->env, &image);
    CHECK_INT(n_wrong, 0);
    CHECK_INT(result->n_added, n_added);
    CHECK_INT(result->n_removed, n_removed);
    CHECK_INT(result->n_changed, n_changed);
    CHECK_INT(result->n_freed, n_freed);
    CHECK_INT(
        vxd_svdag_verify(scene->env.queue, scene->svdag, scene->root, &summary, &err),
        VXD_OK);
    CHECK_INT(summary.n_occupied, n_occupied);
}

/* Copies ---------------------------------------------------------------------------------- */

/* The k-th of the 48 signed permutations. */
static void matrix_of(int k, int8_t matrix[3][3])
{
    static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                     {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};

    memset(matrix, 0, 9);
    for (int i = 0; i < 3; i++) {
        matrix[i][orders[k / 8][i]] = (k >> i & 1) != 0 ? -1 : 1;
    }
}

static void copy_grid(struct scene *scene, const struct vxd_svdag_op *op)
{
    int64_t p[3];

    memcpy(scene->before, scene->voxels, scene->n * sizeof *scene->voxels);
    for (p[0] = 0; p[0] < scene->side; p[0]++) {
        for (p[1] = 0; p[1] < scene->side; p[1]++) {
            for (p[2] = 0; p[2] < scene->side; p[2]++) {
                int64_t from[3];
                int32_t voxel;
                bool is_in = true;

                for (int i = 0; i < 3; i++) {
                    is_in = is_in && p[i] >= op->shape.low[i] / 256 &&
                            p[i] < op->shape.high[i] / 256;
                    from[i] = op->from_voxel[i];
                    for (int j = 0; j < 3; j++) {
                        from[i] += op->matrix[i][j] * (p[j] - op->shape.low[j] / 256);
                    }
                }
                voxel = voxel_of(scene, scene->before, from);
                if (is_in && (op->copy_empty || voxel >= 0)) {
                    scene->voxels[(p[0] * scene->side + p[1]) * scene->side + p[2]] =
                        voxel;
                }
            }
        }
    }
}

static void random_copy(const struct scene *scene, int k, uint64_t *state,
                        struct vxd_svdag_op *op)
{
    bool is_aligned = gpu_random(state) % 4 == 0;

    *op = (struct vxd_svdag_op){.action = VXD_SVDAG_COPY,
                                .shape = {.kind = VXD_SVDAG_BOX},
                                .copy_empty = gpu_random(state) % 2 == 0};
    matrix_of(k, op->matrix);
    for (int a = 0; a < 3; a++) {
        int64_t low = (int64_t)(gpu_random(state) % (uint64_t)(scene->side + 8)) - 8;
        int64_t size = (int64_t)(gpu_random(state) % (uint64_t)(scene->side + 8));
        int64_t from =
            (int64_t)(gpu_random(state) % (uint64_t)(2 * scene->side)) - scene->side / 2;

        op->shape.low[a] = (is_aligned ? low & ~7 : low) * 256;
        op->shape.high[a] = op->shape.low[a] + (is_aligned ? size & ~7 : size) * 256;
        op->from_voxel[a] = is_aligned ? from & ~7 : from;
    }
}

static void copy_cases(struct gpu_env *env, const struct vxd_svdag_format *format,
                       int n_cases, uint64_t seed)
{
    uint64_t state = seed;
    struct scene scene;

    open_scene(&scene, env, format);
    for (int k = 0; k < vxd_test_rounds(n_cases); k++) {
        struct vxd_svdag_edit_result result;
        struct vxd_svdag_op op;

        if (k % 6 == 0) {
            fill_randomly(&scene, &state);
        }
        random_copy(&scene, k % 48, &state, &op);
        copy_grid(&scene, &op);
        edit(&scene, &op, 1, &result);
        check_scene(&scene, &result);
    }
    close_scene(&scene);
}

static void every_rotation(struct gpu_env *env)
{
    for (int f = 0; f < N_FORMATS; f++) {
        copy_cases(env, &formats[f], 576, (uint64_t)f);
    }
}

static void test_copy_of_every_turn_and_mirror_is_exact(void)
{
    gpu_each_backend(every_rotation);
}

static void larger_copies(struct gpu_env *env)
{
    const struct vxd_svdag_format middle = {5, 4, true};
    const struct vxd_svdag_format large = {6, 8, false};
    const struct vxd_svdag_format huge = {7, 0, false};

    copy_cases(env, &middle, 96, 11);
    copy_cases(env, &large, 12, 12);
    copy_cases(env, &huge, 3, 13);
}

static void test_copy_in_larger_scenes_is_exact(void)
{
    gpu_each_backend(larger_copies);
}

static void far_copies(struct gpu_env *env)
{
    const struct vxd_svdag_format format = {5, 4, true};
    const int64_t far = (int64_t)1 << 31;
    struct vxd_svdag_op op = {
        .action = VXD_SVDAG_COPY,
        .shape = {.kind = VXD_SVDAG_BOX, .high = {16 * 256, 32 * 256, 32 * 256}},
        .from_voxel = {far, -far, far},
        .copy_empty = true};
    struct vxd_svdag_edit_result result;
    uint64_t state = 5;
    struct scene scene;

    open_scene(&scene, env, &format);
    fill_randomly(&scene, &state);
    matrix_of(13, op.matrix);
    copy_grid(&scene, &op);
    edit(&scene, &op, 1, &result);
    check_scene(&scene, &result);
    close_scene(&scene);
}

static void test_copy_from_far_outside_is_empty(void)
{
    gpu_each_backend(far_copies);
}

/* Erosion and dilation --------------------------------------------------------------------- */

static wide dot(const int64_t a[3], const int64_t b[3])
{
    return (wide)a[0] * b[0] + (wide)a[1] * b[1] + (wide)a[2] * b[2];
}

static bool is_in_shape(const struct vxd_svdag_shape *shape, const int64_t p[3])
{
    int64_t c[3] = {256 * p[0] + 128, 256 * p[1] + 128, 256 * p[2] + 128};
    int64_t n[3] = {shape->n[0], shape->n[1], shape->n[2]};
    int64_t v[3] = {c[0] - shape->a[0], c[1] - shape->a[1], c[2] - shape->a[2]};
    int64_t d[3] = {shape->b[0] - shape->a[0], shape->b[1] - shape->a[1],
                    shape->b[2] - shape->a[2]};
    int64_t w[3] = {c[0] - shape->b[0], c[1] - shape->b[1], c[2] - shape->b[2]};
    wide square = (wide)shape->r * shape->r;
    int64_t r;

    switch (shape->kind) {
    case VXD_SVDAG_BOX:
        return c[0] >= shape->low[0] && c[0] < shape->high[0] && c[1] >= shape->low[1] &&
               c[1] < shape->high[1] && c[2] >= shape->low[2] && c[2] < shape->high[2];
    case VXD_SVDAG_BALL:
        return dot(v, v) <= square;
    case VXD_SVDAG_CAPSULE:
        return dot(v, d) <= 0 ? dot(v, v) <= square
               : dot(v, d) >= dot(d, d)
                   ? dot(w, w) <= square
                   : dot(v, v) * dot(d, d) - dot(v, d) * dot(v, d) <= square * dot(d, d);
    case VXD_SVDAG_HALF_SPACE:
        return dot(n, c) <= shape->d;
    default: /* the noise function itself is tested elsewhere */
        r = shape->r +
            vxd_svdag_noise(shape->seed, shape->cell_bits, shape->amplitude, c);
        return r >= 0 && dot(v, v) <= (wide)r * r;
    }
}

static void morph_grid(struct scene *scene, const struct vxd_svdag_op *op)
{
    int64_t p[3];

    memcpy(scene->before, scene->voxels, scene->n * sizeof *scene->voxels);
    for (size_t i = 0; i < scene->n; i++) {
        int32_t first = UNSET;
        int n = 0;

        p[0] = (int64_t)i / scene->side / scene->side;
        p[1] = (int64_t)i / scene->side % scene->side;
        p[2] = (int64_t)i % scene->side;
        for (int k = 0; k < 6; k++) {
            int64_t q[3] = {p[0], p[1], p[2]};
            int32_t voxel;

            q[k / 2] += k % 2 == 0 ? -1 : 1;
            voxel = voxel_of(scene, scene->before, q);
            first = first < 0 && voxel >= 0 ? voxel : first;
            n += voxel >= 0;
        }
        if (!is_in_shape(&op->shape, p)) {
            continue;
        }
        if (op->action == VXD_SVDAG_ERODE && scene->before[i] >= 0 && n < op->threshold) {
            scene->voxels[i] = UNSET;
        } else if (op->action == VXD_SVDAG_DILATE && scene->before[i] < 0 &&
                   n >= op->threshold) {
            scene->voxels[i] = first;
        }
    }
}

static void random_morph(const struct scene *scene, int k, uint64_t *state,
                         struct vxd_svdag_op *op)
{
    const uint64_t span = (uint64_t)scene->side * 256;

    *op = (struct vxd_svdag_op){
        .action = k % 2 == 0 ? VXD_SVDAG_ERODE : VXD_SVDAG_DILATE,
        .threshold = 1 + (int)(gpu_random(state) % 6),
        .shape = {.kind = (enum vxd_svdag_shape_kind)(k / 2 % 5),
                  .r = (int64_t)(gpu_random(state) % (span / 2)),
                  .amplitude = (int64_t)(gpu_random(state) % (span / 8)),
                  .cell_bits = (int)(gpu_random(state) % 5),
                  .seed = (uint32_t)gpu_random(state),
                  .n = {1, 0, 0}}};
    for (int a = 0; a < 3; a++) {
        op->shape.a[a] = (int64_t)(gpu_random(state) % span);
        op->shape.b[a] = (int64_t)(gpu_random(state) % span);
        op->shape.low[a] = (int64_t)(gpu_random(state) % span) - (int64_t)span / 8;
        op->shape.high[a] = op->shape.low[a] + (int64_t)(gpu_random(state) % span);
        op->shape.n[a] += (int32_t)(gpu_random(state) % 200) - 100;
        op->shape.d += op->shape.n[a] * op->shape.a[a];
    }
    if (op->shape.n[0] == 0 && op->shape.n[1] == 0 && op->shape.n[2] == 0) {
        op->shape.n[0] = 1;
    }
    if (gpu_random(state) % 3 == 0) { /* the whole scene */
        op->shape = (struct vxd_svdag_shape){
            .kind = VXD_SVDAG_BOX, .high = {(int64_t)span, (int64_t)span, (int64_t)span}};
    }
}

static void morph_cases(struct gpu_env *env, const struct vxd_svdag_format *format,
                        int n_cases, uint64_t seed)
{
    uint64_t state = seed;
    struct scene scene;

    open_scene(&scene, env, format);
    for (int k = 0; k < vxd_test_rounds(n_cases); k++) {
        struct vxd_svdag_edit_result result;
        struct vxd_svdag_op op;

        if (k % 6 == 0) {
            fill_randomly(&scene, &state);
        }
        random_morph(&scene, k, &state, &op);
        morph_grid(&scene, &op);
        edit(&scene, &op, 1, &result);
        check_scene(&scene, &result);
    }
    close_scene(&scene);
}

static void every_shape(struct gpu_env *env)
{
    for (int f = 0; f < N_FORMATS; f++) {
        morph_cases(env, &formats[f], 600, (uint64_t)f);
    }
}

static void test_morphology_of_every_shape_is_exact(void)
{
    gpu_each_backend(every_shape);
}

static void larger_morphology(struct gpu_env *env)
{
    const struct vxd_svdag_format middle = {5, 16, true};
    const struct vxd_svdag_format large = {6, 4, false};
    const struct vxd_svdag_format huge = {7, 0, true};

    morph_cases(env, &middle, 90, 21);
    morph_cases(env, &large, 20, 22);
    morph_cases(env, &huge, 4, 23);
}

static void test_morphology_in_larger_scenes_is_exact(void)
{
    gpu_each_backend(larger_morphology);
}

/* Operations of one list: each sees the result of the previous one. */
static void one_list(struct gpu_env *env)
{
    const struct vxd_svdag_format format = {5, 4, true};
    uint64_t state = 77;
    struct scene scene;

    open_scene(&scene, env, &format);
    for (int round = 0; round < 10; round++) {
        struct vxd_svdag_edit_result result;
        struct vxd_svdag_op ops[6];
        int32_t *first = gpu_alloc(scene.n * sizeof *first);

        fill_randomly(&scene, &state);
        memcpy(first, scene.voxels, scene.n * sizeof *first);
        for (int k = 0; k < 6; k++) {
            if (k % 2 == 0) {
                random_copy(&scene, (int)(gpu_random(&state) % 48), &state, &ops[k]);
                copy_grid(&scene, &ops[k]);
            } else {
                random_morph(&scene, round + k, &state, &ops[k]);
                morph_grid(&scene, &ops[k]);
            }
        }
        memcpy(scene.before, first, scene.n * sizeof *first);
        free(first);
        edit(&scene, ops, 6, &result);
        check_scene(&scene, &result);
    }
    close_scene(&scene);
}

static void test_copies_and_morphology_in_one_list_follow_each_other(void)
{
    gpu_each_backend(one_list);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_copy_of_every_turn_and_mirror_is_exact),
    VXD_TEST(test_copy_in_larger_scenes_is_exact),
    VXD_TEST(test_copy_from_far_outside_is_empty),
    VXD_TEST(test_morphology_of_every_shape_is_exact),
    VXD_TEST(test_morphology_in_larger_scenes_is_exact),
    VXD_TEST(test_copies_and_morphology_in_one_list_follow_each_other),
};

VXD_TEST_MAIN(tests)
