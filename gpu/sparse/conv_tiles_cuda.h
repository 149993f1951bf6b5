// SPDX-License-Identifier: Apache-2.0
/* Masked implicit GEMM: a block of four warps computes 128 output rows x N_TILE channels.
 *
 * Rows come in the map's order, sorted by which taps they have, so a tile lacks many taps
 * wholly and a warp's rows more of them (research, 2.4): neither is multiplied. What is left
 * is one sequence of slots (conv_cuda.h), tap after tap; four slots are a stage: their rows are
 * gathered 16 bytes a copy, zeros where a row lacks the tap, beside their weights, several
 * stages ahead of the matrix units. Then bias, residual, activation, and 16-byte stores.
 * The order of each sum is taps ascending and in them channels ascending, slot by slot: it
 * depends on neither the row's tile nor its neighbours in it.
 * Moved: pairs x channels gathered and, a tile, its taps' weights, from L2; 4 bytes a pair of
 * map; output (and residual) once. */
#ifndef VXD_GPU_SPARSE_CONV_TILES_CUDA_H
#define VXD_GPU_SPARSE_CONV_TILES_CUDA_H

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "gpu/sparse/conv_mma_cuda.h"

#define N_THREADS VXD_CONV_TILE_ROWS
#define WARP_ROWS 32
#define N_GROUPS (VXD_CONV_TILE_ROWS / 16)
#define WORD_TAPS 32 /* looked at together: one word of a mask */

/* What a block keeps of its tile, before the stages. */
struct tile_shared {
    int32_t rows[VXD_CONV_TILE_ROWS]; /* output rows, -1 past the last */
    uint32_t group_masks[N_GROUPS];   /* taps of 16 rows each */
    int32_t taps[WORD_TAPS];          /* that some row of the tile has, of this word */
};

#define TILE_SHARED_BYTES 1024 /* with the alignment of what follows it */

/* The slots of one mask word's taps. */
struct tile_slots {
    uint32_t n;         /* n_slots for each tap the tile has */
    uint32_t low_taps;  /* bit i: the warp's first 16 rows have tile_shared.taps[i] */
    uint32_t high_taps; /* the other 16 */
    int first_tap;      /* of the word */
};

/* Where things are in dynamic shared memory. */
struct tile_memory {
    int32_t *inputs; /* WORD_TAPS x 128: input row or -1 */
    char *stages;
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

/* Finds the taps of mask word `word` that the tile has and what rows they read. */
static __device__ __forceinline__ struct tile_slots
find_slots(const struct vxd_conv_tiles *tiles, struct tile_shared *shared,
           int32_t *inputs, int32_t row, int word)
{
    int thread = (int)threadIdx.x;
    int lane = thread % 32;
    int n_words = VXD_SPARSE_MASK_WORDS(tiles->n_taps);
    struct tile_slots slots = {.first_tap = word * WORD_TAPS};
    uint32_t mask = 0;
    uint32_t group;
    uint32_t all = 0;
    uint32_t low;
    uint32_t high;
    uint32_t tap;
    int n_taps;

    if (row >= 0) {
        mask = tiles->table == NULL ? 1 : tiles->masks[(size_t)row * n_words + word];
    }
    group = mask;
    for (int i = 8; i > 0; i /= 2) {
        group |= __shfl_xor_sync(0xffffffffu, group, i);
    }
    if (lane % 16 == 0) {
        shared->group_masks[thread / 16] = group;
    }
    __syncthreads();
    for (int i = 0; i < N_GROUPS; i++) {
        all |= shared->group_masks[i];
    }
    n_taps = __popc(all);
    if (thread < WORD_TAPS && (all >> thread & 1u) != 0) {
        shared->taps[__popc(all & ((1u << thread) - 1))] = thread;
    }
    for (int i = 0; all != 0; i++, all &= all - 1) {
        int bit = __ffs((int)all) - 1;
        int32_t *to = inputs + i * VXD_CONV_TILE_ROWS + thread;

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
    low = shared->group_masks[thread / 32 * 2];
    high = shared->group_masks[thread / 32 * 2 + 1];
    tap = lane < n_taps ? (uint32_t)shared->taps[lane] : 0;
    slots.low_taps = __ballot_sync(0xffffffffu, lane < n_taps && (low >> tap & 1u) != 0);
    slots.high_taps =
        __ballot_sync(0xffffffffu, lane < n_taps && (high >> tap & 1u) != 0);
    slots.n = (uint32_t)n_taps * (uint32_t)tiles->n_slots;
    return slots;
}

/* 16 bytes of a row that copies cannot fetch at once. */
template <int ELEMENT_BYTES>
static __device__ __forceinline__ uint4 gather16(const char *from, int n_valid)
{
    uint32_t words[4] = {0, 0, 0, 0};

#pragma unroll
    for (int i = 0; i < 16; i += ELEMENT_BYTES) {
        if (i < n_valid) {
            uint32_t value = ELEMENT_BYTES == 4 ? *(const uint32_t *)(from + i)
                                                : *(const uint16_t *)(from + i);

            words[i / 4] |= value << i % 4 * 8;
        }
    }
    return make_uint4(words[0], words[1], words[2], words[3]);
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
    to += first_row * ROW_BYTES + (piece ^ (first_row & 7)) * 16;
    inputs += tap * VXD_CONV_TILE_ROWS + first_row;
#pragma unroll
    for (int i = 0; i < VXD_CONV_TILE_ROWS; i += N_THREADS / 8) {
        int32_t input = inputs[i];
        const char *from = tiles->in;
        int n = n_valid;

        if (input >= 0 && n > 0) {
            from += (size_t)input * tiles->in_row_bytes + (size_t)offset;
        } else {
            n = 0;
        }
        if (tiles->is_in_aligned) {
            copy16(shared_address(to + i * ROW_BYTES), from, n);
        } else {
            *(uint4 *)(to + i * ROW_BYTES) = gather16<ELEMENT_BYTES>(from, n);
        }
    }
}

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
            size_t slot =
                (size_t)(slots->first_tap + shared->taps[tap]) * (size_t)tiles->n_slots +
                in_tap;

            copy16(shared_address(to + piece * 16),
                   tiles->weights +
                       (slot * (size_t)tiles->n_padded + (size_t)first_out) *
                           VXD_CONV_SLOT_BYTES +
                       piece % SLOT_PIECES * 16,
                   16);
        }
    }
}

/* Adds the products of a stage that has arrived. */
template <enum vxd_net_precision PRECISION, int N_TILE>
static __device__ __forceinline__ void
multiply_stage(const struct vxd_conv_tiles *tiles, const struct tile_slots *slots,
               uint32_t stage, const char *at, float (*sums)[N_TILE / 8][4])
{
    uint32_t rows = shared_address(at) + threadIdx.x / 32 * (WARP_ROWS * ROW_BYTES);
    uint32_t weights = shared_address(at) + STAGE_IN_BYTES;

#pragma unroll
    for (int slot = 0; slot < STAGE_SLOTS; slot++) {
        uint32_t number = stage * STAGE_SLOTS + (uint32_t)slot;
        uint32_t in_tap;
        uint32_t tap = tap_of_slot(tiles, number, &in_tap);
        bool has_low;
        bool has_high;

        if (number >= slots->n) {
            return;
        }
        has_low = (slots->low_taps >> tap & 1u) != 0;
        has_high = (slots->high_taps >> tap & 1u) != 0;
        if (has_low || has_high) {
            multiply_slot<PRECISION, N_TILE>(sums, rows, weights, slot, has_low,
                                             has_high);
        }
    }
}

/* All slots of a mask word, through the pipeline. Ends with nothing under way. */
template <enum vxd_net_precision PRECISION, int N_TILE>
static __device__ __forceinline__ void
multiply_slots(const struct vxd_conv_tiles *tiles, const struct tile_shared *shared,
               const struct tile_memory *memory, const struct tile_slots *slots,
               int first_out, float (*sums)[N_TILE / 8][4])
{
    uint32_t n_stages = (slots->n + STAGE_SLOTS - 1) / STAGE_SLOTS;
    uint32_t n_ahead = (uint32_t)tiles->n_stages - 1;
    int read_at = 0;
    int write_at = 0;

    for (uint32_t next = 0; next < n_stages + n_ahead; next++) {
        if (next >= n_ahead) {
            copies_wait((int)n_ahead - 1);
            __syncthreads();
        }
        if (next < n_stages) {
            char *to = memory->stages + write_at * stage_bytes<N_TILE>();

            load_stage_rows<PRECISION>(tiles, memory->inputs, slots, next, to);
            load_stage_weights<N_TILE>(tiles, shared, slots, next, first_out,
                                       to + STAGE_IN_BYTES);
            write_at = write_at + 1 < tiles->n_stages ? write_at + 1 : 0;
        }
        copies_end_group();
        if (next >= n_ahead) {
            multiply_stage<PRECISION, N_TILE>(
                tiles, slots, next - n_ahead,
                memory->stages + read_at * stage_bytes<N_TILE>(), sums);
            read_at = read_at + 1 < tiles->n_stages ? read_at + 1 : 0;
        }
    }
    copies_wait(0);
    __syncthreads();
}

/* Rounds once; the instructions of the device round as vxd_element_store does. */
template <enum vxd_net_precision PRECISION>
static __device__ __forceinline__ uint32_t bits_of(float value)
{
    if constexpr (PRECISION == VXD_NET_FP16) {
        return value != value ? 0x7e00u : __half_as_ushort(__float2half_rn(value));
    } else if constexpr (PRECISION == VXD_NET_BF16) {
        return value != value ? 0x7fc0u
                              : __bfloat16_as_ushort(__float2bfloat16_rn(value));
    } else {
        return __float_as_uint(vxd_canonical_nanf(value));
    }
}

/* Bias, residual and activation of N neighbouring channels of a row, of which n_valid
 * exist; N of them are 16 bytes. */
template <enum vxd_net_precision PRECISION, int N>
static __device__ __forceinline__ void store_piece(const struct vxd_conv_tiles *tiles,
                                                   int32_t row, int channel,
                                                   const float *sums)
{
    constexpr int ELEMENT_BYTES = 16 / N;
    char *out = tiles->out + (size_t)row * tiles->out_row_bytes + channel * ELEMENT_BYTES;
    bool is_whole = tiles->is_out_aligned && channel + N <= tiles->n_out;
    uint32_t bits[N];
    uint4 add = {};

    if (tiles->add != NULL) {
        const char *from =
            tiles->add + (size_t)row * tiles->add_row_bytes + channel * ELEMENT_BYTES;

        if (is_whole) {
            add = *(const uint4 *)from;
        } else {
            add = gather16<ELEMENT_BYTES>(from, (tiles->n_out - channel) * ELEMENT_BYTES);
        }
    }
#pragma unroll
    for (int i = 0; i < N; i++) {
        bool is_there = channel + i < tiles->n_out;
        /* Adding 0 makes a sum of -0 the 0 it is where a tap of zeros was added too. */
        float x =
            sums[i] + (tiles->bias != NULL && is_there ? tiles->bias[channel + i] : 0.0f);

        if (tiles->add != NULL) {
            x += vxd_element_load(PRECISION, &add, (size_t)i);
        }
        bits[i] = bits_of<PRECISION>(vxd_activate(tiles->act, tiles->alpha, x));
    }
    if (is_whole && N == 8) {
        *(uint4 *)out = make_uint4(bits[0] | bits[1] << 16, bits[2] | bits[3] << 16,
                                   bits[N / 2] | bits[N / 2 + 1] << 16,
                                   bits[N - 2] | bits[N - 1] << 16);
    } else if (is_whole) {
        *(uint4 *)out = make_uint4(bits[0], bits[1], bits[2], bits[3]);
    } else {
#pragma unroll
        for (int i = 0; i < N; i++) {
            if (channel + i < tiles->n_out && N == 8) {
                ((uint16_t *)out)[i] = (uint16_t)bits[i];
            } else if (channel + i < tiles->n_out) {
                ((uint32_t *)out)[i] = bits[i];
            }
        }
    }
}

/* 16 rows at a time the warp's sums pass through shared memory (the stages are free), so that
 * a lane gets neighbouring channels. */
template <enum vxd_net_precision PRECISION, int N_TILE>
static __device__ __forceinline__ void
store_tile(const struct vxd_conv_tiles *tiles, const struct tile_shared *shared,
           const struct tile_memory *memory, int first_out, float (*sums)[N_TILE / 8][4])
{
    constexpr int N = PRECISION == VXD_NET_FP16 || PRECISION == VXD_NET_BF16 ? 8 : 4;
    constexpr int PITCH = N_TILE + 8; /* 8: writes of pairs meet in no bank */
    int lane = (int)threadIdx.x % 32;
    int warp = (int)threadIdx.x / 32;
    float *staged = (float *)memory->stages + warp * 16 * PITCH;

#pragma unroll
    for (int half = 0; half < 2; half++) {
#pragma unroll
        for (int j = 0; j < N_TILE / 8; j++) {
            const float *of = sums[half][j];

            if constexpr (PRECISION == VXD_NET_FP32) {
                for (int i = 0; i < 4; i++) {
                    staged[(lane / 8 + 4 * i) * PITCH + 8 * j + lane % 8] = of[i];
                }
            } else {
                float *to = staged + lane / 4 * PITCH + 8 * j + lane % 4 * 2;

                *(float2 *)to = make_float2(of[0], of[1]);
                *(float2 *)(to + 8 * PITCH) = make_float2(of[2], of[3]);
            }
        }
        __syncwarp();
        for (int i = lane; i < 16 * N_TILE / N; i += 32) {
            int row = i / (N_TILE / N);
            int channel = i % (N_TILE / N) * N;
            int32_t out_row = shared->rows[warp * WARP_ROWS + half * 16 + row];
            float of[N];

            if (out_row < 0 || first_out + channel >= tiles->n_out) {
                continue;
            }
#pragma unroll
            for (int k = 0; k < N; k += 4) {
                *(float4 *)(of + k) =
                    *(const float4 *)(staged + row * PITCH + channel + k);
            }
            store_piece<PRECISION, N>(tiles, out_row, first_out + channel, of);
        }
        __syncwarp();
    }
}

template <enum vxd_net_precision PRECISION, int N_TILE>
static __device__ __forceinline__ void
run_tile(const struct vxd_conv_tiles *tiles, struct tile_shared *shared,
         const struct tile_memory *memory, uint32_t first_place, uint32_t n_rows,
         int first_out)
{
    float sums[2][N_TILE / 8][4];
    int32_t row = find_row(tiles, first_place + threadIdx.x, n_rows);

    for (int half = 0; half < 2; half++) {
        for (int j = 0; j < N_TILE / 8; j++) {
            for (int i = 0; i < 4; i++) {
                sums[half][j][i] = 0.0f;
            }
        }
    }
    shared->rows[threadIdx.x] = row;
    for (int word = 0; word < VXD_SPARSE_MASK_WORDS(tiles->n_taps); word++) {
        struct tile_slots slots = find_slots(tiles, shared, memory->inputs, row, word);

        multiply_slots<PRECISION, N_TILE>(tiles, shared, memory, &slots, first_out, sums);
    }
    store_tile<PRECISION, N_TILE>(tiles, shared, memory, first_out, sums);
    __syncthreads();
}

/* Tiles with the rarest taps, which have the most taps, come last in the order: they are begun
 * first. */
template <enum vxd_net_precision PRECISION, int N_TILE>
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

        run_tile<PRECISION, N_TILE>(&tiles, &shared, &memory,
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

template <enum vxd_net_precision PRECISION, int N_TILE>
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
    VXD_TRY(VXD_CUDA(context,
                     cudaFuncSetAttribute((const void *)tiles_kernel<PRECISION, N_TILE>,
                                          cudaFuncAttributeMaxDynamicSharedMemorySize,
                                          (int)n_shared),
                     err));
    tiles_kernel<PRECISION, N_TILE>
        <<<n_blocks, N_THREADS, n_shared, (cudaStream_t)queue->stream>>>(tiles);
    VXD_TRY(vxd_cuda_launched(context, "tiles_kernel", err));
out:
    return status;
}

template <enum vxd_net_precision PRECISION>
static enum vxd_status launch_tiles(struct vxd_queue *queue,
                                    const struct vxd_conv_tiles *tiles, int n_tile,
                                    struct vxd_err *err)
{
    switch (n_tile) {
    case 16:
        return launch<PRECISION, 16>(queue, *tiles, err);
    case 32:
        return launch<PRECISION, 32>(queue, *tiles, err);
    case 64:
        return launch<PRECISION, 64>(queue, *tiles, err);
    case 96:
        return launch<PRECISION, 96>(queue, *tiles, err);
    default:
        return launch<PRECISION, 128>(queue, *tiles, err);
    }
}

#endif
