// SPDX-License-Identifier: Apache-2.0
/* What the CPU's layers other than convolutions share: rows as float32, and loops over
 * rows and over the pieces of samples. */
#ifndef VXD_GPU_SPARSE_LAYERS_LAYERS_CPU_H
#define VXD_GPU_SPARSE_LAYERS_LAYERS_CPU_H

#include "gpu/core/core.h"
#include "gpu/sparse/layers/layers.h"
#include "gpu/sparse/layers/layers_math.h"

/* Number of rows of a task. */
#define VXD_NET_GRAIN ((size_t)256)

/* A row's values: the row itself where it is float32, else the row widened to
 * `widened_row`. */
static inline const float *vxd_net_row(enum vxd_net_precision precision,
                                       const struct vxd_rows *rows, size_t row,
                                       float widened_row[VXD_NET_MAX_CHANNELS])
{
    const char *at =
        (const char *)rows->data + row * rows->stride * vxd_net_element_bytes(precision);

    if (vxd_net_element_bytes(precision) == sizeof(float)) {
        return (const float *)(const void *)at;
    }
    for (int i = 0; i < rows->n_channels; i++) {
        widened_row[i] = vxd_element_load(precision, at, (size_t)i);
    }
    return widened_row;
}

static inline void vxd_net_row_store(enum vxd_net_precision precision,
                                     const struct vxd_rows *rows, size_t row,
                                     const float *values)
{
    char *at = (char *)rows->data + row * rows->stride * vxd_net_element_bytes(precision);

    for (int i = 0; i < rows->n_channels; i++) {
        vxd_element_store(precision, at, (size_t)i, values[i]);
    }
}

/* Which sample has the place `place`: the last one whose pieces begin at it or before;
 * and which sample has a row. starts ascend. */
static inline int vxd_net_sample_of_place(const uint32_t *starts, int n_samples,
                                          size_t place)
{
    int low = 0;
    int high = n_samples - 1;

    while (low < high) {
        int middle = low + (high - low + 1) / 2;

        if (vxd_net_piece_place(starts[middle], middle, 0) <= place) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    return low;
}

static inline int vxd_net_sample_of_row(const uint32_t *starts, int n_samples, size_t row)
{
    int low = 0;
    int high = n_samples - 1;

    while (low < high) {
        int middle = low + (high - low + 1) / 2;

        if (starts[middle] <= row) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    return low;
}

/* Rows of the piece with this place; none where begin == end. */
struct vxd_net_piece {
    int sample;
    size_t begin;
    size_t end;
};

static inline struct vxd_net_piece vxd_net_piece_at(const struct vxd_net_extent *extent,
                                                    size_t place)
{
    int sample = vxd_net_sample_of_place(extent->starts, extent->n_samples, place);
    size_t first = vxd_net_piece_place(extent->starts[sample], sample, 0);
    size_t end = extent->starts[sample + 1];
    size_t begin = extent->starts[sample] + (place - first) * VXD_NET_PIECE;
    struct vxd_net_piece piece = {sample, begin < end ? begin : end, end};

    if (piece.end - piece.begin > VXD_NET_PIECE) {
        piece.end = piece.begin + VXD_NET_PIECE;
    }
    return piece;
}

/* Number of places that the pieces of all samples take, and the pieces of one sample. */
static inline size_t vxd_net_n_places(const struct vxd_net_extent *extent)
{
    return vxd_net_n_pieces(*extent->n_rows, extent->n_samples);
}

static inline size_t vxd_net_n_pieces_of(const struct vxd_net_extent *extent, int sample)
{
    size_t n = extent->starts[sample + 1] - extent->starts[sample];

    return (n + VXD_NET_PIECE - 1) / VXD_NET_PIECE;
}

#endif
