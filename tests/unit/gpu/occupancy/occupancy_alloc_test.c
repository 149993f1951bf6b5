// SPDX-License-Identifier: Apache-2.0
/* Fails every allocation of a scan's plan in turn: linked with --wrap, as test_gpu_alloc. The
 * layer either means what it meant or says that it has forgotten its values. */
#include "tests/support/test.h"

#include "gpu/occupancy/occupancy.h"
#include "gpu/svdag/edit/edit.h"
#include "tests/support/failing_alloc.h"
#include "tests/support/gpu/gpu_helpers.h"

enum {
    DEPTH = 6,
    SIDE = 1 << DEPTH,
    N = SIDE * SIDE * SIDE,
    N_SEEN = 3,
    HIT = 25, /* OctoMap's defaults in steps (occupancy.h) */
    HIGH = 104
};

/* Leaves that a first scan hits, and those that a second one passes, in other blocks too. */
static const uint64_t seen_codes[N_SEEN] = {0, 9, 700};
static const uint64_t seen_masks[N_SEEN] = {5, ~(uint64_t)0, 1};
static const uint64_t passed_codes[] = {1, 9, 100, 900, 1000, 2000, 3000};
static const uint64_t passed_masks[] = {~(uint64_t)0, 1, 2, 3, 4, 5, 6};

static const struct vxd_svdag_voxels seen_list = {
    .codes = seen_codes, .masks = seen_masks, .n = N_SEEN};
static const struct vxd_svdag_voxels passed_list = {.codes = passed_codes,
                                                    .masks = passed_masks,
                                                    .n = sizeof passed_codes /
                                                         sizeof passed_codes[0]};

static int8_t values_before[N];
static int8_t values_after[N];
static int32_t voxels[N][3];

struct scene {
    struct gpu_env env;
    struct vxd_svdag *svdag;
    struct vxd_occupancy *layer;
    uint32_t root;
};

static enum vxd_status plan_scan(struct scene *scene, const struct vxd_svdag_voxels *hits,
                                 const struct vxd_svdag_voxels *passed,
                                 struct vxd_occupancy_plan **plan, struct vxd_err *err)
{
    struct vxd_svdag_voxels freed;

    return vxd_occupancy_plan_scan(scene->env.queue, scene->layer, scene->svdag,
                                   scene->root, hits, hits != NULL ? 1 : 0, passed,
                                   passed != NULL ? 1 : 0, plan, &freed, err);
}

static void read_values(struct scene *scene, int8_t *values)
{
    CHECK_INT(vxd_occupancy_values(scene->env.queue, scene->layer, scene->svdag,
                                   scene->root, &voxels[0][0], N, values, NULL),
              VXD_OK);
    CHECK_INT(vxd_queue_wait(scene->env.queue, NULL), VXD_OK);
}

/* A scene that one scan has seen. */
static void begin(struct scene *scene)
{
    static const struct vxd_svdag_spec spec = {.format = {DEPTH, 0, true}};
    const struct vxd_svdag_op op = {
        .shape = {.kind = VXD_SVDAG_VOXELS, .voxels = seen_list},
        .action = VXD_SVDAG_FILL};
    struct vxd_svdag_edit_result result = {0};
    struct vxd_occupancy_plan *plan = NULL;
    struct vxd_occupancy_odds odds = {0};
    struct vxd_occupancy_rule rule;

    *scene = (struct scene){.root = VXD_SVDAG_EMPTY};
    gpu_env_create(&scene->env, VXD_BACKEND_CPU, 1, 0, 0);
    REQUIRE(vxd_occupancy_rule_of(&odds, &rule, NULL) == VXD_OK);
    REQUIRE(vxd_svdag_create(scene->env.queue, &spec, &scene->svdag, NULL) == VXD_OK);
    REQUIRE(vxd_occupancy_create(scene->env.queue, &rule, DEPTH, &scene->layer, NULL) ==
            VXD_OK);
    REQUIRE(plan_scan(scene, &seen_list, NULL, &plan, NULL) == VXD_OK);
    REQUIRE(vxd_svdag_edit_wait(scene->env.queue, scene->svdag, scene->root, &op, 1,
                                &result, NULL) == VXD_OK);
    REQUIRE(vxd_occupancy_apply(scene->env.queue, scene->layer, plan, NULL) == VXD_OK);
    vxd_occupancy_plan_free(scene->env.queue, plan);
    scene->root = result.root;
    read_values(scene, values_before);
}

static void end(struct scene *scene)
{
    struct vxd_memory_usage memory;

    vxd_occupancy_destroy(scene->env.queue, scene->layer);
    vxd_svdag_destroy(scene->env.queue, scene->svdag);
    CHECK_INT(vxd_queue_wait(scene->env.queue, NULL), VXD_OK);
    vxd_context_get_memory(scene->env.context, &memory);
    CHECK_INT(memory.device_bytes + memory.host_bytes, 0);
    gpu_env_destroy(&scene->env);
}

/* How many values are not those before, or with `forgotten` the clamps of their states. */
static size_t count_wrong(bool forgotten)
{
    size_t n_wrong = 0;

    for (size_t i = 0; i < N; i++) {
        int wanted =
            forgotten && values_before[i] == HIT ? (int)HIGH : (int)values_before[i];

        n_wrong += values_after[i] != wanted;
    }
    return n_wrong;
}

static void test_plan_of_each_failed_allocation_keeps_the_layer_or_says_it_forgot(void)
{
    int n_failures = 0;
    int n_forgotten = 0;
    bool has_run_out = false;

    for (int i = 0; i < N; i++) {
        voxels[i][0] = i / SIDE / SIDE;
        voxels[i][1] = i / SIDE % SIDE;
        voxels[i][2] = i % SIDE;
    }
    for (int k = 0; !has_run_out; k++) {
        struct vxd_occupancy_plan *plan = NULL;
        struct vxd_err err = {0};
        struct scene scene;
        enum vxd_status status;
        bool is_damaged;

        begin(&scene);
        fail_allocation(k);
        status = plan_scan(&scene, NULL, &passed_list, &plan, &err);
        has_run_out = !stop_failing();
        is_damaged = vxd_occupancy_is_damaged(scene.layer);
        CHECK(status == VXD_OK || (status == VXD_RESOURCE_EXHAUSTED && !has_run_out));
        CHECK(!is_damaged || status != VXD_OK);
        n_failures += status != VXD_OK ? 1 : 0;
        n_forgotten += is_damaged ? 1 : 0;
        vxd_occupancy_plan_free(scene.env.queue, plan);
        read_values(&scene, values_after);
        CHECK_INT(count_wrong(is_damaged), 0);
        CHECK(!vxd_occupancy_is_damaged(scene.layer));
        end(&scene);
    }
    CHECK(n_failures > 20);
    CHECK(n_forgotten > 0 && n_forgotten < n_failures);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_plan_of_each_failed_allocation_keeps_the_layer_or_says_it_forgot)};

VXD_TEST_MAIN(tests)
