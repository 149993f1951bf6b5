// SPDX-License-Identifier: Apache-2.0
/* Commands about the daemon that run other programs. */
#ifndef VXD_CLIENT_VOXELCTL_ADMIN_VOXELCTL_ADMIN_H
#define VXD_CLIENT_VOXELCTL_ADMIN_VOXELCTL_ADMIN_H

#include "client/voxelctl/cli/cli.h"

extern const struct ctl_command ctl_restore;
extern const struct ctl_command ctl_bench;

#endif
