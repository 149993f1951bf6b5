// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/support/floors.h"

#include <stdlib.h>

#include <cuda_runtime.h>

/* Several waves on any GPU of today. */
#define N_BLOCKS 8192

struct vxd_bench_clock {
    cudaStream_t stream;
    cudaEvent_t start;
    cudaEvent_t stop;
};

struct vxd_bench_clock *vxd_bench_clock_create(struct vxd_queue *queue)
{
    struct vxd_bench_clock *clock =
        (struct vxd_bench_clock *)calloc(1, sizeof(struct vxd_bench_clock));

    if (clock == NULL) {
        return NULL;
    }
    clock->stream = (cudaStream_t)vxd_queue_stream(queue);
    if (cudaEventCreate(&clock->start) != cudaSuccess ||
        cudaEventCreate(&clock->stop) != cudaSuccess) {
        vxd_bench_clock_destroy(clock);
        return NULL;
    }
    return clock;
}

void vxd_bench_clock_destroy(struct vxd_bench_clock *clock)
{
    if (clock == NULL) {
        return;
    }
    if (clock->start != NULL) {
        (void)cudaEventDestroy(clock->start);
    }
    if (clock->stop != NULL) {
        (void)cudaEventDestroy(clock->stop);
    }
    free(clock);
}

bool vxd_bench_clock_start(struct vxd_bench_clock *clock)
{
    return cudaEventRecord(clock->start, clock->stream) == cudaSuccess;
}

bool vxd_bench_clock_stop(struct vxd_bench_clock *clock)
{
    return cudaEventRecord(clock->stop, clock->stream) == cudaSuccess;
}

float vxd_bench_clock_ms(struct vxd_bench_clock *clock)
{
    float ms = -1.0f;

    return cudaEventElapsedTime(&ms, clock->start, clock->stop) == cudaSuccess ? ms
                                                                               : -1.0f;
}

/* A random place below n for access i. */
static __device__ size_t random_place(size_t i, size_t n)
{
    uint64_t hash = i * 0x9e3779b97f4a7c15ULL;

    hash ^= hash >> 29;
    hash *= 0xbf58476d1ce4e5b9ULL;
    return (size_t)__umul64hi(hash, n);
}

/* The sum is stored only if it is a value that it never is, so that no read is dropped. */
static __global__ void gather_kernel(const uint4 *buffer, size_t n_pieces, size_t n_reads,
                                     uint4 *never)
{
    size_t stride = (size_t)gridDim.x * blockDim.x;
    uint32_t sum = 0;

    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n_reads;
         i += stride) {
        size_t piece = random_place(i, n_pieces);
        uint4 low = buffer[2 * piece];
        uint4 high = buffer[2 * piece + 1];

        sum |= low.x ^ low.y ^ high.z ^ high.w;
    }
    if (sum == 0x12345678) {
        *never = make_uint4(sum, 0, 0, 0);
    }
}

bool vxd_bench_gather(struct vxd_queue *queue, const void *buffer, size_t n_bytes,
                      size_t n_reads)
{
    gather_kernel<<<N_BLOCKS, 256, 0, (cudaStream_t)vxd_queue_stream(queue)>>>(
        (const uint4 *)buffer, n_bytes / 32, n_reads, (uint4 *)buffer);
    return cudaGetLastError() == cudaSuccess;
}

static __global__ void cas_kernel(unsigned long long *buffer, size_t n_words,
                                  size_t n_swaps)
{
    size_t stride = (size_t)gridDim.x * blockDim.x;

    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n_swaps;
         i += stride) {
        (void)atomicCAS(&buffer[random_place(i, n_words)], 0ULL,
                        (unsigned long long)i + 1);
    }
}

bool vxd_bench_cas(struct vxd_queue *queue, void *buffer, size_t n_bytes, size_t n_swaps)
{
    cas_kernel<<<N_BLOCKS, 256, 0, (cudaStream_t)vxd_queue_stream(queue)>>>(
        (unsigned long long *)buffer, n_bytes / 8, n_swaps);
    return cudaGetLastError() == cudaSuccess;
}
