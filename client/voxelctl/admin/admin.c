// SPDX-License-Identifier: Apache-2.0
/* voxelctl info, self-test, why: what they print for people; and log-level. */
#include <inttypes.h>

#include "client/voxelctl/generated/admin_args.h"

void ctl_print_info(const struct voxeld_server_info *info)
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

void ctl_print_self_test(const struct voxeld_self_test *test)
{
    char stages[32];

    (void)printf("%s stages in %.0f ms, all equal; digest %016" PRIx64 "\n",
                 ctl_thousands(test->n_stages, stages), test->elapsed_ms, test->digest);
}

void ctl_print_why(const struct voxeld_why *why)
{
    (void)printf("%s, %s of %s\n%s\n", why->request_id, why->method, why->token,
                 why->summary);
}

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
