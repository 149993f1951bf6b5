// SPDX-License-Identifier: Apache-2.0
/* voxelctl refine: a folder's colour images refine a volume. */
#include <stdlib.h>

#include "client/voxelctl/generated/refine_args.h"
#include "client/voxelctl/volume/volume_commands.h"

/* Reads one in `every` image that has colours and a pose; the caller frees them. */
static int read_keyframes(const struct ctl_folder *folder, size_t every,
                          const struct voxeld_volume_camera *camera,
                          struct voxeld_volume_keyframe *out, size_t *n)
{
    for (size_t i = 0; i < folder->n; i += every) {
        const struct ctl_shot *shot = &folder->shots[i];
        uint8_t *bytes = NULL;

        if (shot->colour == NULL || !shot->has_pose) {
            continue;
        }
        if (ctl_read_file(shot->colour, &bytes, &out[*n].n_colour_bytes) != CTL_OK) {
            return CTL_FAILED;
        }
        out[*n].colour = bytes;
        out[*n].has_camera = true;
        out[*n].camera = *camera;
        out[*n].T_map_camera = shot->pose;
        (*n)++;
    }
    return CTL_OK;
}

static int refine(struct voxeld_client *client, const struct ctl_globals *globals,
                  const struct voxeld_volume_refine_request *request)
{
    struct voxeld_volume_refined *refined;
    struct voxeld_error error;
    char text[32];

    if (voxeld_volume_refine(client, request, &refined, &error) != VOXELD_OK) {
        return ctl_failed(request->volume, &error);
    }
    if (globals->json) {
        ctl_refine_run_json(refined);
    } else {
        const struct voxeld_volume_refine_loss *losses = refined->losses;

        for (size_t i = 0; i < refined->n_losses; i++) {
            (void)printf("level %u round %u: data %.4g smooth %.4g init %.4g chroma "
                         "%.4g%s\n",
                         losses[i].level, losses[i].round, losses[i].data,
                         losses[i].smooth, losses[i].init, losses[i].chroma,
                         losses[i].rejected ? ", taken back" : "");
        }
        (void)printf("%s voxels refined in %.1f s\n",
                     ctl_thousands(refined->n_voxels, text), refined->engine_ms / 1e3);
        ctl_volume_print_line(&refined->volume);
    }
    voxeld_volume_refined_free(refined);
    return ctl_flush();
}

static int refine_folder(struct voxeld_client *client, const struct ctl_globals *globals,
                         const struct ctl_refine_args *args,
                         const struct ctl_folder *folder, uint32_t every)
{
    struct voxeld_volume_refine_request request = {0};
    struct voxeld_volume_keyframe *keyframes = NULL;
    struct voxeld_volume_camera camera = {0};
    int result = ctl_volume_read_camera(args->intrinsics, &camera);

    ctl_refine_run_request(args, &request);
    if (result == CTL_OK) {
        keyframes = calloc(folder->n + 1, sizeof *keyframes);
        result = keyframes != NULL ? read_keyframes(folder, every, &camera, keyframes,
                                                    &request.n_keyframes)
                                   : CTL_FAILED;
    }
    request.keyframes = keyframes;
    if (result == CTL_OK && request.n_keyframes == 0) {
        (void)ctl_error("%s: no image has colours and a pose", args->words[1]);
        result = CTL_FAILED;
    }
    if (result == CTL_OK) {
        result = refine(client, globals, &request);
    }
    for (size_t i = 0; keyframes != NULL && i < request.n_keyframes; i++) {
        free((void *)(uintptr_t)keyframes[i].colour);
    }
    free(keyframes);
    return result;
}

int ctl_refine_run(struct voxeld_client *client, const struct ctl_globals *globals,
                   const struct ctl_refine_args *args)
{
    struct ctl_folder folder = {0};
    uint32_t every = 1;
    int result;

    if (args->every != NULL && !ctl_parse_u32(args->every, 1, UINT32_MAX, &every)) {
        return ctl_usage("refine run", "--every %s: a number from 1 on is right",
                         args->every);
    }
    result = ctl_folder_read(args->words[1], args->poses, &folder);
    if (result == CTL_OK) {
        result = refine_folder(client, globals, args, &folder, every);
    }
    ctl_folder_clear(&folder);
    return result;
}
