// SPDX-License-Identifier: Apache-2.0
/* Operations of warps and blocks in the kernels of scenes, and memory accesses that
 * bypass a thread's own caches. */
#ifndef VXD_GPU_SVDAG_STORE_BLOCK_OPS_CUDA_H
#define VXD_GPU_SVDAG_STORE_BLOCK_OPS_CUDA_H

#include <cooperative_groups.h>

#include "gpu/svdag/store/arena_index_math.h"

#define VXD_SVDAG_DEVICE static __device__ __forceinline__

/* Threads of a block; a multiple of 32, at most 1024. */
#define VXD_SVDAG_BLOCK_THREADS 256

/* Most blocks of an edit kernel on a multiprocessor, with 80 registers a thread. */
#define VXD_SVDAG_MAX_BLOCKS_PER_SM 3

VXD_SVDAG_DEVICE bool vxd_svdag_is_first_block(void)
{
    return blockIdx.x == 0;
}

VXD_SVDAG_DEVICE uint64_t vxd_svdag_atomic_add(uint64_t *at, uint64_t n)
{
    return atomicAdd((unsigned long long *)at, (unsigned long long)n);
}

VXD_SVDAG_DEVICE void vxd_svdag_atomic_or(uint32_t *at, uint32_t bits)
{
    (void)atomicOr(at, bits);
}

VXD_SVDAG_DEVICE void vxd_svdag_atomic_or64(uint64_t *at, uint64_t bits)
{
    (void)atomicOr((unsigned long long *)at, (unsigned long long)bits);
}

VXD_SVDAG_DEVICE uint32_t vxd_svdag_atomic_cas(uint32_t *at, uint32_t from, uint32_t to)
{
    return atomicCAS(at, from, to);
}

VXD_SVDAG_DEVICE uint64_t vxd_svdag_atomic_cas64(uint64_t *at, uint64_t from, uint64_t to)
{
    return atomicCAS((unsigned long long *)at, (unsigned long long)from,
                     (unsigned long long)to);
}

/* A thread that sees a write after the fence also sees this thread's writes before it. */
VXD_SVDAG_DEVICE void vxd_svdag_fence(void)
{
    asm volatile("fence.acq_rel.gpu;" : : : "memory");
}

/* Compare-and-swap with release order: a thread that sees the new word also sees what
 * this thread wrote before. Unlike a fence it leaves the thread's own cache valid.
 * Returns the old word. */
VXD_SVDAG_DEVICE uint32_t vxd_svdag_cas_release(uint32_t *at, uint32_t from, uint32_t to)
{
    uint32_t seen;

    asm volatile("atom.release.gpu.cas.b32 %0, [%1], %2, %3;"
                 : "=r"(seen)
                 : "l"(at), "r"(from), "r"(to)
                 : "memory");
    return seen;
}

/* Publishes what this thread wrote before by setting a free word (0) to a value: threads
 * that read the word with vxd_svdag_load_published see those writes. Returns the old
 * word. */
VXD_SVDAG_DEVICE uint32_t vxd_svdag_publish(uint32_t *at, uint32_t value)
{
    uint32_t seen;

    vxd_svdag_fence();
    seen = atomicCAS(at, 0u, value);
    vxd_svdag_fence();
    return seen;
}

VXD_SVDAG_DEVICE uint32_t vxd_svdag_load_published(const uint32_t *at)
{
    uint32_t seen = *(const volatile uint32_t *)at;

    vxd_svdag_fence();
    return seen;
}

/* Reads a word that other threads may be changing, bypassing this thread's caches. */
VXD_SVDAG_DEVICE uint32_t vxd_svdag_load_volatile(const uint32_t *at)
{
    return *(const volatile uint32_t *)at;
}

VXD_SVDAG_DEVICE uint64_t vxd_svdag_load_volatile64(const uint64_t *at)
{
    return *(const volatile uint64_t *)at;
}

/* Prefetches what is read soon. */
VXD_SVDAG_DEVICE void vxd_svdag_prefetch(const uint32_t *at)
{
    asm volatile("prefetch.global.L2 [%0];" : : "l"(at));
}

/* Reads a bucket in two loads of 16 bytes. */
VXD_SVDAG_DEVICE struct vxd_svdag_index_bucket
vxd_svdag_load_bucket(const struct vxd_svdag_index_bucket *at)
{
    uint4 low = __ldcg((const uint4 *)(const void *)at);
    uint4 high = __ldcg((const uint4 *)(const void *)at + 1);

    return {{low.x, low.y, low.z, low.w, high.x, high.y, high.z}, high.w};
}

/* By all lanes of a warp: the value of the first lane. */
VXD_SVDAG_DEVICE uint64_t vxd_svdag_warp_first(uint64_t value)
{
    return __shfl_sync(UINT32_MAX, (unsigned long long)value, 0);
}

/* By all lanes of a warp: adds the counts of all lanes. */
VXD_SVDAG_DEVICE void vxd_svdag_warp_add(uint64_t *at, uint64_t n)
{
    for (int step = 16; step > 0; step /= 2) {
        n += __shfl_xor_sync(UINT32_MAX, (unsigned long long)n, step);
    }
    if (threadIdx.x % 32 == 0 && n > 0) {
        (void)atomicAdd((unsigned long long *)at, (unsigned long long)n);
    }
}

#endif
