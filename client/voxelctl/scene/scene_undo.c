// SPDX-License-Identifier: Apache-2.0
/* voxelctl scene undo, redo. */
#include <inttypes.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "client/voxelctl/scene/scene_commands.h"

enum {
    ID_BYTES = 64,
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

/* The client_id of this process: it begins with its user's part and differs from every other one, so
 * that the changes that a user made by voxelctl on this machine are apart from all others. */
static void make_client_id(char id[ID_BYTES])
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
    (void)snprintf(id, ID_BYTES, "ctl-%08" PRIx32 "-%016" PRIx64, hash, other);
}

struct voxeld_client *ctl_scene_connect(struct ctl_globals *globals)
{
    char id[ID_BYTES];
    struct voxeld_client *client;

    make_client_id(id);
    globals->options.client_id = id;
    client = ctl_connect(globals);
    globals->options.client_id = NULL; /* it was copied */
    return client;
}

/* Finds the newest change, or undo, that this user made by voxelctl and that is not
 * undone; 0 = none. The server cannot choose it, because to the server each run of
 * voxelctl is another client. */
static uint64_t find_own(const struct voxeld_scene_log *log, bool redo)
{
    char id[ID_BYTES];

    make_client_id(id);
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

    *of_version = args->of;
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

static void print_undone(const char *scene, bool redo,
                         const struct voxeld_scene_undone *done)
{
    (void)printf("%s: %s %" PRIu64 " by ", scene, redo ? "redid" : "undid",
                 done->of_version);
    ctl_scene_print_counts(&done->change);
    (void)printf("; %.2f ms in the engine\n", done->engine_ms);
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
    if (status != VOXELD_OK) {
        return ctl_failed(request.scene, &error);
    }
    if (globals->json) {
        ctl_scene_undo_json(&done);
    } else {
        print_undone(request.scene, redo, &done);
    }
    return ctl_flush();
}

int ctl_scene_undo(struct voxeld_client *client, const struct ctl_globals *globals,
                   const struct ctl_scene_args *args)
{
    return take_back(client, globals, args, false);
}

int ctl_scene_redo(struct voxeld_client *client, const struct ctl_globals *globals,
                   const struct ctl_scene_args *args)
{
    return take_back(client, globals, args, true);
}
