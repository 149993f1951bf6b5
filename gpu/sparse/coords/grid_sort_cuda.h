// SPDX-License-Identifier: Apache-2.0
/* A stable radix sort inside a cooperative kernel, for counts that only the device knows.
 *
 * A pass over 9 bits has three steps with a barrier after each. First, every block ranks the keys
 * of its range, 8192 at a time (by matches within a warp, counts of a warp's earlier keys, counts
 * of the warps before), stores the ranks and publishes how many keys of each digit it has.
 * Second, a warp for each digit sums the digit's counts over the blocks; if each block did that
 * for itself, all blocks would read all counts at once, which took most of a pass. Third, keys
 * are placed. Digits in which no keys differ take no pass. */
#ifndef VXD_GPU_SPARSE_COORDS_GRID_SORT_CUDA_H
#define VXD_GPU_SPARSE_COORDS_GRID_SORT_CUDA_H

#include "gpu/sparse/coords/grid_cuda.h"

#define VXD_SORT_BITS 9
#define VXD_SORT_BINS (1 << VXD_SORT_BITS)
#define VXD_SORT_ITEMS 8
#define VXD_SORT_TILE (VXD_SORT_ITEMS * VXD_GRID_THREADS)

static_assert(2 * VXD_SORT_BINS == VXD_GRID_THREADS, "two threads a digit");

/* Words of scratch for a group of so many blocks: the counts of each, and totals. */
#define VXD_SORT_WORDS(n_blocks) (((size_t)(n_blocks) + 1) * VXD_SORT_BINS)

struct vxd_sort_shared {
    alignas(16) uint16_t warps[VXD_GRID_WARPS][VXD_SORT_BINS];
    uint32_t tile[VXD_SORT_BINS]; /* keys of a digit in the tile */
    /* keys of the digit in earlier tiles; later, where they begin */
    uint32_t bins[VXD_SORT_BINS];
    uint32_t sums[VXD_GRID_WARPS];
};

template <typename KEY> struct vxd_sort_pass {
    const KEY *keys;
    const uint32_t *values; /* NULL: the values are the keys' places */
    KEY *to_keys;           /* may be NULL, as may the array below */
    uint32_t *to_values;
    uint32_t n;
    int shift;
    uint32_t *ranks; /* scratch, n */
    /* VXD_SORT_WORDS: totals, then the counts of the blocks, digit by digit */
    uint32_t *counts;
};

template <typename KEY>
static __device__ __forceinline__ uint32_t vxd_sort_digit(KEY key, int shift)
{
    return (uint32_t)(key >> shift) & (VXD_SORT_BINS - 1);
}

/* How many keys of a tile a thread has, and the number of its first. The next ones are
 * 32 apart, so that the keys of a warp are consecutive. */
struct vxd_sort_span {
    int n_items;
    uint32_t first;
};

static __device__ __forceinline__ struct vxd_sort_span vxd_sort_span_of(uint32_t base,
                                                                        uint32_t end)
{
    uint32_t n_items = min((end - base + VXD_GRID_THREADS - 1) / VXD_GRID_THREADS,
                           (uint32_t)VXD_SORT_ITEMS);

    return {(int)n_items, base + threadIdx.x / 32 * n_items * 32 + threadIdx.x % 32};
}

/* Lanes with the same digit, among those that have a key. */
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

/* Turns the counts of warps into counts of the warps before, two threads a digit, and
 * leaves the digit's total in tile. */
static __device__ __forceinline__ void vxd_sort_scan_warps(struct vxd_sort_shared *shared)
{
    uint32_t digit = threadIdx.x % VXD_SORT_BINS;
    uint32_t first = threadIdx.x / VXD_SORT_BINS * (VXD_GRID_WARPS / 2);
    uint32_t counts[VXD_GRID_WARPS / 2];
    uint32_t sum = 0;

#pragma unroll
    for (int w = 0; w < VXD_GRID_WARPS / 2; w++) {
        counts[w] = shared->warps[first + (uint32_t)w][digit];
        sum += counts[w];
    }
    if (first == 0) {
        shared->tile[digit] = sum;
    }
    __syncthreads();
    if (first != 0) {
        uint32_t before = shared->tile[digit];

        shared->tile[digit] = before + sum;
        sum = before;
    } else {
        sum = 0;
    }
#pragma unroll
    for (int w = 0; w < VXD_GRID_WARPS / 2; w++) {
        shared->warps[first + (uint32_t)w][digit] = (uint16_t)sum;
        sum += counts[w];
    }
}

/* Ranks the keys of the tile that begins at base. */
template <typename KEY>
static __device__ __forceinline__ void
vxd_sort_rank(const struct vxd_sort_pass<KEY> *pass, uint32_t base, uint32_t end,
              struct vxd_sort_shared *shared)
{
    uint4 *zeros = (uint4 *)shared->warps;
    uint16_t *counts = shared->warps[threadIdx.x / 32];
    uint32_t lane = threadIdx.x % 32;
    struct vxd_sort_span span = vxd_sort_span_of(base, end);
    uint32_t digits[VXD_SORT_ITEMS];

    __syncthreads(); /* this block may have just written the keys */
#pragma unroll
    for (int j = 0; j < VXD_SORT_ITEMS; j++) {
        uint32_t i = span.first + 32 * (uint32_t)j;

        digits[j] =
            j < span.n_items && i < end ? vxd_sort_digit(pass->keys[i], pass->shift) : 0;
    }
    for (uint32_t j = threadIdx.x; j < sizeof shared->warps / sizeof *zeros;
         j += VXD_GRID_THREADS) {
        zeros[j] = make_uint4(0, 0, 0, 0);
    }
    __syncthreads();
#pragma unroll
    for (int j = 0; j < VXD_SORT_ITEMS; j++) {
        if (j < span.n_items) {
            bool has_key = span.first + 32 * (uint32_t)j < end;
            uint32_t peers = vxd_sort_peers(has_key, digits[j]);
            uint32_t rank = (uint32_t)__popc(peers & ((1u << lane) - 1));
            uint32_t before = counts[digits[j]];

            __syncwarp();
            if (has_key && rank == 0) {
                counts[digits[j]] = (uint16_t)(before + (uint32_t)__popc(peers));
            }
            __syncwarp();
            digits[j] |= (before + rank) << 16;
        }
    }
    __syncthreads();
    vxd_sort_scan_warps(shared);
    __syncthreads();
#pragma unroll
    for (int j = 0; j < VXD_SORT_ITEMS; j++) {
        uint32_t i = span.first + 32 * (uint32_t)j;
        uint32_t digit = digits[j] & 0xffff;

        if (j < span.n_items && i < end) {
            pass->ranks[i] = shared->bins[digit] + counts[digit] + (digits[j] >> 16);
        }
    }
}

/* First step, by all threads of a group of blocks: counts and ranks. A barrier over
 * the group follows each step. */
template <typename KEY>
static __device__ __forceinline__ void
vxd_sort_count(const struct vxd_sort_pass<KEY> *pass, struct vxd_block_group block_group,
               struct vxd_sort_shared *shared)
{
    struct vxd_block_range range = vxd_block_range_of(pass->n, block_group);
    uint32_t digit = threadIdx.x;
    bool has_digit = digit < VXD_SORT_BINS;

    if (has_digit) {
        shared->bins[digit] = 0;
    }
    for (uint32_t base = range.begin; base < range.end; base += VXD_SORT_TILE) {
        vxd_sort_rank(pass, base, range.end, shared);
        __syncthreads();
        if (has_digit) {
            shared->bins[digit] += shared->tile[digit];
        }
    }
    if (has_digit && block_group.rank < range.n_ranges) {
        pass->counts[VXD_SORT_BINS + (size_t)digit * range.n_ranges + block_group.rank] =
            shared->bins[digit];
    }
}

/* Second step: counts become counts of the ranges before, a warp a digit. */
template <typename KEY>
static __device__ __forceinline__ void vxd_sort_sum(const struct vxd_sort_pass<KEY> *pass,
                                                    struct vxd_block_group block_group)
{
    uint32_t n_ranges = vxd_block_range_of(pass->n, block_group).n_ranges;
    uint32_t lane = threadIdx.x % 32;

    for (uint32_t digit = threadIdx.x / 32 * block_group.size + block_group.rank;
         digit < VXD_SORT_BINS; digit += block_group.size * VXD_GRID_WARPS) {
        uint32_t *counts = pass->counts + VXD_SORT_BINS + (size_t)digit * n_ranges;
        uint32_t before = 0;

        for (uint32_t first = 0; first < n_ranges; first += 32) {
            uint32_t range = first + lane;
            uint32_t count = range < n_ranges ? counts[range] : 0;
            uint32_t sum = count;

            for (int step = 1; step < 32; step *= 2) {
                uint32_t other = __shfl_up_sync(UINT32_MAX, sum, (unsigned)step);

                sum += lane >= (uint32_t)step ? other : 0;
            }
            if (range < n_ranges) {
                counts[range] = before + sum - count;
            }
            before += __shfl_sync(UINT32_MAX, sum, 31);
        }
        if (lane == 0) {
            pass->counts[digit] = before;
        }
    }
}

/* Stores in shared->bins where this block's keys of each digit begin. */
static __device__ __forceinline__ void vxd_sort_starts(const uint32_t *counts,
                                                       struct vxd_block_group block_group,
                                                       uint32_t n_ranges,
                                                       struct vxd_sort_shared *shared)
{
    uint32_t digit = threadIdx.x;
    uint32_t lane = threadIdx.x % 32;
    uint32_t warp = threadIdx.x / 32;
    bool has_digit = digit < VXD_SORT_BINS && block_group.rank < n_ranges;
    uint32_t total = has_digit ? counts[digit] : 0;
    uint32_t before =
        has_digit ? counts[VXD_SORT_BINS + (size_t)digit * n_ranges + block_group.rank]
                  : 0;
    uint32_t start = total;

    for (int step = 1; step < 32; step *= 2) {
        uint32_t other = __shfl_up_sync(UINT32_MAX, start, (unsigned)step);

        start += lane >= (uint32_t)step ? other : 0;
    }
    if (lane == 31) {
        shared->sums[warp] = start;
    }
    __syncthreads();
    start += __reduce_add_sync(UINT32_MAX, lane < warp ? shared->sums[lane] : 0) - total;
    if (digit < VXD_SORT_BINS) {
        shared->bins[digit] = start + before;
    }
    __syncthreads();
}

/* Third step: moves the keys to their places. */
template <typename KEY>
static __device__ __forceinline__ void
vxd_sort_scatter(const struct vxd_sort_pass<KEY> *pass,
                 struct vxd_block_group block_group, struct vxd_sort_shared *shared)
{
    struct vxd_block_range range = vxd_block_range_of(pass->n, block_group);

    vxd_sort_starts(pass->counts, block_group, range.n_ranges, shared);
#pragma unroll 4
    for (uint32_t i = range.begin + threadIdx.x; i < range.end; i += VXD_GRID_THREADS) {
        KEY key = pass->keys[i];
        uint32_t at = shared->bins[vxd_sort_digit(key, pass->shift)] + pass->ranks[i];

        if (pass->to_keys != NULL) {
            pass->to_keys[at] = key;
        }
        if (pass->to_values != NULL) {
            pass->to_values[at] = pass->values != NULL ? pass->values[i] : i;
        }
    }
}

#endif
