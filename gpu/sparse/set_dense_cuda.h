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

/* Tables are read in tiles, which the blocks of a launch take in turns: what is near a sensor
 * lies in few of them, and at the same place of every level's table. */
struct vxd_dense_tiles {
    uint32_t n;
    uint32_t n_words; /* of a tile, a multiple of VXD_GRID_THREADS */
};

static __device__ __forceinline__ struct vxd_dense_tiles
vxd_dense_tiles_of(uint32_t n_words)
{
    uint32_t n_rounds =
        n_words / (uint32_t)(VXD_SET_TILES * VXD_GRID_THREADS) + (n_words > 0 ? 1 : 0);
    uint32_t tile = n_rounds * VXD_GRID_THREADS;

    return {tile > 0 ? (n_words + tile - 1) / tile : 0, tile};
}

/* Step 1 of making a set of a table whose bits are set: counts of tiles, a word each. A barrier
 * over the grid follows each step. */
static __device__ __forceinline__ void
vxd_dense_count_tiles(const struct vxd_dense_plan *plan, uint32_t n_words,
                      uint64_t *words)
{
    struct vxd_dense_tiles tiles = vxd_dense_tiles_of(n_words);

    for (uint32_t tile = blockIdx.x; tile < tiles.n; tile += gridDim.x) {
        uint32_t begin = tile * tiles.n_words;
        uint32_t end = min(begin + tiles.n_words, n_words);
        uint64_t count = 0;

        for (uint32_t i = begin + threadIdx.x; i < end; i += VXD_GRID_THREADS) {
            count += vxd_dense_count(plan->words[i]);
        }
        count = vxd_block_sum(count);
        if (threadIdx.x == 0) {
            words[tile] = count;
        }
    }
}

/* The rows and the block of a word. */
static __device__ __forceinline__ void
vxd_dense_write_word(const struct vxd_sparse_set *set, const struct vxd_dense_plan *plan,
                     uint32_t i, uint64_t mask, uint64_t at)
{
    uint64_t block = vxd_dense_block(plan, i);
    uint32_t row = (uint32_t)(at >> 32);

    set->block_keys[(uint32_t)at] = block;
    set->block_mask[(uint32_t)at] = mask;
    set->block_row[(uint32_t)at] = row;
    for (; mask != 0; mask &= mask - 1) {
        set->keys[row++] = block << 6 | (uint64_t)(__ffsll((long long)mask) - 1);
    }
}

/* Step 2: all but the slots, which are cleared. Returns how many blocks there are; 0, and a
 * fault, where there is no room. Step 3 is vxd_set_fill_slots. before: shared memory, a word a
 * thread. */
static __device__ __forceinline__ uint32_t vxd_dense_write(
    const struct vxd_sparse_set *set, const struct vxd_dense_plan *plan, uint32_t n_words,
    const uint64_t *words, uint64_t *before, uint32_t *error_word)
{
    struct vxd_dense_tiles tiles = vxd_dense_tiles_of(n_words);
    struct vxd_sums sums = vxd_block_scan(threadIdx.x < tiles.n ? words[threadIdx.x] : 0);
    uint32_t n_blocks = (uint32_t)sums.total;

    if (sums.total >> 32 > set->capacity) {
        vxd_set_fail(set, error_word, VXD_RESOURCE_EXHAUSTED);
        return 0;
    }
    before[threadIdx.x] = sums.before;
    vxd_set_count(set, (uint32_t)(sums.total >> 32), n_blocks);
    vxd_set_clear_slots(set, n_blocks);
    __syncthreads();
    for (uint32_t tile = blockIdx.x; tile < tiles.n; tile += gridDim.x) {
        uint32_t begin = tile * tiles.n_words;
        uint32_t end = min(begin + tiles.n_words, n_words);
        uint64_t at = before[tile];

        for (uint32_t base = begin; base < end; base += VXD_GRID_THREADS) {
            uint32_t i = base + threadIdx.x;
            uint64_t mask = i < end ? plan->words[i] : 0;
            struct vxd_sums in_round;

            /* Most of a table is empty. */
            if (__syncthreads_or(mask != 0) == 0) {
                continue;
            }
            in_round = vxd_block_scan(vxd_dense_count(mask));
            if (mask != 0) {
                vxd_dense_write_word(set, plan, i, mask, at + in_round.before);
            }
            at += in_round.total;
        }
    }
    __syncthreads();
    return n_blocks;
}

static __device__ void vxd_dense_finish(cooperative_groups::grid_group grid,
                                        const struct vxd_sparse_set *set,
                                        const struct vxd_dense_plan *plan,
                                        uint32_t n_words, uint64_t *words,
                                        uint64_t *before, uint32_t *error_word)
{
    uint32_t n_blocks;

    vxd_dense_count_tiles(plan, n_words, words);
    grid.sync();
    n_blocks = vxd_dense_write(set, plan, n_words, words, before, error_word);
    grid.sync();
    vxd_set_fill_slots(set, n_blocks);
}

/* Near a sensor thousands of rows set the same bits of a word, and atomics of it queue up, which
 * looks do not. */
static __device__ __forceinline__ void vxd_dense_or(unsigned long long *word,
                                                    unsigned long long bits)
{
    if ((~__ldcg(word) & bits) != 0) {
        (void)atomicOr(word, bits);
    }
}

/* An axis's share of a word's number, of block 0 to VXD_DENSE_MARK_CELLS / 4 - 1 of the axis. */
#define VXD_DENSE_MARK_CELLS 4096

static __device__ __forceinline__ uint32_t
vxd_dense_axis_number(const struct vxd_dense_plan *plan, int axis, uint32_t block)
{
    uint32_t bits = (block | block << 16) & 0x030000ff;

    bits = (bits | bits << 8) & 0x0300f00f;
    bits = (bits | bits << 4) & 0x030c30c3;
    bits = (bits | bits << 2) & 0x09249249;
    bits <<= 2 - axis;
#pragma unroll
    for (int i = 0; i < 5; i++) {
        uint32_t moved = bits & (uint32_t)plan->moves[i];

        bits = (bits ^ moved) | moved >> (1 << i);
    }
    return bits;
}

/* Which of an axis's four layers of a block lie in a range of cells, a bit each. */
static __device__ __forceinline__ uint32_t vxd_dense_layers(int32_t first, int32_t last,
                                                            int32_t block)
{
    uint32_t from = 15u << max(first - 4 * block, 0);

    return from & 15u >> max(4 * block + 3 - last, 0);
}

/* Cells of those layers: of z in 16 bits that repeat, of y in 32 that do; of x bits 0 and 1 are
 * the lower half of a word's, 2 and 3 the upper. */
static __device__ __forceinline__ uint32_t vxd_dense_z(uint32_t layers)
{
    uint32_t cells = ((layers & 1) * 0x55 | (layers >> 1 & 1) * 0xaa) |
                     ((layers >> 2 & 1) * 0x5500 | (layers >> 3 & 1) * 0xaa00);

    return cells | cells << 16;
}

static __device__ __forceinline__ uint32_t vxd_dense_y(uint32_t layers)
{
    return ((layers & 1) * 0x3333 | (layers >> 1 & 1) * 0xcccc) |
           ((layers >> 2 & 1) * 0x33330000 | (layers >> 3 & 1) * 0xcccc0000);
}

static __device__ __forceinline__ uint32_t vxd_dense_x(uint32_t layers)
{
    return (layers & 1) * 0x0f0f0f0f | (layers >> 1 & 1) * 0xf0f0f0f0;
}

/* Sets the bits of a box of cells of a sample, none of them below 0. */
static __device__ __forceinline__ void vxd_dense_mark(const struct vxd_dense_plan *plan,
                                                      uint64_t sample,
                                                      const int32_t first[3],
                                                      const int32_t last[3])
{
    unsigned long long *words =
        (unsigned long long *)plan->words + (sample << plan->n_bits);

    for (int32_t x = first[0] >> 2; x <= last[0] >> 2; x++) {
        uint32_t layers = vxd_dense_layers(first[0], last[0], x);
        uint32_t low_x = vxd_dense_x(layers);
        uint32_t high_x = vxd_dense_x(layers >> 2);
        uint32_t number_x = vxd_dense_axis_number(plan, 0, (uint32_t)x);

        for (int32_t y = first[1] >> 2; y <= last[1] >> 2; y++) {
            uint32_t cells_y = vxd_dense_y(vxd_dense_layers(first[1], last[1], y));
            uint32_t number_xy = number_x | vxd_dense_axis_number(plan, 1, (uint32_t)y);

            for (int32_t z = first[2] >> 2; z <= last[2] >> 2; z++) {
                uint32_t cells =
                    cells_y & vxd_dense_z(vxd_dense_layers(first[2], last[2], z));
                uint32_t number = number_xy | vxd_dense_axis_number(plan, 2, (uint32_t)z);

                (void)atomicOr(&words[number], (unsigned long long)(high_x & cells)
                                                       << 32 |
                                                   (low_x & cells));
            }
        }
    }
}

#endif
