// SPDX-License-Identifier: Apache-2.0
/* The index of the arena on a GPU: one table of 32-byte buckets, each six addresses and six
 * tags of eight bits of hash and two of kind. After a full bucket another one is next; items are
 * never taken out, so a bucket with room ends a search. Between an address and its tag there is a
 * moment without one (store_cuda.h). */
#ifndef VXD_GPU_DAG_INDEX_MATH_H
#define VXD_GPU_DAG_INDEX_MATH_H

#include "gpu/dag/tree_math.h"

enum {
    VXD_DAG_INDEX_SLOTS = 6, /* of a bucket */
    VXD_DAG_INDEX_TAG_BITS = 10,
    /* Buckets that an item is looked for in at most. In a table that is not nearly full none
     * is so far from home. */
    VXD_DAG_INDEX_PROBES = 1024
};

struct vxd_dag_index_bucket {
    uint32_t refs
        [VXD_DAG_INDEX_SLOTS]; /* from the first on, VXD_DAG_EMPTY where there is room */
    uint64_t tags;             /* of ten bits; a free bucket is all zeros */
};

#define VXD_DAG_INDEX_NO_TAG 0u

/* Eight bits of hash and two that tell the kind, of which one is set at least. */
VXD_HD uint32_t vxd_dag_tag_of(uint64_t hash, enum vxd_dag_kind kind)
{
    return (uint32_t)(hash & 0xffu) << 2 | (3u - (uint32_t)kind);
}

VXD_HD enum vxd_dag_kind vxd_dag_tag_kind(uint32_t tag)
{
    return (enum vxd_dag_kind)(3u - (tag & 3u));
}

VXD_HD uint32_t vxd_dag_tag_at(uint64_t tags, int slot)
{
    return (uint32_t)(tags >> (slot * VXD_DAG_INDEX_TAG_BITS)) &
           ((1u << VXD_DAG_INDEX_TAG_BITS) - 1);
}

/* The bits of a slot's tag, to be set where it has none. */
VXD_HD uint64_t vxd_dag_tag_bits(uint32_t tag, int slot)
{
    return (uint64_t)tag << (slot * VXD_DAG_INDEX_TAG_BITS);
}

/* The bucket of a hash, 0 .. n_buckets - 1. */
VXD_HD uint32_t vxd_dag_home(uint64_t hash, uint32_t n_buckets)
{
    return (uint32_t)((hash >> 32) * n_buckets >> 32);
}

/* The bucket after a full one: some further on, by hash, so that full ones that lie together
 * are not all gone through. */
VXD_HD uint32_t vxd_dag_bucket_after(uint64_t hash, uint32_t bucket, uint32_t n_buckets)
{
    uint32_t after = bucket + 1 + (uint32_t)(hash >> 8 & 31u);

    return after < n_buckets ? after : after % n_buckets;
}

/* Equal first words (of a leaf the first two) tell equal lengths: no read goes past the
 * shorter one's end. */
VXD_HD bool vxd_dag_words_equal(const uint32_t *a, const uint32_t *b, int n_words)
{
    for (int i = 0; i < n_words; i++) {
        if (a[i] != b[i]) {
            return false;
        }
    }
    return true;
}

/* Whether an index has no room for so many items: beyond six sevenths of its slots a warp's
 * searches, of which the longest counts, get long. */
VXD_HD bool vxd_dag_index_is_full(uint64_t n_items, uint64_t n_slots)
{
    return n_items * 7 > n_slots * 6;
}

/* The address of an item, VXD_DAG_EMPTY where it is not there, while nobody inserts. */
VXD_HD uint32_t vxd_dag_index_find(const struct vxd_dag_index_bucket *buckets,
                                   uint32_t n_buckets, const struct vxd_dag_view *view,
                                   enum vxd_dag_kind kind, const uint32_t *words,
                                   int n_words)
{
    uint64_t hash = vxd_dag_hash((uint32_t)kind, words, n_words);
    uint32_t tag = vxd_dag_tag_of(hash, kind);
    uint32_t at = vxd_dag_home(hash, n_buckets);

    for (uint32_t i = 0; i < n_buckets && i < VXD_DAG_INDEX_PROBES; i++) {
        const struct vxd_dag_index_bucket *bucket = &buckets[at];

        for (int slot = 0; slot < VXD_DAG_INDEX_SLOTS; slot++) {
            if (bucket->refs[slot] == VXD_DAG_EMPTY) {
                return VXD_DAG_EMPTY;
            }
            if (vxd_dag_tag_at(bucket->tags, slot) == tag &&
                vxd_dag_words_equal(vxd_dag_words(view, bucket->refs[slot]), words,
                                    n_words)) {
                return bucket->refs[slot];
            }
        }
        at = vxd_dag_bucket_after(hash, at, n_buckets);
    }
    return VXD_DAG_EMPTY;
}

#endif
