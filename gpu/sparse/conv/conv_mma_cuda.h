// SPDX-License-Identifier: Apache-2.0
/* What a warp does with one slot of its tile: matrix instructions, or plain fused multiply-add for
 * float32; and the asynchronous copies that bring slots to shared memory.
 *
 * A stage holds four slots: 128 bytes a row, whose 16-byte pieces are permuted (swizzled) by the
 * row's number so that neither copies nor loads of matrices have bank conflicts; then four tiles
 * of weights as they are packed. */
#ifndef VXD_GPU_SPARSE_CONV_CONV_MMA_CUDA_H
#define VXD_GPU_SPARSE_CONV_CONV_MMA_CUDA_H

#include "gpu/sparse/conv/conv_cuda.h"

#define STAGE_SLOTS 4
#define ROW_BYTES (STAGE_SLOTS * VXD_CONV_SLOT_BYTES)
#define STAGE_IN_BYTES (VXD_CONV_TILE_ROWS * ROW_BYTES)

/* Copies 16 bytes: the first n_valid of them from `from`, the rest zeros. */
static __device__ __forceinline__ void copy16(uint32_t to, const void *from, int n_valid)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
                 "r"(n_valid)
                 : "memory");
}

/* The same in pieces of WIDTH bytes, 4 or 8, for addresses that are not multiples of
 * 16. */
template <int WIDTH>
static __device__ __forceinline__ void copy_pieces(uint32_t to, const char *from,
                                                   int n_valid)
{
#pragma unroll
    for (int i = 0; i < 16; i += WIDTH) {
        int n = n_valid - i < 0 ? 0 : n_valid - i > WIDTH ? WIDTH : n_valid - i;

        asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to + i),
                     "l"(from + (n > 0 ? i : 0)), "n"(WIDTH), "r"(n)
                     : "memory");
    }
}

static __device__ __forceinline__ void copy4(uint32_t to, const void *from)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(from)
                 : "memory");
}

static __device__ __forceinline__ void copies_end_group(void)
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/* Waits until at most n groups of this thread's copies are in flight. */
static __device__ __forceinline__ void copies_wait(int n)
{
    if (n >= 2) {
        asm volatile("cp.async.wait_group 2;" ::: "memory");
    } else if (n == 1) {
        asm volatile("cp.async.wait_group 1;" ::: "memory");
    } else {
        asm volatile("cp.async.wait_group 0;" ::: "memory");
    }
}

static __device__ __forceinline__ uint32_t shared_address(const void *ptr)
{
    return (uint32_t)__cvta_generic_to_shared(ptr);
}

/* Loads four matrices of 8 x 16 bytes; each lane passes the address of one row. */
static __device__ __forceinline__ void load_matrices(uint32_t address, uint32_t to[4])
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address)
                 : "memory");
}

template <enum vxd_net_precision PRECISION>
static __device__ __forceinline__ void multiply(float sums[4], const uint32_t a[4],
                                                const uint32_t *b)
{
    if constexpr (PRECISION == VXD_NET_FP16) {
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                     "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                     : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    } else if constexpr (PRECISION == VXD_NET_BF16) {
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                     "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                     : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    } else {
        asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
                     "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                     : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    }
}

/* Loads 16 rows x 32 bytes as the first operand of the matrix unit. `row` is this
 * lane's address of row lane % 16, `piece` the number of its 16 bytes in the stage. */
template <enum vxd_net_precision PRECISION>
static __device__ __forceinline__ void load_rows(uint32_t rows, int slot, uint32_t to[4])
{
    int lane = (int)threadIdx.x % 32;
    int row = lane % 16;
    int piece = slot * 2 + lane / 16;

    load_matrices(rows + (uint32_t)(row * ROW_BYTES + (piece ^ (row & 7)) * 16), to);
    /* the matrix unit itself would truncate instead of round */
    if constexpr (PRECISION == VXD_NET_TF32) {
        for (int i = 0; i < 4; i++) {
            asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(to[i]) : "f"(__uint_as_float(to[i])));
        }
    }
}

/* Multiplies one slot with matrix units. A warp has 32 rows in two halves of 16. A
 * half whose rows all lack the slot's tap is skipped, which changes no sum. Lane (g,
 * t) = (lane / 4, lane % 4) holds in sums[half][j] rows g and g + 8 of channels 8 j +
 * 2 t and 8 j + 2 t + 1. */
template <enum vxd_net_precision PRECISION, int N_TILE, bool HAS_LOW, bool HAS_HIGH>
static __device__ __forceinline__ void
multiply_halves(float (*sums)[N_TILE / 8][4], uint32_t rows, uint32_t weights, int slot)
{
    uint32_t low[4];
    uint32_t high[4];
    uint32_t b[N_TILE / 16][4];

    if constexpr (HAS_LOW) {
        load_rows<PRECISION>(rows, slot, low);
    }
    if constexpr (HAS_HIGH) {
        load_rows<PRECISION>(rows + 16 * ROW_BYTES, slot, high);
    }
    weights += (uint32_t)(slot * N_TILE * VXD_CONV_SLOT_BYTES) + threadIdx.x % 32 * 16;
#pragma unroll
    for (int j = 0; j < N_TILE / 16; j++) { /* issues all loads before the first wait */
        load_matrices(weights + (uint32_t)j * 512, b[j]);
    }
#pragma unroll
    for (int j = 0; j < N_TILE / 8; j++) {
        if constexpr (HAS_LOW) {
            multiply<PRECISION>(sums[0][j], low, b[j / 2] + j % 2 * 2);
        }
        if constexpr (HAS_HIGH) {
            multiply<PRECISION>(sums[1][j], high, b[j / 2] + j % 2 * 2);
        }
    }
}

static __device__ __forceinline__ float4 load_shared4(uint32_t address)
{
    float4 v;

    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                 : "r"(address)
                 : "memory");
    return v;
}

/* Multiplies one slot in float32; each sum is one chain of fused multiply-adds,
 * channels ascending. Lane (g, t) = (lane / 8, lane % 8) holds in sums[half][j][i] row
 * g + 4 i of channel 8 j + t. */
template <int N_TILE>
static __device__ __forceinline__ void
multiply_plain(float (*sums)[N_TILE / 8][4], uint32_t rows, uint32_t weights, int slot)
{
    int lane = (int)threadIdx.x % 32;

    weights += (uint32_t)(slot * N_TILE * VXD_CONV_SLOT_BYTES + lane % 8 * 16);
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float4 a[8];

#pragma unroll
        for (int i = 0; i < 8; i++) {
            int row = lane / 8 + 4 * i;
            int piece = slot * 2 + half;

            a[i] = load_shared4(rows +
                                (uint32_t)(row * ROW_BYTES + (piece ^ (row & 7)) * 16));
        }
#pragma unroll
        for (int j = 0; j < N_TILE / 8; j++) {
            float4 b = load_shared4(weights + (uint32_t)(j * 256 + half * 128));

#pragma unroll
            for (int i = 0; i < 8; i++) {
                float sum = sums[i / 4][j][i % 4];

                sum = __fmaf_rn(a[i].x, b.x, sum);
                sum = __fmaf_rn(a[i].y, b.y, sum);
                sum = __fmaf_rn(a[i].z, b.z, sum);
                sums[i / 4][j][i % 4] = __fmaf_rn(a[i].w, b.w, sum);
            }
        }
    }
}

/* Multiplies one slot of a stage; the warp's rows begin at 32 times its number. */
template <enum vxd_net_precision PRECISION, int N_TILE>
static __device__ __forceinline__ void
multiply_slot(float (*sums)[N_TILE / 8][4], uint32_t rows, uint32_t weights, int slot,
              bool has_low, bool has_high)
{
    rows += threadIdx.x / 32 * (32 * ROW_BYTES);
    if (!has_low && !has_high) {
        return;
    }
    if constexpr (PRECISION == VXD_NET_FP32) {
        multiply_plain<N_TILE>(sums, rows, weights, slot);
    } else if (has_low && has_high) {
        multiply_halves<PRECISION, N_TILE, true, true>(sums, rows, weights, slot);
    } else if (has_low) {
        multiply_halves<PRECISION, N_TILE, true, false>(sums, rows, weights, slot);
    } else {
        multiply_halves<PRECISION, N_TILE, false, true>(sums, rows, weights, slot);
    }
}

#endif
