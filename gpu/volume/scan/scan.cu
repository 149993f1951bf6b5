// SPDX-License-Identifier: Apache-2.0
/* The stages of a scan on a GPU, a thread an item. Rays of neighbouring points walk through the
 * same blocks, so the table, the sums and the marks of one warp lie in few lines of the
 * second-level cache; the sums are atomic additions there.
 *
 * Moved, of a scan of 120,000 points with a truncation of three voxels: 12 bytes in and 48 out a
 * point, about 7 voxels a ray of 16 bytes each, and 16 bytes a voxel of the touched blocks. */
#include "gpu/core/core_cuda.h"
#include "gpu/volume/scan/scan_internal.h"

#define N_THREADS 256

template <int STAGE>
static __global__ void __launch_bounds__(N_THREADS)
    lidar_kernel(const __grid_constant__ struct vxd_lidar_call call)
{
    size_t i = (size_t)blockIdx.x * N_THREADS + threadIdx.x;

    if (i >= call.n_items) {
        return;
    }
    if (STAGE == VXD_LIDAR_AIM) {
        vxd_lidar_aim_item(&call, i);
    } else if (STAGE == VXD_LIDAR_TOUCH) {
        vxd_lidar_touch_item(&call, i);
    } else if (STAGE == VXD_LIDAR_PLACE) {
        vxd_lidar_place_item(&call, i);
    } else if (STAGE == VXD_LIDAR_PASS) {
        vxd_lidar_pass_item(&call, i);
    } else if (STAGE == VXD_LIDAR_SUM) {
        vxd_lidar_sum_item(&call, i);
    } else if (STAGE == VXD_LIDAR_FINISH) {
        vxd_lidar_finish_item(&call, i);
    } else if (STAGE == VXD_LIDAR_CARVE) {
        vxd_lidar_carve_item(&call, i);
    } else if (STAGE == VXD_LIDAR_LOOK) {
        vxd_lidar_look_item(&call, i);
    } else {
        vxd_lidar_reach_item(&call, i);
    }
}

template <int STAGE>
static void launch(struct vxd_queue *queue, const struct vxd_lidar_call *call)
{
    lidar_kernel<STAGE><<<(unsigned)((call->n_items + N_THREADS - 1) / N_THREADS),
                          N_THREADS, 0, (cudaStream_t)queue->stream>>>(*call);
}

enum vxd_status vxd_lidar_run_cuda(struct vxd_queue *queue,
                                   const struct vxd_lidar_call *call, struct vxd_err *err)
{
    enum vxd_status status;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    switch (call->stage) {
    case VXD_LIDAR_AIM:
        launch<VXD_LIDAR_AIM>(queue, call);
        break;
    case VXD_LIDAR_TOUCH:
        launch<VXD_LIDAR_TOUCH>(queue, call);
        break;
    case VXD_LIDAR_PLACE:
        launch<VXD_LIDAR_PLACE>(queue, call);
        break;
    case VXD_LIDAR_PASS:
        launch<VXD_LIDAR_PASS>(queue, call);
        break;
    case VXD_LIDAR_SUM:
        launch<VXD_LIDAR_SUM>(queue, call);
        break;
    case VXD_LIDAR_FINISH:
        launch<VXD_LIDAR_FINISH>(queue, call);
        break;
    case VXD_LIDAR_CARVE:
        launch<VXD_LIDAR_CARVE>(queue, call);
        break;
    case VXD_LIDAR_LOOK:
        launch<VXD_LIDAR_LOOK>(queue, call);
        break;
    case VXD_LIDAR_REACH:
        launch<VXD_LIDAR_REACH>(queue, call);
        break;
    }
    VXD_TRY(vxd_cuda_launched(queue->context, "lidar_kernel", err));
out:
    return status;
}
