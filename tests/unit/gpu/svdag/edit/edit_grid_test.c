// SPDX-License-Identifier: Apache-2.0
/* Scenes of 256 voxels a side under long chains of random edit lists, against a plain
 * grid. The counts of every list are compared; all voxels and nodes are compared at
 * intervals.
 *
 * VOXELD_TEST_EDIT_LISTS is the number of lists in a chain: few by default, thousands for
 * a thorough run. VOXELD_TEST_SVDAG_STORE selects the store, as in other tests. */
#include "tests/support/test.h"

#include "tests/support/svdag/svdag_grid.h"
#include "tests/support/svdag/svdag_run.h"
#include "tests/support/svdag/svdag_scene.h"

enum {
    DEPTH = 8,
    SIDE = 1 << DEPTH,
    FEW_LISTS = 6,
    FEW_ALONE = 12,
    MAX_OPS = 6,
    COMPARED = 25 /* lists from one comparison of all voxels to the next */
};

static const struct vxd_svdag_format formats[] = {
    {DEPTH, 0, false}, {DEPTH, 4, true}, {DEPTH, 16, true}};

static int64_t between(uint64_t *seed, int64_t low, int64_t high)
{
    return low + (int64_t)(gpu_random(seed) % (uint64_t)(high - low + 1));
}

/* A random coordinate on borders of nodes and voxels, on centres, next to them, or
 * anywhere. */
static int64_t coordinate(uint64_t *seed)
{
    int64_t c = between(seed, -16, SIDE + 16) * VXD_SVDAG_UNIT;

    switch (gpu_random(seed) % 4) {
    case 0:
        return c;
    case 1:
        return c + VXD_SVDAG_UNIT / 2 + between(seed, -1, 1);
    case 2:
        return c - c % ((int64_t)16 * VXD_SVDAG_UNIT);
    default:
        return c + between(seed, 0, VXD_SVDAG_UNIT - 1);
    }
}

/* A random size, mostly small, sometimes half the scene. */
static void random_shape(struct vxd_svdag_shape *shape, uint64_t *seed)
{
    static const enum vxd_svdag_shape_kind kinds[] = {
        VXD_SVDAG_BOX,  VXD_SVDAG_BALL,    VXD_SVDAG_NOISE_BALL, VXD_SVDAG_BOX,
        VXD_SVDAG_BALL, VXD_SVDAG_CAPSULE, VXD_SVDAG_NOISE_BALL, VXD_SVDAG_HALF_SPACE};
    int64_t size = between(seed, 1, gpu_random(seed) % 24 == 0 ? SIDE / 2 : 28);

    *shape = (struct vxd_svdag_shape){0};
    shape->kind = kinds[gpu_random(seed) % (gpu_random(seed) % 16 == 0 ? 8 : 7)];
    for (int axis = 0; axis < 3; axis++) {
        shape->low[axis] = coordinate(seed);
        shape->high[axis] = shape->low[axis] + between(seed, 1, size * VXD_SVDAG_UNIT);
        shape->a[axis] = coordinate(seed);
        shape->b[axis] =
            shape->a[axis] + between(seed, -size * VXD_SVDAG_UNIT, size * VXD_SVDAG_UNIT);
        shape->n[axis] = (int32_t)between(seed, -1000, 1000);
    }
    shape->n[2] += shape->n[0] == 0 && shape->n[1] == 0 && shape->n[2] == 0;
    shape->d = (int64_t)shape->n[0] * shape->a[0] + (int64_t)shape->n[1] * shape->a[1] +
               (int64_t)shape->n[2] * shape->a[2];
    shape->r = between(seed, 0, size * VXD_SVDAG_UNIT / 2);
    shape->seed = (uint32_t)gpu_random(seed);
    shape->amplitude = between(seed, 0, size * VXD_SVDAG_UNIT / 8);
    shape->cell_bits = (int)between(seed, 0, 6);
}

static void random_op(struct vxd_svdag_op *op, const struct vxd_svdag_format *format,
                      uint64_t *seed)
{
    uint32_t n_materials = vxd_svdag_n_materials(format);
    uint32_t n_used = n_materials < 5 ? n_materials : 5;
    uint64_t which = gpu_random(seed) % 24;

    *op = (struct vxd_svdag_op){.threshold = (int)between(seed, 1, 6)};
    random_shape(&op->shape, seed);
    op->value = (uint32_t)(gpu_random(seed) % n_used);
    op->from = (uint32_t)(gpu_random(seed) % n_used);
    op->action = which < 10   ? VXD_SVDAG_FILL
                 : which < 15 ? VXD_SVDAG_ERASE
                              : (enum vxd_svdag_action)(which % 8);
    if (op->action == VXD_SVDAG_SET_FREE && !format->tracks_free) {
        op->action = VXD_SVDAG_FILL;
    }
    if (op->action == VXD_SVDAG_COPY) {
        int order = (int)(gpu_random(seed) % 3);

        op->shape.kind = VXD_SVDAG_BOX;
        op->copy_empty = gpu_random(seed) % 2 == 0;
        for (int i = 0; i < 3; i++) {
            op->shape.low[i] -= op->shape.low[i] % VXD_SVDAG_UNIT;
            op->shape.high[i] -= op->shape.high[i] % VXD_SVDAG_UNIT;
            op->from_voxel[i] = between(seed, 0, SIDE);
            op->matrix[i][(i + order) % 3] = gpu_random(seed) % 2 == 0 ? 1 : -1;
        }
    }
}

/* Operations that have edit kernels of their own when they are alone: a ball that
 * overwrites, of any size up to the scene's, with equal or mixed leaves; or a copy,
 * within one cube and across cubes. */
static void random_op_alone(struct vxd_svdag_op *op,
                            const struct vxd_svdag_format *format, uint64_t *seed)
{
    static const enum vxd_svdag_action actions[] = {VXD_SVDAG_FILL, VXD_SVDAG_FILL,
                                                    VXD_SVDAG_ERASE, VXD_SVDAG_SET_FREE,
                                                    VXD_SVDAG_COPY};

    random_op(op, format, seed);
    op->action = actions[gpu_random(seed) % 5];
    if (op->action == VXD_SVDAG_SET_FREE && !format->tracks_free) {
        op->action = VXD_SVDAG_FILL;
    }
    op->shape.kind = op->action == VXD_SVDAG_COPY ? VXD_SVDAG_BOX : VXD_SVDAG_BALL;
    op->shape.r = gpu_random(seed) % 3 == 0
                      ? between(seed, 0, (int64_t)SIDE * VXD_SVDAG_UNIT)
                      : between(seed, 0, (int64_t)20 * VXD_SVDAG_UNIT);
    if (op->action == VXD_SVDAG_COPY) {
        for (int i = 0; i < 3; i++) {
            op->shape.low[i] -= op->shape.low[i] % VXD_SVDAG_UNIT;
            op->shape.high[i] -= op->shape.high[i] % VXD_SVDAG_UNIT;
            op->shape.high[i] += VXD_SVDAG_UNIT;
            op->from_voxel[i] = between(seed, 0, SIDE);
            op->matrix[0][i] = i == 0;
            op->matrix[1][i] = i == 1;
            op->matrix[2][i] = i == 2;
        }
    }
}

/* Checks that the scene's voxels and nodes are those of the grid, inserted into another
 * store. */
static bool is_grid(struct gpu_env *env, const struct vxd_svdag *svdag, uint32_t root,
                    const struct gpu_svdag_grid *grid)
{
    struct vxd_svdag_spec spec = {.format = grid->format};
    struct vxd_svdag_summary got = {0};
    struct vxd_svdag_summary want = {0};
    struct vxd_svdag *other;
    struct gpu_env cpu;

    gpu_env_create(&cpu, VXD_BACKEND_CPU, 1, 0, 0);
    if (vxd_svdag_create(cpu.queue, &spec, &other, NULL) != VXD_OK) {
        gpu_env_destroy(&cpu);
        return false;
    }
    CHECK_INT(vxd_svdag_verify(env->queue, svdag, root, &got, NULL), VXD_OK);
    CHECK_INT(
        vxd_svdag_verify(cpu.queue, other, gpu_svdag_grid_put(grid, other), &want, NULL),
        VXD_OK);
    vxd_svdag_destroy(cpu.queue, other);
    gpu_env_destroy(&cpu);
    return memcmp(&got, &want, sizeof got) == 0;
}

static bool is_counted(const struct vxd_svdag_edit_result *got,
                       const struct vxd_svdag_edit_result *want)
{
    return got->n_added == want->n_added && got->n_removed == want->n_removed &&
           got->n_changed == want->n_changed && got->n_freed == want->n_freed;
}

/* Applies lists of operations, or single operations. */
static void run_chain(struct gpu_env *env, const struct vxd_svdag_format *format,
                      bool is_alone, int n_lists, uint64_t seed)
{
    struct vxd_svdag_spec spec = {.format = *format, .store = gpu_svdag_store(format)};
    uint32_t root = VXD_SVDAG_EMPTY;
    struct gpu_svdag_grid before;
    struct gpu_svdag_grid after;
    struct vxd_svdag *svdag;

    REQUIRE(vxd_svdag_create(env->queue, &spec, &svdag, NULL) == VXD_OK);
    gpu_svdag_grid_make(&before, format);
    gpu_svdag_grid_make(&after, format);
    for (int i = 1; i <= n_lists && vxd_test_n_failed_checks == 0; i++) {
        struct vxd_svdag_op ops[MAX_OPS];
        struct vxd_svdag_edit_result got = {0};
        struct vxd_svdag_edit_result want = {0};
        size_t n = is_alone ? 1 : 1 + gpu_random(&seed) % MAX_OPS;
        bool is_equal;

        for (size_t k = 0; k < n; k++) {
            if (is_alone) {
                random_op_alone(&ops[k], format, &seed);
            } else {
                random_op(&ops[k], format, &seed);
            }
        }
        gpu_svdag_grid_edit(&after, ops, n);
        gpu_svdag_grid_change(&before, &after, &want);
        CHECK_INT(gpu_svdag_edit(env, svdag, root, ops, n, &got, NULL), VXD_OK);
        is_equal = is_counted(&got, &want);
        root = got.root;
        if (i % COMPARED == 0 || i == n_lists) {
            is_equal = is_equal && is_grid(env, svdag, root, &after);
        }
        CHECK(is_equal);
        if (!is_equal) {
            (void)fprintf(stderr, "%s: %d bits, list %d\n", env->name,
                          format->material_bits, i);
        }
        gpu_svdag_grid_copy(&before, &after);
    }
    gpu_svdag_grid_free(&before);
    gpu_svdag_grid_free(&after);
    vxd_svdag_destroy(env->queue, svdag);
}

static int n_lists_of(int few)
{
    const char *text = getenv("VOXELD_TEST_EDIT_LISTS");

    return text != NULL ? (int)strtol(text, NULL, 10) : vxd_test_rounds(few);
}

static void chains(struct gpu_env *env)
{
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        run_chain(env, &formats[i], false, n_lists_of(FEW_LISTS), 77 + i);
    }
}

static void chains_of_operations_alone(struct gpu_env *env)
{
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        run_chain(env, &formats[i], true, n_lists_of(FEW_ALONE), 177 + i);
    }
}

static void test_edit_lists_one_after_the_other_keep_a_scene_equal_to_a_grid(void)
{
    gpu_each_backend(chains);
}

static void test_balls_and_copies_alone_keep_a_scene_equal_to_a_grid(void)
{
    gpu_each_backend(chains_of_operations_alone);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_edit_lists_one_after_the_other_keep_a_scene_equal_to_a_grid),
    VXD_TEST(test_balls_and_copies_alone_keep_a_scene_equal_to_a_grid),
};

VXD_TEST_MAIN(tests)
