// SPDX-License-Identifier: Apache-2.0
/* How a warp finds or stores items of the arena while others do. A lookup reads a bucket of 32
 * bytes, its seven tags compared at once, and the words of an item whose tag is equal, all of
 * them at once.
 *
 * Words are written, and fenced, before the item's address takes a free slot of the index by one
 * swap; so whoever sees an address may compare its words, which is done too while the tag is
 * not there yet. Slots of a bucket are taken from the first on, hence equal items come to the
 * same free slot, where one swap goes before the other, and the one that fails finds the other's
 * words equal. Nobody waits for anybody, but for the tag of an item with equal words, which is
 * on its way: it tells the kind. */
#ifndef VXD_GPU_SVDAG_STORE_FIND_OR_INSERT_CUDA_H
#define VXD_GPU_SVDAG_STORE_FIND_OR_INSERT_CUDA_H

#include "gpu/svdag/store/store_device.h"
#include "gpu/svdag/store/block_ops_cuda.h"

/* Words that a warp takes at most at once. */
#define VXD_SVDAG_WARP_WORDS ((uint64_t)32 * VXD_SVDAG_MAX_ITEM_WORDS)

/* Of a warp's pool: items of so many words at most (inner nodes, leaves of up to 4 bits), and
 * places for each number. Kept small: what blocks take of shared memory the first-level cache
 * lacks. */
#define VXD_SVDAG_POOL_WORDS 10
#define VXD_SVDAG_POOL_REFS 8

/* How often a tag is looked for that is about to be there: some seconds. */
#define VXD_SVDAG_TAG_POLLS (1 << 22)

struct vxd_svdag_pool;

/* What a lane looks for. */
struct vxd_svdag_lane_key {
    const uint32_t *words; /* the thread's own, of whatever memory */
    int n_words;           /* 0: nothing */
    enum vxd_svdag_kind kind;
    struct vxd_svdag_pool
        *pool; /* the warp's, or NULL: words that are not needed are lost */
};

/* Words that a lane took and did not need, for its next item; none at first. */
struct vxd_svdag_spare {
    uint32_t ref;
    int n_words;
};

VXD_SVDAG_DEVICE uint32_t vxd_svdag_lane(void)
{
    return threadIdx.x % 32;
}

VXD_SVDAG_DEVICE bool vxd_svdag_has_fault(const struct vxd_svdag_kernel_args *args)
{
    return vxd_svdag_load_volatile(&args->state->fault) != 0;
}

VXD_SVDAG_DEVICE void vxd_svdag_set_fault(const struct vxd_svdag_kernel_args *args,
                                          uint32_t fault)
{
    vxd_svdag_atomic_or(&args->state->fault, fault);
}

/* Words that lanes of a warp took and did not need, as others stored an equal item meanwhile, for
 * what the warp stores next; by their number. Of some thousand warps a few are left over each. */
struct vxd_svdag_pool {
    int n[VXD_SVDAG_POOL_WORDS + 1];
    uint32_t refs[VXD_SVDAG_POOL_WORDS + 1][VXD_SVDAG_POOL_REFS];
};

/* By all lanes of a warp: its pool, empty. */
VXD_SVDAG_DEVICE void vxd_svdag_pool_clear(struct vxd_svdag_pool *pool)
{
    for (uint32_t i = vxd_svdag_lane(); i <= VXD_SVDAG_POOL_WORDS; i += 32) {
        pool->n[i] = 0;
    }
    __syncwarp();
}

/* By all lanes of a warp: those with words to spare give them. */
VXD_SVDAG_DEVICE void vxd_svdag_pool_give(struct vxd_svdag_pool *pool,
                                          struct vxd_svdag_spare *spare)
{
    if (__any_sync(UINT32_MAX, spare->n_words > 0)) {
        if (spare->n_words > 0 && spare->n_words <= VXD_SVDAG_POOL_WORDS) {
            const int place = atomicAdd(&pool->n[spare->n_words], 1);

            if (place < VXD_SVDAG_POOL_REFS) {
                pool->refs[spare->n_words][place] = spare->ref;
            } else {
                (void)atomicSub(&pool->n[spare->n_words], 1);
            }
        }
        *spare = {VXD_SVDAG_EMPTY, 0};
        __syncwarp();
    }
}

/* By all lanes of a warp: those that want n words (0: none) take what was given. */
VXD_SVDAG_DEVICE void vxd_svdag_pool_take(struct vxd_svdag_pool *pool, int n,
                                          struct vxd_svdag_spare *spare)
{
    if (n > 0 && n <= VXD_SVDAG_POOL_WORDS) {
        const int place = atomicSub(&pool->n[n], 1) - 1;

        if (place >= 0) {
            *spare = {pool->refs[n][place], n};
        } else {
            (void)atomicAdd(&pool->n[n], 1);
        }
    }
    __syncwarp();
}

/* What a pass counts in one word, as all warps add to it: words taken, and from this bit on the
 * items that they were taken for, a few more than are new. */
#define VXD_SVDAG_TAKEN_ITEMS 33

VXD_SVDAG_DEVICE uint64_t vxd_svdag_taken_words(uint64_t taken)
{
    return taken & (((uint64_t)1 << VXD_SVDAG_TAKEN_ITEMS) - 1);
}

VXD_SVDAG_DEVICE uint64_t vxd_svdag_taken_items(uint64_t taken)
{
    return taken >> VXD_SVDAG_TAKEN_ITEMS;
}

/* By all lanes of a warp: n words for each in one chunk, from `next` on, counted in *n_taken;
 * *n_items is how many items there were before. Where a chunk ends within those of the warp, they
 * are left out and it takes others, at most once as no warp takes as much as a chunk. */
VXD_SVDAG_DEVICE uint64_t vxd_svdag_take_words(uint64_t *n_taken, uint64_t next,
                                               uint32_t n, uint64_t *n_items)
{
    const uint32_t takers = __ballot_sync(UINT32_MAX, n > 0);
    const uint64_t items = (uint64_t)__popc(takers) << VXD_SVDAG_TAKEN_ITEMS;
    uint32_t sum = n;
    uint64_t taken = 0;
    uint32_t total;
    uint64_t first;

    *n_items = 0;
    if (takers == 0) {
        return next;
    }
#pragma unroll 1
    for (int step = 1; step < 32; step *= 2) {
        const uint32_t before = __shfl_up_sync(UINT32_MAX, sum, step);

        sum += vxd_svdag_lane() >= (uint32_t)step ? before : 0;
    }
    total = __shfl_sync(UINT32_MAX, sum, 31);
    do {
        if (vxd_svdag_lane() == 0) {
            taken = vxd_svdag_atomic_add(n_taken, total + items);
        }
        taken = vxd_svdag_warp_first(taken);
        first = next + vxd_svdag_taken_words(taken);
    } while (first >> VXD_SVDAG_CHUNK_BITS !=
             (first + total - 1) >> VXD_SVDAG_CHUNK_BITS);
    *n_items = vxd_svdag_taken_items(taken);
    return first + sum - n;
}

/* Where an item's words go. */
VXD_SVDAG_DEVICE uint32_t *vxd_svdag_words_to(const struct vxd_svdag_kernel_args *args,
                                              uint32_t ref)
{
    return args->chunks[ref >> VXD_SVDAG_CHUNK_BITS] +
           (ref & (VXD_SVDAG_CHUNK_WORDS - 1));
}

/* Whether an item of the index has these words, past the caches that others' writes do not
 * reach. All are read at once, but none behind the chunk's end. */
VXD_SVDAG_DEVICE bool vxd_svdag_item_matches(const struct vxd_svdag_kernel_args *args,
                                             uint32_t ref,
                                             const struct vxd_svdag_lane_key *key)
{
    const uint32_t *words = vxd_svdag_words_to(args, ref);
    const int n_words = key->n_words;
    uint32_t differ = 0;

    if ((ref & (VXD_SVDAG_CHUNK_WORDS - 1)) + (uint32_t)n_words > VXD_SVDAG_CHUNK_WORDS) {
        return false;
    }
#pragma unroll 3
    for (int i = 0; i < n_words; i++) {
        differ |= __ldcg(&words[i]) ^ key->words[i];
    }
    return differ == 0;
}

/* Where a lane's search has come to. */
struct vxd_svdag_search {
    uint64_t hash;
    uint32_t bucket;
    uint32_t n_probes; /* buckets before it */
    int slot;          /* the first one to look at; then the one that is free */
};

enum vxd_svdag_search_end {
    VXD_SVDAG_FOUND,
    VXD_SVDAG_FREE_SLOT,
    VXD_SVDAG_EXHAUSTED
};

/* Slots of a bucket, from `first` on, that may hold an item of a hash and a tag, as the top bits of
 * their tags: those with the tag, and those whose tag is to come. *free is the first one that is
 * free, or their number. */
VXD_SVDAG_DEVICE uint32_t
vxd_svdag_bucket_slots(const struct vxd_svdag_index_bucket *bucket, uint32_t slot_hash,
                       uint32_t addresses, uint32_t tag, int first, int *free)
{
    const uint32_t tops = vxd_svdag_tags_equal(bucket->tags, tag) |
                          vxd_svdag_tags_equal(bucket->tags, VXD_SVDAG_INDEX_NO_TAG);

    *free = VXD_SVDAG_INDEX_SLOTS;
#pragma unroll
    for (int i = VXD_SVDAG_INDEX_SLOTS - 1; i >= 0; i--) {
        *free = bucket->slots[i] == VXD_SVDAG_EMPTY ? i : *free;
    }
    return vxd_svdag_slots_that_may(bucket, tops, slot_hash, addresses) &
           (vxd_svdag_tag_bits(1, *free) - vxd_svdag_tag_bits(1, first));
}

/* The tag of a slot that is taken, of an item with the words that are looked for: it may be of
 * another kind. Who took the slot tells next, and waits for nothing; of this warp all have. */
VXD_SVDAG_DEVICE uint32_t vxd_svdag_wait_for_tag(const struct vxd_svdag_kernel_args *args,
                                                 uint32_t bucket, int slot)
{
    for (int poll = 0; poll < VXD_SVDAG_TAG_POLLS; poll++) {
        const uint32_t tag = vxd_svdag_tag_at(
            vxd_svdag_load_volatile(&args->index.buckets[bucket].tags), slot);

        if (tag != VXD_SVDAG_INDEX_NO_TAG) {
            return tag;
        }
    }
    vxd_svdag_set_fault(args, VXD_SVDAG_STUCK);
    return VXD_SVDAG_INDEX_NO_TAG;
}

/* By one lane, no lane waits for it: goes on until its item is found, *ref, or a slot is free
 * for it, or there is none. */
VXD_SVDAG_DEVICE enum vxd_svdag_search_end
vxd_svdag_search_continue(const struct vxd_svdag_kernel_args *args,
                          const struct vxd_svdag_lane_key *key,
                          struct vxd_svdag_search *at, uint32_t *ref)
{
    const struct vxd_svdag_index *index = &args->index;
    const uint32_t tag = vxd_svdag_tag_of(at->hash, key->kind);
    const uint32_t slot_hash = vxd_svdag_slot_hash(at->hash, index->addresses);

    while (at->n_probes < index->n_buckets && at->n_probes < VXD_SVDAG_INDEX_PROBES) {
        const struct vxd_svdag_index_bucket bucket =
            vxd_svdag_load_bucket(&index->buckets[at->bucket]);
        int free;
        uint32_t slots = vxd_svdag_bucket_slots(&bucket, slot_hash, index->addresses, tag,
                                                at->slot, &free);

        for (; slots != 0; slots &= slots - 1) {
            const int slot = (__ffs((int)slots) - 1) / VXD_SVDAG_INDEX_TAG_BITS;

            /* By selection, so that the bucket stays in registers. */
            *ref = slot == 0   ? bucket.slots[0]
                   : slot == 1 ? bucket.slots[1]
                   : slot == 2 ? bucket.slots[2]
                   : slot == 3 ? bucket.slots[3]
                   : slot == 4 ? bucket.slots[4]
                   : slot == 5 ? bucket.slots[5]
                               : bucket.slots[6];
            *ref &= index->addresses;
            if (vxd_svdag_item_matches(args, *ref, key) &&
                (vxd_svdag_tag_at(bucket.tags, slot) == tag ||
                 vxd_svdag_wait_for_tag(args, at->bucket, slot) == tag)) {
                return VXD_SVDAG_FOUND;
            }
        }
        at->slot = free;
        if (free < VXD_SVDAG_INDEX_SLOTS) {
            return VXD_SVDAG_FREE_SLOT;
        }
        at->slot = 0;
        at->n_probes++;
        at->bucket = vxd_svdag_bucket_after(at->hash, at->bucket, index->n_buckets);
    }
    return VXD_SVDAG_EXHAUSTED;
}

/* By one lane: enters the item whose words it wrote at ref into the free slot. False: another one
 * took it. */
VXD_SVDAG_DEVICE bool vxd_svdag_enter(const struct vxd_svdag_kernel_args *args,
                                      const struct vxd_svdag_search *at,
                                      enum vxd_svdag_kind kind, uint32_t ref)
{
    struct vxd_svdag_index_bucket *bucket = &args->index.buckets[at->bucket];
    const uint32_t word = ref | vxd_svdag_slot_hash(at->hash, args->index.addresses);

    if (vxd_svdag_cas_release(&bucket->slots[at->slot], VXD_SVDAG_EMPTY, word) !=
        VXD_SVDAG_EMPTY) {
        return false;
    }
    vxd_svdag_atomic_or(&bucket->tags,
                        vxd_svdag_tag_bits(vxd_svdag_tag_of(at->hash, kind), at->slot));
    return true;
}

/* By all lanes of a warp: room for n words each (0: none), at *ref. False: there is not enough for
 * all, or the index is full; a fault is raised. */
VXD_SVDAG_DEVICE bool vxd_svdag_reserve_words(const struct vxd_svdag_kernel_args *args,
                                              uint32_t n, uint32_t *ref)
{
    uint64_t n_new;
    const uint64_t begin =
        vxd_svdag_take_words(&args->state->n_taken, args->store->next, n, &n_new);
    const uint64_t n_slots = (uint64_t)args->index.n_buckets * VXD_SVDAG_INDEX_SLOTS;
    uint32_t fault = n > 0 && begin + n > args->capacity_words ? VXD_SVDAG_NO_WORDS : 0;

    fault |= vxd_svdag_index_is_full(args->state->n_items + n_new, n_slots)
                 ? VXD_SVDAG_NO_SLOTS
                 : 0;
    fault = __reduce_or_sync(UINT32_MAX, fault);
    if (fault != 0 && vxd_svdag_lane() == 0) {
        vxd_svdag_set_fault(args, fault);
    }
    *ref = (uint32_t)begin;
    return fault == 0;
}

/* By all lanes of a warp: enters the items of those whose search came to a free slot, of equal
 * ones (by their hashes) the first lane's alone; the others find it when they search on. *end is
 * where a lane's search is then, and *ref what it found. False: there is no room. */
VXD_SVDAG_DEVICE bool vxd_svdag_enter_new(const struct vxd_svdag_kernel_args *args,
                                          const struct vxd_svdag_lane_key *key,
                                          struct vxd_svdag_search *at,
                                          enum vxd_svdag_search_end *end, uint32_t *ref,
                                          struct vxd_svdag_spare *spare, bool *is_new)
{
    const bool is_missing = *end == VXD_SVDAG_FREE_SLOT;
    const uint32_t missing = __ballot_sync(UINT32_MAX, is_missing);
    const uint32_t same =
        __match_any_sync(UINT32_MAX, (unsigned long long)at->hash) & missing;
    const bool is_first = is_missing && (same & ((1u << vxd_svdag_lane()) - 1)) == 0;
    bool takes = is_first && spare->n_words < key->n_words;
    uint32_t reserved;

    *is_new = false;
    if (key->pool != NULL) {
        vxd_svdag_pool_take(key->pool, takes ? key->n_words : 0, spare);
        takes = is_first && spare->n_words < key->n_words;
    }
    if (!vxd_svdag_reserve_words(args, takes ? (uint32_t)key->n_words : 0, &reserved)) {
        return false;
    }
    if (takes) {
        spare->ref = reserved;
        spare->n_words = key->n_words;
    }
    if (is_first) {
        uint32_t *to = vxd_svdag_words_to(args, spare->ref);

        for (int i = 0; i < key->n_words; i++) {
            to[i] = key->words[i];
        }
        /* Where another one took the slot the lane goes on at once: lanes of a warp seldom do so at
         * the same time. */
        while (*end == VXD_SVDAG_FREE_SLOT && !*is_new) {
            *is_new = vxd_svdag_enter(args, at, key->kind, spare->ref);
            if (!*is_new) {
                *end = vxd_svdag_search_continue(args, key, at, ref);
            }
        }
    }
    __syncwarp();
    return true;
}

/* The arena, as the store that passes are compiled for. Another one is a type with the same
 * members. */
struct vxd_svdag_arena_cuda {
    typedef struct vxd_svdag_spare spare;
    /* A lane that has words to spare stores its item there, and a block that is alone counts
     * what it takes itself. */
    static const bool RESERVES = true;

    static __device__ __forceinline__ spare no_spare(void)
    {
        return {VXD_SVDAG_EMPTY, 0};
    }

    /* By all 32 lanes of a warp, together: finds what each looks for, or stores it, and gives
     * each its reference and whether it is new; VXD_SVDAG_EMPTY where it looks for nothing. Where
     * there is no room a fault is raised, and lanes that look for something may get
     * VXD_SVDAG_EMPTY too. */
    static __device__ __forceinline__ uint32_t
    find_or_insert(const struct vxd_svdag_kernel_args *args,
                   const struct vxd_svdag_lane_key *key, spare *own, bool *is_new)
    {
        struct vxd_svdag_search at = {0, 0, 0, 0};
        enum vxd_svdag_search_end end = VXD_SVDAG_FOUND;
        uint32_t ref = VXD_SVDAG_EMPTY;
        bool is_missing = key->n_words > 0;

        *is_new = false;
        if (is_missing) {
            at.hash = vxd_svdag_hash((uint32_t)key->kind, key->words, key->n_words);
            at.bucket = vxd_svdag_home_bucket(at.hash, args->index.n_buckets);
        }
        /* The second time lanes find what the first of equal ones stored. */
        while (__any_sync(UINT32_MAX, is_missing)) {
            bool has_capacity = true;
            bool is_entered = false;

            if (is_missing) {
                end = vxd_svdag_search_continue(args, key, &at, &ref);
            }
            __syncwarp();
            if (__any_sync(UINT32_MAX, end == VXD_SVDAG_FREE_SLOT)) {
                has_capacity =
                    vxd_svdag_enter_new(args, key, &at, &end, &ref, own, &is_entered);
            }
            if (is_entered) {
                ref = own->ref;
                *own = no_spare();
                *is_new = true;
                end = VXD_SVDAG_FOUND;
            } else if (end == VXD_SVDAG_EXHAUSTED) {
                vxd_svdag_set_fault(args, VXD_SVDAG_NO_SLOTS);
            }
            is_missing = end == VXD_SVDAG_FREE_SLOT && has_capacity;
            ref = end == VXD_SVDAG_FOUND ? ref : VXD_SVDAG_EMPTY;
            if (!has_capacity) {
                break;
            }
        }
        if (key->pool != NULL) {
            vxd_svdag_pool_give(key->pool, own);
        }
        return ref;
    }

    /* Ends a pass, by one thread after all others: words that were taken are not handed out
     * again. Those beyond what there is were taken by lanes that found no room. */
    static __device__ __forceinline__ void end(const struct vxd_svdag_kernel_args *args)
    {
        const uint64_t next =
            args->store->next +
            vxd_svdag_taken_words(vxd_svdag_load_volatile64(&args->state->n_taken));

        args->store->next = next < args->capacity_words ? next : args->capacity_words;
    }

    /* Before that, of a pass with a fault: what it would need, where rows were done of n_rows
     * that are dealt out, and n_above nodes above them are to come. What is new in what is left is
     * three eighths of what was in what is done: rather too little, as memory that was asked
     * for stays, and much of what is taken at the same time at first is equal. */
    static __device__ __forceinline__ void
    report_needs(const struct vxd_svdag_kernel_args *args, uint32_t fault,
                 uint64_t n_done, uint64_t n_subtrees, uint64_t n_above)
    {
        struct vxd_svdag_needs *needs = &args->progress->needs;
        const uint64_t taken = vxd_svdag_load_volatile64(&args->state->n_taken);
        const uint64_t n_words = vxd_svdag_taken_words(taken);
        const uint64_t n_new = vxd_svdag_taken_items(taken);
        /* In sixty-fourths: of too few rows nothing is known. */
        const uint64_t done = n_done > n_subtrees / 8 ? n_done : n_subtrees / 8 + 1;
        const uint64_t left = n_done < n_subtrees ? 24 * (n_subtrees - n_done) / done : 0;

        if ((fault & VXD_SVDAG_NO_SLOTS) != 0) {
            needs->n_items = args->state->n_items + n_new + n_new * left / 64 + n_above;
        }
        if ((fault & VXD_SVDAG_NO_WORDS) != 0) {
            /* Inner nodes are of six or seven words. */
            needs->n_words =
                args->store->next + n_words + n_words * left / 64 + 6 * n_above;
        }
    }
};

#endif
