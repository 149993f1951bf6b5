// SPDX-License-Identifier: Apache-2.0
/* The archive under a disk that fails and loses power: whatever happens, what it has is what the
 * journal has, each change once and in order, and a backup with it becomes the same journal. */
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

#include "server/durable/archive/archive.h"
#include "server/durable/maintenance/maintenance.h"
#include "server/durable/record/record.h"
#include "server/observe/log/log.h"
#include "tests/support/durable/fault_vfs.h"

#define DIR "/d"
#define ARCHIVE "/archive"
#define COPY "/copy"
#define RESTORED "/restored"

enum {
    N_RECORDS = 12,
    SEGMENT_BYTES = 800 /* so that there are several */
};

struct fixture {
    struct fault_disk *disk;
    struct vxd_data_dir dir;
    struct vxd_journal *journal;
    struct vxd_archive *archive;
    struct vxd_journal_found found;
    enum vxd_fsync fsync;
};

static enum vxd_status start(struct fixture *fixture)
{
    const struct vxd_journal_options options = {
        .sync_ms = 2, .probe_ms = 1, .archives = true, .max_archive_bytes = 1 << 20};
    const struct vxd_archive_options archive = {
        .folder = ARCHIVE, .n_bytes = SEGMENT_BYTES, .tick_ms = 1, .retry_ms = 1};
    const struct vxd_file_ops *ops = fault_disk_ops(fixture->disk);
    enum vxd_status status;

    fixture->dir.lock = -1;
    VXD_TRY(vxd_data_dir_open(ops, DIR, &fixture->dir, NULL));
    VXD_TRY(vxd_journal_open(&fixture->dir, &options, &fixture->journal, &fixture->found,
                             NULL));
    VXD_TRY(vxd_archive_start(ops, fixture->journal, &archive, &fixture->archive, NULL));
out:
    return status;
}

static void stop(struct fixture *fixture)
{
    vxd_archive_stop(fixture->archive);
    if (fixture->journal != NULL) {
        (void)vxd_journal_close(fixture->journal, NULL);
    }
    vxd_data_dir_close(&fixture->dir);
    fixture->archive = NULL;
    fixture->journal = NULL;
}

static uint64_t last_record(struct vxd_journal *journal)
{
    struct vxd_journal_state state = {0};

    return vxd_journal_get_state(journal, 1, &state, NULL) == VXD_OK ? state.last_sequence
                                                                     : 0;
}

static enum vxd_status put_family(struct fixture *fixture)
{
    const struct vxd_journal_family family = {
        .id = 1, .fsync = fixture->fsync, .epoch = 1, .name = "family"};
    struct vxd_journal_txn *txn;
    enum vxd_status status;

    VXD_TRY(vxd_journal_begin(fixture->journal, &txn, NULL));
    CHECK_INT(vxd_journal_put_family(txn, &family, NULL), VXD_OK);
    status = vxd_journal_commit_wait(txn, NULL);
out:
    return status;
}

/* The next record; its bytes say which it is. */
static enum vxd_status put_record(struct fixture *fixture)
{
    uint64_t words[16];
    struct vxd_journal_record record = {.family = 1,
                                        .sequence = last_record(fixture->journal) + 1,
                                        .rules_version = 1,
                                        .kind = 1,
                                        .bytes = words,
                                        .n_bytes = sizeof words};
    struct vxd_journal_txn *txn;
    enum vxd_status status;

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        words[i] = record.sequence * 1000 + i;
    }
    VXD_TRY(vxd_journal_begin(fixture->journal, &txn, NULL));
    CHECK_INT(vxd_journal_add_record(txn, &record, NULL), VXD_OK);
    status = vxd_journal_commit_wait(txn, NULL);
out:
    return status;
}

/* A run that writes and, in the midst of it, makes a backup; then the disk is as it is. */
static void work(struct fixture *fixture)
{
    struct vxd_backup_info info;

    if (start(fixture) != VXD_OK) {
        return;
    }
    if (last_record(fixture->journal) == 0) {
        (void)put_family(fixture);
    }
    for (int i = 0; i < N_RECORDS; i++) {
        (void)put_record(fixture);
        if (i == N_RECORDS / 3) {
            (void)vxd_backup(&fixture->dir, fixture->journal, COPY, &info, NULL);
        }
    }
}

/* What the archive has ------------------------------------------------------------------------ */

struct reading {
    struct fixture *fixture;
    char names[64][VXD_SEGMENT_NAME_BYTES];
    size_t n_names;
    uint64_t line;
    uint64_t next;   /* number */
    uint64_t record; /* the last one's sequence */
    bool is_wrong;
};

static void list_name(void *arg, const char *name)
{
    struct reading *reading = arg;
    uint64_t line;
    uint64_t first;

    if (vxd_segment_parse_name(name, &line, &first) && reading->n_names < 64) {
        (void)snprintf(reading->names[reading->n_names++], VXD_SEGMENT_NAME_BYTES, "%s",
                       name);
    }
}

static int compare(const void *a, const void *b)
{
    return strcmp(a, b);
}

static enum vxd_status check_record(void *user, const struct vxd_journal_record *record,
                                    struct vxd_err *err)
{
    struct reading *reading = user;
    uint64_t word;

    (void)err;
    memcpy(&word, record->bytes, sizeof word);
    reading->is_wrong = reading->is_wrong || record->sequence != reading->record + 1 ||
                        word != record->sequence * 1000;
    reading->record = record->sequence;
    return VXD_OK;
}

static enum vxd_status check_row(void *user, uint64_t number, const void *bytes,
                                 size_t n_bytes, struct vxd_err *err)
{
    struct reading *reading = user;

    if (number < reading->next) {
        return VXD_OK; /* a file that was written twice has some of it twice */
    }
    reading->is_wrong = reading->is_wrong || number != reading->next;
    reading->next = number + 1;
    return vxd_journal_archived_records(bytes, n_bytes, check_record, reading, err);
}

/* Whether the archive is one line without a hole that ends with the journal's last record. */
static bool is_whole(struct fixture *fixture, uint64_t last)
{
    const struct vxd_file_ops *ops = fault_disk_ops(fixture->disk);
    struct reading reading = {.fixture = fixture, .next = 1};

    (void)ops->list(ops->user, ARCHIVE, list_name, &reading);
    qsort(reading.names, reading.n_names, VXD_SEGMENT_NAME_BYTES, compare);
    for (size_t i = 0; i < reading.n_names; i++) {
        struct vxd_segment_head head;

        if (vxd_segment_read(ops, ARCHIVE, reading.names[i], &head, check_row, &reading,
                             NULL) != VXD_OK ||
            (i > 0 && head.line != reading.line)) {
            return false;
        }
        reading.line = head.line;
    }
    return !reading.is_wrong && reading.record == last;
}

/* Restores the backup, if it came to be, with all of the archive. */
static bool is_restored(struct fixture *fixture, uint64_t last)
{
    const struct vxd_file_ops *ops = fault_disk_ops(fixture->disk);
    const struct vxd_restore_target target = {.until = VXD_RESTORE_END};
    const struct vxd_journal_options options = {0};
    struct vxd_restore_result result;
    struct vxd_journal_found found;
    struct vxd_data_dir dir = {.lock = -1};
    struct vxd_journal *journal = NULL;
    struct vxd_err err = {0};
    bool is_good;

    if (!fault_disk_exists(fixture->disk, COPY "/voxeld.db")) {
        return true;
    }
    if (vxd_restore(ops, COPY, ARCHIVE, RESTORED, &target, &result, &err) != VXD_OK) {
        (void)fprintf(stderr, "%s\n", err.message);
        return false;
    }
    is_good = vxd_data_dir_open(ops, RESTORED, &dir, NULL) == VXD_OK &&
              vxd_journal_open(&dir, &options, &journal, &found, NULL) == VXD_OK &&
              found.is_restored && last_record(journal) == last;
    (void)vxd_journal_close(journal, NULL);
    vxd_data_dir_close(&dir);
    return is_good;
}

/* Goes on after what the first run left, and holds what the archive has against the journal. */
static void check_goes_on(struct fixture *fixture)
{
    uint64_t last;

    fault_disk_plan(fixture->disk, &fault_none);
    REQUIRE(start(fixture) == VXD_OK);
    if (last_record(fixture->journal) == 0) {
        CHECK_INT(put_family(fixture), VXD_OK);
    }
    CHECK_INT(put_record(fixture), VXD_OK);
    last = last_record(fixture->journal);
    stop(fixture);
    CHECK(is_whole(fixture, last));
    CHECK(is_restored(fixture, last));
    fault_disk_destroy(fixture->disk);
}

static void count_work(enum vxd_fsync fsync, int *n_syncs, int *n_calls)
{
    struct fixture fixture = {.disk = fault_disk_create(), .fsync = fsync};

    *n_syncs = 0;
    *n_calls = 0;
    REQUIRE(fixture.disk != NULL);
    work(&fixture);
    stop(&fixture);
    *n_syncs = fault_disk_n_syncs(fixture.disk);
    *n_calls = fault_disk_n_calls(fixture.disk);
    fault_disk_destroy(fixture.disk);
}

static void test_power_lost_at_every_sync_leaves_no_hole(void)
{
    static const enum vxd_fsync policies[] = {VXD_FSYNC_ALWAYS, VXD_FSYNC_EVERYSEC};
    int n_syncs;
    int n_calls;

    for (size_t p = 0; p < 2; p++) {
        count_work(policies[p], &n_syncs, &n_calls);
        for (int at = 0; at < n_syncs; at++) {
            struct fault_plan plan = fault_none;
            struct fixture fixture = {.disk = fault_disk_create(), .fsync = policies[p]};

            REQUIRE(fixture.disk != NULL);
            plan.crash_at_sync = at;
            fault_disk_plan(fixture.disk, &plan);
            work(&fixture);
            fault_disk_cut(fixture.disk);
            stop(&fixture);
            fault_disk_lose_power(fixture.disk, (enum fault_loss)(at % FAULT_N_LOSSES),
                                  (uint64_t)at + 1);
            check_goes_on(&fixture);
        }
    }
}

static void test_call_that_fails_leaves_no_hole(void)
{
    int n_syncs;
    int n_calls;

    count_work(VXD_FSYNC_ALWAYS, &n_syncs, &n_calls);
    for (int at = 0; at < n_calls; at += 3) {
        struct fault_plan plan = fault_none;
        struct fixture fixture = {.disk = fault_disk_create()};

        REQUIRE(fixture.disk != NULL);
        plan.fail_at_call = at;
        plan.fail_kind = (enum fault_kind)(at % 2);
        fault_disk_plan(fixture.disk, &plan);
        work(&fixture);
        stop(&fixture);
        fault_disk_kill(fixture.disk);
        check_goes_on(&fixture);
    }
}

static void test_bytes_that_are_no_row_are_refused(void)
{
    struct fixture fixture = {.disk = fault_disk_create()};
    struct vxd_journal_txn *txn = NULL;
    uint8_t bytes[32 + 160];
    uint32_t state = 1;

    REQUIRE(fixture.disk != NULL);
    REQUIRE(start(&fixture) == VXD_OK);
    for (int i = 0; i < 5000; i++) {
        size_t n = (size_t)(i % (int)(sizeof bytes + 1));

        for (size_t k = 0; k < n; k++) {
            state = state * 1664525 + 1013904223;
            bytes[k] = (state >> 24) % 4 == 0 ? (uint8_t)(state >> 16) : 0;
        }
        REQUIRE(vxd_journal_begin(fixture.journal, &txn, NULL) == VXD_OK);
        if (n < 32) {
            CHECK_INT(vxd_journal_add_archived(txn, bytes, n, NULL), VXD_DATA_LOSS);
        } else {
            (void)vxd_journal_add_archived(txn, bytes, n, NULL);
        }
        vxd_journal_abandon(txn);
    }
    stop(&fixture);
    fault_disk_destroy(fixture.disk);
}

/* Moments ------------------------------------------------------------------------------------- */

/* The changes of two scenes and of something else, one a transaction; the first is in the backup. */
static const struct {
    const char *scene; /* NULL: bytes that are no scene's record */
    uint64_t version;
    enum vxd_record_kind kind;
    uint32_t row_kind; /* as the journal has it */
} changes[] = {{"yard", 1, VXD_RECORD_EDIT, VXD_RECORD_EDIT},
               {"shed", 7, VXD_RECORD_EDIT, VXD_RECORD_EDIT},
               {"yard", 2, VXD_RECORD_EDIT, VXD_RECORD_EDIT},
               {NULL, 9, VXD_RECORD_EDIT, VXD_RECORD_EDIT},
               {"yard", 9, VXD_RECORD_EDIT, VXD_RECORD_INTEGRATE},
               {"yard", 3, VXD_RECORD_DROP, VXD_RECORD_DROP},
               {"yard", 4, VXD_RECORD_INTEGRATE, VXD_RECORD_INTEGRATE},
               {"shed", 8, VXD_RECORD_EDIT, VXD_RECORD_EDIT}};

enum {
    N_CHANGES = sizeof changes / sizeof changes[0]
};

static void put_change(struct fixture *fixture, size_t i)
{
    struct vxd_record change = {.kind = changes[i].kind,
                                .version = {1, changes[i].version}};
    struct vxd_record_bytes bytes = {0};
    struct vxd_journal_record record = {.family = 1,
                                        .sequence = i + 1,
                                        .rules_version = VXD_LAST_WORD_RULES,
                                        .kind = changes[i].row_kind,
                                        .bytes = "a map's",
                                        .n_bytes = 7};
    struct vxd_journal_txn *txn;

    if (changes[i].scene != NULL) {
        (void)snprintf(change.head, sizeof change.head, "%s", changes[i].scene);
        REQUIRE(vxd_record_encode(&change, &bytes, NULL) == VXD_OK);
        record.bytes = bytes.bytes;
        record.n_bytes = bytes.n_bytes;
    }
    REQUIRE(vxd_journal_begin(fixture->journal, &txn, NULL) == VXD_OK);
    CHECK_INT(vxd_journal_add_record(txn, &record, NULL), VXD_OK);
    CHECK_INT(vxd_journal_commit_wait(txn, NULL), VXD_OK);
    vxd_record_bytes_free(&bytes);
}

/* Restores to a moment that is reached, and checks which change is the last; or to one that is not. */
static void check_moment(struct fixture *fixture, const struct vxd_restore_target *target,
                         enum vxd_status expected, uint64_t last,
                         struct vxd_restore_result *result)
{
    static int n_restored;
    const struct vxd_file_ops *ops = fault_disk_ops(fixture->disk);
    const struct vxd_journal_options options = {0};
    struct vxd_data_dir dir = {.lock = -1};
    struct vxd_journal *journal = NULL;
    struct vxd_journal_found found;
    char path[32];

    (void)snprintf(path, sizeof path, "/restored%d", n_restored++);
    *result = (struct vxd_restore_result){0};
    CHECK_INT(vxd_restore(ops, COPY, ARCHIVE, path, target, result, NULL), expected);
    CHECK_INT(fault_disk_exists(fixture->disk, path), expected == VXD_OK);
    if (expected == VXD_OK) {
        CHECK_INT(result->n_transactions, last - 1);
        REQUIRE(vxd_data_dir_open(ops, path, &dir, NULL) == VXD_OK);
        REQUIRE(vxd_journal_open(&dir, &options, &journal, &found, NULL) == VXD_OK);
        CHECK_INT(last_record(journal), last);
        (void)vxd_journal_close(journal, NULL);
        vxd_data_dir_close(&dir);
    }
}

static void check_versions(struct fixture *fixture, int64_t times[N_CHANGES])
{
    static const struct {
        const char *scene;
        uint64_t version;
        enum vxd_status status;
        uint64_t last;
    } moments[] = {
        {"shed", 7, VXD_OK, 2},
        {"yard", 2, VXD_OK, 3},
        {"yard", 4, VXD_OK, 7},
        {"shed", 8, VXD_OK, 8},
        {"yard", 1, VXD_FAILED_PRECONDITION, 0}, /* the backup has a later one */
        {"yard", 3, VXD_FAILED_PRECONDITION, 0}, /* a drop makes no version */
        {"shed", 6, VXD_FAILED_PRECONDITION, 0},
        {"yard", 9, VXD_NOT_FOUND, 0}, /* that row is no edit */
        {"yard", 5, VXD_NOT_FOUND, 0},
        {"gate", 1, VXD_NOT_FOUND, 0}};
    struct vxd_restore_result result;

    for (size_t i = 0; i < sizeof moments / sizeof moments[0]; i++) {
        struct vxd_restore_target target = {.until = VXD_RESTORE_VERSION,
                                            .version = moments[i].version};

        (void)snprintf(target.scene, sizeof target.scene, "%s", moments[i].scene);
        check_moment(fixture, &target, moments[i].status, moments[i].last, &result);
        if (moments[i].status == VXD_OK) {
            times[moments[i].last - 1] = result.unix_ns;
        }
    }
}

static void test_restoration_ends_at_the_moment_that_is_asked_for(void)
{
    struct fixture fixture = {.disk = fault_disk_create()};
    struct vxd_restore_target target = {.until = VXD_RESTORE_TIME};
    struct vxd_restore_result result;
    struct vxd_backup_info info;
    int64_t times[N_CHANGES] = {0};

    REQUIRE(fixture.disk != NULL && start(&fixture) == VXD_OK);
    CHECK_INT(put_family(&fixture), VXD_OK);
    for (size_t i = 0; i < N_CHANGES; i++) {
        put_change(&fixture, i);
        if (i == 0) {
            REQUIRE(vxd_backup(&fixture.dir, fixture.journal, COPY, &info, NULL) ==
                    VXD_OK);
        }
    }
    stop(&fixture);
    check_versions(&fixture, times);
    CHECK(0 < times[1] && times[1] < times[2] && times[2] < times[6] &&
          times[6] < times[7]);
    target.unix_ns = times[2];
    check_moment(&fixture, &target, VXD_OK, 3, &result);
    CHECK_INT(result.unix_ns, times[2]);
    target.unix_ns = times[2] - 1;
    check_moment(&fixture, &target, VXD_OK, 2, &result);
    target.unix_ns = times[7];
    check_moment(&fixture, &target, VXD_OK, N_CHANGES, &result);
    target.unix_ns = times[7] + 1;
    check_moment(&fixture, &target, VXD_NOT_FOUND, 0, &result);
    CHECK_INT(result.unix_ns, times[7]);
    target.unix_ns = times[1] - 1;
    check_moment(&fixture, &target, VXD_OK, 1, &result);
    target = (struct vxd_restore_target){.until = VXD_RESTORE_END};
    check_moment(&fixture, &target, VXD_OK, N_CHANGES, &result);
    fault_disk_destroy(fixture.disk);
}

static void test_moments_are_read(void)
{
    struct vxd_restore_target target;
    static const struct {
        const char *text;
        int64_t unix_ns;
    } times[] = {{"1970-01-01T00:00:00Z", 0},
                 {"1970-03-01T00:00:01.5Z", INT64_C(5097601500000000)},
                 {"2000-02-29T12:00:00Z", INT64_C(951825600) * 1000000000},
                 {"2026-11-27T11:36:24.437465330Z", INT64_C(1795779384437465330)},
                 {"2100-03-01T00:00:00Z", INT64_C(4107542400) * 1000000000}};
    static const char *const wrong[] = {"",
                                        "2026-11-27",
                                        "2026-11-27T11:36:24",
                                        "2026-11-27T11:36:24+01:00",
                                        "2026-11-31x",
                                        "yard",
                                        "yard@",
                                        "yard@-1",
                                        "YARD@1",
                                        "@1",
                                        "ends"};

    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        REQUIRE(vxd_restore_parse(times[i].text, &target, NULL) == VXD_OK);
        CHECK_INT(target.until, VXD_RESTORE_TIME);
        CHECK_INT(target.unix_ns, times[i].unix_ns);
    }
    REQUIRE(vxd_restore_parse("yard@412", &target, NULL) == VXD_OK);
    CHECK_INT(target.until, VXD_RESTORE_VERSION);
    CHECK(strcmp(target.scene, "yard") == 0 && target.version == 412);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        CHECK_INT(vxd_restore_parse(wrong[i], &target, NULL), VXD_INVALID_ARGUMENT);
    }
}

int main(int argc, char **argv)
{
    static const struct vxd_test tests[] = {
        VXD_TEST(test_power_lost_at_every_sync_leaves_no_hole),
        VXD_TEST(test_call_that_fails_leaves_no_hole),
        VXD_TEST(test_bytes_that_are_no_row_are_refused),
        VXD_TEST(test_restoration_ends_at_the_moment_that_is_asked_for),
        VXD_TEST(test_moments_are_read),
    };

    vxd_log_set_level((enum vxd_log_level)(VXD_LOG_ERROR + 1)); /* of many bad ends */
    return vxd_test_run_all(tests, sizeof tests / sizeof tests[0],
                            argc > 1 ? argv[1] : NULL);
}
