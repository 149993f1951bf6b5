// SPDX-License-Identifier: Apache-2.0
/* CUDA backend of rays: a thread a ray, and another ray as soon as enough threads of its
 * warp have none, because rays are of very different length.
 *
 * A block has a share of consecutive rays, of which its warps take a few at a time. Two
 * blocks fill a multiprocessor, so that all of it is busy until hardly any ray is left.
 * Rays differ in all that they do; so the threads of a warp go through the same few
 * pieces of straight code (ray_math.h) and meet after each: some levels down the tree, a
 * look at what stands there, the step past it. Rays that are farther up wait with the
 * step for the next round. A ray is in registers, the nodes above it are in shared
 * memory, a column a thread.
 *
 * Bytes: 48 or 56 in and 24 out a ray; nodes come from L1 and L2.
 * Source: Aila and Laine, Understanding the Efficiency of Ray Traversal on GPUs, 2009. */
#ifndef VXD_GPU_SVDAG_QUERY_RAY_CUDA_H
#define VXD_GPU_SVDAG_QUERY_RAY_CUDA_H

#include "gpu/svdag/query/ray_math.h"
#include "gpu/svdag/query/tree_walk_cuda.h"

#define VXD_SVDAG_RAY_THREADS 512
/* Blocks of a multiprocessor: a ray needs the 64 registers that a thread then has. */
#define VXD_SVDAG_RAY_BLOCKS 2
/* Threads without a ray, of 32, from which on it pays to begin new ones. */
#define VXD_SVDAG_RAY_LEAST_IDLE 8
/* Levels down a round, at most. It ends earlier where fewer than one in VXD_SVDAG_RAY_FEW
 * goes down. */
#define VXD_SVDAG_RAY_DOWN 8
#define VXD_SVDAG_RAY_FEW 3
/* Rays of a block, at least and at most. */
#define VXD_SVDAG_RAY_LEAST 64
#define VXD_SVDAG_RAY_MOST (1u << 20)

struct vxd_svdag_rays_run {
    struct vxd_svdag_rays_call call;
    uint32_t share; /* rays of a block */
};

/* What a thread does. */
enum vxd_svdag_ray_state {
    VXD_SVDAG_RAY_IDLE,
    VXD_SVDAG_RAY_BUSY,
    VXD_SVDAG_RAY_HIT /* `value` is still to be written */
};

struct vxd_svdag_ray_task {
    enum vxd_svdag_ray_state state;
    uint32_t i; /* ray, among the block's */
    uint32_t value;
    struct vxd_svdag_ray_tree_cube tree_cube;
    struct vxd_svdag_ray ray;
};

/* Writes the hit of a thread that has one. */
static __device__ __forceinline__ void
vxd_svdag_ray_write_hit(const struct vxd_svdag_rays_call *call, size_t first,
                        struct vxd_svdag_ray_task *task)
{
    if (task->state == VXD_SVDAG_RAY_HIT) {
        struct vxd_svdag_hit hit = {-1.0, {-1, -1, -1}, 0, 0, 0};

        vxd_svdag_ray_report(&task->ray, task->value, &hit);
        call->hits[first + task->i] = hit;
        task->state = VXD_SVDAG_RAY_IDLE;
    }
}

/* Begins ray i, and writes that it hits nothing. */
static __device__ __forceinline__ void
vxd_svdag_ray_take(const struct vxd_svdag_rays_call *call, size_t first, uint32_t i,
                   struct vxd_svdag_ray_task *task)
{
    size_t at = first + i;
    struct vxd_svdag_hit hit;

    task->i = i;
    task->tree_cube.ref = call->root;
    task->tree_cube.height = call->view.depth;
    task->state =
        vxd_svdag_ray_begin(
            &call->view, call->origins + 3 * at, call->directions + 3 * at,
            call->max_range != NULL ? call->max_range + at : NULL, &task->ray, &hit)
            ? VXD_SVDAG_RAY_BUSY
            : VXD_SVDAG_RAY_IDLE;
    call->hits[at] = hit;
}

/* Moves rays on by a voxel or more, or down some levels of the tree. As long as enough of
 * the rays go down, the others wait for them. */
static __device__ __forceinline__ void
vxd_svdag_ray_round(const struct vxd_svdag_view *view, uint32_t *nodes, uint32_t n_busy,
                    struct vxd_svdag_ray_task *task)
{
    bool is_sure = true;
    uint32_t changed = 0;
    int height = -1;

#pragma unroll 1
    for (int k = 0; k < VXD_SVDAG_RAY_DOWN; k++) {
        bool descends = task->state == VXD_SVDAG_RAY_BUSY &&
                        vxd_svdag_ray_can_descend(&task->tree_cube);
        uint32_t n_down = (uint32_t)__popc(__ballot_sync(UINT32_MAX, descends));

        if (VXD_SVDAG_RAY_FEW * n_down < n_busy) {
            break;
        }
        if (descends) {
            vxd_svdag_ray_descend(view, &task->ray, &task->tree_cube, nodes,
                                  VXD_SVDAG_RAY_THREADS);
        }
        __syncwarp();
    }
    if (task->state == VXD_SVDAG_RAY_BUSY &&
        !vxd_svdag_ray_can_descend(&task->tree_cube)) {
        height = vxd_svdag_ray_visit(view, &task->ray, &task->tree_cube, &task->value);
        task->state = height < 0 ? VXD_SVDAG_RAY_HIT : VXD_SVDAG_RAY_BUSY;
    }
    __syncwarp();
    if (height >= 0) {
        changed = vxd_svdag_ray_leave(&task->ray, height, &is_sure);
        task->state = vxd_svdag_ray_ascend(view, changed, &task->tree_cube, nodes,
                                           VXD_SVDAG_RAY_THREADS)
                          ? VXD_SVDAG_RAY_BUSY
                          : VXD_SVDAG_RAY_IDLE;
    }
    __syncwarp();
    if (!is_sure) {
        vxd_svdag_ray_settle(&task->ray, height, view->depth);
    }
    __syncwarp();
}

template <bool IS_SPLIT>
static __global__ void __launch_bounds__(VXD_SVDAG_RAY_THREADS, VXD_SVDAG_RAY_BLOCKS)
    cast_kernel(const __grid_constant__ struct vxd_svdag_rays_run run)
{
    extern __shared__ uint32_t nodes[];
    __shared__ uint32_t n_taken; /* of the block's rays */
    const struct vxd_svdag_rays_call *call = &run.call;
    uint32_t lane = threadIdx.x % 32;
    size_t first = (size_t)blockIdx.x * run.share;
    uint32_t end = call->n - first < run.share ? (uint32_t)(call->n - first) : run.share;
    uint32_t next = 0; /* n_taken, when the warp last read it */
    uint32_t *column = nodes + threadIdx.x;
    struct vxd_svdag_view view = call->view;
    struct vxd_svdag_ray_task task;

    if (threadIdx.x == 0) {
        n_taken = 0;
    }
    __syncthreads();
    task.state = VXD_SVDAG_RAY_IDLE;
    /* Each round either begins rays of the block's, or moves on every ray that there
     * is. */
    for (;;) {
        uint32_t idle = __ballot_sync(UINT32_MAX, task.state != VXD_SVDAG_RAY_BUSY);
        uint32_t n_idle = (uint32_t)__popc(idle);

        if (n_idle == 32 || (n_idle >= VXD_SVDAG_RAY_LEAST_IDLE && next < end)) {
            vxd_svdag_ray_write_hit(call, first, &task);
            if (next >= end) {
                return;
            }
            if (lane == 0) {
                next = atomicAdd(&n_taken, n_idle);
            }
            next = __shfl_sync(UINT32_MAX, next, 0);
            if (task.state != VXD_SVDAG_RAY_BUSY) {
                uint32_t i = next + (uint32_t)__popc(idle & ((1u << lane) - 1));

                if (i < end) {
                    vxd_svdag_ray_take(call, first, i, &task);
                }
            }
            __syncwarp();
        } else {
            vxd_svdag_ray_round(&view, column, 32 - n_idle, &task);
        }
    }
}

template <bool IS_SPLIT>
static enum vxd_status vxd_svdag_cast_rays_launch(struct vxd_queue *queue,
                                                  const struct vxd_svdag_rays_call *call,
                                                  struct vxd_err *err)
{
    static_assert(IS_SPLIT == VXD_SVDAG_IS_SPLIT_FORM,
                  "a translation unit is compiled for one form of stores");
    size_t n_nodes = (size_t)(call->view.depth - VXD_SVDAG_LEAF_HEIGHT);
    size_t n_wanted =
        (size_t)queue->context->info.n_multiprocessors * VXD_SVDAG_RAY_BLOCKS;
    size_t share = (call->n - 1) / n_wanted + 1;
    struct vxd_svdag_rays_run run = {*call, 0};
    unsigned n_blocks = 0;
    enum vxd_status status;

    share = share > VXD_SVDAG_RAY_LEAST ? share : VXD_SVDAG_RAY_LEAST;
    run.share = (uint32_t)(share < VXD_SVDAG_RAY_MOST ? share : VXD_SVDAG_RAY_MOST);
    VXD_TRY(vxd_svdag_blocks_of(call->n, run.share, &n_blocks, err));
    VXD_TRY(vxd_cuda_enter(queue->context, err));
    cast_kernel<IS_SPLIT><<<n_blocks, VXD_SVDAG_RAY_THREADS,
                            n_nodes * VXD_SVDAG_RAY_THREADS * sizeof(uint32_t),
                            (cudaStream_t)queue->stream>>>(run);
    VXD_TRY(vxd_cuda_launched(queue->context, "cast_kernel", err));
out:
    return status;
}

#endif
