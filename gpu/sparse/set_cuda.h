// SPDX-License-Identifier: Apache-2.0
/* How the CUDA set operations end: keys that ascend become rows, blocks and a table, in three
 * steps of a cooperative kernel, for which all threads of the grid call. */
#ifndef VXD_GPU_SPARSE_SET_CUDA_H
#define VXD_GPU_SPARSE_SET_CUDA_H

#include "gpu/sparse/sparse_cuda.h"

/* Sets that are floors of one set, made by one launch. */
#define VXD_FLOORS_AT_ONCE 8

/* Words of each step, one a block: a step writes its own while others may still read those of
 * the step before. */
enum vxd_set_words {
    VXD_WORDS_FALLS = 0,
    VXD_WORDS_VARYING = 1,
    VXD_WORDS_CANDIDATES = 2,
    VXD_WORDS_ROWS = 3,
    VXD_WORDS_LEVELS = 4, /* one of each set that a launch makes */
    VXD_N_WORDS = VXD_WORDS_LEVELS + VXD_FLOORS_AT_ONCE
};

/* Scratch of an operation; keys and values for n_candidates each. */
struct vxd_set_scratch {
    uint64_t *keys[2];
    uint32_t *values[2];
    uint32_t *counts;             /* of sort passes */
    uint64_t *words[VXD_N_WORDS]; /* a word a block each */
};

/* errors  INTERNAL  scratch_bytes are not what the entry should have given */
enum vxd_status vxd_set_scratch_open(const struct vxd_queue *queue, size_t n_candidates,
                                     void *scratch, size_t scratch_bytes,
                                     struct vxd_set_scratch *out, struct vxd_err *err);

static __device__ __forceinline__ void vxd_set_count(const struct vxd_sparse_set *set,
                                                     uint32_t n_rows, uint32_t n_blocks)
{
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        *set->n_rows = n_rows;
        *set->n_blocks = n_blocks;
    }
}

/* Empties the set, so that look-ups end, and says why; all threads of the grid call it. */
static __device__ __forceinline__ void vxd_set_fail(const struct vxd_sparse_set *set,
                                                    uint32_t *error_word,
                                                    enum vxd_status status)
{
    vxd_set_count(set, 0, 0);
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        set->slots[0] = 0;
        set->slots[1] = 0;
        vxd_sparse_fault(error_word, status);
    }
}

/* Enough slots for n_rows blocks. A barrier must follow before blocks come. */
static __device__ __forceinline__ void
vxd_set_clear_slots(const struct vxd_sparse_set *set, uint32_t n_rows)
{
    uint64_t n_slots = (uint64_t)vxd_sparse_slot_mask(n_rows) + 1;
    uint64_t step = (uint64_t)gridDim.x * VXD_GRID_THREADS;

    for (uint64_t i = (uint64_t)blockIdx.x * VXD_GRID_THREADS + threadIdx.x; i < n_slots;
         i += step) {
        set->slots[i] = 0;
    }
}

static __device__ __forceinline__ void vxd_set_add_slot(const struct vxd_sparse_set *set,
                                                        uint32_t slot_mask,
                                                        uint64_t block, uint32_t number)
{
    uint64_t hash = vxd_sparse_block_hash(block);
    uint64_t slot = hash >> 32 << 32 | (uint64_t)(number + 1);
    uint32_t at = (uint32_t)hash & slot_mask;

    while (atomicCAS((unsigned long long *)&set->slots[at], 0ULL,
                     (unsigned long long)slot) != 0) {
        at = (at + 1) & slot_mask;
    }
}

/* A set that is made of the floors by 2^levels of keys that ascend; those of nothing come last.
 * With levels 0 it is of the keys themselves. */
struct vxd_set_level {
    int levels;
    struct vxd_sparse_set set;
    uint64_t *words; /* rows << 32 | blocks, a word a block of the launch */
};

/* Whether at key i a row of the level begins (<< 32), and a block. */
static __device__ __forceinline__ uint64_t vxd_level_begins(const uint64_t *keys,
                                                            uint32_t i, int levels)
{
    uint64_t key = keys[i];
    uint64_t differs = i == 0 ? UINT64_MAX : key ^ keys[i - 1];

    if (key == VXD_SPARSE_NO_KEY) {
        return 0;
    }
    return (uint64_t)(differs >> 3 * levels != 0) << 32 |
           (uint64_t)(differs >> (3 * levels + 6) != 0);
}

/* Step 1: counts of this block's part of n keys; masks of as many blocks are cleared. A barrier
 * over the grid follows each step. */
static __device__ __forceinline__ void vxd_level_count(const struct vxd_set_level *level,
                                                       const uint64_t *keys, uint32_t n)
{
    struct vxd_part part = vxd_part_of(n, vxd_team_of_grid());
    uint64_t n_begins = 0;

    for (uint32_t i = part.begin + threadIdx.x; i < part.end; i += VXD_GRID_THREADS) {
        n_begins += vxd_level_begins(keys, i, level->levels);
        if (i < level->set.capacity) {
            level->set.block_mask[i] = 0;
        }
    }
    n_begins = vxd_block_sum(n_begins);
    if (threadIdx.x == 0) {
        level->words[blockIdx.x] = n_begins;
    }
}

/* Step 2: writes rows, counts, and of blocks all but their slots, which are cleared. out->rows
 * gets the row of each key by places (NULL: as they stand). Returns rows << 32 | blocks; 0,
 * and a fault, where there is no room. */
static __device__ __forceinline__ uint64_t
vxd_level_write(const struct vxd_set_level *level, const uint64_t *keys,
                const uint32_t *places, uint32_t n, int32_t *rows, uint32_t *error_word)
{
    const struct vxd_sparse_set *set = &level->set;
    struct vxd_part part = vxd_part_of(n, vxd_team_of_grid());
    struct vxd_sums sums = vxd_grid_sum(level->words);

    if (sums.total >> 32 > set->capacity) {
        vxd_set_fail(set, error_word, VXD_RESOURCE_EXHAUSTED);
        return 0;
    }
    vxd_set_count(set, (uint32_t)(sums.total >> 32), (uint32_t)sums.total);
    vxd_set_clear_slots(set, (uint32_t)sums.total);
    for (uint32_t base = part.begin; base < part.end; base += VXD_GRID_THREADS) {
        uint32_t i = base + threadIdx.x;
        uint64_t begins = i < part.end ? vxd_level_begins(keys, i, level->levels) : 0;
        struct vxd_sums in_tile = vxd_block_scan(begins);
        uint64_t behind = sums.before + in_tile.before + begins;
        uint32_t row = (uint32_t)(behind >> 32) - 1;
        uint32_t block = (uint32_t)behind - 1;

        if (begins != 0) {
            uint64_t key = vxd_sparse_key_floor(keys[i], level->levels);

            set->keys[row] = key;
            (void)atomicOr((unsigned long long *)&set->block_mask[block],
                           1ULL << (key & 63));
            if ((uint32_t)begins != 0) {
                set->block_keys[block] = key >> 6;
                set->block_row[block] = row;
            }
        }
        if (rows != NULL && i < part.end) {
            rows[places != NULL ? places[i] : i] =
                keys[i] != VXD_SPARSE_NO_KEY ? (int32_t)row : -1;
        }
        sums.before += in_tile.total;
    }
    return sums.total;
}

/* Step 3: the table of n_blocks blocks. */
static __device__ __forceinline__ void
vxd_set_fill_slots(const struct vxd_sparse_set *set, uint32_t n_blocks)
{
    uint32_t slot_mask = vxd_sparse_slot_mask(n_blocks);
    uint32_t step = gridDim.x * VXD_GRID_THREADS;

    /* Warps of 32 blocks each, one after another in another block of the launch. */
    for (uint32_t i = (threadIdx.x / 32 * gridDim.x + blockIdx.x) * 32 + threadIdx.x % 32;
         i < n_blocks; i += step) {
        vxd_set_add_slot(set, slot_mask, set->block_keys[i], i);
    }
}

#endif
