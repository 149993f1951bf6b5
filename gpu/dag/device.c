// SPDX-License-Identifier: Apache-2.0
/* The arena store on a GPU: chunks of words that never move, found through a table of device
 * memory; the index; and how much of all an edit finds. What grows, grows here, between
 * edits. */
#include "gpu/dag/device.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/dag/internal.h"

enum {
    FIRST_BUCKETS = 1 << 14, /* 512 KiB */
    SMALL_BUCKETS = 1 << 18, /* up to here the index doubles, then grows by an eighth */
    MAX_BUCKETS = 1 << 29,   /* slots have 32-bit numbers */
    FIRST_CUBES = 1 << 16,
    FIRST_LEAVES = 1 << 18,
    FIRST_PAIRS = 1 << 16,
    MAX_ROWS = 1 << 29 /* eight children of a row have 32-bit numbers */
};

#define TABLE_BYTES ((VXD_DAG_MAX_CHUNKS + 1) * sizeof(uint32_t *))
#define CHUNK_BYTES (VXD_DAG_CHUNK_WORDS * sizeof(uint32_t))

struct vxd_dag_device {
    struct vxd_buffer table;   /* device: addresses of chunks, NULL from n_chunks on */
    struct vxd_buffer h_table; /* the same, host */
    struct vxd_buffer state;   /* device: struct vxd_dag_store_state */
    struct vxd_buffer mirror;  /* host: what it was after some edit */
    struct vxd_buffer index;   /* device */
    uint32_t n_buckets;
    atomic_uint n_chunks;
    struct vxd_buffer *pieces; /* device: chunks, several each */
    size_t n_pieces;
    atomic_size_t n_bytes; /* of device memory */
    struct vxd_dag_rooms rooms;
};

static enum vxd_status take_bytes(struct vxd_queue *queue, struct vxd_dag *dag,
                                  size_t n_bytes, struct vxd_buffer *out,
                                  struct vxd_err *err)
{
    struct vxd_dag_device *device = dag->device;
    size_t max_bytes = dag->spec.max_bytes;
    size_t n_taken = atomic_load(&device->n_bytes);
    enum vxd_status status;

    if (max_bytes != 0 && (n_taken > max_bytes || n_bytes > max_bytes - n_taken)) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "max_bytes",
                        "the scene's store is full: %zu of %zu bytes are taken, %zu more "
                        "are needed",
                        n_taken, max_bytes, n_bytes);
    }
    status = vxd_device_alloc(queue, n_bytes, out, err);
    if (status == VXD_OK) {
        atomic_store(&device->n_bytes, n_taken + n_bytes);
    }
    return status;
}

static void give_bytes(struct vxd_queue *queue, struct vxd_dag *dag,
                       struct vxd_buffer *buffer)
{
    (void)atomic_fetch_sub(&dag->device->n_bytes, buffer->n_bytes);
    vxd_device_free(queue, buffer);
}

/* Words --------------------------------------------------------------------------------- */

/* More chunks, in one piece of memory. Nothing that runs looks at their entries yet. */
static enum vxd_status add_chunks(struct vxd_queue *queue, struct vxd_dag *dag,
                                  uint32_t n, struct vxd_err *err)
{
    struct vxd_dag_device *device = dag->device;
    uint32_t **table = device->h_table.ptr;
    struct vxd_buffer piece = {0};
    struct vxd_buffer *pieces =
        realloc(device->pieces, (device->n_pieces + 1) * sizeof *pieces);
    enum vxd_status status;

    if (pieces == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a scene");
    }
    device->pieces = pieces;
    VXD_TRY(take_bytes(queue, dag, n * CHUNK_BYTES, &piece, err));
    /* Images copy whole chunks. */
    VXD_TRY(vxd_queue_fill(queue, piece.ptr, 0, piece.n_bytes, err));
    for (uint32_t i = 0; i < n; i++) {
        table[device->n_chunks + i] =
            (uint32_t *)piece.ptr + (size_t)i * VXD_DAG_CHUNK_WORDS;
    }
    VXD_TRY(vxd_queue_copy(queue, (uint32_t **)device->table.ptr + device->n_chunks,
                           table + device->n_chunks, n * sizeof *table, err));
    device->pieces[device->n_pieces++] = piece;
    (void)atomic_fetch_add(&device->n_chunks, n);
    return VXD_OK;
out:
    if (piece.ptr != NULL) {
        give_bytes(queue, dag, &piece);
    }
    return status;
}

/* So many words at least, an eighth more than there are where the budget has them. */
static enum vxd_status grow_words(struct vxd_queue *queue, struct vxd_dag *dag,
                                  uint64_t n_words, struct vxd_err *err)
{
    struct vxd_dag_device *device = dag->device;
    uint64_t needed = (n_words + VXD_DAG_CHUNK_WORDS - 1) / VXD_DAG_CHUNK_WORDS;
    uint64_t wanted = device->n_chunks + device->n_chunks / 8 + 1;

    needed = needed > device->n_chunks ? needed : (uint64_t)device->n_chunks + 1;
    if (needed > VXD_DAG_MAX_CHUNKS) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                        "the scene's store has no addresses left: 16 GiB of nodes");
    }
    wanted = wanted > needed ? wanted : needed;
    wanted = wanted < VXD_DAG_MAX_CHUNKS ? wanted : VXD_DAG_MAX_CHUNKS;
    if (wanted > needed &&
        add_chunks(queue, dag, (uint32_t)wanted - device->n_chunks, NULL) == VXD_OK) {
        return VXD_OK;
    }
    return add_chunks(queue, dag, (uint32_t)needed - device->n_chunks, err);
}

/* The index ----------------------------------------------------------------------------- */

static enum vxd_status new_index(struct vxd_queue *queue, struct vxd_dag *dag,
                                 uint32_t n_buckets, struct vxd_err *err)
{
    struct vxd_dag_device *device = dag->device;
    struct vxd_buffer index = {0};
    enum vxd_status status;

    VXD_TRY(take_bytes(queue, dag, n_buckets * sizeof(struct vxd_dag_index_bucket),
                       &index, err));
    VXD_TRY(vxd_queue_fill(queue, index.ptr, 0, index.n_bytes, err));
    if (device->n_buckets > 0) {
        VXD_TRY(vxd_dag_index_move(queue, &dag->view, device->index.ptr,
                                   device->n_buckets, index.ptr, n_buckets, err));
        /* Where an item has no place, which does not happen, the old one stays. */
        VXD_TRY(vxd_queue_wait(queue, err));
        give_bytes(queue, dag, &device->index);
    }
    device->index = index;
    device->n_buckets = n_buckets;
    return VXD_OK;
out:
    if (index.ptr != NULL) {
        give_bytes(queue, dag, &index);
    }
    return status;
}

/* Room for so many items; an eighth more than there is where the budget has that. */
static enum vxd_status grow_index(struct vxd_queue *queue, struct vxd_dag *dag,
                                  uint64_t n_items, struct vxd_err *err)
{
    struct vxd_dag_device *device = dag->device;
    uint64_t n = device->n_buckets;
    uint64_t wanted = n + (n < SMALL_BUCKETS ? n : n / 8);
    /* What is needed is told rather too large: not all of it will be new. */
    uint64_t needed = n_items / VXD_DAG_INDEX_SLOTS * 20 / 19 + 2;

    needed = needed > n + n / 16 ? needed : n + n / 16 + 1;
    wanted = wanted > needed ? wanted : needed;
    if (needed > MAX_BUCKETS) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                        "the scene's index has no numbers left: %llu items",
                        (unsigned long long)n_items);
    }
    wanted = wanted < MAX_BUCKETS ? wanted : MAX_BUCKETS;
    if (wanted > needed && new_index(queue, dag, (uint32_t)wanted, NULL) == VXD_OK) {
        return VXD_OK;
    }
    return new_index(queue, dag, (uint32_t)needed, err);
}

/* Rooms of scratch ---------------------------------------------------------------------- */

static uint32_t room_for(uint32_t room, uint64_t needed, uint32_t factor)
{
    uint64_t grown = (uint64_t)room * factor;

    if (needed == 0) {
        return room;
    }
    grown = grown > needed ? grown : needed;
    return (uint32_t)(grown < MAX_ROWS ? grown : MAX_ROWS);
}

/* Rooms that the device has memory for now; the scratch is taken by each edit. */
static enum vxd_status grow_rooms(struct vxd_queue *queue, struct vxd_dag *dag,
                                  const struct vxd_dag_needs *needs, struct vxd_err *err)
{
    struct vxd_dag_device *device = dag->device;
    struct vxd_err own = {0};
    enum vxd_status status = VXD_OK;

    if (needs->n_cubes > MAX_ROWS || needs->n_leaves > MAX_ROWS ||
        needs->n_pairs > MAX_ROWS) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                        "the edit looks at more than 2^29 cubes of one kind");
    }
    if (needs->n_cubes + needs->n_leaves + needs->n_pairs > dag->max_visits) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                        "the edit touches more than %llu regions of the scene; make its "
                        "shapes smaller, or split it",
                        (unsigned long long)dag->max_visits);
    }
    for (uint32_t factor = 4; factor >= 1; factor /= 2) {
        struct vxd_dag_rooms rooms = {
            room_for(device->rooms.n_cubes, needs->n_cubes, factor),
            room_for(device->rooms.n_leaves, needs->n_leaves, factor),
            room_for(device->rooms.n_pairs, needs->n_pairs, factor)};
        struct vxd_buffer scratch;

        status = vxd_device_alloc(queue, vxd_dag_scratch_bytes_cuda(dag, &rooms),
                                  &scratch, &own);
        if (status == VXD_OK) {
            vxd_device_free(queue, &scratch);
            device->rooms = rooms;
            return VXD_OK;
        }
    }
    if (err != NULL) {
        *err = own;
    }
    return status;
}

enum vxd_status vxd_dag_device_grow(struct vxd_queue *queue, struct vxd_dag *dag,
                                    const struct vxd_dag_needs *needs,
                                    struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    if (needs->n_words > 0) {
        VXD_TRY(grow_words(queue, dag, needs->n_words, err));
    }
    if (needs->n_items > 0) {
        VXD_TRY(grow_index(queue, dag, needs->n_items, err));
    }
    if (needs->n_cubes > 0 || needs->n_leaves > 0 || needs->n_pairs > 0) {
        VXD_TRY(grow_rooms(queue, dag, needs, err));
    }
    VXD_TRY(vxd_queue_wait(queue, err));
out:
    return status;
}

/* The store ----------------------------------------------------------------------------- */

static enum vxd_status open_device(struct vxd_queue *queue, struct vxd_dag *dag,
                                   struct vxd_err *err)
{
    struct vxd_dag_device *device = dag->device;
    struct vxd_context *context = queue->context;
    struct vxd_dag_store_state *mirror;
    enum vxd_status status;

    VXD_TRY(vxd_host_alloc(context, TABLE_BYTES, &device->h_table, err));
    VXD_TRY(vxd_host_alloc(context, sizeof *mirror, &device->mirror, err));
    VXD_TRY(take_bytes(queue, dag, TABLE_BYTES, &device->table, err));
    VXD_TRY(take_bytes(queue, dag, sizeof *mirror, &device->state, err));
    memset(device->h_table.ptr, 0, TABLE_BYTES);
    mirror = device->mirror.ptr;
    *mirror = (struct vxd_dag_store_state){.next = 1}; /* address 0 is VXD_DAG_EMPTY */
    VXD_TRY(
        vxd_queue_copy(queue, device->table.ptr, device->h_table.ptr, TABLE_BYTES, err));
    VXD_TRY(vxd_queue_copy(queue, device->state.ptr, mirror, sizeof *mirror, err));
    VXD_TRY(new_index(queue, dag, FIRST_BUCKETS, err));
    VXD_TRY(add_chunks(queue, dag, 1, err));
    /* Other queues may be the first to use it. */
    VXD_TRY(vxd_queue_wait(queue, err));
    dag->view.chunks = (const uint32_t *const *)device->table.ptr;
out:
    return status;
}

static void destroy_device(struct vxd_queue *queue, struct vxd_dag *dag)
{
    struct vxd_dag_device *device = dag->device;

    /* The mirror is host memory, which goes at once. */
    (void)vxd_queue_wait(queue, NULL);
    for (size_t i = 0; i < device->n_pieces; i++) {
        vxd_device_free(queue, &device->pieces[i]);
    }
    vxd_device_free(queue, &device->index);
    vxd_device_free(queue, &device->state);
    vxd_device_free(queue, &device->table);
    vxd_host_free(queue->context, &device->mirror);
    vxd_host_free(queue->context, &device->h_table);
    free(device->pieces);
    free(device);
    dag->device = NULL;
}

static enum vxd_status create_device(struct vxd_queue *queue, struct vxd_dag *dag,
                                     struct vxd_err *err)
{
    enum vxd_status status;

    dag->device = calloc(1, sizeof *dag->device);
    if (dag->device == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a scene");
    }
    dag->device->rooms = (struct vxd_dag_rooms){FIRST_CUBES, FIRST_LEAVES, FIRST_PAIRS};
    atomic_init(&dag->device->n_bytes, 0);
    atomic_init(&dag->device->n_chunks, 0);
    status = open_device(queue, dag, err);
    if (status != VXD_OK) {
        destroy_device(queue, dag);
    }
    return status;
}

/* The device writes the mirror whenever it likes. */
static void get_usage(const struct vxd_dag *dag, struct vxd_dag_usage *out)
{
    const volatile struct vxd_dag_store_state *mirror = dag->device->mirror.ptr;
    uint64_t capacity =
        (uint64_t)atomic_load(&dag->device->n_chunks) * VXD_DAG_CHUNK_WORDS;

    *out = (struct vxd_dag_usage){.n_leaves = mirror->n_items[VXD_DAG_LEAF],
                                  .n_inner = mirror->n_items[VXD_DAG_INNER],
                                  .n_blocks = mirror->n_items[VXD_DAG_BLOCK],
                                  .node_bytes = mirror->n_words * sizeof(uint32_t),
                                  .n_bytes = atomic_load(&dag->device->n_bytes)};
    out->used_bytes = out->n_bytes - (capacity - mirror->next) * sizeof(uint32_t);
}

const struct vxd_dag_store_ops vxd_dag_arena_cuda = {
    .create = create_device, .destroy = destroy_device, .get_usage = get_usage};

struct vxd_dag_rooms vxd_dag_device_rooms(const struct vxd_dag *dag)
{
    return dag->device->rooms;
}

bool vxd_dag_device_shrink_rooms(struct vxd_dag *dag)
{
    struct vxd_dag_rooms *rooms = &dag->device->rooms;
    const struct vxd_dag_rooms before = *rooms;

    rooms->n_cubes = before.n_cubes / 4 > FIRST_CUBES ? before.n_cubes / 4 : FIRST_CUBES;
    rooms->n_leaves =
        before.n_leaves / 4 > FIRST_LEAVES ? before.n_leaves / 4 : FIRST_LEAVES;
    rooms->n_pairs = before.n_pairs / 4 > FIRST_PAIRS ? before.n_pairs / 4 : FIRST_PAIRS;
    return rooms->n_cubes < before.n_cubes || rooms->n_leaves < before.n_leaves ||
           rooms->n_pairs < before.n_pairs;
}

void vxd_dag_device_begin_pass(const struct vxd_dag *dag, struct vxd_dag_pass *pass)
{
    const struct vxd_dag_device *device = dag->device;

    pass->view = dag->view;
    pass->chunks = device->table.ptr;
    pass->capacity_words = (uint64_t)device->n_chunks * VXD_DAG_CHUNK_WORDS;
    pass->buckets = device->index.ptr;
    pass->n_buckets = device->n_buckets;
    pass->store = device->state.ptr;
}

uint32_t vxd_dag_device_n_chunks(const struct vxd_dag *dag)
{
    return atomic_load(&dag->device->n_chunks);
}

const uint32_t *vxd_dag_device_chunk(const struct vxd_dag *dag, uint32_t i)
{
    const uint32_t *const *table = dag->device->h_table.ptr;

    return table[i];
}

struct vxd_dag_store_state vxd_dag_device_state(const struct vxd_dag *dag)
{
    return *(const struct vxd_dag_store_state *)dag->device->mirror.ptr;
}

enum vxd_status vxd_dag_device_end_edit(struct vxd_queue *queue, struct vxd_dag *dag,
                                        struct vxd_err *err)
{
    return vxd_queue_copy(queue, dag->device->mirror.ptr, dag->device->state.ptr,
                          sizeof(struct vxd_dag_store_state), err);
}

/* Images -------------------------------------------------------------------------------- */

enum vxd_status vxd_dag_device_copy(struct vxd_queue *queue, const struct vxd_dag *dag,
                                    struct vxd_dag_image *out, struct vxd_err *err)
{
    const struct vxd_dag_device *device = dag->device;
    uint32_t *const *from = device->h_table.ptr;
    size_t n_bytes = 0;
    size_t at[3];
    char *memory;
    const uint32_t **table;
    enum vxd_status status;

    *out = (struct vxd_dag_image){.view = dag->view, .n_buckets = device->n_buckets};
    if (!vxd_layout_add(&n_bytes, 1, TABLE_BYTES, &at[0]) ||
        !vxd_layout_add(&n_bytes, device->n_chunks, CHUNK_BYTES, &at[1]) ||
        !vxd_layout_add(&n_bytes, device->n_buckets, sizeof *out->buckets, &at[2])) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no room for a store's image");
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
    VXD_TRY(vxd_queue_copy(queue, memory + at[2], device->index.ptr,
                           device->n_buckets * sizeof *out->buckets, err));
    VXD_TRY(vxd_queue_wait(queue, err));
    out->view.chunks = (const uint32_t *const *)table;
    out->buckets = (const struct vxd_dag_index_bucket *)(void *)(memory + at[2]);
    return VXD_OK;
out:
    /* Copies into it may still be queued. */
    (void)vxd_queue_wait(queue, NULL);
    vxd_host_free(queue->context, &out->memory);
    return status;
}
