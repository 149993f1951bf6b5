// SPDX-License-Identifier: Apache-2.0
/* The command map: named hash maps. */
#ifndef VXD_CLIENT_VOXELCTL_MAP_VOXELCTL_MAP_H
#define VXD_CLIENT_VOXELCTL_MAP_VOXELCTL_MAP_H

#include "client/voxelctl/cli/cli.h"

extern const struct ctl_command ctl_map;

#endif
