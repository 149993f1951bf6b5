// SPDX-License-Identifier: Apache-2.0
/* Lists of slab stores on a GPU, a thread a list. */
#include "gpu/core/core_cuda.h"
#include "gpu/paper/slab_stores.h"

#define N_THREADS 256

static __global__ void __launch_bounds__(N_THREADS)
    spread_kernel(const uint32_t *from, uint32_t factor, uint32_t *to, uint32_t n_to)
{
    const uint32_t i = blockIdx.x * N_THREADS + threadIdx.x;

    if (i < n_to) {
        to[i] = from[i / factor];
    }
}

enum vxd_status vxd_svdag_slabs_spread(struct vxd_queue *queue, const uint32_t *from,
                                       uint32_t n_from, uint32_t factor, uint32_t *to,
                                       struct vxd_err *err)
{
    const uint32_t n_to = n_from * factor;
    enum vxd_status status = vxd_cuda_enter(queue->context, err);

    if (status != VXD_OK) {
        return status;
    }
    spread_kernel<<<(n_to + N_THREADS - 1) / N_THREADS, N_THREADS, 0,
                    (cudaStream_t)queue->stream>>>(from, factor, to, n_to);
    return vxd_cuda_launched(queue->context, "spread_kernel", err);
}
