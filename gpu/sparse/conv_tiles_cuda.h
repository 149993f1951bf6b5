// SPDX-License-Identifier: Apache-2.0
/* Masked implicit GEMM: a block of four warps computes 128 output rows x N_TILE channels.
 *
 * Rows come in the map's order, sorted by which taps they have, so a tile lacks many taps
 * wholly and parts of it more of them (research, 2.4): neither is multiplied. What is left
 * is one sequence of slots (conv_cuda.h), tap after tap; four slots are a stage: their rows are
 * gathered 16 bytes a copy, zeros where a row lacks the tap, beside their weights, several
 * stages ahead of the matrix units. Then bias, residual, activation, and 16-byte stores.
 * The order of each sum is taps ascending and in them channels ascending, slot by slot: it
 * depends on neither the row's tile nor its neighbours in it.
 * Moved: pairs x channels gathered and, a tile, its taps' weights, from L2; 4 bytes a pair of
 * map; output (and residual) once. */
#ifndef VXD_GPU_SPARSE_CONV_TILES_CUDA_H
#define VXD_GPU_SPARSE_CONV_TILES_CUDA_H

#include "gpu/sparse/conv_mma_cuda.h"
#include "gpu/sparse/conv_store_cuda.h"
#include "gpu/sparse/conv_wgmma_cuda.h"

/* The slots of one mask word's taps. */
struct tile_slots {
    uint32_t n; /* n_slots for each tap the tile has */
    uint32_t
        low_taps; /* bit i: tile_shared.taps[i] is a tap of the rows that go through */
    uint32_t high_taps; /* this warp's instructions in its first half (its second) */
    int first_tap;      /* of the word */
};

template <int N_TILE> __host__ __device__ constexpr int stage_bytes()
{
    return STAGE_IN_BYTES + STAGE_SLOTS * N_TILE * VXD_CONV_SLOT_BYTES;
}

/* Slot `number` of the tile: which of the tile's taps, and which slot of it. */
static __device__ __forceinline__ uint32_t tap_of_slot(const struct vxd_conv_tiles *tiles,
                                                       uint32_t number, uint32_t *in_tap)
{
    uint32_t tap =
        tiles->slots_reciprocal == 0 ? number : __umulhi(number, tiles->slots_reciprocal);

    *in_tap = number - tap * (uint32_t)tiles->n_slots;
    return tap;
}

/* Which rows the tile has; one thread a row. */
static __device__ __forceinline__ int32_t find_row(const struct vxd_conv_tiles *tiles,
                                                   uint32_t place, uint32_t n_rows)
{
    if (place >= n_rows) {
        return -1;
    }
    return tiles->order != NULL ? (int32_t)tiles->order[place] : (int32_t)place;
}

/* Notes which taps of mask word `word` the tile has; their number. */
static __device__ __forceinline__ int find_taps(struct tile_shared *shared, uint32_t mask,
                                                uint32_t *all)
{
    int thread = (int)threadIdx.x;
    uint32_t group = mask;

    for (int i = 8; i > 0; i /= 2) {
        group |= __shfl_xor_sync(0xffffffffu, group, i);
    }
    if (thread % 16 == 0) {
        shared->group_masks[thread / 16] = group;
    }
    __syncthreads();
    *all = 0;
    for (int i = 0; i < N_GROUPS; i++) {
        *all |= shared->group_masks[i];
    }
    if (thread < WORD_TAPS && (*all >> thread & 1u) != 0) {
        shared->taps[__popc(*all & ((1u << thread) - 1))] = thread;
    }
    return __popc(*all);
}

/* Of 16 rows each, or of 64. */
template <bool IS_WGMMA>
static __device__ __forceinline__ uint32_t half_mask(const struct tile_shared *shared,
                                                     int half)
{
    constexpr int N = IS_WGMMA ? N_GROUPS / 2 : 1;
    int first = IS_WGMMA ? half * N : (int)threadIdx.x / 32 * 2 + half;
    uint32_t mask = 0;

    for (int i = 0; i < N; i++) {
        mask |= shared->group_masks[first + i];
    }
    return mask;
}

/* Finds the taps of mask word `word` that the tile has and what rows they read. */
template <bool IS_WGMMA>
static __device__ __forceinline__ struct tile_slots
find_slots(const struct vxd_conv_tiles *tiles, struct tile_shared *shared,
           int32_t *inputs, int32_t row, int word)
{
    int lane = (int)threadIdx.x % 32;
    int n_words = VXD_SPARSE_MASK_WORDS(tiles->n_taps);
    struct tile_slots slots = {.first_tap = word * WORD_TAPS};
    int32_t *to = inputs + threadIdx.x;
    uint32_t mask = 0;
    uint32_t all;
    uint32_t tap;
    int n_taps;

    if (row >= 0) {
        mask = tiles->table == NULL ? 1 : tiles->masks[(size_t)row * n_words + word];
    }
    n_taps = find_taps(shared, mask, &all);
    for (; all != 0; all &= all - 1, to += VXD_CONV_TILE_ROWS) {
        int bit = __ffs((int)all) - 1;

        if ((mask >> bit & 1u) == 0) {
            *to = -1;
        } else if (tiles->table == NULL) {
            *to = row;
        } else {
            copy4(shared_address(to),
                  tiles->table + (size_t)(slots.first_tap + bit) * tiles->map_capacity +
                      row);
        }
    }
    copies_end_group();
    copies_wait(0);
    __syncthreads();
    tap = lane < n_taps ? (uint32_t)shared->taps[lane] : 0;
    slots.low_taps = __ballot_sync(
        0xffffffffu, lane < n_taps && (half_mask<IS_WGMMA>(shared, 0) >> tap & 1u) != 0);
    slots.high_taps = __ballot_sync(
        0xffffffffu, lane < n_taps && (half_mask<IS_WGMMA>(shared, 1) >> tap & 1u) != 0);
    slots.n = (uint32_t)n_taps * (uint32_t)tiles->n_slots;
    return slots;
}

/* Rows of stage `stage`: a thread fetches one 16-byte piece of every 16th row. */
template <enum vxd_net_precision PRECISION>
static __device__ __forceinline__ void
load_stage_rows(const struct vxd_conv_tiles *tiles, const int32_t *inputs,
                const struct tile_slots *slots, uint32_t stage, char *to)
{
    constexpr int ELEMENT_BYTES =
        PRECISION == VXD_NET_FP16 || PRECISION == VXD_NET_BF16 ? 2 : 4;
    int piece = (int)threadIdx.x % 8;
    int first_row = (int)threadIdx.x / 8;
    uint32_t number = stage * STAGE_SLOTS + (uint32_t)piece / 2;
    const char *in = tiles->in;
    uint32_t in_tap;
    uint32_t tap;
    int offset;
    int n_valid;

    if (number >= slots->n) {
        return;
    }
    tap = tap_of_slot(tiles, number, &in_tap);
    offset = (int)in_tap * VXD_CONV_SLOT_BYTES + piece % 2 * 16;
    n_valid = tiles->n_in * ELEMENT_BYTES - offset;
    n_valid = n_valid < 0 ? 0 : n_valid > 16 ? 16 : n_valid;
    in += n_valid > 0 ? offset : 0;
    to += first_row * ROW_BYTES + (piece ^ (first_row & 7)) * 16;
    inputs += tap * VXD_CONV_TILE_ROWS + first_row;
    if (tiles->is_in_aligned) {
#pragma unroll
        for (int i = 0; i < VXD_CONV_TILE_ROWS; i += N_THREADS / 8) {
            int32_t input = inputs[i];
            uint32_t row = input < 0 ? 0 : (uint32_t)input;

            copy16(shared_address(to + i * ROW_BYTES),
                   in + (uint64_t)row * tiles->in_row_bytes, input < 0 ? 0 : n_valid);
        }
        return;
    }
#pragma unroll 2
    for (int i = 0; i < VXD_CONV_TILE_ROWS; i += N_THREADS / 8) {
        int32_t input = inputs[i];
        uint32_t row = input < 0 ? 0 : (uint32_t)input;

        *(uint4 *)(to + i * ROW_BYTES) = gather16<ELEMENT_BYTES>(
            in + (uint64_t)row * tiles->in_row_bytes, input < 0 ? 0 : n_valid);
    }
}

/* Their weights: as many threads a slot as it has pieces, or a part of that. */
template <int N_TILE>
static __device__ __forceinline__ void
load_stage_weights(const struct vxd_conv_tiles *tiles, const struct tile_shared *shared,
                   const struct tile_slots *slots, uint32_t stage, int first_out,
                   char *to)
{
    constexpr int SLOT_PIECES = N_TILE * VXD_CONV_SLOT_BYTES / 16;

#pragma unroll
    for (int i = 0; i < STAGE_SLOTS * SLOT_PIECES / N_THREADS; i++) {
        int piece = i * N_THREADS + (int)threadIdx.x;
        uint32_t number = stage * STAGE_SLOTS + (uint32_t)(piece / SLOT_PIECES);

        if (number < slots->n) {
            uint32_t in_tap;
            uint32_t tap = tap_of_slot(tiles, number, &in_tap);
            uint64_t slot = (uint64_t)(uint32_t)(slots->first_tap + shared->taps[tap]) *
                                (uint32_t)tiles->n_slots +
                            in_tap;

            copy16(shared_address(to + piece * 16),
                   tiles->weights +
                       (slot * (uint32_t)tiles->n_padded + (uint32_t)first_out) *
                           VXD_CONV_SLOT_BYTES +
                       piece % SLOT_PIECES * 16,
                   16);
        }
    }
}

/* Adds the products of a stage that has arrived; wgmma's are to be waited for. */
template <enum vxd_net_precision PRECISION, int N_TILE, bool IS_WGMMA>
static __device__ __forceinline__ void
multiply_stage(const struct vxd_conv_tiles *tiles, const struct tile_slots *slots,
               uint32_t stage, const char *at, float (*sums)[N_TILE / 8][4])
{
    uint32_t rows = shared_address(at);
    uint32_t weights = rows + STAGE_IN_BYTES;

    if constexpr (IS_WGMMA) {
        wgmma_fence();
    }
#pragma unroll
    for (int slot = 0; slot < STAGE_SLOTS; slot++) {
        uint32_t number = stage * STAGE_SLOTS + (uint32_t)slot;
        uint32_t in_tap;
        uint32_t tap = tap_of_slot(tiles, number, &in_tap);
        bool has_low = number < slots->n && (slots->low_taps >> tap & 1u) != 0;
        bool has_high = number < slots->n && (slots->high_taps >> tap & 1u) != 0;

        if constexpr (IS_WGMMA) {
            wgmma_slot<PRECISION, N_TILE>(sums, rows, weights, slot, has_low, has_high);
        } else {
            multiply_slot<PRECISION, N_TILE>(sums, rows, weights, slot, has_low,
                                             has_high);
        }
    }
    if constexpr (IS_WGMMA) {
        wgmma_commit();
    }
}

template <enum vxd_net_precision PRECISION, int N_TILE>
static __device__ __forceinline__ void
load_stage(const struct vxd_conv_tiles *tiles, const struct tile_shared *shared,
           const struct tile_memory *memory, const struct tile_slots *slots,
           uint32_t stage, int first_out, int at)
{
    char *to = memory->stages + at * stage_bytes<N_TILE>();

    load_stage_rows<PRECISION>(tiles, memory->inputs, slots, stage, to);
    load_stage_weights<N_TILE>(tiles, shared, slots, stage, first_out,
                               to + STAGE_IN_BYTES);
}

/* All slots of a mask word, through the pipeline. Ends with nothing under way. */
template <enum vxd_net_precision PRECISION, int N_TILE, bool IS_WGMMA>
static __device__ __forceinline__ void
multiply_slots(const struct vxd_conv_tiles *tiles, const struct tile_shared *shared,
               const struct tile_memory *memory, const struct tile_slots *slots,
               int first_out, float (*sums)[N_TILE / 8][4])
{
    uint32_t n_stages = (slots->n + STAGE_SLOTS - 1) / STAGE_SLOTS;
    uint32_t n_ahead = (uint32_t)tiles->n_stages - 1;
    int read_at = 0;
    int write_at = (int)n_ahead;

    for (uint32_t next = 0; next < n_ahead; next++) {
        if (next < n_stages) {
            load_stage<PRECISION, N_TILE>(tiles, shared, memory, slots, next, first_out,
                                          (int)next);
        }
        copies_end_group();
    }
    for (uint32_t stage = 0; stage < n_stages; stage++) {
        copies_wait((int)n_ahead - 1);
        if constexpr (IS_WGMMA) {
            wgmma_publish();
        }
        __syncthreads();
        multiply_stage<PRECISION, N_TILE, IS_WGMMA>(
            tiles, slots, stage, memory->stages + read_at * stage_bytes<N_TILE>(), sums);
        if (stage + n_ahead < n_stages) {
            load_stage<PRECISION, N_TILE>(tiles, shared, memory, slots, stage + n_ahead,
                                          first_out, write_at);
        }
        copies_end_group();
        if constexpr (IS_WGMMA) {
            wgmma_wait<N_TILE>(sums);
        }
        read_at = read_at + 1 < tiles->n_stages ? read_at + 1 : 0;
        write_at = write_at + 1 < tiles->n_stages ? write_at + 1 : 0;
    }
    copies_wait(0);
    __syncthreads();
}

template <enum vxd_net_precision PRECISION, int N_TILE, bool IS_WGMMA>
static __device__ __forceinline__ void
run_tile(const struct vxd_conv_tiles *tiles, struct tile_shared *shared,
         const struct tile_memory *memory, uint32_t first_place, uint32_t n_rows,
         int first_out)
{
    float sums[2][N_TILE / 8][4];
    int32_t row = find_row(tiles, first_place + threadIdx.x, n_rows);

#pragma unroll
    for (int i = 0; i < N_TILE; i++) {
        sums[i / 4 % 2][i / 8][i % 4] = 0.0f;
    }
    shared->rows[threadIdx.x] = row;
    for (int word = 0; word < VXD_SPARSE_MASK_WORDS(tiles->n_taps); word++) {
        struct tile_slots slots =
            find_slots<IS_WGMMA>(tiles, shared, memory->inputs, row, word);

        multiply_slots<PRECISION, N_TILE, IS_WGMMA>(tiles, shared, memory, &slots,
                                                    first_out, sums);
    }
    store_tile<PRECISION, N_TILE, IS_WGMMA>(tiles, shared, memory, first_out, sums);
    __syncthreads();
}

/* Tiles with the rarest taps, which have the most taps, come last in the order: they are begun
 * first. */
template <enum vxd_net_precision PRECISION, int N_TILE, bool IS_WGMMA>
static __global__ void __launch_bounds__(N_THREADS, 2)
    tiles_kernel(const __grid_constant__ struct vxd_conv_tiles tiles)
{
    extern __shared__ __align__(1024) char dynamic_shared[];
    __shared__ struct tile_shared shared;
    struct tile_memory memory = {
        (int32_t *)(dynamic_shared + tiles.n_stages * stage_bytes<N_TILE>()),
        dynamic_shared};
    uint32_t n_rows = *tiles.n_rows;
    uint32_t n_columns = (uint32_t)(tiles.n_padded / N_TILE);
    uint32_t n_row_tiles;
    uint64_t n_tiles;

    if (n_rows > tiles.room) {
        if (blockIdx.x == 0 && threadIdx.x == 0) {
            atomicCAS(tiles.error_word, (uint32_t)VXD_OK,
                      (uint32_t)VXD_RESOURCE_EXHAUSTED);
        }
        return;
    }
    n_row_tiles = (n_rows + VXD_CONV_TILE_ROWS - 1) / VXD_CONV_TILE_ROWS;
    n_tiles = (uint64_t)n_row_tiles * n_columns;
    for (uint64_t i = blockIdx.x; i < n_tiles; i += gridDim.x) {
        uint32_t row_tile = n_row_tiles - 1 - (uint32_t)(i / n_columns);

        run_tile<PRECISION, N_TILE, IS_WGMMA>(&tiles, &shared, &memory,
                                              row_tile * VXD_CONV_TILE_ROWS, n_rows,
                                              (int)(i % n_columns) * N_TILE);
    }
}

/* As many stages as leave room for two blocks a multiprocessor; fewer where it has less
 * shared memory. */
static inline enum vxd_status fit_stages(struct vxd_context *context, int n_stage_bytes,
                                         int n_table_bytes, int *n_stages,
                                         struct vxd_err *err)
{
    int of_block = 0;
    int of_multiprocessor = 0;
    enum vxd_status status;

    VXD_TRY(VXD_CUDA(context,
                     cudaDeviceGetAttribute(&of_block,
                                            cudaDevAttrMaxSharedMemoryPerBlockOptin,
                                            context->device),
                     err));
    VXD_TRY(VXD_CUDA(context,
                     cudaDeviceGetAttribute(&of_multiprocessor,
                                            cudaDevAttrMaxSharedMemoryPerMultiprocessor,
                                            context->device),
                     err));
    of_multiprocessor = of_multiprocessor / 2 - 1024; /* the system's share */
    of_block -= TILE_SHARED_BYTES;
    of_multiprocessor -= TILE_SHARED_BYTES;
    for (*n_stages = 4; *n_stages > 2; --*n_stages) {
        if (*n_stages * n_stage_bytes + n_table_bytes <=
            (of_multiprocessor < of_block ? of_multiprocessor : of_block)) {
            break;
        }
    }
out:
    return status;
}

template <enum vxd_net_precision PRECISION, int N_TILE, bool IS_WGMMA>
static enum vxd_status launch(struct vxd_queue *queue, struct vxd_conv_tiles tiles,
                              struct vxd_err *err)
{
    struct vxd_context *context = queue->context;
    int n_table_taps = tiles.n_taps < WORD_TAPS ? tiles.n_taps : WORD_TAPS;
    int n_table_bytes = n_table_taps * VXD_CONV_TILE_ROWS * (int)sizeof(int32_t);
    uint64_t n_tiles = (tiles.room + (uint64_t)VXD_CONV_TILE_ROWS - 1) /
                       VXD_CONV_TILE_ROWS * (uint64_t)(tiles.n_padded / N_TILE);
    unsigned n_blocks = n_tiles == 0 ? 1 : n_tiles < 65536 ? (unsigned)n_tiles : 65536;
    size_t n_shared;
    enum vxd_status status;

    VXD_TRY(
        fit_stages(context, stage_bytes<N_TILE>(), n_table_bytes, &tiles.n_stages, err));
    n_shared = (size_t)(tiles.n_stages * stage_bytes<N_TILE>() + n_table_bytes);
    VXD_TRY(VXD_CUDA(
        context,
        cudaFuncSetAttribute((const void *)tiles_kernel<PRECISION, N_TILE, IS_WGMMA>,
                             cudaFuncAttributeMaxDynamicSharedMemorySize, (int)n_shared),
        err));
    tiles_kernel<PRECISION, N_TILE, IS_WGMMA>
        <<<n_blocks, N_THREADS, n_shared, (cudaStream_t)queue->stream>>>(tiles);
    VXD_TRY(vxd_cuda_launched(context, "tiles_kernel", err));
out:
    return status;
}

template <enum vxd_net_precision PRECISION, bool IS_WGMMA>
static enum vxd_status launch_tiles(struct vxd_queue *queue,
                                    const struct vxd_conv_tiles *tiles, int n_tile,
                                    struct vxd_err *err)
{
    switch (n_tile) {
    case 16:
        return launch<PRECISION, 16, IS_WGMMA>(queue, *tiles, err);
    case 32:
        return launch<PRECISION, 32, IS_WGMMA>(queue, *tiles, err);
    case 64:
        return launch<PRECISION, 64, IS_WGMMA>(queue, *tiles, err);
    case 96:
        return launch<PRECISION, 96, IS_WGMMA>(queue, *tiles, err);
    default:
        return launch<PRECISION, 128, IS_WGMMA>(queue, *tiles, err);
    }
}

#endif
