// SPDX-License-Identifier: Apache-2.0
/* What a block of conv_tiles_cuda.h keeps in shared memory, and how its sums leave: bias,
 * residual, activation, rounding, 16-byte stores to rows scattered by the map's order. */
#ifndef VXD_GPU_SPARSE_CONV_CONV_STORE_CUDA_H
#define VXD_GPU_SPARSE_CONV_CONV_STORE_CUDA_H

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "gpu/sparse/conv/conv_cuda.h"

#define N_THREADS VXD_CONV_TILE_ROWS
#define N_GROUPS (VXD_CONV_TILE_ROWS / 16)
#define WORD_TAPS 32 /* looked at together: one word of a mask */

/* What a block keeps of its tile, before the stages. */
struct tile_shared {
    int32_t rows[VXD_CONV_TILE_ROWS]; /* output rows, -1 past the last */
    uint32_t group_masks[N_GROUPS];   /* taps of 16 rows each */
    int32_t taps[WORD_TAPS];          /* that some row of the tile has, of this word */
};

#define TILE_SHARED_BYTES 1024 /* with the alignment of what follows it */

/* Where things are in dynamic shared memory. */
struct tile_memory {
    int32_t *inputs; /* WORD_TAPS x 128: input row or -1 */
    char *stages;
};

/* First of the 16 rows whose sums a warp has in its first or second half. */
static __device__ __forceinline__ int half_row(int half)
{
    return (int)threadIdx.x / 32 * 32 + half * 16;
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

/* N elements of 16 bytes. */
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

/* Adds bias and residual to N neighbouring sums, all of which exist. */
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

/* The same where fewer exist, or addresses are no multiples of 16. */
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
        for (int round = 0; round < N; round++) { /* turned round: no code for each */
            float next = vxd_activate(tiles->act, tiles->alpha, x[0]);

#pragma unroll
            for (int i = 0; i + 1 < N; i++) {
                x[i] = x[i + 1];
            }
            x[N - 1] = next;
        }
    }
}

/* What follows the sums of N neighbouring channels of a row; N elements are 16 bytes. */
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
        x[i] += 0.0f; /* a sum of -0 is 0, as where a tap of zeros was added too */
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

/* 16 rows x a strip of channels at a time, the warp's sums pass through shared memory, so that
 * a lane gets neighbouring channels. */
#define STRIP 32
#define STRIP_PITCH (STRIP + 8) /* 8: writes of pairs meet in no bank */
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

/* `rows` are the tile's output rows, `staged` STAGED_BYTES of the block. */
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

#endif
