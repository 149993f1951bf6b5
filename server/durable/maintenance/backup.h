// SPDX-License-Identifier: Apache-2.0
/* A copy of a data directory while it is in use. The copy is a data directory itself: it is
 * restored by being put in the place of the old one, or by data_dir naming it. A server that
 * starts from it raises the epochs, since later changes may have been acknowledged. */
#ifndef VXD_SERVER_DURABLE_MAINTENANCE_BACKUP_H
#define VXD_SERVER_DURABLE_MAINTENANCE_BACKUP_H

#include "server/durable/journal/journal.h"

struct vxd_backup_info {
    uint64_t n_database_bytes;
    uint64_t n_snapshot_bytes;
    size_t n_snapshots;
    size_t n_linked; /* of them, hard links; the others were copied */
};

/* Makes a directory with mode 0700 beside `path` (whose parent must exist; it must not), as
 * .NAME.new, fills it, syncs it and renames it to `path`, so that a backup that is interrupted is
 * none; the next one of the name removes it. The snapshot files come first, as hard links or
 * where that cannot be as copies, then the database, in slices between commits, then snapshot
 * files that came meanwhile. What is committed before the call is
 * in it. Synced when it returns; on failure what was made is removed as far as can be. Blocking;
 * one at a time a journal.
 *
 * errors  ALREADY_EXISTS (path), RESOURCE_EXHAUSTED (disk full), UNAVAILABLE,
 *         FAILED_PRECONDITION (another backup runs) */
enum vxd_status vxd_backup(const struct vxd_data_dir *dir, struct vxd_journal *journal,
                           const char *path, struct vxd_backup_info *out,
                           struct vxd_err *err);

#endif
