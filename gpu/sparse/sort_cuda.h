// SPDX-License-Identifier: Apache-2.0
/* A stable radix sort inside a cooperative kernel, for counts that only the device knows.
 *
 * A pass over 9 bits: every block ranks the keys of its part among each other, up to 4096 at a
 * time (by matches within a warp, counts of a warp's earlier keys, counts of the warps before)
 * and says how many it has of each digit; after a barrier it sums up where its own keys of
 * each digit go, and places them. Parts of up to 4096 keys are read once. Digits in which no
 * keys differ take no pass. */
#ifndef VXD_GPU_SPARSE_SORT_CUDA_H
#define VXD_GPU_SPARSE_SORT_CUDA_H

#include "gpu/sparse/sparse_cuda.h"

#define VXD_SORT_BITS 9
#define VXD_SORT_BINS (1 << VXD_SORT_BITS)
#define VXD_SORT_ITEMS 4
#define VXD_SORT_TILE (VXD_SORT_ITEMS * VXD_GRID_THREADS)

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

/* A thread's keys of a tile, and how many of the tile with the same digit come before each. */
template <typename KEY> struct vxd_sort_items {
    KEY keys[VXD_SORT_ITEMS];
    uint32_t ranks[VXD_SORT_ITEMS];
    uint32_t n_of_digit; /* of this thread's number, in the tile */
};

template <typename KEY>
static __device__ __forceinline__ uint32_t vxd_sort_digit(KEY key, int shift)
{
    return (uint32_t)(key >> shift) & (VXD_SORT_BINS - 1);
}

/* Number of a thread's j-th key of the tile that begins at base; end or more: none. A warp's
 * keys follow each other. */
static __device__ __forceinline__ uint32_t vxd_sort_item(uint32_t base, uint32_t end,
                                                         int j)
{
    uint32_t n_items = min((end - base + VXD_GRID_THREADS - 1) / VXD_GRID_THREADS,
                           (uint32_t)VXD_SORT_ITEMS);

    if ((uint32_t)j >= n_items) {
        return end;
    }
    return base + (threadIdx.x / 32 * n_items + (uint32_t)j) * 32 + threadIdx.x % 32;
}

/* Lanes with the same digit, of those that have one. */
static __device__ __forceinline__ uint32_t vxd_sort_peers(bool has_key, uint32_t digit)
{
    uint32_t peers = __ballot_sync(UINT32_MAX, has_key);

#pragma unroll
    for (int bit = 0; bit < VXD_SORT_BITS; bit++) {
        bool is_set = (digit >> bit & 1) != 0;
        uint32_t with = __ballot_sync(UINT32_MAX, is_set);

        peers &= is_set ? with : ~with;
    }
    return peers;
}

/* Turns counts of warps to counts of the warps before; returns the digit's total. By the
 * threads below VXD_SORT_BINS. */
static __device__ __forceinline__ uint32_t
vxd_sort_scan_warps(struct vxd_sort_shared *shared)
{
    uint32_t sum = 0;

    for (int first = 0; first < VXD_GRID_WARPS; first += 16) {
        uint32_t counts[16];

#pragma unroll
        for (int w = 0; w < 16; w++) {
            counts[w] = shared->warps[first + w][threadIdx.x];
        }
#pragma unroll
        for (int w = 0; w < 16; w++) {
            shared->warps[first + w][threadIdx.x] = (uint16_t)sum;
            sum += counts[w];
        }
    }
    return sum;
}

template <typename KEY>
static __device__ __forceinline__ void
vxd_sort_rank(const struct vxd_sort_pass<KEY> *pass, uint32_t base, uint32_t end,
              struct vxd_sort_items<KEY> *items, struct vxd_sort_shared *shared)
{
    uint4 *zeros = (uint4 *)shared->warps;
    uint16_t *counts = shared->warps[threadIdx.x / 32];
    uint32_t lane = threadIdx.x % 32;

    __syncthreads(); /* keys may be this block's own, of just now */
#pragma unroll
    for (int j = 0; j < VXD_SORT_ITEMS; j++) {
        uint32_t i = vxd_sort_item(base, end, j);

        items->keys[j] = i < end ? pass->keys[i] : 0;
    }
    for (uint32_t j = threadIdx.x; j < sizeof shared->warps / sizeof *zeros;
         j += VXD_GRID_THREADS) {
        zeros[j] = make_uint4(0, 0, 0, 0);
    }
    __syncthreads();
#pragma unroll
    for (int j = 0; j < VXD_SORT_ITEMS; j++) {
        bool has_key = vxd_sort_item(base, end, j) < end;
        uint32_t digit = vxd_sort_digit(items->keys[j], pass->shift);

        if (__ballot_sync(UINT32_MAX, has_key) != 0) {
            uint32_t peers = vxd_sort_peers(has_key, digit);
            uint32_t rank = (uint32_t)__popc(peers & ((1u << lane) - 1));
            uint32_t before = counts[digit];

            __syncwarp();
            if (has_key && rank == 0) {
                counts[digit] = (uint16_t)(before + (uint32_t)__popc(peers));
            }
            __syncwarp();
            items->ranks[j] = before + rank;
        }
    }
    __syncthreads();
    items->n_of_digit = threadIdx.x < VXD_SORT_BINS ? vxd_sort_scan_warps(shared) : 0;
    __syncthreads();
#pragma unroll
    for (int j = 0; j < VXD_SORT_ITEMS; j++) {
        if (vxd_sort_item(base, end, j) < end) {
            items->ranks[j] += counts[vxd_sort_digit(items->keys[j], pass->shift)];
        }
    }
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

template <typename KEY>
static __device__ __forceinline__ void
vxd_sort_place(const struct vxd_sort_pass<KEY> *pass, uint32_t base, uint32_t end,
               const struct vxd_sort_items<KEY> *items,
               const struct vxd_sort_shared *shared)
{
#pragma unroll
    for (int j = 0; j < VXD_SORT_ITEMS; j++) {
        uint32_t i = vxd_sort_item(base, end, j);

        if (i < end) {
            KEY key = items->keys[j];
            uint32_t at =
                shared->bins[vxd_sort_digit(key, pass->shift)] + items->ranks[j];

            if (pass->to_keys != NULL) {
                pass->to_keys[at] = key;
            }
            if (pass->to_values != NULL) {
                pass->to_values[at] = pass->values != NULL ? pass->values[i] : i;
            }
        }
    }
}

/* First half of a pass, by all threads of a team: counts, and the ranks of the part's last tile
 * in items. A barrier over the team follows. */
template <typename KEY>
static __device__ __forceinline__ void
vxd_sort_count(const struct vxd_sort_pass<KEY> *pass, struct vxd_team team,
               struct vxd_sort_items<KEY> *items, struct vxd_sort_shared *shared)
{
    struct vxd_part part = vxd_part_of(pass->n, team);
    uint32_t count = 0;

    for (uint32_t base = part.begin; base < part.end; base += VXD_SORT_TILE) {
        vxd_sort_rank(pass, base, part.end, items, shared);
        count += items->n_of_digit;
    }
    if (threadIdx.x < VXD_SORT_BINS && team.rank < part.n_parts) {
        pass->counts[(size_t)team.rank * VXD_SORT_BINS + threadIdx.x] = count;
    }
}

/* Second half: places. Seen after the next barrier. */
template <typename KEY>
static __device__ __forceinline__ void
vxd_sort_scatter(const struct vxd_sort_pass<KEY> *pass, struct vxd_team team,
                 struct vxd_sort_items<KEY> *items, struct vxd_sort_shared *shared)
{
    struct vxd_part part = vxd_part_of(pass->n, team);

    __syncthreads(); /* until all have read what the starts' sums take the place of */
    vxd_sort_starts(pass->counts, team, part.n_parts, shared);
    for (uint32_t base = part.begin; base < part.end; base += VXD_SORT_TILE) {
        if (part.end - part.begin > VXD_SORT_TILE) {
            vxd_sort_rank(pass, base, part.end, items, shared);
        }
        vxd_sort_place(pass, base, part.end, items, shared);
        __syncthreads();
        if (threadIdx.x < VXD_SORT_BINS) {
            shared->bins[threadIdx.x] += items->n_of_digit;
        }
        __syncthreads();
    }
}

#endif
