// SPDX-License-Identifier: Apache-2.0
/* The index of an arena on a GPU. */
#include "gpu/svdag/store/store_device_internal.h"

enum {
    FIRST_BUCKETS = 1 << 14, /* 512 KiB */
    /* Up to here the index doubles; above, it grows by an eighth, and later by a
     * sixteenth. An edit during which it has to grow runs twice, and small scenes change
     * most with each edit. */
    SMALL_BUCKETS = 1 << 16,
    LARGE_BUCKETS = 1 << 20,
    MAX_BUCKETS = 1 << 29 /* slots have 32-bit numbers */
};

static enum vxd_status new_index(struct vxd_queue *queue, struct vxd_svdag *svdag,
                                 uint32_t n_buckets, struct vxd_err *err)
{
    struct vxd_svdag_device *device = svdag->device;
    struct vxd_buffer buckets = {0};
    struct vxd_svdag_index index = {
        .n_buckets = n_buckets,
        .addresses = vxd_svdag_index_addresses((uint64_t)device->n_chunks *
                                               VXD_SVDAG_CHUNK_WORDS)};
    enum vxd_status status;

    VXD_TRY(vxd_svdag_device_take(queue, svdag, n_buckets * sizeof *index.buckets,
                                  &buckets, err));
    VXD_TRY(vxd_queue_fill(queue, buckets.ptr, 0, buckets.n_bytes, err));
    index.buckets = buckets.ptr;
    if (device->index.n_buckets > 0) {
        VXD_TRY(vxd_svdag_index_move(queue, &svdag->view, &device->index, &index, err));
        /* The old index is kept until this has succeeded. */
        VXD_TRY(vxd_queue_wait(queue, err));
        vxd_svdag_device_give(queue, svdag, &device->buckets);
    }
    device->buckets = buckets;
    device->index = index;
    return VXD_OK;
out:
    if (buckets.ptr != NULL) {
        vxd_svdag_device_give(queue, svdag, &buckets);
    }
    return status;
}

enum vxd_status vxd_svdag_device_arena_open(struct vxd_queue *queue,
                                            struct vxd_svdag *svdag, struct vxd_err *err)
{
    return new_index(queue, svdag, FIRST_BUCKETS, err);
}

enum vxd_status vxd_svdag_device_arena_grow(struct vxd_queue *queue,
                                            struct vxd_svdag *svdag, uint64_t n_items,
                                            struct vxd_err *err)
{
    struct vxd_svdag_device *device = svdag->device;
    uint64_t n = device->index.n_buckets;
    uint64_t desired = n + (n < SMALL_BUCKETS ? n : n < LARGE_BUCKETS ? n / 8 : n / 16);
    /* Nine elevenths of the slots are used then. */
    uint64_t needed = n_items / VXD_SVDAG_INDEX_SLOTS * 11 / 9 + 2;

    if (n_items == 0) {
        return new_index(queue, svdag, device->index.n_buckets, err);
    }
    needed = needed > n + n / 16 ? needed : n + n / 16 + 1;
    desired = desired > needed ? desired : needed;
    if (needed > MAX_BUCKETS) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                        "the scene's index is full: %llu items",
                        (unsigned long long)n_items);
    }
    desired = desired < MAX_BUCKETS ? desired : MAX_BUCKETS;
    if (desired > needed && new_index(queue, svdag, (uint32_t)desired, NULL) == VXD_OK) {
        return VXD_OK;
    }
    return new_index(queue, svdag, (uint32_t)needed, err);
}

enum vxd_status vxd_svdag_device_arena_copy(struct vxd_queue *queue,
                                            const struct vxd_svdag *svdag, char *memory,
                                            struct vxd_svdag_image *out,
                                            struct vxd_err *err)
{
    const struct vxd_svdag_device *device = svdag->device;

    out->index = device->index;
    out->index.buckets = (struct vxd_svdag_index_bucket *)(void *)memory;
    return vxd_queue_copy(queue, memory, device->buckets.ptr,
                          device->index.n_buckets * sizeof *out->index.buckets, err);
}
