// SPDX-License-Identifier: Apache-2.0
/* Removal on a GPU: a thread a block lists what is removed, and a warp a block clears its part of
 * the box. A decay takes a warp a block for both, since it looks at every weight. Ranks by distance
 * take a thread a block. */
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

/* A warp a block: lists those that a decay removes. */
static __global__ void __launch_bounds__(N_THREADS)
    decay_list_kernel(const __grid_constant__ struct vxd_decay_call call,
                      const int32_t *entries, size_t n)
{
    size_t i = (size_t)blockIdx.x * N_WARPS + threadIdx.x / 32;
    int lane = (int)(threadIdx.x & 31);
    const struct vxd_volume_view *view = &call.clear.view;
    bool is_inside;
    const int32_t *key;
    int32_t entry;
    float most = 0;
    int from[3];
    int to[3];

    if (i >= n) {
        return;
    }
    entry = entries[i];
    key = view->keys + 3 * (size_t)entry;
    is_inside = vxd_decay_of(&call, key, from, to);
    for (int index = lane; is_inside && index < vxd_volume_block_voxels(view);
         index += 32) {
        most = fmaxf(most, vxd_decay_weight_at(&call, entry, (uint32_t)index, from, to));
    }
    for (int apart = 16; apart > 0; apart /= 2) {
        most = fmaxf(most, __shfl_xor_sync(UINT32_MAX, most, apart));
    }
    if (lane != 0) {
        return;
    }
    if (is_inside && vxd_decay_removes(&call, most)) {
        uint32_t at = atomicAdd(&call.clear.n[0], 1u);

        for (int axis = 0; axis < 3; axis++) {
            call.clear.keys[3 * (size_t)at + (size_t)axis] = key[axis];
        }
    } else {
        call.clear.kept[atomicAdd(&call.clear.n[1], 1u)] = entry;
    }
}

static __global__ void __launch_bounds__(N_THREADS)
    decay_kernel(const __grid_constant__ struct vxd_decay_call call,
                 const int32_t *entries, size_t n)
{
    size_t i = (size_t)blockIdx.x * N_WARPS + threadIdx.x / 32;
    int lane = (int)(threadIdx.x & 31);
    const struct vxd_volume_view *view = &call.clear.view;
    int32_t entry;
    int from[3];
    int to[3];

    if (i >= n) {
        return;
    }
    entry = entries[i];
    if (!vxd_decay_of(&call, view->keys + 3 * (size_t)entry, from, to)) {
        return;
    }
    for (int index = lane; index < vxd_volume_block_voxels(view); index += 32) {
        int x = index & (view->edge - 1);
        int y = index >> view->shift & (view->edge - 1);
        int z = index >> (2 * view->shift);

        if (x >= from[0] && x < to[0] && y >= from[1] && y < to[1] && z >= from[2] &&
            z < to[2]) {
            vxd_decay_voxel(&call, vxd_voxel_row(view, entry, (uint32_t)index));
        }
    }
    if (lane == 0) {
        view->stamps[entry] = call.clear.version;
    }
}

static __global__ void __launch_bounds__(N_THREADS)
    touched_kernel(const __grid_constant__ struct vxd_rank_call call)
{
    size_t i = (size_t)blockIdx.x * N_THREADS + threadIdx.x;

    if (i < call.n_touched) {
        call.is_touched[call.touched[i]] = 1;
    }
}

static __global__ void __launch_bounds__(N_THREADS)
    rank_kernel(const __grid_constant__ struct vxd_rank_call call)
{
    size_t i = (size_t)blockIdx.x * N_THREADS + threadIdx.x;

    if (i < call.n) {
        call.ranks[i] = vxd_rank_of(&call, call.entries[i]);
        call.values[i] = (uint32_t)call.entries[i];
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

enum vxd_status vxd_volume_decay_list_cuda(struct vxd_queue *queue,
                                           const struct vxd_decay_call *call,
                                           const int32_t *entries, size_t n,
                                           struct vxd_err *err)
{
    enum vxd_status status;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    decay_list_kernel<<<(unsigned)((n + N_WARPS - 1) / N_WARPS), N_THREADS, 0,
                        (cudaStream_t)queue->stream>>>(*call, entries, n);
    VXD_TRY(vxd_cuda_launched(queue->context, "decay_list_kernel", err));
out:
    return status;
}

enum vxd_status vxd_volume_decay_cuda(struct vxd_queue *queue,
                                      const struct vxd_decay_call *call,
                                      const int32_t *entries, size_t n,
                                      struct vxd_err *err)
{
    enum vxd_status status;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    decay_kernel<<<(unsigned)((n + N_WARPS - 1) / N_WARPS), N_THREADS, 0,
                   (cudaStream_t)queue->stream>>>(*call, entries, n);
    VXD_TRY(vxd_cuda_launched(queue->context, "decay_kernel", err));
out:
    return status;
}

enum vxd_status vxd_volume_rank_cuda(struct vxd_queue *queue,
                                     const struct vxd_rank_call *call,
                                     struct vxd_err *err)
{
    enum vxd_status status;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    if (call->n_touched > 0) {
        touched_kernel<<<(unsigned)((call->n_touched + N_THREADS - 1) / N_THREADS),
                         N_THREADS, 0, (cudaStream_t)queue->stream>>>(*call);
        VXD_TRY(vxd_cuda_launched(queue->context, "touched_kernel", err));
    }
    rank_kernel<<<(unsigned)((call->n + N_THREADS - 1) / N_THREADS), N_THREADS, 0,
                  (cudaStream_t)queue->stream>>>(*call);
    VXD_TRY(vxd_cuda_launched(queue->context, "rank_kernel", err));
out:
    return status;
}
