// SPDX-License-Identifier: Apache-2.0
/* Reading back what is committed, on the writer's connection: it waits meanwhile. */
#include "server/durable/journal/journal_internal.h"

enum {
    RECORDS_AT_ONCE = 64 /* then the writer may go on */
};

static enum vxd_status prepare(struct vxd_journal *journal, const char *sql,
                               sqlite3_stmt **out, struct vxd_err *err)
{
    int result = sqlite3_prepare_v2(journal->db, sql, -1, out, NULL);

    return result == SQLITE_OK ? VXD_OK
                               : vxd_database_fail(err, journal->db, result, "read it");
}

/* True for a row; at the end, or where there is none to be had, *status says which. */
static bool step(struct vxd_journal *journal, sqlite3_stmt *row, enum vxd_status *status,
                 struct vxd_err *err)
{
    int result;

    if (*status != VXD_OK) {
        return false;
    }
    result = sqlite3_step(row);
    if (result != SQLITE_ROW && result != SQLITE_DONE) {
        *status = vxd_database_fail(err, journal->db, result, "read it");
    }
    return result == SQLITE_ROW;
}

enum vxd_status vxd_journal_read_families(
    struct vxd_journal *journal,
    enum vxd_status (*each)(void *user, const struct vxd_journal_family *family,
                            struct vxd_err *err),
    void *user, struct vxd_err *err)
{
    struct vxd_journal_family family;
    struct vxd_family_state state;
    sqlite3_stmt *row = NULL;
    enum vxd_status status;

    (void)pthread_mutex_lock(&journal->db_lock);
    status = prepare(journal, "SELECT " VXD_FAMILY_COLUMNS " FROM families ORDER BY id",
                     &row, err);
    while (step(journal, row, &status, err)) {
        const char *fault = vxd_database_row_family(row, &family, &state);

        status = fault == NULL
                     ? each(user, &family, err)
                     : vxd_fail(err, VXD_DATA_LOSS, "data_dir",
                                "voxeld.db: family %u is damaged: %s", family.id, fault);
    }
    (void)sqlite3_finalize(row);
    (void)pthread_mutex_unlock(&journal->db_lock);
    return status;
}

enum vxd_status vxd_journal_read_items(
    struct vxd_journal *journal, enum vxd_journal_item_kind kind, uint32_t family,
    enum vxd_status (*each)(void *user, const struct vxd_journal_item *item,
                            struct vxd_err *err),
    void *user, uint64_t *n_damaged, struct vxd_err *err)
{
    struct vxd_journal_item item;
    sqlite3_stmt *row = NULL;
    enum vxd_status status;

    (void)pthread_mutex_lock(&journal->db_lock);
    status = prepare(journal,
                     "SELECT " VXD_ITEM_COLUMNS " FROM items WHERE family = ?1"
                     " AND kind = ?2 ORDER BY name",
                     &row, err);
    (void)sqlite3_bind_int64(row, 1, family);
    (void)sqlite3_bind_int64(row, 2, (int64_t)kind);
    while (step(journal, row, &status, err)) {
        const char *fault = vxd_database_row_item(row, &kind, &item);

        if (fault != NULL && n_damaged != NULL &&
            vxd_database_was_ages(row, kind, &item)) {
            (*n_damaged)++;
            continue;
        }
        status = fault == NULL
                     ? each(user, &item, err)
                     : vxd_fail(err, VXD_DATA_LOSS, "data_dir",
                                "voxeld.db: item %.63s of family %u is damaged: "
                                "%s",
                                item.name, family, fault);
    }
    (void)sqlite3_finalize(row);
    (void)pthread_mutex_unlock(&journal->db_lock);
    return status;
}

/* Up to RECORDS_AT_ONCE from *next on; *is_end when there are no more of them. */
static enum vxd_status
read_some(struct vxd_journal *journal, uint32_t family, uint64_t last,
          enum vxd_status (*each)(void *user, const struct vxd_journal_record *record,
                                  struct vxd_err *err),
          void *user, uint64_t *next, bool *is_end, struct vxd_err *err)
{
    struct vxd_journal_record record;
    sqlite3_stmt *row = NULL;
    enum vxd_status status;
    int n = 0;

    (void)pthread_mutex_lock(&journal->db_lock);
    status =
        prepare(journal,
                "SELECT " VXD_RECORD_COLUMNS " FROM records WHERE id BETWEEN ?1 AND ?2"
                " ORDER BY id",
                &row, err);
    (void)sqlite3_bind_int64(row, 1, vxd_database_row_id(family, *next));
    (void)sqlite3_bind_int64(row, 2, vxd_database_row_id(family, last));
    for (; n < RECORDS_AT_ONCE && step(journal, row, &status, err); n++) {
        const char *fault = vxd_database_row_record(row, &record);

        if (record.sequence != *next) {
            *is_end = true; /* a gap */
            break;
        }
        status = fault == NULL
                     ? each(user, &record, err)
                     : vxd_fail(err, VXD_DATA_LOSS, "data_dir",
                                "voxeld.db: record %llu of family %u is damaged: %s",
                                (unsigned long long)record.sequence, family, fault);
        if (status == VXD_OK) {
            (*next)++;
        }
    }
    *is_end = *is_end || n < RECORDS_AT_ONCE;
    (void)sqlite3_finalize(row);
    (void)pthread_mutex_unlock(&journal->db_lock);
    return status;
}

enum vxd_status vxd_journal_read_records(
    struct vxd_journal *journal, uint32_t family, uint64_t first, uint64_t last,
    enum vxd_status (*each)(void *user, const struct vxd_journal_record *record,
                            struct vxd_err *err),
    void *user, uint64_t *next, struct vxd_err *err)
{
    uint64_t at = first;
    bool is_end = first > last || last > VXD_JOURNAL_MAX_SEQUENCE;
    enum vxd_status status = VXD_OK;

    while (!is_end && status == VXD_OK) {
        status = read_some(journal, family, last, each, user, &at, &is_end, err);
    }
    if (next != NULL) {
        *next = at;
    }
    return status;
}

enum vxd_status vxd_journal_read_replies(
    struct vxd_journal *journal,
    enum vxd_status (*each)(void *user, const struct vxd_journal_reply *reply,
                            struct vxd_err *err),
    void *user, uint64_t *n_damaged, struct vxd_err *err)
{
    struct vxd_journal_reply reply;
    sqlite3_stmt *row = NULL;
    enum vxd_status status;

    *n_damaged = 0;
    (void)pthread_mutex_lock(&journal->db_lock);
    status = prepare(journal,
                     "SELECT " VXD_REPLY_COLUMNS " FROM replies"
                     " ORDER BY unix_ns, client, sequence",
                     &row, err);
    while (step(journal, row, &status, err)) {
        if (vxd_database_row_reply(row, &reply) == NULL) {
            status = each(user, &reply, err);
        } else {
            (*n_damaged)++;
        }
    }
    (void)sqlite3_finalize(row);
    (void)pthread_mutex_unlock(&journal->db_lock);
    return status;
}
