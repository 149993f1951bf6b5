// SPDX-License-Identifier: Apache-2.0
/* The spool: what the archive still has to copy. Each transaction is also put as a whole into the
 * table `archive`, in the commit that writes it, so that a crash at any moment leaves no hole. The
 * archive copies rows into files of its own and lets the spool drop them.
 *
 * Rows are numbered without gaps. All that is on one line follows from what was before it. A
 * new line, a random number, begins where the journal does not go on from the rows before: after
 * a loss, in a restored directory, after a run without an archive, and where the spool had
 * no more capacity.
 *
 *     a row       sequence 8, unix_ns 8, run_ns 8, n_changes 4, zero 4, then each change:
 *     a change    struct packed_change below, little-endian, and its bytes */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "proto/base/clock.h"
#include "proto/base/crc32c.h"
#include "server/durable/journal/journal_internal.h"
#include "server/observe/log/log.h"

enum {
    DROP_ROWS = 64,           /* in one transaction */
    MAX_ROW_BYTES = 900000000 /* SQLite takes a billion */
};

struct packed_head {
    uint64_t sequence;
    int64_t unix_ns;
    uint64_t run_ns;
    uint32_t n_changes;
    uint32_t zero;
};

struct packed_change {
    uint32_t kind;
    uint32_t family;
    uint64_t sequence;
    uint64_t number;
    uint32_t item_kind;
    uint32_t rules_version;
    uint32_t record_kind;
    uint32_t fsync;
    uint64_t max_bytes;
    uint64_t epoch;
    int64_t unix_ns;
    uint8_t digest[VXD_JOURNAL_DIGEST_BYTES];
    char name[VXD_JOURNAL_NAME_BYTES];
    uint64_t n_client_bytes;
    uint64_t n_bytes;
};

static_assert(sizeof(struct packed_head) == 32, "a row's head has no padding");
static_assert(sizeof(struct packed_change) == 160, "a packed change has no padding");

/* Rows ------------------------------------------------------------------------------------- */

static size_t count_bytes(const struct vxd_journal_txn *txn, uint32_t *n_changes)
{
    size_t n = sizeof(struct packed_head);

    *n_changes = 0;
    for (const struct vxd_change *change = txn->first; change != NULL;
         change = change->next) {
        n += sizeof(struct packed_change) + change->n_bytes;
        ++*n_changes;
    }
    return n;
}

static void pack(const struct vxd_journal_txn *txn, const struct packed_head *head,
                 uint8_t *to)
{
    memcpy(to, head, sizeof *head);
    to += sizeof *head;
    for (const struct vxd_change *change = txn->first; change != NULL;
         change = change->next) {
        struct packed_change packed = {.kind = (uint32_t)change->kind,
                                       .family = change->family,
                                       .sequence = change->sequence,
                                       .number = change->number,
                                       .item_kind = (uint32_t)change->item_kind,
                                       .rules_version = change->rules_version,
                                       .record_kind = change->record_kind,
                                       .fsync = (uint32_t)change->fsync,
                                       .max_bytes = change->max_bytes,
                                       .epoch = change->epoch,
                                       .unix_ns = change->unix_ns,
                                       .n_client_bytes = change->n_client_bytes,
                                       .n_bytes = change->n_bytes};

        memcpy(packed.digest, change->digest, sizeof packed.digest);
        memcpy(packed.name, change->name, sizeof packed.name);
        memcpy(to, &packed, sizeof packed);
        memcpy(to + sizeof packed, change->bytes, change->n_bytes);
        to += sizeof packed + change->n_bytes;
    }
}

/* Whether the fields are such that their sums cannot overflow, and their numbers are of kinds. */
static bool is_change(const struct packed_change *packed, size_t n_left)
{
    return packed->kind <= VXD_CHANGE_META && packed->fsync <= VXD_FSYNC_OFF &&
           packed->item_kind <= VXD_JOURNAL_AGES &&
           memchr(packed->name, '\0', sizeof packed->name) != NULL &&
           packed->n_bytes <= n_left && packed->n_client_bytes <= packed->n_bytes;
}

static struct vxd_change *unpack_change(const struct packed_change *packed,
                                        const uint8_t *bytes)
{
    struct vxd_change *change = calloc(1, sizeof *change + packed->n_bytes);

    if (change == NULL) {
        return NULL;
    }
    change->kind = (enum vxd_change_kind)packed->kind;
    change->family = packed->family;
    change->sequence = packed->sequence;
    change->number = packed->number;
    change->item_kind = (enum vxd_journal_item_kind)packed->item_kind;
    change->rules_version = packed->rules_version;
    change->record_kind = packed->record_kind;
    change->fsync = (enum vxd_fsync)packed->fsync;
    change->max_bytes = packed->max_bytes;
    change->epoch = packed->epoch;
    change->unix_ns = packed->unix_ns;
    memcpy(change->digest, packed->digest, sizeof change->digest);
    memcpy(change->name, packed->name, sizeof change->name);
    change->n_client_bytes = packed->n_client_bytes;
    change->n_bytes = packed->n_bytes;
    memcpy(change->bytes, bytes, packed->n_bytes);
    return change;
}

/* Calls `each` for every change of a row. */
static enum vxd_status
visit(const uint8_t *bytes, size_t n_bytes,
      enum vxd_status (*each)(void *user, const struct packed_change *change,
                              const uint8_t *bytes, struct vxd_err *err),
      void *user, struct vxd_err *err)
{
    struct packed_head head;
    size_t at = sizeof head;
    enum vxd_status status = VXD_OK;

    if (n_bytes < sizeof head) {
        return vxd_fail(err, VXD_DATA_LOSS, NULL, "a transaction ends in its head");
    }
    memcpy(&head, bytes, sizeof head);
    for (uint32_t i = 0; i < head.n_changes; i++) {
        struct packed_change packed;

        if (n_bytes - at < sizeof packed) {
            return vxd_fail(err, VXD_DATA_LOSS, NULL, "a transaction ends in change %u",
                            i);
        }
        memcpy(&packed, bytes + at, sizeof packed);
        at += sizeof packed;
        if (!is_change(&packed, n_bytes - at)) {
            return vxd_fail(err, VXD_DATA_LOSS, NULL,
                            "change %u of a transaction is none", i);
        }
        VXD_TRY(each(user, &packed, bytes + at, err));
        at += packed.n_bytes;
    }
    if (at != n_bytes) {
        return vxd_fail(err, VXD_DATA_LOSS, NULL, "bytes follow a transaction's end");
    }
out:
    return status;
}

/* Opening ---------------------------------------------------------------------------------- */

static enum vxd_status draw_line(uint64_t *out, struct vxd_err *err)
{
    uint64_t line = 0;

    if (getrandom(&line, sizeof line, 0) != (ssize_t)sizeof line) {
        return vxd_fail(err, VXD_INTERNAL, NULL, "the system gives no random number");
    }
    *out = line >> 1 | 1; /* SQLite's numbers have a sign, and 0 is none */
    return VXD_OK;
}

static enum vxd_status sum_rows(struct vxd_journal *journal, uint64_t first,
                                uint64_t *n_bytes, struct vxd_err *err)
{
    sqlite3_stmt *row = NULL;
    int result = sqlite3_prepare_v2(
        journal->db, "SELECT coalesce(sum(n_bytes), 0) FROM archive WHERE number >= ?1",
        -1, &row, NULL);

    if (result == SQLITE_OK) {
        (void)sqlite3_bind_int64(row, 1, (int64_t)first);
        result = sqlite3_step(row);
    }
    if (result == SQLITE_ROW) {
        *n_bytes = (uint64_t)sqlite3_column_int64(row, 0);
    }
    (void)sqlite3_finalize(row);
    return result == SQLITE_ROW
               ? VXD_OK
               : vxd_database_fail(err, journal->db, result, "read the spool");
}

enum vxd_status vxd_journal_open_spool(struct vxd_journal *journal, struct vxd_err *err)
{
    struct vxd_spool spool = {.is_open = true};
    uint64_t sequence = 0;
    uint64_t spooled = 0;
    uint64_t unix_ns = 0;
    int result;
    enum vxd_status status = VXD_OK;

    if (!journal->options.archives || journal->spool.is_open) {
        return VXD_OK;
    }
    VXD_TRY(vxd_database_execute(journal->db, VXD_SPOOL_TABLE, err));
    VXD_TRY(vxd_database_get_meta(journal->db, "archive_line", &spool.line, err));
    VXD_TRY(vxd_database_get_meta(journal->db, "archive_first", &spool.first, err));
    VXD_TRY(vxd_database_get_meta(journal->db, "archive_next", &spool.next, err));
    VXD_TRY(vxd_database_get_meta(journal->db, "archive_sequence", &spooled, err));
    VXD_TRY(vxd_database_get_meta(journal->db, "archive_unix_ns", &unix_ns, err));
    VXD_TRY(vxd_database_get_meta(journal->db, "sequence", &sequence, err));
    spool.unix_ns = (int64_t)unix_ns;
    if (spool.line == 0 || journal->is_forked || spooled != sequence) {
        if (spool.line != 0) {
            vxd_log(VXD_LOG_WARNING,
                    "the archive begins anew: older backups can be restored until here "
                    "only",
                    "why",
                    journal->is_forked ? "data were lost or restored"
                                       : "changes were made without an archive");
        }
        VXD_TRY(draw_line(&spool.line, err));
        spool.next = spool.next > 0 ? spool.next : 1;
        spool.first = spool.next;
        VXD_TRY(vxd_database_execute(journal->db, "BEGIN IMMEDIATE", err));
        VXD_TRY(vxd_database_set_meta(journal->db, "archive_line", spool.line, err));
        VXD_TRY(vxd_database_set_meta(journal->db, "archive_first", spool.first, err));
        VXD_TRY(vxd_database_set_meta(journal->db, "archive_next", spool.next, err));
        VXD_TRY(vxd_database_set_meta(journal->db, "archive_sequence", sequence, err));
        VXD_TRY(vxd_database_execute(journal->db, "COMMIT", err));
    }
    VXD_TRY(sum_rows(journal, spool.first, &spool.n_bytes, err));
    result =
        sqlite3_prepare_v3(journal->db,
                           "INSERT INTO archive(number, n_bytes, crc, bytes)"
                           " VALUES(?1, ?2, ?3, ?4)",
                           -1, SQLITE_PREPARE_PERSISTENT, &journal->spool_insert, NULL);
    if (result != SQLITE_OK) {
        VXD_TRY(vxd_database_fail(err, journal->db, result, "prepare a statement"));
    }
    journal->is_wal_dirty = true;
    journal->is_forked = false;
    (void)pthread_mutex_lock(&journal->lock);
    journal->spool = spool;
    (void)pthread_mutex_unlock(&journal->lock);
out:
    if (status != VXD_OK && sqlite3_get_autocommit(journal->db) == 0) {
        (void)sqlite3_exec(journal->db, "ROLLBACK", NULL, NULL, NULL);
    }
    return status;
}

/* Writing ---------------------------------------------------------------------------------- */

static enum vxd_status insert(struct vxd_journal *journal, uint64_t number,
                              const uint8_t *bytes, size_t n_bytes, struct vxd_err *err)
{
    sqlite3_stmt *statement = journal->spool_insert;
    int result;

    (void)sqlite3_bind_int64(statement, 1, (int64_t)number);
    (void)sqlite3_bind_int64(statement, 2, (int64_t)n_bytes);
    (void)sqlite3_bind_int64(statement, 3, vxd_crc32c(0, bytes, n_bytes));
    (void)sqlite3_bind_blob64(statement, 4, bytes, n_bytes, SQLITE_STATIC);
    result = sqlite3_step(statement);
    (void)sqlite3_reset(statement);
    (void)sqlite3_clear_bindings(statement);
    return result == SQLITE_DONE
               ? VXD_OK
               : vxd_database_fail(err, journal->db, result, "write the spool");
}

/* What waits is given up: the archive goes on, on another line, behind this transaction. */
static enum vxd_status break_line(struct vxd_journal *journal, struct vxd_err *err)
{
    struct vxd_spool *spool = &journal->spool_now;

    spool->n_breaks++;
    spool->first = spool->next;
    spool->n_bytes = 0;
    return draw_line(&spool->line, err);
}

enum vxd_status vxd_journal_spool_txn(struct vxd_journal *journal,
                                      const struct vxd_journal_txn *txn, int64_t unix_ns,
                                      struct vxd_err *err)
{
    struct vxd_spool *spool = &journal->spool_now;
    struct packed_head head = {.unix_ns = unix_ns,
                               .run_ns = vxd_journal_get_run_ns(journal)};
    size_t n_bytes = count_bytes(txn, &head.n_changes);
    uint8_t *bytes;
    enum vxd_status status;

    if (!spool->is_open || txn->first == NULL) {
        return VXD_OK;
    }
    bytes = n_bytes <= MAX_ROW_BYTES &&
                    spool->n_bytes + n_bytes <= journal->options.max_archive_bytes
                ? malloc(n_bytes)
                : NULL;
    if (bytes == NULL) {
        return break_line(journal, err);
    }
    head.sequence = journal->sequence + 1 + (spool->next - journal->spool.next);
    pack(txn, &head, bytes);
    VXD_TRY(insert(journal, spool->next, bytes, n_bytes, err));
    spool->next++;
    spool->n_bytes += n_bytes;
    spool->unix_ns = unix_ns;
out:
    free(bytes);
    return status;
}

void vxd_journal_settle_spool(struct vxd_journal *journal)
{
    char limit[32];

    if (journal->spool_now.n_breaks > journal->spool.n_breaks) {
        (void)snprintf(limit, sizeof limit, "%llu",
                       (unsigned long long)journal->options.max_archive_bytes);
        vxd_log(VXD_LOG_ERROR,
                "the archive has a hole: changes waited too long for it and are given up",
                "limits.archive_bytes", limit);
    }
    journal->spool = journal->spool_now;
}

/* Reading ---------------------------------------------------------------------------------- */

void vxd_journal_get_spool(struct vxd_journal *journal, struct vxd_spool *out)
{
    (void)pthread_mutex_lock(&journal->lock);
    *out = journal->spool;
    (void)pthread_mutex_unlock(&journal->lock);
}

enum vxd_status vxd_journal_read_spool(struct vxd_journal *journal, uint64_t number,
                                       uint8_t **take_bytes, size_t *n_bytes,
                                       struct vxd_err *err)
{
    sqlite3_stmt *row = NULL;
    const void *bytes = NULL;
    int result;
    enum vxd_status status = VXD_OK;

    *take_bytes = NULL;
    (void)pthread_mutex_lock(&journal->db_lock);
    result = sqlite3_prepare_v2(
        journal->db, "SELECT crc, bytes FROM archive WHERE number = ?1", -1, &row, NULL);
    if (result == SQLITE_OK) {
        (void)sqlite3_bind_int64(row, 1, (int64_t)number);
        result = sqlite3_step(row);
    }
    if (result == SQLITE_ROW) {
        bytes = sqlite3_column_blob(row, 1);
        *n_bytes = (size_t)sqlite3_column_bytes(row, 1);
    }
    if (result != SQLITE_ROW && result != SQLITE_DONE) {
        status = vxd_database_fail(err, journal->db, result, "read the spool");
    } else if (bytes == NULL ||
               (uint32_t)sqlite3_column_int64(row, 0) != vxd_crc32c(0, bytes, *n_bytes)) {
        status =
            vxd_fail(err, VXD_DATA_LOSS, "data_dir",
                     "voxeld.db: row %llu of the table archive is %s",
                     (unsigned long long)number, bytes == NULL ? "missing" : "damaged");
    } else if ((*take_bytes = malloc(*n_bytes)) == NULL) {
        status = vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for the archive");
    } else {
        memcpy(*take_bytes, bytes, *n_bytes);
    }
    (void)sqlite3_finalize(row);
    (void)pthread_mutex_unlock(&journal->db_lock);
    return status;
}

/* Deletes a few rows below a number. */
static enum vxd_status drop_rows(struct vxd_journal *journal, uint64_t below, int *n,
                                 struct vxd_err *err)
{
    char sql[192];
    enum vxd_status status;

    (void)snprintf(sql, sizeof sql,
                   "DELETE FROM archive WHERE number IN (SELECT number FROM archive"
                   " WHERE number < %lld ORDER BY number LIMIT %d)",
                   (long long)below, (int)DROP_ROWS);
    *n = 0;
    (void)pthread_mutex_lock(&journal->db_lock);
    VXD_TRY(vxd_journal_set_full(journal, false, err));
    VXD_TRY(vxd_database_execute(journal->db, sql, err));
    *n = sqlite3_changes(journal->db);
    journal->is_wal_dirty = journal->is_wal_dirty || *n > 0;
out:
    (void)pthread_mutex_unlock(&journal->db_lock);
    return status;
}

enum vxd_status vxd_journal_drop_spool(struct vxd_journal *journal, uint64_t line,
                                       uint64_t last, uint64_t n_bytes,
                                       struct vxd_err *err)
{
    uint64_t first;
    int n = DROP_ROWS;
    enum vxd_status status = VXD_OK;

    (void)pthread_mutex_lock(&journal->db_lock);
    if (journal->spool.line == line && last >= journal->spool.first) {
        status = vxd_journal_set_full(journal, false, err);
        if (status == VXD_OK) {
            status = vxd_database_set_meta(journal->db, "archive_first", last + 1, err);
        }
        if (status == VXD_OK) {
            journal->is_wal_dirty = true;
            (void)pthread_mutex_lock(&journal->lock);
            journal->spool.first = last + 1;
            journal->spool.n_bytes -=
                n_bytes < journal->spool.n_bytes ? n_bytes : journal->spool.n_bytes;
            (void)pthread_mutex_unlock(&journal->lock);
        }
    }
    first = journal->spool.first;
    (void)pthread_mutex_unlock(&journal->db_lock);
    while (status == VXD_OK && n == DROP_ROWS) {
        status = drop_rows(journal, first, &n, err);
    }
    return status;
}

/* Rows that are applied again -------------------------------------------------------------- */

enum vxd_status vxd_journal_archived_read(const void *bytes, size_t n_bytes,
                                          struct vxd_archived *out, struct vxd_err *err)
{
    struct packed_head head;

    if (n_bytes < sizeof head) {
        return vxd_fail(err, VXD_DATA_LOSS, NULL, "a transaction ends in its head");
    }
    memcpy(&head, bytes, sizeof head);
    *out = (struct vxd_archived){
        .sequence = head.sequence, .unix_ns = head.unix_ns, .run_ns = head.run_ns};
    return VXD_OK;
}

struct record_visit {
    enum vxd_status (*each)(void *user, const struct vxd_journal_record *record,
                            struct vxd_err *err);
    void *user;
};

static enum vxd_status visit_record(void *user, const struct packed_change *packed,
                                    const uint8_t *bytes, struct vxd_err *err)
{
    const struct record_visit *visiting = user;
    struct vxd_journal_record record = {.family = packed->family,
                                        .sequence = packed->sequence,
                                        .rules_version = packed->rules_version,
                                        .kind = packed->record_kind,
                                        .bytes = bytes,
                                        .n_bytes = packed->n_bytes};

    return packed->kind == VXD_CHANGE_RECORD
               ? visiting->each(visiting->user, &record, err)
               : VXD_OK;
}

enum vxd_status vxd_journal_archived_records(
    const void *bytes, size_t n_bytes,
    enum vxd_status (*each)(void *user, const struct vxd_journal_record *record,
                            struct vxd_err *err),
    void *user, struct vxd_err *err)
{
    struct record_visit visiting = {.each = each, .user = user};

    return visit(bytes, n_bytes, visit_record, &visiting, err);
}

/* Whether a family's records up to a number are in the journal or in the transaction. One that is
 * made by the transaction itself has its records there or nowhere. */
static bool has_record(const struct vxd_journal_txn *txn, uint32_t family,
                       uint64_t sequence)
{
    struct vxd_journal_state state = {0};

    (void)vxd_journal_get_state(txn->journal, family, &state, NULL);
    for (const struct vxd_change *change = txn->first; change != NULL;
         change = change->next) {
        if (change->kind == VXD_CHANGE_RECORD && change->family == family) {
            state.last_sequence = change->sequence;
        }
    }
    return state.last_sequence >= sequence;
}

/* A snapshot's file is not in the archive, so that the records before it stay; but one that is
 * newer than its journal took the place of records that were lost. Of the numbers of the table
 * meta those of a run are this run's own matter. */
static enum vxd_status add_change(void *user, const struct packed_change *packed,
                                  const uint8_t *bytes, struct vxd_err *err)
{
    struct vxd_journal_txn *txn = user;
    struct vxd_change *change;

    if (packed->kind == VXD_CHANGE_SNAPSHOT) {
        return has_record(txn, packed->family, packed->sequence)
                   ? VXD_OK
                   : vxd_fail(err, VXD_DATA_LOSS, NULL,
                              "a start lost records of family %u up to %llu, of which "
                              "only its snapshot was left",
                              packed->family, (unsigned long long)packed->sequence);
    }
    if (packed->kind == VXD_CHANGE_META && strcmp(packed->name, "epoch") != 0) {
        return VXD_OK;
    }
    change = unpack_change(packed, bytes);
    if (change == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a transaction");
    }
    *txn->last = change;
    txn->last = &change->next;
    txn->n_bytes += sizeof *change + change->n_bytes;
    return VXD_OK;
}

enum vxd_status vxd_journal_add_archived(struct vxd_journal_txn *txn, const void *bytes,
                                         size_t n_bytes, struct vxd_err *err)
{
    struct vxd_journal *journal = txn->journal;
    struct vxd_archived when;
    uint64_t run_ns = vxd_journal_get_run_ns(journal);
    enum vxd_status status;

    VXD_TRY(vxd_journal_archived_read(bytes, n_bytes, &when, err));
    if (when.run_ns > run_ns) {
        journal->run_base_ns += when.run_ns - run_ns;
    }
    status = visit(bytes, n_bytes, add_change, txn, err);
out:
    return status;
}
