// SPDX-License-Identifier: Apache-2.0
/* What the files of records share. */
#ifndef VXD_SERVER_DURABLE_RECORD_RECORD_INTERNAL_H
#define VXD_SERVER_DURABLE_RECORD_RECORD_INTERNAL_H

#include "proto/base/bytes.h"
#include "server/durable/record/scene_record.h"

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

/* record_ops.c. One operation, checked when it is written and when it is read.
 * errors  INVALID_ARGUMENT */
enum vxd_status vxd_record_put_op(struct vxd_bytes_out *out,
                                  const struct vxd_svdag_op *op, size_t number,
                                  struct vxd_err *err);
bool vxd_record_get_op(struct vxd_record_reader *reader, struct vxd_svdag_op *op);

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

#endif
