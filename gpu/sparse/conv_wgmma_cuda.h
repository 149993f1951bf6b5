// SPDX-License-Identifier: Apache-2.0
/* Hopper's asynchronous matrix instructions: 64 rows x N channels x one slot, both operands in
 * shared memory, issued by four warps together. For .cu files built for sm_90a only. */
#ifndef VXD_GPU_SPARSE_CONV_WGMMA_CUDA_H
#define VXD_GPU_SPARSE_CONV_WGMMA_CUDA_H

#include "gpu/sparse/conv_mma_cuda.h"

/* Addresses and distances are in units of 16 bytes: address in bits 0 to 13, distance along
 * the depth 16 to 29, along rows 32 to 45. */
#define WGMMA_SWAPPED_128 (1ULL << 62) /* pieces swapped by the row's number */

/* Rows of a stage: 128 bytes each, eight of them 1024. */
static __device__ __forceinline__ uint64_t wgmma_rows(uint32_t address)
{
    return WGMMA_SWAPPED_128 | (uint64_t)(1024 / 16) << 32 | 1ULL << 16 |
           (address & 0x3ffffu) >> 4;
}

/* A packed tile of weights: matrices of 128 bytes, two of them a group of 8 channels. */
static __device__ __forceinline__ uint64_t wgmma_weights(uint32_t address)
{
    return (uint64_t)(256 / 16) << 32 | (uint64_t)(128 / 16) << 16 |
           (address & 0x3ffffu) >> 4;
}

/* Before the first instruction that adds to sums that other code has touched. */
static __device__ __forceinline__ void wgmma_fence(void)
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

static __device__ __forceinline__ void wgmma_commit(void)
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/* Until all is done; then the sums are this thread's again. */
template <int N_TILE>
static __device__ __forceinline__ void wgmma_wait(float (*sums)[N_TILE / 8][4])
{
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
    for (int i = 0; i < N_TILE; i++) {
        asm volatile("" : "+f"(sums[i / 4 % 2][i / 8][i % 4])::"memory");
    }
}

/* Makes this thread's writes to shared memory, copies among them, seen by the instructions
 * once a barrier was passed. */
static __device__ __forceinline__ void wgmma_publish(void)
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

#define WGMMA_SUMS(j)                                                                    \
    "+f"(sums[j][0]), "+f"(sums[j][1]), "+f"(sums[j][2]), "+f"(sums[j][3])

/* Adds the products of 64 rows and one slot to sums[N_TILE / 8][4], which lie as those of
 * mma.m16n8, warp i of the four having rows 16 i to 16 i + 15. */
template <enum vxd_net_precision PRECISION, int N_TILE>
static __device__ __forceinline__ void wgmma(float (*sums)[4], uint64_t rows,
                                             uint64_t weights)
{
    if constexpr (N_TILE == 16 && PRECISION == VXD_NET_FP16) {
        asm volatile("wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 "
                     "{%0, %1, %2, %3, %4, %5, %6, %7}, "
                     "%8, %9, 1, 1, 1, 0, 0;"
                     : WGMMA_SUMS(0), WGMMA_SUMS(1)
                     : "l"(rows), "l"(weights));
    } else if constexpr (N_TILE == 16 && PRECISION == VXD_NET_BF16) {
        asm volatile("wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 "
                     "{%0, %1, %2, %3, %4, %5, %6, %7}, "
                     "%8, %9, 1, 1, 1, 0, 0;"
                     : WGMMA_SUMS(0), WGMMA_SUMS(1)
                     : "l"(rows), "l"(weights));
    } else if constexpr (N_TILE == 32 && PRECISION == VXD_NET_FP16) {
        asm volatile("wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 "
                     "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, "
                     "%14, %15}, "
                     "%16, %17, 1, 1, 1, 0, 0;"
                     : WGMMA_SUMS(0), WGMMA_SUMS(1), WGMMA_SUMS(2), WGMMA_SUMS(3)
                     : "l"(rows), "l"(weights));
    } else if constexpr (N_TILE == 32 && PRECISION == VXD_NET_BF16) {
        asm volatile("wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 "
                     "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, "
                     "%14, %15}, "
                     "%16, %17, 1, 1, 1, 0, 0;"
                     : WGMMA_SUMS(0), WGMMA_SUMS(1), WGMMA_SUMS(2), WGMMA_SUMS(3)
                     : "l"(rows), "l"(weights));
    } else if constexpr (N_TILE == 64 && PRECISION == VXD_NET_FP16) {
        asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
                     "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, "
                     "%14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, "
                     "%27, %28, %29, %30, %31}, "
                     "%32, %33, 1, 1, 1, 0, 0;"
                     : WGMMA_SUMS(0), WGMMA_SUMS(1), WGMMA_SUMS(2), WGMMA_SUMS(3),
                       WGMMA_SUMS(4), WGMMA_SUMS(5), WGMMA_SUMS(6), WGMMA_SUMS(7)
                     : "l"(rows), "l"(weights));
    } else if constexpr (N_TILE == 64 && PRECISION == VXD_NET_BF16) {
        asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
                     "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, "
                     "%14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, "
                     "%27, %28, %29, %30, %31}, "
                     "%32, %33, 1, 1, 1, 0, 0;"
                     : WGMMA_SUMS(0), WGMMA_SUMS(1), WGMMA_SUMS(2), WGMMA_SUMS(3),
                       WGMMA_SUMS(4), WGMMA_SUMS(5), WGMMA_SUMS(6), WGMMA_SUMS(7)
                     : "l"(rows), "l"(weights));
    } else if constexpr (N_TILE == 96 && PRECISION == VXD_NET_FP16) {
        asm volatile("wgmma.mma_async.sync.aligned.m64n96k16.f32.f16.f16 "
                     "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, "
                     "%14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, "
                     "%27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, "
                     "%40, %41, %42, %43, %44, %45, %46, %47}, "
                     "%48, %49, 1, 1, 1, 0, 0;"
                     : WGMMA_SUMS(0), WGMMA_SUMS(1), WGMMA_SUMS(2), WGMMA_SUMS(3),
                       WGMMA_SUMS(4), WGMMA_SUMS(5), WGMMA_SUMS(6), WGMMA_SUMS(7),
                       WGMMA_SUMS(8), WGMMA_SUMS(9), WGMMA_SUMS(10), WGMMA_SUMS(11)
                     : "l"(rows), "l"(weights));
    } else if constexpr (N_TILE == 96 && PRECISION == VXD_NET_BF16) {
        asm volatile("wgmma.mma_async.sync.aligned.m64n96k16.f32.bf16.bf16 "
                     "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, "
                     "%14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, "
                     "%27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, "
                     "%40, %41, %42, %43, %44, %45, %46, %47}, "
                     "%48, %49, 1, 1, 1, 0, 0;"
                     : WGMMA_SUMS(0), WGMMA_SUMS(1), WGMMA_SUMS(2), WGMMA_SUMS(3),
                       WGMMA_SUMS(4), WGMMA_SUMS(5), WGMMA_SUMS(6), WGMMA_SUMS(7),
                       WGMMA_SUMS(8), WGMMA_SUMS(9), WGMMA_SUMS(10), WGMMA_SUMS(11)
                     : "l"(rows), "l"(weights));
    } else if constexpr (N_TILE == 128 && PRECISION == VXD_NET_FP16) {
        asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
                     "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, "
                     "%14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, "
                     "%27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, "
                     "%40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, "
                     "%53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
                     "%64, %65, 1, 1, 1, 0, 0;"
                     : WGMMA_SUMS(0), WGMMA_SUMS(1), WGMMA_SUMS(2), WGMMA_SUMS(3),
                       WGMMA_SUMS(4), WGMMA_SUMS(5), WGMMA_SUMS(6), WGMMA_SUMS(7),
                       WGMMA_SUMS(8), WGMMA_SUMS(9), WGMMA_SUMS(10), WGMMA_SUMS(11),
                       WGMMA_SUMS(12), WGMMA_SUMS(13), WGMMA_SUMS(14), WGMMA_SUMS(15)
                     : "l"(rows), "l"(weights));
    } else if constexpr (N_TILE == 128 && PRECISION == VXD_NET_BF16) {
        asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
                     "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, "
                     "%14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, "
                     "%27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, "
                     "%40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, "
                     "%53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
                     "%64, %65, 1, 1, 1, 0, 0;"
                     : WGMMA_SUMS(0), WGMMA_SUMS(1), WGMMA_SUMS(2), WGMMA_SUMS(3),
                       WGMMA_SUMS(4), WGMMA_SUMS(5), WGMMA_SUMS(6), WGMMA_SUMS(7),
                       WGMMA_SUMS(8), WGMMA_SUMS(9), WGMMA_SUMS(10), WGMMA_SUMS(11),
                       WGMMA_SUMS(12), WGMMA_SUMS(13), WGMMA_SUMS(14), WGMMA_SUMS(15)
                     : "l"(rows), "l"(weights));
    }
}

#undef WGMMA_SUMS

/* One slot of a stage: 64 rows, or the other 64, or both. */
template <enum vxd_net_precision PRECISION, int N_TILE>
static __device__ __forceinline__ void wgmma_slot(float (*sums)[N_TILE / 8][4],
                                                  uint32_t rows, uint32_t weights,
                                                  int slot, bool has_low, bool has_high)
{
    uint64_t b = wgmma_weights(weights + (uint32_t)(slot * N_TILE * VXD_CONV_SLOT_BYTES));

    rows += (uint32_t)(slot * VXD_CONV_SLOT_BYTES);
    if (has_low) {
        wgmma<PRECISION, N_TILE>(sums[0], wgmma_rows(rows), b);
    }
    if (has_high) {
        wgmma<PRECISION, N_TILE>(sums[1], wgmma_rows(rows + 64 * ROW_BYTES), b);
    }
}

#endif
