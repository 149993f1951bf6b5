// SPDX-License-Identifier: Apache-2.0
/* A copy of the database for backups. It is made from the writer's own connection, so SQLite writes
 * what the writer changes meanwhile to the copy as well, and the copy never starts again. In
 * return the copy's connection, too, is used under the connection's lock only. */
#include <sched.h>

#include "server/durable/journal/journal_internal.h"

enum {
    SLICE_PAGES = 256, /* copied between two commits */
    PAGE_BYTES = 4096
};

bool vxd_journal_claim_copy(struct vxd_journal *journal)
{
    bool is_ours;

    (void)pthread_mutex_lock(&journal->lock);
    is_ours = !journal->is_copying;
    journal->is_copying = true;
    (void)pthread_mutex_unlock(&journal->lock);
    return is_ours;
}

void vxd_journal_release_copy(struct vxd_journal *journal)
{
    (void)pthread_mutex_lock(&journal->lock);
    journal->is_copying = false;
    (void)pthread_mutex_unlock(&journal->lock);
}

enum vxd_status vxd_journal_copy_to(struct vxd_journal *journal, sqlite3 *copy,
                                    uint64_t *n_bytes, struct vxd_err *err)
{
    sqlite3_backup *pages;
    int result;

    (void)pthread_mutex_lock(&journal->db_lock);
    pages = sqlite3_backup_init(copy, "main", journal->db, "main");
    if (pages == NULL) {
        enum vxd_status status =
            vxd_database_fail(err, copy, sqlite3_errcode(copy), "begin the backup");

        (void)pthread_mutex_unlock(&journal->db_lock);
        return status;
    }
    while ((result = sqlite3_backup_step(pages, SLICE_PAGES)) == SQLITE_OK) {
        (void)pthread_mutex_unlock(&journal->db_lock);
        (void)sched_yield();
        (void)pthread_mutex_lock(&journal->db_lock);
    }
    *n_bytes = (uint64_t)sqlite3_backup_pagecount(pages) * PAGE_BYTES;
    (void)sqlite3_backup_finish(pages);
    (void)pthread_mutex_unlock(&journal->db_lock);
    return result == SQLITE_DONE ? VXD_OK
                                 : vxd_database_fail(err, NULL, result, "copy it");
}
