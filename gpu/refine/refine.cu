// SPDX-License-Identifier: Apache-2.0
/* The steps of a refinement on a GPU: a thread an item. Arrays of several numbers a voxel lie one
 * behind the other (VXD_REFINE_AT), so that a warp reads whole lines. Compiled without contraction of
 * products and sums, so results are those of the CPU, bit for bit.
 *
 * The sums of the light's equations (1,692 a chunk of voxels) are made by a block a chunk: rows of 32
 * voxels are made in shared memory, and each thread adds them to its own sums in order. */
#include "gpu/core/core_cuda.h"
#include "gpu/refine/refine_internal.h"

#define N_THREADS 128
#define TILE 32
#define SUMS_A_THREAD ((VXD_REFINE_LIGHT_SUMS + N_THREADS - 1) / N_THREADS)

template <int STEP>
static __device__ __forceinline__ void run_item(const struct vxd_refine_call *call,
                                                size_t i)
{
#define ITEM(name, expression)                                                           \
    if constexpr (STEP == VXD_REFINE_STEP_##name) {                                      \
        expression;                                                                      \
    }
    VXD_REFINE_STEPS(ITEM)
#undef ITEM
}

template <int STEP>
static __global__ void __launch_bounds__(N_THREADS)
    step_kernel(const __grid_constant__ struct vxd_refine_call call)
{
    size_t i = call.begin + (size_t)blockIdx.x * N_THREADS + threadIdx.x;

    if (i < call.end) {
        run_item<STEP>(&call, i);
    }
}

struct light_tile {
    vxd_refine_real harmonics[TILE][9];
    vxd_refine_real corners[TILE][8];
    vxd_refine_real intensity[TILE];
};

/* Which two factors a sum is of: a and b are corners, c and d harmonics; d = 9: the intensity. */
static __device__ void factors_of(int e, int *a, int *b, int *c, int *d)
{
    if (e >= VXD_REFINE_LIGHT_MATRIX) {
        *a = (e - VXD_REFINE_LIGHT_MATRIX) / 9;
        *b = -1;
        *c = (e - VXD_REFINE_LIGHT_MATRIX) % 9;
        *d = 9;
        return;
    }
    int pair = e / 45;
    int product = e % 45;

    *a = 0;
    while (pair >= 8 - *a) {
        pair -= 8 - *a;
        (*a)++;
    }
    *b = *a + pair;
    *c = 0;
    while (product >= 9 - *c) {
        product -= 9 - *c;
        (*c)++;
    }
    *d = *c + product;
}

static __global__ void __launch_bounds__(N_THREADS)
    light_chunk_kernel(const __grid_constant__ struct vxd_refine_call call)
{
    __shared__ struct light_tile tile;
    size_t item = call.begin + blockIdx.x;
    const struct vxd_refine_chunk chunk = call.light.chunks[item];
    vxd_refine_real sums[SUMS_A_THREAD];
    signed char a[SUMS_A_THREAD];
    signed char b[SUMS_A_THREAD];
    signed char c[SUMS_A_THREAD];
    signed char d[SUMS_A_THREAD];

#pragma unroll
    for (int s = 0; s < SUMS_A_THREAD; s++) {
        int e = s * N_THREADS + (int)threadIdx.x;
        int f[4] = {0, 0, 0, 0};

        if (e < VXD_REFINE_LIGHT_SUMS) {
            factors_of(e, &f[0], &f[1], &f[2], &f[3]);
        }
        sums[s] = 0;
        a[s] = (signed char)f[0];
        b[s] = (signed char)f[1];
        c[s] = (signed char)f[2];
        d[s] = (signed char)f[3];
    }
    for (uint32_t first = chunk.begin; first < chunk.end; first += TILE) {
        int n = chunk.end - first < TILE ? (int)(chunk.end - first) : TILE;

        if ((int)threadIdx.x < n) {
            vxd_refine_light_row(&call.view, call.light.order[first + threadIdx.x],
                                 tile.harmonics[threadIdx.x], tile.corners[threadIdx.x],
                                 &tile.intensity[threadIdx.x]);
        }
        __syncthreads();
#pragma unroll
        for (int s = 0; s < SUMS_A_THREAD; s++) {
            for (int k = 0; k < n; k++) {
                vxd_refine_real corner = tile.corners[k][a[s]];
                vxd_refine_real harmonic = tile.harmonics[k][c[s]];

                if (d[s] < 9) {
                    sums[s] += corner * tile.corners[k][b[s]] *
                               (harmonic * tile.harmonics[k][d[s]]);
                } else {
                    sums[s] += corner * (harmonic * tile.intensity[k]);
                }
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (int s = 0; s < SUMS_A_THREAD; s++) {
        int e = s * N_THREADS + (int)threadIdx.x;

        if (e < VXD_REFINE_LIGHT_SUMS) {
            call.light.chunk_sums[item * VXD_REFINE_LIGHT_SUMS + (size_t)e] = sums[s];
        }
    }
}

template <int STEP>
static void launch(cudaStream_t stream, const struct vxd_refine_call *call)
{
    size_t n = call->end - call->begin;
    dim3 grid((unsigned)((n + N_THREADS - 1) / N_THREADS));

    step_kernel<STEP><<<grid, N_THREADS, 0, stream>>>(*call);
}

enum vxd_status vxd_refine_run_cuda(struct vxd_queue *queue,
                                    const struct vxd_refine_call *call,
                                    struct vxd_err *err)
{
    cudaStream_t stream = (cudaStream_t)queue->stream;
    enum vxd_status status;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    if (call->step == VXD_REFINE_STEP_LIGHT_CHUNK) {
        dim3 grid((unsigned)(call->end - call->begin));

        light_chunk_kernel<<<grid, N_THREADS, 0, stream>>>(*call);
    } else {
        switch (call->step) {
#define LAUNCH(name, expression)                                                         \
    case VXD_REFINE_STEP_##name:                                                         \
        launch<VXD_REFINE_STEP_##name>(stream, call);                                    \
        break;
            VXD_REFINE_STEPS(LAUNCH)
#undef LAUNCH
        default:
            break;
        }
    }
    VXD_TRY(vxd_cuda_launched(queue->context, "step_kernel", err));
out:
    return status;
}
