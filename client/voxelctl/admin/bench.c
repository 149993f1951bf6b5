// SPDX-License-Identifier: Apache-2.0
/* voxelctl bench becomes the load tool, bench_load, which is a program of its own: it
 * has threads, an HTTP client and options that no other command needs. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/voxelctl/admin/voxelctl_admin.h"

enum {
    MAX_ADDED = 13 /* the name, shared options and their values, NULL */
};

/* Places of the tool, seen from voxelctl: beside it in a build, else where it is
 * installed. */
enum {
    DEFAULT_TIMEOUT_MS = 5000 /* of its requests */
};

static const char *const places[] = {"bench_load", CTL_LIBEXEC "/bench_load"};

/* Returns only if there is no such program, or it does not start; after a message. */
static int become(char **words)
{
    return ctl_become(
        "voxelctl bench", places, sizeof places / sizeof places[0], words,
        "\"cmake --install\" of a build of voxeld installs it beside voxelctl, and the\n"
        "bundle of deploy/bundle.sh has it; a voxelctl copied alone does not.");
}

/* The token goes through the environment. On a command line every user of the machine
 * could read it, and a file might be read again. */
static bool pass_token(const struct ctl_globals *globals)
{
    if (globals->options.token != NULL &&
        setenv("VOXELD_TOKEN", globals->options.token, 1) != 0) {
        (void)ctl_error("bench: --token-file: %s", strerror(errno));
        return false;
    }
    return true;
}

/* execv does not write to the words; its type is from before const. */
static void add_word(char **words, size_t *n, const char *word)
{
    words[(*n)++] = (char *)word;
}

static void add_option(char **words, size_t *n, const char *name, const char *value)
{
    if (value != NULL) {
        add_word(words, n, name);
        add_word(words, n, value);
    }
}

static int run(struct ctl_globals *globals, int argc, char **argv)
{
    char timeout_ms[16];
    char **words;
    size_t n = 0;
    int result;

    if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        (void)fputs(ctl_bench.help, stdout);
        (void)fputc('\n', stdout);
        result = ctl_flush();
        if (result != CTL_OK) {
            return result;
        }
    }
    words = malloc(sizeof *words * ((size_t)argc + MAX_ADDED));
    if (words == NULL) {
        return ctl_error("bench: no memory");
    }
    (void)snprintf(timeout_ms, sizeof timeout_ms, "%u",
                   globals->options.timeout_ms > 0 ? (unsigned)globals->options.timeout_ms
                                                   : (unsigned)DEFAULT_TIMEOUT_MS);
    add_word(words, &n, "voxelctl bench"); /* the name for its messages */
    add_option(words, &n, "--url", globals->options.url);
    add_option(words, &n, "--ca-file", globals->options.tls_ca_file);
    add_option(words, &n, "--cert-file", globals->options.tls_cert_key_file);
    add_option(words, &n, "--key-file", globals->options.tls_key_file);
    add_option(words, &n, "--timeout-ms", timeout_ms);
    if (globals->json) {
        add_word(words, &n, "--json");
    }
    for (int i = 1; i < argc; i++) {
        add_word(words, &n, argv[i]);
    }
    words[n] = NULL;
    result = pass_token(globals) ? become(words) : CTL_FAILED;
    free(words);
    return result;
}

const struct ctl_command ctl_bench = {
    .name = "bench",
    .summary = "loads the daemon and measures its answers",
    .help =
        "voxelctl bench - loads the daemon and measures its answers\n"
        "\n"
        "usage: voxelctl [OPTIONS] bench [BENCH OPTIONS]\n"
        "\n"
        "Runs bench_load, which is installed with voxelctl, and hands it the shared\n"
        "options (--url, --token-file, --ca-file, --cert-file, --key-file, --timeout,\n"
        "--timeout-ms, --json) and every word after \"bench\"; voxelctl bench --help "
        "explains those as well.\n"
        "\n"
        "  voxelctl bench --concurrency 1,2,4,8 --csv load.csv\n"
        "  voxelctl --url http://127.0.0.1:8420 bench --rate 20,50,100 --check\n"
        "  python3 PREFIX/share/voxeld/plot_load.py load.csv load.png\n"
        "\n"
        "The last line draws the first one's sweep and needs matplotlib.\n",
    .run = run,
};
