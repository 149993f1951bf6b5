// SPDX-License-Identifier: Apache-2.0
#include "gpu/svdag/query/query_backends.h"
#include "gpu/svdag/query/ray_math.h"

#define PIECE_RAYS ((size_t)256)

static void rays_piece(void *context, size_t begin, size_t end)
{
    const struct vxd_svdag_rays_call *call = context;

    for (size_t i = begin; i < end; i++) {
        vxd_svdag_ray_cast(
            &call->view, call->root, call->origins + 3 * i, call->directions + 3 * i,
            call->max_range != NULL ? call->max_range + i : NULL, call->hits + i);
    }
}

static enum vxd_status rays_job(struct vxd_pool *pool, const void *context,
                                struct vxd_err *err)
{
    struct vxd_svdag_rays_call call = *(const struct vxd_svdag_rays_call *)context;

    (void)err;
    vxd_parallel_for(pool, call.n, PIECE_RAYS, rays_piece, &call);
    return VXD_OK;
}

enum vxd_status vxd_svdag_cast_rays_cpu(struct vxd_queue *queue,
                                        const struct vxd_svdag_rays_call *call,
                                        struct vxd_err *err)
{
    return vxd_queue_push(queue, rays_job, call, sizeof *call, err);
}
