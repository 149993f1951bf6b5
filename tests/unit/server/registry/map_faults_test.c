// SPDX-License-Identifier: Apache-2.0
/* Durable maps on a disk that fails: whatever was answered is there afterwards, whatever failed
 * is not and was never seen, and later changes work. */
#include "tests/support/test.h"

#include "server/durable/snapshot/snapshot.h"
#include "server/registry/maps/maps.h"
#include "server/registry/registry.h"
#include "tests/support/server/server_checks.h"
#include "tests/support/server/maps_disk.h"
#include "voxeld/v1/hashmap.pb-c.h"

VXD_TEST_HELPERS

enum {
    N_FLIGHT = 6, /* changes in flight when the disk fails */
    N_WORK = 10,  /* changes of a workload */
    MIN_CALLS = 8,
    MAX_CALLS = 200
};

static void check_view(struct map_view view, uint64_t digest)
{
    CHECK_INT(view.status, VXD_OK);
    CHECK(view.digest == digest);
}

/* Digests after each change, from a map in memory. */
static void expect(struct world *world, uint64_t *digests, int n)
{
    world_make_map(world, "model", "");
    for (int i = 0; i < n; i++) {
        CHECK_INT(world_change_map(world, "model", i, 0), VXD_OK);
        digests[i] = world_view_map(world, "model").digest;
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
    char json[MAP_JSON_BYTES];
    struct gate gate;
    int n_ok = 0;

    gate_close(&gate, world);
    for (int i = 0; i < N_FLIGHT; i++) {
        const char *method = world_map_change("a", i + 1, json);

        world_send(world, &calls[i], method, 10 + (uint64_t)i, json);
    }
    world_wait_for_changes(world, N_FLIGHT);
    world_send(world, &reader, "map_export", 0, "{\"name\":\"a\"}");
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
    /* Where it was the mark that failed, it may be refused although all changes hold. */
    CHECK(world_receive(&reader) != VXD_OK || n_ok == N_FLIGHT);
    fault_disk_plan(world->disk, &fault_none);
    check_view(world_view_map(world, "a"), digests[n_ok]);
    for (int i = 0; i < N_FLIGHT; i++) {
        const char *method = world_map_change("a", i + 1, json);

        CHECK_INT(world_insist(world, method, 10 + (uint64_t)i, json), VXD_OK);
    }
    check_view(world_view_map(world, "a"), digests[N_FLIGHT]);
    return n_ok == N_FLIGHT;
}

static void fail_each(enum fault_kind kind)
{
    uint64_t digests[N_FLIGHT + 1];
    bool is_over = false;

    for (int k = 0;
         k < MAX_CALLS && !(is_over && k >= MIN_CALLS) && vxd_test_n_failed_checks == 0;
         k++) {
        struct world world;
        struct map_view before;

        world_begin(&world);
        expect(&world, digests, N_FLIGHT + 1);
        world_make_map(&world, "a", world_durable_map);
        CHECK_INT(world_change_map(&world, "a", 0, 0), VXD_OK);
        is_over = fail_call(&world, k, kind, digests);
        before = world_view_map(&world, "a");
        world_stop(&world);
        fault_disk_lose_power(world.disk, FAULT_DROP_ALL, 1);
        world_start(&world);
        check_view(world_view_map(&world, "a"), digests[N_FLIGHT]);
        CHECK(world_view_map(&world, "a").generation == before.generation);
        CHECK(world_view_map(&world, "a").epoch == before.epoch);
        CHECK_INT(world_change_map(&world, "a", 3, 12),
                  VXD_OK); /* as before: nothing happens */
        check_view(world_view_map(&world, "a"), digests[N_FLIGHT]);
        world_end(&world);
    }
    CHECK(is_over);
}

static void test_map_changes_that_fail_with_eio_are_taken_back(void)
{
    fail_each(FAULT_EIO);
}

static void test_map_changes_on_a_full_disk_are_taken_back(void)
{
    fail_each(FAULT_ENOSPC);
}

static void test_map_changes_that_are_cut_short_are_taken_back(void)
{
    fail_each(FAULT_SHORT);
}

/* --- power that goes ----------------------------------------------------------------------- */

/* Changes, with snapshot files between them, until one is not answered OK; how many were. */
static int work(struct world *world)
{
    for (int i = 0; i < N_WORK; i++) {
        if (world_change_map(world, "a", i, 20 + (uint64_t)i) != VXD_OK) {
            return i;
        }
        if (i == 3 || i == 6) {
            (void)world_save(world, 1, i == 3 ? 1 : 2, 40);
        }
    }
    return N_WORK;
}

/* Power is lost at sync number k; true when the work was done before it. */
static bool lose_power(int k, enum fault_loss loss, const uint64_t *digests)
{
    struct fault_plan plan = fault_none;
    struct world world;
    struct map_view view;
    uint64_t generation;
    uint64_t empty;
    int n_done;

    world_begin(&world);
    world_make_map(&world, "a", world_durable_map);
    generation = world_view_map(&world, "a").generation;
    empty = world_view_map(&world, "a").digest;
    plan.crash_at_sync = k;
    fault_disk_plan(world.disk, &plan);
    n_done = work(&world);
    world_stop(&world);
    fault_disk_lose_power(world.disk, loss, (uint64_t)k + 7);
    fault_disk_plan(world.disk, &fault_none);
    world_start(&world);
    view = world_view_map(&world, "a");
    /* A change that was not answered may be there as a whole, or not at all. */
    CHECK_INT(view.status, VXD_OK);
    CHECK(view.generation == generation);
    CHECK(view.digest == (n_done > 0 ? digests[n_done - 1] : empty) ||
          (n_done < N_WORK && view.digest == digests[n_done]));
    for (int i = n_done; i < N_WORK; i++) {
        CHECK_INT(world_change_map(&world, "a", i, 20 + (uint64_t)i), VXD_OK);
    }
    check_view(world_view_map(&world, "a"), digests[N_WORK - 1]);
    world_end(&world);
    return n_done == N_WORK;
}

static void test_power_lost_at_any_sync_keeps_what_was_answered(void)
{
    uint64_t digests[N_WORK];
    struct world world;

    world_begin(&world);
    expect(&world, digests, N_WORK);
    world_end(&world);
    for (int loss = 0; loss < FAULT_N_LOSSES; loss++) {
        bool is_over = false;

        for (int k = 0; k < MAX_CALLS && !is_over && vxd_test_n_failed_checks == 0; k++) {
            is_over = lose_power(k, (enum fault_loss)loss, digests);
        }
        CHECK(is_over);
    }
}

/* --- made and dropped ---------------------------------------------------------------------- */

static void test_map_whose_making_fails_is_not_there(void)
{
    struct fault_plan plan = fault_none;
    struct world world;
    struct call calls[3];
    struct gate gate;
    char json[MAP_JSON_BYTES];

    world_begin(&world);
    world_make_map(&world, "b", world_durable_map);
    gate_close(&gate, &world);
    world_send(&world, &calls[0], "map_create", 1, "{\"name\":\"a\",\"durable\":true}");
    world_wait_for_changes(&world, 1);
    world_send(&world, &calls[1], "map_create", 0, "{\"name\":\"a\",\"durable\":true}");
    (void)snprintf(json, sizeof json,
                   "{\"name\":\"a\",\"keys\":{\"dtype\":\"INT32\",\"shape\":[1,3],"
                   "\"values\":[1,2,3]}}");
    world_send(&world, &calls[2], "map_insert", 3, json);
    world_wait_for_changes(&world, 3);
    plan.fail_at_call = 0;
    fault_disk_plan(world.disk, &plan);
    gate_open(&gate);
    for (int i = 0; i < 3; i++) {
        CHECK(world_receive(&calls[i]) != VXD_OK);
    }
    fault_disk_plan(world.disk, &fault_none);
    CHECK_INT(world_view_map(&world, "a").status, VXD_NOT_FOUND);
    CHECK_INT(world_insist(&world, "map_create", 1, "{\"name\":\"a\",\"durable\":true}"),
              VXD_OK);
    CHECK_INT(world_ask(&world, "map_insert", 3, json), VXD_OK);
    world_stop(&world);
    world_start(&world);
    CHECK_INT(world_ask(&world, "map_get", 0, "{\"name\":\"a\"}"), VXD_OK);
    world_end(&world);
}

static void test_drop_behind_waiting_changes_takes_the_map_away(void)
{
    struct call calls[2];
    struct world world;
    struct gate gate;
    char json[MAP_JSON_BYTES];

    world_begin(&world);
    world_make_map(&world, "a", world_durable_map);
    gate_close(&gate, &world);
    world_send(&world, &calls[0], world_map_change("a", 0, json), 1, json);
    world_send(&world, &calls[1], "map_drop", 2, "{\"name\":\"a\"}");
    world_wait_for_changes(&world, 2);
    CHECK_INT(world_change_map(&world, "a", 1, 0), VXD_UNAVAILABLE);
    CHECK_INT(world_ask(&world, "map_get", 0, "{\"name\":\"a\"}"), VXD_UNAVAILABLE);
    gate_open(&gate);
    CHECK_INT(world_receive(&calls[0]), VXD_OK);
    CHECK_INT(world_receive(&calls[1]), VXD_OK);
    CHECK_INT(world_view_map(&world, "a").status, VXD_NOT_FOUND);
    world_stop(&world);
    world_start(&world);
    CHECK_INT(world_view_map(&world, "a").status, VXD_NOT_FOUND);
    world_end(&world);
}

static void test_drop_that_fails_leaves_the_map_as_it_was(void)
{
    struct fault_plan plan = fault_none;
    struct world world;
    struct map_view before;
    char json[MAP_JSON_BYTES];

    world_begin(&world);
    world_make_map(&world, "a", world_durable_map);
    CHECK_INT(world_change_map(&world, "a", 0, 0), VXD_OK);
    before = world_view_map(&world, "a");
    plan.fail_at_call = 0;
    fault_disk_plan(world.disk, &plan);
    CHECK(world_ask(&world, "map_drop", 1, "{\"name\":\"a\"}") != VXD_OK);
    fault_disk_plan(world.disk, &fault_none);
    check_view(world_view_map(&world, "a"), before.digest);
    CHECK_INT(world_insist(&world, world_map_change("a", 1, json), 2, json), VXD_OK);
    CHECK_INT(world_ask(&world, "map_drop", 1, "{\"name\":\"a\"}"), VXD_OK);
    CHECK_INT(world_view_map(&world, "a").status, VXD_NOT_FOUND);
    world_end(&world);
}

/* The list runs after the drop: it shows the map or not, and does not fail. */
static void test_list_beside_a_waiting_drop_is_answered(void)
{
    struct call calls[2];
    struct world world;
    struct gate gate;

    world_begin(&world);
    world_make_map(&world, "a", world_durable_map);
    gate_close(&gate, &world);
    world_send(&world, &calls[0], "map_drop", 2, "{\"name\":\"a\"}");
    world_wait_for_changes(&world, 1);
    world_send(&world, &calls[1], "map_list", 0, "{}");
    world_wait_for_changes(&world, 2);
    gate_open(&gate);
    CHECK_INT(world_receive(&calls[0]), VXD_OK);
    CHECK_INT(world_receive(&calls[1]), VXD_OK);
    world_end(&world);
}

/* What a list shows of the one map. */
static struct listed_map {
    bool unavailable;
    uint64_t n_entries;
    uint64_t capacity;
} list_one(struct world *world)
{
    struct listed_map listed = {0};
    Voxeld__V1__MapListResponse *reply = NULL;
    struct call call;

    world_send(world, &call, "map_list", 0, "{}");
    CHECK_INT(call_wait(&call), VXD_OK);
    reply = voxeld__v1__map_list_response__unpack(NULL, call.n_packed, call.packed);
    CHECK(reply != NULL && reply->n_maps == 1);
    if (reply != NULL && reply->n_maps == 1) {
        listed.unavailable = reply->maps[0]->unavailable != 0;
        listed.n_entries = reply->maps[0]->n_entries;
        listed.capacity = reply->maps[0]->capacity;
    }
    voxeld__v1__map_list_response__free_unpacked(reply, NULL);
    call_finish(&call);
    return listed;
}

/* The disk gives nothing any more: the map cannot be brought back, and the list says so. */
static void test_list_shows_a_map_that_the_disk_does_not_give(void)
{
    struct world world;
    struct listed_map before, now;

    world_begin(&world);
    world_make_map(&world, "a", world_durable_map);
    CHECK_INT(world_change_map(&world, "a", 0, 0), VXD_OK);
    before = list_one(&world);
    CHECK(!before.unavailable && before.n_entries > 0 && before.capacity > 0);
    fault_disk_cut(world.disk);
    CHECK(world_change_map(&world, "a", 1, 0) != VXD_OK);
    now = list_one(&world);
    CHECK(now.unavailable && now.n_entries == 0 && now.capacity == 0);
    CHECK_INT(world_ask(&world, "map_get", 0, "{\"name\":\"a\"}"), VXD_UNAVAILABLE);
    world_stop(&world);
    fault_disk_lose_power(world.disk, FAULT_DROP_ALL, 1);
    world_start(&world);
    now = list_one(&world);
    CHECK(!now.unavailable && now.n_entries == before.n_entries);
    world_end(&world);
}

/* --- snapshot files ------------------------------------------------------------------------ */

static void test_damaged_file_of_a_map_is_replaced_by_the_one_before(void)
{
    struct world world;
    struct map_view before;
    size_t n_files = 0;

    world_begin(&world);
    world_make_map(&world, "a", world_durable_map);
    for (int i = 0; i < 8; i++) {
        CHECK_INT(world_change_map(&world, "a", i, 0), VXD_OK);
        if (i == 1 || i == 5) {
            n_files = world_save(&world, 1, i == 1 ? 1 : 2, WORLD_PATIENT);
        }
    }
    CHECK_INT(n_files, 2);
    before = world_view_map(&world, "a");
    world_stop(&world);
    world_damage_file(&world, 1);
    world_start(&world);
    check_view(world_view_map(&world, "a"), before.digest);
    CHECK(world_view_map(&world, "a").epoch == before.epoch);
    CHECK(world_view_map(&world, "a").generation == before.generation);
    CHECK_INT(world_change_map(&world, "a", 8, 0), VXD_OK);
    world_end(&world);
}

/* What a failure left behind is thrown away by way of the last snapshot too. */
static void test_map_is_brought_back_from_its_snapshot_file(void)
{
    struct fault_plan plan = fault_none;
    struct world world;
    struct map_view before;
    char json[MAP_JSON_BYTES];

    world_begin(&world);
    world_make_map(&world, "a", world_durable_map);
    for (int i = 0; i < 7; i++) {
        CHECK_INT(world_change_map(&world, "a", i, 0), VXD_OK);
        if (i == 3) {
            CHECK_INT(world_save(&world, 1, 1, WORLD_PATIENT), 1);
        }
    }
    before = world_view_map(&world, "a");
    plan.fail_at_call = 0;
    fault_disk_plan(world.disk, &plan);
    CHECK(world_change_map(&world, "a", 7, 40) != VXD_OK);
    fault_disk_plan(world.disk, &fault_none);
    check_view(world_view_map(&world, "a"), before.digest);
    CHECK(world_view_map(&world, "a").epoch == before.epoch);
    CHECK_INT(world_insist(&world, world_map_change("a", 7, json), 40, json), VXD_OK);
    CHECK(world_view_map(&world, "a").digest != before.digest);
    world_end(&world);
}

/* Records go while the saver reads them: that is no failure, after which others would wait. */
static void test_drop_beside_a_snapshot_is_no_failure(void)
{
    struct vxd_names_usage usage;
    struct world world;
    char json[MAP_JSON_BYTES];

    world_begin(&world);
    for (uint32_t round = 1; round <= 12; round++) {
        const struct timespec pause = {.tv_nsec = (long)(round % 4) * 300000};

        world_make_map(&world, "a", world_durable_map);
        for (int i = 0; i < vxd_test_rounds(700); i++) {
            CHECK_INT(world_ask(&world, world_map_change("a", 1, json), 0, json), VXD_OK);
        }
        vxd_registry_ask_snapshot(world.server->registry, round);
        (void)nanosleep(&pause, NULL);
        CHECK_INT(world_ask(&world, "map_drop", 0, "{\"name\":\"a\"}"), VXD_OK);
        wait_ms(20);
    }
    vxd_names_get_usage(world.server->maps, &usage);
    CHECK_INT(usage.n_failed_snapshots, 0);
    world_end(&world);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_map_changes_that_fail_with_eio_are_taken_back),
    VXD_TEST(test_map_changes_on_a_full_disk_are_taken_back),
    VXD_TEST(test_map_changes_that_are_cut_short_are_taken_back),
    VXD_TEST(test_power_lost_at_any_sync_keeps_what_was_answered),
    VXD_TEST(test_map_whose_making_fails_is_not_there),
    VXD_TEST(test_drop_behind_waiting_changes_takes_the_map_away),
    VXD_TEST(test_drop_that_fails_leaves_the_map_as_it_was),
    VXD_TEST(test_list_beside_a_waiting_drop_is_answered),
    VXD_TEST(test_list_shows_a_map_that_the_disk_does_not_give),
    VXD_TEST(test_damaged_file_of_a_map_is_replaced_by_the_one_before),
    VXD_TEST(test_map_is_brought_back_from_its_snapshot_file),
    VXD_TEST(test_drop_beside_a_snapshot_is_no_failure),
};

VXD_TEST_MAIN(tests)
