// SPDX-License-Identifier: Apache-2.0
/* The command watch: what changes in scenes, as it happens. */
#ifndef VXD_CLIENT_VOXELCTL_WATCH_VOXELCTL_WATCH_H
#define VXD_CLIENT_VOXELCTL_WATCH_VOXELCTL_WATCH_H

#include "client/voxelctl/cli/cli.h"

extern const struct ctl_command ctl_watch;

#endif
