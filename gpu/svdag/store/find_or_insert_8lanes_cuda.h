// SPDX-License-Identifier: Apache-2.0
/* How groups of eight lanes find or insert inner nodes of the arena while no other block
 * inserts any. Each lane has one word of a bucket, and one of the node. */
#ifndef VXD_GPU_SVDAG_STORE_FIND_OR_INSERT_8LANES_CUDA_H
#define VXD_GPU_SVDAG_STORE_FIND_OR_INSERT_8LANES_CUDA_H

#include "gpu/svdag/store/find_or_insert_cuda.h"

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
