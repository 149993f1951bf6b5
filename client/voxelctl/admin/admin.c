// SPDX-License-Identifier: Apache-2.0
/* voxelctl log-level. */
#include "client/voxelctl/generated/admin_args.h"

int ctl_run_log_level(struct voxeld_client *client, const struct ctl_globals *globals,
                      const struct ctl_admin_args *args)
{
    const char *level = args->words[0];
    struct voxeld_error error;
    char previous[32];

    if (voxeld_set_log_level(client, NULL, level, previous, sizeof previous, &error) !=
        VOXELD_OK) {
        return ctl_failed("log-level", &error);
    }
    if (globals->json) {
        (void)fputc('{', stdout);
        ctl_json_member_string(stdout, true, "previous", previous);
        ctl_json_member_string(stdout, false, "level", level);
        (void)fputs("}\n", stdout);
    } else {
        (void)printf("log level %s, before %s\n", level, previous);
    }
    return ctl_flush();
}
