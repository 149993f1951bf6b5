// SPDX-License-Identifier: Apache-2.0
/* Marks of collections: a bit for each word of a store, in groups of 32 with the number
 * of marks before each group, so that marked items are numbered by address. */
#ifndef VXD_GPU_SVDAG_COLLECT_COLLECT_MATH_H
#define VXD_GPU_SVDAG_COLLECT_COLLECT_MATH_H

#include "gpu/svdag/node/node_math.h"

/* Marks of the 32 words from a multiple of 32 on. */
struct vxd_svdag_mark {
    uint32_t bits;
    uint32_t base; /* number of marks before this group, after ranking */
};

enum {
    VXD_SVDAG_MARK_WORDS = 32,
    VXD_SVDAG_PAGE_MARKS =
        (1 << VXD_SVDAG_CHUNK_BITS) / VXD_SVDAG_MARK_WORDS /* groups of a chunk */
};

VXD_HD uint32_t vxd_svdag_mark_bit(uint32_t ref)
{
    return 1u << (ref & 31u);
}

/* Number of a marked word. */
VXD_HD uint32_t vxd_svdag_mark_number(const struct vxd_svdag_mark *mark, uint32_t ref)
{
    return mark->base +
           (uint32_t)vxd_svdag_popc(mark->bits & (vxd_svdag_mark_bit(ref) - 1));
}

/* The kind of items listed for a height; 0 means blocks. */
VXD_HD enum vxd_svdag_kind vxd_svdag_kind_at(int height)
{
    return height == 0                       ? VXD_SVDAG_BLOCK
           : height == VXD_SVDAG_LEAF_HEIGHT ? VXD_SVDAG_LEAF
                                             : VXD_SVDAG_INNER;
}

/* The references of an item: the index of the first one, and their number. They are the
 * children of an inner node, or the block of a leaf. */
VXD_HD int vxd_svdag_item_refs(int value_bits, enum vxd_svdag_kind kind, int n_words,
                               int *first)
{
    *first = kind == VXD_SVDAG_INNER ? 1 : 2;
    return kind == VXD_SVDAG_INNER                     ? n_words - 1
           : kind == VXD_SVDAG_LEAF && value_bits >= 8 ? 1
                                                       : 0;
}

#endif
