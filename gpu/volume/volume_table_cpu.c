// SPDX-License-Identifier: Apache-2.0
/* The block table on the CPU: entries of keys, changed blocks, neighbours of blocks. */
#include "gpu/volume/volume_internal.h"

#define PIECE_BLOCKS ((size_t)1024)

struct table_add {
    struct vxd_volume_view view;
    struct vxd_block_slot *table;
    const int32_t *entries;
    size_t n;
};

struct list_changed {
    struct vxd_volume_view view;
    uint64_t since;
    int32_t *entries;
    uint32_t *count;
};

struct find_neighbours {
    struct vxd_volume_view view;
    const int32_t *entries;
    size_t n;
    int32_t *indices;
};

/* A frame adds some hundred blocks, so one thread does it. */
static enum vxd_status add_job(struct vxd_pool *pool, const void *args,
                               struct vxd_err *err)
{
    const struct table_add *add = args;

    (void)pool;
    (void)err;
    for (size_t i = 0; i < add->n; i++) {
        const int32_t *key = add->view.keys + 3 * (size_t)add->entries[i];
        uint64_t tag = vxd_block_tag(key[0], key[1], key[2]);
        uint32_t slot = vxd_block_hash(tag) & add->view.table_mask;

        while (add->table[slot].tag != VXD_BLOCK_EMPTY) {
            slot = (slot + 1) & add->view.table_mask;
        }
        add->table[slot] = (struct vxd_block_slot){tag, add->entries[i], 0};
    }
    return VXD_OK;
}

enum vxd_status vxd_volume_table_add_cpu(struct vxd_queue *queue,
                                         const struct vxd_volume *volume,
                                         const int32_t *entries, size_t n,
                                         struct vxd_err *err)
{
    struct table_add add = {.table = volume->table.ptr, .entries = entries, .n = n};

    vxd_volume_get_view(volume, &add.view);
    return vxd_queue_push(queue, add_job, &add, sizeof add, err);
}

static void link_piece(void *args, size_t begin, size_t end)
{
    const struct vxd_link_call *call = args;

    for (size_t i = begin; i < end; i++) {
        int32_t *row = call->neighbours + 27 * (size_t)call->entries[i];

        for (int column = 0; column < 27; column++) {
            row[column] = vxd_block_neighbour(&call->view, call->entries[i], column);
        }
    }
}

static enum vxd_status link_job(struct vxd_pool *pool, const void *args,
                                struct vxd_err *err)
{
    struct vxd_link_call call = *(const struct vxd_link_call *)args;

    (void)err;
    vxd_parallel_for(pool, call.n, PIECE_BLOCKS, link_piece, &call);
    for (size_t i = 0; i < call.n && !call.is_for_all; i++) {
        const int32_t *row = call.neighbours + 27 * (size_t)call.entries[i];

        for (int column = 0; column < 27; column++) {
            if (row[column] != VXD_NO_ENTRY) {
                call.neighbours[27 * (size_t)row[column] + 26 - (size_t)column] =
                    call.entries[i];
            }
        }
    }
    return VXD_OK;
}

enum vxd_status vxd_volume_link_cpu(struct vxd_queue *queue,
                                    const struct vxd_link_call *call, struct vxd_err *err)
{
    return vxd_queue_push(queue, link_job, call, sizeof *call, err);
}

static enum vxd_status changed_job(struct vxd_pool *pool, const void *args,
                                   struct vxd_err *err)
{
    const struct list_changed *list = args;
    uint32_t n = 0;

    (void)pool;
    (void)err;
    for (uint32_t i = 0; i < list->view.capacity; i++) {
        if (list->view.stamps[i] > list->since) {
            list->entries[n++] = (int32_t)i;
        }
    }
    *list->count = n;
    return VXD_OK;
}

enum vxd_status vxd_volume_changed_cpu(struct vxd_queue *queue,
                                       const struct vxd_volume *volume, uint64_t since,
                                       int32_t *entries, uint32_t *counts, void *scratch,
                                       size_t scratch_bytes, struct vxd_err *err)
{
    struct list_changed list = {.since = since, .entries = entries};

    (void)scratch;
    (void)scratch_bytes;
    vxd_volume_get_view(volume, &list.view);
    list.count = counts + list.view.capacity;
    return vxd_queue_push(queue, changed_job, &list, sizeof list, err);
}

static void neighbours_piece(void *args, size_t begin, size_t end)
{
    const struct find_neighbours *find = args;

    for (size_t i = begin; i < end; i++) {
        for (int column = 0; column < 27; column++) {
            find->indices[27 * i + (size_t)column] =
                vxd_block_neighbour(&find->view, find->entries[i], column);
        }
    }
}

static enum vxd_status neighbours_job(struct vxd_pool *pool, const void *args,
                                      struct vxd_err *err)
{
    struct find_neighbours find = *(const struct find_neighbours *)args;

    (void)err;
    vxd_parallel_for(pool, find.n, PIECE_BLOCKS, neighbours_piece, &find);
    return VXD_OK;
}

enum vxd_status vxd_volume_neighbours_cpu(struct vxd_queue *queue,
                                          const struct vxd_volume_view *view,
                                          const int32_t *entries, size_t n,
                                          int32_t *indices, struct vxd_err *err)
{
    struct find_neighbours find = {*view, entries, n, indices};

    return vxd_queue_push(queue, neighbours_job, &find, sizeof find, err);
}
