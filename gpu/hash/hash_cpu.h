// SPDX-License-Identifier: Apache-2.0
/* What CPU jobs of every index share about entries. Jobs copy the map, because the
 * host may grow or destroy it before they run, and work on the buffers of the copy. */
#ifndef VXD_GPU_HASH_HASH_CPU_H
#define VXD_GPU_HASH_HASH_CPU_H

#include <string.h>

#include "gpu/core/core.h"
#include "gpu/hash/hash_internal.h"

static inline struct vxd_hash_counters *vxd_counters_of(const struct vxd_hashmap *map)
{
    return (struct vxd_hash_counters *)map->counters.ptr;
}

static inline const char *vxd_key_row(const struct vxd_hashmap *map, size_t entry)
{
    return (const char *)map->keys.ptr + entry * (size_t)map->form.row_bytes;
}

/* Whether a number names a living entry. Valid while no job changes the live bits. */
static inline bool vxd_entry_lives(const struct vxd_hashmap *map, int32_t entry)
{
    const uint32_t *live = (const uint32_t *)map->live.ptr;

    return entry >= 0 && (size_t)entry < map->capacity &&
           (live[(uint32_t)entry / 32] >> ((uint32_t)entry % 32) & 1u) != 0;
}

/* Sets or clears bits of one word that other threads may change at the same time. */
static inline void vxd_live_set(const struct vxd_hashmap *map, size_t word, uint32_t bits)
{
    (void)__atomic_fetch_or((uint32_t *)map->live.ptr + word, bits, __ATOMIC_RELAXED);
}

static inline void vxd_live_clear(const struct vxd_hashmap *map, uint32_t entry)
{
    (void)__atomic_fetch_and((uint32_t *)map->live.ptr + entry / 32,
                             ~((uint32_t)1 << entry % 32), __ATOMIC_RELAXED);
}

/* Copies the usual widths inline, because a call of memcpy would take longer than most
 * rows. */
static inline void vxd_row_copy(void *to, const void *from, size_t n_bytes)
{
    switch (n_bytes) {
    case 4:
        memcpy(to, from, 4);
        break;
    case 8:
        memcpy(to, from, 8);
        break;
    case 12:
        memcpy(to, from, 12);
        break;
    case 16:
        memcpy(to, from, 16);
        break;
    default:
        memcpy(to, from, n_bytes);
        break;
    }
}

/* Zeroes the value rows of one entry. */
static inline void vxd_rows_clear(const struct vxd_hashmap *map, size_t entry)
{
    for (int i = 0; i < map->spec.n_values; i++) {
        memset((char *)map->values[i].ptr + entry * map->row_bytes[i], 0,
               map->row_bytes[i]);
    }
}

/* The loop behind vxd_hash_heap_rebuild_cpu, for jobs that rebuild the heap as their last
 * step; scratch as there. */
void vxd_hash_heap_rebuild_run(struct vxd_pool *pool, const struct vxd_hashmap *map,
                               void *scratch);

/* Returns numbers that were just freed to the heap. `indices` has n values, of which
 * n_freed are numbers and the others VXD_NO_ENTRY. Few numbers are merged into the
 * free ones; for many the heap is rebuilt. May change the order of `indices`; scratch
 * as above, and it may overlap `indices`. */
void vxd_hash_heap_return_run(struct vxd_pool *pool, const struct vxd_hashmap *map,
                              int32_t *indices, size_t n, uint32_t n_freed,
                              void *scratch);

/* The loop behind vxd_hash_entries_free_cpu; returns how many entries were freed. */
uint32_t vxd_hash_entries_free_run(struct vxd_pool *pool, const struct vxd_hashmap *map,
                                   const int32_t *indices, size_t n);

#endif
