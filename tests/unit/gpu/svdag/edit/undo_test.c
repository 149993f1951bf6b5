// SPDX-License-Identifier: Apache-2.0
/* Undo and redo, against their definition on plain grids, in random histories of every
 * format; with large walls, with small budgets, and with concurrent readers. */
#include "tests/support/test.h"
#include "gpu/svdag/edit/edit.h"

#include <pthread.h>
#include <stdatomic.h>

#include "tests/support/svdag/svdag_versions.h"

enum {
    N_FORMATS = 8,
    N_HISTORIES = 64, /* of each format */
    N_STEPS = 14,
    MAX_FILLERS = 3000,
    N_PLACES = 36 /* number of filler balls along an axis */
};

static const struct vxd_svdag_format formats[N_FORMATS] = {
    {4, 0, false}, {4, 0, true}, {4, 4, false},  {4, 4, true},
    {4, 8, false}, {4, 8, true}, {4, 16, false}, {4, 16, true}};

/* A random history of edits, undos of any of them, redos, and undos between unrelated
 * versions. */
static void history(struct gpu_env *env, const struct vxd_svdag_format *format,
                    uint64_t seed)
{
    struct gpu_svdag_versions versions;

    gpu_svdag_versions_open(env, format, &versions);
    for (int step = 0; step < N_STEPS; step++) {
        size_t head = versions.n - 1;
        size_t of = gpu_random(&seed) % versions.n;
        size_t other = gpu_random(&seed) % versions.n;

        switch (step < 2 ? 0 : gpu_random(&seed) % 8) {
        case 0:
        case 1:
        case 2:
            gpu_svdag_versions_edit(&versions, &seed);
            break;
        case 3:
        case 4:
        case 5: /* undoes a version that an edit or an undo made */
            of = of == 0 ? 1 : of;
            gpu_svdag_versions_undo(&versions, head, of - 1, of);
            break;
        case 6:
            of = of == 0 ? 1 : of;
            gpu_svdag_versions_undo(&versions, head, of, of - 1);
            break;
        default:
            gpu_svdag_versions_undo(&versions, gpu_random(&seed) % versions.n, of, other);
            break;
        }
    }
    gpu_svdag_versions_close(&versions);
}

static void histories(struct gpu_env *env)
{
    for (uint64_t i = 0; i < (uint64_t)vxd_test_rounds(N_HISTORIES) * N_FORMATS; i++) {
        history(env, &formats[i % N_FORMATS], i + 1);
    }
}

static void test_undo_in_random_histories_gives_the_voxels_of_a_grid(void)
{
    gpu_each_backend(histories);
}

static void larger_histories(struct gpu_env *env)
{
    for (uint64_t i = 0; i < N_FORMATS; i++) {
        struct vxd_svdag_format format = formats[i];

        format.depth = i % 2 == 0 ? 5 : 6;
        history(env, &format, i + 1000);
    }
}

static void test_undo_in_larger_scenes_gives_the_voxels_of_a_grid(void)
{
    gpu_each_backend(larger_histories);
}

/* Undo and redo of the last edit give the same roots as before. */
static void there_and_back(struct gpu_env *env)
{
    uint64_t seed = 5;

    for (int i = 0; i < N_FORMATS; i++) {
        struct gpu_svdag_versions versions;

        gpu_svdag_versions_open(env, &formats[i], &versions);
        gpu_svdag_versions_edit(&versions, &seed); /* 1 */
        gpu_svdag_versions_edit(&versions, &seed); /* 2 */
        gpu_svdag_versions_undo(&versions, 2, 1, 2);
        CHECK_INT(versions.roots[3], versions.roots[1]);
        gpu_svdag_versions_undo(&versions, 3, 2, 1);
        CHECK_INT(versions.roots[4], versions.roots[2]);
        /* Undoing the undo is the redo. */
        gpu_svdag_versions_undo(&versions, 3, versions.n - 3, 3);
        CHECK_INT(versions.roots[5], versions.roots[2]);
        /* An undo does not restore what later edits have overwritten. */
        gpu_svdag_versions_undo(&versions, 3, 1, 2);
        CHECK_INT(versions.roots[6], versions.roots[1]);
        gpu_svdag_versions_undo(&versions, 2, 2, 2);
        CHECK_INT(versions.roots[7], versions.roots[2]);
        gpu_svdag_versions_close(&versions);
    }
}

static void test_undo_of_the_last_edit_and_redo_give_its_two_roots(void)
{
    gpu_each_backend(there_and_back);
}

/* Large scenes ---------------------------------------------------------------------------- */

static struct vxd_svdag_op box(enum vxd_svdag_action action, const int64_t low[3],
                               const int64_t high[3], uint32_t value)
{
    struct vxd_svdag_op op = {.action = action, .value = value};

    op.shape.kind = VXD_SVDAG_BOX;
    for (int axis = 0; axis < 3; axis++) {
        op.shape.low[axis] = low[axis] * VXD_SVDAG_UNIT;
        op.shape.high[axis] = high[axis] * VXD_SVDAG_UNIT;
    }
    return op;
}

static uint32_t edit(struct gpu_env *env, struct vxd_svdag *svdag, uint32_t root,
                     const struct vxd_svdag_op *op)
{
    struct vxd_svdag_edit_result result = {.root = root};
    struct vxd_err err = {0};

    CHECK_INT(gpu_svdag_edit(env, svdag, root, op, 1, &result, &err), VXD_OK);
    CHECK_STR(err.message, "");
    return result.root;
}

/* Walls through the largest scenes: millions of equal leaves are cut, few are visited. */
static void walls(struct gpu_env *env)
{
    static const struct vxd_svdag_format format = {17, 4, true};
    const int64_t side = (int64_t)1 << 17;
    const int64_t none[3] = {0, 0, 0};
    const int64_t floor_high[3] = {side, side, 1001};
    const int64_t wall_low[3] = {70001, 0, 0};
    const int64_t all[3] = {side, side, side};
    const struct vxd_svdag_op floor_op = box(VXD_SVDAG_FILL, none, floor_high, 3);
    const struct vxd_svdag_op wall_op = box(VXD_SVDAG_SET_FREE, wall_low, all, 0);
    struct vxd_svdag *svdag = gpu_svdag_versions_store(env, &format, 0);
    const uint32_t floor_root = edit(env, svdag, VXD_SVDAG_EMPTY, &floor_op);
    const uint32_t both = edit(env, svdag, floor_root, &wall_op);
    const uint32_t wall_root = edit(env, svdag, VXD_SVDAG_EMPTY, &wall_op);
    struct vxd_svdag_edit_result result = {0};
    struct vxd_err err = {0};

    CHECK_INT(vxd_svdag_undo_wait(env->queue, svdag, both, VXD_SVDAG_EMPTY, floor_root,
                                  &result, &err),
              VXD_OK);
    CHECK_STR(err.message, "");
    CHECK_INT(result.root, wall_root);
    CHECK_INT(result.n_removed, 70001 * side * 1001);
    CHECK_INT(result.n_added, 0);
    CHECK_INT(
        vxd_svdag_undo_wait(env->queue, svdag, both, floor_root, both, &result, &err),
        VXD_OK);
    CHECK_INT(result.root, floor_root);
    CHECK_INT(result.n_added, (side - 70001) * side * 1001);
    CHECK_INT(result.n_freed, 0);
    CHECK_INT(vxd_svdag_undo_wait(env->queue, svdag, floor_root, both, floor_root,
                                  &result, &err),
              VXD_OK);
    CHECK_INT(result.root, both);
    CHECK_INT(result.n_freed, (side - 70001) * side * side);
    vxd_svdag_destroy(env->queue, svdag);
}

static void test_undo_of_walls_through_the_largest_scene_ends_soon(void)
{
    gpu_each_backend(walls);
}

/* Budgets --------------------------------------------------------------------------------- */

/* Undoes a ball over which another, noisy one was painted, so that the surface of the
 * noisy one must be stored again. */
struct rough {
    struct vxd_svdag *svdag;
    uint32_t ball;
    uint32_t painted;
    struct vxd_svdag_summary summary; /* of painted */
};

static void rough_open(struct gpu_env *env, struct rough *out)
{
    static const struct vxd_svdag_format format = {12, 4, false};
    struct vxd_svdag_op op = {.action = VXD_SVDAG_FILL, .value = 3};

    out->svdag = gpu_svdag_versions_store(env, &format, 0);
    op.shape.kind = VXD_SVDAG_NOISE_BALL;
    op.shape.r = 400 * VXD_SVDAG_UNIT;
    for (int axis = 0; axis < 3; axis++) {
        op.shape.a[axis] = 2000 * VXD_SVDAG_UNIT;
    }
    op.shape.cell_bits = 3;
    out->ball = edit(env, out->svdag, VXD_SVDAG_EMPTY, &op);
    op.shape.r = 300 * VXD_SVDAG_UNIT;
    op.shape.amplitude = 12 * VXD_SVDAG_UNIT;
    op.action = VXD_SVDAG_PAINT;
    op.value = 5;
    out->painted = edit(env, out->svdag, out->ball, &op);
    CHECK_INT(vxd_svdag_verify(env->queue, out->svdag, out->painted, &out->summary, NULL),
              VXD_OK);
}

static void check_painted(struct gpu_env *env, const struct rough *rough)
{
    struct vxd_svdag_summary summary;

    CHECK_INT(vxd_svdag_verify(env->queue, rough->svdag, rough->painted, &summary, NULL),
              VXD_OK);
    CHECK(memcmp(&summary, &rough->summary, sizeof summary) == 0);
}

/* Fills the capacity that the store has taken with small noisy balls, until no other
 * fits. Each is far smaller than what the undo stores. */
static void fill_up(struct gpu_env *env, const struct rough *rough)
{
    struct vxd_svdag_op op = {.action = VXD_SVDAG_FILL, .value = 3};
    struct vxd_svdag_edit_result result;
    enum vxd_status status = VXD_OK;

    op.shape.kind = VXD_SVDAG_NOISE_BALL;
    op.shape.r = 120 * VXD_SVDAG_UNIT;
    op.shape.amplitude = 12 * VXD_SVDAG_UNIT;
    op.shape.cell_bits = 3;
    for (int i = 0; i < MAX_FILLERS && status == VXD_OK; i++) {
        for (int axis = 0, place = i; axis < 3; axis++, place /= N_PLACES) {
            op.shape.a[axis] = (200 + place % N_PLACES * 100) * VXD_SVDAG_UNIT;
        }
        status = vxd_svdag_edit_wait(env->queue, rough->svdag, VXD_SVDAG_EMPTY, &op, 1,
                                     &result, NULL);
    }
    CHECK_INT(status, VXD_RESOURCE_EXHAUSTED);
}

static void small_budget(struct gpu_env *env)
{
    struct vxd_svdag_edit_result result = {0};
    struct vxd_svdag_usage usage;
    struct vxd_err err = {0};
    struct rough rough;
    int n_tries = 0;

    rough_open(env, &rough);
    vxd_svdag_get_usage(rough.svdag, &usage);
    vxd_svdag_set_max_bytes(rough.svdag, (size_t)usage.n_bytes);
    fill_up(env, &rough);
    CHECK_INT(vxd_svdag_undo_wait(env->queue, rough.svdag, rough.painted, VXD_SVDAG_EMPTY,
                                  rough.ball, &result, &err),
              VXD_RESOURCE_EXHAUSTED);
    CHECK(strstr(err.message, "full") != NULL);
    check_painted(env, &rough);
    vxd_svdag_set_max_bytes(rough.svdag, 0);
    if (!gpu_is_cuda(env)) {
        vxd_svdag_set_max_visits(rough.svdag, 1);
        CHECK_INT(vxd_svdag_undo_wait(env->queue, rough.svdag, rough.painted,
                                      VXD_SVDAG_EMPTY, rough.ball, &result, &err),
                  VXD_RESOURCE_EXHAUSTED);
        check_painted(env, &rough);
        vxd_svdag_set_max_visits(rough.svdag, VXD_SVDAG_MAX_VISITS);
    }
    /* Step by step. */
    for (;;) {
        CHECK_INT(vxd_svdag_undo(env->queue, rough.svdag, rough.painted, VXD_SVDAG_EMPTY,
                                 rough.ball, &result, &err),
                  VXD_OK);
        gpu_wait(env);
        if (!result.needs_capacity || ++n_tries == 32) {
            break;
        }
        CHECK_INT(result.root, rough.painted);
        CHECK_INT(vxd_svdag_reserve(env->queue, rough.svdag, &result, &err), VXD_OK);
    }
    CHECK(gpu_is_cuda(env) ? n_tries > 0 && n_tries < 32 : n_tries == 0);
    check_painted(env, &rough);
    CHECK(result.n_removed > 0 && result.n_removed < rough.summary.n_occupied);
    CHECK_INT(
        vxd_svdag_verify(env->queue, rough.svdag, result.root, &rough.summary, &err),
        VXD_OK);
    vxd_svdag_destroy(env->queue, rough.svdag);
}

static void test_undo_over_a_budget_leaves_all_roots_as_they_were(void)
{
    gpu_each_backend(small_budget);
}

/* Readers --------------------------------------------------------------------------------- */

struct reader {
    const struct vxd_svdag *svdag;
    uint32_t root;
    atomic_bool stops;
    atomic_size_t n_wrong;
};

/* Voxels with coordinates below 16 are set in the version, others are not. */
static void *read_voxels(void *args)
{
    struct reader *reader = args;
    uint64_t seed = 1;

    while (!atomic_load(&reader->stops)) {
        uint32_t p[3];
        uint32_t value;
        unsigned state;

        for (int axis = 0; axis < 3; axis++) {
            p[axis] = (uint32_t)(gpu_random(&seed) % 64);
        }
        state =
            vxd_svdag_voxel(&reader->svdag->view, reader->root, p[0], p[1], p[2], &value);
        atomic_fetch_add(&reader->n_wrong, (state == VXD_SVDAG_OCCUPIED) !=
                                               (p[0] < 16 && p[1] < 16 && p[2] < 16));
    }
    return NULL;
}

static void test_undo_beside_readers_of_an_old_root_disturbs_none(void)
{
    static const struct vxd_svdag_format format = {6, 4, true};
    const int64_t low[3] = {0, 0, 0};
    const int64_t high[3] = {16, 16, 16};
    const struct vxd_svdag_op first = box(VXD_SVDAG_FILL, low, high, 3);
    struct reader reader = {0};
    struct vxd_svdag_edit_result result;
    struct vxd_svdag *svdag;
    struct gpu_env env;
    uint32_t roots[2];
    pthread_t threads[2];
    uint64_t seed = 9;

    gpu_env_create(&env, VXD_BACKEND_CPU, 3, 0, 0);
    svdag = gpu_svdag_versions_store(&env, &format, 0);
    roots[0] = edit(&env, svdag, VXD_SVDAG_EMPTY, &first);
    reader.svdag = svdag;
    reader.root = roots[0];
    atomic_init(&reader.stops, false);
    atomic_init(&reader.n_wrong, 0);
    for (int i = 0; i < 2; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, read_voxels, &reader) == 0);
    }
    for (int i = 0; i < 100; i++) {
        struct vxd_svdag_op op = gpu_svdag_random_op(&format, &seed);
        uint32_t head;

        roots[1] = edit(&env, svdag, roots[0], &op);
        op = gpu_svdag_random_op(&format, &seed);
        head = edit(&env, svdag, roots[1], &op);
        CHECK_INT(vxd_svdag_undo_wait(env.queue, svdag, head, roots[0], roots[1], &result,
                                      NULL),
                  VXD_OK);
        roots[0] = result.root;
    }
    atomic_store(&reader.stops, true);
    for (int i = 0; i < 2; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    CHECK_INT(atomic_load(&reader.n_wrong), 0);
    vxd_svdag_destroy(env.queue, svdag);
    gpu_env_destroy(&env);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_undo_in_random_histories_gives_the_voxels_of_a_grid),
    VXD_TEST(test_undo_in_larger_scenes_gives_the_voxels_of_a_grid),
    VXD_TEST(test_undo_of_the_last_edit_and_redo_give_its_two_roots),
    VXD_TEST(test_undo_of_walls_through_the_largest_scene_ends_soon),
    VXD_TEST(test_undo_over_a_budget_leaves_all_roots_as_they_were),
    VXD_TEST(test_undo_beside_readers_of_an_old_root_disturbs_none)};

VXD_TEST_MAIN(tests)
