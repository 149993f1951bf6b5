// SPDX-License-Identifier: Apache-2.0
/* voxelctl map: named hash maps. */
#include <string.h>
#include "client/voxelctl/map/map_commands.h"
#include "client/voxelctl/map/voxelctl_map.h"

struct sub {
    const struct ctl_manual *manual;
    ctl_map_run *run;
    int (*check)(const struct ctl_map_args *args); /* NULL: nothing */
};

static const struct sub subs[] = {
    {&ctl_map_create_manual, ctl_map_create, NULL},
    {&ctl_map_drop_manual, ctl_map_drop, NULL},
    {&ctl_map_list_manual, ctl_map_list, NULL},
    {&ctl_map_info_manual, ctl_map_info, NULL},
    {&ctl_map_insert_manual, ctl_map_insert, ctl_map_check_out},
    {&ctl_map_find_manual, ctl_map_find, ctl_map_check_out},
    {&ctl_map_erase_manual, ctl_map_erase, ctl_map_check_erase},
    {&ctl_map_update_manual, ctl_map_update, NULL},
    {&ctl_map_export_manual, ctl_map_export, ctl_map_check_export},
    {&ctl_map_save_manual, ctl_map_save, NULL},
    {&ctl_map_load_manual, ctl_map_load, NULL},
    {&ctl_map_merge_manual, ctl_map_merge, NULL},
};

enum {
    N_SUBS = sizeof subs / sizeof subs[0]
};

static int no_subcommand(const char *word)
{
    const char *names[N_SUBS];

    for (size_t i = 0; i < N_SUBS; i++) {
        names[i] = strchr(subs[i].manual->command.name, ' ') + 1;
    }
    return ctl_no_subcommand("map", word, names, N_SUBS);
}

static int run(struct ctl_globals *globals, int argc, char **argv)
{
    struct ctl_map_args args = {0};
    const struct sub *sub = NULL;
    struct voxeld_client *client;
    int result = CTL_OK;

    if (argc < 2) {
        return ctl_usage("map", "no subcommand");
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        (void)fputs(ctl_map_help, stdout);
        return ctl_flush();
    }
    for (size_t i = 0; i < N_SUBS && sub == NULL; i++) {
        if (strcmp(strchr(subs[i].manual->command.name, ' ') + 1, argv[1]) == 0) {
            sub = &subs[i];
        }
    }
    if (sub == NULL) {
        return no_subcommand(argv[1]);
    }
    if (!ctl_map_parse(globals, sub->manual, argc - 1, argv + 1, &args, &result)) {
        return result;
    }
    if (sub->check != NULL && sub->check(&args) != CTL_OK) {
        return CTL_USAGE;
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
    .summary = ctl_map_summary,
    .help = ctl_map_help,
    .run = run,
};
