// SPDX-License-Identifier: Apache-2.0
/* Tables on a GPU: their memory, all taken when they are made, and which kernels they run. */
#include "gpu/core/cuda_check.h"
#include "gpu/dag/table_backends.h"

/* Where the parts of a table's memory begin. */
struct layout {
    size_t chunks;  /* pointers */
    size_t index;   /* lists, or buckets */
    size_t n_slabs; /* counted */
    size_t words;   /* chunks */
    size_t total;
};

/* Chunks that hold n_items whatever their hashes, and what of the view depends on it. */
static uint64_t shape_slabs(const struct vxd_queue *queue,
                            const struct vxd_dag_table_spec *spec,
                            struct vxd_dag_table_view *view)
{
    uint64_t n_slabs;
    uint64_t n_chunks;

    view->form = vxd_dag_slab_form_of(spec->store, spec->n_words);
    view->n_lists = vxd_dag_slab_lists(spec->n_items, spec->load);
    /* All slabs of a list but its first are full; and each warp that inserts may hold one
     * that is in no list. */
    n_slabs = spec->n_items / vxd_dag_slab_places(&view->form) + view->n_lists +
              vxd_dag_table_slabs_takers(queue, spec->n_items);
    n_chunks = (n_slabs + view->form.n_slabs - 1) / view->form.n_slabs;
    view->chunk_blocks = (view->form.n_slabs + 1023) / 1024;
    view->n_blocks = (uint32_t)n_chunks * view->chunk_blocks;
    return n_chunks;
}

static uint64_t shape_arena(const struct vxd_dag_table_spec *spec,
                            struct vxd_dag_table_view *view)
{
    /* The first place of a chunk is left out: address 0 is VXD_DAG_EMPTY. */
    view->chunk_items = VXD_DAG_CHUNK_WORDS / (uint32_t)spec->n_words - 1;
    /* Three quarters full. */
    view->index.n_buckets = (uint32_t)(spec->n_items * 4 / (3 * VXD_DAG_INDEX_SLOTS)) + 1;
    return (spec->n_items + view->chunk_items - 1) / view->chunk_items;
}

static bool lay_out(const struct vxd_dag_table_view *view, bool is_arena,
                    struct layout *out)
{
    size_t n_index = is_arena ? view->index.n_buckets : view->n_lists;

    out->total = 0;
    return vxd_layout_add(&out->total, view->n_chunks, sizeof(uint32_t *),
                          &out->chunks) &&
           vxd_layout_add(&out->total, n_index,
                          is_arena ? sizeof(struct vxd_dag_index_bucket)
                                   : sizeof(uint32_t),
                          &out->index) &&
           vxd_layout_add(&out->total, 1, sizeof(uint64_t), &out->n_slabs) &&
           vxd_layout_add(&out->total, view->n_chunks,
                          VXD_DAG_CHUNK_WORDS * sizeof(uint32_t), &out->words);
}

/* Fills the memory: everything is zeros but the pointers. */
static enum vxd_status fill(struct vxd_queue *queue, const struct vxd_dag_table *table,
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
            (uint32_t *)(memory + layout->words) + (size_t)i * VXD_DAG_CHUNK_WORDS;
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

enum vxd_status vxd_dag_table_open_cuda(struct vxd_queue *queue,
                                        struct vxd_dag_table *table, struct vxd_err *err)
{
    const struct vxd_dag_table_spec *spec = &table->spec;
    struct vxd_dag_table_view *view = &table->view;
    bool is_arena = spec->store == VXD_DAG_ARENA;
    uint64_t n_chunks;
    struct layout layout;
    uint8_t *memory;
    enum vxd_status status;

    n_chunks = is_arena ? shape_arena(spec, view) : shape_slabs(queue, spec, view);
    if (n_chunks > VXD_DAG_MAX_CHUNKS) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "n_items",
                        "%llu items of %d words need more than 16 GiB",
                        (unsigned long long)spec->n_items, spec->n_words);
    }
    view->n_chunks = (uint32_t)n_chunks;
    if (!lay_out(view, is_arena, &layout)) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "n_items", "too many bytes");
    }
    VXD_TRY(vxd_device_alloc(queue, layout.total, &table->memory, err));
    memory = (uint8_t *)table->memory.ptr;
    view->chunks = (uint32_t *const *)(memory + layout.chunks);
    view->lists = is_arena ? NULL : (uint32_t *)(memory + layout.index);
    view->index.addresses = vxd_dag_index_addresses(n_chunks * VXD_DAG_CHUNK_WORDS);
    view->index.buckets =
        is_arena ? (struct vxd_dag_index_bucket *)(memory + layout.index) : NULL;
    table->n_slabs = (uint64_t *)(memory + layout.n_slabs);
    VXD_TRY(fill(queue, table, &layout, err));
out:
    if (status != VXD_OK) {
        vxd_device_free(queue, &table->memory);
    }
    return status;
}

void vxd_dag_table_close_cuda(struct vxd_queue *queue, struct vxd_dag_table *table)
{
    vxd_device_free(queue, &table->memory);
}

enum vxd_status vxd_dag_table_insert_cuda(struct vxd_queue *queue,
                                          const struct vxd_dag_table_call *call,
                                          struct vxd_err *err)
{
    return call->table->spec.store == VXD_DAG_ARENA
               ? vxd_dag_table_arena_insert(queue, call, err)
               : vxd_dag_table_slabs_insert(queue, call, err);
}

enum vxd_status vxd_dag_table_find_cuda(struct vxd_queue *queue,
                                        const struct vxd_dag_table_call *call,
                                        struct vxd_err *err)
{
    return call->table->spec.store == VXD_DAG_ARENA
               ? vxd_dag_table_arena_find(queue, call, err)
               : vxd_dag_table_slabs_find(queue, call, err);
}

enum vxd_status vxd_dag_table_usage_cuda(struct vxd_queue *queue,
                                         const struct vxd_dag_table *table,
                                         struct vxd_dag_table_usage *out,
                                         struct vxd_err *err)
{
    const struct vxd_dag_table_view *view = &table->view;
    uint64_t n_slabs = 0;
    enum vxd_status status;

    out->n_items = table->n_items;
    out->node_bytes = table->n_items * (uint64_t)table->spec.n_words * sizeof(uint32_t);
    out->n_bytes = table->memory.n_bytes;
    if (table->spec.store == VXD_DAG_ARENA) {
        out->used_bytes =
            out->node_bytes + view->index.n_buckets * sizeof *view->index.buckets;
        return vxd_queue_wait(queue, err);
    }
    VXD_TRY(vxd_dag_table_slabs_count(queue, table, err));
    VXD_TRY(vxd_queue_copy(queue, &n_slabs, table->n_slabs, sizeof n_slabs, err));
    VXD_TRY(vxd_queue_wait(queue, err));
    out->used_bytes = n_slabs * view->form.stride * sizeof(uint32_t) +
                      (uint64_t)view->n_lists * sizeof *view->lists;
out:
    return status;
}
