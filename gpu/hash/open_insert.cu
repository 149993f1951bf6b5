// SPDX-License-Identifier: Apache-2.0
/* Inserting into the open index: one pass, a thread a key (ASH, section 4.3.1).
 *
 * 1 claim    walk to the key or the first empty slot; claim a free slot by a CAS of 64 bits,
 *            FIRST 128
 * 2 decide   FIRST only: once every earlier tile has claimed, the least position that is
 *            marked in the slot has won
 * 3 number   the winners of a tile take heap places together: ANY by one atomic, FIRST by a
 *            look back over the tiles before (tiles_cuda.h)
 * 4 publish  number to the slot, key, values, live bit
 * 5 wait     the others read the number; winners never wait for them, so it comes
 * What bounds it: steps 1 and 4 touch a random sector twice, and it must still be in the
 * second-level cache, or the memory writes it twice. So fewer threads run than fit (N_ACTIVE)
 * and what is only streamed leaves the caches first.
 *
 * Moved for a new int3 key: 64 bytes read and 32 written of the slots, 12 + 4 + 4 bytes of
 * key, value and heap read, 12 + 4 + 4 + 1 written.
 * On an H200, 100 M keys of which 0.99 are new, floor (a CAS a key) 6.2 ms: ANY 9.2 ms, FIRST
 * 13.9. Tried: as many threads as fit 11.7 ms, two or four keys a thread 14.8 and 16.5, an
 * atomic a warp for places 20, numbers taken before the claim (holes to mend) 9.4, with a
 * 128-bit CAS 9.3, lines of the next tile fetched ahead 10.5; FIRST with the mark after the
 * claim 14.4, looks at other tiles without pause 14.1, tiles that look back a warp at a time
 * 15.7, twice as many threads 16.6, flags of who has lost instead of reading the slot again
 * 17. */
#include "gpu/hash/open_insert_cuda.h"

#define ANY_THREADS 128
#define FIRST_THREADS 768
#define N_ACTIVE 1280       /* threads of a multiprocessor at a time, ANY */
#define N_ACTIVE_FIRST 1536 /* the same, FIRST */

template <bool INT3>
static __global__ void __launch_bounds__(ANY_THREADS)
    insert_any_kernel(const __grid_constant__ struct insert_args args)
{
    uint32_t n_tiles = (args.n + ANY_THREADS - 1) / ANY_THREADS;

    for (uint32_t tile = blockIdx.x; tile < n_tiles; tile += gridDim.x) {
        insert_tile<INT3, TILES, ANY_THREADS>(&args, tile, NULL);
        __syncthreads();
    }
}

template <bool INT3>
static __global__ void __launch_bounds__(FIRST_THREADS)
    insert_first_kernel(const __grid_constant__ struct insert_args args)
{
    __shared__ uint32_t shared_tile;

    while (true) {
        uint32_t tile;

        if (threadIdx.x == 0) {
            shared_tile = atomicAdd(args.tiles.ticket, 1);
        }
        __syncthreads();
        tile = shared_tile;
        __syncthreads();
        if (tile >= args.tiles.n) {
            return;
        }
        insert_tile<INT3, TILES_IN_ORDER, FIRST_THREADS>(&args, tile, NULL);
    }
}

template <bool INT3>
static __global__ void __launch_bounds__(ONE_TILE_THREADS)
    insert_one_tile_kernel(const __grid_constant__ struct insert_args args)
{
    __shared__ struct heap_prefetch heap_prefetch;

    insert_tile<INT3, ONE_TILE, ONE_TILE_THREADS>(&args, 0, &heap_prefetch);
}

struct layout {
    size_t tiles; /* ticket, claims and prefixes, zeroed together */
    size_t tiles_bytes;
    size_t claims;
    size_t prefixes;
    size_t sources;
    size_t n_before;
    size_t total;
    uint32_t n_tiles;
    bool has_long_rows;
};

static bool lay_out(const struct vxd_hashmap *map, enum vxd_hash_order order, size_t n,
                    struct layout *out)
{
    bool ok = true;

    *out = {};
    out->n_tiles = 1;
    if (order == VXD_HASH_FIRST && n > ONE_TILE_THREADS) {
        out->n_tiles = (uint32_t)((n + FIRST_THREADS - 1) / FIRST_THREADS);
        ok = vxd_layout_add(&out->total, 1, sizeof(uint32_t), &out->tiles) &&
             vxd_layout_add(&out->total, out->n_tiles, sizeof(uint32_t), &out->claims) &&
             vxd_layout_add(&out->total, out->n_tiles, sizeof(uint64_t), &out->prefixes);
        out->tiles_bytes = out->total;
    }
    /* Without knowing how the caller's arrays are aligned: any row may be a long one. */
    for (int v = 0; v < map->spec.n_values; v++) {
        out->has_long_rows = out->has_long_rows || map->row_bytes[v] > VXD_DIRECT_UNITS;
    }
    if (out->has_long_rows) {
        ok = ok && vxd_layout_add(&out->total, n, sizeof(uint32_t), &out->sources) &&
             vxd_layout_add(&out->total, 1, sizeof(uint32_t), &out->n_before);
    }
    return ok;
}

size_t vxd_open_insert_scratch_bytes_cuda(const struct vxd_hashmap *map,
                                          enum vxd_hash_order order, size_t n)
{
    struct layout layout;

    return lay_out(map, order, n, &layout) ? layout.total : SIZE_MAX;
}

template <bool INT3>
static void launch(const struct vxd_queue *queue, enum vxd_hash_order order,
                   const struct insert_args *args)
{
    cudaStream_t stream = (cudaStream_t)queue->stream;

    if (order == VXD_HASH_ANY) {
        insert_any_kernel<INT3>
            <<<vxd_hash_blocks(queue, args->n, ANY_THREADS, N_ACTIVE / ANY_THREADS),
               ANY_THREADS, 0, stream>>>(*args);
    } else if (args->tiles.n == 1) {
        insert_one_tile_kernel<INT3><<<1, ONE_TILE_THREADS, 0, stream>>>(*args);
    } else {
        insert_first_kernel<INT3><<<vxd_hash_blocks(queue, args->n, FIRST_THREADS,
                                                    N_ACTIVE_FIRST / FIRST_THREADS),
                                    FIRST_THREADS, 0, stream>>>(*args);
    }
}

static enum vxd_status
move_long_rows(struct vxd_queue *queue, const struct vxd_hashmap *map,
               const struct vxd_hashmap_insert_args *call, const struct insert_args *args,
               const bool is_long[VXD_HASHMAP_MAX_VALUES], struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    for (int v = 0; v < map->spec.n_values; v++) {
        struct vxd_row_move move = {};

        if (!is_long[v]) {
            continue;
        }
        move.to = map->values[v].ptr;
        move.from = call->values[v];
        move.row_bytes = map->row_bytes[v];
        move.n = call->n;
        move.to_rows = (const int32_t *)args->heap;
        move.from_rows = (const int32_t *)args->sources;
        move.first = args->n_before;
        move.last = &args->view.counters->n_live;
        VXD_TRY(vxd_rows_move(queue, &move, err));
    }
out:
    return status;
}

struct undo_args {
    struct vxd_open_view view;
    uint32_t most;
    const uint32_t *heap;
    uint32_t *live;
    int n_values;
    struct vxd_value_rows values[VXD_HASHMAP_MAX_VALUES];
};

/* FIRST, more new keys than room: the entries that it made are at the heap places from n_live,
 * which it left as it was. */
static __global__ void undo_kernel(const __grid_constant__ struct undo_args args)
{
    const struct vxd_hash_counters *counters = args.view.counters;

    if (counters->scratch[VXD_OPEN_NEEDS_REBUILD] == 0) {
        return;
    }
    for (uint32_t place = counters->n_live + blockIdx.x * blockDim.x + threadIdx.x;
         place < args.most; place += gridDim.x * blockDim.x) {
        uint32_t number = args.heap[place];

        (void)atomicAnd(args.live + number / 32, ~(1u << number % 32));
        for (int v = 0; v < args.n_values; v++) {
            char *row = args.values[v].to + (size_t)number * args.values[v].row_bytes;

            for (uint32_t b = 0; b < args.values[v].row_bytes; b++) {
                row[b] = 0;
            }
        }
    }
}

static enum vxd_status undo(struct vxd_queue *queue, const struct vxd_hashmap *map,
                            const struct insert_args *insert, struct vxd_err *err)
{
    struct undo_args args = {insert->view, insert->most,     insert->heap,
                             insert->live, insert->n_values, {}};
    enum vxd_status status = VXD_OK;

    for (int v = 0; v < insert->n_values; v++) {
        args.values[v] = insert->values[v];
    }
    undo_kernel<<<vxd_hash_blocks(queue, map->capacity, VXD_OPEN_THREADS, 4),
                  VXD_OPEN_THREADS, 0, (cudaStream_t)queue->stream>>>(args);
    VXD_TRY(vxd_cuda_launched(queue->context, "undo_kernel", err));
out:
    return status;
}

enum vxd_status vxd_open_insert_cuda(struct vxd_queue *queue, struct vxd_hashmap *map,
                                     const struct vxd_hashmap_insert_args *call,
                                     void *scratch, size_t scratch_bytes,
                                     struct vxd_err *err)
{
    struct insert_args args = {};
    struct layout layout;
    bool is_long[VXD_HASHMAP_MAX_VALUES] = {};
    bool has_long;
    /* Else the caller's own count of new keys could be wrong. */
    bool fits = call->max_new == call->n;
    char *base = (char *)scratch;
    enum vxd_status status = VXD_OK;

    (void)scratch_bytes;
    (void)lay_out(map, call->order, call->n, &layout);
    args.view = vxd_open_view_of(queue, map);
    args.map_keys = (char *)map->keys.ptr;
    args.live = (uint32_t *)map->live.ptr;
    args.heap = (const uint32_t *)map->heap.ptr;
    args.keys = (const char *)call->keys;
    args.n = (uint32_t)call->n;
    args.most = (uint32_t)(map->size_bound + call->max_new);
    args.indices = call->indices;
    args.is_new = call->is_new;
    args.tiles.n = layout.n_tiles;
    has_long = vxd_split_values(map, call, args.values, &args.n_values, is_long);
    VXD_TRY(vxd_cuda_enter(queue->context, err));
    if (layout.tiles_bytes > 0) {
        args.tiles.ticket = (uint32_t *)(base + layout.tiles);
        args.tiles.claims = (uint32_t *)(base + layout.claims);
        args.tiles.prefixes = (unsigned long long *)(base + layout.prefixes);
        VXD_TRY(vxd_cuda_fill(queue, base, 0, layout.tiles_bytes, err));
    }
    if (has_long) {
        args.sources = (uint32_t *)(base + layout.sources);
        args.n_before = (const uint32_t *)(base + layout.n_before);
        VXD_TRY(vxd_cuda_copy(queue, base + layout.n_before, &args.view.counters->n_live,
                              sizeof(uint32_t), err));
    }
    if (vxd_open_is_int3(&map->form)) {
        launch<true>(queue, call->order, &args);
    } else {
        launch<false>(queue, call->order, &args);
    }
    VXD_TRY(vxd_cuda_launched(queue->context, "insert_kernel", err));
    if (has_long) {
        VXD_TRY(move_long_rows(queue, map, call, &args, is_long, err));
    }
    if (!fits) {
        if (call->order == VXD_HASH_FIRST) {
            VXD_TRY(undo(queue, map, &args, err));
        }
        VXD_TRY(vxd_open_refill_cuda(queue, map, false, err));
    }
out:
    return status;
}
