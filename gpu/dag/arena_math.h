// SPDX-License-Identifier: Apache-2.0
/* The arena's index, as both backends lay it out: a table of buckets of 32 bytes, each six
 * addresses and six tags of eight bits of hash and two of kind. A full bucket goes on in the
 * next one; items are never taken out, so a bucket with room ends a search. */
#ifndef VXD_GPU_DAG_ARENA_MATH_H
#define VXD_GPU_DAG_ARENA_MATH_H

#include "gpu/dag/dag_math.h"

enum {
    VXD_DAG_BUCKET_SLOTS = 6,
    VXD_DAG_TAG_BITS = 10
};

#define VXD_DAG_TAG_MASK (((uint64_t)1 << VXD_DAG_TAG_BITS) - 1)
#define VXD_DAG_TAG_ONES 0x0004010040100401ULL /* 1 in each of the six tags */
#define VXD_DAG_TAG_TOPS (VXD_DAG_TAG_ONES << (VXD_DAG_TAG_BITS - 1))
#define VXD_DAG_TAG_LOWS (VXD_DAG_TAG_TOPS - VXD_DAG_TAG_ONES) /* all bits but the tops */
#define VXD_DAG_TAGS_FREE                                                                \
    (VXD_DAG_TAG_ONES * VXD_DAG_TAG_MASK) /* of kind 3, which no item has */

struct vxd_dag_bucket {
    uint32_t refs[VXD_DAG_BUCKET_SLOTS]; /* from the first on, VXD_DAG_EMPTY: room */
    uint64_t tags;
};

VXD_HD uint64_t vxd_dag_tag(uint64_t hash, unsigned kind)
{
    return (hash & 0xffu) << 2 | kind;
}

/* Where the search of a hash begins. */
VXD_HD uint32_t vxd_dag_bucket_home(uint64_t hash, uint32_t n_buckets)
{
    return (uint32_t)(((hash >> 22 & 0xffffffffu) * n_buckets) >> 32);
}

/* The top bit of each tag that is equal to this one. */
VXD_HD uint64_t vxd_dag_bucket_equal(uint64_t tags, uint64_t tag)
{
    uint64_t differ = tags ^ (tag * VXD_DAG_TAG_ONES);

    return ~(((differ & VXD_DAG_TAG_LOWS) + VXD_DAG_TAG_LOWS) | differ) &
           VXD_DAG_TAG_TOPS;
}

/* Tags with one slot's set. */
VXD_HD uint64_t vxd_dag_bucket_with(uint64_t tags, int slot, uint64_t tag)
{
    int shift = slot * VXD_DAG_TAG_BITS;

    return (tags & ~(VXD_DAG_TAG_MASK << shift)) | tag << shift;
}

#endif
