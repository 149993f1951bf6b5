// SPDX-License-Identifier: Apache-2.0
/* voxelctl demo: a real scan, a scene and a network; five commands that one can run oneself. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/c/include/voxeld_net.h"
#include "client/c/include/voxeld_scene.h"
#include "client/voxelctl/cloud/voxelctl_cloud.h"
#include "client/voxelctl/demo/voxelctl_demo.h"
#include "client/voxelctl/commands/generated/commands_generated.h"

#define NETWORK "svtnet"

enum {
    MAX_WORDS = 16,
    OPT_KEEP = 0,
    OPT_SCENE,
    OPT_OUT
};

static const struct ctl_own_option own[] = {
    {.name = "keep", .right = "", .is_flag = true},
    {.name = "scene", .right = "a name: [a-z0-9][a-z0-9._-]{0,62}"},
    {.name = "out", .right = "a .png file"},
};

struct demo {
    struct ctl_globals *globals;
    const char *scene;
    const char *picture;
    char scan[PATH_MAX + 64];
    bool keep;
    bool made; /* the scene is the demo's */
};

static bool take(void *to, int id, const char *value)
{
    struct demo *demo = to;

    switch (id - CTL_OPT_FIRST_OWN) {
    case OPT_KEEP:
        demo->keep = true;
        return true;
    case OPT_SCENE:
        demo->scene = value;
        return value[0] != '\0';
    default:
        demo->picture = value;
        return ctl_has_ending(value, ".png");
    }
}

/* The scan lies beside an installed voxelctl; a build folder has it in the same place. */
static bool find_scan(struct demo *demo)
{
    char folder[PATH_MAX];
    size_t n;

    if (!ctl_own_folder("voxelctl demo", folder, sizeof folder)) {
        return false;
    }
    n = strlen(folder);
    do { /* up from "/usr/bin/" */
        n--;
    } while (n > 1 && folder[n - 1] != '/');
    (void)snprintf(demo->scan, sizeof demo->scan, "%.*sshare/voxeld/demo/scan.npy",
                   (int)n, folder);
    if (access(demo->scan, R_OK) != 0) {
        (void)ctl_error("its scan is not installed: there is no %s", demo->scan);
        return false;
    }
    return true;
}

static bool is_plain(const char *word)
{
    return word[strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                             "0123456789._-/,:=+@%")] == '\0';
}

/* Shows a command and runs it; the words' texts belong to the caller. */
static int show(struct demo *demo, const struct ctl_command *command, size_t n,
                const char *const *words)
{
    char *argv[MAX_WORDS + 1] = {NULL};

    if (!demo->globals->json) {
        (void)printf("%s$ voxelctl", ctl_style(stdout, CTL_BOLD));
        for (size_t i = 0; i < n; i++) {
            (void)printf(is_plain(words[i]) ? " %s" : " '%s'", words[i]);
        }
        (void)printf("%s\n", ctl_style(stdout, CTL_PLAIN));
        (void)fflush(stdout);
    }
    for (size_t i = 0; i < n && i < MAX_WORDS; i++) {
        argv[i] = (char *)(uintptr_t)words[i];
    }
    optind = 0;
    return command->run(demo->globals, (int)n, argv);
}

#define SHOW(demo, command, ...)                                                         \
    show(demo, &(command), sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *),  \
         (const char *const[]){__VA_ARGS__})

/* Whether nobody has a scene of that name. */
static bool is_free(struct voxeld_client *client, const char *scene)
{
    struct voxeld_scenes *found = NULL;
    struct voxeld_error error;
    enum voxeld_status status = voxeld_scene_get(client, NULL, scene, &found, &error);

    voxeld_scenes_free(found);
    if (status == VOXELD_OK) {
        (void)ctl_error("there is a scene \"%s\" already, which the demo would change: "
                        "--scene NAME takes another name",
                        scene);
    } else if (status != VOXELD_NOT_FOUND) {
        (void)ctl_failed(scene, &error);
    }
    return status == VOXELD_NOT_FOUND;
}

/* Loads the network where the daemon has it with weights. */
static bool has_network(struct voxeld_client *client)
{
    struct voxeld_networks *loaded = NULL;
    enum voxeld_status status = voxeld_network_load(
        client, NULL, NETWORK, VOXELD_PRECISION_UNSPECIFIED, &loaded, NULL);

    voxeld_networks_free(loaded);
    return status == VOXELD_OK;
}

static int run_network(struct demo *demo, struct voxeld_client *client)
{
    if (has_network(client)) {
        return SHOW(demo, ctl_infer, "infer", NETWORK, demo->scan, "--output",
                    "descriptor");
    }
    if (!demo->globals->json) {
        (void)printf(
            "%sNo network: \"voxelctl net init NETWORKS_DIR/%s.json\" makes one of "
            "random weights.%s\n",
            ctl_style(stdout, CTL_DIM), NETWORK, ctl_style(stdout, CTL_PLAIN));
    }
    return SHOW(demo, ctl_scene, "scene", "info", demo->scene);
}

static int run_all(struct demo *demo, struct voxeld_client *client)
{
    int result = SHOW(demo, ctl_voxelize, "voxelize", demo->scan, "--size", "0.1");

    if (result == CTL_OK) {
        demo->made = true;
        result = SHOW(demo, ctl_scene, "scene", "integrate", demo->scan, "--scene",
                      demo->scene, "--size", "0.1");
    }
    if (result == CTL_OK) {
        result = SHOW(demo, ctl_scene, "scene", "query", demo->scene, "ray", "0,0,1.5",
                      "1,0,-0.1");
    }
    if (result == CTL_OK) {
        result = SHOW(demo, ctl_scene, "scene", "render", demo->scene, demo->picture);
    }
    return result == CTL_OK ? run_network(demo, client) : result;
}

static void end(struct demo *demo, struct voxeld_client *client, int result)
{
    struct voxeld_error error;

    if (demo->made && !demo->keep &&
        voxeld_scene_drop(client, NULL, demo->scene, true, NULL, &error) != VOXELD_OK) {
        (void)ctl_failed(demo->scene, &error);
    }
    if (result == CTL_OK && !demo->globals->json) {
        (void)printf("The picture is %s. %s\n", demo->picture,
                     demo->keep ? "The scene stays; the dashboard at the daemon's HTTP "
                                  "address shows it."
                                : "The scene is gone again; --keep leaves it.");
    }
}

static int run(struct ctl_globals *globals, int argc, char **argv)
{
    struct demo demo = {.globals = globals, .scene = "demo", .picture = "demo.png"};
    const struct ctl_own_options options = {.known = own,
                                            .n_known = sizeof own / sizeof own[0],
                                            .taken = 7,
                                            .take = take,
                                            .args = &demo};
    struct voxeld_client *client;
    int result;

    if (ctl_take_own_options(globals, &ctl_demo, &options, argc, argv, &result)) {
        return result;
    }
    if (!find_scan(&demo)) {
        return CTL_FAILED;
    }
    client = ctl_connect(globals);
    if (client == NULL) {
        return CTL_FAILED;
    }
    result = is_free(client, demo.scene) ? run_all(&demo, client) : CTL_FAILED;
    end(&demo, client, result);
    voxeld_close(client);
    return result == CTL_OK ? ctl_flush() : result;
}

const struct ctl_command ctl_demo = {
    .name = "demo",
    .summary = "five commands on a real scan, shown and run",
    .help =
        "voxelctl demo - five commands on a real scan, shown and run\n"
        "\n"
        "usage: voxelctl demo [--keep] [--scene NAME] [--out FILE] [OPTIONS]\n"
        "\n"
        "Voxelizes a lidar scan, makes a scene of it, casts a ray, writes a picture,\n"
        "and has a network describe the scan where the daemon has one.\n"
        "\n"
        "  --keep        leave the scene\n"
        "  --scene NAME  its name; default demo\n"
        "  --out FILE    the picture; default demo.png\n"
        "\n"
        "The shared options: voxelctl --help.\n",
    .run = run,
};
