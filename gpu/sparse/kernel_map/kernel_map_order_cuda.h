// SPDX-License-Identifier: Apache-2.0
/* The steps after a kernel map's table: counts of taps, rows in the order of their masks, and
 * lists of tiles.
 *
 * Tiles of a convolution skip taps that none of their rows has, so rows with equal taps should be
 * adjacent. A row's code is its mask with the bits ordered by how many rows have the tap, the
 * rarest on top (research, 2.4). Rows are sorted in the order of a Gray code, so that consecutive
 * codes differ in few bits even where a high bit changes; rows with equal codes by number. In
 * plain numerical order tiles have 3 to 4 % more taps; sorted within windows, up to half as many
 * again. Bits that all rows or none have are left out; of kernels with more taps than
 * VXD_ORDER_BITS only the most frequent ones are used. */
#ifndef VXD_GPU_SPARSE_KERNEL_MAP_KERNEL_MAP_ORDER_CUDA_H
#define VXD_GPU_SPARSE_KERNEL_MAP_KERNEL_MAP_ORDER_CUDA_H

#include "gpu/sparse/coords/coords_cuda.h"
#include "gpu/sparse/kernel_map/kernel_map_backends.h"
#include "gpu/sparse/kernel_map/kernel_map_math.h"

#define VXD_ORDER_BITS 27 /* three passes */

/* How the input rows of a row's taps are found. */
enum vxd_map_form {
    VXD_MAP_BOX,   /* at most two blocks an axis */
    VXD_MAP_BOX_3, /* likewise, kernel 3 on every axis, not transposed */
    VXD_MAP_WALK,  /* any other kernel: keeps only the last block looked up */
    VXD_MAP_DOWN,  /* kernel 2, stride 2, padding 0: the eight cells of an octant */
    VXD_MAP_UP     /* its transpose: the octant's one cell */
};

/* One map of a launch. */
struct vxd_map_job {
    struct vxd_sparse_geometry geometry;
    enum vxd_map_form form;
    const uint32_t *n_in_blocks;
    struct vxd_sparse_lookup in;
    const uint32_t *n_rows;
    const uint64_t *out_keys;
    struct vxd_kernel_map map;
    /* Scratch: map.capacity words each, then words of the blocks that work on the map. */
    uint32_t *keys[2];
    uint32_t *values;
    uint32_t *ranks;
    uint32_t *sort_counts; /* VXD_SORT_WORDS */
    uint32_t *tap_counts;  /* n_taps words a block */
};

/* What a block works on; a group without blocks: nothing. */
struct vxd_map_work {
    struct vxd_map_job job;
    struct vxd_block_group block_group;
    uint32_t *barrier; /* the barrier word of the group */
    uint32_t n_rows;
};

struct vxd_map_shared {
    uint32_t tap_counts[VXD_SPARSE_MAX_TAPS]; /* of the block, then of all rows */
    int taps[VXD_ORDER_BITS];                 /* the tap of each bit of a key */
    /* what each byte of a mask contributes to a key, combined by xor */
    uint32_t shares[4][256];
    uint32_t passed; /* number of barriers that the block has passed */
};

static __device__ __forceinline__ uint32_t vxd_map_padded(uint32_t n_rows)
{
    return (n_rows + VXD_SPARSE_ROW_PAD - 1) / VXD_SPARSE_ROW_PAD * VXD_SPARSE_ROW_PAD;
}

/* Number of blocks of the group that counted taps. */
static __device__ __forceinline__ uint32_t
vxd_map_n_counting(const struct vxd_map_work *work)
{
    return vxd_block_range_of(vxd_map_padded(work->n_rows), work->block_group).n_ranges;
}

/* Publishes the block's counts of taps. */
static __device__ __forceinline__ void vxd_map_put_taps(const struct vxd_map_work *work,
                                                        struct vxd_map_shared *shared)
{
    uint32_t n_taps = (uint32_t)work->job.map.n_taps;
    bool has_counted = work->block_group.rank < vxd_map_n_counting(work);

    __syncthreads();
    for (uint32_t tap = threadIdx.x; tap < n_taps; tap += VXD_GRID_THREADS) {
        if (has_counted) {
            work->job.tap_counts[work->block_group.rank * n_taps + tap] =
                shared->tap_counts[tap];
        }
        shared->tap_counts[tap] = 0;
    }
    __syncthreads();
}

/* Sums the counts of all blocks of the group, after a barrier. */
static __device__ __forceinline__ void vxd_map_sum_taps(const struct vxd_map_work *work,
                                                        struct vxd_map_shared *shared)
{
    uint32_t n_taps = (uint32_t)work->job.map.n_taps;
    uint32_t n = vxd_map_n_counting(work) * n_taps;

    for (uint32_t i = threadIdx.x; i < n; i += VXD_GRID_THREADS) {
        (void)atomicAdd(&shared->tap_counts[i % n_taps], work->job.tap_counts[i]);
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

/* The position of a Gray code in its order: bit i is the parity of the code's bits
 * from i on. For codes without a common bit, the position of their or is the xor of
 * their positions. */
static __device__ __forceinline__ uint32_t vxd_map_gray_place(uint32_t code)
{
    static_assert(VXD_ORDER_BITS <= 32, "five steps");
#pragma unroll
    for (int shift = 1; shift < 32; shift *= 2) {
        code ^= code >> shift;
    }
    return code;
}

/* What each byte of a mask of up to 32 taps contributes to a key. */
static __device__ __forceinline__ void vxd_map_make_shares(int n_bits,
                                                           struct vxd_map_shared *shared)
{
    int group = (int)threadIdx.x / 256;
    uint32_t byte = threadIdx.x % 256;
    uint32_t share = 0;

    static_assert(VXD_GRID_THREADS == 4 * 256, "a thread a byte");
    for (int bit = 0; bit < n_bits; bit++) {
        int tap = shared->taps[bit];

        share |= tap / 8 == group ? (byte >> tap % 8 & 1) << bit : 0;
    }
    shared->shares[group][byte] = vxd_map_gray_place(share);
    __syncthreads();
}

static __device__ __forceinline__ void vxd_map_make_keys(const struct vxd_map_work *work,
                                                         int n_bits,
                                                         struct vxd_map_shared *shared)
{
    const struct vxd_map_job *job = &work->job;
    size_t n_words = VXD_SPARSE_MASK_WORDS(job->map.n_taps);
    struct vxd_block_range range = vxd_block_range_of(work->n_rows, work->block_group);
    const uint32_t *masks = job->map.masks;
    uint32_t *keys = job->keys[0];

    if (n_words == 1) {
        vxd_map_make_shares(n_bits, shared);
        for (uint32_t i = range.begin + threadIdx.x; i < range.end;
             i += VXD_GRID_THREADS) {
            uint32_t mask = masks[i];

            keys[i] = shared->shares[0][mask & 255] ^ shared->shares[1][mask >> 8 & 255] ^
                      shared->shares[2][mask >> 16 & 255] ^ shared->shares[3][mask >> 24];
        }
        return;
    }
    for (uint32_t i = range.begin + threadIdx.x; i < range.end; i += VXD_GRID_THREADS) {
        uint32_t code = 0;

        for (int bit = 0; bit < n_bits; bit++) {
            int tap = shared->taps[bit];

            code |= (masks[i * n_words + (size_t)tap / 32] >> tap % 32 & 1) << bit;
        }
        keys[i] = vxd_map_gray_place(code);
    }
}

/* Counts pairs and makes the keys by which rows are sorted; returns how many passes
 * that takes. */
static __device__ __forceinline__ int vxd_map_begin_order(const struct vxd_map_work *work,
                                                          struct vxd_map_shared *shared)
{
    uint32_t n_taps = (uint32_t)work->job.map.n_taps;
    int n_bits;

    vxd_map_sum_taps(work, shared);
    if (work->block_group.rank == 0) {
        uint64_t n_pairs =
            vxd_block_sum(threadIdx.x < n_taps ? shared->tap_counts[threadIdx.x] : 0);

        if (threadIdx.x == 0) {
            *work->job.map.n_pairs = n_pairs;
        }
    }
    n_bits = vxd_map_rank_taps(n_taps, work->n_rows, shared);
    vxd_map_make_keys(work, n_bits, shared);
    return (n_bits + VXD_SORT_BITS - 1) / VXD_SORT_BITS;
}

/* Pass i of n; the last one writes the order. */
static __device__ __forceinline__ struct vxd_sort_pass<uint32_t>
vxd_map_pass(const struct vxd_map_work *work, int i, int n) {
    const struct vxd_map_job *job = &work->job;
    bool to_order = (n - 1 - i) % 2 == 0;
    struct vxd_sort_pass<uint32_t> pass;

    pass.keys = i % 2 == 0 ? job->keys[0] : job->keys[1];
    pass.to_keys = i == n - 1 ? NULL : i % 2 == 0 ? job->keys[1] : job->keys[0];
    pass.values = i == 0 ? NULL : to_order ? job->values : job->map.order;
    pass.to_values = to_order ? job->map.order : job->values;
    pass.n = work->n_rows;
    pass.shift = i * VXD_SORT_BITS;
    pass.ranks = job->ranks;
    pass.counts = job->sort_counts;
    return pass;
}

/* Orders the rows that no pass places: the padding, or all rows where nothing is
 * sorted. */
static __device__ __forceinline__ void
vxd_map_end_order(const struct vxd_map_work *work, int n_passes)
{
    uint32_t n_padded = vxd_map_padded(work->n_rows);

    for (uint32_t i = (n_passes > 0 ? work->n_rows : 0) +
                      work->block_group.rank * VXD_GRID_THREADS + threadIdx.x;
         i < n_padded; i += work->block_group.size * VXD_GRID_THREADS) {
        work->job.map.order[i] = i;
    }
}

/* The last step of a kernel map: lists of the tiles that convolutions divide the ordered rows
 * into, those with the most taps first.
 *
 * A block of a convolution has a few tiles, assigned in the list's order to the blocks forwards
 * and backwards in turn, so that all blocks have about the same amount of work. In the order of
 * the rows themselves the block with the most had 15 to 25 % more than the mean. A warp computes
 * the classes of 256 rows at a time, at least one tile of each size. The last block to finish
 * that counts and places the tiles. Tiles with the same number of taps are in no particular
 * order; results do not depend on it. */

#define VXD_TILE_GROUP (VXD_SPARSE_TILE_ROWS << (VXD_SPARSE_TILE_SIZES - 1)) /* rows */
/* by number of taps; for kernels with more than 32 taps, by their number scaled */
#define VXD_TILE_CLASSES 33

static __device__ __forceinline__ uint32_t vxd_map_n_tiles(uint32_t n_rows, int size)
{
    uint32_t tile_rows = (uint32_t)VXD_SPARSE_TILE_ROWS << size;

    return (n_rows + tile_rows - 1) / tile_rows;
}

static __device__ __forceinline__ uint32_t vxd_map_tile_class(uint32_t n_of_tile,
                                                              uint32_t n_taps)
{
    return n_taps < VXD_TILE_CLASSES ? n_of_tile
                                     : n_of_tile * (VXD_TILE_CLASSES - 1) / n_taps;
}

/* Classes use the memory of a pass's keys, and the lists the memory behind the order. */
static __device__ __forceinline__ uint32_t *
vxd_map_tile_classes(const struct vxd_map_job *job, int size)
{
    return job->keys[0] + (vxd_sparse_tiles_at(job->map.capacity, size) -
                           vxd_sparse_tiles_at(job->map.capacity, 0));
}

/* Classes of the tiles of a group of rows; a warp calls. */
static __device__ __forceinline__ void
vxd_map_classify_group(const struct vxd_map_work *work, uint32_t group)
{
    constexpr int N_LEAST = VXD_TILE_GROUP / VXD_SPARSE_TILE_ROWS;
    const struct vxd_map_job *job = &work->job;
    uint32_t n_taps = (uint32_t)job->map.n_taps;
    size_t n_words = VXD_SPARSE_MASK_WORDS(n_taps);
    uint32_t lane = threadIdx.x % 32;
    uint32_t n_of_tile[VXD_SPARSE_TILE_SIZES][N_LEAST] = {};
    uint32_t rows[2 * N_LEAST];

#pragma unroll
    for (int i = 0; i < 2 * N_LEAST; i++) {
        uint32_t place = group * VXD_TILE_GROUP + (uint32_t)i * 32 + lane;

        rows[i] = place < work->n_rows ? job->map.order[place] : UINT32_MAX;
    }
    for (size_t word = 0; word < n_words; word++) {
        uint32_t taps[N_LEAST];

#pragma unroll
        for (int i = 0; i < N_LEAST; i++) {
            uint32_t mask = 0;

#pragma unroll
            for (int k = 2 * i; k < 2 * i + 2; k++) {
                mask |=
                    rows[k] != UINT32_MAX ? job->map.masks[rows[k] * n_words + word] : 0;
            }
            taps[i] = __reduce_or_sync(UINT32_MAX, mask);
        }
#pragma unroll
        for (int size = 0; size < VXD_SPARSE_TILE_SIZES; size++) {
#pragma unroll
            for (int i = 0; i < N_LEAST >> size; i++) {
                n_of_tile[size][i] += (uint32_t)__popc(taps[i]);
                if (2 * i + 1 < N_LEAST >> size) {
                    taps[i] = taps[2 * i] | taps[2 * i + 1];
                }
            }
        }
    }
#pragma unroll
    for (int size = 0; size < VXD_SPARSE_TILE_SIZES; size++) {
#pragma unroll
        for (int i = 0; i < N_LEAST >> size; i++) {
            uint32_t tile = group * (uint32_t)(N_LEAST >> size) + (uint32_t)i;

            if (lane == 0 && tile < vxd_map_n_tiles(work->n_rows, size)) {
                vxd_map_tile_classes(job, size)[tile] =
                    vxd_map_tile_class(n_of_tile[size][i], n_taps);
            }
        }
    }
}

/* Runs after the order is written, and a barrier. */
static __device__ __forceinline__ void
vxd_map_classify_tiles(const struct vxd_map_work *work)
{
    uint32_t n_groups = (work->n_rows + VXD_TILE_GROUP - 1) / VXD_TILE_GROUP;

    for (uint32_t group = work->block_group.rank * VXD_GRID_WARPS + threadIdx.x / 32;
         group < n_groups; group += work->block_group.size * VXD_GRID_WARPS) {
        vxd_map_classify_group(work, group);
    }
}

/* Places all tiles; one block calls, after all blocks have computed their classes. */
static __device__ __forceinline__ void vxd_map_list_tiles(const struct vxd_map_work *work,
                                                          struct vxd_map_shared *shared)
{
    const struct vxd_map_job *job = &work->job;
    uint32_t(*counts)[256] =
        shared->shares; /* a line for each size; the memory held keys of masks before */

    static_assert(VXD_SPARSE_TILE_SIZES <= 4 && VXD_TILE_CLASSES <= 256, "a line a size");
    if (threadIdx.x < VXD_TILE_CLASSES) {
        for (int size = 0; size < VXD_SPARSE_TILE_SIZES; size++) {
            counts[size][threadIdx.x] = 0;
        }
    }
    __syncthreads();
    for (int size = 0; size < VXD_SPARSE_TILE_SIZES; size++) {
        const uint32_t *classes = vxd_map_tile_classes(job, size);

        for (uint32_t tile = threadIdx.x; tile < vxd_map_n_tiles(work->n_rows, size);
             tile += VXD_GRID_THREADS) {
            (void)atomicAdd(&counts[size][__ldcg(classes + tile)], 1);
        }
    }
    __syncthreads();
    if (threadIdx.x < VXD_SPARSE_TILE_SIZES) { /* where each class begins */
        uint32_t begin = 0;

        for (int i = VXD_TILE_CLASSES - 1; i >= 0; i--) {
            uint32_t n = counts[threadIdx.x][i];

            counts[threadIdx.x][i] = begin;
            begin += n;
        }
    }
    __syncthreads();
    for (int size = 0; size < VXD_SPARSE_TILE_SIZES; size++) {
        const uint32_t *classes = vxd_map_tile_classes(job, size);
        uint32_t *list = job->map.order + vxd_sparse_tiles_at(job->map.capacity, size);

        for (uint32_t tile = threadIdx.x; tile < vxd_map_n_tiles(work->n_rows, size);
             tile += VXD_GRID_THREADS) {
            list[atomicAdd(&counts[size][__ldcg(classes + tile)], 1)] = tile;
        }
    }
}

#endif
