// SPDX-License-Identifier: Apache-2.0
/* CUDA twin of rays: a thread a ray, and another ray as soon as enough threads of its warp have
 * none, because rays are of very different length.
 *
 * A block has a share of consecutive rays, which its warps take a few at a time; two blocks fill
 * a multiprocessor, so that all of it is busy until hardly any ray is left. Rays differ in all
 * they do; so all threads of a warp go round together, through the same few pieces of straight
 * code (ray_math.h), and come together after each: some levels down the tree, a look at what
 * stands there, the way past it. Rays that are farther up wait with the latter for the next
 * round. A ray stands in registers, the nodes above it in shared memory, a column a thread.
 *
 * Moved: 48 or 56 bytes in and 24 out a ray; nodes come from L1 and L2.
 * source  Aila and Laine, Understanding the Efficiency of Ray Traversal on GPUs, 2009 */
#include "gpu/svdag/query/query_cuda.h"
#include "gpu/svdag/query/ray_math.h"

#define RAY_THREADS 512
/* Of a multiprocessor: 64 registers a thread, all that a ray needs. */
#define RAY_BLOCKS 2
/* Threads without a ray, of 32, for whom it pays to make new ones. */
#define RAY_LEAST_IDLE 8
/* Levels down a round, at most; no more where fewer than one in RAY_FEW goes down. */
#define RAY_DOWN 8
#define RAY_FEW 3
/* Rays of a share, at least and at most. */
#define RAY_LEAST 64
#define RAY_MOST (1u << 20)

struct rays_run {
    struct vxd_svdag_rays_call call;
    uint32_t share; /* rays of a block */
};

/* What a thread has. */
enum state {
    IDLE,
    BUSY,
    HIT /* to be told, by `value` */
};

struct task {
    enum state state;
    uint32_t i; /* ray, of the share */
    uint32_t value;
    struct vxd_svdag_ray_spot spot;
    struct vxd_svdag_ray ray;
};

/* Answers of a thread that is not busy. */
static __device__ __forceinline__ void finish(const struct vxd_svdag_rays_call *call,
                                              size_t first, struct task *task)
{
    if (task->state == HIT) {
        struct vxd_svdag_hit hit = {-1.0, {-1, -1, -1}, 0, 0, 0};

        vxd_svdag_ray_report(&task->ray, task->value, &hit);
        call->hits[first + task->i] = hit;
        task->state = IDLE;
    }
}

/* Begins ray i with the answer that it hits nothing. */
static __device__ __forceinline__ void begin(const struct vxd_svdag_rays_call *call,
                                             size_t first, uint32_t i, struct task *task)
{
    size_t at = first + i;
    struct vxd_svdag_hit hit;

    task->i = i;
    task->spot.ref = call->root;
    task->spot.height = call->view.depth;
    task->state =
        vxd_svdag_ray_begin(
            &call->view, call->origins + 3 * at, call->directions + 3 * at,
            call->max_range != NULL ? call->max_range + at : NULL, &task->ray, &hit)
            ? BUSY
            : IDLE;
    call->hits[at] = hit;
}

/* Takes rays on by a voxel or more, or some levels down the tree: as long as enough of those
 * that there are go down, the others wait for them. */
static __device__ __forceinline__ void
go(const struct vxd_svdag_view *view, uint32_t *nodes, uint32_t n_busy, struct task *task)
{
    bool is_sure = true;
    uint32_t changed = 0;
    int height = -1;

#pragma unroll 1
    for (int k = 0; k < RAY_DOWN; k++) {
        bool descends = task->state == BUSY && vxd_svdag_ray_can_descend(&task->spot);
        uint32_t n_down = (uint32_t)__popc(__ballot_sync(UINT32_MAX, descends));

        if (RAY_FEW * n_down < n_busy) {
            break;
        }
        if (descends) {
            vxd_svdag_ray_descend(view, &task->ray, &task->spot, nodes, RAY_THREADS);
        }
        __syncwarp();
    }
    if (task->state == BUSY && !vxd_svdag_ray_can_descend(&task->spot)) {
        height = vxd_svdag_ray_visit(view, &task->ray, &task->spot, &task->value);
        task->state = height < 0 ? HIT : BUSY;
    }
    __syncwarp();
    if (height >= 0) {
        changed = vxd_svdag_ray_leave(&task->ray, height, &is_sure);
        task->state = vxd_svdag_ray_ascend(view, changed, &task->spot, nodes, RAY_THREADS)
                          ? BUSY
                          : IDLE;
    }
    __syncwarp();
    if (!is_sure) {
        vxd_svdag_ray_settle(&task->ray, height, view->depth);
    }
    __syncwarp();
}

static __global__ void __launch_bounds__(RAY_THREADS, RAY_BLOCKS)
    cast_kernel(const __grid_constant__ struct rays_run run)
{
    extern __shared__ uint32_t nodes[];
    __shared__ uint32_t n_taken; /* of the share */
    const struct vxd_svdag_rays_call *call = &run.call;
    uint32_t lane = threadIdx.x % 32;
    size_t first = (size_t)blockIdx.x * run.share;
    uint32_t end = call->n - first < run.share ? (uint32_t)(call->n - first) : run.share;
    uint32_t next = 0; /* what was taken when the warp last looked */
    uint32_t *column = nodes + threadIdx.x;
    struct vxd_svdag_view view = call->view;
    struct task task;

    if (threadIdx.x == 0) {
        n_taken = 0;
    }
    __syncthreads();
    task.state = IDLE;
    /* Each round either takes rays from the share, or takes on every ray that is there. */
    for (;;) {
        uint32_t idle = __ballot_sync(UINT32_MAX, task.state != BUSY);
        uint32_t n_idle = (uint32_t)__popc(idle);

        if (n_idle == 32 || (n_idle >= RAY_LEAST_IDLE && next < end)) {
            finish(call, first, &task);
            if (next >= end) {
                return;
            }
            if (lane == 0) {
                next = atomicAdd(&n_taken, n_idle);
            }
            next = __shfl_sync(UINT32_MAX, next, 0);
            if (task.state != BUSY) {
                uint32_t i = next + (uint32_t)__popc(idle & ((1u << lane) - 1));

                if (i < end) {
                    begin(call, first, i, &task);
                }
            }
            __syncwarp();
        } else {
            go(&view, column, 32 - n_idle, &task);
        }
    }
}

enum vxd_status VXD_SVDAG_FORM(vxd_svdag_cast_rays)(
    struct vxd_queue *queue, const struct vxd_svdag_rays_call *call, struct vxd_err *err)
{
    size_t n_nodes = (size_t)(call->view.depth - VXD_SVDAG_LEAF_HEIGHT);
    size_t n_wanted = (size_t)queue->context->info.n_multiprocessors * RAY_BLOCKS;
    size_t share = (call->n - 1) / n_wanted + 1;
    struct rays_run run = {*call, 0};
    unsigned n_blocks = 0;
    enum vxd_status status;

    share = share > RAY_LEAST ? share : RAY_LEAST;
    run.share = (uint32_t)(share < RAY_MOST ? share : RAY_MOST);
    VXD_TRY(vxd_svdag_blocks_of(call->n, run.share, &n_blocks, err));
    VXD_TRY(vxd_cuda_enter(queue->context, err));
    cast_kernel<<<n_blocks, RAY_THREADS, n_nodes * RAY_THREADS * sizeof(uint32_t),
                  (cudaStream_t)queue->stream>>>(run);
    VXD_TRY(vxd_cuda_launched(queue->context, "cast_kernel", err));
out:
    return status;
}
