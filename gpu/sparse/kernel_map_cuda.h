// SPDX-License-Identifier: Apache-2.0
/* What follows a kernel map's table: counts of taps, and rows in the order of their masks.
 *
 * Tiles of a convolution skip taps that none of their rows has, so rows with equal taps should
 * lie together. A row's key is its mask with bits ordered by how many rows have the tap, the
 * rarest on top (research, 2.4); rows are sorted by it, equal ones by number. Sorted in
 * windows instead, tiles would do up to half as much again. Bits that all rows or none
 * have are left out; of kernels with more taps the most frequent ones count. */
#ifndef VXD_GPU_SPARSE_KERNEL_MAP_CUDA_H
#define VXD_GPU_SPARSE_KERNEL_MAP_CUDA_H

#include "gpu/sparse/sort_cuda.h"

#define VXD_ORDER_BITS 27 /* three passes */

struct vxd_map_run {
    struct vxd_sparse_geometry geometry;
    struct vxd_sparse_set in;
    struct vxd_sparse_set out;
    struct vxd_kernel_map map;
    /* Scratch: map.capacity words each, then the grid's. */
    uint32_t *keys[2];
    uint32_t *values;
    uint32_t *error_word;
    uint32_t *sort_counts;
    uint32_t *tap_counts; /* grid x n_taps */
};

struct vxd_map_shared {
    uint32_t tap_counts[VXD_SPARSE_MAX_TAPS]; /* of the block, then of all rows */
    int taps[VXD_ORDER_BITS];                 /* of each bit of a key */
};

/* All threads of the grid call it and then return. */
static __device__ __forceinline__ void vxd_map_fail(const struct vxd_map_run *run)
{
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        *run->map.n_pairs = 0;
        vxd_sparse_fault(run->error_word, VXD_RESOURCE_EXHAUSTED);
    }
}

/* Turns the block's counts of taps into the grid's. */
static __device__ __forceinline__ void
vxd_map_sum_taps(cooperative_groups::grid_group grid, const struct vxd_map_run *run,
                 struct vxd_map_shared *shared)
{
    uint32_t n_taps = (uint32_t)run->map.n_taps;

    __syncthreads();
    for (uint32_t tap = threadIdx.x; tap < n_taps; tap += VXD_GRID_THREADS) {
        run->tap_counts[blockIdx.x * n_taps + tap] = shared->tap_counts[tap];
        shared->tap_counts[tap] = 0;
    }
    grid.sync();
    for (uint32_t i = threadIdx.x; i < gridDim.x * n_taps; i += VXD_GRID_THREADS) {
        (void)atomicAdd(&shared->tap_counts[i % n_taps], run->tap_counts[i]);
    }
    __syncthreads();
}

/* Chooses the taps of a key's bits; returns how many bits there are. */
static __device__ __forceinline__ int vxd_map_rank_taps(uint32_t n_taps, uint32_t n_rows,
                                                        struct vxd_map_shared *shared)
{
    uint32_t tap = threadIdx.x;
    uint32_t count = tap < n_taps ? shared->tap_counts[tap] : 0;
    bool varies = count > 0 && count < n_rows;
    int n_varying = __syncthreads_count(varies);

    if (varies) {
        int rank = 0;

        for (uint32_t i = 0; i < n_taps; i++) {
            uint32_t other = shared->tap_counts[i];

            rank += other < n_rows && (other > count || (other == count && i < tap));
        }
        if (rank < VXD_ORDER_BITS) {
            shared->taps[rank] = (int)tap;
        }
    }
    __syncthreads();
    return n_varying < VXD_ORDER_BITS ? n_varying : VXD_ORDER_BITS;
}

static __device__ __forceinline__ void
vxd_map_make_keys(const struct vxd_map_run *run, uint32_t n_rows, int n_bits,
                  const struct vxd_map_shared *shared)
{
    size_t n_words = VXD_SPARSE_MASK_WORDS(run->map.n_taps);
    struct vxd_part part = vxd_part_of(n_rows);

    for (uint32_t i = part.begin + threadIdx.x; i < part.end; i += VXD_GRID_THREADS) {
        const uint32_t *mask = run->map.masks + i * n_words;
        uint32_t word = mask[0];
        uint32_t key = 0;

        for (int bit = 0; bit < n_bits; bit++) {
            int tap = shared->taps[bit];

            word = n_words > 1 ? mask[tap / 32] : word;
            key |= (word >> tap % 32 & 1) << bit;
        }
        run->keys[0][i] = key;
    }
}

/* Order, tap counts and pairs of a map whose table and masks are written; shared->tap_counts
 * hold the block's counts. */
static __device__ __forceinline__ void vxd_map_finish(cooperative_groups::grid_group grid,
                                                      const struct vxd_map_run *run,
                                                      uint32_t n_rows,
                                                      struct vxd_map_shared *shared,
                                                      struct vxd_sort_shared *sort)
{
    uint32_t n_taps = (uint32_t)run->map.n_taps;
    uint32_t n_padded =
        (n_rows + VXD_SPARSE_ROW_PAD - 1) / VXD_SPARSE_ROW_PAD * VXD_SPARSE_ROW_PAD;
    uint32_t *order[2] = {run->map.order, run->values};
    int n_passes;
    int n_bits;

    vxd_map_sum_taps(grid, run, shared);
    if (blockIdx.x == 0) {
        uint64_t n_pairs =
            vxd_block_sum(threadIdx.x < n_taps ? shared->tap_counts[threadIdx.x] : 0);

        if (threadIdx.x == 0) {
            *run->map.n_pairs = n_pairs;
        }
    }
    n_bits = vxd_map_rank_taps(n_taps, n_rows, shared);
    n_passes = (n_bits + VXD_SORT_BITS - 1) / VXD_SORT_BITS;
    vxd_map_make_keys(run, n_rows, n_bits, shared);
    for (int i = 0; i < n_passes; i++) {
        bool is_last = i == n_passes - 1;
        struct vxd_sort_pass<uint32_t> pass = {
            run->keys[i % 2], i > 0 ? order[(n_passes - i) % 2] : NULL,
                is_last ? NULL : run->keys[(i + 1) % 2], order[(n_passes - 1 - i) % 2],
                n_rows, i *VXD_SORT_BITS, run->sort_counts
        };

        vxd_sort_run(grid, &pass, sort);
        if (!is_last) {
            grid.sync();
        }
    }
    for (uint32_t i =
             (n_passes > 0 ? n_rows : 0) + blockIdx.x * VXD_GRID_THREADS + threadIdx.x;
         i < n_padded; i += gridDim.x * VXD_GRID_THREADS) {
        run->map.order[i] = i;
    }
}

#endif
