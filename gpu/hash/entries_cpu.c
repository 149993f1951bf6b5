// SPDX-License-Identifier: Apache-2.0
/* Entries by number. The heap and the active list are made from the live bits, word by
 * word, in pieces whose counts are summed first. Rows are prefetched some entries
 * before they are copied. */
#include "gpu/hash/hash_cpu.h"

#define PIECE ((size_t)8192)
#define PIECE_WORDS ((size_t)1024)
#define N_PREFETCH 16
/* Frees of at most this many entries merge their numbers into the heap instead of
 * rebuilding it. */
#define MAX_MERGED 256

/* Writes the numbers that a range of live bits selects. */
struct listing {
    struct vxd_hashmap map;
    uint32_t flip; /* 0: lists living numbers, ~0: lists free ones */
    uint32_t *counts;
    uint32_t *to;
    uint32_t *total; /* may be NULL */
};

struct free_args {
    struct vxd_hashmap map;
    const int32_t *indices;
    size_t n;
    uint32_t n_freed;
};

/* What vxd_queue_push copies for gather and scatter. */
struct rows_args {
    struct vxd_hashmap map;
    const int32_t *indices;
    size_t n;
    char *keys;
    char *values[VXD_HASHMAP_MAX_VALUES];
    uint8_t *valid;
};

static size_t n_words_of(size_t capacity)
{
    return capacity / 32 + (capacity % 32 != 0 ? 1 : 0);
}

size_t vxd_hash_heap_scratch_bytes_cpu(const struct vxd_queue *queue, size_t capacity)
{
    (void)queue;
    return (n_words_of(capacity) / PIECE_WORDS + 1) * sizeof(uint32_t);
}

/* The selected bits of one word; bits beyond the capacity are never selected. */
static inline uint32_t selected_bits(const struct listing *listing, size_t word)
{
    uint32_t bits = ((const uint32_t *)listing->map.live.ptr)[word] ^ listing->flip;

    if (word == listing->map.capacity / 32) {
        bits &= ((uint32_t)1 << listing->map.capacity % 32) - 1;
    }
    return bits;
}

static void count_words(void *args, size_t begin, size_t end)
{
    const struct listing *listing = args;
    uint32_t n = 0;

    for (size_t i = begin; i < end; i++) {
        n += (uint32_t)__builtin_popcount(selected_bits(listing, i));
    }
    listing->counts[begin / PIECE_WORDS] = n;
}

static void list_words(void *args, size_t begin, size_t end)
{
    const struct listing *listing = args;
    uint32_t *to = listing->to + listing->counts[begin / PIECE_WORDS];

    for (size_t i = begin; i < end; i++) {
        for (uint32_t bits = selected_bits(listing, i); bits != 0; bits &= bits - 1) {
            *to++ = (uint32_t)i * 32 + (uint32_t)__builtin_ctz(bits);
        }
    }
}

static void list(struct vxd_pool *pool, struct listing *listing)
{
    size_t n_words = n_words_of(listing->map.capacity);
    uint32_t total = 0;

    vxd_parallel_for(pool, n_words, PIECE_WORDS, count_words, listing);
    for (size_t i = 0; i * PIECE_WORDS < n_words; i++) {
        uint32_t n = listing->counts[i];

        listing->counts[i] = total;
        total += n;
    }
    vxd_parallel_for(pool, n_words, PIECE_WORDS, list_words, listing);
    if (listing->total != NULL) {
        *listing->total = total;
    }
}

void vxd_hash_heap_rebuild_run(struct vxd_pool *pool, const struct vxd_hashmap *map,
                               void *scratch)
{
    struct listing listing = {.map = *map, .flip = ~(uint32_t)0, .counts = scratch};

    if (map->heap.ptr == NULL) {
        return; /* a map of capacity 0 has no numbers */
    }
    listing.to = (uint32_t *)map->heap.ptr + vxd_counters_of(map)->n_live;
    list(pool, &listing);
}

/* Moves the numbers of the list to the front and sorts them (there are few: insertion
 * sort). */
static void sort_numbers(int32_t *numbers, size_t n)
{
    size_t n_sorted = 0;

    for (size_t i = 0; i < n; i++) {
        int32_t number = numbers[i];
        size_t to = n_sorted;

        if (number == VXD_NO_ENTRY) {
            continue;
        }
        for (; to > 0 && numbers[to - 1] > number; to--) {
            numbers[to] = numbers[to - 1];
        }
        numbers[to] = number;
        n_sorted++;
    }
}

/* Merges n ascending numbers into the free ones behind them in the heap. Numbers above
 * the largest of them are in place already, and since low numbers are taken first
 * those are the most. */
static void merge_numbers(const struct vxd_hashmap *map, const int32_t *numbers,
                          uint32_t n)
{
    uint32_t *to = (uint32_t *)map->heap.ptr + vxd_counters_of(map)->n_live;
    const uint32_t *end = (const uint32_t *)map->heap.ptr + map->capacity;
    const uint32_t *from = to + n;

    while (n > 0) {
        if (from < end && *from < (uint32_t)*numbers) {
            *to++ = *from++;
        } else {
            *to++ = (uint32_t)*numbers++;
            n--;
        }
    }
}

void vxd_hash_heap_return_run(struct vxd_pool *pool, const struct vxd_hashmap *map,
                              int32_t *indices, size_t n, uint32_t n_freed, void *scratch)
{
    if (n <= MAX_MERGED) {
        sort_numbers(indices, n);
        merge_numbers(map, indices, n_freed);
    } else {
        vxd_hash_heap_rebuild_run(pool, map, scratch);
    }
}

static enum vxd_status heap_job(struct vxd_pool *pool, const void *args,
                                struct vxd_err *err)
{
    const struct listing *listing = args;

    (void)err;
    vxd_hash_heap_rebuild_run(pool, &listing->map, listing->counts);
    return VXD_OK;
}

enum vxd_status vxd_hash_heap_rebuild_cpu(struct vxd_queue *queue,
                                          struct vxd_hashmap *map, void *scratch,
                                          size_t scratch_bytes, struct vxd_err *err)
{
    struct listing listing = {.map = *map, .counts = scratch};

    (void)scratch_bytes;
    return vxd_queue_push(queue, heap_job, &listing, sizeof listing, err);
}

static enum vxd_status active_job(struct vxd_pool *pool, const void *args,
                                  struct vxd_err *err)
{
    struct listing listing = *(const struct listing *)args;

    (void)err;
    list(pool, &listing);
    return VXD_OK;
}

enum vxd_status vxd_hash_active_cpu(struct vxd_queue *queue,
                                    const struct vxd_hashmap *map, int32_t *indices,
                                    uint32_t *n_entries, void *scratch,
                                    size_t scratch_bytes, struct vxd_err *err)
{
    struct listing listing = {.map = *map, .counts = scratch, .total = n_entries};

    (void)scratch_bytes;
    listing.to = (uint32_t *)indices;
    return vxd_queue_push(queue, active_job, &listing, sizeof listing, err);
}

static void free_piece(void *args, size_t begin, size_t end)
{
    struct free_args *call = args;
    uint32_t n = 0;

    for (size_t i = begin; i < end; i++) {
        if (call->indices[i] >= 0) {
            uint32_t entry = (uint32_t)call->indices[i];

            vxd_live_clear(&call->map, entry);
            vxd_rows_clear(&call->map, entry);
            n++;
        }
    }
    (void)__atomic_fetch_add(&call->n_freed, n, __ATOMIC_RELAXED);
}

uint32_t vxd_hash_entries_free_run(struct vxd_pool *pool, const struct vxd_hashmap *map,
                                   const int32_t *indices, size_t n)
{
    struct free_args call = {*map, indices, n, 0};

    vxd_parallel_for(pool, n, PIECE, free_piece, &call);
    vxd_counters_of(map)->n_live -= call.n_freed;
    return call.n_freed;
}

static enum vxd_status free_job(struct vxd_pool *pool, const void *args,
                                struct vxd_err *err)
{
    const struct free_args *call = args;

    (void)err;
    (void)vxd_hash_entries_free_run(pool, &call->map, call->indices, call->n);
    return VXD_OK;
}

enum vxd_status vxd_hash_entries_free_cpu(struct vxd_queue *queue,
                                          struct vxd_hashmap *map, const int32_t *indices,
                                          size_t n, struct vxd_err *err)
{
    struct free_args call = {*map, indices, n, 0};

    return vxd_queue_push(queue, free_job, &call, sizeof call, err);
}

/* Prefetches the rows of an entry that is copied soon. */
static inline void prefetch_rows(const struct rows_args *rows, size_t i)
{
    int32_t entry = rows->indices[i];

    if (!vxd_entry_lives(&rows->map, entry)) {
        return;
    }
    if (rows->keys != NULL) {
        __builtin_prefetch(vxd_key_row(&rows->map, (size_t)entry));
    }
    for (int v = 0; v < rows->map.spec.n_values; v++) {
        if (rows->values[v] != NULL) {
            __builtin_prefetch((const char *)rows->map.values[v].ptr +
                               (size_t)entry * rows->map.row_bytes[v]);
        }
    }
}

static inline void gather_row(char *to, const char *from, size_t n_bytes, bool lives)
{
    if (lives) {
        vxd_row_copy(to, from, n_bytes);
    } else {
        memset(to, 0, n_bytes);
    }
}

static void gather_piece(void *args, size_t begin, size_t end)
{
    const struct rows_args *rows = args;
    const struct vxd_hashmap *map = &rows->map;
    size_t row_bytes = (size_t)map->form.row_bytes;

    for (size_t i = begin; i < end; i++) {
        int32_t entry = rows->indices[i];
        bool lives = vxd_entry_lives(map, entry);
        size_t from = lives ? (size_t)entry : 0;

        if (i + N_PREFETCH < end) {
            prefetch_rows(rows, i + N_PREFETCH);
        }
        if (rows->valid != NULL) {
            rows->valid[i] = lives ? 1 : 0;
        }
        if (rows->keys != NULL) {
            gather_row(rows->keys + i * row_bytes, vxd_key_row(map, from), row_bytes,
                       lives);
        }
        for (int v = 0; v < map->spec.n_values; v++) {
            size_t n_bytes = map->row_bytes[v];

            if (rows->values[v] != NULL) {
                gather_row(rows->values[v] + i * n_bytes,
                           (const char *)map->values[v].ptr + from * n_bytes, n_bytes,
                           lives);
            }
        }
    }
}

static enum vxd_status gather_job(struct vxd_pool *pool, const void *args,
                                  struct vxd_err *err)
{
    struct rows_args rows = *(const struct rows_args *)args;

    (void)err;
    vxd_parallel_for(pool, rows.n, PIECE, gather_piece, &rows);
    return VXD_OK;
}

enum vxd_status vxd_hash_gather_cpu(struct vxd_queue *queue,
                                    const struct vxd_hashmap *map, const int32_t *indices,
                                    size_t n, void *keys, void *const *values,
                                    uint8_t *valid, struct vxd_err *err)
{
    struct rows_args rows = {
        .map = *map, .indices = indices, .n = n, .keys = keys, .valid = valid};

    for (int v = 0; values != NULL && v < map->spec.n_values; v++) {
        rows.values[v] = values[v];
    }
    return vxd_queue_push(queue, gather_job, &rows, sizeof rows, err);
}

static void scatter_piece(void *args, size_t begin, size_t end)
{
    const struct rows_args *rows = args;
    const struct vxd_hashmap *map = &rows->map;
    size_t row_bytes = (size_t)map->form.row_bytes;

    for (size_t i = begin; i < end; i++) {
        size_t entry = (size_t)rows->indices[i];

        vxd_row_copy((char *)map->keys.ptr + entry * row_bytes,
                     rows->keys + i * row_bytes, row_bytes);
        for (int v = 0; v < map->spec.n_values; v++) {
            size_t n_bytes = map->row_bytes[v];

            vxd_row_copy((char *)map->values[v].ptr + entry * n_bytes,
                         rows->values[v] + i * n_bytes, n_bytes);
        }
        vxd_live_set(map, entry / 32, (uint32_t)1 << entry % 32);
    }
}

static enum vxd_status scatter_job(struct vxd_pool *pool, const void *args,
                                   struct vxd_err *err)
{
    struct rows_args rows = *(const struct rows_args *)args;

    (void)err;
    vxd_parallel_for(pool, rows.n, PIECE, scatter_piece, &rows);
    vxd_counters_of(&rows.map)->n_live = (uint32_t)rows.n;
    return VXD_OK;
}

enum vxd_status vxd_hash_scatter_cpu(struct vxd_queue *queue, struct vxd_hashmap *map,
                                     const int32_t *indices, size_t n, const void *keys,
                                     const void *const *values, struct vxd_err *err)
{
    struct rows_args rows = {.map = *map, .indices = indices, .n = n};

    /* The rows are only read here; gather writes through the same fields. */
    rows.keys = (char *)(uintptr_t)keys;
    for (int v = 0; v < map->spec.n_values; v++) {
        rows.values[v] = (char *)(uintptr_t)values[v];
    }
    return vxd_queue_push(queue, scatter_job, &rows, sizeof rows, err);
}
