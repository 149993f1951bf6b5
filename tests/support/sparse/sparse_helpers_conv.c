// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/core/core_math.h"
#include "tests/support/sparse/sparse_helpers.h"

#define MUST(expression)                                                                 \
    do {                                                                                 \
        if ((expression) != VXD_OK) {                                                    \
            (void)fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, err.message);       \
            exit(EXIT_FAILURE);                                                          \
        }                                                                                \
    } while (0)

float gpu_rounded(enum vxd_net_precision precision, float value)
{
    switch (precision) {
    case VXD_NET_FP16:
        return vxd_float_of_half(vxd_half_of_float(value));
    case VXD_NET_BF16:
        return vxd_float_of_bfloat(vxd_bfloat_of_float(value));
    default:
        return value;
    }
}

float *gpu_random_floats(uint64_t *state, size_t n, bool are_whole)
{
    float *values = gpu_alloc(n * sizeof *values);

    for (size_t i = 0; i < n; i++) {
        values[i] = are_whole ? (float)((int)(gpu_random(state) % 7) - 3)
                              : gpu_random_float(state, -1, 1);
    }
    return values;
}

/* Rows have gaps that keep rows at multiples of 16 bytes where their channels allow
 * it, else at no particular alignment. */
static size_t stride_of(int n_channels)
{
    return (size_t)n_channels + (n_channels % 8 == 0 ? 8 : 3);
}

/* Rows with gaps on the device, in elements of the precision. */
static struct vxd_buffer to_rows(struct gpu_env *env, enum vxd_net_precision precision,
                                 const float *values, size_t n_rows, int n_channels,
                                 struct vxd_rows *rows)
{
    size_t stride = stride_of(n_channels);
    size_t element = vxd_net_element_bytes(precision);
    size_t n_bytes = (n_rows * stride + 1) * element;
    char *bytes = gpu_alloc(n_bytes);
    struct vxd_buffer buffer;

    memset(bytes, 0xa5, n_bytes);
    for (size_t i = 0; i < n_rows * (size_t)n_channels && values != NULL; i++) {
        size_t at = i / (size_t)n_channels * stride + i % (size_t)n_channels;
        uint16_t half = precision == VXD_NET_FP16 ? vxd_half_of_float(values[i])
                                                  : vxd_bfloat_of_float(values[i]);

        memcpy(bytes + at * element,
               element == 4 ? (const void *)&values[i] : (const void *)&half, element);
    }
    buffer = gpu_to_device(env, bytes, n_bytes);
    free(bytes);
    *rows = (struct vxd_rows){buffer.ptr, n_channels, stride};
    return buffer;
}

static float *from_rows(struct gpu_env *env, enum vxd_net_precision precision,
                        const struct vxd_buffer *buffer, size_t n_rows, int n_channels)
{
    size_t stride = stride_of(n_channels);
    size_t element = vxd_net_element_bytes(precision);
    unsigned char *bytes = gpu_to_host(env, buffer);
    float *values = gpu_alloc(n_rows * (size_t)n_channels * sizeof *values);
    size_t n_changed = 0;

    for (size_t i = 0; i < n_rows * stride; i++) {
        size_t channel = i % stride;
        float *to = values + i / stride * (size_t)n_channels + channel;
        uint16_t half;

        if (channel >= (size_t)n_channels) {
            for (size_t j = 0; j < element; j++) {
                n_changed += bytes[i * element + j] != 0xa5;
            }
        } else if (element == 4) {
            memcpy(to, bytes + i * element, 4);
        } else {
            memcpy(&half, bytes + i * element, 2);
            *to = precision == VXD_NET_FP16 ? vxd_float_of_half(half)
                                            : vxd_float_of_bfloat(half);
        }
    }
    if (n_changed > 0) {
        (void)fprintf(stderr, "%zu bytes between rows were written\n", n_changed);
        exit(EXIT_FAILURE);
    }
    free(bytes);
    return values;
}

float *gpu_conv_run(struct gpu_env *env, const struct gpu_conv *conv)
{
    struct vxd_conv_weights weights;
    struct vxd_buffer n_rows =
        gpu_to_device(env, &conv->n_out_rows, sizeof conv->n_out_rows);
    struct vxd_buffer bias =
        gpu_to_device(env, conv->bias, (size_t)conv->n_out * sizeof(float));
    struct vxd_conv_args args = {.map = conv->map != NULL ? &conv->map->map : NULL,
                                 .n_rows = n_rows.ptr,
                                 .max_rows = conv->n_out_rows,
                                 .weights = &weights,
                                 .bias = conv->bias != NULL ? bias.ptr : NULL,
                                 .act = conv->act,
                                 .alpha = conv->alpha};
    struct vxd_err err = {0};
    struct vxd_buffer in =
        to_rows(env, conv->precision, conv->in, conv->n_in_rows, conv->n_in, &args.in);
    struct vxd_buffer out =
        to_rows(env, conv->precision, NULL, conv->n_out_rows, conv->n_out, &args.out);
    struct vxd_buffer add = to_rows(env, conv->precision, conv->add, conv->n_out_rows,
                                    conv->n_out, &args.add);
    float *values;

    if (conv->add == NULL) {
        args.add.data = NULL;
    }
    MUST(vxd_conv_weights_pack(env->queue, conv->weights, conv->n_taps, conv->n_in,
                               conv->n_out, conv->precision, &weights, &err));
    MUST(vxd_conv_run(env->queue, &args, &err));
    values = from_rows(env, conv->precision, &out, conv->n_out_rows, conv->n_out);
    vxd_device_free(env->queue, &weights.data);
    vxd_device_free(env->queue, &n_rows);
    vxd_device_free(env->queue, &bias);
    vxd_device_free(env->queue, &in);
    vxd_device_free(env->queue, &out);
    vxd_device_free(env->queue, &add);
    gpu_wait(env);
    return values;
}
