// SPDX-License-Identifier: Apache-2.0
/* FileDescriptorSets of the schemas, which the build makes of schema/foxglove. */
#ifndef VXD_SERVER_TRANSPORT_FOXGLOVE_SCHEMAS_INTERNAL_H
#define VXD_SERVER_TRANSPORT_FOXGLOVE_SCHEMAS_INTERNAL_H

#include <stddef.h>

extern const char vxd_foxglove_FrameTransforms[];
extern const size_t vxd_foxglove_FrameTransforms_bytes;
extern const char vxd_foxglove_PointCloud[];
extern const size_t vxd_foxglove_PointCloud_bytes;
extern const char vxd_foxglove_VoxelGrid[];
extern const size_t vxd_foxglove_VoxelGrid_bytes;
extern const char vxd_foxglove_SceneUpdate[];
extern const size_t vxd_foxglove_SceneUpdate_bytes;
extern const char vxd_foxglove_Grid[];
extern const size_t vxd_foxglove_Grid_bytes;
extern const char vxd_foxglove_CompressedImage[];
extern const size_t vxd_foxglove_CompressedImage_bytes;
extern const char vxd_foxglove_Log[];
extern const size_t vxd_foxglove_Log_bytes;
extern const char vxd_foxglove_LaserScan[];
extern const size_t vxd_foxglove_LaserScan_bytes;
extern const char vxd_foxglove_PosesInFrame[];
extern const size_t vxd_foxglove_PosesInFrame_bytes;
extern const char vxd_foxglove_PoseInFrame[];
extern const size_t vxd_foxglove_PoseInFrame_bytes;

#endif
