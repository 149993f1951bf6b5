// SPDX-License-Identifier: Apache-2.0
/* The stages of a scan on the CPU: pieces of points, or whole blocks of voxels, a thread. */
#include "gpu/volume/scan/scan_internal.h"

#define PIECE_POINTS ((size_t)1024)
#define PIECE_VOXELS ((size_t)8192)

static void run_piece(void *args, size_t begin, size_t end)
{
    const struct vxd_lidar_call *call = args;

    for (size_t i = begin; i < end; i++) {
        vxd_lidar_item(call, i);
    }
}

static enum vxd_status run_job(struct vxd_pool *pool, const void *args,
                               struct vxd_err *err)
{
    struct vxd_lidar_call call = *(const struct vxd_lidar_call *)args;
    bool is_voxel = call.stage == VXD_LIDAR_FINISH || call.stage == VXD_LIDAR_LOOK ||
                    call.stage == VXD_LIDAR_REACH;

    (void)err;
    vxd_parallel_for(pool, call.n_items, is_voxel ? PIECE_VOXELS : PIECE_POINTS,
                     run_piece, &call);
    return VXD_OK;
}

enum vxd_status vxd_lidar_run_cpu(struct vxd_queue *queue,
                                  const struct vxd_lidar_call *call, struct vxd_err *err)
{
    return vxd_queue_push(queue, run_job, call, sizeof *call, err);
}
