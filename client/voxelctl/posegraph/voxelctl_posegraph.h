// SPDX-License-Identifier: Apache-2.0
/* The command posegraph: loops closed, places found again. */
#ifndef VXD_CLIENT_VOXELCTL_POSEGRAPH_VOXELCTL_POSEGRAPH_H
#define VXD_CLIENT_VOXELCTL_POSEGRAPH_VOXELCTL_POSEGRAPH_H

#include "client/voxelctl/cli/cli.h"

extern const struct ctl_command ctl_posegraph;

#endif
