// SPDX-License-Identifier: Apache-2.0
/* The editor of erosion and dilation. The state of a cube is its reference and those of
 * its six neighbours. At least three neighbours of a voxel lie in its own cube, so only
 * the surface of uniform regions is visited, and often not even that. Neighbours are
 * computed on masks. The directions are -x +x -y +y -z +z. */
#ifndef VXD_GPU_SVDAG_BRUSH_MORPH_EDITOR_MATH_H
#define VXD_GPU_SVDAG_BRUSH_MORPH_EDITOR_MATH_H

#include "gpu/svdag/brush/capsule_math.h"
#include "gpu/svdag/brush/noise_math.h"
#include "gpu/svdag/brush/edit_source_math.h"

/* Bit of a voxel's neighbour; *is_next: it lies in the next leaf in that direction. */
VXD_HD int vxd_svdag_neighbour_bit(int bit, int direction, bool *is_next)
{
    const int axis = direction >> 1;
    const int low = 4 >> axis;
    const int high = 32 >> axis;
    const int at = ((bit & high) != 0 ? 2 : 0) + ((bit & low) != 0 ? 1 : 0);
    const int to = (direction & 1) != 0 ? at + 1 : at - 1;

    *is_next = to < 0 || to > 3;
    return (bit & ~(low | high)) | ((to & 2) != 0 ? high : 0) | ((to & 1) != 0 ? low : 0);
}

/* The voxels whose neighbour in a direction is set: in `mask`, or across the border in
 * `next`, the mask of the next leaf. */
VXD_HD uint64_t vxd_svdag_neighbours(uint64_t mask, uint64_t next, int direction)
{
    const int axis = direction >> 1;
    const int low = 4 >> axis;
    const int high = 32 >> axis;
    uint64_t planes[4];

    for (int k = 0; k < 4; k++) {
        planes[k] = vxd_svdag_leaf_plane(axis, k);
    }
    if ((direction & 1) != 0) {
        return (mask & (planes[1] | planes[3])) >> low |
               (mask & planes[2]) >> (high - low) | (next & planes[0]) << (high + low);
    }
    return (mask & (planes[0] | planes[2])) << low | (mask & planes[1]) << (high - low) |
           (next & planes[3]) >> (high + low);
}

/* The voxels that are in at least `threshold` (1 to 6) of six masks. */
VXD_HD uint64_t vxd_svdag_at_least(const uint64_t masks[6], int threshold)
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

/* A cube and its neighbours. */
struct vxd_svdag_morph_state {
    uint32_t self;
    uint32_t next[6]; /* by direction; EMPTY outside the scene */
};

VXD_HD void vxd_svdag_morph_begin(const struct vxd_svdag_source *source,
                                  struct vxd_svdag_morph_state *state)
{
    state->self = source->root;
    for (int direction = 0; direction < 6; direction++) {
        state->next[direction] = VXD_SVDAG_EMPTY;
    }
}

VXD_HD enum vxd_svdag_relation
vxd_svdag_morph_relation(const struct vxd_svdag_shape *shape,
                         const struct vxd_svdag_extent *extent)
{
    switch (shape->kind) {
    case VXD_SVDAG_BOX:
        return vxd_svdag_box_relation(shape, extent);
    case VXD_SVDAG_BALL:
        return vxd_svdag_ball_relation(shape, extent);
    case VXD_SVDAG_CAPSULE:
        return vxd_svdag_capsule_relation(shape, extent);
    case VXD_SVDAG_HALF_SPACE:
        return vxd_svdag_half_space_relation(shape, extent);
    case VXD_SVDAG_NOISE_BALL:
        return vxd_svdag_noise_ball_relation(shape, extent);
    case VXD_SVDAG_VOXELS:
    case VXD_SVDAG_HEIGHTFIELD:
        break;
    }
    /* vxd_svdag_edit rejects these shapes. */
    return VXD_SVDAG_OUTSIDE;
}

VXD_HD uint64_t vxd_svdag_morph_mask(const struct vxd_svdag_shape *shape,
                                     const struct vxd_svdag_extent *extent)
{
    switch (shape->kind) {
    case VXD_SVDAG_BOX:
        return vxd_svdag_box_mask(shape, extent);
    case VXD_SVDAG_BALL:
        return vxd_svdag_ball_mask(shape, extent);
    case VXD_SVDAG_CAPSULE:
        return vxd_svdag_capsule_mask(shape, extent);
    case VXD_SVDAG_HALF_SPACE:
        return vxd_svdag_half_space_mask(shape, extent);
    case VXD_SVDAG_NOISE_BALL:
        return vxd_svdag_noise_ball_mask(shape, extent);
    case VXD_SVDAG_VOXELS:
    case VXD_SVDAG_HEIGHTFIELD:
        break;
    }
    /* vxd_svdag_edit rejects these shapes. */
    return 0;
}

VXD_HD void vxd_svdag_morph_child(const struct vxd_svdag_source *source,
                                  const struct vxd_svdag_morph_state *from, int octant,
                                  struct vxd_svdag_morph_state *to)
{
    to->self = vxd_svdag_child_ref(&source->view, from->self, octant);
    for (int direction = 0; direction < 6; direction++) {
        const int bit = 4 >> (direction >> 1);
        const bool is_high = (octant & bit) != 0;
        const bool is_sibling = is_high != ((direction & 1) != 0);

        to->next[direction] = vxd_svdag_child_ref(
            &source->view, is_sibling ? from->self : from->next[direction], octant ^ bit);
    }
}

VXD_HD bool vxd_svdag_has_occupied(const struct vxd_svdag_view *view, uint32_t ref,
                                   int height)
{
    const struct vxd_svdag_position tree_cube = {ref, 0, 0, 0, height};

    return (vxd_svdag_position_states(view, &tree_cube) & VXD_SVDAG_OCCUPIED) != 0;
}

VXD_HD bool vxd_svdag_is_full(const struct vxd_svdag_view *view, uint32_t ref)
{
    return !vxd_svdag_is_node(ref) &&
           vxd_svdag_uniform_state(view, ref) == VXD_SVDAG_OCCUPIED;
}

/* Whether some voxel of the cube may have fewer than `threshold` neighbours. A voxel of a
 * full cube lacks at most one neighbour on an axis, and only towards a cube that is not
 * full. */
VXD_HD bool vxd_svdag_may_erode(const struct vxd_svdag_source *source,
                                const struct vxd_svdag_morph_state *state, int height)
{
    int n_exposed = 0;

    if (!vxd_svdag_is_full(&source->view, state->self)) {
        return vxd_svdag_has_occupied(&source->view, state->self, height);
    }
    for (size_t axis = 0; axis < 3; axis++) {
        n_exposed += !vxd_svdag_is_full(&source->view, state->next[2 * axis]) ||
                     !vxd_svdag_is_full(&source->view, state->next[2 * axis + 1]);
    }
    return 6 - n_exposed < source->op->threshold;
}

/* Whether some voxel of the cube may be empty and have `threshold` neighbours. In a cube
 * without occupied voxels no voxel has more than one on an axis. */
VXD_HD bool vxd_svdag_may_dilate(const struct vxd_svdag_source *source,
                                 const struct vxd_svdag_morph_state *state, int height)
{
    const struct vxd_svdag_view *view = &source->view;
    int n_near = 0;

    if (vxd_svdag_is_full(view, state->self)) {
        return false;
    }
    if (vxd_svdag_has_occupied(view, state->self, height)) {
        return true;
    }
    for (size_t axis = 0; axis < 3; axis++) {
        n_near += vxd_svdag_has_occupied(view, state->next[2 * axis], height) ||
                  vxd_svdag_has_occupied(view, state->next[2 * axis + 1], height);
    }
    return n_near >= source->op->threshold;
}

VXD_HD enum vxd_svdag_visit
vxd_svdag_morph_visit(const struct vxd_svdag_source *source,
                      const struct vxd_svdag_cube *cube,
                      const struct vxd_svdag_morph_state *state)
{
    struct vxd_svdag_extent extent =
        vxd_svdag_extent_of(cube->x, cube->y, cube->z, cube->height);
    bool may_change = source->op->action == VXD_SVDAG_ERODE
                          ? vxd_svdag_may_erode(source, state, cube->height)
                          : vxd_svdag_may_dilate(source, state, cube->height);

    return may_change && vxd_svdag_morph_relation(&source->op->shape, &extent) !=
                             VXD_SVDAG_OUTSIDE
               ? VXD_SVDAG_DESCEND
               : VXD_SVDAG_KEEP;
}

/* Sets new voxels, each with the value of its first occupied neighbour. */
VXD_HD void vxd_svdag_morph_take_values(const struct vxd_svdag_source *source,
                                        const struct vxd_svdag_morph_state *state,
                                        const uint64_t neighbours[6], uint64_t mask,
                                        struct vxd_svdag_leaf *leaf)
{
    for (int direction = 0; direction < 6; direction++) {
        uint64_t taken = mask & neighbours[direction];

        mask &= ~taken;
        for (uint64_t rest = taken; rest != 0; rest &= rest - 1) {
            int bit = vxd_svdag_low_bit(rest);
            bool is_next;
            int from = vxd_svdag_neighbour_bit(bit, direction, &is_next);

            leaf->set |= rest & (~rest + 1);
            vxd_svdag_leaf_set_voxel(
                leaf, bit,
                vxd_svdag_tree_cube_value(
                    &source->view, is_next ? state->next[direction] : state->self, from));
        }
    }
}

VXD_HD void vxd_svdag_morph_edit_leaf(const struct vxd_svdag_source *source,
                                      const struct vxd_svdag_cube *cube,
                                      const struct vxd_svdag_morph_state *own,
                                      struct vxd_svdag_leaf *leaf)
{
    struct vxd_svdag_extent extent =
        vxd_svdag_extent_of(cube->x, cube->y, cube->z, cube->height);
    const uint64_t shape = vxd_svdag_morph_mask(&source->op->shape, &extent);
    uint64_t neighbours[6];
    uint64_t occupied;
    uint64_t enough;
    uint64_t free;

    vxd_svdag_tree_cube_masks(&source->view, own->self, &occupied, &free);
    for (int direction = 0; direction < 6; direction++) {
        uint64_t next;

        vxd_svdag_tree_cube_masks(&source->view, own->next[direction], &next, &free);
        neighbours[direction] = vxd_svdag_neighbours(occupied, next, direction);
    }
    enough = vxd_svdag_at_least(neighbours, source->op->threshold);
    if (source->op->action == VXD_SVDAG_ERODE) {
        leaf->set &= ~(occupied & shape & ~enough);
        return;
    }
    enough &= shape & ~occupied;
    leaf->free &= ~enough;
    if (source->view.value_bits > 1) {
        vxd_svdag_morph_take_values(source, own, neighbours, enough, leaf);
    }
    leaf->set |= enough;
}

#endif
