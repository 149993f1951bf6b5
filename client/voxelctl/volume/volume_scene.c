// SPDX-License-Identifier: Apache-2.0
/* voxelctl volume stamp, import: which part. */
#include "client/voxelctl/volume/volume_commands.h"

int ctl_volume_fill_stamp(const struct ctl_volume_args *args,
                          struct voxeld_volume_stamp_request *request)
{
    return ctl_volume_parse_box(args->box, &request->has_box, &request->box);
}

int ctl_volume_fill_import(const struct ctl_volume_args *args,
                           struct voxeld_volume_import_scene_request *request)
{
    return ctl_volume_parse_box(args->box, &request->has_box, &request->box);
}
