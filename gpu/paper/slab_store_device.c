// SPDX-License-Identifier: Apache-2.0
/* The tables of a slab store on a GPU. Slabs are taken by kernels, from chunks that device.c has;
 * here are the lists that they stand in, and the functions that a context is given of each store. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/svdag/store/store_cpu.h"
#include "gpu/paper/slab_stores.h"

enum {
    LISTS_FACTOR = 4, /* that a table's lists become more by */
    MAX_LISTS = 1 << 26
};

static_assert(sizeof(struct vxd_svdag_slab_source) * VXD_SVDAG_SLAB_TABLES <=
                  VXD_SVDAG_STORE_OWN_WORDS * sizeof(uint32_t),
              "the state of a store has no place for what tables take slabs from");

/* What a store has besides its chunks. */
struct slabs {
    struct vxd_buffer tables;                       /* device: VXD_SVDAG_SLAB_TABLES */
    struct vxd_buffer h_tables;                     /* the same, host */
    struct vxd_buffer lists[VXD_SVDAG_SLAB_TABLES]; /* device: the tables' */
};

static struct slabs *slabs_of(const struct vxd_svdag *svdag)
{
    return svdag->device->own;
}

static bool occurs(const struct vxd_svdag *svdag, int i)
{
    return vxd_svdag_slab_occurs(svdag->view.value_bits,
                                 (enum vxd_svdag_kind)(i / VXD_SVDAG_SLAB_SIZES),
                                 i % VXD_SVDAG_SLAB_SIZES);
}

/* Of a table that occurs: their items have two words at least. */
static struct vxd_svdag_slab_form form_of(const struct vxd_svdag *svdag, int i)
{
    const int n_words = i % VXD_SVDAG_SLAB_SIZES;

    return vxd_svdag_slab_form_of(svdag->spec.store, n_words < VXD_SVDAG_SLAB_MIN_WORDS
                                                         ? VXD_SVDAG_SLAB_MIN_WORDS
                                                         : n_words);
}

/* What the device counted of a table by the last edit. */
static struct vxd_svdag_slab_source source_of(const struct vxd_svdag *svdag, int i)
{
    const volatile struct vxd_svdag_store_state *mirror = svdag->device->mirror.ptr;
    const volatile uint32_t *own = &mirror->own[2 * (size_t)i];

    return (struct vxd_svdag_slab_source){own[0], own[1]};
}

/* Tells the device of the tables. */
static enum vxd_status send_tables(struct vxd_queue *queue, const struct vxd_svdag *svdag,
                                   struct vxd_err *err)
{
    const struct slabs *slabs = slabs_of(svdag);

    return vxd_queue_copy(queue, slabs->tables.ptr, slabs->h_tables.ptr,
                          slabs->h_tables.n_bytes, err);
}

static enum vxd_status slabs_open(struct vxd_queue *queue, struct vxd_svdag *svdag,
                                  struct vxd_err *err)
{
    const size_t n_bytes = VXD_SVDAG_SLAB_TABLES * sizeof(struct vxd_svdag_slab_table);
    const uint32_t n_lists = vxd_svdag_slab_spec_lists(&svdag->spec);
    struct slabs *slabs = calloc(1, sizeof *slabs);
    struct vxd_svdag_slab_table *tables;
    enum vxd_status status;

    if (slabs == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a scene");
    }
    svdag->device->own = slabs;
    VXD_TRY(vxd_host_alloc(queue->context, n_bytes, &slabs->h_tables, err));
    VXD_TRY(vxd_svdag_device_take(queue, svdag, n_bytes, &slabs->tables, err));
    svdag->device->tables = slabs->tables.ptr;
    tables = slabs->h_tables.ptr;
    memset(tables, 0, n_bytes);
    for (int i = 0; i < VXD_SVDAG_SLAB_TABLES; i++) {
        struct vxd_buffer *lists = &slabs->lists[i];

        if (occurs(svdag, i)) {
            VXD_TRY(vxd_svdag_device_take(queue, svdag, n_lists * sizeof(uint32_t), lists,
                                          err));
            VXD_TRY(vxd_queue_fill(queue, lists->ptr, 0, lists->n_bytes, err));
            tables[i] = (struct vxd_svdag_slab_table){lists->ptr, n_lists};
        }
    }
    VXD_TRY(send_tables(queue, svdag, err));
out:
    return status;
}

static void slabs_close(struct vxd_queue *queue, struct vxd_svdag *svdag)
{
    struct slabs *slabs = slabs_of(svdag);

    if (slabs == NULL) {
        return;
    }
    for (int i = 0; i < VXD_SVDAG_SLAB_TABLES; i++) {
        vxd_device_free(queue, &slabs->lists[i]);
    }
    vxd_device_free(queue, &slabs->tables);
    vxd_host_free(queue->context, &slabs->h_tables);
    free(slabs);
    svdag->device->own = NULL;
}

/* `factor` times as many lists for a table, if there is memory for them: without, searches are
 * longer. */
static enum vxd_status spread(struct vxd_queue *queue, struct vxd_svdag *svdag, int i,
                              uint32_t factor, struct vxd_err *err)
{
    struct slabs *slabs = slabs_of(svdag);
    struct vxd_svdag_slab_table *table =
        (struct vxd_svdag_slab_table *)slabs->h_tables.ptr + i;
    const uint32_t n_lists = table->n_lists * factor;
    struct vxd_buffer lists = {0};
    enum vxd_status status;

    if (vxd_svdag_device_take(queue, svdag, n_lists * sizeof(uint32_t), &lists, NULL) !=
        VXD_OK) {
        return VXD_OK;
    }
    VXD_TRY(vxd_svdag_slabs_spread(queue, table->lists, table->n_lists, factor, lists.ptr,
                                   err));
    vxd_svdag_device_give(queue, svdag, &slabs->lists[i]);
    slabs->lists[i] = lists;
    *table = (struct vxd_svdag_slab_table){lists.ptr, n_lists};
    return VXD_OK;
out:
    vxd_svdag_device_give(queue, svdag, &lists);
    return status;
}

/* Items that a table has room for once all chunks are full: as many of them are its own as now;
 * of one that has none yet, as many as of others. */
static uint64_t expected_items(const struct vxd_svdag *svdag, int i)
{
    const struct vxd_svdag_device *device = svdag->device;
    const struct vxd_svdag_slab_form form = form_of(svdag, i);
    const struct vxd_svdag_slab_source source = source_of(svdag, i);
    const uint64_t n_used = vxd_svdag_device_state(svdag).next / VXD_SVDAG_CHUNK_WORDS;
    const uint64_t n_slabs =
        source.chunk != 0 && n_used > 0
            ? (uint64_t)source.n_slabs * device->n_chunks / n_used
            : (uint64_t)device->n_chunks / VXD_SVDAG_SLAB_TABLES * form.n_slabs;

    return n_slabs * vxd_svdag_slab_places(&form);
}

/* More lists for tables whose lists have become long, where the budget has them. */
static enum vxd_status slabs_grow(struct vxd_queue *queue, struct vxd_svdag *svdag,
                                  struct vxd_err *err)
{
    const struct vxd_svdag_slab_table *tables = slabs_of(svdag)->h_tables.ptr;
    const uint64_t load = svdag->spec.load != 0 ? svdag->spec.load : VXD_SVDAG_LOAD;
    enum vxd_status status = VXD_OK;
    enum vxd_status sent;

    for (int i = 0; i < VXD_SVDAG_SLAB_TABLES; i++) {
        uint64_t n_items = occurs(svdag, i) ? expected_items(svdag, i) : 0;
        uint32_t factor = 1;

        while (n_items > load * tables[i].n_lists * factor &&
               tables[i].n_lists <= MAX_LISTS / LISTS_FACTOR / factor) {
            factor *= LISTS_FACTOR;
        }
        if (factor > 1) {
            VXD_TRY(spread(queue, svdag, i, factor, err));
        }
    }
out:
    /* Also of those that got theirs before another one did not. */
    sent = send_tables(queue, svdag, status == VXD_OK ? err : NULL);
    return status != VXD_OK ? status : sent;
}

/* Tables that have no slab yet: their first one takes a chunk. */
static uint32_t slabs_n_new(const struct vxd_svdag *svdag)
{
    uint32_t n = 0;

    for (int i = 0; i < VXD_SVDAG_SLAB_TABLES; i++) {
        n += occurs(svdag, i) && source_of(svdag, i).chunk == 0 ? 1 : 0;
    }
    return n;
}

/* Words in the tables' chunks that are no slabs yet. */
static uint64_t slabs_n_free_words(const struct vxd_svdag *svdag)
{
    uint64_t n = 0;

    for (int i = 0; i < VXD_SVDAG_SLAB_TABLES; i++) {
        const struct vxd_svdag_slab_source source = source_of(svdag, i);

        if (occurs(svdag, i) && source.n_slabs > 0) {
            const struct vxd_svdag_slab_form form = form_of(svdag, i);
            const uint32_t n_here = (source.n_slabs - 1) % form.n_slabs + 1;

            n += VXD_SVDAG_CHUNK_WORDS - VXD_SVDAG_CHUNK_BITMAP_WORDS -
                 (uint64_t)n_here * form.stride;
        }
    }
    return n;
}

static size_t slabs_n_copy_bytes(const struct vxd_svdag *svdag)
{
    const struct vxd_svdag_slab_table *tables = slabs_of(svdag)->h_tables.ptr;
    size_t n_bytes = slabs_of(svdag)->h_tables.n_bytes;

    for (int i = 0; i < VXD_SVDAG_SLAB_TABLES; i++) {
        n_bytes += tables[i].n_lists * sizeof(uint32_t);
    }
    return n_bytes;
}

static enum vxd_status slabs_copy(struct vxd_queue *queue, const struct vxd_svdag *svdag,
                                  char *memory, struct vxd_svdag_image *out,
                                  struct vxd_err *err)
{
    const struct vxd_svdag_slab_table *from = slabs_of(svdag)->h_tables.ptr;
    struct vxd_svdag_slab_table *tables = (void *)memory;
    uint32_t *lists = (void *)(memory + slabs_of(svdag)->h_tables.n_bytes);
    enum vxd_status status = VXD_OK;

    for (int i = 0; i < VXD_SVDAG_SLAB_TABLES; i++) {
        tables[i] = (struct vxd_svdag_slab_table){lists, from[i].n_lists};
        if (from[i].n_lists > 0) {
            VXD_TRY(vxd_queue_copy(queue, lists, from[i].lists,
                                   from[i].n_lists * sizeof *lists, err));
        }
        lists += from[i].n_lists;
    }
    out->tables = tables;
out:
    return status;
}

static uint32_t slabs_find_in_copy(const struct vxd_svdag *svdag,
                                   const struct vxd_svdag_image *image,
                                   const struct vxd_svdag_lookup_key *key)
{
    const struct vxd_svdag_slab_table *table = image->tables;
    struct vxd_svdag_slab_form form;

    if (!vxd_svdag_slab_occurs(image->view.value_bits, key->kind, key->n_words)) {
        return VXD_SVDAG_EMPTY;
    }
    table += vxd_svdag_slab_table_of(key->kind, key->n_words);
    form = vxd_svdag_slab_form_of(svdag->spec.store, key->n_words);
    return vxd_svdag_slab_find(
        &image->view, &form, table->lists[vxd_svdag_slab_list(key->hash, table->n_lists)],
        key);
}

/* The tables of functions. */

/* What the four stores share. */
#define SLABS                                                                            \
    .open = slabs_open, .close = slabs_close, .grow = slabs_grow,                        \
    .n_more_chunks = slabs_n_new, .n_free_words = slabs_n_free_words,                    \
    .n_copy_bytes = slabs_n_copy_bytes, .copy = slabs_copy,                              \
    .find_in_copy = slabs_find_in_copy, .tables = &vxd_paper_slab_tables_cuda

const struct vxd_svdag_device_ops vxd_paper_atomic64_cuda = {
    SLABS,
    .is_split = true,
    .edit_kernels = &vxd_paper_atomic64_kernels,
    .queries = &vxd_paper_split_queries,
    .put = vxd_svdag_collect_device_put_atomic64,
};

const struct vxd_svdag_device_ops vxd_paper_ticket_cuda = {
    SLABS,
    .edit_kernels = &vxd_paper_ticket_kernels,
    .put = vxd_svdag_collect_device_put_ticket,
};

const struct vxd_svdag_device_ops vxd_paper_accel32_cuda = {
    SLABS,
    .edit_kernels = &vxd_paper_accel32_kernels,
    .put = vxd_svdag_collect_device_put_accel32,
};

const struct vxd_svdag_device_ops vxd_paper_accel8_cuda = {
    SLABS,
    .edit_kernels = &vxd_paper_accel8_kernels,
    .put = vxd_svdag_collect_device_put_accel8,
};
