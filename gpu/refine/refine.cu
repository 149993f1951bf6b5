// SPDX-License-Identifier: Apache-2.0
/* The steps of a refinement on a GPU: a thread an item. Arrays of several numbers a voxel lie one
 * behind the other (VXD_REFINE_AT), so that a warp reads whole lines. Compiled without contraction of
 * products and sums, so results are those of the CPU, bit for bit.
 *
 * A step that ends with a sum has a block a chunk of terms, and the last block sums the chunks. The light's
 * equations (1,692 sums a chunk of voxels) are a product of matrices, 36 pairs of corners by 45 pairs of
 * harmonics: a block a chunk makes their factors for 32 voxels in shared memory, and each thread adds 4 x 3
 * of the products to its registers in the voxels' order. A keyframe's equations are a block a part, and a
 * bin of the first albedo is a block. */
#include "gpu/core/core_cuda.h"
#include "gpu/refine/refine_internal.h"

#define N_THREADS 128
#define TILE 32
#define TILE_PAIRS                                                                       \
    4 /* of a thread: so many pairs of corners (a float4) by so many of harmonics */
#define TILE_PRODUCTS 3
#define TILE_COLUMNS (45 / TILE_PRODUCTS)
#define N_TILES (36 / TILE_PAIRS * TILE_COLUMNS)
#define RIGHT_THREAD 160 /* the first of 24 threads that make the right sides */
#define LIGHT_THREADS 192

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

/* Sums of a block's lanes in halves; thread 0 has the result. */
static __device__ double sum_lanes(double sum, double lanes[VXD_REFINE_LANES])
{
    lanes[threadIdx.x] = sum;
    __syncthreads();
    for (int half = VXD_REFINE_LANES / 2; half >= 32; half /= 2) {
        if ((int)threadIdx.x < half) {
            sum += lanes[threadIdx.x + half];
            lanes[threadIdx.x] = sum;
        }
        __syncthreads();
    }
    for (int half = 16; half > 0; half /= 2) {
        sum += __shfl_down_sync(UINT32_MAX, sum, half);
    }
    return sum;
}

template <int STEP>
static __global__ void __launch_bounds__(VXD_REFINE_LANES)
    sum_kernel(const __grid_constant__ struct vxd_refine_call call)
{
    __shared__ double lanes[VXD_REFINE_LANES];
    __shared__ int is_last;
    size_t n_chunks = (call.n_items + VXD_REFINE_LANES - 1) / VXD_REFINE_LANES;
    size_t i = call.begin + (size_t)blockIdx.x * VXD_REFINE_LANES + threadIdx.x;
    double sum = 0;

    if (i < call.end) {
        run_item<STEP>(&call, i);
        sum = vxd_refine_term(&call.view, &call.solve, i);
    }
    sum = sum_lanes(sum, lanes);
    if (threadIdx.x == 0) {
        call.solve.partial[call.begin / VXD_REFINE_LANES + blockIdx.x] = sum;
        __threadfence();
        is_last = atomicAdd(call.solve.n_chunks, 1U) + 1 == n_chunks ? 1 : 0;
        __threadfence();
    }
    __syncthreads();
    if (is_last == 0) {
        return;
    }
    sum = sum_lanes(vxd_refine_lane_total(call.solve.partial, n_chunks, threadIdx.x),
                    lanes);
    if (threadIdx.x == 0) {
        vxd_refine_set_total(&call.solve, sum);
        *call.solve.n_chunks = 0;
    }
}

struct light_tile {
    float4 pairs[TILE][36 / TILE_PAIRS];
    float products[TILE][45];
    float corners[TILE][9]; /* one more, for the banks of shared memory */
    float harmonics[TILE][9];
    float shown[TILE][9]; /* harmonics times intensity */
};

/* Which pair i <= j of n things a number is. */
static __device__ void find_pair(int number, int n, int *i, int *j)
{
    *i = 0;
    while (number >= n - *i) {
        number -= n - *i;
        (*i)++;
    }
    *j = *i + number;
}

/* Makes the factors of n voxels; those of more are 0. */
static __device__ void make_tile(const struct vxd_refine_call *call, uint32_t first,
                                 int n, struct light_tile *tile)
{
    int thread = (int)threadIdx.x;

    if (thread < TILE) {
        vxd_refine_real intensity = 0;

        for (int k = 0; k < 9; k++) {
            tile->harmonics[thread][k] = 0;
        }
        for (int k = 0; k < 8; k++) {
            tile->corners[thread][k] = 0;
        }
        if (thread < n) {
            vxd_refine_light_row(&call->view, call->light.order[first + thread],
                                 tile->harmonics[thread], tile->corners[thread],
                                 &intensity);
        }
        for (int k = 0; k < 9; k++) {
            tile->shown[thread][k] = tile->harmonics[thread][k] * intensity;
        }
    }
    __syncthreads();
    for (int e = thread / TILE; e < 36 + 45; e += LIGHT_THREADS / TILE) {
        int voxel = thread % TILE;
        int i;
        int j;

        if (e < 36) {
            find_pair(e, 8, &i, &j);
            ((float *)tile->pairs[voxel])[e] =
                tile->corners[voxel][i] * tile->corners[voxel][j];
        } else {
            find_pair(e - 36, 9, &i, &j);
            tile->products[voxel][e - 36] =
                tile->harmonics[voxel][i] * tile->harmonics[voxel][j];
        }
    }
    __syncthreads();
}

static __global__ void __launch_bounds__(LIGHT_THREADS)
    light_chunk_kernel(const __grid_constant__ struct vxd_refine_call call)
{
    __shared__ struct light_tile tile;
    size_t item = call.begin + blockIdx.x;
    const struct vxd_refine_chunk chunk = call.light.chunks[item];
    vxd_refine_real *to = call.light.chunk_sums + item * VXD_REFINE_LIGHT_SUMS;
    int thread = (int)threadIdx.x;
    int right = thread - RIGHT_THREAD;
    int row = thread / TILE_COLUMNS * TILE_PAIRS;
    int column = thread % TILE_COLUMNS * TILE_PRODUCTS;
    vxd_refine_real sums[TILE_PAIRS][TILE_PRODUCTS] = {};

    for (uint32_t first = chunk.begin; first < chunk.end; first += TILE) {
        int n = chunk.end - first < TILE ? (int)(chunk.end - first) : TILE;

        make_tile(&call, first, n, &tile);
        for (int k = 0; k < n && thread < N_TILES; k++) {
            float4 pairs = tile.pairs[k][row / TILE_PAIRS];

#pragma unroll
            for (int q = 0; q < TILE_PRODUCTS; q++) {
                float product = tile.products[k][column + q];

                sums[0][q] += pairs.x * product;
                sums[1][q] += pairs.y * product;
                sums[2][q] += pairs.z * product;
                sums[3][q] += pairs.w * product;
            }
        }
        for (int k = 0; k < n && right >= 0 && right < 24; k++) {
#pragma unroll
            for (int q = 0; q < TILE_PRODUCTS; q++) {
                sums[0][q] +=
                    tile.corners[k][right / 3] * tile.shown[k][right % 3 * 3 + q];
            }
        }
        __syncthreads();
    }
    for (int q = 0; q < TILE_PRODUCTS; q++) {
        for (int p = 0; p < TILE_PAIRS && thread < N_TILES; p++) {
            to[(row + p) * 45 + column + q] = sums[p][q];
        }
        if (right >= 0 && right < 24) {
            to[VXD_REFINE_LIGHT_MATRIX + 3 * right + q] = sums[0][q];
        }
    }
}

static __global__ void __launch_bounds__(VXD_REFINE_BIN_LANES)
    bin_kernel(const __grid_constant__ struct vxd_refine_call call)
{
    __shared__ double lanes[2][VXD_REFINE_BIN_LANES];
    size_t bin = call.begin + blockIdx.x;
    int lane = (int)threadIdx.x;

    vxd_refine_bin_lane(&call.bins, bin, lane, &lanes[0][lane], &lanes[1][lane]);
    __syncthreads();
    for (int half = VXD_REFINE_BIN_LANES / 2; half > 0; half /= 2) {
        if (lane < half) {
            lanes[0][lane] += lanes[0][lane + half];
            lanes[1][lane] += lanes[1][lane + half];
        }
        __syncthreads();
    }
    if (lane == 0) {
        vxd_refine_bin_end(&call.bins, bin, lanes[0][0], lanes[1][0]);
    }
}

/* Number k of n_unknowns' sums in the array of all. */
template <int N_UNKNOWNS> static __device__ __forceinline__ int place_of(int k)
{
    constexpr int n_matrix = N_UNKNOWNS * (N_UNKNOWNS + 1) / 2;

    return k < n_matrix ? k : VXD_REFINE_POSE_RIGHT(k - n_matrix);
}

template <int N_UNKNOWNS>
static __global__ void __launch_bounds__(VXD_REFINE_POSE_LANES)
    pose_kernel(const __grid_constant__ struct vxd_refine_call call)
{
    constexpr int n_sums = N_UNKNOWNS * (N_UNKNOWNS + 1) / 2 + N_UNKNOWNS;
    __shared__ float lanes[n_sums][VXD_REFINE_POSE_LANES];
    size_t item = call.begin + blockIdx.x;
    size_t n_parts = call.view.n_pose_parts;
    vxd_refine_real *to = call.view.pose_sums + item * VXD_REFINE_POSE_SUMS;
    vxd_refine_real sums[VXD_REFINE_POSE_SUMS] = {0};
    int lane = (int)threadIdx.x % 32;
    size_t begin;
    size_t end;

    vxd_refine_pose_range(&call.view, item % n_parts, &begin, &end);
    vxd_refine_pose_lane(&call.view, &call.pose, item / n_parts, begin + threadIdx.x, end,
                         N_UNKNOWNS, sums);
#pragma unroll
    for (int k = 0; k < n_sums; k++) {
        lanes[k][threadIdx.x] = sums[place_of<N_UNKNOWNS>(k)];
    }
    __syncthreads();
    for (int k = (int)threadIdx.x / 32; k < n_sums; k += VXD_REFINE_POSE_LANES / 32) {
        float sum = (lanes[k][lane] + lanes[k][lane + 64]) +
                    (lanes[k][lane + 32] + lanes[k][lane + 96]);

        for (int half = 16; half > 0; half /= 2) {
            sum += __shfl_down_sync(UINT32_MAX, sum, half);
        }
        if (lane == 0) {
            to[place_of<N_UNKNOWNS>(k)] = sum;
        }
    }
}

template <int STEP>
static void launch(cudaStream_t stream, const struct vxd_refine_call *call)
{
    constexpr bool can_sum =
        STEP == VXD_REFINE_STEP_SUM || STEP == VXD_REFINE_STEP_BEGIN ||
        STEP == VXD_REFINE_STEP_ADVANCE || STEP == VXD_REFINE_STEP_GATHER ||
        STEP == VXD_REFINE_STEP_LIGHT_GATHER;
    constexpr bool has_blocks = STEP == VXD_REFINE_STEP_LIGHT_CHUNK ||
                                STEP == VXD_REFINE_STEP_BIN ||
                                STEP == VXD_REFINE_STEP_POSE;
    size_t n = call->end - call->begin;

    if constexpr (can_sum) {
        if (call->solve.kind != VXD_REFINE_SUM_NONE) {
            dim3 grid((unsigned)((n + VXD_REFINE_LANES - 1) / VXD_REFINE_LANES));

            sum_kernel<STEP><<<grid, VXD_REFINE_LANES, 0, stream>>>(*call);
            return;
        }
    }
    if constexpr (!has_blocks) { /* theirs are launch_blocks' */
        dim3 grid((unsigned)((n + N_THREADS - 1) / N_THREADS));

        step_kernel<STEP><<<grid, N_THREADS, 0, stream>>>(*call);
    }
}

/* Launches a step that has a block an item; false where it has none. */
static bool launch_blocks(cudaStream_t stream, const struct vxd_refine_call *call)
{
    dim3 grid((unsigned)(call->end - call->begin));

    switch (call->step) {
    case VXD_REFINE_STEP_LIGHT_CHUNK:
        light_chunk_kernel<<<grid, LIGHT_THREADS, 0, stream>>>(*call);
        return true;
    case VXD_REFINE_STEP_BIN:
        bin_kernel<<<grid, VXD_REFINE_BIN_LANES, 0, stream>>>(*call);
        return true;
    case VXD_REFINE_STEP_POSE:
        if (call->view.has_intrinsics) {
            pose_kernel<VXD_REFINE_POSE>
                <<<grid, VXD_REFINE_POSE_LANES, 0, stream>>>(*call);
        } else {
            pose_kernel<6><<<grid, VXD_REFINE_POSE_LANES, 0, stream>>>(*call);
        }
        return true;
    default:
        return false;
    }
}

enum vxd_status vxd_refine_run_cuda(struct vxd_queue *queue,
                                    const struct vxd_refine_call *call,
                                    struct vxd_err *err)
{
    cudaStream_t stream = (cudaStream_t)queue->stream;
    enum vxd_status status;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    if (!launch_blocks(stream, call)) {
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
