// SPDX-License-Identifier: Apache-2.0
/* The journal against its mark: at the start, and after each commit. */
#include <string.h>

#include "server/durable/journal/journal_internal.h"
#include "server/observe/log/log.h"

enum {
    LOST = 2 /* the value of `restored` after a loss that the mark showed */
};

/* The directory of older programs gets a mark. */
static enum vxd_status add_mark(struct vxd_journal *journal, struct vxd_err *err)
{
    const struct vxd_mark first = {.file = -1,
                                   .generation = journal->generation,
                                   .written = journal->sequence,
                                   .synced = journal->sequence};
    enum vxd_status status;

    VXD_TRY(vxd_mark_make(journal->dir->ops, journal->dir->path, &first, err));
    status =
        vxd_mark_open(journal->dir->ops, journal->dir->path, false, &journal->mark, err);
out:
    return status;
}

/* From now on a directory without a mark is refused: the database says so outside of the WAL. That
 * comes behind the mark's making, so a start may find a mark of which the database does not know:
 * one that ended in between has made it. */
static enum vxd_status note_mark(struct vxd_journal *journal, struct vxd_err *err)
{
    int result;
    enum vxd_status status;

    VXD_TRY(vxd_file_sync_directory(journal->dir->ops, journal->dir->path, err));
    VXD_TRY(vxd_journal_set_full(journal, true, err));
    VXD_TRY(vxd_database_set_meta(journal->db, "marked", 1, err));
    result = sqlite3_wal_checkpoint_v2(journal->db, "main", SQLITE_CHECKPOINT_PASSIVE,
                                       NULL, NULL);
    if (result != SQLITE_OK) {
        VXD_TRY(vxd_database_fail(err, journal->db, result,
                                  "copy the WAL into the database"));
    }
out:
    return status;
}

/* A WAL that ends before its time leaves old pages beside new ones where it was copied in part. */
static enum vxd_status check_pages(struct vxd_journal *journal, struct vxd_err *err)
{
    sqlite3_stmt *row = NULL;
    const unsigned char *text = NULL;
    enum vxd_status status = VXD_OK;
    int result = sqlite3_prepare_v2(journal->db, "PRAGMA quick_check(1)", -1, &row, NULL);

    if (result == SQLITE_OK && sqlite3_step(row) == SQLITE_ROW) {
        text = sqlite3_column_text(row, 0);
    }
    if (text == NULL || strcmp((const char *)text, "ok") != 0) {
        status =
            vxd_fail(err, VXD_DATA_LOSS, "data_dir",
                     "voxeld.db is behind its mark, and damaged: %.140s",
                     text != NULL ? (const char *)text : sqlite3_errmsg(journal->db));
    }
    (void)sqlite3_finalize(row);
    return status;
}

/* The start goes on from what is there. No epoch is given out again, and the loss stays noted in
 * the database until every family has another one. */
static enum vxd_status note_loss(struct vxd_journal *journal, uint64_t sequence,
                                 struct vxd_journal_found *found, struct vxd_err *err)
{
    char text[24];
    enum vxd_status status;

    VXD_TRY(check_pages(journal, err));
    found->n_lost = sequence - journal->sequence;
    journal->stats.n_lost = found->n_lost;
    (void)snprintf(text, sizeof text, "%llu", (unsigned long long)found->n_lost);
    vxd_log(VXD_LOG_ERROR, "the journal ends before changes that were acknowledged",
            "changes", text);
    journal->sequence = sequence;
    VXD_TRY(vxd_journal_set_full(journal, true, err));
    VXD_TRY(vxd_database_execute(journal->db, "BEGIN IMMEDIATE", err));
    VXD_TRY(vxd_database_set_meta(journal->db, "restored", LOST, err));
    VXD_TRY(vxd_database_set_meta(journal->db, "sequence", sequence, err));
    VXD_TRY(vxd_database_set_meta(journal->db, "epoch", journal->epoch, err));
    VXD_TRY(vxd_database_execute(journal->db, "COMMIT", err));
out:
    return status;
}

enum vxd_status vxd_journal_open_mark(struct vxd_journal *journal, const char *boot_id,
                                      struct vxd_journal_found *found,
                                      struct vxd_err *err)
{
    struct vxd_mark *mark = &journal->mark;
    struct vxd_err fault = {0};
    uint64_t is_marked;
    uint64_t restored;
    uint64_t sequence;
    enum vxd_status status;

    VXD_TRY(vxd_database_get_meta(journal->db, "marked", &is_marked, err));
    VXD_TRY(vxd_database_get_meta(journal->db, "sequence", &journal->sequence, err));
    VXD_TRY(vxd_database_get_meta(journal->db, "restored", &restored, err));
    found->is_behind_mark = restored == LOST;
    status = vxd_mark_open(journal->dir->ops, journal->dir->path, false, mark, &fault);
    if (status == VXD_NOT_FOUND && is_marked == 0) {
        VXD_TRY(add_mark(journal, err));
    } else if (status == VXD_NOT_FOUND) {
        VXD_TRY(vxd_fail(err, VXD_DATA_LOSS, "data_dir",
                         "voxeld.mark is missing: whether the journal is whole cannot be "
                         "known"));
    } else if (status != VXD_OK) {
        VXD_TRY(vxd_fail(err, status, fault.field, "%s", fault.message));
    }
    if (is_marked == 0) {
        VXD_TRY(note_mark(journal, err));
    }
    journal->epoch =
        mark->generation > journal->epoch ? mark->generation : journal->epoch;
    sequence = boot_id[0] != '\0' && strcmp(boot_id, mark->boot_id) == 0 ? mark->written
                                                                         : mark->synced;
    if (sequence > journal->sequence) {
        VXD_TRY(note_loss(journal, sequence, found, err));
        found->is_behind_mark = true;
    }
    /* The next number is above all that the mark has, or it would not count. */
    if (mark->written > journal->sequence) {
        journal->sequence = mark->written;
    }
    journal->generation = journal->epoch;
    found->generation = journal->epoch;
    (void)snprintf(mark->boot_id, sizeof mark->boot_id, "%s", boot_id);
out:
    return status;
}

enum vxd_status vxd_journal_write_mark(struct vxd_journal *journal, bool is_synced,
                                       struct vxd_err *err)
{
    struct vxd_mark *mark = &journal->mark;
    uint64_t synced = mark->synced;
    enum vxd_status status;

    mark->generation = journal->generation;
    mark->written = journal->sequence;
    mark->synced = is_synced ? journal->sequence : synced;
    VXD_TRY(vxd_mark_write(mark, err));
    if (is_synced) {
        VXD_TRY(vxd_mark_sync(mark, err));
    }
out:
    if (status != VXD_OK) {
        mark->synced = synced;
    }
    return status;
}
