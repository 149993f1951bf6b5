// SPDX-License-Identifier: Apache-2.0
/* A tree in parts, in Morton order: what one region, or one export, is spread over threads
 * by. */
#ifndef VXD_GPU_SVDAG_QUERY_TREE_PARTS_MATH_H
#define VXD_GPU_SVDAG_QUERY_TREE_PARTS_MATH_H

#include "gpu/svdag/query/region_math.h"

enum {
    VXD_SVDAG_SUBTREE_LEVELS = 3,
    VXD_SVDAG_MAX_SUBTREES = 512 /* 8^3 */
};

/* The cubes VXD_SVDAG_SUBTREE_LEVELS below the smallest one that holds an area, or as many as
 * there are down to a height. */
struct vxd_svdag_subtrees {
    uint32_t x, y, z; /* of the cube that holds all */
    int height;       /* of the parts */
    int n_levels;
};

/* The area is not empty; no part is lower than least_height, nor than leaves. */
VXD_HD struct vxd_svdag_subtrees vxd_svdag_subtrees_of(const struct vxd_svdag_area *area,
                                                       int least_height)
{
    uint32_t differ = 0;
    int least =
        least_height > VXD_SVDAG_LEAF_HEIGHT ? least_height : (int)VXD_SVDAG_LEAF_HEIGHT;
    struct vxd_svdag_subtrees subtrees;

    for (int axis = 0; axis < 3; axis++) {
        differ |= (uint32_t)area->low[axis] ^ (uint32_t)(area->high[axis] - 1);
    }
    subtrees.height = least;
    while (differ >> subtrees.height != 0) {
        subtrees.height++;
    }
    subtrees.n_levels = subtrees.height - least < VXD_SVDAG_SUBTREE_LEVELS
                            ? subtrees.height - least
                            : (int)VXD_SVDAG_SUBTREE_LEVELS;
    subtrees.x = (uint32_t)area->low[0] >> subtrees.height << subtrees.height;
    subtrees.y = (uint32_t)area->low[1] >> subtrees.height << subtrees.height;
    subtrees.z = (uint32_t)area->low[2] >> subtrees.height << subtrees.height;
    subtrees.height -= subtrees.n_levels;
    return subtrees;
}

VXD_HD uint32_t vxd_svdag_subtrees_n(const struct vxd_svdag_subtrees *subtrees)
{
    return 1u << (3 * subtrees->n_levels);
}

/* Part i of a root's tree. */
VXD_HD struct vxd_svdag_position
vxd_svdag_subtree(const struct vxd_svdag_view *view, uint32_t root,
                  const struct vxd_svdag_subtrees *subtrees, uint32_t i)
{
    return vxd_svdag_position_at(
        view, root, subtrees->x | (uint32_t)vxd_gather3(i >> 2) << subtrees->height,
        subtrees->y | (uint32_t)vxd_gather3(i >> 1) << subtrees->height,
        subtrees->z | (uint32_t)vxd_gather3(i) << subtrees->height, subtrees->height);
}

#endif
