// SPDX-License-Identifier: Apache-2.0
/* CUDA twin of rays: a thread a ray, and another ray as soon as enough threads of its warp have
 * none, because rays are of very different length.
 *
 * A warp has a share of consecutive rays, one after the other by whichever thread is idle; as
 * many warps as the device holds, so that shares are large and every one sees rays of all
 * lengths. All rays of a warp step together (ray_math.h): down to the cube around the ray's
 * voxel, which may be within a leaf, and out of it; there are no loops within leaves that some
 * threads would wait for. A ray stands in registers, the nodes above it in shared memory, a
 * column a thread.
 *
 * Moved: 48 or 56 bytes in and 24 out a ray; nodes come from L1 and L2.
 * source  Aila and Laine, Understanding the Efficiency of Ray Traversal on GPUs, 2009 */
#include "gpu/dag/query_cuda.h"
#include "gpu/dag/ray_math.h"

#define RAY_THREADS 128
#define RAY_WARPS (RAY_THREADS / 32)
#ifndef RAY_BLOCKS
/* Of a multiprocessor: 72 registers a thread, all that a ray needs. */
#define RAY_BLOCKS 7
#endif
#ifndef RAY_LEAST_IDLE
/* Threads without a ray, of 32, for whom it pays to make new ones. */
#define RAY_LEAST_IDLE 12
#endif
#ifndef RAY_DOWN
#define RAY_DOWN 3
#endif
/* Rays of a share: what is more comes to its turn later. */
#define RAY_MOST 4096

struct rays_run {
    struct vxd_dag_rays_call call;
    uint32_t share; /* rays of a warp */
};

/* Makes ray i; false where it is answered at once. */
static __device__ bool begin_ray(const struct vxd_dag_rays_call *call, size_t i,
                                 struct vxd_dag_ray *ray, struct vxd_dag_ray_spot *spot)
{
    struct vxd_dag_hit hit;

    spot->ref = call->root;
    spot->height = call->view.depth;
    if (vxd_dag_ray_begin(&call->view, call->origins + 3 * i, call->directions + 3 * i,
                          call->max_range != NULL ? call->max_range + i : NULL, ray,
                          &hit)) {
        return true;
    }
    call->hits[i] = hit;
    return false;
}

static __device__ void end_ray(const struct vxd_dag_rays_call *call, size_t i,
                               struct vxd_dag_ray *ray, bool is_hit, uint32_t value)
{
    struct vxd_dag_hit hit = {-1.0, {-1, -1, -1}, 0, 0, 0};

    if (is_hit) {
        vxd_dag_ray_report(ray, value, &hit);
    }
    call->hits[i] = hit;
}

static __global__ void __launch_bounds__(RAY_THREADS, RAY_BLOCKS)
    cast_kernel(const __grid_constant__ struct rays_run run)
{
    extern __shared__ uint32_t nodes[];
    const struct vxd_dag_rays_call *call = &run.call;
    uint32_t lane = threadIdx.x % 32;
    size_t first = ((size_t)blockIdx.x * RAY_WARPS + threadIdx.x / 32) * run.share;
    uint32_t end = first >= call->n              ? 0
                   : call->n - first < run.share ? (uint32_t)(call->n - first)
                                                 : run.share;
    uint32_t next = 0; /* of the share, like i */
    uint32_t i = 0;
    struct vxd_dag_ray_spot spot = {VXD_DAG_EMPTY, 0};
    struct vxd_dag_ray ray;
    bool is_busy = false;

    /* All 32 threads go round until the last one's ray is over: each round either takes rays
     * from the share, or takes every ray that is there on by a voxel or more. */
    for (;;) {
        uint32_t idle = __ballot_sync(UINT32_MAX, !is_busy);

        if (next < end && __popc(idle) >= RAY_LEAST_IDLE) {
            uint32_t at = next + (uint32_t)__popc(idle & ((1u << lane) - 1));

            if (!is_busy && at < end) {
                i = at;
                is_busy = begin_ray(call, first + i, &ray, &spot);
            }
            next += (uint32_t)__popc(idle);
        } else if (idle == UINT32_MAX) {
            return;
        } else if (is_busy) {
            uint32_t value = 0;
            enum vxd_dag_ray_end found =
                vxd_dag_ray_step(&call->view, &ray, &spot, nodes + threadIdx.x,
                                 RAY_THREADS, RAY_DOWN, &value);

            if (found != VXD_DAG_RAY_ON) {
                end_ray(call, first + i, &ray, found == VXD_DAG_RAY_HIT, value);
                is_busy = false;
            }
        }
        __syncwarp();
    }
}

enum vxd_status VXD_DAG_FORM(vxd_dag_cast_rays)(struct vxd_queue *queue,
                                                const struct vxd_dag_rays_call *call,
                                                struct vxd_err *err)
{
    size_t n_nodes = (size_t)(call->view.depth - VXD_DAG_LEAF_HEIGHT);
    size_t n_warps =
        (size_t)queue->context->info.n_multiprocessors * RAY_BLOCKS * RAY_WARPS;
    size_t share = ((call->n - 1) / n_warps / 32 + 1) * 32;
    struct rays_run run = {*call, (uint32_t)(share < RAY_MOST ? share : RAY_MOST)};
    unsigned n_blocks = 0;
    enum vxd_status status;

    VXD_TRY(vxd_dag_blocks_of(call->n, (size_t)run.share * RAY_WARPS, &n_blocks, err));
    VXD_TRY(vxd_cuda_enter(queue->context, err));
    cast_kernel<<<n_blocks, RAY_THREADS, n_nodes * RAY_THREADS * sizeof(uint32_t),
                  (cudaStream_t)queue->stream>>>(run);
    VXD_TRY(vxd_cuda_launched(queue->context, "cast_kernel", err));
out:
    return status;
}
