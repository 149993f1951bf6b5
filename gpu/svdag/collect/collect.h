// SPDX-License-Identifier: Apache-2.0
/* Copies everything that some roots reach from one store into another, a slice at a time.
 *
 * Nodes never move, so this is how unreached ones are collected: what all kept roots reach
 * goes into an empty store; meanwhile edits of the old store go on between the slices, and
 * the roots they make are added and carried over too (nearly all that they reach is there
 * already); then the owner takes the new store for the old one, with each root's new
 * reference, and destroys the old one once its last reader has let go. Memory is really
 * returned, nothing is left fragmented, and any store may become any other of its format.
 *
 * A transfer marks what its roots reach, level by level from the roots down, ranks the marks,
 * and stores from blocks and leaves up, each node beside the ones met together with it. It is
 * used by one thread at a time, the one that edits `from` and `to`: no edit of either runs
 * during a call. Readers of both may run beside it on other queues of the context.
 *
 * Memory until it ends, on a GPU of the context's budget for device memory, else of that for the
 * host's: a sixteenth of the bytes of `from` (twice that where roots were added after a step was
 * done), 4 bytes an item of `from` while a step is not done, and 4 bytes an item that is carried
 * over.
 *
 * source  SVDAG editing, section 4.4, whose collector stops the world; DESIGN section 6 */
#ifndef VXD_GPU_SVDAG_COLLECT_COLLECT_H
#define VXD_GPU_SVDAG_COLLECT_COLLECT_H

#include "gpu/svdag/svdag.h"

#ifdef __cplusplus
extern "C" {
#endif

struct vxd_svdag_collection;

/* `from` is not changed. `to` is another store of the same context and format; it may hold
 * nodes, and be edited between steps: what it has already is found there.
 * errors  INVALID_ARGUMENT    the same store twice, or formats that differ
 *         RESOURCE_EXHAUSTED  no memory
 * owner   the caller; both stores must outlive it */
enum vxd_status vxd_svdag_collect_begin(struct vxd_queue *queue,
                                        const struct vxd_svdag *from,
                                        struct vxd_svdag *to,
                                        struct vxd_svdag_collection **out,
                                        struct vxd_err *err);

/* One more root of `from` to carry over, by the steps that follow. At any time: before the
 * first step, between steps, after they were done. A root that was added before, an empty or
 * a uniform one costs nothing.
 * errors  RESOURCE_EXHAUSTED  no memory; the root is not added */
enum vxd_status vxd_svdag_collect_add(struct vxd_svdag_collection *collection,
                                      uint32_t root, struct vxd_err *err);

/* Goes on until max_ns of time would pass, but for one piece of work at least: some thousand
 * nodes on the CPU, some hundred thousand on a GPU, whatever the roots; 0 is one piece. *is_done: all
 * roots added so far are in `to`. Then it may be called again after an add, which costs what
 * the new roots reach alone and one way over the marks.
 * errors  RESOURCE_EXHAUSTED  the budget of `to`, or the context's: `from` and its roots are as
 *                             they were, and so are those of `to`, which holds some nodes that
 *                             nobody reaches; it may be called again once there is room
 *         what waiting for the queue gives
 * sync    waits for the queue */
enum vxd_status vxd_svdag_collect_step(struct vxd_queue *queue,
                                       struct vxd_svdag_collection *collection,
                                       uint64_t max_ns, bool *is_done,
                                       struct vxd_err *err);

/* What a root of `from` is in `to`: for roots that were added, after a step was done. Empty and
 * uniform ones are themselves, at any time. False: it is not carried over yet. */
bool vxd_svdag_collect_root(const struct vxd_svdag_collection *collection, uint32_t root,
                            uint32_t *out);

struct vxd_svdag_collect_stats {
    uint64_t n_nodes; /* carried over: leaves, inner nodes, blocks */
    uint64_t n_bytes; /* of those, as usage.node_bytes counts */
    /* Nodes that `from` had when the steps for the last roots began, and that no root reaches.
     * Known once a step was done. */
    uint64_t n_dead_nodes;
    uint64_t n_dead_bytes;
    uint64_t n_steps;
    uint64_t total_ns;
    uint64_t longest_step_ns;
};
void vxd_svdag_collect_get_stats(const struct vxd_svdag_collection *collection,
                                 struct vxd_svdag_collect_stats *out);

/* Frees its memory; `to` keeps what it has. NULL is fine. */
void vxd_svdag_collect_end(struct vxd_queue *queue,
                           struct vxd_svdag_collection *collection);

#ifdef __cplusplus
}
#endif
#endif
