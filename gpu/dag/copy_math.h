// SPDX-License-Identifier: Apache-2.0
/* Where the voxels of a copied box come from. Voxel p takes what stands at
 * from + M (p - low): the voxels of a cube come from a cube of the same side, of any place,
 * which at most eight cubes of the tree cover. */
#ifndef VXD_GPU_DAG_COPY_MATH_H
#define VXD_GPU_DAG_COPY_MATH_H

#include "gpu/dag/cursor_math.h"
#include "gpu/dag/shape_math.h"

/* The source of a cube of the tree. Cube d of the eight (octant order) begins at voxel
 * (low + d) * side; where the source is aligned to the tree on an axis the second one is not
 * needed, and stands for the first. Cubes outside the scene are EMPTY. */
struct vxd_dag_sources {
    int64_t low[3];
    uint32_t refs[8];
};

/* The source of a voxel, which may lie outside every scene. */
VXD_HD void vxd_dag_source_of(const struct vxd_dag_op *op, const int64_t voxel[3],
                              int64_t source[3])
{
    for (int i = 0; i < 3; i++) {
        source[i] = op->from_voxel[i];
        for (int j = 0; j < 3; j++) {
            source[i] += op->matrix[i][j] * (voxel[j] - op->shape.low[j] / VXD_DAG_UNIT);
        }
    }
}

/* Low corner of the source of a cube. */
VXD_HD void vxd_dag_source_corner(const struct vxd_dag_op *op, uint32_t x, uint32_t y,
                                  uint32_t z, int height, int64_t corner[3])
{
    const int64_t last = ((int64_t)1 << height) - 1;
    const int64_t voxel[3] = {x, y, z};

    vxd_dag_source_of(op, voxel, corner);
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 3; j++) {
            corner[i] -= op->matrix[i][j] < 0 ? last : 0;
        }
    }
}

/* Octants of the cubes that are needed: bits that may be set. */
VXD_HD int vxd_dag_sources_needed(const int64_t corner[3], int height)
{
    const int64_t last = ((int64_t)1 << height) - 1;

    return (int)((corner[0] & last) != 0) << 2 | (int)((corner[1] & last) != 0) << 1 |
           (int)((corner[2] & last) != 0);
}

/* Of the whole scene's cube. */
VXD_HD void vxd_dag_sources_begin(const struct vxd_dag_op *op, int depth, uint32_t root,
                                  struct vxd_dag_sources *sources)
{
    int64_t corner[3];
    int needed;

    vxd_dag_source_corner(op, 0, 0, 0, depth, corner);
    needed = vxd_dag_sources_needed(corner, depth);
    for (int a = 0; a < 3; a++) {
        sources->low[a] = corner[a] >> depth; /* rounds down */
    }
    for (int d = 0; d < 8; d++) {
        int at = d & needed;

        sources->refs[d] = sources->low[0] + (at >> 2) == 0 &&
                                   sources->low[1] + (at >> 1 & 1) == 0 &&
                                   sources->low[2] + (at & 1) == 0
                               ? root
                               : VXD_DAG_EMPTY;
    }
}

/* Of a cube, from those of its parent. */
VXD_HD void vxd_dag_sources_child(const struct vxd_dag_op *op,
                                  const struct vxd_dag_view *view,
                                  const struct vxd_dag_sources *parent, uint32_t x,
                                  uint32_t y, uint32_t z, int height,
                                  struct vxd_dag_sources *child)
{
    int64_t corner[3];
    int needed;

    vxd_dag_source_corner(op, x, y, z, height, corner);
    needed = vxd_dag_sources_needed(corner, height);
    for (int a = 0; a < 3; a++) {
        child->low[a] = corner[a] >> height;
    }
    for (int d = 0; d < 8; d++) {
        int from = 0;
        int octant = 0;

        for (int a = 0; a < 3; a++) {
            int64_t cube = child->low[a] + ((d & needed) >> (2 - a) & 1);

            /* What is needed lies in the parent's: this is 0 or 1. */
            from = from << 1 | (int)((cube >> 1) - parent->low[a]);
            octant = octant << 1 | (int)(cube & 1);
        }
        child->refs[d] = vxd_dag_below(view, parent->refs[from], octant);
    }
}

/* For each axis of a leaf and index along it: what it adds to a voxel's source, the number of
 * the source cube * 64 + the bit in it. */
VXD_HD void vxd_dag_source_terms(const struct vxd_dag_op *op,
                                 const struct vxd_dag_sources *sources, uint32_t x,
                                 uint32_t y, uint32_t z, int terms[3][4])
{
    const int64_t voxel[3] = {x, y, z};
    int64_t source[3];

    vxd_dag_source_of(op, voxel, source);
    for (int j = 0; j < 3; j++) {
        /* The one axis of the source that this one is. */
        const int i = op->matrix[0][j] != 0 ? 0 : op->matrix[1][j] != 0 ? 1 : 2;

        for (int k = 0; k < 4; k++) {
            int at =
                (int)(source[i] + op->matrix[i][j] * (int64_t)k - sources->low[i] * 4);

            terms[j][k] = (at >> 2 << 8 | (at >> 1 & 1) << 5 | (at & 1) << 2) >> i;
        }
    }
}

#endif
