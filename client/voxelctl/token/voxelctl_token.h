// SPDX-License-Identifier: Apache-2.0
/* The command token: short-lived tokens. */
#ifndef VXD_CLIENT_VOXELCTL_TOKEN_VOXELCTL_TOKEN_H
#define VXD_CLIENT_VOXELCTL_TOKEN_VOXELCTL_TOKEN_H

#include "client/voxelctl/cli/cli.h"

extern const struct ctl_command ctl_token;

#endif
