// SPDX-License-Identifier: Apache-2.0
/* CUDA backend of vxd_conv_weights_pack: a thread for each packed element finds its
 * source. */
#include "gpu/sparse/conv/conv_cuda.h"

#define N_THREADS 256

struct pack {
    const float *weights; /* on the device */
    char *out;
    struct vxd_conv_shape shape;
    size_t n; /* elements */
    enum vxd_net_precision precision;
    int element_bytes;
};

/* Rounds to 10 bits of mantissa, ties away from zero. */
static __device__ float to_tf32(float value)
{
    uint32_t bits;

    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(value));
    return __uint_as_float(bits);
}

static __global__ void __launch_bounds__(N_THREADS)
    pack_kernel(const __grid_constant__ struct pack pack)
{
    const struct vxd_conv_shape *shape = &pack.shape;
    int element = pack.element_bytes;
    int n_elements = VXD_CONV_SLOT_BYTES / element;
    size_t stride = (size_t)gridDim.x * N_THREADS;

    for (size_t i = (size_t)blockIdx.x * N_THREADS + threadIdx.x; i < pack.n;
         i += stride) {
        int out = (int)(i % (size_t)shape->n_padded);
        size_t k = i / (size_t)shape->n_padded;
        int channel = (int)(k % (size_t)(shape->n_slots * n_elements));
        int tap = (int)(k / (size_t)(shape->n_slots * n_elements));
        float value = 0.0f;
        char *at = pack.out + vxd_conv_weight_at(shape->n_slots, shape->n_padded, tap,
                                                 channel, out, element);

        if (channel < shape->n_in && out < shape->n_out) {
            value = pack.weights[((size_t)tap * (size_t)shape->n_in + (size_t)channel) *
                                     (size_t)shape->n_out +
                                 (size_t)out];
        }
        if (pack.precision == VXD_NET_TF32) {
            value = to_tf32(value);
        }
        vxd_element_store(pack.precision, at, 0, value);
    }
}

size_t vxd_conv_weights_bytes_cuda(int n_taps, int n_in, int n_out,
                                   enum vxd_net_precision precision)
{
    struct vxd_conv_shape shape = vxd_conv_shape_of(n_in, n_out, precision);
    size_t n_bytes = VXD_CONV_SLOT_BYTES;

    if (!vxd_size_mul(n_bytes, (size_t)n_taps, &n_bytes) ||
        !vxd_size_mul(n_bytes, (size_t)shape.n_slots, &n_bytes) ||
        !vxd_size_mul(n_bytes, (size_t)shape.n_padded, &n_bytes)) {
        return 0;
    }
    return n_bytes;
}

enum vxd_status vxd_conv_weights_pack_cuda(struct vxd_queue *queue, const float *weights,
                                           const struct vxd_conv_weights *out,
                                           struct vxd_err *err)
{
    size_t n_source = (size_t)out->n_taps * (size_t)out->n_in * (size_t)out->n_out;
    struct vxd_context *context = queue->context;
    struct vxd_buffer source = {};
    struct pack pack = {};
    size_t n_blocks;
    enum vxd_status status;

    VXD_TRY(vxd_device_alloc(queue, n_source * sizeof *weights, &source, err));
    VXD_TRY(vxd_queue_copy(queue, source.ptr, weights, source.n_bytes, err));
    pack.weights = (const float *)source.ptr;
    pack.out = (char *)out->data.ptr;
    pack.shape = vxd_conv_shape_of(out->n_in, out->n_out, out->precision);
    pack.precision = out->precision;
    pack.element_bytes = (int)vxd_net_element_bytes(out->precision);
    pack.n = out->data.n_bytes / (size_t)pack.element_bytes;
    n_blocks = (pack.n + N_THREADS - 1) / N_THREADS;
    n_blocks = n_blocks < 65536 ? n_blocks : 65536;
    VXD_TRY(vxd_cuda_enter(context, err));
    pack_kernel<<<(unsigned)n_blocks, N_THREADS, 0, (cudaStream_t)queue->stream>>>(pack);
    VXD_TRY(vxd_cuda_launched(context, "pack_kernel", err));
out:
    vxd_device_free(queue, &source);
    return status;
}
