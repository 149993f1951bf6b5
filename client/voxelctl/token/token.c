// SPDX-License-Identifier: Apache-2.0
/* voxelctl token: short-lived tokens. */
#include <string.h>

#include "client/voxelctl/generated/token_args.h"
#include "client/voxelctl/token/voxelctl_token.h"

static void print_json(const struct voxeld_token *token)
{
    (void)fputc('{', stdout);
    ctl_json_member_string(stdout, true, "token", token->token);
    ctl_json_member_string(stdout, false, "name", token->name);
    (void)fputs(", \"scopes\": [", stdout);
    for (size_t i = 0; i < token->n_scopes; i++) {
        (void)printf("%s\"%s\"", i > 0 ? ", " : "", token->scopes[i]);
    }
    (void)fputc(']', stdout);
    ctl_json_member_count(stdout, false, "expires_ns", (uint64_t)token->expires_ns);
    (void)fputs("}\n", stdout);
}

/* Of the token alone a line on standard output, so that a shell can take it. */
static int issue(struct voxeld_client *client, const struct ctl_globals *globals,
                 const struct ctl_token_args *args)
{
    struct voxeld_token_issue_request request = {0};
    struct voxeld_token *token;
    struct voxeld_error error;

    ctl_token_issue_request(args, &request);
    if (voxeld_token_issue(client, &request, &token, &error) != VOXELD_OK) {
        return ctl_failed("token", &error);
    }
    if (globals->json) {
        print_json(token);
    } else {
        (void)puts(token->token);
    }
    voxeld_token_free(token);
    return ctl_flush();
}

static int run(struct ctl_globals *globals, int argc, char **argv)
{
    struct ctl_token_args args = {0};
    struct voxeld_client *client;
    int result = CTL_OK;

    if (argc < 2) {
        return ctl_usage("token", "no subcommand");
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        (void)fputs(ctl_token_help, stdout);
        return ctl_flush();
    }
    if (strcmp(argv[1], "issue") != 0) {
        static const char *const names[] = {"issue"};

        return ctl_no_subcommand("token", argv[1], names, 1);
    }
    if (!ctl_token_parse(globals, &ctl_token_issue_manual, argc - 1, argv + 1, &args,
                         &result)) {
        return result;
    }
    client = ctl_connect(globals);
    if (client == NULL) {
        return CTL_FAILED;
    }
    result = issue(client, globals, &args);
    voxeld_close(client);
    return result;
}

const struct ctl_command ctl_token = {
    .name = "token",
    .summary = ctl_token_summary,
    .help = ctl_token_help,
    .run = run,
};
