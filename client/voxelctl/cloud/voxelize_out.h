// SPDX-License-Identifier: Apache-2.0
/* The files that voxelctl voxelize --out writes. */
#ifndef VXD_CLIENT_VOXELCTL_CLOUD_VOXELIZE_OUT_H
#define VXD_CLIENT_VOXELCTL_CLOUD_VOXELIZE_OUT_H

#include "client/voxelctl/cli/cli.h"

/* Plans an output file by its name's ending; CTL_USAGE after a message for an ending other than
 * .ply and .npy, or a tensor that does not exist. *outputs and *reduce get the bits that the
 * request needs for it. */
int ctl_out_plan(const char *path, const char *tensor, uint32_t *outputs,
                 uint32_t *reduce);

/* Writes the file as ctl_write_file does. CTL_FAILED after a message. */
int ctl_out_write(const char *path, const char *tensor,
                  const struct voxeld_voxels *voxels);

#endif
