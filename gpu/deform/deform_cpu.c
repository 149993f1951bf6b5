// SPDX-License-Identifier: Apache-2.0
/* Control grids on the CPU. Neighbouring points mostly share a cell, which a thread keeps. */
#include "gpu/deform/deform_internal.h"

#define PIECE_POINTS ((size_t)4096)

static void apply_piece(void *args, size_t begin, size_t end)
{
    const struct vxd_deform_call *call = args;
    struct vxd_deform_cell cell = {.is_loaded = 0};

    for (size_t i = begin; i < end; i++) {
        vxd_deform_apply_one(call, &cell, i);
    }
}

static enum vxd_status apply_job(struct vxd_pool *pool, const void *args,
                                 struct vxd_err *err)
{
    struct vxd_deform_call call = *(const struct vxd_deform_call *)args;

    (void)err;
    vxd_parallel_for(pool, call.args.n, PIECE_POINTS, apply_piece, &call);
    return VXD_OK;
}

enum vxd_status vxd_deform_apply_cpu(struct vxd_queue *queue,
                                     const struct vxd_deform_call *call,
                                     struct vxd_err *err)
{
    return vxd_queue_push(queue, apply_job, call, sizeof *call, err);
}
