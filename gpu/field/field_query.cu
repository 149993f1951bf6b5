// SPDX-License-Identifier: Apache-2.0
/* CUDA backend of what fields are asked: a thread a voxel, point or shape, and for trajectories a
 * thread a pose, whose results are put together by minima, which no order changes. What is
 * computed stands in distance_math.h, collide_math.h and follow_math.h.
 *
 * Bytes a point: 24 in, up to 28 out, and some sectors of the field. */
#include "gpu/core/core_cuda.h"
#include "gpu/field/field_backends.h"

#define QUERY_THREADS 128
/* Thread blocks that a multiprocessor is to have at once, which limits registers. */
#define QUERY_BLOCKS 8
#define FOLLOW_BLOCKS 6
/* Of kernels that take items of a list. */
#define MOST_BLOCKS 4096u
#define ALL_LANES 0xffffffffu

static __global__ void __launch_bounds__(QUERY_THREADS)
    read_kernel(const __grid_constant__ struct vxd_field_read_call call, size_t n)
{
    size_t i = (size_t)blockIdx.x * QUERY_THREADS + threadIdx.x;

    if (i < n) {
        vxd_field_read_voxel(&call, i);
    }
}

/* A kernel a mode: those that look distances up need few registers, and so have more warps to wait
 * for memory with. */
template <enum vxd_field_mode MODE>
static __global__ void __launch_bounds__(QUERY_THREADS, QUERY_BLOCKS)
    query_kernel(const __grid_constant__ struct vxd_field_query_call call)
{
    size_t i = (size_t)blockIdx.x * QUERY_THREADS + threadIdx.x;

    if (i < call.n) {
        vxd_field_answer_point(&call, i, MODE);
    }
}

static __global__ void __launch_bounds__(QUERY_THREADS)
    collide_kernel(const __grid_constant__ struct vxd_field_collide_call call)
{
    size_t i = (size_t)blockIdx.x * QUERY_THREADS + threadIdx.x;

    if (i < call.n) {
        vxd_field_collide_shape(&call, i);
    }
}

/* Floats as integers of the same order; they stand for the clearance until the last kernel. */
static __device__ __forceinline__ int32_t ordered_of(float value)
{
    int32_t bits = __float_as_int(value);

    return bits < 0 ? bits ^ INT32_MAX : bits;
}

static __device__ __forceinline__ float float_of_ordered(int32_t bits)
{
    return __int_as_float(bits < 0 ? bits ^ INT32_MAX : bits);
}

/* The nearest float that is not below. */
static __device__ __forceinline__ float rounded_up(double value)
{
    float rounded = (float)value;

    return (double)rounded < value ? nextafterf(rounded, INFINITY) : rounded;
}

/* A clearance, in metres, as such an integer. */
static __device__ __forceinline__ int32_t
metres_of(const struct vxd_field_follow_call *call, double clearance)
{
    return ordered_of(
        (float)vxd_muld(vxd_addd(clearance, 0.0), call->field.voxel_size_m));
}

/* A trajectory's bound is the least of its poses', found first, so that only poses near its
 * narrowest place are searched: these are listed, for warps without idle lanes. Each search lowers
 * the bound for those after it. Which poses are searched depends on the order; the least of
 * their clearances does not, as that of the narrowest one is never above the bound. */
static __global__ void __launch_bounds__(QUERY_THREADS)
    follow_begin_kernel(const __grid_constant__ struct vxd_field_follow_call call)
{
    size_t i = (size_t)blockIdx.x * QUERY_THREADS + threadIdx.x;

    if (i == 0) {
        *call.n_open = 0;
    }
    if (i < call.in.n_trajectories) {
        double most = vxd_field_most_clearance(&call);

        call.first[i] = INT32_MAX;
        call.bounds[i] = ordered_of(rounded_up(most));
        if (call.clearance != NULL) {
            ((int32_t *)call.clearance)[i] = metres_of(&call, most);
        }
    }
}

static __global__ void __launch_bounds__(QUERY_THREADS, QUERY_BLOCKS)
    follow_bound_kernel(const __grid_constant__ struct vxd_field_follow_call call)
{
    size_t i = (size_t)blockIdx.x * QUERY_THREADS + threadIdx.x;
    size_t trajectory = i / call.in.n_steps;
    double at_least;
    double at_most;

    if (i >= call.in.n_trajectories * call.in.n_steps) {
        return;
    }
    vxd_field_pose_bounds(&call, i, &at_least, &at_most);
    if (at_least == at_most) { /* it is the most that any has */
        at_least = INFINITY;
    } else {
        atomicMin(call.bounds + trajectory, ordered_of(rounded_up(at_most)));
    }
    call.pose_bounds[i] = ordered_of(-rounded_up(-at_least));
    if (at_most <= 0) {
        atomicMin(call.first + trajectory, (int)(i % call.in.n_steps));
    }
}

/* Whether a pose still has to be searched; *bound and *is_before_first for that. */
static __device__ __forceinline__ bool is_open(const struct vxd_field_follow_call *call,
                                               size_t pose, double *bound,
                                               bool *is_before_first)
{
    size_t trajectory = pose / call->in.n_steps;

    *bound =
        (double)float_of_ordered(*(volatile const int32_t *)(call->bounds + trajectory));
    *is_before_first = (int)(pose % call->in.n_steps) <
                       *(volatile const int32_t *)(call->first + trajectory);
    return vxd_field_pose_is_open((double)float_of_ordered(call->pose_bounds[pose]),
                                  *bound, *is_before_first);
}

static __global__ void __launch_bounds__(QUERY_THREADS)
    follow_list_kernel(const __grid_constant__ struct vxd_field_follow_call call)
{
    size_t i = (size_t)blockIdx.x * QUERY_THREADS + threadIdx.x;
    unsigned lane = threadIdx.x % 32;
    double bound;
    bool is_before_first;
    bool opens = i < call.in.n_trajectories * call.in.n_steps &&
                 is_open(&call, i, &bound, &is_before_first);
    unsigned lanes = __ballot_sync(ALL_LANES, opens);
    unsigned at = 0;

    if (lane == 0 && lanes != 0) {
        at = atomicAdd(call.n_open, (unsigned)__popc(lanes));
    }
    at = __shfl_sync(ALL_LANES, at, 0);
    if (opens) {
        call.open[at + (unsigned)__popc(lanes & ((1u << lane) - 1))] = (uint32_t)i;
    }
}

static __device__ void put_clearance(const struct vxd_field_follow_call *call,
                                     size_t pose, double bound, double least)
{
    size_t trajectory = pose / call->in.n_steps;

    if (least <= 0) {
        atomicMin(call->first + trajectory, (int)(pose % call->in.n_steps));
    }
    if (least < bound) {
        atomicMin(call->bounds + trajectory, ordered_of(rounded_up(least)));
    }
    if (call->clearance != NULL && least < INFINITY) {
        atomicMin((int32_t *)call->clearance + trajectory, metres_of(call, least));
    }
}

/* Whole warps take poses of the list until it is done. */
static __global__ void __launch_bounds__(QUERY_THREADS, FOLLOW_BLOCKS)
    follow_kernel(const __grid_constant__ struct vxd_field_follow_call call)
{
    size_t n = *call.n_open;

    for (size_t i = (size_t)blockIdx.x * QUERY_THREADS + threadIdx.x; i < n;
         i += (size_t)gridDim.x * QUERY_THREADS) {
        size_t pose = call.open[i];
        double bound;
        bool is_before_first;

        if (is_open(&call, pose, &bound, &is_before_first)) {
            put_clearance(&call, pose, bound,
                          vxd_field_pose_clearance(&call, pose, bound, is_before_first));
        }
    }
}

static __global__ void __launch_bounds__(QUERY_THREADS)
    follow_end_kernel(const __grid_constant__ struct vxd_field_follow_call call)
{
    size_t i = (size_t)blockIdx.x * QUERY_THREADS + threadIdx.x;

    if (i < call.in.n_trajectories) {
        call.first[i] = call.first[i] == INT32_MAX ? -1 : call.first[i];
        if (call.clearance != NULL) {
            call.clearance[i] = float_of_ordered(((const int32_t *)call.clearance)[i]);
        }
    }
}

/* Blocks of n > 0 threads. */
static enum vxd_status blocks_of(size_t n, unsigned *n_blocks, struct vxd_err *err)
{
    size_t wanted = (n - 1) / QUERY_THREADS + 1;

    *n_blocks = (unsigned)wanted;
    return wanted <= INT32_MAX
               ? VXD_OK
               : vxd_fail(err, VXD_INVALID_ARGUMENT, "n", "%zu are too many at once", n);
}

enum vxd_status vxd_field_read_cuda(struct vxd_queue *queue,
                                    const struct vxd_field_read_call *call,
                                    struct vxd_err *err)
{
    size_t n = (size_t)call->size[0] * (size_t)call->size[1] * (size_t)call->size[2];
    unsigned n_blocks = 0;
    enum vxd_status status;

    VXD_TRY(blocks_of(n, &n_blocks, err));
    VXD_TRY(vxd_cuda_enter(queue->context, err));
    read_kernel<<<n_blocks, QUERY_THREADS, 0, (cudaStream_t)queue->stream>>>(*call, n);
    VXD_TRY(vxd_cuda_launched(queue->context, "read_kernel", err));
out:
    return status;
}

enum vxd_status vxd_field_query_cuda(struct vxd_queue *queue,
                                     const struct vxd_field_query_call *call,
                                     struct vxd_err *err)
{
    cudaStream_t stream = (cudaStream_t)queue->stream;
    unsigned n_blocks = 0;
    enum vxd_status status;

    VXD_TRY(blocks_of(call->n, &n_blocks, err));
    VXD_TRY(vxd_cuda_enter(queue->context, err));
    if (call->mode == VXD_FIELD_SURFACE) {
        query_kernel<VXD_FIELD_SURFACE><<<n_blocks, QUERY_THREADS, 0, stream>>>(*call);
    } else if (call->mode == VXD_FIELD_TRILINEAR) {
        query_kernel<VXD_FIELD_TRILINEAR><<<n_blocks, QUERY_THREADS, 0, stream>>>(*call);
    } else {
        query_kernel<VXD_FIELD_NEAREST><<<n_blocks, QUERY_THREADS, 0, stream>>>(*call);
    }
    VXD_TRY(vxd_cuda_launched(queue->context, "query_kernel", err));
out:
    return status;
}

enum vxd_status vxd_field_collide_cuda(struct vxd_queue *queue,
                                       const struct vxd_field_collide_call *call,
                                       struct vxd_err *err)
{
    unsigned n_blocks = 0;
    enum vxd_status status;

    VXD_TRY(blocks_of(call->n, &n_blocks, err));
    VXD_TRY(vxd_cuda_enter(queue->context, err));
    collide_kernel<<<n_blocks, QUERY_THREADS, 0, (cudaStream_t)queue->stream>>>(*call);
    VXD_TRY(vxd_cuda_launched(queue->context, "collide_kernel", err));
out:
    return status;
}

enum vxd_status vxd_field_follow_cuda(struct vxd_queue *queue,
                                      const struct vxd_field_follow_call *call,
                                      struct vxd_err *err)
{
    cudaStream_t stream = (cudaStream_t)queue->stream;
    unsigned n_blocks = 0;
    unsigned n_pose_blocks = 0;
    unsigned n_list_blocks;
    enum vxd_status status;

    VXD_TRY(blocks_of(call->in.n_trajectories, &n_blocks, err));
    VXD_TRY(vxd_cuda_enter(queue->context, err));
    follow_begin_kernel<<<n_blocks, QUERY_THREADS, 0, stream>>>(*call);
    VXD_TRY(vxd_cuda_launched(queue->context, "follow_begin_kernel", err));
    if (call->in.n_steps > 0) {
        VXD_TRY(
            blocks_of(call->in.n_trajectories * call->in.n_steps, &n_pose_blocks, err));
        follow_bound_kernel<<<n_pose_blocks, QUERY_THREADS, 0, stream>>>(*call);
        VXD_TRY(vxd_cuda_launched(queue->context, "follow_bound_kernel", err));
        follow_list_kernel<<<n_pose_blocks, QUERY_THREADS, 0, stream>>>(*call);
        VXD_TRY(vxd_cuda_launched(queue->context, "follow_list_kernel", err));
        n_list_blocks = n_pose_blocks < MOST_BLOCKS ? n_pose_blocks : MOST_BLOCKS;
        follow_kernel<<<n_list_blocks, QUERY_THREADS, 0, stream>>>(*call);
        VXD_TRY(vxd_cuda_launched(queue->context, "follow_kernel", err));
    }
    follow_end_kernel<<<n_blocks, QUERY_THREADS, 0, stream>>>(*call);
    VXD_TRY(vxd_cuda_launched(queue->context, "follow_end_kernel", err));
out:
    return status;
}
