// SPDX-License-Identifier: Apache-2.0
/* Kernels of scans and voxel lists: a thread for each point, ray or leaf.
 *
 * A ray walks from voxel to voxel, keeps the passed voxels of its leaf in a register, and
 * ORs them into a word of a brick when it leaves the leaf, unless they are already set:
 * about four steps for a write, and near the origin hardly any write. Rays are sorted by
 * the Morton code of their ends, so those of a warp have similar lengths and go through
 * the same bricks. */
#include "gpu/core/core_cuda.h"
#include "gpu/svdag/scan/carve_cuda.h"

enum {
    THREADS = 256,
    CAST_THREADS = 128
};

/* Blocks for n elements, a thread each, up to a limit; kernels loop over the rest. */
static unsigned blocks_for(const struct vxd_queue *queue, uint64_t n, unsigned threads)
{
    uint64_t most = (uint64_t)queue->context->info.n_multiprocessors * 16;
    uint64_t needed = (n + threads - 1) / threads;

    return (unsigned)(needed < 1 ? 1 : needed < most ? needed : most);
}

static cudaStream_t stream_of(const struct vxd_queue *queue)
{
    return (cudaStream_t)queue->stream;
}

static __device__ __forceinline__ uint64_t first_index(void)
{
    return (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
}

static __device__ __forceinline__ uint64_t n_threads(void)
{
    return (uint64_t)gridDim.x * blockDim.x;
}

/* Points ---------------------------------------------------------------------------------- */

static __global__ void __launch_bounds__(THREADS)
    keys_kernel(const struct vxd_svdag_carve_input input, uint64_t *keys,
                uint32_t *points, struct vxd_svdag_carve_counts *counts)
{
    struct vxd_svdag_carve_sums sums = {};

    for (uint64_t i = first_index(); i < input.scan.n; i += n_threads()) {
        vxd_svdag_carve_key(&input, (uint32_t)i, keys, points, &sums, counts);
    }
    for (int c = 0; c <= VXD_SVDAG_POINT_OUTSIDE; c++) {
        vxd_svdag_warp_add(&counts->n_class[c], sums.n_class[c]);
    }
    vxd_svdag_warp_add(&counts->n_rays_only, sums.n_rays_only);
}

enum vxd_status vxd_svdag_carve_keys(struct vxd_queue *queue,
                                     const struct vxd_svdag_carve_input *input,
                                     uint64_t *keys, uint32_t *points,
                                     struct vxd_svdag_carve_counts *counts,
                                     struct vxd_err *err)
{
    enum vxd_status status = vxd_cuda_enter(queue->context, err);

    if (status != VXD_OK) {
        return status;
    }
    keys_kernel<<<blocks_for(queue, input->scan.n, THREADS), THREADS, 0,
                  stream_of(queue)>>>(*input, keys, points, counts);
    return vxd_cuda_launched(queue->context, "keys_kernel", err);
}

static __global__ void __launch_bounds__(THREADS)
    begins_kernel(const struct vxd_svdag_carve_runs runs)
{
    for (uint64_t i = first_index(); i < runs.n; i += n_threads()) {
        vxd_svdag_carve_begin(&runs, (uint32_t)i);
    }
}

enum vxd_status vxd_svdag_carve_begins(struct vxd_queue *queue,
                                       const struct vxd_svdag_carve_runs *runs,
                                       struct vxd_err *err)
{
    begins_kernel<<<blocks_for(queue, runs->n, THREADS), THREADS, 0, stream_of(queue)>>>(
        *runs);
    return vxd_cuda_launched(queue->context, "begins_kernel", err);
}

static __global__ void __launch_bounds__(THREADS)
    write_kernel(const struct vxd_svdag_carve_runs runs)
{
    for (uint64_t i = first_index(); i < runs.n; i += n_threads()) {
        vxd_svdag_carve_put(&runs, (uint32_t)i);
    }
}

enum vxd_status vxd_svdag_carve_write(struct vxd_queue *queue,
                                      const struct vxd_svdag_carve_runs *runs,
                                      struct vxd_err *err)
{
    write_kernel<<<blocks_for(queue, runs->n, THREADS), THREADS, 0, stream_of(queue)>>>(
        *runs);
    return vxd_cuda_launched(queue->context, "write_kernel", err);
}

/* Rays ------------------------------------------------------------------------------------ */

static __global__ void __launch_bounds__(CAST_THREADS)
    rays_kernel(const struct vxd_svdag_carve_cast cast)
{
    for (uint64_t i = first_index(); i < cast.n; i += n_threads()) {
        vxd_svdag_carve_cast_ray(&cast, (uint32_t)i);
    }
}

enum vxd_status vxd_svdag_carve_rays(struct vxd_queue *queue,
                                     const struct vxd_svdag_carve_cast *cast,
                                     struct vxd_err *err)
{
    rays_kernel<<<blocks_for(queue, cast->n, CAST_THREADS), CAST_THREADS, 0,
                  stream_of(queue)>>>(*cast);
    return vxd_cuda_launched(queue->context, "rays_kernel", err);
}

/* Passed voxels
 * -------------------------------------------------------------------------- */

static __global__ void __launch_bounds__(THREADS)
    subtract_kernel(const struct vxd_svdag_bricks bricks,
                    const struct vxd_svdag_voxels hits)
{
    for (uint64_t i = first_index(); i < hits.n; i += n_threads()) {
        vxd_svdag_carve_take_hit(&bricks, &hits, i);
    }
}

enum vxd_status vxd_svdag_carve_subtract(struct vxd_queue *queue,
                                         const struct vxd_svdag_bricks *bricks,
                                         const struct vxd_svdag_voxels *hits,
                                         struct vxd_err *err)
{
    subtract_kernel<<<blocks_for(queue, hits->n, THREADS), THREADS, 0,
                      stream_of(queue)>>>(*bricks, *hits);
    return vxd_cuda_launched(queue->context, "subtract_kernel", err);
}

static __global__ void __launch_bounds__(THREADS)
    gather_kernel(const struct vxd_svdag_carve_passed passed)
{
    for (uint64_t i = first_index(); i < passed.bricks.n; i += n_threads()) {
        if (passed.bricks.slots[i] != 0) {
            uint32_t place = atomicAdd(&passed.counts->n_bricks, 1u);

            passed.codes[place] = passed.bricks.slots[i] - 1;
            passed.slots[place] = (uint32_t)i;
        }
    }
}

enum vxd_status vxd_svdag_carve_gather(struct vxd_queue *queue,
                                       const struct vxd_svdag_carve_passed *passed,
                                       struct vxd_err *err)
{
    gather_kernel<<<blocks_for(queue, passed->bricks.n, THREADS), THREADS, 0,
                    stream_of(queue)>>>(*passed);
    return vxd_cuda_launched(queue->context, "gather_kernel", err);
}

static __global__ void __launch_bounds__(THREADS)
    flag_kernel(const struct vxd_svdag_carve_passed passed)
{
    const uint64_t n = (uint64_t)passed.n_bricks * VXD_SVDAG_BRICK_LEAVES;
    uint64_t n_voxels = 0;

    for (uint64_t i = first_index(); i < n; i += n_threads()) {
        n_voxels += vxd_svdag_carve_flag_leaf(&passed, i);
    }
    vxd_svdag_warp_add(&passed.counts->n_passed, n_voxels);
}

enum vxd_status vxd_svdag_carve_flag(struct vxd_queue *queue,
                                     const struct vxd_svdag_carve_passed *passed,
                                     struct vxd_err *err)
{
    const uint64_t n = (uint64_t)passed->n_bricks * VXD_SVDAG_BRICK_LEAVES;

    flag_kernel<<<blocks_for(queue, n, THREADS), THREADS, 0, stream_of(queue)>>>(*passed);
    return vxd_cuda_launched(queue->context, "flag_kernel", err);
}

static __global__ void __launch_bounds__(THREADS)
    list_kernel(const struct vxd_svdag_carve_passed passed)
{
    const uint64_t n = (uint64_t)passed.n_bricks * VXD_SVDAG_BRICK_LEAVES;

    for (uint64_t i = first_index(); i < n; i += n_threads()) {
        vxd_svdag_carve_list_leaf(&passed, i);
    }
}

enum vxd_status vxd_svdag_carve_list(struct vxd_queue *queue,
                                     const struct vxd_svdag_carve_passed *passed,
                                     struct vxd_err *err)
{
    const uint64_t n = (uint64_t)passed->n_bricks * VXD_SVDAG_BRICK_LEAVES;

    list_kernel<<<blocks_for(queue, n, THREADS), THREADS, 0, stream_of(queue)>>>(*passed);
    return vxd_cuda_launched(queue->context, "list_kernel", err);
}
