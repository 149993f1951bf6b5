// SPDX-License-Identifier: Apache-2.0
/* Images: what some roots reach as plain words, for files that every store and backend reads.
 *
 * An image is the words of an arena that holds nothing else. Word 0 is 0; then, each item whole
 * within 2^18 words (VXD_SVDAG_CHUNK_BITS: where one does not fit, zeros fill up to the next
 * multiple), come
 *   blocks        of 8- and 16-bit materials
 *   leaves        from info.leaves on
 *   inner nodes   from info.inner on, children before parents, up to info.n_words
 * in the forms of svdag_math.h. References are addresses in the image, so the parts' beginnings
 * and the roots are all that has to be kept beside the words. Items that no root reaches are
 * not in it, none is in it twice. Words are uint32 of the host; files say little-endian.
 *
 * The image of equal scenes is equal, byte for byte, whatever store or backend they come from
 * and whatever edits made them: blocks, leaves, and inner nodes of one height stand in the
 * order in which a walk over the roots meets them, level by level, from the first root's first
 * octant on. */
#ifndef VXD_GPU_SVDAG_IMAGE_IMAGE_H
#define VXD_GPU_SVDAG_IMAGE_IMAGE_H

#include "gpu/svdag/svdag.h"

#ifdef __cplusplus
extern "C" {
#endif

struct vxd_svdag_image_info {
    struct vxd_svdag_format format;
    uint64_t n_words; /* at least 1 */
    uint64_t leaves;  /* address of the first leaf, or where it would stand */
    uint64_t inner;   /* of the first inner node, likewise */
};

/* Saving ---------------------------------------------------------------------------------- */

struct vxd_svdag_saving;

/* Words of a piece that a sink gets; the last one may have fewer. */
#define VXD_SVDAG_IMAGE_PIECE ((size_t)1 << 16)

/* Takes the next piece, words `first` on. The words are the engine's again when it returns. A
 * status other than VXD_OK ends the step with it; the next step offers the piece again. */
typedef enum vxd_status (*vxd_svdag_image_sink)(void *args, uint64_t first,
                                                const uint32_t *words, size_t n_words,
                                                struct vxd_err *err);

/* Begins an image of these roots, which the caller keeps alive until the end, with the store.
 * Edits of the store may run all the while, on other queues and threads, so that a read lane
 * can do it: what a root reaches never changes. Between begin and end one thread uses it at a
 * time.
 *
 * Memory, of the context's budgets: a sixteenth of the words of the store, 8 bytes an item of
 * it; on a GPU a copy of its words besides, page-locked.
 * errors  RESOURCE_EXHAUSTED  no memory
 * owner   the caller; roots are copied */
enum vxd_status vxd_svdag_image_begin(struct vxd_queue *queue,
                                      const struct vxd_svdag *svdag,
                                      const uint32_t *roots, size_t n_roots,
                                      struct vxd_svdag_saving **out, struct vxd_err *err);

/* Goes on until max_ns of time would pass, but for one piece of work at least (some thousand
 * nodes), with calls of the sink among it. *is_done: the sink has had all words.
 * errors  RESOURCE_EXHAUSTED; what the sink gives; what waiting for the queue gives
 * sync    waits for the queue */
enum vxd_status vxd_svdag_image_step(struct vxd_queue *queue,
                                     struct vxd_svdag_saving *saving, uint64_t max_ns,
                                     vxd_svdag_image_sink sink, void *args, bool *is_done,
                                     struct vxd_err *err);

/* Once it is done: what stands beside the words. roots are n_roots references in the image, in
 * the order that begin got them. */
void vxd_svdag_image_result(const struct vxd_svdag_saving *saving,
                            struct vxd_svdag_image_info *info, uint32_t *roots);

/* NULL is fine. */
void vxd_svdag_image_end(struct vxd_queue *queue, struct vxd_svdag_saving *saving);

/* Loading --------------------------------------------------------------------------------- */

/* Checks an image by every rule: forms, canonical, lengths, references that lead to whole items
 * before their parents and of a height that every place of theirs allows, headers that tell what
 * is below, each item reached by a root. Items may be equal: those become one when they are
 * stored. Any words are fine, no read goes past their end.
 *
 * in      words     info->n_words, host memory
 *         roots     references in the image
 * errors  INVALID_ARGUMENT    info->format is none
 *         DATA_LOSS           a rule is broken; says which and where
 *         RESOURCE_EXHAUSTED  no memory: 9/16 of the words
 * sync    blocking, on the context's pool; any thread */
enum vxd_status vxd_svdag_image_check(struct vxd_context *context,
                                      const struct vxd_svdag_image_info *info,
                                      const uint32_t *words, const uint32_t *roots,
                                      size_t n_roots, struct vxd_err *err);

/* Host memory for the words of an image that is to be loaded, such as an arena may keep: somewhat
 * more than n_words, its pages taken by all threads of the pool. To be freed by vxd_host_free.
 * errors  RESOURCE_EXHAUSTED
 * sync    blocking; any thread */
enum vxd_status vxd_svdag_image_alloc(struct vxd_context *context, uint64_t n_words,
                                      struct vxd_buffer *out, struct vxd_err *err);

/* Checks an image and stores what it holds. An empty arena takes its words as they are; other
 * stores, and those that hold nodes, find or insert each item.
 *
 * inout   roots     references in the image; after VXD_OK in the store
 * errors  those of the check
 *         INVALID_ARGUMENT    the formats differ
 *         RESOURCE_EXHAUSTED  at the store's budget, or the context's. roots are as they were
 *                             then, and so are the store's; it may hold nodes that nobody
 *                             reaches
 * sync    waits for the queue; as an edit of the store, beside no other */
enum vxd_status vxd_svdag_image_load(struct vxd_queue *queue, struct vxd_svdag *svdag,
                                     const struct vxd_svdag_image_info *info,
                                     const uint32_t *words, uint32_t *roots,
                                     size_t n_roots, struct vxd_err *err);

/* As vxd_svdag_image_load, of words that begin the memory that vxd_svdag_image_alloc gave: an empty
 * arena on the CPU keeps it instead of copying them.
 *
 * inout   memory    emptied where it is the store's; else still the caller's */
enum vxd_status vxd_svdag_image_load_own(struct vxd_queue *queue, struct vxd_svdag *svdag,
                                         const struct vxd_svdag_image_info *info,
                                         struct vxd_buffer *memory, uint32_t *roots,
                                         size_t n_roots, struct vxd_err *err);

#ifdef __cplusplus
}
#endif
#endif
