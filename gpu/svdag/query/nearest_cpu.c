// SPDX-License-Identifier: Apache-2.0
#include "gpu/svdag/query/nearest_math.h"
#include "gpu/svdag/query/query_backends.h"

#define PIECE_POINTS ((size_t)64)

static void nearest_piece(void *context, size_t begin, size_t end)
{
    const struct vxd_svdag_nearest_call *call = context;

    for (size_t i = begin; i < end; i++) {
        vxd_svdag_nearest_answer(&call->view, call->root, call->points + 3 * i,
                                 call->radii[i], call->voxels + 3 * i, call->squares + i,
                                 call->values != NULL ? call->values + i : NULL);
    }
}

static enum vxd_status nearest_job(struct vxd_pool *pool, const void *context,
                                   struct vxd_err *err)
{
    struct vxd_svdag_nearest_call call = *(const struct vxd_svdag_nearest_call *)context;

    (void)err;
    vxd_parallel_for(pool, call.n, PIECE_POINTS, nearest_piece, &call);
    return VXD_OK;
}

enum vxd_status vxd_svdag_nearest_cpu(struct vxd_queue *queue,
                                      const struct vxd_svdag_nearest_call *call,
                                      struct vxd_err *err)
{
    return vxd_queue_push(queue, nearest_job, call, sizeof *call, err);
}
