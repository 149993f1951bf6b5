// SPDX-License-Identifier: Apache-2.0
/* The journal against its mark: a database that ends before what was acknowledged is a loss, which
 * the start reports until it has been dealt with, and whatever else is behind or before the other
 * is none. */
#include "tests/support/test.h"

#include <string.h>
#include <time.h>

#include "server/durable/maintenance/maintenance.h"
#include "server/durable/recovery/recovery.h"
#include "server/observe/log/log.h"
#include "tests/support/durable/fault_vfs.h"

#define DIR "/d"
#define WAL DIR "/voxeld.db-wal"
#define MARK DIR "/voxeld.mark"

enum {
    N_RECORDS = 30,
    WAL_HEAD = 32,
    FRAME = 4096 + 24,
    EPOCH = 5
};

struct fixture {
    struct fault_disk *disk;
    struct vxd_data_dir dir;
    struct vxd_journal *journal;
    struct vxd_journal_found found;
};

static enum vxd_status start(struct fixture *fixture)
{
    const struct vxd_journal_options options = {.sync_ms = 1000000};

    fixture->dir.lock = -1;
    CHECK_INT(vxd_data_dir_open(fault_disk_ops(fixture->disk), DIR, &fixture->dir, NULL),
              VXD_OK);
    return vxd_journal_open(&fixture->dir, &options, &fixture->journal, &fixture->found,
                            NULL);
}

static void stop(struct fixture *fixture)
{
    CHECK_INT(vxd_journal_close(fixture->journal, NULL), VXD_OK);
    vxd_data_dir_close(&fixture->dir);
    fixture->journal = NULL;
}

/* As a kill does. */
static void kill(struct fixture *fixture)
{
    fault_disk_cut(fixture->disk);
    (void)vxd_journal_close(fixture->journal, NULL);
    vxd_data_dir_close(&fixture->dir);
    fault_disk_kill(fixture->disk);
    fixture->journal = NULL;
}

static void put_family(struct fixture *fixture, uint32_t id, enum vxd_fsync fsync)
{
    struct vxd_journal_family family = {.id = id, .fsync = fsync, .epoch = EPOCH};
    struct vxd_journal_txn *txn;

    (void)snprintf(family.name, sizeof family.name, "family-%u", id);
    REQUIRE(vxd_journal_begin(fixture->journal, &txn, NULL) == VXD_OK);
    CHECK_INT(vxd_journal_put_family(txn, &family, NULL), VXD_OK);
    CHECK_INT(vxd_journal_commit_wait(txn, NULL), VXD_OK);
}

static void put_record(struct fixture *fixture, uint32_t family, uint64_t sequence)
{
    static const uint8_t bytes[100];
    const struct vxd_journal_record record = {.family = family,
                                              .sequence = sequence,
                                              .rules_version = 1,
                                              .kind = 1,
                                              .bytes = bytes,
                                              .n_bytes = sizeof bytes};
    struct vxd_journal_txn *txn;

    REQUIRE(vxd_journal_begin(fixture->journal, &txn, NULL) == VXD_OK);
    CHECK_INT(vxd_journal_add_record(txn, &record, NULL), VXD_OK);
    CHECK_INT(vxd_journal_commit_wait(txn, NULL), VXD_OK);
}

/* A family with N_RECORDS, each a commit of its own, in the WAL alone; killed. */
static void make(struct fixture *fixture, enum vxd_fsync fsync)
{
    *fixture = (struct fixture){.disk = fault_disk_create()};
    REQUIRE(fixture->disk != NULL);
    CHECK_INT(start(fixture), VXD_OK);
    CHECK(fixture->found.is_new && fixture->found.n_lost == 0);
    put_family(fixture, 1, fsync);
    for (uint64_t n = 1; n <= N_RECORDS; n++) {
        put_record(fixture, 1, n);
    }
    kill(fixture);
}

static void end(struct fixture *fixture)
{
    if (fixture->journal != NULL) {
        stop(fixture);
    }
    vxd_data_dir_close(&fixture->dir);
    fault_disk_destroy(fixture->disk);
}

static uint64_t last_record(struct fixture *fixture)
{
    struct vxd_journal_state state = {0};

    return vxd_journal_get_state(fixture->journal, 1, &state, NULL) == VXD_OK
               ? state.last_sequence
               : 0;
}

static enum vxd_status accept_record(void *user, const struct vxd_journal_family *family,
                                     const struct vxd_journal_record *record,
                                     struct vxd_err *err)
{
    (void)user, (void)family, (void)record, (void)err;
    return VXD_OK;
}

static enum vxd_status accept_family(void *user, const struct vxd_journal_family *family,
                                     struct vxd_err *err)
{
    (void)user, (void)family, (void)err;
    return VXD_OK;
}

/* A whole start; how many families came back with a loss. */
static size_t recover(struct fixture *fixture)
{
    const struct vxd_recovery_visitor visitor = {.family = accept_family,
                                                 .own_record = accept_record};
    struct vxd_recovery_result result = {0};

    CHECK_INT(vxd_recover(&fixture->dir, fixture->journal, &fixture->found, &visitor,
                          &result, NULL),
              VXD_OK);
    return result.n_lossy;
}

static void test_any_flipped_bit_of_the_wal_is_no_silent_loss(void)
{
    struct fixture fixture;
    size_t n_bytes;
    size_t n_losses = 0;

    make(&fixture, VXD_FSYNC_ALWAYS);
    REQUIRE(fault_disk_bytes(fixture.disk, WAL, &n_bytes) != NULL);
    end(&fixture);
    for (size_t at = 3; at < n_bytes; at += 997 * (size_t)vxd_test_slow()) {
        uint8_t *wal;

        make(&fixture, VXD_FSYNC_ALWAYS);
        wal = fault_disk_bytes(fixture.disk, WAL, &n_bytes);
        wal[at] ^= 0x10;
        CHECK_INT(start(&fixture), VXD_OK);
        CHECK(fixture.found.n_lost >= N_RECORDS - last_record(&fixture));
        CHECK((fixture.found.n_lost > 0) == (last_record(&fixture) < N_RECORDS));
        CHECK(fixture.found.generation >= EPOCH);
        CHECK(last_record(&fixture) == N_RECORDS || fixture.found.is_behind_mark);
        n_losses += fixture.found.n_lost > 0;
        end(&fixture);
    }
    CHECK(n_losses > 0);
}

static void test_missing_wal_is_a_loss_after_a_loss_of_power_too(void)
{
    for (int i = 0; i < 2; i++) {
        struct fixture fixture;
        const struct vxd_file_ops *ops;

        make(&fixture, VXD_FSYNC_ALWAYS);
        ops = fault_disk_ops(fixture.disk);
        if (i == 1) {
            fault_disk_lose_power(fixture.disk, FAULT_DROP_ALL, 1);
        }
        CHECK_INT(ops->unlink(ops->user, WAL), 0);
        CHECK_INT(start(&fixture), VXD_OK);
        CHECK_INT(fixture.found.n_lost, N_RECORDS + 1);
        CHECK_INT(last_record(&fixture), 0);
        end(&fixture);
    }
}

/* What was not to outlive it is no loss of the journal's. */
static void test_power_takes_unsynced_changes_without_an_alarm(void)
{
    for (int loss = 0; loss < FAULT_N_LOSSES; loss++) {
        struct fixture fixture;

        make(&fixture, VXD_FSYNC_OFF);
        fault_disk_lose_power(fixture.disk, (enum fault_loss)loss, 3);
        CHECK_INT(start(&fixture), VXD_OK);
        CHECK_INT(fixture.found.n_lost, 0);
        /* And the mark goes on above all that it had. */
        put_family(&fixture, 2, VXD_FSYNC_ALWAYS);
        put_record(&fixture, 2, 1);
        kill(&fixture);
        CHECK_INT(start(&fixture), VXD_OK);
        CHECK_INT(fixture.found.n_lost, 0);
        kill(&fixture);
        fault_disk_lose_power(fixture.disk, FAULT_DROP_ALL, 1);
        CHECK_INT(start(&fixture), VXD_OK);
        CHECK_INT(fixture.found.n_lost, 0);
        end(&fixture);
    }
}

static void test_loss_is_reported_until_a_start_has_dealt_with_it(void)
{
    struct fixture fixture;
    size_t n_bytes;

    make(&fixture, VXD_FSYNC_ALWAYS);
    fault_disk_bytes(fixture.disk, WAL, &n_bytes)[WAL_HEAD + 40 * FRAME] ^= 1;
    CHECK_INT(start(&fixture), VXD_OK);
    CHECK(fixture.found.n_lost > 0 && last_record(&fixture) > 0);
    kill(&fixture); /* before any family has another epoch */
    CHECK_INT(start(&fixture), VXD_OK);
    CHECK(fixture.found.n_lost == 0 && fixture.found.is_behind_mark);
    CHECK_INT(recover(&fixture), 1);
    kill(&fixture);
    CHECK_INT(start(&fixture), VXD_OK);
    CHECK(!fixture.found.is_behind_mark);
    CHECK_INT(recover(&fixture), 0);
    end(&fixture);
}

static void test_journal_above_its_mark_is_whole(void)
{
    struct fixture fixture;
    uint8_t before[2 * 4096];
    uint8_t *mark;
    size_t n_bytes;

    make(&fixture, VXD_FSYNC_ALWAYS);
    mark = fault_disk_bytes(fixture.disk, MARK, &n_bytes);
    REQUIRE(n_bytes == sizeof before);
    memcpy(before, mark, sizeof before);
    CHECK_INT(start(&fixture), VXD_OK);
    put_record(&fixture, 1, N_RECORDS + 1);
    kill(&fixture);
    memcpy(fault_disk_bytes(fixture.disk, MARK, &n_bytes), before, sizeof before);
    CHECK_INT(start(&fixture), VXD_OK);
    CHECK(fixture.found.n_lost == 0 && last_record(&fixture) == N_RECORDS + 1);
    end(&fixture);
}

static void test_one_sector_of_the_mark_is_enough(void)
{
    for (size_t sector = 0; sector < 2; sector++) {
        struct fixture fixture;
        size_t n_bytes;

        make(&fixture, VXD_FSYNC_ALWAYS);
        fault_disk_bytes(fixture.disk, MARK, &n_bytes)[sector * 4096 + 17] ^= 1;
        CHECK_INT(start(&fixture), VXD_OK);
        CHECK_INT(fixture.found.n_lost, 0);
        put_record(&fixture, 1, N_RECORDS + 1);
        kill(&fixture);
        CHECK_INT(start(&fixture), VXD_OK);
        CHECK_INT(last_record(&fixture), N_RECORDS + 1);
        end(&fixture);
    }
}

static void test_mark_that_is_gone_is_refused_and_mended(void)
{
    for (int i = 0; i < 2; i++) {
        struct vxd_repair_result result;
        struct fixture fixture;
        const struct vxd_file_ops *ops;

        make(&fixture, VXD_FSYNC_ALWAYS);
        ops = fault_disk_ops(fixture.disk);
        if (i == 0) {
            CHECK_INT(ops->unlink(ops->user, MARK), 0);
        } else {
            fault_disk_resize(fixture.disk, MARK, 0);
        }
        CHECK_INT(start(&fixture), VXD_DATA_LOSS);
        vxd_data_dir_close(&fixture.dir);
        CHECK_INT(vxd_repair_data_dir(ops, DIR, NULL, NULL, &result, NULL), VXD_OK);
        CHECK_INT(start(&fixture), VXD_OK);
        CHECK(fixture.found.is_restored && last_record(&fixture) == N_RECORDS);
        end(&fixture);
    }
}

static void test_missing_database_is_refused_unless_the_directory_is_new(void)
{
    struct fixture fixture;
    const struct vxd_file_ops *ops;
    int file;

    make(&fixture, VXD_FSYNC_ALWAYS);
    ops = fault_disk_ops(fixture.disk);
    CHECK_INT(ops->unlink(ops->user, DIR "/voxeld.db"), 0);
    CHECK_INT(start(&fixture), VXD_DATA_LOSS); /* the mark knows of changes */
    vxd_data_dir_close(&fixture.dir);
    CHECK_INT(ops->unlink(ops->user, MARK), 0);
    file = ops->open(ops->user, DIR "/snapshots/00000001.0000000000000001.vxs", 0102, 0);
    CHECK(file >= 0 && ops->close(ops->user, file) == 0);
    CHECK_INT(start(&fixture), VXD_DATA_LOSS); /* beside a snapshot */
    CHECK(!fault_disk_exists(fixture.disk, DIR "/voxeld.db"));
    vxd_data_dir_close(&fixture.dir);
    CHECK_INT(ops->unlink(ops->user, DIR "/snapshots/00000001.0000000000000001.vxs"), 0);
    CHECK_INT(start(&fixture), VXD_OK);
    CHECK(fixture.found.is_new);
    end(&fixture);
}

/* A crash of the first start on a directory that older programs made, behind the mark's making. */
static void test_mark_that_the_database_does_not_know_of_is_noted(void)
{
    struct fixture fixture;
    const struct vxd_file_ops *ops;
    sqlite3 *db = NULL;

    make(&fixture, VXD_FSYNC_ALWAYS);
    ops = fault_disk_ops(fixture.disk);
    CHECK_INT(
        sqlite3_open_v2(DIR "/voxeld.db", &db, SQLITE_OPEN_READWRITE, ops->sqlite_vfs),
        SQLITE_OK);
    CHECK_INT(sqlite3_exec(db,
                           "PRAGMA locking_mode = EXCLUSIVE;"
                           "DELETE FROM meta WHERE key = 'marked'",
                           NULL, NULL, NULL),
              SQLITE_OK);
    CHECK_INT(sqlite3_close(db), SQLITE_OK);
    CHECK_INT(start(&fixture), VXD_OK);
    CHECK_INT(fixture.found.n_lost, 0);
    put_record(&fixture, 1, N_RECORDS + 1);
    kill(&fixture);
    CHECK_INT(ops->unlink(ops->user, MARK), 0);
    CHECK_INT(start(&fixture), VXD_DATA_LOSS);
    end(&fixture);
}

static void count_problem(void *user, const struct vxd_problem *problem)
{
    *(size_t *)user +=
        problem->weight == VXD_PROBLEM_LOSS && strcmp(problem->where, "voxeld.mark") == 0;
}

/* Of the mark; the family's records are of no kind that anybody reads. */
static size_t n_losses_of(struct fixture *fixture)
{
    struct vxd_verify_result result = {0};
    size_t n = 0;

    CHECK_INT(vxd_verify_data_dir(fault_disk_ops(fixture->disk), DIR, count_problem, &n,
                                  &result, NULL),
              VXD_OK);
    return n;
}

/* What was written and not synced outlives a kill, so it is missed; after a loss of power it is
 * not, as a start says too. */
static void test_verify_misses_what_was_written_while_the_power_stayed(void)
{
    for (int is_lost = 0; is_lost < 2; is_lost++) {
        struct fixture fixture;

        make(&fixture, VXD_FSYNC_OFF);
        CHECK_INT(n_losses_of(&fixture), 0);
        if (is_lost != 0) {
            fault_disk_lose_power(fixture.disk, FAULT_DROP_ALL, 1);
        } else {
            size_t
                n_bytes; /* it ends where the last records begin, long after the last sync */

            fault_disk_bytes(fixture.disk, WAL, &n_bytes)[WAL_HEAD + 40 * FRAME] ^= 1;
        }
        CHECK_INT(n_losses_of(&fixture), is_lost != 0 ? 0 : 1);
        CHECK_INT(start(&fixture), VXD_OK);
        CHECK((fixture.found.n_lost > 0) == (is_lost == 0));
        end(&fixture);
    }
}

/* What a process left in the WAL without a sync when it was killed is synced by the next one. */
/* Waits for a sync of EVERYSEC beyond those there were. */
static struct vxd_journal_stats await_sync(struct fixture *fixture, uint64_t n_before)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    struct vxd_journal_stats stats = {0};

    for (int i = 0; i < 10000 && stats.n_syncs <= n_before; i++) {
        (void)nanosleep(&pause, NULL);
        vxd_journal_get_stats(fixture->journal, &stats);
    }
    CHECK(stats.n_syncs > n_before);
    return stats;
}

static void test_mark_follows_everysec(void)
{
    struct fixture fixture;
    struct vxd_journal_stats before;
    const struct vxd_journal_options options = {.sync_ms = 1};

    make(&fixture, VXD_FSYNC_EVERYSEC);
    CHECK_INT(vxd_data_dir_open(fault_disk_ops(fixture.disk), DIR, &fixture.dir, NULL),
              VXD_OK);
    REQUIRE(vxd_journal_open(&fixture.dir, &options, &fixture.journal, &fixture.found,
                             NULL) == VXD_OK);
    before = await_sync(&fixture, 0);
    put_record(&fixture, 1, N_RECORDS + 1);
    CHECK(await_sync(&fixture, before.n_syncs).n_marked > before.n_marked);
    end(&fixture);
}

static void test_killed_process_leaves_everysec_to_the_next(void)
{
    struct fixture fixture;
    const struct vxd_journal_options options = {.sync_ms = 1};

    make(&fixture, VXD_FSYNC_EVERYSEC);
    CHECK_INT(vxd_data_dir_open(fault_disk_ops(fixture.disk), DIR, &fixture.dir, NULL),
              VXD_OK);
    REQUIRE(vxd_journal_open(&fixture.dir, &options, &fixture.journal, &fixture.found,
                             NULL) == VXD_OK);
    CHECK(fixture.found.same_boot);
    (void)await_sync(&fixture, 0);
    kill(&fixture);
    fault_disk_lose_power(fixture.disk, FAULT_DROP_ALL, 1);
    CHECK_INT(start(&fixture), VXD_OK);
    CHECK_INT(last_record(&fixture), N_RECORDS);
    end(&fixture);
}

/* What versions age by. */
static void test_running_time_stands_still_while_nobody_runs(void)
{
    const struct timespec pause = {.tv_nsec = 300000000};
    struct fixture fixture;
    uint64_t before;
    uint64_t after;

    make(&fixture, VXD_FSYNC_ALWAYS);
    CHECK_INT(start(&fixture), VXD_OK);
    (void)nanosleep(&pause, NULL);
    put_record(&fixture, 1, N_RECORDS + 1);
    before = vxd_journal_get_run_ns(fixture.journal);
    CHECK(before >= 300000000);
    kill(&fixture);
    (void)nanosleep(&pause, NULL);
    CHECK_INT(start(&fixture), VXD_OK);
    after = vxd_journal_get_run_ns(fixture.journal);
    CHECK(after >= 300000000 && after < before + 300000000);
    end(&fixture);
}

int main(int argc, char **argv)
{
    static const struct vxd_test tests[] = {
        VXD_TEST(test_any_flipped_bit_of_the_wal_is_no_silent_loss),
        VXD_TEST(test_missing_wal_is_a_loss_after_a_loss_of_power_too),
        VXD_TEST(test_power_takes_unsynced_changes_without_an_alarm),
        VXD_TEST(test_loss_is_reported_until_a_start_has_dealt_with_it),
        VXD_TEST(test_journal_above_its_mark_is_whole),
        VXD_TEST(test_one_sector_of_the_mark_is_enough),
        VXD_TEST(test_mark_that_is_gone_is_refused_and_mended),
        VXD_TEST(test_mark_that_the_database_does_not_know_of_is_noted),
        VXD_TEST(test_verify_misses_what_was_written_while_the_power_stayed),
        VXD_TEST(test_mark_follows_everysec),
        VXD_TEST(test_killed_process_leaves_everysec_to_the_next),
        VXD_TEST(test_running_time_stands_still_while_nobody_runs),
        VXD_TEST(test_missing_database_is_refused_unless_the_directory_is_new),
    };

    vxd_log_set_level((enum vxd_log_level)(VXD_LOG_ERROR + 1)); /* of many bad ends */
    return vxd_test_run_all(tests, sizeof tests / sizeof tests[0],
                            argc > 1 ? argv[1] : NULL);
}
