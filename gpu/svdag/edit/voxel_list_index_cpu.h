// SPDX-License-Identifier: Apache-2.0
/* What many lists of voxels (edit.h) say of the leaves of one cube: a table of its leaves in Morton
 * order, so that which lists have voxels in a cube below is two look-ups. */
#ifndef VXD_GPU_SVDAG_EDIT_VOXEL_LIST_INDEX_CPU_H
#define VXD_GPU_SVDAG_EDIT_VOXEL_LIST_INDEX_CPU_H

#include "gpu/svdag/brush/brush_math.h"
#include "gpu/svdag/node/node_math.h"

/* A leaf's entry in a list. */
struct vxd_svdag_indexed_leaf {
    uint64_t mask;   /* of its voxels */
    uint32_t number; /* of the list's operation */
    uint32_t entry;  /* in its list */
};

/* Entries of the k-th leaf of the cube: from first[k] to first[k + 1], ascending by number. */
struct vxd_svdag_voxel_list_index {
    uint64_t code; /* of the first leaf */
    const uint32_t *first;
    const struct vxd_svdag_indexed_leaf *entries;
};

/* Of an operation that is a list, the leaves in a cube. */
struct vxd_svdag_voxel_list_range {
    uint32_t number;
    uint32_t begin;
    uint32_t end;
};

/* Cubes that a table is made for are not higher: 32 Ki leaves. */
enum {
    VXD_SVDAG_VOXEL_LIST_INDEX_HEIGHT = 7
};

/* Leaves of a cube. */
static inline size_t vxd_svdag_leaves_of_cube(const struct vxd_svdag_cube *cube)
{
    return (size_t)1 << 3 * (cube->height - VXD_SVDAG_LEAF_HEIGHT);
}

/* Makes the table of a cube, up to VXD_SVDAG_VOXEL_LIST_INDEX_HEIGHT, from ranges of lists, ascending by number.
 *
 * in   ops      by number
 *      ranges   n; of leaves in the cube alone
 * out  first    room for the cube's leaves and one more
 *      entries  room for all leaves of the ranges, below 2^32
 *      table    borrows both */
void vxd_svdag_voxel_list_index_make(const struct vxd_svdag_cube *cube,
                                     const struct vxd_svdag_op *ops,
                                     const struct vxd_svdag_voxel_list_range *ranges,
                                     size_t n, uint32_t *first,
                                     struct vxd_svdag_indexed_leaf *entries,
                                     struct vxd_svdag_voxel_list_index *table);

/* Entries of a cube in the table's: those of one leaf where it is a leaf. */
static inline const struct vxd_svdag_indexed_leaf *
vxd_svdag_voxel_list_index_find(const struct vxd_svdag_voxel_list_index *table,
                                const struct vxd_svdag_cube *cube,
                                const struct vxd_svdag_indexed_leaf **end)
{
    const uint64_t at = vxd_svdag_list_code(cube->x, cube->y, cube->z) - table->code;

    *end = table->entries + table->first[at + vxd_svdag_leaves_of_cube(cube)];
    return table->entries + table->first[at];
}

#endif
