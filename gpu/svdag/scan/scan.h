// SPDX-License-Identifier: Apache-2.0
/* Makes lists of voxels from a scan: the voxels that it hits, and the free space between
 * the sensor and its hits. */
#ifndef VXD_GPU_SVDAG_SCAN_SCAN_H
#define VXD_GPU_SVDAG_SCAN_SCAN_H

#include "gpu/svdag/brush/brush.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Longest ray that is carved, in voxels. */
#define VXD_SVDAG_MAX_RAY_VOXELS 16384.0

/* Rays end, and points' own rays start, in the middle of cells of 1/VXD_SVDAG_UNIT voxel. Those
 * whose cells are closer to the base than this, per axis, have names of few bytes, which
 * floats hold exactly. */
#define VXD_SVDAG_MAX_RAY_CELL ((int32_t)1 << 22)

/* A list of voxels and its memory. Zero-initialised = empty. */
struct vxd_svdag_voxel_list {
    struct vxd_svdag_voxels voxels;
    struct vxd_buffer memory;
};

/* The rays that a scan has cast, by which another scan gives the same lists: its points are
 * the middles of the ends' cells, (cell + 0.5) / VXD_SVDAG_UNIT, its origins likewise, and it has
 * the same base and origin, no range, n_rays_only = n - n_hits, and of a point in a voxel the
 * voxel's value. Zero-initialised = none. */
struct vxd_svdag_ray_ends {
    const int32_t *ends; /* n x 3: cells from the scan's base; device memory */
    const int32_t
        *origins; /* n x 3, likewise; NULL: all rays start at the scan's origin */
    size_t n;
    size_t
        n_hits; /* the first so many are of points that hit, by the codes of their voxels */
    struct vxd_buffer memory;
};

struct vxd_svdag_scan {
    const float *points;    /* n x 3, voxels from `base`; device memory, borrowed */
    const uint16_t *values; /* n, of each point; NULL: all are `value` */
    size_t n;
    size_t
        n_rays_only; /* the last so many points hit nothing, but their rays end there */
    uint32_t value;
    int64_t
        base[3]; /* voxel index of the points' zero, so that floats stay exact far out */
    /* Rays start here, voxels from `base`; finite. */
    double origin[3];
    /* n x 3, voxels from `base`, device memory: where each point's own ray starts, instead; a
     * point without a finite one is not finite. NULL: all start at `origin`. */
    const float *origins;
    /* Points farther than this from the origin (voxels, in double) hit nothing, and their
     * rays end at this distance; 0 = no limit. Rays longer than VXD_SVDAG_MAX_RAY_VOXELS
     * are not cast; their points still hit. */
    double max_range;
    bool carve;
    /* One ray for each hit voxel, that of its first point by index, instead of one for
     * each point: fewer rays, and a few voxels that only other points' rays pass are
     * missed. */
    bool discretize;
    bool wants_ends; /* where it carves: the result has the rays' ends */
};

struct vxd_svdag_scan_result {
    struct vxd_svdag_voxel_list
        hits; /* with values; of several points in a voxel the last by index counts */
    struct vxd_svdag_voxel_list
        passed; /* voxels that rays pass through, without the hit ones */
    /* If wanted. None where a ray is too long to be cast, or a cell too far from the base. */
    struct vxd_svdag_ray_ends ends;
    uint64_t n_hit; /* points that hit a voxel */
    uint64_t n_non_finite;
    uint64_t n_outside; /* points outside the scene; their rays carve what is inside */
    uint64_t n_beyond;  /* points beyond max_range, in the scene or not */
    uint64_t n_hit_voxels;
    uint64_t n_passed_voxels;
};

/* Makes the lists of one scan.
 *
 * A point is in voxel floor(p) + base. Its ray goes from the origin to the point and
 * passes the voxels that vxd_svdag_walk (carve_math.h) visits, except the last one, which
 * is the point's own. A ray is cast for each point, also for those beyond the range or
 * outside the scene; with `discretize` the points that hit one voxel have one ray. A voxel
 * that any point hits is not passed by any ray. The end of a ray is the middle of the cell
 * that the point, or the range, is in, and so is the start of a point's own ray.
 *
 * errors  INVALID_ARGUMENT    n above 2^28, n_rays_only above n, an origin or range that is not finite, a base
 *                             beyond 2^40, a value that is no material (from the wait where
 *                             it is the value of a point that hits)
 *         RESOURCE_EXHAUSTED  (partly from the wait) no memory for the lists
 * owner   the caller frees the lists (vxd_svdag_voxel_list_free) and the ends
 *         (vxd_svdag_ray_ends_free), also after a failure
 * sync    asynchronous; *out is written by the wait, so only work queued after another wait
 *         may use the lists. On a GPU the call itself waits, because it has to read the
 *         lengths of the lists */
enum vxd_status vxd_svdag_scan_voxels(struct vxd_queue *queue,
                                      const struct vxd_svdag_format *format,
                                      const struct vxd_svdag_scan *scan,
                                      struct vxd_svdag_scan_result *out,
                                      struct vxd_err *err);

/* A scan that is made in steps, between which its maker may do something else, or end. */
struct vxd_svdag_scanning;

/* Begins a scan in steps; nothing runs yet.
 *
 * in      scan      its arrays stay the caller's until the scan ends
 * errors  those of vxd_svdag_scan_voxels, of which the call knows
 * owner   the caller ends it (vxd_svdag_scan_end), also after a failure */
enum vxd_status vxd_svdag_scan_begin(struct vxd_queue *queue,
                                     const struct vxd_svdag_format *format,
                                     const struct vxd_svdag_scan *scan,
                                     struct vxd_svdag_scanning **out,
                                     struct vxd_err *err);

/* Makes the next step of a scan. On a CPU a step takes some 10 ms, whatever the
 * scan; on a GPU the first one is all of it.
 *
 * out     out       written by the last step, which sets *is_done; the same as that of
 *                   vxd_svdag_scan_voxels, and its lists are freed likewise
 * errors  those of vxd_svdag_scan_voxels
 * sync    waits */
enum vxd_status vxd_svdag_scan_step(struct vxd_queue *queue,
                                    struct vxd_svdag_scanning *scanning,
                                    struct vxd_svdag_scan_result *out, bool *is_done,
                                    struct vxd_err *err);

/* Ends a scan, whether all its steps were made or not. NULL does nothing. */
void vxd_svdag_scan_end(struct vxd_svdag_scanning *scanning);

/* Makes such a list from voxel indices.
 *
 * in      voxels  n x 3 int32; those outside the scene are counted and left out
 *         values  n uint16; of equal voxels the last one counts; NULL = the list has none
 * out     list    written by the wait, as above; so is n_outside
 * errors  as above */
enum vxd_status vxd_svdag_list_voxels(struct vxd_queue *queue,
                                      const struct vxd_svdag_format *format,
                                      const int32_t *voxels, const uint16_t *values,
                                      size_t n, struct vxd_svdag_voxel_list *list,
                                      uint64_t *n_outside, struct vxd_err *err);

void vxd_svdag_voxel_list_free(struct vxd_queue *queue,
                               struct vxd_svdag_voxel_list *list);
void vxd_svdag_ray_ends_free(struct vxd_queue *queue, struct vxd_svdag_ray_ends *ends);

#ifdef __cplusplus
}
#endif
#endif
