// SPDX-License-Identifier: Apache-2.0
/* The arena on the CPU.
 *
 * Words are handed out one after the other, from chunks that never move: the address of
 * an item is its reference for ever. The index is split into shards by hash; a shard is a
 * mutex and a table of buckets (arena_index_math.h). Each shard grows on its own: it
 * doubles while it is small, later it grows by a quarter or less, so that a large index
 * stays at least seven tenths full.
 *
 * Locks are taken in the order shard, arena, context. Readers of nodes take none: an
 * entry of the chunk table is written before a root that leads there is published to
 * them. */
#include "gpu/svdag/store/arena_cpu.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/core/core_cpu.h"

enum {
    N_CHUNKS = 1 << (32 - VXD_SVDAG_CHUNK_BITS),
    PREFETCH_BUCKETS = 4,
    CHUNK_WORDS = 1 << VXD_SVDAG_CHUNK_BITS,
    SEGMENT_WORDS = VXD_SVDAG_ARENA_SEGMENT,
    N_SHARDS = VXD_SVDAG_ARENA_SHARDS,
    N_REMNANTS = VXD_SVDAG_ARENA_REMNANTS
};

/* Words at an address, writable. */
static uint32_t *arena_words(const struct vxd_svdag_arena *arena, uint32_t ref)
{
    return arena->chunks[ref >> VXD_SVDAG_CHUNK_BITS] + (ref & (CHUNK_WORDS - 1));
}

/* --- words ------------------------------------------------------------------------- */

/* Takes the last remnant with at least n_words; false where there is none. With the
 * arena's mutex held. */
static bool take_remnant(struct vxd_svdag_arena *arena, int n_words,
                         struct vxd_svdag_remnant *out)
{
    for (int i = arena->n_remnants - 1; i >= 0; i--) {
        if (arena->remnants[i].n_left >= (uint32_t)n_words) {
            *out = arena->remnants[i];
            arena->remnants[i] = arena->remnants[--arena->n_remnants];
            return true;
        }
    }
    return false;
}

/* Takes a segment of words that were never handed out. With the arena's mutex held. */
static enum vxd_status new_segment(struct vxd_svdag *svdag, struct vxd_svdag_remnant *out,
                                   struct vxd_err *err)
{
    struct vxd_svdag_arena *arena = svdag->arena;
    uint32_t chunk = arena->next >> VXD_SVDAG_CHUNK_BITS;
    void *memory;

    if (arena->next >= VXD_SVDAG_UNIFORM) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                        "the scene's store has no addresses left: 16 GiB of nodes");
    }
    if (arena->chunks[chunk] == NULL) {
        enum vxd_status status = vxd_svdag_take_bytes(
            svdag, CHUNK_WORDS * sizeof(uint32_t), &arena->n_bytes, &memory, err);

        if (status != VXD_OK) {
            return status;
        }
        arena->chunks[chunk] = memory;
    }
    /* Address 0 is VXD_SVDAG_EMPTY. */
    out->next = arena->next == 0 ? 1 : arena->next;
    arena->next = (out->next / SEGMENT_WORDS + 1) * SEGMENT_WORDS;
    out->n_left = arena->next - out->next;
    return VXD_OK;
}

/* Keeps unused words for the next writer; where there are too many remnants the smallest
 * is dropped. With the arena's mutex held. */
static void keep_remnant(struct vxd_svdag_arena *arena, struct vxd_svdag_remnant remnant)
{
    int smallest = 0;

    if (arena->n_remnants < N_REMNANTS) {
        arena->remnants[arena->n_remnants++] = remnant;
        return;
    }
    for (int i = 1; i < N_REMNANTS; i++) {
        if (arena->remnants[i].n_left < arena->remnants[smallest].n_left) {
            smallest = i;
        }
    }
    if (arena->remnants[smallest].n_left < remnant.n_left) {
        arena->remnants[smallest] = remnant;
    }
}

/* Takes words for an item, from the writer's segment or from a new one. */
static enum vxd_status take_words(struct vxd_svdag_writer *writer, int n_words,
                                  uint32_t *ref, struct vxd_err *err)
{
    struct vxd_svdag *svdag = writer->svdag;
    struct vxd_svdag_remnant remnant = {0};
    enum vxd_status status = VXD_OK;

    if (writer->n_left < (uint32_t)n_words) {
        (void)pthread_mutex_lock(&svdag->arena->mutex);
        if (!take_remnant(svdag->arena, n_words, &remnant)) {
            status = new_segment(svdag, &remnant, err);
        }
        (void)pthread_mutex_unlock(&svdag->arena->mutex);
        if (status != VXD_OK) {
            return status;
        }
        /* The few words left of the old one are lost. */
        writer->next = remnant.next;
        writer->n_left = remnant.n_left;
    }
    *ref = writer->next;
    writer->next += (uint32_t)n_words;
    writer->n_left -= (uint32_t)n_words;
    return VXD_OK;
}

static void arena_close(struct vxd_svdag_writer *writer)
{
    struct vxd_svdag_arena *arena = writer->svdag->arena;

    if (writer->n_left > 1) { /* every item that edits make has two words or more */
        (void)pthread_mutex_lock(&arena->mutex);
        keep_remnant(arena, (struct vxd_svdag_remnant){writer->next, writer->n_left});
        (void)pthread_mutex_unlock(&arena->mutex);
    }
    writer->next = 0;
    writer->n_left = 0;
}

/* --- the index --------------------------------------------------------------------- */

static struct vxd_svdag_shard *shard_of(struct vxd_svdag_arena *arena, uint64_t hash)
{
    return &arena->shards[vxd_svdag_shard_number(hash)];
}

/* The address of an item, or VXD_SVDAG_EMPTY; then *free_bucket is the bucket to insert
 * it in, NULL where the shard has none. With the shard's mutex held. */
static uint32_t shard_find(const struct vxd_svdag *svdag,
                           const struct vxd_svdag_shard *shard,
                           const struct vxd_svdag_lookup_key *item,
                           struct vxd_svdag_index_bucket **free_bucket)
{
    uint32_t tag = vxd_svdag_tag_of(item->hash, item->kind);
    uint32_t addresses = shard->addresses;
    uint32_t slot_hash = vxd_svdag_slot_hash(item->hash, addresses);
    struct vxd_svdag_index_bucket *buckets = shard->buckets;
    uint32_t n_buckets = shard->n_buckets;
    uint32_t at = vxd_svdag_shard_home(item->hash, n_buckets);

    for (uint32_t i = 0; i < n_buckets; i++) {
        struct vxd_svdag_index_bucket *bucket = &buckets[at];
        uint32_t equal = vxd_svdag_tags_equal(bucket->tags, tag);

        for (; equal != 0; equal &= equal - 1) {
            uint32_t word =
                bucket->slots[__builtin_ctz(equal) / VXD_SVDAG_INDEX_TAG_BITS];

            if (vxd_svdag_slot_may_be(word, slot_hash, addresses) &&
                vxd_svdag_is_equal(&svdag->view, word & addresses, item)) {
                return word & addresses;
            }
        }
        if (bucket->slots[VXD_SVDAG_INDEX_SLOTS - 1] == VXD_SVDAG_EMPTY) {
            *free_bucket = bucket;
            return VXD_SVDAG_EMPTY;
        }
        at = at + 1 < n_buckets ? at + 1 : 0;
    }
    *free_bucket = NULL;
    return VXD_SVDAG_EMPTY;
}

/* Inserts an address into a table that has a free slot and does not hold it. */
static void table_add(const struct vxd_svdag_index *table, uint64_t hash, uint32_t ref,
                      uint32_t tag)
{
    uint32_t at = vxd_svdag_shard_home(hash, table->n_buckets);

    for (uint32_t i = 0; i < table->n_buckets; i++) {
        struct vxd_svdag_index_bucket *bucket = &table->buckets[at];

        if (bucket->slots[VXD_SVDAG_INDEX_SLOTS - 1] == VXD_SVDAG_EMPTY) {
            vxd_svdag_bucket_add(bucket,
                                 ref | vxd_svdag_slot_hash(hash, table->addresses), tag);
            return;
        }
        at = at + 1 < table->n_buckets ? at + 1 : 0;
    }
    assert(false);
}

/* Prefetches the items of a bucket. */
static inline void prefetch_items(const struct vxd_svdag_arena *arena,
                                  const struct vxd_svdag_index_bucket *bucket,
                                  uint32_t addresses)
{
    for (int k = 0; k < VXD_SVDAG_INDEX_SLOTS && bucket->slots[k] != VXD_SVDAG_EMPTY;
         k++) {
        __builtin_prefetch(arena_words(arena, bucket->slots[k] & addresses));
    }
}

/* Moves all items of a shard to another table. Tables do not hold the hashes, so they are
 * computed again from the words. */
static void move_items(const struct vxd_svdag *svdag, const struct vxd_svdag_shard *shard,
                       const struct vxd_svdag_index *table)
{
    const struct vxd_svdag_arena *arena = svdag->arena;

    for (uint32_t i = 0; i < PREFETCH_BUCKETS && i < shard->n_buckets; i++) {
        prefetch_items(arena, &shard->buckets[i], shard->addresses);
    }
    for (uint32_t i = 0; i < shard->n_buckets; i++) {
        const struct vxd_svdag_index_bucket *from = &shard->buckets[i];

        if (i + PREFETCH_BUCKETS < shard->n_buckets) {
            prefetch_items(arena, from + PREFETCH_BUCKETS, shard->addresses);
        }
        for (int k = 0; k < VXD_SVDAG_INDEX_SLOTS && from->slots[k] != VXD_SVDAG_EMPTY;
             k++) {
            uint32_t ref = from->slots[k] & shard->addresses;
            const uint32_t *words = arena_words(arena, ref);
            uint32_t tag = vxd_svdag_tag_at(from->tags, k);
            enum vxd_svdag_kind kind = vxd_svdag_tag_kind(tag);
            uint64_t hash = vxd_svdag_hash(
                kind, words, vxd_svdag_item_words(svdag->view.value_bits, kind, words));

            table_add(table, hash, ref, tag);
        }
    }
}

/* Gives a shard a table of n_buckets, whose slots can address twice the words handed out
 * so far, so that the shard usually grows before addresses get too long. With the shard's
 * mutex held. */
static enum vxd_status shard_table(struct vxd_svdag *svdag, struct vxd_svdag_shard *shard,
                                   uint32_t n_buckets, struct vxd_err *err)
{
    struct vxd_svdag_arena *arena = svdag->arena;
    struct vxd_svdag_index table = {.n_buckets = n_buckets};
    size_t n_bytes = n_buckets * sizeof *table.buckets;
    void *memory;
    enum vxd_status status;

    (void)pthread_mutex_lock(&arena->mutex);
    status = vxd_svdag_take_bytes(svdag, n_bytes, &arena->n_bytes, &memory, err);
    table.addresses = vxd_svdag_index_addresses((uint64_t)arena->next * 2);
    (void)pthread_mutex_unlock(&arena->mutex);
    if (status != VXD_OK) {
        return status;
    }
    table.buckets = memory;
    memset(memory, 0, n_bytes);
    if (shard->buckets != NULL) {
        move_items(svdag, shard, &table);
        (void)pthread_mutex_lock(&arena->mutex);
        arena->n_bytes -= shard->n_buckets * sizeof *table.buckets;
        (void)pthread_mutex_unlock(&arena->mutex);
        vxd_svdag_release_bytes(svdag, shard->buckets);
    }
    shard->buckets = table.buckets;
    shard->n_buckets = n_buckets;
    shard->addresses = table.addresses;
    return VXD_OK;
}

/* Inserts an item that the shard does not hold. With the shard's mutex held. */
static enum vxd_status shard_add(struct vxd_svdag_writer *writer,
                                 struct vxd_svdag_shard *shard,
                                 const struct vxd_svdag_lookup_key *item,
                                 struct vxd_svdag_index_bucket *free_bucket,
                                 uint32_t *ref, struct vxd_err *err)
{
    struct vxd_svdag *svdag = writer->svdag;
    uint64_t n_items = (uint64_t)shard->n_items[VXD_SVDAG_LEAF] +
                       shard->n_items[VXD_SVDAG_INNER] + shard->n_items[VXD_SVDAG_BLOCK];
    uint32_t n_buckets = shard->n_buckets;
    enum vxd_status status = take_words(writer, item->n_words, ref, err);

    if (status != VXD_OK) {
        return status;
    }
    if (!vxd_svdag_shard_has_capacity(n_buckets, n_items + 1)) {
        n_buckets = vxd_svdag_shard_larger(n_buckets);
    }
    if (n_buckets != shard->n_buckets || *ref > shard->addresses) {
        status = shard_table(svdag, shard, n_buckets, err);
        if (status != VXD_OK) {
            writer->next = *ref;
            writer->n_left += (uint32_t)item->n_words;
            return status;
        }
        (void)shard_find(svdag, shard, item, &free_bucket);
    }
    memcpy(arena_words(svdag->arena, *ref), item->words,
           (size_t)item->n_words * sizeof(uint32_t));
    assert(free_bucket != NULL);
    vxd_svdag_bucket_add(free_bucket,
                         *ref | vxd_svdag_slot_hash(item->hash, shard->addresses),
                         vxd_svdag_tag_of(item->hash, item->kind));
    shard->n_items[item->kind]++;
    shard->n_words += (uint64_t)item->n_words;
    return VXD_OK;
}

static enum vxd_status arena_put(struct vxd_svdag_writer *writer,
                                 const struct vxd_svdag_lookup_key *key, uint32_t *ref,
                                 bool *is_new, struct vxd_err *err)
{
    struct vxd_svdag_shard *shard = shard_of(writer->svdag->arena, key->hash);
    struct vxd_svdag_index_bucket *free_bucket = NULL;
    enum vxd_status status = VXD_OK;

    (void)pthread_mutex_lock(&shard->mutex);
    *ref = shard_find(writer->svdag, shard, key, &free_bucket);
    *is_new = *ref == VXD_SVDAG_EMPTY;
    if (*is_new) {
        status = shard_add(writer, shard, key, free_bucket, ref, err);
    }
    (void)pthread_mutex_unlock(&shard->mutex);
    return status;
}

static uint32_t arena_find(const struct vxd_svdag *svdag,
                           const struct vxd_svdag_lookup_key *key)
{
    struct vxd_svdag_shard *shard = shard_of(svdag->arena, key->hash);
    struct vxd_svdag_index_bucket *free_bucket;
    uint32_t ref;

    (void)pthread_mutex_lock(&shard->mutex);
    ref = shard_find(svdag, shard, key, &free_bucket);
    (void)pthread_mutex_unlock(&shard->mutex);
    return ref;
}

/* Without the lock: if the table is just being replaced the prefetch is only useless. */
static void arena_prefetch(const struct vxd_svdag *svdag, uint64_t hash)
{
    struct vxd_svdag_shard *shard = shard_of(svdag->arena, hash);
    const struct vxd_svdag_index_bucket *buckets =
        atomic_load_explicit(&shard->buckets, memory_order_relaxed);
    uint32_t n_buckets = atomic_load_explicit(&shard->n_buckets, memory_order_relaxed);

    if (buckets != NULL) {
        const char *home =
            (const char *)buckets +
            (size_t)vxd_svdag_shard_home(hash, n_buckets) * sizeof *buckets;

        __builtin_prefetch(home);
        __builtin_prefetch(home + sizeof *buckets); /* many searches continue there */
    }
}

/* --- the store --------------------------------------------------------------------- */

static enum vxd_status arena_create(struct vxd_queue *queue, struct vxd_svdag *svdag,
                                    struct vxd_err *err)
{
    size_t n_bytes = sizeof(struct vxd_svdag_arena) + N_CHUNKS * sizeof(uint32_t *);
    size_t max_bytes = svdag->spec.max_bytes;
    struct vxd_svdag_arena *arena;
    void *memory;
    enum vxd_status status;

    if (max_bytes != 0 && n_bytes > max_bytes) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "max_bytes",
                        "%zu, but an empty store takes %zu", max_bytes, n_bytes);
    }
    status = vxd_block_take(queue->context->device_cache, n_bytes, &memory, err);
    if (status != VXD_OK) {
        return status;
    }
    memset(memory, 0, n_bytes);
    arena = memory;
    arena->chunks = (uint32_t **)(arena + 1);
    arena->n_bytes = n_bytes;
    (void)pthread_mutex_init(&arena->mutex, NULL);
    for (int i = 0; i < N_SHARDS; i++) {
        (void)pthread_mutex_init(&arena->shards[i].mutex, NULL);
    }
    svdag->arena = arena;
    svdag->view.chunks = (const uint32_t *const *)arena->chunks;
    return VXD_OK;
}

static void arena_destroy(struct vxd_queue *queue, struct vxd_svdag *svdag)
{
    struct vxd_svdag_arena *arena = svdag->arena;

    (void)queue;
    for (int i = 0; i < N_SHARDS; i++) {
        (void)pthread_mutex_destroy(&arena->shards[i].mutex);
        if (arena->shards[i].buckets != NULL) {
            vxd_svdag_release_bytes(svdag, arena->shards[i].buckets);
        }
    }
    for (uint32_t i = 0; i < N_CHUNKS && arena->chunks[i] != NULL; i++) {
        if (i == 0 || i >= arena->n_joined) {
            vxd_svdag_release_bytes(svdag, arena->chunks[i]);
        }
    }
    (void)pthread_mutex_destroy(&arena->mutex);
    vxd_svdag_release_bytes(svdag, arena);
    svdag->arena = NULL;
}

static void arena_get_usage(const struct vxd_svdag *svdag, struct vxd_svdag_usage *out)
{
    struct vxd_svdag_arena *arena = svdag->arena;

    *out = (struct vxd_svdag_usage){0};
    for (int i = 0; i < N_SHARDS; i++) {
        struct vxd_svdag_shard *shard = &arena->shards[i];

        (void)pthread_mutex_lock(&shard->mutex);
        out->n_leaves += shard->n_items[VXD_SVDAG_LEAF];
        out->n_inner += shard->n_items[VXD_SVDAG_INNER];
        out->n_blocks += shard->n_items[VXD_SVDAG_BLOCK];
        out->node_bytes += shard->n_words * sizeof(uint32_t);
        (void)pthread_mutex_unlock(&shard->mutex);
    }
    (void)pthread_mutex_lock(&arena->mutex);
    out->n_bytes = arena->n_bytes;
    out->used_bytes = arena->n_bytes - (uint64_t)(-arena->next & (CHUNK_WORDS - 1)) * 4;
    (void)pthread_mutex_unlock(&arena->mutex);
}

const struct vxd_svdag_store_ops vxd_svdag_arena_cpu = {
    arena_create,   arena_destroy, arena_put,       arena_find,
    arena_prefetch, arena_close,   arena_get_usage,
};
