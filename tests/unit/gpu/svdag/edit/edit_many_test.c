// SPDX-License-Identifier: Apache-2.0
/* Edits of more operations than one batch takes, which the CPU sorts into an octree of
 * operations: against a plain grid, and against the same operations in separate edits. */
#include "tests/support/test.h"

#include "gpu/svdag/edit/shapes_editor.h"
#include "tests/support/svdag/svdag_grid.h"
#include "tests/support/svdag/svdag_run.h"
#include "tests/support/svdag/svdag_scene.h"

enum {
    MAX_OPS = 3000,
    MAX_LISTS = 60
};

struct many {
    struct vxd_svdag_op ops[MAX_OPS];
    size_t n;
    struct gpu_voxel_list lists[MAX_LISTS];
    int n_lists;
};

static struct vxd_svdag *make_svdag(struct gpu_env *env,
                                    const struct vxd_svdag_format *format)
{
    struct vxd_svdag_spec spec = {.format = *format, .store = gpu_svdag_store(format)};
    struct vxd_svdag *svdag = NULL;

    if (vxd_svdag_create(env->queue, &spec, &svdag, NULL) != VXD_OK) {
        exit(EXIT_FAILURE);
    }
    return svdag;
}

static int64_t between(uint64_t *seed, int64_t low, int64_t high)
{
    return low + (int64_t)(gpu_random(seed) % (uint64_t)(high - low + 1));
}

static void random_voxels(struct gpu_voxel_list *list,
                          const struct vxd_svdag_format *format, uint64_t *seed)
{
    size_t n = (size_t)1 << 3 * format->depth;
    uint8_t *flags = gpu_alloc(n);
    uint16_t *values = gpu_alloc(n * sizeof *values);

    memset(flags, 0, n);
    for (size_t i = gpu_random(seed) % n; i < n; i += 1 + gpu_random(seed) % 200) {
        flags[i] = 1;
        values[i] = (uint16_t)(gpu_random(seed) % vxd_svdag_n_materials(format));
    }
    gpu_voxel_list_make(list, format->depth, flags, values);
    free(flags);
    free(values);
}

/* A random operation: a shape of at most r_most voxels anywhere, sometimes a plane, or a
 * list if more are allowed. */
static void random_op(struct many *many, struct vxd_svdag_op *op,
                      const struct vxd_svdag_format *format, int64_t r_most,
                      int max_lists, uint64_t *seed)
{
    static const enum vxd_svdag_shape_kind kinds[] = {
        VXD_SVDAG_BOX, VXD_SVDAG_BALL, VXD_SVDAG_CAPSULE, VXD_SVDAG_NOISE_BALL};
    struct vxd_svdag_shape *shape = &op->shape;
    int64_t side = ((int64_t)1 << format->depth) * VXD_SVDAG_UNIT;
    int64_t r = r_most * VXD_SVDAG_UNIT;

    *op = (struct vxd_svdag_op){
        .action = (enum vxd_svdag_action)(gpu_random(seed) % (VXD_SVDAG_REPLACE + 1)),
        .value = (uint32_t)between(seed, 0, vxd_svdag_n_materials(format) > 3 ? 3 : 0)};
    if (op->action == VXD_SVDAG_SET_FREE && !format->tracks_free) {
        op->action = VXD_SVDAG_FILL;
    }
    shape->kind = kinds[gpu_random(seed) % 4];
    for (int axis = 0; axis < 3; axis++) {
        shape->a[axis] = between(seed, -r, side + r);
        shape->b[axis] = shape->a[axis] + between(seed, -r, r);
        shape->low[axis] = shape->a[axis];
        shape->high[axis] = shape->a[axis] + between(seed, 0, 2 * r);
    }
    shape->r = between(seed, 0, r);
    shape->amplitude = between(seed, 0, r / 4);
    shape->cell_bits = (int)between(seed, 0, 4);
    shape->seed = (uint32_t)gpu_random(seed);
    if (gpu_random(seed) % 100 == 0) {
        shape->kind = VXD_SVDAG_HALF_SPACE;
        shape->n[0] = (int32_t)between(seed, 1, 9);
        shape->n[2] = (int32_t)between(seed, -9, 9);
        shape->d = between(seed, 0, side) / 8;
    } else if (many->n_lists < max_lists && gpu_random(seed) % 20 == 0) {
        shape->kind = VXD_SVDAG_VOXELS;
        random_voxels(&many->lists[many->n_lists], format, seed);
        shape->voxels = many->lists[many->n_lists++].voxels;
    }
}

static void make_ops(struct many *many, const struct vxd_svdag_format *format, size_t n,
                     int64_t r_most, int max_lists, uint64_t *seed)
{
    many->n_lists = 0;
    for (many->n = 0; many->n < n; many->n++) {
        random_op(many, &many->ops[many->n], format, r_most, max_lists, seed);
    }
}

static void free_ops(struct many *many)
{
    for (int i = 0; i < many->n_lists; i++) {
        gpu_voxel_list_free(&many->lists[i]);
    }
}

/* Whether an octree of operations holds all of them; this decides which algorithm the CPU
 * uses. */
static bool fits(struct vxd_svdag *svdag, const struct many *many)
{
    struct vxd_svdag_editor editor;
    struct vxd_svdag_op_octree *octree = NULL;
    bool does;

    CHECK_INT(
        vxd_svdag_op_octree_begin(svdag, many->ops, many->n, &octree, &editor, NULL),
        VXD_OK);
    does = octree != NULL;
    vxd_svdag_op_octree_end(octree);
    return does;
}

static void check_grid(struct gpu_env *env, const struct vxd_svdag_format *format,
                       struct many *many, int *n_fit)
{
    static const int most_lists[4] = {0, 3, 6, MAX_LISTS};
    struct vxd_svdag *svdag = make_svdag(env, format);
    struct gpu_svdag_grid before;
    struct gpu_svdag_grid after;
    uint32_t root = VXD_SVDAG_EMPTY;
    uint64_t seed = (uint64_t)format->material_bits * 2 + format->tracks_free + 1;

    gpu_svdag_grid_make(&before, format);
    gpu_svdag_grid_make(&after, format);
    for (int i = 0; i < vxd_test_rounds(16); i++) {
        struct vxd_svdag_edit_result result = {0};
        struct vxd_svdag_edit_result want = {0};

        /* With the largest number of operations too many meet in one place. */
        make_ops(many, format, 65 + gpu_random(&seed) % (i % 8 == 7 ? 2000 : 400),
                 1 + i % 8, most_lists[i / 2 % 4], &seed);
        gpu_svdag_grid_edit(&after, many->ops, many->n);
        gpu_svdag_grid_change(&before, &after, &want);
        CHECK_INT(gpu_svdag_edit(env, svdag, root, many->ops, many->n, &result, NULL),
                  VXD_OK);
        CHECK_INT(result.n_added, want.n_added);
        CHECK_INT(result.n_removed, want.n_removed);
        CHECK_INT(result.n_changed, want.n_changed);
        CHECK_INT(result.n_freed, want.n_freed);
        if (!gpu_is_cuda(env)) {
            CHECK_INT(result.root, gpu_svdag_grid_put(&after, svdag));
            *n_fit += fits(svdag, many);
        }
        root = result.root;
        gpu_svdag_grid_copy(&before, &after);
        free_ops(many);
    }
    gpu_svdag_grid_free(&before);
    gpu_svdag_grid_free(&after);
    vxd_svdag_destroy(env->queue, svdag);
}

static void many_operations(struct gpu_env *env)
{
    static const struct vxd_svdag_format formats[] = {
        {5, 0, false}, {5, 0, true}, {5, 4, true}, {5, 8, false}, {5, 16, true}};
    struct many *many = gpu_alloc(sizeof *many);
    int n_fit = 0;

    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        check_grid(env, &formats[i], many, &n_fit);
    }
    if (!gpu_is_cuda(env) && vxd_test_rounds(16) == 16) {
        CHECK(n_fit > 60);
        CHECK(n_fit < 80); /* of 80: both algorithms were used */
    }
    free(many);
}

static void test_edit_of_many_operations_gives_the_voxels_of_a_grid(void)
{
    gpu_each_backend(many_operations);
}

/* In one edit and in edits of 64 operations: the roots are equal. */
static void check_batches(struct gpu_env *env, const struct vxd_svdag_format *format,
                          const struct many *many)
{
    struct vxd_svdag *svdag = make_svdag(env, format);
    struct vxd_svdag_edit_result at_once;
    struct vxd_svdag_edit_result part = {.root = VXD_SVDAG_EMPTY};

    for (size_t k = 0; k < many->n; k += 64) {
        size_t n = many->n - k < 64 ? many->n - k : 64;

        CHECK_INT(gpu_svdag_edit(env, svdag, part.root, many->ops + k, n, &part, NULL),
                  VXD_OK);
    }
    CHECK(fits(svdag, many));
    CHECK_INT(
        gpu_svdag_edit(env, svdag, VXD_SVDAG_EMPTY, many->ops, many->n, &at_once, NULL),
        VXD_OK);
    CHECK_INT(at_once.root, part.root);
    vxd_svdag_destroy(env->queue, svdag);
}

static void thousands(struct gpu_env *env)
{
    static const struct vxd_svdag_format formats[] = {{10, 4, true}, {10, 0, false}};
    struct many *many = gpu_alloc(sizeof *many);
    uint64_t seed = 3;

    for (size_t i = 0; i < 2; i++) {
        make_ops(many, &formats[i], (size_t)vxd_test_rounds(MAX_OPS), 30, 0, &seed);
        check_batches(env, &formats[i], many);
    }
    free(many);
}

static void test_edit_of_thousands_of_operations_is_that_of_each_64_in_turn(void)
{
    gpu_each_backend(thousands);
}

/* Leaves around a place, sparser with their distance in Morton order, with or without
 * values. */
static void scattered_voxels(struct gpu_voxel_list *list,
                             const struct vxd_svdag_format *format, size_t n,
                             uint64_t *seed)
{
    const uint64_t n_codes = (uint64_t)1 << 3 * (format->depth - 2);
    const uint64_t most_gap = (uint64_t)1 << gpu_random(seed) % 8;
    uint64_t code = gpu_random(seed) % (n_codes / 2);
    bool has_values = gpu_random(seed) % 2 == 0;
    uint32_t n_values = 0;

    *list = (struct gpu_voxel_list){.codes = gpu_alloc(n * sizeof(uint64_t)),
                                    .masks = gpu_alloc(n * sizeof(uint64_t)),
                                    .first_value = gpu_alloc(n * sizeof(uint32_t)),
                                    .values = gpu_alloc(64 * n * sizeof(uint16_t))};
    for (; list->voxels.n < n && code < n_codes;
         code += 1 + gpu_random(seed) % most_gap) {
        size_t i = list->voxels.n++;

        list->codes[i] = code;
        list->masks[i] = gpu_random(seed) % 3 == 0 ? ~(uint64_t)0 : gpu_random(seed) | 1;
        list->first_value[i] = n_values;
        n_values += (uint32_t)vxd_svdag_popc(list->masks[i]);
    }
    for (uint32_t i = 0; i < n_values; i++) {
        list->values[i] = (uint16_t)(gpu_random(seed) % vxd_svdag_n_materials(format));
    }
    list->voxels.codes = list->codes;
    list->voxels.masks = list->masks;
    list->voxels.first_value = has_values ? list->first_value : NULL;
    list->voxels.values = has_values ? list->values : NULL;
}

/* Scans between brush strokes: lists that overlap many leaves of the octree of
 * operations, each of which gets an index of the list. */
static void many_lists(struct gpu_env *env)
{
    static const struct vxd_svdag_format formats[] = {
        {10, 4, true}, {10, 0, true}, {10, 8, false}};
    struct many *many = gpu_alloc(sizeof *many);
    uint64_t seed = 11;

    for (size_t i = 0; i < 3; i++) {
        make_ops(many, &formats[i], 200, 30, 0, &seed);
        for (size_t k = 3; k < many->n; k += 5) {
            struct vxd_svdag_shape *shape = &many->ops[k].shape;

            scattered_voxels(&many->lists[many->n_lists], &formats[i],
                             (size_t)vxd_test_rounds(20000), &seed);
            shape->kind = VXD_SVDAG_VOXELS;
            shape->voxels = many->lists[many->n_lists++].voxels;
        }
        check_batches(env, &formats[i], many);
        free_ops(many);
    }
    free(many);
}

static void test_edit_of_many_lists_is_that_of_each_in_turn(void)
{
    gpu_each_backend(many_lists);
}

/* Different leaves of the octree of operations have equal cubes, each cut by the first
 * operation of its leaf. */
static void equal_cubes(struct gpu_env *env)
{
    static const struct vxd_svdag_format format = {7, 4, false};
    struct many *many = gpu_alloc(sizeof *many);

    many->n = 1000;
    for (int i = 0; i < 1000; i++) {
        const int place[3] = {i % 10, i / 10 % 10, i / 100};
        struct vxd_svdag_op *op = &many->ops[i];

        *op = (struct vxd_svdag_op){.action = VXD_SVDAG_FILL, .value = (uint32_t)i % 7};
        op->shape.kind = VXD_SVDAG_BOX;
        for (int axis = 0; axis < 3; axis++) {
            op->shape.low[axis] = (int64_t)(8 * place[axis] + 3) * VXD_SVDAG_UNIT;
            op->shape.high[axis] = op->shape.low[axis] + (int64_t)2 * VXD_SVDAG_UNIT;
        }
    }
    check_batches(env, &format, many);
    free(many);
}

static void test_edit_that_cuts_many_places_alike_keeps_their_materials(void)
{
    gpu_each_backend(equal_cubes);
}

/* All operations are in one place: no leaf of the octree is small enough to separate
 * them. */
static void one_place(struct gpu_env *env)
{
    static const struct vxd_svdag_format format = {8, 4, false};
    struct vxd_svdag *svdag = make_svdag(env, &format);
    struct many *many = gpu_alloc(sizeof *many);
    struct vxd_svdag_edit_result result;

    many->n = 200;
    for (size_t i = 0; i < many->n; i++) {
        many->ops[i] = (struct vxd_svdag_op){
            .action = VXD_SVDAG_PAINT,
            .shape = {.kind = VXD_SVDAG_BOX, .high = {1280, 1280, 1280}},
            .value = (uint32_t)i % 15};
    }
    many->ops[0].action = VXD_SVDAG_FILL;
    CHECK(!fits(svdag, many));
    CHECK_INT(
        gpu_svdag_edit(env, svdag, VXD_SVDAG_EMPTY, many->ops, many->n, &result, NULL),
        VXD_OK);
    CHECK_INT(result.n_added, 125);
    CHECK_INT(result.n_changed, 0);
    for (size_t i = 1; i < many->n; i++) {
        many->ops[i].action =
            VXD_SVDAG_FILL; /* the last one covers the others except at its edge */
        many->ops[i].shape.high[0] = VXD_SVDAG_UNIT * 8 * (int64_t)(i % 2 + 1);
        many->ops[i].shape.high[1] = VXD_SVDAG_UNIT * 8;
        many->ops[i].shape.high[2] = VXD_SVDAG_UNIT * 8;
    }
    CHECK(fits(svdag, many));
    CHECK_INT(
        gpu_svdag_edit(env, svdag, VXD_SVDAG_EMPTY, many->ops, many->n, &result, NULL),
        VXD_OK);
    CHECK_INT(result.n_added, 1024);
    free(many);
    vxd_svdag_destroy(env->queue, svdag);
}

static void test_edit_of_many_operations_in_one_place_goes_in_passes(void)
{
    gpu_each_backend(one_place);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_edit_of_many_operations_gives_the_voxels_of_a_grid),
    VXD_TEST(test_edit_of_thousands_of_operations_is_that_of_each_64_in_turn),
    VXD_TEST(test_edit_of_many_lists_is_that_of_each_in_turn),
    VXD_TEST(test_edit_that_cuts_many_places_alike_keeps_their_materials),
    VXD_TEST(test_edit_of_many_operations_in_one_place_goes_in_passes),
};

VXD_TEST_MAIN(tests)
