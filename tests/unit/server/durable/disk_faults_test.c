// SPDX-License-Identifier: Apache-2.0
/* Calls that fail, full disks, and what the journal promises of its order. */
#include "tests/support/test.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "server/durable/recovery/recovery.h"
#include "server/observe/log/log.h"
#include "tests/support/durable/fault_vfs.h"
#include "tests/support/durable/durable_workload.h"

/* The workload with one call that fails, each in turn: failed steps are done again, and in the end
 * all is there, after a loss of power too. */
static void fail_each_call(enum fault_kind kind, int stride)
{
    struct fault_disk *disk = fault_disk_create();
    struct work work = {.retries = true};
    int n_calls, n_failures = 0;

    REQUIRE(disk != NULL);
    CHECK(work_run(&work, fault_disk_ops(disk)));
    n_calls = fault_disk_n_calls(disk);
    (void)vxd_journal_close(work.journal, NULL);
    vxd_data_dir_close(&work.dir);
    fault_disk_destroy(disk);
    CHECK(n_calls > 500);
    for (int i = 0; i < n_calls; i += stride * vxd_test_slow()) {
        struct fault_plan plan = fault_none;
        const char *fault;

        plan.fail_at_call = i;
        plan.fail_kind = kind;
        work = (struct work){.retries = true};
        disk = fault_disk_create();
        REQUIRE(disk != NULL);
        fault_disk_plan(disk, &plan);
        CHECK(work_run(&work, fault_disk_ops(disk)));
        n_failures += work.n_failures > 0;
        fault_disk_cut(disk);
        (void)vxd_journal_close(work.journal, NULL);
        vxd_data_dir_close(&work.dir);
        fault_disk_plan(disk, &fault_none);
        fault_disk_lose_power(disk, FAULT_DROP_ALL, 1);
        fault = work_check(&work);
        if (fault != NULL) {
            (void)fprintf(stderr, "call %d of kind %d: %s\n", i, (int)kind, fault);
        }
        CHECK(fault == NULL);
        fault_disk_destroy(disk);
    }
    CHECK(kind == FAULT_SHORT || n_failures > 10 / vxd_test_slow());
}

static void test_any_call_with_eio_is_reported_and_survived(void)
{
    fail_each_call(FAULT_EIO, 1);
}

static void test_any_call_on_a_full_disk_is_reported_and_survived(void)
{
    fail_each_call(FAULT_ENOSPC, 3);
}

static void test_any_short_write_is_gone_on_with(void)
{
    fail_each_call(FAULT_SHORT, 3);
}

/* One family on a disk of its own --------------------------------------------------------- */

struct fixture {
    struct fault_disk *disk;
    struct vxd_data_dir dir;
    struct vxd_journal *journal;
    struct vxd_journal_found found;
};

static bool open_fixture(struct fixture *fixture,
                         const struct vxd_journal_options *options)
{
    fixture->disk = fixture->disk != NULL ? fixture->disk : fault_disk_create();
    fixture->dir.lock = -1;
    return fixture->disk != NULL &&
           vxd_data_dir_open(fault_disk_ops(fixture->disk), "/d", &fixture->dir, NULL) ==
               VXD_OK &&
           vxd_journal_open(&fixture->dir, options, &fixture->journal, &fixture->found,
                            NULL) == VXD_OK;
}

static void close_fixture(struct fixture *fixture)
{
    CHECK(vxd_journal_close(fixture->journal, NULL) == VXD_OK);
    vxd_data_dir_close(&fixture->dir);
    fixture->journal = NULL;
}

static enum vxd_status put_family(struct fixture *fixture, uint32_t id, const char *name,
                                  enum vxd_fsync fsync, uint64_t max_bytes)
{
    struct vxd_journal_family family = {
        .id = id, .fsync = fsync, .max_bytes = max_bytes, .epoch = 1};
    struct vxd_journal_txn *txn;
    enum vxd_status status;

    (void)snprintf(family.name, sizeof family.name, "%s", name);
    VXD_TRY(vxd_journal_begin(fixture->journal, &txn, NULL));
    VXD_TRY(vxd_journal_put_family(txn, &family, NULL));
    VXD_TRY(vxd_journal_commit_wait(txn, NULL));
out:
    return status;
}

static struct vxd_journal_txn *record_txn(struct fixture *fixture, uint32_t family,
                                          uint64_t sequence, size_t n_bytes)
{
    static const uint8_t bytes[1 << 16];
    const struct vxd_journal_record record = {.family = family,
                                              .sequence = sequence,
                                              .rules_version = 1,
                                              .kind = 1,
                                              .bytes = bytes,
                                              .n_bytes = n_bytes};
    struct vxd_journal_txn *txn = NULL;

    CHECK(vxd_journal_begin(fixture->journal, &txn, NULL) == VXD_OK);
    CHECK(vxd_journal_add_record(txn, &record, NULL) == VXD_OK);
    return txn;
}

static enum vxd_status put_record(struct fixture *fixture, uint32_t family,
                                  uint64_t sequence, size_t n_bytes)
{
    return vxd_journal_commit_wait(record_txn(fixture, family, sequence, n_bytes), NULL);
}

/* What completions said, in their order. */
struct outcomes {
    pthread_mutex_t lock;
    int n;
    enum vxd_status statuses[64];
};

static void note(void *user, enum vxd_status status, const struct vxd_err *err)
{
    struct outcomes *outcomes = user;

    CHECK((status == VXD_OK) == (err == NULL));
    (void)pthread_mutex_lock(&outcomes->lock);
    outcomes->statuses[outcomes->n++] = status;
    (void)pthread_mutex_unlock(&outcomes->lock);
}

static void test_what_builds_on_a_failure_fails(void)
{
    const struct vxd_journal_options options = {.probe_ms = 1};
    struct fixture fixture = {0};
    struct outcomes outcomes = {.lock = PTHREAD_MUTEX_INITIALIZER};
    struct vxd_journal_state state;
    struct vxd_journal_txn *txn = NULL;

    REQUIRE(open_fixture(&fixture, &options));
    CHECK(put_family(&fixture, 1, "a", VXD_FSYNC_ALWAYS, 0) == VXD_OK);
    CHECK(put_family(&fixture, 2, "a", VXD_FSYNC_ALWAYS, 0) == VXD_ALREADY_EXISTS);
    CHECK(put_record(&fixture, 1, 1, 10) == VXD_OK);
    CHECK(put_record(&fixture, 2, 1, 10) == VXD_NOT_FOUND);
    for (uint64_t n = 3; n < 6; n++) { /* 2 never came */
        CHECK(vxd_journal_commit(record_txn(&fixture, 1, n, 10), note, &outcomes, NULL) ==
              VXD_OK);
    }
    CHECK(vxd_journal_commit(record_txn(&fixture, 1, 2, 10), note, &outcomes, NULL) ==
          VXD_OK);
    CHECK(vxd_journal_begin(fixture.journal, &txn, NULL) == VXD_OK);
    CHECK(vxd_journal_need(txn, 1, 3, NULL) == VXD_OK);
    CHECK(vxd_journal_commit(txn, note, &outcomes, NULL) == VXD_OK);
    CHECK(vxd_journal_flush(fixture.journal, NULL) == VXD_OK);
    REQUIRE(outcomes.n == 5);
    for (int i = 0; i < 5; i++) {
        CHECK_INT(outcomes.statuses[i], i == 3 ? VXD_OK : VXD_ABORTED);
    }
    CHECK(vxd_journal_get_state(fixture.journal, 1, &state, NULL) == VXD_OK);
    CHECK_INT(state.last_sequence, 2);
    CHECK_INT(state.journal_bytes, 20);
    close_fixture(&fixture);
    fault_disk_destroy(fixture.disk);
}

static void test_full_disk_refuses_until_there_is_room(void)
{
    const struct vxd_journal_options options = {.probe_ms = 1};
    const struct timespec pause = {.tv_nsec = 1000000};
    struct fault_plan plan = fault_none;
    struct fixture fixture = {0};
    struct vxd_journal_stats stats;
    enum vxd_status status = VXD_OK;
    uint64_t n = 1;

    REQUIRE(open_fixture(&fixture, &options));
    CHECK(put_family(&fixture, 1, "a", VXD_FSYNC_ALWAYS, 0) == VXD_OK);
    plan.capacity_bytes = 1 << 20;
    fault_disk_plan(fixture.disk, &plan);
    for (; status == VXD_OK && n < 1000; n++) {
        status = put_record(&fixture, 1, n, 50000);
    }
    n--; /* the one that failed */
    CHECK_INT(status, VXD_RESOURCE_EXHAUSTED);
    fault_disk_plan(fixture.disk, &fault_none);
    for (int i = 0; i < 5000; i++) {
        vxd_journal_get_stats(fixture.journal, &stats);
        if (stats.is_available) {
            break;
        }
        CHECK(stats.reason[0] != '\0');
        (void)nanosleep(&pause, NULL);
    }
    CHECK(stats.is_available);
    CHECK(put_record(&fixture, 1, n + 1, 10) == VXD_ABORTED);
    CHECK(put_record(&fixture, 1, n, 50000) == VXD_OK);
    close_fixture(&fixture);
    fault_disk_destroy(fixture.disk);
}

/* Without a sync nothing is lost by a kill, and the start knows; what power takes, it says. */
static void test_policies_lose_what_they_say(void)
{
    const struct vxd_journal_options options = {.sync_ms = 1000000};
    struct fixture fixture = {0};
    struct vxd_journal_state state;
    int before;

    REQUIRE(open_fixture(&fixture, &options));
    CHECK(fixture.found.is_new && fixture.found.was_clean);
    CHECK(put_family(&fixture, 1, "off", VXD_FSYNC_OFF, 0) == VXD_OK);
    CHECK(put_family(&fixture, 2, "always", VXD_FSYNC_ALWAYS, 0) == VXD_OK);
    CHECK(put_record(&fixture, 1, 1, 10) == VXD_OK);
    before = fault_disk_n_syncs(fixture.disk);
    CHECK(put_record(&fixture, 1, 2, 10) == VXD_OK);
    CHECK_INT(fault_disk_n_syncs(fixture.disk), before);
    CHECK(put_record(&fixture, 2, 1, 10) == VXD_OK);
    CHECK_INT(fault_disk_n_syncs(fixture.disk),
              before + 2); /* the WAL's and the mark's */
    CHECK(put_record(&fixture, 1, 3, 10) == VXD_OK);
    fault_disk_cut(fixture.disk);
    CHECK(vxd_journal_close(fixture.journal, NULL) != VXD_OK);
    vxd_data_dir_close(&fixture.dir);
    fault_disk_kill(fixture.disk);
    REQUIRE(open_fixture(&fixture, &options));
    CHECK(!fixture.found.was_clean && fixture.found.same_boot);
    CHECK(vxd_journal_get_state(fixture.journal, 1, &state, NULL) == VXD_OK);
    CHECK(state.last_sequence == 3 && !state.may_have_lost);
    CHECK(put_record(&fixture, 1, 4, 10) == VXD_OK);
    fault_disk_cut(fixture.disk);
    CHECK(vxd_journal_close(fixture.journal, NULL) != VXD_OK);
    vxd_data_dir_close(&fixture.dir);
    fault_disk_lose_power(fixture.disk, FAULT_DROP_ALL, 1);
    REQUIRE(open_fixture(&fixture, &options));
    CHECK(!fixture.found.same_boot);
    CHECK(vxd_journal_get_state(fixture.journal, 1, &state, NULL) == VXD_OK);
    CHECK(state.last_sequence >= 2 && state.may_have_lost);
    CHECK(vxd_journal_get_state(fixture.journal, 2, &state, NULL) == VXD_OK);
    CHECK(state.last_sequence == 1 && !state.may_have_lost);
    close_fixture(&fixture);
    fault_disk_destroy(fixture.disk);
}

static enum vxd_status note_record(void *user, const struct vxd_journal_record *record,
                                   struct vxd_err *err)
{
    (void)user;
    (void)record;
    (void)err;
    return VXD_OK;
}

/* Ends the journal at once, as a kill does, or as a start that fails. */
static void end_start(struct fixture *fixture, bool is_killed)
{
    if (is_killed) {
        fault_disk_cut(fixture->disk);
    }
    (void)vxd_journal_leave(fixture->journal, NULL);
    vxd_data_dir_close(&fixture->dir);
    if (is_killed) {
        fault_disk_kill(fixture->disk);
    }
    fixture->journal = NULL;
}

static enum vxd_status accept_family(void *user, const struct vxd_journal_family *family,
                                     struct vxd_err *err)
{
    (void)user, (void)family, (void)err;
    return VXD_OK;
}

static enum vxd_status accept_record(void *user, const struct vxd_journal_family *family,
                                     const struct vxd_journal_record *record,
                                     struct vxd_err *err)
{
    (void)user, (void)family, (void)record, (void)err;
    return VXD_OK;
}

/* What a loss of power may have taken is known to each start until one has recovered all, however
 * the starts before it ended. */
static void test_loss_of_power_is_known_until_a_start_ends(void)
{
    const struct vxd_journal_options options = {.sync_ms = 1000000};
    const struct vxd_recovery_visitor visitor = {.family = accept_family,
                                                 .own_record = accept_record};
    struct fixture fixture = {0};
    struct vxd_recovery_result result;
    struct vxd_journal_state state;

    REQUIRE(open_fixture(&fixture, &options));
    CHECK(put_family(&fixture, 1, "off", VXD_FSYNC_OFF, 0) == VXD_OK);
    CHECK(put_record(&fixture, 1, 1, 10) == VXD_OK);
    CHECK(put_record(&fixture, 1, 2, 10) == VXD_OK);
    CHECK(put_family(&fixture, 2, "always", VXD_FSYNC_ALWAYS, 0) == VXD_OK);
    CHECK(put_record(&fixture, 1, 3, 10) == VXD_OK);
    fault_disk_cut(fixture.disk);
    CHECK(vxd_journal_close(fixture.journal, NULL) != VXD_OK);
    vxd_data_dir_close(&fixture.dir);
    fault_disk_lose_power(fixture.disk, FAULT_DROP_ALL, 1);
    for (int i = 0; i < 4; i++) {
        REQUIRE(open_fixture(&fixture, &options));
        CHECK(fixture.found.same_boot == (i > 0));
        CHECK(vxd_journal_get_state(fixture.journal, 1, &state, NULL) == VXD_OK);
        CHECK(state.may_have_lost);
        CHECK(vxd_journal_get_state(fixture.journal, 2, &state, NULL) == VXD_OK);
        CHECK(!state.may_have_lost);
        end_start(&fixture, i % 2 == 0);
    }
    REQUIRE(open_fixture(&fixture, &options));
    CHECK(vxd_recover(&fixture.dir, fixture.journal, &fixture.found, &visitor, &result,
                      NULL) == VXD_OK);
    CHECK_INT(result.n_lossy, 1);
    end_start(&fixture, true);
    REQUIRE(open_fixture(&fixture, &options));
    CHECK(!fixture.found.was_clean && !fixture.found.is_power_lost);
    CHECK(vxd_journal_get_state(fixture.journal, 1, &state, NULL) == VXD_OK);
    CHECK(!state.may_have_lost);
    close_fixture(&fixture);
    fault_disk_destroy(fixture.disk);
}

static void count_due(void *user, uint32_t family)
{
    *(int *)user += (int)family;
}

static void test_snapshot_is_due_once_and_trims(void)
{
    int due = 0;
    const struct vxd_journal_options options = {.snapshot_due = count_due, .user = &due};
    struct fixture fixture = {0};
    struct vxd_journal_txn *txn;
    struct vxd_journal_state state;
    struct vxd_journal_stats stats;

    REQUIRE(open_fixture(&fixture, &options));
    CHECK(put_family(&fixture, 7, "a", VXD_FSYNC_ALWAYS, 1000) == VXD_OK);
    for (uint64_t n = 1; n <= 30; n++) {
        CHECK(put_record(&fixture, 7, n, 100) == VXD_OK);
    }
    CHECK(vxd_journal_begin(fixture.journal, &txn, NULL) == VXD_OK);
    CHECK(vxd_journal_snapshot_taken(txn, 7, 25, 20, NULL) == VXD_OK);
    CHECK(vxd_journal_commit_wait(txn, NULL) == VXD_OK);
    CHECK(vxd_journal_get_state(fixture.journal, 7, &state, NULL) == VXD_OK);
    CHECK_INT(state.journal_bytes, 500);
    CHECK(!state.snapshot_due);
    do {
        vxd_journal_get_stats(fixture.journal, &stats);
    } while (!stats.is_idle);
    CHECK_INT(due, 7);
    CHECK(vxd_journal_read_records(fixture.journal, 7, 20, 30, note_record, NULL,
                                   &state.kept_from, NULL) == VXD_OK);
    CHECK_INT(state.kept_from, 20); /* is gone */
    close_fixture(&fixture);
    REQUIRE(open_fixture(&fixture, &options));
    CHECK(fixture.found.was_clean);
    CHECK(vxd_journal_new_family(fixture.journal) > 7);
    close_fixture(&fixture);
    fault_disk_destroy(fixture.disk);
}

/* A long WAL goes into the database when nothing comes, and a very long one at once. */
static void test_wal_is_copied_in_a_pause_or_when_very_long(void)
{
    const struct vxd_journal_options options[] = {
        {.n_wal_pages = UINT32_MAX >> 1, .n_rest_pages = 4, .sync_ms = 1000000},
        {.n_wal_pages = 4, .n_rest_pages = UINT32_MAX >> 1, .sync_ms = 1000000}};

    for (int i = 0; i < 2; i++) {
        struct fixture fixture = {0};
        struct vxd_journal_stats stats;
        uint64_t n_before;

        REQUIRE(open_fixture(&fixture, &options[i]));
        vxd_journal_get_stats(fixture.journal, &stats);
        n_before = stats.n_checkpoints;
        CHECK(put_family(&fixture, 7, "a", VXD_FSYNC_EVERYSEC, 1000000) == VXD_OK);
        for (uint64_t n = 1; n <= 30; n++) {
            CHECK(put_record(&fixture, 7, n, 4000) == VXD_OK);
        }
        for (int n = 0; n < 1000 && stats.n_checkpoints == n_before; n++) {
            const struct timespec ms = {.tv_nsec = 10000000};

            (void)nanosleep(&ms, NULL);
            vxd_journal_get_stats(fixture.journal, &stats);
        }
        CHECK(stats.n_checkpoints > n_before);
        CHECK(stats.is_available);
        close_fixture(&fixture);
        fault_disk_destroy(fixture.disk);
    }
}

static void test_second_owner_is_refused(void)
{
    struct fault_disk *disk = fault_disk_create();
    struct vxd_data_dir first = {.lock = -1};
    struct vxd_data_dir second = {.lock = -1};
    struct vxd_err err = {0};

    REQUIRE(disk != NULL);
    CHECK(vxd_data_dir_open(fault_disk_ops(disk), "/d/", &first, NULL) == VXD_OK);
    CHECK_STR(first.path, "/d");
    CHECK(vxd_data_dir_open(fault_disk_ops(disk), "/d", &second, &err) ==
          VXD_FAILED_PRECONDITION);
    CHECK(strstr(err.message, "process ") != NULL);
    vxd_data_dir_close(&first);
    CHECK(vxd_data_dir_open(fault_disk_ops(disk), "/d", &second, &err) == VXD_OK);
    vxd_data_dir_close(&second);
    fault_disk_destroy(disk);
}

/* --- files that were being written ---------------------------------------------------------- */

static void test_start_removes_files_that_were_being_written(void)
{
    static const struct {
        const char *name;
        bool stays;
    } files[] = {{"/d/snapshots/1-2.new", false},
                 {"/d/snapshots/a.new", false},
                 {"/d/snapshots/1-2", true},
                 {"/d/snapshots/1-2.news", true},
                 {"/d/snapshots/1-2new", true},
                 {"/d/snapshots/.new", true},
                 {"/d/1-2.new", true}};
    struct fault_disk *disk = fault_disk_create();
    const struct vxd_file_ops *ops;
    struct vxd_data_dir dir = {.lock = -1};

    REQUIRE(disk != NULL);
    ops = fault_disk_ops(disk);
    REQUIRE(vxd_data_dir_open(ops, "/d", &dir, NULL) == VXD_OK);
    vxd_data_dir_close(&dir);
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        int file = ops->open(ops->user, files[i].name, O_CREAT | O_WRONLY, 0600);

        REQUIRE(file >= 0);
        CHECK_INT(ops->close(ops->user, file), 0);
    }
    REQUIRE(vxd_data_dir_open(ops, "/d", &dir, NULL) == VXD_OK);
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        CHECK_INT(fault_disk_exists(disk, files[i].name), files[i].stays);
    }
    vxd_data_dir_close(&dir);
    fault_disk_destroy(disk);
}

/* --- records that are read ahead ------------------------------------------------------------ */

enum {
    N_AHEAD = 24,
    N_LEAVES = 1 << 20, /* 16 MB in memory, little on the disk */
    MAX_PREFETCHED_BYTES = 160 << 20
};

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define IS_MEMORY_MEASURED false /* shadows, and what is freed, are in memory as well */
#else
#define IS_MEMORY_MEASURED true
#endif

/* Of this process, in memory. */
static size_t resident_bytes(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    unsigned long long pages[2] = {0};

    if (file != NULL) {
        CHECK(fscanf(file, "%llu %llu", &pages[0], &pages[1]) == 2);
        (void)fclose(file);
    }
    return (size_t)pages[1] * (size_t)sysconf(_SC_PAGESIZE);
}

/* The first ones take long: meanwhile the others are read. */
static enum vxd_status look_at_memory(void *user, uint64_t sequence,
                                      const struct vxd_record_decoded *records, size_t n,
                                      size_t *n_taken, struct vxd_err *err)
{
    const struct timespec second = {.tv_sec = 1};
    const size_t *before = user;

    (void)err;
    *n_taken = n;
    for (size_t i = 0; i < n; i++) {
        CHECK_INT(records[i].record.ops[0].shape.voxels.n, N_LEAVES);
    }
    if (sequence == 1) {
        (void)nanosleep(&second, NULL);
        CHECK(!IS_MEMORY_MEASURED || resident_bytes() < *before + MAX_PREFETCHED_BYTES);
    }
    return VXD_OK;
}

static void test_records_that_pack_well_are_not_all_read_ahead(void)
{
    uint64_t *codes = calloc(N_LEAVES, sizeof *codes);
    uint64_t *masks = calloc(N_LEAVES, sizeof *masks);
    struct vxd_svdag_op op = {.shape = {.kind = VXD_SVDAG_VOXELS},
                              .action = VXD_SVDAG_FILL};
    struct vxd_record packed = {
        .kind = VXD_RECORD_EDIT, .head = "a", .version = {1, 2}, .ops = &op, .n_ops = 1};
    struct vxd_record_bytes bytes = {0};
    const struct vxd_journal_options options = {0};
    struct fixture fixture = {0};
    uint64_t next = 0;
    size_t before;

    REQUIRE(codes != NULL && masks != NULL);
    for (size_t i = 0; i < N_LEAVES; i++) {
        codes[i] = i;
        masks[i] = UINT64_MAX;
    }
    op.shape.voxels =
        (struct vxd_svdag_voxels){.codes = codes, .masks = masks, .n = N_LEAVES};
    CHECK(vxd_record_encode(&packed, &bytes, NULL) == VXD_OK);
    free(codes);
    free(masks);
    REQUIRE(open_fixture(&fixture, &options));
    REQUIRE(put_family(&fixture, 1, "a", VXD_FSYNC_OFF, 0) == VXD_OK);
    for (uint64_t i = 1; i <= N_AHEAD; i++) {
        const struct vxd_journal_record record = {.family = 1,
                                                  .sequence = i,
                                                  .rules_version = VXD_RULES_VERSION,
                                                  .kind = VXD_RECORD_EDIT,
                                                  .bytes = bytes.bytes,
                                                  .n_bytes = bytes.n_bytes};
        struct vxd_journal_txn *txn = NULL;

        CHECK(vxd_journal_begin(fixture.journal, &txn, NULL) == VXD_OK);
        CHECK(vxd_journal_add_record(txn, &record, NULL) == VXD_OK);
        CHECK(vxd_journal_commit_wait(txn, NULL) == VXD_OK);
    }
    vxd_record_bytes_free(&bytes);
    before = resident_bytes();
    CHECK(vxd_prefetch_records(fixture.journal, 1, 1, VXD_RECORDS_AT_ONCE, NULL,
                               look_at_memory, &before, &next, NULL) == VXD_OK);
    CHECK_INT(next, N_AHEAD + 1);
    close_fixture(&fixture);
    fault_disk_destroy(fixture.disk);
}

int main(int argc, char **argv)
{
    static const struct vxd_test tests[] = {
        VXD_TEST(test_any_call_with_eio_is_reported_and_survived),
        VXD_TEST(test_any_call_on_a_full_disk_is_reported_and_survived),
        VXD_TEST(test_any_short_write_is_gone_on_with),
        VXD_TEST(test_what_builds_on_a_failure_fails),
        VXD_TEST(test_full_disk_refuses_until_there_is_room),
        VXD_TEST(test_policies_lose_what_they_say),
        VXD_TEST(test_loss_of_power_is_known_until_a_start_ends),
        VXD_TEST(test_snapshot_is_due_once_and_trims),
        VXD_TEST(test_wal_is_copied_in_a_pause_or_when_very_long),
        VXD_TEST(test_second_owner_is_refused),
        VXD_TEST(test_start_removes_files_that_were_being_written),
        VXD_TEST(test_records_that_pack_well_are_not_all_read_ahead),
    };

    vxd_log_set_level((enum vxd_log_level)(VXD_LOG_ERROR + 1));
    return vxd_test_run_all(tests, sizeof tests / sizeof tests[0],
                            argc > 1 ? argv[1] : NULL);
}
