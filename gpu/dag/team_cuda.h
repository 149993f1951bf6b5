// SPDX-License-Identifier: Apache-2.0
/* Threads that work on the same rows, and what they do together: a whole cooperative grid, or
 * the threads of its first block alone, for which a barrier costs a tenth. */
#ifndef VXD_GPU_DAG_TEAM_CUDA_H
#define VXD_GPU_DAG_TEAM_CUDA_H

#include <cooperative_groups.h>

#include "gpu/dag/index_math.h"

#define VXD_DAG_DEVICE static __device__ __forceinline__

/* Steps of a pass are called, so that each has all registers for itself. */
#define VXD_DAG_STEP static __device__ __noinline__

/* Threads of a block; a multiple of 32, at most 1024. */
#define VXD_DAG_TEAM_THREADS 512
#define VXD_DAG_TEAM_WARPS (VXD_DAG_TEAM_THREADS / 32)

struct vxd_dag_team {
    uint32_t first; /* of this thread's block: rows first + thread, then every size-th */
    uint32_t thread;
    uint32_t size;
    bool is_grid;
};

VXD_DAG_DEVICE struct vxd_dag_team vxd_dag_team_of_grid(void)
{
    return {blockIdx.x * blockDim.x, threadIdx.x, gridDim.x * blockDim.x, true};
}

/* Of the first block, for its own threads. */
VXD_DAG_DEVICE struct vxd_dag_team vxd_dag_team_of_block(void)
{
    return {0, threadIdx.x, blockDim.x, false};
}

VXD_DAG_DEVICE bool vxd_dag_is_first_block(void)
{
    return blockIdx.x == 0;
}

/* By all threads of the team: what each wrote before is seen by all after. */
VXD_DAG_DEVICE void vxd_dag_team_sync(const struct vxd_dag_team *team)
{
    if (team->is_grid) {
        cooperative_groups::this_grid().sync();
    } else {
        __syncthreads();
    }
}

VXD_DAG_DEVICE uint64_t vxd_dag_atomic_add(uint64_t *at, uint64_t n)
{
    return atomicAdd((unsigned long long *)at, (unsigned long long)n);
}

VXD_DAG_DEVICE void vxd_dag_atomic_or(uint32_t *at, uint32_t bits)
{
    (void)atomicOr(at, bits);
}

VXD_DAG_DEVICE void vxd_dag_atomic_or64(uint64_t *at, uint64_t bits)
{
    (void)atomicOr((unsigned long long *)at, (unsigned long long)bits);
}

VXD_DAG_DEVICE uint32_t vxd_dag_atomic_cas(uint32_t *at, uint32_t from, uint32_t to)
{
    return atomicCAS(at, from, to);
}

VXD_DAG_DEVICE uint64_t vxd_dag_atomic_cas64(uint64_t *at, uint64_t from, uint64_t to)
{
    return atomicCAS((unsigned long long *)at, (unsigned long long)from,
                     (unsigned long long)to);
}

/* Takes a free word (0) for what this thread wrote before: who reads the word by these, reads
 * that too. Returns what it was. */
VXD_DAG_DEVICE uint32_t vxd_dag_publish(uint32_t *at, uint32_t value)
{
    uint32_t seen;

    __threadfence();
    seen = atomicCAS(at, 0u, value);
    __threadfence();
    return seen;
}

VXD_DAG_DEVICE uint32_t vxd_dag_load_published(const uint32_t *at)
{
    uint32_t seen = *(const volatile uint32_t *)at;

    __threadfence();
    return seen;
}

/* What other threads may be changing, past the caches of this one. */
VXD_DAG_DEVICE uint32_t vxd_dag_load_now(const uint32_t *at)
{
    return *(const volatile uint32_t *)at;
}

VXD_DAG_DEVICE uint64_t vxd_dag_load_now64(const uint64_t *at)
{
    return *(const volatile uint64_t *)at;
}

/* A bucket in two loads of 16 bytes. */
VXD_DAG_DEVICE struct vxd_dag_index_bucket
vxd_dag_load_bucket_now(const struct vxd_dag_index_bucket *at)
{
    uint4 low = __ldcg((const uint4 *)(const void *)at);
    uint4 high = __ldcg((const uint4 *)(const void *)at + 1);

    return {{low.x, low.y, low.z, low.w, high.x, high.y},
            (uint64_t)high.w << 32 | high.z};
}

/* By all lanes of a warp: adds the sum of their n to *at, and gives each the sum from which
 * its own n begins; *total is that of the warp. */
VXD_DAG_DEVICE uint64_t vxd_dag_warp_take(uint64_t *at, uint32_t n, uint32_t *total)
{
    int lane = (int)(threadIdx.x % 32);
    uint32_t sum = n;
    unsigned long long begin = 0;

    for (int step = 1; step < 32; step *= 2) {
        uint32_t before = __shfl_up_sync(UINT32_MAX, sum, step);

        sum += lane >= step ? before : 0;
    }
    *total = __shfl_sync(UINT32_MAX, sum, 31);
    if (lane == 31 && sum > 0) {
        begin = atomicAdd((unsigned long long *)at, (unsigned long long)sum);
    }
    begin = __shfl_sync(UINT32_MAX, begin, 31);
    return begin + sum - n;
}

/* By all lanes of a warp: what the first one has. */
VXD_DAG_DEVICE uint64_t vxd_dag_warp_first(uint64_t value)
{
    return __shfl_sync(UINT32_MAX, (unsigned long long)value, 0);
}

/* By all lanes of a warp: adds what they counted. */
VXD_DAG_DEVICE void vxd_dag_warp_add(uint64_t *at, uint64_t n)
{
    for (int step = 16; step > 0; step /= 2) {
        n += __shfl_xor_sync(UINT32_MAX, (unsigned long long)n, step);
    }
    if (threadIdx.x % 32 == 0 && n > 0) {
        (void)atomicAdd((unsigned long long *)at, (unsigned long long)n);
    }
}

/* Rows of two lists. */
struct vxd_dag_rows_taken {
    uint64_t a;
    uint64_t b;
};

/* By all threads of a block: a row of list a for each that wants one, and of list b, numbered
 * on from the lists' counts; one atomic a block and list. */
VXD_DAG_DEVICE struct vxd_dag_rows_taken vxd_dag_block_take(uint64_t *a, bool wants_a,
                                                            uint64_t *b, bool wants_b)
{
    __shared__ uint32_t before[2][VXD_DAG_TEAM_WARPS];
    __shared__ unsigned long long begin[2];
    uint32_t warp = threadIdx.x / 32;
    uint32_t below = (1u << threadIdx.x % 32) - 1;
    uint32_t in_a = __ballot_sync(UINT32_MAX, wants_a);
    uint32_t in_b = __ballot_sync(UINT32_MAX, wants_b);

    if (threadIdx.x % 32 == 0) {
        before[0][warp] = (uint32_t)__popc(in_a);
        before[1][warp] = (uint32_t)__popc(in_b);
    }
    __syncthreads();
    if (threadIdx.x < 2) {
        uint32_t sum = 0;

        for (uint32_t i = 0; i < VXD_DAG_TEAM_WARPS; i++) {
            uint32_t n = before[threadIdx.x][i];

            before[threadIdx.x][i] = sum;
            sum += n;
        }
        if (sum > 0) {
            begin[threadIdx.x] =
                atomicAdd((unsigned long long *)(threadIdx.x == 0 ? a : b),
                          (unsigned long long)sum);
        }
    }
    __syncthreads();
    /* Nobody writes these words again before all have come to the next call's barrier. */
    return {begin[0] + before[0][warp] + (uint32_t)__popc(in_a & below),
            begin[1] + before[1][warp] + (uint32_t)__popc(in_b & below)};
}

#endif
