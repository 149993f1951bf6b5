// SPDX-License-Identifier: Apache-2.0
/* Balls and boxes of voxels: which cubes and leaves lie in one, which states occur there, and
 * how many. Whatever numbers a region has, nothing overflows: they are clamped to beyond
 * every scene first. */
#ifndef VXD_GPU_SVDAG_QUERY_REGION_MATH_H
#define VXD_GPU_SVDAG_QUERY_REGION_MATH_H

#include "gpu/svdag/node/node_math.h"
#include "gpu/svdag/query/query.h"
#include "gpu/svdag/brush/brush_math.h"

/* A region's voxels. */
struct vxd_svdag_area {
    int32_t low[3], high[3]; /* indices, half-open, inside the scene; all 0: none */
    bool is_ball;
    int64_t centre[3]; /* units */
    uint64_t square;   /* of the radius */
};

VXD_HD int64_t vxd_svdag_clamp(int64_t v, int64_t low, int64_t high)
{
    return v < low ? low : v > high ? high : v;
}

/* Square of a distance along one axis. Capped, so that three fit a word: beyond the cap lies
 * no radius. */
VXD_HD uint64_t vxd_svdag_axis_square(int64_t distance)
{
    uint64_t d = (uint64_t)(distance < 0 ? -distance : distance);

    d = d > (uint64_t)VXD_SVDAG_MAX_COORDINATE ? (uint64_t)VXD_SVDAG_MAX_COORDINATE : d;
    return d * d;
}

/* First voxel of an axis whose centre is not below `units`, inside the scene. */
VXD_HD int32_t vxd_svdag_first_centre(int64_t units, int depth)
{
    int64_t half = VXD_SVDAG_UNIT / 2;
    int64_t at = vxd_svdag_clamp(units, 0, (int64_t)VXD_SVDAG_UNIT << depth);

    /* at >= 0, so that the quotient is rounded up. */
    return (int32_t)vxd_svdag_clamp((at + half - 1) / VXD_SVDAG_UNIT, 0,
                                    (int64_t)1 << depth);
}

VXD_HD bool vxd_svdag_area_is_empty(const struct vxd_svdag_area *area)
{
    return area->low[0] >= area->high[0] || area->low[1] >= area->high[1] ||
           area->low[2] >= area->high[2];
}

/* What is empty on one axis becomes so on all: every cube is outside. */
VXD_HD void vxd_svdag_area_trim(struct vxd_svdag_area *area)
{
    for (int axis = 0; axis < 3 && vxd_svdag_area_is_empty(area); axis++) {
        area->low[axis] = 0;
        area->high[axis] = 0;
    }
}

VXD_HD struct vxd_svdag_area vxd_svdag_area_of(const struct vxd_svdag_region *region,
                                               int depth)
{
    int64_t most = VXD_SVDAG_MAX_COORDINATE;
    int64_t r = vxd_svdag_clamp(region->r, -1, most - 1);
    struct vxd_svdag_area area;

    area.is_ball = r >= 0;
    area.square = r >= 0 ? (uint64_t)r * (uint64_t)r : 0;
    for (int axis = 0; axis < 3; axis++) {
        int64_t centre = vxd_svdag_clamp(region->centre[axis], -most, most);
        int64_t low = area.is_ball ? centre - r : region->low[axis];
        int64_t high = area.is_ball ? centre + r + 1 : region->high[axis];

        area.centre[axis] = centre;
        area.low[axis] = vxd_svdag_first_centre(low, depth);
        area.high[axis] = vxd_svdag_first_centre(high, depth);
    }
    vxd_svdag_area_trim(&area);
    return area;
}

/* The voxels of a box of indices. */
VXD_HD struct vxd_svdag_area vxd_svdag_area_of_box(const int64_t low[3],
                                                   const int64_t high[3], int depth)
{
    struct vxd_svdag_area area;

    area.is_ball = false;
    area.square = 0;
    for (int axis = 0; axis < 3; axis++) {
        area.centre[axis] = 0;
        area.low[axis] = (int32_t)vxd_svdag_clamp(low[axis], 0, (int64_t)1 << depth);
        area.high[axis] = (int32_t)vxd_svdag_clamp(high[axis], 0, (int64_t)1 << depth);
    }
    vxd_svdag_area_trim(&area);
    return area;
}

/* Distance along an axis from a point to the nearest of the centres of voxels low .. last. */
VXD_HD int64_t vxd_svdag_nearest_centre(int64_t units, int64_t low, int64_t last)
{
    /* The voxel that holds the point; shifts round down. */
    int64_t voxel = vxd_svdag_clamp(units >> 8, low, last);

    return voxel * VXD_SVDAG_UNIT + VXD_SVDAG_UNIT / 2 - units;
}

/* Exact: not OUTSIDE has a voxel of the area, and INSIDE nothing else. */
VXD_HD enum vxd_svdag_relation
vxd_svdag_area_relation(const struct vxd_svdag_area *area,
                        const struct vxd_svdag_position *tree_cube)
{
    int32_t corner[3] = {(int32_t)tree_cube->x, (int32_t)tree_cube->y,
                         (int32_t)tree_cube->z};
    int32_t side = (int32_t)1 << tree_cube->height;
    uint64_t nearest = 0;
    uint64_t farthest = 0;
    bool is_inside = true;

    for (int axis = 0; axis < 3; axis++) {
        int32_t low = corner[axis];
        int32_t high = low + side;

        if (low >= area->high[axis] || high <= area->low[axis]) {
            return VXD_SVDAG_OUTSIDE;
        }
        is_inside &= low >= area->low[axis] && high <= area->high[axis];
        if (area->is_ball) {
            int64_t centre = area->centre[axis];
            int64_t a = (int64_t)low * VXD_SVDAG_UNIT + VXD_SVDAG_UNIT / 2 - centre;
            int64_t b = (int64_t)high * VXD_SVDAG_UNIT - VXD_SVDAG_UNIT / 2 - centre;

            nearest +=
                vxd_svdag_axis_square(vxd_svdag_nearest_centre(centre, low, high - 1));
            farthest += vxd_svdag_axis_square(-a > b ? a : b);
        }
    }
    if (!area->is_ball) {
        return is_inside ? VXD_SVDAG_INSIDE : VXD_SVDAG_PARTIAL;
    }
    return nearest > area->square    ? VXD_SVDAG_OUTSIDE
           : farthest > area->square ? VXD_SVDAG_PARTIAL
                                     : VXD_SVDAG_INSIDE;
}

/* Voxels of the area in a leaf, which lies so to it. */
VXD_HD uint64_t vxd_svdag_area_mask(const struct vxd_svdag_area *area,
                                    const struct vxd_svdag_position *tree_cube,
                                    enum vxd_svdag_relation relation)
{
    int32_t corner[3] = {(int32_t)tree_cube->x, (int32_t)tree_cube->y,
                         (int32_t)tree_cube->z};
    uint64_t mask = ~(uint64_t)0;
    uint64_t squares[3][4];

    if (relation != VXD_SVDAG_PARTIAL) {
        return relation == VXD_SVDAG_INSIDE ? mask : 0;
    }
    for (int axis = 0; axis < 3; axis++) {
        uint64_t planes = 0;

        for (int k = 0; k < 4; k++) {
            int32_t voxel = corner[axis] + k;

            planes |= voxel >= area->low[axis] && voxel < area->high[axis]
                          ? vxd_svdag_leaf_plane(axis, k)
                          : 0;
            squares[axis][k] =
                vxd_svdag_axis_square((int64_t)voxel * VXD_SVDAG_UNIT +
                                      VXD_SVDAG_UNIT / 2 - area->centre[axis]);
        }
        mask &= planes;
    }
    return area->is_ball ? vxd_svdag_leaf_sums(squares, area->square) : mask;
}

/* Voxels of a box in a cube that lies not outside it. */
VXD_HD uint64_t vxd_svdag_area_volume(const struct vxd_svdag_area *area,
                                      const struct vxd_svdag_position *tree_cube)
{
    int32_t corner[3] = {(int32_t)tree_cube->x, (int32_t)tree_cube->y,
                         (int32_t)tree_cube->z};
    uint64_t volume = 1;

    for (int axis = 0; axis < 3; axis++) {
        int64_t low = corner[axis];
        int64_t high = low + ((int64_t)1 << tree_cube->height);

        volume *= (uint64_t)(vxd_svdag_clamp(high, area->low[axis], area->high[axis]) -
                             vxd_svdag_clamp(low, area->low[axis], area->high[axis]));
    }
    return volume;
}

/* Whether every voxel below an inner node is known to be occupied. */
VXD_HD bool vxd_svdag_is_full_inner(const uint32_t *words, int height)
{
    return height <= VXD_SVDAG_COUNT_HEIGHT && words[0] >> 10 == 1u << (3 * height);
}

/* States that may occur below an inner node, and those that surely do. */
VXD_HD void vxd_svdag_inner_states(const struct vxd_svdag_view *view,
                                   const struct vxd_svdag_position *tree_cube,
                                   unsigned *maybe, unsigned *sure)
{
    const uint32_t *words = vxd_svdag_words(view, tree_cube->ref);

    *sure = vxd_svdag_position_states(view, tree_cube) |
            vxd_svdag_state_if((words[0] & 0xffu) != 0xffu, VXD_SVDAG_UNKNOWN);
    *maybe =
        *sure | vxd_svdag_state_if(!vxd_svdag_is_full_inner(words, tree_cube->height),
                                   VXD_SVDAG_UNKNOWN);
}

/* Every state that a voxel of the scene can have. */
VXD_HD unsigned vxd_svdag_all_states(const struct vxd_svdag_view *view)
{
    return VXD_SVDAG_UNKNOWN | VXD_SVDAG_OCCUPIED |
           vxd_svdag_state_if(view->free_value >= 0, VXD_SVDAG_FREE);
}

/* Adds to *seen the states of the area's voxels in a cube, as far as the cube itself decides it.
 * True: what is below may add to them. */
VXD_HD bool vxd_svdag_area_states_tree_cube(const struct vxd_svdag_view *view,
                                            const struct vxd_svdag_area *area,
                                            const struct vxd_svdag_position *tree_cube,
                                            unsigned *seen)
{
    enum vxd_svdag_relation relation = vxd_svdag_area_relation(area, tree_cube);
    unsigned maybe = 0;
    unsigned sure = 0;

    if (relation == VXD_SVDAG_OUTSIDE) {
        return false;
    }
    if (!vxd_svdag_is_node(tree_cube->ref)) {
        sure = vxd_svdag_uniform_state(view, tree_cube->ref);
    } else if (tree_cube->height == VXD_SVDAG_LEAF_HEIGHT) {
        uint64_t mask = vxd_svdag_area_mask(area, tree_cube, relation);
        uint64_t occupied;
        uint64_t free;

        vxd_svdag_tree_cube_masks(view, tree_cube->ref, &occupied, &free);
        sure = vxd_svdag_state_if((mask & occupied) != 0, VXD_SVDAG_OCCUPIED) |
               vxd_svdag_state_if((mask & free) != 0, VXD_SVDAG_FREE) |
               vxd_svdag_state_if((mask & ~occupied & ~free) != 0, VXD_SVDAG_UNKNOWN);
    } else {
        vxd_svdag_inner_states(view, tree_cube, &maybe, &sure);
        sure = relation == VXD_SVDAG_INSIDE ? sure : 0;
    }
    *seen |= sure;
    return (maybe & ~*seen) != 0;
}

/* States of the area's voxels below a cube: a set of enum vxd_svdag_state. */
VXD_HD unsigned vxd_svdag_area_states(const struct vxd_svdag_view *view,
                                      const struct vxd_svdag_position *from,
                                      const struct vxd_svdag_area *area)
{
    unsigned all = vxd_svdag_all_states(view);
    struct vxd_svdag_cursor cursor;
    unsigned seen = 0;
    bool is_more = true;

    vxd_svdag_cursor_begin(&cursor, from);
    while (is_more && seen != all) {
        if (vxd_svdag_area_states_tree_cube(view, area, &cursor.tree_cube, &seen)) {
            vxd_svdag_cursor_down(view, &cursor);
        } else {
            is_more = vxd_svdag_cursor_next(view, &cursor);
        }
    }
    return seen;
}

/* Adds the area's voxels in a cube: counts[0] those occupied, counts[1] those FREE; those that
 * are not wanted (a set of states) maybe, too. True: only its children decide, and nothing was
 * added. */
VXD_HD bool vxd_svdag_area_count_tree_cube(const struct vxd_svdag_view *view,
                                           const struct vxd_svdag_area *area,
                                           const struct vxd_svdag_position *tree_cube,
                                           unsigned queried, uint64_t counts[2])
{
    enum vxd_svdag_relation relation = tree_cube->ref == VXD_SVDAG_EMPTY
                                           ? VXD_SVDAG_OUTSIDE
                                           : vxd_svdag_area_relation(area, tree_cube);

    if (relation == VXD_SVDAG_OUTSIDE) {
        return false;
    }
    if (tree_cube->height == VXD_SVDAG_LEAF_HEIGHT) {
        uint64_t mask = vxd_svdag_area_mask(area, tree_cube, relation);
        uint64_t occupied;
        uint64_t free;

        vxd_svdag_tree_cube_masks(view, tree_cube->ref, &occupied, &free);
        counts[0] += (uint64_t)vxd_svdag_popc(mask & occupied);
        counts[1] += (uint64_t)vxd_svdag_popc(mask & free);
        return false;
    }
    if (!vxd_svdag_is_node(tree_cube->ref) &&
        (relation == VXD_SVDAG_INSIDE || !area->is_ball)) {
        uint64_t volume = vxd_svdag_area_volume(area, tree_cube);
        bool is_free = vxd_svdag_uniform_state(view, tree_cube->ref) == VXD_SVDAG_FREE;

        counts[0] += is_free ? 0 : volume;
        counts[1] += is_free ? volume : 0;
        return false;
    }
    queried &= vxd_svdag_position_states(view, tree_cube);
    if (vxd_svdag_is_node(tree_cube->ref) && relation == VXD_SVDAG_INSIDE &&
        tree_cube->height <= VXD_SVDAG_COUNT_HEIGHT && (queried & VXD_SVDAG_FREE) == 0) {
        counts[0] += vxd_svdag_words(view, tree_cube->ref)[0] >> 10;
        return false;
    }
    return queried != 0;
}

/* Adds the area's voxels below a cube, likewise. */
VXD_HD void vxd_svdag_area_count(const struct vxd_svdag_view *view,
                                 const struct vxd_svdag_position *from,
                                 const struct vxd_svdag_area *area, unsigned queried,
                                 uint64_t counts[2])
{
    struct vxd_svdag_cursor cursor;
    bool is_more = true;

    vxd_svdag_cursor_begin(&cursor, from);
    while (is_more) {
        if (vxd_svdag_area_count_tree_cube(view, area, &cursor.tree_cube, queried,
                                           counts)) {
            vxd_svdag_cursor_down(view, &cursor);
        } else {
            is_more = vxd_svdag_cursor_next(view, &cursor);
        }
    }
}

#endif
