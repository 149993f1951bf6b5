// SPDX-License-Identifier: Apache-2.0
/* The command slac: fragments aligned without rigidity. */
#ifndef VXD_CLIENT_VOXELCTL_SLAC_VOXELCTL_SLAC_H
#define VXD_CLIENT_VOXELCTL_SLAC_VOXELCTL_SLAC_H

#include "client/voxelctl/cli/cli.h"

extern const struct ctl_command ctl_slac;

#endif
