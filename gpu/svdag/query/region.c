// SPDX-License-Identifier: Apache-2.0
/* Overlaps and counts of balls and boxes. */
#include "gpu/svdag/query/query.h"

#include "gpu/svdag/store/store.h"
#include "gpu/svdag/query/query_backends.h"
#include "gpu/svdag/store/store_math.h"

enum vxd_status vxd_svdag_overlap(struct vxd_queue *queue, const struct vxd_svdag *svdag,
                                  uint32_t root, const struct vxd_svdag_region *regions,
                                  size_t n, uint8_t *states, struct vxd_err *err)
{
    struct vxd_svdag_regions_call call = {svdag->view, root, n,   regions,
                                          states,      NULL, NULL};
    enum vxd_status status;

    if (n == 0) {
        return VXD_OK;
    }
    VXD_TRY(vxd_svdag_query_need(regions, "regions", err));
    VXD_TRY(vxd_svdag_query_need(states, "states", err));
    VXD_TRY(VXD_SVDAG_QUERY_BACKEND(queue, svdag, overlap)(queue, &call, err));
out:
    return status;
}

enum vxd_status vxd_svdag_count(struct vxd_queue *queue, const struct vxd_svdag *svdag,
                                uint32_t root, const struct vxd_svdag_region *regions,
                                size_t n, uint64_t *counts, struct vxd_err *err)
{
    struct vxd_svdag_regions_call call = {svdag->view, root,   n,   regions,
                                          NULL,        counts, NULL};
    struct vxd_buffer scratch = {0};
    enum vxd_status status;

    if (n == 0) {
        return VXD_OK;
    }
    VXD_TRY(vxd_svdag_query_need(regions, "regions", err));
    VXD_TRY(vxd_svdag_query_need(counts, "counts", err));
    VXD_TRY(
        vxd_device_alloc(queue, vxd_svdag_count_scratch_bytes(queue, n), &scratch, err));
    call.scratch = scratch.ptr;
    VXD_TRY(VXD_SVDAG_QUERY_BACKEND(queue, svdag, count)(queue, &call, err));
out:
    vxd_device_free(queue, &scratch);
    return status;
}
