// SPDX-License-Identifier: Apache-2.0
/* What the subcommands of voxelctl slac share: each prints what its generated manual promises. */
#ifndef VXD_CLIENT_VOXELCTL_SLAC_SLAC_COMMANDS_H
#define VXD_CLIENT_VOXELCTL_SLAC_SLAC_COMMANDS_H

#include "client/voxelctl/generated/slac_args.h"

/* Points of files, one after the other. */
struct ctl_slac_points {
    float *points;  /* n x 3 */
    float *normals; /* n x 3; NULL where a file had none */
    size_t n;
    bool has_normals;
};

/* Adds the points of a cloud file. CTL_FAILED after a message. */
int ctl_slac_read_cloud(const char *path, struct ctl_slac_points *points);
void ctl_slac_points_clear(struct ctl_slac_points *points);

#endif
