// SPDX-License-Identifier: Apache-2.0
/* CUDA backend of fields of volumes: a thread a word of bits, whose voxels along z are in eight
 * blocks of the volume at most, and a thread a point. What is computed stands in
 * field_volume_math.h. */
#include "gpu/core/core_cuda.h"
#include "gpu/field/field_volume_math.h"

#define VOLUME_THREADS 128

static __global__ void __launch_bounds__(VOLUME_THREADS)
    bits_kernel(const __grid_constant__ struct vxd_field_bits_call call, size_t n)
{
    size_t i = (size_t)blockIdx.x * VOLUME_THREADS + threadIdx.x;

    if (i < n) {
        vxd_field_volume_row_words(&call, i);
    }
}

static __global__ void __launch_bounds__(VOLUME_THREADS)
    surface_kernel(const __grid_constant__ struct vxd_field_surface_call call)
{
    size_t i = (size_t)blockIdx.x * VOLUME_THREADS + threadIdx.x;

    if (i < call.n) {
        vxd_field_answer_surface(&call, i);
    }
}

/* Blocks of n > 0 threads. */
static enum vxd_status blocks_of(size_t n, unsigned *n_blocks, struct vxd_err *err)
{
    size_t wanted = (n - 1) / VOLUME_THREADS + 1;

    *n_blocks = (unsigned)wanted;
    return wanted <= INT32_MAX
               ? VXD_OK
               : vxd_fail(err, VXD_INVALID_ARGUMENT, "n", "%zu are too many at once", n);
}

enum vxd_status vxd_field_volume_bits_cuda(struct vxd_queue *queue,
                                           const struct vxd_field_bits_call *call,
                                           struct vxd_err *err)
{
    size_t n =
        (size_t)call->n_x * (size_t)call->field.size[1] * (size_t)call->field.n_words;
    unsigned n_blocks = 0;
    enum vxd_status status;

    VXD_TRY(blocks_of(n, &n_blocks, err));
    VXD_TRY(vxd_cuda_enter(queue->context, err));
    bits_kernel<<<n_blocks, VOLUME_THREADS, 0, (cudaStream_t)queue->stream>>>(*call, n);
    VXD_TRY(vxd_cuda_launched(queue->context, "bits_kernel", err));
out:
    return status;
}

enum vxd_status vxd_field_query_surface_cuda(struct vxd_queue *queue,
                                             const struct vxd_field_surface_call *call,
                                             struct vxd_err *err)
{
    size_t n = call->n;
    unsigned n_blocks = 0;
    enum vxd_status status;

    VXD_TRY(blocks_of(n, &n_blocks, err));
    VXD_TRY(vxd_cuda_enter(queue->context, err));
    surface_kernel<<<n_blocks, VOLUME_THREADS, 0, (cudaStream_t)queue->stream>>>(*call);
    VXD_TRY(vxd_cuda_launched(queue->context, "surface_kernel", err));
out:
    return status;
}
