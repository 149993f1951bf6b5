// SPDX-License-Identifier: Apache-2.0
/* Loads an image into an empty arena. Its addresses are those of the arena, so its words
 * stay in place, or are copied as they are. The index is built shard by shard from
 * records sorted by shard, so that a table is in the cache while it is filled. An item
 * costs two hashes and a record. */
#include <stdatomic.h>
#include <string.h>

#include "gpu/svdag/store/store_cpu.h"
#include "gpu/svdag/image/image_check.h"

enum {
    CHUNK_WORDS = 1 << VXD_SVDAG_CHUNK_BITS,
    N_SHARDS = VXD_SVDAG_ARENA_SHARDS,
    MAX_BATCHES = 16,
    LEAST_WORDS = 2, /* shortest item; with LENGTH_BITS up to */
    HASH_BITS = 8,   /* bits 6 to 13 of the hash, for slot and tag */
    FIRST_HASH_BIT = 6,
    LEAST_ADDRESSES =
        1 << 26, /* words; with so many addresses a slot has exactly these hash bits */
    LENGTH_BITS = 5,
    MAX_BUCKETS = 1 << (32 - HASH_BITS - LENGTH_BITS)
};

/* What a shard's table needs of an item; the address gives the kind. */
struct record {
    uint32_t ref;
    uint32_t rest; /* from the top: bucket, length, hash bits of the slot */
};

struct adoption {
    struct vxd_svdag *svdag;
    const struct vxd_svdag_image_info *info;
    const struct vxd_svdag_image_items *items;
    uint32_t n_chunks;
    bool keeps_words; /* the words are not copied */
    struct vxd_buffer
        counts; /* host: items by chunk and shard; later where their records begin */
    struct vxd_buffer more; /* host: for records, where the spare memory is too small */
    struct record *records;
    uint64_t n_records; /* capacity */
    uint32_t n_buckets[N_SHARDS];
    uint32_t first_shard; /* first shard of the batch */
    uint32_t end_shard;
    uint32_t
        starts[N_SHARDS + 1]; /* of each shard's records, for the shards of the batch */
    atomic_bool has_twice;    /* an item occurs twice */
};

/* Iterates over the items of a chunk. */
struct cursor {
    const struct adoption *adoption;
    uint64_t i; /* index of a group of marks */
    uint64_t end;
    uint32_t rest; /* remaining bits of the group */
};

static struct cursor cursor_at(const struct adoption *adoption, size_t chunk)
{
    const struct vxd_buffer *marks = &adoption->items->marks;
    uint64_t n = marks->n_bytes / sizeof(struct vxd_svdag_mark);
    struct cursor cursor = {.adoption = adoption, .i = chunk * VXD_SVDAG_PAGE_MARKS};

    cursor.end =
        cursor.i + VXD_SVDAG_PAGE_MARKS < n ? cursor.i + VXD_SVDAG_PAGE_MARKS : n;
    cursor.rest = ((const struct vxd_svdag_mark *)marks->ptr)[cursor.i].bits;
    return cursor;
}

/* The next item. False: there is none. */
static inline bool next_item(struct cursor *cursor, uint32_t *ref, uint64_t *hash,
                             enum vxd_svdag_kind *kind, int *n_words)
{
    const struct adoption *adoption = cursor->adoption;
    const struct vxd_svdag_mark *marks = adoption->items->marks.ptr;
    const uint32_t *words;

    while (cursor->rest == 0) {
        if (++cursor->i >= cursor->end) {
            return false;
        }
        cursor->rest = marks[cursor->i].bits;
    }
    *ref = (uint32_t)cursor->i * VXD_SVDAG_MARK_WORDS +
           (uint32_t)__builtin_ctz(cursor->rest);
    cursor->rest &= cursor->rest - 1;
    *kind = vxd_svdag_image_kind(adoption->info, *ref);
    words = vxd_svdag_words(&adoption->items->view, *ref);
    *n_words = vxd_svdag_item_words(adoption->items->view.value_bits, *kind, words);
    *hash = vxd_svdag_hash(*kind, words, *n_words);
    return true;
}

/* Words ----------------------------------------------------------------------------------- */

static enum vxd_status take_chunks(struct adoption *adoption, struct vxd_err *err)
{
    struct vxd_svdag_arena *arena = adoption->svdag->arena;
    enum vxd_status status = VXD_OK;

    for (uint32_t i = 0; i < adoption->n_chunks && status == VXD_OK; i++) {
        void *memory;

        if (arena->chunks[i] == NULL) {
            status = vxd_svdag_take_bytes(adoption->svdag, CHUNK_WORDS * sizeof(uint32_t),
                                          &arena->n_bytes, &memory, err);
            arena->chunks[i] = status == VXD_OK ? memory : NULL;
        }
    }
    return status;
}

/* Counts the items of chunks by shard, and copies the chunks' words. */
static void count_body(void *args, size_t begin, size_t end)
{
    struct adoption *adoption = args;
    uint32_t *const *chunks = adoption->svdag->arena->chunks;

    for (size_t i = begin; i < end; i++) {
        uint32_t *counts = (uint32_t *)adoption->counts.ptr + i * N_SHARDS;
        struct cursor cursor = cursor_at(adoption, i);
        uint64_t left = adoption->info->n_words - i * CHUNK_WORDS;
        enum vxd_svdag_kind kind;
        uint64_t hash;
        uint32_t ref;
        int n_words;

        memset(counts, 0, N_SHARDS * sizeof *counts);
        if (!adoption->keeps_words) {
            memcpy(chunks[i], adoption->items->chunks[i],
                   (size_t)(left < CHUNK_WORDS ? left : CHUNK_WORDS) * sizeof(uint32_t));
        }
        while (next_item(&cursor, &ref, &hash, &kind, &n_words)) {
            counts[vxd_svdag_shard_number(hash)]++;
        }
    }
}

/* The index ------------------------------------------------------------------------------- */

/* Allocates the tables of all shards, of the sizes that inserting item by item would lead
 * to. *are_small: every bucket number fits a record. */
static enum vxd_status take_tables(struct adoption *adoption, bool *are_small,
                                   struct vxd_err *err)
{
    struct vxd_svdag_arena *arena = adoption->svdag->arena;

    *are_small = true;
    for (uint32_t s = 0; s < N_SHARDS && *are_small; s++) {
        struct vxd_svdag_shard *shard = &arena->shards[s];
        uint32_t n_buckets = shard->n_buckets;
        uint64_t n_items = 0;
        void *memory;
        enum vxd_status status;

        for (uint32_t i = 0; i < adoption->n_chunks; i++) {
            n_items += ((const uint32_t *)adoption->counts.ptr)[(size_t)i * N_SHARDS + s];
        }
        while (!vxd_svdag_shard_has_capacity(n_buckets, n_items)) {
            n_buckets = vxd_svdag_shard_larger(n_buckets);
        }
        *are_small = n_buckets <= MAX_BUCKETS;
        if (n_buckets == 0 || !*are_small) {
            continue;
        }
        status = vxd_svdag_take_bytes(adoption->svdag, n_buckets * sizeof *shard->buckets,
                                      &arena->n_bytes, &memory, err);
        if (status != VXD_OK) {
            return status;
        }
        shard->buckets = memory;
        shard->n_buckets = n_buckets;
        shard->addresses = vxd_svdag_index_addresses(
            adoption->info->n_words > LEAST_ADDRESSES ? adoption->info->n_words
                                                      : LEAST_ADDRESSES);
        adoption->n_buckets[s] = n_buckets;
    }
    return VXD_OK;
}

/* Restores the arena, except its chunks. */
static void drop_tables(struct vxd_svdag *svdag)
{
    for (uint32_t s = 0; s < N_SHARDS; s++) {
        struct vxd_svdag_shard *shard = &svdag->arena->shards[s];

        if (shard->buckets != NULL) {
            svdag->arena->n_bytes -= shard->n_buckets * sizeof *shard->buckets;
            vxd_svdag_release_bytes(svdag, shard->buckets);
        }
        shard->buckets = NULL;
        shard->n_buckets = 0;
        shard->n_words = 0;
        memset(shard->n_items, 0, sizeof shard->n_items);
    }
}

/* Allocates the records of all shards, or of a fraction of them at a time. */
static enum vxd_status take_records(struct adoption *adoption, uint32_t *n_batches,
                                    struct vxd_err *err)
{
    const uint64_t *n_items = adoption->items->n_items;
    uint64_t n =
        n_items[VXD_SVDAG_LEAF] + n_items[VXD_SVDAG_INNER] + n_items[VXD_SVDAG_BLOCK];
    enum vxd_status status = VXD_OK;

    *n_batches = 1;
    adoption->records = adoption->items->spare.ptr;
    adoption->n_records = adoption->items->spare.n_bytes / sizeof *adoption->records;
    if (adoption->n_records >= n) {
        return VXD_OK;
    }
    for (; *n_batches <= MAX_BATCHES; *n_batches *= 2) {
        /* Shards have nearly the same size. */
        status = vxd_host_alloc(adoption->svdag->context,
                                (n / *n_batches + n / *n_batches / 8 + N_SHARDS) *
                                    sizeof(struct record),
                                &adoption->more, err);
        if (status == VXD_OK) {
            adoption->records = adoption->more.ptr;
            adoption->n_records = adoption->more.n_bytes / sizeof *adoption->records;
            break;
        }
    }
    return status;
}

/* Computes where the records of the next shards begin, by shard and chunk, for as many
 * shards as fit. */
static void begin_batch(struct adoption *adoption, uint32_t first, uint32_t most)
{
    uint64_t capacity = adoption->n_records;
    uint32_t n = 0;

    adoption->first_shard = first;
    adoption->end_shard = first;
    for (uint32_t s = first; s < N_SHARDS && s < first + most; s++) {
        uint32_t *counts = (uint32_t *)adoption->counts.ptr + s;
        uint64_t n_here = 0;

        for (uint32_t i = 0; i < adoption->n_chunks; i++) {
            n_here += counts[(size_t)i * N_SHARDS];
        }
        if (n + n_here > capacity) {
            break;
        }
        adoption->starts[s] = n;
        for (uint32_t i = 0; i < adoption->n_chunks; i++) {
            uint32_t count = counts[(size_t)i * N_SHARDS];

            counts[(size_t)i * N_SHARDS] = n;
            n += count;
        }
        adoption->end_shard = s + 1;
    }
    adoption->starts[adoption->end_shard] = n;
}

static void sort_body(void *args, size_t begin, size_t end)
{
    struct adoption *adoption = args;
    struct record *records = adoption->records;

    for (size_t i = begin; i < end; i++) {
        uint32_t *next = (uint32_t *)adoption->counts.ptr + i * N_SHARDS;
        struct cursor cursor = cursor_at(adoption, i);
        enum vxd_svdag_kind kind;
        uint64_t hash;
        uint32_t ref;
        int n_words;

        while (next_item(&cursor, &ref, &hash, &kind, &n_words)) {
            uint32_t s = vxd_svdag_shard_number(hash);

            if (s >= adoption->first_shard && s < adoption->end_shard) {
                uint32_t home = vxd_svdag_shard_home(hash, adoption->n_buckets[s]);

                records[next[s]++] = (struct record){
                    ref,
                    (home << LENGTH_BITS | (uint32_t)(n_words - LEAST_WORDS))
                            << HASH_BITS |
                        (uint32_t)(hash >> FIRST_HASH_BIT & ((1u << HASH_BITS) - 1))};
            }
        }
    }
}

static int words_of(const struct adoption *adoption, uint32_t ref)
{
    const struct vxd_svdag_view *view = &adoption->items->view;

    return vxd_svdag_item_words(view->value_bits,
                                vxd_svdag_image_kind(adoption->info, ref),
                                vxd_svdag_words(view, ref));
}

/* Whether two items of a kind are equal. As in vxd_svdag_is_equal, no read passes the end
 * of an item. */
static bool are_equal(const struct adoption *adoption, uint32_t a, uint32_t b)
{
    const struct vxd_svdag_view *view = &adoption->items->view;
    int n = words_of(adoption, a);

    return n == words_of(adoption, b) &&
           memcmp(vxd_svdag_words(view, a), vxd_svdag_words(view, b),
                  (size_t)n * sizeof(uint32_t)) == 0;
}

/* Inserts an item into a table that has a free slot. False: an equal item is there. */
static bool enter(const struct adoption *adoption, struct vxd_svdag_shard *shard,
                  const struct record *record, enum vxd_svdag_kind kind)
{
    uint32_t hash = record->rest << FIRST_HASH_BIT;
    uint32_t tag = vxd_svdag_tag_of(hash, kind);
    uint32_t slot_hash = vxd_svdag_slot_hash(hash, shard->addresses);
    uint32_t at = record->rest >> (LENGTH_BITS + HASH_BITS);

    for (;;) {
        struct vxd_svdag_index_bucket *bucket = &shard->buckets[at];
        uint32_t equal = vxd_svdag_tags_equal(bucket->tags, tag);

        for (; equal != 0; equal &= equal - 1) {
            uint32_t word =
                bucket->slots[__builtin_ctz(equal) / VXD_SVDAG_INDEX_TAG_BITS];

            if (vxd_svdag_slot_may_be(word, slot_hash, shard->addresses) &&
                are_equal(adoption, word & shard->addresses, record->ref)) {
                return false;
            }
        }
        if (bucket->slots[VXD_SVDAG_INDEX_SLOTS - 1] == VXD_SVDAG_EMPTY) {
            vxd_svdag_bucket_add(bucket, record->ref | slot_hash, tag);
            return true;
        }
        at = at + 1 < shard->n_buckets ? at + 1 : 0;
    }
}

static void fill_body(void *args, size_t begin, size_t end)
{
    struct adoption *adoption = args;
    const struct record *records = adoption->records;

    for (size_t i = begin; i < end; i++) {
        uint32_t s = adoption->first_shard + (uint32_t)i;
        struct vxd_svdag_shard *shard = &adoption->svdag->arena->shards[s];

        if (shard->n_buckets > 0) {
            memset(shard->buckets, 0, shard->n_buckets * sizeof *shard->buckets);
        }
        for (uint32_t k = adoption->starts[s]; k < adoption->starts[s + 1]; k++) {
            enum vxd_svdag_kind kind =
                vxd_svdag_image_kind(adoption->info, records[k].ref);

            if (!enter(adoption, shard, &records[k], kind)) {
                atomic_store(&adoption->has_twice, true);
                return;
            }
            shard->n_items[kind]++;
            shard->n_words +=
                (records[k].rest >> HASH_BITS & ((1u << LENGTH_BITS) - 1)) + LEAST_WORDS;
        }
    }
}

static enum vxd_status fill_tables(struct vxd_pool *pool, struct adoption *adoption,
                                   struct vxd_err *err)
{
    uint32_t n_batches;
    enum vxd_status status = take_records(adoption, &n_batches, err);

    if (status != VXD_OK) {
        return status;
    }
    for (uint32_t s = 0; s < N_SHARDS; s = adoption->end_shard) {
        begin_batch(adoption, s, N_SHARDS / n_batches);
        if (adoption->end_shard == s) {
            return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                            "no memory to sort the items of an image");
        }
        vxd_parallel_for(pool, adoption->n_chunks, 1, sort_body, adoption);
        vxd_parallel_for(pool, adoption->end_shard - s, 1, fill_body, adoption);
        if (atomic_load(&adoption->has_twice)) {
            break;
        }
    }
    return VXD_OK;
}

/* ----------------------------------------------------------------------------------------- */

/* Hands the words after the image's out next. */
static void end_words(struct vxd_svdag_arena *arena, uint64_t n_words)
{
    uint32_t next = (uint32_t)n_words;
    uint32_t left = (0u - next) & (VXD_SVDAG_ARENA_SEGMENT - 1);

    arena->next = next + left;
    if (left > 1) {
        arena->remnants[0] = (struct vxd_svdag_remnant){next, left};
        arena->n_remnants = 1;
    }
}

bool vxd_svdag_arena_is_new(const struct vxd_svdag *svdag)
{
    bool is_new;

    (void)pthread_mutex_lock(&svdag->arena->mutex);
    is_new = svdag->arena->next == 0;
    (void)pthread_mutex_unlock(&svdag->arena->mutex);
    return is_new;
}

/* Makes the memory of the words the arena's first chunks. */
static enum vxd_status keep_words(const struct adoption *adoption,
                                  struct vxd_buffer *memory, struct vxd_err *err)
{
    struct vxd_svdag_arena *arena = adoption->svdag->arena;
    uint32_t *words = memory->ptr;
    enum vxd_status status;

    VXD_TRY(vxd_svdag_keep_buffer(
        adoption->svdag, (size_t)adoption->n_chunks * CHUNK_WORDS * sizeof *words,
        &arena->n_bytes, memory, err));
    for (uint32_t i = 0; i < adoption->n_chunks; i++) {
        arena->chunks[i] = words + (size_t)i * CHUNK_WORDS;
    }
    arena->n_joined = adoption->n_chunks;
out:
    return status;
}

enum vxd_status vxd_svdag_arena_adopt(struct vxd_svdag *svdag,
                                      const struct vxd_svdag_image_info *info,
                                      struct vxd_svdag_image_items *items,
                                      struct vxd_buffer *memory, bool *is_taken,
                                      struct vxd_err *err)
{
    struct vxd_pool *pool = svdag->context->pool;
    struct vxd_buffer *kept = svdag->arena->chunks[0] == NULL ? memory : NULL;
    struct adoption adoption = {
        .svdag = svdag, .info = info, .items = items, .keeps_words = kept != NULL};
    bool is_good;
    enum vxd_status status = VXD_OK;

    *is_taken = false;
    atomic_init(&adoption.has_twice, false);
    adoption.n_chunks = (uint32_t)((info->n_words + CHUNK_WORDS - 1) / CHUNK_WORDS);
    if (kept == NULL) {
        VXD_TRY(take_chunks(&adoption, err));
    }
    VXD_TRY(vxd_host_alloc(svdag->context,
                           (size_t)adoption.n_chunks * N_SHARDS * sizeof(uint32_t),
                           &adoption.counts, err));
    vxd_parallel_for(pool, adoption.n_chunks, 1, count_body, &adoption);
    VXD_TRY(take_tables(&adoption, &is_good, err));
    if (is_good) {
        VXD_TRY(fill_tables(pool, &adoption, err));
        is_good = !atomic_load(&adoption.has_twice);
    }
    if (is_good && kept != NULL) {
        VXD_TRY(keep_words(&adoption, kept, err));
    }
    if (is_good) {
        end_words(svdag->arena, info->n_words);
        *is_taken = true;
    }
out:
    if (!*is_taken) {
        drop_tables(svdag);
    }
    vxd_host_free(svdag->context, &adoption.more);
    vxd_host_free(svdag->context, &adoption.counts);
    return status;
}
