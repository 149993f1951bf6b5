// SPDX-License-Identifier: Apache-2.0
/* Networks in double, rows found by their coordinates. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/sparse/net_oracle.h"

static int compare_rows(const void *a, const void *b)
{
    const int32_t *p = a;
    const int32_t *q = b;

    for (int i = 0; i < 4; i++) {
        if (p[i] != q[i]) {
            return p[i] < q[i] ? -1 : 1;
        }
    }
    return 0;
}

/* Sorts and drops duplicates. */
void oracle_make_unique(struct gpu_net_rows *rows)
{
    size_t n = 0;

    if (rows->n_rows > 0) {
        qsort(rows->coords, rows->n_rows, 16, compare_rows);
    }
    for (size_t i = 0; i < rows->n_rows; i++) {
        if (n == 0 ||
            compare_rows(rows->coords + 4 * i, rows->coords + 4 * (n - 1)) != 0) {
            memmove(rows->coords + 4 * n++, rows->coords + 4 * i, 16);
        }
    }
    rows->n_rows = n;
}

/* Values of a row, NULL where there is no such row. */
const double *oracle_find(const struct gpu_net_rows *rows, const int32_t c[4])
{
    const int32_t *at = rows->n_rows > 0
                            ? bsearch(c, rows->coords, rows->n_rows, 16, compare_rows)
                            : NULL;

    return at == NULL ? NULL
                      : rows->values +
                            (size_t)(at - rows->coords) / 4 * (size_t)rows->n_channels;
}

void oracle_make_values(struct gpu_net_rows *rows)
{
    size_t n = rows->n_rows * (size_t)rows->n_channels;

    rows->values = gpu_alloc((n + 1) * sizeof *rows->values);
    memset(rows->values, 0, (n + 1) * sizeof *rows->values);
}

void oracle_copy_coords(struct gpu_net_rows *to, const struct gpu_net_rows *from)
{
    to->are_voxels = from->are_voxels;
    to->n_tokens = from->n_tokens;
    to->n_rows = from->n_rows;
    to->coords = gpu_alloc(from->n_rows * 16 + 16);
    memcpy(to->coords, from->coords, from->n_rows * 16);
    memcpy(to->shape, from->shape, sizeof to->shape);
    memcpy(to->times, from->times, sizeof to->times);
}

static void make_tokens(struct oracle *oracle, int n_tokens)
{
    struct gpu_net_rows *out = oracle->out;

    out->n_tokens = n_tokens;
    out->n_rows = (size_t)oracle->n_samples * (size_t)n_tokens;
    out->coords = gpu_alloc(out->n_rows * 16 + 16);
    for (size_t i = 0; i < out->n_rows; i++) {
        int32_t c[4] = {(int32_t)i / n_tokens, (int32_t)i % n_tokens, 0, 0};

        memcpy(out->coords + 4 * i, c, 16);
    }
}

/* --- over samples ------------------------------------------------------------------------ */

static bool is_of(const struct gpu_net_rows *rows, size_t row, int sample)
{
    return sample < 0 || rows->coords[4 * row] == sample;
}

static void run_global(struct oracle *oracle)
{
    const struct vxd_net_layer *layer = oracle->layer;
    const struct gpu_net_rows *in = oracle_input(oracle, 0);

    make_tokens(oracle, 1);
    oracle_make_values(oracle->out);
    for (int s = 0; s < oracle->n_samples; s++) {
        double *y = oracle_row(oracle->out, (size_t)s);

        for (int j = 0; j < in->n_channels; j++) {
            double n = 0;

            for (size_t i = 0; i < in->n_rows; i++) {
                double x = oracle_row(in, i)[j];

                if (!is_of(in, i, s)) {
                    continue;
                }
                if (layer->op == VXD_NET_GLOBAL_MAX) {
                    y[j] = n == 0 || x > y[j] ? x : y[j];
                } else if (layer->op == VXD_NET_GLOBAL_AVG) {
                    y[j] += x;
                } else {
                    x = x < (double)layer->eps ? (double)layer->eps : x;
                    y[j] += pow(x, (double)layer->alpha);
                }
                n++;
            }
            if (layer->op != VXD_NET_GLOBAL_MAX && n > 0) {
                y[j] /= n;
                y[j] = layer->op == VXD_NET_GLOBAL_GEM
                           ? pow(y[j], 1.0 / (double)layer->alpha)
                           : y[j];
            }
        }
    }
}

static void norm_channel(struct oracle *oracle, int sample, int j)
{
    const struct vxd_net_layer *layer = oracle->layer;
    const struct gpu_net_rows *in = oracle_input(oracle, 0);
    double n = 0;
    double mean = 0;
    double variance = 0;

    for (size_t i = 0; i < in->n_rows; i++) {
        mean += is_of(in, i, sample) ? oracle_row(in, i)[j] : 0;
        n += is_of(in, i, sample) ? 1 : 0;
    }
    mean /= n;
    for (size_t i = 0; i < in->n_rows; i++) {
        double d = oracle_row(in, i)[j] - mean;

        variance += is_of(in, i, sample) ? d * d / n : 0;
    }
    for (size_t i = 0; i < in->n_rows; i++) {
        double x = (oracle_row(in, i)[j] - mean) / sqrt(variance + (double)layer->eps);

        if (is_of(in, i, sample)) {
            x *= layer->scale != NULL ? (double)layer->scale[j] : 1.0;
            x += layer->bias != NULL ? (double)layer->bias[j] : 0.0;
            oracle_row(oracle->out, i)[j] = oracle_activate(layer, x);
        }
    }
}

static void run_batch_norm(struct oracle *oracle)
{
    bool is_whole = oracle->layer->whole_batch;

    oracle_copy_coords(oracle->out, oracle_input(oracle, 0));
    oracle_make_values(oracle->out);
    for (int j = 0; j < oracle->out->n_channels; j++) {
        for (int s = is_whole ? -1 : 0; s < (is_whole ? 0 : oracle->n_samples); s++) {
            norm_channel(oracle, s, j);
        }
    }
}

/* Softmax of n scores in place. */
static void softmax(double *scores, size_t n)
{
    double best = n > 0 ? scores[0] : 0;
    double sum = 0;

    for (size_t i = 0; i < n; i++) {
        best = scores[i] > best ? scores[i] : best;
    }
    for (size_t i = 0; i < n; i++) {
        scores[i] = exp(scores[i] - best);
        sum += scores[i];
    }
    for (size_t i = 0; i < n; i++) {
        scores[i] /= sum;
    }
}

/* y += the values of the sample's rows, weighted by the softmax of their scores. */
static void add_weighted(const struct gpu_net_rows *values, int sample, double *scores,
                         double *y)
{
    size_t n = 0;

    for (size_t i = 0; i < values->n_rows; i++) {
        if (is_of(values, i, sample)) {
            scores[n++] = scores[i];
        }
    }
    softmax(scores, n);
    n = 0;
    for (size_t i = 0; i < values->n_rows; i++) {
        for (int j = 0; j < values->n_channels && is_of(values, i, sample); j++) {
            y[j] += scores[n] * oracle_row(values, i)[j];
        }
        n += is_of(values, i, sample) ? 1 : 0;
    }
}

static void run_attention(struct oracle *oracle)
{
    const struct gpu_net_rows *q = oracle_input(oracle, 0);
    const struct gpu_net_rows *k = oracle_input(oracle, 1);
    const struct gpu_net_rows *v = oracle_input(oracle, 2);
    double *scores = gpu_alloc((k->n_rows + 1) * sizeof *scores);

    oracle_copy_coords(oracle->out, q);
    oracle_make_values(oracle->out);
    for (size_t row = 0; row < q->n_rows; row++) {
        for (size_t i = 0; i < k->n_rows; i++) {
            scores[i] = 0;
            for (int j = 0; j < q->n_channels; j++) {
                scores[i] += (double)oracle->layer->alpha * oracle_row(q, row)[j] *
                             oracle_row(k, i)[j];
            }
        }
        add_weighted(v, q->coords[4 * row], scores, oracle_row(oracle->out, row));
    }
    free(scores);
}

static void run_tokens(struct oracle *oracle)
{
    const struct gpu_net_rows *in = oracle_input(oracle, 0);
    const struct gpu_net_rows *values = oracle_input(oracle, 1);
    double *scores = gpu_alloc((in->n_rows + 1) * sizeof *scores);

    make_tokens(oracle, in->n_channels);
    oracle_make_values(oracle->out);
    for (size_t row = 0; row < oracle->out->n_rows; row++) {
        for (size_t i = 0; i < in->n_rows; i++) {
            scores[i] = oracle_row(in, i)[row % (size_t)in->n_channels];
        }
        add_weighted(values, oracle->out->coords[4 * row], scores,
                     oracle_row(oracle->out, row));
    }
    free(scores);
}

/* --- row by row -------------------------------------------------------------------------- */

static void run_sum(struct oracle *oracle)
{
    const struct vxd_net_layer *layer = oracle->layer;
    struct gpu_net_rows *out = oracle->out;
    const struct gpu_net_rows *a = oracle_input(oracle, 0);
    const struct gpu_net_rows *b = oracle_input(oracle, 1);

    oracle_copy_coords(out, a);
    if (layer->op == VXD_NET_ADD_UNION) {
        free(out->coords);
        out->coords = gpu_alloc((a->n_rows + b->n_rows) * 16 + 16);
        memcpy(out->coords, a->coords, a->n_rows * 16);
        memcpy(out->coords + 4 * a->n_rows, b->coords, b->n_rows * 16);
        out->n_rows = a->n_rows + b->n_rows;
        oracle_make_unique(out);
    }
    oracle_make_values(out);
    for (size_t row = 0; row < out->n_rows; row++) {
        for (int j = 0; j < out->n_channels; j++) {
            double y = 0;

            for (int i = 0; i < layer->n_inputs; i++) {
                const double *x =
                    oracle_find(oracle_input(oracle, i), out->coords + 4 * row);

                y += x != NULL ? x[j] : 0;
            }
            oracle_row(out, row)[j] = oracle_activate(layer, y);
        }
    }
}

static void run_cat(struct oracle *oracle)
{
    struct gpu_net_rows *out = oracle->out;
    int first = 0;

    oracle_copy_coords(out, oracle_input(oracle, 0));
    oracle_make_values(out);
    for (int i = 0; i < oracle->layer->n_inputs; i++) {
        const struct gpu_net_rows *in = oracle_input(oracle, i);

        for (size_t row = 0; row < out->n_rows; row++) {
            memcpy(oracle_row(out, row) + first, oracle_row(in, row),
                   (size_t)in->n_channels * sizeof(double));
        }
        first += in->n_channels;
    }
}

static void run_prune(struct oracle *oracle)
{
    const struct gpu_net_rows *in = oracle_input(oracle, 0);
    const struct gpu_net_rows *score = oracle_input(oracle, 1);
    struct gpu_net_rows *out = oracle->out;
    size_t n = 0;

    oracle_copy_coords(out, in);
    oracle_make_values(out);
    for (size_t row = 0; row < in->n_rows; row++) {
        if (oracle_row(score, row)[0] > (double)oracle->layer->alpha) {
            memcpy(out->coords + 4 * n, in->coords + 4 * row, 16);
            memcpy(oracle_row(out, n++), oracle_row(in, row),
                   (size_t)in->n_channels * sizeof(double));
        }
    }
    out->n_rows = n;
}

static void run_row(const struct oracle *oracle, const double *x, double *y)
{
    const struct vxd_net_layer *layer = oracle->layer;
    int n = oracle->out->n_channels;
    double length = 0;

    for (int j = 0; j < n; j++) {
        y[j] = layer->op == VXD_NET_EMBEDDING ? 0 : x[j];
        length += y[j] * y[j];
    }
    length = sqrt(length) < (double)layer->eps ? (double)layer->eps : sqrt(length);
    if (layer->op == VXD_NET_SOFTMAX) {
        softmax(y, (size_t)n);
    }
    for (int j = 0; j < n && layer->op == VXD_NET_L2_NORM; j++) {
        y[j] /= length;
    }
    for (int j = 0; j < n && (layer->op == VXD_NET_AFFINE || layer->op == VXD_NET_ACT);
         j++) {
        y[j] *= layer->scale != NULL ? (double)layer->scale[j] : 1.0;
        y[j] += layer->bias != NULL ? (double)layer->bias[j] : 0.0;
        y[j] = oracle_activate(layer, y[j]);
    }
    if (layer->op == VXD_NET_EMBEDDING) {
        double entry = rint(x[0]);
        double n_entries = (double)(layer->n_weights / (size_t)n);

        for (int j = 0; j < n && entry >= 0 && entry < n_entries; j++) {
            y[j] = (double)layer->weights[(size_t)entry * (size_t)n + (size_t)j];
        }
    }
}

static void run_rows(struct oracle *oracle)
{
    const struct gpu_net_rows *in = oracle_input(oracle, 0);

    oracle_copy_coords(oracle->out, in);
    oracle_make_values(oracle->out);
    for (size_t row = 0; row < in->n_rows; row++) {
        double *y = oracle_row(oracle->out, row);

        if (oracle->layer->op == VXD_NET_LINEAR) {
            oracle_multiply(oracle, 0, oracle_row(in, row), y);
            oracle_finish_convolution(oracle, row, y);
        } else {
            run_row(oracle, oracle_row(in, row), y);
        }
    }
}

static void run_layer(struct oracle *oracle)
{
    switch (oracle->layer->op) {
    case VXD_NET_GLOBAL_MAX:
    case VXD_NET_GLOBAL_AVG:
    case VXD_NET_GLOBAL_GEM:
        run_global(oracle);
        break;
    case VXD_NET_ADD:
    case VXD_NET_ADD_UNION:
        run_sum(oracle);
        break;
    case VXD_NET_CAT:
        run_cat(oracle);
        break;
    case VXD_NET_BATCH_NORM:
        run_batch_norm(oracle);
        break;
    case VXD_NET_PRUNE:
        run_prune(oracle);
        break;
    case VXD_NET_ATTENTION:
        run_attention(oracle);
        break;
    case VXD_NET_TOKENS:
        run_tokens(oracle);
        break;
    case VXD_NET_LINEAR:
    case VXD_NET_AFFINE:
    case VXD_NET_ACT:
    case VXD_NET_SOFTMAX:
    case VXD_NET_L2_NORM:
    case VXD_NET_EMBEDDING:
        run_rows(oracle);
        break;
    default:
        oracle_run_taps(oracle);
        break;
    }
}

/* The cloud's rows, sorted, with their features. */
static void make_input(const struct gpu_net *net, const struct gpu_net_cloud *cloud,
                       struct gpu_net_rows *out)
{
    out->are_voxels = true;
    out->n_channels = cloud->n_channels;
    out->n_rows = cloud->n_rows;
    out->coords = gpu_alloc(cloud->n_rows * 16 + 16);
    memcpy(out->coords, cloud->coords, cloud->n_rows * 16);
    memcpy(out->shape, net->shape, sizeof out->shape);
    out->times[0] = out->times[1] = out->times[2] = 1;
    oracle_make_unique(out);
    oracle_make_values(out);
    for (size_t i = 0; i < cloud->n_rows; i++) {
        double *y = (double *)oracle_find(out, cloud->coords + 4 * i);

        for (int j = 0; j < cloud->n_channels; j++) {
            y[j] = (double)cloud->features[i * (size_t)cloud->n_channels + (size_t)j];
        }
    }
}

struct gpu_net_rows *gpu_net_oracle(const struct gpu_net *net,
                                    const struct gpu_net_cloud *cloud)
{
    struct oracle oracle = {.net = net, .n_samples = cloud->n_samples};

    oracle.tensors = gpu_alloc((size_t)(net->n_layers + 1) * sizeof *oracle.tensors);
    memset(oracle.tensors, 0, (size_t)(net->n_layers + 1) * sizeof *oracle.tensors);
    make_input(net, cloud, &oracle.tensors[0]);
    for (int i = 0; i < net->n_layers; i++) {
        oracle.number = i;
        oracle.layer = &net->layers[i];
        oracle.out = &oracle.tensors[i + 1];
        oracle.out->n_channels = net->layer_channels[i];
        run_layer(&oracle);
    }
    return oracle.tensors;
}

void gpu_net_oracle_free(const struct gpu_net *net, struct gpu_net_rows *tensors)
{
    for (int i = 0; i <= net->n_layers; i++) {
        free(tensors[i].coords);
        free(tensors[i].values);
    }
    free(tensors);
}
