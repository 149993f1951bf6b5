// SPDX-License-Identifier: Apache-2.0
/* Removal on a GPU: a thread a block lists what is removed, and a warp a block clears its part of
 * the box. */
#include "gpu/core/core_cuda.h"
#include "gpu/volume/volume_clear_math.h"

#define N_THREADS 128
#define N_WARPS (N_THREADS / 32)

static __global__ void __launch_bounds__(N_THREADS)
    list_kernel(const __grid_constant__ struct vxd_clear_call call,
                const int32_t *entries, size_t n)
{
    size_t i = (size_t)blockIdx.x * N_THREADS + threadIdx.x;
    const int32_t *key;
    int from[3];
    int to[3];

    if (i >= n) {
        return;
    }
    key = call.view.keys + 3 * (size_t)entries[i];
    if (vxd_clear_of(&call, key, from, to) == VXD_CLEAR_BLOCK) {
        uint32_t at = atomicAdd(&call.n[0], 1u);

        for (int axis = 0; axis < 3; axis++) {
            call.keys[3 * (size_t)at + (size_t)axis] = key[axis];
        }
    } else {
        call.kept[atomicAdd(&call.n[1], 1u)] = entries[i];
    }
}

static __global__ void __launch_bounds__(N_THREADS)
    clear_kernel(const __grid_constant__ struct vxd_clear_call call,
                 const int32_t *entries, size_t n)
{
    size_t i = (size_t)blockIdx.x * N_WARPS + threadIdx.x / 32;
    int lane = (int)(threadIdx.x & 31);
    int32_t entry;
    int from[3];
    int to[3];

    if (i >= n) {
        return;
    }
    entry = entries[i];
    if (vxd_clear_of(&call, call.view.keys + 3 * (size_t)entry, from, to) !=
        VXD_CLEAR_PART) {
        return;
    }
    for (int index = lane; index < vxd_volume_block_voxels(&call.view); index += 32) {
        int x = index & (call.view.edge - 1);
        int y = index >> call.view.shift & (call.view.edge - 1);
        int z = index >> (2 * call.view.shift);

        if (x >= from[0] && x < to[0] && y >= from[1] && y < to[1] && z >= from[2] &&
            z < to[2]) {
            vxd_clear_voxel(&call.view,
                            vxd_voxel_row(&call.view, entry, (uint32_t)index));
        }
    }
    if (lane == 0) {
        call.view.stamps[entry] = call.version;
    }
}

enum vxd_status vxd_volume_clear_list_cuda(struct vxd_queue *queue,
                                           const struct vxd_clear_call *call,
                                           const int32_t *entries, size_t n,
                                           struct vxd_err *err)
{
    enum vxd_status status;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    list_kernel<<<(unsigned)((n + N_THREADS - 1) / N_THREADS), N_THREADS, 0,
                  (cudaStream_t)queue->stream>>>(*call, entries, n);
    VXD_TRY(vxd_cuda_launched(queue->context, "list_kernel", err));
out:
    return status;
}

enum vxd_status vxd_volume_clear_cuda(struct vxd_queue *queue,
                                      const struct vxd_clear_call *call,
                                      const int32_t *entries, size_t n,
                                      struct vxd_err *err)
{
    enum vxd_status status;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    clear_kernel<<<(unsigned)((n + N_WARPS - 1) / N_WARPS), N_THREADS, 0,
                   (cudaStream_t)queue->stream>>>(*call, entries, n);
    VXD_TRY(vxd_cuda_launched(queue->context, "clear_kernel", err));
out:
    return status;
}
