// SPDX-License-Identifier: Apache-2.0
/* The last steps of CUDA coordinate set operations: ascending keys become rows, blocks
 * and a hash table, in three steps of a cooperative kernel. All threads of the grid
 * call each function. */
#ifndef VXD_GPU_SPARSE_COORDS_COORD_SET_CUDA_H
#define VXD_GPU_SPARSE_COORDS_COORD_SET_CUDA_H

#include "gpu/sparse/coords/grid_cuda.h"

/* Coordinate sets that one launch makes as floors of one set. */
#define VXD_FLOORS_AT_ONCE 8

/* Which words each step uses, one a block of the launch: a step writes its own words
 * while other blocks may still read those of the previous step. */
enum vxd_coord_set_words {
    VXD_WORDS_DESCENTS = 0,
    VXD_WORDS_VARYING = 1,
    VXD_WORDS_CANDIDATES = 2,
    VXD_WORDS_ROWS = 3,
    VXD_WORDS_LEVELS = 4, /* one for each set that a launch makes */
    VXD_N_WORDS = VXD_WORDS_LEVELS + VXD_FLOORS_AT_ONCE
};

/* Scratch of an operation, with keys and values for n_candidates each. */
struct vxd_coord_set_scratch {
    uint64_t *keys[2];
    uint32_t *values[2];
    uint32_t *ranks;              /* of sort passes; likewise */
    uint32_t *counts;             /* of sort passes */
    uint64_t *words[VXD_N_WORDS]; /* each one word a block */
};

/* errors  INTERNAL  scratch_bytes differs from what the public entry computes */
enum vxd_status vxd_coord_set_scratch_init(const struct vxd_queue *queue,
                                           size_t n_candidates, void *scratch,
                                           size_t scratch_bytes,
                                           struct vxd_coord_set_scratch *out,
                                           struct vxd_err *err);

static __device__ __forceinline__ void
vxd_coord_set_count(const struct vxd_coord_set *coord_set, uint32_t n_rows,
                    uint32_t n_blocks)
{
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        *coord_set->n_rows = n_rows;
        *coord_set->n_blocks = n_blocks;
    }
}

/* Empties the set, so that look-ups end, and sets the fault; all threads of the grid
 * call. */
static __device__ __forceinline__ void
vxd_coord_set_fail(const struct vxd_coord_set *coord_set, uint32_t *error_word,
                   enum vxd_status status)
{
    vxd_coord_set_count(coord_set, 0, 0);
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        for (int i = 0; i < VXD_BUCKET_SLOTS; i++) {
            coord_set->slots[i] = 0;
        }
        vxd_sparse_fault(error_word, status);
    }
}

/* Clears the slots for n_blocks blocks. A barrier must follow before blocks are added. */
static __device__ __forceinline__ void
vxd_coord_set_clear_slots(const struct vxd_coord_set *coord_set, uint32_t n_blocks)
{
    uint64_t n_pairs =
        ((uint64_t)vxd_sparse_bucket_mask(n_blocks, coord_set->n_slots) + 1) *
        (VXD_BUCKET_SLOTS / 2);
    uint64_t step = (uint64_t)gridDim.x * VXD_GRID_THREADS;
    ulonglong2 *pairs = (ulonglong2 *)(void *)coord_set->slots;

    for (uint64_t i = (uint64_t)blockIdx.x * VXD_GRID_THREADS + threadIdx.x; i < n_pairs;
         i += step) {
        pairs[i] = make_ulonglong2(0, 0);
    }
}

static __device__ __forceinline__ void
vxd_coord_set_add_slot(const struct vxd_coord_set *coord_set, uint32_t bucket_mask,
                       uint64_t block, uint32_t number)
{
    uint64_t hash = vxd_sparse_block_hash(block);
    uint64_t slot = hash >> 32 << 32 | (uint64_t)(number + 1);
    uint32_t slot_mask = bucket_mask * VXD_BUCKET_SLOTS + VXD_BUCKET_SLOTS - 1;
    uint32_t at = ((uint32_t)hash & bucket_mask) * VXD_BUCKET_SLOTS;

    while (atomicCAS((unsigned long long *)&coord_set->slots[at], 0ULL,
                     (unsigned long long)slot) != 0) {
        at = (at + 1) & slot_mask;
    }
}

/* A coordinate set of the floors by 2^levels of ascending keys; VXD_SPARSE_NO_KEY,
 * which stands for no row, comes last. With levels 0 the set consists of the keys
 * themselves. */
struct vxd_coord_set_level {
    int levels;
    struct vxd_coord_set coord_set;
    uint64_t *words; /* rows << 32 | blocks, one word a block of the launch */
};

struct vxd_level_shared {
    uint64_t sums[VXD_FLOORS_AT_ONCE][VXD_GRID_WARPS];
    uint32_t tiles[2][VXD_FLOORS_AT_ONCE][VXD_GRID_WARPS]; /* rows << 16 | blocks */
    uint32_t first_row[VXD_FLOORS_AT_ONCE]; /* of this block of the launch */
    uint32_t first_block[VXD_FLOORS_AT_ONCE];
    uint32_t n_rows[VXD_FLOORS_AT_ONCE];
    uint32_t n_blocks[VXD_FLOORS_AT_ONCE]; /* 0 where the rows exceed the capacity */
};

/* Bits in which key i differs from the previous one; 0 where key i is no row. */
static __device__ __forceinline__ uint64_t vxd_level_differs(const uint64_t *keys,
                                                             uint32_t i, uint64_t key)
{
    if (key == VXD_SPARSE_NO_KEY) {
        return 0;
    }
    return i == 0 ? UINT64_MAX : key ^ keys[i - 1];
}

static __device__ __forceinline__ bool vxd_level_begins_row(uint64_t differs, int levels)
{
    return differs >> 3 * levels != 0;
}

static __device__ __forceinline__ bool vxd_level_begins_block(uint64_t differs,
                                                              int levels)
{
    return differs >> (3 * levels + 6) != 0;
}

/* Step 1: counts this block's range of n keys, for at most N levels, and clears the
 * masks of as many blocks. A barrier over the grid follows each step. */
template <int N>
static __device__ __forceinline__ void
vxd_levels_count(const struct vxd_coord_set_level *levels, int n_levels,
                 const uint64_t *keys, uint32_t n, struct vxd_level_shared *shared)
{
    struct vxd_block_range range = vxd_block_range_of(n, vxd_block_group_of_grid());
    uint32_t lane = threadIdx.x % 32;
    uint32_t warp = threadIdx.x / 32;
    uint32_t n_rows[N] = {};
    uint32_t n_blocks[N] = {};

    for (uint32_t i = range.begin + threadIdx.x; i < range.end; i += VXD_GRID_THREADS) {
        uint64_t differs = vxd_level_differs(keys, i, keys[i]);

#pragma unroll
        for (int l = 0; l < N; l++) {
            if (l < n_levels) {
                n_rows[l] += vxd_level_begins_row(differs, levels[l].levels);
                n_blocks[l] += vxd_level_begins_block(differs, levels[l].levels);
                if (i < levels[l].coord_set.capacity) {
                    levels[l].coord_set.block_mask[i] = 0;
                }
            }
        }
    }
#pragma unroll
    for (int l = 0; l < N; l++) {
        uint32_t rows = __reduce_add_sync(UINT32_MAX, n_rows[l]);
        uint32_t blocks = __reduce_add_sync(UINT32_MAX, n_blocks[l]);

        if (lane == 0) {
            shared->sums[l][warp] = (uint64_t)rows << 32 | blocks;
        }
    }
    __syncthreads();
    if (warp < (uint32_t)n_levels) {
        uint64_t sum = shared->sums[warp][lane];
        uint32_t rows = __reduce_add_sync(UINT32_MAX, (uint32_t)(sum >> 32));
        uint32_t blocks = __reduce_add_sync(UINT32_MAX, (uint32_t)sum);

        if (lane == 0) {
            levels[warp].words[blockIdx.x] = (uint64_t)rows << 32 | blocks;
        }
    }
}

/* Sums the counts of the launch's blocks, a warp for each level, and empties a set
 * whose rows exceed its capacity. */
static __device__ __forceinline__ void
vxd_levels_sum(const struct vxd_coord_set_level *levels, int n_levels,
               uint32_t *error_word, struct vxd_level_shared *shared)
{
    uint32_t lane = threadIdx.x % 32;
    uint32_t l = threadIdx.x / 32;
    uint32_t before[2] = {0, 0};
    uint32_t total[2] = {0, 0};

    if (l < (uint32_t)n_levels) {
        for (uint32_t block = lane; block < gridDim.x; block += 32) {
            uint64_t word = levels[l].words[block];

            total[0] += (uint32_t)(word >> 32);
            total[1] += (uint32_t)word;
            before[0] += block < blockIdx.x ? (uint32_t)(word >> 32) : 0;
            before[1] += block < blockIdx.x ? (uint32_t)word : 0;
        }
        for (int i = 0; i < 2; i++) {
            before[i] = __reduce_add_sync(UINT32_MAX, before[i]);
            total[i] = __reduce_add_sync(UINT32_MAX, total[i]);
        }
        if (lane == 0) {
            bool fits = total[0] <= levels[l].coord_set.capacity;

            shared->first_row[l] = before[0];
            shared->first_block[l] = before[1];
            shared->n_rows[l] = fits ? total[0] : 0;
            shared->n_blocks[l] = fits ? total[1] : 0;
            if (!fits && blockIdx.x == 0) {
                vxd_sparse_fault(error_word, VXD_RESOURCE_EXHAUSTED);
            }
        }
    }
    __syncthreads();
    for (int i = 0; i < n_levels; i++) {
        vxd_coord_set_count(&levels[i].coord_set, shared->n_rows[i], shared->n_blocks[i]);
        vxd_coord_set_clear_slots(&levels[i].coord_set, shared->n_blocks[i]);
    }
}

/* Step 2: writes rows, counts and the blocks, and clears their slots. A set whose rows
 * exceed its capacity becomes empty, which is a fault. rows, if not NULL, receives the
 * row of each key, at places[i] or, where places is NULL, at i. With more than one
 * level rows must be NULL. */
template <int N>
static __device__ __forceinline__ void
vxd_levels_write(const struct vxd_coord_set_level *levels, int n_levels,
                 const uint64_t *keys, const uint32_t *places, uint32_t n, int32_t *rows,
                 uint32_t *error_word, struct vxd_level_shared *shared)
{
    struct vxd_block_range range = vxd_block_range_of(n, vxd_block_group_of_grid());
    uint32_t lane = threadIdx.x % 32;
    uint32_t warp = threadIdx.x / 32;
    uint32_t up_to_lane = UINT32_MAX >> (31 - lane);
    uint32_t behind_row[N];
    uint32_t behind_block[N];
    int tile = 0;

    vxd_levels_sum(levels, n_levels, error_word, shared);
#pragma unroll
    for (int l = 0; l < N; l++) {
        behind_row[l] = l < n_levels ? shared->first_row[l] : 0;
        behind_block[l] = l < n_levels ? shared->first_block[l] : 0;
    }
    for (uint32_t base = range.begin; base < range.end; base += VXD_GRID_THREADS) {
        uint32_t i = base + threadIdx.x;
        uint64_t key = i < range.end ? keys[i] : VXD_SPARSE_NO_KEY;
        uint64_t differs = vxd_level_differs(keys, i, key);
        uint32_t with_row[N];
        uint32_t with_block[N];

#pragma unroll
        for (int l = 0; l < N; l++) {
            int shift = l < n_levels ? levels[l].levels : 0;

            with_row[l] = __ballot_sync(UINT32_MAX, vxd_level_begins_row(differs, shift));
            with_block[l] =
                __ballot_sync(UINT32_MAX, vxd_level_begins_block(differs, shift));
            if (lane == 0) {
                shared->tiles[tile][l][warp] =
                    (uint32_t)__popc(with_row[l]) << 16 | (uint32_t)__popc(with_block[l]);
            }
        }
        __syncthreads();
#pragma unroll
        for (int l = 0; l < N; l++) {
            uint32_t counts = shared->tiles[tile][l][lane];
            uint32_t before = __reduce_add_sync(UINT32_MAX, lane < warp ? counts : 0);
            uint32_t total = __reduce_add_sync(UINT32_MAX, counts);
            uint32_t row = behind_row[l] + (before >> 16) +
                           (uint32_t)__popc(with_row[l] & up_to_lane) - 1;
            uint32_t block = behind_block[l] + (before & 0xffff) +
                             (uint32_t)__popc(with_block[l] & up_to_lane) - 1;

            behind_row[l] += total >> 16;
            behind_block[l] += total & 0xffff;
            if (l == 0 && rows != NULL && i < range.end) {
                rows[places != NULL ? places[i] : i] =
                    key != VXD_SPARSE_NO_KEY ? (int32_t)row : -1;
            }
            if (l >= n_levels || shared->n_blocks[l] == 0) {
                continue;
            }
            if ((with_row[l] >> lane & 1) != 0) {
                const struct vxd_coord_set *coord_set = &levels[l].coord_set;
                uint64_t floor = vxd_sparse_key_floor(key, levels[l].levels);

                coord_set->keys[row] = floor;
                (void)atomicOr((unsigned long long *)&coord_set->block_mask[block],
                               1ULL << (floor & 63));
                if ((with_block[l] >> lane & 1) != 0) {
                    coord_set->block_keys[block] = floor >> 6;
                    coord_set->block_row[block] = row;
                }
            }
        }
        tile = 1 - tile;
    }
}

/* Step 3: the tables of n_sets sets, of n_blocks[i] blocks each. The blocks of all
 * sets are numbered through, so that all memory accesses are issued at once.
 * Consecutive groups of 32, a warp each, go to different blocks of the launch. */
struct vxd_tables {
    int n_coord_sets;
    const struct vxd_coord_set *coord_sets[VXD_FLOORS_AT_ONCE];
    uint32_t n_blocks[VXD_FLOORS_AT_ONCE];
};

static __device__ __forceinline__ void
vxd_coord_set_fill_tables(const struct vxd_tables *tables)
{
    uint64_t step = (uint64_t)gridDim.x * VXD_GRID_THREADS;
    uint64_t first =
        (uint64_t)(threadIdx.x / 32 * gridDim.x + blockIdx.x) * 32 + threadIdx.x % 32;

    for (int i = 0; i < tables->n_coord_sets; i++) {
        const struct vxd_coord_set *coord_set = tables->coord_sets[i];
        uint32_t n_blocks = tables->n_blocks[i];
        uint32_t bucket_mask = vxd_sparse_bucket_mask(n_blocks, coord_set->n_slots);

        for (; first < n_blocks; first += step) {
            vxd_coord_set_add_slot(coord_set, bucket_mask, coord_set->block_keys[first],
                                   (uint32_t)first);
        }
        first -= n_blocks;
    }
}

static __device__ __forceinline__ void
vxd_coord_set_fill_slots(const struct vxd_coord_set *coord_set, uint32_t n_blocks)
{
    const struct vxd_tables tables = {1, {coord_set}, {n_blocks}};

    vxd_coord_set_fill_tables(&tables);
}

/* All steps of one level. */
static __device__ __forceinline__ void
vxd_level_make(cooperative_groups::grid_group grid,
               const struct vxd_coord_set_level *level, const uint64_t *keys,
               const uint32_t *places, uint32_t n, int32_t *rows, uint32_t *error_word)
{
    __shared__ struct vxd_level_shared shared;

    vxd_levels_count<1>(level, 1, keys, n, &shared);
    grid.sync();
    vxd_levels_write<1>(level, 1, keys, places, n, rows, error_word, &shared);
    grid.sync();
    vxd_coord_set_fill_slots(&level->coord_set, shared.n_blocks[0]);
}

#endif
