// SPDX-License-Identifier: Apache-2.0
/* Face neighbours of a leaf's voxels, by masks: the directions are -x +x -y +y -z +z. */
#ifndef VXD_GPU_DAG_MORPH_MATH_H
#define VXD_GPU_DAG_MORPH_MATH_H

#include "gpu/dag/shape_math.h"

/* Bit of a voxel's neighbour, in this leaf or in the next one that way. */
VXD_HD int vxd_dag_neighbour_bit(int bit, int direction, bool *is_next)
{
    const int axis = direction >> 1;
    const int low = 4 >> axis;
    const int high = 32 >> axis;
    const int at = ((bit & high) != 0 ? 2 : 0) + ((bit & low) != 0 ? 1 : 0);
    const int to = (direction & 1) != 0 ? at + 1 : at - 1;

    *is_next = to < 0 || to > 3;
    return (bit & ~(low | high)) | ((to & 2) != 0 ? high : 0) | ((to & 1) != 0 ? low : 0);
}

/* For each voxel, whether its neighbour is in `mask`, or in that of the next leaf. */
VXD_HD uint64_t vxd_dag_neighbours(uint64_t mask, uint64_t next, int direction)
{
    const int axis = direction >> 1;
    const int low = 4 >> axis;
    const int high = 32 >> axis;
    uint64_t planes[4];

    for (int k = 0; k < 4; k++) {
        planes[k] = vxd_dag_leaf_plane(axis, k);
    }
    if ((direction & 1) != 0) {
        return (mask & (planes[1] | planes[3])) >> low |
               (mask & planes[2]) >> (high - low) | (next & planes[0]) << (high + low);
    }
    return (mask & (planes[0] | planes[2])) << low | (mask & planes[1]) << (high - low) |
           (next & planes[3]) >> (high + low);
}

/* Voxels that are in at least `threshold` (1 to 6) of six masks. */
VXD_HD uint64_t vxd_dag_at_least(const uint64_t masks[6], int threshold)
{
    uint64_t ones = 0;
    uint64_t twos = 0;
    uint64_t fours = 0;

    for (int i = 0; i < 6; i++) {
        uint64_t carry = ones & masks[i];

        ones ^= masks[i];
        fours |= twos & carry;
        twos ^= carry;
    }
    switch (threshold) {
    case 1:
        return ones | twos | fours;
    case 2:
        return twos | fours;
    case 3:
        return (ones & twos) | fours;
    case 4:
        return fours;
    case 5:
        return fours & (ones | twos);
    default:
        return fours & twos;
    }
}

#endif
