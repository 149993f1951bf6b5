// SPDX-License-Identifier: Apache-2.0
/* voxelctl scene decay: lets the log-odds of a scene fade. */
#include <inttypes.h>
#include <string.h>

#include "client/c/include/voxeld_upkeep.h"
#include "client/voxelctl/scene/scene_commands.h"

static int check(const struct ctl_scene_args *args)
{
    int n_laws = ctl_scene_has(args, CTL_SCENE_HALF_LIFE) +
                 ctl_scene_has(args, CTL_SCENE_FACTOR) +
                 ctl_scene_has(args, CTL_SCENE_STEP);

    return n_laws == 1 ? CTL_OK
                       : ctl_usage("scene decay",
                                   "%d of --half-life, --factor and "
                                   "--step are given, it must be one",
                                   n_laws);
}

static int print(const struct ctl_globals *globals, const char *scene,
                 const struct voxeld_scene_decayed *done)
{
    if (globals->json) {
        (void)fputc('{', stdout);
        ctl_json_member_count(stdout, true, "version", done->version);
        ctl_json_member_count(stdout, false, "n_removed", done->n_removed);
        ctl_json_member_number(stdout, false, "factor", done->factor);
        ctl_json_member_number(stdout, false, "step", done->step);
        ctl_json_member_number(stdout, false, "elapsed_s", done->elapsed_s);
        (void)printf(", \"decayed_ns\": %" PRId64, done->decayed_ns);
        ctl_json_member_number(stdout, false, "engine_ms", done->engine_ms);
        (void)fputs("}\n", stdout);
    } else {
        (void)printf("%s: version %" PRIu64 ", log-odds times %.6g less %.6g; %" PRIu64
                     " occupied voxels became unknown; %.2f ms in the engine\n",
                     scene, done->version, done->factor, done->step, done->n_removed,
                     done->engine_ms);
    }
    return ctl_flush();
}

static int run(struct voxeld_client *client, const struct ctl_globals *globals,
               struct ctl_scene_args *args)
{
    struct voxeld_scene_decay_request request = {
        .scene = args->words[0],
        .factor = args->factor,
        .step = args->step,
        .half_life_s = args->half_life_s,
        .elapsed_s = args->elapsed_s,
        .until_ns = (int64_t)args->until_ns,
        .has_box = ctl_scene_has(args, CTL_SCENE_BOX),
        .box = args->box,
        .keep_radius = args->keep_ball[3],
        .in_voxels = ctl_scene_has(args, CTL_SCENE_IN_VOXELS),
        .if_version = args->if_version};
    struct voxeld_scene_decayed done;
    struct voxeld_error error;

    memcpy(request.keep_centre, args->keep_ball, sizeof request.keep_centre);
    return voxeld_scene_decay(client, &request, &done, &error) == VOXELD_OK
               ? print(globals, request.scene, &done)
               : ctl_failed(request.scene, &error);
}

const struct ctl_scene_sub ctl_scene_decay = {
    .command =
        {.name = "scene decay",
         .help =
             "voxelctl scene decay - lets the log-odds of a scene fade\n"
             "\n"
             "usage: voxelctl scene decay NAME --half-life S | --factor F | --step L "
             "[OPTIONS]\n"
             "\n"
             "Evidence fades towards unknown: what scans no longer see is forgotten. "
             "Pinned\n"
             "voxels (scene edit --pin) stay, and so does what no scan has come near. It "
             "is a\n"
             "change, and makes a version.\n"
             "\n"
             "  --half-life S      half is left after so many seconds of the scans' "
             "time,\n"
             "                     counted from the last such decay\n"
             "  --elapsed S        of so many seconds instead\n"
             "  --until NS         up to this time of the scans, nanoseconds; default: "
             "that\n"
             "                     of the newest scan\n"
             "  --factor F         what is left of each log-odds, above 0 and below 1\n"
             "  --step L           log-odds that are subtracted\n"
             "  --box X,Y,Z,X,Y,Z  in this box alone\n"
             "  --keep-ball X,Y,Z,R  not in this ball, around the robot say\n"
             "  --in-voxels        both are voxels, not metres\n"
             "  --if-version N     only where the scene is at this version\n"
             "\n"
             "examples\n"
             "  voxelctl scene decay yard --half-life 30 --keep-ball 1,2,0,5\n"
             "  voxelctl scene decay yard --factor 0.5 --box 0,0,0,10,10,3\n"},
    .options = CTL_SCENE_BIT(CTL_SCENE_HALF_LIFE) | CTL_SCENE_BIT(CTL_SCENE_ELAPSED) |
               CTL_SCENE_BIT(CTL_SCENE_UNTIL) | CTL_SCENE_BIT(CTL_SCENE_FACTOR) |
               CTL_SCENE_BIT(CTL_SCENE_STEP) | CTL_SCENE_BIT(CTL_SCENE_BOX) |
               CTL_SCENE_BIT(CTL_SCENE_KEEP_BALL) | CTL_SCENE_BIT(CTL_SCENE_IN_VOXELS) |
               CTL_SCENE_BIT(CTL_SCENE_IF_VERSION),
    .n_min = 1,
    .n_max = 1,
    .check = check,
    .run = run,
};
