// SPDX-License-Identifier: Apache-2.0
/* Registration on a GPU. One kernel is one step: a block of 16 warps takes a strip of 16 points, a
 * warp a point, a lane one of the 27 voxels around it, whose hash it looks up and whose points it
 * reads 16 bytes at a time. The block adds its strip's rows; the last block to end adds the strips,
 * solves the system and moves the pose, so that steps follow each other without the host. Steps after
 * the last one that is needed find so and end at once. A step reads some kilobytes a point, which the
 * second-level cache has. */
#include "gpu/core/core_cuda.h"
#include "gpu/odometry/odometry_internal.h"

enum {
    STRIP = VXD_ODOMETRY_STRIP,
    LANES = VXD_ODOMETRY_STRIP_LANES,
    N_SUMS = VXD_ODOMETRY_N_SUMS,
    SLOTS = VXD_ODOMETRY_SLOTS,
    N_THREADS = 32 * STRIP,
    BLOCKS_A_MULTIPROCESSOR = 4
};

/* As vxd_odometry_search: four points at a time. */
static __device__ __forceinline__ void search(const struct vxd_odometry_grid *grid,
                                              int32_t entry, const float local[3],
                                              int rank, struct vxd_odometry_match *match)
{
    const float4 *row = (const float4 *)(grid->points + (size_t)entry * 3 * SLOTS);
    int n = (int)grid->counts[entry];
    float shift[3];

    vxd_odometry_shift(grid, local, rank, shift);
    for (int k = 0; 4 * k < n; k++) {
        const float4 x = row[k];
        const float4 y = row[SLOTS / 4 + k];
        const float4 z = row[2 * (SLOTS / 4) + k];
        const float p[4][3] = {
            {x.x, y.x, z.x}, {x.y, y.y, z.y}, {x.z, y.z, z.z}, {x.w, y.w, z.w}};

#pragma unroll
        for (int l = 0; l < 4; l++) {
            const float d[3] = {vxd_addf(p[l][0], shift[0]), vxd_addf(p[l][1], shift[1]),
                                vxd_addf(p[l][2], shift[2])};
            float d2 = vxd_odometry_dot(d, d);
            uint32_t id = (uint32_t)(rank * 32 + 4 * k + l);

            if (4 * k + l < n &&
                (d2 < match->d2 || (d2 == match->d2 && id < match->id))) {
                match->d2 = d2;
                match->id = id;
            }
        }
    }
}

/* The least match of a warp, by distance and then by number, and the entry that has it. */
static __device__ __forceinline__ struct vxd_odometry_match
least_of_warp(struct vxd_odometry_match match)
{
    uint64_t key = (uint64_t)vxd_float_bits(match.d2) << 32 | match.id;

#pragma unroll
    for (int bits = 16; bits > 0; bits /= 2) {
        uint64_t other = __shfl_xor_sync(UINT32_MAX, (unsigned long long)key, bits);

        key = other < key ? other : key;
    }
    match.d2 = vxd_float_of_bits((uint32_t)(key >> 32));
    match.id = (uint32_t)key;
    return match;
}

/* The plane around a point of the map; all lanes call and get it. */
static __device__ __forceinline__ enum vxd_odometry_shape
find_plane(const struct vxd_odometry_grid *grid, const int32_t home[3], uint32_t id,
           int32_t entry, struct vxd_odometry_kept *kept, float normal[3])
{
    const int lane = (int)(threadIdx.x % 32);
    uint32_t match = (uint32_t)entry * 32 + id % 32;
    const float *row = grid->points + (size_t)entry * 3 * SLOTS;
    float sums[VXD_ODOMETRY_N_MOMENTS] = {0};
    int32_t cell[3];
    float local[3];
    int shape = VXD_ODOMETRY_NO_SHAPE;

    if (kept->match == match) { /* the whole warp's */
        for (int i = 0; i < 3; i++) {
            normal[i] = kept->normal[i];
        }
        return kept->shape;
    }
    for (int i = 0; i < 3; i++) {
        cell[i] = home[i] + vxd_odometry_offset((int)(id / 32), i);
        local[i] = row[i * SLOTS + (int)(id % 32)];
    }
    if (lane < 27) {
        int32_t other = lane == 13 ? entry : vxd_odometry_neighbour(grid, cell, lane);

        if (other != VXD_NO_ENTRY) {
            vxd_odometry_moments(grid, other, local, lane, sums);
        }
    }
#pragma unroll
    for (int half = 16; half > 0; half /= 2) {
#pragma unroll
        for (int k = 0; k < VXD_ODOMETRY_N_MOMENTS; k++) {
            sums[k] = vxd_addf(sums[k], __shfl_down_sync(UINT32_MAX, sums[k], half));
        }
    }
    if (lane == 0) {
        shape = (int)vxd_odometry_plane(sums, normal);
        for (int i = 0; i < 3; i++) {
            kept->normal[i] = normal[i];
        }
        kept->shape = (enum vxd_odometry_shape)shape;
        kept->match = match;
    }
    for (int i = 0; i < 3; i++) {
        normal[i] = __shfl_sync(UINT32_MAX, normal[i], 0);
    }
    return (enum vxd_odometry_shape)__shfl_sync(UINT32_MAX, shape, 0);
}

/* A warp's point becomes a lane of the rows. */
static __device__ __forceinline__ void
pair_point(const struct vxd_odometry_align_call *call, const float T[12], int stage,
           size_t i, struct vxd_odometry_rows *rows, int row_lane)
{
    const int lane = (int)(threadIdx.x % 32);
    const struct vxd_odometry_grid *grid = &call->grid;
    struct vxd_odometry_match match = {call->rule.max_d2[stage], VXD_ODOMETRY_NO_MATCH};
    const float p[3] = {call->points[3 * i], call->points[3 * i + 1],
                        call->points[3 * i + 2]};
    int32_t entry = VXD_NO_ENTRY;
    int32_t cell[3];
    float q[3];
    float local[3];
    float normal[3] = {0, 0, 0};
    enum vxd_odometry_shape shape = VXD_ODOMETRY_NO_SHAPE;
    int rank;

    vxd_odometry_move(T, p, q);
    vxd_odometry_locate(grid, q, cell, local);
    if (lane < 27 && !(vxd_odometry_bound(grid, local, lane) > match.d2)) {
        entry = vxd_odometry_neighbour(grid, cell, lane);
        if (entry != VXD_NO_ENTRY) {
            search(grid, entry, local, lane, &match);
        }
    }
    match = least_of_warp(match);
    if (match.id == VXD_ODOMETRY_NO_MATCH) {
        if (lane == 0) {
            vxd_odometry_clear_rows(rows, row_lane);
        }
        return;
    }
    rank = (int)(match.id / 32);
    entry = __shfl_sync(UINT32_MAX, entry, rank);
    if (call->rule.method == VXD_ODOMETRY_POINT_TO_PLANE || call->rule.is_last != 0) {
        shape = find_plane(grid, cell, match.id, entry, &call->kept[i], normal);
    }
    if (lane == 0) {
        const float *row = grid->points + (size_t)entry * 3 * SLOTS;
        float shift[3];
        float arm[3];
        float difference[3];

        vxd_odometry_shift(grid, local, rank, shift);
        for (int k = 0; k < 3; k++) {
            arm[k] = vxd_subf(q[k], T[4 * k + 3]);
            difference[k] = -vxd_addf(row[k * SLOTS + (int)(match.id % 32)], shift[k]);
        }
        vxd_odometry_set_rows(&call->rule, stage, arm, difference, shape, normal, rows,
                              row_lane);
    }
}

/* The last block adds the strips: a warp one sum after the other, lane by lane, then pairwise. */
static __device__ __forceinline__ void
add_strips(const struct vxd_odometry_align_call *call, size_t n_strips)
{
    const unsigned warp = threadIdx.x / 32;
    const unsigned lane = threadIdx.x % 32;

    for (unsigned k = warp; k < N_SUMS; k += STRIP) {
        double sum = 0;

        for (size_t strip = lane; strip < n_strips; strip += LANES) {
            sum = vxd_addd(sum, (double)__ldcg(call->strips + strip * N_SUMS + k));
        }
#pragma unroll
        for (int half = LANES / 2; half > 0; half /= 2) {
            sum = vxd_addd(sum, __shfl_down_sync(UINT32_MAX, sum, half));
        }
        if (lane == 0) {
            call->work->sums[k] = sum;
        }
    }
}

static __global__ void __launch_bounds__(N_THREADS, 2)
    step_kernel(const __grid_constant__ struct vxd_odometry_align_call call)
{
    __shared__ struct vxd_odometry_rows rows;
    __shared__ int is_last_block;
    const int warp = (int)(threadIdx.x / 32);
    struct vxd_odometry_work *work = call.work;
    size_t n = work->n_registered;
    size_t n_strips = (n + STRIP - 1) / STRIP;
    size_t n_blocks = n_strips < gridDim.x ? n_strips : gridDim.x;
    float T[12];
    int stage;

    n_blocks = n_blocks > 0 ? n_blocks : 1;
    if (blockIdx.x >= n_blocks) {
        return;
    }
    if (call.rule.is_last == 0 && (work->is_done != 0 || work->is_singular != 0)) {
        return;
    }
    stage = work->stage;
    for (int i = 0; i < 12; i++) {
        T[i] = work->T[i];
    }
    for (size_t strip = blockIdx.x; strip < n_strips; strip += n_blocks) {
        size_t i = strip * STRIP + (size_t)warp;

        if (i < n) {
            pair_point(&call, T, stage, i, &rows, warp);
        } else if (threadIdx.x % 32 == 0) {
            vxd_odometry_clear_rows(&rows, warp);
        }
        __syncthreads();
        if (threadIdx.x < N_SUMS) {
            call.strips[strip * N_SUMS + threadIdx.x] =
                vxd_odometry_add_strip(&rows, (int)threadIdx.x);
            __threadfence();
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        is_last_block = atomicAdd(&work->n_blocks_done, 1u) + 1 == n_blocks ? 1 : 0;
        __threadfence();
    }
    __syncthreads();
    if (is_last_block == 0) {
        return;
    }
    add_strips(&call, n_strips);
    __syncthreads();
    if (threadIdx.x == 0) {
        work->n_blocks_done = 0;
        if (call.rule.is_last == 0) {
            vxd_odometry_step(work);
        }
    }
}

enum vxd_status vxd_odometry_align_cuda(struct vxd_queue *queue,
                                        const struct vxd_odometry_align_call *call,
                                        struct vxd_err *err)
{
    cudaStream_t stream = (cudaStream_t)queue->stream;
    struct vxd_context_info info;
    size_t n_strips = (call->capacity + STRIP - 1) / STRIP;
    size_t grid;
    int rounds = call->rule.is_last != 0 ? 1 : call->n;
    enum vxd_status status;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    vxd_context_get_info(queue->context, &info);
    grid = (size_t)info.n_multiprocessors * BLOCKS_A_MULTIPROCESSOR;
    grid = n_strips < grid ? n_strips : grid;
    if (call->is_begin) {
        VXD_TRY(VXD_CUDA(queue->context,
                         cudaMemsetAsync(call->kept, 0xff,
                                         call->capacity * sizeof *call->kept, stream),
                         err));
    }
    for (int i = 0; i < rounds; i++) {
        step_kernel<<<(unsigned)(grid > 0 ? grid : 1), N_THREADS, 0, stream>>>(*call);
        VXD_TRY(vxd_cuda_launched(queue->context, "step_kernel", err));
    }
out:
    return status;
}
