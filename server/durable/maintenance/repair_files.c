// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include "server/durable/maintenance/repair_internal.h"
#include "server/durable/snapshot/snapshot.h"

static bool check_file(struct vxd_repair *repair, uint32_t family, uint64_t sequence,
                       struct vxd_snapshot_head *head, struct vxd_err *err)
{
    struct vxd_snapshot_reader *reader = NULL;
    enum vxd_status status;

    VXD_TRY(vxd_snapshot_open(&repair->dir, family, sequence, &reader, err));
    VXD_TRY(vxd_snapshot_skip_to_end(reader, err));
    *head = *vxd_snapshot_get_head(reader);
out:
    vxd_snapshot_close(reader);
    return status == VXD_OK;
}

bool vxd_repair_check_files(struct vxd_repair *repair, uint32_t family,
                            struct vxd_snapshot_head *newest, struct vxd_err *unknown)
{
    const struct vxd_file_ops *ops = repair->dir.ops;
    uint64_t *sequences = NULL;
    bool is_found = false;
    size_t n = 0;

    *unknown = (struct vxd_err){0};
    (void)vxd_snapshot_list(&repair->dir, family, &sequences, &n, unknown);
    for (size_t i = 0; i < n; i++) {
        struct vxd_snapshot_head head;
        struct vxd_err err = {0};
        char from[VXD_DURABLE_PATH_BYTES];
        char to[VXD_DURABLE_PATH_BYTES];

        if (check_file(repair, family, sequences[i], &head, &err)) {
            *newest = is_found ? *newest : head;
            is_found = true;
            continue;
        }
        if (err.code != VXD_DATA_LOSS) {
            *unknown = err;
            continue;
        }
        vxd_snapshot_path(&repair->dir, family, sequences[i], "", from);
        vxd_snapshot_path(&repair->dir, family, sequences[i], ".bad", to);
        if (ops->rename(ops->user, from, to) == 0) {
            vxd_repair_say(repair, VXD_PROBLEM_SPARE, strrchr(from, '/') + 1,
                           "%.150s; renamed to .bad", err.message);
        }
    }
    free(sequences);
    return is_found;
}
