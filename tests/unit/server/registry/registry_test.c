// SPDX-License-Identifier: Apache-2.0
/* Kinds of durable things: what the registry does with families of a kind that it does not know. */
#include "tests/support/test.h"

#include <string.h>

#include "server/registry/registry.h"
#include "server/registry/scenes/scenes_recover.h"
#include "server/schedule/schedule.h"
#include "server/server.h"
#include "tests/support/server/scenes_disk.h"
#include "tests/support/server/server_checks.h"

VXD_TEST_HELPERS

/* A family with one record and one snapshot file, as a newer server may have written it. */
static uint32_t put_unknown_family(struct world *world)
{
    struct vxd_journal *journal = vxd_registry_get_journal(world->server->registry);
    struct vxd_journal_family row = {.name = "unheard:yard", .epoch = 7};
    struct vxd_journal_record record = {
        .sequence = 1, .rules_version = 1, .kind = 9, .bytes = "bytes", .n_bytes = 5};
    struct vxd_snapshot_head head = {
        .sequence = 1, .name = "unheard:yard", .epoch = 7, .rules_version = 1};
    struct vxd_snapshot_writer *writer = NULL;
    struct vxd_journal_txn *txn = NULL;
    struct vxd_err err = {0};

    row.id = vxd_journal_new_family(journal);
    record.family = row.id;
    head.family = row.id;
    CHECK_INT(vxd_journal_begin(journal, &txn, &err), VXD_OK);
    CHECK_INT(vxd_journal_put_family(txn, &row, &err), VXD_OK);
    CHECK_INT(vxd_journal_add_record(txn, &record, &err), VXD_OK);
    CHECK_INT(vxd_journal_commit_wait(txn, &err), VXD_OK);
    CHECK_INT(vxd_snapshot_begin(&world->dir, &head, &writer, &err), VXD_OK);
    CHECK_INT(vxd_snapshot_write(writer, VXD_SNAPSHOT_CATALOGUE, "bytes", 5, &err),
              VXD_OK);
    CHECK_INT(vxd_snapshot_conclude(writer, journal, &err), VXD_OK);
    return row.id;
}

static enum vxd_status count_record(void *user, const struct vxd_journal_record *record,
                                    struct vxd_err *err)
{
    int *n = user;

    (void)err;
    *n += record->kind == 9 && record->n_bytes == 5 ? 1 : 0;
    return VXD_OK;
}

/* How many records and files of the family the disk has, whatever servers did to it. */
static void check_is_untouched(struct world *world, uint32_t family)
{
    const struct vxd_journal_options options = {0};
    struct vxd_journal *journal = NULL;
    struct vxd_journal_state state = {0};
    struct vxd_journal_found found;
    uint64_t *sequences = NULL;
    struct vxd_err err = {0};
    size_t n_files = 0;
    int n_records = 0;

    CHECK_INT(vxd_journal_open(&world->dir, &options, &journal, &found, &err), VXD_OK);
    CHECK_INT(vxd_journal_get_state(journal, family, &state, &err), VXD_OK);
    CHECK_INT(state.last_sequence, 1);
    CHECK_INT(vxd_journal_read_records(journal, family, 1, 1, count_record, &n_records,
                                       NULL, &err),
              VXD_OK);
    CHECK_INT(n_records, 1);
    CHECK_INT(vxd_snapshot_list(&world->dir, family, &sequences, &n_files, &err), VXD_OK);
    CHECK_INT(n_files, 1);
    free(sequences);
    CHECK_INT(vxd_journal_close(journal, &err), VXD_OK);
}

static void test_family_of_an_unknown_kind_refuses_the_start_and_stays(void)
{
    struct vxd_err err = {0};
    struct world world;
    uint32_t family;

    world_begin(&world);
    world_make(&world, "a", world_durable);
    CHECK_INT(world_edit(&world, "a", 0), VXD_OK);
    family = put_unknown_family(&world);
    world_stop(&world);

    world.server = server_start(&(struct server_setup){0});
    CHECK_INT(vxd_data_dir_open(fault_disk_ops(world.disk), WORLD_DIR, &world.dir, &err),
              VXD_OK);
    CHECK_INT(vxd_registry_open_journal(world.server->registry, world.server->once,
                                        &world.dir, &err),
              VXD_FAILED_PRECONDITION);
    CHECK(strstr(err.message, "\"unheard:yard\"") != NULL);
    (void)vxd_scheduler_drain(world.server->scheduler, 20000);
    vxd_registry_close_journal(world.server->registry);
    check_is_untouched(&world, family);
    world_end(&world);
}

/* Every other kind's names have a ':', which no name of a scene has. */
static void test_only_names_without_a_prefix_are_scenes(void)
{
    struct vxd_journal_family row = {.name = "yard"};

    CHECK(vxd_registry_is_of_kind(&vxd_scenes_kind, &row));
    (void)snprintf(row.name, sizeof row.name, "map:yard");
    CHECK(!vxd_registry_is_of_kind(&vxd_scenes_kind, &row));
    (void)snprintf(row.name, sizeof row.name, ":yard");
    CHECK(!vxd_registry_is_of_kind(&vxd_scenes_kind, &row));
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_family_of_an_unknown_kind_refuses_the_start_and_stays),
    VXD_TEST(test_only_names_without_a_prefix_are_scenes),
};

VXD_TEST_MAIN(tests)
