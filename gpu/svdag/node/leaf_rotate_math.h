// SPDX-License-Identifier: Apache-2.0
/* Operations on the 64-bit masks of leaves: cutting four layers out of two adjacent
 * leaves, mirroring an axis, exchanging two axes. The bit of a voxel is x1 y1 z1 x0 y0 z0
 * in base two (vxd_svdag_leaf_bit). Along an axis a layer therefore stands 1 or 7 units
 * after the one before it, and the first layer of the next leaf stands 9 units before the
 * last layer of this one. */
#ifndef VXD_GPU_SVDAG_NODE_LEAF_ROTATE_MATH_H
#define VXD_GPU_SVDAG_NODE_LEAF_ROTATE_MATH_H

#include "gpu/svdag/node/node_words_math.h"

/* The unit of an axis: distance in bits from the first layer to the second one; 4, 2,
 * 1. */
VXD_HD int vxd_svdag_layer_unit(int axis)
{
    return 4 >> axis;
}

/* Mask of the second and fourth layers along an axis. */
VXD_HD uint64_t vxd_svdag_odd_layers(int axis)
{
    return axis == 0   ? (uint64_t)0xf0f0f0f0f0f0f0f0
           : axis == 1 ? (uint64_t)0xcccccccccccccccc
                       : (uint64_t)0xaaaaaaaaaaaaaaaa;
}

/* Mask of the third and fourth layers along an axis. */
VXD_HD uint64_t vxd_svdag_high_layers(int axis)
{
    return axis == 0   ? (uint64_t)0xffffffff00000000
           : axis == 1 ? (uint64_t)0xffff0000ffff0000
                       : (uint64_t)0xff00ff00ff00ff00;
}

/* Four consecutive layers of two leaves, the second of which follows the first along an
 * axis; `from` (0 to 3) is the first layer. */
VXD_HD uint64_t vxd_svdag_layers_from(uint64_t first, uint64_t second, int axis, int from)
{
    const int unit = vxd_svdag_layer_unit(axis);
    const uint64_t odd = vxd_svdag_odd_layers(axis);
    const uint64_t high = vxd_svdag_high_layers(axis);

    switch (from) {
    case 0:
        return first;
    case 1:
        return (first & odd) >> unit | (first & high & ~odd) >> 7 * unit |
               (second & ~high & ~odd) << 9 * unit;
    case 2:
        return (first & high) >> 8 * unit | (second & ~high) << 8 * unit;
    default:
        return (first & high & odd) >> 9 * unit | (second & ~odd) << unit |
               (second & ~high & odd) << 7 * unit;
    }
}

/* Reverses the order of the layers along an axis. */
VXD_HD uint64_t vxd_svdag_mirror(uint64_t mask, int axis)
{
    const int unit = vxd_svdag_layer_unit(axis);
    const uint64_t odd = vxd_svdag_odd_layers(axis);
    const uint64_t high = vxd_svdag_high_layers(axis);
    const uint64_t pairs = (mask & odd) >> unit | (mask & ~odd) << unit;

    return (pairs & high) >> 8 * unit | (pairs & ~high) << 8 * unit;
}

/* Exchanges two axes; `other` is the larger one. */
VXD_HD uint64_t vxd_svdag_swap_axes(uint64_t mask, int axis, int other)
{
    const int shift = vxd_svdag_layer_unit(axis) - vxd_svdag_layer_unit(other);
    const uint64_t low = vxd_svdag_odd_layers(other) & ~vxd_svdag_odd_layers(axis);
    const uint64_t high = vxd_svdag_high_layers(other) & ~vxd_svdag_high_layers(axis);
    uint64_t differ = (mask >> shift ^ mask) & low;

    mask ^= differ ^ differ << shift;
    differ = (mask >> 8 * shift ^ mask) & high;
    return mask ^ differ ^ differ << 8 * shift;
}

/* The leaf whose first voxel is from[] (0 to 3 on each axis) of the first of eight leaves
 * in octant order. */
VXD_HD uint64_t vxd_svdag_leaf_between(const uint64_t leaves[8], const int from[3])
{
    uint64_t rows[4];

    for (size_t i = 0; i < 4; i++) {
        rows[i] = vxd_svdag_layers_from(leaves[2 * i], leaves[2 * i + 1], 2, from[2]);
    }
    return vxd_svdag_layers_from(vxd_svdag_layers_from(rows[0], rows[1], 1, from[1]),
                                 vxd_svdag_layers_from(rows[2], rows[3], 1, from[1]), 0,
                                 from[0]);
}

/* Rotates a mask by a matrix with one 1 or -1 in each row and column: voxel p of the
 * result is voxel M p of the mask, counted from the other side along axes with a -1. */
VXD_HD uint64_t vxd_svdag_rotate_mask(uint64_t mask, const int8_t matrix[3][3])
{
    /* The axis of the mask for each axis of the result. */
    int axes[3] = {0, 0, 0};

    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 3; j++) {
            if (matrix[i][j] != 0) {
                axes[j] = i;
                mask = matrix[i][j] < 0 ? vxd_svdag_mirror(mask, i) : mask;
            }
        }
    }
    if (axes[0] != 0) {
        mask = vxd_svdag_swap_axes(mask, 0, axes[0]);
        /* The exchange moved axis 0 to where axes[0] was. */
        axes[1] = axes[1] == 0 ? axes[0] : axes[1];
        axes[2] = axes[2] == 0 ? axes[0] : axes[2];
    }
    return axes[1] == 1 ? mask : vxd_svdag_swap_axes(mask, 1, 2);
}

#endif
