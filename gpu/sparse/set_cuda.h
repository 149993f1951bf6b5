// SPDX-License-Identifier: Apache-2.0
/* How the CUDA set operations end: rows of candidates that ascend, then blocks of rows. Parts
 * of cooperative kernels; all threads of the grid call them. */
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
    VXD_WORDS_BLOCKS = 4,
    VXD_WORDS_LEVELS = 5, /* one of each set that a launch makes */
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

/* What candidates that ascend become; the arrays may be NULL. */
struct vxd_set_out {
    struct vxd_sparse_set set;
    int32_t *rows;    /* row of each candidate's place, -1 where it has none */
    int32_t *origins; /* candidate of each row */
    uint32_t *error_word;
};

static __device__ __forceinline__ void vxd_set_count(const struct vxd_sparse_set *set,
                                                     uint32_t n_rows, uint32_t n_blocks)
{
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        *set->n_rows = n_rows;
        *set->n_blocks = n_blocks;
    }
}

/* Empties the set and says why; all threads of the grid call it and then return. */
static __device__ __forceinline__ void vxd_set_fail(const struct vxd_set_out *out,
                                                    enum vxd_status status)
{
    vxd_set_count(&out->set, 0, 0);
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        vxd_sparse_fault(out->error_word, status);
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

/* The thread with a block's first row makes the block. */
static __device__ __forceinline__ void vxd_set_add_block(const struct vxd_sparse_set *set,
                                                         uint32_t n_rows,
                                                         uint32_t slot_mask, uint32_t row,
                                                         uint32_t number)
{
    uint64_t block = set->keys[row] >> 6;
    uint64_t mask = 0;

    for (uint32_t i = row; i < n_rows && set->keys[i] >> 6 == block; i++) {
        mask |= (uint64_t)1 << (set->keys[i] & 63);
    }
    set->block_keys[number] = block;
    set->block_mask[number] = mask;
    set->block_row[number] = row;
    vxd_set_add_slot(set, slot_mask, block, number);
}

/* Blocks, table and counts of n_rows keys in set->keys; the slots are clear, and a barrier was
 * since both were written. */
static __device__ void vxd_set_make_blocks(cooperative_groups::grid_group grid,
                                           const struct vxd_sparse_set *set,
                                           uint32_t n_rows, uint64_t *words)
{
    struct vxd_part part = vxd_part_of(n_rows, vxd_team_of_grid());
    uint32_t n_begins = 0;
    struct vxd_sums sums;
    uint32_t slot_mask;
    uint64_t sum;

    for (uint32_t i = part.begin + threadIdx.x; i < part.end; i += VXD_GRID_THREADS) {
        n_begins += i == 0 || (set->keys[i] ^ set->keys[i - 1]) >> 6 != 0;
    }
    sum = vxd_block_sum(n_begins);
    if (threadIdx.x == 0) {
        words[blockIdx.x] = sum;
    }
    grid.sync();
    sums = vxd_grid_sum(words);
    slot_mask = vxd_sparse_slot_mask((uint32_t)sums.total);
    for (uint32_t base = part.begin; base < part.end; base += VXD_GRID_THREADS) {
        uint32_t i = base + threadIdx.x;
        bool begins =
            i < part.end && (i == 0 || (set->keys[i] ^ set->keys[i - 1]) >> 6 != 0);
        uint32_t n_in_tile;
        uint32_t rank = vxd_block_rank(begins, &n_in_tile);

        if (begins) {
            vxd_set_add_block(set, n_rows, slot_mask, i, (uint32_t)sums.before + rank);
        }
        sums.before += n_in_tile;
    }
    vxd_set_count(set, n_rows, (uint32_t)sums.total);
}

/* The set of n candidates. CANDIDATES has
 *   bool begins(uint32_t i)      whether a row begins there
 *   uint64_t key(uint32_t i)     of a row that begins there
 *   bool is_in(uint32_t i)       whether it is of the row that began last, for out->rows
 *   uint32_t place(uint32_t i)   its place in out->rows */
template <typename CANDIDATES>
static __device__ void vxd_set_finish(cooperative_groups::grid_group grid,
                                      const struct vxd_set_out *out,
                                      const CANDIDATES &candidates, uint32_t n,
                                      const struct vxd_set_scratch *scratch)
{
    const struct vxd_sparse_set *set = &out->set;
    struct vxd_part part = vxd_part_of(n, vxd_team_of_grid());
    uint32_t n_begins = 0;
    struct vxd_sums sums;
    uint64_t sum;

    for (uint32_t i = part.begin + threadIdx.x; i < part.end; i += VXD_GRID_THREADS) {
        n_begins += candidates.begins(i);
    }
    sum = vxd_block_sum(n_begins);
    if (threadIdx.x == 0) {
        scratch->words[VXD_WORDS_ROWS][blockIdx.x] = sum;
    }
    grid.sync();
    sums = vxd_grid_sum(scratch->words[VXD_WORDS_ROWS]);
    if (sums.total > set->capacity) {
        vxd_set_fail(out, VXD_RESOURCE_EXHAUSTED);
        return;
    }
    vxd_set_clear_slots(set, (uint32_t)sums.total);
    for (uint32_t base = part.begin; base < part.end; base += VXD_GRID_THREADS) {
        uint32_t i = base + threadIdx.x;
        bool begins = i < part.end && candidates.begins(i);
        uint32_t n_in_tile;
        uint32_t row = (uint32_t)sums.before + vxd_block_rank(begins, &n_in_tile);

        if (begins) {
            set->keys[row] = candidates.key(i);
            if (out->origins != NULL) {
                out->origins[row] = (int32_t)i;
            }
        }
        if (out->rows != NULL && i < part.end) {
            out->rows[candidates.place(i)] =
                candidates.is_in(i) ? (int32_t)(row + begins) - 1 : -1;
        }
        sums.before += n_in_tile;
    }
    grid.sync();
    vxd_set_make_blocks(grid, set, (uint32_t)sums.total,
                        scratch->words[VXD_WORDS_BLOCKS]);
}

#endif
