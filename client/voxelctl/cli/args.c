// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/number.h"
#include "client/voxelctl/cli/cli.h"

size_t ctl_parse_doubles(const char *text, double *out, size_t max)
{
    size_t n = 0;

    for (;;) {
        size_t length = strcspn(text, ",");

        if (n == max || !vxd_number_double(text, length, &out[n]) || !isfinite(out[n])) {
            return 0;
        }
        n++;
        if (text[length] == '\0') {
            return n;
        }
        text += length + 1;
    }
}

bool ctl_parse_u32(const char *text, uint32_t low, uint32_t high, uint32_t *out)
{
    uint64_t value;

    if (!vxd_number_uint64(text, strlen(text), &value) || value < low || value > high) {
        return false;
    }
    *out = (uint32_t)value;
    return true;
}

const char *ctl_thousands(uint64_t n, char *text)
{
    char digits[24];
    int n_digits = snprintf(digits, sizeof digits, "%" PRIu64, n);
    size_t to = 0;

    for (int i = 0; i < n_digits; i++) {
        if (i > 0 && (n_digits - i) % 3 == 0) {
            text[to++] = ',';
        }
        text[to++] = digits[i];
    }
    text[to] = '\0';
    return text;
}

/* Reads the first line of the file, without blanks at its end. A token never stands on
 * a command line, where every user of the machine could read it. */
static int read_token(struct ctl_globals *globals, const char *path)
{
    FILE *file = fopen(path, "re");
    size_t n;
    bool read;

    if (file == NULL) {
        (void)ctl_error("--token-file %s: %s", path, strerror(errno));
        return CTL_FAILED;
    }
    read = fgets(globals->token, sizeof globals->token, file) != NULL;
    (void)fclose(file);
    n = read ? strcspn(globals->token, " \t\r\n") : 0;
    if (n == 0 || n + 1 == sizeof globals->token) {
        (void)ctl_error("--token-file %s: no token of 1 to %zu bytes", path,
                        sizeof globals->token - 2);
        return CTL_FAILED;
    }
    globals->token[n] = '\0';
    globals->options.token = globals->token;
    return CTL_OK;
}

int ctl_global_option(struct ctl_globals *globals, int id, const char *value)
{
    double seconds;

    switch (id) {
    case CTL_OPT_URL:
        globals->options.url = value;
        return CTL_OK;
    case CTL_OPT_TOKEN_FILE:
        return read_token(globals, value);
    case CTL_OPT_CA_FILE:
        globals->options.tls_ca_file = value;
        return CTL_OK;
    case CTL_OPT_CERT_FILE:
        globals->options.tls_cert_key_file = value;
        return CTL_OK;
    case CTL_OPT_KEY_FILE:
        globals->options.tls_key_file = value;
        return CTL_OK;
    case CTL_OPT_TIMEOUT:
        if (ctl_parse_doubles(value, &seconds, 1) != 1 || !(seconds >= 0.001) ||
            seconds > 86400) {
            return ctl_usage(NULL, "--timeout %s: seconds, 0.001 to 86400", value);
        }
        globals->options.timeout_ms = (uint32_t)(seconds * 1000);
        return CTL_OK;
    case CTL_OPT_TIMEOUT_MS:
        if (!ctl_parse_u32(value, 1, 86400000, &globals->options.timeout_ms)) {
            return ctl_usage(NULL, "--timeout-ms %s: 1 to 86400000", value);
        }
        return CTL_OK;
    case CTL_OPT_JSON:
        globals->json = true;
        ctl_report_as_json(true);
        return CTL_OK;
    default:
        return ctl_usage(NULL, "unknown option");
    }
}

bool ctl_common_option(struct ctl_globals *globals, const struct ctl_command *command,
                       int id, const char *value, int *result)
{
    switch (id) {
    case 'h':
        (void)fputs(command->help, stdout);
        *result = ctl_flush();
        return true;
    case CTL_OPT_VERSION:
        (void)printf("voxelctl %s\n", voxeld_version());
        *result = ctl_flush();
        return true;
    case '?': /* ctl_next_option has reported what is wrong */
        *result = CTL_USAGE;
        return true;
    default:
        *result = ctl_global_option(globals, id, value);
        return *result != CTL_OK;
    }
}

bool ctl_plain_options(struct ctl_globals *globals, const struct ctl_command *command,
                       int argc, char **argv, int n_min, int n_max, int *result)
{
    static const struct option options[] = {CTL_GLOBAL_OPTIONS, {NULL, 0, NULL, 0}};
    int id;

    while ((id = ctl_next_option(command->name, argc, argv, options)) != -1) {
        if (ctl_common_option(globals, command, id, optarg, result)) {
            return true;
        }
    }
    if (argc - optind < n_min || argc - optind > n_max) {
        *result = ctl_wrong_words(command, (size_t)(argc - optind), (size_t)n_min);
        return true;
    }
    return false;
}

void ctl_print_gone(const struct ctl_globals *globals, bool existed, const char *name,
                    const char *gone, const char *none)
{
    if (globals->json) {
        (void)printf("{\"existed\": %s}\n", existed ? "true" : "false");
    } else {
        (void)printf("%s %s\n", existed ? gone : none, name);
    }
}

void ctl_print_dropped(const struct ctl_globals *globals, bool existed, const char *name)
{
    ctl_print_gone(globals, existed, name, "dropped", "there is no");
}

void ctl_print_total(const struct ctl_globals *globals, size_t n, const char *what,
                     uint64_t n_bytes, uint64_t limit_bytes)
{
    char bytes[32];
    char limit[32];

    if (globals->json) {
        (void)fputc(']', stdout);
        ctl_json_member_count(stdout, false, "n_bytes", n_bytes);
        ctl_json_member_count(stdout, false, "limit_bytes", limit_bytes);
        (void)fputs("}\n", stdout);
    } else {
        (void)printf("%zu %s take %s of %s bytes\n", n, what,
                     ctl_thousands(n_bytes, bytes), ctl_thousands(limit_bytes, limit));
    }
}

const char *ctl_word(const char *const *words, size_t n, size_t at)
{
    return at < n ? words[at] : "?";
}

struct voxeld_client *ctl_connect(const struct ctl_globals *globals)
{
    struct voxeld_options options = globals->options;
    struct voxeld_client *client = NULL;
    struct voxeld_error error;

    options.waiting = ctl_progress_waiting;
    if (voxeld_connect(&options, &client, &error) != VOXELD_OK) {
        (void)ctl_failed("cannot connect", &error);
        return NULL;
    }
    return client;
}

int ctl_flush(void)
{
    if (fflush(stdout) != 0 || ferror(stdout) != 0) {
        (void)ctl_error("cannot write the output: %s", strerror(errno));
        return CTL_FAILED;
    }
    return CTL_OK;
}
