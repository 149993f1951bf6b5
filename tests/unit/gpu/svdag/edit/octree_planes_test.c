// SPDX-License-Identifier: Apache-2.0
/* Balls across the main planes of a scene's octree, where a small edit has frontier
 * entries at many heights and few at each; and walls through the whole scene, whose cut
 * cubes are equal. Nodes and counts are those of the CPU, whatever the store held
 * before. */
#include "tests/support/test.h"

#include "tests/support/svdag/svdag_run.h"
#include "tests/support/svdag/svdag_scene.h"

enum {
    N_SCENES = 2
};

/* The same scene in the tested backend and on the CPU. */
struct both {
    struct gpu_env *env;
    struct gpu_env cpu;
    struct vxd_svdag *dags[N_SCENES];
    uint32_t roots[N_SCENES];
};

static void both_open(struct gpu_env *env, const struct vxd_svdag_format *format,
                      struct both *both)
{
    const struct vxd_svdag_spec spec = {.format = *format,
                                        .store = gpu_svdag_store(format)};

    *both = (struct both){.env = env, .roots = {VXD_SVDAG_EMPTY, VXD_SVDAG_EMPTY}};
    gpu_env_create(&both->cpu, VXD_BACKEND_CPU, 2, 0, 0);
    both->dags[0] = gpu_svdag_create(env, &spec);
    both->dags[1] = gpu_svdag_create(&both->cpu, &spec);
}

static void both_close(struct both *both)
{
    vxd_svdag_destroy(both->env->queue, both->dags[0]);
    vxd_svdag_destroy(both->cpu.queue, both->dags[1]);
    gpu_env_destroy(&both->cpu);
}

/* Applies one edit to both and compares the counts. */
static void both_run(struct both *both, const struct vxd_svdag_op *op)
{
    struct vxd_svdag_edit_result results[N_SCENES];

    for (int i = 0; i < N_SCENES; i++) {
        CHECK_INT(gpu_svdag_edit(i == 0 ? both->env : &both->cpu, both->dags[i],
                                 both->roots[i], op, 1, &results[i], NULL),
                  VXD_OK);
        both->roots[i] = results[i].root;
    }
    CHECK_INT(results[0].n_added, results[1].n_added);
    CHECK_INT(results[0].n_removed, results[1].n_removed);
    CHECK_INT(results[0].n_changed, results[1].n_changed);
    CHECK_INT(results[0].n_freed, results[1].n_freed);
}

/* A ball in voxels. */
static void both_edit(struct both *both, enum vxd_svdag_action action,
                      const int64_t at[3], int64_t r, uint32_t value)
{
    struct vxd_svdag_op op = {.action = action, .value = value};

    op.shape.kind = VXD_SVDAG_BALL;
    op.shape.r = r * VXD_SVDAG_UNIT;
    for (int axis = 0; axis < 3; axis++) {
        op.shape.a[axis] = at[axis] * VXD_SVDAG_UNIT;
    }
    both_run(both, &op);
}

/* A box from one voxel's low corner to another's, in voxels. */
static void both_box(struct both *both, enum vxd_svdag_action action,
                     const int64_t low[3], const int64_t high[3])
{
    struct vxd_svdag_op op = {.action = action};

    op.shape.kind = VXD_SVDAG_BOX;
    for (int axis = 0; axis < 3; axis++) {
        op.shape.low[axis] = low[axis] * VXD_SVDAG_UNIT;
        op.shape.high[axis] = high[axis] * VXD_SVDAG_UNIT;
    }
    both_run(both, &op);
}

/* Verifies every node, and compares the number of nodes at each height. */
static void both_verify(struct both *both)
{
    struct vxd_svdag_summary summaries[N_SCENES] = {{0}};

    for (int i = 0; i < N_SCENES; i++) {
        struct vxd_err err = {0};

        CHECK_INT(vxd_svdag_verify(i == 0 ? both->env->queue : both->cpu.queue,
                                   both->dags[i], both->roots[i], &summaries[i], &err),
                  VXD_OK);
        CHECK_STR(err.message, "");
    }
    CHECK(memcmp(&summaries[0], &summaries[1], sizeof summaries[0]) == 0);
}

/* Balls with centres on, next to and between the planes of one, two and three axes:
 * added, added again, and removed, so that all, none or some of the voxels change. */
static void strokes(struct gpu_env *env, const struct vxd_svdag_format *format)
{
    const int64_t middle = (int64_t)1 << (format->depth - 1);
    const int64_t quarter = middle / 2;
    const int64_t centres[][3] = {
        {middle, quarter + 100, 777},
        {middle - 3, middle + 1, 1000},
        {middle, middle, middle},
        {quarter, middle + quarter, middle - 20},
        {middle + quarter / 2, quarter, middle},
        {2 * middle - 1, middle, 0}, /* partly outside the scene */
        {middle + 7, middle + 7, middle + 7},
    };
    const uint32_t n_values = vxd_svdag_n_materials(format);
    struct both both;

    both_open(env, format, &both);
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < sizeof centres / sizeof centres[0]; i++) {
            const uint32_t value = (uint32_t)i % n_values;

            both_edit(&both, round == 2 ? VXD_SVDAG_ERASE : VXD_SVDAG_FILL, centres[i],
                      round == 2 ? 9 + (int64_t)i : 20, value);
        }
        both_verify(&both);
    }
    /* Removes a ball entirely and adds it again: all its nodes are in the store
     * already. */
    both_edit(&both, VXD_SVDAG_ERASE, centres[2], 40, 0);
    both_edit(&both, VXD_SVDAG_FILL, centres[2], 20, n_values - 1);
    both_edit(&both, VXD_SVDAG_ERASE, centres[2], 20, 0);
    both_edit(&both, VXD_SVDAG_FILL, centres[2], 20, n_values - 1);
    both_edit(&both, VXD_SVDAG_FILL, centres[2], 300, 0);
    both_verify(&both);
    both_close(&both);
}

/* Balls at distances of a cube's side, the middle one last: cubes on both sides of it
 * become equal, some with new nodes and some with nodes of the store. */
static void equal_cubes(struct gpu_env *env, const struct vxd_svdag_format *format)
{
    static const int64_t steps[] = {-2, 2, -1, 1, 0};
    const int64_t middle = (int64_t)1 << (format->depth - 1);
    const int64_t side = 64;
    struct both both;

    both_open(env, format, &both);
    for (int64_t r = 5; r <= 47; r += 14) {
        for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
            const int64_t at[3] = {middle + steps[i] * side, middle / 2 + r, middle - r};

            both_edit(&both, VXD_SVDAG_FILL, at, r, 0);
        }
        both_verify(&both);
    }
    both_close(&both);
}

/* Floors and walls through the whole scene: at each height all cut cubes are equal and
 * deduplicated, and the one result is several children of its parent. They are added to
 * an empty scene, through each other, and removed. */
static void walls(struct gpu_env *env, const struct vxd_svdag_format *format)
{
    static const int64_t none[3] = {0, 0, 0};
    static const int64_t heights[] = {3, 41, 101, 219};
    const int64_t side = (int64_t)1 << format->depth;
    struct both both;

    both_open(env, format, &both);
    for (size_t i = 0; i < sizeof heights / sizeof heights[0]; i++) {
        const int64_t floor_high[3] = {side, side, heights[i]};
        const int64_t wall_low[3] = {side / 2 + heights[i], 0, 0};
        const int64_t wall_high[3] = {side / 2 + 2 * heights[i], side, side};
        const uint32_t empty = both.roots[0];

        both_box(&both, VXD_SVDAG_FILL, none, floor_high);
        both_verify(&both);
        both_box(&both, VXD_SVDAG_FILL, wall_low, wall_high);
        both_verify(&both);
        both_box(&both, VXD_SVDAG_ERASE, none, floor_high);
        both_verify(&both);
        both_box(&both, VXD_SVDAG_ERASE, wall_low, wall_high);
        CHECK_INT(both.roots[0], empty);
    }
    both_close(&both);
}

static void each_format(struct gpu_env *env)
{
    static const struct vxd_svdag_format formats[] = {
        {17, 0, false}, {17, 4, true}, {21, 0, true}, {9, 8, false}};

    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        strokes(env, &formats[i]);
        equal_cubes(env, &formats[i]);
    }
}

static void each_walls(struct gpu_env *env)
{
    static const struct vxd_svdag_format formats[] = {{17, 0, false}, {9, 4, true}};

    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        walls(env, &formats[i]);
    }
}

static void test_balls_across_high_planes_are_the_cpus(void)
{
    gpu_each_backend(each_format);
}

static void test_walls_through_a_scene_are_the_cpus(void)
{
    gpu_each_backend(each_walls);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_balls_across_high_planes_are_the_cpus),
    VXD_TEST(test_walls_through_a_scene_are_the_cpus)};

VXD_TEST_MAIN(tests)
