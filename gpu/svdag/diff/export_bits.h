// SPDX-License-Identifier: Apache-2.0
/* A box of voxels as rows of bits. As in query.h: asynchronous, beside edits, device memory. */
#ifndef VXD_GPU_SVDAG_DIFF_EXPORT_BITS_H
#define VXD_GPU_SVDAG_DIFF_EXPORT_BITS_H

#include "gpu/svdag/svdag.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Voxels along z of a word. */
#define VXD_SVDAG_ROW_BITS 64

/* Which voxels of a box are occupied, and which are FREE: voxel (x, y, z) is bit i of word w of
 * row (x - low[0], y - low[1]), where z - low[2] = 64 w + i. Rows are row-major, x slowest, of
 * ceil(size[2] / 64) words each; bits behind the box's end are 0.
 *
 * in      low, high  half-open, multiples of 4; what lies outside the scene is not set
 * out     occupied   a word for 64 voxels of each row
 *         free       the same of FREE voxels
 * errors  INVALID_ARGUMENT  a corner that is no multiple of 4, a box of more than 2^32 words,
 *                           an array that is missing
 * cost    a descent for each leaf of the box, none for what is uniform above leaves */
enum vxd_status vxd_svdag_export_bits(struct vxd_queue *queue,
                                      const struct vxd_svdag *svdag, uint32_t root,
                                      const int64_t low[3], const int64_t high[3],
                                      uint64_t *occupied, uint64_t *free,
                                      struct vxd_err *err);

#ifdef __cplusplus
}
#endif
#endif
