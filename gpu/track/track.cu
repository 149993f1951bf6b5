// SPDX-License-Identifier: Apache-2.0
/* Tracking on a GPU. A thread makes a pixel of an image, a thread block a tile of 32 x 8 with the
 * pixels around it in shared memory. For the normal equations a thread block takes a strip of 512
 * pixels, a thread one, and adds what they give. All steps of a level are one launch: after a barrier
 * over the grid each thread block adds the strips and takes the step by itself, so that no step waits
 * for another thread block a second time, nor for the host. All arithmetic is in track_math.h.
 *
 * Moved a step of 640 x 480 pixels: 28 bytes of the image and as many of the model a pixel, 17 MB,
 * from the second-level cache mostly. */
#include "gpu/core/core_cuda.h"
#include "gpu/track/track_internal.h"

/* ---- The image ---- */

#define TILE_WIDTH 32
#define TILE_HEIGHT 8
#define N_THREADS (TILE_WIDTH * TILE_HEIGHT)

/* Pixels around a tile that its normals need, and those that their filtered depths need. */
#define AROUND VXD_TRACK_NORMAL_STEP
#define POINTS_WIDTH (TILE_WIDTH + 2 * AROUND)
#define POINTS_HEIGHT (TILE_HEIGHT + 2 * AROUND)
#define N_POINTS (POINTS_WIDTH * POINTS_HEIGHT)
#define DEPTHS_WIDTH (POINTS_WIDTH + 2 * VXD_TRACK_FILTER_RADIUS)
#define DEPTHS_HEIGHT (POINTS_HEIGHT + 2 * VXD_TRACK_FILTER_RADIUS)
#define N_DEPTHS (DEPTHS_WIDTH * DEPTHS_HEIGHT)

struct tile {
    float depths[N_DEPTHS]; /* of the image's nearest pixel, where outside of it */
    float points[3][N_POINTS];
};

static __device__ __forceinline__ int within(int at, int n)
{
    return at < 0 ? 0 : at < n ? at : n - 1;
}

/* Fills the depths of a tile whose first pixel is (left, top). */
static __device__ __forceinline__ void load_depths(const struct vxd_track_live_call *call,
                                                   int left, int top, struct tile *tile)
{
    left -= AROUND + VXD_TRACK_FILTER_RADIUS;
    top -= AROUND + VXD_TRACK_FILTER_RADIUS;
    for (int i = (int)threadIdx.x; i < N_DEPTHS; i += N_THREADS) {
        int u = within(left + i % DEPTHS_WIDTH, call->image.width);
        int v = within(top + i / DEPTHS_WIDTH, call->image.height);

        tile->depths[i] = vxd_track_mean_depth(&call->source, u, v);
    }
    __syncthreads();
}

static __device__ __forceinline__ float filter(const float *at)
{
    float inverse = vxd_track_filter_inverse(*at);
    float sum = 0;
    float weights = 0;

#pragma unroll
    for (int dv = -VXD_TRACK_FILTER_RADIUS; dv <= VXD_TRACK_FILTER_RADIUS; dv++) {
#pragma unroll
        for (int du = -VXD_TRACK_FILTER_RADIUS; du <= VXD_TRACK_FILTER_RADIUS; du++) {
            vxd_track_add_neighbour(*at, inverse, at[dv * DEPTHS_WIDTH + du],
                                    (float)(du * du + dv * dv), &sum, &weights);
        }
    }
    return vxd_track_filtered(*at, sum, weights);
}

/* Fills the points of a tile, and writes those of its own pixels. */
static __device__ __forceinline__ void make_points(const struct vxd_track_live_call *call,
                                                   int left, int top, struct tile *tile)
{
    for (int i = (int)threadIdx.x; i < N_POINTS; i += N_THREADS) {
        int x = i % POINTS_WIDTH;
        int y = i / POINTS_WIDTH;
        int u = left - AROUND + x;
        int v = top - AROUND + y;
        const float *depth = tile->depths + (y + VXD_TRACK_FILTER_RADIUS) * DEPTHS_WIDTH +
                             x + VXD_TRACK_FILTER_RADIUS;
        float p[3] = {0, 0, 0};

        if (u >= 0 && v >= 0 && u < call->image.width && v < call->image.height) {
            vxd_track_point(&call->source, u, v,
                            call->is_filtered ? filter(depth) : *depth, p);
            if (x >= AROUND && x < AROUND + TILE_WIDTH && y >= AROUND &&
                y < AROUND + TILE_HEIGHT) {
                vxd_track_put_point(&call->source, &call->image, u, v, p);
            }
        }
        for (int axis = 0; axis < 3; axis++) {
            tile->points[axis][i] = p[axis];
        }
    }
    __syncthreads();
}

static __device__ __forceinline__ void take_point(const struct tile *tile, int x, int y,
                                                  float p[3])
{
    for (int axis = 0; axis < 3; axis++) {
        p[axis] = tile->points[axis][y * POINTS_WIDTH + x];
    }
}

static __global__ void __launch_bounds__(N_THREADS)
    live_kernel(const __grid_constant__ struct vxd_track_live_call call)
{
    __shared__ struct tile tile;
    int left = (int)blockIdx.x * TILE_WIDTH;
    int top = (int)blockIdx.y * TILE_HEIGHT;
    int x = (int)threadIdx.x % TILE_WIDTH;
    int y = (int)threadIdx.x / TILE_WIDTH;
    float at[3];
    float sides[4][3];
    float normal[3];

    if (blockIdx.x == 0 && blockIdx.y == 0 && threadIdx.x < VXD_TRACK_N_ITERATE_CALLS) {
        call.arrived[threadIdx.x] = 0;
        if (threadIdx.x == 0) {
            vxd_track_begin(call.work);
        }
    }
    load_depths(&call, left, top, &tile);
    make_points(&call, left, top, &tile);
    if (left + x >= call.image.width || top + y >= call.image.height) {
        return;
    }
    take_point(&tile, x + AROUND, y + AROUND, at);
    at[2] = vxd_track_is_rim(&call.image, left + x, top + y) ? 0 : at[2];
    take_point(&tile, x, y + AROUND, sides[0]);
    take_point(&tile, x + 2 * AROUND, y + AROUND, sides[1]);
    take_point(&tile, x + AROUND, y, sides[2]);
    take_point(&tile, x + AROUND, y + 2 * AROUND, sides[3]);
    vxd_track_normal(at, sides[0], sides[1], sides[2], sides[3], normal);
    for (int axis = 0; axis < 3; axis++) {
        call.image
            .planes[(size_t)(VXD_TRACK_NX + axis) * call.image.n +
                    (size_t)(top + y) * (size_t)call.image.width + (size_t)(left + x)] =
            normal[axis];
    }
}

enum vxd_status vxd_track_live_cuda(struct vxd_queue *queue,
                                    const struct vxd_track_live_call *call,
                                    struct vxd_err *err)
{
    dim3 grid((unsigned)(call->image.width + TILE_WIDTH - 1) / TILE_WIDTH,
              (unsigned)(call->image.height + TILE_HEIGHT - 1) / TILE_HEIGHT);
    enum vxd_status status;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    live_kernel<<<grid, N_THREADS, 0, (cudaStream_t)queue->stream>>>(*call);
    VXD_TRY(vxd_cuda_launched(queue->context, "live_kernel", err));
out:
    return status;
}

/* ---- The model, and the pyramids ---- */

/* A thread block makes a square of so many pixels a side of the second level, and what lies above and
 * below it. */
#define HALF_SIDE 16
static_assert(HALF_SIDE >> (VXD_TRACK_MAX_LEVELS - 2) >= 1, "a square has all levels");

static __device__ __forceinline__ void
put_model(const struct vxd_track_pyramids_call *call, int u, int v)
{
    if (u < call->model[0].width && v < call->model[0].height) {
        vxd_track_put_model(&call->model[0], &call->camera, call->to_camera, call->depth,
                            call->normal, call->colour, u, v);
    }
}

static __global__ void __launch_bounds__(HALF_SIDE *HALF_SIDE)
    pyramids_kernel(const __grid_constant__ struct vxd_track_pyramids_call call)
{
    const struct vxd_track_image *images = blockIdx.z == 0 ? call.live : call.model;
    int x = (int)threadIdx.x % HALF_SIDE;
    int y = (int)threadIdx.x / HALF_SIDE;

    if (blockIdx.z != 0) {
        for (int i = 0; i < 4; i++) {
            put_model(&call, ((int)blockIdx.x * 2 + i % 2) * HALF_SIDE + x,
                      ((int)blockIdx.y * 2 + i / 2) * HALF_SIDE + y);
        }
    }
    for (int k = 1; k < call.n_levels; k++) {
        int side = HALF_SIDE >> (k - 1);
        int u = (int)blockIdx.x * side + x;
        int v = (int)blockIdx.y * side + y;

        __syncthreads();
        if (x < side && y < side && u < images[k].width && v < images[k].height) {
            vxd_track_put_half(&images[k - 1], &images[k], u, v);
        }
    }
}

enum vxd_status vxd_track_pyramids_cuda(struct vxd_queue *queue,
                                        const struct vxd_track_pyramids_call *call,
                                        struct vxd_err *err)
{
    const unsigned side = 2 * HALF_SIDE;
    dim3 grid(((unsigned)call->model[0].width + side - 1) / side,
              ((unsigned)call->model[0].height + side - 1) / side, 2);
    enum vxd_status status;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    pyramids_kernel<<<grid, HALF_SIDE * HALF_SIDE, 0, (cudaStream_t)queue->stream>>>(
        *call);
    VXD_TRY(vxd_cuda_launched(queue->context, "pyramids_kernel", err));
out:
    return status;
}

/* ---- Rows, sums and steps ---- */

#define N_SUMS VXD_TRACK_N_SUMS
#define STRIP_THREADS VXD_TRACK_STRIP
#define N_WARPS (STRIP_THREADS / 32)
#define SUMS_AT_ONCE (N_SUMS / 3)
#define SUMS_A_WARP ((N_SUMS + N_WARPS - 1) / N_WARPS)
#define STRIPS_AT_ONCE 5
#define WORK_WORDS (sizeof(struct vxd_track_work) / sizeof(uint32_t))
static_assert(VXD_TRACK_STRIP == 512 && VXD_TRACK_LANES == 128 &&
                  VXD_TRACK_STRIP_LANES == 32,
              "pixels are added by warps");
static_assert(WORK_WORDS <= STRIP_THREADS, "a thread copies a word of the work");

/* What a thread block keeps in shared memory: a third of the pixels' values at a time, which the
 * warps add at once. */
struct steps {
    struct vxd_track_work work;
    float values[SUMS_AT_ONCE][STRIP_THREADS];
};

/* The values of a thread's pixel; zeros where the image has ended. */
template <bool USE_GREY>
static __device__ __forceinline__ void find_values(const struct vxd_track_level *level,
                                                   const float T[12], size_t pixel,
                                                   float values[N_SUMS])
{
    struct vxd_track_pair pair;
    int32_t corner;
    int32_t at;

#pragma unroll
    for (int k = 0; k < N_SUMS; k++) {
        values[k] = 0;
    }
    if (pixel >= level->live.n) {
        return;
    }
    at = vxd_track_associate(level, T, pixel, &pair, &corner);
    vxd_track_fetch(level, at, &pair);
    if (USE_GREY) {
        vxd_track_fetch_corners(level, corner, &pair);
    }
    vxd_track_add_pair(level, &pair, values, 1);
}

/* Adds some of a strip's sums: the pixels of each lane one after the other, the lanes pairwise; a warp
 * takes a sum at a time. */
static __device__ __forceinline__ void add_pixels(const struct steps *steps, int first,
                                                  size_t n_strips, size_t strip,
                                                  float *strips)
{
    unsigned warp = threadIdx.x / 32;
    unsigned lane = threadIdx.x % 32;

    for (unsigned k = warp; k < SUMS_AT_ONCE; k += N_WARPS) {
        float lanes[VXD_TRACK_LANES / 32];
        float sum;

#pragma unroll
        for (unsigned i = 0; i < VXD_TRACK_LANES / 32; i++) {
            const float *values = steps->values[k] + i * 32 + lane;

            lanes[i] = values[0];
#pragma unroll
            for (unsigned at = VXD_TRACK_LANES; at < VXD_TRACK_STRIP;
                 at += VXD_TRACK_LANES) {
                lanes[i] = vxd_addf(lanes[i], values[at]);
            }
        }
        sum = vxd_addf(vxd_addf(lanes[0], lanes[2]), vxd_addf(lanes[1], lanes[3]));
#pragma unroll
        for (unsigned half = 16; half > 0; half /= 2) {
            sum = vxd_addf(sum, __shfl_down_sync(0xffffffffu, sum, half));
        }
        if (lane == 0) {
            strips[(first + k) * n_strips + strip] = sum;
        }
    }
}

/* Adds the strips, of which others have written most: a warp takes some sums, a lane every 32nd strip.
 * Strips are asked for many at a time, since they come from far. */
static __device__ __forceinline__ void add_strips(const struct vxd_track_level *level,
                                                  const float *strips,
                                                  struct vxd_track_work *work)
{
    unsigned warp = threadIdx.x / 32;
    unsigned lane = threadIdx.x % 32;
    double sums[SUMS_A_WARP];

#pragma unroll
    for (unsigned i = 0; i < SUMS_A_WARP; i++) {
        sums[i] = 0;
    }
    for (size_t first = lane; first < level->n_strips; first += 32 * STRIPS_AT_ONCE) {
        float values[STRIPS_AT_ONCE][SUMS_A_WARP];

#pragma unroll
        for (unsigned at = 0; at < STRIPS_AT_ONCE; at++) {
            size_t strip = first + 32 * at;

#pragma unroll
            for (unsigned i = 0; i < SUMS_A_WARP; i++) {
                unsigned k = warp + i * N_WARPS;

                values[at][i] = strip < level->n_strips && k < N_SUMS
                                    ? __ldcg(&strips[k * level->n_strips + strip])
                                    : 0;
            }
        }
#pragma unroll
        for (unsigned at = 0; at < STRIPS_AT_ONCE; at++) {
#pragma unroll
            for (unsigned i = 0; i < SUMS_A_WARP; i++) {
                sums[i] = vxd_addd(sums[i], (double)values[at][i]);
            }
        }
    }
#pragma unroll
    for (unsigned half = 16; half > 0; half /= 2) {
#pragma unroll
        for (unsigned i = 0; i < SUMS_A_WARP; i++) {
            sums[i] = vxd_addd(sums[i], __shfl_down_sync(0xffffffffu, sums[i], half));
        }
    }
#pragma unroll
    for (unsigned i = 0; i < SUMS_A_WARP; i++) {
        if (lane == 0 && warp + i * N_WARPS < N_SUMS) {
            work->sums[warp + i * N_WARPS] = sums[i];
        }
    }
}

/* Rows and sums of this thread block's strips. */
template <bool USE_GREY>
static __device__ __forceinline__ void sum_strips(const struct vxd_track_level *level,
                                                  struct steps *steps, float *strips)
{
    for (size_t strip = blockIdx.x; strip < level->n_strips; strip += gridDim.x) {
        float values[N_SUMS];

        find_values<USE_GREY>(level, steps->work.T, strip * VXD_TRACK_STRIP + threadIdx.x,
                              values);
#pragma unroll
        for (int first = 0; first < N_SUMS; first += SUMS_AT_ONCE) {
            __syncthreads(); /* what was there is added */
#pragma unroll
            for (int k = 0; k < SUMS_AT_ONCE; k++) {
                steps->values[k][threadIdx.x] = values[first + k];
            }
            __syncthreads();
            add_pixels(steps, first, level->n_strips, strip, strips);
        }
    }
}

/* All thread blocks come to the same pose. The strips are written in two places in turn, so that no
 * thread block writes what another still reads. */
template <bool USE_GREY>
static __global__ void __launch_bounds__(STRIP_THREADS, 2)
    iterate_kernel(const __grid_constant__ struct vxd_track_iterate_call call)
{
    const struct vxd_track_level *level = &call.level;
    __shared__ struct steps steps;
    uint32_t *words = (uint32_t *)&steps.work;
    bool is_last = call.n == 0;
    bool is_changed;
    uint32_t passed = 0;

    if (threadIdx.x < WORK_WORDS) {
        words[threadIdx.x] = ((const uint32_t *)level->work)[threadIdx.x];
    }
    __syncthreads();
    is_changed = steps.work.is_singular == 0;
    for (int round = 0; steps.work.is_singular == 0; round++) {
        float *strips = level->strips + (size_t)(round & 1) * level->n_strips * N_SUMS;

        sum_strips<USE_GREY>(level, &steps, strips);
        vxd_blocks_wait(call.arrived, &passed, gridDim.x);
        add_strips(level, strips, &steps.work);
        __syncthreads();
        if (threadIdx.x == 0) {
            steps.work.is_done = 0;
            if (!is_last) {
                vxd_track_step(&steps.work);
            }
        }
        __syncthreads();
        if (is_last) {
            break;
        }
        is_last = round + 1 == call.n || steps.work.is_done != 0;
        if (is_last && !call.sums_after) {
            break;
        }
    }
    if (blockIdx.x == 0 && threadIdx.x < WORK_WORDS) {
        if (is_changed) { /* and all others have read it */
            ((uint32_t *)level->work)[threadIdx.x] = words[threadIdx.x];
        }
        if (call.report != NULL) {
            ((uint32_t *)call.report)[threadIdx.x] = words[threadIdx.x];
        }
    }
}

enum vxd_status vxd_track_iterate_cuda(struct vxd_queue *queue,
                                       const struct vxd_track_iterate_call *call,
                                       struct vxd_err *err)
{
    const struct vxd_track_level *level = &call->level;
    size_t most = (size_t)queue->context->info.n_multiprocessors;
    const void *kernel = level->rule.use_grey != 0 ? (const void *)iterate_kernel<true>
                                                   : (const void *)iterate_kernel<false>;
    void *args[1] = {(void *)call};
    int n_resident = 1;
    enum vxd_status status;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    if (level->n_strips > most) {
        VXD_TRY(VXD_CUDA(queue->context,
                         cudaOccupancyMaxActiveBlocksPerMultiprocessor(
                             &n_resident, kernel, STRIP_THREADS, 0),
                         err));
        most *= (size_t)n_resident;
    }
    most = level->n_strips < most ? level->n_strips : most;
    VXD_TRY(vxd_cuda_status(queue->context,
                            cudaLaunchCooperativeKernel(kernel, dim3((unsigned)most),
                                                        dim3(STRIP_THREADS), args, 0,
                                                        (cudaStream_t)queue->stream),
                            "iterate_kernel", err));
out:
    return status;
}
