// SPDX-License-Identifier: Apache-2.0
/* A cursor over the cubes of a tree, depth first in Morton order, with a stack of one
 * reference a height. Its user decides for each cube whether to descend into it or to go
 * on to the next one. Cubes end at leaf height. The children of an empty or uniform
 * region are regions of the same reference. */
#ifndef VXD_GPU_SVDAG_NODE_TREE_CURSOR_MATH_H
#define VXD_GPU_SVDAG_NODE_TREE_CURSOR_MATH_H

#include "gpu/svdag/node/node_words_math.h"

/* A cube of the tree and its reference. */
struct vxd_svdag_position {
    uint32_t ref;
    uint32_t x, y, z; /* low corner, a multiple of the side */
    int height;       /* at least VXD_SVDAG_LEAF_HEIGHT; the side is 2^height voxels */
};

struct vxd_svdag_cursor {
    struct vxd_svdag_position tree_cube;
    int top;                                /* height at which the cursor began */
    uint32_t refs[VXD_SVDAG_MAX_DEPTH + 1]; /* by height: references of the ancestors */
};

/* Index of the lowest bit of a mask, which is not 0. */
VXD_HD int vxd_svdag_low_bit(uint64_t mask)
{
#if defined(__CUDA_ARCH__)
    return __ffsll((long long)mask) - 1;
#else
    return __builtin_ctzll(mask);
#endif
}

/* The child of a reference at an octant; empty and uniform references are their own
 * children. */
VXD_HD uint32_t vxd_svdag_child_ref(const struct vxd_svdag_view *view, uint32_t ref,
                                    int octant)
{
    return vxd_svdag_is_node(ref) ? vxd_svdag_child_of(view, ref, octant) : ref;
}

/* All eight children. The reads do not depend on each other, so that they overlap. */
VXD_HD void vxd_svdag_child_refs(const struct vxd_svdag_view *view, uint32_t ref,
                                 uint32_t children[8])
{
    const uint32_t *words;
    uint32_t mask;

    if (!vxd_svdag_is_node(ref) || vxd_svdag_reads_split(view)) {
        for (int i = 0; i < 8; i++) {
            children[i] = vxd_svdag_child_ref(view, ref, i);
        }
        return;
    }
    words = vxd_svdag_words(view, ref);
    mask = words[0] & 0xffu;
    for (int i = 0; i < 8; i++) {
        uint32_t found = VXD_SVDAG_EMPTY;

        if ((mask >> i & 1) != 0) {
            found = words[1 + vxd_svdag_popc(mask & ((1u << i) - 1))];
        }
        children[i] = found;
    }
}

/* A child of each of eight references, at an octant each. The reads overlap. */
VXD_HD void vxd_svdag_child_refs_each(const struct vxd_svdag_view *view,
                                      const uint32_t refs[8], const int octants[8],
                                      uint32_t children[8])
{
    const uint32_t *words[8];
    uint32_t masks[8];
    uint32_t found[8];

    if (vxd_svdag_reads_split(view)) {
        for (int i = 0; i < 8; i++) {
            children[i] = vxd_svdag_child_ref(view, refs[i], octants[i]);
        }
        return;
    }
    for (int i = 0; i < 8; i++) {
        words[i] = vxd_svdag_is_node(refs[i]) ? vxd_svdag_words(view, refs[i]) : NULL;
    }
    for (int i = 0; i < 8; i++) {
        masks[i] = words[i] != NULL ? words[i][0] & 0xffu : 0;
    }
    for (int i = 0; i < 8; i++) {
        found[i] = words[i] == NULL ? refs[i] : VXD_SVDAG_EMPTY;
        if ((masks[i] >> octants[i] & 1) != 0) {
            found[i] = words[i][1 + vxd_svdag_popc(masks[i] & ((1u << octants[i]) - 1))];
        }
    }
    for (int i = 0; i < 8; i++) {
        children[i] = found[i];
    }
}

/* The cube of this height that holds a voxel. */
VXD_HD struct vxd_svdag_position vxd_svdag_position_at(const struct vxd_svdag_view *view,
                                                       uint32_t root, uint32_t x,
                                                       uint32_t y, uint32_t z, int height)
{
    struct vxd_svdag_position tree_cube = {root, 0, 0, 0, height};
    uint32_t mask = ~((1u << height) - 1);

    for (int h = view->depth; h > height; h--) {
        tree_cube.ref =
            vxd_svdag_child_ref(view, tree_cube.ref, vxd_svdag_octant(x, y, z, h));
    }
    tree_cube.x = x & mask;
    tree_cube.y = y & mask;
    tree_cube.z = z & mask;
    return tree_cube;
}

VXD_HD struct vxd_svdag_position
vxd_svdag_tree_cube_child(const struct vxd_svdag_view *view,
                          const struct vxd_svdag_position *tree_cube, int octant)
{
    struct vxd_svdag_position child = *tree_cube;

    child.height--;
    child.ref = vxd_svdag_child_ref(view, tree_cube->ref, octant);
    // NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): not of leaves
    child.x |= (uint32_t)(octant >> 2 & 1) << child.height;
    child.y |= (uint32_t)(octant >> 1 & 1) << child.height;
    child.z |= (uint32_t)(octant & 1) << child.height;
    return child;
}

VXD_HD void vxd_svdag_cursor_begin(struct vxd_svdag_cursor *cursor,
                                   const struct vxd_svdag_position *tree_cube)
{
    cursor->tree_cube = *tree_cube;
    cursor->top = tree_cube->height;
}

/* Descends to the first child; not from leaf height. */
VXD_HD void vxd_svdag_cursor_down(const struct vxd_svdag_view *view,
                                  struct vxd_svdag_cursor *cursor)
{
    cursor->refs[cursor->tree_cube.height] = cursor->tree_cube.ref;
    cursor->tree_cube = vxd_svdag_tree_cube_child(view, &cursor->tree_cube, 0);
}

/* Goes to the next cube that is not a descendant of this one. False: there is none. */
VXD_HD bool vxd_svdag_cursor_next(const struct vxd_svdag_view *view,
                                  struct vxd_svdag_cursor *cursor)
{
    struct vxd_svdag_position parent = cursor->tree_cube;

    while (parent.height < cursor->top) {
        int octant;
        uint32_t mask;

        parent.height++;
        octant = vxd_svdag_octant(parent.x, parent.y, parent.z, parent.height);
        mask = ~((1u << parent.height) - 1);
        parent.x &= mask;
        parent.y &= mask;
        parent.z &= mask;
        if (octant < 7) {
            parent.ref = cursor->refs[parent.height];
            cursor->tree_cube = vxd_svdag_tree_cube_child(view, &parent, octant + 1);
            return true;
        }
    }
    return false;
}

/* Occupied and FREE voxels of a reference at leaf height, as masks. */
VXD_HD void vxd_svdag_tree_cube_masks(const struct vxd_svdag_view *view, uint32_t ref,
                                      uint64_t *occupied, uint64_t *free)
{
    *occupied = 0;
    *free = 0;
    if (vxd_svdag_is_node(ref)) {
        struct vxd_svdag_item leaf = vxd_svdag_leaf_item(view, ref);

        *occupied = vxd_svdag_item_occupied(view, &leaf);
        *free = vxd_svdag_leaf_mask(leaf.words) & ~*occupied;
    } else if (vxd_svdag_uniform_state(view, ref) == VXD_SVDAG_OCCUPIED) {
        *occupied = ~(uint64_t)0;
    } else if (ref != VXD_SVDAG_EMPTY) {
        *free = ~(uint64_t)0;
    }
}

/* The same for eight references at once. */
VXD_HD void vxd_svdag_tree_cube_masks_each(const struct vxd_svdag_view *view,
                                           const uint32_t refs[8], uint64_t occupied[8],
                                           uint64_t free[8])
{
    for (int i = 0; i < 8; i++) {
        occupied[i] = vxd_svdag_is_node(refs[i])
                          ? vxd_svdag_leaf_mask(vxd_svdag_words(view, refs[i]))
                      : refs[i] != VXD_SVDAG_EMPTY ? ~(uint64_t)0
                                                   : 0;
        free[i] = 0;
    }
    if (view->free_value >= 0) {
        for (int i = 0; i < 8; i++) {
            if (occupied[i] != 0) {
                vxd_svdag_tree_cube_masks(view, refs[i], &occupied[i], &free[i]);
            }
        }
    }
}

/* Value of a set voxel of a reference at leaf height. */
VXD_HD uint32_t vxd_svdag_tree_cube_value(const struct vxd_svdag_view *view, uint32_t ref,
                                          int bit)
{
    struct vxd_svdag_item leaf;

    if (!vxd_svdag_is_node(ref)) {
        return vxd_svdag_uniform_value(ref);
    }
    leaf = vxd_svdag_leaf_item(view, ref);
    return vxd_svdag_item_value(view, &leaf, bit);
}

/* Reads the materials of many voxels at a reference of leaf height. What is the same for
 * all is found once, and a word is read once for all voxels in it. */
struct vxd_svdag_values {
    const uint32_t *words; /* NULL: all have `value` */
    uint64_t mask;
    uint32_t value;
    uint32_t word; /* the word at `index` */
    int index;
};

VXD_HD struct vxd_svdag_values vxd_svdag_values_of(const struct vxd_svdag_view *view,
                                                   uint32_t ref)
{
    struct vxd_svdag_values values = {NULL, 0, vxd_svdag_uniform_value(ref), 0, -1};
    struct vxd_svdag_item leaf;

    if (!vxd_svdag_is_node(ref) || view->value_bits < 4) {
        return values;
    }
    leaf = vxd_svdag_leaf_item(view, ref);
    values.mask = vxd_svdag_leaf_mask(leaf.words);
    if (view->value_bits == 4) {
        values.words = leaf.rest;
    } else if (vxd_svdag_is_uniform(leaf.rest[0])) {
        values.value = vxd_svdag_uniform_value(leaf.rest[0]);
    } else {
        values.words = vxd_svdag_words(view, leaf.rest[0]) + 1;
    }
    return values;
}

/* The value of a set voxel in a scene with materials. */
VXD_HD uint32_t vxd_svdag_values_get(const struct vxd_svdag_view *view,
                                     struct vxd_svdag_values *values, int bit)
{
    int at;

    if (values->words == NULL) {
        return values->value;
    }
    at = vxd_svdag_popc(values->mask & (((uint64_t)1 << bit) - 1)) * view->value_bits;
    if (at >> 5 != values->index) {
        values->index = at >> 5;
        values->word = values->words[at >> 5];
    }
    return values->word >> (at & 31) & ((1u << view->value_bits) - 1);
}

/* The state as a set, or the empty set. */
VXD_HD unsigned vxd_svdag_state_if(bool has, enum vxd_svdag_state state)
{
    return has ? (unsigned)state : 0u;
}

/* Which of OCCUPIED and FREE occur in a cube. */
VXD_HD unsigned vxd_svdag_position_states(const struct vxd_svdag_view *view,
                                          const struct vxd_svdag_position *tree_cube)
{
    uint64_t occupied;
    uint64_t free;
    uint32_t head;

    if (!vxd_svdag_is_node(tree_cube->ref)) {
        return vxd_svdag_uniform_state(view, tree_cube->ref) &
               ~(unsigned)VXD_SVDAG_UNKNOWN;
    }
    if (tree_cube->height == VXD_SVDAG_LEAF_HEIGHT) {
        vxd_svdag_tree_cube_masks(view, tree_cube->ref, &occupied, &free);
        return vxd_svdag_state_if(occupied != 0, VXD_SVDAG_OCCUPIED) |
               vxd_svdag_state_if(free != 0, VXD_SVDAG_FREE);
    }
    head = vxd_svdag_words(view, tree_cube->ref)[0];
    return vxd_svdag_state_if((head & VXD_SVDAG_HAS_OCCUPIED) != 0, VXD_SVDAG_OCCUPIED) |
           vxd_svdag_state_if((head & VXD_SVDAG_HAS_FREE) != 0, VXD_SVDAG_FREE);
}

#endif
