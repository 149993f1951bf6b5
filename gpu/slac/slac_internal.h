// SPDX-License-Identifier: Apache-2.0
/* SLAC's object, its steps, and the functions of the backends. */
#ifndef VXD_GPU_SLAC_SLAC_INTERNAL_H
#define VXD_GPU_SLAC_SLAC_INTERNAL_H

#include "gpu/core/core_cpu.h"
#include "gpu/slac/slac.h"
#include "gpu/slac/slac_math.h"
#include "gpu/slac/slac_solver_math.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Every step: its function is vxd_slac_NAME_one, over items of its own. Those marked SOLVER do nothing
 * once the solver is done. */
#define VXD_SLAC_STEPS(PLAIN, SOLVER)                                                    \
    PLAIN(take)                                                                          \
    PLAIN(flag)                                                                          \
    PLAIN(member)                                                                        \
    PLAIN(begin)                                                                         \
    PLAIN(keep)                                                                          \
    PLAIN(order)                                                                         \
    PLAIN(corner)                                                                        \
    PLAIN(owner)                                                                         \
    PLAIN(node)                                                                          \
    PLAIN(cell_order)                                                                    \
    PLAIN(place)                                                                         \
    PLAIN(index)                                                                         \
    PLAIN(match)                                                                         \
    PLAIN(count)                                                                         \
    PLAIN(pair)                                                                          \
    PLAIN(link)                                                                          \
    PLAIN(strip_loss)                                                                    \
    PLAIN(node_loss)                                                                     \
    PLAIN(turn)                                                                          \
    PLAIN(block)                                                                         \
    PLAIN(chunk_block)                                                                   \
    PLAIN(strip_block)                                                                   \
    PLAIN(inverse)                                                                       \
    PLAIN(pull)                                                                          \
    SOLVER(chunk)                                                                        \
    SOLVER(strip)                                                                        \
    PLAIN(descent)                                                                       \
    SOLVER(displace)                                                                     \
    SOLVER(force)                                                                        \
    SOLVER(product)                                                                      \
    PLAIN(stretch)                                                                       \
    PLAIN(scale_node)                                                                    \
    PLAIN(scale_pose)                                                                    \
    PLAIN(move_node)                                                                     \
    PLAIN(move_pose)

#define VXD_SLAC_NAME(name) VXD_SLAC_STEP_##name,
enum vxd_slac_step_kind {
    VXD_SLAC_STEPS(VXD_SLAC_NAME, VXD_SLAC_NAME) VXD_SLAC_N_STEPS
};

/* Runs a step over n items. */
enum vxd_status vxd_slac_run_cpu(struct vxd_queue *queue,
                                 const struct vxd_slac_state *state,
                                 enum vxd_slac_step_kind step, size_t n,
                                 struct vxd_err *err);
enum vxd_status vxd_slac_run_cuda(struct vxd_queue *queue,
                                  const struct vxd_slac_state *state,
                                  enum vxd_slac_step_kind step, size_t n,
                                  struct vxd_err *err);

/* A step of conjugate gradients after the product; the first one begins from x = 0 and r. */
enum vxd_status vxd_slac_conjugate_cpu(struct vxd_queue *queue,
                                       const struct vxd_slac_state *state, int is_first,
                                       struct vxd_err *err);
enum vxd_status vxd_slac_conjugate_cuda(struct vxd_queue *queue,
                                        const struct vxd_slac_state *state, int is_first,
                                        struct vxd_err *err);

/* Blocks of device memory with one end. */
#define VXD_SLAC_MAX_BUFFERS 64
struct vxd_slac_memory {
    struct vxd_buffer buffers[VXD_SLAC_MAX_BUFFERS];
    size_t n;
};

struct vxd_slac {
    struct vxd_slac_options options;
    struct vxd_slac_state state;
    struct vxd_slac_memory memory;
    struct vxd_slac_memory pair_memory; /* for up to pair_capacity pairs */
    size_t pair_capacity;
    size_t n_ring; /* neighbours of all control points */
    struct vxd_hashmap *grid;
    struct vxd_hashmap *cells;
    double middle[3]; /* of the map: what poses' translations count from */

    /* Host memory, of malloc. */
    char (*names)[64];
    uint32_t *firsts; /* n_fragments + 1: each fragment's points */
    struct vxd_slac_edge *edges;
    size_t n_edges;
    size_t *edge_pairs;
    struct vxd_slac_tile *tiles;
    uint32_t *tile_counts;
    uint32_t *tile_firsts;
};

/* Takes n items of device memory.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_slac_take(struct vxd_queue *queue, struct vxd_slac_memory *memory,
                              size_t n, size_t item_bytes, void *out,
                              struct vxd_err *err);
void vxd_slac_give(struct vxd_queue *queue, struct vxd_slac_memory *memory);

/* Runs a step on the queue's backend; nothing of 0 items. */
enum vxd_status vxd_slac_run(struct vxd_queue *queue, const struct vxd_slac_state *state,
                             enum vxd_slac_step_kind step, size_t n, struct vxd_err *err);

/* Copies device memory to the host, and waits. */
enum vxd_status vxd_slac_read(struct vxd_queue *queue, const void *device, size_t n_bytes,
                              void *host, struct vxd_err *err);

/* slac_edges.c: the edges, as given or by boxes, and their tiles. at: n_points x 3, host memory. */
enum vxd_status vxd_slac_make_edges(struct vxd_queue *queue, struct vxd_slac *slac,
                                    const struct vxd_slac_args *args, const float *at,
                                    struct vxd_err *err);

#ifdef __cplusplus
}
#endif
#endif
