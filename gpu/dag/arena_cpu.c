// SPDX-License-Identifier: Apache-2.0
/* The arena store on the CPU.
 *
 * Words are handed out one after the other, from chunks that never move: an item's address
 * is its name for ever. Beside them stands the index, in shards by hash: a mutex and a table
 * of 32-byte buckets, each six addresses and six tags of eight bits of hash and two of kind.
 * A full bucket goes on in the next one; items are never taken out, so a bucket with room
 * ends a search. A shard grows alone, by two while it is small, later by a quarter and less,
 * so that a large index stays at least seven tenths full.
 *
 * Locks are taken in the order shard, arena, context. Readers of nodes take none: an entry
 * of the chunk table is written before any root that leads there is known to them. */
#include "gpu/dag/internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/core/block_cache.h"

enum {
    SHARD_BITS = 10,
    N_SHARDS = 1 << SHARD_BITS,
    SLOTS = 6, /* of a bucket */
    TAG_BITS = 10,
    FIRST_BUCKETS = 8,    /* of a shard, 256 bytes */
    SMALL_BUCKETS = 128,  /* up to here a shard doubles, */
    MIDDLE_BUCKETS = 256, /* up to here it grows by halves, then by quarters of a power */
    PREFETCH_BUCKETS = 4,
    CHUNK_WORDS = 1 << VXD_DAG_CHUNK_BITS,
    N_CHUNKS = 1 << (32 - VXD_DAG_CHUNK_BITS),
    SEGMENT_WORDS = 1024,
    N_REMNANTS = 256,
    MET_BITS = 13
};

#define TAG_MASK (((uint64_t)1 << TAG_BITS) - 1)
#define TAG_ONES 0x0004010040100401ULL /* 1 in each of the six tags */
#define TAG_TOPS (TAG_ONES << (TAG_BITS - 1))
#define TAG_LOWS (TAG_TOPS - TAG_ONES)  /* all bits but the tops */
#define TAGS_FREE (TAG_ONES * TAG_MASK) /* of kind 3, which no item has */

struct bucket {
    uint32_t refs[SLOTS]; /* from the first on, VXD_DAG_EMPTY where there is room */
    uint64_t tags;
};

struct shard {
    pthread_mutex_t mutex;
    struct bucket *buckets;
    uint32_t n_buckets;
    uint32_t n_items[VXD_DAG_N_KINDS];
    uint64_t n_words; /* of its items */
};

/* Words that a writer left over. */
struct remnant {
    uint32_t next;
    uint32_t n_left;
};

struct vxd_dag_arena {
    pthread_mutex_t mutex; /* guards what follows, up to the shards */
    uint32_t **chunks;     /* N_CHUNKS; NULL: not there yet */
    uint32_t next;         /* first word that was never handed out; 0: no chunk yet */
    size_t n_bytes;        /* of device memory */
    int n_remnants;
    struct remnant remnants[N_REMNANTS];
    struct shard shards[N_SHARDS];
};

/* What is looked for, or stored. */
struct item {
    uint64_t hash;
    enum vxd_dag_kind kind;
    const uint32_t *words;
    int n_words;
};

static int item_words(const struct vxd_dag_view *view, enum vxd_dag_kind kind,
                      const uint32_t *words)
{
    return kind == VXD_DAG_INNER ? vxd_dag_inner_words(words)
           : kind == VXD_DAG_LEAF
               ? vxd_dag_leaf_words(view->value_bits, vxd_dag_leaf_mask(words))
               : vxd_dag_block_words(view->value_bits, (int)words[0]);
}

static uint64_t item_tag(const struct item *item)
{
    return (item->hash & 0xffu) << 2 | (uint64_t)item->kind;
}

/* Words by address; the arena's own, so that they can be written. */
static uint32_t *arena_words(const struct vxd_dag_arena *arena, uint32_t ref)
{
    return arena->chunks[ref >> VXD_DAG_CHUNK_BITS] + (ref & (CHUNK_WORDS - 1));
}

/* Takes n_bytes of device memory, within the store's budget and the context's.
 * With the arena's mutex held. */
static enum vxd_status take_bytes(struct vxd_dag *dag, size_t n_bytes, void **out,
                                  struct vxd_err *err)
{
    struct vxd_dag_arena *arena = dag->arena;
    size_t max_bytes = dag->spec.max_bytes;
    enum vxd_status status;

    /* What is taken may be more than a budget that was made smaller. */
    if (max_bytes != 0 &&
        (arena->n_bytes > max_bytes || n_bytes > max_bytes - arena->n_bytes)) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "max_bytes",
                        "the scene's store is full: %zu of %zu bytes are taken, %zu more "
                        "are needed",
                        arena->n_bytes, max_bytes, n_bytes);
    }
    status = vxd_block_take(dag->context->device_cache, n_bytes, out, err);
    if (status == VXD_OK) {
        arena->n_bytes += n_bytes;
    }
    return status;
}

static void release_bytes(struct vxd_dag *dag, void *ptr)
{
    struct vxd_block *block = vxd_block_find(dag->context->device_cache, ptr);

    assert(block != NULL);
    vxd_block_release(block);
}

/* --- words ------------------------------------------------------------------------- */

/* The last remnant that has n_words, or NULL. With the arena's mutex held. */
static bool take_remnant(struct vxd_dag_arena *arena, int n_words, struct remnant *out)
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

/* A segment of words that were never handed out. With the arena's mutex held. */
static enum vxd_status new_segment(struct vxd_dag *dag, struct remnant *out,
                                   struct vxd_err *err)
{
    struct vxd_dag_arena *arena = dag->arena;
    uint32_t chunk = arena->next >> VXD_DAG_CHUNK_BITS;
    void *memory;

    if (arena->next >= VXD_DAG_UNIFORM) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                        "the scene's store has no addresses left: 16 GiB of nodes");
    }
    if (arena->chunks[chunk] == NULL) {
        enum vxd_status status =
            take_bytes(dag, CHUNK_WORDS * sizeof(uint32_t), &memory, err);

        if (status != VXD_OK) {
            return status;
        }
        arena->chunks[chunk] = memory;
    }
    /* Address 0 is VXD_DAG_EMPTY. */
    out->next = arena->next == 0 ? 1 : arena->next;
    arena->next = (out->next / SEGMENT_WORDS + 1) * SEGMENT_WORDS;
    out->n_left = arena->next - out->next;
    return VXD_OK;
}

/* Keeps words for the next writer; of too many pieces the smallest is dropped. With the
 * arena's mutex held. */
static void keep_remnant(struct vxd_dag_arena *arena, struct remnant remnant)
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

/* Words for an item, from the writer's own segment or from a new one. */
static enum vxd_status take_words(struct vxd_dag_writer *writer, int n_words,
                                  uint32_t *ref, struct vxd_err *err)
{
    struct vxd_dag *dag = writer->dag;
    struct remnant remnant = {0};
    enum vxd_status status = VXD_OK;

    if (writer->n_left < (uint32_t)n_words) {
        (void)pthread_mutex_lock(&dag->arena->mutex);
        if (!take_remnant(dag->arena, n_words, &remnant)) {
            status = new_segment(dag, &remnant, err);
        }
        (void)pthread_mutex_unlock(&dag->arena->mutex);
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

void vxd_dag_writer_close(struct vxd_dag_writer *writer)
{
    struct vxd_dag_arena *arena = writer->dag->arena;

    if (writer->n_left > 1) { /* every item that edits make has two words or more */
        (void)pthread_mutex_lock(&arena->mutex);
        keep_remnant(arena, (struct remnant){writer->next, writer->n_left});
        (void)pthread_mutex_unlock(&arena->mutex);
    }
    free(writer->met);
    writer->met = NULL;
    writer->next = 0;
    writer->n_left = 0;
}

/* --- the index --------------------------------------------------------------------- */

static struct shard *shard_of(struct vxd_dag_arena *arena, uint64_t hash)
{
    return &arena->shards[hash >> (64 - SHARD_BITS)];
}

static uint32_t home_of(uint64_t hash, uint32_t n_buckets)
{
    return (uint32_t)(((hash >> 22 & 0xffffffffu) * n_buckets) >> 32);
}

/* Equal first words (of a leaf the first two) tell equal lengths: no read goes past the
 * stored item's end. */
static bool words_equal(const uint32_t *a, const uint32_t *b, int n_words)
{
    for (int i = 0; i < n_words; i++) {
        if (a[i] != b[i]) {
            return false;
        }
    }
    return true;
}

/* The address of an item, or VXD_DAG_EMPTY; then *room is the bucket it would go to, NULL
 * where the shard has none. With the shard's mutex held. */
static uint32_t shard_find(const struct vxd_dag_arena *arena, const struct shard *shard,
                           const struct item *item, struct bucket **room)
{
    uint64_t wanted = item_tag(item) * TAG_ONES;
    uint32_t at = home_of(item->hash, shard->n_buckets);

    for (uint32_t i = 0; i < shard->n_buckets; i++) {
        struct bucket *bucket = &shard->buckets[at];
        uint64_t differ = bucket->tags ^ wanted;
        /* The top bit of each tag that does not differ in any bit. */
        uint64_t equal = ~(((differ & TAG_LOWS) + TAG_LOWS) | differ) & TAG_TOPS;

        for (; equal != 0; equal &= equal - 1) {
            uint32_t ref = bucket->refs[__builtin_ctzll(equal) / TAG_BITS];

            if (words_equal(arena_words(arena, ref), item->words, item->n_words)) {
                return ref;
            }
        }
        if (bucket->refs[SLOTS - 1] == VXD_DAG_EMPTY) {
            *room = bucket;
            return VXD_DAG_EMPTY;
        }
        at = at + 1 < shard->n_buckets ? at + 1 : 0;
    }
    *room = NULL;
    return VXD_DAG_EMPTY;
}

static void bucket_add(struct bucket *bucket, uint32_t ref, uint64_t tag)
{
    int slot = 0;

    while (bucket->refs[slot] != VXD_DAG_EMPTY) {
        slot++;
    }
    bucket->refs[slot] = ref;
    bucket->tags &= ~(TAG_MASK << (slot * TAG_BITS));
    bucket->tags |= tag << (slot * TAG_BITS);
}

/* Puts an address into a table that has room and does not hold it. */
static void table_add(struct bucket *buckets, uint32_t n_buckets, uint64_t hash,
                      uint32_t ref, uint64_t tag)
{
    uint32_t at = home_of(hash, n_buckets);

    for (uint32_t i = 0; i < n_buckets; i++) {
        if (buckets[at].refs[SLOTS - 1] == VXD_DAG_EMPTY) {
            bucket_add(&buckets[at], ref, tag);
            return;
        }
        at = at + 1 < n_buckets ? at + 1 : 0;
    }
    assert(false);
}

/* Hashes do not stand in the table: they are made again from the words. */
static void move_items(const struct vxd_dag *dag, const struct shard *shard,
                       struct bucket *buckets, uint32_t n_buckets)
{
    const struct vxd_dag_arena *arena = dag->arena;

    for (uint32_t i = 0; i < shard->n_buckets; i++) {
        const struct bucket *from = &shard->buckets[i];

        if (i + PREFETCH_BUCKETS < shard->n_buckets) {
            for (int k = 0; k < SLOTS; k++) {
                uint32_t ref = from[PREFETCH_BUCKETS].refs[k];

                if (ref != VXD_DAG_EMPTY) {
                    __builtin_prefetch(arena_words(arena, ref));
                }
            }
        }
        for (int k = 0; k < SLOTS && from->refs[k] != VXD_DAG_EMPTY; k++) {
            const uint32_t *words = arena_words(arena, from->refs[k]);
            uint64_t tag = from->tags >> (k * TAG_BITS) & TAG_MASK;
            enum vxd_dag_kind kind = (enum vxd_dag_kind)(tag & 3);
            uint64_t hash =
                vxd_dag_hash(kind, words, item_words(&dag->view, kind, words));

            table_add(buckets, n_buckets, hash, from->refs[k], tag);
        }
    }
}

/* The next size of a table; from the first on all are sizes of the context's block cache,
 * so that nothing is lost to rounding. */
static uint32_t larger(uint32_t n_buckets)
{
    uint32_t power;

    if (n_buckets == 0) {
        return FIRST_BUCKETS;
    }
    power = 1u << (31 - __builtin_clz(n_buckets));
    return n_buckets + (n_buckets < SMALL_BUCKETS    ? power
                        : n_buckets < MIDDLE_BUCKETS ? power / 2
                                                     : power / 4);
}

/* Gives a shard a larger table. With the shard's mutex held. */
static enum vxd_status shard_grow(struct vxd_dag *dag, struct shard *shard,
                                  struct vxd_err *err)
{
    struct vxd_dag_arena *arena = dag->arena;
    uint32_t n_buckets = larger(shard->n_buckets);
    void *memory;
    struct bucket *buckets;
    enum vxd_status status;

    (void)pthread_mutex_lock(&arena->mutex);
    status = take_bytes(dag, n_buckets * sizeof *buckets, &memory, err);
    (void)pthread_mutex_unlock(&arena->mutex);
    if (status != VXD_OK) {
        return status;
    }
    buckets = memory;
    for (uint32_t i = 0; i < n_buckets; i++) {
        buckets[i] = (struct bucket){.tags = TAGS_FREE};
    }
    if (shard->buckets != NULL) {
        move_items(dag, shard, buckets, n_buckets);
        (void)pthread_mutex_lock(&arena->mutex);
        arena->n_bytes -= shard->n_buckets * sizeof *buckets;
        (void)pthread_mutex_unlock(&arena->mutex);
        release_bytes(dag, shard->buckets);
    }
    shard->buckets = buckets;
    shard->n_buckets = n_buckets;
    return VXD_OK;
}

/* Stores an item that the shard does not hold. With the shard's mutex held. */
static enum vxd_status shard_add(struct vxd_dag_writer *writer, struct shard *shard,
                                 const struct item *item, struct bucket *room,
                                 uint32_t *ref, struct vxd_err *err)
{
    struct vxd_dag *dag = writer->dag;
    uint64_t n_items = (uint64_t)shard->n_items[VXD_DAG_LEAF] +
                       shard->n_items[VXD_DAG_INNER] + shard->n_items[VXD_DAG_BLOCK];
    enum vxd_status status;

    /* At most seven eighths full: searches stay short. */
    if ((n_items + 1) * 8 > (uint64_t)shard->n_buckets * SLOTS * 7) {
        status = shard_grow(dag, shard, err);
        if (status != VXD_OK) {
            return status;
        }
        (void)shard_find(dag->arena, shard, item, &room);
    }
    status = take_words(writer, item->n_words, ref, err);
    if (status != VXD_OK) {
        return status;
    }
    memcpy(arena_words(dag->arena, *ref), item->words,
           (size_t)item->n_words * sizeof(uint32_t));
    assert(room != NULL);
    bucket_add(room, *ref, item_tag(item));
    shard->n_items[item->kind]++;
    shard->n_words += (uint64_t)item->n_words;
    return VXD_OK;
}

/* Where the writer remembers items of this hash; NULL without memory for it. */
static struct vxd_dag_met *met_slot(struct vxd_dag_writer *writer, uint64_t hash)
{
    if (writer->met == NULL) {
        writer->met = calloc((size_t)1 << MET_BITS, sizeof *writer->met);
    }
    return writer->met == NULL
               ? NULL
               : &writer->met[hash >> 8 & (((uint64_t)1 << MET_BITS) - 1)];
}

enum vxd_status vxd_dag_put(struct vxd_dag_writer *writer, enum vxd_dag_kind kind,
                            int height, const uint32_t *words, int n_words, uint32_t *ref,
                            struct vxd_err *err)
{
    struct vxd_dag_arena *arena = writer->dag->arena;
    struct item item = {vxd_dag_hash(kind, words, n_words), kind, words, n_words};
    uint32_t key = (uint32_t)(item.hash >> 32 & ~(uint64_t)3) | (uint32_t)kind;
    struct vxd_dag_met *met = met_slot(writer, item.hash);
    struct shard *shard = shard_of(arena, item.hash);
    struct bucket *room = NULL;
    enum vxd_status status = VXD_OK;

    assert(n_words >= 1 && n_words <= VXD_DAG_MAX_ITEM_WORDS);
    if (met != NULL && met->ref != VXD_DAG_EMPTY && met->key == key &&
        words_equal(arena_words(arena, met->ref), words, n_words)) {
        *ref = met->ref;
        return VXD_OK;
    }
    (void)pthread_mutex_lock(&shard->mutex);
    writer->n_lookups[height]++;
    *ref = shard_find(arena, shard, &item, &room);
    if (*ref == VXD_DAG_EMPTY) {
        status = shard_add(writer, shard, &item, room, ref, err);
        writer->n_new[height] += status == VXD_OK ? 1 : 0;
    }
    (void)pthread_mutex_unlock(&shard->mutex);
    if (status == VXD_OK && met != NULL) {
        *met = (struct vxd_dag_met){key, *ref};
    }
    return status;
}

uint32_t vxd_dag_find(const struct vxd_dag *dag, enum vxd_dag_kind kind,
                      const uint32_t *words, int n_words)
{
    struct item item = {vxd_dag_hash(kind, words, n_words), kind, words, n_words};
    struct shard *shard = shard_of(dag->arena, item.hash);
    struct bucket *room;
    uint32_t ref;

    (void)pthread_mutex_lock(&shard->mutex);
    ref = shard_find(dag->arena, shard, &item, &room);
    (void)pthread_mutex_unlock(&shard->mutex);
    return ref;
}

/* --- the store --------------------------------------------------------------------- */

enum vxd_status vxd_dag_arena_create(struct vxd_queue *queue, struct vxd_dag *dag,
                                     struct vxd_err *err)
{
    size_t n_bytes = sizeof(struct vxd_dag_arena) + N_CHUNKS * sizeof(uint32_t *);
    size_t max_bytes = dag->spec.max_bytes;
    struct vxd_dag_arena *arena;
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
    dag->arena = arena;
    dag->view.chunks = (const uint32_t *const *)arena->chunks;
    return VXD_OK;
}

void vxd_dag_arena_destroy(struct vxd_queue *queue, struct vxd_dag *dag)
{
    struct vxd_dag_arena *arena = dag->arena;

    (void)queue;
    for (int i = 0; i < N_SHARDS; i++) {
        (void)pthread_mutex_destroy(&arena->shards[i].mutex);
        if (arena->shards[i].buckets != NULL) {
            release_bytes(dag, arena->shards[i].buckets);
        }
    }
    for (int i = 0; i < N_CHUNKS && arena->chunks[i] != NULL; i++) {
        release_bytes(dag, arena->chunks[i]);
    }
    (void)pthread_mutex_destroy(&arena->mutex);
    release_bytes(dag, arena);
    dag->arena = NULL;
}

void vxd_dag_arena_get_usage(const struct vxd_dag *dag, struct vxd_dag_usage *out)
{
    struct vxd_dag_arena *arena = dag->arena;

    *out = (struct vxd_dag_usage){0};
    for (int i = 0; i < N_SHARDS; i++) {
        struct shard *shard = &arena->shards[i];

        (void)pthread_mutex_lock(&shard->mutex);
        out->n_leaves += shard->n_items[VXD_DAG_LEAF];
        out->n_inner += shard->n_items[VXD_DAG_INNER];
        out->n_blocks += shard->n_items[VXD_DAG_BLOCK];
        out->node_bytes += shard->n_words * sizeof(uint32_t);
        (void)pthread_mutex_unlock(&shard->mutex);
    }
    (void)pthread_mutex_lock(&arena->mutex);
    out->n_bytes = arena->n_bytes;
    (void)pthread_mutex_unlock(&arena->mutex);
}
