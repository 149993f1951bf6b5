// SPDX-License-Identifier: Apache-2.0
/* Final voxel numbers where they differ from Morton ranks: max_voxels and FIRST_POINT.
 *
 * FIRST_POINT needs no second sort: flags at the points that begin a voxel, summed over the
 * points, number the voxels in that order (a sample's points are contiguous, so its voxels are
 * too). A voxel survives while its number in its sample is below max_voxels. Survivors keep that
 * number (FIRST_POINT), or are renumbered without gaps in Morton order by one more sum.
 * Moved: 16 bytes a point for the sums, 4 for the inverse map, about 20 a voxel. */
#include "gpu/core/core.h"
#include "gpu/voxel/voxelize_cuda.h"

#define N_THREADS 256

/* Voxels of each sample after the cap; their prefix sum becomes out.starts. */
static __global__ void __launch_bounds__(N_THREADS)
    cap_kernel(const __grid_constant__ struct vxd_voxel_run run)
{
    uint32_t s = blockIdx.x * N_THREADS + threadIdx.x;

    if (s < (uint32_t)run.n_batch) {
        uint32_t count = run.sample_voxels[s + 1] - run.sample_voxels[s];

        run.out.starts[s] = count < run.max_voxels ? count : run.max_voxels;
    }
}

/* Number of a rank's voxel in its sample, by first point. */
static __device__ uint32_t first_number(const struct vxd_voxel_run *run, uint32_t rank,
                                        uint32_t *sample)
{
    uint32_t place = run->segments[rank];

    *sample = vxd_sorted_sample(&run->sorted, place);
    return run->first_ranks[vxd_sorted_index(&run->sorted, place)] -
           run->sample_voxels[*sample];
}

static __global__ void __launch_bounds__(N_THREADS)
    first_order_kernel(const __grid_constant__ struct vxd_voxel_run run)
{
    uint32_t n_ranks = run.sample_voxels[run.n_batch];
    size_t stride = (size_t)gridDim.x * N_THREADS;

    for (size_t i = (size_t)blockIdx.x * N_THREADS + threadIdx.x; i < n_ranks;
         i += stride) {
        uint32_t sample;
        uint32_t number = first_number(&run, (uint32_t)i, &sample);

        run.remap[i] =
            number < run.max_voxels ? run.out.starts[sample] + number : VXD_NO_VOXEL;
    }
}

/* Writes 1 for survivors, 0 for the others and after the last rank. */
static __global__ void __launch_bounds__(N_THREADS)
    survivor_kernel(const __grid_constant__ struct vxd_voxel_run run)
{
    uint32_t n_ranks = run.sample_voxels[run.n_batch];
    size_t stride = (size_t)gridDim.x * N_THREADS;

    for (size_t i = (size_t)blockIdx.x * N_THREADS + threadIdx.x; i < run.n_points;
         i += stride) {
        uint32_t sample;

        run.remap[i] =
            i < n_ranks && first_number(&run, (uint32_t)i, &sample) < run.max_voxels ? 1
                                                                                     : 0;
    }
}

/* The sum has overwritten the flags, so survival is computed again. */
static __global__ void __launch_bounds__(N_THREADS)
    drop_kernel(const __grid_constant__ struct vxd_voxel_run run)
{
    uint32_t n_ranks = run.sample_voxels[run.n_batch];
    size_t stride = (size_t)gridDim.x * N_THREADS;

    for (size_t i = (size_t)blockIdx.x * N_THREADS + threadIdx.x; i < n_ranks;
         i += stride) {
        uint32_t sample;

        if (first_number(&run, (uint32_t)i, &sample) >= run.max_voxels) {
            run.remap[i] = VXD_NO_VOXEL;
        }
    }
}

static __global__ void __launch_bounds__(N_THREADS)
    inverse_kernel(const __grid_constant__ struct vxd_voxel_run run)
{
    uint32_t place = blockIdx.x * N_THREADS + threadIdx.x;

    if (place < run.n_points) {
        uint32_t voxel = VXD_NO_VOXEL;

        if (place < run.sample_points[run.n_batch]) {
            voxel = run.remap[run.ranks[place] - 1];
        }
        run.out.inverse[vxd_sorted_index(&run.sorted, place)] = (int32_t)voxel;
    }
}

enum vxd_status vxd_voxelize_renumber(struct vxd_queue *queue,
                                      const struct vxd_voxel_plan *plan,
                                      const struct vxd_voxel_run *run,
                                      enum vxd_voxel_order order, void *scratch,
                                      struct vxd_err *err)
{
    struct vxd_context *context = queue->context;
    cudaStream_t stream = (cudaStream_t)queue->stream;
    void *cub = (uint8_t *)scratch + plan->cub;
    size_t n = run->n_points;
    unsigned n_blocks = vxd_voxelize_blocks(queue, n, N_THREADS);
    enum vxd_status status = VXD_OK;

    VXD_TRY(vxd_scan_exclusive_cuda(queue, run->first_ranks, run->first_ranks, n, cub,
                                    plan->cub_bytes, err));
    cap_kernel<<<((unsigned)run->n_batch + N_THREADS - 1) / N_THREADS, N_THREADS, 0,
                 stream>>>(*run);
    VXD_TRY(vxd_cuda_launched(context, "cap_kernel", err));
    VXD_TRY(vxd_scan_exclusive_cuda(queue, run->out.starts, run->out.starts,
                                    (size_t)run->n_batch, cub, plan->cub_bytes, err));
    if (order == VXD_ORDER_FIRST_POINT) {
        first_order_kernel<<<n_blocks, N_THREADS, 0, stream>>>(*run);
        VXD_TRY(vxd_cuda_launched(context, "first_order_kernel", err));
    } else {
        survivor_kernel<<<n_blocks, N_THREADS, 0, stream>>>(*run);
        VXD_TRY(vxd_cuda_launched(context, "survivor_kernel", err));
        VXD_TRY(vxd_scan_exclusive_cuda(queue, run->remap, run->remap, n, cub,
                                        plan->cub_bytes, err));
        drop_kernel<<<n_blocks, N_THREADS, 0, stream>>>(*run);
        VXD_TRY(vxd_cuda_launched(context, "drop_kernel", err));
    }
    if (run->out.inverse != NULL) {
        inverse_kernel<<<(unsigned)((n + N_THREADS - 1) / N_THREADS), N_THREADS, 0,
                         stream>>>(*run);
        VXD_TRY(vxd_cuda_launched(context, "inverse_kernel", err));
    }
out:
    return status;
}
