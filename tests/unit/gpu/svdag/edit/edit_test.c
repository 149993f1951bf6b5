// SPDX-License-Identifier: Apache-2.0
/* Edits of scenes, against the definitions on a plain grid: equal voxels (equal roots in
 * a canonical store, equal summaries in different stores) and equal counts. */
#include "tests/support/test.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>

#include "gpu/svdag/edit/edit.h"
#include "tests/support/svdag/svdag_grid.h"
#include "tests/support/svdag/svdag_run.h"
#include "tests/support/svdag/svdag_scene.h"

enum {
    N_FORMATS = 8,
    MAX_OPS = 150,
    MAX_LISTS = 8,
    N_HEIGHTS = 40 * 40
};

static const struct vxd_svdag_format formats[N_FORMATS] = {
    {5, 0, false}, {5, 0, true}, {5, 4, false},  {5, 4, true},
    {5, 8, false}, {5, 8, true}, {5, 16, false}, {5, 16, true}};

static struct vxd_svdag *
make_svdag(struct gpu_env *env, const struct vxd_svdag_format *format, size_t max_bytes)
{
    struct vxd_svdag_spec spec = {
        .format = *format, .store = gpu_svdag_store(format), .max_bytes = max_bytes};

    return gpu_svdag_create(env, &spec);
}

static struct vxd_svdag_summary verify(struct gpu_env *env, const struct vxd_svdag *svdag,
                                       uint32_t root)
{
    struct vxd_svdag_summary summary = {0};
    struct vxd_err err = {0};

    CHECK_INT(vxd_svdag_verify(env->queue, svdag, root, &summary, &err), VXD_OK);
    CHECK_STR(err.message, "");
    return summary;
}

/* Random lists ---------------------------------------------------------------------------- */

/* Operations with the memory their shapes borrow. */
struct edit_list {
    struct vxd_svdag_op ops[MAX_OPS];
    size_t n;
    struct gpu_voxel_list lists[MAX_LISTS];
    int n_lists;
    int64_t heights[N_HEIGHTS];
};

static int64_t between(uint64_t *seed, int64_t low, int64_t high)
{
    return low + (int64_t)(gpu_random(seed) % (uint64_t)(high - low + 1));
}

/* A random coordinate, mostly near borders: on borders of voxels, on centres, and next to
 * them. */
static int64_t coordinate(uint64_t *seed, int64_t side)
{
    int64_t c = between(seed, -side / 8, side + side / 8) * VXD_SVDAG_UNIT;

    switch (gpu_random(seed) % 4) {
    case 0:
        return c;
    case 1:
        return c + VXD_SVDAG_UNIT / 2 + between(seed, -1, 1);
    case 2: /* node borders */
        return c / (8 * VXD_SVDAG_UNIT) * (8 * VXD_SVDAG_UNIT);
    default:
        return c + between(seed, 0, VXD_SVDAG_UNIT - 1);
    }
}

static void random_voxels(struct gpu_voxel_list *list,
                          const struct vxd_svdag_format *format, uint64_t *seed)
{
    size_t side = (size_t)1 << format->depth;
    size_t n = side * side * side;
    uint8_t *flags = gpu_alloc(n);
    uint16_t *values = gpu_alloc(n * sizeof *values);
    uint64_t rarity = 1 + gpu_random(seed) % 100;
    uint32_t n_materials = vxd_svdag_n_materials(format);

    memset(flags, 0, n);
    for (size_t i = gpu_random(seed) % n; i < n; i += 1 + gpu_random(seed) % rarity) {
        flags[i] = 1;
        values[i] = (uint16_t)(gpu_random(seed) % n_materials);
    }
    gpu_voxel_list_make(list, format->depth, flags, values);
    free(flags);
    free(values);
}

static void random_heights(struct edit_list *list, struct vxd_svdag_shape *shape,
                           int64_t side, uint64_t *seed)
{
    uint32_t n_x = (uint32_t)between(seed, 1, 40);
    uint32_t n_y = (uint32_t)between(seed, 1, 40);
    int64_t step = between(seed, 0, 3 * VXD_SVDAG_UNIT);

    shape->field = (struct vxd_svdag_heights){list->heights,
                                              n_x,
                                              n_y,
                                              (uint32_t)between(seed, 1, 5),
                                              between(seed, -9, side),
                                              between(seed, -9, side)};
    list->heights[0] = coordinate(seed, side);
    for (size_t i = 1; i < (size_t)n_x * n_y; i++) {
        list->heights[i] = list->heights[i - 1] + between(seed, -step, step);
    }
}

static void random_shape(struct edit_list *list, struct vxd_svdag_shape *shape,
                         const struct vxd_svdag_format *format, uint64_t *seed)
{
    int64_t side = (int64_t)1 << format->depth;

    shape->kind = (enum vxd_svdag_shape_kind)(gpu_random(seed) % 7);
    for (int i = 0; i < 3; i++) {
        shape->low[i] = coordinate(seed, side);
        shape->high[i] = shape->low[i] + coordinate(seed, side) / 2;
        shape->a[i] = coordinate(seed, side);
        shape->b[i] = coordinate(seed, side);
        shape->n[i] = (int32_t)between(seed, -1000, 1000);
    }
    shape->n[0] += shape->n[0] == 0 && shape->n[1] == 0 && shape->n[2] == 0;
    shape->d = (int64_t)shape->n[0] * shape->a[0] + (int64_t)shape->n[1] * shape->a[1] +
               (int64_t)shape->n[2] * shape->a[2];
    shape->r = between(seed, 0, side * VXD_SVDAG_UNIT / 2);
    shape->seed = (uint32_t)gpu_random(seed);
    shape->amplitude = between(seed, 0, side * VXD_SVDAG_UNIT / 8);
    shape->cell_bits = (int)between(seed, 0, 6);
    if (shape->kind == VXD_SVDAG_HEIGHTFIELD) {
        random_heights(list, shape, side, seed);
    } else if (shape->kind == VXD_SVDAG_VOXELS && list->n_lists < MAX_LISTS) {
        random_voxels(&list->lists[list->n_lists], format, seed);
        shape->voxels = list->lists[list->n_lists++].voxels;
        if (gpu_random(seed) % 2 == 0) {
            shape->voxels.first_value = NULL;
            shape->voxels.values = NULL;
        }
    } else if (shape->kind == VXD_SVDAG_VOXELS) {
        shape->kind = VXD_SVDAG_BALL;
    }
}

/* n random operations; all heightfields share the first one's grid. */
static void random_list(struct edit_list *list, const struct vxd_svdag_format *format,
                        size_t n, int n_actions, uint64_t *seed)
{
    uint32_t n_materials = vxd_svdag_n_materials(format);
    uint32_t n_used = n_materials < 5 ? n_materials : 5;
    bool has_heights = false;

    list->n_lists = 0;
    for (list->n = 0; list->n < n; list->n++) {
        struct vxd_svdag_op *op = &list->ops[list->n];

        *op = (struct vxd_svdag_op){.threshold = (int)between(seed, 1, 6)};
        do {
            random_shape(list, &op->shape, format, seed);
        } while (has_heights && op->shape.kind == VXD_SVDAG_HEIGHTFIELD);
        has_heights = has_heights || op->shape.kind == VXD_SVDAG_HEIGHTFIELD;
        op->action = (enum vxd_svdag_action)(gpu_random(seed) % (uint64_t)n_actions);
        op->value = (uint32_t)(gpu_random(seed) % n_used);
        op->from = (uint32_t)(gpu_random(seed) % n_used);
        if (gpu_random(seed) % 16 == 0) {
            op->value = n_materials - 1;
        }
        if ((op->action == VXD_SVDAG_SET_FREE && !format->tracks_free) ||
            (op->action > VXD_SVDAG_REPLACE &&
             (op->shape.kind == VXD_SVDAG_VOXELS ||
              op->shape.kind == VXD_SVDAG_HEIGHTFIELD))) {
            op->action = VXD_SVDAG_FILL;
        }
        if (op->action == VXD_SVDAG_COPY) {
            int order = (int)(gpu_random(seed) % 3);

            op->shape.kind = VXD_SVDAG_BOX;
            op->copy_empty = gpu_random(seed) % 2 == 0;
            for (int i = 0; i < 3; i++) {
                op->shape.low[i] -= op->shape.low[i] % VXD_SVDAG_UNIT;
                op->shape.high[i] -= op->shape.high[i] % VXD_SVDAG_UNIT;
                op->from_voxel[i] = between(seed, 0, (int64_t)1 << format->depth);
                op->matrix[i][(i + order) % 3] = gpu_random(seed) % 2 == 0 ? 1 : -1;
            }
        }
    }
}

static void free_list(struct edit_list *list)
{
    for (int i = 0; i < list->n_lists; i++) {
        gpu_voxel_list_free(&list->lists[i]);
    }
}

static bool same_counts(const struct vxd_svdag_edit_result *a,
                        const struct vxd_svdag_edit_result *b)
{
    return a->n_added == b->n_added && a->n_removed == b->n_removed &&
           a->n_changed == b->n_changed && a->n_freed == b->n_freed;
}

/* Applies n_edits random lists one after the other, sometimes starting from an empty or
 * uniform scene. */
static void run_random(struct gpu_env *env, const struct vxd_svdag_format *format,
                       int n_edits, size_t max_ops, int n_actions, uint64_t seed)
{
    struct vxd_svdag *svdag = make_svdag(env, format, 0);
    struct gpu_env cpu;
    struct vxd_svdag *other;
    struct edit_list *list = gpu_alloc(sizeof *list);
    struct gpu_svdag_grid before;
    struct gpu_svdag_grid after;
    uint32_t root = VXD_SVDAG_EMPTY;

    gpu_env_create(&cpu, VXD_BACKEND_CPU, 1, 0, 0);
    other = make_svdag(&cpu, format, 0);
    gpu_svdag_grid_make(&before, format);
    gpu_svdag_grid_make(&after, format);
    for (int i = 0; i < vxd_test_rounds(n_edits) && vxd_test_n_failed_checks < 10; i++) {
        struct vxd_svdag_edit_result result = {0};
        struct vxd_svdag_edit_result want = {0};
        struct vxd_err err = {0};
        bool is_equal;

        random_list(list, format, 1 + gpu_random(&seed) % max_ops, n_actions, &seed);
        gpu_svdag_grid_edit(&after, list->ops, list->n);
        gpu_svdag_grid_change(&before, &after, &want);
        CHECK_INT(gpu_svdag_edit(env, svdag, root, list->ops, list->n, &result, &err),
                  VXD_OK);
        CHECK_STR(err.message, "");
        CHECK(same_counts(&result, &want));
        is_equal = same_counts(&result, &want);
        if (!gpu_is_cuda(env)) {
            is_equal = is_equal && result.root == gpu_svdag_grid_put(&after, svdag);
        }
        if (i % 16 == 0 || gpu_is_cuda(env)) {
            struct vxd_svdag_summary a = verify(env, svdag, result.root);
            struct vxd_svdag_summary b =
                verify(&cpu, other, gpu_svdag_grid_put(&after, other));

            is_equal = is_equal && memcmp(&a, &b, sizeof a) == 0;
        }
        CHECK(is_equal);
        if (!is_equal) {
            (void)fprintf(stderr, "%s: depth %d, %d bits, edit %d of %zu operations\n",
                          env->name, format->depth, format->material_bits, i, list->n);
        }
        root = result.root;
        gpu_svdag_grid_copy(&before, &after);
        free_list(list);
    }
    gpu_svdag_grid_free(&before);
    gpu_svdag_grid_free(&after);
    free(list);
    vxd_svdag_destroy(env->queue, svdag);
    gpu_wait(env);
    vxd_svdag_destroy(cpu.queue, other);
    gpu_env_destroy(&cpu);
}

static void random_lists(struct gpu_env *env)
{
    for (int i = 0; i < N_FORMATS; i++) {
        run_random(env, &formats[i], 120, 5, VXD_SVDAG_REPLACE + 1, (uint64_t)i + 1);
    }
}

static void test_edit_random_lists_give_the_voxels_of_a_grid(void)
{
    gpu_each_backend(random_lists);
}

static void many_batches(struct gpu_env *env)
{
    for (int i = 0; i < N_FORMATS; i++) {
        run_random(env, &formats[i], 6, MAX_OPS, VXD_SVDAG_COPY + 1, (uint64_t)i + 50);
        run_random(env, &formats[i], 40, 8, VXD_SVDAG_COPY + 1, (uint64_t)i + 60);
    }
}

static void test_edit_lists_of_many_passes_count_from_first_to_last(void)
{
    gpu_each_backend(many_batches);
}

static void large_scenes(struct gpu_env *env)
{
    static const struct vxd_svdag_format large[] = {
        {6, 4, true}, {6, 0, false}, {7, 8, false}, {7, 0, true}};

    for (size_t i = 0; i < sizeof large / sizeof large[0]; i++) {
        run_random(env, &large[i], large[i].depth == 6 ? 24 : 6, 4, VXD_SVDAG_REPLACE + 1,
                   i + 100);
    }
}

static void test_edit_scenes_of_128_voxels_a_side_match_a_grid(void)
{
    gpu_each_backend(large_scenes);
}

static void test_edit_a_scene_of_256_voxels_a_side_matches_a_grid(void)
{
    static const struct vxd_svdag_format format = {8, 4, true};
    struct gpu_env env;

    gpu_env_create(&env, VXD_BACKEND_CPU, 3, 0, 0);
    run_random(&env, &format, 2, 4, VXD_SVDAG_REPLACE + 1, 1000);
    gpu_env_destroy(&env);
}

/* Cases ----------------------------------------------------------------------------------- */

static struct vxd_svdag_op box_op(enum vxd_svdag_action action, int64_t low, int64_t high,
                                  uint32_t value)
{
    struct vxd_svdag_op op = {.action = action, .value = value};

    op.shape.kind = VXD_SVDAG_BOX;
    for (int i = 0; i < 3; i++) {
        op.shape.low[i] = low * VXD_SVDAG_UNIT;
        op.shape.high[i] = high * VXD_SVDAG_UNIT;
    }
    return op;
}

static struct vxd_svdag_op ball_op(enum vxd_svdag_action action, int64_t centre,
                                   int64_t r)
{
    struct vxd_svdag_op op = {.action = action};

    op.shape.kind = VXD_SVDAG_BALL;
    for (int i = 0; i < 3; i++) {
        op.shape.a[i] = centre * VXD_SVDAG_UNIT;
    }
    op.shape.r = r * VXD_SVDAG_UNIT;
    return op;
}

/* The paper's own code ignores edits that create no leaf. */
static void aligned_boxes(struct gpu_env *env)
{
    static const struct vxd_svdag_format format = {21, 8, true};
    struct vxd_svdag *svdag = make_svdag(env, &format, 0);
    struct vxd_svdag_op fill = box_op(VXD_SVDAG_FILL, 1 << 19, 1 << 20, 7);
    struct vxd_svdag_op clear = box_op(VXD_SVDAG_ERASE, 1 << 19, 3 << 18, 0);
    struct vxd_svdag_op all = box_op(VXD_SVDAG_SET_FREE, 0, 1 << 21, 0);
    struct vxd_svdag_edit_result result;
    uint64_t n = (uint64_t)1 << 57;
    uint32_t filled;

    CHECK_INT(gpu_svdag_edit(env, svdag, VXD_SVDAG_EMPTY, &fill, 1, &result, NULL),
              VXD_OK);
    filled = result.root;
    CHECK_INT(result.n_added, n);
    CHECK_INT(verify(env, svdag, filled).n_occupied, n);
    CHECK_INT(gpu_svdag_edit(env, svdag, filled, &clear, 1, &result, NULL), VXD_OK);
    CHECK_INT(result.n_removed, n / 8);
    CHECK_INT(verify(env, svdag, result.root).n_occupied, n - n / 8);
    fill.value = 9;
    CHECK_INT(gpu_svdag_edit(env, svdag, result.root, &fill, 1, &result, NULL), VXD_OK);
    CHECK_INT(result.n_added, n / 8);
    CHECK_INT(result.n_changed, n - n / 8);
    CHECK_INT(gpu_svdag_edit(env, svdag, result.root, &all, 1, &result, NULL), VXD_OK);
    CHECK_INT(result.root, VXD_SVDAG_UNIFORM | 255);
    CHECK(result.n_freed == (uint64_t)1 << 63);
    CHECK_INT(result.n_removed, n);
    vxd_svdag_destroy(env->queue, svdag);
}

static void test_edit_node_aligned_boxes_are_not_lost(void)
{
    gpu_each_backend(aligned_boxes);
}

/* Planes through the largest scene: all cut cubes of a row are equal, so few nodes are
 * new and few cubes are visited. */
static void walls(struct gpu_env *env)
{
    static const struct vxd_svdag_format format = {VXD_SVDAG_MAX_DEPTH, 4, false};
    const int64_t side = ((int64_t)1 << VXD_SVDAG_MAX_DEPTH) * VXD_SVDAG_UNIT;
    const uint64_t n = (uint64_t)1 << VXD_SVDAG_MAX_DEPTH;
    struct vxd_svdag *svdag = make_svdag(env, &format, 0);
    struct vxd_svdag_op ops[2] = {{.shape = {.kind = VXD_SVDAG_BOX}, .value = 1},
                                  {.shape = {.kind = VXD_SVDAG_HALF_SPACE}, .value = 2}};
    struct vxd_svdag_edit_result result;

    for (int axis = 0; axis < 3; axis++) {
        ops[0].shape.low[axis] = VXD_SVDAG_UNIT;
        ops[0].shape.high[axis] = side - VXD_SVDAG_UNIT;
    }
    CHECK_INT(gpu_svdag_edit(env, svdag, VXD_SVDAG_EMPTY, ops, 1, &result, NULL), VXD_OK);
    CHECK(result.n_added == (n - 2) * (n - 2) * (n - 2));
    /* x + y <= side: voxels of the diagonal are included, since their centres are at n -
     * 1/2 + 1/2. */
    ops[1].shape.n[0] = 1;
    ops[1].shape.n[1] = 1;
    ops[1].shape.d = side;
    CHECK_INT(gpu_svdag_edit(env, svdag, VXD_SVDAG_EMPTY, &ops[1], 1, &result, NULL),
              VXD_OK);
    CHECK(result.n_added == n * (n + 1) / 2 * n);
    CHECK_INT(gpu_svdag_edit(env, svdag, VXD_SVDAG_EMPTY, ops, 2, &result, NULL), VXD_OK);
    CHECK(verify(env, svdag, result.root).n_occupied ==
          n * (n + 1) / 2 * n + (n - 2) * ((n - 2) * (n - 2) - (n - 2) * (n - 1) / 2));
    vxd_svdag_destroy(env->queue, svdag);
}

static void test_edit_planes_through_the_largest_scene_end_soon(void)
{
    gpu_each_backend(walls);
}

static void too_long(struct gpu_env *env)
{
    static const struct vxd_svdag_format format = {12, 4, false};
    struct vxd_svdag *svdag = make_svdag(env, &format, 0);
    struct vxd_svdag_op small = ball_op(VXD_SVDAG_FILL, 2000, 10);
    struct vxd_svdag_op large = ball_op(VXD_SVDAG_FILL, 2000, 1000);
    struct vxd_svdag_edit_result first;
    struct vxd_svdag_edit_result result;
    struct vxd_err err = {0};

    vxd_svdag_set_max_visits(svdag, 100000);
    CHECK_INT(gpu_svdag_edit(env, svdag, VXD_SVDAG_EMPTY, &small, 1, &first, NULL),
              VXD_OK);
    CHECK_INT(gpu_svdag_edit(env, svdag, first.root, &large, 1, &result, &err),
              VXD_RESOURCE_EXHAUSTED);
    CHECK(strstr(err.message, "100000") != NULL);
    CHECK_STR(err.field, "max_visits");
    CHECK(verify(env, svdag, first.root).n_occupied == first.n_added);
    vxd_svdag_set_max_visits(svdag, VXD_SVDAG_MAX_VISITS);
    CHECK_INT(gpu_svdag_edit(env, svdag, first.root, &large, 1, &result, NULL), VXD_OK);
    vxd_svdag_destroy(env->queue, svdag);
}

static void test_edit_that_looks_at_too_much_is_refused(void)
{
    gpu_each_backend(too_long);
}

/* Asked so many times it says yes. */
static bool count_down(void *user)
{
    return atomic_fetch_sub((atomic_int *)user, 1) <= 0;
}

static void stopped(struct gpu_env *env)
{
    static const struct vxd_svdag_format format = {12, 4, false};
    struct vxd_svdag *svdag = make_svdag(env, &format, 0);
    struct vxd_svdag *other = make_svdag(env, &format, 0);
    struct vxd_svdag_op small = ball_op(VXD_SVDAG_FILL, 2000, 10);
    struct vxd_svdag_op large = ball_op(VXD_SVDAG_FILL, 2000, 400);
    struct vxd_svdag_edit_result first;
    struct vxd_svdag_edit_result result;
    struct vxd_svdag_summary before;
    struct vxd_svdag_summary after;
    struct vxd_err err = {0};
    atomic_int n_left;

    CHECK_INT(gpu_svdag_edit(env, svdag, VXD_SVDAG_EMPTY, &small, 1, &first, NULL),
              VXD_OK);
    before = verify(env, svdag, first.root);
    /* On a GPU, before its first run alone; on the CPU, in the midst of it. */
    for (int n = 0; n < (gpu_is_cuda(env) ? 1 : 4); n++) {
        atomic_init(&n_left, n);
        vxd_svdag_set_stop(svdag, count_down, &n_left);
        CHECK_INT(gpu_svdag_edit(env, svdag, first.root, &large, 1, &result, &err),
                  VXD_CANCELLED);
        CHECK_INT(vxd_svdag_undo_wait(env->queue, svdag, first.root, VXD_SVDAG_EMPTY,
                                      first.root, &result, NULL),
                  VXD_CANCELLED);
        after = verify(env, svdag, first.root);
        CHECK(memcmp(before.digest, after.digest, sizeof before.digest) == 0);
    }
    vxd_svdag_set_stop(svdag, NULL, NULL);
    CHECK_INT(gpu_svdag_edit(env, svdag, first.root, &large, 1, &result, NULL), VXD_OK);
    after = verify(env, svdag, result.root);
    CHECK_INT(gpu_svdag_edit(env, other, VXD_SVDAG_EMPTY, &large, 1, &result, NULL),
              VXD_OK);
    before = verify(env, other, result.root);
    CHECK(memcmp(before.digest, after.digest, sizeof before.digest) == 0);
    vxd_svdag_destroy(env->queue, svdag);
    vxd_svdag_destroy(env->queue, other);
}

static void test_edit_that_is_stopped_leaves_every_root_as_it_was(void)
{
    gpu_each_backend(stopped);
}

static void nothing_to_do(struct gpu_env *env)
{
    static const struct vxd_svdag_format format = {12, 4, false};
    struct vxd_svdag *svdag = make_svdag(env, &format, 0);
    struct vxd_svdag_op ops[2] = {ball_op(VXD_SVDAG_FILL, 2000, 300),
                                  ball_op(VXD_SVDAG_PAINT, 2000, 200)};
    struct vxd_svdag_edit_result first;
    struct vxd_svdag_edit_result again;
    uint64_t n_lookups = 0;

    CHECK_INT(gpu_svdag_edit(env, svdag, VXD_SVDAG_UNIFORM | 3, NULL, 0, &first, NULL),
              VXD_OK);
    CHECK_INT(first.root, VXD_SVDAG_UNIFORM | 3);
    ops[1].value = 5;
    CHECK_INT(gpu_svdag_edit(env, svdag, VXD_SVDAG_EMPTY, ops, 2, &first, NULL), VXD_OK);
    CHECK_INT(gpu_svdag_edit(env, svdag, first.root, &ops[1], 1, &again, NULL), VXD_OK);
    CHECK_INT(again.root, first.root);
    CHECK_INT(again.n_changed, 0);
    for (int i = 0; i <= VXD_SVDAG_MAX_DEPTH; i++) {
        n_lookups += again.n_lookups[i];
    }
    CHECK_INT(n_lookups, 0);
    ops[0] = ball_op(VXD_SVDAG_FILL, -4000, 300);
    CHECK_INT(gpu_svdag_edit(env, svdag, first.root, ops, 1, &again, NULL), VXD_OK);
    CHECK_INT(again.root, first.root);
    CHECK_INT(again.n_added, 0);
    vxd_svdag_destroy(env->queue, svdag);
}

static void test_edit_that_changes_nothing_keeps_the_root_without_lookups(void)
{
    gpu_each_backend(nothing_to_do);
}

/* Far away and huge shapes, where 64 bits are barely enough: against 128-bit
 * arithmetic. */
static void extremes(struct gpu_env *env)
{
    static const int64_t far = VXD_SVDAG_MAX_COORDINATE;
    static const struct vxd_svdag_format format = {4, 0, false};
    struct vxd_svdag *svdag = make_svdag(env, &format, 0);
    uint64_t seed = 5;
    struct gpu_env cpu;
    struct vxd_svdag *other;
    struct gpu_svdag_grid grid;

    gpu_env_create(&cpu, VXD_BACKEND_CPU, 1, 0, 0);
    other = make_svdag(&cpu, &format, 0);
    gpu_svdag_grid_make(&grid, &format);
    for (int i = 0; i < vxd_test_rounds(300); i++) {
        struct vxd_svdag_op ops[2] = {box_op(VXD_SVDAG_ERASE, 0, 16, 0),
                                      {.action = VXD_SVDAG_FILL}};
        struct vxd_svdag_shape *shape = &ops[1].shape;
        struct vxd_svdag_edit_result result;
        double square = 0;

        shape->kind = i % 3 == 0 ? VXD_SVDAG_BALL : VXD_SVDAG_HALF_SPACE;
        for (int axis = 0; axis < 3; axis++) {
            int64_t c = between(&seed, -far, far);

            shape->a[axis] = i % 2 == 0 ? c : c < 0 ? -far / 2 : far / 2;
            square += (double)shape->a[axis] * (double)shape->a[axis];
            shape->n[axis] = i % 5 == 0   ? INT32_MIN
                             : i % 5 == 1 ? INT32_MAX
                                          : (int32_t)between(&seed, INT32_MIN, INT32_MAX);
        }
        /* The surface passes near the scene's corner, where that is possible. */
        square = sqrt(square);
        shape->r = square > (double)far ? far : (int64_t)square;
        shape->d = i % 7 == 0 ? (int64_t)1 << 62
                              : (int64_t)shape->n[0] * between(&seed, 0, 4096) +
                                    (int64_t)shape->n[1] * between(&seed, 0, 4096);
        gpu_svdag_grid_edit(&grid, ops, 2);
        CHECK_INT(gpu_svdag_edit(env, svdag, VXD_SVDAG_EMPTY, ops, 2, &result, NULL),
                  VXD_OK);
        CHECK_INT(verify(env, svdag, result.root).digest[0],
                  verify(&cpu, other, gpu_svdag_grid_put(&grid, other)).digest[0]);
    }
    gpu_svdag_grid_free(&grid);
    vxd_svdag_destroy(env->queue, svdag);
    vxd_svdag_destroy(cpu.queue, other);
    gpu_env_destroy(&cpu);
}

static void test_edit_shapes_at_the_ends_of_their_range_are_exact(void)
{
    gpu_each_backend(extremes);
}

static void exhausted(struct gpu_env *env)
{
    static const struct vxd_svdag_format format = {16, 4, false};
    /* Slab stores allocate at least a MiB for every length of items. */
    struct vxd_svdag *svdag =
        make_svdag(env, &format,
                   (size_t)(gpu_svdag_store(&format) == VXD_SVDAG_ARENA ? 6 : 24) << 20);
    struct vxd_svdag_op small = ball_op(VXD_SVDAG_FILL, 20000, 100);
    struct vxd_svdag_op large = ball_op(VXD_SVDAG_FILL, 30000, 3000);
    struct vxd_svdag_edit_result first;
    struct vxd_svdag_edit_result result;
    struct vxd_svdag_summary before;
    struct vxd_svdag_summary after;
    struct vxd_err err = {0};

    CHECK_INT(gpu_svdag_edit(env, svdag, VXD_SVDAG_EMPTY, &small, 1, &first, NULL),
              VXD_OK);
    before = verify(env, svdag, first.root);
    CHECK_INT(gpu_svdag_edit(env, svdag, first.root, &large, 1, &result, &err),
              VXD_RESOURCE_EXHAUSTED);
    CHECK(strstr(err.message, "full") != NULL);
    after = verify(env, svdag, first.root);
    CHECK(memcmp(&before, &after, sizeof before) == 0);
    CHECK_INT(gpu_svdag_edit(env, svdag, VXD_SVDAG_EMPTY, &small, 1, &result, NULL),
              VXD_OK);
    CHECK_INT(result.root, first.root);
    vxd_svdag_destroy(env->queue, svdag);
}

static void test_edit_over_the_budget_leaves_the_old_root_as_it_was(void)
{
    gpu_each_backend(exhausted);
}

/* Readers beside edits -------------------------------------------------------------------- */

struct reader {
    const struct vxd_svdag *svdag;
    uint32_t root;
    atomic_bool stops;
    atomic_size_t n_wrong;
};

/* A ball of 100 voxels around (1000, 1000, 1000): concurrent readers always read the same
 * values. */
static void *read_voxels(void *args)
{
    struct reader *reader = args;
    uint64_t seed = 1;

    while (!atomic_load(&reader->stops)) {
        int64_t square = 0;
        uint32_t p[3];
        uint32_t value;
        unsigned state;

        for (int i = 0; i < 3; i++) {
            int64_t c = between(&seed, 880, 1120);
            int64_t d = 2 * c + 1 - 2000;

            p[i] = (uint32_t)c;
            square += d * d;
        }
        state =
            vxd_svdag_voxel(&reader->svdag->view, reader->root, p[0], p[1], p[2], &value);
        atomic_fetch_add(&reader->n_wrong,
                         (state == VXD_SVDAG_OCCUPIED) != (square <= 200 * 200));
    }
    return NULL;
}

static void test_edit_beside_readers_of_an_old_root_disturbs_none(void)
{
    static const struct vxd_svdag_format format = {14, 4, true};
    struct gpu_env env;
    struct reader reader = {0};
    struct vxd_svdag_op op = ball_op(VXD_SVDAG_FILL, 1000, 100);
    struct vxd_svdag_edit_result result;
    pthread_t threads[2];

    gpu_env_create(&env, VXD_BACKEND_CPU, 3, 0, 0);
    reader.svdag = make_svdag(&env, &format, 0);
    CHECK_INT(gpu_svdag_edit(&env, (struct vxd_svdag *)reader.svdag, VXD_SVDAG_EMPTY, &op,
                             1, &result, NULL),
              VXD_OK);
    reader.root = result.root;
    atomic_init(&reader.stops, false);
    atomic_init(&reader.n_wrong, 0);
    for (int i = 0; i < 2; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, read_voxels, &reader) == 0);
    }
    for (int i = 0; i < 12; i++) {
        op =
            ball_op(i % 3 == 2 ? VXD_SVDAG_ERASE : VXD_SVDAG_FILL, 1000 + 20 * i, 90 + i);
        op.value = (uint32_t)i;
        CHECK_INT(gpu_svdag_edit(&env, (struct vxd_svdag *)reader.svdag, result.root, &op,
                                 1, &result, NULL),
                  VXD_OK);
    }
    atomic_store(&reader.stops, true);
    for (int i = 0; i < 2; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    CHECK_INT(atomic_load(&reader.n_wrong), 0);
    vxd_svdag_destroy(env.queue, (struct vxd_svdag *)reader.svdag);
    gpu_env_destroy(&env);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_edit_random_lists_give_the_voxels_of_a_grid),
    VXD_TEST(test_edit_lists_of_many_passes_count_from_first_to_last),
    VXD_TEST(test_edit_scenes_of_128_voxels_a_side_match_a_grid),
    VXD_TEST(test_edit_a_scene_of_256_voxels_a_side_matches_a_grid),
    VXD_TEST(test_edit_node_aligned_boxes_are_not_lost),
    VXD_TEST(test_edit_planes_through_the_largest_scene_end_soon),
    VXD_TEST(test_edit_that_looks_at_too_much_is_refused),
    VXD_TEST(test_edit_that_is_stopped_leaves_every_root_as_it_was),
    VXD_TEST(test_edit_that_changes_nothing_keeps_the_root_without_lookups),
    VXD_TEST(test_edit_shapes_at_the_ends_of_their_range_are_exact),
    VXD_TEST(test_edit_over_the_budget_leaves_the_old_root_as_it_was),
    VXD_TEST(test_edit_beside_readers_of_an_old_root_disturbs_none)};

VXD_TEST_MAIN(tests)
