// SPDX-License-Identifier: Apache-2.0
/* Files that nobody will ask for: of families that were dropped, by a process that ended before
 * it removed them, and of families that the journal never had (it was lost and made anew, or is
 * an older copy), whose numbers it will give out again. */
#include <errno.h>

#include "server/durable/snapshot/snapshot.h"
#include "server/durable/recovery/snapshot_sweep.h"

struct sweep {
    const struct vxd_data_dir *dir;
    struct vxd_journal *journal;
    struct vxd_snapshot_swept *out;
    struct vxd_err *err;
    enum vxd_status status;
};

static void sweep_entry(void *arg, const char *name)
{
    struct sweep *sweep = arg;
    const struct vxd_file_ops *ops = sweep->dir->ops;
    char path[VXD_DURABLE_PATH_BYTES];
    char aside[VXD_DURABLE_PATH_BYTES];
    uint64_t sequence;
    uint32_t family;
    bool was_there;
    int result;

    if (sweep->status != VXD_OK || !vxd_snapshot_parse_name(name, &family, &sequence)) {
        return;
    }
    if (vxd_journal_knows_family(sweep->journal, family, &was_there)) {
        return;
    }
    vxd_snapshot_path(sweep->dir, family, sequence, "", path);
    vxd_snapshot_path(sweep->dir, family, sequence, ".orphan", aside);
    result =
        was_there ? ops->unlink(ops->user, path) : ops->rename(ops->user, path, aside);
    if (result != 0 && result != -ENOENT) {
        sweep->status =
            vxd_file_fail(sweep->err, result, was_there ? "remove" : "rename", path);
        return;
    }
    sweep->out->n_removed += was_there ? 1 : 0;
    sweep->out->n_set_aside += was_there ? 0 : 1;
}

enum vxd_status vxd_snapshot_sweep(const struct vxd_data_dir *dir,
                                   struct vxd_journal *journal,
                                   struct vxd_snapshot_swept *out, struct vxd_err *err)
{
    struct sweep sweep = {dir, journal, out, err, VXD_OK};
    char folder[VXD_DURABLE_PATH_BYTES];
    int result;

    *out = (struct vxd_snapshot_swept){0};
    (void)snprintf(folder, sizeof folder, "%s/snapshots", dir->path);
    result = dir->ops->list(dir->ops->user, folder, sweep_entry, &sweep);
    if (result != 0) {
        return vxd_file_fail(err, result, "read", folder);
    }
    /* Before their numbers are another family's. */
    if (sweep.status == VXD_OK && out->n_set_aside > 0) {
        sweep.status = vxd_file_sync_directory(dir->ops, folder, err);
    }
    return sweep.status;
}
