// SPDX-License-Identifier: Apache-2.0
/* Triangles on a GPU: a thread for each row of voxels of each triangle, which counts, and after a
 * prefix sum writes 12 bytes a voxel, and 2 of its value. Rows of one triangle have similar lengths
 * and are neighbours, so the threads of a warp stay together. */
#include "gpu/core/core_cuda.h"
#include "gpu/svdag/mesh/mesh_backends.h"

enum {
    THREADS = 128
};

/* Blocks for n elements, a thread each, up to a limit; kernels loop over the rest. */
static unsigned blocks_for(const struct vxd_queue *queue, uint64_t n)
{
    uint64_t most = (uint64_t)queue->context->info.n_multiprocessors * 16;
    uint64_t needed = (n + THREADS - 1) / THREADS;

    return (unsigned)(needed < 1 ? 1 : needed < most ? needed : most);
}

static __global__ void __launch_bounds__(THREADS)
    count_rows_kernel(const struct vxd_svdag_mesh_work work)
{
    for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < work.n_rows;
         i += (uint64_t)gridDim.x * blockDim.x) {
        work.counts[i] = vxd_svdag_mesh_row(&work, (uint32_t)i, 0);
    }
}

static __global__ void __launch_bounds__(THREADS)
    write_rows_kernel(const struct vxd_svdag_mesh_work work)
{
    for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < work.n_rows;
         i += (uint64_t)gridDim.x * blockDim.x) {
        (void)vxd_svdag_mesh_row(&work, (uint32_t)i, work.counts[i]);
    }
}

enum vxd_status vxd_svdag_mesh_count_cuda(struct vxd_queue *queue,
                                          const struct vxd_svdag_mesh_work *work,
                                          struct vxd_err *err)
{
    count_rows_kernel<<<blocks_for(queue, work->n_rows), THREADS, 0,
                        (cudaStream_t)queue->stream>>>(*work);
    return vxd_cuda_launched(queue->context, "count_rows_kernel", err);
}

enum vxd_status vxd_svdag_mesh_write_cuda(struct vxd_queue *queue,
                                          const struct vxd_svdag_mesh_work *work,
                                          struct vxd_err *err)
{
    write_rows_kernel<<<blocks_for(queue, work->n_rows), THREADS, 0,
                        (cudaStream_t)queue->stream>>>(*work);
    return vxd_cuda_launched(queue->context, "write_rows_kernel", err);
}
