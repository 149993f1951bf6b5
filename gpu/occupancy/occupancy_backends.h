// SPDX-License-Identifier: Apache-2.0
/* The layer behind the opaque name, and what its files share. */
#ifndef VXD_GPU_OCCUPANCY_OCCUPANCY_BACKENDS_H
#define VXD_GPU_OCCUPANCY_OCCUPANCY_BACKENDS_H

#include "gpu/core/core_cpu.h"
#include "gpu/hash/hash.h"
#include "gpu/occupancy/upkeep_math.h"

#ifdef __cplusplus
extern "C" {
#endif

struct vxd_occupancy {
    struct vxd_occupancy_rule rule;
    int depth;
    /* From a block's Morton code to its row: 512 int8, in Morton order. */
    struct vxd_hashmap *map;
    /* New blocks were added and memory ran out before they had values. */
    bool is_damaged;
};

/* What a change of a layer does, once its scene has been edited. */
struct vxd_occupancy_plan {
    struct vxd_occupancy_work work;
    enum vxd_occupancy_step step; /* that applies it, for n_elements */
    uint64_t n_elements;
    uint32_t n_leaves;
    uint32_t n_blocks;
    struct vxd_buffer leaves; /* and blocks */
    struct vxd_buffer list;
    struct vxd_buffer fading; /* a decay's leaves */
};

/* The numbers of all blocks, ascending, in *memory. Blocking.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_occupancy_list_blocks(struct vxd_queue *queue,
                                          struct vxd_occupancy *layer,
                                          struct vxd_buffer *memory, size_t *n,
                                          struct vxd_err *err);

/* Forgets all values of a damaged layer: they become the clamps of the scene's states.
 * errors  RESOURCE_EXHAUSTED; it is still damaged */
enum vxd_status vxd_occupancy_mend(struct vxd_queue *queue, struct vxd_occupancy *layer,
                                   struct vxd_err *err);

/* Runs one step for n elements.
 * errors  RESOURCE_EXHAUSTED, UNAVAILABLE, INTERNAL; nothing ran */
enum vxd_status vxd_occupancy_run_cpu(struct vxd_queue *queue,
                                      enum vxd_occupancy_step step,
                                      const struct vxd_occupancy_work *work, uint64_t n,
                                      struct vxd_err *err);
enum vxd_status vxd_occupancy_run_cuda(struct vxd_queue *queue,
                                       enum vxd_occupancy_step step,
                                       const struct vxd_occupancy_work *work, uint64_t n,
                                       struct vxd_err *err);

#ifdef __cplusplus
}
#endif
#endif
