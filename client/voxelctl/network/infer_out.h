// SPDX-License-Identifier: Apache-2.0
/* The files that voxelctl infer --out writes. */
#ifndef VXD_CLIENT_VOXELCTL_NETWORK_INFER_OUT_H
#define VXD_CLIENT_VOXELCTL_NETWORK_INFER_OUT_H

#include "client/voxelctl/cli/cli.h"

/* CTL_USAGE after a message for an ending other than .npy and .ply. */
int ctl_infer_check_out(const char *path);

/* Writes an output of an inference as .npy (labels where it has them, else values) or, of voxels
 * and points, as .ply. CTL_FAILED after a message for an output that is not there or cannot be
 * written so. */
int ctl_infer_write(const char *path, const char *output,
                    const struct voxeld_cloud *cloud,
                    const struct voxeld_inference *inference);

#endif
