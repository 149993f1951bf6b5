// SPDX-License-Identifier: Apache-2.0
/* Scans over a plain grid of voxels: what vxd_svdag_scan_voxels is compared with. Rays are the
 * sorted list of all planes they cross, in long double; nothing of carve_math.h is used. */
#ifndef VXD_TESTS_SUPPORT_SVDAG_SVDAG_RAYS_H
#define VXD_TESTS_SUPPORT_SVDAG_SVDAG_RAYS_H

#include "gpu/svdag/scan/scan.h"

struct gpu_svdag_scan_grid {
    int64_t side;
    uint8_t *hit; /* side^3 each, x slowest */
    uint8_t *passed;
    int32_t *value; /* of the hit ones */
    uint64_t n_hit;
    uint64_t n_non_finite;
    uint64_t n_outside;
    uint64_t n_beyond;
};

void gpu_svdag_scan_grid_make(struct gpu_svdag_scan_grid *grid, int depth);
void gpu_svdag_scan_grid_free(struct gpu_svdag_scan_grid *grid);

/* False where rounding decides: the point is next to the range, its ray's end next to a
 * voxel's border, or two planes are crossed at nearly the same time. */
bool gpu_svdag_point_is_clear(const struct vxd_svdag_scan *scan, const float point[3]);

/* All of a scan of points that are clear. */
void gpu_svdag_scan_grid_run(struct gpu_svdag_scan_grid *grid,
                             const struct vxd_svdag_scan *scan);

/* How much of the engine's result is not as the grid says; 0. */
size_t gpu_svdag_scan_grid_compare(const struct gpu_svdag_scan_grid *grid,
                                   const struct vxd_svdag_scan_result *result);

/* The voxels of a list in a grid that was 0, with their values (NULL: not looked at). False
 * where the list breaks a rule of its form. */
bool gpu_svdag_list_to_grid(const struct vxd_svdag_voxels *list, int64_t side,
                            uint8_t *grid, int32_t *values, uint64_t *n_voxels);

#endif
