// SPDX-License-Identifier: Apache-2.0
/* A reference implementation of the ray rule stated in ray_math.h. On dense grids it
 * sorts all planes of the scene by the time at which the ray crosses them and visits them
 * in order. In deep scenes it computes for each set voxel alone when the ray is in it.
 * Neither uses trees, cubes or mirrored coordinates. */
#ifndef VXD_TESTS_SUPPORT_SVDAG_SVDAG_RAY_RULE_H
#define VXD_TESTS_SUPPORT_SVDAG_SVDAG_RAY_RULE_H

#include "gpu/svdag/query/query.h"
#include "tests/support/svdag/svdag_scene.h"

enum {
    GPU_SVDAG_RULE_SIDE = 64 /* side of the largest grid */
};

/* Finds the first hit in a dense grid (side^3 codes, row-major by x) at any distance. */
void gpu_svdag_cast_dense(const uint32_t *grid, int side, const double origin[3],
                          const double direction[3], struct vxd_svdag_hit *hit);

/* Finds the first hit in a list of voxels at any distance. */
void gpu_svdag_cast_voxels(const struct gpu_svdag_voxel *voxels, size_t n,
                           const double origin[3], const double direction[3],
                           struct vxd_svdag_hit *hit);

#endif
