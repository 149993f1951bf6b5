// SPDX-License-Identifier: Apache-2.0
/* Deformed volumes on the CPU, a block after the other. */
#include "gpu/slac/slac_volume_internal.h"

static void fill_blocks(void *args, size_t begin, size_t end)
{
    const struct vxd_slac_volume_call *call = args;
    struct vxd_deform_cell cell = {.is_loaded = 0};
    uint32_t n_voxels = (uint32_t)vxd_volume_block_voxels(&call->to);

    for (size_t i = begin; i < end; i++) {
        int32_t entry = call->entries[i];
        double corners[8][3];
        bool any = false;

        for (int k = 0; k < 8; k++) {
            vxd_slac_volume_corner(call, call->to.keys + 3 * (size_t)entry, k, &cell,
                                   corners[k]);
        }
        for (uint32_t voxel = 0; voxel < n_voxels; voxel++) {
            any = vxd_slac_volume_one(call, (const double(*)[3])corners, entry, voxel) ||
                  any;
        }
        if (any) {
            call->to.stamps[entry] = call->version;
        }
    }
}

static enum vxd_status fill_job(struct vxd_pool *pool, const void *args,
                                struct vxd_err *err)
{
    struct vxd_slac_volume_call call = *(const struct vxd_slac_volume_call *)args;

    (void)err;
    vxd_parallel_for(pool, call.n, 16, fill_blocks, &call);
    return VXD_OK;
}

enum vxd_status vxd_slac_volume_fill_cpu(struct vxd_queue *queue,
                                         const struct vxd_slac_volume_call *call,
                                         struct vxd_err *err)
{
    return vxd_queue_push(queue, fill_job, call, sizeof *call, err);
}
