// SPDX-License-Identifier: Apache-2.0
/* Cubes of the tree, what editors say about them, and the canonical words of inner nodes.
 * Both backends compile this; leaves are in leaf_math.h. */
#ifndef VXD_GPU_SVDAG_NODE_INNER_MATH_H
#define VXD_GPU_SVDAG_NODE_INNER_MATH_H

#include "gpu/svdag/node/leaf_math.h"

/* Kinds of items. Items of different kinds are never equal, whatever their words. */
enum vxd_svdag_kind {
    VXD_SVDAG_LEAF = 0,
    VXD_SVDAG_INNER = 1,
    VXD_SVDAG_BLOCK = 2,
    VXD_SVDAG_N_KINDS = 3
};

/* Words of an edit key at most. Equal keys of two cubes mean that an editor makes the
 * same of both. */
enum {
    VXD_SVDAG_EDIT_KEY_WORDS = 10
};

/* A cube of the tree: low corner in voxels, side 2^height voxels. */
struct vxd_svdag_cube {
    uint32_t x, y, z;
    int height;
};

/* What an edit makes of a cube. */
enum vxd_svdag_visit {
    VXD_SVDAG_KEEP,   /* it stays as it is */
    VXD_SVDAG_SET,    /* it becomes *uniform: empty, uniform, or any node of its height */
    VXD_SVDAG_DESCEND /* its children decide; for a leaf its voxels */
};

/* What an edit makes of the eight children of a cube, as masks of octants. Children in
 * neither mask stay as they are. */
struct vxd_svdag_classes {
    unsigned set;     /* children that become `uniform` */
    unsigned expand;  /* children that have to be visited */
    uint32_t uniform; /* empty or uniform */
};

VXD_HD struct vxd_svdag_cube vxd_svdag_cube_child(const struct vxd_svdag_cube *cube,
                                                  int octant)
{
    struct vxd_svdag_cube child;

    child.height = cube->height - 1;
    child.x = cube->x + ((uint32_t)(octant >> 2) << child.height);
    child.y = cube->y + ((uint32_t)(octant >> 1 & 1) << child.height);
    child.z = cube->z + ((uint32_t)(octant & 1) << child.height);
    return child;
}

/* Length of an item in words, from its first words. */
VXD_HD int vxd_svdag_item_words(int value_bits, enum vxd_svdag_kind kind,
                                const uint32_t *words)
{
    return kind == VXD_SVDAG_INNER ? vxd_svdag_inner_words(words)
           : kind == VXD_SVDAG_LEAF
               ? vxd_svdag_leaf_words(value_bits, vxd_svdag_leaf_mask(words))
               : vxd_svdag_block_words(value_bits, (int)words[0]);
}

/* Inner nodes ----------------------------------------------------------------------------- */

/* What the header of a parent repeats of a child. */
struct vxd_svdag_occupancy {
    uint32_t flags;
    uint32_t n_occupied; /* valid below height VXD_SVDAG_COUNT_HEIGHT */
};

/* Of an empty or uniform reference. */
VXD_HD struct vxd_svdag_occupancy
vxd_svdag_occupancy_of_uniform(const struct vxd_svdag_view *view, uint32_t ref,
                               int height)
{
    struct vxd_svdag_occupancy occupancy = {0, 0};

    if (ref == VXD_SVDAG_EMPTY) {
        return occupancy;
    }
    if (vxd_svdag_uniform_state(view, ref) == VXD_SVDAG_FREE) {
        occupancy.flags = VXD_SVDAG_HAS_FREE;
        return occupancy;
    }
    occupancy.flags = VXD_SVDAG_HAS_OCCUPIED;
    occupancy.n_occupied = height < VXD_SVDAG_COUNT_HEIGHT ? 1u << (3 * height) : 0;
    return occupancy;
}

/* Of an inner node, from its header. */
VXD_HD struct vxd_svdag_occupancy vxd_svdag_occupancy_of_header(uint32_t header)
{
    struct vxd_svdag_occupancy occupancy;

    occupancy.flags = header & (VXD_SVDAG_HAS_OCCUPIED | VXD_SVDAG_HAS_FREE);
    occupancy.n_occupied = header >> 10;
    return occupancy;
}

VXD_HD struct vxd_svdag_occupancy
vxd_svdag_occupancy_of(const struct vxd_svdag_view *view, uint32_t ref, int height)
{
    const uint32_t *words;
    struct vxd_svdag_occupancy occupancy = {0, 0};

    if (!vxd_svdag_is_node(ref)) {
        return vxd_svdag_occupancy_of_uniform(view, ref, height);
    }
    words = vxd_svdag_words(view, ref);
    if (height == VXD_SVDAG_LEAF_HEIGHT) {
        struct vxd_svdag_item leaf = vxd_svdag_leaf_item(view, ref);
        uint64_t occupied = vxd_svdag_item_occupied_called(view, &leaf);

        occupancy.n_occupied = (uint32_t)vxd_svdag_popc(occupied);
        occupancy.flags =
            (occupied != 0 ? VXD_SVDAG_HAS_OCCUPIED : 0) |
            (occupied != vxd_svdag_leaf_mask(words) ? VXD_SVDAG_HAS_FREE : 0);
        return occupancy;
    }
    return vxd_svdag_occupancy_of_header(words[0]);
}

/* Writes the words (up to 9) of an inner node of this height from its eight children.
 * Returns false where all children are the same empty or uniform reference; then *ref is
 * that reference. */
VXD_HD bool vxd_svdag_inner_compose(const struct vxd_svdag_view *view, int height,
                                    const uint32_t children[8], uint32_t *words,
                                    uint32_t *ref)
{
    uint32_t head = 0;
    uint32_t n_occupied = 0;
    uint32_t differ = 0;
    int n = 0;

    for (int i = 0; i < 8; i++) {
        differ |= children[i] ^ children[0];
        if (children[i] != VXD_SVDAG_EMPTY) {
            struct vxd_svdag_occupancy occupancy =
                vxd_svdag_occupancy_of(view, children[i], height - 1);

            head |= 1u << i | occupancy.flags;
            words[++n] = children[i];
            n_occupied += occupancy.n_occupied;
        }
    }
    if (differ == 0 && !vxd_svdag_is_node(children[0])) {
        *ref = children[0];
        return false;
    }
    words[0] = head | (height <= VXD_SVDAG_COUNT_HEIGHT ? n_occupied << 10 : 0);
    return true;
}

#endif
