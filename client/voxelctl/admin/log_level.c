// SPDX-License-Identifier: Apache-2.0
#include "client/voxelctl/admin/voxelctl_admin.h"

static int run(struct ctl_globals *globals, int argc, char **argv)
{
    struct voxeld_client *client;
    struct voxeld_error error;
    char previous[32];
    int result;

    if (ctl_plain_options(globals, &ctl_log_level, argc, argv, 1, 1, &result)) {
        return result;
    }
    client = ctl_connect(globals);
    if (client == NULL) {
        return CTL_FAILED;
    }
    if (voxeld_set_log_level(client, NULL, argv[optind], previous, sizeof previous,
                             &error) != VOXELD_OK) {
        result = ctl_failed("log-level", &error);
    } else if (globals->json) {
        (void)fputc('{', stdout);
        ctl_json_member_string(stdout, true, "previous", previous);
        ctl_json_member_string(stdout, false, "level", argv[optind]);
        (void)fputs("}\n", stdout);
        result = ctl_flush();
    } else {
        (void)printf("log level %s, before %s\n", argv[optind], previous);
        result = ctl_flush();
    }
    voxeld_close(client);
    return result;
}

const struct ctl_command ctl_log_level = {
    .name = "log-level",
    .summary = "changes what the daemon logs",
    .help = "voxelctl log-level - changes what the daemon logs\n"
            "\n"
            "usage: voxelctl log-level debug|info|warning|error [--json] [OPTIONS]\n"
            "\n"
            "Holds until the next restart or reload of the configuration. Needs a token\n"
            "with the scope admin. The shared options: voxelctl --help.\n",
    .run = run,
};
