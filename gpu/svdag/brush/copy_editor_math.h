// SPDX-License-Identifier: Apache-2.0
/* The editor of copies. Voxel p of the box becomes voxel from + M (p - low): the source
 * of a cube is a cube of the same size at any place, which at most eight cubes of the
 * tree cover. */
#ifndef VXD_GPU_SVDAG_BRUSH_COPY_EDITOR_MATH_H
#define VXD_GPU_SVDAG_BRUSH_COPY_EDITOR_MATH_H

#include "gpu/svdag/brush/shape_math.h"
#include "gpu/svdag/brush/edit_source_math.h"
#include "gpu/svdag/node/node_math.h"

/* The source of a cube of the tree, as references of the eight cubes that cover it. Cube
 * d (octant order) begins at voxel (low + d) * side. On an axis where the source is
 * aligned to the tree the second cube is not needed and repeats the first. Cubes outside
 * the scene are EMPTY. */
struct vxd_svdag_sources {
    int64_t low[3];
    uint32_t refs[8];
};

/* The source of a voxel, which may lie outside the scene. */
VXD_HD void vxd_svdag_source_of(const struct vxd_svdag_op *op, const int64_t voxel[3],
                                int64_t source[3])
{
    for (int i = 0; i < 3; i++) {
        source[i] = op->from_voxel[i];
        for (int j = 0; j < 3; j++) {
            source[i] +=
                op->matrix[i][j] * (voxel[j] - op->shape.low[j] / VXD_SVDAG_UNIT);
        }
    }
}

/* Low corner of the source of a cube. */
VXD_HD void vxd_svdag_source_corner(const struct vxd_svdag_op *op, uint32_t x, uint32_t y,
                                    uint32_t z, int height, int64_t corner[3])
{
    const int64_t last = ((int64_t)1 << height) - 1;
    const int64_t voxel[3] = {x, y, z};

    vxd_svdag_source_of(op, voxel, corner);
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 3; j++) {
            corner[i] -= op->matrix[i][j] < 0 ? last : 0;
        }
    }
}

/* Bits of the octants whose cubes are needed: a bit of an axis is set where the source is
 * not aligned on it. */
VXD_HD int vxd_svdag_sources_needed(const int64_t corner[3], int height)
{
    const int64_t last = ((int64_t)1 << height) - 1;

    return (int)((corner[0] & last) != 0) << 2 | (int)((corner[1] & last) != 0) << 1 |
           (int)((corner[2] & last) != 0);
}

/* Sources of the root. */
VXD_HD void vxd_svdag_sources_begin(const struct vxd_svdag_op *op, int depth,
                                    uint32_t root, struct vxd_svdag_sources *sources)
{
    int64_t corner[3];
    int needed;

    vxd_svdag_source_corner(op, 0, 0, 0, depth, corner);
    needed = vxd_svdag_sources_needed(corner, depth);
    for (int a = 0; a < 3; a++) {
        sources->low[a] = corner[a] >> depth; /* rounds down */
    }
    for (int d = 0; d < 8; d++) {
        int at = d & needed;

        sources->refs[d] = sources->low[0] + (at >> 2) == 0 &&
                                   sources->low[1] + (at >> 1 & 1) == 0 &&
                                   sources->low[2] + (at & 1) == 0
                               ? root
                               : VXD_SVDAG_EMPTY;
    }
}

/* Sources of a cube, from those of its parent. */
VXD_HD void vxd_svdag_sources_child(const struct vxd_svdag_op *op,
                                    const struct vxd_svdag_view *view,
                                    const struct vxd_svdag_sources *parent, uint32_t x,
                                    uint32_t y, uint32_t z, int height,
                                    struct vxd_svdag_sources *child)
{
    int64_t corner[3];
    uint32_t refs[8];
    int relations[8];
    int needed;

    vxd_svdag_source_corner(op, x, y, z, height, corner);
    needed = vxd_svdag_sources_needed(corner, height);
    for (int a = 0; a < 3; a++) {
        child->low[a] = corner[a] >> height;
    }
    for (int d = 0; d < 8; d++) {
        int from = 0;

        relations[d] = 0;
        for (int a = 0; a < 3; a++) {
            int64_t cube = child->low[a] + ((d & needed) >> (2 - a) & 1);

            /* The needed cubes lie in the parent's, so this is 0 or 1. */
            from = from << 1 | (int)((cube >> 1) - parent->low[a]);
            relations[d] = relations[d] << 1 | (int)(cube & 1);
        }
        refs[d] = parent->refs[from];
    }
    vxd_svdag_child_refs_each(view, refs, relations, child->refs);
}

/* For each axis of a leaf and index along it: its term in a voxel's source, which is the
 * number of the source cube * 64 + the bit in that leaf. */
VXD_HD void vxd_svdag_source_terms(const struct vxd_svdag_op *op,
                                   const struct vxd_svdag_sources *sources, uint32_t x,
                                   uint32_t y, uint32_t z, int terms[3][4])
{
    const int64_t voxel[3] = {x, y, z};
    int64_t source[3];

    vxd_svdag_source_of(op, voxel, source);
    for (int j = 0; j < 3; j++) {
        /* The source axis that this axis is mapped to. */
        const int i = op->matrix[0][j] != 0 ? 0 : op->matrix[1][j] != 0 ? 1 : 2;

        for (int k = 0; k < 4; k++) {
            int at =
                (int)(source[i] + op->matrix[i][j] * (int64_t)k - sources->low[i] * 4);

            terms[j][k] = (at >> 2 << 8 | (at >> 1 & 1) << 5 | (at & 1) << 2) >> i;
        }
    }
}

/* Sources of a child of a cube, from the cube's. */
VXD_HD void vxd_svdag_copy_child(const struct vxd_svdag_source *source,
                                 const struct vxd_svdag_cube *cube,
                                 const struct vxd_svdag_sources *sources, int octant,
                                 struct vxd_svdag_sources *child)
{
    const struct vxd_svdag_cube to = vxd_svdag_cube_child(cube, octant);

    vxd_svdag_sources_child(source->op, &source->view, sources, to.x, to.y, to.z,
                            to.height, child);
}

/* Whether the source may have an occupied voxel; false positives are possible. */
VXD_HD bool vxd_svdag_sources_occupied(const struct vxd_svdag_source *source,
                                       const struct vxd_svdag_sources *sources,
                                       int height)
{
    unsigned states = 0;

    /* All eight are read, without early exit, so that the reads overlap. */
    for (int d = 0; d < 8; d++) {
        const struct vxd_svdag_position tree_cube = {sources->refs[d], 0, 0, 0, height};

        states |= vxd_svdag_position_states(&source->view, &tree_cube);
    }
    return (states & VXD_SVDAG_OCCUPIED) != 0;
}

VXD_HD bool vxd_svdag_sources_equal(const struct vxd_svdag_sources *sources)
{
    for (int d = 1; d < 8; d++) {
        if (sources->refs[d] != sources->refs[0]) {
            return false;
        }
    }
    return true;
}

/* True where the cube is copied unrotated from exactly one cube of the tree. */
VXD_HD bool vxd_svdag_copy_is_aligned(const struct vxd_svdag_op *op,
                                      const struct vxd_svdag_cube *cube)
{
    int64_t corner[3];

    vxd_svdag_source_corner(op, cube->x, cube->y, cube->z, cube->height, corner);
    return op->matrix[0][0] == 1 && op->matrix[1][1] == 1 && op->matrix[2][2] == 1 &&
           vxd_svdag_sources_needed(corner, cube->height) == 0;
}

VXD_HD enum vxd_svdag_visit vxd_svdag_copy_visit(const struct vxd_svdag_source *source,
                                                 const struct vxd_svdag_cube *cube,
                                                 uint32_t old,
                                                 const struct vxd_svdag_sources *sources,
                                                 uint32_t *uniform)
{
    struct vxd_svdag_extent extent =
        vxd_svdag_extent_of(cube->x, cube->y, cube->z, cube->height);
    enum vxd_svdag_relation relation =
        vxd_svdag_box_relation(&source->op->shape, &extent);
    uint32_t ref = sources->refs[0];

    if (relation == VXD_SVDAG_OUTSIDE ||
        (!source->op->copy_empty &&
         !vxd_svdag_sources_occupied(source, sources, cube->height))) {
        return VXD_SVDAG_KEEP;
    }
    if (!vxd_svdag_sources_equal(sources)) {
        return VXD_SVDAG_DESCEND;
    }
    if (ref == old &&
        (!vxd_svdag_is_node(ref) || vxd_svdag_copy_is_aligned(source->op, cube))) {
        return VXD_SVDAG_KEEP;
    }
    if (vxd_svdag_is_node(ref) || relation != VXD_SVDAG_INSIDE) {
        return VXD_SVDAG_DESCEND;
    }
    *uniform = ref;
    return VXD_SVDAG_SET;
}

/* Sets voxels of a leaf, each with the value of its source. */
VXD_HD void vxd_svdag_copy_values(const struct vxd_svdag_source *source,
                                  const struct vxd_svdag_cube *cube,
                                  const struct vxd_svdag_sources *sources, uint64_t set,
                                  struct vxd_svdag_leaf *leaf)
{
    int terms[3][4];

    vxd_svdag_source_terms(source->op, sources, cube->x, cube->y, cube->z, terms);
    for (int i = 0; i < 64; i++) {
        const int from = terms[0][i >> 4] | terms[1][i >> 2 & 3] | terms[2][i & 3];
        const int at = vxd_svdag_leaf_index(i >> 4, i >> 2 & 3, i & 3);

        if ((set >> at & 1) != 0) {
            leaf->set |= (uint64_t)1 << at;
            vxd_svdag_leaf_set_voxel(leaf, at,
                                     vxd_svdag_tree_cube_value(&source->view,
                                                               sources->refs[from >> 6],
                                                               from & 63));
        }
    }
}

VXD_HD void vxd_svdag_copy_edit_leaf(const struct vxd_svdag_source *source,
                                     const struct vxd_svdag_cube *cube,
                                     const struct vxd_svdag_sources *sources,
                                     struct vxd_svdag_leaf *leaf)
{
    const struct vxd_svdag_op *op = source->op;
    const struct vxd_svdag_extent extent =
        vxd_svdag_extent_of(cube->x, cube->y, cube->z, cube->height);
    const uint64_t box = vxd_svdag_box_mask(&op->shape, &extent);
    uint64_t occupied[8];
    uint64_t free[8];
    int64_t corner[3];
    int from[3];
    uint64_t set;

    vxd_svdag_tree_cube_masks_each(&source->view, sources->refs, occupied, free);
    vxd_svdag_source_corner(op, cube->x, cube->y, cube->z, cube->height, corner);
    for (int a = 0; a < 3; a++) {
        from[a] = (int)(corner[a] & 3);
    }
    set = box & vxd_svdag_rotate_mask(vxd_svdag_leaf_between(occupied, from), op->matrix);
    if (op->copy_empty) {
        const uint64_t rest = box & ~set;

        leaf->set &= ~rest;
        leaf->free &= ~rest;
        if (source->view.free_value >= 0) {
            const uint64_t is_free =
                rest &
                vxd_svdag_rotate_mask(vxd_svdag_leaf_between(free, from), op->matrix);

            leaf->set |= is_free;
            leaf->free |= is_free;
        }
    }
    leaf->free &= ~set;
    if (source->view.value_bits > 1) {
        vxd_svdag_copy_values(source, cube, sources, set, leaf);
    } else {
        leaf->set |= set;
    }
}

#endif
