// SPDX-License-Identifier: Apache-2.0
/* Hopper's asynchronous matrix instructions: 64 rows x N channels x one slot, both operands in
 * shared memory, issued by four warps together. For .cu files built for sm_90a only. */
#ifndef VXD_GPU_SPARSE_CONV_CONV_WGMMA_CUDA_H
#define VXD_GPU_SPARSE_CONV_CONV_WGMMA_CUDA_H

#include "gpu/sparse/conv/conv_mma_cuda.h"

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

/* Until at most n (0 or 1) committed groups are under way. */
template <int N> static __device__ __forceinline__ void wgmma_wait(void)
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}

/* After all was waited for: the sums are this thread's again. */
template <int N_TILE, int N_HALVES>
static __device__ __forceinline__ void wgmma_release(float (*sums)[N_TILE / 8][4])
{
#pragma unroll
    for (int i = 0; i < N_HALVES * N_TILE / 2; i++) {
        asm volatile(
            ""
            : "+f"(sums[i / (N_TILE / 2)][i / 4 % (N_TILE / 8)][i % 4])::"memory");
    }
}

/* Writes to shared memory that this thread knows of, copies among them, are seen by the
 * instructions it issues next. */
static __device__ __forceinline__ void wgmma_publish(void)
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

#define WGMMA_SUMS(j)                                                                    \
    "+f"(sums[j][0]), "+f"(sums[j][1]), "+f"(sums[j][2]), "+f"(sums[j][3])
#define WGMMA_SUMS4(j)                                                                   \
    WGMMA_SUMS(j), WGMMA_SUMS(j + 1), WGMMA_SUMS(j + 2), WGMMA_SUMS(j + 3)

/* The registers of one instruction's sums, by number. */
#define WGMMA_D16 "{%0, %1, %2, %3, %4, %5, %6, %7}, "
#define WGMMA_D32                                                                        \
    "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, "                 \
    "%15}, "
#define WGMMA_D64                                                                        \
    "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "            \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, "             \
    "%30, %31}, "
#define WGMMA_D96                                                                        \
    "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "            \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, "             \
    "%30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, "             \
    "%44, %45, %46, %47}, "
#define WGMMA_D128                                                                       \
    "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "            \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, "             \
    "%30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, "             \
    "%44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, "             \
    "%58, %59, %60, %61, %62, %63}, "
#define WGMMA_SHARED_16(type)                                                            \
    asm volatile("wgmma.mma_async.sync.aligned.m64n16k16.f32." type "." type             \
                 " " WGMMA_D16 "%8, %9, 1, 1, 1, 0, 0;"                                  \
                 : WGMMA_SUMS(0), WGMMA_SUMS(1)                                          \
                 : "l"(rows), "l"(weights))
#define WGMMA_SHARED_32(type)                                                            \
    asm volatile("wgmma.mma_async.sync.aligned.m64n32k16.f32." type "." type             \
                 " " WGMMA_D32 "%16, %17, 1, 1, 1, 0, 0;"                                \
                 : WGMMA_SUMS4(0)                                                        \
                 : "l"(rows), "l"(weights))
#define WGMMA_SHARED_64(type)                                                            \
    asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32." type "." type             \
                 " " WGMMA_D64 "%32, %33, 1, 1, 1, 0, 0;"                                \
                 : WGMMA_SUMS4(0), WGMMA_SUMS4(4)                                        \
                 : "l"(rows), "l"(weights))
#define WGMMA_SHARED_96(type)                                                            \
    asm volatile("wgmma.mma_async.sync.aligned.m64n96k16.f32." type "." type             \
                 " " WGMMA_D96 "%48, %49, 1, 1, 1, 0, 0;"                                \
                 : WGMMA_SUMS4(0), WGMMA_SUMS4(4), WGMMA_SUMS4(8)                        \
                 : "l"(rows), "l"(weights))
#define WGMMA_SHARED_128(type)                                                           \
    asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32." type "." type            \
                 " " WGMMA_D128 "%64, %65, 1, 1, 1, 0, 0;"                               \
                 : WGMMA_SUMS4(0), WGMMA_SUMS4(4), WGMMA_SUMS4(8), WGMMA_SUMS4(12)       \
                 : "l"(rows), "l"(weights))
#define WGMMA_TF32_16()                                                                  \
    asm volatile("wgmma.mma_async.sync.aligned.m64n16k8.f32.tf32.tf32 " WGMMA_D16        \
                 "{%8, %9, %10, %11}, %12, 1, 1, 1;"                                     \
                 : WGMMA_SUMS(0), WGMMA_SUMS(1)                                          \
                 : "r"(rows[0]), "r"(rows[1]), "r"(rows[2]), "r"(rows[3]), "l"(weights))
#define WGMMA_TF32_32()                                                                  \
    asm volatile("wgmma.mma_async.sync.aligned.m64n32k8.f32.tf32.tf32 " WGMMA_D32        \
                 "{%16, %17, %18, %19}, %20, 1, 1, 1;"                                   \
                 : WGMMA_SUMS4(0)                                                        \
                 : "r"(rows[0]), "r"(rows[1]), "r"(rows[2]), "r"(rows[3]), "l"(weights))
#define WGMMA_TF32_64()                                                                  \
    asm volatile("wgmma.mma_async.sync.aligned.m64n64k8.f32.tf32.tf32 " WGMMA_D64        \
                 "{%32, %33, %34, %35}, %36, 1, 1, 1;"                                   \
                 : WGMMA_SUMS4(0), WGMMA_SUMS4(4)                                        \
                 : "r"(rows[0]), "r"(rows[1]), "r"(rows[2]), "r"(rows[3]), "l"(weights))
#define WGMMA_TF32_96()                                                                  \
    asm volatile("wgmma.mma_async.sync.aligned.m64n96k8.f32.tf32.tf32 " WGMMA_D96        \
                 "{%48, %49, %50, %51}, %52, 1, 1, 1;"                                   \
                 : WGMMA_SUMS4(0), WGMMA_SUMS4(4), WGMMA_SUMS4(8)                        \
                 : "r"(rows[0]), "r"(rows[1]), "r"(rows[2]), "r"(rows[3]), "l"(weights))
#define WGMMA_TF32_128()                                                                 \
    asm volatile("wgmma.mma_async.sync.aligned.m64n128k8.f32.tf32.tf32 " WGMMA_D128      \
                 "{%64, %65, %66, %67}, %68, 1, 1, 1;"                                   \
                 : WGMMA_SUMS4(0), WGMMA_SUMS4(4), WGMMA_SUMS4(8), WGMMA_SUMS4(12)       \
                 : "r"(rows[0]), "r"(rows[1]), "r"(rows[2]), "r"(rows[3]), "l"(weights))

/* Adds the products of 64 rows and one slot to sums[N_TILE / 8][4], which lie as those of
 * mma.m16n8, warp i of the four having rows 16 i to 16 i + 15. */
template <enum vxd_net_precision PRECISION, int N_TILE>
static __device__ __forceinline__ void wgmma(float (*sums)[4], uint64_t rows,
                                             uint64_t weights)
{
    if constexpr (PRECISION == VXD_NET_FP16 && N_TILE == 16) {
        WGMMA_SHARED_16("f16");
    } else if constexpr (PRECISION == VXD_NET_FP16 && N_TILE == 32) {
        WGMMA_SHARED_32("f16");
    } else if constexpr (PRECISION == VXD_NET_FP16 && N_TILE == 64) {
        WGMMA_SHARED_64("f16");
    } else if constexpr (PRECISION == VXD_NET_FP16 && N_TILE == 96) {
        WGMMA_SHARED_96("f16");
    } else if constexpr (PRECISION == VXD_NET_FP16 && N_TILE == 128) {
        WGMMA_SHARED_128("f16");
    } else if constexpr (PRECISION == VXD_NET_BF16 && N_TILE == 16) {
        WGMMA_SHARED_16("bf16");
    } else if constexpr (PRECISION == VXD_NET_BF16 && N_TILE == 32) {
        WGMMA_SHARED_32("bf16");
    } else if constexpr (PRECISION == VXD_NET_BF16 && N_TILE == 64) {
        WGMMA_SHARED_64("bf16");
    } else if constexpr (PRECISION == VXD_NET_BF16 && N_TILE == 96) {
        WGMMA_SHARED_96("bf16");
    } else if constexpr (PRECISION == VXD_NET_BF16 && N_TILE == 128) {
        WGMMA_SHARED_128("bf16");
    }
}

/* The same in TF32, with rows in registers, as they lie for mma.m16n8k8. */
template <int N_TILE>
static __device__ __forceinline__ void
wgmma_tf32(float (*sums)[4], const uint32_t rows[4], uint64_t weights)
{
    if constexpr (N_TILE == 16) {
        WGMMA_TF32_16();
    } else if constexpr (N_TILE == 32) {
        WGMMA_TF32_32();
    } else if constexpr (N_TILE == 64) {
        WGMMA_TF32_64();
    } else if constexpr (N_TILE == 96) {
        WGMMA_TF32_96();
    } else if constexpr (N_TILE == 128) {
        WGMMA_TF32_128();
    }
}

#endif
