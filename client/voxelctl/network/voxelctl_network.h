// SPDX-License-Identifier: Apache-2.0
/* Commands about networks. */
#ifndef VXD_CLIENT_VOXELCTL_NETWORK_VOXELCTL_NETWORK_H
#define VXD_CLIENT_VOXELCTL_NETWORK_VOXELCTL_NETWORK_H

#include "client/voxelctl/cli/cli.h"

extern const struct ctl_command ctl_infer;
extern const struct ctl_command ctl_net;

#endif
