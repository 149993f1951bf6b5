// SPDX-License-Identifier: Apache-2.0
/* voxelctl scene snapshot, branch, repair. */
#include <inttypes.h>

#include "client/voxelctl/scene/scene_commands.h"

/* Snapshots ----------------------------------------------------------------------------- */

int ctl_scene_check_snapshot(const struct ctl_scene_args *args)
{
    if (ctl_scene_has(args, CTL_SCENE_DROP) &&
        (ctl_scene_has(args, CTL_SCENE_AT) || ctl_scene_has(args, CTL_SCENE_REPLACE))) {
        return ctl_usage("scene snapshot", "--drop goes without --at and --replace");
    }
    return CTL_OK;
}

static int drop_snapshot(struct voxeld_client *client, const struct ctl_globals *globals,
                         const struct ctl_scene_args *args)
{
    const char *scene = args->words[0];
    const char *snapshot = args->words[1];
    struct voxeld_error error;

    if (voxeld_scene_drop_snapshot(client, NULL, scene, snapshot, &error) != VOXELD_OK) {
        return ctl_failed(snapshot, &error);
    }
    if (globals->json) {
        (void)fputc('{', stdout);
        ctl_json_member_string(stdout, true, "dropped", snapshot);
        (void)fputs("}\n", stdout);
    } else {
        (void)printf("dropped %s@%s\n", scene, snapshot);
    }
    return ctl_flush();
}

int ctl_scene_snapshot(struct voxeld_client *client, const struct ctl_globals *globals,
                       const struct ctl_scene_args *args)
{
    struct voxeld_scene_snapshot_request request = {0};
    struct voxeld_scene_snapshot_taken taken;
    struct voxeld_error error;

    if (ctl_scene_has(args, CTL_SCENE_DROP)) {
        return drop_snapshot(client, globals, args);
    }
    ctl_scene_snapshot_request(args, &request);
    if (voxeld_scene_take_snapshot(client, &request, &taken, &error) != VOXELD_OK) {
        return ctl_failed(request.snapshot, &error);
    }
    if (globals->json) {
        (void)fputc('{', stdout);
        ctl_json_member_string(stdout, true, "name", request.snapshot);
        ctl_json_member_count(stdout, false, "version", taken.version);
        (void)printf(", \"version_ns\": %" PRId64 ", \"taken_ns\": %" PRId64 "}\n",
                     taken.version_ns, taken.taken_ns);
    } else {
        (void)printf("%s@%s is version %" PRIu64 "\n", request.scene, request.snapshot,
                     taken.version);
    }
    return ctl_flush();
}

/* Branches ------------------------------------------------------------------------------ */

int ctl_scene_branch(struct voxeld_client *client, const struct ctl_globals *globals,
                     const struct ctl_scene_args *args)
{
    struct voxeld_scene_branch_request request = {0};
    struct voxeld_scenes *scenes;
    struct voxeld_error error;
    uint64_t of_version = 0;

    ctl_scene_branch_request(args, &request);
    if (voxeld_scene_branch(client, &request, &scenes, &of_version, &error) !=
        VOXELD_OK) {
        return ctl_failed(request.scene, &error);
    }
    if (globals->json) {
        (void)printf("{\"of_version\": %" PRIu64 ", \"scene\": ", of_version);
        ctl_scene_print_json(&scenes->scenes[0]);
        (void)fputs("}\n", stdout);
    } else {
        (void)printf("of %s@%" PRIu64 ": ", request.scene, of_version);
        ctl_scene_print_line(&scenes->scenes[0]);
    }
    voxeld_scenes_free(scenes);
    return ctl_flush();
}

/* Repair -------------------------------------------------------------------------------- */

int ctl_scene_repair(const struct ctl_globals *globals, const struct ctl_scene_args *args)
{
    bool only_looks = ctl_scene_has(args, CTL_SCENE_DRY_RUN);
    const char *const words[] = {only_looks ? "--check-data" : "--repair-data",
                                 args->words[0]};

    return ctl_become_daemon(globals, "voxelctl scene repair", words, 2);
}
