// SPDX-License-Identifier: Apache-2.0
#include "gpu/svdag/query/query.h"

#include "gpu/svdag/store/store.h"
#include "gpu/svdag/query/query_backends.h"
#include "gpu/svdag/store/store_math.h"

enum vxd_status vxd_svdag_cast_rays(struct vxd_queue *queue,
                                    const struct vxd_svdag *svdag, uint32_t root,
                                    const double *origins, const double *directions,
                                    const double *max_range, size_t n,
                                    struct vxd_svdag_hit *hits, struct vxd_err *err)
{
    struct vxd_svdag_rays_call call = {svdag->view, root,      n,   origins,
                                       directions,  max_range, hits};
    enum vxd_status status;

    if (n == 0) {
        return VXD_OK;
    }
    VXD_TRY(vxd_svdag_query_need(origins, "origins", err));
    VXD_TRY(vxd_svdag_query_need(directions, "directions", err));
    VXD_TRY(vxd_svdag_query_need(hits, "hits", err));
    VXD_TRY(VXD_SVDAG_QUERY_BACKEND(queue, svdag, cast_rays)(queue, &call, err));
out:
    return status;
}

enum vxd_status vxd_svdag_draw_split(struct vxd_queue *queue,
                                     const struct vxd_svdag *svdag,
                                     const struct vxd_render_call *call,
                                     struct vxd_err *err)
{
    if (svdag->device_ops == NULL || svdag->device_ops->queries == NULL) {
        return vxd_fail(err, VXD_UNIMPLEMENTED, NULL,
                        "the store %s has no kernels of its own for pictures",
                        vxd_svdag_store_name(svdag->spec.store));
    }
    return svdag->device_ops->queries->draw(queue, call, err);
}
