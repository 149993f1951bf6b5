// SPDX-License-Identifier: Apache-2.0
/* A scan's points on a GPU: those within the ranges, the first one of each voxel, and of these the
 * first one of each larger voxel. A thread takes a point. Slots are claimed by a compare-and-swap,
 * the least index wins by atomicMin; a prefix sum of both flags gives every point its place. About 60
 * bytes a point are moved. */
#include "gpu/core/core_cuda.h"
#include "gpu/core/core.h"
#include "gpu/odometry/odometry_internal.h"

#define N_THREADS 256

static unsigned grid_of(size_t n)
{
    return (unsigned)((n + N_THREADS - 1) / N_THREADS);
}

/* Enters a point; returns its slot. There are more slots than points. */
static __device__ __forceinline__ uint32_t claim(const struct vxd_odometry_table *table,
                                                 uint64_t tag, uint32_t index)
{
    size_t mask = table->n_slots - 1;
    size_t slot = (size_t)vxd_mix64(tag) & mask;

    for (;;) {
        uint64_t seen =
            atomicCAS((unsigned long long *)&table->tags[slot],
                      (unsigned long long)VXD_ODOMETRY_NO_TAG, (unsigned long long)tag);

        if (seen == VXD_ODOMETRY_NO_TAG || seen == tag) {
            break;
        }
        slot = (slot + 1) & mask;
    }
    (void)atomicMin(&table->first[slot], index);
    return (uint32_t)slot;
}

static __global__ void __launch_bounds__(N_THREADS)
    fine_kernel(const __grid_constant__ struct vxd_odometry_scan_call call)
{
    size_t i = (size_t)blockIdx.x * N_THREADS + threadIdx.x;
    bool is_used = false;
    float p[3] = {0, 0, 0};
    uint32_t used;

    if (i < call.n) {
        for (int k = 0; k < 3; k++) {
            p[k] = call.points[3 * i + (size_t)k];
        }
        is_used = vxd_odometry_is_used(p, call.min2, call.max2);
        call.slots[i] = is_used
                            ? claim(&call.tables[0],
                                    vxd_odometry_tag(p, call.inverse_fine), (uint32_t)i)
                            : VXD_ODOMETRY_END;
    }
    used = __ballot_sync(UINT32_MAX, is_used);
    if (threadIdx.x % 32 == 0 && used != 0) {
        (void)atomicAdd(&call.work->n_used, (uint32_t)__popc(used));
    }
}

static __global__ void __launch_bounds__(N_THREADS)
    coarse_kernel(const __grid_constant__ struct vxd_odometry_scan_call call)
{
    size_t i = (size_t)blockIdx.x * N_THREADS + threadIdx.x;
    uint32_t slot;

    if (i >= call.n) {
        return;
    }
    slot = call.slots[i];
    if (slot == VXD_ODOMETRY_END || call.tables[0].first[slot] != (uint32_t)i) {
        call.slots[i] = VXD_ODOMETRY_END;
        call.slots[call.n + i] = VXD_ODOMETRY_END;
        return;
    }
    call.slots[call.n + i] =
        claim(&call.tables[1], vxd_odometry_tag(call.points + 3 * i, call.inverse_coarse),
              (uint32_t)i);
}

static __global__ void __launch_bounds__(N_THREADS)
    flags_kernel(const __grid_constant__ struct vxd_odometry_scan_call call)
{
    size_t i = (size_t)blockIdx.x * N_THREADS + threadIdx.x;
    uint32_t slot;

    if (i >= call.n) {
        return;
    }
    slot = call.slots[call.n + i];
    call.slots[i] = call.slots[i] != VXD_ODOMETRY_END ? 1 : 0;
    call.slots[call.n + i] =
        slot != VXD_ODOMETRY_END && call.tables[1].first[slot] == (uint32_t)i ? 1 : 0;
}

static __device__ __forceinline__ void copy_point(float *to, const float *from)
{
    for (int k = 0; k < 3; k++) {
        to[k] = from[k];
    }
}

static __global__ void __launch_bounds__(N_THREADS)
    write_kernel(const __grid_constant__ struct vxd_odometry_scan_call call)
{
    size_t i = (size_t)blockIdx.x * N_THREADS + threadIdx.x;
    const uint32_t *places = call.slots;
    uint32_t n_map;

    if (i >= call.n) {
        return;
    }
    n_map = places[call.n];
    if (places[i] != places[i + 1]) {
        copy_point(call.map_points + 3 * (size_t)places[i], call.points + 3 * i);
    }
    if (places[call.n + i] != places[call.n + i + 1]) {
        copy_point(call.registered_points + 3 * (size_t)(places[call.n + i] - n_map),
                   call.points + 3 * i);
    }
    if (i == 0) {
        call.work->n_map = n_map;
        call.work->n_registered = places[2 * call.n] - n_map;
    }
}

enum vxd_status vxd_odometry_scan_cuda(struct vxd_queue *queue,
                                       const struct vxd_odometry_scan_call *call,
                                       struct vxd_err *err)
{
    cudaStream_t stream = (cudaStream_t)queue->stream;
    unsigned grid = grid_of(call->n);
    size_t n_slots = call->tables[0].n_slots;
    enum vxd_status status;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    /* Both tables' arrays lie one after the other. */
    VXD_TRY(VXD_CUDA(queue->context,
                     cudaMemsetAsync(call->tables[0].tags, 0xff,
                                     2 * n_slots * sizeof(uint64_t), stream),
                     err));
    VXD_TRY(VXD_CUDA(queue->context,
                     cudaMemsetAsync(call->tables[0].first, 0xff,
                                     2 * n_slots * sizeof(uint32_t), stream),
                     err));
    fine_kernel<<<grid, N_THREADS, 0, stream>>>(*call);
    VXD_TRY(vxd_cuda_launched(queue->context, "fine_kernel", err));
    coarse_kernel<<<grid, N_THREADS, 0, stream>>>(*call);
    VXD_TRY(vxd_cuda_launched(queue->context, "coarse_kernel", err));
    flags_kernel<<<grid, N_THREADS, 0, stream>>>(*call);
    VXD_TRY(vxd_cuda_launched(queue->context, "flags_kernel", err));
    VXD_TRY(vxd_scan_exclusive(queue, call->slots, call->slots, 2 * call->n,
                               call->sum_scratch, call->sum_scratch_bytes, err));
    write_kernel<<<grid, N_THREADS, 0, stream>>>(*call);
    VXD_TRY(vxd_cuda_launched(queue->context, "write_kernel", err));
out:
    return status;
}
