// SPDX-License-Identifier: Apache-2.0
/* What starts clear away of snapshot files, besides those half written (data_dir.h). */
#ifndef VXD_SERVER_DURABLE_RECOVERY_SNAPSHOT_SWEEP_H
#define VXD_SERVER_DURABLE_RECOVERY_SNAPSHOT_SWEEP_H

#include "server/durable/journal/journal.h"
#include "server/durable/snapshot/snapshot.h"

struct vxd_snapshot_swept {
    size_t n_removed; /* of families that were dropped */
    size_t
        n_set_aside; /* of families that the journal never had: renamed to .orphan, so that
                         * they are not taken for those of a family that gets their number */
};

/* Behind vxd_journal_open, before any family is made. Blocking.
 * errors  as vxd_file_fail */
enum vxd_status vxd_snapshot_sweep(const struct vxd_data_dir *dir,
                                   struct vxd_journal *journal,
                                   struct vxd_snapshot_swept *out, struct vxd_err *err);

#endif
