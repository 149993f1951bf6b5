// SPDX-License-Identifier: Apache-2.0
/* Fails every allocation of edits in turn: linked with --wrap, as test_gpu_alloc. Leaks show
 * under AddressSanitizer. */
#include "tests/support/test.h"

#include "gpu/svdag/edit/edit.h"
#include "tests/support/failing_alloc.h"
#include "tests/support/gpu/gpu_helpers.h"

enum {
    N_BOXES = 70, /* more operations than one batch holds */
    N_LISTS = 6   /* more lists than one batch holds */
};

/* Three batches: a heightfield with a ball, a dilation, many boxes and lists. */
static enum vxd_status run_edit(struct gpu_env *env, struct vxd_svdag *svdag,
                                uint32_t root, struct vxd_svdag_edit_result *out,
                                struct vxd_err *err)
{
    static const uint64_t codes[3] = {1, 2, 700};
    static const uint64_t masks[3] = {5, ~(uint64_t)0, 1};
    int64_t heights[64];
    struct vxd_svdag_op ops[3 + N_BOXES + N_LISTS] = {
        {.action = VXD_SVDAG_FILL, .value = 3},
        {.action = VXD_SVDAG_FILL, .value = 2},
        {.action = VXD_SVDAG_DILATE, .threshold = 1}};
    enum vxd_status status;

    for (int i = 0; i < 64; i++) {
        heights[i] = (int64_t)i * 100;
    }
    ops[0].shape.kind = VXD_SVDAG_HEIGHTFIELD;
    ops[0].shape.field = (struct vxd_svdag_heights){heights, 8, 8, 8, 0, 0};
    for (int axis = 0; axis < 3; axis++) {
        ops[1].shape.a[axis] = (int64_t)30 * VXD_SVDAG_UNIT;
        ops[2].shape.high[axis] = (int64_t)20 * VXD_SVDAG_UNIT;
    }
    for (int i = 0; i < N_BOXES; i++) {
        ops[3 + i].action = VXD_SVDAG_ERASE;
        for (int axis = 0; axis < 3; axis++) {
            ops[3 + i].shape.low[axis] = (int64_t)(i % 9) * 6 * VXD_SVDAG_UNIT;
            ops[3 + i].shape.high[axis] = (int64_t)(i % 9 + 1) * 6 * VXD_SVDAG_UNIT;
        }
    }
    for (int i = 0; i < N_LISTS; i++) {
        struct vxd_svdag_op *op = &ops[3 + N_BOXES + i];

        op->action = i % 2 == 0 ? VXD_SVDAG_FILL : VXD_SVDAG_SET_FREE;
        op->value = (uint32_t)i;
        op->shape.kind = VXD_SVDAG_VOXELS;
        op->shape.voxels = (struct vxd_svdag_voxels){
            .codes = codes + i % 2, .masks = masks + i % 2, .n = 2};
    }
    ops[1].shape.kind = VXD_SVDAG_BALL;
    ops[1].shape.r = (int64_t)20 * VXD_SVDAG_UNIT;
    status = vxd_svdag_edit(env->queue, svdag, root, ops, sizeof ops / sizeof ops[0], out,
                            err);
    return status != VXD_OK ? status : vxd_queue_wait(env->queue, err);
}

static bool same_result(const struct vxd_svdag_edit_result *a,
                        const struct vxd_svdag_edit_result *b)
{
    return a->n_added == b->n_added && a->n_removed == b->n_removed &&
           a->n_changed == b->n_changed && a->n_freed == b->n_freed;
}

static void test_edit_of_each_failed_allocation_leaves_the_scene_usable(void)
{
    static const struct vxd_svdag_spec spec = {.format = {6, 8, true}};
    struct vxd_svdag_edit_result expected = {0};
    struct vxd_svdag_summary wanted_scene = {0};
    int n_failures = 0;
    bool has_run_out = false;

    for (int k = -1; !has_run_out; k++) {
        struct vxd_svdag_edit_result result = {0};
        struct vxd_svdag_summary scene = {0};
        struct vxd_memory_usage memory;
        struct vxd_svdag *svdag = NULL;
        struct vxd_err err = {0};
        struct gpu_env env;
        enum vxd_status status;

        gpu_env_create(&env, VXD_BACKEND_CPU, 1, 0, 0);
        REQUIRE(vxd_svdag_create(env.queue, &spec, &svdag, NULL) == VXD_OK);
        fail_allocation(k);
        status = run_edit(&env, svdag, VXD_SVDAG_EMPTY, &result, &err);
        has_run_out = !stop_failing();
        if (status != VXD_OK) {
            CHECK_INT(status, VXD_RESOURCE_EXHAUSTED);
            CHECK(err.message[0] != '\0');
            n_failures++;
            CHECK_INT(run_edit(&env, svdag, VXD_SVDAG_EMPTY, &result, NULL), VXD_OK);
        }
        CHECK_INT(vxd_svdag_verify(env.queue, svdag, result.root, &scene, NULL), VXD_OK);
        if (k < 0) {
            expected = result;
            wanted_scene = scene;
        }
        CHECK(same_result(&result, &expected));
        CHECK(memcmp(&scene, &wanted_scene, sizeof scene) == 0);
        vxd_svdag_destroy(env.queue, svdag);
        CHECK_INT(vxd_queue_wait(env.queue, NULL), VXD_OK);
        vxd_context_get_memory(env.context, &memory);
        CHECK_INT(memory.device_bytes + memory.host_bytes, 0);
        gpu_env_destroy(&env);
    }
    CHECK(n_failures > 20);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_edit_of_each_failed_allocation_leaves_the_scene_usable)};

VXD_TEST_MAIN(tests)
