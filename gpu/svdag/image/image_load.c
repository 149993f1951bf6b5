// SPDX-License-Identifier: Apache-2.0
/* Loading images. A new arena on the CPU takes the words as they are. Every other store
 * is filled by a collection from the image, whose words are copied to a GPU first. */
#include <stdlib.h>
#include <string.h>

#include "gpu/svdag/store/store_math.h"
#include "gpu/svdag/image/image_check.h"
#include "gpu/svdag/collect/collect_cpu.h"

enum {
    CHUNK_WORDS = 1 << VXD_SVDAG_CHUNK_BITS,
    PAGE_BYTES = 4096,
    PART_PAGES = 1024 /* pages a thread takes: two huge pages */
};

/* Memory ---------------------------------------------------------------------------------- */

/* Writes to each page, as the operating system clears a page at the first write. */
static void touch_body(void *args, size_t begin, size_t end)
{
    volatile char *bytes = ((const struct vxd_buffer *)args)->ptr;

    for (size_t i = begin; i < end; i++) {
        bytes[i * PAGE_BYTES] = 0;
    }
}

enum vxd_status vxd_svdag_image_alloc(struct vxd_context *context, uint64_t n_words,
                                      struct vxd_buffer *out, struct vxd_err *err)
{
    const size_t chunk_bytes = CHUNK_WORDS * sizeof(uint32_t);
    size_t n_chunks = (size_t)(n_words / CHUNK_WORDS) + 1;
    enum vxd_status status;

    VXD_TRY(vxd_host_alloc(context, n_chunks * chunk_bytes, out, err));
    if (!VXD_ON_CUDA(context)) {
        vxd_parallel_for(context->pool, out->n_bytes / PAGE_BYTES, PART_PAGES, touch_body,
                         out);
    }
out:
    return status;
}

/* Into a store ---------------------------------------------------------------------------- */

/* The words in device memory, and a table of pointers to their chunks. */
struct uploaded {
    struct vxd_buffer words;
    struct vxd_buffer table;
    struct vxd_buffer h_table; /* host */
};

static enum vxd_status upload(struct vxd_queue *queue,
                              const struct vxd_svdag_image_info *info,
                              const uint32_t *words, struct uploaded *out,
                              struct vxd_svdag_collect_source *source,
                              struct vxd_err *err)
{
    size_t n_table = source->n_chunks * sizeof(uint32_t *);
    const uint32_t **table;
    enum vxd_status status;

    VXD_TRY(vxd_device_alloc(queue, info->n_words * sizeof *words, &out->words, err));
    VXD_TRY(vxd_device_alloc(queue, n_table, &out->table, err));
    VXD_TRY(vxd_host_alloc(queue->context, n_table, &out->h_table, err));
    table = out->h_table.ptr;
    for (uint32_t i = 0; i < source->n_chunks; i++) {
        table[i] = (const uint32_t *)out->words.ptr + (size_t)i * CHUNK_WORDS;
    }
    VXD_TRY(vxd_queue_copy(queue, out->table.ptr, table, n_table, err));
    VXD_TRY(
        vxd_queue_copy(queue, out->words.ptr, words, info->n_words * sizeof *words, err));
    source->view.chunks = (const uint32_t *const *)out->table.ptr;
out:
    return status;
}

static void free_uploaded(struct vxd_queue *queue, struct uploaded *uploaded)
{
    /* The queue may still read the table. */
    (void)vxd_queue_wait(queue, NULL);
    vxd_device_free(queue, &uploaded->words);
    vxd_device_free(queue, &uploaded->table);
    vxd_host_free(queue->context, &uploaded->h_table);
}

static enum vxd_status collect(struct vxd_queue *queue,
                               const struct vxd_svdag_collect_source *source,
                               struct vxd_svdag *svdag, uint32_t *roots, size_t n_roots,
                               struct vxd_err *err)
{
    struct vxd_svdag_collection *collection = NULL;
    bool is_done = false;
    enum vxd_status status;

    VXD_TRY(vxd_svdag_collect_open(queue, source, svdag, &collection, err));
    for (size_t i = 0; i < n_roots; i++) {
        VXD_TRY(vxd_svdag_collect_add(collection, roots[i], err));
    }
    while (!is_done) {
        VXD_TRY(vxd_svdag_collect_step(queue, collection, UINT64_MAX, &is_done, err));
    }
    for (size_t i = 0; i < n_roots; i++) {
        (void)vxd_svdag_collect_root(collection, roots[i], &roots[i]);
    }
out:
    vxd_svdag_collect_end(queue, collection);
    return status;
}

static enum vxd_status load(struct vxd_queue *queue, struct vxd_svdag *svdag,
                            const struct vxd_svdag_image_info *info,
                            const uint32_t *words, struct vxd_buffer *memory,
                            struct vxd_svdag_image_items *items, uint32_t *roots,
                            size_t n_roots, struct vxd_err *err)
{
    struct vxd_svdag_collect_source source = {
        .view = items->view,
        .n_chunks = (uint32_t)((info->n_words + CHUNK_WORDS - 1) / CHUNK_WORDS),
        .n_items = items->n_items[VXD_SVDAG_LEAF] + items->n_items[VXD_SVDAG_INNER] +
                   items->n_items[VXD_SVDAG_BLOCK]};
    struct uploaded uploaded = {0};
    enum vxd_status status;

    if (!VXD_ON_CUDA(queue->context)) {
        /* Equal items, which images that we write do not have, are merged by a
         * collection. */
        bool is_taken = false;

        if (svdag->arena != NULL && vxd_svdag_arena_is_new(svdag)) {
            status = vxd_svdag_arena_adopt(svdag, info, items, memory, &is_taken, err);
            if (status != VXD_OK || is_taken) {
                return status;
            }
        }
        return collect(queue, &source, svdag, roots, n_roots, err);
    }
    VXD_TRY(upload(queue, info, words, &uploaded, &source, err));
    VXD_TRY(collect(queue, &source, svdag, roots, n_roots, err));
out:
    free_uploaded(queue, &uploaded);
    return status;
}

/* memory: of the words, if the store may keep it; else NULL. */
static enum vxd_status check_and_load(struct vxd_queue *queue, struct vxd_svdag *svdag,
                                      const struct vxd_svdag_image_info *info,
                                      const uint32_t *words, struct vxd_buffer *memory,
                                      uint32_t *roots, size_t n_roots,
                                      struct vxd_err *err)
{
    const struct vxd_svdag_format *format = &svdag->spec.format;
    struct vxd_svdag_image_items items = {0};
    enum vxd_status status;

    if (info->format.depth != format->depth ||
        info->format.material_bits != format->material_bits ||
        info->format.tracks_free != format->tracks_free) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "format",
                        "the image has another format than the store");
    }
    VXD_TRY(vxd_queue_wait(queue, err));
    VXD_TRY(vxd_svdag_image_items_open(queue->context, info, words, roots, n_roots,
                                       &items, err));
    VXD_TRY(load(queue, svdag, info, words, memory, &items, roots, n_roots, err));
out:
    vxd_svdag_image_items_close(queue->context, &items);
    return status;
}

enum vxd_status vxd_svdag_image_load(struct vxd_queue *queue, struct vxd_svdag *svdag,
                                     const struct vxd_svdag_image_info *info,
                                     const uint32_t *words, uint32_t *roots,
                                     size_t n_roots, struct vxd_err *err)
{
    return check_and_load(queue, svdag, info, words, NULL, roots, n_roots, err);
}

enum vxd_status vxd_svdag_image_load_own(struct vxd_queue *queue, struct vxd_svdag *svdag,
                                         const struct vxd_svdag_image_info *info,
                                         struct vxd_buffer *memory, uint32_t *roots,
                                         size_t n_roots, struct vxd_err *err)
{
    return check_and_load(queue, svdag, info, memory->ptr, memory, roots, n_roots, err);
}
