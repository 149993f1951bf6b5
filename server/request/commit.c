// SPDX-License-Identifier: Apache-2.0
/* Whoever keeps changes on disk reports the outcome of one here and needs to know nothing
 * of lanes: the lane that handed the change over has set the function that is called. */
#include "server/request/commit.h"

void vxd_commit_decide(struct vxd_request *request, const struct vxd_err *err)
{
    request->commit->decide(request, err);
}
