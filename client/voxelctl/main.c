// SPDX-License-Identifier: Apache-2.0
/* voxelctl: the service on the command line. */
#include <string.h>

#include "client/voxelctl/admin/voxelctl_admin.h"
#include "client/voxelctl/cloud/voxelctl_cloud.h"
#include "client/voxelctl/commands/generated/commands_generated.h"
#include "client/voxelctl/demo/voxelctl_demo.h"
#include "proto/base/closest.h"

static const struct ctl_command *const commands[] = {
    &ctl_voxelize, &ctl_map,       &ctl_scene,     &ctl_volume, &ctl_refine,
    &ctl_slac,     &ctl_odometry,  &ctl_posegraph, &ctl_infer,  &ctl_net,
    &ctl_convert,  &ctl_watch,     &ctl_demo,      &ctl_info,   &ctl_status,
    &ctl_top,      &ctl_self_test, &ctl_log_level, &ctl_backup, &ctl_restore,
    &ctl_token,    &ctl_why,       &ctl_bench,
};

enum {
    N_COMMANDS = sizeof commands / sizeof commands[0]
};

static void print_help(void)
{
    (void)fputs("voxelctl - asks a voxeld daemon\n"
                "\n"
                "usage: voxelctl [OPTIONS] COMMAND ...\n"
                "\n"
                "commands (voxelctl COMMAND --help is the manual of each):\n",
                stdout);
    for (size_t i = 0; i < N_COMMANDS; i++) {
        (void)printf("  %-10s  %s\n", commands[i]->name, commands[i]->summary);
    }
    (void)fputs(
        "\n"
        "options, before or after the command:\n"
        "  --url URL          where the daemon is: ipc:///path, tcp://host:port,\n"
        "                     tls+tcp://host:port. Default: $VOXELD_URL, else the "
        "socket\n"
        "                     $XDG_RUNTIME_DIR/voxeld/voxeld.sock where it exists, else\n"
        "                     ipc:///run/voxeld/voxeld.sock\n"
        "  --token-file FILE  the first line is the token. Default: $VOXELD_TOKEN, else "
        "none\n"
        "  --ca-file FILE     PEM file of the authorities that may have signed the\n"
        "                     server's certificate, for tls+tcp\n"
        "  --cert-file FILE   PEM file of your own certificate, where the server wants "
        "one,\n"
        "  --key-file FILE    and of its key, where that is not in the same file\n"
        "  --timeout SECONDS  longest wait for a reply; default: as long as the daemon\n"
        "                     allows (limits.max_timeout_ms), at most 60\n"
        "  --timeout-ms MS    the same in milliseconds\n"
        "  --json             JSON on standard output instead of text; what goes wrong\n"
        "                     is JSON on standard error\n"
        "  --request FILE     after a command of one call, in place of its words and\n"
        "                     options: the whole request as JSON, as over HTTP; prints\n"
        "                     the reply as JSON\n"
        "  -h, --help         this text\n"
        "  --version          the version\n"
        "\n"
        "Defaults of url, token_file, timeout_s, ca_file, cert_file, key_file and json "
        "stand "
        "in\n"
        "$XDG_CONFIG_HOME/voxeld.json, else ~/.config/voxeld.json: {\"url\": "
        "\"tcp://...\"}.\n"
        "A FILE of - is standard input or output. NO_COLOR turns colours off.\n"
        "\n"
        "exit status: 0 done; 1 the request, the connection or a file failed, and "
        "standard\n"
        "error says which field and why; 2 the command line is wrong\n",
        stdout);
}

/* Reports a word that is no command, and which one it may have been meant to be. */
static int no_command(const char *word)
{
    struct vxd_closest closest = {.word = word};
    char meant[96];

    for (size_t i = 0; i < N_COMMANDS; i++) {
        vxd_closest_offer(&closest, commands[i]->name);
    }
    return ctl_usage(NULL, "no command \"%s\"%s", word,
                     vxd_closest_text(&closest, meant, sizeof meant));
}

static const struct ctl_command *find(const char *name)
{
    for (size_t i = 0; i < N_COMMANDS; i++) {
        if (strcmp(commands[i]->name, name) == 0) {
            return commands[i];
        }
    }
    return NULL;
}

static int help(int argc, char **argv)
{
    const struct ctl_command *command = argc > 1 ? find(argv[1]) : NULL;

    if (argc > 1 && command == NULL) {
        return no_command(argv[1]);
    }
    if (command != NULL) {
        (void)fputs(command->help, stdout);
    } else {
        print_help();
    }
    return ctl_flush();
}

/* Takes the options before the command. True when the program is to end with *result. */
static bool leading_options(struct ctl_globals *globals, int argc, char **argv,
                            int *result)
{
    static const struct option options[] = {CTL_GLOBAL_OPTIONS, {NULL, 0, NULL, 0}};
    int id;

    while ((id = ctl_next_option(NULL, argc, argv, options)) != -1) {
        if (id == 'h') {
            print_help();
            *result = ctl_flush();
            return true;
        }
        if (id == CTL_OPT_VERSION) {
            (void)printf("voxelctl %s\n", voxeld_version());
            *result = ctl_flush();
            return true;
        }
        if (id == '?') {
            *result = CTL_USAGE;
            return true;
        }
        *result = ctl_global_option(globals, id, optarg);
        if (*result != CTL_OK) {
            return true;
        }
    }
    return false;
}

int main(int argc, char **argv)
{
    struct ctl_globals globals = {0};
    const struct ctl_command *command;
    bool needs_defaults = true;
    int result;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            globals.json = true; /* what goes wrong before that option, too */
        }
        needs_defaults = needs_defaults && strcmp(argv[i], "--help") != 0 &&
                         strcmp(argv[i], "--version") != 0;
    }
    if (needs_defaults && ctl_globals_defaults(&globals) != CTL_OK) {
        return CTL_FAILED;
    }
    ctl_report_as_json(globals.json);
    if (leading_options(&globals, argc, argv, &result)) {
        return result;
    }
    argc -= optind;
    argv += optind;
    optind = 0; /* glibc: starts again at the command's words */
    if (argc == 0) {
        return ctl_usage(NULL, "no command");
    }
    if (strcmp(argv[0], "help") == 0) {
        return help(argc, argv);
    }
    command = find(argv[0]);
    if (command == NULL) {
        return no_command(argv[0]);
    }
    return command->run(&globals, argc, argv);
}
