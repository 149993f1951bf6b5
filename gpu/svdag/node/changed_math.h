// SPDX-License-Identifier: Apache-2.0
/* Which of several roots, newest first, is the newest in which a voxel changed. Equal references
 * are equal subtrees, so two roots are compared only as far down as they differ: for most pairs
 * that is the first few levels. */
#ifndef VXD_GPU_SVDAG_NODE_CHANGED_MATH_H
#define VXD_GPU_SVDAG_NODE_CHANGED_MATH_H

#include "gpu/svdag/node/node_words_math.h"
#include "gpu/svdag/node/tree_cursor_math.h"

/* State of a voxel, and its value in the bits above, of a reference at leaf height. */
VXD_HD uint32_t vxd_svdag_leaf_answer(const struct vxd_svdag_view *view, uint32_t ref,
                                      int bit)
{
    struct vxd_svdag_item leaf;
    uint32_t value;

    if (ref == VXD_SVDAG_EMPTY) {
        return VXD_SVDAG_UNKNOWN;
    }
    if (!vxd_svdag_is_node(ref)) {
        value = vxd_svdag_uniform_value(ref);
    } else {
        leaf = vxd_svdag_leaf_item(view, ref);
        if ((vxd_svdag_leaf_mask(leaf.words) >> bit & 1) == 0) {
            return VXD_SVDAG_UNKNOWN;
        }
        value = vxd_svdag_item_value(view, &leaf, bit);
    }
    return ((int)value == view->free_value ? VXD_SVDAG_FREE : VXD_SVDAG_OCCUPIED) |
           value << 8;
}

/* Whether a voxel of the scene has the same state and material under two roots. */
VXD_HD bool vxd_svdag_is_same(const struct vxd_svdag_view *view, uint32_t a, uint32_t b,
                              uint32_t x, uint32_t y, uint32_t z)
{
    int bit = vxd_svdag_leaf_bit(x, y, z);

    for (int h = view->depth; h > VXD_SVDAG_LEAF_HEIGHT && a != b; h--) {
        int octant = vxd_svdag_octant(x, y, z, h);

        a = vxd_svdag_child_ref(view, a, octant);
        b = vxd_svdag_child_ref(view, b, octant);
    }
    return a == b ||
           vxd_svdag_leaf_answer(view, a, bit) == vxd_svdag_leaf_answer(view, b, bit);
}

/* The first i whose root differs from the next one at a voxel; the last root's index where all
 * of them are the same there. n_roots is at least 1. */
VXD_HD uint32_t vxd_svdag_changed_answer(const struct vxd_svdag_view *view,
                                         const uint32_t *roots, uint32_t n_roots,
                                         const int32_t voxel[3])
{
    /* Negative indices become large ones. */
    uint32_t x = (uint32_t)voxel[0];
    uint32_t y = (uint32_t)voxel[1];
    uint32_t z = (uint32_t)voxel[2];
    uint32_t i = 0;

    if ((x | y | z) >> view->depth != 0) {
        return n_roots - 1;
    }
    while (i + 1 < n_roots && vxd_svdag_is_same(view, roots[i], roots[i + 1], x, y, z)) {
        i++;
    }
    return i;
}

#endif
