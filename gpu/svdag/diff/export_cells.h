// SPDX-License-Identifier: Apache-2.0
/* What a root holds, as arrays. As in query.h: asynchronous, beside edits, device memory;
 * errors too, RESOURCE_EXHAUSTED for the scratch of counted and listed cells on a GPU. */
#ifndef VXD_GPU_SVDAG_DIFF_EXPORT_CELLS_H
#define VXD_GPU_SVDAG_DIFF_EXPORT_CELLS_H

#include "gpu/svdag/svdag.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A box of voxel indices, half-open, and the cells to give: 2^level voxels a side. The box is
 * clipped to the scene; a cell counts what of it lies in the box. */
struct vxd_svdag_export {
    int64_t low[3], high[3];
    int level; /* 0 to depth */
    bool free; /* the FREE voxels instead of the occupied ones */
};

/* Cells that have such a voxel.
 * out  n_cells  device memory, one uint64 */
enum vxd_status vxd_svdag_count_cells(struct vxd_queue *queue,
                                      const struct vxd_svdag *svdag, uint32_t root,
                                      const struct vxd_svdag_export *box,
                                      uint64_t *n_cells, struct vxd_err *err);

/* Those cells in Morton order, the first `first` left out, at most `limit`.
 * out  cells    n x 3 int32, voxel indices >> level
 *      values   n uint16, of the cell's first such voxel in Morton order (FREE ones have
 *               vxd_svdag_free_value); may be NULL
 *      counts   n uint64, such voxels in the cell; may be NULL
 *      n_cells  one uint64: rows written */
enum vxd_status vxd_svdag_export_cells(struct vxd_queue *queue,
                                       const struct vxd_svdag *svdag, uint32_t root,
                                       const struct vxd_svdag_export *box, uint64_t first,
                                       uint64_t limit, int32_t *cells, uint16_t *values,
                                       uint64_t *counts, uint64_t *n_cells,
                                       struct vxd_err *err);

/* A box of cells as a dense array, at most 2^27 of them: what lies outside the scene is
 * UNKNOWN. `box->free` is not looked at; low and high must be multiples of 2^level.
 * out  states  uint8, sets of enum vxd_svdag_state of each cell, row-major: x slowest
 *      values  uint16, of the cell's first occupied voxel, 0 where none; may be NULL
 * errors  INVALID_ARGUMENT  a box of more cells, or not of whole ones */
enum vxd_status vxd_svdag_export_dense(struct vxd_queue *queue,
                                       const struct vxd_svdag *svdag, uint32_t root,
                                       const struct vxd_svdag_export *box,
                                       uint8_t *states, uint16_t *values,
                                       struct vxd_err *err);

#ifdef __cplusplus
}
#endif
#endif
