// SPDX-License-Identifier: Apache-2.0
/* The rule at the head of ray_math.h made by other means: on dense grids all planes of the scene
 * are sorted by the times at which the ray crosses them, and gone through one by one; in deep
 * scenes each voxel is asked alone between which crossings the ray is in it. Neither knows of
 * trees, cubes or mirrors. */
#ifndef VXD_TESTS_SUPPORT_SVDAG_SVDAG_RAY_RULE_H
#define VXD_TESTS_SUPPORT_SVDAG_SVDAG_RAY_RULE_H

#include "gpu/svdag/query/query.h"
#include "tests/support/svdag/svdag_scene.h"

enum {
    GPU_SVDAG_RULE_SIDE = 64 /* of the largest grid */
};

/* The first hit of a dense grid (side^3 codes, row-major by x), however far. */
void gpu_svdag_cast_dense(const uint32_t *grid, int side, const double origin[3],
                          const double direction[3], struct vxd_svdag_hit *hit);

/* The first hit of a list of voxels, however far. */
void gpu_svdag_cast_voxels(const struct gpu_svdag_voxel *voxels, size_t n,
                           const double origin[3], const double direction[3],
                           struct vxd_svdag_hit *hit);

#endif
