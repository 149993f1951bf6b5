// SPDX-License-Identifier: Apache-2.0
/* Hash maps and sets from integer vectors to rows of typed arrays (ASH), stored as structures
 * of arrays: operations take and return whole arrays and name entries by index.
 *
 * A map is an index (keys to entry numbers) over buffers (each entry has a row in every array).
 * The number of an entry, 0 to capacity - 1, never changes while the entry lives, through growth
 * too. Numbers of erased entries are used again. A set is a map without value arrays. Rows of
 * entries that do not live are all zero bytes, so an entry that was only activated starts as
 * zeros.
 *
 * Queues. One queue at a time uses a map. Before another queue of the context uses it (even to
 * read it while the first one writes), the caller waits for the first. Every operation is
 * asynchronous and allocates nothing that outlives it, except those that say "blocking" or
 * "grows". Arrays are device memory and are borrowed until the wait.
 *
 * Keys are rows of n_components integers. A key whose components fit the packed form (three
 * components: 21 bits signed each; see vxd_hashmap_key_bits) takes the fast path. Other keys
 * give the same results, only slower. No component ever wraps around. */
#ifndef VXD_GPU_HASH_HASH_H
#define VXD_GPU_HASH_HASH_H

#include "gpu/core/core.h"

#ifdef __cplusplus
extern "C" {
#endif

#define VXD_HASHMAP_MAX_COMPONENTS 8
#define VXD_HASHMAP_MAX_VALUES 16
#define VXD_HASHMAP_MAX_ROW_BYTES 65536
#define VXD_HASHMAP_MAX_CAPACITY ((size_t)1 << 30)

/* Stands for "no entry" in arrays of entry numbers. */
#define VXD_NO_ENTRY (-1)

/* As max_new of an insert: every key is already in the map (0 says that all may be
 * new). */
#define VXD_NONE_NEW SIZE_MAX

struct vxd_hashmap;

/* How keys are found. This is an engine and benchmark choice: results are the same.
 * OPEN  open addressing, 16-byte slots, linear probing within and then across sectors
 * SLAB  slab lists, warp-cooperative on a GPU, that hold entry numbers as delegates of the
 *       keys (ASH, section 4.4). Only contexts that were given this index when they were
 *       created have it (struct vxd_context_extras) */
enum vxd_hash_index {
    VXD_HASH_OPEN = 0,
    VXD_HASH_SLAB = 1,
    VXD_HASH_N_INDEXES = 2
};

/* Which of several equal keys of one batch is inserted, and which numbers new entries get.
 * FIRST  the first by position is inserted; the k-th new key by position takes the k-th lowest
 *        free number. The result is the same on every backend and from run to run
 * ANY    any one of them is inserted and takes any free number: the fast path for internal use */
enum vxd_hash_order {
    VXD_HASH_FIRST = 0,
    VXD_HASH_ANY = 1
};

/* One value array: each entry's row is n_elements of dtype. */
struct vxd_hashmap_array {
    enum vxd_dtype dtype;
    uint32_t n_elements; /* 1 or more, the row at most VXD_HASHMAP_MAX_ROW_BYTES */
};

struct vxd_hashmap_spec {
    enum vxd_dtype key_dtype; /* VXD_INT16, VXD_INT32, VXD_INT64 */
    int n_components;         /* 1 to VXD_HASHMAP_MAX_COMPONENTS */
    int n_values;             /* 0 (a set) to VXD_HASHMAP_MAX_VALUES */
    struct vxd_hashmap_array values[VXD_HASHMAP_MAX_VALUES];
    enum vxd_hash_index index;
    size_t capacity; /* entries to reserve at once; 0 is fine */
    /* bytes of device memory that the map may ever take, the copies made by growth
     * included; 0 = what the context's budget allows */
    size_t max_bytes;
    /* How much a map grows by at least, of its capacity, 0 to 100; 0 = 50. Less of it is
     * unused, and it is copied more often. */
    int growth_percent;
};

/* Device bytes that a map of this spec takes at its initial capacity; 0 for a spec
 * that vxd_hashmap_create would refuse. */
size_t vxd_hashmap_bytes(const struct vxd_context *context,
                         const struct vxd_hashmap_spec *spec);

/* Bits of each of the n components in the packed form: 63 for one component, 21 each
 * for three, and for four 12 (a batch number, for example) and 17 each. A key is
 * packed when every component c has -2^(bits - 1) <= c < 2^(bits - 1). */
void vxd_hashmap_key_bits(int n_components, int bits[VXD_HASHMAP_MAX_COMPONENTS]);

/* errors  UNIMPLEMENTED       the context was not given spec.index
 *         INVALID_ARGUMENT    a spec outside the ranges above; err.field "key_dtype",
 *                             "n_components", "values[2].n_elements", "capacity", ...
 *         RESOURCE_EXHAUSTED  over max_bytes or the context's budget
 * owner   the caller. Asynchronous: usable at once on this queue */
enum vxd_status vxd_hashmap_create(struct vxd_queue *queue,
                                   const struct vxd_hashmap_spec *spec,
                                   struct vxd_hashmap **out, struct vxd_err *err);

/* In queue order; NULL is fine. */
void vxd_hashmap_destroy(struct vxd_queue *queue, struct vxd_hashmap *map);

/* What the host knows without waiting. */
const struct vxd_hashmap_spec *vxd_hashmap_get_spec(const struct vxd_hashmap *map);
size_t vxd_hashmap_capacity(const struct vxd_hashmap *map);
/* Device memory that the map takes at present. */
size_t vxd_hashmap_n_bytes(const struct vxd_hashmap *map);
/* Changes spec.max_bytes, for a caller that divides one budget among several maps.
 * Memory that the map already has is not given up. */
void vxd_hashmap_set_max_bytes(struct vxd_hashmap *map, size_t max_bytes);
/* From now on the map grows by at least this part of its capacity, 0 to 100; 0 = 50. */
void vxd_hashmap_set_growth(struct vxd_hashmap *map, int percent);
/* From now on a growth asks between pieces of its copies, of some milliseconds on a CPU, whether it is
 * to go on: an error of `check` ends it, and what called for it, with the map unchanged.
 * NULL = none. */
void vxd_hashmap_set_check(struct vxd_hashmap *map,
                           enum vxd_status (*check)(void *user, struct vxd_err *err),
                           void *user);
/* The largest number of entries that there can be once everything queued has run. */
size_t vxd_hashmap_size_bound(const struct vxd_hashmap *map);
/* Increases with every clear and with every erase of one key or more. Entry numbers
 * that a caller kept from before may belong to other entries since. */
uint64_t vxd_hashmap_erase_epoch(const struct vxd_hashmap *map);

/* Exact number of entries; the bound becomes exact too. Blocking: waits for the queue.
 * errors  what the queue's work reported */
enum vxd_status vxd_hashmap_size(struct vxd_queue *queue, struct vxd_hashmap *map,
                                 size_t *n_entries, struct vxd_err *err);

/* Reserves capacity for at least `capacity` entries (grows; never shrinks). Entries keep their
 * numbers. While it runs the old and new buffers exist side by side.
 * errors  INVALID_ARGUMENT    above VXD_HASHMAP_MAX_CAPACITY
 *         RESOURCE_EXHAUSTED  over max_bytes or the budget; the map is unchanged */
enum vxd_status vxd_hashmap_reserve(struct vxd_queue *queue, struct vxd_hashmap *map,
                                    size_t capacity, struct vxd_err *err);

/* Reserves capacity for inserting these n keys. While the bound allows it, returns at once with
 * *n_new = n. Otherwise counts the distinct new keys (*n_new is exact then) and grows only if
 * those do not fit, to at least 1.5 times the capacity: a batch of duplicates never grows a map.
 * Blocking; grows.
 *
 * in      keys   n rows, device memory
 * out     n_new  to pass to vxd_hashmap_insert as max_new; VXD_NONE_NEW where the count
 *                found none
 * errors  RESOURCE_EXHAUSTED  over max_bytes or the budget, or no scratch for the count; the
 *                             map is unchanged */
enum vxd_status vxd_hashmap_prepare(struct vxd_queue *queue, struct vxd_hashmap *map,
                                    const void *keys, size_t n, size_t *n_new,
                                    struct vxd_err *err);

struct vxd_hashmap_insert_args {
    const void *keys; /* n rows */
    size_t n;         /* at most 2^31 - 1 */
    /* n_values arrays of n rows each, written to the entries that this call makes.
     * NULL activates entries: the new rows stay zero. */
    const void *const *values;
    enum vxd_hash_order order;
    /* upper bound of the number of new keys, from vxd_hashmap_prepare; 0 = n,
     * VXD_NONE_NEW = none */
    size_t max_new;
    int32_t *indices; /* out: n, the entry of each key; may be NULL */
    /* out: n, 1 for exactly one of equal new keys (FIRST: the first by position), else
     * 0; may be NULL */
    uint8_t *is_new;
};

/* Inserts the keys that are not in the map. Entries that are in it keep their values.
 *
 * errors  INVALID_ARGUMENT    n, order, missing arrays
 *         RESOURCE_EXHAUSTED  the bound plus max_new is above the capacity (prepare first), or
 *                             no scratch; the map is unchanged
 *         INTERNAL            by the wait: there were more new keys than max_new said, and the
 *                             size bound would have been exceeded. FIRST leaves the map
 *                             unchanged; ANY has inserted what the bound allowed
 * source  ASH, sections 4.3.1, 4.4.2 and 5.1 (activate) */
enum vxd_status vxd_hashmap_insert(struct vxd_queue *queue, struct vxd_hashmap *map,
                                   const struct vxd_hashmap_insert_args *args,
                                   struct vxd_err *err);

/* out     indices  n, entry of each key or VXD_NO_ENTRY; may be NULL
 *         found    n, 1 or 0; may be NULL */
enum vxd_status vxd_hashmap_find(struct vxd_queue *queue, const struct vxd_hashmap *map,
                                 const void *keys, size_t n, int32_t *indices,
                                 uint8_t *found, struct vxd_err *err);

/* Erases keys. Their rows become zero and their numbers free.
 *
 * in      order   FIRST: of equal keys the first by position is the one reported
 * out     erased  n, 1 for exactly one of equal keys that were in the map; may be NULL
 * errors  RESOURCE_EXHAUSTED  no scratch; the map is unchanged
 * Probe lengths stay bounded through any number of inserts and erases: the index is rebuilt on
 * the device when a quarter of its slots are erased marks. */
enum vxd_status vxd_hashmap_erase(struct vxd_queue *queue, struct vxd_hashmap *map,
                                  const void *keys, size_t n, enum vxd_hash_order order,
                                  uint8_t *erased, struct vxd_err *err);

/* Erases all entries; the capacity stays.
 * errors  RESOURCE_EXHAUSTED  no scratch: the map is unchanged; or no memory to queue the
 *                             work: the caller clears the map again, or destroys it */
enum vxd_status vxd_hashmap_clear(struct vxd_queue *queue, struct vxd_hashmap *map,
                                  struct vxd_err *err);

/* out     indices    numbers of all entries, ascending; indices_capacity of them fit, which is
 *                    at least the bound
 *         n_entries  one uint32, device memory */
enum vxd_status vxd_hashmap_active(struct vxd_queue *queue, const struct vxd_hashmap *map,
                                   int32_t *indices, size_t indices_capacity,
                                   uint32_t *n_entries, struct vxd_err *err);

/* The map's own buffers of capacity rows each, in device memory, borrowed until the
 * map grows or is destroyed. The caller may write value rows in place, but not keys. */
const void *vxd_hashmap_keys(const struct vxd_hashmap *map);
void *vxd_hashmap_values(const struct vxd_hashmap *map, int array);

/* Copies rows out by number.
 *
 * in      indices  n; a number that names no living entry gives zero rows
 * out     keys     n rows; may be NULL
 *         values   n_values pointers, each to n rows or NULL; may be NULL
 *         valid    n, 1 where the entry lives; may be NULL */
enum vxd_status vxd_hashmap_gather(struct vxd_queue *queue, const struct vxd_hashmap *map,
                                   const int32_t *indices, size_t n, void *keys,
                                   void *const *values, uint8_t *valid,
                                   struct vxd_err *err);

enum vxd_hash_combine {
    VXD_COMBINE_SET = 0, /* the last row by position stays */
    VXD_COMBINE_ADD = 1,
    VXD_COMBINE_MIN = 2,
    VXD_COMBINE_MAX = 3
};

struct vxd_hashmap_update_args {
    const int32_t *indices; /* n entry numbers; numbers that name no entry are skipped */
    size_t n;
    int array;            /* which value array */
    const void *rows;     /* n rows of the array's n_elements */
    enum vxd_dtype dtype; /* of rows: the array's own, or UINT32 into UINT64 and FLOAT32
                           * into FLOAT64 */
    enum vxd_hash_combine combine;
    uint8_t *updated; /* out: n, 1 where the entry lives; may be NULL */
};

/* Changes value rows in place, by number (find gives the numbers of keys).
 *
 * The rows of one entry are combined in position order and then with the old value. Integers:
 * the exact sum, clamped to the dtype's range once at the end. Floats: rows are summed as
 * vxd_voxelize sums points (blocks of 1024, first to last, then the block sums in order;
 * float64 likewise), then added to the old value, and each addition rounds once; float16 and
 * bfloat16 are summed in float32 and rounded once, to nearest even. min and max take the new
 * row's value when it is smaller (larger), so a NaN never replaces a value. A sum that is NaN is
 * the quiet NaN 0x7fc00000 (0x7ff8000000000000, 0x7e00, 0x7fc0).
 * The result is equal on every backend, bit for bit.
 *
 * errors  INVALID_ARGUMENT    array, dtype or combine unknown
 *         RESOURCE_EXHAUSTED  no scratch; nothing was written */
enum vxd_status vxd_hashmap_update(struct vxd_queue *queue, struct vxd_hashmap *map,
                                   const struct vxd_hashmap_update_args *args,
                                   struct vxd_err *err);

/* Which neighbours of a key, in the order of the output columns:
 * 6   -x +x -y +y -z +z
 * 8   x, y, z each +0, +1; x slowest, z fastest: the corners of a cell
 * 27  x, y, z each -1, 0, +1; x slowest, z fastest; column 13 is the key itself */
enum vxd_hash_neighbours {
    VXD_NEIGHBOURS_6 = 6,
    VXD_NEIGHBOURS_8 = 8,
    VXD_NEIGHBOURS_27 = 27
};

/* Finds the neighbours of n keys of three components, or of four, of which the first (a batch
 * number) stays the same.
 *
 * out     indices  n x kind: entry or VXD_NO_ENTRY (also outside the dtype's range)
 * errors  INVALID_ARGUMENT  another number of components, an unknown kind, n * kind above
 *                           2^31 - 1 */
enum vxd_status vxd_hashmap_neighbours(struct vxd_queue *queue,
                                       const struct vxd_hashmap *map, const void *keys,
                                       size_t n, enum vxd_hash_neighbours kind,
                                       int32_t *indices, struct vxd_err *err);

/* Set operations by key, into a new map with the spec of a: entries that are in a or b, in both,
 * or in a but not in b. The keys and value arrays of a and b must agree, and so must their
 * contexts. An entry that both have takes its rows from a. Numbers run 0, 1, ... over a's
 * entries in ascending number, then b's. Blocking; neither map changes.
 * errors  INVALID_ARGUMENT    the specs differ
 *         RESOURCE_EXHAUSTED */
enum vxd_status vxd_hashmap_union(struct vxd_queue *queue, const struct vxd_hashmap *a,
                                  const struct vxd_hashmap *b, struct vxd_hashmap **out,
                                  struct vxd_err *err);
enum vxd_status vxd_hashmap_intersection(struct vxd_queue *queue,
                                         const struct vxd_hashmap *a,
                                         const struct vxd_hashmap *b,
                                         struct vxd_hashmap **out, struct vxd_err *err);
enum vxd_status vxd_hashmap_difference(struct vxd_queue *queue,
                                       const struct vxd_hashmap *a,
                                       const struct vxd_hashmap *b,
                                       struct vxd_hashmap **out, struct vxd_err *err);

#define VXD_PROBE_BINS 16

struct vxd_hashmap_stats {
    size_t n_entries;
    size_t capacity;
    size_t n_bytes;       /* device memory of the whole map */
    size_t index_bytes;   /* the bytes that are neither keys nor values */
    double load;          /* entries a slot (open), entries a slab place (slab) */
    double bytes_per_key; /* index_bytes / n_entries; 0 without entries */
    double mean_probes;   /* slots (open) or slabs (slab) read to find an entry */
    uint32_t max_probes;
    /* entries by probes - 1; the last bin takes the rest */
    uint64_t probes[VXD_PROBE_BINS];
};

/* Blocking. */
enum vxd_status vxd_hashmap_get_stats(struct vxd_queue *queue,
                                      const struct vxd_hashmap *map,
                                      struct vxd_hashmap_stats *out, struct vxd_err *err);

/* A map in host memory: all that a file or another device needs to make the same map
 * with the same entry numbers. The arrays count against the host budget of `context`. */
struct vxd_hashmap_image {
    struct vxd_context *context;
    struct vxd_hashmap_spec spec; /* with the capacity at the time of the export */
    uint64_t erase_epoch;
    size_t n_entries;
    struct vxd_buffer indices; /* int32, ascending */
    struct vxd_buffer keys;    /* rows in the order of indices */
    struct vxd_buffer values[VXD_HASHMAP_MAX_VALUES];
};

/* Allocates the arrays of an image for n_entries, contents undefined, for a caller that reads a
 * file. errors  INVALID_ARGUMENT (a spec that create refuses), RESOURCE_EXHAUSTED */
enum vxd_status vxd_hashmap_image_alloc(struct vxd_context *context,
                                        const struct vxd_hashmap_spec *spec,
                                        size_t n_entries, struct vxd_hashmap_image *out,
                                        struct vxd_err *err);
void vxd_hashmap_image_free(struct vxd_hashmap_image *image);

/* Blocking. errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_hashmap_export(struct vxd_queue *queue, const struct vxd_hashmap *map,
                                   struct vxd_hashmap_image *out, struct vxd_err *err);

/* Makes the map that an image describes; the image may come from either backend. Blocking.
 * errors  INVALID_ARGUMENT    a spec that create refuses
 *         DATA_LOSS           numbers not ascending or not below the capacity, a key twice
 *         RESOURCE_EXHAUSTED */
enum vxd_status vxd_hashmap_import(struct vxd_queue *queue,
                                   const struct vxd_hashmap_image *image,
                                   struct vxd_hashmap **out, struct vxd_err *err);

/* Makes the same map with the same entry numbers on another queue's context (or the
 * same one), with the index `index`. Blocking: waits for both queues. */
enum vxd_status vxd_hashmap_copy(struct vxd_queue *from_queue,
                                 const struct vxd_hashmap *from,
                                 struct vxd_queue *to_queue, enum vxd_hash_index index,
                                 struct vxd_hashmap **out, struct vxd_err *err);

#ifdef __cplusplus
}
#endif
#endif
