// SPDX-License-Identifier: Apache-2.0
/* voxelctl volume stamp, import: between volumes and scenes. */
#include "client/voxelctl/volume/volume_commands.h"

int ctl_volume_fill_stamp(const struct ctl_volume_args *args,
                          struct voxeld_volume_stamp_request *request)
{
    return ctl_volume_parse_box(args->box, &request->has_box, &request->box);
}

void ctl_volume_print_stamped(const struct ctl_volume_args *args,
                              const struct voxeld_volume_stamped *change)
{
    char text[3][32];

    (void)printf("%s: %s voxels added and %s changed by %s triangles\n", args->words[1],
                 ctl_thousands(change->n_added, text[0]),
                 ctl_thousands(change->n_changed, text[1]),
                 ctl_thousands(change->n_triangles, text[2]));
}

int ctl_volume_fill_import(const struct ctl_volume_args *args,
                           struct voxeld_volume_import_scene_request *request)
{
    return ctl_volume_parse_box(args->box, &request->has_box, &request->box);
}

void ctl_volume_print_imported(const struct ctl_volume_args *args,
                               const struct voxeld_volume_imported *change)
{
    char text[3][32];

    (void)printf("%s: %s voxels observed in %s blocks, %s of them new\n", args->words[0],
                 ctl_thousands(change->n_voxels, text[0]),
                 ctl_thousands(change->n_touched, text[1]),
                 ctl_thousands(change->n_new, text[2]));
}
