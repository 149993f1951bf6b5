// SPDX-License-Identifier: Apache-2.0
/* Durable scenes on a disk that fails: whatever was answered is there afterwards, whatever
 * failed is not and was never seen, and later changes work. */
#include "tests/support/test.h"

#include <fcntl.h>

#include "server/durable/snapshot/snapshot.h"
#include "server/registry/registry.h"
#include "server/registry/scenes/scenes_internal.h"
#include "server/schedule/schedule.h"
#include "tests/support/server/server_checks.h"
#include "tests/support/server/scenes_disk.h"

VXD_TEST_HELPERS

enum {
    N_FLIGHT = 6, /* edits in flight when the disk fails */
    MIN_CALLS = 8,
    MAX_CALLS = 200
};

static void check_seen(struct seen seen, const char *digest, uint64_t version)
{
    CHECK_INT(seen.status, VXD_OK);
    CHECK_INT(seen.version, version);
    if (digest != NULL) {
        CHECK_STR(seen.digest, digest);
    }
}

/* --- commits that fail --------------------------------------------------------------------- */

/* Digests after each of the edits, from a scene in memory. */
static void expect(struct world *world, char digests[N_FLIGHT + 1][WORLD_DIGEST_BYTES])
{
    world_make(world, "model", "");
    for (int i = 0; i <= N_FLIGHT; i++) {
        CHECK_INT(world_edit(world, "model", i), VXD_OK);
        (void)snprintf(digests[i], WORLD_DIGEST_BYTES, "%s",
                       world_look(world, "model", "").digest);
    }
}

/* Edits in flight while call number k fails; true when none of them did. */
static bool fail_call(struct world *world, int k, enum fault_kind kind,
                      char digests[N_FLIGHT + 1][WORLD_DIGEST_BYTES])
{
    struct fault_plan plan = fault_none;
    struct call calls[N_FLIGHT];
    char json[300];
    struct gate gate;
    int n_ok = 0;

    gate_close(&gate, world);
    for (int i = 0; i < N_FLIGHT; i++) {
        world_send(world, &calls[i], "scene_edit", 10 + (uint64_t)i,
                   world_edit_json("a", i + 1, json));
    }
    world_wait_for_changes(world, N_FLIGHT);
    check_seen(world_look(world, "a", ""), digests[0], 2);
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
    check_seen(world_look(world, "a", ""), digests[n_ok], 2 + (uint64_t)n_ok);
    fault_disk_plan(world->disk, &fault_none);
    for (int i = 0; i < N_FLIGHT; i++) {
        CHECK_INT(world_insist(world, "scene_edit", 10 + (uint64_t)i,
                               world_edit_json("a", i + 1, json)),
                  VXD_OK);
        CHECK_INT(world_version_of(world, 10 + (uint64_t)i, json), 3 + i);
    }
    check_seen(world_look(world, "a", ""), digests[N_FLIGHT], 2 + N_FLIGHT);
    return n_ok == N_FLIGHT;
}

static void fail_each(enum fault_kind kind)
{
    char digests[N_FLIGHT + 1][WORLD_DIGEST_BYTES];
    bool is_over = false;
    struct seen before;
    char json[300];
    int k;

    for (k = 0;
         k < MAX_CALLS && !(is_over && k >= MIN_CALLS) && vxd_test_n_failed_checks == 0;
         k++) {
        struct world world;

        world_begin(&world);
        expect(&world, digests);
        world_make(&world, "a", world_durable);
        CHECK_INT(world_edit(&world, "a", 0), VXD_OK);
        is_over = fail_call(&world, k, kind, digests);
        before = world_look(&world, "a", "");
        world_stop(&world);
        fault_disk_lose_power(world.disk, FAULT_DROP_ALL, 1);
        world_start(&world);
        check_seen(world_look(&world, "a", ""), digests[N_FLIGHT], 2 + N_FLIGHT);
        CHECK(world_look(&world, "a", "").generation == before.generation);
        CHECK_INT(world_version_of(&world, 12, world_edit_json("a", 3, json)), 5);
        world_end(&world);
    }
    CHECK(is_over);
}

static void test_commits_that_fail_with_eio_are_taken_back(void)
{
    fail_each(FAULT_EIO);
}

static void test_commits_on_a_full_disk_are_taken_back(void)
{
    fail_each(FAULT_ENOSPC);
}

static void test_commits_that_are_cut_short_are_taken_back(void)
{
    fail_each(FAULT_SHORT);
}

static void test_power_lost_in_a_commit_keeps_what_was_answered(void)
{
    for (int loss = 0; loss < FAULT_N_LOSSES; loss++) {
        struct fault_plan plan = fault_none;
        struct world world;
        struct seen before;

        world_begin(&world);
        world_make(&world, "a", world_durable);
        CHECK_INT(world_edit(&world, "a", 0), VXD_OK);
        CHECK_INT(world_edit(&world, "a", 1), VXD_OK);
        before = world_look(&world, "a", "");
        plan.crash_at_sync = 0;
        fault_disk_plan(world.disk, &plan);
        CHECK(world_edit(&world, "a", 2) != VXD_OK);
        check_seen(world_look(&world, "a", ""), before.digest, 3);
        world_stop(&world);
        fault_disk_lose_power(world.disk, (enum fault_loss)loss, 7);
        fault_disk_plan(world.disk, &fault_none);
        world_start(&world);
        /* A change that was not answered may be there as a whole, or not at all. */
        if (world_look(&world, "a", "").version != 4) {
            check_seen(world_look(&world, "a", ""), before.digest, 3);
        }
        CHECK_INT(world_edit(&world, "a", 3), VXD_OK);
        world_end(&world);
    }
}

/* --- drops --------------------------------------------------------------------------------- */

/* A scene, and a branch of it. */
static void make_two(struct world *world)
{
    world_begin(world);
    world_make(world, "a", world_durable);
    CHECK_INT(world_edit(world, "a", 0), VXD_OK);
    CHECK_INT(world_ask(world, "scene_branch", 0, "{\"name\":\"a\",\"new_name\":\"b\"}"),
              VXD_OK);
}

static void test_drop_behind_waiting_commits_ends_the_scene_there(void)
{
    struct call calls[3];
    struct world world;
    struct gate gate;
    struct seen before;
    char json[300];

    make_two(&world);
    gate_close(&gate, &world);
    world_send(&world, &calls[0], "scene_edit", 1, world_edit_json("a", 1, json));
    world_send(&world, &calls[1], "scene_drop", 2, "{\"name\":\"a\"}");
    world_wait_for_changes(&world, 2);
    CHECK_INT(world_edit(&world, "a", 2), VXD_UNAVAILABLE);
    CHECK_INT(world_ask(&world, "scene_branch", 0, "{\"name\":\"a\",\"new_name\":\"c\"}"),
              VXD_UNAVAILABLE);
    CHECK_INT(
        world_ask(&world, "scene_snapshot", 0, "{\"name\":\"a\",\"snapshot\":\"x\"}"),
        VXD_UNAVAILABLE);
    CHECK_INT(world_ask(&world, "scene_drop", 0, "{\"name\":\"a\"}"), VXD_UNAVAILABLE);
    world_send(&world, &calls[2], "scene_edit", 3, world_edit_json("b", 3, json));
    world_wait_for_changes(&world, 3);
    CHECK_INT(world_look(&world, "a", "").status, VXD_OK);
    gate_open(&gate);
    for (int i = 0; i < 3; i++) {
        CHECK_INT(world_receive(&calls[i]), VXD_OK);
    }
    CHECK_INT(world_look(&world, "a", "").status, VXD_NOT_FOUND);
    CHECK_INT(world_edit(&world, "b", 4), VXD_OK);
    before = world_look(&world, "b", "");
    world_restart(&world);
    CHECK_INT(world_look(&world, "a", "").status, VXD_NOT_FOUND);
    check_seen(world_look(&world, "b", ""), before.digest, 3);
    CHECK(world_look(&world, "b", "").generation == before.generation);
    world_end(&world);
}

static void test_drop_that_fails_leaves_the_scene_as_it_was(void)
{
    struct fault_plan plan = fault_none;
    struct world world;
    struct seen before;
    char json[300];

    make_two(&world);
    before = world_look(&world, "a", "");
    plan.fail_at_call = 0;
    fault_disk_plan(world.disk, &plan);
    CHECK(world_ask(&world, "scene_drop", 1, "{\"name\":\"a\"}") != VXD_OK);
    fault_disk_plan(world.disk, &fault_none);
    check_seen(world_look(&world, "a", ""), before.digest, 2);
    CHECK_INT(world_insist(&world, "scene_edit", 2, world_edit_json("a", 1, json)),
              VXD_OK);
    CHECK_INT(world_ask(&world, "scene_drop", 1, "{\"name\":\"a\"}"), VXD_OK);
    CHECK_INT(world_look(&world, "a", "").status, VXD_NOT_FOUND);
    world_end(&world);
}

static enum vxd_status count_family(void *user, const struct vxd_journal_family *family,
                                    struct vxd_err *err)
{
    int *n = user;

    (void)family;
    (void)err;
    ++*n;
    return VXD_OK;
}

static void test_family_whose_scenes_were_dropped_at_once_is_forgotten(void)
{
    struct call calls[2];
    struct world world;
    struct gate gate;
    int n = 0;

    make_two(&world);
    gate_close(&gate, &world);
    world_send(&world, &calls[0], "scene_drop", 1, "{\"name\":\"a\"}");
    world_send(&world, &calls[1], "scene_drop", 2, "{\"name\":\"b\"}");
    world_wait_for_changes(&world, 2);
    gate_open(&gate);
    CHECK_INT(world_receive(&calls[0]), VXD_OK);
    CHECK_INT(world_receive(&calls[1]), VXD_OK);
    world_restart(&world);
    CHECK_INT(vxd_journal_read_families(vxd_registry_get_journal(world.server->registry),
                                        count_family, &n, NULL),
              VXD_OK);
    CHECK_INT(n, 0);
    world_end(&world);
}

/* --- snapshot files ------------------------------------------------------------------------ */

static void test_files_of_a_scene_that_is_dropped_go(void)
{
    uint64_t *sequences = NULL;
    struct world world;
    size_t n = 1;

    world_begin(&world);
    world_make(&world, "a", world_durable);
    CHECK_INT(world_edit(&world, "a", 0), VXD_OK);
    CHECK_INT(world_save(&world, 1, 1, WORLD_PATIENT), 1);
    CHECK_INT(world_ask(&world, "scene_drop", 0, "{\"name\":\"a\"}"), VXD_OK);
    for (int i = 0; i < WORLD_PATIENT && n > 0; i++) {
        free(sequences);
        sequences = NULL;
        wait_ms(5);
        CHECK_INT(vxd_snapshot_list(&world.dir, 1, &sequences, &n, NULL), VXD_OK);
    }
    CHECK_INT(n, 0);
    free(sequences);
    world_end(&world);
}

/* Puts a file with some bytes there. */
static void put_file(struct world *world, const char *name)
{
    const struct vxd_file_ops *ops = fault_disk_ops(world->disk);
    char path[VXD_DURABLE_PATH_BYTES];
    int file;

    (void)snprintf(path, sizeof path, "%s/snapshots/%s", WORLD_DIR, name);
    file = ops->open(ops->user, path, O_RDWR | O_CREAT, 0600);
    CHECK(file >= 0);
    CHECK_INT(ops->write(ops->user, file, "x", 1, 0), 1);
    (void)ops->close(ops->user, file);
}

static bool has_file(struct world *world, const char *name)
{
    char path[VXD_DURABLE_PATH_BYTES];
    size_t n_bytes;

    (void)snprintf(path, sizeof path, "%s/snapshots/%s", WORLD_DIR, name);
    return fault_disk_bytes(world->disk, path, &n_bytes) != NULL;
}

static void test_files_that_a_killed_process_left_go_at_the_start(void)
{
    static const char half[] = "00000001.0000000000000002.vxs.new";
    static const char dropped[] = "00000001.0000000000000009.vxs";
    static const char unknown[] = "00000007.0000000000000001.vxs";
    struct world world;
    struct seen before;

    world_begin(&world);
    world_make(&world, "a", world_durable);
    CHECK_INT(world_ask(&world, "scene_drop", 0, "{\"name\":\"a\"}"), VXD_OK);
    world_make(&world, "b", world_durable);
    CHECK_INT(world_edit(&world, "b", 0), VXD_OK);
    before = world_look(&world, "b", "");
    world_stop(&world);
    put_file(&world, half);
    put_file(&world, dropped);
    put_file(&world, unknown);
    put_file(&world, "notes.txt");
    world_start(&world);
    CHECK(!has_file(&world, half));
    CHECK(!has_file(&world, dropped));
    /* Whose it is is not known: it stays, but not as a snapshot of whoever gets the number. */
    CHECK(!has_file(&world, unknown));
    CHECK(has_file(&world, "00000007.0000000000000001.vxs.orphan"));
    CHECK(has_file(&world, "notes.txt"));
    check_seen(world_look(&world, "b", ""), before.digest, 2);
    world_end(&world);
}

static void test_damaged_snapshot_file_is_replaced_by_the_one_before(void)
{
    struct world world;
    struct seen before;

    world_begin(&world);
    world_make(&world, "a", world_durable);
    CHECK_INT(world_edit(&world, "a", 0), VXD_OK);
    CHECK_INT(world_save(&world, 1, 1, WORLD_PATIENT), 1);
    CHECK_INT(world_edit(&world, "a", 1), VXD_OK);
    CHECK_INT(world_save(&world, 1, 2, WORLD_PATIENT), 2);
    CHECK_INT(world_edit(&world, "a", 2), VXD_OK);
    before = world_look(&world, "a", "");
    world_stop(&world);
    world_damage_file(&world, 1);
    world_start(&world);
    check_seen(world_look(&world, "a", ""), before.digest, 4);
    CHECK(world_look(&world, "a", "").generation == before.generation);
    CHECK_INT(world_edit(&world, "a", 3), VXD_OK);
    world_end(&world);
}

static void test_snapshot_file_while_an_undo_waits_lacks_nothing(void)
{
    struct call calls[2];
    struct world world;
    struct gate gate;
    struct seen before;
    char json[300];
    char terms[200];

    (void)snprintf(terms, sizeof terms, "%s,\"retention\":{\"versions\":3}",
                   world_durable);
    world_begin(&world);
    world_make(&world, "a", terms);
    for (int i = 0; i < 3; i++) {
        CHECK_INT(world_edit(&world, "a", i), VXD_OK);
    }
    gate_close(&gate, &world); /* 2 to 4 are kept */
    world_send(&world, &calls[0], "scene_edit", 1, world_edit_json("a", 5, json));
    world_wait_for_changes(&world, 1);
    world_send(&world, &calls[1], "scene_undo", 2,
               "{\"name\":\"a\",\"of_version\":\"3\"}");
    world_wait_for_changes(&world, 2);
    vxd_registry_ask_snapshot(world.server->registry, 1);
    wait_ms(50);
    gate_open(&gate);
    CHECK_INT(world_receive(&calls[0]), VXD_OK);
    CHECK_INT(world_receive(&calls[1]), VXD_OK);
    CHECK_INT(world_save(&world, 1, 1, WORLD_PATIENT), 1);
    before = world_look(&world, "a", "");
    CHECK_INT(before.version, 6);
    world_restart(&world);
    check_seen(world_look(&world, "a", ""), before.digest, 6);
    CHECK(world_look(&world, "a", "").generation == before.generation);
    world_end(&world);
}

static void want_copy(const struct world *world, struct vxd_scene *scene, bool wants)
{
    vxd_scenes_lock(world->server->scenes);
    vxd_scene_want_copy(scene, wants);
    vxd_scenes_unlock(world->server->scenes);
}

/* A change of log-odds would always be under way. */
static void test_changes_wait_for_a_copy_of_log_odds_that_waits_for_the_first(void)
{
    struct call calls[3];
    struct vxd_scene *scene;
    struct world world;
    struct gate gate;
    struct seen before;
    char json[300];

    world_begin(&world);
    CHECK_INT(world_ask(&world, "scene_create", 0,
                        "{\"name\":\"a\",\"spec\":{\"voxel_size_m\":1,\"depth\":4,"
                        "\"material_bits\":4,\"track_free\":true},"
                        "\"durability\":{\"fsync\":\"SCENE_FSYNC_ALWAYS\"}}"),
              VXD_OK);
    scene = vxd_scenes_find(world.server->scenes, "a");
    REQUIRE(scene != NULL);
    gate_close(&gate, &world);
    world_send(&world, &calls[0], "scene_edit", 1, world_edit_json("a", 1, json));
    world_wait_for_changes(&world, 1);
    want_copy(&world, scene, true);
    for (int i = 1; i < 3; i++) {
        world_send(&world, &calls[i], "scene_edit", 1 + (uint64_t)i,
                   world_edit_json("a", 1 + i, json));
    }
    wait_ms(50);
    world_wait_for_changes(&world, 1); /* and no more */
    gate_open(&gate);
    CHECK_INT(world_receive(&calls[0]), VXD_OK);
    wait_ms(50);
    CHECK_INT(world_look(&world, "a", "").version, 2);
    want_copy(&world, scene, false);
    vxd_scene_drop(scene, NULL);
    for (int i = 1; i < 3; i++) {
        CHECK_INT(world_receive(&calls[i]), VXD_OK);
    }
    CHECK_INT(world_save(&world, 1, 1, WORLD_PATIENT), 1);
    CHECK(!vxd_scenes_want_copy(world.server->scenes));
    before = world_look(&world, "a", "");
    CHECK_INT(before.version, 4);
    world_restart(&world);
    check_seen(world_look(&world, "a", ""), before.digest, 4);
    world_end(&world);
}

static void test_names_forgotten_or_moved_after_a_file_stay_so(void)
{
    struct world world;
    struct seen old;
    char terms[200];

    (void)snprintf(terms, sizeof terms, "%s,\"retention\":{\"versions\":1}",
                   world_durable);
    world_begin(&world);
    world_make(&world, "a", terms);
    CHECK_INT(world_edit(&world, "a", 0), VXD_OK);
    old = world_look(&world, "a", "");
    CHECK_INT(
        world_ask(&world, "scene_snapshot", 0, "{\"name\":\"a\",\"snapshot\":\"x\"}"),
        VXD_OK);
    CHECK_INT(
        world_ask(&world, "scene_snapshot", 0, "{\"name\":\"a\",\"snapshot\":\"gone\"}"),
        VXD_OK);
    CHECK_INT(world_edit(&world, "a", 1), VXD_OK);
    CHECK_INT(world_save(&world, 1, 1, WORLD_PATIENT), 1);
    for (int i = 0; i < 8; i++) {
        char json[200];

        (void)snprintf(json, sizeof json,
                       "{\"name\":\"a\",\"snapshot\":\"y%d\",\"at\":{\"version\":\"2\"}}",
                       i);
        CHECK_INT(world_ask(&world, "scene_snapshot", 0, json), VXD_OK);
    }
    CHECK_INT(world_ask(&world, "scene_snapshot", 0,
                        "{\"name\":\"a\",\"snapshot\":\"x\",\"replace\":true}"),
              VXD_OK);
    CHECK_INT(world_ask(&world, "scene_snapshot", 0,
                        "{\"name\":\"a\",\"snapshot\":\"gone\",\"drop\":true}"),
              VXD_OK);
    world_restart(&world);
    CHECK_INT(world_look(&world, "a", "").n_snapshots, 9);
    CHECK_INT(world_look(&world, "a", "gone").status, VXD_NOT_FOUND);
    CHECK_INT(world_look(&world, "a", "x").version, 3);
    check_seen(world_look(&world, "a", "y0"), old.digest, 2);
    check_seen(world_look(&world, "a", "y7"), old.digest, 2);
    world_end(&world);
}

/* --- the end ------------------------------------------------------------------------------- */

static void test_drain_answers_commits_that_wait_and_keeps_their_outcome(void)
{
    struct call calls[N_FLIGHT];
    struct world world;
    struct gate gate;
    char json[300];

    world_begin(&world);
    world_make(&world, "a", world_durable);
    gate_close(&gate, &world);
    for (int i = 0; i < N_FLIGHT; i++) {
        world_send(&world, &calls[i], "scene_edit", 1 + (uint64_t)i,
                   world_edit_json("a", i, json));
    }
    world_wait_for_changes(&world, N_FLIGHT);
    CHECK(!vxd_scheduler_drain(world.server->scheduler, 20));
    for (int i = 0; i < N_FLIGHT; i++) {
        CHECK(call_is_answered(&calls[i]));
        CHECK_INT(call_wait(&calls[i]), VXD_UNAVAILABLE);
    }
    gate_open(&gate);
    for (int i = 0; i < N_FLIGHT; i++) {
        call_finish(&calls[i]);
    }
    world_restart(&world);
    check_seen(world_look(&world, "a", ""), NULL, 1 + N_FLIGHT);
    CHECK_INT(
        world_version_of(&world, N_FLIGHT, world_edit_json("a", N_FLIGHT - 1, json)),
        1 + N_FLIGHT);
    world_end(&world);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_commits_that_fail_with_eio_are_taken_back),
    VXD_TEST(test_commits_on_a_full_disk_are_taken_back),
    VXD_TEST(test_commits_that_are_cut_short_are_taken_back),
    VXD_TEST(test_power_lost_in_a_commit_keeps_what_was_answered),
    VXD_TEST(test_drop_behind_waiting_commits_ends_the_scene_there),
    VXD_TEST(test_drop_that_fails_leaves_the_scene_as_it_was),
    VXD_TEST(test_family_whose_scenes_were_dropped_at_once_is_forgotten),
    VXD_TEST(test_files_of_a_scene_that_is_dropped_go),
    VXD_TEST(test_files_that_a_killed_process_left_go_at_the_start),
    VXD_TEST(test_damaged_snapshot_file_is_replaced_by_the_one_before),
    VXD_TEST(test_snapshot_file_while_an_undo_waits_lacks_nothing),
    VXD_TEST(test_changes_wait_for_a_copy_of_log_odds_that_waits_for_the_first),
    VXD_TEST(test_names_forgotten_or_moved_after_a_file_stay_so),
    VXD_TEST(test_drain_answers_commits_that_wait_and_keeps_their_outcome),
};

VXD_TEST_MAIN(tests)
