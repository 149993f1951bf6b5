// SPDX-License-Identifier: Apache-2.0
/* What the files of gpu/hash share: the map behind the opaque name, and the functions
 * that an index (open addressing, or one that the context was given) has on a backend
 * (CPU, CUDA). The public entries in hashmap*.c check every argument, keep the size
 * bound, allocate scratch and dispatch; the backends only compute. */
#ifndef VXD_GPU_HASH_HASH_INTERNAL_H
#define VXD_GPU_HASH_HASH_INTERNAL_H

#include "gpu/core/core_cpu.h"
#include "gpu/hash/hashmap_math.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Counters in device memory, which operations update without the host reading them. */
struct vxd_hash_counters {
    uint32_t n_live;
    /* open addressing: slots that hold VXD_TAG_ERASED; slab lists: emptied places */
    uint32_t n_erased_marks;
    uint32_t n_slabs;    /* slab lists: overflow slabs in use */
    uint32_t scratch[5]; /* belongs to the running operation; zero between operations */
};

struct vxd_hash_ops;

struct vxd_hashmap {
    struct vxd_context *context;
    struct vxd_hashmap_spec spec;
    struct vxd_key_form form;
    size_t row_bytes[VXD_HASHMAP_MAX_VALUES];
    const struct vxd_hash_ops *ops;
    size_t capacity;
    size_t size_bound;
    uint64_t erase_epoch;
    enum vxd_status (*check)(void *user, struct vxd_err *err); /* of growths, or NULL */
    void *check_user;
    struct vxd_buffer counters; /* struct vxd_hash_counters */
    struct vxd_buffer keys;     /* capacity rows */
    struct vxd_buffer values[VXD_HASHMAP_MAX_VALUES];
    /* uint32 words, one bit an entry, set where it lives; (capacity + 31) / 32 of
     * them. */
    struct vxd_buffer live;
    /* The index heap (ASH, section 4.3): uint32 a place. Between operations
     * heap[n_live .. capacity) are the free numbers, ascending; the values before them
     * have no meaning. */
    struct vxd_buffer heap;
    struct vxd_buffer index; /* slots or slabs, in the layout of ops */
};

/* The operation that scratch is sized for. */
enum vxd_hash_call {
    VXD_CALL_INSERT,
    VXD_CALL_FIND,
    VXD_CALL_ERASE,
    VXD_CALL_REBUILD
};

/* One index on one backend: vxd_hash_open_cpu, vxd_hash_open_cuda, or one that the
 * context was given. The caller has checked the arguments, n > 0, and scratch is
 * device memory of at least scratch_bytes(...). */
struct vxd_hash_ops {
    /* Device bytes of the index for a capacity; 0 on overflow. */
    size_t (*index_bytes)(const struct vxd_key_form *form, size_t capacity);
    size_t (*scratch_bytes)(const struct vxd_queue *queue, const struct vxd_hashmap *map,
                            enum vxd_hash_call call, enum vxd_hash_order order, size_t n);
    /* Empties the index (map->index). Buffers and counters other than the index's own
     * are not touched. */
    enum vxd_status (*clear)(struct vxd_queue *queue, struct vxd_hashmap *map,
                             struct vxd_err *err);
    /* Empties the index and fills it from the keys of the living entries. Where two
     * entries have the same key (a damaged image), the queue's error becomes
     * DATA_LOSS. */
    enum vxd_status (*rebuild)(struct vxd_queue *queue, struct vxd_hashmap *map,
                               void *scratch, size_t scratch_bytes, struct vxd_err *err);
    /* All of vxd_hashmap_insert: index, heap, live bits, keys, values, counters.
     * max_new is the number itself (0 = none); n_live never exceeds map->size_bound +
     * max_new. */
    enum vxd_status (*insert)(struct vxd_queue *queue, struct vxd_hashmap *map,
                              const struct vxd_hashmap_insert_args *args, void *scratch,
                              size_t scratch_bytes, struct vxd_err *err);
    enum vxd_status (*find)(struct vxd_queue *queue, const struct vxd_hashmap *map,
                            const void *keys, size_t n, int32_t *indices, uint8_t *found,
                            struct vxd_err *err);
    /* All of vxd_hashmap_erase, including the rebuild of an index with too many erased
     * marks. */
    enum vxd_status (*erase)(struct vxd_queue *queue, struct vxd_hashmap *map,
                             const void *keys, size_t n, enum vxd_hash_order order,
                             uint8_t *erased, void *scratch, size_t scratch_bytes,
                             struct vxd_err *err);
    enum vxd_status (*neighbours)(struct vxd_queue *queue, const struct vxd_hashmap *map,
                                  const void *keys, size_t n,
                                  enum vxd_hash_neighbours kind, int32_t *indices,
                                  struct vxd_err *err);
    /* probes: VXD_PROBE_BINS + 2 uint64 in device memory, which the callee zeroes: the
     * bins, the sum of all probes, and the largest number of probes. */
    enum vxd_status (*probes)(struct vxd_queue *queue, const struct vxd_hashmap *map,
                              uint64_t *probes, struct vxd_err *err);
    /* Number of slots (open addressing), or of places in all slabs, overflow slabs
     * included (slab lists). */
    size_t (*n_places)(const struct vxd_hashmap *map, size_t capacity);
};

extern const struct vxd_hash_ops vxd_hash_open_cpu;
#if defined(VXD_WITH_CUDA)
extern const struct vxd_hash_ops vxd_hash_open_cuda;
#endif

/* Indexes that a context was given when it was created (vxd_context_extras). */
struct vxd_hash_indexes {
    struct {
        const struct vxd_hash_ops *cpu;  /* NULL: this index was not given */
        const struct vxd_hash_ops *cuda; /* NULL in a build without CUDA */
    } of[VXD_HASH_N_INDEXES];
};

/* What every index uses, once for each backend (entries_cpu.c, entries.cu). */

/* Rebuilds heap[n_live .. capacity) from the live bits. */
size_t vxd_hash_heap_scratch_bytes_cpu(const struct vxd_queue *queue, size_t capacity);
size_t vxd_hash_heap_scratch_bytes_cuda(const struct vxd_queue *queue, size_t capacity);
enum vxd_status vxd_hash_heap_rebuild_cpu(struct vxd_queue *queue,
                                          struct vxd_hashmap *map, void *scratch,
                                          size_t scratch_bytes, struct vxd_err *err);
enum vxd_status vxd_hash_heap_rebuild_cuda(struct vxd_queue *queue,
                                           struct vxd_hashmap *map, void *scratch,
                                           size_t scratch_bytes, struct vxd_err *err);

/* Frees entries. `indices` holds n values, numbers that each occur at most once and
 * VXD_NO_ENTRY. Clears their live bits and rows and reduces n_live; the caller
 * rebuilds the heap afterwards. */
enum vxd_status vxd_hash_entries_free_cpu(struct vxd_queue *queue,
                                          struct vxd_hashmap *map, const int32_t *indices,
                                          size_t n, struct vxd_err *err);
enum vxd_status vxd_hash_entries_free_cuda(struct vxd_queue *queue,
                                           struct vxd_hashmap *map,
                                           const int32_t *indices, size_t n,
                                           struct vxd_err *err);

/* Lists the numbers of the living entries, ascending, and counts them. Scratch as for
 * the heap. */
enum vxd_status vxd_hash_active_cpu(struct vxd_queue *queue,
                                    const struct vxd_hashmap *map, int32_t *indices,
                                    uint32_t *n_entries, void *scratch,
                                    size_t scratch_bytes, struct vxd_err *err);
enum vxd_status vxd_hash_active_cuda(struct vxd_queue *queue,
                                     const struct vxd_hashmap *map, int32_t *indices,
                                     uint32_t *n_entries, void *scratch,
                                     size_t scratch_bytes, struct vxd_err *err);

/* As vxd_hashmap_gather. */
enum vxd_status vxd_hash_gather_cpu(struct vxd_queue *queue,
                                    const struct vxd_hashmap *map, const int32_t *indices,
                                    size_t n, void *keys, void *const *values,
                                    uint8_t *valid, struct vxd_err *err);
enum vxd_status vxd_hash_gather_cuda(struct vxd_queue *queue,
                                     const struct vxd_hashmap *map,
                                     const int32_t *indices, size_t n, void *keys,
                                     void *const *values, uint8_t *valid,
                                     struct vxd_err *err);

/* Writes n entries of an image into empty buffers: keys and values (device memory,
 * rows in the order of `indices`), live bits, n_live. The caller makes the heap and
 * the index afterwards. The host has checked that the numbers are below the capacity
 * and ascend. */
enum vxd_status vxd_hash_scatter_cpu(struct vxd_queue *queue, struct vxd_hashmap *map,
                                     const int32_t *indices, size_t n, const void *keys,
                                     const void *const *values, struct vxd_err *err);
enum vxd_status vxd_hash_scatter_cuda(struct vxd_queue *queue, struct vxd_hashmap *map,
                                      const int32_t *indices, size_t n, const void *keys,
                                      const void *const *values, struct vxd_err *err);

/* As vxd_hashmap_update. */
size_t vxd_hash_update_scratch_bytes_cpu(const struct vxd_queue *queue,
                                         const struct vxd_hashmap *map,
                                         const struct vxd_hashmap_update_args *args);
size_t vxd_hash_update_scratch_bytes_cuda(const struct vxd_queue *queue,
                                          const struct vxd_hashmap *map,
                                          const struct vxd_hashmap_update_args *args);
enum vxd_status vxd_hash_update_cpu(struct vxd_queue *queue, struct vxd_hashmap *map,
                                    const struct vxd_hashmap_update_args *args,
                                    void *scratch, size_t scratch_bytes,
                                    struct vxd_err *err);
enum vxd_status vxd_hash_update_cuda(struct vxd_queue *queue, struct vxd_hashmap *map,
                                     const struct vxd_hashmap_update_args *args,
                                     void *scratch, size_t scratch_bytes,
                                     struct vxd_err *err);

/* What the public entries of hash maps share; host code, in hashmap.c and
 * hashmap_ops.c. */

#define VXD_HASHMAP_MAX_KEYS ((size_t)INT32_MAX)

/* Checks a spec; err.field names the field of the spec. */
enum vxd_status vxd_hashmap_check_spec(const struct vxd_hashmap_spec *spec,
                                       struct vxd_err *err);

/* Checks that n is at most VXD_HASHMAP_MAX_KEYS and that the array is there if n > 0. */
enum vxd_status vxd_hashmap_check_array(size_t n, const void *array, const char *field,
                                        struct vxd_err *err);

/* Makes the heap from the live bits; allocates and frees its scratch. */
enum vxd_status vxd_hashmap_rebuild_heap(struct vxd_queue *queue, struct vxd_hashmap *map,
                                         struct vxd_err *err);

/* Makes the index from the keys of the living entries; allocates and frees its
 * scratch. */
enum vxd_status vxd_hashmap_rebuild_index(struct vxd_queue *queue,
                                          struct vxd_hashmap *map, struct vxd_err *err);

/* How many of n bytes at `flags` (device memory, 0 or 1) are 1. Blocking. */
enum vxd_status vxd_hashmap_count_flags(struct vxd_queue *queue, const uint8_t *flags,
                                        size_t n, size_t *count, struct vxd_err *err);

/* The exact number of entries, as vxd_hashmap_size gives it, for a map that stays
 * constant. */
enum vxd_status vxd_hashmap_read_size(struct vxd_queue *queue,
                                      const struct vxd_hashmap *map, size_t *n_entries,
                                      struct vxd_err *err);

#ifdef __cplusplus
}
#endif
#endif
