// SPDX-License-Identifier: Apache-2.0
/* voxelctl odometry: lidar scans to poses. */
#include <string.h>

#include "client/voxelctl/odometry/odometry_commands.h"
#include "client/voxelctl/odometry/voxelctl_odometry.h"

static const struct sub {
    const struct ctl_manual *manual;
    ctl_odometry_run_fn *run;
} subs[] = {
    {&ctl_odometry_create_manual, ctl_odometry_create},
    {&ctl_odometry_drop_manual, ctl_odometry_drop},
    {&ctl_odometry_list_manual, ctl_odometry_list},
    {&ctl_odometry_info_manual, ctl_odometry_info},
    {&ctl_odometry_reset_manual, ctl_odometry_reset},
    {&ctl_odometry_register_manual, ctl_odometry_register},
    {&ctl_odometry_run_manual, ctl_odometry_run},
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
    return ctl_no_subcommand("odometry", word, names, N_SUBS);
}

static int run(struct ctl_globals *globals, int argc, char **argv)
{
    struct ctl_odometry_args args = {0};
    const struct sub *sub = NULL;
    struct voxeld_client *client;
    int result = CTL_OK;

    if (argc < 2) {
        return ctl_usage("odometry", "no subcommand");
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        (void)fputs(ctl_odometry_help, stdout);
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
    if (!ctl_odometry_parse(globals, sub->manual, argc - 1, argv + 1, &args, &result)) {
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

const struct ctl_command ctl_odometry = {
    .name = "odometry",
    .summary = ctl_odometry_summary,
    .help = ctl_odometry_help,
    .run = run,
};
