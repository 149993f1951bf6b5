// SPDX-License-Identifier: Apache-2.0
#include "gpu/svdag/query/query_backends.h"
#include "gpu/svdag/query/values_math.h"

#define PIECE_VOXELS ((size_t)1024)

static void values_piece(void *context, size_t begin, size_t end)
{
    const struct vxd_svdag_values_call *call = context;

    for (size_t i = begin; i < end; i++) {
        uint16_t value;

        call->states[i] = (uint8_t)vxd_svdag_values_answer(&call->view, call->root,
                                                           call->voxels + 3 * i, &value);
        if (call->values != NULL) {
            call->values[i] = value;
        }
    }
}

static enum vxd_status values_job(struct vxd_pool *pool, const void *context,
                                  struct vxd_err *err)
{
    struct vxd_svdag_values_call call = *(const struct vxd_svdag_values_call *)context;

    (void)err;
    vxd_parallel_for(pool, call.n, PIECE_VOXELS, values_piece, &call);
    return VXD_OK;
}

enum vxd_status vxd_svdag_values_cpu(struct vxd_queue *queue,
                                     const struct vxd_svdag_values_call *call,
                                     struct vxd_err *err)
{
    return vxd_queue_push(queue, values_job, call, sizeof *call, err);
}

#define CHANGED_PIECE_VOXELS ((size_t)256)

static void changed_piece(void *context, size_t begin, size_t end)
{
    const struct vxd_svdag_changed_call *call = context;

    for (size_t i = begin; i < end; i++) {
        call->indices[i] = vxd_svdag_changed_answer(&call->view, call->roots,
                                                    call->n_roots, call->voxels + 3 * i);
    }
}

static enum vxd_status changed_job(struct vxd_pool *pool, const void *context,
                                   struct vxd_err *err)
{
    struct vxd_svdag_changed_call call = *(const struct vxd_svdag_changed_call *)context;

    (void)err;
    vxd_parallel_for(pool, call.n, CHANGED_PIECE_VOXELS, changed_piece, &call);
    return VXD_OK;
}

enum vxd_status vxd_svdag_changed_cpu(struct vxd_queue *queue,
                                      const struct vxd_svdag_changed_call *call,
                                      struct vxd_err *err)
{
    return vxd_queue_push(queue, changed_job, call, sizeof *call, err);
}
