// SPDX-License-Identifier: Apache-2.0
/* A stable radix sort inside a cooperative kernel, for counts that only the device knows.
 *
 * A pass over 9 bits: every block counts the digits of its part; after a barrier it sums up
 * where its own keys of each digit go; then it places its part, 1024 keys at a time, ranked
 * by matches within warps and counts of the warps before. Digits in which no keys differ
 * take no pass. */
#ifndef VXD_GPU_SPARSE_SORT_CUDA_H
#define VXD_GPU_SPARSE_SORT_CUDA_H

#include "gpu/sparse/sparse_cuda.h"

#define VXD_SORT_BITS 9
#define VXD_SORT_BINS (1 << VXD_SORT_BITS)

struct vxd_sort_shared {
    alignas(16) uint16_t warps[VXD_GRID_WARPS][VXD_SORT_BINS];
    uint32_t bins[VXD_SORT_BINS];
    uint32_t sums[VXD_GRID_WARPS];
};

template <typename KEY> struct vxd_sort_pass {
    const KEY *keys;
    const uint32_t *values; /* NULL: a key's place */
    KEY *to_keys;           /* NULL: not wanted; likewise below */
    uint32_t *to_values;
    uint32_t n;
    int shift;
    uint32_t *counts; /* team x VXD_SORT_BINS */
};

template <typename KEY>
static __device__ __forceinline__ uint32_t vxd_sort_digit(KEY key, int shift)
{
    return (uint32_t)(key >> shift) & (VXD_SORT_BINS - 1);
}

/* Leaves in shared->bins where this block's keys of each digit begin. */
static __device__ __forceinline__ void vxd_sort_starts(const uint32_t *counts,
                                                       struct vxd_team team,
                                                       uint32_t n_parts,
                                                       struct vxd_sort_shared *shared)
{
    uint32_t *spare = (uint32_t *)shared->warps;
    uint32_t digit = threadIdx.x % VXD_SORT_BINS;
    uint32_t half = threadIdx.x / VXD_SORT_BINS;
    uint32_t lane = threadIdx.x % 32;
    uint32_t warp = threadIdx.x / 32;
    uint32_t before = 0;
    uint32_t total = 0;
    uint32_t start;

#pragma unroll 16
    for (uint32_t block = half; block < n_parts; block += 2) {
        uint32_t count = counts[(size_t)block * VXD_SORT_BINS + digit];

        total += count;
        before += block < team.rank ? count : 0;
    }
    if (half == 1) {
        spare[digit] = before;
        spare[VXD_SORT_BINS + digit] = total;
    }
    __syncthreads();
    if (half == 0) {
        before += spare[digit];
        total += spare[VXD_SORT_BINS + digit];
    } else {
        total = 0;
    }
    start = total;
    for (int step = 1; step < 32; step *= 2) {
        uint32_t other = __shfl_up_sync(UINT32_MAX, start, (unsigned)step);

        start += lane >= (uint32_t)step ? other : 0;
    }
    if (lane == 31) {
        shared->sums[warp] = start;
    }
    __syncthreads();
    start += __reduce_add_sync(UINT32_MAX, lane < warp ? shared->sums[lane] : 0) - total;
    if (half == 0) {
        shared->bins[digit] = start + before;
    }
    __syncthreads();
}

/* Places up to 1024 keys from `base` on and moves the bins on. */
template <typename KEY>
static __device__ __forceinline__ void
vxd_sort_place(const struct vxd_sort_pass<KEY> *pass, uint32_t base, uint32_t end,
               struct vxd_sort_shared *shared)
{
    uint4 *zeros = (uint4 *)shared->warps;
    uint32_t lane = threadIdx.x % 32;
    uint32_t warp = threadIdx.x / 32;
    uint32_t i = base + threadIdx.x;
    bool has_key = i < end;
    KEY key = has_key ? pass->keys[i] : 0;
    uint32_t digit = has_key ? vxd_sort_digit(key, pass->shift) : VXD_SORT_BINS;
    uint32_t peers;
    uint32_t rank;
    uint32_t sum = 0;

    for (uint32_t j = threadIdx.x; j < sizeof shared->warps / sizeof *zeros;
         j += VXD_GRID_THREADS) {
        zeros[j] = make_uint4(0, 0, 0, 0);
    }
    __syncthreads();
    peers = __match_any_sync(UINT32_MAX, digit);
    rank = (uint32_t)__popc(peers & ((1u << lane) - 1));
    if (has_key && rank == 0) {
        shared->warps[warp][digit] = (uint16_t)__popc(peers);
    }
    __syncthreads();
    if (threadIdx.x < VXD_SORT_BINS) {
        for (int w = 0; w < VXD_GRID_WARPS; w++) {
            uint32_t count = shared->warps[w][threadIdx.x];

            shared->warps[w][threadIdx.x] = (uint16_t)sum;
            sum += count;
        }
    }
    __syncthreads();
    if (has_key) {
        uint32_t at = shared->bins[digit] + shared->warps[warp][digit] + rank;

        if (pass->to_keys != NULL) {
            pass->to_keys[at] = key;
        }
        if (pass->to_values != NULL) {
            pass->to_values[at] = pass->values != NULL ? pass->values[i] : i;
        }
    }
    __syncthreads();
    if (threadIdx.x < VXD_SORT_BINS) {
        shared->bins[threadIdx.x] += sum;
    }
}

/* First half of a pass, by all threads of a team: counts. A barrier over the team follows. */
template <typename KEY>
static __device__ __forceinline__ void
vxd_sort_count(const struct vxd_sort_pass<KEY> *pass, struct vxd_team team,
               struct vxd_sort_shared *shared)
{
    struct vxd_part part = vxd_part_of(pass->n, team);

    __syncthreads();
    if (threadIdx.x < VXD_SORT_BINS) {
        shared->bins[threadIdx.x] = 0;
    }
    __syncthreads();
    for (uint32_t i = part.begin + threadIdx.x; i < part.end; i += VXD_GRID_THREADS) {
        (void)atomicAdd(&shared->bins[vxd_sort_digit(pass->keys[i], pass->shift)], 1u);
    }
    __syncthreads();
    if (threadIdx.x < VXD_SORT_BINS && team.rank < part.n_parts) {
        pass->counts[(size_t)team.rank * VXD_SORT_BINS + threadIdx.x] =
            shared->bins[threadIdx.x];
    }
}

/* Second half: places. Seen after the next barrier. */
template <typename KEY>
static __device__ __forceinline__ void
vxd_sort_scatter(const struct vxd_sort_pass<KEY> *pass, struct vxd_team team,
                 struct vxd_sort_shared *shared)
{
    struct vxd_part part = vxd_part_of(pass->n, team);

    vxd_sort_starts(pass->counts, team, part.n_parts, shared);
    for (uint32_t base = part.begin; base < part.end; base += VXD_GRID_THREADS) {
        vxd_sort_place(pass, base, part.end, shared);
    }
}

#endif
