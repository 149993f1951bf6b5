// SPDX-License-Identifier: Apache-2.0
/* voxelctl map: named hash maps. */
#include <string.h>

#include "client/voxelctl/map/map_commands.h"
#include "client/voxelctl/map/voxelctl_map.h"

static const struct ctl_map_sub *const subs[] = {
    &ctl_map_create, &ctl_map_drop, &ctl_map_list,  &ctl_map_info,
    &ctl_map_insert, &ctl_map_find, &ctl_map_erase, &ctl_map_update,
    &ctl_map_export, &ctl_map_save, &ctl_map_load,  &ctl_map_merge,
};

enum {
    N_SUBS = sizeof subs / sizeof subs[0]
};

static int run(struct ctl_globals *globals, int argc, char **argv)
{
    struct ctl_map_args args = {0};
    const struct ctl_map_sub *sub = NULL;
    struct voxeld_client *client;
    bool go_on;
    int result;

    if (argc < 2) {
        return ctl_usage("map", "no subcommand");
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        (void)fputs(ctl_map.help, stdout);
        return ctl_flush();
    }
    for (size_t i = 0; i < N_SUBS && sub == NULL; i++) {
        if (strcmp(strchr(subs[i]->command.name, ' ') + 1, argv[1]) == 0) {
            sub = subs[i];
        }
    }
    if (sub == NULL) {
        return ctl_usage("map", "no subcommand \"%s\"", argv[1]);
    }
    result = ctl_map_parse(globals, sub, argc - 1, argv + 1, &args, &go_on);
    if (!go_on) {
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

const struct ctl_command ctl_map = {
    .name = "map",
    .summary = "named hash maps: running maps of drives, and any other",
    .help =
        "voxelctl map - named hash maps on the server\n"
        "\n"
        "usage: voxelctl map SUBCOMMAND ... [OPTIONS]\n"
        "\n"
        "A map leads from integer vectors (keys) to rows of typed arrays (values). Its\n"
        "entries are numbered from 0. Maps live in the server's memory: a restart\n"
        "forgets those that were neither saved nor made --durable.\n"
        "\n"
        "subcommands (voxelctl map SUBCOMMAND --help is the manual of each)\n"
        "  create NAME          makes an empty map\n"
        "  drop NAME            forgets a map\n"
        "  list                 all maps\n"
        "  info NAME            one map\n"
        "  insert NAME KEYS     inserts keys\n"
        "  find NAME KEYS       finds keys, their values and neighbours\n"
        "  erase NAME KEYS      erases keys, or everything\n"
        "  update NAME KEYS     changes values: set, add, min, max\n"
        "  export NAME FILE     all entries as .ply, .npz or .npy\n"
        "  save NAME            to a file of the server's\n"
        "  load NAME            from one\n"
        "  merge FILE ...       adds point clouds, as voxels: a running map of a drive\n"
        "\n"
        "KEYS is a file: .npy, or text with the numbers of a key on each line; - is "
        "text\n"
        "on standard input. The shared options: voxelctl --help.\n"
        "\n"
        "examples\n"
        "  voxelctl map merge scans/*.pcd --map drive --size 0.1\n"
        "  voxelctl map export drive drive.ply\n",
    .run = run,
};
