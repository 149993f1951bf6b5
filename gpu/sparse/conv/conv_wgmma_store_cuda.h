// SPDX-License-Identifier: Apache-2.0
/* How the sums of conv_wgmma_tiles_cuda.h leave. Where all lies at multiples of 16 bytes and
 * the activation is plain: sums began with the bias, the residual is added and numbers rounded
 * where the matrix unit left them, then the warp's rows pass through shared memory to 16-byte
 * stores. The rest goes the way of conv_store_cuda.h. */
#ifndef VXD_GPU_SPARSE_CONV_CONV_WGMMA_STORE_CUDA_H
#define VXD_GPU_SPARSE_CONV_CONV_WGMMA_STORE_CUDA_H

#include "gpu/sparse/conv/conv_wgmma_fetch_cuda.h"

#define WARP_STAGED_BYTES (16 * ROW_BYTES)
#define PIECES_PITCH 24 /* floats a row of 16 channels */

/* Four matrices of 8 x 16 bytes; each lane gives the address of one row. */
static __device__ __forceinline__ void store_matrices(uint32_t address,
                                                      const uint32_t of[4])
{
    asm volatile(
        "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address),
        "r"(of[0]), "r"(of[1]), "r"(of[2]), "r"(of[3])
        : "memory");
}

/* Two numbers of two bytes; as bits_of does each. */
template <enum vxd_net_precision PRECISION>
static __device__ __forceinline__ uint32_t pair_of(float low, float high)
{
    uint32_t pair;

    if constexpr (PRECISION == VXD_NET_FP16) {
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
        return __vmins2(pair, 0x7e007e00u); /* the instruction's NaN is 0x7fff */
    } else {
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
        return __vmins2(pair, 0x7fc07fc0u);
    }
}

/* x < 0 ? 0 : x where no x is -0. */
static __device__ __forceinline__ float relu_of(float x)
{
    float y;

    asm("max.NaN.f32 %0, %1, 0f00000000;" : "=f"(y) : "f"(x));
    return y;
}

template <enum vxd_net_precision PRECISION>
static __device__ __forceinline__ float2 widen_pair(uint32_t pair)
{
    if constexpr (PRECISION == VXD_NET_FP16) {
        return __half22float2(*(const __half2 *)&pair);
    } else {
        return make_float2(__uint_as_float(pair << 16),
                           __uint_as_float(pair & 0xffff0000u));
    }
}

/* Sums of a warp's 16 rows and WIDTH channels, WIDTH * element bytes being 128 at most. */
struct strip {
    uint32_t add;    /* shared address of the warp's residual; 0 = none */
    uint32_t staged; /* shared address of the warp's place */
    bool has_relu;
};

/* Where in 16 rows of 128 bytes, pieces swapped, a piece lies. */
static __device__ __forceinline__ uint32_t piece_at(int row, int piece)
{
    return (uint32_t)(row * ROW_BYTES + (piece ^ (row & 7)) * 16);
}

/* Eight channels of the strip, two bytes each: residual, activation, two words. A sum of -0 is
 * 0, as where a tap of zeros was added too. */
template <enum vxd_net_precision PRECISION>
static __device__ __forceinline__ void end_pairs(const struct strip *strip, float *of,
                                                 const uint32_t *add, uint32_t to[2])
{
#pragma unroll
    for (int i = 0; i < 2; i++) { /* rows lane / 4 and 8 more */
        float2 x = make_float2(of[2 * i] + 0.0f, of[2 * i + 1] + 0.0f);

        if (strip->add != 0) {
            float2 y = widen_pair<PRECISION>(add[i]);

            x.x += y.x;
            x.y += y.y;
        }
        if (strip->has_relu) {
            x.x = relu_of(x.x);
            x.y = relu_of(x.y);
        }
        to[i] = pair_of<PRECISION>(x.x, x.y);
    }
}

template <enum vxd_net_precision PRECISION, int WIDTH>
static __device__ __forceinline__ void end_strip(const struct strip *strip,
                                                 float (*sums)[4])
{
    int lane = (int)threadIdx.x % 32;
    /* The row of a matrix whose address this lane gives, and its piece. */
    int row = lane / 8 % 2 * 8 + lane % 8;
    int half = lane / 16;

#pragma unroll
    for (int j = 0; j < WIDTH / 8; j += 2) {
        uint32_t add[4] = {0, 0, 0, 0};
        uint32_t words[4];

        if (strip->add != 0) {
            load_matrices(strip->add + piece_at(row, j + half), add);
        }
#pragma unroll
        for (int k = 0; k < 2; k++) {
            end_pairs<PRECISION>(strip, sums[j + k], add + 2 * k, words + 2 * k);
        }
        store_matrices(strip->staged + piece_at(row, j + half), words);
    }
}

/* The same with elements of four bytes. */
template <int WIDTH>
static __device__ __forceinline__ void end_strip_wide(const struct strip *strip,
                                                      float (*sums)[4])
{
    int lane = (int)threadIdx.x % 32;

#pragma unroll
    for (int j = 0; j < WIDTH / 8; j++) {
#pragma unroll
        for (int i = 0; i < 2; i++) {
            int row = lane / 4 + 8 * i;
            uint32_t at = piece_at(row, 2 * j + lane % 4 / 2) + (uint32_t)(lane % 2 * 8);
            float2 x = make_float2(sums[j][2 * i] + 0.0f, sums[j][2 * i + 1] + 0.0f);

            if (strip->add != 0) {
                float2 y;

                asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];"
                             : "=f"(y.x), "=f"(y.y)
                             : "r"(strip->add + at)
                             : "memory");
                x.x += y.x;
                x.y += y.y;
            }
            if (strip->has_relu) {
                x.x = relu_of(x.x);
                x.y = relu_of(x.y);
            }
            asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(strip->staged + at),
                         "f"(vxd_canonical_nanf(x.x)), "f"(vxd_canonical_nanf(x.y))
                         : "memory");
        }
    }
}

/* Staged rows to where they belong; `out` is the first channel's, n_bytes of a row exist. */
template <int N_PIECES>
static __device__ __forceinline__ void
write_strip(const struct vxd_conv_tiles *tiles, const int32_t *rows, const char *staged,
            char *out, int n_bytes)
{
    constexpr int N_ROWS = 32 / N_PIECES; /* at a time */
    int piece = (int)threadIdx.x % N_PIECES;
    int first = (int)threadIdx.x % 32 / N_PIECES;

#pragma unroll
    for (int i = 0; i < 16; i += N_ROWS) {
        int32_t row = rows[first + i];
        uint4 words = *(const uint4 *)(staged + piece_at(first + i, piece));

        if (row >= 0 && piece * 16 < n_bytes) {
            *(uint4 *)(out + (size_t)row * tiles->out_row_bytes + piece * 16) = words;
        }
    }
}

/* Ends WIDTH channels from `first` of the tile on, of the rows of one warp in one half. */
template <enum vxd_net_precision PRECISION, int WIDTH>
static __device__ __forceinline__ void
store_strip_whole(const struct vxd_conv_tiles *tiles, const int32_t *rows, char *staged,
                  int first_out, uint32_t add, float (*sums)[4])
{
    constexpr int ELEMENT_BYTES =
        PRECISION == VXD_NET_FP16 || PRECISION == VXD_NET_BF16 ? 2 : 4;
    int n_channels = tiles->n_out - first_out;
    struct strip strip = {add, shared_address(staged), tiles->act == VXD_ACT_RELU};

    if (n_channels <= 0) {
        return;
    }
    if constexpr (ELEMENT_BYTES == 2) {
        end_strip<PRECISION, WIDTH>(&strip, sums);
    } else {
        end_strip_wide<WIDTH>(&strip, sums);
    }
    __syncwarp();
    write_strip<WIDTH * ELEMENT_BYTES / 16>(
        tiles, rows, staged, tiles->out + (size_t)first_out * ELEMENT_BYTES,
        n_channels * ELEMENT_BYTES);
    __syncwarp();
}

/* What sums begin with: the bias where store_tile_whole ends them, else 0, never -0. */
template <class FORM>
static __device__ __forceinline__ void begin_sums(const struct vxd_conv_tiles *tiles,
                                                  int first_out,
                                                  float (*sums)[FORM::N_TILE / 8][4])
{
    const float *from = tiles->bias + first_out + threadIdx.x % 4 * 2;
    int n_channels = tiles->is_out_whole && tiles->bias != NULL
                         ? tiles->n_out - first_out - (int)threadIdx.x % 4 * 2
                         : 0;

#pragma unroll
    for (int j = 0; j < FORM::N_TILE / 8; j++) {
        float2 bias = make_float2(0.0f, 0.0f);

        if (8 * j < n_channels) {
            bias = *(const float2 *)(from + 8 * j);
        }
#pragma unroll
        for (int half = 0; half < FORM::N_HALVES; half++) {
            sums[half][j][0] = sums[half][j][2] = bias.x + 0.0f;
            sums[half][j][1] = sums[half][j][3] = bias.y + 0.0f;
        }
    }
}

/* `rows` are the group's output rows, `stages` begins with its rows, `staged` is this warp's. */
template <enum vxd_net_precision PRECISION, class FORM>
static __device__ __forceinline__ void
store_tile_whole(const struct vxd_conv_tiles *tiles, struct wgmma_shared<FORM> *shared,
                 const char *stages, const int32_t *rows, char *staged, int first_out,
                 struct ring *ring, float (*sums)[FORM::N_TILE / 8][4])
{
    constexpr int N_ELEMENTS =
        ROW_BYTES / (PRECISION == VXD_NET_FP16 || PRECISION == VXD_NET_BF16 ? 2 : 4);
    constexpr int N_TILE = FORM::N_TILE;
    constexpr int N_HALVES = FORM::N_HALVES;
    constexpr int REST = N_TILE % N_ELEMENTS;
    int warp = (int)threadIdx.x / 32 % 4;
    bool has_add = tiles->add != NULL;

#pragma unroll
    for (int first = 0; first < N_TILE; first += N_ELEMENTS) {
        if (has_add) {
            barrier_wait(&shared->full[ring->at], ring->parity);
        }
#pragma unroll
        for (int half = 0; half < N_HALVES; half++) {
            int row = half * HALF_ROWS + warp * 16;
            uint32_t add = has_add
                               ? shared_address(stages + ring->at * FORM::STAGE_BYTES) +
                                     (uint32_t)(row * ROW_BYTES)
                               : 0;

            if (first + N_ELEMENTS <= N_TILE) {
                store_strip_whole<PRECISION, N_ELEMENTS>(tiles, rows + row, staged,
                                                         first_out + first, add,
                                                         sums[half] + first / 8);
            } else {
                store_strip_whole<PRECISION, REST == 0 ? 16 : REST>(
                    tiles, rows + row, staged, first_out + first, add,
                    sums[half] + first / 8);
            }
        }
        if (has_add) {
            __syncwarp(); /* who has nothing to store may be waiting for the stage still */
            if (threadIdx.x % 32 == 0) {
                barrier_arrive(&shared->empty[ring->at]);
            }
            ring_step(ring, tiles->n_stages);
        }
    }
}

/* Any rows, any activation; `staged` is this warp's. */
template <enum vxd_net_precision PRECISION, class FORM>
static __device__ __forceinline__ void
store_tile_pieces(const struct vxd_conv_tiles *tiles, const int32_t *rows, float *staged,
                  int first_out, float (*sums)[FORM::N_TILE / 8][4])
{
    constexpr int N = PRECISION == VXD_NET_FP16 || PRECISION == VXD_NET_BF16 ? 8 : 4;
    constexpr int N_HALVES = FORM::N_HALVES;
    constexpr int WIDTH = 16;
    int lane = (int)threadIdx.x % 32;
    int warp = (int)threadIdx.x / 32 % 4;

#pragma unroll
    for (int k = 0; k < N_HALVES * FORM::N_TILE / WIDTH; k++) {
        int half = k % N_HALVES;
        int first = k / N_HALVES * WIDTH;

#pragma unroll
        for (int j = 0; j < WIDTH / 8; j++) {
            const float *of = sums[half][first / 8 + j];
            float *to = staged + lane / 4 * PIECES_PITCH + 8 * j + lane % 4 * 2;

            *(float2 *)to = make_float2(of[0], of[1]);
            *(float2 *)(to + 8 * PIECES_PITCH) = make_float2(of[2], of[3]);
        }
        __syncwarp();
        store_strip<PRECISION, N, PIECES_PITCH>(
            tiles, rows + half * HALF_ROWS + warp * 16, staged, first_out + first, WIDTH);
        __syncwarp();
    }
}

#endif
