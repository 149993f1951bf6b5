// SPDX-License-Identifier: Apache-2.0
#include "gpu/core/core.h"
#include "gpu/sparse/conv/conv_math.h"
#include "gpu/sparse/conv/conv_cpu.h"

size_t vxd_conv_weights_bytes_cpu(int n_taps, int n_in, int n_out,
                                  enum vxd_net_precision precision)
{
    size_t n_bytes = VXD_CONV_PANEL * sizeof(float);

    (void)precision;
    if (!vxd_size_mul(n_bytes, vxd_conv_n_panels(n_out), &n_bytes) ||
        !vxd_size_mul(n_bytes, (size_t)n_in, &n_bytes) ||
        !vxd_size_mul(n_bytes, (size_t)n_taps, &n_bytes)) {
        return 0;
    }
    return n_bytes;
}

struct pack {
    const float *weights;
    struct vxd_conv_weights out;
};

static float rounded(enum vxd_net_precision precision, float value)
{
    switch (precision) {
    case VXD_NET_FP16:
        return vxd_float_of_half(vxd_half_of_float(value));
    case VXD_NET_BF16:
        return vxd_float_of_bfloat(vxd_bfloat_of_float(value));
    case VXD_NET_FP32:
    case VXD_NET_TF32:
        break;
    }
    return value;
}

static void pack_panels(void *args, size_t begin, size_t end)
{
    const struct pack *pack = args;
    size_t n_in = (size_t)pack->out.n_in;
    size_t n_out = (size_t)pack->out.n_out;
    size_t n_panels = vxd_conv_n_panels(pack->out.n_out);

    for (size_t panel = begin; panel < end; panel++) {
        float *to = (float *)pack->out.data.ptr + panel * n_in * VXD_CONV_PANEL;
        const float *from = pack->weights + panel / n_panels * n_in * n_out;
        size_t first = panel % n_panels * VXD_CONV_PANEL;

        for (size_t i = 0; i < n_in; i++) {
            for (size_t j = 0; j < VXD_CONV_PANEL; j++) {
                to[i * VXD_CONV_PANEL + j] =
                    first + j < n_out
                        ? rounded(pack->out.precision, from[i * n_out + first + j])
                        : 0.0f;
            }
        }
    }
}

static enum vxd_status pack_job(struct vxd_pool *pool, const void *args,
                                struct vxd_err *err)
{
    struct pack pack = *(const struct pack *)args;

    (void)err;
    vxd_parallel_for(pool, (size_t)pack.out.n_taps * vxd_conv_n_panels(pack.out.n_out), 1,
                     pack_panels, &pack);
    return VXD_OK;
}

enum vxd_status vxd_conv_weights_pack_cpu(struct vxd_queue *queue, const float *weights,
                                          const struct vxd_conv_weights *out,
                                          struct vxd_err *err)
{
    struct pack pack = {weights, *out};

    return vxd_queue_push(queue, pack_job, &pack, sizeof pack, err);
}
