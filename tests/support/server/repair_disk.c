// SPDX-License-Identifier: Apache-2.0
#include "tests/support/server/repair_disk.h"

#include <sqlite3.h>

#include "server/registry/registry.h"
#include "tests/support/server/server_checks.h"

struct seen repair_make(struct world *world)
{
    struct seen seen;

    world_begin(world);
    world_make(world, "a", world_durable);
    world_make(world, "b", world_durable);
    EXPECT(world_edit(world, "b", 0) == VXD_OK);
    for (int i = 0; i < 3; i++) {
        EXPECT(world_edit(world, "a", i) == VXD_OK);
    }
    EXPECT(world_save(world, 1, 1, WORLD_PATIENT) == 1);
    EXPECT(world_edit(world, "a", 3) == VXD_OK);
    EXPECT(world_edit(world, "a", 4) == VXD_OK);
    EXPECT(world_ask(world, "scene_snapshot", 0, "{\"name\":\"a\",\"snapshot\":\"x\"}") ==
           VXD_OK);
    seen = world_look(world, "a", "");
    EXPECT(seen.version == REPAIR_AT_END);
    world_stop(world);
    return seen;
}

static void run_sql(struct world *world, const char *sql, int stays_in_wal)
{
    sqlite3 *db = NULL;

    EXPECT(sqlite3_open_v2(REPAIR_DATABASE, &db, SQLITE_OPEN_READWRITE,
                           fault_disk_ops(world->disk)->sqlite_vfs) == SQLITE_OK);
    (void)sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, stays_in_wal, NULL);
    EXPECT(sqlite3_exec(db, "PRAGMA locking_mode = EXCLUSIVE", NULL, NULL, NULL) ==
           SQLITE_OK);
    EXPECT(sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK);
    EXPECT(sqlite3_close(db) == SQLITE_OK);
}

void repair_sql(struct world *world, const char *sql)
{
    run_sql(world, sql, 0);
}

void repair_sql_in_wal(struct world *world, const char *sql)
{
    run_sql(world, sql, 1);
}

static void count(void *user, const struct vxd_problem *problem)
{
    if (getenv("DURABLE_LIST") != NULL) {
        (void)printf("  %d %s: %s\n", (int)problem->weight, problem->where,
                     problem->message);
    }
    EXPECT(problem->where[0] != '\0' && problem->message[0] != '\0');
    (*(int *)user)++;
}

struct vxd_repair_result repair_now(struct world *world)
{
    struct vxd_repair_result result = {0};
    struct vxd_err err = {0};
    int n = 0;

    EXPECT(vxd_repair_data_dir(fault_disk_ops(world->disk), WORLD_DIR, count, &n, &result,
                               &err) == VXD_OK);
    EXPECT(strcmp(err.message, "") == 0);
    return result;
}

void repair_check_mended(struct world *world, struct seen before, uint64_t version,
                         bool is_new_generation)
{
    struct vxd_repair_result again = repair_now(world);
    struct seen seen;

    EXPECT(again.n_mended == 0 && again.n_set_aside == 0 && again.n_lost == 0);
    world_start(world);
    seen = world_look(world, "a", "");
    EXPECT(seen.status == VXD_OK);
    EXPECT(seen.version == version);
    if (version == REPAIR_AT_END) {
        EXPECT(strcmp(seen.digest, before.digest) == 0);
    }
    EXPECT((seen.generation > before.generation) == is_new_generation);
    EXPECT(world_edit(world, "a", 5) == VXD_OK);
}

bool repair_try_start(struct world *world)
{
    struct vxd_err err = {0};
    enum vxd_status status;

    world->server = server_start(&(struct server_setup){0});
    if (world->server == NULL) {
        abort();
    }
    status = vxd_data_dir_open(fault_disk_ops(world->disk), WORLD_DIR, &world->dir, &err);
    if (status == VXD_OK) {
        status = vxd_registry_open_journal(world->server->registry, world->server->once,
                                           &world->dir, &err);
    }
    if (status != VXD_OK) {
        world_stop(world);
    }
    return status == VXD_OK;
}
