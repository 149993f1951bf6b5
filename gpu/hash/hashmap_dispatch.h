// SPDX-License-Identifier: Apache-2.0
/* What the public entries of hash maps share: the twins by backend, and the pieces that maps
 * are made of. Host code; every function but the twins is in hashmap.c. */
#ifndef VXD_GPU_HASH_HASHMAP_DISPATCH_H
#define VXD_GPU_HASH_HASHMAP_DISPATCH_H

#include "gpu/hash/hash_internal.h"

#define VXD_HASHMAP_MAX_KEYS ((size_t)INT32_MAX)

/* Field names of the spec in err.field. */
enum vxd_status vxd_hashmap_check_spec(const struct vxd_hashmap_spec *spec,
                                       struct vxd_err *err);

/* n is at most VXD_HASHMAP_MAX_KEYS, and an array that n needs is there. */
enum vxd_status vxd_hashmap_check_array(size_t n, const void *array, const char *field,
                                        struct vxd_err *err);

/* Makes the heap from the live bits; takes and gives back scratch. */
enum vxd_status vxd_hashmap_rebuild_heap(struct vxd_queue *queue, struct vxd_hashmap *map,
                                         struct vxd_err *err);

/* Makes the index from the keys of the living entries; takes and gives back scratch. */
enum vxd_status vxd_hashmap_rebuild_index(struct vxd_queue *queue,
                                          struct vxd_hashmap *map, struct vxd_err *err);

/* How many of n bytes at `flags` (device memory, 0 or 1) are 1. Blocking. */
enum vxd_status vxd_hashmap_count_flags(struct vxd_queue *queue, const uint8_t *flags,
                                        size_t n, size_t *count, struct vxd_err *err);

/* The exact number of entries, as vxd_hashmap_size, for maps that stay as they are. */
enum vxd_status vxd_hashmap_read_size(struct vxd_queue *queue,
                                      const struct vxd_hashmap *map, size_t *n_entries,
                                      struct vxd_err *err);

#endif
