// SPDX-License-Identifier: Apache-2.0
/* How the lanes of a warp find or insert items of the arena while other warps do the
 * same. A lookup reads a bucket of 32 bytes, compares its seven tags at once, and reads
 * all words of an item whose tag matches at once.
 *
 * The words of an item are written and fenced before its address takes a free slot of the
 * index by one compare-and-swap. So whoever sees an address may read its words, even
 * while the slot's tag is not written yet. Slots of a bucket are taken from the first on.
 * Two equal items therefore compete for the same slot, and the one whose swap fails finds
 * the other's words equal. No thread waits for another, except for the tag of an item
 * with equal words, which is written right after the swap: the tag names the item's
 * kind. */
#ifndef VXD_GPU_SVDAG_STORE_FIND_OR_INSERT_CUDA_H
#define VXD_GPU_SVDAG_STORE_FIND_OR_INSERT_CUDA_H

#include "gpu/svdag/store/store_device.h"
#include "gpu/svdag/store/block_ops_cuda.h"

/* Most words that a warp takes at once. */
#define VXD_SVDAG_WARP_WORDS ((uint64_t)32 * VXD_SVDAG_MAX_ITEM_WORDS)

/* A warp's pool of unused words: longest item (inner nodes, leaves of up to 4-bit
 * values), and entries for each length. It is small, because shared memory is taken from
 * the first-level cache. */
#define VXD_SVDAG_POOL_WORDS 10
#define VXD_SVDAG_POOL_REFS 8

/* Polls for a tag that is about to be written: some seconds. */
#define VXD_SVDAG_TAG_POLLS (1 << 22)

struct vxd_svdag_pool;

/* An item that a lane looks up or inserts. */
struct vxd_svdag_lane_key {
    const uint32_t *words; /* the thread's own, in any memory */
    int n_words;           /* 0: none */
    enum vxd_svdag_kind kind;
    struct vxd_svdag_pool *pool; /* the warp's, or NULL: unused words are lost */
};

/* Words that a lane took and did not use, for its next item; none at first. */
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

/* Words that lanes of a warp took and did not use, because other threads inserted an
 * equal item meanwhile, by length. The warp uses them for items that it inserts next.
 * Over some thousand warps it keeps few words from being lost. */
struct vxd_svdag_pool {
    int n[VXD_SVDAG_POOL_WORDS + 1];
    uint32_t refs[VXD_SVDAG_POOL_WORDS + 1][VXD_SVDAG_POOL_REFS];
};

/* By all lanes of a warp: empties its pool. */
VXD_SVDAG_DEVICE void vxd_svdag_pool_clear(struct vxd_svdag_pool *pool)
{
    for (uint32_t i = vxd_svdag_lane(); i <= VXD_SVDAG_POOL_WORDS; i += 32) {
        pool->n[i] = 0;
    }
    __syncwarp();
}

/* By all lanes of a warp: lanes with unused words put them into the pool. */
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

/* By all lanes of a warp: lanes that need n words (0: none) take them from the pool,
 * where it has some. */
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

/* An edit kernel counts words and items taken in one 64-bit word, because all warps add
 * to it: the number of words in the low bits, and from this bit on the number of items
 * they were taken for, which is slightly more than the number of new items. */
#define VXD_SVDAG_TAKEN_ITEMS 33

VXD_SVDAG_DEVICE uint64_t vxd_svdag_taken_words(uint64_t taken)
{
    return taken & (((uint64_t)1 << VXD_SVDAG_TAKEN_ITEMS) - 1);
}

VXD_SVDAG_DEVICE uint64_t vxd_svdag_taken_items(uint64_t taken)
{
    return taken >> VXD_SVDAG_TAKEN_ITEMS;
}

/* By all lanes of a warp: takes n words for each lane, within one chunk, from `next` on,
 * counted in *n_taken; *n_items is the number of items before. Where a chunk ends within
 * the words of the warp, these are skipped and the warp takes others. That happens at
 * most once, as no warp takes as much as a chunk. */
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

/* Where the words of an item are written. */
VXD_SVDAG_DEVICE uint32_t *vxd_svdag_words_to(const struct vxd_svdag_kernel_args *args,
                                              uint32_t ref)
{
    return args->chunks[ref >> VXD_SVDAG_CHUNK_BITS] +
           (ref & (VXD_SVDAG_CHUNK_WORDS - 1));
}

/* Whether an item of the index has the words of a key. It bypasses the caches that other
 * blocks' writes do not reach. All words are read at once, but none behind the chunk's
 * end. */
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

/* State of a lane's search. */
struct vxd_svdag_search {
    uint64_t hash;
    uint32_t bucket;
    uint32_t n_probes; /* buckets searched before it */
    int slot;          /* the first slot to compare; afterwards the free slot */
};

enum vxd_svdag_search_end {
    VXD_SVDAG_FOUND,
    VXD_SVDAG_FREE_SLOT,
    VXD_SVDAG_EXHAUSTED
};

/* Slots of a bucket, from `first` on, that may hold an item of this hash and tag, as the
 * top bits of their tags: those with the tag, and those whose tag is not written yet.
 * *free is the first free slot, or the number of slots. */
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

/* Waits for the tag of a slot whose item has the words that are looked up; it may be of
 * another kind. The thread that took the slot writes it next, without waiting for
 * anything. In this warp all such threads have done so. */
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

/* By one lane, for which no other lane waits: continues a search until the item is found
 * (*ref), a free slot is reached, or there is no slot. */
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

            /* Selected without indexing, so that the bucket stays in registers. */
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

/* By one lane: inserts the item whose words it wrote at `ref` into the free slot. False:
 * another thread took the slot. */
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

/* By all lanes of a warp: reserves n words for each lane (0: none), at *ref. False: there
 * are not enough for all lanes, or the index is full; a fault is set. */
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

/* By all lanes of a warp: inserts the items of lanes whose search reached a free slot. Of
 * lanes with equal hashes only the first inserts; the others find the item when they
 * continue their search. Updates *end and *ref. False: there is no capacity. */
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
        /* If another thread took the slot the lane continues at once; it is rare that
         * several lanes of a warp do so together. */
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

/* The arena, as the type that edit kernels are compiled for. Another store is a type with
 * the same members. */
struct vxd_svdag_arena_cuda {
    typedef struct vxd_svdag_spare spare;
    /* Lanes reserve words before they insert, and a block that is alone may count its
     * reservations itself. */
    static const bool RESERVES = true;

    static __device__ __forceinline__ spare no_spare(void)
    {
        return {VXD_SVDAG_EMPTY, 0};
    }

    /* By all 32 lanes of a warp together: finds or inserts the item of each lane. Returns
     * its reference and whether it is new; VXD_SVDAG_EMPTY for a lane without an item.
     * Where capacity is lacking a fault is set, and lanes with an item may get
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
        /* In the second round lanes find what the first of equal lanes inserted. */
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

    /* Ends a kernel, by one thread after all others: words that were taken are not handed
     * out again. Words beyond the capacity were counted by lanes that found none. */
    static __device__ __forceinline__ void end(const struct vxd_svdag_kernel_args *args)
    {
        const uint64_t next =
            args->store->next +
            vxd_svdag_taken_words(vxd_svdag_load_volatile64(&args->state->n_taken));

        args->store->next = next < args->capacity_words ? next : args->capacity_words;
    }

    /* Before that, after a fault: estimates what the kernel would need, when n_done of
     * n_subtrees entries inside of subtrees were reduced, and n_above nodes above them
     * are left. The remaining part is assumed to need three eighths of what the finished
     * part took. The estimate is rather too low, because memory once reserved is kept,
     * and much of what is inserted at the same time at first is equal. */
    static __device__ __forceinline__ void
    report_needs(const struct vxd_svdag_kernel_args *args, uint32_t fault,
                 uint64_t n_done, uint64_t n_subtrees, uint64_t n_above)
    {
        struct vxd_svdag_needs *needs = &args->progress->needs;
        const uint64_t taken = vxd_svdag_load_volatile64(&args->state->n_taken);
        const uint64_t n_words = vxd_svdag_taken_words(taken);
        const uint64_t n_new = vxd_svdag_taken_items(taken);
        /* In 64ths; too few finished entries are no basis for an estimate. */
        const uint64_t done = n_done > n_subtrees / 8 ? n_done : n_subtrees / 8 + 1;
        const uint64_t left = n_done < n_subtrees ? 24 * (n_subtrees - n_done) / done : 0;

        if ((fault & VXD_SVDAG_NO_SLOTS) != 0) {
            needs->n_items = args->state->n_items + n_new + n_new * left / 64 + n_above;
        }
        if ((fault & VXD_SVDAG_NO_WORDS) != 0) {
            /* Most inner nodes have six or seven words. */
            needs->n_words =
                args->store->next + n_words + n_words * left / 64 + 6 * n_above;
        }
    }
};

/* Eight lanes together ----------------------------------------------------------------------
 *
 * Groups of eight lanes find or insert inner nodes of the arena while no other block inserts
 * any. Each lane has one word of a bucket, and one of the node. */

/* An inner node that eight lanes look up together; all eight have the same values. */
struct vxd_svdag_8lanes_key {
    const uint32_t *words; /* in shared memory */
    int n_words;
    bool hashes; /* its hash is to be computed */
    bool is_on;  /* it is still looked up */
    uint64_t hash;
    uint32_t bucket;
    uint32_t n_probes; /* buckets before it */
    uint32_t ref;      /* the result; VXD_SVDAG_EMPTY: not found */
    int slot;          /* free slot of the bucket; VXD_SVDAG_INDEX_SLOTS: there is none */
};

VXD_SVDAG_DEVICE uint32_t vxd_svdag_8lanes_lane(void)
{
    return threadIdx.x % 8;
}

/* By all lanes of a warp: which of the eight lanes have this, as bits. */
VXD_SVDAG_DEVICE uint32_t vxd_svdag_8lanes_ballot(bool has)
{
    return __ballot_sync(UINT32_MAX, has) >> (threadIdx.x & 24) & 0xffu;
}

/* By all lanes of a warp: the value of one of the eight lanes. */
VXD_SVDAG_DEVICE uint32_t vxd_svdag_8lanes_get(uint32_t value, uint32_t lane)
{
    return __shfl_sync(UINT32_MAX, value, (int)((threadIdx.x & 24) + lane));
}

/* A key before its search. */
VXD_SVDAG_DEVICE struct vxd_svdag_8lanes_key
vxd_svdag_8lanes_key_of(const uint32_t *words, int n_words, bool hashes, bool is_on)
{
    return {
        words, n_words, hashes, is_on, 0, 0, 0, VXD_SVDAG_EMPTY, VXD_SVDAG_INDEX_SLOTS};
}

/* Whether the words at an address are the node's, as far as this lane compares them. */
VXD_SVDAG_DEVICE bool vxd_svdag_8lanes_matches(const struct vxd_svdag_kernel_args *args,
                                               const struct vxd_svdag_8lanes_key *at,
                                               uint32_t ref)
{
    const uint32_t *words = vxd_svdag_words_to(args, ref);
    const uint32_t n_words = (uint32_t)at->n_words;
    bool is_same = (ref & (VXD_SVDAG_CHUNK_WORDS - 1)) + n_words <= VXD_SVDAG_CHUNK_WORDS;

    for (uint32_t i = vxd_svdag_8lanes_lane(); is_same && i < n_words; i += 8) {
        is_same = __ldcg(&words[i]) == at->words[i];
    }
    return is_same;
}

/* By all lanes of a warp: compares the slots of a bucket, one word of which each lane
 * has, that may hold the node. */
VXD_SVDAG_DEVICE void vxd_svdag_8lanes_compare(const struct vxd_svdag_kernel_args *args,
                                               struct vxd_svdag_8lanes_key *at,
                                               uint32_t word, uint32_t tags)
{
    const uint32_t addresses = args->index.addresses;
    const uint32_t lane = vxd_svdag_8lanes_lane();
    const bool may_be =
        at->is_on && lane < VXD_SVDAG_INDEX_SLOTS && word != VXD_SVDAG_EMPTY &&
        vxd_svdag_tag_at(tags, (int)lane) ==
            vxd_svdag_tag_of(at->hash, VXD_SVDAG_INNER) &&
        vxd_svdag_slot_may_be(word, vxd_svdag_slot_hash(at->hash, addresses), addresses);
    uint32_t slots = vxd_svdag_8lanes_ballot(may_be);

#pragma unroll 1
    while (__any_sync(UINT32_MAX, slots != 0)) {
        const uint32_t slot = slots != 0 ? (uint32_t)__ffs((int)slots) - 1 : 0;
        const uint32_t ref = vxd_svdag_8lanes_get(word, slot) & addresses;
        const bool is_same = slots != 0 && vxd_svdag_8lanes_matches(args, at, ref);

        __syncwarp();
        slots &= slots - 1;
        if (vxd_svdag_8lanes_ballot(is_same) == 0xffu) {
            at->ref = ref;
            at->is_on = false;
            slots = 0;
        }
    }
}

/* By all lanes of a warp: searches until each node is found, or a free slot is reached,
 * or there is none. */
VXD_SVDAG_DEVICE void vxd_svdag_8lanes_search(const struct vxd_svdag_kernel_args *args,
                                              struct vxd_svdag_8lanes_key *at)
{
    const struct vxd_svdag_index *index = &args->index;
    const uint32_t lane = vxd_svdag_8lanes_lane();

    if (at->hashes) {
        at->hash = vxd_svdag_hash((uint32_t)VXD_SVDAG_INNER, at->words, at->n_words);
        at->bucket = vxd_svdag_home_bucket(at->hash, index->n_buckets);
    }
    __syncwarp();
#pragma unroll 1
    while (__any_sync(UINT32_MAX, at->is_on)) {
        const uint32_t *bucket =
            (const uint32_t *)(const void *)&index->buckets[at->bucket];
        const uint32_t word = at->is_on ? __ldcg(&bucket[lane]) : 0;
        const uint32_t tags = vxd_svdag_8lanes_get(word, VXD_SVDAG_INDEX_SLOTS);
        uint32_t free;

        vxd_svdag_8lanes_compare(args, at, word, tags);
        free = vxd_svdag_8lanes_ballot(lane < VXD_SVDAG_INDEX_SLOTS &&
                                       word == VXD_SVDAG_EMPTY);
        if (at->is_on && free != 0) {
            at->slot = __ffs((int)free) - 1;
            at->is_on = false;
        } else if (at->is_on && (++at->n_probes == index->n_buckets ||
                                 at->n_probes == VXD_SVDAG_INDEX_PROBES)) {
            at->slot = VXD_SVDAG_INDEX_SLOTS;
            at->is_on = false;
        } else if (at->is_on) {
            at->bucket = vxd_svdag_bucket_after(at->hash, at->bucket, index->n_buckets);
        }
    }
}

/* By all lanes of a warp, after a search: inserts the nodes (of groups with `enters`)
 * whose words are at `ref` and which the index does not have. True: it is done, or a
 * fault was set. False: another group took the slot meanwhile, and the search has to be
 * repeated. */
VXD_SVDAG_DEVICE bool vxd_svdag_8lanes_enter(const struct vxd_svdag_kernel_args *args,
                                             const struct vxd_svdag_8lanes_key *at,
                                             uint32_t ref, bool enters,
                                             bool *has_capacity)
{
    const uint32_t lane = vxd_svdag_8lanes_lane();
    struct vxd_svdag_index_bucket *bucket = &args->index.buckets[at->bucket];
    bool is_entered = !enters;

    if (enters && at->slot == VXD_SVDAG_INDEX_SLOTS) {
        /* STUCK: a node that must be new was found. */
        vxd_svdag_set_fault(args, at->ref != VXD_SVDAG_EMPTY ? VXD_SVDAG_STUCK
                                                             : VXD_SVDAG_NO_SLOTS);
        *has_capacity = false;
        is_entered = true;
    } else if (enters && (int)lane == at->slot) {
        const uint32_t tag = vxd_svdag_tag_of(at->hash, VXD_SVDAG_INNER);
        const uint32_t word = ref | vxd_svdag_slot_hash(at->hash, args->index.addresses);

        is_entered = vxd_svdag_atomic_cas(&bucket->slots[lane], VXD_SVDAG_EMPTY, word) ==
                     VXD_SVDAG_EMPTY;
        if (is_entered) {
            vxd_svdag_atomic_or(&bucket->tags, vxd_svdag_tag_bits(tag, at->slot));
        }
    }
    __syncwarp();
    return vxd_svdag_8lanes_ballot(is_entered) != 0;
}

#endif
