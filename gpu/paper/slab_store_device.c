// SPDX-License-Identifier: Apache-2.0
/* The tables of a slab store on a GPU. Slabs are taken by kernels, from chunks that device.c has;
 * here are the lists that they stand in. */
#include <string.h>

#include "gpu/dag/device_store.h"

enum {
    LISTS_FACTOR = 4, /* that a table's lists become more by */
    MAX_LISTS = 1 << 26
};

static bool occurs(const struct vxd_dag *dag, int i)
{
    return vxd_dag_slab_occurs(dag->view.value_bits,
                               (enum vxd_dag_kind)(i / VXD_DAG_SLAB_SIZES),
                               i % VXD_DAG_SLAB_SIZES);
}

/* Of a table that occurs: their items have two words at least. */
static struct vxd_dag_slab_form form_of(const struct vxd_dag *dag, int i)
{
    const int n_words = i % VXD_DAG_SLAB_SIZES;

    return vxd_dag_slab_form_of(dag->spec.store, n_words < VXD_DAG_SLAB_MIN_WORDS
                                                     ? VXD_DAG_SLAB_MIN_WORDS
                                                     : n_words);
}

/* What the device counted of a table by the last edit. */
static struct vxd_dag_slab_room room_of(const struct vxd_dag *dag, int i)
{
    const volatile struct vxd_dag_store_state *mirror = dag->device->mirror.ptr;

    return (struct vxd_dag_slab_room){mirror->slabs[i].chunk, mirror->slabs[i].n_slabs};
}

/* Tells the device of the tables. */
static enum vxd_status send_tables(struct vxd_queue *queue, const struct vxd_dag *dag,
                                   struct vxd_err *err)
{
    const struct vxd_dag_device *device = dag->device;

    return vxd_queue_copy(queue, device->slabs.ptr, device->h_slabs.ptr,
                          device->h_slabs.n_bytes, err);
}

enum vxd_status vxd_dag_device_slabs_open(struct vxd_queue *queue, struct vxd_dag *dag,
                                          struct vxd_err *err)
{
    const size_t n_bytes = VXD_DAG_SLAB_TABLES * sizeof(struct vxd_dag_slab_table);
    const uint32_t n_lists = vxd_dag_slab_spec_lists(&dag->spec);
    struct vxd_dag_device *device = dag->device;
    struct vxd_dag_slab_table *tables;
    enum vxd_status status;

    VXD_TRY(vxd_host_alloc(queue->context, n_bytes, &device->h_slabs, err));
    VXD_TRY(vxd_dag_device_take(queue, dag, n_bytes, &device->slabs, err));
    tables = device->h_slabs.ptr;
    memset(tables, 0, n_bytes);
    for (int i = 0; i < VXD_DAG_SLAB_TABLES; i++) {
        struct vxd_buffer *lists = &device->lists[i];

        if (occurs(dag, i)) {
            VXD_TRY(
                vxd_dag_device_take(queue, dag, n_lists * sizeof(uint32_t), lists, err));
            VXD_TRY(vxd_queue_fill(queue, lists->ptr, 0, lists->n_bytes, err));
            tables[i] = (struct vxd_dag_slab_table){lists->ptr, n_lists};
        }
    }
    VXD_TRY(send_tables(queue, dag, err));
out:
    return status;
}

void vxd_dag_device_slabs_close(struct vxd_queue *queue, struct vxd_dag *dag)
{
    struct vxd_dag_device *device = dag->device;

    for (int i = 0; i < VXD_DAG_SLAB_TABLES; i++) {
        vxd_device_free(queue, &device->lists[i]);
    }
    vxd_device_free(queue, &device->slabs);
    vxd_host_free(queue->context, &device->h_slabs);
}

/* `factor` times as many lists for a table, if there is memory for them: without, searches are
 * longer. */
static enum vxd_status spread(struct vxd_queue *queue, struct vxd_dag *dag, int i,
                              uint32_t factor, struct vxd_err *err)
{
    struct vxd_dag_device *device = dag->device;
    struct vxd_dag_slab_table *table =
        (struct vxd_dag_slab_table *)device->h_slabs.ptr + i;
    const uint32_t n_lists = table->n_lists * factor;
    struct vxd_buffer lists = {0};
    enum vxd_status status;

    if (vxd_dag_device_take(queue, dag, n_lists * sizeof(uint32_t), &lists, NULL) !=
        VXD_OK) {
        return VXD_OK;
    }
    VXD_TRY(vxd_dag_slabs_spread(queue, table->lists, table->n_lists, factor, lists.ptr,
                                 err));
    vxd_dag_device_give(queue, dag, &device->lists[i]);
    device->lists[i] = lists;
    *table = (struct vxd_dag_slab_table){lists.ptr, n_lists};
    return VXD_OK;
out:
    vxd_dag_device_give(queue, dag, &lists);
    return status;
}

/* Items that a table has room for once all chunks are full: as many of them are its own as now;
 * of one that has none yet, as many as of others. */
static uint64_t expected_items(const struct vxd_dag *dag, int i)
{
    const struct vxd_dag_device *device = dag->device;
    const struct vxd_dag_slab_form form = form_of(dag, i);
    const struct vxd_dag_slab_room room = room_of(dag, i);
    const uint64_t n_used = vxd_dag_device_state(dag).next / VXD_DAG_CHUNK_WORDS;
    const uint64_t n_slabs =
        room.chunk != 0 && n_used > 0
            ? (uint64_t)room.n_slabs * device->n_chunks / n_used
            : (uint64_t)device->n_chunks / VXD_DAG_SLAB_TABLES * form.n_slabs;

    return n_slabs * vxd_dag_slab_places(&form);
}

enum vxd_status vxd_dag_device_slabs_grow(struct vxd_queue *queue, struct vxd_dag *dag,
                                          struct vxd_err *err)
{
    const struct vxd_dag_slab_table *tables = dag->device->h_slabs.ptr;
    const uint64_t load = dag->spec.load != 0 ? dag->spec.load : VXD_DAG_LOAD;
    enum vxd_status status = VXD_OK;
    enum vxd_status sent;

    for (int i = 0; i < VXD_DAG_SLAB_TABLES; i++) {
        uint64_t n_items = occurs(dag, i) ? expected_items(dag, i) : 0;
        uint32_t factor = 1;

        while (n_items > load * tables[i].n_lists * factor &&
               tables[i].n_lists <= MAX_LISTS / LISTS_FACTOR / factor) {
            factor *= LISTS_FACTOR;
        }
        if (factor > 1) {
            VXD_TRY(spread(queue, dag, i, factor, err));
        }
    }
out:
    /* Also of those that got theirs before another one did not. */
    sent = send_tables(queue, dag, status == VXD_OK ? err : NULL);
    return status != VXD_OK ? status : sent;
}

uint32_t vxd_dag_device_slabs_new(const struct vxd_dag *dag)
{
    uint32_t n = 0;

    for (int i = 0; i < VXD_DAG_SLAB_TABLES; i++) {
        n += occurs(dag, i) && room_of(dag, i).chunk == 0 ? 1 : 0;
    }
    return n;
}

uint64_t vxd_dag_device_slabs_free(const struct vxd_dag *dag)
{
    uint64_t n = 0;

    for (int i = 0; i < VXD_DAG_SLAB_TABLES; i++) {
        const struct vxd_dag_slab_room room = room_of(dag, i);

        if (occurs(dag, i) && room.n_slabs > 0) {
            const struct vxd_dag_slab_form form = form_of(dag, i);
            const uint32_t n_here = (room.n_slabs - 1) % form.n_slabs + 1;

            n += VXD_DAG_CHUNK_WORDS - VXD_DAG_CHUNK_BITMAP_WORDS -
                 (uint64_t)n_here * form.stride;
        }
    }
    return n;
}

size_t vxd_dag_device_slabs_bytes(const struct vxd_dag *dag)
{
    const struct vxd_dag_slab_table *tables = dag->device->h_slabs.ptr;
    size_t n_bytes = dag->device->h_slabs.n_bytes;

    for (int i = 0; i < VXD_DAG_SLAB_TABLES; i++) {
        n_bytes += tables[i].n_lists * sizeof(uint32_t);
    }
    return n_bytes;
}

enum vxd_status vxd_dag_device_slabs_copy(struct vxd_queue *queue,
                                          const struct vxd_dag *dag, char *memory,
                                          struct vxd_dag_image *out, struct vxd_err *err)
{
    const struct vxd_dag_slab_table *from = dag->device->h_slabs.ptr;
    struct vxd_dag_slab_table *tables = (void *)memory;
    uint32_t *lists = (void *)(memory + dag->device->h_slabs.n_bytes);
    enum vxd_status status = VXD_OK;

    for (int i = 0; i < VXD_DAG_SLAB_TABLES; i++) {
        tables[i] = (struct vxd_dag_slab_table){lists, from[i].n_lists};
        if (from[i].n_lists > 0) {
            VXD_TRY(vxd_queue_copy(queue, lists, from[i].lists,
                                   from[i].n_lists * sizeof *lists, err));
        }
        lists += from[i].n_lists;
    }
    out->slabs = tables;
out:
    return status;
}
