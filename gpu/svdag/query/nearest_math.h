// SPDX-License-Identifier: Apache-2.0
/* The occupied voxel nearest to a point: depth first, the child on the point's side of each
 * plane before its mirror images, past every cube that can have nothing better. A candidate is
 * better by its squared distance, then by its Morton code, all in integers: which way the tree
 * is gone changes the time alone. */
#ifndef VXD_GPU_SVDAG_QUERY_NEAREST_MATH_H
#define VXD_GPU_SVDAG_QUERY_NEAREST_MATH_H

#include "gpu/svdag/query/region_math.h"

struct vxd_svdag_nearest {
    int64_t point[3]; /* units */
    uint64_t square;  /* the best so far; before it the radius's */
    uint64_t code;    /* its Morton code; before it the highest */
    uint32_t value;
    bool is_found;
};

VXD_HD uint64_t vxd_svdag_code(uint32_t x, uint32_t y, uint32_t z)
{
    return vxd_spread3(x) << 2 | vxd_spread3(y) << 1 | vxd_spread3(z);
}

/* Square of the distance to the nearest centre of a voxel of the cube. */
VXD_HD uint64_t vxd_svdag_tree_cube_square(const int64_t point[3],
                                           const struct vxd_svdag_position *tree_cube)
{
    int64_t last = ((int64_t)1 << tree_cube->height) - 1;

    return vxd_svdag_axis_square(
               vxd_svdag_nearest_centre(point[0], tree_cube->x, tree_cube->x + last)) +
           vxd_svdag_axis_square(
               vxd_svdag_nearest_centre(point[1], tree_cube->y, tree_cube->y + last)) +
           vxd_svdag_axis_square(
               vxd_svdag_nearest_centre(point[2], tree_cube->z, tree_cube->z + last));
}

VXD_HD bool vxd_svdag_nearest_may(const struct vxd_svdag_nearest *best, uint64_t square,
                                  uint64_t code)
{
    return square < best->square || (square == best->square && code < best->code);
}

VXD_HD void vxd_svdag_nearest_take(struct vxd_svdag_nearest *best, uint64_t square,
                                   uint64_t code, uint32_t value)
{
    if (vxd_svdag_nearest_may(best, square, code)) {
        best->square = square;
        best->code = code;
        best->value = value;
        best->is_found = true;
    }
}

/* Lowest of the voxels low .. last of an axis that are nearest to a point. */
VXD_HD uint32_t vxd_svdag_nearest_index(int64_t units, int64_t low, int64_t last)
{
    /* On the border of two voxels both are as near. */
    return (uint32_t)vxd_svdag_clamp((units - 1) >> 8, low, last);
}

VXD_HD void vxd_svdag_nearest_uniform(struct vxd_svdag_nearest *best,
                                      const struct vxd_svdag_position *tree_cube)
{
    int64_t last = ((int64_t)1 << tree_cube->height) - 1;

    vxd_svdag_nearest_take(
        best, vxd_svdag_tree_cube_square(best->point, tree_cube),
        vxd_svdag_code(
            vxd_svdag_nearest_index(best->point[0], tree_cube->x, tree_cube->x + last),
            vxd_svdag_nearest_index(best->point[1], tree_cube->y, tree_cube->y + last),
            vxd_svdag_nearest_index(best->point[2], tree_cube->z, tree_cube->z + last)),
        vxd_svdag_uniform_value(tree_cube->ref));
}

VXD_HD void vxd_svdag_nearest_leaf(const struct vxd_svdag_view *view,
                                   struct vxd_svdag_nearest *best,
                                   const struct vxd_svdag_position *tree_cube)
{
    struct vxd_svdag_item leaf = vxd_svdag_leaf_item(view, tree_cube->ref);
    uint64_t occupied = vxd_svdag_item_occupied(view, &leaf);
    uint64_t code = vxd_svdag_code(tree_cube->x, tree_cube->y, tree_cube->z);
    uint32_t corner[3] = {tree_cube->x, tree_cube->y, tree_cube->z};
    uint64_t squares[3][4];

    for (int axis = 0; axis < 3; axis++) {
        for (int i = 0; i < 4; i++) {
            int64_t voxel = (int64_t)corner[axis] + i;

            squares[axis][i] = vxd_svdag_axis_square(
                vxd_svdag_nearest_centre(best->point[axis], voxel, voxel));
        }
    }
    for (; occupied != 0; occupied &= occupied - 1) {
        int bit = vxd_svdag_low_bit(occupied);
        uint64_t square = squares[0][(bit >> 4 & 2) | (bit >> 2 & 1)] +
                          squares[1][(bit >> 3 & 2) | (bit >> 1 & 1)] +
                          squares[2][(bit >> 2 & 2) | (bit & 1)];

        if (vxd_svdag_nearest_may(best, square, code + (uint64_t)bit)) {
            vxd_svdag_nearest_take(best, square, code + (uint64_t)bit,
                                   vxd_svdag_item_value(view, &leaf, bit));
        }
    }
}

/* Whether something better may stand in a cube, by its place alone. */
VXD_HD bool vxd_svdag_nearest_reaches(const struct vxd_svdag_nearest *best,
                                      const struct vxd_svdag_position *tree_cube)
{
    /* The first code of the cube is the lowest. */
    return vxd_svdag_nearest_may(
        best, vxd_svdag_tree_cube_square(best->point, tree_cube),
        vxd_svdag_code(tree_cube->x, tree_cube->y, tree_cube->z));
}

/* Whether something is occupied there, as far as the cube itself decides it. */
VXD_HD bool vxd_svdag_nearest_expands(const struct vxd_svdag_view *view,
                                      const struct vxd_svdag_position *tree_cube)
{
    if (!vxd_svdag_is_node(tree_cube->ref)) {
        return vxd_svdag_uniform_state(view, tree_cube->ref) == VXD_SVDAG_OCCUPIED;
    }
    return tree_cube->height == VXD_SVDAG_LEAF_HEIGHT ||
           (vxd_svdag_words(view, tree_cube->ref)[0] & VXD_SVDAG_HAS_OCCUPIED) != 0;
}

/* Octant of the child on the point's side of the cube's middle planes. */
VXD_HD int vxd_svdag_nearest_octant(const int64_t point[3],
                                    const struct vxd_svdag_position *tree_cube)
{
    int64_t half = (int64_t)1 << (tree_cube->height - 1);

    return (point[0] >= (tree_cube->x + half) * VXD_SVDAG_UNIT ? 4 : 0) |
           (point[1] >= (tree_cube->y + half) * VXD_SVDAG_UNIT ? 2 : 0) |
           (point[2] >= (tree_cube->z + half) * VXD_SVDAG_UNIT ? 1 : 0);
}

/* Looks below a root; the point and the radius are in *best. A cube's place is looked at before
 * its reference is read. */
VXD_HD void vxd_svdag_nearest_find(const struct vxd_svdag_view *view, uint32_t root,
                                   struct vxd_svdag_nearest *best)
{
    /* Mirror images of the nearest child, four bits each, lowest first: near ones first. */
    const uint32_t order = 0x76534210u;
    struct vxd_svdag_position tree_cube = {root, 0, 0, 0, view->depth};
    uint32_t refs[VXD_SVDAG_MAX_DEPTH + 1];
    uint8_t nearest[VXD_SVDAG_MAX_DEPTH + 1];
    uint8_t n_done[VXD_SVDAG_MAX_DEPTH + 1];
    int height = view->depth + 1; /* of the cube whose children are looked at */
    bool reaches = vxd_svdag_nearest_reaches(best, &tree_cube);

    for (;;) {
        uint32_t mask;
        int octant;

        if (reaches && vxd_svdag_nearest_expands(view, &tree_cube)) {
            if (!vxd_svdag_is_node(tree_cube.ref)) {
                vxd_svdag_nearest_uniform(best, &tree_cube);
            } else if (tree_cube.height == VXD_SVDAG_LEAF_HEIGHT) {
                vxd_svdag_nearest_leaf(view, best, &tree_cube);
            } else {
                height = tree_cube.height;
                refs[height] = tree_cube.ref;
                nearest[height] =
                    (uint8_t)vxd_svdag_nearest_octant(best->point, &tree_cube);
                n_done[height] = 0;
            }
        }
        // cppcheck-suppress uninitvar ; set with the height
        while (height <= view->depth && n_done[height] == 8) {
            height++;
        }
        if (height > view->depth) {
            return;
        }
        octant = (int)(order >> (4 * n_done[height]) & 7u) ^ nearest[height];
        n_done[height]++;
        mask = ~(((uint32_t)1 << height) - 1);
        tree_cube.height = height - 1;
        tree_cube.x = (tree_cube.x & mask) | (uint32_t)(octant >> 2 & 1)
                                                 << tree_cube.height;
        tree_cube.y = (tree_cube.y & mask) | (uint32_t)(octant >> 1 & 1)
                                                 << tree_cube.height;
        tree_cube.z = (tree_cube.z & mask) | (uint32_t)(octant & 1) << tree_cube.height;
        reaches = vxd_svdag_nearest_reaches(best, &tree_cube);
        if (reaches) {
            tree_cube.ref = vxd_svdag_child_ref(view, refs[height], octant);
        }
    }
}

/* The answer to one point. */
VXD_HD void vxd_svdag_nearest_answer(const struct vxd_svdag_view *view, uint32_t root,
                                     const int64_t point[3], int64_t radius,
                                     int32_t voxel[3], uint64_t *square, uint16_t *value)
{
    int64_t most = VXD_SVDAG_MAX_COORDINATE;
    uint64_t r = (uint64_t)vxd_svdag_clamp(radius, 0, most - 1);
    struct vxd_svdag_nearest best = {{vxd_svdag_clamp(point[0], -most, most),
                                      vxd_svdag_clamp(point[1], -most, most),
                                      vxd_svdag_clamp(point[2], -most, most)},
                                     r * r,
                                     ~(uint64_t)0,
                                     0,
                                     false};

    if (radius >= 0) {
        vxd_svdag_nearest_find(view, root, &best);
    }
    voxel[0] = best.is_found ? (int32_t)vxd_gather3(best.code >> 2) : -1;
    voxel[1] = best.is_found ? (int32_t)vxd_gather3(best.code >> 1) : -1;
    voxel[2] = best.is_found ? (int32_t)vxd_gather3(best.code) : -1;
    *square = best.is_found ? best.square : 0;
    if (value != NULL) {
        *value = (uint16_t)best.value;
    }
}

#endif
