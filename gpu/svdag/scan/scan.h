// SPDX-License-Identifier: Apache-2.0
/* From points to lists of voxels: what a scan hits, and the free space up to there. */
#ifndef VXD_GPU_SVDAG_SCAN_SCAN_H
#define VXD_GPU_SVDAG_SCAN_SCAN_H

#include "gpu/svdag/brush/brush.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Longest ray that is carved, in voxels. */
#define VXD_SVDAG_MAX_RAY_VOXELS 16384.0

/* A list that was made, with its memory. Zero-initialised = empty. */
struct vxd_svdag_voxel_list {
    struct vxd_svdag_voxels voxels;
    struct vxd_buffer memory;
};

struct vxd_svdag_scan {
    const float *points;    /* n x 3, voxels from `base`; device memory, borrowed */
    const uint16_t *values; /* n, of each point; NULL: all are `value` */
    size_t n;
    uint32_t value;
    int64_t
        base[3]; /* voxel index of the points' zero, so that floats stay exact far out */
    /* Rays start here, voxels from `base`; finite. */
    double origin[3];
    /* Points farther than this from the origin (voxels, in double) hit nothing, and their
     * rays end there; 0 = no limit. Rays longer than VXD_SVDAG_MAX_RAY_VOXELS are not cast:
     * such points hit without one. */
    double max_range;
    bool carve;
};

struct vxd_svdag_scan_result {
    struct vxd_svdag_voxel_list hits; /* with values, those of the last point by index */
    struct vxd_svdag_voxel_list passed; /* voxels that rays went through, hits left out */
    uint64_t n_hit;                     /* points that are in hits */
    uint64_t n_non_finite;
    uint64_t n_outside; /* points outside the scene; their rays carve what is inside */
    uint64_t n_beyond;  /* points beyond max_range, in the scene or not */
    uint64_t n_hit_voxels;
    uint64_t n_passed_voxels;
};

/* Makes the lists of one scan.
 *
 * A point is in voxel floor(p) + base. Its ray goes from the origin to the point and passes
 * the voxels that vxd_svdag_walk (carve_math.h) visits, the last one (the point's own)
 * excepted. One ray is cast a hit voxel: that of its first point by index; and one each
 * point beyond the range or outside. A voxel that any point hits is in no ray.
 *
 * errors  INVALID_ARGUMENT    n above 2^28, an origin or range that is not finite, a base
 *                             beyond 2^40, a value that is no material (from the wait where
 *                             it is a point's that hits)
 *         RESOURCE_EXHAUSTED  (some from the wait) no memory for the lists
 * owner   the caller frees the lists (vxd_svdag_voxel_list_free), after a fault too
 * sync    asynchronous; *out is written by the wait: lists may be used by what is queued
 *         after another wait only. On a GPU the call itself waits: how long the lists are is
 *         known only then */
enum vxd_status vxd_svdag_scan_voxels(struct vxd_queue *queue,
                                      const struct vxd_svdag_format *format,
                                      const struct vxd_svdag_scan *scan,
                                      struct vxd_svdag_scan_result *out,
                                      struct vxd_err *err);

/* The same list of voxels by index.
 *
 * in      voxels  n x 3 int32; those outside the scene are counted and left out
 *         values  n uint16, of equal voxels the last one's; NULL = the list has none
 * out     list    written by the wait, as above; n_outside too
 * errors  as above */
enum vxd_status vxd_svdag_list_voxels(struct vxd_queue *queue,
                                      const struct vxd_svdag_format *format,
                                      const int32_t *voxels, const uint16_t *values,
                                      size_t n, struct vxd_svdag_voxel_list *list,
                                      uint64_t *n_outside, struct vxd_err *err);

void vxd_svdag_voxel_list_free(struct vxd_queue *queue,
                               struct vxd_svdag_voxel_list *list);

#ifdef __cplusplus
}
#endif
#endif
