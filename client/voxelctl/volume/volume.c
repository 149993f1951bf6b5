// SPDX-License-Identifier: Apache-2.0
/* voxelctl volume: depth images and scans to meshes. */
#include <string.h>

#include "client/voxelctl/volume/volume_commands.h"
#include "client/voxelctl/volume/voxelctl_volume.h"

static const struct sub {
    const struct ctl_manual *manual;
    ctl_volume_run_fn *run;
} subs[] = {
    {&ctl_volume_create_manual, ctl_volume_create},
    {&ctl_volume_drop_manual, ctl_volume_drop},
    {&ctl_volume_list_manual, ctl_volume_list},
    {&ctl_volume_info_manual, ctl_volume_info},
    {&ctl_volume_integrate_manual, ctl_volume_integrate},
    {&ctl_volume_scan_manual, ctl_volume_scan},
    {&ctl_volume_extract_manual, ctl_volume_extract},
    {&ctl_volume_render_manual, ctl_volume_render},
    {&ctl_volume_view_manual, ctl_volume_view},
    {&ctl_volume_clear_manual, ctl_volume_clear},
    {&ctl_volume_decay_manual, ctl_volume_decay},
    {&ctl_volume_stamp_manual, ctl_volume_stamp},
    {&ctl_volume_import_manual, ctl_volume_import},
    {&ctl_volume_copy_manual, ctl_volume_copy},
    {&ctl_volume_run_manual, ctl_volume_run},
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
    return ctl_no_subcommand("volume", word, names, N_SUBS);
}

static int run(struct ctl_globals *globals, int argc, char **argv)
{
    struct ctl_volume_args args = {0};
    const struct sub *sub = NULL;
    struct voxeld_client *client;
    int result = CTL_OK;

    if (argc < 2) {
        return ctl_usage("volume", "no subcommand");
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        (void)fputs(ctl_volume_help, stdout);
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
    if (!ctl_volume_parse(globals, sub->manual, argc - 1, argv + 1, &args, &result)) {
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

const struct ctl_command ctl_volume = {
    .name = "volume",
    .summary = ctl_volume_summary,
    .help = ctl_volume_help,
    .run = run,
};
