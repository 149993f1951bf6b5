// SPDX-License-Identifier: Apache-2.0
/* Fails every allocation of undos and diffs in turn: linked with --wrap, as test_gpu_alloc.
 * Leaks show under AddressSanitizer. */
#include "tests/support/test.h"

#include "gpu/svdag/diff/diff.h"
#include "gpu/svdag/edit/edit.h"
#include "tests/support/failing_alloc.h"
#include "tests/support/gpu/gpu_helpers.h"

static uint32_t fill_ball(struct gpu_env *env, struct vxd_svdag *svdag, uint32_t root,
                          int64_t at, uint32_t value)
{
    struct vxd_svdag_op op = {.action = VXD_SVDAG_FILL, .value = value};
    struct vxd_svdag_edit_result result = {.root = root};

    op.shape.kind = VXD_SVDAG_BALL;
    op.shape.r = (int64_t)20 * VXD_SVDAG_UNIT;
    for (int axis = 0; axis < 3; axis++) {
        op.shape.a[axis] = at * VXD_SVDAG_UNIT;
    }
    CHECK_INT(vxd_svdag_edit_wait(env->queue, svdag, root, &op, 1, &result, NULL),
              VXD_OK);
    return result.root;
}

/* Adds two balls, undoes the first, and computes the diff. */
struct versions {
    struct vxd_svdag *svdag;
    uint32_t first;
    uint32_t second;
};

static enum vxd_status run(struct gpu_env *env, const struct versions *versions,
                           struct vxd_svdag_edit_result *out, uint64_t n_cells[2],
                           struct vxd_err *err)
{
    static const struct vxd_svdag_diff_box box = {{0, 0, 0}, {64, 64, 64}, 4};
    int32_t cells[3 * 64];
    uint8_t changes[64];
    enum vxd_status status =
        vxd_svdag_undo_wait(env->queue, versions->svdag, versions->second,
                            VXD_SVDAG_EMPTY, versions->first, out, err);

    if (status == VXD_OK) {
        status = vxd_svdag_diff(env->queue, versions->svdag, versions->second, out->root,
                                &box, 0, 64, cells, changes, n_cells, err);
    }
    return status != VXD_OK ? status : vxd_queue_wait(env->queue, err);
}

static void test_undo_and_diff_of_each_failed_allocation_leave_the_scene_usable(void)
{
    static const struct vxd_svdag_spec spec = {.format = {6, 8, true}};
    uint64_t n_removed = 0;
    int n_failures = 0;
    bool has_run_out = false;

    for (int k = -1; !has_run_out; k++) {
        struct vxd_svdag_edit_result result = {0};
        struct vxd_memory_usage memory;
        struct versions versions = {NULL, 0, 0};
        uint64_t n_cells[2] = {0, 0};
        struct vxd_err err = {0};
        struct gpu_env env;
        enum vxd_status status;

        gpu_env_create(&env, VXD_BACKEND_CPU, 1, 0, 0);
        REQUIRE(vxd_svdag_create(env.queue, &spec, &versions.svdag, NULL) == VXD_OK);
        versions.first = fill_ball(&env, versions.svdag, VXD_SVDAG_EMPTY, 30, 3);
        versions.second = fill_ball(&env, versions.svdag, versions.first, 40, 5);
        fail_allocation(k);
        status = run(&env, &versions, &result, n_cells, &err);
        has_run_out = !stop_failing();
        if (status != VXD_OK) {
            CHECK_INT(status, VXD_RESOURCE_EXHAUSTED);
            CHECK(err.message[0] != '\0');
            n_failures++;
            CHECK_INT(run(&env, &versions, &result, n_cells, NULL), VXD_OK);
        }
        n_removed = k < 0 ? result.n_removed : n_removed;
        CHECK(result.n_removed == n_removed && n_removed > 1000);
        CHECK(n_cells[0] == n_cells[1] && n_cells[0] > 8);
        vxd_svdag_destroy(env.queue, versions.svdag);
        CHECK_INT(vxd_queue_wait(env.queue, NULL), VXD_OK);
        vxd_context_get_memory(env.context, &memory);
        CHECK_INT(memory.device_bytes + memory.host_bytes, 0);
        gpu_env_destroy(&env);
    }
    CHECK(n_failures > 4);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_undo_and_diff_of_each_failed_allocation_leave_the_scene_usable)};

VXD_TEST_MAIN(tests)
