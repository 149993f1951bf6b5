// SPDX-License-Identifier: Apache-2.0
/* What goes wrong, on standard error: a line for people, or with --json an object with the keys code,
 * field, message, what, request_id and help, as far as they are known. */
#include <stdarg.h>
#include <string.h>

#include "client/voxelctl/cli/cli.h"
#include "proto/base/closest.h"

enum {
    MESSAGE_BYTES = 1024
};

/* How this process reports, since whatever fails may be far from the options. */
static bool is_json;

void ctl_report_as_json(bool json)
{
    is_json = json;
}

static void member(const char *name, const char *value)
{
    if (value != NULL && value[0] != '\0') {
        ctl_json_member_string(stderr, false, name, value);
    }
}

/* An object whose first member is the code. */
static void report_json(const char *code, const char *what, const char *field,
                        const char *message, const char *request_id, const char *help)
{
    (void)fputc('{', stderr);
    ctl_json_member_string(stderr, true, "code", code);
    member("what", what);
    member("field", field);
    member("message", message);
    member("request_id", request_id);
    member("help", help);
    (void)fputs("}\n", stderr);
}

int ctl_usage(const char *command, const char *format, ...)
{
    const char *space = command != NULL ? " " : "";
    char message[MESSAGE_BYTES];
    char help[128];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(message, sizeof message, format, args);
    va_end(args);
    command = command != NULL ? command : "";
    (void)snprintf(help, sizeof help, "voxelctl%s%s --help", space, command);
    if (is_json) {
        report_json("USAGE", NULL, NULL, message, NULL, help);
    } else {
        (void)fprintf(stderr, "%svoxelctl%s%s:%s %s\nTry: %s\n",
                      ctl_style(stderr, CTL_RED), space, command,
                      ctl_style(stderr, CTL_PLAIN), message, help);
    }
    return CTL_USAGE;
}

int ctl_wrong_words(const struct ctl_command *command, size_t n, size_t n_min)
{
    const char *usage = strstr(command->help, "usage: ");
    const char *few = n < n_min ? "too few" : "too many";
    size_t n_usage;

    if (usage == NULL) {
        return ctl_usage(command->name, "%zu words are %s", n, few);
    }
    n_usage = strcspn(usage, "\n");
    return ctl_usage(command->name, "%zu words beside the options are %s; %.*s", n, few,
                     (int)n_usage, usage);
}

int ctl_no_subcommand(const char *command, const char *word, const char *const *names,
                      size_t n)
{
    struct vxd_closest closest = {.word = word};
    char meant[96];

    for (size_t i = 0; i < n; i++) {
        vxd_closest_offer(&closest, names[i]);
    }
    return ctl_usage(command, "no subcommand \"%s\"%s", word,
                     vxd_closest_text(&closest, meant, sizeof meant));
}

int ctl_error(const char *format, ...)
{
    char message[MESSAGE_BYTES];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(message, sizeof message, format, args);
    va_end(args);
    if (is_json) {
        report_json("FAILED", NULL, NULL, message, NULL, NULL);
    } else {
        (void)fprintf(stderr, "%svoxelctl:%s %s\n", ctl_style(stderr, CTL_RED),
                      ctl_style(stderr, CTL_PLAIN), message);
    }
    return CTL_FAILED;
}

int ctl_cannot_read(const char *path, const char *why)
{
    return ctl_error("cannot read the local file %s: %s", path, why);
}

int ctl_error_of(const char *who, const char *message, const char *help)
{
    if (is_json) {
        report_json("FAILED", who, NULL, message, NULL, help);
    } else {
        (void)fprintf(stderr, "%s: %s\n%s%s", who, message, help,
                      help[0] != '\0' ? "\n" : "");
    }
    return CTL_FAILED;
}

/* What the user may do; "" where the message says all. */
static const char *advice_of(const struct voxeld_error *error)
{
    if (error->code == VOXELD_DEADLINE_EXCEEDED) {
        /* The daemon names the key where it allows no longer wait. */
        bool may_be_longer = strstr(error->message, "limits.max_timeout_ms") == NULL;

        return may_be_longer ? "--timeout SECONDS waits longer" : "";
    }
    if (error->code == VOXELD_UNAUTHENTICATED) {
        return "--token-file FILE or $VOXELD_TOKEN has the token";
    }
    if (error->code == VOXELD_UNAVAILABLE && strcmp(error->field, "url") == 0) {
        return "--url or $VOXELD_URL says where the daemon is";
    }
    return "";
}

int ctl_failed(const char *what, const struct voxeld_error *error)
{
    return ctl_failed_with(what, error, advice_of(error));
}

int ctl_failed_with(const char *what, const struct voxeld_error *error, const char *help)
{
    const char *code = voxeld_status_name(error->code);

    if (!is_json && strcmp(error->field, "file") == 0 && error->request_id[0] == '\0') {
        size_t n = strlen(what);
        bool has_name = strncmp(error->message, what, n) == 0;

        return ctl_cannot_read(what, error->message + (has_name ? n + 2 : 0));
    }
    if (is_json) {
        report_json(code, what, error->field, error->message, error->request_id, help);
        return CTL_FAILED;
    }
    (void)fprintf(stderr, "%svoxelctl:%s %s: %s%s%s", ctl_style(stderr, CTL_RED),
                  ctl_style(stderr, CTL_PLAIN), what, ctl_style(stderr, CTL_BOLD), code,
                  ctl_style(stderr, CTL_PLAIN));
    if (error->field[0] != '\0') {
        (void)fprintf(stderr, " (%s)", error->field);
    }
    (void)fprintf(stderr, ": %s%s%s", error->message, help[0] != '\0' ? "; " : "", help);
    if (error->request_id[0] != '\0') {
        (void)fprintf(stderr, " %s[request %s]%s", ctl_style(stderr, CTL_DIM),
                      error->request_id, ctl_style(stderr, CTL_PLAIN));
    }
    (void)fputc('\n', stderr);
    return CTL_FAILED;
}
