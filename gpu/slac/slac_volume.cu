// SPDX-License-Identifier: Apache-2.0
/* Deformed volumes on a GPU: a block of threads a block of voxels. Eight threads take its corners
 * back through the grid, then each thread takes every 256th voxel.
 *
 * Moved: 8 bytes a voxel in and out; the eight neighbours of a voxel are mostly in the caches. */
#include "gpu/core/core_cuda.h"
#include "gpu/slac/slac_volume_internal.h"

#define N_THREADS 256

static __global__ void __launch_bounds__(N_THREADS)
    fill_kernel(const __grid_constant__ struct vxd_slac_volume_call call)
{
    __shared__ double corners[8][3];
    int32_t entry = call.entries[blockIdx.x];
    uint32_t n_voxels = (uint32_t)vxd_volume_block_voxels(&call.to);
    bool any = false;

    if (threadIdx.x < 8) {
        struct vxd_deform_cell cell;

        cell.is_loaded = 0;
        vxd_slac_volume_corner(&call, call.to.keys + 3 * (size_t)entry, (int)threadIdx.x,
                               &cell, corners[threadIdx.x]);
    }
    __syncthreads();
    for (uint32_t voxel = threadIdx.x; voxel < n_voxels; voxel += N_THREADS) {
        any = vxd_slac_volume_one(&call, corners, entry, voxel) || any;
    }
    if (any) {
        (void)atomicMax((unsigned long long *)&call.to.stamps[entry],
                        (unsigned long long)call.version);
    }
}

enum vxd_status vxd_slac_volume_fill_cuda(struct vxd_queue *queue,
                                          const struct vxd_slac_volume_call *call,
                                          struct vxd_err *err)
{
    enum vxd_status status;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    fill_kernel<<<(unsigned)call->n, N_THREADS, 0, (cudaStream_t)queue->stream>>>(*call);
    VXD_TRY(vxd_cuda_launched(queue->context, "fill_kernel", err));
out:
    return status;
}
