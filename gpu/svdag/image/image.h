// SPDX-License-Identifier: Apache-2.0
/* Images: everything that some roots reach, as plain words, for files that every store
 * and backend can read.
 *
 * An image is the words of an arena that holds nothing else. Word 0 is 0. The items
 * follow in this order:
 *   blocks        of 8- and 16-bit materials
 *   leaves        from info.leaves on
 *   inner nodes   from info.inner on, children before parents, up to info.n_words
 * No item crosses a multiple of 2^18 words (VXD_SVDAG_CHUNK_BITS): where one would, zeros
 * fill up to that multiple. The words of items are those of node_words_math.h. References
 * are addresses in the image, so besides the words only the beginnings of the three
 * sections and the roots have to be kept. Every item is reached by a root, and none
 * occurs twice. Words are uint32 of the host; files are little-endian.
 *
 * Equal scenes have equal images, byte for byte, whatever store or backend they come from
 * and whatever edits made them. Blocks, leaves, and inner nodes of one height are in the
 * order in which a traversal of the roots first reaches them, level by level, beginning
 * with the first octant of the first root. */
#ifndef VXD_GPU_SVDAG_IMAGE_IMAGE_H
#define VXD_GPU_SVDAG_IMAGE_IMAGE_H

#include "gpu/svdag/svdag.h"

#ifdef __cplusplus
extern "C" {
#endif

struct vxd_svdag_image_info {
    struct vxd_svdag_format format;
    uint64_t n_words; /* at least 1 */
    uint64_t leaves;  /* address of the first leaf, or where it would be */
    uint64_t inner;   /* the same for inner nodes */
};

/* Saving ---------------------------------------------------------------------------------- */

struct vxd_svdag_saving;

/* Words of a piece; the last one may have fewer. */
#define VXD_SVDAG_IMAGE_PIECE ((size_t)1 << 16)

/* Takes the next piece, which begins at word `first`. The words belong to the engine
 * again when it returns. A status other than VXD_OK ends the step with it; the next step
 * offers the piece again. */
typedef enum vxd_status (*vxd_svdag_image_sink)(void *args, uint64_t first,
                                                const uint32_t *words, size_t n_words,
                                                struct vxd_err *err);

/* Begins an image of these roots. The caller keeps the roots and the store alive until
 * the end. Edits of the store may run all the while, on other queues and threads, because
 * what a root reaches never changes. Between begin and end one thread at a time uses it.
 *
 * Memory, of the context's budgets: a sixteenth of the words of the store, and 8 bytes
 * for each of its items; on a GPU also a page-locked copy of its words.
 * errors  RESOURCE_EXHAUSTED  no memory
 * owner   the caller; roots are copied */
enum vxd_status vxd_svdag_image_begin(struct vxd_queue *queue,
                                      const struct vxd_svdag *svdag,
                                      const uint32_t *roots, size_t n_roots,
                                      struct vxd_svdag_saving **out, struct vxd_err *err);

/* Continues until max_ns of time would pass, but does at least one piece of work (some
 * thousand nodes), which may include calls of the sink. *is_done: the sink has all words.
 * errors  RESOURCE_EXHAUSTED; those of the sink; those of waiting for the queue
 * sync    waits for the queue */
enum vxd_status vxd_svdag_image_step(struct vxd_queue *queue,
                                     struct vxd_svdag_saving *saving, uint64_t max_ns,
                                     vxd_svdag_image_sink sink, void *args, bool *is_done,
                                     struct vxd_err *err);

/* After it is done: the info, and the n_roots references of the roots in the image, in
 * the order in which begin got them. */
void vxd_svdag_image_result(const struct vxd_svdag_saving *saving,
                            struct vxd_svdag_image_info *info, uint32_t *roots);

/* NULL is fine. */
void vxd_svdag_image_end(struct vxd_queue *queue, struct vxd_svdag_saving *saving);

/* Loading --------------------------------------------------------------------------------- */

/* Checks an image by every rule: the words of each item are valid and canonical;
 * references lead to whole items before their parents, of a height that every parent
 * allows; headers match the children; each item is reached by a root. Equal items are
 * allowed and become one when they are inserted. Any words are safe: no read passes their
 * end.
 *
 * in      words     info->n_words, host memory
 *         roots     references in the image
 * errors  INVALID_ARGUMENT    info->format is no format
 *         DATA_LOSS           a rule is broken; says which and where
 *         RESOURCE_EXHAUSTED  no memory: 9/16 of the words
 * sync    blocking, on the context's pool; any thread */
enum vxd_status vxd_svdag_image_check(struct vxd_context *context,
                                      const struct vxd_svdag_image_info *info,
                                      const uint32_t *words, const uint32_t *roots,
                                      size_t n_roots, struct vxd_err *err);

/* Allocates host memory for the words of an image that is to be loaded, in a form that an
 * arena can keep: slightly more than n_words. All threads of the pool touch its pages. To
 * be freed by vxd_host_free.
 * errors  RESOURCE_EXHAUSTED
 * sync    blocking; any thread */
enum vxd_status vxd_svdag_image_alloc(struct vxd_context *context, uint64_t n_words,
                                      struct vxd_buffer *out, struct vxd_err *err);

/* Checks an image and loads it into a store. An empty arena takes its words as they are;
 * other stores, and those that have nodes, find or insert each item.
 *
 * inout   roots     references in the image; after VXD_OK references in the store
 * errors  those of the check
 *         INVALID_ARGUMENT    the formats differ
 *         RESOURCE_EXHAUSTED  at the store's budget, or the context's. roots are unchanged
 *                             then, and so are the store's roots; the store may have nodes
 *                             that no root reaches
 * sync    waits for the queue; counts as an edit of the store, so no other may run */
enum vxd_status vxd_svdag_image_load(struct vxd_queue *queue, struct vxd_svdag *svdag,
                                     const struct vxd_svdag_image_info *info,
                                     const uint32_t *words, uint32_t *roots,
                                     size_t n_roots, struct vxd_err *err);

/* As vxd_svdag_image_load, for words at the beginning of memory from
 * vxd_svdag_image_alloc: an empty arena on the CPU keeps the memory instead of copying
 * the words.
 *
 * inout   memory    emptied where the store keeps it; else still the caller's */
enum vxd_status vxd_svdag_image_load_own(struct vxd_queue *queue, struct vxd_svdag *svdag,
                                         const struct vxd_svdag_image_info *info,
                                         struct vxd_buffer *memory, uint32_t *roots,
                                         size_t n_roots, struct vxd_err *err);

#ifdef __cplusplus
}
#endif
#endif
