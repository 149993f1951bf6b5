// SPDX-License-Identifier: Apache-2.0
/* The computations of layers other than convolutions that decide results; compiled by
 * both gcc and nvcc. */
#ifndef VXD_GPU_SPARSE_LAYERS_LAYERS_MATH_H
#define VXD_GPU_SPARSE_LAYERS_LAYERS_MATH_H

#include "gpu/sparse/conv/conv_math.h"

/* Sums over a sample's rows are taken in pieces of this many rows, counted from the
 * sample's first: the rows of a piece in order, beginning with 0, then the pieces in
 * order, beginning with the first one's sum. So a sum depends on the sample alone and
 * can be computed by a grid. */
#define VXD_NET_PIECE 256

/* The place of a sample's piece among the pieces of all samples: places are distinct
 * and less than vxd_net_n_pieces. */
VXD_HD size_t vxd_net_piece_place(uint32_t sample_start, int sample, size_t piece)
{
    return (size_t)sample_start / VXD_NET_PIECE + (size_t)sample + piece;
}

VXD_HD size_t vxd_net_n_pieces(size_t max_rows, int n_samples)
{
    return max_rows / VXD_NET_PIECE + (size_t)n_samples;
}

/* The greater of both; NaN once one of them is NaN. */
VXD_HD float vxd_net_max(float best, float x)
{
    return x > best || x != x ? x : best;
}

/* The values of which GeM takes the mean, and the result from that mean. */
VXD_HD float vxd_net_gem_power(float x, float p, float eps)
{
    x = x < eps ? eps : x;
    return p == 3.0f ? vxd_mulf(vxd_mulf(x, x), x) : powf(x, p);
}

VXD_HD float vxd_net_gem_root(float mean, float p)
{
    return p == 3.0f ? cbrtf(mean) : powf(mean, vxd_divf(1.0f, p));
}

/* Row of an embedding's table: x rounded to nearest, ties to even; -1 = no such row. */
VXD_HD int vxd_net_embedding_row(float x, int n_entries)
{
    float row = rintf(x);

    return row >= 0.0f && row < (float)n_entries ? (int)row : -1;
}

/* Whether x replaces the best channel before it: of equal ones the first wins. */
VXD_HD bool vxd_net_is_better(float x, float best)
{
    return x > best;
}

/* Index of a cell's channel in samples x (channels * shape z) x shape y x shape x. */
VXD_HD size_t vxd_net_bev_place(const int32_t shape[3], int n_channels,
                                const int32_t c[4], int channel)
{
    size_t plane =
        ((size_t)c[0] * (size_t)n_channels + (size_t)channel) * (size_t)shape[2] +
        (size_t)c[3];

    return (plane * (size_t)shape[1] + (size_t)c[2]) * (size_t)shape[0] + (size_t)c[1];
}

#endif
