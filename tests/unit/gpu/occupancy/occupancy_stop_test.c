// SPDX-License-Identifier: Apache-2.0
/* Scans of so many new blocks that their layer takes them in parts, given up at each border in
 * turn. */
#include "tests/support/test.h"

#include "gpu/occupancy/occupancy.h"
#include "gpu/svdag/edit/edit.h"
#include "tests/support/svdag/svdag_run.h"

enum {
    DEPTH = 8,
    N_BLOCKS = 20000, /* of 32768, each hit in one voxel */
    BLOCK_LEAVES = 8
};

struct stopping {
    struct gpu_env *env;
    struct vxd_svdag *svdag;
    struct vxd_occupancy *layer;
    struct vxd_buffer codes, masks;
    struct vxd_svdag_voxels hits;
};

static void begin(struct stopping *stopping, struct gpu_env *env)
{
    const struct vxd_svdag_spec spec = {.format = {DEPTH, 0, true}};
    struct vxd_occupancy_odds odds = {0};
    struct vxd_occupancy_rule rule;
    uint64_t *codes = gpu_alloc(N_BLOCKS * sizeof *codes);
    uint64_t *masks = gpu_alloc(N_BLOCKS * sizeof *masks);
    struct vxd_err err = {0};

    *stopping = (struct stopping){.env = env};
    REQUIRE(vxd_occupancy_rule_of(&odds, &rule, &err) == VXD_OK);
    stopping->svdag = gpu_svdag_create(env, &spec);
    REQUIRE(vxd_occupancy_create(env->queue, &rule, DEPTH, &stopping->layer, &err) ==
            VXD_OK);
    for (uint64_t i = 0; i < N_BLOCKS; i++) {
        codes[i] = i * BLOCK_LEAVES + i % BLOCK_LEAVES;
        masks[i] = (uint64_t)1 << i % 64;
    }
    stopping->codes = gpu_to_device(env, codes, N_BLOCKS * sizeof *codes);
    stopping->masks = gpu_to_device(env, masks, N_BLOCKS * sizeof *masks);
    stopping->hits = (struct vxd_svdag_voxels){
        .codes = stopping->codes.ptr, .masks = stopping->masks.ptr, .n = N_BLOCKS};
    free(codes);
    free(masks);
}

static void end(struct stopping *stopping)
{
    struct vxd_queue *queue = stopping->env->queue;

    vxd_device_free(queue, &stopping->codes);
    vxd_device_free(queue, &stopping->masks);
    vxd_occupancy_destroy(queue, stopping->layer);
    vxd_svdag_destroy(queue, stopping->svdag);
    gpu_wait(stopping->env);
}

static bool is_stopped(void *n)
{
    return --*(int *)n < 0;
}

static enum vxd_status plan_scan(struct stopping *stopping, int n_borders,
                                 struct vxd_occupancy_plan **plan, struct vxd_err *err)
{
    struct vxd_svdag_voxels freed;
    enum vxd_status status;

    vxd_svdag_set_stop(stopping->svdag, is_stopped, &n_borders);
    status = vxd_occupancy_plan_scan(stopping->env->queue, stopping->layer,
                                     stopping->svdag, VXD_SVDAG_EMPTY, &stopping->hits, 1,
                                     NULL, 0, plan, &freed, err);
    vxd_svdag_set_stop(stopping->svdag, NULL, NULL);
    return status;
}

static void check_observed(struct stopping *stopping, uint64_t n_observed)
{
    struct vxd_occupancy_stats stats;

    CHECK(!vxd_occupancy_is_damaged(stopping->layer));
    CHECK_INT(
        vxd_occupancy_get_stats(stopping->env->queue, stopping->layer, &stats, NULL),
        VXD_OK);
    CHECK_INT(stats.n_observed, n_observed);
}

static void stop_everywhere(struct gpu_env *env)
{
    struct vxd_occupancy_plan *plan = NULL;
    struct stopping stopping;
    struct vxd_err err = {0};
    enum vxd_status status = VXD_CANCELLED;
    int n_borders = 0;

    begin(&stopping, env);
    for (; status == VXD_CANCELLED && n_borders < 100; n_borders++) {
        status = plan_scan(&stopping, n_borders, &plan, &err);
        CHECK(status == VXD_OK || plan == NULL);
        check_observed(&stopping, 0);
    }
    CHECK_INT(status, VXD_OK);
    CHECK(gpu_is_cuda(env) || n_borders > 6);
    REQUIRE(plan != NULL);
    CHECK_INT(vxd_occupancy_apply(env->queue, stopping.layer, plan, &err), VXD_OK);
    vxd_occupancy_plan_free(env->queue, plan);
    check_observed(&stopping, N_BLOCKS);
    end(&stopping);
}

static void test_scan_given_up_at_any_border_has_observed_nothing(void)
{
    gpu_each_backend(stop_everywhere);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_scan_given_up_at_any_border_has_observed_nothing),
};

VXD_TEST_MAIN(tests)
