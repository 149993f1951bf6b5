// SPDX-License-Identifier: Apache-2.0
/* voxelctl refine: a folder's colour images refine a volume. */
#include <stdlib.h>
#include <string.h>

#include "client/voxelctl/generated/refine_args.h"
#include "client/voxelctl/volume/volume_commands.h"
#include "client/voxelctl/volume/voxelctl_volume.h"

static int show_progress(struct voxeld_client *client, const struct ctl_globals *globals,
                         const struct ctl_refine_args *args)
{
    const char *name = args->words[0];
    struct voxeld_volume_refine_status *status;
    struct voxeld_error error;
    char text[32];

    if (voxeld_volume_refine_status(client, NULL, name, &status, &error) != VOXELD_OK) {
        return ctl_failed(name, &error);
    }
    if (globals->json) {
        (void)printf("{\"running\": %s", status->running ? "true" : "false");
        ctl_json_member_number(stdout, false, "fraction", status->fraction);
        ctl_json_member_count(stdout, false, "level", status->level);
        ctl_json_member_count(stdout, false, "n_voxels", status->n_voxels);
        ctl_json_member_number(stdout, false, "energy", status->energy);
        (void)fputs("}\n", stdout);
    } else if (status->running) {
        (void)printf("%s: %.0f %% done, %s voxels at level %u, energy %.4g\n", name,
                     100 * status->fraction, ctl_thousands(status->n_voxels, text),
                     status->level, status->energy);
    } else {
        (void)printf("%s is not being refined\n", name);
    }
    voxeld_volume_refine_status_free(status);
    return ctl_flush();
}

static int cancel(struct voxeld_client *client, const struct ctl_globals *globals,
                  const struct ctl_refine_args *args)
{
    const char *name = args->words[0];
    struct voxeld_error error;
    bool was_running = false;

    if (voxeld_volume_refine_cancel(client, NULL, name, &was_running, &error) !=
        VOXELD_OK) {
        return ctl_failed(name, &error);
    }
    if (globals->json) {
        (void)printf("{\"was_running\": %s}\n", was_running ? "true" : "false");
    } else {
        (void)printf("%s %s\n", name,
                     was_running ? "is refined no more" : "was not being refined");
    }
    return ctl_flush();
}

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

static int run_refine(struct voxeld_client *client, const struct ctl_globals *globals,
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

static const struct sub {
    const struct ctl_manual *manual;
    int (*run)(struct voxeld_client *client, const struct ctl_globals *globals,
               const struct ctl_refine_args *args);
} subs[] = {
    {&ctl_refine_run_manual, run_refine},
    {&ctl_refine_progress_manual, show_progress},
    {&ctl_refine_cancel_manual, cancel},
};

static int no_subcommand(const char *word)
{
    const char *names[sizeof subs / sizeof subs[0]];

    for (size_t i = 0; i < sizeof subs / sizeof subs[0]; i++) {
        names[i] = strchr(subs[i].manual->command.name, ' ') + 1;
    }
    return ctl_no_subcommand("refine", word, names, sizeof subs / sizeof subs[0]);
}

static int run(struct ctl_globals *globals, int argc, char **argv)
{
    struct ctl_refine_args args = {0};
    const struct sub *sub = NULL;
    struct voxeld_client *client;
    int result = CTL_OK;

    if (argc < 2) {
        return ctl_usage("refine", "no subcommand");
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        (void)fputs(ctl_refine_help, stdout);
        return ctl_flush();
    }
    for (size_t i = 0; i < sizeof subs / sizeof subs[0] && sub == NULL; i++) {
        if (strcmp(strchr(subs[i].manual->command.name, ' ') + 1, argv[1]) == 0) {
            sub = &subs[i];
        }
    }
    if (sub == NULL) {
        return no_subcommand(argv[1]);
    }
    if (!ctl_refine_parse(globals, sub->manual, argc - 1, argv + 1, &args, &result)) {
        return result;
    }
    client = ctl_connect(globals);
    if (client == NULL) {
        return CTL_FAILED;
    }
    result = sub->run(client, globals, &args);
    voxeld_close(client);
    return result;
}

const struct ctl_command ctl_refine = {
    .name = "refine",
    .summary = ctl_refine_summary,
    .help = ctl_refine_help,
    .run = run,
};
