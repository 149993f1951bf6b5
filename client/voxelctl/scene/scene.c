// SPDX-License-Identifier: Apache-2.0
/* voxelctl scene: sparse voxel scenes that are edited and queried. */
#include "client/voxelctl/render/voxelctl_render.h"
#include "client/voxelctl/scene/scene_commands.h"
#include "client/voxelctl/scene/voxelctl_scene.h"

#include <stdlib.h>
#include <string.h>

static const struct ctl_scene_sub *const subs[] = {
    &ctl_scene_create,    &ctl_scene_drop,      &ctl_scene_list,    &ctl_scene_info,
    &ctl_scene_edit,      &ctl_scene_integrate, &ctl_scene_query,   &ctl_scene_export,
    &ctl_scene_log,       &ctl_scene_undo,      &ctl_scene_redo,    &ctl_scene_snapshot,
    &ctl_scene_branch,    &ctl_scene_diff,      &ctl_scene_verify,  &ctl_scene_collect,
    &ctl_scene_repair,    &ctl_scene_distance,  &ctl_scene_collide, &ctl_scene_costmap,
    &ctl_scene_frontiers, &ctl_scene_import,    &ctl_scene_decay,
};

enum {
    N_SUBS = sizeof subs / sizeof subs[0]
};

static int no_subcommand(const char *word)
{
    const char *names[N_SUBS + 2] = {"render", "show"};

    for (size_t i = 0; i < N_SUBS; i++) {
        names[2 + i] = strchr(subs[i]->command.name, ' ') + 1;
    }
    return ctl_no_subcommand("scene", word, names, N_SUBS + 2);
}

static int run_sub(struct ctl_globals *globals, const struct ctl_scene_sub *sub, int argc,
                   char **argv, struct ctl_scene_args *args)
{
    char id[CTL_SCENE_ID_BYTES];
    struct voxeld_client *client;
    bool go_on;
    int result = ctl_scene_parse(globals, sub, argc, argv, args, &go_on);

    if (!go_on) {
        return result;
    }
    if (sub->is_local) {
        return sub->run(NULL, globals, args);
    }
    ctl_scene_client_id(id);
    globals->options.client_id = id;
    client = ctl_connect(globals);
    globals->options.client_id = NULL; /* it was copied */
    if (client == NULL) {
        return CTL_FAILED;
    }
    result = sub->run(client, globals, args);
    voxeld_close(client);
    return result;
}

static int run(struct ctl_globals *globals, int argc, char **argv)
{
    struct ctl_scene_args *args;
    const struct ctl_scene_sub *sub = NULL;
    int result;

    if (argc < 2) {
        return ctl_usage("scene", "no subcommand");
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        (void)fputs(ctl_scene.help, stdout);
        return ctl_flush();
    }
    if (strcmp(argv[1], "render") == 0) {
        return ctl_render_run(globals, argc - 1, argv + 1);
    }
    if (strcmp(argv[1], "show") == 0) {
        return ctl_show_run(globals, argc - 1, argv + 1);
    }
    for (size_t i = 0; i < N_SUBS && sub == NULL; i++) {
        if (strcmp(strchr(subs[i]->command.name, ' ') + 1, argv[1]) == 0) {
            sub = subs[i];
        }
    }
    if (sub == NULL) {
        return no_subcommand(argv[1]);
    }
    if (sub->main != NULL) {
        return sub->main(globals, argc - 1, argv + 1);
    }
    args = calloc(1, sizeof *args);
    if (args == NULL) {
        (void)ctl_error("no memory");
        return CTL_FAILED;
    }
    result = run_sub(globals, sub, argc - 1, argv + 1, args);
    voxeld_scene_clear(&args->operations);
    free(args);
    return result;
}

const struct ctl_command ctl_scene = {
    .name = "scene",
    .summary = "voxel scenes: integrate drives, edit, cast rays, export",
    .help =
        "voxelctl scene - voxel scenes on the server\n"
        "\n"
        "usage: voxelctl scene SUBCOMMAND ... [OPTIONS]\n"
        "\n"
        "A scene is a cube of 2^depth voxels a side. A voxel is occupied, with a "
        "material,\n"
        "or not; where the scene tracks free space, it is occupied, free or unknown. "
        "Every\n"
        "change is a new version, seen as a whole or not at all, and can be undone. The\n"
        "newest versions are kept, and those that a snapshot names: NAME@VERSION and\n"
        "NAME@SNAPSHOT are the scene as it was then. Scenes live in the server's "
        "memory,\n"
        "and a restart forgets them, unless they are made --durable.\n"
        "\n"
        "subcommands (voxelctl scene SUBCOMMAND --help is the manual of each)\n"
        "  create NAME          makes an empty scene\n"
        "  drop NAME            forgets a scene\n"
        "  list                 all scenes\n"
        "  info NAME            one scene, its voxels counted\n"
        "  edit NAME            fills, erases, paints, copies shapes: one change\n"
        "  integrate FILE ...   adds point clouds, and empties what lies before them\n"
        "  import FILE          the triangles of a .ply or .obj mesh\n"
        "  query NAME WHAT ...  values, ray, nearest, overlap\n"
        "  distance NAME POINTS how far the nearest obstacle is\n"
        "  collide NAME WHAT .. whether shapes, or a robot, touch obstacles\n"
        "  decay NAME           lets what scans have seen fade\n"
        "  export NAME FILE     voxels as .ply, .npz or .npy\n"
        "  costmap NAME FILE    costs, heights or a slice as .png, .pgm, .npy, .cdr\n"
        "  frontiers NAME       where exploration can go on\n"
        "  render NAME FILE     a picture as .png, .jpg or .npy\n"
        "  show NAME            a picture in the terminal\n"
        "  log NAME             its versions and snapshots\n"
        "  undo NAME            takes a change back, and nothing that came after it\n"
        "  redo NAME            takes an undo back\n"
        "  snapshot NAME SNAP   names a version, which keeps it\n"
        "  branch NAME NEW      makes a scene that is what a version of another one is\n"
        "  diff NAME            where two versions differ\n"
        "  verify NAME          walks all that is kept of it\n"
        "  collect NAME         gives back the memory of what is not kept\n"
        "  repair DATA_DIR      mends a data directory, or says what is wrong with it\n"
        "\n"
        "The shared options: voxelctl --help.\n"
        "\n"
        "examples\n"
        "  voxelctl scene create yard --size 0.1 --track-free\n"
        "  voxelctl scene integrate drive/*.bin --format kitti --poses poses.txt \\\n"
        "      --scene yard\n"
        "  voxelctl scene query yard ray 0,0,1.5 1,0,0\n"
        "  voxelctl scene export yard yard.ply\n"
        "  voxelctl scene snapshot yard monday\n"
        "  voxelctl scene diff yard --from monday --out changed.npz\n",
    .run = run,
};
