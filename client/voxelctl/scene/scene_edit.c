// SPDX-License-Identifier: Apache-2.0
/* voxelctl scene edit. */
#include <inttypes.h>

#include "client/voxelctl/scene/scene_commands.h"

void ctl_scene_print_counts(const struct voxeld_scene_change *change)
{
    char text[4][32];

    (void)printf("version %" PRIu64 "; voxels: %s added, %s removed, %s of another "
                 "material, %s freed",
                 change->version, ctl_thousands(change->n_added, text[0]),
                 ctl_thousands(change->n_removed, text[1]),
                 ctl_thousands(change->n_changed, text[2]),
                 ctl_thousands(change->n_freed, text[3]));
}

/* The type that text is read as; other files of arrays have types of their own. */
static enum voxeld_dtype text_dtype(const struct ctl_scene_args *args,
                                    enum ctl_scene_part part)
{
    if (part == CTL_SCENE_PART_MATERIALS) {
        return VOXELD_UINT16;
    }
    return part == CTL_SCENE_PART_POINTS && ctl_scene_has(args, CTL_SCENE_IN_VOXELS)
               ? VOXELD_INT64
               : VOXELD_FLOAT64;
}

/* Reads the files of shapes into the operations they belong to. */
static int read_files(const struct ctl_scene_args *args, struct ctl_scene_edits *edits)
{
    for (size_t i = 0; i < edits->n_files; i++) {
        const struct ctl_scene_file *file = &edits->files[i];
        struct voxeld_scene_operation *op =
            &edits->operations.operations[file->operation];
        struct voxeld_array *to =
            file->part == CTL_SCENE_PART_POINTS      ? &op->in.points.points
            : file->part == CTL_SCENE_PART_MATERIALS ? &op->in.points.materials
                                                     : &op->in.heightfield.heights;

        if (ctl_array_read(file->path, text_dtype(args, file->part), &edits->arrays[i]) !=
            CTL_OK) {
            return CTL_FAILED;
        }
        *to = ctl_array_view(&edits->arrays[i], NULL);
    }
    return CTL_OK;
}

static int send_edit(struct voxeld_client *client, const struct ctl_globals *globals,
                     const struct ctl_scene_args *args,
                     const struct ctl_scene_edits *edits)
{
    struct voxeld_scene_edit_request request = {0};
    struct voxeld_scene_edited done;
    struct voxeld_error error;

    ctl_scene_edit_request(args, &request);
    request.operations = edits->operations.operations;
    request.n_operations = edits->operations.n;
    if (voxeld_scene_edit(client, &request, &done, &error) != VOXELD_OK) {
        return ctl_failed(request.scene, &error);
    }
    if (globals->json) {
        ctl_scene_edit_json(&done);
    } else {
        (void)printf("%s: ", request.scene);
        ctl_scene_print_counts(&done.change);
        (void)printf("; %.2f ms in the engine\n", done.engine_ms);
    }
    return ctl_flush();
}

int ctl_scene_check_edit(const struct ctl_scene_args *args)
{
    struct ctl_scene_edits edits = {0};
    int result;

    if (args->steps.n == 0 && args->operations == NULL) {
        return ctl_usage("scene edit", "no shape, and no --operations");
    }
    result = ctl_scene_take_shapes(args, &edits);
    voxeld_scene_clear(&edits.operations);
    return result;
}

int ctl_scene_edit(struct voxeld_client *client, const struct ctl_globals *globals,
                   const struct ctl_scene_args *args)
{
    struct ctl_scene_edits edits = {0};
    struct ctl_scene_json *json = NULL;
    int result = ctl_scene_take_shapes(args, &edits);

    result = result == CTL_OK ? read_files(args, &edits) : result;
    if (result == CTL_OK && args->operations != NULL) {
        result = ctl_scene_json_read(args->operations, &edits.operations, &json);
    }
    if (result == CTL_OK) {
        result = send_edit(client, globals, args, &edits);
    }
    ctl_scene_json_free(json);
    for (size_t i = 0; i < edits.n_files; i++) {
        ctl_array_clear(&edits.arrays[i]);
    }
    voxeld_scene_clear(&edits.operations);
    return result;
}
