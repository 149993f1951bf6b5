// SPDX-License-Identifier: Apache-2.0
/* Counts how many leaves of a large scene copies, erosion and dilation visit. */
#include "tests/support/test.h"

#include <stdatomic.h>

#include "gpu/svdag/store/store.h"
#include "tests/support/svdag/svdag_run.h"

struct scene {
    struct gpu_env env;
    struct vxd_svdag *svdag;
    uint32_t root;
};

/* An editor that counts the leaves it is called for. */
struct counting {
    struct vxd_svdag_editor inner;
    atomic_uint_least64_t n_leaves;
};

static void count_begin(const void *args, union vxd_svdag_edit_state *state)
{
    const struct counting *counting = args;

    counting->inner.begin(counting->inner.args, state);
}

static enum vxd_svdag_visit count_visit(const void *args,
                                        const struct vxd_svdag_view *view,
                                        const struct vxd_svdag_cube *cube, uint32_t old,
                                        union vxd_svdag_edit_state *state,
                                        uint32_t *uniform)
{
    const struct counting *counting = args;

    return counting->inner.visit(counting->inner.args, view, cube, old, state, uniform);
}

static void count_child(const void *args, const struct vxd_svdag_view *view,
                        const struct vxd_svdag_cube *cube,
                        const union vxd_svdag_edit_state *state, int octant,
                        union vxd_svdag_edit_state *child)
{
    const struct counting *counting = args;

    counting->inner.child(counting->inner.args, view, cube, state, octant, child);
}

static void count_leaf(const void *args, const struct vxd_svdag_view *view,
                       const struct vxd_svdag_cube *cube,
                       const union vxd_svdag_edit_state *state,
                       struct vxd_svdag_leaf *leaf)
{
    struct counting *counting = (struct counting *)(uintptr_t)args;

    (void)atomic_fetch_add(&counting->n_leaves, 1);
    counting->inner.leaf(counting->inner.args, view, cube, state, leaf);
}

static uint64_t leaves_of(struct scene *scene, const struct vxd_svdag_op *op)
{
    const struct vxd_svdag_source source = {op, scene->svdag->view, scene->root};
    struct vxd_svdag_edit_result result = {.root = scene->root};
    struct counting counting = {.n_leaves = 0};
    struct vxd_svdag_editor editor = {.begin = count_begin,
                                      .visit = count_visit,
                                      .child = count_child,
                                      .leaf = count_leaf,
                                      .args = &counting};

    if (op->action == VXD_SVDAG_COPY) {
        vxd_svdag_copy_editor(&source, &counting.inner);
    } else {
        vxd_svdag_morph_editor(&source, &counting.inner);
    }
    CHECK_INT(vxd_svdag_build(vxd_context_pool(scene->env.context), scene->svdag,
                              scene->root, &editor, &result, NULL),
              VXD_OK);
    return atomic_load(&counting.n_leaves);
}

/* A box of 256^3 voxels in 16384^3: 64 leaves a side. */
static void test_morphology_and_copies_visit_no_more_leaves_than_can_change(void)
{
    const struct vxd_svdag_spec spec = {.format = {14, 0, false}};
    static const int8_t as_it_is[3][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
    const int64_t low = 1024 * 256;
    const int64_t high = low + 256 * 256;
    struct vxd_svdag_op op = {.shape = {.kind = VXD_SVDAG_BOX,
                                        .low = {low, low, low},
                                        .high = {high, high, high}}};
    struct vxd_svdag_edit_result result;
    struct scene scene;

    gpu_env_create(&scene.env, VXD_BACKEND_CPU, 3, 0, 0);
    scene.svdag = gpu_svdag_create(&scene.env, &spec);
    REQUIRE(gpu_svdag_edit(&scene.env, scene.svdag, VXD_SVDAG_EMPTY, &op, 1, &result,
                           NULL) == VXD_OK);
    scene.root = result.root;
    op.shape = (struct vxd_svdag_shape){
        .kind = VXD_SVDAG_HALF_SPACE, .n = {1, 0, 0}, .d = (int64_t)1 << 30};
    op.action = VXD_SVDAG_ERODE;
    op.threshold = 6; /* the outer leaves, */
    CHECK_INT(leaves_of(&scene, &op), 64 * 64 * 64 - 62 * 62 * 62);
    op.threshold = 5; /* those at edges, */
    CHECK_INT(leaves_of(&scene, &op), 12 * 62 + 8);
    op.threshold = 4; /* at corners, */
    CHECK_INT(leaves_of(&scene, &op), 8);
    op.threshold = 3;
    CHECK_INT(leaves_of(&scene, &op), 0);
    op.action = VXD_SVDAG_DILATE;
    op.threshold = 1; /* and those at the faces. */
    CHECK_INT(leaves_of(&scene, &op), 6 * 64 * 64);
    op.threshold = 2;
    CHECK_INT(leaves_of(&scene, &op), 0);
    op.action = VXD_SVDAG_COPY; /* leaf-aligned: the same cubes elsewhere */
    memcpy(op.matrix, as_it_is, sizeof as_it_is);
    op.shape = (struct vxd_svdag_shape){.kind = VXD_SVDAG_BOX,
                                        .high = {16384 * 256, 16384 * 256, 16384 * 256}};
    op.from_voxel[0] = 4;
    CHECK_INT(leaves_of(&scene, &op), 0);
    op.from_voxel[0] = 1; /* at two faces, the leaves whose sources straddle two leaves */
    CHECK_INT(leaves_of(&scene, &op), 2 * 64 * 64);
    op.copy_empty =
        true; /* no voxel's centre is in the box, though the box crosses all cubes */
    op.shape.low[1] = op.shape.high[1] = low + 2 * 256;
    CHECK_INT(leaves_of(&scene, &op), 0);
    op.action = VXD_SVDAG_ERODE;
    op.threshold = 6;
    op.shape.low[1] = low + 10;
    op.shape.high[1] = low + 100;
    CHECK_INT(leaves_of(&scene, &op), 0);
    op.shape.high[1] = low + 129; /* the first row of centres is in the box */
    CHECK(leaves_of(&scene, &op) > 0);
    vxd_svdag_destroy(scene.env.queue, scene.svdag);
    gpu_env_destroy(&scene.env);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_morphology_and_copies_visit_no_more_leaves_than_can_change),
};

VXD_TEST_MAIN(tests)
