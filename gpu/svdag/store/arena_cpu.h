// SPDX-License-Identifier: Apache-2.0
/* The arena on the CPU, as shared by its two writers: item by item (arena_cpu.c), and a
 * whole image at once (image_adopt_cpu.c). */
#ifndef VXD_GPU_SVDAG_STORE_ARENA_CPU_H
#define VXD_GPU_SVDAG_STORE_ARENA_CPU_H

#include "gpu/svdag/store/arena_index_math.h"
#include "gpu/svdag/store/store.h"

enum {
    VXD_SVDAG_ARENA_SHARD_BITS = 10,
    VXD_SVDAG_ARENA_SHARDS = 1 << VXD_SVDAG_ARENA_SHARD_BITS,
    VXD_SVDAG_ARENA_SEGMENT = 1024, /* words that a writer takes at once */
    VXD_SVDAG_ARENA_REMNANTS = 256,
    VXD_SVDAG_SHARD_FIRST = 8, /* buckets, 256 bytes */
    VXD_SVDAG_SHARD_SMALL =
        128 /* up to here a shard doubles; above, it grows by a quarter of a power of two */
};

struct vxd_svdag_shard {
    pthread_mutex_t mutex;
    /* Atomic, because prefetches read it without the lock. */
    _Atomic(struct vxd_svdag_index_bucket *) buckets;
    atomic_uint n_buckets;
    uint32_t addresses; /* as of an index */
    uint32_t n_items[VXD_SVDAG_N_KINDS];
    uint64_t n_words; /* of its items */
};

/* Words that a writer did not use. */
struct vxd_svdag_remnant {
    uint32_t next;
    uint32_t n_left;
};

struct vxd_svdag_arena {
    pthread_mutex_t mutex; /* guards the members up to the shards */
    uint32_t **chunks;     /* by address; NULL: not allocated yet */
    uint32_t next;         /* first word that was never handed out; 0: no chunk yet */
    uint32_t n_joined; /* so many chunks from the first on share one piece of memory */
    size_t n_bytes;    /* of device memory */
    int n_remnants;
    struct vxd_svdag_remnant remnants[VXD_SVDAG_ARENA_REMNANTS];
    struct vxd_svdag_shard shards[VXD_SVDAG_ARENA_SHARDS];
};

static inline uint32_t vxd_svdag_shard_number(uint64_t hash)
{
    return (uint32_t)(hash >> (64 - VXD_SVDAG_ARENA_SHARD_BITS));
}

/* The home bucket of a hash in its shard. After a full bucket the search continues in the
 * next one. */
static inline uint32_t vxd_svdag_shard_home(uint64_t hash, uint32_t n_buckets)
{
    return (uint32_t)(((hash >> 22 & UINT32_MAX) * n_buckets) >> 32);
}

/* At most seven eighths full, so that searches stay short. */
static inline bool vxd_svdag_shard_has_capacity(uint32_t n_buckets, uint64_t n_items)
{
    return n_items * 8 <= (uint64_t)n_buckets * VXD_SVDAG_INDEX_SLOTS * 7;
}

/* The next size of a table. All sizes are those of the context's block cache, so that
 * rounding loses no memory. */
static inline uint32_t vxd_svdag_shard_larger(uint32_t n_buckets)
{
    uint32_t power;

    if (n_buckets == 0) {
        return VXD_SVDAG_SHARD_FIRST;
    }
    power = 1u << (31 - __builtin_clz(n_buckets));
    return n_buckets + (n_buckets < VXD_SVDAG_SHARD_SMALL ? power : power / 4);
}

/* Adds to a bucket with a free slot. */
static inline void vxd_svdag_bucket_add(struct vxd_svdag_index_bucket *bucket,
                                        uint32_t word, uint32_t tag)
{
    int slot = 0;

    while (bucket->slots[slot] != VXD_SVDAG_EMPTY) {
        slot++;
    }
    bucket->slots[slot] = word;
    bucket->tags |= vxd_svdag_tag_bits(tag, slot);
}

#endif
