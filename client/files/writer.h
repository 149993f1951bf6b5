// SPDX-License-Identifier: Apache-2.0
/* The writers of each format, and what they share; private to client/files. */
#ifndef VXD_CLIENT_FILES_WRITER_H
#define VXD_CLIENT_FILES_WRITER_H

#include <stdio.h>

#include "proto/base/base.h"

/* Takes a writer's bytes. The first failure of the stream is kept, later bytes are
 * dropped, and vxd_sink_close reports it. */
struct vxd_sink {
    FILE *stream; /* NULL: bytes are only counted and summed */
    uint8_t *buffer;
    size_t used;
    int failure; /* errno of the first failure, 0 = none */
    uint64_t n_bytes;
    uint32_t crc; /* of what has left the buffer; see vxd_sink_take_crc */
};

/* Opens a sink.
 * errors  RESOURCE_EXHAUSTED  no memory for the buffer; then there is nothing to close */
enum vxd_status vxd_sink_open(struct vxd_sink *sink, FILE *stream, struct vxd_err *err);

/* Flushes sink and stream, and frees the sink's buffer. UNAVAILABLE where the stream
 * did not take everything. A status other than OK is passed through. */
enum vxd_status vxd_sink_close(struct vxd_sink *sink, enum vxd_status status,
                               struct vxd_err *err);

void vxd_sink_put(struct vxd_sink *sink, const void *bytes, size_t n_bytes);
void vxd_sink_put_u16(struct vxd_sink *sink, uint16_t value);
void vxd_sink_put_u32(struct vxd_sink *sink, uint32_t value);

/* Returns the CRC-32 of all bytes put since the sink was opened or this was last
 * called. */
uint32_t vxd_sink_take_crc(struct vxd_sink *sink);

/* Puts formatted text of at most 255 characters. */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
void vxd_sink_print(struct vxd_sink *sink, const char *format, ...);

/* One field of the points, with its type and the type to be written. */
struct vxd_column {
    const char *name;
    enum vxd_dtype from;
    enum vxd_dtype to; /* from, or FLOAT32 or FLOAT64 */
    double scale;      /* value = raw * scale + bias */
    double bias;
    const uint8_t *data; /* of the first point */
    size_t stride_bytes;
    bool used; /* set by writers of formats that hold some fields only */
};

struct vxd_table {
    struct vxd_column *columns;
    size_t n_columns;
    size_t n_rows;
    size_t n_written; /* rows; set by writers that must leave rows out */
};

double vxd_column_double(const struct vxd_column *column, size_t row);

/* Stores the element as column->to, little-endian, unaligned. */
void vxd_column_store(const struct vxd_column *column, size_t row, uint8_t *out);

/* Finds the column of this name and marks it as used; NULL where there is none. */
struct vxd_column *vxd_table_find(struct vxd_table *table, const char *name);

/* Bytes of a row as written. */
size_t vxd_table_row_bytes(const struct vxd_table *table);

/* Puts all rows as packed records, or as text: a row a line, in the shortest of
 * printf's forms that reads back as the same value, "nan", "inf", "-inf"; the same in
 * every locale. RESOURCE_EXHAUSTED where there is no memory for the C locale. */
void vxd_sink_put_rows(struct vxd_sink *sink, const struct vxd_table *table,
                       bool big_endian);
enum vxd_status vxd_sink_put_text(struct vxd_sink *sink, const struct vxd_table *table,
                                  struct vxd_err *err);

/* The writers do what vxd_cloud_file_write says of each format. */
enum vxd_status vxd_pcd_put_ascii(struct vxd_sink *sink, struct vxd_table *table,
                                  struct vxd_err *err);
enum vxd_status vxd_pcd_put_binary(struct vxd_sink *sink, struct vxd_table *table,
                                   struct vxd_err *err);
enum vxd_status vxd_pcd_put_compressed(struct vxd_sink *sink, struct vxd_table *table,
                                       struct vxd_err *err);
enum vxd_status vxd_ply_put_ascii(struct vxd_sink *sink, struct vxd_table *table,
                                  struct vxd_err *err);
enum vxd_status vxd_ply_put_little(struct vxd_sink *sink, struct vxd_table *table,
                                   struct vxd_err *err);
enum vxd_status vxd_ply_put_big(struct vxd_sink *sink, struct vxd_table *table,
                                struct vxd_err *err);
enum vxd_status vxd_npy_put(struct vxd_sink *sink, struct vxd_table *table,
                            struct vxd_err *err);
enum vxd_status vxd_npz_put(struct vxd_sink *sink, struct vxd_table *table,
                            struct vxd_err *err);
enum vxd_status vxd_las_put(struct vxd_sink *sink, struct vxd_table *table,
                            struct vxd_err *err);
enum vxd_status vxd_kitti_put(struct vxd_sink *sink, struct vxd_table *table,
                              struct vxd_err *err);
enum vxd_status vxd_nuscenes_put(struct vxd_sink *sink, struct vxd_table *table,
                                 struct vxd_err *err);

/* NumPy's name of a dtype, NULL for bfloat16. */
const char *vxd_npy_type(enum vxd_dtype dtype);

/* Puts the head of a .npy file: descr is a quoted type or a list of fields, shape has
 * n_axes extents, at most 8. */
void vxd_npy_put_header(struct vxd_sink *sink, const char *descr, const size_t *shape,
                        size_t n_axes);

#endif
