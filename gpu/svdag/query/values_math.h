// SPDX-License-Identifier: Apache-2.0
/* What one voxel is to those who ask. */
#ifndef VXD_GPU_SVDAG_QUERY_VALUES_MATH_H
#define VXD_GPU_SVDAG_QUERY_VALUES_MATH_H

#include "gpu/svdag/node/node_math.h"

/* State of any voxel, and its material where it is occupied, else 0. */
VXD_HD unsigned vxd_svdag_values_answer(const struct vxd_svdag_view *view, uint32_t root,
                                        const int32_t voxel[3], uint16_t *value)
{
    /* Negative indices become large ones. */
    uint32_t x = (uint32_t)voxel[0];
    uint32_t y = (uint32_t)voxel[1];
    uint32_t z = (uint32_t)voxel[2];
    uint32_t stored = 0;
    unsigned state = VXD_SVDAG_UNKNOWN;

    if ((x | y | z) >> view->depth == 0) {
        state = vxd_svdag_voxel(view, root, x, y, z, &stored);
    }
    *value = state == VXD_SVDAG_OCCUPIED ? (uint16_t)stored : 0;
    return state;
}

#endif
