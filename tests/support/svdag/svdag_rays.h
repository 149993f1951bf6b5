// SPDX-License-Identifier: Apache-2.0
/* A reference implementation of vxd_svdag_scan_voxels on a plain grid. For each ray it
 * sorts all planes that the ray crosses, in long double; it uses nothing of
 * carve_math.h. */
#ifndef VXD_TESTS_SUPPORT_SVDAG_SVDAG_RAYS_H
#define VXD_TESTS_SUPPORT_SVDAG_SVDAG_RAYS_H

#include "gpu/svdag/scan/scan.h"

struct gpu_svdag_scan_grid {
    int64_t side;
    uint8_t *hit; /* side^3 each, x slowest */
    uint8_t *passed;
    int32_t *value; /* values of the hit voxels */
    uint64_t n_hit;
    uint64_t n_non_finite;
    uint64_t n_outside;
    uint64_t n_beyond;
};

void gpu_svdag_scan_grid_make(struct gpu_svdag_scan_grid *grid, int depth);
void gpu_svdag_scan_grid_free(struct gpu_svdag_scan_grid *grid);

/* Returns false if the result depends on rounding: the point is close to the range limit,
 * its ray ends close to a voxel's border, or the ray crosses two planes at nearly the
 * same time. */
bool gpu_svdag_point_is_clear(const struct vxd_svdag_scan *scan, const float point[3]);

/* Applies a whole scan, of points whose results do not depend on rounding. */
void gpu_svdag_scan_grid_run(struct gpu_svdag_scan_grid *grid,
                             const struct vxd_svdag_scan *scan);

/* Counts the voxels at which the engine's result differs from the grid; 0 is expected. */
size_t gpu_svdag_scan_grid_compare(const struct gpu_svdag_scan_grid *grid,
                                   const struct vxd_svdag_scan_result *result);

/* Writes the voxels of a list and their values (if not NULL) into a zeroed grid. Returns
 * false if the list breaks a rule of its format. */
bool gpu_svdag_list_to_grid(const struct vxd_svdag_voxels *list, int64_t side,
                            uint8_t *grid, int32_t *values, uint64_t *n_voxels);

#endif
