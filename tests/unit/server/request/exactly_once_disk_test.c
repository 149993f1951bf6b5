// SPDX-License-Identifier: Apache-2.0
/* Exactly-once across starts: the disk remembers what memory does, no less and no more. */
#include "tests/support/test.h"

#include <sqlite3.h>

#include "server/method_table.h"
#include "server/registry/registry.h"
#include "server/request/exactly_once_internal.h"
#include "tests/support/server/server_checks.h"
#include "tests/support/server/scenes_disk.h"

VXD_TEST_HELPERS

enum {
    N_KEPT = VXD_ONCE_OUTCOMES
};

static void begin(struct world *world)
{
    world_begin(world);
    world_make(world, "a", world_durable);
}

/* Edit number i of a client by sequence, or by a key; the version that it made, 0 = refused. */
static enum vxd_status edit(struct world *world, const char *client, uint64_t sequence,
                            const char *key, int i)
{
    const struct vxd_request_header header = {.peer = "test",
                                              .peer_uid = -1,
                                              .client_id = client,
                                              .sequence = sequence,
                                              .idempotency_key = key};
    struct call call;
    char json[300];

    (void)snprintf(json, sizeof json,
                   "{\"name\":\"a\",\"in_voxels\":true,\"operations\":[{\"box\":{\"low\":"
                   "{\"x\":0,\"y\":0,\"z\":0},\"high\":{\"x\":1,\"y\":1,\"z\":1}},"
                   "\"material\":%d}]}",
                   i % 16);
    call_begin(&call);
    call_json(&call, world->server, vxd_method_by_name(vxd_method_table(), "scene_edit"),
              &header, json);
    return world_receive(&call);
}

static uint64_t version(struct world *world)
{
    return world_look(world, "a", "").version;
}

static enum vxd_status count_row(void *user, const struct vxd_journal_reply *reply,
                                 struct vxd_err *err)
{
    size_t *n = user;

    (void)reply;
    (void)err;
    ++*n;
    return VXD_OK;
}

static size_t count_rows(struct world *world)
{
    uint64_t n_damaged = 0;
    size_t n = 0;

    CHECK_INT(vxd_journal_read_replies(vxd_registry_get_journal(world->server->registry),
                                       count_row, &n, &n_damaged, NULL),
              VXD_OK);
    CHECK_INT(n_damaged, 0);
    return n;
}

static size_t count_outcomes(const struct world *world)
{
    struct vxd_once_usage usage;

    vxd_once_get_usage(world->server->once, &usage);
    return usage.n_outcomes;
}

/* Sequences step, 2 step, ...: as many outcomes are kept whatever the step. */
static void check_window(uint64_t step)
{
    enum {
        N = N_KEPT + 20
    };
    struct world world;
    uint64_t last;

    begin(&world);
    for (int i = 1; i <= N; i++) {
        CHECK_INT(edit(&world, "robot", (uint64_t)i * step, NULL, i), VXD_OK);
    }
    CHECK_INT(count_outcomes(&world), N_KEPT);
    CHECK_INT(count_rows(&world), N_KEPT);
    world_restart(&world);
    CHECK_INT(count_outcomes(&world), N_KEPT);
    last = version(&world);
    for (int i = 1; i <= N; i++) {
        CHECK_INT(edit(&world, "robot", (uint64_t)i * step, NULL, i),
                  i <= N - N_KEPT ? VXD_FAILED_PRECONDITION : VXD_OK);
    }
    CHECK_INT(version(&world), last);
    CHECK_INT(edit(&world, "robot", (N + 1) * step, NULL, 0), VXD_OK);
    CHECK_INT(version(&world), last + 1);
    CHECK_INT(count_rows(&world), N_KEPT);
    world_end(&world);
}

static void test_outcomes_on_the_disk_are_the_last_64_of_a_client(void)
{
    check_window(1);
}

static void test_outcomes_of_sparse_sequences_are_as_many(void)
{
    check_window(1000);
}

static void test_outcomes_by_key_are_bounded_too(void)
{
    struct world world;
    char key[24];

    begin(&world);
    for (int i = 0; i < N_KEPT + 10; i++) {
        (void)snprintf(key, sizeof key, "key-%d", i);
        CHECK_INT(edit(&world, "robot", 0, key, i), VXD_OK);
    }
    CHECK_INT(count_rows(&world), N_KEPT);
    world_restart(&world);
    CHECK_INT(edit(&world, "robot", 0, key, N_KEPT + 9), VXD_OK);
    CHECK_INT(version(&world), N_KEPT + 11); /* no more than were made */
    world_end(&world);
}

/* Of the last 64 outcomes some changed nothing durable: those on the disk do not tell what was
 * forgotten. */
static void test_watermark_outlives_a_start_where_outcomes_do_not_show_it(void)
{
    struct world world;
    uint64_t last;

    begin(&world);
    world_make(&world, "memory", "");
    CHECK_INT(edit(&world, "robot", 1, NULL, 1), VXD_OK);
    for (int i = 2; i < 2 + N_KEPT; i++) {
        char json[300];

        CHECK_INT(world_ask(&world, "scene_edit", (uint64_t)i,
                            world_edit_json("memory", i % 8, json)),
                  VXD_OK);
    }
    CHECK_INT(edit(&world, "robot", 2 + N_KEPT, NULL, 2), VXD_OK);
    CHECK_INT(count_rows(&world), 2); /* one, and the watermark */
    last = version(&world);
    world_restart(&world);
    CHECK_INT(edit(&world, "robot", 1, NULL, 1), VXD_FAILED_PRECONDITION);
    CHECK_INT(version(&world), last);
    CHECK_INT(edit(&world, "robot", 2 + N_KEPT, NULL, 2), VXD_OK);
    CHECK_INT(version(&world), last);
    world_end(&world);
}

/* Two of a client run, each takes the place of an old outcome, and the disk gets the second alone:
 * what was forgotten stays forgotten. */
static void test_watermark_holds_where_one_of_two_that_run_fails(void)
{
    const struct vxd_request_header header = {
        .peer = "test", .peer_uid = -1, .client_id = "robot"};
    struct call calls[2];
    struct world world;
    struct gate gate;
    sqlite3 *db = NULL;
    char json[300];

    begin(&world);
    for (int i = 1; i <= N_KEPT; i++) {
        CHECK_INT(edit(&world, "robot", (uint64_t)i, NULL, i), VXD_OK);
    }
    gate_close(&gate, &world);
    for (int i = 0; i < 2; i++) {
        struct vxd_request_header now = header;

        now.sequence = N_KEPT + 1 + (uint64_t)i;
        call_begin(&calls[i]);
        call_json(&calls[i], world.server,
                  vxd_method_by_name(vxd_method_table(), "scene_edit"), &now,
                  world_edit_json("a", i, json));
        world_wait_for_changes(&world, 1 + (size_t)i);
    }
    gate_open(&gate);
    CHECK_INT(world_receive(&calls[0]), VXD_OK);
    CHECK_INT(world_receive(&calls[1]), VXD_OK);
    world_stop(&world);
    /* As if the first had failed alone. */
    CHECK(sqlite3_open_v2(WORLD_DIR "/voxeld.db", &db, SQLITE_OPEN_READWRITE,
                          fault_disk_ops(world.disk)->sqlite_vfs) == SQLITE_OK);
    CHECK(sqlite3_exec(db,
                       "PRAGMA locking_mode = EXCLUSIVE;"
                       "DELETE FROM replies WHERE sequence = 65",
                       NULL, NULL, NULL) == SQLITE_OK);
    CHECK(sqlite3_close(db) == SQLITE_OK);
    world_start(&world);
    CHECK_INT(count_outcomes(&world), N_KEPT - 1);
    CHECK_INT(edit(&world, "robot", 1, NULL, 1), VXD_FAILED_PRECONDITION);
    CHECK_INT(edit(&world, "robot", 2, NULL, 2), VXD_FAILED_PRECONDITION);
    CHECK_INT(edit(&world, "robot", N_KEPT + 1, NULL, 0), VXD_OK);
    world_end(&world);
}

static void test_clients_that_memory_forgets_the_disk_forgets(void)
{
    struct world world;
    char name[24];

    world_begin(&world);
    world.replay_clients = 8;
    world_restart(&world);
    world_make(&world, "a", world_durable);
    for (int i = 0; i < 40; i++) {
        (void)snprintf(name, sizeof name, "robot-%d", i);
        CHECK_INT(edit(&world, name, 1, NULL, i), VXD_OK);
        CHECK_INT(edit(&world, name, 2, NULL, i), VXD_OK);
    }
    CHECK_INT(count_rows(&world), 2 * 8 + 32); /* and the watermarks of those that went */
    /* One that comes back is known by its watermark. */
    CHECK_INT(edit(&world, "robot-3", 2, NULL, 3), VXD_FAILED_PRECONDITION);
    CHECK_INT(edit(&world, "robot-3", 3, NULL, 3), VXD_OK);
    CHECK_INT(version(&world), 82);
    world_restart(&world);
    for (int i = 0; i < 40; i++) {
        (void)snprintf(name, sizeof name, "robot-%d", i);
        for (uint64_t sequence = 1; sequence <= 2; sequence++) {
            enum vxd_status status = edit(&world, name, sequence, NULL, i);

            CHECK(status == VXD_FAILED_PRECONDITION || (status == VXD_OK && i > 32));
        }
    }
    CHECK_INT(edit(&world, "robot-3", 3, NULL, 3), VXD_FAILED_PRECONDITION);
    CHECK_INT(version(&world), 82);
    CHECK_INT(edit(&world, "robot-3", 4, NULL, 3), VXD_OK);
    world_end(&world);
}

/* So are they on the disk no longer than in memory. */
static void test_watermarks_that_memory_forgets_the_disk_forgets(void)
{
    struct world world;
    char name[24];

    world_begin(&world);
    world.replay_clients = 2;
    world_restart(&world);
    world.server->once->max_watermarks = 3;
    world_make(&world, "a", world_durable);
    for (int i = 0; i < 20; i++) {
        (void)snprintf(name, sizeof name, "robot-%d", i);
        CHECK_INT(edit(&world, name, 5, NULL, i), VXD_OK);
    }
    CHECK_INT(count_rows(&world), 2 + 3);
    CHECK_INT(edit(&world, "robot-17", 5, NULL, 17), VXD_FAILED_PRECONDITION);
    CHECK_INT(edit(&world, "robot-0", 5, NULL, 0), VXD_OK); /* as a new one */
    CHECK_INT(version(&world), 22);
    world_restart(&world);
    CHECK_INT(edit(&world, "robot-17", 5, NULL, 17), VXD_FAILED_PRECONDITION);
    CHECK_INT(edit(&world, "robot-0", 5, NULL, 0), VXD_OK);
    CHECK_INT(version(&world), 22);
    world_end(&world);
}

static void test_lower_limits_at_a_start_make_the_disk_forget(void)
{
    struct world world;
    char name[24];

    begin(&world);
    for (int i = 0; i < 20; i++) {
        (void)snprintf(name, sizeof name, "robot-%d", i);
        CHECK_INT(edit(&world, name, 1, NULL, i), VXD_OK);
    }
    CHECK_INT(count_rows(&world), 20);
    world.replay_clients = 4;
    world_restart(&world);
    CHECK_INT(count_outcomes(&world), 4);
    /* Those who were heard last are known. */
    CHECK_INT(edit(&world, "robot-19", 1, NULL, 19), VXD_OK);
    CHECK_INT(edit(&world, "robot-17", 1, NULL, 17), VXD_OK);
    CHECK_INT(version(&world), 21);
    CHECK_INT(edit(&world, "robot-19", 2, NULL, 19), VXD_OK);
    CHECK_INT(count_rows(&world),
              5 + 16); /* and the watermarks of those that were left out */
    CHECK_INT(edit(&world, "robot-2", 1, NULL, 2), VXD_FAILED_PRECONDITION);
    CHECK_INT(version(&world), 22);
    world_end(&world);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_outcomes_on_the_disk_are_the_last_64_of_a_client),
    VXD_TEST(test_outcomes_of_sparse_sequences_are_as_many),
    VXD_TEST(test_outcomes_by_key_are_bounded_too),
    VXD_TEST(test_watermark_outlives_a_start_where_outcomes_do_not_show_it),
    VXD_TEST(test_watermark_holds_where_one_of_two_that_run_fails),
    VXD_TEST(test_clients_that_memory_forgets_the_disk_forgets),
    VXD_TEST(test_watermarks_that_memory_forgets_the_disk_forgets),
    VXD_TEST(test_lower_limits_at_a_start_make_the_disk_forget),
};

VXD_TEST_MAIN(tests)
