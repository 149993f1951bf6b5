// SPDX-License-Identifier: Apache-2.0
/* The open-addressing index on the CPU, shared by its files:
 *
 *   open_cpu.c         sizes, and the table of functions
 *   open_cpu_find.c    find, neighbours, probes, clear
 *   open_cpu_batch.c   batches that change slots, partitioned among threads
 *   open_cpu_insert.c  insert and rebuild
 *   open_cpu_erase.c   erase
 *
 * Four slots fill a cache line. A key's hash selects a line and a slot in it; probing goes round
 * the line, then on to the next one. There are two slots for each entry of the capacity, so an
 * empty or erased slot is always found while the entries do not exceed the capacity.
 *
 * Batches that change slots use no locks and no atomic operations. The positions of the batch
 * are sorted (stably) by the region of the table that their key hashes to, and one thread at a
 * time processes a region's positions, in order. A probe sequence that would leave its region is
 * deferred until all regions are done and then processed by a single thread. Equal keys are
 * either all deferred or none of them is. */
#ifndef VXD_GPU_HASH_OPEN_CPU_H
#define VXD_GPU_HASH_OPEN_CPU_H

#include "gpu/hash/hash_cpu.h"

#define VXD_OPEN_LINE 4

/* Positions of a batch, and entries of a rebuild, that are processed at once; this
 * bounds the scratch. The chunk of a rebuild is small because every erase reserves
 * scratch for a rebuild. */
#define VXD_OPEN_CHUNK ((size_t)1 << 21)
#define VXD_OPEN_REBUILD_CHUNK ((size_t)1 << 18)
/* Positions that one task numbers; batch.piece_new has one value for each such piece. */
#define VXD_OPEN_PIECE ((size_t)8192)

/* How many items before its use a cache line is prefetched. */
#define VXD_OPEN_PREFETCH ((size_t)32)

/* In a slot's entry: no entry (empty and erased slots), and the flag of a slot that a
 * new key of the running batch has taken, with the position of that key in the lower
 * bits. */
#define VXD_OPEN_NONE UINT32_MAX
#define VXD_OPEN_PENDING ((uint32_t)1 << 31)

struct vxd_open_slot {
    uint64_t tag;
    uint32_t entry;
    uint32_t unused;
};

struct vxd_open_table {
    struct vxd_open_slot *slots;
    uint32_t n_lines;
    struct vxd_key_form form;
    const char *keys; /* of the map's entries */
};

/* One position of a batch, stored under its region. */
struct vxd_open_item {
    uint64_t tag;
    uint32_t position;
    uint32_t slot; /* slot of the key, or one of the marks below */
};

#define VXD_OPEN_SETTLED UINT32_MAX
#define VXD_OPEN_DEFERRED (UINT32_MAX - 1)

/* What a thread counts in one region. */
struct vxd_open_region {
    uint32_t begin; /* range of its items */
    uint32_t end;
    uint32_t n_deferred;
    uint32_t n_new;
    uint32_t n_marks_used; /* erased slots taken */
    bool failed;           /* the table is full, or a key occurs twice */
};

/* One chunk of a batch, and how it is divided into regions. */
struct vxd_open_batch {
    struct vxd_pool *pool;
    const struct vxd_hashmap *map;
    struct vxd_open_table table;
    const char *keys;     /* row of position 0 */
    const uint32_t *live; /* rebuild: positions whose bit is set, from bit 0; else NULL */
    size_t n;
    int region_shift; /* region of a line = line >> shift */
    uint32_t n_regions;
    uint32_t n_free;       /* insert: how many new keys still fit */
    uint32_t first_number; /* rebuild: entry of position 0 */

    /* Scratch. */
    struct vxd_open_item *items;
    struct vxd_open_region *regions;
    uint32_t *counts;    /* for each piece of positions: n_regions counts */
    uint32_t *piece_new; /* for each piece: new keys, then new keys before it */
    uint32_t *numbers;   /* for each position: the entry */
    uint8_t *flags;      /* for each position: is new, was erased */
};

/* Processes the items of one region. With `alone` it processes the deferred ones,
 * while no other thread runs. */
typedef void (*vxd_open_walk_fn)(struct vxd_open_batch *batch,
                                 struct vxd_open_region *region, bool alone);

/* Where the probe sequence of a key begins. */
struct vxd_open_walk {
    uint32_t line;
    uint32_t start;
};

static inline uint32_t vxd_open_n_lines(size_t capacity)
{
    return capacity < 2 ? 1 : (uint32_t)((capacity + 1) / 2);
}

static inline struct vxd_open_walk vxd_open_home(const struct vxd_open_table *table,
                                                 uint64_t tag)
{
    uint64_t hash = vxd_mix64(tag);

    return (struct vxd_open_walk){(uint32_t)((hash >> 32) * table->n_lines >> 32),
                                  (uint32_t)hash % VXD_OPEN_LINE};
}

static inline size_t vxd_open_place(uint32_t line, uint32_t start, uint32_t step)
{
    return (size_t)line * VXD_OPEN_LINE + (start + step) % VXD_OPEN_LINE;
}

/* As vxd_key_tag, with the loops unrolled for the usual keys. */
static inline uint64_t vxd_open_tag(const struct vxd_key_form *form, const char *row)
{
    if (form->n_components == 3 && form->component_bytes == 4) {
        int32_t key[3];
        uint64_t x;
        uint64_t y;
        uint64_t z;

        memcpy(key, row, sizeof key);
        x = (uint64_t)(int64_t)key[0] + (1u << 20);
        y = (uint64_t)(int64_t)key[1] + (1u << 20);
        z = (uint64_t)(int64_t)key[2] + (1u << 20);
        if ((x | y | z) >> 21 == 0) {
            return x << 42 | y << 21 | z;
        }
    }
    return vxd_key_tag(form, row);
}

struct vxd_open_table vxd_open_table_of(const struct vxd_hashmap *map);

/* Returns the slot of a key that is in the map, or SIZE_MAX; *n_probes (may be NULL)
 * counts slots. No thread may change slots meanwhile. */
size_t vxd_open_find(const struct vxd_open_table *table, uint64_t tag, const char *row,
                     uint32_t *n_probes);

/* Bytes of scratch for batches of n positions. */
size_t vxd_open_batch_bytes(size_t n, size_t capacity);

static inline size_t vxd_open_rebuild_bytes(size_t capacity)
{
    return vxd_open_batch_bytes(
        capacity < VXD_OPEN_REBUILD_CHUNK ? capacity : VXD_OPEN_REBUILD_CHUNK, capacity);
}

/* Sorts the positions of a chunk by their regions. */
void vxd_open_batch_start(struct vxd_open_batch *batch, struct vxd_pool *pool,
                          const struct vxd_hashmap *map, const char *keys,
                          const uint32_t *live, size_t n, void *scratch);

/* What a search from the home slot found. */
enum vxd_open_outcome {
    VXD_OPEN_FOUND,  /* *place is the key's slot */
    VXD_OPEN_ABSENT, /* *place is the slot to take, SIZE_MAX where the table is full */
    /* the probe sequence would leave the region; the caller defers the item */
    VXD_OPEN_OUT_OF_REGION
};
enum vxd_open_outcome vxd_open_seek(const struct vxd_open_batch *batch,
                                    const struct vxd_open_region *region,
                                    const struct vxd_open_item *item, bool alone,
                                    size_t *place);

/* Prefetches the cache line in which an item's probe sequence begins. */
static inline void vxd_open_prefetch_home(const struct vxd_open_batch *batch,
                                          const struct vxd_open_item *item)
{
    if (item->slot < VXD_OPEN_DEFERRED) {
        __builtin_prefetch(&batch->table.slots[item->slot], 1);
    }
}

/* Processes all regions in parallel, then the deferred items. */
void vxd_open_batch_walk(struct vxd_open_batch *batch, vxd_open_walk_fn walk);

/* Sums over the regions of the chunk. */
struct vxd_open_region vxd_open_batch_sum(const struct vxd_open_batch *batch);

/* The loop behind the rebuild, for jobs that leave erased marks: `chunk` entries (a multiple of
 * 32) at a time, scratch of vxd_open_batch_bytes(chunk, capacity).
 * errors  DATA_LOSS  a key twice */
enum vxd_status vxd_open_rebuild_run(struct vxd_pool *pool, const struct vxd_hashmap *map,
                                     size_t chunk, void *scratch, struct vxd_err *err);

/* Whether a quarter of the slots are erased marks, which makes probe sequences long. */
static inline bool vxd_open_needs_rebuild(const struct vxd_hashmap *map)
{
    return vxd_counters_of(map)->n_erased_marks >
           (size_t)vxd_open_n_lines(map->capacity) * VXD_OPEN_LINE / 4;
}

/* Empties all slots; called by jobs. */
void vxd_open_clear_run(struct vxd_pool *pool, const struct vxd_hashmap *map);

enum vxd_status vxd_open_rebuild_cpu(struct vxd_queue *queue, struct vxd_hashmap *map,
                                     void *scratch, size_t scratch_bytes,
                                     struct vxd_err *err);
enum vxd_status vxd_open_insert_cpu(struct vxd_queue *queue, struct vxd_hashmap *map,
                                    const struct vxd_hashmap_insert_args *args,
                                    void *scratch, size_t scratch_bytes,
                                    struct vxd_err *err);
enum vxd_status vxd_open_erase_cpu(struct vxd_queue *queue, struct vxd_hashmap *map,
                                   const void *keys, size_t n, enum vxd_hash_order order,
                                   uint8_t *erased, void *scratch, size_t scratch_bytes,
                                   struct vxd_err *err);

enum vxd_status vxd_open_find_cpu(struct vxd_queue *queue, const struct vxd_hashmap *map,
                                  const void *keys, size_t n, int32_t *indices,
                                  uint8_t *found, struct vxd_err *err);
enum vxd_status vxd_open_neighbours_cpu(struct vxd_queue *queue,
                                        const struct vxd_hashmap *map, const void *keys,
                                        size_t n, enum vxd_hash_neighbours kind,
                                        int32_t *indices, struct vxd_err *err);
enum vxd_status vxd_open_probes_cpu(struct vxd_queue *queue,
                                    const struct vxd_hashmap *map, uint64_t *out,
                                    struct vxd_err *err);
enum vxd_status vxd_open_clear_cpu(struct vxd_queue *queue, struct vxd_hashmap *map,
                                   struct vxd_err *err);

#endif
