// SPDX-License-Identifier: Apache-2.0
/* The local map on a GPU: voxels of points, points that join their voxels, voxels that are far. A
 * thread takes a point or an entry. Points of one voxel become a list by atomicExch, in any order;
 * the thread whose point was the first in it adds all of them in the scan's order, so that the map is
 * the same every time. */
#include "gpu/core/core_cuda.h"
#include "gpu/odometry/odometry_internal.h"

#define N_THREADS 256

static unsigned grid_of(size_t n)
{
    return (unsigned)((n + N_THREADS - 1) / N_THREADS);
}

static __global__ void __launch_bounds__(N_THREADS)
    place_kernel(const __grid_constant__ struct vxd_odometry_place_call call)
{
    size_t i = (size_t)blockIdx.x * N_THREADS + threadIdx.x;
    int32_t cell[3];
    float q[3];

    if (i >= call.n) {
        return;
    }
    vxd_odometry_move(call.T, call.points + 3 * i, q);
    vxd_odometry_locate(&call.grid, q, cell, call.locals + 3 * i);
    for (int k = 0; k < 3; k++) {
        call.keys[3 * i + (size_t)k] = cell[k] + call.grid.base[k];
    }
}

enum vxd_status vxd_odometry_place_cuda(struct vxd_queue *queue,
                                        const struct vxd_odometry_place_call *call,
                                        struct vxd_err *err)
{
    enum vxd_status status;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    place_kernel<<<grid_of(call->n), N_THREADS, 0, (cudaStream_t)queue->stream>>>(*call);
    VXD_TRY(vxd_cuda_launched(queue->context, "place_kernel", err));
out:
    return status;
}

static __global__ void __launch_bounds__(N_THREADS)
    list_kernel(const __grid_constant__ struct vxd_odometry_add_call call)
{
    size_t i = (size_t)blockIdx.x * N_THREADS + threadIdx.x;

    if (i < call.n && call.entries[i] >= 0) {
        call.next[i] = atomicExch(&call.head[call.entries[i]], (uint32_t)i);
    }
}

/* The least index of a list that is not below `from`; VXD_ODOMETRY_END where there is none. */
static __device__ __forceinline__ uint32_t
find_next(const struct vxd_odometry_add_call *call, uint32_t head, uint32_t from)
{
    uint32_t least = VXD_ODOMETRY_END;

    for (uint32_t at = head; at != VXD_ODOMETRY_END; at = call->next[at]) {
        least = at >= from && at < least ? at : least;
    }
    return least;
}

static __global__ void __launch_bounds__(N_THREADS)
    add_kernel(const __grid_constant__ struct vxd_odometry_add_call call)
{
    size_t i = (size_t)blockIdx.x * N_THREADS + threadIdx.x;
    int32_t entry;
    uint32_t count;
    uint32_t head;
    uint32_t at;
    float *row;

    if (i >= call.n || call.entries[i] < 0 || call.next[i] != VXD_ODOMETRY_END) {
        return;
    }
    entry = call.entries[i];
    row = call.points + (size_t)entry * 3 * VXD_ODOMETRY_SLOTS;
    count = call.counts[entry];
    head = call.head[entry];
    at = find_next(&call, head, 0);
    while (at != VXD_ODOMETRY_END && count < call.max_points) {
        const float *local = call.locals + 3 * (size_t)at;

        if (vxd_odometry_may_join(row, count, call.max_points, call.min_d2, local)) {
            vxd_odometry_join(row, count++, local);
        }
        at = find_next(&call, head, at + 1);
    }
    call.counts[entry] = count;
}

enum vxd_status vxd_odometry_add_cuda(struct vxd_queue *queue,
                                      const struct vxd_odometry_add_call *call,
                                      struct vxd_err *err)
{
    cudaStream_t stream = (cudaStream_t)queue->stream;
    enum vxd_status status;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    list_kernel<<<grid_of(call->n), N_THREADS, 0, stream>>>(*call);
    VXD_TRY(vxd_cuda_launched(queue->context, "list_kernel", err));
    add_kernel<<<grid_of(call->n), N_THREADS, 0, stream>>>(*call);
    VXD_TRY(vxd_cuda_launched(queue->context, "add_kernel", err));
out:
    return status;
}

static __global__ void __launch_bounds__(N_THREADS)
    far_kernel(const __grid_constant__ struct vxd_odometry_far_call call)
{
    size_t i = (size_t)blockIdx.x * N_THREADS + threadIdx.x;
    const int32_t *key = call.keys + 3 * i;

    if (i < call.capacity && call.counts[i] > 0 &&
        vxd_odometry_is_far(key, call.sensor, call.max_voxels2)) {
        size_t at = atomicAdd(call.n_far, 1u);

        for (int k = 0; k < 3; k++) {
            call.far_keys[3 * at + (size_t)k] = key[k];
        }
    }
}

enum vxd_status vxd_odometry_far_cuda(struct vxd_queue *queue,
                                      const struct vxd_odometry_far_call *call,
                                      struct vxd_err *err)
{
    enum vxd_status status;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    far_kernel<<<grid_of(call->capacity), N_THREADS, 0, (cudaStream_t)queue->stream>>>(
        *call);
    VXD_TRY(vxd_cuda_launched(queue->context, "far_kernel", err));
out:
    return status;
}
