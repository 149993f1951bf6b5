// SPDX-License-Identifier: Apache-2.0
/* The field object, and what the backends behind field.h are called with. The public entries
 * check every argument; the backends only compute. */
#ifndef VXD_GPU_FIELD_FIELD_BACKENDS_H
#define VXD_GPU_FIELD_FIELD_BACKENDS_H

#include "gpu/core/core_cpu.h"
#include "gpu/field/follow_math.h"

#ifdef __cplusplus
extern "C" {
#endif

struct vxd_field {
    struct vxd_context *context;
    struct vxd_field_spec spec;
    struct vxd_field_view view;
    struct vxd_buffer memory; /* of the view's arrays and of the scratch below */
    uint64_t *occupied;       /* bits of one part, as they are read */
    uint64_t *free;
    int16_t *lines;     /* CPU: squares of one part, line by line */
    size_t flag_bytes;  /* of bits_changed, and of plane_changed */
    int part_blocks[2]; /* blocks along x, and along y, of a part */
    size_t n_parts[2];
    size_t next_part;
    bool is_whole; /* the contents are those of some root */
    bool is_all;   /* the update under way computes everything */
};

/* A part of an update: blocks first .. last - 1 along x or y. */
struct vxd_field_part {
    struct vxd_field_view field;
    int first, last;
    bool is_all; /* everything counts as changed, and all flags are set */
    enum vxd_field_unknown unknown;
    bool tracks_free;
    const uint64_t *occupied;
    const uint64_t *free;
    int16_t *lines;
};

/* What a field follows: queues the reading of a part's bits into the field's scratch. */
struct vxd_field_source {
    enum vxd_status (*read)(struct vxd_queue *queue, const struct vxd_field *field,
                            const struct vxd_field_part *part,
                            const struct vxd_field_source *source, struct vxd_err *err);
    bool tracks_free;
    const struct vxd_svdag *svdag; /* scenes */
    uint32_t root;
    const struct vxd_volume *volume; /* volumes */
    float min_weight;
};

/* The parts of an update, from any source (field.h). */
enum vxd_status vxd_field_update_from(struct vxd_queue *queue, struct vxd_field *field,
                                      const struct vxd_field_source *source, size_t first,
                                      size_t n, struct vxd_err *err);

#define VXD_FIELD_STEP(name, type)                                                       \
    enum vxd_status name##_cpu(struct vxd_queue *queue, const struct type *call,         \
                               struct vxd_err *err);                                     \
    enum vxd_status name##_cuda(struct vxd_queue *queue, const struct type *call,        \
                                struct vxd_err *err)

/* Compares what was read with the bits, and takes it. */
VXD_FIELD_STEP(vxd_field_take_bits, vxd_field_part);
/* The first and second pass, then the third, where something has changed. */
VXD_FIELD_STEP(vxd_field_plane_pass, vxd_field_part);
VXD_FIELD_STEP(vxd_field_space_pass, vxd_field_part);

VXD_FIELD_STEP(vxd_field_read, vxd_field_read_call);
VXD_FIELD_STEP(vxd_field_query, vxd_field_query_call);
VXD_FIELD_STEP(vxd_field_collide, vxd_field_collide_call);
VXD_FIELD_STEP(vxd_field_follow, vxd_field_follow_call);

#ifdef __cplusplus
}
#endif
#endif
