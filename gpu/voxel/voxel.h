// SPDX-License-Identifier: Apache-2.0
/* Point clouds and their voxels: coordinates, reduced features, and the voxel of each
 * point. */
#ifndef VXD_GPU_VOXEL_VOXEL_H
#define VXD_GPU_VOXEL_VOXEL_H

#include "gpu/voxel/cloud.h"
#include "gpu/voxel/voxelize.h"

#endif
