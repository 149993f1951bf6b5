// SPDX-License-Identifier: Apache-2.0
/* The families that the writer keeps in memory. */
#include <stdlib.h>
#include <string.h>

#include "server/durable/journal/journal_internal.h"

struct vxd_family_row *vxd_journal_find_row(struct vxd_journal *journal, uint32_t id)
{
    for (size_t i = 0; i < journal->n_rows; i++) {
        if (journal->rows[i].id == id) {
            return &journal->rows[i];
        }
    }
    return NULL;
}

struct vxd_family_row *vxd_journal_make_row(struct vxd_journal *journal, uint32_t id)
{
    struct vxd_family_row *row = vxd_journal_find_row(journal, id);

    if (row != NULL) {
        return row;
    }
    if (journal->n_rows == journal->rows_capacity) {
        size_t capacity = 2 * journal->rows_capacity + 16;
        struct vxd_family_row *rows = realloc(journal->rows, capacity * sizeof *rows);

        if (rows == NULL) {
            return NULL;
        }
        journal->rows = rows;
        journal->rows_capacity = capacity;
    }
    row = &journal->rows[journal->n_rows++];
    memset(row, 0, sizeof *row);
    row->id = id;
    return row;
}

bool vxd_journal_remember_dropped(struct vxd_journal *journal, uint32_t family)
{
    if (journal->n_dropped == journal->dropped_capacity) {
        size_t capacity = 2 * journal->dropped_capacity + 16;
        uint32_t *dropped = realloc(journal->dropped, capacity * sizeof *dropped);

        if (dropped == NULL) {
            return false;
        }
        journal->dropped = dropped;
        journal->dropped_capacity = capacity;
    }
    journal->dropped[journal->n_dropped++] = family;
    return true;
}

static enum vxd_status load_row(struct vxd_journal *journal, sqlite3_stmt *row,
                                const struct vxd_journal_found *found,
                                struct vxd_err *err)
{
    struct vxd_journal_family family;
    struct vxd_family_state state;
    const char *fault = vxd_database_row_family(row, &family, &state);
    struct vxd_family_row *made;

    if (fault != NULL) {
        return vxd_fail(err, VXD_DATA_LOSS, "data_dir",
                        "voxeld.db: row %lld of the catalogue is damaged: %s",
                        (long long)sqlite3_column_int64(row, 0), fault);
    }
    made = vxd_journal_make_row(journal, family.id);
    if (made == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a family");
    }
    made->committed = state;
    made->now = state;
    made->trimmed_to = 0;
    made->may_have_lost = found->is_power_lost && state.open_tail;
    return VXD_OK;
}

static enum vxd_status load(struct vxd_journal *journal, const char *sql,
                            const struct vxd_journal_found *found, struct vxd_err *err)
{
    sqlite3_stmt *row = NULL;
    int result = sqlite3_prepare_v2(journal->db, sql, -1, &row, NULL);
    enum vxd_status status = VXD_OK;

    while (result == SQLITE_OK && status == VXD_OK &&
           (result = sqlite3_step(row)) == SQLITE_ROW) {
        result = SQLITE_OK;
        if (found != NULL) {
            status = load_row(journal, row, found, err);
        } else if (!vxd_journal_remember_dropped(
                       journal, (uint32_t)sqlite3_column_int64(row, 0))) {
            status =
                vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for families");
        }
    }
    if (status == VXD_OK && result != SQLITE_DONE) {
        status = vxd_database_fail(err, journal->db, result, "read the catalogue");
    }
    (void)sqlite3_finalize(row);
    return status;
}

enum vxd_status vxd_journal_load_rows(struct vxd_journal *journal,
                                      const struct vxd_journal_found *found,
                                      struct vxd_err *err)
{
    enum vxd_status status;

    VXD_TRY(load(journal, "SELECT " VXD_FAMILY_COLUMNS " FROM families ORDER BY id",
                 found, err));
    VXD_TRY(load(journal, "SELECT family FROM dropped", NULL, err));
out:
    return status;
}
