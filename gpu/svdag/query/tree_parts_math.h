// SPDX-License-Identifier: Apache-2.0
/* A tree in parts, in Morton order: what one region, or one export, is spread over threads
 * by. */
#ifndef VXD_GPU_SVDAG_QUERY_TREE_PARTS_MATH_H
#define VXD_GPU_SVDAG_QUERY_TREE_PARTS_MATH_H

#include "gpu/svdag/query/region_math.h"

enum {
    VXD_SVDAG_PART_LEVELS = 3,
    VXD_SVDAG_MAX_PARTS = 512 /* 8^3 */
};

/* The cubes VXD_SVDAG_PART_LEVELS below the smallest one that holds an area, or as many as
 * there are down to a height. */
struct vxd_svdag_parts {
    uint32_t x, y, z; /* of the cube that holds all */
    int height;       /* of the parts */
    int n_levels;
};

/* The area is not empty; no part is lower than least_height, nor than leaves. */
VXD_HD struct vxd_svdag_parts vxd_svdag_parts_of(const struct vxd_svdag_area *area,
                                                 int least_height)
{
    uint32_t differ = 0;
    int least =
        least_height > VXD_SVDAG_LEAF_HEIGHT ? least_height : (int)VXD_SVDAG_LEAF_HEIGHT;
    struct vxd_svdag_parts parts;

    for (int axis = 0; axis < 3; axis++) {
        differ |= (uint32_t)area->low[axis] ^ (uint32_t)(area->high[axis] - 1);
    }
    parts.height = least;
    while (differ >> parts.height != 0) {
        parts.height++;
    }
    parts.n_levels = parts.height - least < VXD_SVDAG_PART_LEVELS
                         ? parts.height - least
                         : (int)VXD_SVDAG_PART_LEVELS;
    parts.x = (uint32_t)area->low[0] >> parts.height << parts.height;
    parts.y = (uint32_t)area->low[1] >> parts.height << parts.height;
    parts.z = (uint32_t)area->low[2] >> parts.height << parts.height;
    parts.height -= parts.n_levels;
    return parts;
}

VXD_HD uint32_t vxd_svdag_parts_n(const struct vxd_svdag_parts *parts)
{
    return 1u << (3 * parts->n_levels);
}

/* Part i of a root's tree. */
VXD_HD struct vxd_svdag_spot vxd_svdag_part(const struct vxd_svdag_view *view,
                                            uint32_t root,
                                            const struct vxd_svdag_parts *parts,
                                            uint32_t i)
{
    return vxd_svdag_spot_at(
        view, root, parts->x | (uint32_t)vxd_gather3(i >> 2) << parts->height,
        parts->y | (uint32_t)vxd_gather3(i >> 1) << parts->height,
        parts->z | (uint32_t)vxd_gather3(i) << parts->height, parts->height);
}

#endif
