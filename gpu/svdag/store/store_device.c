// SPDX-License-Identifier: Apache-2.0
/* Stores on a GPU: chunks of words that never move, reached through a table in device
 * memory, and the capacity that edits get. The index of an arena is in arena_device.c;
 * other stores bring functions for theirs. Everything grows here, between edits. */
#include <stdlib.h>
#include <string.h>

#include "gpu/svdag/store/store_device_internal.h"

enum {
    FIRST_ENTRIES = 1 << 16,
    FIRST_PAIRS = 1 << 16
};

#define TABLE_BYTES ((VXD_SVDAG_MAX_CHUNKS + 1) * sizeof(uint32_t *))
#define CHUNK_BYTES (VXD_SVDAG_CHUNK_WORDS * sizeof(uint32_t))
#define IS_ARENA(svdag) ((svdag)->device_ops == NULL)

enum vxd_status vxd_svdag_device_take(struct vxd_queue *queue, struct vxd_svdag *svdag,
                                      size_t n_bytes, struct vxd_buffer *out,
                                      struct vxd_err *err)
{
    struct vxd_svdag_device *device = svdag->device;
    size_t max_bytes = svdag->spec.max_bytes;
    size_t n_taken = __atomic_load_n(&device->n_bytes, __ATOMIC_RELAXED);
    enum vxd_status status;

    if (max_bytes != 0 && (n_taken > max_bytes || n_bytes > max_bytes - n_taken)) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "max_bytes",
                        "the scene's store is full: %zu of %zu bytes are taken, %zu more "
                        "are needed",
                        n_taken, max_bytes, n_bytes);
    }
    status = vxd_device_alloc(queue, n_bytes, out, err);
    if (status == VXD_OK) {
        __atomic_store_n(&device->n_bytes, n_taken + n_bytes, __ATOMIC_RELAXED);
    }
    return status;
}

void vxd_svdag_device_give(struct vxd_queue *queue, struct vxd_svdag *svdag,
                           struct vxd_buffer *buffer)
{
    (void)__atomic_fetch_sub(&svdag->device->n_bytes, buffer->n_bytes, __ATOMIC_RELAXED);
    vxd_device_free(queue, buffer);
}

/* Words --------------------------------------------------------------------------------- */

static uint64_t capacity_words(const struct vxd_svdag_device *device)
{
    return (uint64_t)device->n_chunks * VXD_SVDAG_CHUNK_WORDS;
}

/* Number of words that the slots of an arena's index can address. */
static uint64_t addressable_words(const struct vxd_svdag_device *device)
{
    return (uint64_t)device->index.addresses + 1;
}

/* Whether there are more words than that: then the index has to be rebuilt. */
static bool lacks_addresses(const struct vxd_svdag *svdag)
{
    return IS_ARENA(svdag) &&
           capacity_words(svdag->device) > addressable_words(svdag->device);
}

/* Adds chunks, in one piece of memory. Running kernels do not read their entries of the
 * table yet. */
static enum vxd_status add_chunks(struct vxd_queue *queue, struct vxd_svdag *svdag,
                                  uint32_t n, struct vxd_err *err)
{
    struct vxd_svdag_device *device = svdag->device;
    uint32_t **table = device->h_table.ptr;
    struct vxd_buffer piece = {0};
    struct vxd_buffer *pieces =
        realloc(device->pieces, (device->n_pieces + 1) * sizeof *pieces);
    enum vxd_status status;

    if (pieces == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a scene");
    }
    device->pieces = pieces;
    VXD_TRY(vxd_svdag_device_take(queue, svdag, n * CHUNK_BYTES, &piece, err));
    /* Images copy whole chunks. */
    VXD_TRY(vxd_queue_fill(queue, piece.ptr, 0, piece.n_bytes, err));
    for (uint32_t i = 0; i < n; i++) {
        table[device->n_chunks + i] =
            (uint32_t *)piece.ptr + (size_t)i * VXD_SVDAG_CHUNK_WORDS;
    }
    VXD_TRY(vxd_queue_copy(queue, (uint32_t **)device->table.ptr + device->n_chunks,
                           table + device->n_chunks, n * sizeof *table, err));
    device->pieces[device->n_pieces++] = piece;
    (void)__atomic_fetch_add(&device->n_chunks, n, __ATOMIC_RELEASE);
    return VXD_OK;
out:
    if (piece.ptr != NULL) {
        vxd_svdag_device_give(queue, svdag, &piece);
    }
    return status;
}

/* Grows to at least n_words. Where the budget allows it, by an eighth more than there are
 * (above 64 MiB a sixteenth), and by n_more chunks. */
static enum vxd_status grow_words(struct vxd_queue *queue, struct vxd_svdag *svdag,
                                  uint64_t n_words, uint32_t n_more, struct vxd_err *err)
{
    struct vxd_svdag_device *device = svdag->device;
    uint64_t needed = (n_words + VXD_SVDAG_CHUNK_WORDS - 1) / VXD_SVDAG_CHUNK_WORDS;
    uint64_t desired =
        device->n_chunks + device->n_chunks / (device->n_chunks < 64 ? 8 : 16) + 1;

    needed = needed > device->n_chunks ? needed : (uint64_t)device->n_chunks + 1;
    if (needed > VXD_SVDAG_MAX_CHUNKS) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                        "the scene's store has no addresses left: 16 GiB of nodes");
    }
    desired = (desired > needed ? desired : needed) + n_more;
    desired = desired < VXD_SVDAG_MAX_CHUNKS ? desired : VXD_SVDAG_MAX_CHUNKS;
    if (desired > needed &&
        add_chunks(queue, svdag, (uint32_t)desired - device->n_chunks, NULL) == VXD_OK) {
        return VXD_OK;
    }
    return add_chunks(queue, svdag, (uint32_t)needed - device->n_chunks, err);
}

enum vxd_status vxd_svdag_device_grow(struct vxd_queue *queue, struct vxd_svdag *svdag,
                                      const struct vxd_svdag_needs *needs,
                                      struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    if (needs->n_words > 0 && !lacks_addresses(svdag)) {
        VXD_TRY(grow_words(queue, svdag, needs->n_words,
                           IS_ARENA(svdag) ? 0 : svdag->device_ops->n_more_chunks(svdag),
                           err));
        if (!IS_ARENA(svdag)) {
            VXD_TRY(svdag->device_ops->grow(queue, svdag, err));
        }
    }
    if ((IS_ARENA(svdag) && needs->n_items > 0) || lacks_addresses(svdag)) {
        VXD_TRY(vxd_svdag_device_arena_grow(queue, svdag, needs->n_items, err));
    }
    VXD_TRY(vxd_queue_wait(queue, err));
out:
    return status;
}

/* What both of two edits took and an eighth more, at most an eighth of what there is. */
static uint64_t expected(uint64_t one, uint64_t other, uint64_t there_is)
{
    uint64_t n = one < other ? one : other;

    n += n / 8;
    return n < there_is / 8 ? n : there_is / 8;
}

static uint64_t since(uint64_t now, uint64_t then)
{
    return now > then ? now - then : 0;
}

/* Records what the last edit took, including its failed tries. */
static void note_taken(struct vxd_svdag *svdag)
{
    struct vxd_svdag_device *device = svdag->device;
    const struct vxd_svdag_store_state state = vxd_svdag_device_state(svdag);
    const struct vxd_svdag_taken then = device->taken;

    device->taken = (struct vxd_svdag_taken){.n_words = state.next};
    for (int i = 0; i < VXD_SVDAG_N_KINDS; i++) {
        device->taken.n_items += state.n_items[i];
    }
    device->recent[1] = device->recent[0];
    device->recent[0] =
        (struct vxd_svdag_taken){since(device->taken.n_words, then.n_words),
                                 since(device->taken.n_items, then.n_items)};
}

enum vxd_status vxd_svdag_device_reserve_expected(struct vxd_queue *queue,
                                                  struct vxd_svdag *svdag,
                                                  struct vxd_err *err)
{
    const struct vxd_svdag_device *device = svdag->device;
    const struct vxd_svdag_taken *recent = device->recent;
    struct vxd_svdag_needs needs = {0};
    struct vxd_err own = {0};
    uint64_t n_words;
    uint64_t n_items;
    enum vxd_status status = VXD_OK;

    if (!IS_ARENA(svdag)) {
        return VXD_OK;
    }
    note_taken(svdag);
    n_words = device->taken.n_words +
              expected(recent[0].n_words, recent[1].n_words, device->taken.n_words);
    n_items = device->taken.n_items +
              expected(recent[0].n_items, recent[1].n_items, device->taken.n_items);
    if (n_words > capacity_words(device)) {
        needs.n_words = n_words;
    }
    if (vxd_svdag_index_is_full(n_items, (uint64_t)device->index.n_buckets *
                                             VXD_SVDAG_INDEX_SLOTS)) {
        needs.n_items = n_items;
    }
    if (needs.n_words > 0 || needs.n_items > 0) {
        VXD_TRY(vxd_queue_wait(queue, err));
        status = vxd_svdag_device_grow(queue, svdag, &needs, &own);
        status = status == VXD_RESOURCE_EXHAUSTED ? VXD_OK : status;
    }
    if (status != VXD_OK && err != NULL) {
        *err = own;
    }
out:
    return status;
}

/* The store ----------------------------------------------------------------------------- */

static enum vxd_status open_device(struct vxd_queue *queue, struct vxd_svdag *svdag,
                                   struct vxd_err *err)
{
    struct vxd_svdag_device *device = svdag->device;
    struct vxd_context *context = queue->context;
    struct vxd_svdag_store_state *mirror;
    enum vxd_status status;

    VXD_TRY(vxd_host_alloc(context, TABLE_BYTES, &device->h_table, err));
    VXD_TRY(vxd_host_alloc(context, sizeof *mirror, &device->mirror, err));
    VXD_TRY(vxd_svdag_device_take(queue, svdag, TABLE_BYTES, &device->table, err));
    VXD_TRY(vxd_svdag_device_take(queue, svdag, sizeof *mirror, &device->state, err));
    memset(device->h_table.ptr, 0, TABLE_BYTES);
    mirror = device->mirror.ptr;
    /* Address 0 is VXD_SVDAG_EMPTY. Other stores have no item at the beginning of a
     * chunk. */
    *mirror = (struct vxd_svdag_store_state){.next = IS_ARENA(svdag) ? 1 : 0};
    VXD_TRY(
        vxd_queue_copy(queue, device->table.ptr, device->h_table.ptr, TABLE_BYTES, err));
    VXD_TRY(vxd_queue_copy(queue, device->state.ptr, mirror, sizeof *mirror, err));
    VXD_TRY(IS_ARENA(svdag) ? vxd_svdag_device_arena_open(queue, svdag, err)
                            : svdag->device_ops->open(queue, svdag, err));
    VXD_TRY(add_chunks(queue, svdag, 1, err));
    /* Another queue may be the first to use the store. */
    VXD_TRY(vxd_queue_wait(queue, err));
    svdag->view.chunks = (const uint32_t *const *)device->table.ptr;
    svdag->view.is_split = !IS_ARENA(svdag) && svdag->device_ops->is_split;
out:
    return status;
}

static void destroy_device(struct vxd_queue *queue, struct vxd_svdag *svdag)
{
    struct vxd_svdag_device *device = svdag->device;

    /* The mirror is host memory, which goes at once. */
    (void)vxd_queue_wait(queue, NULL);
    for (size_t i = 0; i < device->n_pieces; i++) {
        vxd_device_free(queue, &device->pieces[i]);
    }
    vxd_device_free(queue, &device->buckets);
    if (!IS_ARENA(svdag)) {
        svdag->device_ops->close(queue, svdag);
    }
    vxd_device_free(queue, &device->state);
    vxd_device_free(queue, &device->table);
    vxd_host_free(queue->context, &device->mirror);
    vxd_host_free(queue->context, &device->h_table);
    free(device->pieces);
    free(device);
    svdag->device = NULL;
}

static enum vxd_status create_device(struct vxd_queue *queue, struct vxd_svdag *svdag,
                                     struct vxd_err *err)
{
    enum vxd_status status;

    svdag->device = calloc(1, sizeof *svdag->device);
    if (svdag->device == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a scene");
    }
    svdag->device->frontier =
        (struct vxd_svdag_frontier_capacity){FIRST_ENTRIES, FIRST_PAIRS};
    status = open_device(queue, svdag, err);
    if (status != VXD_OK) {
        destroy_device(queue, svdag);
    }
    return status;
}

/* The device may write the mirror at any time. */
static void get_usage(const struct vxd_svdag *svdag, struct vxd_svdag_usage *out)
{
    const volatile struct vxd_svdag_store_state *mirror = svdag->device->mirror.ptr;
    uint64_t capacity =
        (uint64_t)__atomic_load_n(&svdag->device->n_chunks, __ATOMIC_ACQUIRE) *
        VXD_SVDAG_CHUNK_WORDS;
    uint64_t n_free;

    *out = (struct vxd_svdag_usage){
        .n_leaves = mirror->n_items[VXD_SVDAG_LEAF],
        .n_inner = mirror->n_items[VXD_SVDAG_INNER],
        .n_blocks = mirror->n_items[VXD_SVDAG_BLOCK],
        .node_bytes = mirror->n_words * sizeof(uint32_t),
        .n_bytes = __atomic_load_n(&svdag->device->n_bytes, __ATOMIC_RELAXED)};
    n_free = capacity - mirror->next +
             (IS_ARENA(svdag) ? 0 : svdag->device_ops->n_free_words(svdag));
    /* The two values are not read at the same moment, so this may exceed the capacity. */
    n_free = n_free < capacity ? n_free : capacity;
    out->used_bytes = out->n_bytes - n_free * sizeof(uint32_t);
}

const struct vxd_svdag_store_ops vxd_svdag_store_cuda = {
    .create = create_device, .destroy = destroy_device, .get_usage = get_usage};

struct vxd_svdag_frontier_capacity
vxd_svdag_device_frontier(const struct vxd_svdag *svdag)
{
    return svdag->device->frontier;
}

void vxd_svdag_device_set_frontier(struct vxd_svdag *svdag,
                                   const struct vxd_svdag_frontier_capacity *frontier)
{
    svdag->device->frontier = *frontier;
}

bool vxd_svdag_device_shrink_frontier(struct vxd_svdag *svdag)
{
    struct vxd_svdag_frontier_capacity *frontier = &svdag->device->frontier;
    const struct vxd_svdag_frontier_capacity before = *frontier;

    frontier->n_entries =
        before.n_entries / 4 > FIRST_ENTRIES ? before.n_entries / 4 : FIRST_ENTRIES;
    frontier->n_pairs =
        before.n_pairs / 4 > FIRST_PAIRS ? before.n_pairs / 4 : FIRST_PAIRS;
    return frontier->n_entries < before.n_entries || frontier->n_pairs < before.n_pairs;
}

void vxd_svdag_device_set_args(const struct vxd_svdag *svdag,
                               struct vxd_svdag_kernel_args *args)
{
    const struct vxd_svdag_device *device = svdag->device;

    args->view = svdag->view;
    args->chunks = device->table.ptr;
    args->capacity_words = capacity_words(device);
    if (lacks_addresses(svdag)) {
        args->capacity_words = addressable_words(device);
    }
    args->index = device->index;
    args->store = device->state.ptr;
    args->mirror = device->mirror.ptr;
    args->tables = device->tables;
}

uint32_t vxd_svdag_device_n_chunks(const struct vxd_svdag *svdag)
{
    return __atomic_load_n(&svdag->device->n_chunks, __ATOMIC_ACQUIRE);
}

const uint32_t *vxd_svdag_device_chunk(const struct vxd_svdag *svdag, uint32_t i)
{
    const uint32_t *const *table = svdag->device->h_table.ptr;

    return table[i];
}

struct vxd_svdag_store_state vxd_svdag_device_state(const struct vxd_svdag *svdag)
{
    return *(const struct vxd_svdag_store_state *)svdag->device->mirror.ptr;
}

enum vxd_status vxd_svdag_device_end_edit(struct vxd_queue *queue,
                                          struct vxd_svdag *svdag, struct vxd_err *err)
{
    return vxd_queue_copy(queue, svdag->device->mirror.ptr, svdag->device->state.ptr,
                          sizeof(struct vxd_svdag_store_state), err);
}

/* Images -------------------------------------------------------------------------------- */

enum vxd_status vxd_svdag_device_copy(struct vxd_queue *queue,
                                      const struct vxd_svdag *svdag,
                                      struct vxd_svdag_image *out, struct vxd_err *err)
{
    const struct vxd_svdag_device *device = svdag->device;
    uint32_t *const *from = device->h_table.ptr;
    size_t n_bytes = 0;
    size_t at[3];
    char *memory;
    const uint32_t **table;
    enum vxd_status status;

    *out = (struct vxd_svdag_image){.view = svdag->view};
    if (!vxd_layout_add(&n_bytes, 1, TABLE_BYTES, &at[0]) ||
        !vxd_layout_add(&n_bytes, device->n_chunks, CHUNK_BYTES, &at[1]) ||
        !vxd_layout_add(&n_bytes, 1,
                        IS_ARENA(svdag) ? device->buckets.n_bytes
                                        : svdag->device_ops->n_copy_bytes(svdag),
                        &at[2])) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                        "no memory for a copy of a store");
    }
    VXD_TRY(vxd_host_alloc(queue->context, n_bytes, &out->memory, err));
    memory = out->memory.ptr;
    table = (const uint32_t **)(void *)(memory + at[0]);
    memset(memory + at[0], 0, TABLE_BYTES);
    for (uint32_t i = 0; i < device->n_chunks; i++) {
        char *chunk = memory + at[1] + i * CHUNK_BYTES;

        table[i] = (const uint32_t *)(void *)chunk;
        VXD_TRY(vxd_queue_copy(queue, chunk, from[i], CHUNK_BYTES, err));
    }
    VXD_TRY(IS_ARENA(svdag)
                ? vxd_svdag_device_arena_copy(queue, svdag, memory + at[2], out, err)
                : svdag->device_ops->copy(queue, svdag, memory + at[2], out, err));
    VXD_TRY(vxd_queue_wait(queue, err));
    out->view.chunks = (const uint32_t *const *)table;
    return VXD_OK;
out:
    /* Copies into it may still be queued. */
    (void)vxd_queue_wait(queue, NULL);
    vxd_host_free(queue->context, &out->memory);
    return status;
}
