// SPDX-License-Identifier: Apache-2.0
/* The layer behind the opaque name, and what its files share. */
#ifndef VXD_GPU_OCCUPANCY_OCCUPANCY_BACKENDS_H
#define VXD_GPU_OCCUPANCY_OCCUPANCY_BACKENDS_H

#include "gpu/core/core_cpu.h"
#include "gpu/hash/hash.h"
#include "gpu/occupancy/upkeep_math.h"
#include "gpu/occupancy/votes_math.h"

#ifdef __cplusplus
extern "C" {
#endif

struct vxd_occupancy {
    struct vxd_occupancy_rule rule;
    int depth;
    /* From a block's Morton code to its row: 512 int8, in Morton order. */
    struct vxd_hashmap *map;
    struct vxd_hashmap
        *votes;       /* likewise: 512 uint64 (votes_math.h); NULL: none are kept */
    size_t max_bytes; /* of both; 0 = what the context's budget allows */
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
    struct vxd_occupancy *layer;
    struct vxd_occupancy_ballot *ballot; /* NULL: nothing has voted */
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

/* Prepares a map of the layer for new blocks. A small one grows by little more than it needs: most
 * of a layer is its rows, and few may be unused; a large one would be copied too often.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_occupancy_prepare(struct vxd_queue *queue, struct vxd_hashmap *map,
                                      const int64_t *keys, size_t n, size_t *n_new,
                                      struct vxd_err *err);

/* votes.c. Takes back the votes of a plan that was not applied, and frees them. In queue order. */
void vxd_occupancy_ballot_free(struct vxd_queue *queue, struct vxd_occupancy_plan *plan);
/* The votes of a plan count. */
void vxd_occupancy_ballot_close(const struct vxd_occupancy_plan *plan);
/* What the map of votes may take: what the other one leaves. */
void vxd_occupancy_allow_votes(struct vxd_occupancy *layer);

/* Runs one step for n elements, on a CPU so many at a time, and ends between two parts where nobody
 * waits for the work any more (vxd_svdag_set_stop). May wait.
 * errors  CANCELLED, and those of a step; some parts may have run */
enum vxd_status vxd_occupancy_run_parts(struct vxd_queue *queue,
                                        const struct vxd_svdag *svdag,
                                        enum vxd_occupancy_step step,
                                        const struct vxd_occupancy_work *work, uint64_t n,
                                        uint64_t part, struct vxd_err *err);

/* Runs one step for n elements, from work->first on.
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
