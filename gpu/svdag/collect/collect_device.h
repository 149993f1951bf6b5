// SPDX-License-Identifier: Apache-2.0
/* Transfers on a GPU: what transfer.c asks of the device, and what transfer_cuda.c asks of the
 * kernels. Included as C11 and as CUDA C++. */
#ifndef VXD_GPU_SVDAG_COLLECT_COLLECT_DEVICE_H
#define VXD_GPU_SVDAG_COLLECT_COLLECT_DEVICE_H

#include "gpu/svdag/store/store_math.h"
#include "gpu/svdag/collect/collect_math.h"

#ifdef __cplusplus
extern "C" {
#endif

struct vxd_svdag_device_collection;

/* view: of device memory; `to` is where items go.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_svdag_collect_device_open(struct vxd_queue *queue,
                                              const struct vxd_svdag_view *view,
                                              struct vxd_svdag *to,
                                              struct vxd_svdag_device_collection **out,
                                              struct vxd_err *err);
/* NULL is fine. */
void vxd_svdag_collect_device_close(struct vxd_queue *queue,
                                    struct vxd_svdag_device_collection *collection);

/* While it is idle begins a round of roots that are none of earlier rounds; they are then not
 * needed any more. Where it has to merge the marks of rounds before it does that alone
 * (has_begun is false), and is called again when it is idle. n_chunks and n_items are what
 * there is to read at least.
 * errors  RESOURCE_EXHAUSTED; nothing was begun */
enum vxd_status
vxd_svdag_collect_device_begin(struct vxd_queue *queue,
                               struct vxd_svdag_device_collection *collection,
                               const uint32_t *roots, size_t n_roots, uint32_t n_chunks,
                               uint64_t n_items, bool *has_begun, struct vxd_err *err);
bool vxd_svdag_collect_device_is_idle(
    const struct vxd_svdag_device_collection *collection);

/* One piece of work. Waits for the queue. */
enum vxd_status
vxd_svdag_collect_device_step(struct vxd_queue *queue,
                              struct vxd_svdag_device_collection *collection,
                              struct vxd_err *err);

/* What roots have become, while it is idle. Waits. */
enum vxd_status vxd_svdag_collect_device_refs(
    struct vxd_queue *queue, struct vxd_svdag_device_collection *collection,
    const uint32_t *roots, uint32_t *refs, size_t n, struct vxd_err *err);

/* Items stored so far, and their words. */
void vxd_svdag_collect_device_count(const struct vxd_svdag_device_collection *collection,
                                    uint64_t *n_nodes, uint64_t *n_words);

/* Kernels --------------------------------------------------------------------------------- */

/* Counts of the rounds so far, in device memory. */
struct vxd_svdag_collect_state {
    uint64_t n_listed_words; /* of inner nodes and leaves gone over, and of blocks */
    uint64_t n_put;
    uint64_t n_put_words;
    uint64_t n_stored; /* of those put, not found */
    uint64_t n_new;    /* of the launch that goes on, and their words */
    uint64_t n_new_words;
    uint32_t n_listed;
    uint32_t is_left; /* an item waits for a child */
    uint32_t fault;   /* of the last launch: enum vxd_svdag_fault */
};

/* By value in kernels. Marks of the second round are NULL in the first one. */
struct vxd_svdag_collect_view {
    struct vxd_svdag_view view;
    struct vxd_svdag_mark *marks[2];
    uint32_t *refs[2];
    uint32_t fresh; /* which of them this round's are */
    uint32_t *list;
    struct vxd_svdag_collect_state *state;
    struct vxd_svdag_kernel_args to; /* its store's part, and a state */
};

enum {
    VXD_SVDAG_RANK_MARKS = 2048 /* a block's */
};

/* Launches; all are asynchronous.
 * errors  of the launch */

/* Marks and lists roots. */
enum vxd_status vxd_svdag_collect_device_mark_roots(
    struct vxd_queue *queue, const struct vxd_svdag_collect_view *view,
    const uint32_t *roots, uint32_t n, struct vxd_err *err);
/* Marks and lists what n items of the list refer to, counts their words, and those of the
 * blocks listed. */
enum vxd_status vxd_svdag_collect_device_mark(struct vxd_queue *queue,
                                              const struct vxd_svdag_collect_view *view,
                                              bool is_leaf, uint32_t begin, uint32_t n,
                                              struct vxd_err *err);
/* Marks of each VXD_SVDAG_RANK_MARKS groups, both rounds' together where has_both. */
enum vxd_status vxd_svdag_collect_device_count_marks(
    struct vxd_queue *queue, const struct vxd_svdag_collect_view *view, bool has_both,
    uint32_t n_groups, uint32_t *counts, struct vxd_err *err);
/* Numbers this round's marks from those counts, summed up. */
enum vxd_status vxd_svdag_collect_device_rank(struct vxd_queue *queue,
                                              const struct vxd_svdag_collect_view *view,
                                              uint32_t n_groups, const uint32_t *sums,
                                              struct vxd_err *err);
/* Makes one of the marks of both rounds, with what their items became. */
enum vxd_status vxd_svdag_collect_device_merge(struct vxd_queue *queue,
                                               const struct vxd_svdag_collect_view *view,
                                               uint32_t n_groups, const uint32_t *sums,
                                               uint32_t *refs, struct vxd_err *err);
/* Finds or stores n items of the list that have their children, and were not put, in an arena. A
 * fault is told where the store has no room for all. */
enum vxd_status vxd_svdag_collect_device_put(struct vxd_queue *queue,
                                             const struct vxd_svdag_collect_view *view,
                                             enum vxd_svdag_kind kind, uint32_t begin,
                                             uint32_t n, struct vxd_err *err);
enum vxd_status vxd_svdag_collect_device_read(struct vxd_queue *queue,
                                              const struct vxd_svdag_collect_view *view,
                                              const uint32_t *roots, uint32_t *refs,
                                              uint32_t n, struct vxd_err *err);

#ifdef __cplusplus
}
#endif
#endif
