// SPDX-License-Identifier: Apache-2.0
/* Looks, and says what the start would do. Nothing is changed: a database with a WAL is opened so
 * that the WAL stays, one without so that none is made. */
#include "server/durable/maintenance/verify.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "server/durable/database/database.h"
#include "server/durable/record/record.h"
#include "server/durable/snapshot/snapshot.h"

struct verify {
    struct vxd_data_dir dir; /* its lock is taken for the time */
    sqlite3 *db;
    void (*problem)(void *user, const struct vxd_problem *problem);
    void *user;
    struct vxd_verify_result *result;
    /* The family in hand: whether its records go on from the last one without a gap. */
    uint64_t next;
    bool is_broken;
};

#if defined(__GNUC__)
__attribute__((format(printf, 4, 5)))
#endif
static void
say(struct verify *verify, enum vxd_problem_weight weight, const char *where,
    const char *format, ...)
{
    struct vxd_problem problem = {.weight = weight};
    va_list args;

    (void)snprintf(problem.where, sizeof problem.where, "%s", where);
    va_start(args, format);
    (void)vsnprintf(problem.message, sizeof problem.message, format, args);
    va_end(args);
    verify->result->n_notes += weight == VXD_PROBLEM_NOTE;
    verify->result->n_spares += weight == VXD_PROBLEM_SPARE;
    verify->result->n_losses += weight == VXD_PROBLEM_LOSS;
    if (verify->problem != NULL) {
        verify->problem(verify->user, &problem);
    }
}

/* Where nobody ever locked it, nobody can hold it. */
static enum vxd_status take_lock(struct verify *verify, struct vxd_err *err)
{
    const struct vxd_file_ops *ops = verify->dir.ops;
    char path[VXD_DURABLE_PATH_BYTES];
    int file;

    (void)snprintf(path, sizeof path, "%s/lock", verify->dir.path);
    file = ops->open(ops->user, path, O_RDWR, 0);
    if (file == -ENOENT) {
        return VXD_OK;
    }
    if (file < 0) {
        return vxd_file_fail(err, file, "open", path);
    }
    verify->dir.lock = file;
    if (ops->lock(ops->user, file) != 0) {
        return vxd_fail(err, VXD_FAILED_PRECONDITION, "data_dir",
                        "%.200s is in use by a daemon", verify->dir.path);
    }
    return VXD_OK;
}

static enum vxd_status find_database(struct verify *verify, char *path, size_t capacity,
                                     struct vxd_err *err)
{
    const struct vxd_file_ops *ops = verify->dir.ops;
    int file;

    /* One that a repair has made is in its place with the next start. */
    (void)snprintf(path, capacity, "%s/" VXD_DATABASE_REPAIRED, verify->dir.path);
    file = ops->open(ops->user, path, O_RDONLY, 0);
    if (file >= 0) {
        say(verify, VXD_PROBLEM_NOTE, VXD_DATABASE_REPAIRED,
            "a repair was cut off when all was mended; the start finishes it");
    } else {
        (void)snprintf(path, capacity, "%s/voxeld.db", verify->dir.path);
        file = ops->open(ops->user, path, O_RDONLY, 0);
    }
    if (file == -ENOENT) {
        return vxd_database_check_new(&verify->dir, err) == VXD_DATA_LOSS
                   ? VXD_DATA_LOSS
                   : vxd_file_fail(err, file, "open", path);
    }
    if (file < 0) {
        return vxd_file_fail(err, file, "open", path);
    }
    (void)ops->close(ops->user, file);
    return VXD_OK;
}

/* Calls `each` for every row; what SQLite cannot read is a loss. */
static void each_row(struct verify *verify, const char *sql, int64_t argument,
                     void (*each)(struct verify *verify, sqlite3_stmt *row))
{
    sqlite3_stmt *row = NULL;
    int result = sqlite3_prepare_v2(verify->db, sql, -1, &row, NULL);

    if (result == SQLITE_OK) {
        (void)sqlite3_bind_int64(row, 1, argument);
        while ((result = sqlite3_step(row)) == SQLITE_ROW) {
            each(verify, row);
        }
    }
    if (result != SQLITE_DONE) {
        say(verify, VXD_PROBLEM_LOSS, "voxeld.db",
            "SQLite cannot read it (%s); the start would fail: repair it, or restore a "
            "backup",
            sqlite3_errmsg(verify->db));
    }
    (void)sqlite3_finalize(row);
}

static void check_integrity(struct verify *verify, sqlite3_stmt *row)
{
    const unsigned char *text = sqlite3_column_text(row, 0);

    if (text != NULL && strcmp((const char *)text, "ok") != 0) {
        say(verify, VXD_PROBLEM_LOSS, "voxeld.db", "SQLite finds it damaged: %.180s",
            text);
    }
}

static void check_clean(struct verify *verify)
{
    uint64_t clean = 1;
    uint64_t restored = 0;

    if (vxd_database_get_meta(verify->db, "clean", &clean, NULL) != VXD_OK ||
        vxd_database_get_meta(verify->db, "restored", &restored, NULL) != VXD_OK) {
        say(verify, VXD_PROBLEM_LOSS, "voxeld.db", "the table meta cannot be read");
        return;
    }
    if (clean == 0) {
        say(verify, VXD_PROBLEM_NOTE, "voxeld.db",
            "it was not closed; the start goes on from what is there");
    }
    if (restored != 0) {
        say(verify, VXD_PROBLEM_NOTE, "voxeld.db",
            "restored from a backup; the start raises the epochs");
    }
}

/* The mark against the journal, as the start compares them. What a repair or a backup has left out
 * is known. */
static void check_mark(struct verify *verify)
{
    const struct vxd_file_ops *ops = verify->dir.ops;
    char boot_id[VXD_BOOT_ID_BYTES] = "";
    uint64_t is_marked = 0;
    uint64_t sequence = 0;
    uint64_t restored = 0;
    struct vxd_err err = {0};
    struct vxd_mark mark;
    enum vxd_status status = vxd_mark_open(ops, verify->dir.path, true, &mark, &err);

    (void)vxd_database_get_meta(verify->db, "marked", &is_marked, NULL);
    (void)vxd_database_get_meta(verify->db, "sequence", &sequence, NULL);
    (void)vxd_database_get_meta(verify->db, "restored", &restored, NULL);
    if (status == VXD_NOT_FOUND) {
        if (is_marked != 0) {
            say(verify, VXD_PROBLEM_LOSS, "voxeld.mark",
                "it is missing; the start would refuse the directory");
        }
        return;
    }
    if (status != VXD_OK) {
        say(verify, VXD_PROBLEM_LOSS, "voxeld.mark",
            "%.150s; the start would refuse the directory", err.message);
        return;
    }
    if (ops->boot_id(ops->user, boot_id) == 0 && boot_id[0] != '\0' &&
        strcmp(boot_id, mark.boot_id) == 0) {
        mark.synced = mark.written;
    }
    if (mark.synced > sequence) {
        say(verify, restored != 0 ? VXD_PROBLEM_NOTE : VXD_PROBLEM_LOSS, "voxeld.mark",
            "the journal ends %llu acknowledged changes before it; the start goes on "
            "from there and raises the epochs",
            (unsigned long long)(mark.synced - sequence));
    }
}

/* Records ---------------------------------------------------------------------------------- */

static enum vxd_status decode(const struct vxd_journal_record *record,
                              struct vxd_err *err)
{
    const struct vxd_record_owner *owner = vxd_record_find_owner(record->rules_version);

    return owner != NULL
               ? owner->check(record->bytes, record->n_bytes, record->rules_version, err)
               : vxd_fail(
                     err, VXD_FAILED_PRECONDITION, NULL,
                     "a record of rules %u, which are nobody's: a newer server wrote it",
                     record->rules_version);
}

static void check_record(struct verify *verify, sqlite3_stmt *row)
{
    struct vxd_journal_record record;
    const char *fault = vxd_database_row_record(row, &record);
    struct vxd_err err = {0};
    char where[80];

    verify->result->n_records++;
    if (verify->is_broken || record.sequence < verify->next) {
        return; /* in a snapshot, or behind what was said already */
    }
    (void)snprintf(where, sizeof where, "voxeld.db, family %u, record %llu",
                   record.family, (unsigned long long)record.sequence);
    if (record.sequence != verify->next) {
        say(verify, VXD_PROBLEM_LOSS, where,
            "records from %llu to it are missing; the start ends before them",
            (unsigned long long)verify->next);
        verify->is_broken = true;
        return;
    }
    if (fault == NULL && decode(&record, &err) != VXD_OK) {
        fault = err.message;
    }
    if (fault != NULL) {
        say(verify, VXD_PROBLEM_LOSS, where, "%.150s; the start ends before it", fault);
        verify->is_broken = true;
        return;
    }
    verify->next++;
}

/* Snapshots -------------------------------------------------------------------------------- */

static bool check_snapshot(struct verify *verify, uint32_t family, uint64_t sequence,
                           struct vxd_err *err)
{
    struct vxd_snapshot_reader *reader = NULL;
    enum vxd_status status;

    verify->result->n_snapshots++;
    VXD_TRY(vxd_snapshot_open(&verify->dir, family, sequence, &reader, err));
    VXD_TRY(vxd_snapshot_skip_to_end(reader, err));
out:
    vxd_snapshot_close(reader);
    return status == VXD_OK;
}

/* From the newest that is whole; 0 = from nothing. */
static uint64_t check_snapshots(struct verify *verify, uint32_t family)
{
    uint64_t *sequences = NULL;
    uint64_t newest = 0;
    bool has_newest = false;
    size_t n = 0;
    struct vxd_err err = {0};
    char where[80];

    if (vxd_snapshot_list(&verify->dir, family, &sequences, &n, &err) != VXD_OK) {
        say(verify, VXD_PROBLEM_LOSS, "snapshots", "%.200s", err.message);
        return 0;
    }
    for (size_t i = 0; i < n; i++) {
        if (check_snapshot(verify, family, sequences[i], &err)) {
            newest = has_newest ? newest : sequences[i];
            has_newest = true;
            continue;
        }
        (void)snprintf(where, sizeof where, "snapshots/%08x.%016llx.vxs", family,
                       (unsigned long long)sequences[i]);
        say(verify, VXD_PROBLEM_SPARE, where, "%.150s; the start takes an older one",
            err.message);
    }
    free(sequences);
    return newest;
}

/* Families --------------------------------------------------------------------------------- */

static void check_family(struct verify *verify, sqlite3_stmt *row)
{
    struct vxd_journal_family family;
    struct vxd_family_state state;
    const char *fault = vxd_database_row_family(row, &family, &state);
    char where[120];

    (void)snprintf(where, sizeof where, "voxeld.db, family %u %.63s", family.id,
                   family.name);
    verify->result->n_families++;
    if (fault != NULL) {
        say(verify, VXD_PROBLEM_LOSS, where,
            "%s; the start would fail: repair it, or restore a backup", fault);
        return;
    }
    verify->next = check_snapshots(verify, family.id) + 1;
    verify->is_broken = false;
    each_row(verify,
             "SELECT " VXD_RECORD_COLUMNS
             " FROM records WHERE id BETWEEN ?1 << 40 AND (?1 << 40) + 1099511627775"
             " ORDER BY id",
             family.id, check_record);
    if (!verify->is_broken && verify->next <= state.last_sequence) {
        say(verify, VXD_PROBLEM_LOSS, where,
            "its journal ends at %llu, but %llu were written; the start raises its epoch",
            (unsigned long long)(verify->next - 1),
            (unsigned long long)state.last_sequence);
    }
}

static void check_item(struct verify *verify, sqlite3_stmt *row)
{
    enum vxd_journal_item_kind kind;
    struct vxd_journal_item item;
    const char *fault = vxd_database_row_item(row, &kind, &item);
    char where[120];

    if (fault != NULL) {
        (void)snprintf(where, sizeof where, "voxeld.db, family %u, item %.63s",
                       item.family, item.name);
        say(verify, VXD_PROBLEM_LOSS, where,
            "%s; the start would fail: repair it, or restore a backup", fault);
    }
}

static void check_reply(struct verify *verify, sqlite3_stmt *row)
{
    struct vxd_journal_reply reply;
    const char *fault = vxd_database_row_reply(row, &reply);

    if (fault != NULL) {
        say(verify, VXD_PROBLEM_SPARE, "voxeld.db, replies",
            "%s; the start leaves it out: its request may be done twice", fault);
    }
}

static void check_stray(struct verify *verify, sqlite3_stmt *row)
{
    say(verify, VXD_PROBLEM_NOTE, "voxeld.db, records",
        "%lld of family %lld, which is none; they are left alone",
        (long long)sqlite3_column_int64(row, 1), (long long)sqlite3_column_int64(row, 0));
}

static void check_set_aside(struct verify *verify, sqlite3_stmt *row)
{
    if (sqlite3_column_int64(row, 0) > 0) {
        say(verify, VXD_PROBLEM_NOTE, "voxeld.db, set_aside",
            "%lld records that an earlier start cut",
            (long long)sqlite3_column_int64(row, 0));
    }
}

static void check_entry(void *arg, const char *name)
{
    struct verify *verify = arg;
    uint32_t family;
    uint64_t sequence;
    char where[160];

    if (!vxd_snapshot_parse_name(name, &family, &sequence)) {
        (void)snprintf(where, sizeof where, "snapshots/%.120s", name);
        say(verify, VXD_PROBLEM_NOTE, where, "not a snapshot in use");
    }
}

static void check_all(struct verify *verify)
{
    char folder[VXD_DURABLE_PATH_BYTES];
    int result;

    each_row(verify, "PRAGMA integrity_check(20)", 0, check_integrity);
    check_clean(verify);
    check_mark(verify);
    each_row(verify, "SELECT " VXD_FAMILY_COLUMNS " FROM families ORDER BY id", 0,
             check_family);
    each_row(verify, "SELECT " VXD_ITEM_COLUMNS " FROM items", 0, check_item);
    each_row(verify, "SELECT " VXD_REPLY_COLUMNS " FROM replies", 0, check_reply);
    each_row(verify,
             "SELECT id >> 40, count(*) FROM records WHERE id >> 40 NOT IN"
             " (SELECT id FROM families UNION SELECT family FROM dropped) GROUP BY 1",
             0, check_stray);
    each_row(verify, "SELECT count(*) FROM set_aside", 0, check_set_aside);
    (void)snprintf(folder, sizeof folder, "%s/snapshots", verify->dir.path);
    result = verify->dir.ops->list(verify->dir.ops->user, folder, check_entry, verify);
    if (result != 0) {
        say(verify, VXD_PROBLEM_SPARE, "snapshots", "cannot be read: %s",
            strerror(-result));
    }
}

enum vxd_status
vxd_verify_data_dir(const struct vxd_file_ops *ops, const char *path,
                    void (*problem)(void *user, const struct vxd_problem *problem),
                    void *user, struct vxd_verify_result *out, struct vxd_err *err)
{
    struct verify verify = {
        .dir = {.ops = ops != NULL ? ops : vxd_file_ops_system(), .lock = -1},
        .problem = problem,
        .user = user,
        .result = out};
    char database[VXD_DURABLE_PATH_BYTES];
    enum vxd_status status;

    *out = (struct vxd_verify_result){0};
    if (strlen(path) >= sizeof verify.dir.path) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "data_dir", "the path is too long");
    }
    (void)snprintf(verify.dir.path, sizeof verify.dir.path, "%s", path);
    VXD_TRY(find_database(&verify, database, sizeof database, err));
    VXD_TRY(take_lock(&verify, err));
    status = vxd_database_connect(verify.dir.ops, database, true, &verify.db, err);
    if (status == VXD_OK) {
        status = vxd_database_check_tables(verify.db, err);
    }
    if (status == VXD_DATA_LOSS) {
        say(&verify, VXD_PROBLEM_LOSS, "voxeld.db",
            "%.150s; the start would fail: repair it, or restore a backup",
            err != NULL ? err->message : "damaged");
        status = VXD_OK;
    } else if (status == VXD_OK) {
        check_all(&verify);
    }
out:
    (void)sqlite3_close(verify.db);
    vxd_data_dir_close(&verify.dir);
    return status;
}
