// SPDX-License-Identifier: Apache-2.0
/* Durable volumes on a disk that fails: whatever was answered is there afterwards, every layer bit
 * for bit, and whatever failed is not and was never seen. */
#include "tests/support/test.h"

#include "tests/support/server/server_checks.h"
#include "tests/support/server/volumes_disk.h"

VXD_TEST_HELPERS

enum {
    N_FLIGHT = 5, /* changes in flight when the disk fails */
    N_WORK = 8,   /* changes of a workload */
    MIN_CALLS = 8,
    MAX_CALLS = 200
};

static void check_view(struct volume_view view, uint64_t digest)
{
    CHECK_INT(view.status, VXD_OK);
    CHECK(view.digest == digest);
}

/* Digests after each change, from a volume in memory. */
static void expect(struct world *world, uint64_t *digests, int n)
{
    world_make_volume(world, "model", "");
    for (int i = 0; i < n; i++) {
        CHECK_INT(world_change_volume(world, "model", i, 0), VXD_OK);
        digests[i] = world_view_volume(world, "model").digest;
    }
}

/* --- commits that fail --------------------------------------------------------------------- */

/* Changes in flight while call number k fails; true when none of them did. */
static bool fail_call(struct world *world, int k, enum fault_kind kind,
                      const uint64_t *digests)
{
    struct fault_plan plan = fault_none;
    struct call calls[N_FLIGHT];
    struct call reader;
    char json[VOLUME_JSON_BYTES];
    struct gate gate;
    int n_ok = 0;

    gate_close(&gate, world);
    for (int i = 0; i < N_FLIGHT; i++) {
        const char *method = world_volume_change("a", i + 1, json);

        world_send(world, &calls[i], method, 10 + (uint64_t)i, json);
    }
    world_wait_for_changes(world, N_FLIGHT);
    world_send(world, &reader, "volume_extract", 0, "{\"name\":\"a\"}");
    world_wait_for_changes(world, N_FLIGHT + 1);
    CHECK(!call_is_answered(&reader)); /* it would show a change that is not decided */
    plan.fail_at_call = k;
    plan.fail_kind = kind;
    fault_disk_plan(world->disk, &plan);
    gate_open(&gate);
    for (int i = 0; i < N_FLIGHT; i++) {
        bool is_ok = world_receive(&calls[i]) == VXD_OK;

        /* What was built on one that failed has failed too. */
        CHECK(!is_ok || n_ok == i);
        n_ok += is_ok ? 1 : 0;
    }
    CHECK(world_receive(&reader) != VXD_OK || n_ok == N_FLIGHT);
    fault_disk_plan(world->disk, &fault_none);
    check_view(world_view_volume(world, "a"), digests[n_ok]);
    for (int i = 0; i < N_FLIGHT; i++) {
        const char *method = world_volume_change("a", i + 1, json);

        CHECK_INT(world_insist(world, method, 10 + (uint64_t)i, json), VXD_OK);
    }
    check_view(world_view_volume(world, "a"), digests[N_FLIGHT]);
    return n_ok == N_FLIGHT;
}

static void test_volume_changes_that_fail_are_taken_back(void)
{
    uint64_t digests[N_FLIGHT + 1];
    bool is_over = false;

    for (int k = 0;
         k < MAX_CALLS && !(is_over && k >= MIN_CALLS) && vxd_test_n_failed_checks == 0;
         k += 3) {
        struct world world;
        struct volume_view before;
        struct volume_view after;

        world_begin(&world);
        expect(&world, digests, N_FLIGHT + 1);
        world_make_volume(&world, "a", world_durable_volume);
        CHECK_INT(world_change_volume(&world, "a", 0, 0), VXD_OK);
        is_over = fail_call(&world, k, k % 6 == 0 ? FAULT_EIO : FAULT_ENOSPC, digests);
        before = world_view_volume(&world, "a");
        world_stop(&world);
        fault_disk_lose_power(world.disk, FAULT_DROP_ALL, 1);
        world_start(&world);
        after = world_view_volume(&world, "a");
        check_view(after, digests[N_FLIGHT]);
        CHECK(after.generation == before.generation && after.stamp == before.stamp);
        CHECK_INT(world_change_volume(&world, "a", 3, 12),
                  VXD_OK); /* as before: nothing happens */
        check_view(world_view_volume(&world, "a"), digests[N_FLIGHT]);
        world_end(&world);
    }
    CHECK(is_over);
}

/* --- power that goes ----------------------------------------------------------------------- */

/* Changes, with a snapshot file between them, until one is not answered OK; how many were. */
static int work(struct world *world)
{
    for (int i = 0; i < N_WORK; i++) {
        if (world_change_volume(world, "a", i, 20 + (uint64_t)i) != VXD_OK) {
            return i;
        }
        if (i == 3) {
            (void)world_save(world, 1, 1, 40);
        }
    }
    return N_WORK;
}

/* Power is lost at sync number k; true when the work was done before it. */
static bool lose_power(int k, enum fault_loss loss, const uint64_t *digests)
{
    struct fault_plan plan = fault_none;
    struct world world;
    struct volume_view view;
    uint64_t generation;
    uint64_t empty;
    int n_done;

    world_begin(&world);
    world_make_volume(&world, "a", world_durable_volume);
    generation = world_view_volume(&world, "a").generation;
    empty = world_view_volume(&world, "a").digest;
    plan.crash_at_sync = k;
    fault_disk_plan(world.disk, &plan);
    n_done = work(&world);
    world_stop(&world);
    fault_disk_lose_power(world.disk, loss, (uint64_t)k + 7);
    fault_disk_plan(world.disk, &fault_none);
    world_start(&world);
    view = world_view_volume(&world, "a");
    /* A change that was not answered may be there as a whole, or not at all. */
    CHECK_INT(view.status, VXD_OK);
    CHECK(view.generation == generation);
    CHECK(view.digest == (n_done > 0 ? digests[n_done - 1] : empty) ||
          (n_done < N_WORK && view.digest == digests[n_done]));
    for (int i = n_done; i < N_WORK; i++) {
        CHECK_INT(world_change_volume(&world, "a", i, 20 + (uint64_t)i), VXD_OK);
    }
    check_view(world_view_volume(&world, "a"), digests[N_WORK - 1]);
    world_end(&world);
    return n_done == N_WORK;
}

static void test_power_lost_at_any_sync_keeps_what_was_answered(void)
{
    uint64_t digests[N_WORK];
    struct world world;
    bool is_over = false;

    world_begin(&world);
    expect(&world, digests, N_WORK);
    world_end(&world);
    for (int k = 0; k < MAX_CALLS && !is_over && vxd_test_n_failed_checks == 0; k++) {
        is_over = lose_power(k, (enum fault_loss)(k % FAULT_N_LOSSES), digests);
    }
    CHECK(is_over);
}

/* --- made, copied and dropped --------------------------------------------------------------- */

static void test_copy_of_what_fails_is_not_there(void)
{
    struct fault_plan plan = fault_none;
    struct world world;
    struct call calls[3];
    struct gate gate;
    char json[VOLUME_JSON_BYTES];

    world_begin(&world);
    world_make_volume(&world, "a", world_durable_volume);
    CHECK_INT(world_change_volume(&world, "a", 0, 0), VXD_OK);
    gate_close(&gate, &world);
    world_send(&world, &calls[0], world_volume_change("a", 1, json), 1, json);
    world_send(&world, &calls[1], "volume_copy", 2,
               "{\"name\":\"a\",\"to\":\"durable\",\"durable\":true}");
    world_send(&world, &calls[2], "volume_copy", 3, "{\"name\":\"a\",\"to\":\"memory\"}");
    world_wait_for_changes(&world, 3);
    plan.fail_at_call = 0;
    fault_disk_plan(world.disk, &plan);
    gate_open(&gate);
    for (int i = 0; i < 3; i++) {
        CHECK(world_receive(&calls[i]) != VXD_OK);
    }
    fault_disk_plan(world.disk, &fault_none);
    CHECK_INT(world_view_volume(&world, "durable").status, VXD_NOT_FOUND);
    CHECK_INT(world_view_volume(&world, "memory").status, VXD_NOT_FOUND);
    CHECK_INT(world_insist(&world, "volume_copy", 2,
                           "{\"name\":\"a\",\"to\":\"durable\",\"durable\":true}"),
              VXD_OK);
    check_view(world_view_volume(&world, "durable"),
               world_view_volume(&world, "a").digest);
    world_end(&world);
}

static void test_drop_behind_waiting_changes_takes_the_volume_away(void)
{
    struct call calls[2];
    struct world world;
    struct gate gate;
    char json[VOLUME_JSON_BYTES];

    world_begin(&world);
    world_make_volume(&world, "a", world_durable_volume);
    gate_close(&gate, &world);
    world_send(&world, &calls[0], world_volume_change("a", 0, json), 1, json);
    world_send(&world, &calls[1], "volume_drop", 2, "{\"name\":\"a\"}");
    world_wait_for_changes(&world, 2);
    CHECK_INT(world_change_volume(&world, "a", 1, 0), VXD_UNAVAILABLE);
    gate_open(&gate);
    CHECK_INT(world_receive(&calls[0]), VXD_OK);
    CHECK_INT(world_receive(&calls[1]), VXD_OK);
    CHECK_INT(world_view_volume(&world, "a").status, VXD_NOT_FOUND);
    world_stop(&world);
    world_start(&world);
    CHECK_INT(world_view_volume(&world, "a").status, VXD_NOT_FOUND);
    world_end(&world);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_volume_changes_that_fail_are_taken_back),
    VXD_TEST(test_power_lost_at_any_sync_keeps_what_was_answered),
    VXD_TEST(test_copy_of_what_fails_is_not_there),
    VXD_TEST(test_drop_behind_waiting_changes_takes_the_volume_away),
};

VXD_TEST_MAIN(tests)
