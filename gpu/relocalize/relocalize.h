// SPDX-License-Identifier: Apache-2.0
/* Where a scan was taken, without a prior: the keyframes whose descriptors are nearest, the motion
 * that puts the scan on a keyframe's cloud, and whether it really lies there.
 *
 * Clouds are x, y, z float32 in metres in a sensor's frame whose z axis points up within some tens of
 * degrees: headings are searched through, tilts are not. All on the CPU's pool; the same bits whatever
 * the number of threads.
 *
 * source  Chen and Medioni, Object modelling by registration of multiple range images (1992); Magnusson,
 *         The three-dimensional normal-distributions transform (2009), for a normal a cell */
#ifndef VXD_GPU_RELOCALIZE_RELOCALIZE_H
#define VXD_GPU_RELOCALIZE_RELOCALIZE_H

#include "gpu/posegraph/posegraph.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    VXD_RELOCALIZE_MAX_POINTS = 1 << 24,
    VXD_RELOCALIZE_MAX_DESCRIPTOR = 1 << 16
};

/* A keyframe as a candidate: its place in the caller's list, and how far its descriptor is. */
struct vxd_relocalize_candidate {
    size_t index;
    double distance; /* Euclidean */
};

/* Finds the k nearest of n descriptors, nearest first; of equally near ones the first comes first.
 * in      descriptors  n pointers to n_values float32 each; NULL entries are skipped
 * out     found        capacity k; returns how many */
size_t vxd_relocalize_rank(const float *query, const float *const *descriptors, size_t n,
                           size_t n_values, size_t k,
                           struct vxd_relocalize_candidate *found);

/* A cloud as cells of two sizes, with the mean and the normal of the points around each. */
struct vxd_scan;

/* in      points       n x 3; those that are not finite do not count
 *         cell_m       edge of the fine cells, 0.01 to 10; the coarse ones have four times as much
 * errors  INVALID_ARGUMENT    cell_m, n, or a coordinate farther than 2^20 cells
 *         RESOURCE_EXHAUSTED */
enum vxd_status vxd_scan_create(const float *points, size_t n, double cell_m,
                                struct vxd_scan **out, struct vxd_err *err);
/* NULL is fine. */
void vxd_scan_destroy(struct vxd_scan *scan);

struct vxd_register_options {
    int n_headings;        /* 1 to 360 of them are tried, evenly; 0 = 24 */
    double min_fitness;    /* 0 to 1; 0 = 0.6 */
    double min_constraint; /* 0 to 1; 0 = 0.001 */
    size_t min_cells;      /* upright cells that a scan must have; 0 = 40 */
};

/* Why a match was refused. */
enum vxd_register_verdict {
    VXD_REGISTER_OK = 0,
    VXD_REGISTER_BARE = 1,    /* too few upright surfaces in one of the scans */
    VXD_REGISTER_UNFIT = 2,   /* too few of them lie on each other */
    VXD_REGISTER_SINGULAR = 3 /* a direction is not held: a corridor, a plain */
};

struct vxd_register_result {
    enum vxd_register_verdict verdict;
    struct vxd_rigid
        T_target_source; /* the best that was found, also where it is refused */
    double
        fitness; /* part of the upright cells of either scan, within the other's reach, that lie
                        * on the other with the same normal; the lower of the two */
    double rmse_m;          /* of those cells' distances to the planes */
    double constraint;      /* least eigenvalue of the information over their mean */
    double information[36]; /* of T_target_source Exp(x), as an edge has it */
    size_t n_cells;         /* matched */
};

/* Puts a scan on another one. The verdict is no error.
 * errors  INVALID_ARGUMENT, RESOURCE_EXHAUSTED */
enum vxd_status vxd_scan_register(struct vxd_pool *pool, const struct vxd_scan *target,
                                  const struct vxd_scan *source,
                                  const struct vxd_register_options *options,
                                  struct vxd_register_result *out, struct vxd_err *err);

#ifdef __cplusplus
}
#endif
#endif
