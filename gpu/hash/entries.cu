// SPDX-License-Identifier: Apache-2.0
/* Entries by number on a GPU.
 *
 * Rows    Adjacent lanes move a row in units of up to 16 bytes: as many lanes as the row has
 *         units, at most a warp (ASH, section 4.6). So rows of any size are read and written in
 *         whole sectors. Bytes moved: the rows twice, and 4 bytes of number a row.
 * Lists   The heap and the active list are made from the live bits in two passes. The first
 *         counts tiles of words. In the second every tile sums the counts before it (there are
 *         at most MAX_TILES) and writes its numbers, a warp a word. The bits are read twice and
 *         the numbers written once. 10 M entries: 1.2 + 40 MB, 12 us. */
#include "gpu/core/core_cuda.h"
#include "gpu/hash/hash_cuda.h"

#define N_THREADS 256
#define N_WARPS (N_THREADS / 32)
#define TILE_WORDS 1024 /* at least */
#define MAX_TILES 2048

unsigned vxd_hash_blocks(const struct vxd_queue *queue, size_t n, size_t items_per_block,
                         size_t most)
{
    size_t n_blocks = (n + items_per_block - 1) / items_per_block;

    most *= (size_t)queue->context->info.n_multiprocessors;
    n_blocks = n_blocks < most ? n_blocks : most;
    return (unsigned)(n_blocks > 0 ? n_blocks : 1);
}

size_t vxd_row_unit(const void *to, const void *from, size_t row_bytes)
{
    size_t together = (size_t)(uintptr_t)to | (size_t)(uintptr_t)from | row_bytes | 16;

    return together & (~together + 1);
}

bool vxd_split_values(const struct vxd_hashmap *map,
                      const struct vxd_hashmap_insert_args *call,
                      struct vxd_value_rows rows[VXD_HASHMAP_MAX_VALUES], int *n_rows,
                      bool is_long[VXD_HASHMAP_MAX_VALUES])
{
    bool any_long = false;

    *n_rows = 0;
    for (int v = 0; v < map->spec.n_values; v++) {
        size_t row_bytes = map->row_bytes[v];
        size_t unit;

        is_long[v] = false;
        if (call->values == NULL) {
            continue;
        }
        unit = vxd_row_unit(map->values[v].ptr, call->values[v], row_bytes);
        is_long[v] = row_bytes > VXD_DIRECT_UNITS * unit;
        any_long = any_long || is_long[v];
        if (!is_long[v]) {
            rows[(*n_rows)++] = {(char *)map->values[v].ptr,
                                 (const char *)call->values[v], (uint32_t)row_bytes,
                                 (uint32_t)unit};
        }
    }
    return any_long;
}

struct move_args {
    struct vxd_row_move move;
    uint32_t n_units;
    uint32_t n_lanes; /* a power of two, at most 32 */
};

static __device__ __forceinline__ void set_zero(uint4 *unit)
{
    *unit = make_uint4(0, 0, 0, 0);
}

static __device__ __forceinline__ void set_zero(uint2 *unit)
{
    *unit = make_uint2(0, 0);
}

template <typename UNIT> static __device__ __forceinline__ void set_zero(UNIT *unit)
{
    *unit = 0;
}

template <typename UNIT>
static __global__ void __launch_bounds__(N_THREADS)
    move_kernel(const __grid_constant__ struct move_args args)
{
    const struct vxd_row_move *move = &args.move;
    uint32_t lane = threadIdx.x & (args.n_lanes - 1);
    size_t rows_per_block = N_THREADS / args.n_lanes;
    size_t skipped = move->first != NULL ? *move->first : 0;
    size_t n = move->last != NULL ? *move->last - skipped : move->n;

    for (size_t k = blockIdx.x * rows_per_block + threadIdx.x / args.n_lanes; k < n;
         k += gridDim.x * rows_per_block) {
        int64_t to = move->to_rows != NULL ? move->to_rows[skipped + k] : (int64_t)k;
        int64_t from = move->from_rows != NULL ? move->from_rows[k] : (int64_t)k;
        bool is_zero = move->from == NULL ||
                       (move->live != NULL &&
                        !vxd_live_get(move->live, move->capacity, (int32_t)from));
        UNIT *to_row = (UNIT *)move->to + to * (int64_t)args.n_units;
        const UNIT *from_row = (const UNIT *)move->from + from * (int64_t)args.n_units;

        for (uint32_t u = lane; to >= 0 && u < args.n_units; u += args.n_lanes) {
            if (is_zero) {
                set_zero(to_row + u);
            } else {
                to_row[u] = from_row[u];
            }
        }
    }
}

enum vxd_status vxd_rows_move(struct vxd_queue *queue, const struct vxd_row_move *move,
                              struct vxd_err *err)
{
    size_t unit = vxd_row_unit(move->to, move->from, move->row_bytes);
    struct move_args args = {*move, (uint32_t)(move->row_bytes / unit), 1};
    cudaStream_t stream = (cudaStream_t)queue->stream;
    enum vxd_status status = VXD_OK;
    unsigned n_blocks;

    while (args.n_lanes < args.n_units && args.n_lanes < 32) {
        args.n_lanes *= 2;
    }
    n_blocks = vxd_hash_blocks(queue, move->n, N_THREADS / args.n_lanes, 32);
    VXD_TRY(vxd_cuda_enter(queue->context, err));
    switch (unit) {
    case 16:
        move_kernel<uint4><<<n_blocks, N_THREADS, 0, stream>>>(args);
        break;
    case 8:
        move_kernel<uint2><<<n_blocks, N_THREADS, 0, stream>>>(args);
        break;
    case 4:
        move_kernel<uint32_t><<<n_blocks, N_THREADS, 0, stream>>>(args);
        break;
    case 2:
        move_kernel<uint16_t><<<n_blocks, N_THREADS, 0, stream>>>(args);
        break;
    default:
        move_kernel<uint8_t><<<n_blocks, N_THREADS, 0, stream>>>(args);
        break;
    }
    VXD_TRY(vxd_cuda_launched(queue->context, "move_kernel", err));
out:
    return status;
}

struct list_args {
    const uint32_t *live;
    uint32_t flip; /* 0: lists living numbers, ~0: lists free ones */
    uint32_t capacity;
    uint32_t n_words;
    uint32_t tile_words; /* a multiple of N_THREADS */
    uint32_t *counts;    /* one a tile */
    uint32_t *to;
    const uint32_t *begin; /* where in `to` the list begins; NULL: at 0 */
    uint32_t *n_numbers;   /* out; may be NULL */
};

static __device__ __forceinline__ uint32_t selected_bits(const struct list_args *args,
                                                         uint32_t word)
{
    uint32_t bits;

    if (word >= args->n_words) {
        return 0;
    }
    bits = args->live[word] ^ args->flip;
    return word == args->capacity / 32 ? bits & ((1u << args->capacity % 32) - 1) : bits;
}

/* Sum over the block, for every thread. */
static __device__ uint32_t block_sum(uint32_t value)
{
    __shared__ uint32_t warp_sums[N_WARPS];

    value = __reduce_add_sync(UINT32_MAX, value);
    __syncthreads();
    if (threadIdx.x % 32 == 0) {
        warp_sums[threadIdx.x / 32] = value;
    }
    __syncthreads();
    return __reduce_add_sync(
        UINT32_MAX, threadIdx.x % 32 < N_WARPS ? warp_sums[threadIdx.x % 32] : 0);
}

static __global__ void __launch_bounds__(N_THREADS)
    count_kernel(const __grid_constant__ struct list_args args)
{
    uint32_t n = 0;

    for (uint32_t w = threadIdx.x; w < args.tile_words; w += N_THREADS) {
        n += (uint32_t)__popc(selected_bits(&args, blockIdx.x * args.tile_words + w));
    }
    n = block_sum(n);
    if (threadIdx.x == 0) {
        args.counts[blockIdx.x] = n;
    }
}

/* Writes the numbers of a warp's 32 words from place `at` on. */
static __device__ __forceinline__ void
write_words(const struct list_args *args, uint32_t first_word, uint32_t bits, uint32_t at)
{
    uint32_t lane = threadIdx.x % 32;

    for (uint32_t w = 0; w < 32; w++) {
        uint32_t word_bits = __shfl_sync(UINT32_MAX, bits, (int)w);

        if ((word_bits >> lane & 1) != 0) {
            args->to[at + (uint32_t)__popc(word_bits & ((1u << lane) - 1))] =
                (first_word + w) * 32 + lane;
        }
        at += (uint32_t)__popc(word_bits);
    }
}

static __global__ void __launch_bounds__(N_THREADS)
    list_kernel(const __grid_constant__ struct list_args args)
{
    __shared__ uint32_t warp_counts[N_WARPS];
    uint32_t warp = threadIdx.x / 32;
    uint32_t lane = threadIdx.x % 32;
    uint32_t at = 0;

    for (uint32_t t = threadIdx.x; t < blockIdx.x; t += N_THREADS) {
        at += args.counts[t];
    }
    at = block_sum(at);
    if (args.n_numbers != NULL && blockIdx.x + 1 == gridDim.x && threadIdx.x == 0) {
        *args.n_numbers = at + args.counts[blockIdx.x];
    }
    at += args.begin != NULL ? *args.begin : 0;
    for (uint32_t w = 0; w < args.tile_words; w += N_THREADS) {
        uint32_t word = blockIdx.x * args.tile_words + w + threadIdx.x;
        uint32_t bits = selected_bits(&args, word);
        uint32_t n = __reduce_add_sync(UINT32_MAX, (uint32_t)__popc(bits));
        uint32_t count;

        __syncthreads();
        if (lane == 0) {
            warp_counts[warp] = n;
        }
        __syncthreads();
        count = lane < N_WARPS ? warp_counts[lane] : 0;
        write_words(&args, word - lane, bits,
                    at + __reduce_add_sync(UINT32_MAX, lane < warp ? count : 0));
        at += __reduce_add_sync(UINT32_MAX, count);
    }
}

static void plan_list(const struct vxd_hashmap *map, struct list_args *args,
                      unsigned *n_tiles)
{
    size_t n_words = (map->capacity + 31) / 32;
    size_t tile_words = (n_words + MAX_TILES - 1) / MAX_TILES;

    tile_words = (tile_words + TILE_WORDS - 1) / TILE_WORDS * TILE_WORDS;
    tile_words = tile_words > 0 ? tile_words : TILE_WORDS;
    args->live = (const uint32_t *)map->live.ptr;
    args->capacity = (uint32_t)map->capacity;
    args->n_words = (uint32_t)n_words;
    args->tile_words = (uint32_t)tile_words;
    *n_tiles = (unsigned)(n_words > 0 ? (n_words + tile_words - 1) / tile_words : 1);
}

static enum vxd_status list(struct vxd_queue *queue, const struct vxd_hashmap *map,
                            struct list_args *args, struct vxd_err *err)
{
    cudaStream_t stream = (cudaStream_t)queue->stream;
    enum vxd_status status = VXD_OK;
    unsigned n_tiles;

    plan_list(map, args, &n_tiles);
    VXD_TRY(vxd_cuda_enter(queue->context, err));
    count_kernel<<<n_tiles, N_THREADS, 0, stream>>>(*args);
    VXD_TRY(vxd_cuda_launched(queue->context, "count_kernel", err));
    list_kernel<<<n_tiles, N_THREADS, 0, stream>>>(*args);
    VXD_TRY(vxd_cuda_launched(queue->context, "list_kernel", err));
out:
    return status;
}

size_t vxd_hash_heap_scratch_bytes_cuda(const struct vxd_queue *queue, size_t capacity)
{
    (void)queue;
    (void)capacity;
    return MAX_TILES * sizeof(uint32_t);
}

enum vxd_status vxd_hash_heap_rebuild_cuda(struct vxd_queue *queue,
                                           struct vxd_hashmap *map, void *scratch,
                                           size_t scratch_bytes, struct vxd_err *err)
{
    struct list_args args = {};

    (void)scratch_bytes;
    args.flip = UINT32_MAX;
    args.counts = (uint32_t *)scratch;
    args.to = (uint32_t *)map->heap.ptr;
    args.begin = &((const struct vxd_hash_counters *)map->counters.ptr)->n_live;
    return list(queue, map, &args, err);
}

enum vxd_status vxd_hash_active_cuda(struct vxd_queue *queue,
                                     const struct vxd_hashmap *map, int32_t *indices,
                                     uint32_t *n_entries, void *scratch,
                                     size_t scratch_bytes, struct vxd_err *err)
{
    struct list_args args = {};

    (void)scratch_bytes;
    args.counts = (uint32_t *)scratch;
    args.to = (uint32_t *)indices;
    args.n_numbers = n_entries;
    return list(queue, map, &args, err);
}

struct free_args {
    uint32_t *live;
    struct vxd_hash_counters *counters;
    const int32_t *indices;
    uint32_t n;
    int n_values; /* of short rows, which the entry's thread zeroes */
    struct vxd_value_rows values[VXD_HASHMAP_MAX_VALUES];
};

static __device__ __forceinline__ void zero_short_row(const struct vxd_value_rows *rows,
                                                      size_t entry)
{
    char *row = rows->to + entry * rows->row_bytes;

#pragma unroll 1
    for (uint32_t b = 0; b < rows->row_bytes; b += rows->unit) {
        switch (rows->unit) {
        case 16:
            *(uint4 *)(row + b) = make_uint4(0, 0, 0, 0);
            break;
        case 8:
            *(uint2 *)(row + b) = make_uint2(0, 0);
            break;
        case 4:
            *(uint32_t *)(row + b) = 0;
            break;
        case 2:
            *(uint16_t *)(row + b) = 0;
            break;
        default:
            row[b] = 0;
            break;
        }
    }
}

/* Few blocks make one atomic operation each on n_live: many of them on one address are
 * slow. */
static __global__ void __launch_bounds__(N_THREADS)
    free_kernel(const __grid_constant__ struct free_args args)
{
    uint32_t n_up = (args.n + 31) / 32 * 32;
    uint32_t n_freed = 0;

    for (uint32_t i = blockIdx.x * N_THREADS + threadIdx.x; i < n_up;
         i += gridDim.x * N_THREADS) {
        int32_t entry = i < args.n ? args.indices[i] : VXD_NO_ENTRY;

        vxd_live_clear_warp(args.live, entry >= 0, (uint32_t)entry);
        n_freed += entry >= 0 ? 1 : 0;
#pragma unroll 1
        for (int v = 0; entry >= 0 && v < args.n_values; v++) {
            zero_short_row(&args.values[v], (size_t)entry);
        }
        __syncwarp();
    }
    n_freed = block_sum(n_freed);
    if (threadIdx.x == 0 && n_freed > 0) {
        (void)atomicSub(&args.counters->n_live, n_freed);
    }
}

enum vxd_status vxd_hash_entries_free_cuda(struct vxd_queue *queue,
                                           struct vxd_hashmap *map,
                                           const int32_t *indices, size_t n,
                                           struct vxd_err *err)
{
    struct free_args args = {(uint32_t *)map->live.ptr,
                             (struct vxd_hash_counters *)map->counters.ptr,
                             indices,
                             (uint32_t)n,
                             0,
                             {}};
    enum vxd_status status = VXD_OK;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    if (n == 0) {
        return VXD_OK;
    }
    for (int v = 0; v < map->spec.n_values; v++) {
        size_t row_bytes = map->row_bytes[v];
        size_t unit = vxd_row_unit(map->values[v].ptr, NULL, row_bytes);

        if (row_bytes <= VXD_DIRECT_UNITS * unit) {
            args.values[args.n_values++] = {(char *)map->values[v].ptr, NULL,
                                            (uint32_t)row_bytes, (uint32_t)unit};
        }
    }
    free_kernel<<<vxd_hash_blocks(queue, n, N_THREADS, 8), N_THREADS, 0,
                  (cudaStream_t)queue->stream>>>(args);
    VXD_TRY(vxd_cuda_launched(queue->context, "free_kernel", err));
    for (int v = 0; v < map->spec.n_values; v++) {
        struct vxd_row_move move = {};

        if (map->row_bytes[v] <= VXD_DIRECT_UNITS * vxd_row_unit(map->values[v].ptr, NULL,
                                                                 map->row_bytes[v])) {
            continue;
        }
        move.to = map->values[v].ptr;
        move.row_bytes = map->row_bytes[v];
        move.n = n;
        move.to_rows = indices;
        VXD_TRY(vxd_rows_move(queue, &move, err));
    }
out:
    return status;
}

struct lives_args {
    uint32_t *live;
    size_t capacity;
    const int32_t *indices;
    uint32_t n;
    uint8_t *valid;
    struct vxd_hash_counters *counters;
};

static __global__ void __launch_bounds__(N_THREADS)
    valid_kernel(const __grid_constant__ struct lives_args args)
{
    uint32_t i = blockIdx.x * N_THREADS + threadIdx.x;

    if (i < args.n) {
        args.valid[i] = vxd_live_get(args.live, args.capacity, args.indices[i]) ? 1 : 0;
    }
}

static enum vxd_status gather_rows(struct vxd_queue *queue, const struct vxd_hashmap *map,
                                   const struct vxd_buffer *from, size_t row_bytes,
                                   const int32_t *indices, size_t n, void *to,
                                   struct vxd_err *err)
{
    struct vxd_row_move move = {};

    if (to == NULL) {
        return VXD_OK;
    }
    move.to = to;
    move.from = from->ptr;
    move.row_bytes = row_bytes;
    move.n = n;
    move.from_rows = indices;
    move.live = (const uint32_t *)map->live.ptr;
    move.capacity = map->capacity;
    return vxd_rows_move(queue, &move, err);
}

enum vxd_status vxd_hash_gather_cuda(struct vxd_queue *queue,
                                     const struct vxd_hashmap *map,
                                     const int32_t *indices, size_t n, void *keys,
                                     void *const *values, uint8_t *valid,
                                     struct vxd_err *err)
{
    struct lives_args args = {
        (uint32_t *)map->live.ptr, map->capacity, indices, (uint32_t)n, valid, NULL};
    enum vxd_status status = VXD_OK;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    if (n == 0) {
        return VXD_OK;
    }
    if (valid != NULL) {
        valid_kernel<<<(unsigned)((n + N_THREADS - 1) / N_THREADS), N_THREADS, 0,
                       (cudaStream_t)queue->stream>>>(args);
        VXD_TRY(vxd_cuda_launched(queue->context, "valid_kernel", err));
    }
    VXD_TRY(gather_rows(queue, map, &map->keys, (size_t)map->form.row_bytes, indices, n,
                        keys, err));
    for (int v = 0; values != NULL && v < map->spec.n_values; v++) {
        VXD_TRY(gather_rows(queue, map, &map->values[v], map->row_bytes[v], indices, n,
                            values[v], err));
    }
out:
    return status;
}

static __global__ void __launch_bounds__(N_THREADS)
    mark_live_kernel(const __grid_constant__ struct lives_args args)
{
    uint32_t i = blockIdx.x * N_THREADS + threadIdx.x;

    vxd_live_set_warp(args.live, i < args.n, i < args.n ? (uint32_t)args.indices[i] : 0);
    if (i == 0) {
        args.counters->n_live = args.n;
    }
}

enum vxd_status vxd_hash_scatter_cuda(struct vxd_queue *queue, struct vxd_hashmap *map,
                                      const int32_t *indices, size_t n, const void *keys,
                                      const void *const *values, struct vxd_err *err)
{
    struct lives_args args = {(uint32_t *)map->live.ptr,
                              map->capacity,
                              indices,
                              (uint32_t)n,
                              NULL,
                              (struct vxd_hash_counters *)map->counters.ptr};
    struct vxd_row_move move = {};
    enum vxd_status status = VXD_OK;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    if (n == 0) {
        return VXD_OK;
    }
    mark_live_kernel<<<(unsigned)((n + N_THREADS - 1) / N_THREADS), N_THREADS, 0,
                       (cudaStream_t)queue->stream>>>(args);
    VXD_TRY(vxd_cuda_launched(queue->context, "mark_live_kernel", err));
    move.n = n;
    move.to_rows = indices;
    move.to = map->keys.ptr;
    move.from = keys;
    move.row_bytes = (size_t)map->form.row_bytes;
    VXD_TRY(vxd_rows_move(queue, &move, err));
    for (int v = 0; v < map->spec.n_values; v++) {
        move.to = map->values[v].ptr;
        move.from = values[v];
        move.row_bytes = map->row_bytes[v];
        VXD_TRY(vxd_rows_move(queue, &move, err));
    }
out:
    return status;
}
