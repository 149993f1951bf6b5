// SPDX-License-Identifier: Apache-2.0
/* Finds keys. Cache lines are prefetched some keys before their use, so that a thread
 * waits for many at a time. A find reads the key and one line (1.3 on average at load
 * 0.5) and writes the answer. */
#include "gpu/hash/open_cpu.h"

#define PIECE ((size_t)8192)

/* Keys being found at a time; a power of two. */
#define RING 32

/* What vxd_queue_push copies. */
struct find_args {
    struct vxd_open_table table;
    const char *keys;
    size_t n;
    int kind; /* neighbours of a key, else 1 */
    int32_t *indices;
    uint8_t *found;
};

struct clear_args {
    struct vxd_hashmap map;
};

struct probes_args {
    struct vxd_hashmap map;
    uint64_t *probes;
};

struct pending_key {
    uint64_t tag;
    struct vxd_open_walk home;
    const char *row; /* NULL: there is no such key */
};

struct vxd_open_table vxd_open_table_of(const struct vxd_hashmap *map)
{
    return (struct vxd_open_table){map->index.ptr, vxd_open_n_lines(map->capacity),
                                   map->form, map->keys.ptr};
}

static inline size_t find_from(const struct vxd_open_table *table,
                               struct vxd_open_walk walk, uint64_t tag, const char *row,
                               uint32_t *n_probes)
{
    bool is_wide = vxd_tag_is_wide(tag);

    for (uint32_t n_left = table->n_lines; n_left > 0; n_left--) {
        for (uint32_t step = 0; step < VXD_OPEN_LINE; step++) {
            size_t i = vxd_open_place(walk.line, walk.start, step);
            const struct vxd_open_slot *slot = &table->slots[i];

            ++*n_probes;
            if (slot->tag == tag &&
                (!is_wide ||
                 vxd_keys_equal(&table->form, row,
                                table->keys +
                                    slot->entry * (size_t)table->form.row_bytes))) {
                return i;
            }
            if (slot->tag == VXD_TAG_EMPTY) {
                return SIZE_MAX;
            }
        }
        walk.line = walk.line + 1 < table->n_lines ? walk.line + 1 : 0;
    }
    return SIZE_MAX;
}

size_t vxd_open_find(const struct vxd_open_table *table, uint64_t tag, const char *row,
                     uint32_t *n_probes)
{
    uint32_t n = 0;
    size_t place = find_from(table, vxd_open_home(table, tag), tag, row, &n);

    if (n_probes != NULL) {
        *n_probes = n;
    }
    return place;
}

static inline void start_find(const struct vxd_open_table *table, struct pending_key *key,
                              const char *row)
{
    key->row = row;
    key->tag = vxd_open_tag(&table->form, row);
    key->home = vxd_open_home(table, key->tag);
    __builtin_prefetch(&table->slots[(size_t)key->home.line * VXD_OPEN_LINE]);
}

static inline int32_t finish_find(const struct vxd_open_table *table,
                                  const struct pending_key *key)
{
    uint32_t n_probes = 0;
    size_t place;

    if (key->row == NULL) {
        return VXD_NO_ENTRY;
    }
    place = find_from(table, key->home, key->tag, key->row, &n_probes);
    return place == SIZE_MAX ? VXD_NO_ENTRY : (int32_t)table->slots[place].entry;
}

static void find_piece(void *args, size_t begin, size_t end)
{
    const struct find_args *find = args;
    const struct vxd_open_table table = find->table;
    size_t row_bytes = (size_t)table.form.row_bytes;
    struct pending_key ring[RING];

    for (size_t i = begin; i < end + RING; i++) {
        struct pending_key *key = &ring[i % RING];

        if (i >= begin + RING) {
            int32_t number = finish_find(&table, key);

            if (find->indices != NULL) {
                find->indices[i - RING] = number;
            }
            if (find->found != NULL) {
                find->found[i - RING] = number != VXD_NO_ENTRY ? 1 : 0;
            }
        }
        if (i < end) {
            start_find(&table, key, find->keys + i * row_bytes);
        }
    }
}

static enum vxd_status find_job(struct vxd_pool *pool, const void *args,
                                struct vxd_err *err)
{
    struct find_args find = *(const struct find_args *)args;

    (void)err;
    vxd_parallel_for(pool, find.n, PIECE, find_piece, &find);
    return VXD_OK;
}

enum vxd_status vxd_open_find_cpu(struct vxd_queue *queue, const struct vxd_hashmap *map,
                                  const void *keys, size_t n, int32_t *indices,
                                  uint8_t *found, struct vxd_err *err)
{
    struct find_args args = {vxd_open_table_of(map), keys, n, 1, indices, found};

    return vxd_queue_push(queue, find_job, &args, sizeof args, err);
}

/* The keys of the neighbours are kept in an array beside the ring until they are
 * found. */
static void neighbours_piece(void *args, size_t begin, size_t end)
{
    const struct find_args *find = args;
    const struct vxd_open_table table = find->table;
    size_t row_bytes = (size_t)table.form.row_bytes;
    struct pending_key ring[RING];
    int64_t rows[RING][4];
    size_t kind = (size_t)find->kind;
    size_t n = (end - begin) * kind;
    int32_t *indices = find->indices + begin * kind;

    for (size_t i = 0; i < n + RING; i++) {
        struct pending_key *key = &ring[i % RING];
        void *row = rows[i % RING];

        if (i >= RING) {
            indices[i - RING] = finish_find(&table, key);
        }
        if (i >= n) {
            continue;
        }
        if (vxd_key_neighbour(&table.form, find->keys + (begin + i / kind) * row_bytes,
                              find->kind, (int)(i % kind), row)) {
            start_find(&table, key, row);
        } else {
            key->row = NULL;
        }
    }
}

static enum vxd_status neighbours_job(struct vxd_pool *pool, const void *args,
                                      struct vxd_err *err)
{
    struct find_args find = *(const struct find_args *)args;

    (void)err;
    vxd_parallel_for(pool, find.n, PIECE / (size_t)find.kind, neighbours_piece, &find);
    return VXD_OK;
}

enum vxd_status vxd_open_neighbours_cpu(struct vxd_queue *queue,
                                        const struct vxd_hashmap *map, const void *keys,
                                        size_t n, enum vxd_hash_neighbours kind,
                                        int32_t *indices, struct vxd_err *err)
{
    struct find_args args = {vxd_open_table_of(map), keys, n, (int)kind, indices, NULL};

    return vxd_queue_push(queue, neighbours_job, &args, sizeof args, err);
}

static void empty_piece(void *args, size_t begin, size_t end)
{
    struct vxd_open_slot *slots = args;

    memset(slots + begin, 0xff, (end - begin) * sizeof *slots);
}

void vxd_open_clear_run(struct vxd_pool *pool, const struct vxd_hashmap *map)
{
    vxd_counters_of(map)->n_erased_marks = 0;
    vxd_parallel_for(pool, (size_t)vxd_open_n_lines(map->capacity) * VXD_OPEN_LINE, PIECE,
                     empty_piece, map->index.ptr);
}

static enum vxd_status clear_job(struct vxd_pool *pool, const void *args,
                                 struct vxd_err *err)
{
    (void)err;
    vxd_open_clear_run(pool, &((const struct clear_args *)args)->map);
    return VXD_OK;
}

enum vxd_status vxd_open_clear_cpu(struct vxd_queue *queue, struct vxd_hashmap *map,
                                   struct vxd_err *err)
{
    struct clear_args args = {*map};

    return vxd_queue_push(queue, clear_job, &args, sizeof args, err);
}

static void probes_piece(void *args, size_t begin, size_t end)
{
    const struct probes_args *call = args;
    struct vxd_open_table table = vxd_open_table_of(&call->map);
    uint64_t probes[VXD_PROBE_BINS + 1] = {0};
    uint64_t most = 0;
    uint64_t *to = call->probes;

    for (size_t i = begin; i < end; i++) {
        const char *row = vxd_key_row(&call->map, i);
        uint32_t n_probes = 1;

        if (!vxd_entry_lives(&call->map, (int32_t)i)) {
            continue;
        }
        (void)vxd_open_find(&table, vxd_open_tag(&table.form, row), row, &n_probes);
        probes[n_probes < VXD_PROBE_BINS ? n_probes - 1 : VXD_PROBE_BINS - 1]++;
        probes[VXD_PROBE_BINS] += n_probes;
        most = n_probes > most ? n_probes : most;
    }
    for (size_t i = 0; i <= VXD_PROBE_BINS; i++) {
        (void)__atomic_fetch_add(&to[i], probes[i], __ATOMIC_RELAXED);
    }
    for (uint64_t seen = __atomic_load_n(&to[VXD_PROBE_BINS + 1], __ATOMIC_RELAXED);
         seen < most &&
         !__atomic_compare_exchange_n(&to[VXD_PROBE_BINS + 1], &seen, most, true,
                                      __ATOMIC_RELAXED, __ATOMIC_RELAXED);) {
    }
}

static enum vxd_status probes_job(struct vxd_pool *pool, const void *args,
                                  struct vxd_err *err)
{
    struct probes_args call = *(const struct probes_args *)args;

    (void)err;
    memset(call.probes, 0, (VXD_PROBE_BINS + 2) * sizeof *call.probes);
    vxd_parallel_for(pool, call.map.capacity, PIECE, probes_piece, &call);
    return VXD_OK;
}

enum vxd_status vxd_open_probes_cpu(struct vxd_queue *queue,
                                    const struct vxd_hashmap *map, uint64_t *out,
                                    struct vxd_err *err)
{
    struct probes_args args = {*map, out};

    return vxd_queue_push(queue, probes_job, &args, sizeof args, err);
}
