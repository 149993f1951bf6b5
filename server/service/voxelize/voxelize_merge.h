// SPDX-License-Identifier: Apache-2.0
/* Merges the voxels of a request into a named map. Private to server/service/voxelize. */
#ifndef VXD_SERVER_SERVICE_VOXELIZE_VOXELIZE_MERGE_H
#define VXD_SERVER_SERVICE_VOXELIZE_VOXELIZE_MERGE_H

#include "server/service/voxelize/voxelize_job.h"

/* Checks what the request says about the map, when everything else was checked. Sets
 * job->merge, the results that it needs, the request's lane, and its share of
 * request->cost_bytes.
 * errors  INVALID_ARGUMENT, RESOURCE_EXHAUSTED */
enum vxd_status vxd_merge_check(struct vxd_request *request, struct vxd_err *err);

/* Whether the host needs counts and sums as well, for the journal of a durable map. */
bool vxd_merge_needs_rows(struct vxd_request *request);

/* The last stage: coordinates are on the host, counts and sums on the device. Makes the reply
 * first, so that nothing can fail once the map has changed.
 * errors  NOT_FOUND            no such map, and not to be made
 *         FAILED_PRECONDITION  the map's keys, arrays or lattice are others
 *         RESOURCE_EXHAUSTED   the map is unchanged */
enum vxd_status vxd_merge_submit(struct vxd_request *request, struct vxd_queue *queue,
                                 struct vxd_err *err);

/* Fills in the numbers, and gives a map that was made its name. */
void vxd_merge_finish(struct vxd_request *request, struct vxd_queue *queue);

void vxd_merge_release(struct vxd_request *request, struct vxd_queue *queue);

#endif
