// SPDX-License-Identifier: Apache-2.0
/* voxelctl volume stamp, import: between volumes and scenes. */
#include "client/voxelctl/volume/volume_commands.h"

int ctl_volume_stamp(struct voxeld_client *client, const struct ctl_globals *globals,
                     const struct ctl_volume_args *args)
{
    struct voxeld_volume_stamp_request request = {
        .volume = args->words[0],
        .scene = args->words[1],
        .min_weight = args->min_weight,
        .material = (uint32_t)args->material,
        .labels_as_materials = ctl_volume_has(args, CTL_VOLUME_LABELS),
        .thin = ctl_volume_has(args, CTL_VOLUME_THIN)};
    struct voxeld_volume_stamped *change;
    struct voxeld_error error;
    char text[3][32];

    if (ctl_volume_parse_box(args->box, &request.has_box, &request.box) != CTL_OK) {
        return CTL_USAGE;
    }
    if (voxeld_volume_stamp(client, &request, &change, &error) != VOXELD_OK) {
        return ctl_failed(request.volume, &error);
    }
    if (globals->json) {
        ctl_volume_stamp_json(change);
    } else {
        (void)printf("%s: %s voxels added and %s changed by %s triangles\n",
                     request.scene, ctl_thousands(change->n_added, text[0]),
                     ctl_thousands(change->n_changed, text[1]),
                     ctl_thousands(change->n_triangles, text[2]));
    }
    voxeld_volume_stamped_free(change);
    return ctl_flush();
}

int ctl_volume_import(struct voxeld_client *client, const struct ctl_globals *globals,
                      const struct ctl_volume_args *args)
{
    struct voxeld_volume_import_scene_request request = {
        .volume = args->words[0],
        .scene = args->words[1],
        .version = (uint64_t)args->at_version,
        .snapshot = args->at_snapshot,
        .weight = args->weight,
        .materials_as_labels = ctl_volume_has(args, CTL_VOLUME_LABELS)};
    struct voxeld_volume_imported *change;
    struct voxeld_error error;
    char text[3][32];

    if (ctl_volume_parse_box(args->box, &request.has_box, &request.box) != CTL_OK) {
        return CTL_USAGE;
    }
    if (voxeld_volume_import_scene(client, &request, &change, &error) != VOXELD_OK) {
        return ctl_failed(request.volume, &error);
    }
    if (globals->json) {
        ctl_volume_import_json(change);
    } else {
        (void)printf("%s: %s voxels observed in %s blocks, %s of them new\n",
                     request.volume, ctl_thousands(change->n_voxels, text[0]),
                     ctl_thousands(change->n_touched, text[1]),
                     ctl_thousands(change->n_new, text[2]));
    }
    voxeld_volume_imported_free(change);
    return ctl_flush();
}
