// SPDX-License-Identifier: Apache-2.0
/* Fails the k-th allocation, for every k, of changes to a durable scene and of a start: a change
 * that failed was never made, neither then nor after a start, and a start that failed has lost
 * and cut nothing. The linker puts our allocators in front (--wrap); SQLite's own are not among
 * them. */
#include "tests/support/test.h"

#include "tests/support/durable/durable_workload.h"
#include "tests/support/failing_alloc.h"
#include "tests/support/server/alloc_disk.h"
#include "tests/support/server/server_checks.h"

VXD_TEST_HELPERS

enum {
    ENOUGH = 5000
};

/* The k-th allocation of the journal's opening fails; none below 0. */
static enum vxd_status start(struct world *world, long k)
{
    alloc_start(world);
    fail_allocation(k);
    return alloc_open(world);
}

static const char undo[] = "{\"name\":\"a\"}";

/* One change of each kind, of the scene "a" and its branch. */
static const struct {
    const char *method;
    const char *json;
} changes[] = {
    {"scene_edit",
     "{\"name\":\"a\",\"in_voxels\":true,\"operations\":[{\"box\":{\"low\":{"
     "\"x\":1,\"y\":1,\"z\":1},\"high\":{\"x\":5,\"y\":5,\"z\":5}},"
     "\"material\":3}]}"},
    {"scene_undo", undo},
    {"scene_redo", undo},
    {"scene_branch", "{\"name\":\"a\",\"new_name\":\"b\"}"},
    {"scene_snapshot", "{\"name\":\"a\",\"snapshot\":\"x\"}"},
    {"scene_drop", "{\"name\":\"b\"}"},
};

enum {
    N_CHANGES = sizeof changes / sizeof changes[0]
};

/* A scene with the changes before number n. */
static void make(struct world *world, size_t n)
{
    alloc_folder_make();
    CHECK_INT(start(world, -1), VXD_OK);
    world_make(world, "a", world_durable);
    CHECK_INT(world_edit(world, "a", 0), VXD_OK);
    for (size_t i = 0; i < n; i++) {
        CHECK_INT(world_ask(world, changes[i].method, i + 1, changes[i].json), VXD_OK);
    }
}

static void check_same(struct seen a, struct seen b)
{
    CHECK_INT(a.status, b.status);
    CHECK_INT(a.version, b.version);
    CHECK_INT(a.generation, b.generation);
    CHECK_INT(a.n_snapshots, b.n_snapshots);
    CHECK_STR(a.digest, b.digest);
}

/* Change n, while its k-th allocation fails; *failed: it was there to fail. */
static enum vxd_status send_failing(struct world *world, size_t n, long k, bool *failed)
{
    struct call call;
    enum vxd_status status;

    fail_allocation(k);
    status = alloc_send(world, &call, changes[n].method, n + 1, changes[n].json);
    *failed = stop_failing();
    alloc_finish(&call);
    return status;
}

/* True when allocation k of change n was there to fail. */
static bool fail_change(size_t n, long k)
{
    struct world world;
    struct seen before[2];
    struct seen after[2];
    enum vxd_status status;
    bool failed;

    make(&world, n);
    before[0] = world_look(&world, "a", "");
    before[1] = world_look(&world, "b", "");
    status = send_failing(&world, n, k, &failed);
    CHECK(status == VXD_OK || (failed && status == VXD_RESOURCE_EXHAUSTED));
    if (status != VXD_OK) {
        check_same(world_look(&world, "a", ""), before[0]);
        check_same(world_look(&world, "b", ""), before[1]);
    }
    /* Once, whether it was done or not. */
    CHECK_INT(world_ask(&world, changes[n].method, n + 1, changes[n].json), VXD_OK);
    after[0] = world_look(&world, "a", "");
    after[1] = world_look(&world, "b", "");
    CHECK_INT(after[0].version, before[0].version + (n < 3 ? 1 : 0));
    world_stop(&world);
    CHECK_INT(start(&world, -1), VXD_OK);
    check_same(world_look(&world, "a", ""), after[0]);
    check_same(world_look(&world, "b", ""), after[1]);
    world_stop(&world);
    alloc_folder_remove();
    return failed;
}

static void test_durable_change_any_failing_allocation_changes_nothing(void)
{
    for (size_t n = 0; n < N_CHANGES; n++) {
        long k = 0;

        while (k < ENOUGH && vxd_test_n_failed_checks == 0 && fail_change(n, k)) {
            k += vxd_test_slow();
        }
        CHECK(k >= 6);
    }
}

static void test_start_any_failing_allocation_loses_nothing(void)
{
    struct world world;
    struct seen before[3];
    bool failed = true;
    long k = 0;

    make(&world, N_CHANGES - 1);
    CHECK_INT(world_save(&world, 1, 1, WORLD_PATIENT), 1);
    CHECK_INT(world_edit(&world, "b", 3), VXD_OK);
    before[0] = world_look(&world, "a", "");
    before[1] = world_look(&world, "b", "");
    before[2] = world_look(&world, "a", "x");
    world_stop(&world);
    for (; k < ENOUGH && failed && vxd_test_n_failed_checks == 0; k += vxd_test_slow()) {
        enum vxd_status status = start(&world, k);

        failed = stop_failing();
        CHECK(status == VXD_OK || (failed && status == VXD_RESOURCE_EXHAUSTED));
        if (status == VXD_OK) {
            check_same(world_look(&world, "a", ""), before[0]);
            check_same(world_look(&world, "b", ""), before[1]);
            check_same(world_look(&world, "a", "x"), before[2]);
        }
        world_stop(&world);
    }
    CHECK(k >= 50);
    CHECK_INT(start(&world, -1), VXD_OK);
    check_same(world_look(&world, "a", ""), before[0]);
    check_same(world_look(&world, "b", ""), before[1]);
    check_same(world_look(&world, "a", "x"), before[2]);
    /* Outcomes are known. */
    CHECK_INT(world_ask(&world, changes[0].method, 1, changes[0].json), VXD_OK);
    check_same(world_look(&world, "a", ""), before[0]);
    world_stop(&world);
    alloc_folder_remove();
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_durable_change_any_failing_allocation_changes_nothing),
    VXD_TEST(test_start_any_failing_allocation_loses_nothing),
};

VXD_TEST_MAIN(tests)
