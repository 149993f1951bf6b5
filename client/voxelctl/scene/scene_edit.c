// SPDX-License-Identifier: Apache-2.0
/* voxelctl scene edit. */
#include <inttypes.h>
#include <stdlib.h>

#include "client/voxelctl/scene/scene_commands.h"

void ctl_scene_print_change(const struct voxeld_scene_change *change)
{
    ctl_json_member_count(stdout, true, "version", change->version);
    ctl_json_member_count(stdout, false, "n_added", change->n_added);
    ctl_json_member_count(stdout, false, "n_removed", change->n_removed);
    ctl_json_member_count(stdout, false, "n_changed", change->n_changed);
    ctl_json_member_count(stdout, false, "n_freed", change->n_freed);
    ctl_json_member_count(stdout, false, "n_new_nodes", change->n_new_nodes);
}

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

static int print_edited(const struct ctl_globals *globals, const char *scene,
                        const struct voxeld_scene_edited *done)
{
    if (globals->json) {
        (void)fputc('{', stdout);
        ctl_scene_print_change(&done->change);
        ctl_json_member_count(stdout, false, "n_outside", done->n_outside);
        ctl_json_member_count(stdout, false, "n_non_finite", done->n_non_finite);
        ctl_json_member_number(stdout, false, "engine_ms", done->engine_ms);
        (void)fputs("}\n", stdout);
    } else {
        (void)printf("%s: ", scene);
        ctl_scene_print_counts(&done->change);
        (void)printf("; %.2f ms in the engine\n", done->engine_ms);
    }
    return ctl_flush();
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
static int read_files(struct ctl_scene_args *args, struct ctl_array *arrays)
{
    for (size_t i = 0; i < args->n_files; i++) {
        const struct ctl_scene_file *file = &args->files[i];
        struct voxeld_scene_operation *op = &args->operations.operations[file->operation];
        struct voxeld_array *to =
            file->part == CTL_SCENE_PART_POINTS      ? &op->in.points.points
            : file->part == CTL_SCENE_PART_MATERIALS ? &op->in.points.materials
                                                     : &op->in.heightfield.heights;

        if (ctl_array_read(file->path, text_dtype(args, file->part), &arrays[i]) !=
            CTL_OK) {
            return CTL_FAILED;
        }
        *to = ctl_array_view(&arrays[i], NULL);
    }
    return CTL_OK;
}

static int send_edit(struct voxeld_client *client, const struct ctl_globals *globals,
                     const struct ctl_scene_args *args)
{
    struct voxeld_scene_edit_request request = {
        .scene = args->words[0],
        .operations = args->operations.operations,
        .n_operations = args->operations.n,
        .in_voxels = ctl_scene_has(args, CTL_SCENE_IN_VOXELS),
        .if_version = args->if_version,
    };
    struct voxeld_scene_edited done;
    struct voxeld_error error;

    if (voxeld_scene_edit(client, &request, &done, &error) != VOXELD_OK) {
        return ctl_failed(request.scene, &error);
    }
    return print_edited(globals, request.scene, &done);
}

static int check(const struct ctl_scene_args *args)
{
    if (args->operations.n == 0 && args->json == NULL) {
        return ctl_usage("scene edit", "no shape, and no --operations");
    }
    return CTL_OK;
}

static int edit(struct voxeld_client *client, const struct ctl_globals *globals,
                struct ctl_scene_args *args)
{
    struct ctl_array *arrays = calloc(CTL_SCENE_MAX_FILES, sizeof *arrays);
    struct ctl_scene_json *json = NULL;
    int result;

    if (arrays == NULL) {
        (void)ctl_error("no memory");
        return CTL_FAILED;
    }
    result = read_files(args, arrays);
    if (result == CTL_OK && args->json != NULL) {
        result = ctl_scene_json_read(args->json, &args->operations, &json);
    }
    if (result == CTL_OK) {
        result = send_edit(client, globals, args);
    }
    ctl_scene_json_free(json);
    for (size_t i = 0; i < args->n_files; i++) {
        ctl_array_clear(&arrays[i]);
    }
    free(arrays);
    return result;
}

const struct ctl_scene_sub ctl_scene_edit = {
    .command =
        {.name = "scene edit",
         .help =
             "voxelctl scene edit - changes shapes, all or none\n"
             "\n"
             "usage: voxelctl scene edit NAME SHAPE [WHAT] ... [OPTIONS]\n"
             "\n"
             "Each shape is followed by what becomes of it; default: --fill 0. They are\n"
             "applied in order, as one change. A voxel is in a shape when its centre "
             "is.\n"
             "\n"
             "shapes, metres\n"
             "  --box X,Y,Z,X,Y,Z  low and high corner; the high one is not in it\n"
             "  --ball X,Y,Z,R     centre and radius\n"
             "  --noise A,BITS,SEED\n"
             "                     ... its radius changed by up to A either way, on a\n"
             "                     lattice of 2^BITS voxels\n"
             "  --capsule X,Y,Z,X,Y,Z,R\n"
             "  --half-space NX,NY,NZ,D\n"
             "                     points p with (NX,NY,NZ) . p <= D\n"
             "  --points FILE      .npy (integers: voxels; else metres), or text\n"
             "  --point-materials FILE\n"
             "                     ... a material of its own for each, for --fill and "
             "--paint\n"
             "  --heightfield FILE columns up to the heights in it: .npy, or text, a "
             "line "
             "of\n"
             "                     equal x each; nan: no column\n"
             "  --grid X,Y,CELL,Z  ... from this corner, by cells of this edge, from z "
             "up;\n"
             "                     default: 0,0,1,0\n"
             "\n"
             "what becomes of the shape before\n"
             "  --fill M           occupied, of material M\n"
             "  --erase            neither occupied nor free\n"
             "  --free             free, in scenes that track it\n"
             "  --paint M          its occupied voxels take material M\n"
             "  --replace FROM,TO  those of material FROM take TO\n"
             "  --erode T          those with fewer than T occupied neighbours go\n"
             "  --dilate T         others with at least T occupied neighbours fill\n"
             "  --copy-from X,Y,Z  a box takes what stands there (its low corner)\n"
             "  --turn A,B,..,I    ... turned and mirrored: 3 x 3 of 0, 1, -1 by rows\n"
             "  --copy-empty       ... and emptiness too\n"
             "  --leave            as they are, with --pin or --unpin\n"
             "  --pin, --unpin     ... and in scenes with log-odds: scans and decays "
             "leave\n"
             "                     them as they are, or no longer do; with --fill, "
             "--erase,\n"
             "                     --free and --leave\n"
             "\n"
             "  --operations FILE  more of them, as JSON: the \"operations\" of the body "
             "of\n"
             "                     POST /v1/scene_edit, or the whole body\n"
             "  --in-voxels        lengths are voxels from the scene's low corner\n"
             "  --if-version N     only where the scene is at this version\n"
             "\n"
             "examples\n"
             "  voxelctl scene edit yard --ball 4,0,1,0.5 --fill 3\n"
             "  voxelctl scene edit yard --box=-1,-1,0,1,1,2 --erase --points "
             "door.npy\n"
             "  voxelctl scene edit yard --heightfield dem.npy --grid=-50,-50,0.5,-2\n"},
    .options = CTL_SCENE_SHAPE_BITS | CTL_SCENE_BIT(CTL_SCENE_OPERATIONS) |
               CTL_SCENE_BIT(CTL_SCENE_IN_VOXELS) | CTL_SCENE_BIT(CTL_SCENE_IF_VERSION),
    .n_min = 1,
    .n_max = 1,
    .makes_edits = true,
    .check = check,
    .run = edit,
};
