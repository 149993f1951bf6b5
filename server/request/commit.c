// SPDX-License-Identifier: Apache-2.0
/* Whoever keeps changes on disk says here what became of one, and needs to know nothing of
 * lanes: the lane that handed the change over left a function for that. */
#include "server/request/commit.h"

void vxd_commit_decide(struct vxd_request *request, const struct vxd_err *err)
{
    request->commit->decide(request, err);
}
