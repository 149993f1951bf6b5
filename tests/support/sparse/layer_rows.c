// SPDX-License-Identifier: Apache-2.0
#include "tests/support/sparse/layer_rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/core/core_math.h"

#define UNTOUCHED 0xa5

void gpu_must(enum vxd_status status, const struct vxd_err *err, const char *what)
{
    if (status != VXD_OK) {
        (void)fprintf(stderr, "%s: status %d: %s\n", what, (int)status, err->message);
        exit(EXIT_FAILURE);
    }
}

static void store(enum vxd_net_precision precision, unsigned char *to, float value)
{
    uint16_t half =
        precision == VXD_NET_FP16 ? vxd_half_of_float(value) : vxd_bfloat_of_float(value);

    if (vxd_net_element_bytes(precision) == 4) {
        memcpy(to, &value, 4);
    } else {
        memcpy(to, &half, 2);
    }
}

static float load(enum vxd_net_precision precision, const unsigned char *from)
{
    uint16_t half;
    float value;

    if (vxd_net_element_bytes(precision) == 4) {
        memcpy(&value, from, 4);
        return value;
    }
    memcpy(&half, from, 2);
    return precision == VXD_NET_FP16 ? vxd_float_of_half(half)
                                     : vxd_float_of_bfloat(half);
}

struct gpu_rows gpu_rows_make(struct gpu_env *env, enum vxd_net_precision precision,
                              const float *values, size_t n_rows, int n_channels,
                              int layout)
{
    static const size_t offsets[GPU_N_LAYOUTS] = {0, 16, 1};
    static const size_t gaps[GPU_N_LAYOUTS] = {0, 8, 3};
    size_t element = vxd_net_element_bytes(precision);
    struct gpu_rows out = {
        precision, n_rows, offsets[layout], {NULL, n_channels, 0}, {0}};
    unsigned char *bytes;
    size_t n_bytes;

    out.rows.stride = (size_t)n_channels + gaps[layout];
    if (layout == 1) {
        out.rows.stride = (out.rows.stride + 7) / 8 * 8;
    }
    n_bytes = (out.offset + (n_rows + 1) * out.rows.stride) * element;
    bytes = gpu_alloc(n_bytes);
    memset(bytes, UNTOUCHED, n_bytes);
    for (size_t i = 0; i < n_rows * (size_t)n_channels && values != NULL; i++) {
        size_t row = i / (size_t)n_channels;
        size_t at = out.offset + row * out.rows.stride + i % (size_t)n_channels;

        store(precision, bytes + at * element, values[i]);
    }
    out.buffer = gpu_to_device(env, bytes, n_bytes);
    out.rows.data = (char *)out.buffer.ptr + out.offset * element;
    free(bytes);
    return out;
}

float *gpu_rows_fetch(struct gpu_env *env, const struct gpu_rows *rows)
{
    size_t element = vxd_net_element_bytes(rows->precision);
    size_t n_channels = (size_t)rows->rows.n_channels;
    unsigned char *bytes = gpu_to_host(env, &rows->buffer);
    float *values = gpu_alloc(rows->n_rows * n_channels * sizeof *values);
    size_t n_elements = rows->buffer.n_bytes / element;
    size_t n_changed = 0;

    for (size_t i = 0; i < n_elements; i++) {
        size_t row = i < rows->offset ? 0 : (i - rows->offset) / rows->rows.stride;
        size_t channel =
            i < rows->offset ? n_channels : (i - rows->offset) % rows->rows.stride;

        if (row < rows->n_rows && channel < n_channels) {
            values[row * n_channels + channel] =
                load(rows->precision, bytes + i * element);
            continue;
        }
        for (size_t j = 0; j < element; j++) {
            n_changed += bytes[i * element + j] != UNTOUCHED;
        }
    }
    if (n_changed > 0) {
        (void)fprintf(stderr, "%zu bytes beside rows were written\n", n_changed);
        exit(EXIT_FAILURE);
    }
    free(bytes);
    return values;
}

void gpu_rows_free(struct gpu_env *env, struct gpu_rows *rows)
{
    vxd_device_free(env->queue, &rows->buffer);
    gpu_wait(env);
}

struct vxd_rows gpu_rows_from(const struct gpu_rows *rows, size_t first)
{
    struct vxd_rows from = rows->rows;

    from.data =
        (char *)from.data + first * from.stride * vxd_net_element_bytes(rows->precision);
    return from;
}

void gpu_samples_make(struct gpu_env *env, struct gpu_samples *out, const uint32_t *sizes,
                      int n_samples)
{
    *out = (struct gpu_samples){.n_samples = n_samples};
    for (int s = 0; s < n_samples; s++) {
        out->starts[s + 1] = out->starts[s] + sizes[s];
    }
    out->d_starts =
        gpu_to_device(env, out->starts, (size_t)(n_samples + 1) * sizeof out->starts[0]);
    out->extent = (struct vxd_net_extent){(const uint32_t *)out->d_starts.ptr + n_samples,
                                          gpu_samples_n_rows(out) + 300,
                                          out->d_starts.ptr, n_samples};
}

void gpu_samples_free(struct gpu_env *env, struct gpu_samples *samples)
{
    vxd_device_free(env->queue, &samples->d_starts);
    gpu_wait(env);
}

struct gpu_samples gpu_samples_of_one(struct gpu_env *env, size_t n_rows)
{
    uint32_t size = (uint32_t)n_rows;
    struct gpu_samples samples;

    gpu_samples_make(env, &samples, &size, 1);
    return samples;
}

struct gpu_rows_case gpu_rows_case(int number)
{
    static const int channels[] = {1, 3, 4, 8, 20, 33, 64, 130, GPU_ROWS_MAX_CHANNELS};
    static const size_t rows[] = {1, 0, 300, 97, 1023};

    return (struct gpu_rows_case){(enum vxd_net_precision)(number % 4), rows[number % 5],
                                  channels[number % 9], number / 4 % GPU_N_LAYOUTS,
                                  (uint64_t)number + 7};
}

float *gpu_rounded_floats(uint64_t *state, enum vxd_net_precision precision, size_t n)
{
    float *values = gpu_random_floats(state, n, false);

    for (size_t i = 0; i < n; i++) {
        values[i] = gpu_rounded(precision, values[i]);
    }
    return values;
}
