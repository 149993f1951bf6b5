// SPDX-License-Identifier: Apache-2.0
/* A change that has to be on disk before anybody sees it ends in two steps. When finish
 * has made the output, the lane hands the change over and takes the next request. When
 * the journal has decided, the lane calls the method's `end` and then answers. So many
 * changes share one sync, and a change may build on one that is not decided yet. */
#ifndef VXD_SERVER_REQUEST_COMMIT_H
#define VXD_SERVER_REQUEST_COMMIT_H

#include "server/request/request_life.h"

struct vxd_lane;

/* It lives as long as the request. */
struct vxd_commit {
    /* Hands the change over; called on the lane. Where that works, vxd_commit_decide
     * follows once, on any thread, perhaps before this returns. */
    enum vxd_status (*begin)(struct vxd_request *request, struct vxd_err *err);
    /* Ends the change, once, also where begin failed; called on the lane. Either
     * everybody sees the change from now on, or nobody ever does. */
    void (*end)(struct vxd_request *request, bool committed);
    /* These belong to the lane. vxd_commit_decide calls `decide`. */
    void (*decide)(struct vxd_request *request, const struct vxd_err *err);
    struct vxd_lane *lane;
    struct vxd_err err; /* code VXD_OK: committed */
    struct vxd_request *next;
    struct vxd_request *next_handed_over;
};

/* Says what became of a change; err is NULL where it was committed. It never waits. */
void vxd_commit_decide(struct vxd_request *request, const struct vxd_err *err);

#endif
