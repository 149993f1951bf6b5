// SPDX-License-Identifier: Apache-2.0
/* Rows of bits, as both backends compile them. */
#ifndef VXD_GPU_SVDAG_DIFF_BITS_MATH_H
#define VXD_GPU_SVDAG_DIFF_BITS_MATH_H

#include "gpu/svdag/node/node_math.h"

enum {
    VXD_SVDAG_LEAF_SIDE = 4,
    VXD_SVDAG_LEAF_ROWS = 16,   /* of a leaf along z, x slowest */
    VXD_SVDAG_WORD_LEAVES = 16, /* along z */
};

struct vxd_svdag_bits {
    int64_t low[3];
    int64_t size[3]; /* voxels, multiples of 4 */
    int64_t n_words; /* of a row */
    uint64_t *occupied;
    uint64_t *free;
};

/* The occupied and FREE voxels of the leaf that holds a voxel, none outside the scene. Returns
 * the height of the cube that is known to be like this leaf, at least that of leaves. */
VXD_HD int vxd_svdag_masks_at(const struct vxd_svdag_view *view, uint32_t root, int64_t x,
                              int64_t y, int64_t z, uint64_t *occupied, uint64_t *free)
{
    int64_t side = (int64_t)1 << view->depth;
    int height = view->depth;
    uint32_t ref = root;

    if (x < 0 || y < 0 || z < 0 || x >= side || y >= side || z >= side) {
        *occupied = 0;
        *free = 0;
        return VXD_SVDAG_LEAF_HEIGHT;
    }
    while (height > VXD_SVDAG_LEAF_HEIGHT && vxd_svdag_is_node(ref)) {
        ref = vxd_svdag_child_ref(
            view, ref, vxd_svdag_octant((uint32_t)x, (uint32_t)y, (uint32_t)z, height));
        height--;
    }
    vxd_svdag_spot_masks(view, ref, occupied, free);
    return height;
}

/* Four voxels along z of a leaf's mask, as bits 0 to 3. */
VXD_HD uint64_t vxd_svdag_leaf_row(uint64_t mask, int row)
{
    int first = vxd_svdag_leaf_bit((uint32_t)row >> 2, (uint32_t)row & 3u, 0);
    uint64_t low = mask >> first & 3u;
    uint64_t high = mask >> (first + 8) & 3u;

    return low | high << 2;
}

#endif
