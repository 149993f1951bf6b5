// SPDX-License-Identifier: Apache-2.0
/* The command volume: depth images to meshes. */
#ifndef VXD_CLIENT_VOXELCTL_VOLUME_VOXELCTL_VOLUME_H
#define VXD_CLIENT_VOXELCTL_VOLUME_VOXELCTL_VOLUME_H

#include "client/voxelctl/cli/cli.h"

extern const struct ctl_command ctl_volume;
extern const struct ctl_command ctl_refine;

#endif
