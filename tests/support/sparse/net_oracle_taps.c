// SPDX-License-Identifier: Apache-2.0
/* Layers that use taps: research 1.1, on coordinates. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/sparse/net_oracle.h"

struct taps {
    int kernel[3];
    int stride[3];
    int padding[3];
    int dilation[3];
    bool transposed;
};

static struct taps taps_of(const struct vxd_net_layer *layer)
{
    struct taps taps = {.transposed = layer->op == VXD_NET_TRANSPOSE};

    for (int axis = 0; axis < 3; axis++) {
        taps.kernel[axis] = layer->kernel[axis];
        taps.stride[axis] = layer->stride[axis];
        taps.dilation[axis] = layer->dilation[axis];
        taps.padding[axis] = layer->padding[axis];
        if (layer->semantics == VXD_NET_MINKOWSKI || layer->op == VXD_NET_SUBM) {
            taps.padding[axis] = layer->kernel[axis] % 2 == 0
                                     ? 0
                                     : layer->kernel[axis] / 2 * layer->dilation[axis];
        }
    }
    return taps;
}

static void tap_at(const struct taps *taps, int number, int tap[3])
{
    tap[2] = number % taps->kernel[2];
    tap[1] = number / taps->kernel[2] % taps->kernel[1];
    tap[0] = number / taps->kernel[2] / taps->kernel[1];
}

static int n_taps_of(const struct taps *taps)
{
    return taps->kernel[0] * taps->kernel[1] * taps->kernel[2];
}

/* fine = coarse * stride - padding + tap * dilation, and back. */
static void to_fine(const struct taps *taps, int number, const int32_t coarse[4],
                    int32_t fine[4])
{
    int tap[3];

    tap_at(taps, number, tap);
    fine[0] = coarse[0];
    for (int a = 0; a < 3; a++) {
        fine[1 + a] = coarse[1 + a] * taps->stride[a] - taps->padding[a] +
                      tap[a] * taps->dilation[a];
    }
}

static bool to_coarse(const struct taps *taps, int number, const int32_t fine[4],
                      int32_t coarse[4])
{
    int tap[3];

    tap_at(taps, number, tap);
    coarse[0] = fine[0];
    for (int a = 0; a < 3; a++) {
        int32_t x = fine[1 + a] + taps->padding[a] - tap[a] * taps->dilation[a];

        if (x % taps->stride[a] != 0) {
            return false;
        }
        coarse[1 + a] = x / taps->stride[a];
    }
    return true;
}

static bool tap_input(const struct taps *taps, bool is_backwards, int number,
                      const int32_t out[4], int32_t in[4])
{
    if (taps->transposed != is_backwards) {
        return to_coarse(taps, number, out, in);
    }
    to_fine(taps, number, out, in);
    return true;
}

static void find_shape(const struct vxd_net_layer *layer, const struct taps *taps,
                       const struct gpu_net_rows *in, struct gpu_net_rows *out)
{
    for (int a = 0; a < 3; a++) {
        int reach = taps->dilation[a] * (taps->kernel[a] - 1) + 1;

        out->shape[a] = 0;
        out->times[a] = in->times[a];
        if (layer->semantics == VXD_NET_MINKOWSKI) {
            out->times[a] = taps->transposed ? in->times[a] / taps->stride[a]
                                             : in->times[a] * taps->stride[a];
        } else if (in->shape[a] > 0 && taps->transposed) {
            out->shape[a] = (in->shape[a] - 1) * taps->stride[a] - 2 * taps->padding[a] +
                            reach + layer->output_padding[a];
        } else if (in->shape[a] > 0) {
            out->shape[a] =
                (in->shape[a] + 2 * taps->padding[a] - reach) / taps->stride[a] + 1;
        }
    }
}

static bool is_inside(const struct gpu_net_rows *rows, const int32_t c[4])
{
    for (int a = 0; a < 3; a++) {
        if (rows->shape[a] > 0 && (c[1 + a] < 0 || c[1 + a] >= rows->shape[a])) {
            return false;
        }
    }
    return true;
}

static void make_support(const struct taps *taps, const struct gpu_net_rows *in,
                         struct gpu_net_rows *out)
{
    size_t n_taps = (size_t)n_taps_of(taps);

    out->coords = gpu_alloc(in->n_rows * n_taps * 16 + 16);
    for (size_t i = 0; i < in->n_rows * n_taps; i++) {
        int32_t *c = out->coords + 4 * out->n_rows;

        if (taps->transposed) {
            to_fine(taps, (int)(i % n_taps), in->coords + i / n_taps * 4, c);
        } else if (!to_coarse(taps, (int)(i % n_taps), in->coords + i / n_taps * 4, c)) {
            continue;
        }
        out->n_rows += is_inside(out, c) ? 1 : 0;
    }
    oracle_make_unique(out);
}

static void make_floor(const struct taps *taps, const struct gpu_net_rows *in,
                       struct gpu_net_rows *out)
{
    oracle_copy_coords(out, in);
    for (int a = 0; a < 3; a++) {
        out->shape[a] = 0;
        out->times[a] = in->times[a] * taps->stride[a];
    }
    for (size_t i = 0; i < out->n_rows; i++) {
        for (int a = 0; a < 3; a++) {
            int32_t *c = &out->coords[4 * i + 1 + (size_t)a];

            *c = (int32_t)floor((double)*c / taps->stride[a]);
        }
    }
    oracle_make_unique(out);
}

/* The rows of a layer that uses taps. */
static void make_rows(struct oracle *oracle, const struct taps *taps)
{
    const struct vxd_net_layer *layer = oracle->layer;
    const struct gpu_net_rows *in = oracle_input(oracle, 0);
    struct gpu_net_rows *out = oracle->out;
    bool is_minkowski = layer->semantics == VXD_NET_MINKOWSKI;

    if (layer->op == VXD_NET_SUBM ||
        (is_minkowski && !taps->transposed && taps->stride[0] == 1 &&
         taps->stride[1] == 1 && taps->stride[2] == 1)) {
        oracle_copy_coords(out, in);
    } else if (layer->onto != VXD_NET_NONE) {
        oracle_copy_coords(out, oracle_tensor(oracle, layer->onto));
    } else if (is_minkowski && !taps->transposed) {
        make_floor(taps, in, out);
    } else {
        find_shape(layer, taps, in, out);
        make_support(taps, in, out);
    }
    out->are_voxels = true;
}

double oracle_activate(const struct vxd_net_layer *layer, double x)
{
    switch (layer->act) {
    case VXD_ACT_RELU:
        return x < 0 ? 0 : x;
    case VXD_ACT_LEAKY_RELU:
        return x < 0 ? (double)layer->alpha * x : x;
    case VXD_ACT_GELU:
        return 0.5 * x * (1 + erf(x / sqrt(2.0)));
    case VXD_ACT_SIGMOID:
        return 1 / (1 + exp(-x));
    case VXD_ACT_NONE:
        break;
    }
    return x;
}

/* Adds the value that a tap reads to a row. */
void oracle_multiply(const struct oracle *oracle, int tap, const double *x, double *y)
{
    size_t n_in = (size_t)oracle_input(oracle, 0)->n_channels;
    size_t n_out = (size_t)oracle->out->n_channels;
    const float *weights = oracle->layer->weights + (size_t)tap * n_in * n_out;

    for (size_t i = 0; i < n_in; i++) {
        for (size_t j = 0; j < n_out; j++) {
            y[j] += x[i] * (double)weights[i * n_out + j];
        }
    }
}

void oracle_finish_convolution(const struct oracle *oracle, size_t row, double *y)
{
    const struct vxd_net_layer *layer = oracle->layer;

    for (int j = 0; j < oracle->out->n_channels; j++) {
        y[j] *= layer->scale != NULL ? (double)layer->scale[j] : 1.0;
        y[j] += layer->bias != NULL ? (double)layer->bias[j] : 0.0;
        if (layer->add != VXD_NET_NONE) {
            const struct gpu_net_rows *add = oracle_tensor(oracle, layer->add);

            y[j] += oracle_row(add, row)[j];
        }
        y[j] = oracle_activate(layer, y[j]);
    }
}

static void pool_row(const struct oracle *oracle, int n_read, const double *x, double *y)
{
    enum vxd_net_op op = oracle->layer->op;

    for (int j = 0; j < oracle->out->n_channels; j++) {
        if (op == VXD_NET_POOL_MAX) {
            bool is_first = n_read == 0 && oracle->layer->semantics == VXD_NET_MINKOWSKI;

            y[j] = is_first || x[j] > y[j] ? x[j] : y[j];
        } else if (op == VXD_NET_UNPOOL) {
            y[j] = n_read == 0 ? x[j] : y[j];
        } else {
            y[j] += x[j];
        }
    }
}

void oracle_run_taps(struct oracle *oracle)
{
    const struct vxd_net_layer *layer = oracle->layer;
    bool is_backwards = layer->op == VXD_NET_INVERSE || layer->op == VXD_NET_UNPOOL;
    const struct vxd_net_layer *of =
        is_backwards ? &oracle->net->layers[layer->of_map] : layer;
    struct taps taps = taps_of(of);
    const struct gpu_net_rows *in = oracle_input(oracle, 0);
    struct gpu_net_rows *out = oracle->out;

    if (is_backwards) {
        oracle_copy_coords(out, oracle_tensor(oracle, of->inputs[0]));
    } else {
        make_rows(oracle, &taps);
    }
    oracle_make_values(out);
    for (size_t row = 0; row < out->n_rows; row++) {
        double *y = oracle_row(out, row);
        int n_read = 0;

        for (int tap = 0; tap < n_taps_of(&taps); tap++) {
            int32_t c[4];
            const double *x;

            if (!tap_input(&taps, is_backwards, tap, out->coords + 4 * row, c)) {
                continue;
            }
            x = oracle_find(in, c);
            if (x == NULL) {
                continue;
            }
            if (layer->weights != NULL) {
                oracle_multiply(oracle, tap, x, y);
            } else {
                pool_row(oracle, n_read, x, y);
            }
            n_read++;
        }
        for (int j = 0; j < out->n_channels && layer->op == VXD_NET_POOL_AVG; j++) {
            y[j] /= n_read > 0 ? n_read : 1;
        }
        if (layer->weights != NULL) {
            oracle_finish_convolution(oracle, row, y);
        }
    }
}
