// SPDX-License-Identifier: Apache-2.0
/* Data directories that a start refuses, or from which it would lose more than it must: after a
 * repair it goes on from the newest state that is whole, and nothing was deleted. */
#include "tests/support/test.h"

#include <fcntl.h>

#include "server/durable/snapshot/snapshot.h"
#include "server/observe/log/log.h"
#include "server/registry/maps/maps_internal.h"
#include "server/registry/registry.h"
#include "server/registry/scenes/scenes_recover.h"
#include "tests/support/server/server_checks.h"
#include "tests/support/server/maps_disk.h"
#include "tests/support/server/repair_disk.h"

VXD_TEST_HELPERS

static bool has_file(struct world *world, const char *path)
{
    return fault_disk_exists(world->disk, path);
}

static void test_repair_of_what_is_whole_changes_nothing(void)
{
    struct vxd_repair_result result;
    struct world world;
    struct seen before = repair_make(&world);

    result = repair_now(&world);
    CHECK(result.n_mended == 0 && result.n_set_aside == 0 && result.n_lost == 0);
    repair_check_mended(&world, before, REPAIR_AT_END, false);
    CHECK_INT(world_look(&world, "a", "x").version, REPAIR_AT_END);
    CHECK_INT(world_look(&world, "b", "").version, 2);
    world_end(&world);
}

/* Rows of the catalogue that a start refuses. */
static void check_row(const char *sql, size_t n_mended, uint64_t version)
{
    struct vxd_repair_result result;
    struct world world;
    struct seen before = repair_make(&world);

    repair_sql(&world, sql);
    result = repair_now(&world);
    CHECK_INT(result.n_mended, n_mended);
    CHECK_INT(result.n_lost, 0);
    repair_check_mended(&world, before, version, true);
    CHECK_INT(world_look(&world, "b", "").version, 2);
    world_end(&world);
}

static void test_repair_makes_damaged_families_anew(void)
{
    check_row("UPDATE families SET last_sequence = 77 WHERE id = 1", 1, REPAIR_AT_END);
    check_row("UPDATE families SET state_crc = 1", 2, REPAIR_AT_END);
    check_row("UPDATE families SET epoch = 99 WHERE id = 1", 1, REPAIR_AT_END);
    check_row("UPDATE families SET name = x'00ff', fsync = 9 WHERE id = 1", 1,
              REPAIR_AT_END);
    check_row("UPDATE families SET spec = x'01' WHERE id = 2", 1, REPAIR_AT_END);
}

static void test_repair_of_a_family_of_which_nothing_is_left_says_so(void)
{
    struct vxd_repair_result result;
    struct world world;
    struct seen before = repair_make(&world);

    repair_sql(&world, "UPDATE families SET crc = 1 WHERE id = 2;"
                       "DELETE FROM records WHERE id >> 40 = 2");
    result = repair_now(&world);
    CHECK_INT(result.n_mended, 0);
    CHECK_INT(result.n_lost, 1);
    repair_check_mended(&world, before, REPAIR_AT_END, true);
    CHECK_INT(world_look(&world, "b", "").status, VXD_NOT_FOUND);
    world_end(&world);
}

static void test_repair_sets_damaged_names_and_outcomes_aside(void)
{
    struct vxd_repair_result result;
    struct world world;
    struct seen before = repair_make(&world);
    struct call call;
    char json[300];

    world_start(&world);
    world_send(&world, &call, "scene_edit", 5, world_edit_json("b", 3, json));
    CHECK_INT(world_receive(&call), VXD_OK);
    world_stop(&world);
    repair_sql(&world,
               "UPDATE items SET crc = crc + 1; UPDATE replies SET crc = crc + 1");
    result = repair_now(&world);
    CHECK_INT(result.n_lost, 1);
    CHECK_INT(result.n_set_aside, 1);
    repair_check_mended(&world, before, REPAIR_AT_END, true);
    CHECK_INT(world_look(&world, "a", "x").status, VXD_NOT_FOUND);
    world_end(&world);
}

static void test_repair_sets_damaged_snapshot_files_aside(void)
{
    struct vxd_repair_result result;
    struct world world;
    struct seen before = repair_make(&world);

    world_damage_file(&world, 1);
    result = repair_now(&world);
    CHECK_INT(result.n_set_aside, 1);
    CHECK_INT(result.n_lost, 0);
    /* All records are there yet. */
    repair_check_mended(&world, before, REPAIR_AT_END, false);
    world_end(&world);
}

/* The head is overwritten, or a page in the middle, or the file is gone. */
static void check_database(int kind, uint64_t version)
{
    struct vxd_repair_result result;
    struct world world;
    struct seen before = repair_make(&world);
    const struct vxd_file_ops *ops = fault_disk_ops(world.disk);
    uint8_t *bytes;
    size_t n_bytes;

    bytes = fault_disk_bytes(world.disk, REPAIR_DATABASE, &n_bytes);
    REQUIRE(bytes != NULL && n_bytes > 8192);
    if (kind == 1) {
        repair_sql(&world,
                   "PRAGMA wal_checkpoint(TRUNCATE)"); /* else its pages are there */
        bytes = fault_disk_bytes(world.disk, REPAIR_DATABASE, &n_bytes);
    }
    if (kind == 0) {
        memset(bytes, 0xa5, 100);
    } else if (kind == 1) {
        memset(bytes + n_bytes / 2 / 4096 * 4096, 0xa5, 4096);
    } else {
        CHECK_INT(ops->unlink(ops->user, REPAIR_DATABASE), 0);
    }
    result = repair_now(&world);
    CHECK(result.n_lost >= 1);
    CHECK(has_file(&world, REPAIR_DATABASE ".damaged.1") == (kind < 2));
    if (version > 0) {
        repair_check_mended(&world, before, version, true);
    } else {
        /* Which page it was decides what is left: some state of "a", and a start. */
        world_start(&world);
        CHECK(world_look(&world, "a", "").version >= REPAIR_AT_FILE);
    }
    world_end(&world);
}

static void test_repair_of_a_database_that_is_none_goes_back_to_snapshot_files(void)
{
    check_database(0, REPAIR_AT_FILE);
    check_database(2, REPAIR_AT_FILE);
}

static void test_repair_of_a_damaged_database_saves_what_can_be_read(void)
{
    check_database(1, 0);
}

static void test_repair_of_what_is_no_data_directory_is_refused(void)
{
    struct vxd_repair_result result;
    struct world world;

    world_begin(&world);
    CHECK_INT(vxd_repair_data_dir(fault_disk_ops(world.disk), WORLD_DIR, NULL, NULL,
                                  &result, NULL),
              VXD_FAILED_PRECONDITION); /* a server has it */
    CHECK_INT(vxd_repair_data_dir(fault_disk_ops(world.disk), "/none", NULL, NULL,
                                  &result, NULL),
              VXD_NOT_FOUND);
    world_end(&world);
}

/* A transient fault of the disk, wherever it comes, gives up nothing that a second repair finds. */
static void test_repair_that_fails_at_any_call_loses_nothing(void)
{
    bool is_over = false;
    int k = 0;

    for (; k < 600 && !is_over && vxd_test_n_failed_checks == 0; k++) {
        struct fault_plan plan = fault_none;
        struct vxd_repair_result result;
        struct world world;
        struct seen before = repair_make(&world);
        struct vxd_err err = {0};

        repair_sql(&world, "UPDATE families SET crc = 1 WHERE id = 1;"
                           "DELETE FROM records WHERE id >> 40 = 1");
        plan.fail_at_call = k;
        fault_disk_plan(world.disk, &plan);
        (void)vxd_repair_data_dir(fault_disk_ops(world.disk), WORLD_DIR, NULL, NULL,
                                  &result, &err);
        is_over = fault_disk_n_calls(world.disk) <= k;
        fault_disk_plan(world.disk, &fault_none);
        (void)repair_now(&world);
        repair_check_mended(&world, before, REPAIR_AT_FILE, true);
        CHECK_INT(world_look(&world, "b", "").version, 2);
        world_end(&world);
    }
    CHECK(is_over);
}

static void test_repair_sets_families_with_strange_numbers_aside(void)
{
    struct vxd_repair_result result;
    struct world world;
    struct seen before = repair_make(&world);

    repair_sql(&world, "CREATE TABLE t AS SELECT * FROM families WHERE id = 1;"
                       "UPDATE t SET id = 4294967297, name = 'z';"
                       "INSERT INTO families SELECT * FROM t; DROP TABLE t");
    result = repair_now(&world);
    CHECK_INT(result.n_mended, 0);
    CHECK_INT(result.n_lost, 1);
    repair_check_mended(&world, before, REPAIR_AT_END, true);
    CHECK_INT(world_look(&world, "b", "").version, 2);
    world_end(&world);
}

/* Of a database that is made anew: without a row and a file, the records alone tell of it. */
static void test_repair_makes_a_family_anew_from_its_records(void)
{
    struct world world;
    struct seen before = repair_make(&world);

    repair_sql(&world, "DELETE FROM families WHERE id = 2; PRAGMA application_id = 1");
    CHECK_INT(repair_now(&world).n_mended, 1);
    repair_check_mended(&world, before, REPAIR_AT_END, true);
    CHECK_INT(world_look(&world, "b", "").version, 2);
    world_end(&world);
}

/* Of a kind that a newer server has: a start refuses it, and cuts nothing of it. */
static void test_repair_leaves_a_family_of_an_unknown_kind_to_whoever_knows_it(void)
{
    struct world world;

    (void)repair_make(&world);
    repair_sql(&world, "DELETE FROM families WHERE id = 2;"
                       "UPDATE records SET rules = 9 << 16 | 1 WHERE id >> 40 = 2;"
                       "PRAGMA application_id = 1");
    CHECK_INT(repair_now(&world).n_mended, 1);
    CHECK(!repair_try_start(&world));
    CHECK(vxd_record_find_owner(9 << 16 | 1) == NULL);
    CHECK_STR(vxd_record_find_owner(VXD_RULES_VERSION)->prefix, vxd_scenes_kind.prefix);
    CHECK_STR(vxd_record_find_owner(VXD_MAP_RULES_VERSION)->prefix, vxd_maps_kind.prefix);
    fault_disk_destroy(world.disk);
}

static void test_repair_leaves_what_was_dropped(void)
{
    struct world world;

    (void)repair_make(&world);
    repair_sql(&world, "DELETE FROM families WHERE id = 1; DELETE FROM items;"
                       "INSERT INTO dropped VALUES(1); PRAGMA application_id = 1");
    CHECK_INT(repair_now(&world).n_mended, 0);
    world_start(&world);
    CHECK_INT(world_look(&world, "a", "").status, VXD_NOT_FOUND);
    CHECK_INT(world_look(&world, "b", "").version, 2);
    world_end(&world);
}

static void write_file(struct world *world, const char *path, const void *bytes,
                       size_t n_bytes)
{
    const struct vxd_file_ops *ops = fault_disk_ops(world->disk);
    int file = ops->open(ops->user, path, O_RDWR | O_CREAT | O_TRUNC, 0600);

    REQUIRE(file >= 0);
    CHECK(ops->write(ops->user, file, bytes, n_bytes, 0) == (int64_t)n_bytes);
    CHECK_INT(ops->close(ops->user, file), 0);
}

/* A durable map "a" of so many changes, with a snapshot file, which is given; to be freed. */
static uint8_t *make_map(struct world *world, uint32_t family, int n_changes,
                         char path[VXD_DURABLE_PATH_BYTES], size_t *n_bytes)
{
    const uint8_t *bytes;
    uint8_t *copy;

    world_make_map(world, "a", world_durable_map);
    for (int i = 0; i < n_changes; i++) {
        CHECK_INT(world_change_map(world, "a", i, 0), VXD_OK);
    }
    if (world_save(world, family, 1, WORLD_PATIENT) != 1 ||
        !world_find_file(world, family, path)) {
        vxd_test_note_failure("make_map", "there is no file");
        abort();
    }
    bytes = fault_disk_bytes(world->disk, path, n_bytes);
    copy = bytes != NULL ? malloc(*n_bytes) : NULL;
    if (copy == NULL) {
        abort();
    }
    memcpy(copy, bytes, *n_bytes);
    return copy;
}

/* One that was dropped has left its file behind: both are there, under two names. */
static void test_repair_of_two_maps_of_one_name_lets_a_start_have_both(void)
{
    const struct vxd_file_ops *ops;
    char path[VXD_DURABLE_PATH_BYTES];
    char other[VXD_DURABLE_PATH_BYTES];
    struct world world;
    struct map_view views[2];
    uint8_t *bytes;
    size_t n_bytes;
    size_t n_other;

    world_begin(&world);
    ops = fault_disk_ops(world.disk);
    bytes = make_map(&world, 1, 2, path, &n_bytes);
    views[0] = world_view_map(&world, "a");
    CHECK_INT(world_ask(&world, "map_drop", 0, "{\"name\":\"a\"}"), VXD_OK);
    for (int i = 0; i < WORLD_PATIENT && has_file(&world, path); i++) {
        wait_ms(5);
    }
    free(make_map(&world, 2, 4, other, &n_other));
    views[1] = world_view_map(&world, "a");
    world_stop(&world);
    write_file(&world, path, bytes, n_bytes);
    free(bytes);
    CHECK_INT(ops->unlink(ops->user, REPAIR_DATABASE), 0);
    CHECK_INT(repair_now(&world).n_mended, 2);
    world_start(&world);
    for (int i = 0; i < 2; i++) {
        bool is_first = world_view_map(&world, "family-1").status == VXD_OK;
        struct map_view a = world_view_map(&world, "a");
        struct map_view b = world_view_map(&world, is_first ? "family-1" : "family-2");

        CHECK(a.digest == views[is_first ? 1 : 0].digest);
        CHECK(b.digest == views[is_first ? 0 : 1].digest);
        CHECK(b.status == VXD_OK && a.status == VXD_OK);
        CHECK_INT(world_change_map(&world, is_first ? "family-1" : "family-2", 7, 0),
                  VXD_OK);
        views[is_first ? 0 : 1] =
            world_view_map(&world, is_first ? "family-1" : "family-2");
        world_stop(&world);
        world_start(&world);
    }
    world_end(&world);
}

/* What a map is, of which the row is made anew, is in its file alone: where that cannot be read
 * now, the next start has it. */
static void test_map_made_anew_outlives_starts_that_fail(void)
{
    bool is_over = false;

    for (int k = 0; k < 600 && !is_over && vxd_test_n_failed_checks == 0; k++) {
        struct fault_plan plan = fault_none;
        char path[VXD_DURABLE_PATH_BYTES];
        struct world world;
        struct map_view before;
        size_t n_bytes;

        world_begin(&world);
        free(make_map(&world, 1, 4, path, &n_bytes));
        before = world_view_map(&world, "a");
        world_stop(&world);
        repair_sql(&world, "UPDATE families SET crc = 1");
        CHECK_INT(repair_now(&world).n_mended, 1);
        plan.fail_at_call = k;
        fault_disk_plan(world.disk, &plan);
        if (repair_try_start(&world)) {
            world_stop(&world);
        }
        is_over = fault_disk_n_calls(world.disk) <= k;
        fault_disk_plan(world.disk, &fault_none);
        world_start(&world);
        CHECK_INT(world_view_map(&world, "a").status, VXD_OK);
        CHECK(world_view_map(&world, "a").digest == before.digest);
        CHECK(world_view_map(&world, "a").generation > before.generation);
        world_end(&world);
    }
    CHECK(is_over);
}

int main(int argc, char **argv)
{
    static const struct vxd_test tests[] = {
        VXD_TEST(test_repair_of_what_is_whole_changes_nothing),
        VXD_TEST(test_repair_makes_damaged_families_anew),
        VXD_TEST(test_repair_of_a_family_of_which_nothing_is_left_says_so),
        VXD_TEST(test_repair_sets_damaged_names_and_outcomes_aside),
        VXD_TEST(test_repair_sets_damaged_snapshot_files_aside),
        VXD_TEST(test_repair_of_a_database_that_is_none_goes_back_to_snapshot_files),
        VXD_TEST(test_repair_of_a_damaged_database_saves_what_can_be_read),
        VXD_TEST(test_repair_of_what_is_no_data_directory_is_refused),
        VXD_TEST(test_repair_that_fails_at_any_call_loses_nothing),
        VXD_TEST(test_repair_sets_families_with_strange_numbers_aside),
        VXD_TEST(test_repair_makes_a_family_anew_from_its_records),
        VXD_TEST(test_repair_leaves_a_family_of_an_unknown_kind_to_whoever_knows_it),
        VXD_TEST(test_repair_leaves_what_was_dropped),
        VXD_TEST(test_repair_of_two_maps_of_one_name_lets_a_start_have_both),
        VXD_TEST(test_map_made_anew_outlives_starts_that_fail),
    };

    vxd_log_set_level((enum vxd_log_level)(VXD_LOG_ERROR + 1));
    return vxd_test_run_all(tests, sizeof tests / sizeof tests[0],
                            argc > 1 ? argv[1] : NULL);
}
