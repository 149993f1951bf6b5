// SPDX-License-Identifier: Apache-2.0
/* Derived coordinate sets of bounded shapes without a sort: a table with a word for each block of
 * 4x4x4 cells of the shape, a bit a cell, in the order of keys. Candidates set bits; reading the
 * table from its beginning gives rows and blocks in order.
 *
 * Words are numbered, sample by sample, by the bits of block names that vary within the shape, so
 * the table has at most eight times as many words as the shape has blocks. Bytes: 24 a word
 * (cleared, counted, read) besides the candidates. */
#ifndef VXD_GPU_SPARSE_COORDS_COORD_SET_DENSE_CUDA_H
#define VXD_GPU_SPARSE_COORDS_COORD_SET_DENSE_CUDA_H

#include "gpu/sparse/coords/coord_set_cuda.h"

/* How blocks are numbered. moves: Hacker's Delight, 7-4, compress by parallel suffix. */
struct vxd_dense_plan {
    uint64_t mask;  /* bits of a block's name that vary within a sample */
    uint64_t fixed; /* the other bits, except those of the sample */
    uint64_t moves[6];
    int n_bits;           /* of the mask */
    uint64_t *words;      /* the table; it uses the memory of the candidates' keys */
    uint64_t n_words_max; /* capacity in words; 0: the shape is unbounded or too big */
};

/* words has capacity for n_words. */
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

/* Words of the table for the samples of a set; 0 where they exceed the capacity. */
static __device__ __forceinline__ uint64_t vxd_dense_n_words(
    const struct vxd_dense_plan *plan, const struct vxd_coord_set *in, uint32_t n_in)
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

/* The tables of several sets, one behind the other, are read in groups of words: a
 * warp counts a group and writes 32 words of one at a time. Groups are assigned to the
 * blocks of a launch round robin, because the rows near a sensor are in few groups,
 * and at the same place of every level's table. */
#define VXD_DENSE_GROUP 128u
/* groups that one block of the launch handles at most */
#define VXD_DENSE_MAX_GROUPS 2048u
#define VXD_DENSE_MAX_TABLES 4

struct vxd_dense_tables {
    int n;
    struct vxd_dense_plan plans[VXD_DENSE_MAX_TABLES];
    uint32_t n_words[VXD_DENSE_MAX_TABLES];
    uint32_t first_group[VXD_DENSE_MAX_TABLES + 1];
    /* counts of the tables before each table */
    uint64_t before[VXD_DENSE_MAX_TABLES + 1];
};

static __device__ __forceinline__ void
vxd_dense_number_groups(struct vxd_dense_tables *tables)
{
    tables->first_group[0] = 0;
    for (int j = 0; j < tables->n; j++) {
        tables->first_group[j + 1] =
            tables->first_group[j] +
            (tables->n_words[j] + VXD_DENSE_GROUP - 1) / VXD_DENSE_GROUP;
    }
}

static __device__ __forceinline__ int
vxd_dense_table_of(const struct vxd_dense_tables *tables, uint32_t group)
{
    int j = 0;

    while (j + 1 < tables->n && group >= tables->first_group[j + 1]) {
        j++;
    }
    return j;
}

/* The word of this lane among 32 words of a group; 0 behind the table's end. */
static __device__ __forceinline__ uint64_t
vxd_dense_word(const struct vxd_dense_tables *tables, int j, uint32_t group,
               uint32_t chunk, uint32_t *number)
{
    *number = (group - tables->first_group[j]) * VXD_DENSE_GROUP + chunk * 32 +
              threadIdx.x % 32;
    return *number < tables->n_words[j] ? tables->plans[j].words[*number] : 0;
}

/* Counts of one lane's words, at most a group: rows in the upper half, blocks in the
 * lower. */
static __device__ __forceinline__ uint32_t vxd_dense_count(uint64_t mask)
{
    return (uint32_t)vxd_sparse_popcount(mask) << 8 | (mask != 0 ? 1 : 0);
}

/* The sum over a warp, rows in the upper half of the result, blocks in the lower. */
static __device__ __forceinline__ uint64_t vxd_dense_warp_sum(uint32_t count)
{
    count = __reduce_add_sync(UINT32_MAX, count);
    return (uint64_t)(count >> 8) << 32 | (count & 255);
}

/* Step 1 of making sets of tables whose bits are set: counts of groups, one word each
 * in sums. A barrier over the grid follows each step. */
static __device__ __forceinline__ void
vxd_dense_count_groups(const struct vxd_dense_tables *tables, uint64_t *sums)
{
    uint32_t n_groups = tables->first_group[tables->n];

    static_assert(VXD_DENSE_GROUP == 4 * 32, "a count of blocks has eight bits");
    for (uint32_t group = threadIdx.x / 32 * gridDim.x + blockIdx.x; group < n_groups;
         group += VXD_GRID_WARPS * gridDim.x) {
        int j = vxd_dense_table_of(tables, group);
        uint32_t count = 0;
        uint64_t sum;
        uint32_t number;

#pragma unroll
        for (uint32_t chunk = 0; chunk < VXD_DENSE_GROUP / 32; chunk++) {
            count += vxd_dense_count(vxd_dense_word(tables, j, group, chunk, &number));
        }
        sum = vxd_dense_warp_sum(count);
        if (threadIdx.x % 32 == 0) {
            sums[group] = sum;
        }
    }
}

/* Prefix sums of the groups: what is before each of this block's groups, and before
 * each table. */
static __device__ __forceinline__ void
vxd_dense_sum(struct vxd_dense_tables *tables, const uint64_t *sums, uint64_t *before)
{
    uint32_t n_groups = tables->first_group[tables->n];
    uint32_t share = (n_groups + VXD_GRID_THREADS - 1) / VXD_GRID_THREADS;
    uint32_t begin = min(threadIdx.x * share, n_groups);
    uint32_t end = min(begin + share, n_groups);
    uint32_t turn = begin % gridDim.x;
    uint32_t mine = begin / gridDim.x;
    uint64_t sum = 0;
    struct vxd_sums all;

#pragma unroll 4
    for (uint32_t group = begin; group < end; group++) {
        sum += sums[group];
    }
    all = vxd_block_scan(sum);
    sum = all.before;
    for (uint32_t group = begin; group < end; group++) {
        for (int j = 0; j < tables->n; j++) {
            if (group == tables->first_group[j]) {
                tables->before[j] = sum;
            }
        }
        if (turn == blockIdx.x) {
            before[mine] = sum;
        }
        turn++;
        if (turn == gridDim.x) {
            turn = 0;
            mine++;
        }
        sum += sums[group];
    }
    if (threadIdx.x == 0) {
        tables->before[tables->n] = all.total;
    }
    __syncthreads();
}

/* Writes the rows and blocks of 32 words, a word a lane, beginning at `at`; a warp
 * calls. */
static __device__ __forceinline__ void
vxd_dense_write_words(const struct vxd_coord_set *coord_set,
                      const struct vxd_dense_plan *plan, uint32_t number, uint64_t mask,
                      uint64_t at)
{
    uint32_t lane = threadIdx.x % 32;
    uint32_t with_block = __ballot_sync(UINT32_MAX, mask != 0);
    uint32_t n_rows = (uint32_t)vxd_sparse_popcount(mask);
    uint32_t row = n_rows;
    uint64_t block = vxd_dense_block(plan, number);

    for (int step = 1; step < 32; step *= 2) {
        uint32_t other = __shfl_up_sync(UINT32_MAX, row, (unsigned)step);

        row += lane >= (uint32_t)step ? other : 0;
    }
    row += (uint32_t)(at >> 32) - n_rows;
    if (mask != 0) {
        uint32_t place = (uint32_t)at + (uint32_t)__popc(with_block & ((1u << lane) - 1));

        coord_set->block_keys[place] = block;
        coord_set->block_mask[place] = mask;
        coord_set->block_row[place] = row;
    }
    /* The rows of a block are consecutive, and each lane handles two of its cells. */
    for (; with_block != 0; with_block &= with_block - 1) {
        int from = __ffs((int)with_block) - 1;
        uint64_t cells = __shfl_sync(UINT32_MAX, mask, from);
        uint64_t key = __shfl_sync(UINT32_MAX, block, from) << 6;
        uint32_t first = __shfl_sync(UINT32_MAX, row, from);
        uint32_t below = (1u << lane) - 1;
        uint32_t low = (uint32_t)cells;
        uint32_t high = (uint32_t)(cells >> 32);

        if ((low >> lane & 1) != 0) {
            coord_set->keys[first + (uint32_t)__popc(low & below)] = key | lane;
        }
        if ((high >> lane & 1) != 0) {
            coord_set->keys[first + (uint32_t)(__popc(low) + __popc(high & below))] =
                key | (lane + 32);
        }
    }
}

/* Number of blocks of a set whose rows fit its capacity; otherwise 0. */
static __device__ __forceinline__ uint32_t
vxd_dense_n_blocks(const struct vxd_dense_tables *tables, int j,
                   const struct vxd_coord_set *coord_set, uint32_t *n_rows)
{
    uint64_t n = tables->before[j + 1] - tables->before[j];

    *n_rows = (uint32_t)(n >> 32);
    return *n_rows <= coord_set->capacity ? (uint32_t)n : 0;
}

/* Step 2: writes everything except the slots, which it clears; writes nothing for a
 * set whose rows exceed its capacity. sets: one for each table; before: for each of
 * this block's groups, from vxd_dense_sum. Step 3 is vxd_coord_set_fill_tables. */
static __device__ __forceinline__ void
vxd_dense_write(const struct vxd_dense_tables *tables,
                const struct vxd_coord_set *const *coord_sets, const uint64_t *before)
{
    uint32_t n_groups = tables->first_group[tables->n];
    uint32_t n_mine = (n_groups + gridDim.x - 1 - blockIdx.x) / gridDim.x;
    uint32_t n_chunks = n_mine * (VXD_DENSE_GROUP / 32);
    enum {
        AT_ONCE = 4
    };

    for (uint32_t base = threadIdx.x / 32; base < n_chunks;
         base += AT_ONCE * VXD_GRID_WARPS) {
        uint64_t masks[AT_ONCE];
        uint32_t number;

#pragma unroll
        for (uint32_t i = 0; i < AT_ONCE; i++) {
            uint32_t at = base + i * VXD_GRID_WARPS;
            uint32_t group = at / (VXD_DENSE_GROUP / 32) * gridDim.x + blockIdx.x;

            masks[i] = 0;
            if (at < n_chunks) {
                masks[i] = vxd_dense_word(tables, vxd_dense_table_of(tables, group),
                                          group, at % (VXD_DENSE_GROUP / 32), &number);
            }
        }
#pragma unroll
        for (uint32_t i = 0; i < AT_ONCE; i++) {
            uint32_t at = base + i * VXD_GRID_WARPS;
            uint32_t mine = at / (VXD_DENSE_GROUP / 32);
            uint32_t group = mine * gridDim.x + blockIdx.x;
            uint32_t chunk = at % (VXD_DENSE_GROUP / 32);
            uint32_t count = 0;
            uint32_t n_rows;
            int j;

            /* Most of a table is empty. */
            if (__ballot_sync(UINT32_MAX, masks[i] != 0) == 0) {
                continue;
            }
            j = vxd_dense_table_of(tables, group);
            if (vxd_dense_n_blocks(tables, j, coord_sets[j], &n_rows) == 0) {
                continue;
            }
            for (uint32_t k = 0; k < chunk; k++) {
                count += vxd_dense_count(vxd_dense_word(tables, j, group, k, &number));
            }
            (void)vxd_dense_word(tables, j, group, chunk, &number);
            vxd_dense_write_words(coord_sets[j], &tables->plans[j], number, masks[i],
                                  before[mine] - tables->before[j] +
                                      vxd_dense_warp_sum(count));
        }
    }
}

/* All steps for n tables whose bits are set; sums: one word a group, before:
 * VXD_DENSE_MAX_GROUPS words of shared memory. */
static __device__ __forceinline__ void
vxd_dense_finish(cooperative_groups::grid_group grid, struct vxd_dense_tables *tables,
                 const struct vxd_coord_set *const *coord_sets, uint64_t *sums,
                 uint64_t *before, uint32_t *error_word)
{
    struct vxd_tables slots = {tables->n, {}, {}};

    vxd_dense_count_groups(tables, sums);
    grid.sync();
    vxd_dense_sum(tables, sums, before);
    for (int j = 0; j < tables->n; j++) {
        uint32_t n_rows;

        slots.coord_sets[j] = coord_sets[j];
        slots.n_blocks[j] = vxd_dense_n_blocks(tables, j, coord_sets[j], &n_rows);
        if (slots.n_blocks[j] == 0 && n_rows > 0) {
            vxd_coord_set_fail(coord_sets[j], error_word, VXD_RESOURCE_EXHAUSTED);
            continue;
        }
        vxd_coord_set_count(coord_sets[j], n_rows, slots.n_blocks[j]);
        vxd_coord_set_clear_slots(coord_sets[j], slots.n_blocks[j]);
    }
    vxd_dense_write(tables, coord_sets, before);
    grid.sync();
    vxd_coord_set_fill_tables(&slots);
}

/* Reads the word first and updates it only where bits are missing: near a sensor
 * thousands of rows set the same bits of a word, and atomic operations on one word are
 * serialised while reads are not. */
static __device__ __forceinline__ void vxd_dense_or(unsigned long long *word,
                                                    unsigned long long bits)
{
    if ((~__ldcg(word) & bits) != 0) {
        (void)atomicOr(word, bits);
    }
}

/* An axis's part of a word's number, for blocks 0 to VXD_DENSE_MARK_CELLS / 4 - 1 of
 * the axis. */
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

/* Which of an axis's four layers of a block are in a range of cells, a bit each. */
static __device__ __forceinline__ uint32_t vxd_dense_layers(int32_t first, int32_t last,
                                                            int32_t block)
{
    uint32_t from = 15u << min(max(first - 4 * block, 0), 4);

    return from & 15u >> min(max(4 * block + 3 - last, 0), 4);
}

/* Cells of those layers in a mask. The pattern of z repeats every 16 bits, that of y
 * every 32; of x, bits 0 and 1 are the lower half of the word and bits 2 and 3 the
 * upper. */
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

/* Sets bits of one word a lane, and combines those of adjacent lanes with the same
 * word into one atomic operation. Word numbers are below UINT32_MAX, which stands for
 * none. A warp calls. */
static __device__ __forceinline__ void
vxd_dense_or_runs(unsigned long long *words, uint32_t number, uint32_t low, uint32_t high)
{
    uint32_t lane = threadIdx.x % 32;
    uint32_t next = __shfl_down_sync(UINT32_MAX, number, 1);

    /* Equal words outside the run of adjacent lanes do no harm. */
#pragma unroll
    for (unsigned step = 1; step < 32; step *= 2) {
        uint32_t other = __shfl_up_sync(UINT32_MAX, number, step);
        uint32_t other_low = __shfl_up_sync(UINT32_MAX, low, step);
        uint32_t other_high = __shfl_up_sync(UINT32_MAX, high, step);
        bool is_same = lane >= step && other == number;

        low |= is_same ? other_low : 0;
        high |= is_same ? other_high : 0;
    }
    if (number != UINT32_MAX && (lane == 31 || next != number)) {
        (void)atomicOr(&words[number], (unsigned long long)high << 32 | low);
    }
}

/* What two consecutive blocks of an axis contain of a range of cells: their parts of
 * words' numbers and of words' bits. */
struct vxd_dense_axis {
    uint32_t numbers[2];
    uint32_t layers[2];
};

static __device__ __forceinline__ void
vxd_dense_axis_make(const struct vxd_dense_plan *plan, int axis, int32_t first,
                    int32_t last, int32_t block, struct vxd_dense_axis *out)
{
#pragma unroll
    for (int i = 0; i < 2; i++) {
        out->numbers[i] = vxd_dense_axis_number(plan, axis, (uint32_t)(block + i));
        out->layers[i] = vxd_dense_layers(first, last, block + i);
    }
}

/* Sets the bits that a box has in eight words, from the given block on; one box a
 * lane. */
static __device__ __forceinline__ void
vxd_dense_mark_8(const struct vxd_dense_plan *plan, bool is_box, uint64_t sample,
                 const int32_t first[3], const int32_t last[3], const int32_t block[3])
{
    unsigned long long *words = (unsigned long long *)plan->words;
    uint32_t base = (uint32_t)(sample << plan->n_bits);
    struct vxd_dense_axis axes[3];
    bool has[3];

#pragma unroll
    for (int axis = 0; axis < 3; axis++) {
        vxd_dense_axis_make(plan, axis, first[axis], last[axis], block[axis],
                            &axes[axis]);
        has[axis] = is_box && block[axis] < last[axis] >> 2;
    }
#pragma unroll
    for (int i = 0; i < 8; i++) {
        int x = i >> 2;
        int y = i >> 1 & 1;
        int z = i & 1;
        bool is_word =
            is_box && (x == 0 || has[0]) && (y == 0 || has[1]) && (z == 0 || has[2]);
        uint32_t cells;

        if (i > 0 && __ballot_sync(UINT32_MAX, is_word) == 0) {
            continue;
        }
        cells = vxd_dense_y(axes[1].layers[y]) & vxd_dense_z(axes[2].layers[z]);
        vxd_dense_or_runs(words,
                          is_word ? base | axes[0].numbers[x] | axes[1].numbers[y] |
                                        axes[2].numbers[z]
                                  : UINT32_MAX,
                          vxd_dense_x(axes[0].layers[x]) & cells,
                          vxd_dense_x(axes[0].layers[x] >> 2) & cells);
    }
}

/* Sets the bits of one box of cells a lane, in a sample, with cells of 0 or more;
 * is_box: the lane has a box. A warp calls. Consecutive rows have boxes in the same
 * words, and near a sensor thousands do. Atomic operations on one word are serialised,
 * so a warp combines its own. */
static __device__ __forceinline__ void vxd_dense_mark(const struct vxd_dense_plan *plan,
                                                      bool is_box, uint64_t sample,
                                                      const int32_t first[3],
                                                      const int32_t last[3])
{
    int32_t block[3];

    /* One iteration, except for kernels far larger than their strides. */
    for (block[0] = first[0] >> 2;
         __ballot_sync(UINT32_MAX, is_box && block[0] <= last[0] >> 2) != 0;
         block[0] += 2) {
        for (block[1] = first[1] >> 2;
             __ballot_sync(UINT32_MAX, is_box && block[1] <= last[1] >> 2) != 0;
             block[1] += 2) {
            for (block[2] = first[2] >> 2;
                 __ballot_sync(UINT32_MAX, is_box && block[2] <= last[2] >> 2) != 0;
                 block[2] += 2) {
                bool is_in = is_box && block[0] <= last[0] >> 2 &&
                             block[1] <= last[1] >> 2 && block[2] <= last[2] >> 2;

                vxd_dense_mark_8(plan, is_in, sample, first, last, block);
            }
        }
    }
}

#endif
