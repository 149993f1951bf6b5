// SPDX-License-Identifier: Apache-2.0
/* What the files of gpu/volume share: the volume behind the opaque name, frames and cameras in
 * the form that backends use, and the functions of the backends. The public entries check every
 * argument and size every buffer; the backends only compute. */
#ifndef VXD_GPU_VOLUME_VOLUME_INTERNAL_H
#define VXD_GPU_VOLUME_VOLUME_INTERNAL_H

#include "gpu/core/core_cpu.h"
#include "gpu/volume/volume_math.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Value arrays of the map. */
enum vxd_volume_array {
    VXD_VOLUME_STAMPS = 0,
    VXD_VOLUME_DISTANCES = 1,
    VXD_VOLUME_WEIGHTS = 2,
    VXD_VOLUME_COLOURS = 3
};

/* Slots of the frame map: the first try, and the last, of which half may be taken. */
#define VXD_FRAME_FIRST_SLOTS ((size_t)1 << 16)
#define VXD_FRAME_MAX_SLOTS ((size_t)1 << 23)

/* What an activation counts, in device memory. */
struct vxd_frame_counts {
    uint32_t
        n_blocks; /* touched; the frame map is too small where above half of its slots */
    uint32_t n_new;
    uint32_t n_dropped; /* pixels */
    uint32_t unused;
};

struct vxd_volume {
    struct vxd_context *context;
    struct vxd_volume_spec spec;
    struct vxd_hashmap *map;
    size_t n_blocks;
    uint64_t version;
    uint64_t removed_version;
    struct vxd_buffer
        table; /* struct vxd_block_slot, a power of two above 2 * capacity */

    /* The frame map of the last activation. */
    size_t frame_slots;
    struct vxd_buffer frame_tags;    /* uint64, frame_slots; VXD_BLOCK_EMPTY where free */
    struct vxd_buffer frame_entries; /* int32, frame_slots / 2: touched blocks */
    struct vxd_buffer frame_new; /* uint64, frame_slots / 2: Morton codes of new ones */
    struct vxd_buffer frame_counts; /* struct vxd_frame_counts */
    struct vxd_buffer frame_depth;  /* float32 a pixel, metres; 0: no depth */
    size_t n_active;                /* touched blocks of the last activation */
    int frame_width;                /* of the last activation; 0: there was none */
    int frame_height;
};

/* errors  INVALID_ARGUMENT */
enum vxd_status vxd_volume_check_spec(const struct vxd_volume_spec *spec,
                                      struct vxd_err *err);

/* Makes the block table anew from the map's keys, of the size that its capacity asks for.
 * errors  RESOURCE_EXHAUSTED; the volume is unchanged */
enum vxd_status vxd_volume_rebuild_table(struct vxd_queue *queue,
                                         struct vxd_volume *volume, struct vxd_err *err);

/* The backends of the block table. The caller has filled new tables with VXD_BLOCK_EMPTY.
 * add: puts n entries, whose keys are in the map, into the table; none is in it.
 * changed: as vxd_volume_changed_since; counts is scratch of capacity + 1 uint32 with the number
 * of blocks in the last one, scratch that of a prefix sum over capacity. */
enum vxd_status vxd_volume_table_add_cpu(struct vxd_queue *queue,
                                         const struct vxd_volume *volume,
                                         const int32_t *entries, size_t n,
                                         struct vxd_err *err);
enum vxd_status vxd_volume_table_add_cuda(struct vxd_queue *queue,
                                          const struct vxd_volume *volume,
                                          const int32_t *entries, size_t n,
                                          struct vxd_err *err);
enum vxd_status vxd_volume_changed_cpu(struct vxd_queue *queue,
                                       const struct vxd_volume *volume, uint64_t since,
                                       int32_t *entries, uint32_t *counts, void *scratch,
                                       size_t scratch_bytes, struct vxd_err *err);
enum vxd_status vxd_volume_changed_cuda(struct vxd_queue *queue,
                                        const struct vxd_volume *volume, uint64_t since,
                                        int32_t *entries, uint32_t *counts, void *scratch,
                                        size_t scratch_bytes, struct vxd_err *err);
enum vxd_status vxd_volume_neighbours_cpu(struct vxd_queue *queue,
                                          const struct vxd_volume_view *view,
                                          const int32_t *entries, size_t n,
                                          int32_t *indices, struct vxd_err *err);
enum vxd_status vxd_volume_neighbours_cuda(struct vxd_queue *queue,
                                           const struct vxd_volume_view *view,
                                           const int32_t *entries, size_t n,
                                           int32_t *indices, struct vxd_err *err);

#ifdef __cplusplus
}
#endif
#endif
