// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>

#include "client/voxelctl/admin/voxelctl_admin.h"

enum {
    OPT_DURATION = CTL_OPT_FIRST_OWN,
    OPT_POINTS,
    MAX_DURATION_MS = 60000,
    MAX_POINTS = 1000000
};

static bool parse(struct ctl_globals *globals, int argc, char **argv,
                  uint32_t *duration_ms, uint32_t *n_points, int *result)
{
    static const struct option options[] = {
        CTL_GLOBAL_OPTIONS,
        {"duration-ms", required_argument, NULL, OPT_DURATION},
        {"points", required_argument, NULL, OPT_POINTS},
        {NULL, 0, NULL, 0}};
    int id;

    while ((id = ctl_next_option("self-test", argc, argv, options)) != -1) {
        if (id == OPT_DURATION) {
            if (!ctl_parse_u32(optarg, 1, MAX_DURATION_MS, duration_ms)) {
                *result = ctl_usage("self-test", "--duration-ms %s: 1 to %d", optarg,
                                    MAX_DURATION_MS);
                return false;
            }
        } else if (id == OPT_POINTS) {
            if (!ctl_parse_u32(optarg, 1, MAX_POINTS, n_points)) {
                *result =
                    ctl_usage("self-test", "--points %s: 1 to %d", optarg, MAX_POINTS);
                return false;
            }
        } else if (ctl_common_option(globals, &ctl_self_test, id, optarg, result)) {
            return false;
        }
    }
    if (optind < argc) {
        *result = ctl_usage("self-test", "unexpected \"%s\"", argv[optind]);
        return false;
    }
    return true;
}

static int run(struct ctl_globals *globals, int argc, char **argv)
{
    struct voxeld_client *client;
    struct voxeld_self_test test;
    struct voxeld_error error;
    uint32_t duration_ms = 0;
    uint32_t n_points = 0;
    char stages[32];
    int result = CTL_OK;

    if (!parse(globals, argc, argv, &duration_ms, &n_points, &result)) {
        return result;
    }
    client = ctl_connect(globals);
    if (client == NULL) {
        return CTL_FAILED;
    }
    if (voxeld_run_self_test(client, NULL, duration_ms, n_points, &test, &error) !=
        VOXELD_OK) {
        result = ctl_failed("self-test", &error);
    } else if (globals->json) {
        /* The digest is text, because not every reader of JSON keeps numbers of 64
         * bits. */
        (void)printf("{\"n_stages\": %" PRIu64 ", \"digest\": \"%016" PRIx64
                     "\", \"elapsed_ms\": ",
                     test.n_stages, test.digest);
        ctl_json_number(stdout, test.elapsed_ms);
        (void)fputs("}\n", stdout);
        result = ctl_flush();
    } else {
        (void)printf("%s stages in %.0f ms, all equal; digest %016" PRIx64 "\n",
                     ctl_thousands(test.n_stages, stages), test.elapsed_ms, test.digest);
        result = ctl_flush();
    }
    voxeld_close(client);
    return result;
}

const struct ctl_command ctl_self_test = {
    .name = "self-test",
    .summary = "has the daemon compute the same thing again and again",
    .help =
        "voxelctl self-test - has the daemon compute the same thing again and again\n"
        "\n"
        "usage: voxelctl self-test [--duration-ms MS] [--points N] [--json] [OPTIONS]\n"
        "\n"
        "Voxelizes random clouds in short stages, between which other requests run, and\n"
        "compares every result with the first bit for bit. The digest is the same on\n"
        "every machine and backend for the same number of points. Needs a token with\n"
        "the scope admin.\n"
        "\n"
        "  --duration-ms MS  how long, 1 to 60000; default 1000\n"
        "  --points N        points a stage, 1 to 1000000; default 20000\n"
        "\n"
        "The timeout counts from the end of the duration. The shared options:\n"
        "voxelctl --help.\n",
    .run = run,
};
