// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>

#include "client/voxelctl/admin/voxelctl_admin.h"

static void print_json(const struct voxeld_server_info *info)
{
    (void)fputc('{', stdout);
    ctl_json_member_string(stdout, true, "version", info->version);
    ctl_json_member_string(stdout, false, "backend", info->backend);
    ctl_json_member_string(stdout, false, "device", info->device);
    (void)fputs(", \"methods\": [", stdout);
    for (size_t i = 0; i < info->n_methods; i++) {
        (void)fputs(i > 0 ? ", " : "", stdout);
        ctl_json_string(stdout, info->methods[i]);
    }
    (void)fputc(']', stdout);
    ctl_json_member_count(stdout, false, "max_message_bytes", info->max_message_bytes);
    ctl_json_member_count(stdout, false, "max_json_bytes", info->max_json_bytes);
    ctl_json_member_count(stdout, false, "default_timeout_ms", info->default_timeout_ms);
    ctl_json_member_count(stdout, false, "max_timeout_ms", info->max_timeout_ms);
    ctl_json_member_string(stdout, false, "instance_id", info->instance_id);
    ctl_json_member_string(stdout, false, "http", info->http);
    (void)printf(", \"started_ns\": %" PRId64 "}\n", info->started_ns);
}

static void print_text(const struct voxeld_server_info *info)
{
    char bytes[32];

    (void)printf("voxeld %s on %s (%s)\n", info->version, info->backend, info->device);
    (void)printf("largest request  %s bytes\n",
                 ctl_thousands(info->max_message_bytes, bytes));
    (void)printf("timeouts         %" PRIu64 " ms by default, at most %" PRIu64 " ms\n",
                 info->default_timeout_ms, info->max_timeout_ms);
    (void)printf("instance         %s\n", info->instance_id);
    (void)printf("dashboard        %s\n", info->http[0] != '\0' ? info->http : "none");
    (void)fputs("methods         ", stdout);
    for (size_t i = 0; i < info->n_methods; i++) {
        (void)printf(" %s", info->methods[i]);
    }
    (void)fputc('\n', stdout);
}

static int run(struct ctl_globals *globals, int argc, char **argv)
{
    struct voxeld_client *client;
    struct voxeld_server_info *info = NULL;
    struct voxeld_error error;
    int result;

    if (ctl_plain_options(globals, &ctl_info, argc, argv, 0, 0, &result)) {
        return result;
    }
    client = ctl_connect(globals);
    if (client == NULL) {
        return CTL_FAILED;
    }
    if (voxeld_get_server_info(client, NULL, &info, &error) != VOXELD_OK) {
        result = ctl_failed("info", &error);
    } else {
        if (globals->json) {
            print_json(info);
        } else {
            print_text(info);
        }
        result = ctl_flush();
        voxeld_server_info_free(info);
    }
    voxeld_close(client);
    return result;
}

const struct ctl_command ctl_info = {
    .name = "info",
    .summary = "version, backend, methods and limits of the daemon",
    .help = "voxelctl info - version, backend, methods and limits of the daemon\n"
            "\n"
            "usage: voxelctl info [--json] [OPTIONS]\n"
            "\n"
            "The instance is another one after every restart of the daemon. The shared\n"
            "options: voxelctl --help.\n",
    .run = run,
};
