// SPDX-License-Identifier: Apache-2.0
/* CUDA backend of gather_rows.h: a thread an element; the elements of a row are in adjacent
 * threads, so rows are read and written in whole lines.
 *
 * Moved: an element in (from anywhere, rows being whole lines) and one out. 126 k points of 19
 * channels to float16 are 14 MB: 4 us at 4.3 TB/s. */
#include "gpu/core/core_cuda.h"
#include "gpu/sparse/executor/gather_rows_math.h"

#define N_THREADS 256

static __global__ void __launch_bounds__(N_THREADS)
    gather_kernel(const __grid_constant__ struct vxd_gather_args args)
{
    const size_t n = args.n * args.n_elements;

    for (size_t i = (size_t)blockIdx.x * N_THREADS + threadIdx.x; i < n;
         i += (size_t)gridDim.x * N_THREADS) {
        size_t row = i / args.n_elements;

        vxd_gather_element(&args, vxd_gather_source(&args, row), row,
                           i - row * args.n_elements);
    }
}

enum vxd_status vxd_rows_gather_cuda(struct vxd_queue *queue,
                                     const struct vxd_gather_args *args,
                                     struct vxd_err *err)
{
    size_t n_blocks = (args->n * args->n_elements + N_THREADS - 1) / N_THREADS;
    enum vxd_status status = VXD_OK;

    if (n_blocks > INT32_MAX) {
        n_blocks = INT32_MAX;
    }
    VXD_TRY(vxd_cuda_enter(queue->context, err));
    gather_kernel<<<(unsigned)n_blocks, N_THREADS, 0, (cudaStream_t)queue->stream>>>(
        *args);
    VXD_TRY(vxd_cuda_launched(queue->context, "gather_kernel", err));
out:
    return status;
}
