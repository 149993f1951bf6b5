// SPDX-License-Identifier: Apache-2.0
/* Fails every allocation of a store in turn: linked with --wrap, as test_gpu_alloc. Leaks
 * show under AddressSanitizer. */
#include "tests/support/test.h"

#include "gpu/svdag/store/store.h"
#include "tests/support/failing_alloc.h"
#include "tests/support/gpu/gpu_helpers.h"

/* Inserts a tree of 4^3 random leaves into a new store and verifies it. */
static enum vxd_status use_store(struct gpu_env *env, enum vxd_svdag_store store,
                                 struct vxd_svdag_summary *out, struct vxd_err *err)
{
    bool is_arena = store == VXD_SVDAG_ARENA;
    const struct vxd_svdag_spec spec = {.format = {4, is_arena ? 8 : 4, true},
                                        .store = store};
    struct vxd_svdag_writer writer = {0};
    struct vxd_svdag *svdag = NULL;
    uint64_t state = 3;
    uint32_t refs[64];
    enum vxd_status status;

    VXD_TRY(vxd_svdag_create(env->queue, &spec, &svdag, err));
    writer.svdag = svdag;
    for (int i = 0; i < 64; i++) {
        uint16_t values[64];
        struct vxd_svdag_leaf leaf = {.set = gpu_random(&state),
                                      .free = gpu_random(&state),
                                      .is_mixed = true,
                                      .values = values};

        for (int k = 0; k < 64; k++) {
            values[k] = (uint16_t)(gpu_random(&state) % (is_arena ? 255 : 15));
        }
        VXD_TRY(vxd_svdag_leaf_put(&writer, &leaf, &refs[i], err));
    }
    for (int i = 0; i < 8; i++) {
        uint32_t children[8];

        memcpy(children, refs + 8 * i, sizeof children);
        VXD_TRY(vxd_svdag_inner_put(&writer, 3, children, &refs[i], err));
    }
    VXD_TRY(vxd_svdag_inner_put(&writer, 4, refs, &refs[0], err));
    VXD_TRY(vxd_svdag_verify(env->queue, svdag, refs[0], out, err));

out:
    if (svdag != NULL) {
        vxd_svdag_writer_close(&writer);
    }
    vxd_svdag_destroy(env->queue, svdag);
    return status;
}

static void fail_each(enum vxd_svdag_store store, int n_least)
{
    struct vxd_svdag_summary expected;
    struct gpu_env env;
    int n_failures = 0;
    bool has_run_out = false;

    gpu_env_create(&env, VXD_BACKEND_CPU, 1, 0, 0);
    REQUIRE(use_store(&env, store, &expected, NULL) == VXD_OK);
    gpu_env_destroy(&env);
    for (int k = 0; !has_run_out; k++) {
        struct vxd_svdag_summary summary;
        struct vxd_memory_usage memory;
        struct vxd_err err = {0};
        enum vxd_status status;

        gpu_env_create(&env, VXD_BACKEND_CPU, 1, 0, 0);
        fail_allocation(k);
        status = use_store(&env, store, &summary, &err);
        has_run_out = !stop_failing();
        if (status == VXD_OK) {
            /* Also fails where only a writer's cache of items cannot be allocated. */
            CHECK(memcmp(&summary, &expected, sizeof expected) == 0);
        } else {
            CHECK_INT(status, VXD_RESOURCE_EXHAUSTED);
            CHECK(err.message[0] != '\0');
            n_failures++;
        }
        vxd_context_get_memory(env.context, &memory);
        CHECK_INT(memory.device_bytes + memory.host_bytes, 0);
        gpu_env_destroy(&env);
    }
    CHECK(n_failures >= n_least);
}

static void test_store_of_each_failed_allocation_gives_all_back(void)
{
    fail_each(VXD_SVDAG_ARENA, 100);
#if defined(VXD_WITH_PAPER)
    /* At least the scene, its lists, and a chunk for each of four lengths. */
    fail_each(VXD_SVDAG_ATOMIC64, 6);
    fail_each(VXD_SVDAG_ACCEL8, 6);
#endif
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_store_of_each_failed_allocation_gives_all_back),
};

VXD_TEST_MAIN(tests)
