// SPDX-License-Identifier: Apache-2.0
/* The store on a GPU, as the files that implement it share it: store_device.c has its
 * memory, arena_device.c the index of an arena. Stores of gpu/paper have functions of
 * their own for their index (store_table.h). */
#ifndef VXD_GPU_SVDAG_STORE_STORE_DEVICE_INTERNAL_H
#define VXD_GPU_SVDAG_STORE_STORE_DEVICE_INTERNAL_H

#include "gpu/svdag/store/store_device.h"
#include "gpu/svdag/store/store.h"
#include "gpu/svdag/store/store_table.h"

/* Words and items of a store, or those that an edit took. */
struct vxd_svdag_taken {
    uint64_t n_words;
    uint64_t n_items;
};

struct vxd_svdag_device {
    struct vxd_buffer table;   /* device: pointers to chunks, NULL from n_chunks on */
    struct vxd_buffer h_table; /* the same, host */
    struct vxd_buffer state;   /* device: struct vxd_svdag_store_state */
    struct vxd_buffer mirror;  /* host: the state after some edit */
    struct vxd_buffer buckets; /* device: the index of an arena */
    struct vxd_svdag_index index;
    void *own;                 /* of a store of gpu/paper, which frees it */
    const void *tables;        /* its part of the kernels' arguments; device memory */
    uint32_t n_chunks;         /* atomic, as get_usage reads it */
    struct vxd_buffer *pieces; /* device: memory of several chunks each */
    size_t n_pieces;
    size_t n_bytes; /* of device memory; atomic */
    struct vxd_svdag_frontier_capacity frontier;
    struct vxd_svdag_taken taken;     /* before the next edit */
    struct vxd_svdag_taken recent[2]; /* taken by the last two edits, newest first */
};

/* store_device.c. Takes device memory within the store's budget, and gives it back.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_svdag_device_take(struct vxd_queue *queue, struct vxd_svdag *svdag,
                                      size_t n_bytes, struct vxd_buffer *out,
                                      struct vxd_err *err);
void vxd_svdag_device_give(struct vxd_queue *queue, struct vxd_svdag *svdag,
                           struct vxd_buffer *buffer);

/* arena_device.c. Makes the index of a new store. Grows it to at least n_items (0: as
 * many as there are), by an eighth more than it has where the budget allows it, and for
 * the addresses of all chunks.
 * errors  RESOURCE_EXHAUSTED; the index is as it was */
enum vxd_status vxd_svdag_device_arena_open(struct vxd_queue *queue,
                                            struct vxd_svdag *svdag, struct vxd_err *err);
enum vxd_status vxd_svdag_device_arena_grow(struct vxd_queue *queue,
                                            struct vxd_svdag *svdag, uint64_t n_items,
                                            struct vxd_err *err);
/* Queues a copy of the index, device->buckets.n_bytes long, to host memory, and sets
 * out->index to it. */
enum vxd_status vxd_svdag_device_arena_copy(struct vxd_queue *queue,
                                            const struct vxd_svdag *svdag, char *memory,
                                            struct vxd_svdag_image *out,
                                            struct vxd_err *err);

#endif
