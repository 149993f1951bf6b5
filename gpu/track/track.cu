// SPDX-License-Identifier: Apache-2.0
/* Tracking on a GPU. A thread makes a pixel of an image; for the normal equations a block takes a
 * strip of 512 pixels, a thread every 128th of them with its sums in registers, and adds the
 * threads' sums pairwise. One block then adds the strips and takes the step, so that no step waits
 * for the host: the pose stays in device memory, and a level that is at its end costs empty
 * launches. All arithmetic is in track_math.h.
 *
 * Moved a step of 640 x 480 pixels: 28 bytes of the image and as many of the model a pixel, 17 MB,
 * from the second-level cache mostly. */
#include "gpu/core/core_cuda.h"
#include "gpu/track/track_internal.h"

#define N_THREADS 128
#define STEP_THREADS 1024

static dim3 blocks_of(size_t n)
{
    return dim3((unsigned)((n + N_THREADS - 1) / N_THREADS));
}

/* ---- Images ---- */

static __global__ void __launch_bounds__(N_THREADS)
    depth_kernel(const __grid_constant__ struct vxd_track_live_call call)
{
    size_t i = (size_t)blockIdx.x * N_THREADS + threadIdx.x;

    if (i < call.image.n) {
        int u = (int)(i % (size_t)call.image.width);
        int v = (int)(i / (size_t)call.image.width);

        call.depths[i] = vxd_track_mean_depth(&call.source, u, v);
    }
}

static __global__ void __launch_bounds__(N_THREADS)
    filter_kernel(const __grid_constant__ struct vxd_track_live_call call)
{
    size_t i = (size_t)blockIdx.x * N_THREADS + threadIdx.x;

    if (i < call.image.n) {
        int u = (int)(i % (size_t)call.image.width);
        int v = (int)(i / (size_t)call.image.width);

        call.filtered[i] =
            vxd_track_filter(call.depths, call.image.width, call.image.height, u, v);
    }
}

static __global__ void __launch_bounds__(N_THREADS)
    point_kernel(const __grid_constant__ struct vxd_track_live_call call)
{
    size_t i = (size_t)blockIdx.x * N_THREADS + threadIdx.x;

    if (i < call.image.n) {
        int u = (int)(i % (size_t)call.image.width);
        int v = (int)(i / (size_t)call.image.width);

        vxd_track_point(&call.source, &call.image, u, v,
                        call.filtered != NULL ? call.filtered[i] : call.depths[i]);
    }
}

static __global__ void __launch_bounds__(N_THREADS)
    normal_kernel(const __grid_constant__ struct vxd_track_image image)
{
    size_t i = (size_t)blockIdx.x * N_THREADS + threadIdx.x;

    if (i < image.n) {
        vxd_track_put_normal(&image, (int)(i % (size_t)image.width),
                             (int)(i / (size_t)image.width));
    }
}

static __global__ void __launch_bounds__(N_THREADS)
    model_kernel(const __grid_constant__ struct vxd_track_model_call call)
{
    size_t i = (size_t)blockIdx.x * N_THREADS + threadIdx.x;

    if (i < call.image.n) {
        int u = (int)(i % (size_t)call.image.width);
        int v = (int)(i / (size_t)call.image.width);

        vxd_track_put_model(&call.image, &call.camera, call.to_camera, call.depth,
                            call.normal, call.colour, u, v);
    }
}

static __global__ void __launch_bounds__(N_THREADS)
    halve_kernel(const __grid_constant__ struct vxd_track_halve_call call)
{
    size_t i = (size_t)blockIdx.x * N_THREADS + threadIdx.x;

    if (i < call.to.n) {
        vxd_track_put_half(&call.from, &call.to, (int)(i % (size_t)call.to.width),
                           (int)(i / (size_t)call.to.width));
    }
}

enum vxd_status vxd_track_live_cuda(struct vxd_queue *queue,
                                    const struct vxd_track_live_call *call,
                                    struct vxd_err *err)
{
    dim3 grid = blocks_of(call->image.n);
    cudaStream_t stream = (cudaStream_t)queue->stream;
    enum vxd_status status;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    depth_kernel<<<grid, N_THREADS, 0, stream>>>(*call);
    VXD_TRY(vxd_cuda_launched(queue->context, "depth_kernel", err));
    if (call->filtered != NULL) {
        filter_kernel<<<grid, N_THREADS, 0, stream>>>(*call);
        VXD_TRY(vxd_cuda_launched(queue->context, "filter_kernel", err));
    }
    point_kernel<<<grid, N_THREADS, 0, stream>>>(*call);
    VXD_TRY(vxd_cuda_launched(queue->context, "point_kernel", err));
    normal_kernel<<<grid, N_THREADS, 0, stream>>>(call->image);
    VXD_TRY(vxd_cuda_launched(queue->context, "normal_kernel", err));
out:
    return status;
}

enum vxd_status vxd_track_model_cuda(struct vxd_queue *queue,
                                     const struct vxd_track_model_call *call,
                                     struct vxd_err *err)
{
    enum vxd_status status;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    model_kernel<<<blocks_of(call->image.n), N_THREADS, 0, (cudaStream_t)queue->stream>>>(
        *call);
    VXD_TRY(vxd_cuda_launched(queue->context, "model_kernel", err));
out:
    return status;
}

enum vxd_status vxd_track_halve_cuda(struct vxd_queue *queue,
                                     const struct vxd_track_halve_call *call,
                                     struct vxd_err *err)
{
    enum vxd_status status;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    halve_kernel<<<blocks_of(call->to.n), N_THREADS, 0, (cudaStream_t)queue->stream>>>(
        *call);
    VXD_TRY(vxd_cuda_launched(queue->context, "halve_kernel", err));
out:
    return status;
}

/* ---- Rows and sums ---- */

static __global__ void __launch_bounds__(VXD_TRACK_LANES)
    rows_kernel(const __grid_constant__ struct vxd_track_level level, int is_first)
{
    __shared__ float lanes[VXD_TRACK_N_SUMS][VXD_TRACK_LANES];
    unsigned lane = threadIdx.x;
    size_t first = (size_t)blockIdx.x * VXD_TRACK_STRIP;
    float sums[VXD_TRACK_N_SUMS];
    float T[12];

    /* The step kernel of this level has not cleared what the level before left. */
    if (level.work->is_singular != 0 || (is_first == 0 && level.work->is_done != 0)) {
        return;
    }
    for (int i = 0; i < 12; i++) {
        T[i] = level.work->T[i];
    }
#pragma unroll
    for (int k = 0; k < VXD_TRACK_N_SUMS; k++) {
        sums[k] = 0;
    }
    for (size_t i = first + lane; i < first + VXD_TRACK_STRIP && i < level.live.n;
         i += VXD_TRACK_LANES) {
        struct vxd_track_pair pair;
        int32_t corner;
        int32_t pixel = vxd_track_associate(&level, T, i, &pair, &corner);

        vxd_track_fetch(&level, pixel, &pair);
        if (level.rule.use_grey != 0) {
            vxd_track_fetch_corners(&level, corner, &pair);
        }
        vxd_track_add_pair(&level, &pair, sums, 1);
    }
#pragma unroll
    for (int k = 0; k < VXD_TRACK_N_SUMS; k++) {
        lanes[k][lane] = sums[k];
    }
    __syncthreads();
    for (unsigned half = VXD_TRACK_LANES / 2; half > 0; half /= 2) {
        for (unsigned i = lane; i < half * VXD_TRACK_N_SUMS; i += VXD_TRACK_LANES) {
            vxd_track_add(&lanes[i / half][i % half], lanes[i / half][i % half + half]);
        }
        __syncthreads();
    }
    if (lane < VXD_TRACK_N_SUMS) {
        level.strips[(size_t)blockIdx.x * VXD_TRACK_N_SUMS + lane] = lanes[lane][0];
    }
}

/* A warp adds one sum of the strips after the other, lane by lane, then pairwise. */
static __global__ void __launch_bounds__(STEP_THREADS)
    step_kernel(const __grid_constant__ struct vxd_track_level level, int is_first,
                int is_last)
{
    __shared__ double lanes[VXD_TRACK_N_SUMS][VXD_TRACK_STRIP_LANES];
    unsigned warp = threadIdx.x / VXD_TRACK_STRIP_LANES;
    unsigned lane = threadIdx.x % VXD_TRACK_STRIP_LANES;

    if (level.work->is_singular != 0 || (is_first == 0 && level.work->is_done != 0)) {
        return;
    }
    for (unsigned k = warp; k < VXD_TRACK_N_SUMS;
         k += STEP_THREADS / VXD_TRACK_STRIP_LANES) {
        double sum = 0;

        for (size_t strip = lane; strip < level.n_strips;
             strip += VXD_TRACK_STRIP_LANES) {
            sum = vxd_addd(sum, (double)level.strips[strip * VXD_TRACK_N_SUMS + k]);
        }
        lanes[k][lane] = sum;
    }
    __syncthreads();
    for (unsigned half = VXD_TRACK_STRIP_LANES / 2; half > 0; half /= 2) {
        for (unsigned i = threadIdx.x; i < half * VXD_TRACK_N_SUMS; i += STEP_THREADS) {
            lanes[i / half][i % half] =
                vxd_addd(lanes[i / half][i % half], lanes[i / half][i % half + half]);
        }
        __syncthreads();
    }
    if (threadIdx.x < VXD_TRACK_N_SUMS) {
        level.work->sums[threadIdx.x] = lanes[threadIdx.x][0];
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        level.work->is_done = 0;
        if (is_last == 0) {
            vxd_track_step(level.work);
        }
    }
}

enum vxd_status vxd_track_iterate_cuda(struct vxd_queue *queue,
                                       const struct vxd_track_iterate_call *call,
                                       struct vxd_err *err)
{
    const struct vxd_track_level *level = &call->level;
    cudaStream_t stream = (cudaStream_t)queue->stream;
    int rounds = call->n > 0 ? call->n : 1;
    enum vxd_status status;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    for (int i = 0; i < rounds; i++) {
        rows_kernel<<<(unsigned)level->n_strips, VXD_TRACK_LANES, 0, stream>>>(
            *level, i == 0 ? 1 : 0);
        VXD_TRY(vxd_cuda_launched(queue->context, "rows_kernel", err));
        step_kernel<<<1, STEP_THREADS, 0, stream>>>(*level, i == 0 ? 1 : 0,
                                                    call->n > 0 ? 0 : 1);
        VXD_TRY(vxd_cuda_launched(queue->context, "step_kernel", err));
    }
out:
    return status;
}
