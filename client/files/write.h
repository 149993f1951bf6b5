// SPDX-License-Identifier: Apache-2.0
/* Writing points and results to files that other programs read. */
#ifndef VXD_CLIENT_FILES_WRITE_H
#define VXD_CLIENT_FILES_WRITE_H

#include <stdio.h>

#include "client/files/cloud_file.h"

/* Names of the formats that can be written, by number from 0; NULL behind the last:
 * "pcd" (binary), "pcd-ascii", "pcd-compressed", "ply" (binary little-endian), "ply-ascii",
 * "ply-big", "npy", "npz" (stored), "las", "kitti", "nuscenes". What
 * vxd_cloud_file_format_of says of a file's name is among them. */
const char *vxd_cloud_file_write_format(size_t i);

struct vxd_write_result {
    size_t n_points;                /* written */
    bool kept[VXD_FILE_MAX_FIELDS]; /* which of the file's fields were */
};

/* Writes points in a format to an open stream, which stays open; the caller checks fclose.
 *
 * pcd, ply, npy, npz keep every field as it is, and its name with "_" for blanks, quotes and
 * backslashes. Fields with scale and bias become float64; so do 64-bit integers in PLY,
 * exact to 2^53; float16 and bfloat16 become float32 where the format has no such type.
 * .npy holds a plain N x C array where that loses nothing (one type; x, y, z, intensity, c4,
 * c5, ... in this order), else records.
 *
 * kitti, nuscenes hold x, y, z, intensity, and ring of the latter, as float32; what the
 * points lack is 0.
 *
 * las holds x, y, z, intensity, classification, gps_time, red, green, blue and nir.
 * Positions that are int32 with scale and bias stay as they are; others are rounded to
 * 1e-6 (metres), or to the first power of ten above it by which the extent fits in 31 bits
 * (over 2147 m: 1e-5, ...). Points whose position is not finite are left out. The 16-bit
 * fields are rounded and clamped to 0 .. 65535: floating-point ones that never exceed 1 are
 * fractions and scaled to 65535, 8-bit colours to 257 times their value. classification is
 * rounded and clamped to 0 .. 255.
 *
 * in      file     with fields x, y and z
 * errors  INVALID_ARGUMENT    unknown format; two fields would have one name; too large for
 *                             the format
 *         RESOURCE_EXHAUSTED  no memory
 *         UNAVAILABLE         the stream does not take it (disk full, ...)
 * On error the stream may hold a part, and *result is zero. */
enum vxd_status vxd_cloud_file_write(FILE *stream, const char *format,
                                     const struct vxd_cloud_file *file,
                                     struct vxd_write_result *result,
                                     struct vxd_err *err);

/* One property of the points: element i lies at data + i * stride_bytes, little-endian. */
struct vxd_write_column {
    const char *name;     /* less than 200 bytes, no blanks */
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
 *         RESOURCE_EXHAUSTED, UNAVAILABLE  as above */
enum vxd_status vxd_npy_write(FILE *stream, enum vxd_dtype dtype, const size_t *shape,
                              size_t n_axes, const void *data, struct vxd_err *err);

/* One array of an .npz file. */
struct vxd_write_array {
    const char *name; /* less than 200 bytes; the member is NAME.npy */
    enum vxd_dtype dtype;
    size_t shape[2];
    size_t n_axes; /* 1 or 2 */
    const void *data;
};

/* Writes arrays as .npz, stored, less than 4 GiB in all. Errors as of vxd_npy_write. */
enum vxd_status vxd_npz_write(FILE *stream, const struct vxd_write_array *arrays,
                              size_t n_arrays, struct vxd_err *err);

#endif
