// SPDX-License-Identifier: Apache-2.0
/* The end of a change that has to be on disk first: once finish has made its output, the lane
 * hands it over and takes the next request; when it is decided, the lane tells the method, then
 * answers. So many changes share one sync, and each is built on the one before, decided or
 * not. */
#ifndef VXD_SERVER_REQUEST_COMMIT_H
#define VXD_SERVER_REQUEST_COMMIT_H

#include "server/request/request_life.h"

struct vxd_lane;

/* Lives as long as the request. */
struct vxd_commit {
    /* On the lane: hands it over. Where that works, vxd_commit_decide follows once, on any
     * thread, perhaps before this returns. */
    enum vxd_status (*begin)(struct vxd_request *request, struct vxd_err *err);
    /* On the lane, once, also where begin failed: everybody sees the change now, or nobody
     * ever. */
    void (*end)(struct vxd_request *request, bool committed);
    /* The lane's. `decide` is what vxd_commit_decide calls. */
    void (*decide)(struct vxd_request *request, const struct vxd_err *err);
    struct vxd_lane *lane;
    struct vxd_err err; /* code VXD_OK: committed */
    struct vxd_request *next;
    struct vxd_request *next_handed_over;
};

/* Says what became of a change; err NULL = committed. Never waits. */
void vxd_commit_decide(struct vxd_request *request, const struct vxd_err *err);

#endif
