// SPDX-License-Identifier: Apache-2.0
#include "gpu/svdag/query/query.h"

#include "gpu/svdag/store/store.h"
#include "gpu/svdag/query/query_backends.h"
#include "gpu/svdag/store/store_math.h"

enum vxd_status vxd_svdag_values(struct vxd_queue *queue, const struct vxd_svdag *svdag,
                                 uint32_t root, const int32_t *voxels, size_t n,
                                 uint8_t *states, uint16_t *values, struct vxd_err *err)
{
    struct vxd_svdag_values_call call = {svdag->view, root, n, voxels, states, values};
    enum vxd_status status;

    if (n == 0) {
        return VXD_OK;
    }
    VXD_TRY(vxd_svdag_query_need(voxels, "voxels", err));
    VXD_TRY(vxd_svdag_query_need(states, "states", err));
    VXD_TRY(VXD_SVDAG_QUERY_BACKEND(queue, svdag, values)(queue, &call, err));
out:
    return status;
}

enum vxd_status vxd_svdag_changed(struct vxd_queue *queue, const struct vxd_svdag *svdag,
                                  const uint32_t *roots, uint32_t n_roots,
                                  const int32_t *voxels, size_t n, uint32_t *indices,
                                  struct vxd_err *err)
{
    struct vxd_svdag_changed_call call = {svdag->view, roots,  n_roots,
                                          n,           voxels, indices};
    enum vxd_status status;

    if (n == 0) {
        return VXD_OK;
    }
    VXD_TRY(vxd_svdag_query_need(n_roots > 0 ? roots : NULL, "roots", err));
    VXD_TRY(vxd_svdag_query_need(voxels, "voxels", err));
    VXD_TRY(vxd_svdag_query_need(indices, "indices", err));
    VXD_TRY(VXD_SVDAG_QUERY_BACKEND(queue, svdag, changed)(queue, &call, err));
out:
    return status;
}
