// SPDX-License-Identifier: Apache-2.0
/* The command scene: voxel scenes. */
#ifndef VXD_CLIENT_VOXELCTL_SCENE_VOXELCTL_SCENE_H
#define VXD_CLIENT_VOXELCTL_SCENE_VOXELCTL_SCENE_H

#include "client/voxelctl/cli/cli.h"

extern const struct ctl_command ctl_scene;

#endif
