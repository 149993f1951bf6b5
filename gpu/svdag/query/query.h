// SPDX-License-Identifier: Apache-2.0
/* Questions to a root: asynchronous, any number at once, beside edits. Arrays are device
 * memory, borrowed until the wait. Equal on every backend, bit for bit, where nothing else
 * is said. The root is of the store, or EMPTY or uniform.
 * errors  INVALID_ARGUMENT    an array is missing; more than a GPU takes at once, 2^31 - 1
 *                             blocks of threads
 *         RESOURCE_EXHAUSTED  no memory for scratch (of counts on a GPU), or for the job */
#ifndef VXD_GPU_SVDAG_QUERY_QUERY_H
#define VXD_GPU_SVDAG_QUERY_QUERY_H

#include "gpu/svdag/svdag.h"

#ifdef __cplusplus
extern "C" {
#endif

/* States of voxels.
 * in   voxels  n x 3 int32 indices; outside the scene is UNKNOWN
 * out  states  n uint8, one of enum vxd_svdag_state
 *      values  n uint16, the material where OCCUPIED, else 0; may be NULL */
enum vxd_status vxd_svdag_values(struct vxd_queue *queue, const struct vxd_svdag *svdag,
                                 uint32_t root, const int32_t *voxels, size_t n,
                                 uint8_t *states, uint16_t *values, struct vxd_err *err);

/* The newest of several versions of a scene in which each voxel changed.
 * in   roots    n_roots roots of the store, newest first; at least 1
 *      voxels   n x 3 int32 indices
 * out  indices  n uint32: the first i for which roots i and i + 1 differ at the voxel, in state or
 *               material; n_roots - 1 where all are the same there, and outside the scene */
enum vxd_status vxd_svdag_changed(struct vxd_queue *queue, const struct vxd_svdag *svdag,
                                  const uint32_t *roots, uint32_t n_roots,
                                  const int32_t *voxels, size_t n, uint32_t *indices,
                                  struct vxd_err *err);

/* Draws a part of a picture (gpu/render) of a store that splits items, whose kernels are its own.
 * On a GPU alone.
 * errors  UNIMPLEMENTED  the store has none */
struct vxd_render_call;
enum vxd_status vxd_svdag_draw_split(struct vxd_queue *queue,
                                     const struct vxd_svdag *svdag,
                                     const struct vxd_render_call *call,
                                     struct vxd_err *err);

/* The first occupied voxel of each ray.
 * in   origins     n x 3 float64, voxels from the scene's low corner; may lie outside
 *      directions  n x 3 float64, of any length
 *      max_range   n float64, voxels, at least 0, infinite = no limit; or NULL: no limit
 * out  hits        n. A ray from inside an occupied voxel hits it at 0 with no normal. What
 *                  is not finite, a direction of zero, and a range that is NaN or negative
 *                  hit nothing and have bad = 1
 * rule  which voxels a ray visits stands at the head of ray_math.h: in order, by the planes
 *       it crosses, on double arithmetic of one rounding an operation; at an edge or corner
 *       crossed exactly the axes are stepped in the order x, y, z */
struct vxd_svdag_hit {
    double
        distance; /* along the ray in voxels, to where it enters the voxel; -1 = none */
    int32_t voxel[3]; /* -1 -1 -1 = none */
    uint16_t value;
    int8_t normal; /* axis + 1 of the face it came in by, negative for low faces (a normal
                    * of -1 points to -x); 0 = none */
    uint8_t bad;
};
enum vxd_status vxd_svdag_cast_rays(struct vxd_queue *queue,
                                    const struct vxd_svdag *svdag, uint32_t root,
                                    const double *origins, const double *directions,
                                    const double *max_range, size_t n,
                                    struct vxd_svdag_hit *hits, struct vxd_err *err);

/* The occupied voxel whose centre is nearest to each point, within a radius; of equally near
 * ones the first in Morton order.
 * in   points    n x 3 int64 units, magnitudes below 2^31
 *      radii     n int64 units, 0 to 2^30
 * out  voxels    n x 3 int32, -1 -1 -1 = none
 *      squares   n uint64, square of the distance in units; 0 where none
 *      values    n uint16; may be NULL */
enum vxd_status vxd_svdag_nearest(struct vxd_queue *queue, const struct vxd_svdag *svdag,
                                  uint32_t root, const int64_t *points,
                                  const int64_t *radii, size_t n, int32_t *voxels,
                                  uint64_t *squares, uint16_t *values,
                                  struct vxd_err *err);

/* A ball, or a box where r is negative: as in edit.h, units, magnitudes below 2^31. */
struct vxd_svdag_region {
    int64_t low[3], high[3]; /* box, half-open */
    int64_t centre[3];
    int64_t r;
};

/* Which states occur among the voxels of each region; the outside of the scene is not looked
 * at, so 0 for a region that has no voxel.
 * out  states  n uint8, sets of enum vxd_svdag_state */
enum vxd_status vxd_svdag_overlap(struct vxd_queue *queue, const struct vxd_svdag *svdag,
                                  uint32_t root, const struct vxd_svdag_region *regions,
                                  size_t n, uint8_t *states, struct vxd_err *err);

/* How many voxels of each region are occupied, and how many FREE.
 * out   counts  n x 2 uint64
 * cost  a box's grows with its borders and with what is FREE there, a ball's with its
 *       surface in what is set: about 2 s of a thread at r = 4096 voxels in a solid. Who takes
 *       balls from others bounds r */
enum vxd_status vxd_svdag_count(struct vxd_queue *queue, const struct vxd_svdag *svdag,
                                uint32_t root, const struct vxd_svdag_region *regions,
                                size_t n, uint64_t *counts, struct vxd_err *err);

#ifdef __cplusplus
}
#endif
#endif
