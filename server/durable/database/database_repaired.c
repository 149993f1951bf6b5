// SPDX-License-Identifier: Apache-2.0
/* A repaired database takes the place of one that is not whole, which has two names: voxeld.db and
 * its WAL. No two names change at once, and either without the other is another database, which
 * may look whole. So the new one is made beside, to the end, and
 *
 *     voxeld.db.new -> voxeld.db.repaired     the repair is done, by whoever finds this name:
 *     voxeld.db-wal -> voxeld.db.damaged.N-wal
 *     voxeld.db     -> voxeld.db.damaged.N
 *     voxeld.db.repaired -> voxeld.db
 *
 * with a sync of the directory behind each, so that a loss of power leaves one of these steps.
 * Before the first the old database stands as it stood; behind it a repair or a start, which both
 * come here before they open anything, goes on where the last one was cut off. */
#include <errno.h>
#include <fcntl.h>

#include "server/durable/database/database.h"

enum {
    MAX_ASIDE = 1000
};

static enum vxd_status exists(const struct vxd_file_ops *ops, const char *path, bool *out,
                              struct vxd_err *err)
{
    int file = ops->open(ops->user, path, O_RDONLY, 0);

    *out = file >= 0;
    if (file < 0 && file != -ENOENT) {
        return vxd_file_fail(err, file, "open", path);
    }
    if (file >= 0) {
        (void)ops->close(ops->user, file);
    }
    return VXD_OK;
}

static enum vxd_status move(const struct vxd_data_dir *dir, const char *from,
                            const char *to, struct vxd_err *err)
{
    int result = dir->ops->rename(dir->ops->user, from, to);

    return result == 0 ? vxd_file_sync_directory(dir->ops, dir->path, err)
                       : vxd_file_fail(err, result, "rename", from);
}

/* The first number that neither the database nor, where there is one, its WAL would take from
 * another. Where the WAL has gone before, in a run that was cut off, that is the one it has. */
static enum vxd_status find_number(const struct vxd_data_dir *dir, bool has_wal, int *out,
                                   struct vxd_err *err)
{
    char name[VXD_DURABLE_PATH_BYTES];
    enum vxd_status status;

    for (int i = 1; i <= MAX_ASIDE; i++) {
        bool is_taken;

        (void)snprintf(name, sizeof name, "%s/voxeld.db.damaged.%d", dir->path, i);
        VXD_TRY(exists(dir->ops, name, &is_taken, err));
        if (!is_taken && has_wal) {
            (void)snprintf(name, sizeof name, "%s/voxeld.db.damaged.%d-wal", dir->path,
                           i);
            VXD_TRY(exists(dir->ops, name, &is_taken, err));
        }
        if (!is_taken) {
            *out = i;
            return VXD_OK;
        }
    }
    status =
        vxd_fail(err, VXD_FAILED_PRECONDITION, "data_dir",
                 "there are %d files voxeld.db.damaged.N: move some away", MAX_ASIDE);
out:
    return status;
}

static enum vxd_status put_aside(const struct vxd_data_dir *dir, const char *path,
                                 int *number, struct vxd_err *err)
{
    char wal[VXD_DURABLE_PATH_BYTES];
    char to[VXD_DURABLE_PATH_BYTES];
    bool has_database;
    bool has_wal;
    enum vxd_status status;

    (void)snprintf(wal, sizeof wal, "%s/voxeld.db-wal", dir->path);
    VXD_TRY(exists(dir->ops, path, &has_database, err));
    VXD_TRY(exists(dir->ops, wal, &has_wal, err));
    VXD_TRY(find_number(dir, has_wal, number, err));
    if (has_wal) {
        (void)snprintf(to, sizeof to, "%s/voxeld.db.damaged.%d-wal", dir->path, *number);
        VXD_TRY(move(dir, wal, to, err));
    }
    if (has_database) {
        (void)snprintf(to, sizeof to, "%s/voxeld.db.damaged.%d", dir->path, *number);
        VXD_TRY(move(dir, path, to, err));
    }
out:
    return status;
}

enum vxd_status vxd_database_take_repaired(const struct vxd_data_dir *dir, int *aside,
                                           struct vxd_err *err)
{
    char repaired[VXD_DURABLE_PATH_BYTES];
    char path[VXD_DURABLE_PATH_BYTES];
    bool is_there;
    enum vxd_status status;

    *aside = 0;
    (void)snprintf(repaired, sizeof repaired, "%s/" VXD_DATABASE_REPAIRED, dir->path);
    (void)snprintf(path, sizeof path, "%s/voxeld.db", dir->path);
    VXD_TRY(exists(dir->ops, repaired, &is_there, err));
    if (is_there) {
        VXD_TRY(put_aside(dir, path, aside, err));
        VXD_TRY(move(dir, repaired, path, err));
    }
out:
    return status;
}

enum vxd_status vxd_database_put_repaired(const struct vxd_data_dir *dir,
                                          const char *made, int *aside,
                                          struct vxd_err *err)
{
    char repaired[VXD_DURABLE_PATH_BYTES];
    enum vxd_status status;

    (void)snprintf(repaired, sizeof repaired, "%s/" VXD_DATABASE_REPAIRED, dir->path);
    VXD_TRY(move(dir, made, repaired, err));
    VXD_TRY(vxd_database_take_repaired(dir, aside, err));
out:
    return status;
}
