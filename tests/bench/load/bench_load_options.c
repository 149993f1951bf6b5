// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/load/bench_load_options.h"

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/voxelctl/cli/cli.h"
#include "proto/base/number.h"
#include "client/c/include/voxeld.h"

enum {
    EXIT_USAGE = 2,
    DEFAULT_IN_FLIGHT = 64, /* of an open loop: enough that the schedule is kept */
    DEFAULT_DURATION_S = 10,
    COUNTED_DURATION_S = 600, /* where only a count is given: every run ends */
    MAX_DURATION_S = 3600,
    MAX_RATE = 1000000,
    MAX_COUNT = 100000000,
    MAX_POINTS = 50000000,
    MAX_WEIGHT = 1000000,
    MAX_TIMEOUT_MS = 600000,
    MAX_SHARED_MIB = 65536,
    HOST_BYTES = 256
};

/* Ids of the long options, above any character. */
enum {
    OPT_URL = 256,
    OPT_ALLOW_REMOTE,
    OPT_TOKEN_FILE,
    OPT_CA_FILE,
    OPT_CERT_FILE,
    OPT_KEY_FILE,
    OPT_SHARED,
    OPT_TIMEOUT,
    OPT_TIMEOUT_MS,
    OPT_RATE,
    OPT_CONCURRENCY,
    OPT_ARRIVALS,
    OPT_DURATION,
    OPT_WARMUP,
    OPT_COUNT,
    OPT_MIX,
    OPT_POINTS,
    OPT_CLOUD,
    OPT_SCENE,
    OPT_FORMAT,
    OPT_SIZE,
    OPT_CHECK,
    OPT_STAGES,
    OPT_CSV,
    OPT_JSON,
    OPT_VERSION
};

static const struct option long_options[] = {
    {"url", required_argument, NULL, OPT_URL},
    {"allow-remote", no_argument, NULL, OPT_ALLOW_REMOTE},
    {"token-file", required_argument, NULL, OPT_TOKEN_FILE},
    {"ca-file", required_argument, NULL, OPT_CA_FILE},
    {"cert-file", required_argument, NULL, OPT_CERT_FILE},
    {"key-file", required_argument, NULL, OPT_KEY_FILE},
    {"shared", required_argument, NULL, OPT_SHARED},
    {"timeout", required_argument, NULL, OPT_TIMEOUT},
    {"timeout-ms", required_argument, NULL, OPT_TIMEOUT_MS},
    {"rate", required_argument, NULL, OPT_RATE},
    {"concurrency", required_argument, NULL, OPT_CONCURRENCY},
    {"arrivals", required_argument, NULL, OPT_ARRIVALS},
    {"duration", required_argument, NULL, OPT_DURATION},
    {"warmup", required_argument, NULL, OPT_WARMUP},
    {"count", required_argument, NULL, OPT_COUNT},
    {"mix", required_argument, NULL, OPT_MIX},
    {"points", required_argument, NULL, OPT_POINTS},
    {"cloud", required_argument, NULL, OPT_CLOUD},
    {"scene", required_argument, NULL, OPT_SCENE},
    {"format", required_argument, NULL, OPT_FORMAT},
    {"size", required_argument, NULL, OPT_SIZE},
    {"check", no_argument, NULL, OPT_CHECK},
    {"stages", no_argument, NULL, OPT_STAGES},
    {"csv", required_argument, NULL, OPT_CSV},
    {"json", no_argument, NULL, OPT_JSON},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, OPT_VERSION},
    {NULL, 0, NULL, 0},
};

static const char help_text[] =
    "\n"
    "Loads a running voxeld and measures its answers.\n"
    "\n"
    "where\n"
    "  --url URL          ipc:///path, tcp://host:port, tls+tcp://host:port or\n"
    "                     http://host:port. Default: $VOXELD_URL, else the socket of\n"
    "                     this machine's daemon\n"
    "  --allow-remote     load another machine; without it only ipc and loopback\n"
    "                     addresses are taken\n"
    "  --token-file FILE  the first line is the token. Default: $VOXELD_TOKEN, else "
    "none\n"
    "  --ca-file FILE     PEM file of the authorities that may have signed the server's\n"
    "                     certificate, for tls+tcp\n"
    "  --cert-file FILE   PEM file of one's own certificate, where the server wants "
    "one,\n"
    "  --key-file FILE    and of its key, where that is not in the same file\n"
    "  --shared MIB       over ipc: memory that each client shares with the daemon, in\n"
    "                     MiB, for large requests and replies; default 0, as\n"
    "                     much as two of them need\n"
    "  --timeout SECONDS  of each request; default 5\n"
    "  --timeout-ms MS    the same in milliseconds\n"
    "\n"
    "how much\n"
    "  --concurrency N,.. closed loop: N clients, each asks again as soon as it has its\n"
    "                     answer; a list makes a sweep. Default 1\n"
    "  --rate R,..        open loop: R requests a second at set times, whether answers\n"
    "                     come or not. Latency counts from the set time, so that a "
    "stall\n"
    "                     of the server shows in every request it delayed. "
    "--concurrency\n"
    "                     is then how many may be in flight; default 64\n"
    "  --arrivals KIND    of an open loop: even (default) or poisson\n"
    "  --duration S       of each step; default 10, at most 3600\n"
    "  --count N          requests measured a step; it ends at whichever comes first\n"
    "                     (--duration then is 600 unless given)\n"
    "  --warmup S         before each step, not measured; default 1\n"
    "\n"
    "what\n"
    "  --mix M:W,..       methods and weights, of voxelize, status, server_info and\n"
    "                     scene_integrate; default voxelize:1\n"
    "  --scene NAME       of scene_integrate, which adds the cloud to this scene, with\n"
    "                     carving: make it before (voxelctl scene create)\n"
    "  --points N         random points of the cloud, 12 bytes each; default 250000\n"
    "  --cloud FILE       a real one instead; --format as voxelctl voxelize has it\n"
    "  --size M           voxel edge in metres; default 0.5\n"
    "  --check            compare every answer with the first; wrong ones are counted "
    "as\n"
    "                     failed and make the exit status 1\n"
    "\n"
    "output\n"
    "  --stages           where the time went: in the server by stage (receive, decode,\n"
    "                     wait in the queue, engine, commit to the journal, the rest),\n"
    "                     and the way there and back\n"
    "  --json             JSON on standard output in place of the table\n"
    "  --csv FILE         a row a step and method; plot_load.py draws it (in\n"
    "                     share/voxeld where installed, else in tests/bench)\n"
    "\n"
    "overhead is latency less the reply's engine_ms. Ctrl-C ends the run and prints "
    "what\n"
    "was measured so far. Exit status: 0 measured; 1 no answer, a wrong one, or a file\n"
    "failed; 2 the command line is wrong; 130 interrupted.\n";

const char *load_method_name(enum load_method method)
{
    static const char *const names[LOAD_N_METHODS] = {"voxelize", "status", "server_info",
                                                      "scene_integrate"};

    return names[method];
}

#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
static int
usage(const struct load_options *options, const char *format, ...)
{
    char message[512];
    char help[128];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(message, sizeof message, format, args);
    va_end(args);
    (void)snprintf(help, sizeof help, "Try: %s --help", options->program);
    (void)ctl_error_of(options->program, message, help);
    return EXIT_USAGE;
}

/* Parses a number in low .. high, in text[0 .. n). */
static bool parse_number(const char *text, size_t n, double low, double high, double *out)
{
    double value;

    if (!vxd_number_double(text, n, &value) || !(value >= low && value <= high)) {
        return false;
    }
    *out = value;
    return true;
}

static bool parse_whole(const char *text, size_t n, uint64_t low, uint64_t high,
                        uint64_t *out)
{
    uint64_t value;

    if (!vxd_number_uint64(text, n, &value) || value < low || value > high) {
        return false;
    }
    *out = value;
    return true;
}

static bool parse_u32(const char *text, uint32_t high, uint32_t *out)
{
    uint64_t value;

    if (!parse_whole(text, strlen(text), 1, high, &value)) {
        return false;
    }
    *out = (uint32_t)value;
    return true;
}

static bool parse_rates(const char *text, struct load_options *out)
{
    for (out->n_rates = 0; out->n_rates < LOAD_MAX_STEPS;) {
        size_t n = strcspn(text, ",");

        if (!parse_number(text, n, 0.001, MAX_RATE, &out->rates[out->n_rates])) {
            return false;
        }
        out->n_rates++;
        if (text[n] == '\0') {
            return true;
        }
        text += n + 1;
    }
    return false;
}

static bool parse_concurrency(const char *text, struct load_options *out)
{
    for (out->n_concurrency = 0; out->n_concurrency < LOAD_MAX_STEPS;) {
        size_t n = strcspn(text, ",");
        uint64_t value;

        if (!parse_whole(text, n, 1, LOAD_MAX_CONCURRENCY, &value)) {
            return false;
        }
        out->concurrency[out->n_concurrency++] = (uint32_t)value;
        if (text[n] == '\0') {
            return true;
        }
        text += n + 1;
    }
    return false;
}

static bool parse_mix(const char *text, uint32_t weights[LOAD_N_METHODS])
{
    for (size_t i = 0; i < LOAD_N_METHODS; i++) {
        weights[i] = 0;
    }
    for (;;) {
        size_t n = strcspn(text, ",");
        size_t n_name = strcspn(text, ":,");
        uint64_t weight = 1;
        size_t method = 0;

        while (method < LOAD_N_METHODS &&
               (strlen(load_method_name((enum load_method)method)) != n_name ||
                strncmp(load_method_name((enum load_method)method), text, n_name) != 0)) {
            method++;
        }
        if (method == LOAD_N_METHODS || weights[method] != 0 ||
            (n_name < n &&
             !parse_whole(text + n_name + 1, n - n_name - 1, 1, MAX_WEIGHT, &weight))) {
            return false;
        }
        weights[method] = (uint32_t)weight;
        if (text[n] == '\0') {
            return true;
        }
        text += n + 1;
    }
}

/* Reads the first line of the file. A token never stands on a command line, where
 * every user of the machine could read it. */
static bool read_token(const char *path, struct load_options *out, int *result)
{
    FILE *file = fopen(path, "re");
    size_t n = 0;

    if (file == NULL) {
        (void)ctl_error("--token-file %s: %s", path, strerror(errno));
        *result = EXIT_FAILURE;
        return false;
    }
    if (fgets(out->token_line, sizeof out->token_line, file) != NULL) {
        n = strcspn(out->token_line, " \t\r\n");
    }
    (void)fclose(file);
    if (n == 0 || n + 1 == sizeof out->token_line) {
        (void)ctl_error("--token-file %s: no token of 1 to %zu bytes", path,
                        sizeof out->token_line - 2);
        *result = EXIT_FAILURE;
        return false;
    }
    out->token_line[n] = '\0';
    out->token = out->token_line;
    return true;
}

/* Whether a URL leads to this machine: a Unix socket or a loopback address. */
static bool is_local(const char *url)
{
    const char *host = strstr(url, "://");
    char name[HOST_BYTES];
    struct in_addr v4;
    size_t n;

    if (host == NULL || strncmp(url, "ipc://", 6) == 0) {
        return host != NULL;
    }
    host += 3;
    if (host[0] == '[') {
        return strncmp(host, "[::1]", 5) == 0 &&
               (host[5] == ':' || host[5] == '/' || host[5] == '\0');
    }
    n = strcspn(host, ":/");
    if (n >= sizeof name) {
        return false;
    }
    (void)snprintf(name, sizeof name, "%.*s", (int)n, host);
    return strcmp(name, "localhost") == 0 ||
           (inet_pton(AF_INET, name, &v4) == 1 && ntohl(v4.s_addr) >> 24 == 127);
}

static bool load_option(struct load_options *out, int id, const char *value)
{
    double seconds;

    switch (id) {
    case OPT_SHARED:
        return parse_u32(value, MAX_SHARED_MIB, &out->shared_mib);
    case OPT_RATE:
        return parse_rates(value, out);
    case OPT_CONCURRENCY:
        return parse_concurrency(value, out);
    case OPT_ARRIVALS:
        out->poisson = strcmp(value, "poisson") == 0;
        return out->poisson || strcmp(value, "even") == 0;
    case OPT_DURATION:
        return parse_number(value, strlen(value), 0.01, MAX_DURATION_S, &out->duration_s);
    case OPT_WARMUP:
        return parse_number(value, strlen(value), 0, MAX_DURATION_S, &out->warmup_s);
    case OPT_COUNT:
        return parse_whole(value, strlen(value), 1, MAX_COUNT, &out->count);
    case OPT_MIX:
        return parse_mix(value, out->weights);
    case OPT_POINTS:
        return parse_u32(value, MAX_POINTS, &out->n_points);
    case OPT_SIZE:
        return parse_number(value, strlen(value), 1e-6, 1e6, &out->size_m);
    case OPT_TIMEOUT:
        if (!parse_number(value, strlen(value), 0.001, 1e-3 * MAX_TIMEOUT_MS, &seconds)) {
            return false;
        }
        out->timeout_ms = (uint32_t)ceil(seconds * 1e3);
        return true;
    case OPT_TIMEOUT_MS:
        return parse_u32(value, MAX_TIMEOUT_MS, &out->timeout_ms);
    default:
        return false;
    }
}

/* Takes an option that cannot be wrong; false for the others. */
static bool plain_option(struct load_options *out, int id, const char *value)
{
    switch (id) {
    case OPT_URL:
        out->url = value;
        return true;
    case OPT_CA_FILE:
        out->ca_file = value;
        return true;
    case OPT_CERT_FILE:
        out->cert_file = value;
        return true;
    case OPT_KEY_FILE:
        out->key_file = value;
        return true;
    case OPT_SCENE:
        out->scene = value;
        return true;
    case OPT_CLOUD:
        out->cloud = value;
        return true;
    case OPT_FORMAT:
        out->format = value;
        return true;
    case OPT_CSV:
        out->csv = value;
        return true;
    case OPT_ALLOW_REMOTE:
        out->allow_remote = true;
        return true;
    case OPT_CHECK:
        out->check = true;
        return true;
    case OPT_STAGES:
        out->stages = true;
        return true;
    case OPT_JSON:
        out->json = true;
        return true;
    default:
        return false;
    }
}

/* Prints the manual or the version. False where standard output did not take it. */
static bool print(const char *program, int id)
{
    int n = id == OPT_VERSION ? printf("%s %s\n", program, voxeld_version())
                              : printf("usage: %s [OPTIONS]\n%s", program, help_text);

    return n >= 0 && fflush(stdout) == 0;
}

/* Checks what only all options together show. */
static bool settle(struct load_options *out, int *result)
{
    if (out->n_rates > 0 && out->n_concurrency > 1) {
        *result =
            usage(out, "a sweep goes over --rate or over --concurrency, not over both");
        return false;
    }
    if (out->n_concurrency == 0) {
        out->n_concurrency = 1;
        out->concurrency[0] = out->n_rates > 0 ? DEFAULT_IN_FLIGHT : 1;
    }
    if (out->duration_s <= 0) {
        out->duration_s = out->count > 0 ? COUNTED_DURATION_S : DEFAULT_DURATION_S;
    }
    if (out->url != NULL && !out->allow_remote && !is_local(out->url)) {
        *result = usage(out,
                        "%s is not on this machine: add --allow-remote if its owner "
                        "knows that it will be loaded",
                        out->url);
        return false;
    }
    if ((out->weights[LOAD_SCENE_INTEGRATE] > 0) != (out->scene != NULL)) {
        *result = usage(out, "scene_integrate in --mix and --scene go together");
        return false;
    }
    out->is_http = out->url != NULL && strncmp(out->url, "http://", 7) == 0;
    return true;
}

/* Reports an option that getopt_long did not take, and those that it may have been the beginning of. */
static int wrong_option(const struct load_options *out, const char *word)
{
    const char *typed = word + strspn(word, "-");
    size_t n_typed = strcspn(typed, "=");
    char list[1024] = "";
    size_t n = 0;
    int n_found = 0;

    for (const struct option *option = long_options; option->name != NULL; option++) {
        if (strncmp(option->name, typed, n_typed) == 0 && n < sizeof list) {
            n += (size_t)snprintf(list + n, sizeof list - n, "%s--%s",
                                  n_found++ > 0 ? ", " : "", option->name);
        }
    }
    if (n_found > 1) {
        return usage(out, "%s may be %s", word, list);
    }
    return usage(out, "an option is unknown, or lacks its value: %s", word);
}

bool load_options_parse(int argc, char **argv, struct load_options *out, int *result)
{
    const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;
    int id;
    int index = 0;

    *out = (struct load_options){.program = slash != NULL ? slash + 1
                                            : argc > 0    ? argv[0]
                                                          : "bench_load",
                                 .url = getenv("VOXELD_URL"),
                                 .token = getenv("VOXELD_TOKEN"),
                                 .timeout_ms = 5000,
                                 .warmup_s = 1,
                                 .weights = {[LOAD_VOXELIZE] = 1},
                                 .n_points = 250000,
                                 .size_m = 0.5};
    for (int i = 1; i < argc; i++) {
        out->json = out->json || strcmp(argv[i], "--json") == 0;
    }
    ctl_report_as_json(out->json);
    opterr = out->json ? 0 : 1; /* as text it says what is wrong itself */
    while ((id = getopt_long(argc, argv, "h", long_options, &index)) != -1) {
        if (id == 'h' || id == OPT_VERSION) {
            *result = print(out->program, id) ? EXIT_SUCCESS : EXIT_FAILURE;
            return false;
        }
        if (id == '?') {
            *result = wrong_option(out, argv[optind > 1 ? optind - 1 : 0]);
            return false;
        }
        if (id == OPT_TOKEN_FILE) {
            if (!read_token(optarg, out, result)) {
                return false;
            }
        } else if (!plain_option(out, id, optarg) && !load_option(out, id, optarg)) {
            *result = usage(out, "--%s: \"%s\" is not what --help says",
                            long_options[index].name, optarg);
            return false;
        }
    }
    if (optind < argc) {
        *result = usage(out, "\"%s\" is no option", argv[optind]);
        return false;
    }
    return settle(out, result);
}
