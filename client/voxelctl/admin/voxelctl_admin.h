// SPDX-License-Identifier: Apache-2.0
/* Commands about the daemon itself. */
#ifndef VXD_CLIENT_VOXELCTL_ADMIN_VOXELCTL_ADMIN_H
#define VXD_CLIENT_VOXELCTL_ADMIN_VOXELCTL_ADMIN_H

#include "client/voxelctl/cli/cli.h"

extern const struct ctl_command ctl_info;
extern const struct ctl_command ctl_status;
extern const struct ctl_command ctl_top;
extern const struct ctl_command ctl_self_test;
extern const struct ctl_command ctl_log_level;
extern const struct ctl_command ctl_backup;
extern const struct ctl_command ctl_restore;
extern const struct ctl_command ctl_why;
extern const struct ctl_command ctl_bench;

#endif
