// SPDX-License-Identifier: Apache-2.0
/* A table of items of one length, in the way of any of the stores, with batched insert
 * and find on both backends. By it stores are compared (SVDAG editing, section 6.1: Table
 * 2, Figure 8); a scene's store has such tables, or an index, for all of its items.
 *
 * Items are n rows of n_words uint32. The first words of an item determine its length, as
 * those of nodes do (node_words_math.h): an item of 2 to 9 words has n_words - 1 of the
 * low eight bits of its first word set, and one of ten words is a leaf of 4-bit values
 * with 57 to 64 voxels. */
#ifndef VXD_GPU_SVDAG_TABLE_TABLE_H
#define VXD_GPU_SVDAG_TABLE_TABLE_H

#include "gpu/svdag/svdag.h"

#ifdef __cplusplus
extern "C" {
#endif

#define VXD_SVDAG_TABLE_MIN_WORDS 2
#define VXD_SVDAG_TABLE_MAX_WORDS 10

struct vxd_svdag_table_spec {
    enum vxd_svdag_store store;
    int n_words;
    uint64_t
        n_items; /* capacity, 1 to VXD_SVDAG_MAX_TABLE_ITEMS; a GPU allocates all of it at creation */
    uint32_t
        load; /* slab stores: items in a list of a full table, at most VXD_SVDAG_MAX_LOAD; 0 is VXD_SVDAG_LOAD */
};

struct vxd_svdag_table;

/* errors  INVALID_ARGUMENT    a spec outside the ranges above
 *         UNIMPLEMENTED       the context was not given the store
 *         RESOURCE_EXHAUSTED  no memory for it
 * sync    on a GPU waits for the queue
 * owner   the caller */
enum vxd_status vxd_svdag_table_create(struct vxd_queue *queue,
                                       const struct vxd_svdag_table_spec *spec,
                                       struct vxd_svdag_table **out, struct vxd_err *err);

/* Nothing queued may use it any more. NULL is fine. */
void vxd_svdag_table_destroy(struct vxd_queue *queue, struct vxd_svdag_table *table);

/* Inserts items that are distinct and that the table does not have.
 *
 * in      items  n x n_words; device memory, borrowed until the wait
 * out     refs   n references, or NULL: chunk and word of each item's first word, as in
 *                scenes; on a GPU in no fixed order
 * errors  INVALID_ARGUMENT    an array is missing
 *         RESOURCE_EXHAUSTED  more items than the spec's (nothing was queued), or, from the
 *                             wait, no memory for them: some were inserted, those have refs
 *                             other than VXD_SVDAG_EMPTY
 * sync    asynchronous; no other call on the table meanwhile, on any queue
 * source  SVDAG editing, algorithm 2 */
enum vxd_status vxd_svdag_table_insert(struct vxd_queue *queue,
                                       struct vxd_svdag_table *table,
                                       const uint32_t *items, size_t n, uint32_t *refs,
                                       struct vxd_err *err);

/* Finds items.
 *
 * in      items  n x n_words; device memory, borrowed until the wait
 * out     refs   n references, VXD_SVDAG_EMPTY for items that are not there
 * errors  INVALID_ARGUMENT  an array is missing
 * sync    asynchronous; other finds may run meanwhile, but no insert
 * source  SVDAG editing, algorithm 1 */
enum vxd_status vxd_svdag_table_find(struct vxd_queue *queue,
                                     const struct vxd_svdag_table *table,
                                     const uint32_t *items, size_t n, uint32_t *refs,
                                     struct vxd_err *err);

struct vxd_svdag_table_usage {
    uint64_t n_items;
    uint64_t node_bytes; /* of the items' words alone */
    uint64_t used_bytes; /* of words and index, or of whole slabs and lists */
    uint64_t n_bytes;    /* device memory taken */
};

/* Blocking: waits for the queue.
 * errors  what the wait gives */
enum vxd_status vxd_svdag_table_get_usage(struct vxd_queue *queue,
                                          const struct vxd_svdag_table *table,
                                          struct vxd_svdag_table_usage *out,
                                          struct vxd_err *err);

#ifdef __cplusplus
}
#endif
#endif
