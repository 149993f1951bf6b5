// SPDX-License-Identifier: Apache-2.0
/* Readers and writers of point clouds and arrays in files. A reader parses the head of a file and
 * says where the numbers of a point lie. The client library, voxelctl, and the daemon (for files
 * sent as HTTP bodies) use them. */
#ifndef VXD_CLIENT_FILES_FILES_H
#define VXD_CLIENT_FILES_FILES_H

#include <stdio.h>

#include "proto/base/base.h"

/* Reading point clouds ------------------------------------------------------------------- */

#define VXD_FILE_MAX_FIELDS 64
#define VXD_FILE_NAME_BYTES 64

struct vxd_file_field {
    char name[VXD_FILE_NAME_BYTES];
    uint32_t offset; /* bytes from the start of the record */
    enum vxd_dtype dtype;
    double scale; /* value = raw * scale + bias */
    double bias;
};

/* A parsed file. data points into the caller's bytes where the file already holds plain
 * little-endian records (KITTI, nuScenes, .npy, LAS, binary PCD and PLY), otherwise into
 * `owned`. */
struct vxd_cloud_file {
    struct vxd_file_field fields[VXD_FILE_MAX_FIELDS];
    size_t n_fields;
    uint32_t point_step; /* 1 to 65535 */
    size_t n_points;
    const uint8_t *data; /* n_points * point_step bytes, little-endian records */
    uint8_t *owned;      /* freed by vxd_cloud_file_clear; NULL when data is borrowed */
};

/* Names of the formats, for --format and ?format=, NULL-terminated:
 * "pcd", "ply", "npy", "npz", "las", "kitti" (float32 x y z intensity), "nuscenes" (float32
 * x y z intensity ring). */
const char *const *vxd_cloud_file_formats(void);

/* Format of a file by its name's ending, NULL when only the user can know (".bin"). */
const char *vxd_cloud_file_format_of(const char *path);

/* Parses a whole file held in memory.
 *
 * in      bytes         borrowed; must outlive *out when data points into it
 *         budget_bytes  most that may be allocated for `owned`
 * errors  INVALID_ARGUMENT    unknown format; a malformed file: what, and at which byte or
 *                             line; no x, y, z among its fields
 *         RESOURCE_EXHAUSTED  the decoded points would exceed budget_bytes
 * On error *out is empty and owns nothing. */
enum vxd_status vxd_cloud_file_parse(const char *format, const uint8_t *bytes,
                                     size_t n_bytes, size_t budget_bytes,
                                     struct vxd_cloud_file *out, struct vxd_err *err);

/* Frees what *file owns and empties it; an empty one is fine. */
void vxd_cloud_file_clear(struct vxd_cloud_file *file);

/* The value of a field in the record that begins here: raw * scale + bias. */
double vxd_file_field_double(const struct vxd_file_field *field, const uint8_t *record);

/* Reading arrays ------------------------------------------------------------------------- */

/* n rows of n_elements. data points into the caller's bytes where those hold the elements as
 * they are (.npy), otherwise into `owned`; little-endian, perhaps unaligned. */
struct vxd_array_file {
    enum vxd_dtype dtype;
    size_t n;
    size_t n_elements;
    const uint8_t *data;
    uint8_t *owned; /* freed by vxd_array_file_clear */
};

/* Parses an .npy file with one or two axes, little-endian and row-major; *out borrows
 * the bytes.
 * errors  INVALID_ARGUMENT  anything else: what, and at which byte */
enum vxd_status vxd_npy_parse_array(const uint8_t *bytes, size_t n_bytes,
                                    struct vxd_array_file *out, struct vxd_err *err);

/* Parses text: a row a line, its numbers separated by commas, semicolons or blanks,
 * and equally many on every line. Empty lines and lines that begin with "#" are
 * skipped, and so is a first line that begins with a letter and no number, which names
 * columns.
 *
 * in      dtype  to read the numbers as; not float16, not bfloat16
 * errors  INVALID_ARGUMENT    no such number: at which line; lines of different
 * lengths
 *         RESOURCE_EXHAUSTED  no memory
 * On error *out owns nothing. */
enum vxd_status vxd_text_parse_array(const uint8_t *bytes, size_t n_bytes,
                                     enum vxd_dtype dtype, struct vxd_array_file *out,
                                     struct vxd_err *err);

void vxd_array_file_clear(struct vxd_array_file *file);

/* Writing -------------------------------------------------------------------------------- */

/* Names of the formats that can be written, by number from 0; NULL after the last:
 * "pcd" (binary), "pcd-ascii", "pcd-compressed", "ply" (binary little-endian),
 * "ply-ascii", "ply-big", "npy", "npz" (stored), "las", "kitti", "nuscenes". Every
 * format of vxd_cloud_file_format_of is among them. */
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

/* A part of a mesh in host memory; its triangles number its own vertices. */
struct vxd_surface_part {
    size_t n_vertices;
    size_t n_triangles;
    const float *vertices;  /* n_vertices x 3, metres, z up */
    const float *normals;   /* likewise; NULL: none */
    const uint8_t *colours; /* n_vertices x 3, sRGB; NULL: none */
    const uint8_t *labels;  /* n_vertices; NULL: none */
    const int32_t *triangles;
};

/* GLB  binary glTF 2.0, with normals, colours (linear, as glTF has them), labels as _LABEL, and a
 *      node that turns z up to glTF's y up; less than 4 GiB
 * OBJ  Wavefront's text, with normals and colours */
enum vxd_surface_format {
    VXD_SURFACE_GLB = 0,
    VXD_SURFACE_OBJ = 1
};

/* Writes a mesh, or points where there are no triangles, to an open stream, which stays open; the
 * caller checks fclose. What one part with vertices lacks is left out.
 * errors  INVALID_ARGUMENT    GLB without vertices, or of 4 GiB and more
 *         RESOURCE_EXHAUSTED, UNAVAILABLE  as above */
enum vxd_status vxd_surface_file_write(FILE *stream, enum vxd_surface_format format,
                                       const struct vxd_surface_part *parts,
                                       size_t n_parts, struct vxd_err *err);

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
