// SPDX-License-Identifier: Apache-2.0
#include "gpu/svdag/query/query.h"

#include "gpu/svdag/store/store.h"
#include "gpu/svdag/query/query_backends.h"
#include "gpu/svdag/store/store_math.h"

enum vxd_status vxd_svdag_nearest(struct vxd_queue *queue, const struct vxd_svdag *svdag,
                                  uint32_t root, const int64_t *points,
                                  const int64_t *radii, size_t n, int32_t *voxels,
                                  uint64_t *squares, uint16_t *values,
                                  struct vxd_err *err)
{
    struct vxd_svdag_nearest_call call = {svdag->view, root,   n,       points,
                                          radii,       voxels, squares, values};
    enum vxd_status status;

    if (n == 0) {
        return VXD_OK;
    }
    VXD_TRY(vxd_svdag_query_need(points, "points", err));
    VXD_TRY(vxd_svdag_query_need(radii, "radii", err));
    VXD_TRY(vxd_svdag_query_need(voxels, "voxels", err));
    VXD_TRY(vxd_svdag_query_need(squares, "squares", err));
    VXD_TRY(VXD_SVDAG_QUERY_BACKEND(queue, svdag, nearest)(queue, &call, err));
out:
    return status;
}
