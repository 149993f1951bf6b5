// SPDX-License-Identifier: Apache-2.0
/* The slab index on the CPU, shared by its files; slab_map_math.h says the layout and the rules
 * that places follow:
 *
 *   slab_map_cpu.c         find, neighbours, erase, probes, clear; the table of functions
 *   slab_map_walk_cpu.c    the walks along lists, and what rebuilds lists
 *   slab_map_insert_cpu.c  insert
 *
 * Threads share the lists: places and links are read and changed by relaxed atomic operations
 * only. Nothing else is handed over by them: rows of keys do not change while lists do, and
 * slabs are EMPTY before they are linked. */
#ifndef VXD_GPU_PAPER_SLAB_MAP_CPU_H
#define VXD_GPU_PAPER_SLAB_MAP_CPU_H

#include "gpu/hash/hash_cpu.h"
#include "gpu/paper/slab_map_math.h"

#define VXD_SLAB_PIECE ((size_t)4096)
#define VXD_SLAB_PREFETCH_ROWS 16 /* keys whose slabs are fetched together */

static inline uint64_t vxd_slab_load(const uint64_t *word)
{
    return __atomic_load_n(word, __ATOMIC_RELAXED);
}

static inline void vxd_slab_store(uint64_t *word, uint64_t to)
{
    __atomic_store_n(word, to, __ATOMIC_RELAXED);
}

/* False, with *seen what stands there, where that is not *seen. */
static inline bool vxd_slab_swap(uint64_t *word, uint64_t *seen, uint64_t to)
{
    return __atomic_compare_exchange_n(word, seen, to, false, __ATOMIC_RELAXED,
                                       __ATOMIC_RELAXED);
}

/* Place of a key, NO_PLACE where it is not there; *seen is what stands at the place. While
 * nobody changes places. */
uint32_t vxd_slab_find(const struct vxd_slab_view *view, const void *row,
                       struct vxd_slab_home home, uint64_t *seen);

/* A walk along a list that ends at the key or takes the first free place it passed. */
struct vxd_slab_claim {
    const void *row;
    struct vxd_slab_home home;
    uint32_t delegate; /* who stands for the key if it is new */
    uint64_t seen;     /* out: what stands at the place, one's own where the key is new */
    bool reused;       /* out: the place was ERASED */
};

/* Place of the key or of its new claim; NO_PLACE when all slabs are in use. `batch` are the
 * rows that claims stand for. Every turn goes one slab on, or somebody else has taken a
 * place. */
uint32_t vxd_slab_claim_place(const struct vxd_slab_view *view, const void *batch,
                              struct vxd_slab_claim *claim);

/* Homes of n <= VXD_SLAB_PREFETCH_ROWS keys; their slabs, then the entries that the first slabs name,
 * are on the way when it returns. */
void vxd_slab_prefetch_rows(const struct vxd_slab_view *view, const uint8_t *rows,
                            size_t n, struct vxd_slab_home *homes);

void vxd_slab_clear_run(struct vxd_pool *pool, struct vxd_slab_view *view);

/* errors  DATA_LOSS  a key twice */
enum vxd_status vxd_slab_rebuild_run(struct vxd_pool *pool, struct vxd_slab_view *view,
                                     struct vxd_err *err);

/* Of struct vxd_hash_ops; scratch of vxd_slab_insert_bytes (SIZE_MAX on overflow). */
size_t vxd_slab_insert_bytes(size_t n);
enum vxd_status vxd_slab_insert_cpu(struct vxd_queue *queue, struct vxd_hashmap *map,
                                    const struct vxd_hashmap_insert_args *args,
                                    void *scratch, size_t scratch_bytes,
                                    struct vxd_err *err);

#endif
