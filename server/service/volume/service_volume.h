// SPDX-License-Identifier: Apache-2.0
/* What services of other nouns need to change a volume in place: the job that their requests begin with,
 * and its commit. On the write lane. */
#ifndef VXD_SERVER_SERVICE_VOLUME_SERVICE_VOLUME_H
#define VXD_SERVER_SERVICE_VOLUME_SERVICE_VOLUME_H

#include "server/registry/volumes/volumes.h"
#include "server/request/request.h"
#include "server/service/columns/columns.h"

/* The commit of a request on a durable volume. Zero-initialised it is none. */
struct vxd_volume_commit {
    struct vxd_named_commit base;  /* first: request->commit is both */
    struct vxd_named_volume *copy; /* READ: goes where what was read never was; held */
    struct vxd_volume_entry entry;
    size_t n_blocks; /* before the change */
    bool is_change;
};

struct vxd_volume_job {
    struct vxd_query query;          /* first: request->state is both */
    struct vxd_named_volume *volume; /* held */
    struct vxd_named_volume *made;   /* a new one, not findable yet; held */
    struct vxd_volume_commit commit;
    int32_t *forgotten; /* keys of blocks that made room; freed by release */
};

/* --- volume_commit.c: durable volumes -------------------------------------------------- */

/* Lists a request's commit: its change of the volume, or that it reads what is not decided. A change
 * is journalled as the blocks that it changed, unless the method says in commit.entry.record what it
 * was, by a kind of record. Before the volume is changed.
 * errors  UNAVAILABLE  the disk takes no changes now, or the volume is not to be seen */
enum vxd_status vxd_volume_enlist(struct vxd_request *request, struct vxd_err *err);

#endif
