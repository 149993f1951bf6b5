// SPDX-License-Identifier: Apache-2.0
/* A copy of a data directory while it is in use. The copy is a data directory itself: it is
 * restored by being put in the place of the old one, or by data_dir naming it. A server that
 * starts from it raises the epochs, since later changes may have been acknowledged. */
#ifndef VXD_SERVER_DURABLE_MAINTENANCE_BACKUP_H
#define VXD_SERVER_DURABLE_MAINTENANCE_BACKUP_H

#include "proto/base/name.h"
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
 * files that came meanwhile, then the files of saved maps and the list of loaded networks. What is
 * committed before the call is in it. Synced when it returns; on failure what was made is removed as far as can be. Blocking;
 * one at a time a journal.
 *
 * errors  ALREADY_EXISTS (path), RESOURCE_EXHAUSTED (disk full), UNAVAILABLE,
 *         FAILED_PRECONDITION (another backup runs) */
enum vxd_status vxd_backup(const struct vxd_data_dir *dir, struct vxd_journal *journal,
                           const char *path, struct vxd_backup_info *out,
                           struct vxd_err *err);

struct vxd_backup_entry {
    char name[VXD_NAME_BYTES];
    uint64_t n_database_bytes;
    uint64_t n_snapshot_bytes;
    size_t n_snapshots;
    uint64_t n_file_bytes; /* of saved maps */
    size_t n_files;
};

/* Lists the backups in a folder, by name, and how much is in each: what is whole, not what a backup
 * that was interrupted has left. No folder is no backups.
 * errors  as vxd_file_fail */
enum vxd_status vxd_backup_list(const struct vxd_data_dir *dir, const char *folder,
                                struct vxd_backup_entry *out, size_t capacity, size_t *n,
                                struct vxd_err *err);

/* Removes the backup at a path; *existed is false where there is none. It has lost its name before
 * anything of it is removed, so that one that is removed in part is none; making another one of the
 * name removes the rest.
 *
 * errors  FAILED_PRECONDITION  a daemon uses it, or a backup runs
 *         UNAVAILABLE          the disk, or files in it that are no backup's and stay */
enum vxd_status vxd_backup_drop(const struct vxd_data_dir *dir,
                                struct vxd_journal *journal, const char *path,
                                bool *existed, struct vxd_err *err);

#endif
