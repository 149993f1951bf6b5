// SPDX-License-Identifier: Apache-2.0
/* How a tile finds what its rows read, fetches it, and stores its sums. */
#ifndef VXD_GPU_SPARSE_CONV_CONV_LOAD_CUDA_H
#define VXD_GPU_SPARSE_CONV_CONV_LOAD_CUDA_H

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "gpu/sparse/conv/conv_cuda.h"
#include "gpu/sparse/conv/conv_mma_cuda.h"

/* The shared memory of a block of conv_tiles_cuda.h, and the end of its sums: bias,
 * residual, activation, rounding, 16-byte stores to rows in the map's order. */

#define N_THREADS VXD_CONV_TILE_ROWS
#define N_GROUPS (VXD_CONV_TILE_ROWS / 16)
#define WORD_TAPS 32 /* taps processed together: one word of a mask */

/* What a block stores about its tile, before the stages. */
struct tile_shared {
    int32_t rows[VXD_CONV_TILE_ROWS]; /* output rows, -1 after the last */
    uint32_t group_masks[N_GROUPS];   /* taps of 16 rows each */
    int32_t taps[WORD_TAPS]; /* taps of this word that some row of the tile has */
};

#define TILE_SHARED_BYTES 1024 /* including the alignment of what follows it */

/* Addresses in dynamic shared memory. */
struct tile_memory {
    int32_t *inputs; /* WORD_TAPS x 128: input row or -1 */
    char *stages;
};

/* First of the 16 rows whose sums a warp has in its first or second half. */
static __device__ __forceinline__ int half_row(int half)
{
    return (int)threadIdx.x / 32 * 32 + half * 16;
}

/* Loads 16 bytes of a row that copies cannot fetch at once. */
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

/* N elements that fill 16 bytes. */
template <enum vxd_net_precision PRECISION, int N>
static __device__ __forceinline__ void widen(const uint4 *piece, float *to)
{
    const uint32_t words[4] = {piece->x, piece->y, piece->z, piece->w};

#pragma unroll
    for (int i = 0; i < N; i++) {
        if constexpr (PRECISION == VXD_NET_FP16) {
            to[i] = __half2float(
                __ushort_as_half((unsigned short)(words[i / 2] >> i % 2 * 16)));
        } else if constexpr (PRECISION == VXD_NET_BF16) {
            to[i] = vxd_float_of_bfloat((uint16_t)(words[i / 2] >> i % 2 * 16));
        } else {
            to[i] = __uint_as_float(words[i]);
        }
    }
}

/* Rounds once; the device's instructions round as vxd_element_store does. */
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

/* Adds bias and residual to N adjacent sums, all of which exist. */
template <enum vxd_net_precision PRECISION, int N>
static __device__ __forceinline__ void add_whole(const struct vxd_conv_tiles *tiles,
                                                 const char *add, int channel, float *x)
{
    if (tiles->bias != NULL) {
#pragma unroll
        for (int i = 0; i < N; i += 4) {
            float4 bias = *(const float4 *)(tiles->bias + channel + i);

            x[i] += bias.x;
            x[i + 1] += bias.y;
            x[i + 2] += bias.z;
            x[i + 3] += bias.w;
        }
    }
    if (add != NULL) {
        uint4 piece = *(const uint4 *)add;
        float of[N];

        widen<PRECISION, N>(&piece, of);
#pragma unroll
        for (int i = 0; i < N; i++) {
            x[i] += of[i];
        }
    }
}

/* The same where fewer exist, or addresses are not multiples of 16. */
template <enum vxd_net_precision PRECISION, int N>
static __device__ __forceinline__ void add_some(const struct vxd_conv_tiles *tiles,
                                                const char *add, int channel, float *x)
{
    int n = tiles->n_out - channel;

    if (tiles->bias != NULL) {
#pragma unroll
        for (int i = 0; i < N; i++) {
            x[i] += i < n ? tiles->bias[channel + i] : 0.0f;
        }
    }
    if (add != NULL) {
        uint4 piece = gather16<16 / N>(add, n * (16 / N));
        float of[N];

        widen<PRECISION, N>(&piece, of);
#pragma unroll
        for (int i = 0; i < N; i++) {
            x[i] += of[i];
        }
    }
}

template <int N>
static __device__ __forceinline__ void activate(const struct vxd_conv_tiles *tiles,
                                                float *x)
{
    if (tiles->act == VXD_ACT_RELU) {
#pragma unroll
        for (int i = 0; i < N; i++) {
            x[i] = vxd_activate(VXD_ACT_RELU, 0.0f, x[i]);
        }
    } else if (tiles->act != VXD_ACT_NONE) {
#pragma unroll 1
        /* rotates the values, so that no code is generated for each index */
        for (int round = 0; round < N; round++) {
            float next = vxd_activate(tiles->act, tiles->alpha, x[0]);

#pragma unroll
            for (int i = 0; i + 1 < N; i++) {
                x[i] = x[i + 1];
            }
            x[N - 1] = next;
        }
    }
}

/* Bias, residual, activation and store for the sums of N adjacent channels of a row; N
 * elements are 16 bytes. */
template <enum vxd_net_precision PRECISION, int N>
static __device__ __forceinline__ void store_piece(const struct vxd_conv_tiles *tiles,
                                                   int32_t row, int channel, float *x)
{
    constexpr int ELEMENT_BYTES = 16 / N;
    size_t at = (size_t)channel * ELEMENT_BYTES;
    char *out = tiles->out + (size_t)row * tiles->out_row_bytes + at;
    const char *add = tiles->add;
    bool is_whole = tiles->is_out_aligned && channel + N <= tiles->n_out;
    uint32_t words[4] = {0, 0, 0, 0};

    if (add != NULL) {
        add += (size_t)row * tiles->add_row_bytes + at;
    }
#pragma unroll
    for (int i = 0; i < N; i++) {
        /* a sum of -0 becomes 0, as it is where a tap of zeros was added too */
        x[i] += 0.0f;
    }
    if (is_whole) {
        add_whole<PRECISION, N>(tiles, add, channel, x);
    } else {
        add_some<PRECISION, N>(tiles, add, channel, x);
    }
    activate<N>(tiles, x);
#pragma unroll
    for (int i = 0; i < N; i++) {
        words[i * ELEMENT_BYTES / 4] |= bits_of<PRECISION>(x[i])
                                        << i * ELEMENT_BYTES % 4 * 8;
    }
    if (is_whole) {
        *(uint4 *)out = make_uint4(words[0], words[1], words[2], words[3]);
        return;
    }
#pragma unroll
    for (int i = 0; i < N; i++) {
        uint32_t bits = words[i * ELEMENT_BYTES / 4] >> i * ELEMENT_BYTES % 4 * 8;

        if (channel + i < tiles->n_out && ELEMENT_BYTES == 2) {
            ((uint16_t *)out)[i] = (uint16_t)bits;
        } else if (channel + i < tiles->n_out) {
            ((uint32_t *)out)[i] = bits;
        }
    }
}

/* For 16 rows x a strip of channels at a time, the warp's sums pass through shared
 * memory, so that a lane gets adjacent channels. */
#define STRIP 32
#define STRIP_PITCH (STRIP + 8) /* 8 more: writes of pairs have no bank conflicts */
#define STAGED_BYTES (N_THREADS / 32 * 16 * STRIP_PITCH * (int)sizeof(float))

template <enum vxd_net_precision PRECISION, int N, int PITCH = STRIP_PITCH>
static __device__ __forceinline__ void
store_strip(const struct vxd_conv_tiles *tiles, const int32_t *rows, const float *staged,
            int first_out, int n_channels)
{
#pragma unroll 1
    for (int i = (int)threadIdx.x % 32; i < 16 * n_channels / N; i += 32) {
        int row = i / (n_channels / N);
        int channel = i % (n_channels / N) * N;
        int32_t out_row = rows[row];
        float of[N];

        if (out_row < 0 || first_out + channel >= tiles->n_out) {
            continue;
        }
#pragma unroll
        for (int k = 0; k < N; k += 4) {
            *(float4 *)(of + k) = *(const float4 *)(staged + row * PITCH + channel + k);
        }
        store_piece<PRECISION, N>(tiles, out_row, first_out + channel, of);
    }
}

/* `rows` are the tile's output rows, `staged` has STAGED_BYTES for the block. */
template <enum vxd_net_precision PRECISION, int N_TILE>
static __device__ __forceinline__ void
store_tile(const struct vxd_conv_tiles *tiles, const int32_t *rows, float *staged,
           int first_out, float (*sums)[N_TILE / 8][4])
{
    constexpr int N = PRECISION == VXD_NET_FP16 || PRECISION == VXD_NET_BF16 ? 8 : 4;
    constexpr int WIDTH = N_TILE < STRIP ? N_TILE : STRIP;
    int lane = (int)threadIdx.x % 32;

    staged += threadIdx.x / 32 * (16 * STRIP_PITCH);
#pragma unroll
    for (int k = 0; k < 2 * N_TILE / WIDTH; k++) {
        int half = k % 2;
        int first = k / 2 * WIDTH;

#pragma unroll
        for (int j = 0; j < WIDTH / 8; j++) {
            const float *of = sums[half][first / 8 + j];

            if constexpr (PRECISION == VXD_NET_FP32) {
                for (int i = 0; i < 4; i++) {
                    staged[(lane / 8 + 4 * i) * STRIP_PITCH + 8 * j + lane % 8] = of[i];
                }
            } else {
                float *to = staged + lane / 4 * STRIP_PITCH + 8 * j + lane % 4 * 2;

                *(float2 *)to = make_float2(of[0], of[1]);
                *(float2 *)(to + 8 * STRIP_PITCH) = make_float2(of[2], of[3]);
            }
        }
        __syncwarp();
        store_strip<PRECISION, N>(tiles, rows + half_row(half), staged, first_out + first,
                                  WIDTH);
        __syncwarp();
    }
}

/* The slots of the taps of one mask word. */
struct tile_slots {
    uint32_t n; /* n_slots for each tap that the tile has */
    /* Bit i: tile_shared.taps[i] is a tap of the rows of half_row(0), and of
     * half_row(1). */
    uint32_t low_taps;
    uint32_t high_taps;
    int first_tap; /* of the mask word */
};

template <int N_TILE> __host__ __device__ constexpr int stage_bytes()
{
    return STAGE_IN_BYTES + STAGE_SLOTS * N_TILE * VXD_CONV_SLOT_BYTES;
}

/* For slot `number` of the tile: which of the tile's taps it belongs to, and which
 * slot of that tap it is. */
static __device__ __forceinline__ uint32_t tap_of_slot(const struct vxd_conv_tiles *tiles,
                                                       uint32_t number, uint32_t *in_tap)
{
    uint32_t tap =
        tiles->slots_reciprocal == 0 ? number : __umulhi(number, tiles->slots_reciprocal);

    *in_tap = number - tap * (uint32_t)tiles->n_slots;
    return tap;
}

/* Finds the rows of the tile, one row a thread. */
static __device__ __forceinline__ int32_t find_row(const struct vxd_conv_tiles *tiles,
                                                   uint32_t place, uint32_t n_rows)
{
    if (place >= n_rows) {
        return -1;
    }
    return tiles->order != NULL ? (int32_t)tiles->order[place] : (int32_t)place;
}

/* Synchronises the four warps that fetch a tile, which may be the whole block. */
static __device__ __forceinline__ void tile_sync(void)
{
    asm volatile("bar.sync 1, %0;" ::"n"(N_THREADS) : "memory");
}

/* Stores which taps of a mask word the tile has; returns their number. */
static __device__ __forceinline__ int find_taps(struct tile_shared *shared, uint32_t mask,
                                                uint32_t *all)
{
    int thread = (int)threadIdx.x % N_THREADS;
    uint32_t group = mask;

    for (int i = 8; i > 0; i /= 2) {
        group |= __shfl_xor_sync(0xffffffffu, group, i);
    }
    if (thread % 16 == 0) {
        shared->group_masks[thread / 16] = group;
    }
    tile_sync();
    *all = 0;
    for (int i = 0; i < N_GROUPS; i++) {
        *all |= shared->group_masks[i];
    }
    if (thread < WORD_TAPS && (*all >> thread & 1u) != 0) {
        shared->taps[__popc(*all & ((1u << thread) - 1))] = thread;
    }
    return __popc(*all);
}

/* Taps of the 16 rows of one matrix instruction. */
static __device__ __forceinline__ uint32_t half_mask(const struct tile_shared *shared,
                                                     int half)
{
    return shared->group_masks[(int)threadIdx.x / 32 * 2 + half];
}

/* Finds the taps of mask word `word` that the tile has, and the rows that they read. */
static __device__ __forceinline__ struct tile_slots
find_slots(const struct vxd_conv_tiles *tiles, struct tile_shared *shared,
           int32_t *inputs, int32_t row, int word)
{
    int lane = (int)threadIdx.x % 32;
    int n_words = VXD_SPARSE_MASK_WORDS(tiles->n_taps);
    struct tile_slots slots = {.first_tap = word * WORD_TAPS};
    int32_t *to = inputs + threadIdx.x % N_THREADS;
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
    tile_sync();
    tap = lane < n_taps ? (uint32_t)shared->taps[lane] : 0;
    slots.low_taps = __ballot_sync(
        0xffffffffu, lane < n_taps && (half_mask(shared, 0) >> tap & 1u) != 0);
    slots.high_taps = __ballot_sync(
        0xffffffffu, lane < n_taps && (half_mask(shared, 1) >> tap & 1u) != 0);
    slots.n = (uint32_t)n_taps * (uint32_t)tiles->n_slots;
    return slots;
}

/* Fetches one 16-byte piece, n_valid bytes of which exist, of every 16th row. It uses
 * copies of WIDTH bytes, or a load where WIDTH is 2, because copies have at least 4. */
template <enum vxd_net_precision PRECISION, int WIDTH>
static __device__ __forceinline__ void load_rows_by(const int32_t *inputs, const char *in,
                                                    uint32_t row_bytes, int n_valid,
                                                    char *to)
{
    constexpr int N_UNROLLED = WIDTH == 16 ? VXD_CONV_TILE_ROWS / 16 : 2;

#pragma unroll N_UNROLLED
    for (int i = 0; i < VXD_CONV_TILE_ROWS; i += N_THREADS / 8) {
        int32_t input = inputs[i];
        const char *from = in + (uint64_t)(input < 0 ? 0 : (uint32_t)input) * row_bytes;
        int n = input < 0 ? 0 : n_valid;

        if constexpr (WIDTH == 16) {
            copy16(shared_address(to + i * ROW_BYTES), from, n);
        } else if constexpr (WIDTH > 2) {
            copy_pieces<WIDTH>(shared_address(to + i * ROW_BYTES), from, n);
        } else {
            *(uint4 *)(to + i * ROW_BYTES) = gather16<2>(from, n);
        }
    }
}

/* Fetches the rows of stage `stage`, one piece number a thread. */
template <enum vxd_net_precision PRECISION>
static __device__ __forceinline__ void
load_stage_rows(const struct vxd_conv_tiles *tiles, const int32_t *inputs,
                const struct tile_slots *slots, uint32_t stage, char *to)
{
    constexpr int ELEMENT_BYTES =
        PRECISION == VXD_NET_FP16 || PRECISION == VXD_NET_BF16 ? 2 : 4;
    int piece = (int)threadIdx.x % 8;
    int first_row = (int)threadIdx.x % N_THREADS / 8;
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
    if (tiles->in_alignment == 16) {
        load_rows_by<PRECISION, 16>(inputs, in, tiles->in_row_bytes, n_valid, to);
    } else if (tiles->in_alignment == 8) {
        load_rows_by<PRECISION, 8>(inputs, in, tiles->in_row_bytes, n_valid, to);
    } else if (tiles->in_alignment == 4) {
        load_rows_by<PRECISION, 4>(inputs, in, tiles->in_row_bytes, n_valid, to);
    } else {
        load_rows_by<PRECISION, 2>(inputs, in, tiles->in_row_bytes, n_valid, to);
    }
}

/* Computes the number of stages: as many as leave shared memory for two blocks a
 * multiprocessor; fewer where it has less. */
static inline enum vxd_status fit_stages(struct vxd_context *context, int n_stage_bytes,
                                         int n_table_bytes, int n_static_bytes,
                                         int *n_stages, struct vxd_err *err)
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
    of_multiprocessor = of_multiprocessor / 2 - 1024; /* reserved by the system */
    of_block -= n_static_bytes;
    of_multiprocessor -= n_static_bytes;
    for (*n_stages = 4; *n_stages > 2; --*n_stages) {
        if (*n_stages * n_stage_bytes + n_table_bytes <=
            (of_multiprocessor < of_block ? of_multiprocessor : of_block)) {
            break;
        }
    }
out:
    return status;
}

#endif
