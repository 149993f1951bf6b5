// SPDX-License-Identifier: Apache-2.0
/* Commands about point cloud files. */
#ifndef VXD_CLIENT_VOXELCTL_CLOUD_VOXELCTL_CLOUD_H
#define VXD_CLIENT_VOXELCTL_CLOUD_VOXELCTL_CLOUD_H

#include "client/voxelctl/cli/cli.h"

extern const struct ctl_command ctl_convert;

#endif
