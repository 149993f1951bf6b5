// SPDX-License-Identifier: Apache-2.0
/* Five commands, shown and run. */
#ifndef VXD_CLIENT_VOXELCTL_DEMO_VOXELCTL_DEMO_H
#define VXD_CLIENT_VOXELCTL_DEMO_VOXELCTL_DEMO_H

#include "client/voxelctl/cli/cli.h"

extern const struct ctl_command ctl_demo;

#endif
