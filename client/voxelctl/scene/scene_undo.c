// SPDX-License-Identifier: Apache-2.0
/* voxelctl scene undo, redo. */
#include <inttypes.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "client/voxelctl/scene/scene_commands.h"

enum {
    PREFIX_BYTES = 13, /* "ctl-01234567-" */
    MAX_LOG = 10000
};

/* FNV-1a. */
static uint32_t mix(uint32_t hash, const void *bytes, size_t n)
{
    const uint8_t *at = bytes;

    for (size_t i = 0; i < n; i++) {
        hash = (hash ^ at[i]) * 16777619U;
    }
    return hash;
}

void ctl_scene_client_id(char id[CTL_SCENE_ID_BYTES])
{
    char host[256] = "";
    uid_t user = getuid();
    uint64_t other = 0;
    struct timespec now;
    uint32_t hash;

    (void)gethostname(host, sizeof host - 1);
    hash = mix(2166136261U, host, strlen(host));
    hash = mix(hash, &user, sizeof user);
    if (getrandom(&other, sizeof other, GRND_NONBLOCK) != (ssize_t)sizeof other) {
        (void)clock_gettime(CLOCK_REALTIME, &now);
        other =
            (uint64_t)now.tv_nsec << 32 ^ (uint64_t)now.tv_sec << 20 ^ (uint64_t)getpid();
    }
    (void)snprintf(id, CTL_SCENE_ID_BYTES, "ctl-%08" PRIx32 "-%016" PRIx64, hash, other);
}

/* Finds the newest change, or undo, that this user made by voxelctl and that is not
 * undone; 0 = none. The server cannot choose it, because to the server each run of
 * voxelctl is another client. */
static uint64_t find_own(const struct voxeld_scene_log *log, bool redo)
{
    char id[CTL_SCENE_ID_BYTES];

    ctl_scene_client_id(id);
    for (size_t i = 0; i < log->n_versions; i++) {
        const struct voxeld_scene_version *version = &log->versions[i];
        bool is_change = version->kind == VOXELD_VERSION_EDITED ||
                         version->kind == VOXELD_VERSION_INTEGRATED ||
                         version->kind == VOXELD_VERSION_REDONE;

        if ((redo ? version->kind == VOXELD_VERSION_UNDONE : is_change) &&
            version->undone_by == 0 &&
            strncmp(version->client_id, id, PREFIX_BYTES) == 0) {
            return version->version;
        }
    }
    return 0;
}

/* Chooses the version: CTL_OK and *of_version, or CTL_FAILED after a message. */
static int choose(struct voxeld_client *client, const struct ctl_scene_args *args,
                  bool redo, uint64_t *of_version)
{
    const char *scene = args->words[0];
    struct voxeld_scene_log *log;
    struct voxeld_error error;

    *of_version = args->of_version;
    if (*of_version > 0) {
        return CTL_OK;
    }
    if (voxeld_scene_get_log(client, NULL, scene, 0, MAX_LOG, &log, &error) !=
        VOXELD_OK) {
        return ctl_failed(scene, &error);
    }
    *of_version = find_own(log, redo);
    voxeld_scene_log_free(log);
    if (*of_version == 0) {
        (void)ctl_error("%s: no kept version is %s of yours by voxelctl that is "
                        "not %s; name one with --of (voxelctl scene log %s)",
                        scene, redo ? "an undo" : "a change", redo ? "redone" : "undone",
                        scene);
        return CTL_FAILED;
    }
    return CTL_OK;
}

static int print_undone(const struct ctl_globals *globals, const char *scene, bool redo,
                        const struct voxeld_scene_undone *done)
{
    if (globals->json) {
        (void)fputc('{', stdout);
        ctl_scene_print_change(&done->change);
        ctl_json_member_count(stdout, false, "of_version", done->of_version);
        ctl_json_member_number(stdout, false, "engine_ms", done->engine_ms);
        (void)fputs("}\n", stdout);
    } else {
        (void)printf("%s: %s %" PRIu64 " by ", scene, redo ? "redid" : "undid",
                     done->of_version);
        ctl_scene_print_counts(&done->change);
        (void)printf("; %.2f ms in the engine\n", done->engine_ms);
    }
    return ctl_flush();
}

static int take_back(struct voxeld_client *client, const struct ctl_globals *globals,
                     const struct ctl_scene_args *args, bool redo)
{
    struct voxeld_scene_undo_request request = {.scene = args->words[0],
                                                .if_version = args->if_version};
    struct voxeld_scene_undone done;
    struct voxeld_error error;
    enum voxeld_status status;

    if (choose(client, args, redo, &request.of_version) != CTL_OK) {
        return CTL_FAILED;
    }
    status = redo ? voxeld_scene_redo(client, &request, &done, &error)
                  : voxeld_scene_undo(client, &request, &done, &error);
    return status == VOXELD_OK ? print_undone(globals, request.scene, redo, &done)
                               : ctl_failed(request.scene, &error);
}

static int undo(struct voxeld_client *client, const struct ctl_globals *globals,
                struct ctl_scene_args *args)
{
    return take_back(client, globals, args, false);
}

const struct ctl_scene_sub ctl_scene_undo = {
    .command =
        {.name = "scene undo",
         .help =
             "voxelctl scene undo - takes a change back\n"
             "\n"
             "usage: voxelctl scene undo NAME [--of N] [OPTIONS]\n"
             "\n"
             "The voxels that version N changed, and that are as it left them, become "
             "what\n"
             "they were before it; what came after it stays. This is a change as well: "
             "a new\n"
             "version, which redo takes back. N and the version before it must be "
             "kept.\n"
             "\n"
             "  --of N             default: the newest change that you made by voxelctl "
             "on\n"
             "                     this machine and that is not undone\n"
             "  --if-version N     only where the scene is at this version\n"
             "\n"
             "examples\n"
             "  voxelctl scene undo yard\n"
             "  voxelctl scene undo yard --of 17\n"},
    .options = CTL_SCENE_BIT(CTL_SCENE_OF) | CTL_SCENE_BIT(CTL_SCENE_IF_VERSION),
    .n_min = 1,
    .n_max = 1,
    .run = undo,
};

static int redo(struct voxeld_client *client, const struct ctl_globals *globals,
                struct ctl_scene_args *args)
{
    return take_back(client, globals, args, true);
}

const struct ctl_scene_sub ctl_scene_redo = {
    .command = {.name = "scene redo",
                .help =
                    "voxelctl scene redo - takes an undo back\n"
                    "\n"
                    "usage: voxelctl scene redo NAME [--of N] [OPTIONS]\n"
                    "\n"
                    "  --of N             the version that the undo made; default: the "
                    "newest undo\n"
                    "                     that you made by voxelctl on this machine and "
                    "that is\n"
                    "                     not undone\n"
                    "  --if-version N     only where the scene is at this version\n"
                    "\n"
                    "example\n"
                    "  voxelctl scene redo yard\n"},
    .options = CTL_SCENE_BIT(CTL_SCENE_OF) | CTL_SCENE_BIT(CTL_SCENE_IF_VERSION),
    .n_min = 1,
    .n_max = 1,
    .run = redo,
};
