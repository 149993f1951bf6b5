// SPDX-License-Identifier: Apache-2.0
/* Tables on a GPU: their memory, which is allocated at creation, and the tables of the
 * arena. */
#include "gpu/core/core_cuda.h"
#include "gpu/svdag/table/table_backends.h"

/* Offsets in a table's memory. */
struct layout {
    size_t chunks; /* pointers */
    size_t index;
    size_t words; /* chunks */
    size_t total;
};

static bool lay_out(uint64_t n_chunks, size_t n_index_bytes, struct layout *out)
{
    out->total = 0;
    return vxd_layout_add(&out->total, n_chunks, sizeof(uint32_t *), &out->chunks) &&
           vxd_layout_add(&out->total, 1, n_index_bytes, &out->index) &&
           vxd_layout_add(&out->total, n_chunks, VXD_SVDAG_CHUNK_WORDS * sizeof(uint32_t),
                          &out->words);
}

/* Fills the memory with zeros, except the pointers to chunks. */
static enum vxd_status fill(struct vxd_queue *queue, const struct vxd_svdag_table *table,
                            const struct layout *layout, struct vxd_err *err)
{
    uint8_t *memory = (uint8_t *)table->memory.ptr;
    uint32_t n_chunks = table->view.n_chunks;
    struct vxd_buffer pointers = {};
    uint32_t **chunks;
    enum vxd_status status;

    VXD_TRY(vxd_host_alloc(queue->context, n_chunks * sizeof *chunks, &pointers, err));
    chunks = (uint32_t **)pointers.ptr;
    for (uint32_t i = 0; i < n_chunks; i++) {
        chunks[i] =
            (uint32_t *)(memory + layout->words) + (size_t)i * VXD_SVDAG_CHUNK_WORDS;
    }
    VXD_TRY(vxd_queue_fill(queue, memory, 0, layout->total, err));
    VXD_TRY(vxd_queue_copy(queue, memory + layout->chunks, chunks,
                           n_chunks * sizeof *chunks, err));
    /* The queue reads the pointers. */
    VXD_TRY(vxd_queue_wait(queue, err));
out:
    vxd_host_free(queue->context, &pointers);
    return status;
}

enum vxd_status vxd_svdag_table_alloc(struct vxd_queue *queue,
                                      struct vxd_svdag_table *table, uint64_t n_chunks,
                                      size_t n_index_bytes, void **index,
                                      struct vxd_err *err)
{
    struct layout layout;
    uint8_t *memory;
    enum vxd_status status;

    if (n_chunks > VXD_SVDAG_MAX_CHUNKS) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "n_items",
                        "%llu items of %d words need more than 16 GiB",
                        (unsigned long long)table->spec.n_items, table->spec.n_words);
    }
    if (!lay_out(n_chunks, n_index_bytes, &layout)) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "n_items", "too many bytes");
    }
    VXD_TRY(vxd_device_alloc(queue, layout.total, &table->memory, err));
    memory = (uint8_t *)table->memory.ptr;
    table->view.n_chunks = (uint32_t)n_chunks;
    table->view.chunks = (uint32_t *const *)(memory + layout.chunks);
    *index = memory + layout.index;
    VXD_TRY(fill(queue, table, &layout, err));
out:
    if (status != VXD_OK) {
        vxd_device_free(queue, &table->memory);
    }
    return status;
}

/* An arena's ---------------------------------------------------------------------------- */

static enum vxd_status arena_open(struct vxd_queue *queue, struct vxd_svdag_table *table,
                                  struct vxd_err *err)
{
    const struct vxd_svdag_table_spec *spec = &table->spec;
    struct vxd_svdag_table_view *view = &table->view;
    uint64_t n_chunks;
    void *buckets = NULL;
    enum vxd_status status;

    /* The first place of each chunk is unused, since address 0 is VXD_SVDAG_EMPTY. */
    view->chunk_items = VXD_SVDAG_CHUNK_WORDS / (uint32_t)spec->n_words - 1;
    /* Three quarters full. */
    view->index.n_buckets =
        (uint32_t)(spec->n_items * 4 / (3 * VXD_SVDAG_INDEX_SLOTS)) + 1;
    n_chunks = (spec->n_items + view->chunk_items - 1) / view->chunk_items;
    VXD_TRY(vxd_svdag_table_alloc(queue, table, n_chunks,
                                  view->index.n_buckets * sizeof *view->index.buckets,
                                  &buckets, err));
    view->index.addresses = vxd_svdag_index_addresses(n_chunks * VXD_SVDAG_CHUNK_WORDS);
    view->index.buckets = (struct vxd_svdag_index_bucket *)buckets;
out:
    return status;
}

static void arena_close(struct vxd_queue *queue, struct vxd_svdag_table *table)
{
    vxd_device_free(queue, &table->memory);
}

static enum vxd_status arena_get_usage(struct vxd_queue *queue,
                                       const struct vxd_svdag_table *table,
                                       struct vxd_svdag_table_usage *out,
                                       struct vxd_err *err)
{
    const struct vxd_svdag_index *index = &table->view.index;

    out->n_items = table->n_items;
    out->node_bytes = table->n_items * (uint64_t)table->spec.n_words * sizeof(uint32_t);
    out->n_bytes = table->memory.n_bytes;
    out->used_bytes = out->node_bytes + index->n_buckets * sizeof *index->buckets;
    return vxd_queue_wait(queue, err);
}

const struct vxd_svdag_table_ops vxd_svdag_table_cuda = {
    arena_open,
    arena_close,
    vxd_svdag_table_arena_insert,
    vxd_svdag_table_arena_find,
    arena_get_usage,
};
