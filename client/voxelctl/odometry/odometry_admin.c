// SPDX-License-Identifier: Apache-2.0
/* What voxelctl odometry create and reset read. */
#include "client/voxelctl/odometry/odometry_commands.h"

int ctl_odometry_fill_create(const struct ctl_odometry_args *args,
                             struct voxeld_odometry_create_request *request)
{
    return args->initial != NULL ? ctl_read_pose(args->initial, &request->initial)
                                 : CTL_OK;
}

int ctl_odometry_fill_reset(const struct ctl_odometry_args *args,
                            struct voxeld_odometry_reset_request *request)
{
    return args->initial != NULL ? ctl_read_pose(args->initial, &request->initial)
                                 : CTL_OK;
}
