// SPDX-License-Identifier: Apache-2.0
/* What the generated commands of voxelctl volume read by hand. */
#ifndef VXD_CLIENT_VOXELCTL_VOLUME_VOXELCTL_VOLUME_H
#define VXD_CLIENT_VOXELCTL_VOLUME_VOXELCTL_VOLUME_H

#include "client/voxelctl/cli/cli.h"

/* Reads a camera's matrix, or one line fx fy cx cy and 0, 4, 5 or 8 numbers of distortion; sides
 * stay 0. CTL_FAILED after a message. */
int ctl_volume_read_camera(const char *path, struct voxeld_volume_camera *out);

#endif
