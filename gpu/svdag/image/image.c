// SPDX-License-Identifier: Apache-2.0
/* Saving images: one thread traverses the store in order (collect_traversal_cpu.h) and
 * appends items to words, which go to the sink piece by piece. Of a store on a GPU a copy
 * is read. */
#include "gpu/svdag/image/image.h"

#include <stdlib.h>
#include <string.h>

#include "gpu/svdag/collect/collect_cpu.h"

enum {
    CHUNK_WORDS = 1 << VXD_SVDAG_CHUNK_BITS,
    N_CHUNKS = 1 << (32 - VXD_SVDAG_CHUNK_BITS),
    COPY_CHUNKS = 8, /* copied in a step; a buffer holds as many */
    /* An item, and the free words before it, may extend past the end of a piece. */
    PIECE_WORDS = (int)VXD_SVDAG_IMAGE_PIECE + 2 * VXD_SVDAG_MAX_ITEM_WORDS
};

struct vxd_svdag_saving {
    const struct vxd_svdag *svdag;
    uint32_t *roots;
    size_t n_roots;
    struct vxd_svdag_collect_traversal traversal;
    bool has_begun;
    bool is_done;
    uint64_t n_words;   /* words appended */
    uint64_t n_flushed; /* words that the sink has */
    uint32_t *piece;    /* the words after those */
    bool has_leaves;    /* info.leaves is known */
    bool has_inner;     /* info.inner is known */
    struct vxd_svdag_image_info info;
    vxd_svdag_image_sink sink; /* of the running step */
    void *sink_args;
    /* On a GPU. */
    uint32_t n_chunks;
    uint32_t n_copied;
    const uint32_t **chunks;
    struct vxd_buffer *copies; /* host, COPY_CHUNKS each */
};

/* Words ----------------------------------------------------------------------------------- */

static enum vxd_status flush(struct vxd_svdag_saving *saving, size_t n,
                             struct vxd_err *err)
{
    size_t n_here = (size_t)(saving->n_words - saving->n_flushed);
    enum vxd_status status =
        saving->sink(saving->sink_args, saving->n_flushed, saving->piece, n, err);

    if (status == VXD_OK) {
        memmove(saving->piece, saving->piece + n, (n_here - n) * sizeof *saving->piece);
        saving->n_flushed += n;
    }
    return status;
}

/* Appends an item; a vxd_svdag_put_fn. */
static enum vxd_status append(void *args, struct vxd_svdag_writer *writer,
                              enum vxd_svdag_kind kind, const uint32_t *words,
                              int n_words, uint32_t *ref, struct vxd_err *err)
{
    struct vxd_svdag_saving *saving = args;
    uint32_t *to;
    uint64_t n_left;
    enum vxd_status status = VXD_OK;

    (void)writer;
    while (saving->n_words - saving->n_flushed >= VXD_SVDAG_IMAGE_PIECE) {
        VXD_TRY(flush(saving, VXD_SVDAG_IMAGE_PIECE, err));
    }
    if (saving->n_words + UINT64_C(2) * VXD_SVDAG_MAX_ITEM_WORDS >= VXD_SVDAG_UNIFORM) {
        status = vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                          "the image has no addresses left: 16 GiB of nodes");
        goto out;
    }
    if (kind != VXD_SVDAG_BLOCK && !saving->has_leaves) {
        saving->has_leaves = true;
        saving->info.leaves = saving->n_words;
    }
    if (kind == VXD_SVDAG_INNER && !saving->has_inner) {
        saving->has_inner = true;
        saving->info.inner = saving->n_words;
    }
    to = saving->piece + (saving->n_words - saving->n_flushed);
    n_left = CHUNK_WORDS - (saving->n_words & (CHUNK_WORDS - 1));
    if (n_left < (uint64_t)n_words) {
        memset(to, 0, (size_t)n_left * sizeof *to);
        to += n_left;
        saving->n_words += n_left;
    }
    memcpy(to, words, (size_t)n_words * sizeof *to);
    *ref = (uint32_t)saving->n_words;
    saving->n_words += (uint64_t)n_words;
out:
    return status;
}

/* Copies of words on a GPU
 * --------------------------------------------------------------- */

static enum vxd_status open_copy(struct vxd_svdag_saving *saving, struct vxd_err *err)
{
    saving->n_chunks = VXD_ON_CUDA(saving->svdag->context)
                           ? vxd_svdag_device_n_chunks(saving->svdag)
                           : 0;
    saving->chunks = calloc(N_CHUNKS, sizeof *saving->chunks);
    saving->copies = calloc((saving->n_chunks + COPY_CHUNKS - 1) / COPY_CHUNKS + 1,
                            sizeof *saving->copies);
    return saving->chunks == NULL || saving->copies == NULL
               ? vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for an image")
               : VXD_OK;
}

static enum vxd_status copy_some(struct vxd_queue *queue, struct vxd_svdag_saving *saving,
                                 struct vxd_err *err)
{
    const size_t n_bytes = CHUNK_WORDS * sizeof(uint32_t);
    struct vxd_buffer *copy = &saving->copies[saving->n_copied / COPY_CHUNKS];
    uint32_t left = saving->n_chunks - saving->n_copied;
    uint32_t n = left < COPY_CHUNKS ? left : COPY_CHUNKS;
    enum vxd_status status = VXD_OK;

    if (copy->ptr == NULL) {
        VXD_TRY(vxd_host_alloc(queue->context, n * n_bytes, copy, err));
    }
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t *from =
            VXD_ON_CUDA(queue->context)
                ? vxd_svdag_device_chunk(saving->svdag, saving->n_copied + i)
                : NULL;
        uint32_t *to = (uint32_t *)copy->ptr + (size_t)i * CHUNK_WORDS;

        saving->chunks[saving->n_copied + i] = to;
        VXD_TRY(vxd_queue_copy(queue, to, from, n_bytes, err));
    }
    VXD_TRY(vxd_queue_wait(queue, err));
    saving->n_copied += n;
out:
    return status;
}

/* ----------------------------------------------------------------------------------------- */

static enum vxd_status open_saving(struct vxd_queue *queue,
                                   struct vxd_svdag_saving *saving, const uint32_t *roots,
                                   struct vxd_err *err)
{
    struct vxd_svdag_view view = saving->svdag->view;
    enum vxd_status status = VXD_OK;

    if (VXD_ON_CUDA(queue->context)) {
        VXD_TRY(open_copy(saving, err));
        view.chunks = saving->chunks;
    }
    saving->roots = malloc((saving->n_roots + 1) * sizeof *roots);
    saving->piece = malloc(PIECE_WORDS * sizeof *saving->piece);
    if (saving->roots == NULL || saving->piece == NULL) {
        status = vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for an image");
        goto out;
    }
    if (saving->n_roots > 0) {
        memcpy(saving->roots, roots, saving->n_roots * sizeof *roots);
    }
    saving->piece[0] = 0;
    saving->n_words = 1;
    saving->traversal.put = append;
    saving->traversal.put_args = saving;
    VXD_TRY(
        vxd_svdag_collect_traversal_open(&saving->traversal, queue->context, &view, err));
out:
    return status;
}

enum vxd_status vxd_svdag_image_begin(struct vxd_queue *queue,
                                      const struct vxd_svdag *svdag,
                                      const uint32_t *roots, size_t n_roots,
                                      struct vxd_svdag_saving **out, struct vxd_err *err)
{
    struct vxd_svdag_saving *saving = calloc(1, sizeof *saving);
    enum vxd_status status;

    *out = NULL;
    if (saving == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for an image");
    }
    saving->svdag = svdag;
    saving->n_roots = n_roots;
    saving->info.format = svdag->spec.format;
    status = open_saving(queue, saving, roots, err);
    if (status != VXD_OK) {
        vxd_svdag_image_end(queue, saving);
        return status;
    }
    *out = saving;
    return VXD_OK;
}

void vxd_svdag_image_end(struct vxd_queue *queue, struct vxd_svdag_saving *saving)
{
    if (saving == NULL) {
        return;
    }
    /* Copies may still be queued. */
    (void)vxd_queue_wait(queue, NULL);
    vxd_svdag_collect_traversal_close(&saving->traversal);
    for (uint32_t i = 0; saving->copies != NULL && i < saving->n_chunks;
         i += COPY_CHUNKS) {
        vxd_host_free(queue->context, &saving->copies[i / COPY_CHUNKS]);
    }
    free(saving->copies);
    free(saving->chunks);
    free(saving->piece);
    free(saving->roots);
    free(saving);
}

static enum vxd_status begin_walk(struct vxd_svdag_saving *saving, struct vxd_err *err)
{
    struct vxd_svdag_usage usage;
    enum vxd_status status;

    vxd_svdag_get_usage(saving->svdag, &usage);
    status = vxd_svdag_collect_traversal_begin(
        &saving->traversal, saving->roots, saving->n_roots,
        usage.n_leaves + usage.n_inner + usage.n_blocks, err);
    saving->has_begun = status == VXD_OK;
    return status;
}

/* Flushes the remaining words and completes the info. */
static enum vxd_status finish(struct vxd_svdag_saving *saving, struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    while (saving->n_words > saving->n_flushed) {
        uint64_t n = saving->n_words - saving->n_flushed;

        VXD_TRY(flush(
            saving, n < VXD_SVDAG_IMAGE_PIECE ? (size_t)n : VXD_SVDAG_IMAGE_PIECE, err));
    }
    saving->info.n_words = saving->n_words;
    saving->info.leaves = saving->has_leaves ? saving->info.leaves : saving->n_words;
    saving->info.inner = saving->has_inner ? saving->info.inner : saving->n_words;
    saving->is_done = true;
out:
    return status;
}

static enum vxd_status step_once(struct vxd_queue *queue, struct vxd_svdag_saving *saving,
                                 struct vxd_err *err)
{
    if (VXD_ON_CUDA(queue->context) && saving->n_copied < saving->n_chunks) {
        return copy_some(queue, saving, err);
    }
    return !saving->has_begun ? begin_walk(saving, err)
           : saving->traversal.phase != VXD_SVDAG_COLLECT_IDLE
               ? vxd_svdag_collect_traversal_step(&saving->traversal, err)
               : finish(saving, err);
}

enum vxd_status vxd_svdag_image_step(struct vxd_queue *queue,
                                     struct vxd_svdag_saving *saving, uint64_t max_ns,
                                     vxd_svdag_image_sink sink, void *args, bool *is_done,
                                     struct vxd_err *err)
{
    struct vxd_svdag_pace pace = vxd_svdag_pace_begin(max_ns);
    enum vxd_status status;

    saving->sink = sink;
    saving->sink_args = args;
    VXD_TRY(vxd_queue_wait(queue, err));
    do {
        if (!saving->is_done) {
            VXD_TRY(step_once(queue, saving, err));
        }
    } while (!saving->is_done && vxd_svdag_pace_goes_on(&pace));
out:
    *is_done = saving->is_done;
    return status;
}

void vxd_svdag_image_result(const struct vxd_svdag_saving *saving,
                            struct vxd_svdag_image_info *info, uint32_t *roots)
{
    *info = saving->info;
    for (size_t i = 0; i < saving->n_roots; i++) {
        roots[i] = vxd_svdag_collect_traversal_ref(&saving->traversal, saving->roots[i]);
    }
}
