// SPDX-License-Identifier: Apache-2.0
/* A store on a GPU, as the files that keep it share it: device.c its memory, device_arena.c by
 * what items of an arena are found again. Stores that are handed in have functions of their own
 * for that (store_table.h). */
#ifndef VXD_GPU_SVDAG_STORE_STORE_DEVICE_INTERNAL_H
#define VXD_GPU_SVDAG_STORE_STORE_DEVICE_INTERNAL_H

#include "gpu/svdag/store/store_device.h"
#include "gpu/svdag/store/store.h"
#include "gpu/svdag/store/store_table.h"

/* What an edit took of a store, or what is taken. */
struct vxd_svdag_taken {
    uint64_t n_words;
    uint64_t n_items;
};

struct vxd_svdag_device {
    struct vxd_buffer table;   /* device: addresses of chunks, NULL from n_chunks on */
    struct vxd_buffer h_table; /* the same, host */
    struct vxd_buffer state;   /* device: struct vxd_svdag_store_state */
    struct vxd_buffer mirror;  /* host: what it was after some edit */
    struct vxd_buffer buckets; /* device; of an arena: its index, */
    struct vxd_svdag_index index;
    void *own;                 /* of a store that was handed in; it frees it */
    const void *tables;        /* what passes get of it; device memory */
    uint32_t n_chunks;         /* atomic: readers of usage */
    struct vxd_buffer *pieces; /* device: chunks, several each */
    size_t n_pieces;
    size_t n_bytes; /* of device memory; atomic */
    struct vxd_svdag_frontier_capacity frontier;
    struct vxd_svdag_taken taken;     /* as the edit that comes next found it, */
    struct vxd_svdag_taken recent[2]; /* and what the last two edits took, newest first */
};

/* device.c. Device memory within the store's budget, and back.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_svdag_device_take(struct vxd_queue *queue, struct vxd_svdag *svdag,
                                      size_t n_bytes, struct vxd_buffer *out,
                                      struct vxd_err *err);
void vxd_svdag_device_give(struct vxd_queue *queue, struct vxd_svdag *svdag,
                           struct vxd_buffer *buffer);

/* device_arena.c. A new store's index; room in it for so many items (0: as there is), an eighth
 * more than there is where the budget has that, and for the addresses of all chunks.
 * errors  RESOURCE_EXHAUSTED; the index is as it was */
enum vxd_status vxd_svdag_device_arena_open(struct vxd_queue *queue,
                                            struct vxd_svdag *svdag, struct vxd_err *err);
enum vxd_status vxd_svdag_device_arena_grow(struct vxd_queue *queue,
                                            struct vxd_svdag *svdag, uint64_t n_items,
                                            struct vxd_err *err);
/* Queues a copy of the index, of device->buckets.n_bytes, into host memory, and points *out to
 * it. */
enum vxd_status vxd_svdag_device_arena_copy(struct vxd_queue *queue,
                                            const struct vxd_svdag *svdag, char *memory,
                                            struct vxd_svdag_image *out,
                                            struct vxd_err *err);

#endif
