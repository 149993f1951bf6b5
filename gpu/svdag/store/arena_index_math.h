// SPDX-License-Identifier: Apache-2.0
/* The index of the arena, in the layout of both backends: tables of 32-byte buckets of
 * seven slots. A slot is a word, an address with bits of the hash above it, and four bits
 * of the bucket's last word (the tag), two more of the hash and two of the kind. In a
 * store of up to 4 MiB a slot has fourteen bits of the hash, of 1 GiB six, of 16 GiB two.
 * After a full bucket the search continues in another one. Items are never removed, so a
 * bucket with a free slot ends a search. On a GPU a slot's word is visible shortly before
 * its tag (find_or_insert_cuda.h). */
#ifndef VXD_GPU_SVDAG_STORE_ARENA_INDEX_MATH_H
#define VXD_GPU_SVDAG_STORE_ARENA_INDEX_MATH_H

#include "gpu/svdag/node/node_math.h"

enum {
    VXD_SVDAG_INDEX_SLOTS = 7, /* of a bucket */
    VXD_SVDAG_INDEX_TAG_BITS = 4,
    VXD_SVDAG_INDEX_ADDRESS_BITS = 20, /* at least; 32 at most */
    /* Most buckets of a search. In a table that is not nearly full no item is so far from
     * its home bucket. */
    VXD_SVDAG_INDEX_PROBES = 1024
};

struct vxd_svdag_index_bucket {
    uint32_t
        slots[VXD_SVDAG_INDEX_SLOTS]; /* used from the first on; VXD_SVDAG_EMPTY: free */
    uint32_t tags;                    /* an empty bucket is all zeros */
};

/* A table of buckets, as lookups need it. */
struct vxd_svdag_index {
    struct vxd_svdag_index_bucket *buckets;
    uint32_t n_buckets;
    uint32_t addresses; /* the bits of a slot's word that are its address */
};

/* Mask of the bits of a slot's word that hold addresses of up to n_words. */
VXD_HD uint32_t vxd_svdag_index_addresses(uint64_t n_words)
{
    int n_bits = VXD_SVDAG_INDEX_ADDRESS_BITS;

    while (n_bits < 32 && n_words > (uint64_t)1 << n_bits) {
        n_bits++;
    }
    return UINT32_MAX >> (32 - n_bits);
}

/* The hash bits of a slot's word: bits 2 to 13 of the hash, as far as the address leaves
 * bits. */
VXD_HD uint32_t vxd_svdag_slot_hash(uint64_t hash, uint32_t addresses)
{
    return (uint32_t)hash << 18 & ~addresses;
}

/* Whether a slot may hold an item with this hash, by its word. */
VXD_HD bool vxd_svdag_slot_may_be(uint32_t word, uint32_t slot_hash, uint32_t addresses)
{
    return (word ^ slot_hash) <= addresses;
}

/* Tags, by slot: */
#define VXD_SVDAG_INDEX_NO_TAG 0u
#define VXD_SVDAG_TAG_ONES 0x01111111u
#define VXD_SVDAG_TAG_LOWS (7u * VXD_SVDAG_TAG_ONES)
#define VXD_SVDAG_TAG_TOPS (8u * VXD_SVDAG_TAG_ONES)

/* The tag: bits 6 and 7 of the hash, and two bits for the kind, at least one of which is
 * set. */
VXD_HD uint32_t vxd_svdag_tag_of(uint64_t hash, enum vxd_svdag_kind kind)
{
    return ((uint32_t)hash >> 6 & 3u) << 2 | (3u - (uint32_t)kind);
}

VXD_HD enum vxd_svdag_kind vxd_svdag_tag_kind(uint32_t tag)
{
    return (enum vxd_svdag_kind)(3u - (tag & 3u));
}

VXD_HD uint32_t vxd_svdag_tag_at(uint32_t tags, int slot)
{
    return tags >> (slot * VXD_SVDAG_INDEX_TAG_BITS) &
           ((1u << VXD_SVDAG_INDEX_TAG_BITS) - 1);
}

/* The tag at the place of its slot, to be added with OR. */
VXD_HD uint32_t vxd_svdag_tag_bits(uint32_t tag, int slot)
{
    return tag << (slot * VXD_SVDAG_INDEX_TAG_BITS);
}

/* The top bits of the tags that are equal to `tag`. */
VXD_HD uint32_t vxd_svdag_tags_equal(uint32_t tags, uint32_t tag)
{
    const uint32_t differ = tags ^ (tag * VXD_SVDAG_TAG_ONES);

    return ~(((differ & VXD_SVDAG_TAG_LOWS) + VXD_SVDAG_TAG_LOWS) | differ) &
           VXD_SVDAG_TAG_TOPS;
}

/* The top bits of `tops` whose slots' words also match the hash. */
VXD_HD uint32_t vxd_svdag_slots_that_may(const struct vxd_svdag_index_bucket *bucket,
                                         uint32_t tops, uint32_t slot_hash,
                                         uint32_t addresses)
{
    uint32_t may = 0;

    for (int i = 0; i < VXD_SVDAG_INDEX_SLOTS; i++) {
        may |= vxd_svdag_slot_may_be(bucket->slots[i], slot_hash, addresses)
                   ? tops & vxd_svdag_tag_bits(8, i)
                   : 0;
    }
    return may;
}

/* The home bucket of a hash, 0 .. n_buckets - 1. */
VXD_HD uint32_t vxd_svdag_home_bucket(uint64_t hash, uint32_t n_buckets)
{
    return (uint32_t)((hash >> 32) * n_buckets >> 32);
}

/* The bucket to search after a full one. Its distance depends on the hash, so that a
 * search does not go through all of a cluster of full buckets. */
VXD_HD uint32_t vxd_svdag_bucket_after(uint64_t hash, uint32_t bucket, uint32_t n_buckets)
{
    uint32_t after = bucket + 1 + (uint32_t)(hash >> 14 & 31u);

    return after < n_buckets ? after : after % n_buckets;
}

/* Compares words. Items with equal first words (leaves: first two words) have equal
 * lengths, so no read passes the end of the shorter one. */
VXD_HD bool vxd_svdag_words_equal(const uint32_t *a, const uint32_t *b, int n_words)
{
    for (int i = 0; i < n_words; i++) {
        if (a[i] != b[i]) {
            return false;
        }
    }
    return true;
}

/* Most items of an index. Above a load of six sevenths searches of a warp get long, as
 * its longest one counts. */
VXD_HD uint64_t vxd_svdag_index_most(uint64_t n_slots)
{
    return n_slots * 6 / 7;
}

VXD_HD bool vxd_svdag_index_is_full(uint64_t n_items, uint64_t n_slots)
{
    return n_items > vxd_svdag_index_most(n_slots);
}

/* The address of an item, VXD_SVDAG_EMPTY where the index does not have it. Nobody may
 * insert meanwhile. */
VXD_HD uint32_t vxd_svdag_index_find(const struct vxd_svdag_index *index,
                                     const struct vxd_svdag_view *view,
                                     enum vxd_svdag_kind kind, const uint32_t *words,
                                     int n_words)
{
    const uint64_t hash = vxd_svdag_hash((uint32_t)kind, words, n_words);
    const uint32_t slot_hash = vxd_svdag_slot_hash(hash, index->addresses);
    const uint32_t tag = vxd_svdag_tag_of(hash, kind);
    uint32_t at = vxd_svdag_home_bucket(hash, index->n_buckets);

    for (uint32_t i = 0; i < index->n_buckets && i < VXD_SVDAG_INDEX_PROBES; i++) {
        const struct vxd_svdag_index_bucket *bucket = &index->buckets[at];

        for (int slot = 0; slot < VXD_SVDAG_INDEX_SLOTS; slot++) {
            const uint32_t word = bucket->slots[slot];

            if (word == VXD_SVDAG_EMPTY) {
                return VXD_SVDAG_EMPTY;
            }
            if (vxd_svdag_tag_at(bucket->tags, slot) == tag &&
                vxd_svdag_slot_may_be(word, slot_hash, index->addresses) &&
                vxd_svdag_words_equal(vxd_svdag_words(view, word & index->addresses),
                                      words, n_words)) {
                return word & index->addresses;
            }
        }
        at = vxd_svdag_bucket_after(hash, at, index->n_buckets);
    }
    return VXD_SVDAG_EMPTY;
}

#endif
