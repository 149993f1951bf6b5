// SPDX-License-Identifier: Apache-2.0
/* Writing results to files that other programs read. */
#ifndef VXD_CLIENT_FILES_WRITE_H
#define VXD_CLIENT_FILES_WRITE_H

#include <stdio.h>

#include "proto/base.h"

/* One property of the points: element i lies at data + i * stride_bytes, little-endian. */
struct vxd_write_column {
    const char *name;
    enum vxd_dtype dtype; /* of PLY: up to 32-bit integers, float32, float64 */
    const void *data;
    size_t stride_bytes;
};

/* Writes a binary little-endian PLY with one element "vertex" of n_rows to an open stream,
 * which stays open; the caller checks fclose.
 * errors  INVALID_ARGUMENT  a dtype that PLY does not have
 *         RESOURCE_EXHAUSTED  no memory
 *         UNAVAILABLE       the stream does not take it (disk full, ...) */
enum vxd_status vxd_ply_write(FILE *stream, const struct vxd_write_column *columns,
                              size_t n_columns, size_t n_rows, struct vxd_err *err);

/* Writes a row-major array as .npy, version 1.
 *
 * in      shape   n_axes extents, at most 8
 *         data    little-endian
 * errors  INVALID_ARGUMENT  no dtype of NumPy's (bfloat16), too many axes
 *         UNAVAILABLE       as above */
enum vxd_status vxd_npy_write(FILE *stream, enum vxd_dtype dtype, const size_t *shape,
                              size_t n_axes, const void *data, struct vxd_err *err);

#endif
