// SPDX-License-Identifier: Apache-2.0
/* Derived sets of bounded shapes without a sort: a table with a word for each block of 4x4x4
 * cells of the shape, a bit a cell, in the order of keys. Candidates set bits; reading the
 * table from its begin gives rows and blocks in order.
 *
 * Words are numbered by block names without the bits that are the same all over the shape,
 * sample by sample; so the table has at most eight times as many words as the shape blocks.
 * Bytes: 24 a word (cleared, counted, read) beside candidates. */
#ifndef VXD_GPU_SPARSE_SET_DENSE_CUDA_H
#define VXD_GPU_SPARSE_SET_DENSE_CUDA_H

#include "gpu/sparse/set_cuda.h"

/* Numbers of blocks. moves: Hacker's Delight, 7-4, compress by parallel suffix. */
struct vxd_dense_plan {
    uint64_t mask;  /* bits of a block's name that vary within a sample */
    uint64_t fixed; /* the others but for the sample's */
    uint64_t moves[6];
    int n_bits;           /* of the mask */
    uint64_t *words;      /* the table, where keys of candidates would be */
    uint64_t n_words_max; /* room; 0: the shape is unbounded or too big */
};

/* words have room for n_words. */
static inline void vxd_dense_plan_make(const int32_t shape[3], uint64_t *words,
                                       uint64_t n_words, struct vxd_dense_plan *out)
{
    uint64_t mask = 0;
    uint64_t gaps;

    *out = {};
    for (int axis = 0; axis < 3; axis++) {
        uint64_t n_blocks = ((uint64_t)shape[axis] + 3) / 4;
        int level = 0;

        if (n_blocks == 0) {
            return;
        }
        for (; (uint64_t)1 << level < n_blocks; level++) {
            mask |= (uint64_t)1 << (3 * level + 2 - axis);
        }
        out->fixed |= (uint64_t)1 << (3 * (VXD_SPARSE_COORD_BITS - 3) + 2 - axis);
    }
    out->mask = mask;
    out->n_bits = __builtin_popcountll(mask);
    n_words = n_words < INT32_MAX ? n_words : INT32_MAX;
    if ((uint64_t)1 << out->n_bits > n_words) {
        return;
    }
    out->words = words;
    out->n_words_max = n_words;
    gaps = ~mask << 1;
    for (int i = 0; i < 6; i++) {
        uint64_t parity = gaps ^ gaps << 1;

        for (int shift = 2; shift < 64; shift *= 2) {
            parity ^= parity << shift;
        }
        out->moves[i] = parity & mask;
        mask = (mask ^ out->moves[i]) | out->moves[i] >> (1 << i);
        gaps &= ~parity;
    }
}

#define VXD_BLOCK_SAMPLE_BIT (VXD_SPARSE_KEY_SAMPLE_BIT - 6)

static __device__ __forceinline__ uint64_t
vxd_dense_number(const struct vxd_dense_plan *plan, uint64_t block)
{
    uint64_t bits = block & plan->mask;

#pragma unroll
    for (int i = 0; i < 6; i++) {
        uint64_t moved = bits & plan->moves[i];

        bits = (bits ^ moved) | moved >> (1 << i);
    }
    return block >> VXD_BLOCK_SAMPLE_BIT << plan->n_bits | bits;
}

static __device__ __forceinline__ uint64_t
vxd_dense_block(const struct vxd_dense_plan *plan, uint64_t number)
{
    uint64_t bits = number & (((uint64_t)1 << plan->n_bits) - 1);

#pragma unroll
    for (int i = 5; i >= 0; i--) {
        bits = (bits & ~plan->moves[i]) | (bits << (1 << i) & plan->moves[i]);
    }
    return number >> plan->n_bits << VXD_BLOCK_SAMPLE_BIT | plan->fixed |
           (bits & plan->mask);
}

/* Words of the table for the samples of a set; 0 where there is no room for them. */
static __device__ __forceinline__ uint64_t vxd_dense_n_words(
    const struct vxd_dense_plan *plan, const struct vxd_sparse_set *in, uint32_t n_in)
{
    uint64_t n_samples =
        n_in > 0 ? (in->keys[n_in - 1] >> VXD_SPARSE_KEY_SAMPLE_BIT) + 1 : 1;
    uint64_t n_words;

    if (plan->n_words_max == 0) {
        return 0;
    }
    n_words = n_samples << plan->n_bits;
    return n_words <= plan->n_words_max ? n_words : 0;
}

/* A barrier follows. */
static __device__ __forceinline__ void vxd_dense_clear(const struct vxd_dense_plan *plan,
                                                       uint64_t n_words)
{
    uint64_t step = (uint64_t)gridDim.x * VXD_GRID_THREADS;

    for (uint64_t i = (uint64_t)blockIdx.x * VXD_GRID_THREADS + threadIdx.x; i < n_words;
         i += step) {
        plan->words[i] = 0;
    }
}

/* Rows in the upper half, blocks in the lower. */
static __device__ __forceinline__ uint64_t vxd_dense_count(uint64_t mask)
{
    return (uint64_t)vxd_sparse_popcount(mask) << 32 | (mask != 0 ? 1 : 0);
}

/* The set of a table whose bits are set; a barrier was since. */
static __device__ void vxd_dense_finish(cooperative_groups::grid_group grid,
                                        const struct vxd_sparse_set *set,
                                        const struct vxd_dense_plan *plan,
                                        uint32_t n_words, uint64_t *words,
                                        uint32_t *error_word)
{
    struct vxd_part part = vxd_part_of(n_words, vxd_team_of_grid());
    uint64_t count = 0;
    struct vxd_sums sums;
    uint32_t n_blocks;

    for (uint32_t i = part.begin + threadIdx.x; i < part.end; i += VXD_GRID_THREADS) {
        count += vxd_dense_count(plan->words[i]);
    }
    count = vxd_block_sum(count);
    if (threadIdx.x == 0) {
        words[blockIdx.x] = count;
    }
    grid.sync();
    sums = vxd_grid_sum(words);
    if (sums.total >> 32 > set->capacity) {
        vxd_set_fail(set, error_word, VXD_RESOURCE_EXHAUSTED);
        return;
    }
    n_blocks = (uint32_t)sums.total;
    vxd_set_clear_slots(set, n_blocks);
    for (uint32_t base = part.begin; base < part.end; base += VXD_GRID_THREADS) {
        uint32_t i = base + threadIdx.x;
        uint64_t mask = i < part.end ? plan->words[i] : 0;
        struct vxd_sums in_tile = vxd_block_scan(vxd_dense_count(mask));
        uint64_t at = sums.before + in_tile.before;

        if (mask != 0) {
            uint64_t block = vxd_dense_block(plan, i);
            uint32_t row = (uint32_t)(at >> 32);

            set->block_keys[(uint32_t)at] = block;
            set->block_mask[(uint32_t)at] = mask;
            set->block_row[(uint32_t)at] = row;
            for (; mask != 0; mask &= mask - 1) {
                set->keys[row++] = block << 6 | (uint64_t)(__ffsll((long long)mask) - 1);
            }
        }
        sums.before += in_tile.total;
    }
    vxd_set_count(set, (uint32_t)(sums.total >> 32), n_blocks);
    grid.sync();
    vxd_set_fill_slots(set, n_blocks);
}

#endif
