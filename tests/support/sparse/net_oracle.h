// SPDX-License-Identifier: Apache-2.0
/* What the two files of the networks' oracle share. */
#ifndef VXD_TESTS_SUPPORT_SPARSE_NET_ORACLE_H
#define VXD_TESTS_SUPPORT_SPARSE_NET_ORACLE_H

#include "tests/support/sparse/net_helpers.h"

struct oracle {
    const struct gpu_net *net;
    struct gpu_net_rows *tensors;
    int n_samples;
    int number; /* number of the current layer */
    const struct vxd_net_layer *layer;
    struct gpu_net_rows *out;
};

static inline const struct gpu_net_rows *oracle_tensor(const struct oracle *oracle,
                                                       int layer)
{
    return &oracle->tensors[layer + 1];
}

static inline const struct gpu_net_rows *oracle_input(const struct oracle *oracle, int i)
{
    return oracle_tensor(oracle, oracle->layer->inputs[i]);
}

static inline double *oracle_row(const struct gpu_net_rows *rows, size_t row)
{
    return rows->values + row * (size_t)rows->n_channels;
}

/* Values of the row with these coordinates, NULL where there is no such row. */
const double *oracle_find(const struct gpu_net_rows *rows, const int32_t c[4]);

/* Sorts the coordinates and drops duplicates. */
void oracle_make_unique(struct gpu_net_rows *rows);
void oracle_make_values(struct gpu_net_rows *rows); /* zeros */
void oracle_copy_coords(struct gpu_net_rows *to, const struct gpu_net_rows *from);

double oracle_activate(const struct vxd_net_layer *layer, double x);

/* y += x * weights of the tap; then scale, bias, residual and activation of a row. */
void oracle_multiply(const struct oracle *oracle, int tap, const double *x, double *y);
void oracle_finish_convolution(const struct oracle *oracle, size_t row, double *y);

/* Convolutions except linear ones, and pools. */
void oracle_run_taps(struct oracle *oracle);

#endif
