// SPDX-License-Identifier: Apache-2.0
/* The main kernel of networks: a sparse convolution with the operations that follow it
 * fused in. */
#ifndef VXD_GPU_SPARSE_CONV_CONV_H
#define VXD_GPU_SPARSE_CONV_CONV_H

#include "gpu/sparse/kernel_map/kernel_map.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The type of stored features, and the precision of matrix units; sums are always float32.
 * FP32   float32, plain multiply-add
 * TF32   float32, operands rounded to 10 bits (CUDA; the CPU computes FP32)
 * FP16, BF16  half the bytes; the CPU stores and rounds the same way, and multiplies in float32 */
enum vxd_net_precision {
    VXD_NET_FP32 = 0,
    VXD_NET_TF32 = 1,
    VXD_NET_FP16 = 2,
    VXD_NET_BF16 = 3
};

static inline size_t vxd_net_element_bytes(enum vxd_net_precision precision)
{
    return precision == VXD_NET_FP16 || precision == VXD_NET_BF16 ? 2 : 4;
}

enum vxd_net_act {
    VXD_ACT_NONE = 0,
    VXD_ACT_RELU = 1,
    VXD_ACT_LEAKY_RELU = 2, /* alpha is the slope below zero */
    VXD_ACT_GELU = 3,       /* by erf */
    VXD_ACT_SIGMOID = 4
};

/* A matrix of features: rows of n_channels elements, `stride` elements apart. A
 * concatenation is two tensors that write into one buffer. */
struct vxd_rows {
    void *data; /* device memory; elements of the precision's type */
    int n_channels;
    size_t stride; /* elements, >= n_channels */
};

/* Weights in the layout of the backend, made once by vxd_conv_weights_pack from
 * float32 n_taps x n_in x n_out (tap major, output channel fastest). */
struct vxd_conv_weights {
    int n_taps;
    int n_in;
    int n_out;
    enum vxd_net_precision precision;
    struct vxd_buffer data;
    /* some weight is infinite or NaN after rounding to the precision */
    bool has_non_finite;
};

#define VXD_CONV_MAX_CHANNELS 65536

/* Limits of every layer. */
#define VXD_NET_MAX_INPUTS 8
#define VXD_NET_MAX_CHANNELS 4096

/* in      weights  n_taps x n_in x n_out float32, host memory, read before it returns
 * errors  INVALID_ARGUMENT    channels not 1 to VXD_CONV_MAX_CHANNELS, taps not 1 to
 *                             VXD_SPARSE_MAX_TAPS, an unknown precision
 *         RESOURCE_EXHAUSTED
 * owner   the caller: vxd_device_free(&out->data). Blocking (waits for the queue) */
enum vxd_status vxd_conv_weights_pack(struct vxd_queue *queue, const float *weights,
                                      int n_taps, int n_in, int n_out,
                                      enum vxd_net_precision precision,
                                      struct vxd_conv_weights *out, struct vxd_err *err);

struct vxd_conv_args {
    const struct vxd_kernel_map *map; /* NULL: one tap, row i reads row i (1x1, linear) */
    const uint32_t *n_rows;           /* output rows, device memory */
    size_t max_rows;                  /* upper bound of n_rows (host); sizes the launch */
    const struct vxd_conv_weights *weights;
    const float *bias; /* n_out float32, device memory; NULL = none */
    struct vxd_rows in;
    struct vxd_rows out;
    struct vxd_rows add; /* residual, added before the activation; data NULL = none */
    enum vxd_net_act act;
    float alpha;
};

/* out[o] = act(sum over taps t of in[map.table[t][o]] * W[t] + bias + add[o]).
 *
 * The order of the sum depends on the layer and the device only, never on which rows there are or
 * how many: a row's result has the same bits alone and in any batch.
 *
 * errors  INVALID_ARGUMENT    channels, strides or taps that do not agree; rows without data;
 *                             an unknown activation; out is in; rows of `in` more than
 *                             2^29 elements apart (CUDA)
 *         RESOURCE_EXHAUSTED  by the wait: more rows than max_rows, or than the map's capacity
 * sync    asynchronous; the structs are read before the call returns, the memory that they
 *         point to when it runs. `add` may be `out`; `in` must not overlap it
 * bound   |result - exact| <= e * (sum |in||W| + |bias| + |add|) before the activation, W as
 *         rounded to the precision, with e = (n_taps * n_in + 2) * 2^-24 (a sum of so many
 *         terms), twice that for TF32, FP16 and BF16 on CUDA (matrix units truncate sums) and
 *         2^-10 more for TF32. A stored value is rounded once to the element type.
 *         A NaN is stored as the one NaN of its type, 0x7fc00000, 0x7e00 or 0x7fc0 */
enum vxd_status vxd_conv_run(struct vxd_queue *queue, const struct vxd_conv_args *args,
                             struct vxd_err *err);

#ifdef __cplusplus
}
#endif
#endif
