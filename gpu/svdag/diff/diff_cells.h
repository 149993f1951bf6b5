// SPDX-License-Identifier: Apache-2.0
/* Where two roots of a store differ. As in query.h: asynchronous, any number at once, beside
 * edits, arrays in device memory; equal on every backend, bit for bit. */
#ifndef VXD_GPU_SVDAG_DIFF_DIFF_CELLS_H
#define VXD_GPU_SVDAG_DIFF_DIFF_CELLS_H

#include "gpu/svdag/svdag.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What became of some voxel of a cell: bits. A voxel that differs has one at least. */
enum vxd_svdag_difference {
    VXD_SVDAG_DIFF_ADDED = 1,   /* occupied after and not before, */
    VXD_SVDAG_DIFF_REMOVED = 2, /* before and not after, */
    VXD_SVDAG_DIFF_CHANGED = 4, /* both, of another material */
    VXD_SVDAG_DIFF_FREED = 8,   /* FREE after and not before, */
    VXD_SVDAG_DIFF_UNFREED = 16 /* before and not after */
};

/* A box of voxel indices, half-open, and the cells to give: 2^level voxels a side. The box is
 * clipped to the scene; of a cell only what lies in the box is looked at. */
struct vxd_svdag_diff_box {
    int64_t low[3], high[3];
    int level; /* 0 to depth */
};

/* The cells in which a voxel differs, in Morton order, the first `first` left out, at most
 * `limit`. A page begins where the last one ended: the roots do not change.
 *
 * in      before, after  roots of this store
 * out     cells    limit x 3 int32, voxel indices >> level; may be NULL where limit is 0
 *         changes  limit uint8, sets of enum vxd_svdag_difference; may be NULL
 *         n_cells  2 uint64: rows written, and cells in all, whatever first and limit are
 * errors  INVALID_ARGUMENT    a level that is none, an array that is missing
 *         RESOURCE_EXHAUSTED  no memory for scratch
 * cost    grows with what differs, as far down as cells are (and for `changes` of the rows
 *         as far as it takes to tell), not with the scene */
enum vxd_status vxd_svdag_diff(struct vxd_queue *queue, const struct vxd_svdag *svdag,
                               uint32_t before, uint32_t after,
                               const struct vxd_svdag_diff_box *box, uint64_t first,
                               uint64_t limit, int32_t *cells, uint8_t *changes,
                               uint64_t *n_cells, struct vxd_err *err);

#ifdef __cplusplus
}
#endif
#endif
