// SPDX-License-Identifier: Apache-2.0
/* Garbage collection: copies everything that some roots reach from one store into
 * another, in slices of time.
 *
 * Nodes never move, so unreached ones are collected by copying. What all kept roots reach
 * goes into an empty store. Edits of the old store may go on between the slices; the
 * roots that they make are added and copied too, and nearly all that they reach is there
 * already. In the end the owner replaces the old store by the new one, with the new
 * reference of each root, and destroys the old one after its last reader has finished.
 * This really returns memory and leaves no fragmentation, and a store may be replaced by
 * any other store of its format.
 *
 * A collection marks what its roots reach, level by level from the roots down, ranks the
 * marks, and then inserts items from blocks and leaves up, so that nodes which are
 * reached together are stored together. One thread at a time uses it, the one that edits
 * `from` and `to`; no edit of either may run during a call. Readers of both may run
 * meanwhile on other queues of the context.
 *
 * It takes memory until it ends, on a GPU from the context's budget for device memory,
 * else from the budget for host memory: a sixteenth of the bytes of `from` (twice that
 * where roots are added after a step was done), 4 bytes for each item of `from` while a
 * step is not done, and 4 bytes for each copied item.
 *
 * source  SVDAG editing, section 4.4, whose collector stops the world; DESIGN section 6 */
#ifndef VXD_GPU_SVDAG_COLLECT_COLLECT_H
#define VXD_GPU_SVDAG_COLLECT_COLLECT_H

#include "gpu/svdag/svdag.h"

#ifdef __cplusplus
extern "C" {
#endif

struct vxd_svdag_collection;

/* Begins a collection. `from` is not changed. `to` is another store of the same context
 * and format; it may have nodes and be edited between steps: items that it has are found
 * there.
 * errors  INVALID_ARGUMENT    the same store twice, or formats that differ
 *         RESOURCE_EXHAUSTED  no memory
 * owner   the caller; both stores must outlive it */
enum vxd_status vxd_svdag_collect_begin(struct vxd_queue *queue,
                                        const struct vxd_svdag *from,
                                        struct vxd_svdag *to,
                                        struct vxd_svdag_collection **out,
                                        struct vxd_err *err);

/* Adds a root of `from`, to be copied by the following steps. It may be called at any
 * time: before the first step, between steps, after they are done. A root that was added
 * before, an empty or a uniform one costs nothing.
 * errors  RESOURCE_EXHAUSTED  no memory; the root is not added */
enum vxd_status vxd_svdag_collect_add(struct vxd_svdag_collection *collection,
                                      uint32_t root, struct vxd_err *err);

/* Continues until max_ns of time would pass, but does at least one piece of work: some
 * thousand nodes on the CPU, some hundred thousand on a GPU, whatever the roots; 0 means
 * one piece. *is_done: all roots added so far are in `to`. It may then be called again
 * after an add, which costs what only the new roots reach, and one pass over the marks.
 * errors  RESOURCE_EXHAUSTED  the budget of `to`, or the context's: `from` and its roots are
 *                             unchanged, and so are the roots of `to`, which has some nodes
 *                             that no root reaches; it may be called again once there is
 *                             memory
 *         those of waiting for the queue
 * sync    waits for the queue */
enum vxd_status vxd_svdag_collect_step(struct vxd_queue *queue,
                                       struct vxd_svdag_collection *collection,
                                       uint64_t max_ns, bool *is_done,
                                       struct vxd_err *err);

/* The reference in `to` of a root of `from` that was added, after a step was done. Empty
 * and uniform references map to themselves, at any time. False: it is not copied yet. */
bool vxd_svdag_collect_root(const struct vxd_svdag_collection *collection, uint32_t root,
                            uint32_t *out);

struct vxd_svdag_collect_stats {
    uint64_t n_nodes; /* copied items: leaves, inner nodes, blocks */
    uint64_t n_bytes; /* their bytes, as in usage.node_bytes */
    /* Items of `from`, at the time when the copy of the last roots began, that no root
     * reaches. Valid once a step was done. */
    uint64_t n_dead_nodes;
    uint64_t n_dead_bytes;
    uint64_t n_steps;
    uint64_t total_ns;
    uint64_t longest_step_ns;
};
void vxd_svdag_collect_get_stats(const struct vxd_svdag_collection *collection,
                                 struct vxd_svdag_collect_stats *out);

/* Frees its memory; `to` keeps its items. NULL is fine. */
void vxd_svdag_collect_end(struct vxd_queue *queue,
                           struct vxd_svdag_collection *collection);

#ifdef __cplusplus
}
#endif
#endif
