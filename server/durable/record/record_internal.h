// SPDX-License-Identifier: Apache-2.0
/* What the files of records share. */
#ifndef VXD_SERVER_DURABLE_RECORD_RECORD_INTERNAL_H
#define VXD_SERVER_DURABLE_RECORD_RECORD_INTERNAL_H

#include "proto/base/bytes.h"
#include "server/durable/record/volume_record.h"

struct vxd_record_block {
    struct vxd_record_block *next;
    max_align_t bytes[];
};

/* The buffer of one plane while its bytes are distributed; it serves one list after the other. */
struct vxd_byte_plane_reader {
    uint8_t *bytes;
    size_t capacity;
};

/* Bytes to read, and the memory that what is read may take. */
struct vxd_record_reader {
    struct vxd_bytes_in in;
    struct vxd_record_block *blocks;
    size_t n_bytes_left;
    struct vxd_byte_plane_reader planes[3];
    bool is_out_of_memory;
    const char *what; /* is wrong, once something is */
};

/* n items of a size, not set to anything; freed with the record. NULL where that is too much, or
 * memory has run out (is_out_of_memory). */
void *vxd_record_alloc(struct vxd_record_reader *reader, uint64_t n, size_t item_bytes);

/* Says what is wrong, unless something was before, and returns false. */
bool vxd_record_bad(struct vxd_record_reader *reader, const char *what);

/* record_columns.c. A byte of length, and the name. */
void vxd_record_put_name(struct vxd_bytes_out *out, const char *name);
bool vxd_record_get_name(struct vxd_record_reader *reader,
                         char out[VXD_RECORD_NAME_BYTES]);

/* The components of keys, or numbers, as columns of integers of a width. */
struct vxd_record_columns {
    uint8_t *bytes; /* not changed by writing */
    size_t n;
    size_t n_columns;
    size_t width; /* bytes of each */
};

/* For each column, for each byte of its differences from the lowest up, a plane of n bytes
 * (byte_planes.c). A difference is to the row before (0 before the first), modulo the range of the
 * width, zigzag.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_record_put_columns(struct vxd_bytes_out *out,
                                       const struct vxd_record_columns *columns,
                                       struct vxd_err *err);
/* Reads them into memory of the record's; n, n_columns and width are set. */
bool vxd_record_get_columns(struct vxd_record_reader *reader,
                            struct vxd_record_columns *columns);

/* record_ops.c. One operation, checked when it is written and when it is read.
 * errors  INVALID_ARGUMENT */
enum vxd_status vxd_record_put_op(struct vxd_bytes_out *out,
                                  const struct vxd_svdag_op *op, size_t number,
                                  struct vxd_err *err);
bool vxd_record_get_op(struct vxd_record_reader *reader, struct vxd_svdag_op *op);

/* record_scans.c. What CAST and CAST_FUSE have of their own, checked when it is written and when
 * it is read.
 * errors  INVALID_ARGUMENT, RESOURCE_EXHAUSTED */
enum vxd_status vxd_record_put_scans(struct vxd_bytes_out *out,
                                     const struct vxd_record *record,
                                     struct vxd_err *err);
bool vxd_record_get_scans(struct vxd_record_reader *reader, struct vxd_record *record);

/* record_voxels.c. What is wrong with a list, NULL = nothing, as with any that was read. */
const char *vxd_record_check_voxels(const struct vxd_svdag_voxels *voxels);
void vxd_record_put_voxels(struct vxd_bytes_out *out,
                           const struct vxd_svdag_voxels *voxels);
bool vxd_record_get_voxels(struct vxd_record_reader *reader,
                           struct vxd_svdag_voxels *voxels);
void vxd_record_put_heights(struct vxd_bytes_out *out,
                            const struct vxd_svdag_heights *field);
bool vxd_record_get_heights(struct vxd_record_reader *reader,
                            struct vxd_svdag_heights *field);

/* volume_record.c. Doubles, keys, poses and flags, as its description has them. */
void vxd_record_put_doubles(struct vxd_bytes_out *out, const double *values, size_t n);
bool vxd_record_get_doubles(struct vxd_record_reader *reader, double *out, size_t n);
enum vxd_status vxd_record_put_keys(struct vxd_bytes_out *out, const int32_t *keys,
                                    size_t n, struct vxd_err *err);
bool vxd_record_get_keys(struct vxd_record_reader *reader, const int32_t **keys,
                         size_t *n);
void vxd_record_put_pose(struct vxd_bytes_out *out, const struct vxd_volume_pose *pose);
bool vxd_record_get_pose(struct vxd_record_reader *reader, struct vxd_volume_pose *pose);
bool vxd_record_get_flag(struct vxd_record_reader *reader, bool *out);

/* volume_record_scan.c. What is behind the head of a scan's record. */
enum vxd_status vxd_record_put_scan(struct vxd_bytes_out *out,
                                    const struct vxd_volume_record *record,
                                    struct vxd_err *err);
bool vxd_record_get_scan(struct vxd_record_reader *reader,
                         struct vxd_volume_record *record);

#endif
