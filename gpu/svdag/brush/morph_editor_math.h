// SPDX-License-Identifier: Apache-2.0
/* What erosion and dilation make of cubes and leaves, from a cube and its six neighbours: of a
 * voxel's neighbours at least three lie in its own cube, so that the surface of even regions
 * alone is looked at, and often not even that. Neighbours go by masks; the directions are
 * -x +x -y +y -z +z. */
#ifndef VXD_GPU_SVDAG_BRUSH_MORPH_EDITOR_MATH_H
#define VXD_GPU_SVDAG_BRUSH_MORPH_EDITOR_MATH_H

#include "gpu/svdag/brush/capsule_math.h"
#include "gpu/svdag/brush/noise_math.h"
#include "gpu/svdag/brush/edit_source_math.h"

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

/* A cube with its neighbours. */
struct vxd_dag_morph_state {
    uint32_t self;
    uint32_t next[6]; /* by direction; EMPTY outside the scene */
};

VXD_HD void vxd_dag_morph_begin(const struct vxd_dag_source *source,
                                struct vxd_dag_morph_state *state)
{
    state->self = source->root;
    for (int direction = 0; direction < 6; direction++) {
        state->next[direction] = VXD_DAG_EMPTY;
    }
}

VXD_HD enum vxd_dag_relation vxd_dag_morph_relation(const struct vxd_dag_shape *shape,
                                                    const struct vxd_dag_extent *extent)
{
    switch (shape->kind) {
    case VXD_DAG_BOX:
        return vxd_dag_box_relation(shape, extent);
    case VXD_DAG_BALL:
        return vxd_dag_ball_relation(shape, extent);
    case VXD_DAG_CAPSULE:
        return vxd_dag_capsule_relation(shape, extent);
    case VXD_DAG_HALF_SPACE:
        return vxd_dag_half_space_relation(shape, extent);
    case VXD_DAG_NOISE_BALL:
        return vxd_dag_noise_ball_relation(shape, extent);
    case VXD_DAG_VOXELS:
    case VXD_DAG_HEIGHTFIELD:
        break;
    }
    /* Shapes that vxd_dag_edit refuses. */
    return VXD_DAG_OUTSIDE;
}

VXD_HD uint64_t vxd_dag_morph_mask(const struct vxd_dag_shape *shape,
                                   const struct vxd_dag_extent *extent)
{
    switch (shape->kind) {
    case VXD_DAG_BOX:
        return vxd_dag_box_mask(shape, extent);
    case VXD_DAG_BALL:
        return vxd_dag_ball_mask(shape, extent);
    case VXD_DAG_CAPSULE:
        return vxd_dag_capsule_mask(shape, extent);
    case VXD_DAG_HALF_SPACE:
        return vxd_dag_half_space_mask(shape, extent);
    case VXD_DAG_NOISE_BALL:
        return vxd_dag_noise_ball_mask(shape, extent);
    case VXD_DAG_VOXELS:
    case VXD_DAG_HEIGHTFIELD:
        break;
    }
    /* Shapes that vxd_dag_edit refuses. */
    return 0;
}

VXD_HD void vxd_dag_morph_child(const struct vxd_dag_source *source,
                                const struct vxd_dag_morph_state *from, int octant,
                                struct vxd_dag_morph_state *to)
{
    to->self = vxd_dag_below(&source->view, from->self, octant);
    for (int direction = 0; direction < 6; direction++) {
        const int bit = 4 >> (direction >> 1);
        const bool is_high = (octant & bit) != 0;
        const bool is_sibling = is_high != ((direction & 1) != 0);

        to->next[direction] = vxd_dag_below(
            &source->view, is_sibling ? from->self : from->next[direction], octant ^ bit);
    }
}

VXD_HD bool vxd_dag_has_occupied(const struct vxd_dag_view *view, uint32_t ref,
                                 int height)
{
    const struct vxd_dag_spot spot = {ref, 0, 0, 0, height};

    return (vxd_dag_spot_states(view, &spot) & VXD_DAG_OCCUPIED) != 0;
}

VXD_HD bool vxd_dag_is_full(const struct vxd_dag_view *view, uint32_t ref)
{
    return !vxd_dag_is_node(ref) && vxd_dag_uniform_state(view, ref) == VXD_DAG_OCCUPIED;
}

/* Some voxel of the cube may have fewer than threshold neighbours. Of a full cube's voxels
 * none lacks more than one an axis, and only towards a neighbour that is not full. */
VXD_HD bool vxd_dag_may_erode(const struct vxd_dag_source *source,
                              const struct vxd_dag_morph_state *state, int height)
{
    int n_open = 0;

    if (!vxd_dag_is_full(&source->view, state->self)) {
        return vxd_dag_has_occupied(&source->view, state->self, height);
    }
    for (size_t axis = 0; axis < 3; axis++) {
        n_open += !vxd_dag_is_full(&source->view, state->next[2 * axis]) ||
                  !vxd_dag_is_full(&source->view, state->next[2 * axis + 1]);
    }
    return 6 - n_open < source->op->threshold;
}

/* Some voxel of the cube may be empty and have threshold neighbours. In a cube without
 * occupied ones none has more than one an axis. */
VXD_HD bool vxd_dag_may_dilate(const struct vxd_dag_source *source,
                               const struct vxd_dag_morph_state *state, int height)
{
    const struct vxd_dag_view *view = &source->view;
    int n_near = 0;

    if (vxd_dag_is_full(view, state->self)) {
        return false;
    }
    if (vxd_dag_has_occupied(view, state->self, height)) {
        return true;
    }
    for (size_t axis = 0; axis < 3; axis++) {
        n_near += vxd_dag_has_occupied(view, state->next[2 * axis], height) ||
                  vxd_dag_has_occupied(view, state->next[2 * axis + 1], height);
    }
    return n_near >= source->op->threshold;
}

VXD_HD enum vxd_dag_visit vxd_dag_morph_visit(const struct vxd_dag_source *source,
                                              const struct vxd_dag_cube *cube,
                                              const struct vxd_dag_morph_state *state)
{
    struct vxd_dag_extent extent =
        vxd_dag_extent_of(cube->x, cube->y, cube->z, cube->height);
    bool may_change = source->op->action == VXD_DAG_ERODE
                          ? vxd_dag_may_erode(source, state, cube->height)
                          : vxd_dag_may_dilate(source, state, cube->height);

    return may_change &&
                   vxd_dag_morph_relation(&source->op->shape, &extent) != VXD_DAG_OUTSIDE
               ? VXD_DAG_DESCEND
               : VXD_DAG_KEEP;
}

/* Sets new voxels, with the value of their first occupied neighbour. */
VXD_HD void vxd_dag_morph_take_values(const struct vxd_dag_source *source,
                                      const struct vxd_dag_morph_state *state,
                                      const uint64_t neighbours[6], uint64_t mask,
                                      struct vxd_dag_leaf *leaf)
{
    for (int direction = 0; direction < 6; direction++) {
        uint64_t taken = mask & neighbours[direction];

        mask &= ~taken;
        for (uint64_t rest = taken; rest != 0; rest &= rest - 1) {
            int bit = vxd_dag_low_bit(rest);
            bool is_next;
            int from = vxd_dag_neighbour_bit(bit, direction, &is_next);

            leaf->set |= rest & (~rest + 1);
            vxd_dag_leaf_set_voxel(
                leaf, bit,
                vxd_dag_spot_value(&source->view,
                                   is_next ? state->next[direction] : state->self, from));
        }
    }
}

VXD_HD void vxd_dag_morph_edit_leaf(const struct vxd_dag_source *source,
                                    const struct vxd_dag_cube *cube,
                                    const struct vxd_dag_morph_state *own,
                                    struct vxd_dag_leaf *leaf)
{
    struct vxd_dag_extent extent =
        vxd_dag_extent_of(cube->x, cube->y, cube->z, cube->height);
    const uint64_t shape = vxd_dag_morph_mask(&source->op->shape, &extent);
    uint64_t neighbours[6];
    uint64_t occupied;
    uint64_t enough;
    uint64_t free;

    vxd_dag_spot_masks(&source->view, own->self, &occupied, &free);
    for (int direction = 0; direction < 6; direction++) {
        uint64_t next;

        vxd_dag_spot_masks(&source->view, own->next[direction], &next, &free);
        neighbours[direction] = vxd_dag_neighbours(occupied, next, direction);
    }
    enough = vxd_dag_at_least(neighbours, source->op->threshold);
    if (source->op->action == VXD_DAG_ERODE) {
        leaf->set &= ~(occupied & shape & ~enough);
        return;
    }
    enough &= shape & ~occupied;
    leaf->free &= ~enough;
    if (source->view.value_bits > 1) {
        vxd_dag_morph_take_values(source, own, neighbours, enough, leaf);
    }
    leaf->set |= enough;
}

#endif
