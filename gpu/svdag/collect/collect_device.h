// SPDX-License-Identifier: Apache-2.0
/* Collections on a GPU: the functions that collect.c calls, and the launchers that
 * collect_device.c calls. Included as C11 and as CUDA C++. */
#ifndef VXD_GPU_SVDAG_COLLECT_COLLECT_DEVICE_H
#define VXD_GPU_SVDAG_COLLECT_COLLECT_DEVICE_H

#include "gpu/svdag/store/store_math.h"
#include "gpu/svdag/collect/collect_math.h"

#ifdef __cplusplus
extern "C" {
#endif

struct vxd_svdag_device_collection;

/* view: of words in device memory; `to` gets the items.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_svdag_collect_device_open(struct vxd_queue *queue,
                                              const struct vxd_svdag_view *view,
                                              struct vxd_svdag *to,
                                              struct vxd_svdag_device_collection **out,
                                              struct vxd_err *err);
/* NULL is fine. */
void vxd_svdag_collect_device_close(struct vxd_queue *queue,
                                    struct vxd_svdag_device_collection *collection);

/* Begins a round of roots, while it is idle, that are in no earlier round; the array is
 * copied. Where the marks of earlier rounds have to be merged first it does only that
 * (*has_begun is false), and has to be called again when it is idle. n_chunks and n_items
 * are at least those of the store that is read.
 * errors  RESOURCE_EXHAUSTED; nothing was begun */
enum vxd_status
vxd_svdag_collect_device_begin(struct vxd_queue *queue,
                               struct vxd_svdag_device_collection *collection,
                               const uint32_t *roots, size_t n_roots, uint32_t n_chunks,
                               uint64_t n_items, bool *has_begun, struct vxd_err *err);
bool vxd_svdag_collect_device_is_idle(
    const struct vxd_svdag_device_collection *collection);

/* Does one piece of work. Waits for the queue. */
enum vxd_status
vxd_svdag_collect_device_step(struct vxd_queue *queue,
                              struct vxd_svdag_device_collection *collection,
                              struct vxd_err *err);

/* The new references of roots, while it is idle. Waits. */
enum vxd_status vxd_svdag_collect_device_refs(
    struct vxd_queue *queue, struct vxd_svdag_device_collection *collection,
    const uint32_t *roots, uint32_t *refs, size_t n, struct vxd_err *err);

/* Number of items copied so far, and of their words. */
void vxd_svdag_collect_device_count(const struct vxd_svdag_device_collection *collection,
                                    uint64_t *n_nodes, uint64_t *n_words);

/* Kernels --------------------------------------------------------------------------------- */

/* Counts over all rounds so far, in device memory. */
struct vxd_svdag_collect_state {
    uint64_t
        n_listed_words; /* words of the inner nodes and leaves visited, and of blocks */
    uint64_t n_put;
    uint64_t n_put_words;
    uint64_t n_stored; /* items that were inserted, not found */
    uint64_t n_new;    /* inserted by the running launch, and their words */
    uint64_t n_new_words;
    uint32_t n_listed;
    uint32_t is_left; /* an item waits for a child */
    uint32_t fault;   /* fault of the last launch, enum vxd_svdag_fault */
};

/* Arguments of the kernels, by value. Marks of the second round are NULL in the first
 * one. */
struct vxd_svdag_collect_view {
    struct vxd_svdag_view view;
    struct vxd_svdag_mark *marks[2];
    uint32_t *refs[2];
    uint32_t fresh; /* index of this round's marks */
    uint32_t *list;
    struct vxd_svdag_collect_state *state;
    struct vxd_svdag_kernel_args to; /* arguments of the target store, and a state */
};

enum {
    VXD_SVDAG_RANK_MARKS = 2048 /* marks of a block */
};

/* Launchers; all are asynchronous.
 * errors  of the launch */

/* Marks and lists roots. */
enum vxd_status vxd_svdag_collect_device_mark_roots(
    struct vxd_queue *queue, const struct vxd_svdag_collect_view *view,
    const uint32_t *roots, uint32_t n, struct vxd_err *err);
/* Marks and lists the items that n items of the list refer to; adds their words, and
 * those of the listed blocks. */
enum vxd_status vxd_svdag_collect_device_mark(struct vxd_queue *queue,
                                              const struct vxd_svdag_collect_view *view,
                                              bool is_leaf, uint32_t begin, uint32_t n,
                                              struct vxd_err *err);
/* Counts the marks of each VXD_SVDAG_RANK_MARKS groups; has_both: of both rounds
 * together. */
enum vxd_status vxd_svdag_collect_device_count_marks(
    struct vxd_queue *queue, const struct vxd_svdag_collect_view *view, bool has_both,
    uint32_t n_groups, uint32_t *counts, struct vxd_err *err);
/* Numbers this round's marks, given the prefix sums of those counts. */
enum vxd_status vxd_svdag_collect_device_rank(struct vxd_queue *queue,
                                              const struct vxd_svdag_collect_view *view,
                                              uint32_t n_groups, const uint32_t *sums,
                                              struct vxd_err *err);
/* Merges the marks of both rounds, and the new references of their items. */
enum vxd_status vxd_svdag_collect_device_merge(struct vxd_queue *queue,
                                               const struct vxd_svdag_collect_view *view,
                                               uint32_t n_groups, const uint32_t *sums,
                                               uint32_t *refs, struct vxd_err *err);
/* Finds or inserts n items of the list whose children have new references, and which have
 * none themselves, in an arena. A fault says that the store had no capacity for all. */
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
