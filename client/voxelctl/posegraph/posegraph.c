// SPDX-License-Identifier: Apache-2.0
/* voxelctl posegraph: loops closed, places found again. */
#include <string.h>

#include "client/voxelctl/posegraph/posegraph_commands.h"
#include "client/voxelctl/posegraph/voxelctl_posegraph.h"

static const struct sub {
    const struct ctl_manual *manual;
    ctl_posegraph_run_fn *run;
} subs[] = {
    {&ctl_posegraph_create_manual, ctl_posegraph_create},
    {&ctl_posegraph_drop_manual, ctl_posegraph_drop},
    {&ctl_posegraph_list_manual, ctl_posegraph_list},
    {&ctl_posegraph_info_manual, ctl_posegraph_info},
    {&ctl_posegraph_load_manual, ctl_posegraph_load},
    {&ctl_posegraph_optimize_manual, ctl_posegraph_optimize},
    {&ctl_posegraph_save_manual, ctl_posegraph_save},
    {&ctl_posegraph_keyframe_manual, ctl_posegraph_keyframe},
    {&ctl_posegraph_relocalize_manual, ctl_posegraph_relocalize},
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
    return ctl_no_subcommand("posegraph", word, names, N_SUBS);
}

static int run(struct ctl_globals *globals, int argc, char **argv)
{
    struct ctl_posegraph_args args = {0};
    const struct sub *sub = NULL;
    struct voxeld_client *client;
    int result = CTL_OK;

    if (argc < 2) {
        return ctl_usage("posegraph", "no subcommand");
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        (void)fputs(ctl_posegraph_help, stdout);
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
    if (!ctl_posegraph_parse(globals, sub->manual, argc - 1, argv + 1, &args, &result)) {
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

const struct ctl_command ctl_posegraph = {
    .name = "posegraph",
    .summary = ctl_posegraph_summary,
    .help = ctl_posegraph_help,
    .run = run,
};
