// SPDX-License-Identifier: Apache-2.0
/* The command odometry: lidar scans to poses. */
#ifndef VXD_CLIENT_VOXELCTL_ODOMETRY_VOXELCTL_ODOMETRY_H
#define VXD_CLIENT_VOXELCTL_ODOMETRY_VOXELCTL_ODOMETRY_H

#include "client/voxelctl/cli/cli.h"

extern const struct ctl_command ctl_odometry;

#endif
