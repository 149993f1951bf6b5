// SPDX-License-Identifier: Apache-2.0
/* The data directory:
 *
 *     lock          whoever holds it (flock) owns the rest; its text is the process id
 *     voxeld.db     SQLite, with -wal beside it: catalogue, journal, replies (journal.h)
 *     voxeld.mark   how far the journal had come when its last changes were acknowledged
 *                   (database_mark.c)
 *     networks      which networks were loaded (server/registry/networks/networks_kept.c)
 *     snapshots/    FAMILY.SEQUENCE.vxs (snapshot.h), both as hexadecimal numbers; .vxs.bad were
 *                   found damaged, .vxs.orphan are of families that the journal never had
 *     voxeld.db.damaged.N, with its -wal; voxeld.db-wal.orphan
 *                   what repairs, and new databases, put aside
 *     voxeld.db.new, voxeld.db.repaired
 *                   one that is being made, and one that a repair has made and not yet put in its
 *                   place, which the next start or repair does (database_repaired.c)
 *
 * Made with mode 0700. */
#ifndef VXD_SERVER_DURABLE_DATA_DIR_DATA_DIR_H
#define VXD_SERVER_DURABLE_DATA_DIR_DATA_DIR_H

#include "server/durable/data_dir/file_ops.h"

enum {
    VXD_DATA_DIR_BYTES = 512
};

struct vxd_data_dir {
    const struct vxd_file_ops *ops;
    int lock; /* -1 = not open */
    char path[VXD_DATA_DIR_BYTES];
};

/* Makes what is missing (the parent must exist), takes the lock and syncs the directory, so that
 * what is made in it later is found again. Removes what a process that was killed has left half
 * made.
 *
 * in      ops   NULL = the system's; borrowed until the close
 * errors  FAILED_PRECONDITION  another process has it; names it where it is known
 *         INVALID_ARGUMENT     the path is too long, cannot be made or is no directory
 *         others of vxd_file_fail */
enum vxd_status vxd_data_dir_open(const struct vxd_file_ops *ops, const char *path,
                                  struct vxd_data_dir *out, struct vxd_err *err);

/* Lets go of the lock; the process's end does so too. One that is not open is fine if it was
 * zeroed with lock = -1. */
void vxd_data_dir_close(struct vxd_data_dir *dir);

#endif
