// SPDX-License-Identifier: Apache-2.0
/* What the CUDA backends of coordinate sets and kernel maps share.
 *
 * Their work is small (10^5 rows), and only the device knows how much there is. So each operation
 * is one cooperative kernel with as many blocks as multiprocessors. Each block takes a
 * consecutive range of the rows, and a barrier over the grid (about 1.3 us) separates steps
 * instead of a launch. A block learns the results of the blocks before it from one word of each. */
#ifndef VXD_GPU_SPARSE_COORDS_GRID_CUDA_H
#define VXD_GPU_SPARSE_COORDS_GRID_CUDA_H

#include <cooperative_groups.h>

#include "gpu/core/core_cuda.h"
#include "gpu/sparse/coords/coord_set_backends.h"
#include "gpu/sparse/coords/coords_math.h"

#define VXD_GRID_THREADS 1024
#define VXD_GRID_WARPS (VXD_GRID_THREADS / 32)

/* A smaller range for each block costs more in barriers than it saves. */
#define VXD_GRID_MIN_BLOCK_ITEMS 256u

/* Number of blocks of a launch over at most n items; words of block b are valid for b
 * below it. */
static inline unsigned vxd_grid_blocks(const struct vxd_queue *queue, size_t n)
{
    size_t most = (size_t)queue->context->info.n_multiprocessors;
    size_t n_needed = (n + VXD_GRID_MIN_BLOCK_ITEMS - 1) / VXD_GRID_MIN_BLOCK_ITEMS;

    most = most < VXD_GRID_THREADS ? most : VXD_GRID_THREADS;
    return (unsigned)(n_needed < 1 ? 1 : n_needed < most ? n_needed : most);
}

/* Launches a kernel of one argument, a struct passed by value. */
static inline enum vxd_status vxd_grid_launch(struct vxd_queue *queue, const void *kernel,
                                              void *run, size_t n, size_t shared_bytes,
                                              const char *name, struct vxd_err *err)
{
    void *args[1] = {run};

    return vxd_cuda_status(
        queue->context,
        cudaLaunchCooperativeKernel(kernel, dim3(vxd_grid_blocks(queue, n)),
                                    dim3(VXD_GRID_THREADS), args, shared_bytes,
                                    (cudaStream_t)queue->stream),
        name, err);
}

/* The blocks that work on the same rows: all of a launch, or those of one of its jobs. */
struct vxd_block_group {
    uint32_t rank; /* of this block */
    uint32_t size;
};

static __device__ __forceinline__ struct vxd_block_group vxd_block_group_of_grid(void)
{
    return {blockIdx.x, gridDim.x};
}

/* A barrier over a group of blocks, as vxd_blocks_wait; groups do not wait for each other. */
static __device__ __forceinline__ void
vxd_block_group_wait(uint32_t *word, uint32_t *passed, struct vxd_block_group block_group)
{
    vxd_blocks_wait(word, passed, block_group.size);
}

/* Arrives at a barrier at which no block waits. Returns true in the block that arrives
 * last, which sees what the others have written. The group must not use the barrier
 * afterwards. */
static __device__ __forceinline__ bool
vxd_block_group_is_last(uint32_t *word, const uint32_t *passed,
                        struct vxd_block_group block_group)
{
    __shared__ bool is_last;

    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        is_last = atomicAdd(word, 1) + 1 == *passed + block_group.size;
        __threadfence();
    }
    __syncthreads();
    return is_last;
}

/* This block's range of n items; it is empty for blocks from number n_ranges on. */
struct vxd_block_range {
    uint32_t begin;
    uint32_t end;
    uint32_t n_ranges;
};

static __device__ __forceinline__ struct vxd_block_range
vxd_block_range_of(uint32_t n, struct vxd_block_group block_group)
{
    uint32_t share = (n + block_group.size - 1) / block_group.size;
    struct vxd_block_range range;

    share =
        share > VXD_GRID_MIN_BLOCK_ITEMS ? (share + 31) & ~31u : VXD_GRID_MIN_BLOCK_ITEMS;
    range.begin = min(n, block_group.rank * share);
    range.end = min(n, range.begin + share);
    range.n_ranges = (n + share - 1) / share;
    return range;
}

/* Sum over all threads of the block, returned to each. */
static __device__ __forceinline__ uint64_t vxd_block_sum(uint64_t value)
{
    __shared__ uint64_t warps[VXD_GRID_WARPS];

    for (int step = 16; step > 0; step /= 2) {
        value += __shfl_xor_sync(UINT32_MAX, value, step);
    }
    if (threadIdx.x % 32 == 0) {
        warps[threadIdx.x / 32] = value;
    }
    __syncthreads();
    value = warps[threadIdx.x % 32];
    for (int step = 16; step > 0; step /= 2) {
        value += __shfl_xor_sync(UINT32_MAX, value, step);
    }
    __syncthreads();
    return value;
}

static __device__ __forceinline__ uint64_t vxd_block_or(uint64_t value)
{
    __shared__ uint64_t warps[VXD_GRID_WARPS];

    for (int step = 16; step > 0; step /= 2) {
        value |= __shfl_xor_sync(UINT32_MAX, value, step);
    }
    if (threadIdx.x % 32 == 0) {
        warps[threadIdx.x / 32] = value;
    }
    __syncthreads();
    value = warps[threadIdx.x % 32];
    for (int step = 16; step > 0; step /= 2) {
        value |= __shfl_xor_sync(UINT32_MAX, value, step);
    }
    __syncthreads();
    return value;
}

/* The number of threads before this one whose value is true; *n_true is that of the
 * block. */
static __device__ __forceinline__ uint32_t vxd_block_rank(bool is_true, uint32_t *n_true)
{
    __shared__ uint32_t warps[VXD_GRID_WARPS];
    uint32_t lane = threadIdx.x % 32;
    uint32_t warp = threadIdx.x / 32;
    uint32_t ballot = __ballot_sync(UINT32_MAX, is_true);
    uint32_t before;

    if (lane == 0) {
        warps[warp] = (uint32_t)__popc(ballot);
    }
    __syncthreads();
    before = __reduce_add_sync(UINT32_MAX, lane < warp ? warps[lane] : 0);
    *n_true = __reduce_add_sync(UINT32_MAX, warps[lane]);
    __syncthreads();
    return before + (uint32_t)__popc(ballot & ((1u << lane) - 1));
}

struct vxd_sums {
    uint64_t before; /* of the blocks, or threads, before this one */
    uint64_t total;
};

/* Sums of one word a block; the words were written before the last barrier over the
 * grid. */
static __device__ __forceinline__ struct vxd_sums vxd_grid_sum(const uint64_t *words)
{
    uint64_t word = threadIdx.x < gridDim.x ? words[threadIdx.x] : 0;
    struct vxd_sums sum;

    sum.before = vxd_block_sum(threadIdx.x < blockIdx.x ? word : 0);
    sum.total = vxd_block_sum(word);
    return sum;
}

/* Sums over the threads before this one and over the block; each below 2^32. */
static __device__ __forceinline__ struct vxd_sums vxd_block_scan(uint64_t value)
{
    __shared__ uint64_t warps[VXD_GRID_WARPS];
    uint32_t lane = threadIdx.x % 32;
    uint32_t warp = threadIdx.x / 32;
    uint64_t end = value;
    struct vxd_sums sums;

    for (int step = 1; step < 32; step *= 2) {
        uint64_t other = __shfl_up_sync(UINT32_MAX, end, (unsigned)step);

        end += lane >= (uint32_t)step ? other : 0;
    }
    if (lane == 31) {
        warps[warp] = end;
    }
    __syncthreads();
    sums.before = lane < warp ? warps[lane] : 0;
    sums.total = warps[lane];
    for (int step = 16; step > 0; step /= 2) {
        sums.before += __shfl_xor_sync(UINT32_MAX, sums.before, step);
        sums.total += __shfl_xor_sync(UINT32_MAX, sums.total, step);
    }
    __syncthreads();
    sums.before += end - value;
    return sums;
}

static __device__ __forceinline__ uint64_t vxd_grid_or(const uint64_t *words)
{
    return vxd_block_or(threadIdx.x < gridDim.x ? words[threadIdx.x] : 0);
}

/* Sets the fault; one thread of the grid calls. */
static __device__ __forceinline__ void vxd_sparse_fault(uint32_t *error_word,
                                                        enum vxd_status status)
{
    (void)atomicCAS(error_word, (uint32_t)VXD_OK, (uint32_t)status);
}

/* Index of the first of n ascending keys that is not less than `key`; n if there is
 * none. */
static __device__ __forceinline__ uint32_t vxd_sparse_lower_bound(const uint64_t *keys,
                                                                  uint32_t n,
                                                                  uint64_t key)
{
    uint32_t low = 0;

    while (n > 0) {
        uint32_t half = n / 2;

        if (keys[low + half] < key) {
            low += half + 1;
            n -= half + 1;
        } else {
            n = half;
        }
    }
    return low;
}

/* The table of a set's blocks: buckets of four slots, which is a sector of memory. A
 * bucket fills from its first slot on, and a full one overflows into the next. A slot
 * is 0 (empty) or has the upper half of the block's hash above the block's number plus
 * one. */
#define VXD_BUCKET_SLOTS 4

/* Number of buckets in use, minus one: the least power of two that gives each block a
 * bucket, if the capacity allows it; then one bucket in fifty is full. */
static __device__ __forceinline__ uint32_t vxd_sparse_bucket_mask(uint32_t n_blocks,
                                                                  uint64_t n_slots)
{
    uint64_t capacity = n_slots / VXD_BUCKET_SLOTS;
    uint64_t n =
        n_blocks < 2 ? 1 : (uint64_t)1 << (64 - __clzll((long long)n_blocks - 1));

    return (uint32_t)((n < capacity ? n : capacity) - 1);
}

/* Where blocks of a set are found. */
struct vxd_sparse_lookup {
    const uint64_t *slots;
    uint64_t n_slots;
    const uint64_t *block_keys;
    const uint64_t *block_mask;
    const uint32_t *block_row;
};

/* The cells of a block that have a row, a bit each, and the row of the first; no cells
 * where the set does not have the block. */
struct vxd_sparse_block {
    uint64_t mask;
    uint32_t row;
};

struct vxd_sparse_bucket {
    ulonglong2 slots[VXD_BUCKET_SLOTS / 2];
};

static __device__ __forceinline__ struct vxd_sparse_bucket
vxd_sparse_load_bucket(const struct vxd_sparse_lookup *coord_set, uint32_t bucket)
{
    const ulonglong2 *from =
        (const ulonglong2 *)(const void *)coord_set->slots + (size_t)bucket * 2;

    return {{from[0], from[1]}};
}

/* The block number plus one of the first slot of a bucket that matches a hash; 0:
 * none, which is also what an empty slot contains. */
static __device__ __forceinline__ uint32_t
vxd_sparse_match(const struct vxd_sparse_bucket *bucket, uint64_t hash)
{
    const uint64_t slots[VXD_BUCKET_SLOTS] = {bucket->slots[0].x, bucket->slots[0].y,
                                              bucket->slots[1].x, bucket->slots[1].y};
    uint32_t number = 0;

#pragma unroll
    for (int i = VXD_BUCKET_SLOTS - 1; i >= 0; i--) {
        number =
            slots[i] >> 32 == hash >> 32 && slots[i] != 0 ? (uint32_t)slots[i] : number;
    }
    return number;
}

static __device__ __forceinline__ bool
vxd_sparse_is_full(const struct vxd_sparse_bucket *bucket)
{
    return bucket->slots[VXD_BUCKET_SLOTS / 2 - 1].y != 0;
}

/* The slow path: compares every slot that may match. */
static __device__ __noinline__ struct vxd_sparse_block
vxd_sparse_search_block(const struct vxd_sparse_lookup *coord_set, uint32_t bucket_mask,
                        uint64_t block)
{
    uint64_t hash = vxd_sparse_block_hash(block);
    struct vxd_sparse_block found = {0, 0};
    uint32_t bucket = (uint32_t)hash & bucket_mask;
    bool more = true;

    while (more) {
        const uint64_t *slots = coord_set->slots + (size_t)bucket * VXD_BUCKET_SLOTS;

        for (int i = 0; i < VXD_BUCKET_SLOTS && more; i++) {
            uint32_t number = (uint32_t)slots[i] - 1;

            more = slots[i] != 0;
            if (more && slots[i] >> 32 == hash >> 32 &&
                coord_set->block_keys[number] == block) {
                found.mask = coord_set->block_mask[number];
                found.row = coord_set->block_row[number];
                more = false;
            }
        }
        bucket = (bucket + 1) & bucket_mask;
    }
    return found;
}

/* Looks up N blocks at once, so that their loads are issued together;
 * VXD_SPARSE_NO_KEY: no block is looked up. */
template <int N>
static __device__ __forceinline__ void
vxd_sparse_find_blocks(const struct vxd_sparse_lookup *coord_set, uint32_t bucket_mask,
                       const uint64_t names[N], struct vxd_sparse_block found[N])
{
    struct vxd_sparse_bucket buckets[N];
    uint64_t keys[N];

#pragma unroll
    for (int i = 0; i < N; i++) {
        buckets[i] = {};
        if (names[i] != VXD_SPARSE_NO_KEY) {
            buckets[i] = vxd_sparse_load_bucket(
                coord_set, (uint32_t)vxd_sparse_block_hash(names[i]) & bucket_mask);
        }
    }
#pragma unroll
    for (int i = 0; i < N; i++) {
        uint32_t number = vxd_sparse_match(&buckets[i], vxd_sparse_block_hash(names[i]));

        /* Absent: its bucket has an empty slot. */
        keys[i] = vxd_sparse_is_full(&buckets[i]) ? ~names[i] : names[i];
        found[i] = {0, 0};
        if (number != 0) {
            keys[i] = coord_set->block_keys[number - 1];
            found[i].mask = coord_set->block_mask[number - 1];
            found[i].row = coord_set->block_row[number - 1];
        }
    }
#pragma unroll
    for (int i = 0; i < N; i++) {
        if (keys[i] != names[i]) {
            found[i] = vxd_sparse_search_block(coord_set, bucket_mask, names[i]);
        }
    }
}

/* Row of a cell of a block, or -1. */
static __device__ __forceinline__ int32_t
vxd_sparse_find_cell(const struct vxd_sparse_block *block, uint32_t cell)
{
    if ((block->mask >> cell & 1) == 0) {
        return -1;
    }
    return (int32_t)vxd_sparse_block_cell_row(block->mask, block->row, (int)cell);
}

#endif
