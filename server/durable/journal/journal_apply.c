// SPDX-License-Identifier: Apache-2.0
/* A transaction is first checked against the families in memory, then written. A failure while it
 * is written is the disk's or the database's fault, not the transaction's, so the whole group
 * fails. */
#include <string.h>

#include "server/durable/journal/journal_internal.h"

static const char *const statements[VXD_N_STATEMENTS] = {
    [VXD_SQL_BEGIN] = "BEGIN IMMEDIATE",
    [VXD_SQL_COMMIT] = "COMMIT",
    [VXD_SQL_ROLLBACK] = "ROLLBACK",
    [VXD_SQL_PUT_FAMILY] =
        "INSERT INTO families(id, name, fsync, max_bytes, epoch, spec, crc)"
        " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT(id) DO UPDATE SET name = ?2,"
        " fsync = ?3, max_bytes = ?4, epoch = ?5, spec = ?6, crc = ?7",
    [VXD_SQL_PUT_STATE] =
        "UPDATE families SET last_sequence = ?2, snapshot_sequence = ?3, kept_from = ?4,"
        " journal_bytes = ?5, open_tail = ?6, state_crc = ?7 WHERE id = ?1",
    [VXD_SQL_DROP_FAMILY] = "DELETE FROM families WHERE id = ?1",
    [VXD_SQL_DROP_ITEMS] = "DELETE FROM items WHERE family = ?1",
    [VXD_SQL_MARK_DROPPED] = "INSERT OR IGNORE INTO dropped VALUES(?1)",
    [VXD_SQL_PUT_ITEM] = "INSERT OR REPLACE INTO items(family, kind, name, crc, bytes)"
                         " VALUES(?1, ?2, ?3, ?4, ?5)",
    [VXD_SQL_DROP_ITEM] =
        "DELETE FROM items WHERE family = ?1 AND kind = ?2 AND name = ?3",
    [VXD_SQL_RECORD] = "INSERT INTO records(id, rules, kind, n_bytes, crc, bytes)"
                       " VALUES(?1, ?2, ?3, ?4, ?5, ?6)",
    [VXD_SQL_PUT_REPLY] = "INSERT OR REPLACE INTO replies(client, sequence, digest,"
                          " unix_ns, crc, bytes) VALUES(?1, ?2, ?3, ?4, ?5, ?6)",
    [VXD_SQL_FORGET_REPLY] = "DELETE FROM replies WHERE client = ?1 AND sequence = ?2",
    [VXD_SQL_SET_ASIDE] =
        "INSERT INTO set_aside(id, rules, kind, n_bytes, crc, bytes) SELECT id, rules,"
        " kind, n_bytes, crc, bytes FROM records WHERE id BETWEEN ?1 AND ?2",
    [VXD_SQL_CUT] = "DELETE FROM records WHERE id BETWEEN ?1 AND ?2",
    [VXD_SQL_SUM] = "SELECT coalesce(sum(n_bytes), 0) FROM records"
                    " WHERE id BETWEEN ?1 AND ?2",
    /* A number that was given out is never given out again, in whatever order the changes
     * arrive. */
    [VXD_SQL_META] =
        "INSERT INTO meta VALUES(?1, ?2) ON CONFLICT(key) DO UPDATE SET value ="
        " iif(key IN ('epoch', 'next_family'), max(value, ?2), ?2)",
    [VXD_SQL_TRIM] = "DELETE FROM records WHERE id IN (SELECT id FROM records"
                     " WHERE id BETWEEN ?1 AND ?2 ORDER BY id LIMIT 8)",
    [VXD_SQL_FORGET_DROPPED] = "DELETE FROM dropped WHERE family = ?1",
};

enum vxd_status vxd_journal_prepare(struct vxd_journal *journal, struct vxd_err *err)
{
    for (int i = 0; i < VXD_N_STATEMENTS; i++) {
        int result =
            sqlite3_prepare_v3(journal->db, statements[i], -1, SQLITE_PREPARE_PERSISTENT,
                               &journal->statements[i], NULL);

        if (result != SQLITE_OK) {
            return vxd_database_fail(err, journal->db, result, "prepare a statement");
        }
    }
    return VXD_OK;
}

enum vxd_status vxd_journal_run(struct vxd_journal *journal, enum vxd_statement which,
                                struct vxd_err *err)
{
    sqlite3_stmt *statement = journal->statements[which];
    int result = sqlite3_step(statement);
    enum vxd_status status = VXD_OK;

    if (result != SQLITE_DONE && result != SQLITE_ROW) {
        status = vxd_database_fail(err, journal->db, result, "write");
    }
    (void)sqlite3_reset(statement);
    (void)sqlite3_clear_bindings(statement);
    return status;
}

/* Checks ----------------------------------------------------------------------------------- */

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t most(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Marks a row as this transaction's. */
static void touch(struct vxd_family_row *row)
{
    if (!row->is_in_txn) {
        row->before = row->now;
        row->is_in_txn = true;
    }
}

static enum vxd_status check_put_family(struct vxd_journal *journal,
                                        const struct vxd_change *change,
                                        struct vxd_err *err)
{
    struct vxd_family_row *row;

    for (size_t i = 0; i < journal->n_rows; i++) {
        if (journal->rows[i].now.exists && journal->rows[i].id != change->family &&
            strcmp(journal->rows[i].now.name, change->name) == 0) {
            return vxd_fail(err, VXD_ALREADY_EXISTS, "name",
                            "there is a family called %.63s", change->name);
        }
    }
    row = vxd_journal_make_row(journal, change->family);
    if (row == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a family");
    }
    touch(row);
    if (!row->now.exists) {
        row->now = (struct vxd_family_state){.exists = true};
    } else if (row->now.epoch != change->epoch) {
        row->now.open_tail = false; /* whoever raised it knows what may be lost */
    }
    row->now.fsync = change->fsync;
    row->now.max_bytes = change->max_bytes;
    row->now.epoch = change->epoch;
    journal->generation = most(journal->generation, change->epoch);
    memcpy(row->now.name, change->name, sizeof row->now.name);
    return VXD_OK;
}

static enum vxd_status check_record(struct vxd_family_row *row,
                                    const struct vxd_change *change, struct vxd_err *err)
{
    if (change->sequence != row->now.last_sequence + 1) {
        return vxd_fail(
            err, VXD_ABORTED, "sequence",
            "record %llu of %.63s follows %llu: one that it builds on was not "
            "written",
            (unsigned long long)change->sequence, row->now.name,
            (unsigned long long)row->now.last_sequence);
    }
    row->now.last_sequence++;
    row->now.journal_bytes += change->n_bytes;
    return VXD_OK;
}

static enum vxd_status check_row(struct vxd_family_row *row,
                                 const struct vxd_change *change, struct vxd_err *err)
{
    struct vxd_family_state *now = &row->now;

    switch (change->kind) {
    case VXD_CHANGE_DROP_FAMILY:
        *now = (struct vxd_family_state){.exists = false};
        break;
    case VXD_CHANGE_RECORD:
        return check_record(row, change, err);
    case VXD_CHANGE_NEED:
        if (now->last_sequence < change->sequence) {
            return vxd_fail(err, VXD_ABORTED, "sequence",
                            "it builds on record %llu of %.63s, which was not written",
                            (unsigned long long)change->sequence, now->name);
        }
        break;
    case VXD_CHANGE_SNAPSHOT:
        /* A snapshot may be newer than what was left of the journal. */
        now->last_sequence = most(now->last_sequence, change->sequence);
        now->snapshot_sequence = most(now->snapshot_sequence, change->sequence);
        now->kept_from = most(now->kept_from, change->number);
        row->needs_sum = true;
        break;
    case VXD_CHANGE_CUT:
        now->last_sequence = change->sequence;
        now->snapshot_sequence = least(now->snapshot_sequence, change->sequence);
        now->kept_from = least(now->kept_from, change->sequence);
        row->needs_sum = true;
        break;
    default:
        break;
    }
    return VXD_OK;
}

static enum vxd_status check_change(struct vxd_journal *journal,
                                    const struct vxd_change *change, struct vxd_err *err)
{
    struct vxd_family_row *row;

    switch (change->kind) {
    case VXD_CHANGE_PUT_REPLY:
    case VXD_CHANGE_FORGET_REPLY:
        return VXD_OK;
    case VXD_CHANGE_META:
        if (strcmp(change->name, "epoch") == 0) {
            journal->generation = most(journal->generation, change->number);
        }
        return VXD_OK;
    case VXD_CHANGE_PUT_FAMILY:
        return check_put_family(journal, change, err);
    default:
        row = vxd_journal_find_row(journal, change->family);
        if (row == NULL || !row->now.exists) {
            return vxd_fail(err, VXD_NOT_FOUND, "family", "there is no family %u",
                            change->family);
        }
        touch(row);
        return check_row(row, change, err);
    }
}

void vxd_journal_check_txn(struct vxd_journal *journal, struct vxd_journal_txn *txn)
{
    txn->status = VXD_OK;
    for (const struct vxd_change *change = txn->first;
         change != NULL && txn->status == VXD_OK; change = change->next) {
        txn->status = check_change(journal, change, &txn->err);
    }
    for (size_t i = 0; i < journal->n_rows; i++) {
        struct vxd_family_row *row = &journal->rows[i];

        if (row->is_in_txn && txn->status != VXD_OK) {
            row->now = row->before;
        } else if (row->is_in_txn) {
            row->is_in_group = true;
        }
        row->is_in_txn = false;
    }
}

/* Writing ---------------------------------------------------------------------------------- */

static void bind_number(sqlite3_stmt *statement, int index, uint64_t value)
{
    (void)sqlite3_bind_int64(statement, index, (int64_t)value);
}

static void bind_bytes(sqlite3_stmt *statement, int index, const void *bytes,
                       size_t n_bytes)
{
    (void)sqlite3_bind_blob64(statement, index, n_bytes > 0 ? bytes : "", n_bytes,
                              SQLITE_STATIC);
}

static void bind_range(sqlite3_stmt *statement, uint32_t family, uint64_t first,
                       uint64_t last)
{
    (void)sqlite3_bind_int64(statement, 1, vxd_database_row_id(family, first));
    (void)sqlite3_bind_int64(statement, 2, vxd_database_row_id(family, last));
}

static enum vxd_status write_meta(struct vxd_journal *journal, const char *key,
                                  uint64_t value, struct vxd_err *err)
{
    sqlite3_stmt *statement = journal->statements[VXD_SQL_META];

    (void)sqlite3_bind_text(statement, 1, key, -1, SQLITE_STATIC);
    bind_number(statement, 2, value);
    return vxd_journal_run(journal, VXD_SQL_META, err);
}

static enum vxd_status write_family(struct vxd_journal *journal,
                                    const struct vxd_change *change, struct vxd_err *err)
{
    enum vxd_status status;
    sqlite3_stmt *statement = journal->statements[VXD_SQL_PUT_FAMILY];
    struct vxd_journal_family family = {.id = change->family,
                                        .fsync = change->fsync,
                                        .max_bytes = change->max_bytes,
                                        .epoch = change->epoch,
                                        .spec = change->bytes,
                                        .n_spec_bytes = change->n_bytes};

    memcpy(family.name, change->name, sizeof family.name);
    bind_number(statement, 1, family.id);
    (void)sqlite3_bind_text(statement, 2, change->name, -1, SQLITE_STATIC);
    bind_number(statement, 3, (uint64_t)family.fsync);
    bind_number(statement, 4, family.max_bytes);
    bind_number(statement, 5, family.epoch);
    bind_bytes(statement, 6, change->bytes, change->n_bytes);
    bind_number(statement, 7, vxd_database_family_crc(&family));
    VXD_TRY(vxd_journal_run(journal, VXD_SQL_PUT_FAMILY, err));
    VXD_TRY(write_meta(journal, "next_family", (uint64_t)family.id + 1, err));
out:
    return status;
}

static enum vxd_status write_drop(struct vxd_journal *journal, uint32_t family,
                                  struct vxd_err *err)
{
    static const enum vxd_statement steps[] = {VXD_SQL_DROP_FAMILY, VXD_SQL_DROP_ITEMS,
                                               VXD_SQL_MARK_DROPPED};
    enum vxd_status status = VXD_OK;

    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        bind_number(journal->statements[steps[i]], 1, family);
        VXD_TRY(vxd_journal_run(journal, steps[i], err));
    }
out:
    return status;
}

static enum vxd_status write_item(struct vxd_journal *journal,
                                  const struct vxd_change *change, struct vxd_err *err)
{
    enum vxd_statement which =
        change->kind == VXD_CHANGE_PUT_ITEM ? VXD_SQL_PUT_ITEM : VXD_SQL_DROP_ITEM;
    sqlite3_stmt *statement = journal->statements[which];
    struct vxd_journal_item item = {.family = change->family,
                                    .name = change->name,
                                    .bytes = change->bytes,
                                    .n_bytes = change->n_bytes};

    bind_number(statement, 1, change->family);
    bind_number(statement, 2, (uint64_t)change->item_kind);
    (void)sqlite3_bind_text(statement, 3, change->name, -1, SQLITE_STATIC);
    if (which == VXD_SQL_PUT_ITEM) {
        bind_number(statement, 4, vxd_database_item_crc(change->item_kind, &item));
        bind_bytes(statement, 5, change->bytes, change->n_bytes);
    }
    return vxd_journal_run(journal, which, err);
}

static enum vxd_status write_record(struct vxd_journal *journal,
                                    const struct vxd_change *change, struct vxd_err *err)
{
    sqlite3_stmt *statement = journal->statements[VXD_SQL_RECORD];

    (void)sqlite3_bind_int64(statement, 1,
                             vxd_database_row_id(change->family, change->sequence));
    bind_number(statement, 2, change->rules_version);
    bind_number(statement, 3, change->record_kind);
    bind_number(statement, 4, change->n_bytes);
    bind_number(statement, 5,
                vxd_database_record_crc(change->family, change->sequence,
                                        change->rules_version, change->record_kind,
                                        change->bytes, change->n_bytes));
    bind_bytes(statement, 6, change->bytes, change->n_bytes);
    return vxd_journal_run(journal, VXD_SQL_RECORD, err);
}

static enum vxd_status write_reply(struct vxd_journal *journal,
                                   const struct vxd_change *change, struct vxd_err *err)
{
    sqlite3_stmt *statement = journal->statements[VXD_SQL_PUT_REPLY];
    struct vxd_journal_reply reply = {.client = change->bytes,
                                      .n_client_bytes = change->n_client_bytes,
                                      .sequence = change->sequence,
                                      .unix_ns = change->unix_ns,
                                      .bytes = change->bytes + change->n_client_bytes,
                                      .n_bytes =
                                          change->n_bytes - change->n_client_bytes};

    memcpy(reply.digest, change->digest, sizeof reply.digest);
    bind_bytes(statement, 1, reply.client, reply.n_client_bytes);
    bind_number(statement, 2, reply.sequence);
    bind_bytes(statement, 3, change->digest, sizeof change->digest);
    (void)sqlite3_bind_int64(statement, 4, reply.unix_ns);
    bind_number(statement, 5, vxd_database_reply_crc(&reply));
    bind_bytes(statement, 6, reply.bytes, reply.n_bytes);
    return vxd_journal_run(journal, VXD_SQL_PUT_REPLY, err);
}

static enum vxd_status write_cut(struct vxd_journal *journal,
                                 const struct vxd_change *change, struct vxd_err *err)
{
    static const enum vxd_statement steps[] = {VXD_SQL_SET_ASIDE, VXD_SQL_CUT};
    enum vxd_status status = VXD_OK;

    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        bind_range(journal->statements[steps[i]], change->family, change->sequence + 1,
                   VXD_JOURNAL_MAX_SEQUENCE);
        VXD_TRY(vxd_journal_run(journal, steps[i], err));
    }
out:
    return status;
}

/* What is left of the journal after the last snapshot. */
static enum vxd_status sum_journal(struct vxd_journal *journal,
                                   struct vxd_family_row *row, struct vxd_err *err)
{
    sqlite3_stmt *statement = journal->statements[VXD_SQL_SUM];
    int result;

    bind_range(statement, row->id, row->now.snapshot_sequence + 1,
               VXD_JOURNAL_MAX_SEQUENCE);
    result = sqlite3_step(statement);
    if (result == SQLITE_ROW) {
        row->now.journal_bytes = (uint64_t)sqlite3_column_int64(statement, 0);
    }
    (void)sqlite3_reset(statement);
    return result == SQLITE_ROW ? VXD_OK
                                : vxd_database_fail(err, journal->db, result, "sum");
}

static enum vxd_status write_change(struct vxd_journal *journal,
                                    const struct vxd_change *change, struct vxd_err *err)
{
    sqlite3_stmt *statement;

    switch (change->kind) {
    case VXD_CHANGE_PUT_FAMILY:
        return write_family(journal, change, err);
    case VXD_CHANGE_DROP_FAMILY:
        return write_drop(journal, change->family, err);
    case VXD_CHANGE_PUT_ITEM:
    case VXD_CHANGE_DROP_ITEM:
        return write_item(journal, change, err);
    case VXD_CHANGE_RECORD:
        return write_record(journal, change, err);
    case VXD_CHANGE_PUT_REPLY:
        return write_reply(journal, change, err);
    case VXD_CHANGE_FORGET_REPLY:
        statement = journal->statements[VXD_SQL_FORGET_REPLY];
        bind_bytes(statement, 1, change->bytes, change->n_client_bytes);
        bind_number(statement, 2, change->sequence);
        return vxd_journal_run(journal, VXD_SQL_FORGET_REPLY, err);
    case VXD_CHANGE_CUT:
        return write_cut(journal, change, err);
    case VXD_CHANGE_META:
        return write_meta(journal, change->name, change->number, err);
    case VXD_CHANGE_NEED:
    case VXD_CHANGE_SNAPSHOT:
        break;
    }
    return VXD_OK;
}

enum vxd_status vxd_journal_write_txn(struct vxd_journal *journal,
                                      const struct vxd_journal_txn *txn,
                                      struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    for (const struct vxd_change *change = txn->first; change != NULL;
         change = change->next) {
        VXD_TRY(write_change(journal, change, err));
    }
out:
    return status;
}

/* How far the spool has come; it is as whole as the journal while both sequences are equal. */
static enum vxd_status write_spool(struct vxd_journal *journal, struct vxd_err *err)
{
    const struct vxd_spool *spool = &journal->spool_now;
    enum vxd_status status;

    if (spool->line != journal->spool.line) {
        VXD_TRY(write_meta(journal, "archive_line", spool->line, err));
        VXD_TRY(write_meta(journal, "archive_first", spool->first, err));
    }
    VXD_TRY(write_meta(journal, "archive_next", spool->next, err));
    VXD_TRY(write_meta(journal, "archive_unix_ns", (uint64_t)spool->unix_ns, err));
    VXD_TRY(write_meta(journal, "archive_sequence", journal->next_sequence, err));
out:
    return status;
}

enum vxd_status vxd_journal_write_states(struct vxd_journal *journal, struct vxd_err *err)
{
    sqlite3_stmt *statement = journal->statements[VXD_SQL_PUT_STATE];
    enum vxd_status status = VXD_OK;

    for (size_t i = 0; i < journal->n_rows; i++) {
        struct vxd_family_row *row = &journal->rows[i];

        if (!row->is_in_group || !row->now.exists) {
            continue;
        }
        if (row->needs_sum) {
            VXD_TRY(sum_journal(journal, row, err));
        }
        bind_number(statement, 1, row->id);
        bind_number(statement, 2, row->now.last_sequence);
        bind_number(statement, 3, row->now.snapshot_sequence);
        bind_number(statement, 4, row->now.kept_from);
        bind_number(statement, 5, row->now.journal_bytes);
        bind_number(statement, 6, row->now.open_tail ? 1 : 0);
        bind_number(statement, 7, vxd_database_state_crc(row->id, &row->now));
        VXD_TRY(vxd_journal_run(journal, VXD_SQL_PUT_STATE, err));
    }
    VXD_TRY(write_meta(journal, "sequence", journal->next_sequence, err));
    if (journal->spool_now.is_open) {
        VXD_TRY(write_spool(journal, err));
    }
    status = write_meta(journal, "run_ns", vxd_journal_get_run_ns(journal), err);
out:
    return status;
}
