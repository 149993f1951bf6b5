// SPDX-License-Identifier: Apache-2.0
/* Starts in which something goes wrong: a disk that is full, a device that is lost, a crash in the
 * midst, a row that is damaged. What is good stays good, and a loss is reported however often a start
 * has to begin anew. */
#include "tests/support/test.h"

#include "gpu/core/core_cpu.h"
#include "server/observe/log/log.h"
#include "server/registry/registry.h"
#include "server/registry/scenes/scenes_recover.h"
#include "tests/support/server/repair_disk.h"
#include "tests/support/server/server_checks.h"

VXD_TEST_HELPERS

#define HOUR_NS INT64_C(3600000000000)
#define RETENTION ",\"retention\":{\"versions\":1000,\"seconds\":\"3600\"}"

enum {
    PAGE = 4096,
    MOST_CALLS = 2000
};

/* --- loads of snapshot files, which may be slow or lose the device ------------------------- */

static int64_t load_ns;         /* how long a load seems to take, */
static _Atomic int64_t late_ns; /* and how far the clock has gone by it */
static bool is_device_lost;

int64_t __real_vxd_clock_ns(void);
int64_t __wrap_vxd_clock_ns(void);
enum vxd_status __real_vxd_scenes_load(struct vxd_scenes *scenes, uint32_t journal_id,
                                       uint64_t least_generation,
                                       struct vxd_snapshot_reader *reader,
                                       struct vxd_err *err);
enum vxd_status __wrap_vxd_scenes_load(struct vxd_scenes *scenes, uint32_t journal_id,
                                       uint64_t least_generation,
                                       struct vxd_snapshot_reader *reader,
                                       struct vxd_err *err);

int64_t __wrap_vxd_clock_ns(void)
{
    return __real_vxd_clock_ns() + late_ns;
}

/* The linker puts this in front of the registry's (--wrap). */
enum vxd_status __wrap_vxd_scenes_load(struct vxd_scenes *scenes, uint32_t journal_id,
                                       uint64_t least_generation,
                                       struct vxd_snapshot_reader *reader,
                                       struct vxd_err *err)
{
    if (is_device_lost) {
        vxd_context_mark_lost(scenes->context);
        return vxd_fail(err, VXD_UNAVAILABLE, NULL, "the device is lost");
    }
    late_ns += load_ns;
    return __real_vxd_scenes_load(scenes, journal_id, least_generation, reader, err);
}

/* A scene with three edits in a snapshot file and one behind it; stopped. */
static struct seen make_with_file(struct world *world)
{
    struct seen seen;

    world_begin(world);
    world_make(world, "a", world_durable);
    for (int i = 0; i < 3; i++) {
        CHECK_INT(world_edit(world, "a", i), VXD_OK);
    }
    CHECK_INT(world_save(world, 1, 1, WORLD_PATIENT), 1);
    CHECK_INT(world_edit(world, "a", 3), VXD_OK);
    seen = world_look(world, "a", "");
    world_stop(world);
    return seen;
}

static void check_seen(struct world *world, const char *name, struct seen before)
{
    struct seen seen = world_look(world, name, "");

    CHECK_INT(seen.status, before.status);
    CHECK_INT(seen.version, before.version);
    CHECK_INT(seen.generation, before.generation);
    CHECK_STR(seen.digest, before.digest);
}

static void test_device_lost_in_a_load_leaves_the_file_good(void)
{
    char path[VXD_DURABLE_PATH_BYTES];
    struct world world;
    struct seen before = make_with_file(&world);

    is_device_lost = true;
    CHECK(!repair_try_start(&world));
    is_device_lost = false;
    CHECK(world_find_file(&world, 1, path));
    world_start(&world);
    check_seen(&world, "a", before);
    world_end(&world);
}

/* A snapshot file is due by what its records take, not by what the last one takes to read. */
static void test_time_of_a_load_is_none_of_the_replay(void)
{
    struct world world;
    struct seen before = make_with_file(&world);

    load_ns = HOUR_NS;
    world_start(&world);
    load_ns = 0;
    CHECK(late_ns >= HOUR_NS);
    /* Nobody asked for another file, which begins the count anew. */
    CHECK(world.server->scenes->families->replay_ns > 0);
    CHECK(world.server->scenes->families->replay_ns < HOUR_NS);
    check_seen(&world, "a", before);
    world_end(&world);
    late_ns = 0;
}

static void test_nothing_is_collected_while_scenes_come_back(void)
{
    struct world world;

    world_begin(&world);
    world_make(&world, "a", world_durable);
    world.server->scenes->families->is_due = true;
    atomic_store(&world.server->scenes->n_due, 1);
    CHECK(vxd_scenes_are_due(world.server->scenes));
    atomic_store(&world.server->scenes->is_recovering, true);
    CHECK(!vxd_scenes_are_due(world.server->scenes));
    atomic_store(&world.server->scenes->is_recovering, false);
    CHECK(vxd_scenes_are_due(world.server->scenes));
    world.server->scenes->families->is_held = true; /* by a long change */
    CHECK(!vxd_scenes_are_due(world.server->scenes));
    world.server->scenes->families->is_held = false;
    world.server->scenes->families->is_due = false;
    atomic_store(&world.server->scenes->n_due, 0);
    world_end(&world);
}

/* --- disks that are full -------------------------------------------------------------------- */

/* However much room is left: the start's own writes are fewer than that keeps it from reading. */
static void test_start_on_a_full_disk_serves_reads(void)
{
    for (int n_pages = 0; n_pages < 24; n_pages++) {
        struct fault_plan plan = fault_none;
        struct world world;
        struct seen before;
        char more[200];

        world_begin(&world);
        (void)snprintf(more, sizeof more, "%s%s", world_durable, RETENTION);
        world_make(&world, "a", more);
        world_make(&world, "b", more);
        for (int i = 0; i < 3; i++) {
            CHECK_INT(world_edit(&world, "a", i), VXD_OK);
            CHECK_INT(world_edit(&world, "b", i), VXD_OK);
        }
        before = world_look(&world, "b", "");
        world_stop(&world);
        plan.capacity_bytes = fault_disk_n_bytes(world.disk) + n_pages * PAGE;
        fault_disk_plan(world.disk, &plan);
        if (repair_try_start(&world)) {
            check_seen(&world, "b", before);
            fault_disk_plan(world.disk, &fault_none);
            world_stop(&world);
        } else {
            CHECK(!"a full disk keeps the server from starting");
        }
        fault_disk_destroy(world.disk);
    }
}

/* --- losses ---------------------------------------------------------------------------------- */

/* Six edits, the fourth of which is damaged; stopped. */
static struct seen make_damaged(struct world *world)
{
    struct seen seen;

    world_begin(world);
    world_make(world, "a", world_durable);
    for (int i = 0; i < 6; i++) {
        CHECK_INT(world_edit(world, "a", i), VXD_OK);
    }
    seen = world_look(world, "a", "");
    world_stop(world);
    repair_sql(world, "UPDATE records SET crc = crc + 1 WHERE id & 255 = 5");
    return seen;
}

static void test_crash_at_any_call_of_a_lossy_start_leaves_the_loss_told(void)
{
    bool is_over = false;

    for (int k = 0; k < MOST_CALLS && !is_over && vxd_test_n_failed_checks == 0; k++) {
        struct fault_plan plan = fault_none;
        struct world world;
        struct seen before = make_damaged(&world);

        plan.crash_at_call = k;
        fault_disk_plan(world.disk, &plan);
        if (repair_try_start(&world)) {
            world_stop(&world);
        }
        is_over = !fault_disk_is_dead(world.disk);
        fault_disk_lose_power(world.disk, FAULT_KEEP_ALL, 1);
        fault_disk_plan(world.disk, &fault_none);
        world_start(&world);
        CHECK_INT(world_look(&world, "a", "").version, 4);
        CHECK(world_look(&world, "a", "").generation > before.generation);
        world_end(&world);
    }
    CHECK(is_over);
}

/* --- ages ------------------------------------------------------------------------------------ */

static struct seen make_aged(struct world *world)
{
    struct seen seen;
    char more[200];

    world_begin(world);
    (void)snprintf(more, sizeof more, "%s%s", world_durable, RETENTION);
    world_make(world, "a", more);
    for (int i = 0; i < 3; i++) {
        CHECK_INT(world_edit(world, "a", i), VXD_OK);
    }
    CHECK_INT(
        world_ask(world, "scene_snapshot", 0, "{\"name\":\"a\",\"snapshot\":\"x\"}"),
        VXD_OK);
    seen = world_look(world, "a", "");
    world_stop(world);
    return seen;
}

static void test_damaged_ages_begin_anew(void)
{
    struct world world;
    struct seen before = make_aged(&world);

    repair_sql(&world, "UPDATE items SET crc = crc + 1 WHERE kind = 3");
    world_start(&world);
    check_seen(&world, "a", before);
    CHECK_INT(world_edit(&world, "a", 3), VXD_OK);
    world_end(&world);
}

static void test_repair_of_damaged_ages_is_no_loss(void)
{
    struct vxd_repair_result result;
    struct world world;
    struct seen before = make_aged(&world);

    repair_sql(&world, "UPDATE items SET crc = crc + 1 WHERE kind = 3");
    result = repair_now(&world);
    CHECK_INT(result.n_lost, 0);
    CHECK_INT(result.n_set_aside, 1);
    world_start(&world);
    check_seen(&world, "a", before);
    world_end(&world);
}

/* One bit makes a named snapshot an item of ages, whose CRC is wrong then. */
static void test_name_that_looks_like_ages_is_no_silent_loss(void)
{
    struct vxd_repair_result result;
    struct world world;
    struct seen before = make_aged(&world);

    repair_sql(&world, "UPDATE items SET kind = 3 WHERE kind = 2");
    CHECK(!repair_try_start(&world));
    result = repair_now(&world);
    CHECK_INT(result.n_lost, 1);
    world_start(&world);
    CHECK(world_look(&world, "a", "").generation > before.generation);
    world_end(&world);
}

static void test_salvage_keeps_the_running_time(void)
{
    struct world world;

    (void)make_aged(&world);
    repair_sql(&world, "UPDATE meta SET value = 7000000000000000 WHERE key = 'run_ns';"
                       "PRAGMA application_id = 1");
    (void)repair_now(&world);
    world_start(&world);
    CHECK(vxd_journal_get_run_ns(vxd_registry_get_journal(world.server->registry)) >=
          UINT64_C(7000000000000000));
    world_end(&world);
}

/* Where the running time is gone, marks of the future say nothing. */
static void test_marks_later_than_the_running_time_are_dropped(void)
{
    struct vxd_scene *scene;
    struct world world;
    struct seen before = make_aged(&world);
    uint64_t now;

    world_start(&world);
    late_ns += HOUR_NS;
    CHECK_INT(world_edit(&world, "a", 3), VXD_OK);
    before = world_look(&world, "a", "");
    world_stop(&world);
    late_ns = 0;
    repair_sql(&world, "UPDATE meta SET value = 1 WHERE key = 'run_ns'");
    world_start(&world);
    check_seen(&world, "a", before);
    scene = vxd_scenes_find(world.server->scenes, "a");
    REQUIRE(scene != NULL);
    now = vxd_scenes_run_ns(world.server->scenes);
    CHECK(scene->ages.n > 0);
    for (size_t i = 0; i < scene->ages.n; i++) {
        CHECK(scene->ages.marks[i].run_ns <= now);
    }
    vxd_scene_drop(scene, world.server->scenes->queue);
    world_end(&world);
}

/* --- names ----------------------------------------------------------------------------------- */

static void ask(struct world *world, const char *method, const char *json)
{
    CHECK_INT(world_ask(world, method, 0, json), VXD_OK);
}

/* The name of a family whose first scene was dropped is free. */
static void test_name_is_free_while_a_branch_lives_on(void)
{
    struct world world;
    struct seen a;
    struct seen b;

    world_begin(&world);
    world_make(&world, "a", world_durable);
    CHECK_INT(world_edit(&world, "a", 0), VXD_OK);
    ask(&world, "scene_branch", "{\"name\":\"a\",\"new_name\":\"b\"}");
    ask(&world, "scene_drop", "{\"name\":\"a\"}");
    world_make(&world, "a", world_durable);
    CHECK_INT(world_edit(&world, "a", 1), VXD_OK);
    CHECK_INT(world_edit(&world, "b", 2), VXD_OK);
    a = world_look(&world, "a", "");
    b = world_look(&world, "b", "");
    CHECK_INT(a.version, 2);
    world_restart(&world);
    check_seen(&world, "a", a);
    check_seen(&world, "b", b);
    world_end(&world);
}

/* Families come back one after the other, and had a name in turn. */
static void test_name_that_two_families_had_in_turn_comes_back(void)
{
    for (int has_files = 0; has_files < 2; has_files++) {
        struct world world;
        struct seen a;
        struct seen c;

        world_begin(&world);
        world_make(&world, "a", world_durable);
        CHECK_INT(world_edit(&world, "a", 0), VXD_OK);
        ask(&world, "scene_branch", "{\"name\":\"a\",\"new_name\":\"b\"}");
        ask(&world, "scene_drop", "{\"name\":\"a\"}");
        world_make(&world, "a", world_durable);
        CHECK_INT(world_edit(&world, "a", 1), VXD_OK);
        ask(&world, "scene_branch", "{\"name\":\"a\",\"new_name\":\"c\"}");
        if (has_files > 0) {
            CHECK_INT(world_save(&world, 2, 1, WORLD_PATIENT), 1);
        }
        ask(&world, "scene_drop", "{\"name\":\"a\"}");
        ask(&world, "scene_branch", "{\"name\":\"b\",\"new_name\":\"a\"}");
        if (has_files > 0) {
            CHECK_INT(world_save(&world, 1, 1, WORLD_PATIENT), 1);
        }
        a = world_look(&world, "a", "");
        c = world_look(&world, "c", "");
        world_restart(&world);
        check_seen(&world, "a", a);
        check_seen(&world, "c", c);
        CHECK_INT(world_look(&world, "b", "").status, VXD_OK);
        world_end(&world);
    }
}

/* Where the record is lost that took the name from the first, the second, which was made later,
 * keeps it, and the first has lost it for good. */
static void test_lost_drop_does_not_take_a_name_back(void)
{
    struct world world;
    struct seen a;

    world_begin(&world);
    world_make(&world, "a", world_durable);
    ask(&world, "scene_branch", "{\"name\":\"a\",\"new_name\":\"b\"}");
    ask(&world, "scene_drop", "{\"name\":\"a\"}");
    world_make(&world, "a", world_durable);
    CHECK_INT(world_edit(&world, "a", 1), VXD_OK);
    a = world_look(&world, "a", "");
    world_stop(&world);
    repair_sql(&world, "UPDATE records SET crc = crc + 1 WHERE id >> 40 = 1 AND"
                       " id & 255 = 3");
    for (int i = 0; i < 2; i++) {
        world_start(&world);
        check_seen(&world, "a", a);
        CHECK_INT(world_look(&world, "b", "").status, VXD_OK);
        world_stop(&world);
    }
    world_start(&world);
    ask(&world, "scene_drop", "{\"name\":\"a\"}");
    world_restart(&world);
    CHECK_INT(world_look(&world, "a", "").status, VXD_NOT_FOUND);
    CHECK_INT(world_look(&world, "b", "").status, VXD_OK);
    world_end(&world);
}

int main(int argc, char **argv)
{
    static const struct vxd_test tests[] = {
        VXD_TEST(test_device_lost_in_a_load_leaves_the_file_good),
        VXD_TEST(test_time_of_a_load_is_none_of_the_replay),
        VXD_TEST(test_nothing_is_collected_while_scenes_come_back),
        VXD_TEST(test_start_on_a_full_disk_serves_reads),
        VXD_TEST(test_crash_at_any_call_of_a_lossy_start_leaves_the_loss_told),
        VXD_TEST(test_damaged_ages_begin_anew),
        VXD_TEST(test_repair_of_damaged_ages_is_no_loss),
        VXD_TEST(test_name_that_looks_like_ages_is_no_silent_loss),
        VXD_TEST(test_salvage_keeps_the_running_time),
        VXD_TEST(test_marks_later_than_the_running_time_are_dropped),
        VXD_TEST(test_name_is_free_while_a_branch_lives_on),
        VXD_TEST(test_name_that_two_families_had_in_turn_comes_back),
        VXD_TEST(test_lost_drop_does_not_take_a_name_back),
    };

    vxd_log_set_level((enum vxd_log_level)(VXD_LOG_ERROR + 1)); /* of many bad ends */
    return vxd_test_run_all(tests, sizeof tests / sizeof tests[0],
                            argc > 1 ? argv[1] : NULL);
}
