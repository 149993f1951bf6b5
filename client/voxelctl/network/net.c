// SPDX-License-Identifier: Apache-2.0
/* voxelctl net: networks of the daemon, and their files. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/voxelctl/network/voxelctl_network.h"

enum {
    OPT_PRECISION = CTL_OPT_FIRST_OWN,
    OPT_MISSING_OK,
    OPT_SEED,
    OPT_REPLACE
};

static const char *const precisions[] = {"", "fp32", "tf32", "fp16", "bf16", "auto"};

struct net_args {
    const char *name; /* or file; NULL of list */
    enum voxeld_precision precision;
    bool missing_ok;
    const char *seed;
    bool replace;
};

struct sub {
    const char *name;
    bool has_name;
    uint32_t options; /* bits, from OPT_PRECISION on */
    int (*run)(struct ctl_globals *globals, const struct net_args *args);
};

static const char *precision_name(enum voxeld_precision precision)
{
    return precision >= VOXELD_FP32 && precision <= VOXELD_BF16 ? precisions[precision]
                                                                : "?";
}

static void print_json(const struct voxeld_network_info *network)
{
    (void)fputc('{', stdout);
    ctl_json_member_string(stdout, true, "name", network->name);
    ctl_json_member_string(stdout, false, "digest", network->digest);
    ctl_json_member_string(stdout, false, "precision",
                           precision_name(network->precision));
    ctl_json_member_count(stdout, false, "n_parameters", network->n_parameters);
    ctl_json_member_count(stdout, false, "n_bytes", network->n_bytes);
    ctl_json_member_count(stdout, false, "n_requests", network->n_requests);
    ctl_json_member_number(stdout, false, "voxelize_ms", network->last.voxelize_ms);
    ctl_json_member_number(stdout, false, "sets_ms", network->last.sets_ms);
    ctl_json_member_number(stdout, false, "layers_ms", network->last.layers_ms);
    ctl_json_member_number(stdout, false, "outputs_ms", network->last.outputs_ms);
    (void)fputs(", \"features\": [", stdout);
    for (size_t i = 0; i < network->n_features; i++) {
        (void)fputs(i > 0 ? ", " : "", stdout);
        ctl_json_string(stdout, network->features[i].name);
    }
    (void)fputs("], \"outputs\": [", stdout);
    for (size_t i = 0; i < network->n_outputs; i++) {
        (void)fputs(i > 0 ? ", " : "", stdout);
        ctl_json_string(stdout, network->outputs[i].name);
    }
    (void)fputs("]}", stdout);
}

static void print_line(const struct voxeld_network_info *network)
{
    char parameters[32];
    char bytes[32];

    (void)printf("%s: %.12s, %s parameters, %s, %s bytes\n", network->name,
                 network->digest, ctl_thousands(network->n_parameters, parameters),
                 precision_name(network->precision),
                 ctl_thousands(network->n_bytes, bytes));
}

static void print_output(const struct voxeld_network_output *output)
{
    static const char *const kinds[] = {"", "voxels", "points", "dense", "vector"};
    bool known = output->kind >= VOXELD_KIND_VOXELS && output->kind <= VOXELD_KIND_VECTOR;

    (void)printf("output      %s: %s of %" PRIu32 " channels%s%s\n", output->name,
                 known ? kinds[output->kind] : "?", output->n_channels,
                 output->argmax ? ", as label and score" : "",
                 output->by_default ? "; by default" : "");
}

static void print_more(const struct voxeld_network_info *network)
{
    const struct voxeld_network_timings *last = &network->last;
    char voxels[32];

    (void)fputs("looks at    ", stdout);
    for (size_t i = 0; i < network->n_features; i++) {
        (void)printf("%s%s", i > 0 ? ", " : "", network->features[i].name);
    }
    (void)printf("\nvoxels      %g x %g x %g%s\n", network->size_m[0], network->size_m[1],
                 network->size_m[2],
                 network->normalizes ? ", of the normalized cloud" : " m");
    for (size_t i = 0; i < network->n_outputs; i++) {
        print_output(&network->outputs[i]);
    }
    (void)printf("sets        %" PRIu32 ", and %" PRIu32 " kernel maps\n",
                 network->n_sets, network->n_maps);
    (void)printf("requests    %" PRIu64 "\n", network->n_requests);
    if (network->n_requests > 0) {
        (void)printf("last run    %" PRIu32
                     " items, %s voxels: voxelize %.2f, sets %.2f, "
                     "layers %.2f, outputs %.2f ms\n",
                     last->n_items, ctl_thousands(last->n_voxels, voxels),
                     last->voxelize_ms, last->sets_ms, last->layers_ms, last->outputs_ms);
    }
    for (size_t i = 0; i < network->n_layers; i++) {
        const struct voxeld_network_layer *layer = &network->layers[i];

        (void)printf("layer       %s: %s %" PRIu32 " -> %" PRIu32 "\n", layer->name,
                     layer->op, layer->n_in, layer->n_out);
    }
}

static int load(struct ctl_globals *globals, const struct net_args *args)
{
    struct voxeld_client *client = ctl_connect(globals);
    struct voxeld_networks *networks;
    struct voxeld_error error;

    if (client == NULL) {
        return CTL_FAILED;
    }
    if (voxeld_network_load(client, NULL, args->name, args->precision, &networks,
                            &error) != VOXELD_OK) {
        voxeld_close(client);
        return ctl_failed(args->name, &error);
    }
    if (globals->json) {
        print_json(&networks->networks[0]);
        (void)fputc('\n', stdout);
    } else {
        (void)fputs(networks->existed        ? "there already: "
                    : networks->was_replaced ? "loaded anew: "
                                             : "loaded ",
                    stdout);
        print_line(&networks->networks[0]);
    }
    voxeld_networks_free(networks);
    voxeld_close(client);
    return ctl_flush();
}

static int unload(struct ctl_globals *globals, const struct net_args *args)
{
    struct voxeld_client *client = ctl_connect(globals);
    struct voxeld_error error;
    bool existed;
    int result = CTL_OK;

    if (client == NULL) {
        return CTL_FAILED;
    }
    if (voxeld_network_unload(client, NULL, args->name, args->missing_ok, &existed,
                              &error) != VOXELD_OK) {
        result = ctl_failed(args->name, &error);
    } else if (globals->json) {
        (void)printf("{\"existed\": %s}\n", existed ? "true" : "false");
    } else {
        (void)printf("%s %s\n", existed ? "unloaded" : "there was no", args->name);
    }
    voxeld_close(client);
    return result == CTL_OK ? ctl_flush() : result;
}

static void print_table(const struct voxeld_networks *networks)
{
    struct ctl_table table;
    char text[CTL_NUMBER_BYTES];

    ctl_table_begin(&table, "network|digest|>parameters|type|>memory|>requests|>last ms");
    for (size_t i = 0; i < networks->n_networks; i++) {
        const struct voxeld_network_info *network = &networks->networks[i];
        const struct voxeld_network_timings *last = &network->last;

        ctl_table_cell(&table, "%s", network->name);
        ctl_table_cell(&table, "%.12s", network->digest);
        ctl_table_cell(&table, "%s", ctl_thousands(network->n_parameters, text));
        ctl_table_cell(&table, "%s", precision_name(network->precision));
        ctl_table_cell(&table, "%s", ctl_bytes(network->n_bytes, text));
        ctl_table_cell(&table, "%s", ctl_thousands(network->n_requests, text));
        if (network->n_requests > 0) {
            ctl_table_cell(&table, "%.1f",
                           last->voxelize_ms + last->sets_ms + last->layers_ms +
                               last->outputs_ms);
        } else {
            ctl_table_cell(&table, "-");
        }
    }
    ctl_table_end(&table);
}

static void print_list(const struct voxeld_networks *networks, bool json)
{
    char used[32];
    char limit[32];

    if (json) {
        (void)fputs("{\"networks\": [", stdout);
    }
    for (size_t i = 0; i < networks->n_networks && json; i++) {
        (void)fputs(i > 0 ? ", " : "", stdout);
        print_json(&networks->networks[i]);
    }
    if (!json && networks->n_networks > 0) {
        print_table(networks);
    }
    (void)fputs(json ? "], \"available\": [" : "available:", stdout);
    for (size_t i = 0; i < networks->n_available; i++) {
        (void)fputs(json && i > 0 ? ", " : json ? "" : " ", stdout);
        if (json) {
            ctl_json_string(stdout, networks->available[i]);
        } else {
            (void)fputs(networks->available[i], stdout);
        }
    }
    if (json) {
        (void)fputs("]}\n", stdout);
    } else {
        (void)printf("\n%s of %s bytes are used\n",
                     ctl_thousands(networks->n_bytes, used),
                     ctl_thousands(networks->limit_bytes, limit));
    }
}

static int list(struct ctl_globals *globals, const struct net_args *args)
{
    struct voxeld_client *client = ctl_connect(globals);
    struct voxeld_networks *networks;
    struct voxeld_error error;

    (void)args;
    if (client == NULL) {
        return CTL_FAILED;
    }
    if (voxeld_network_list(client, NULL, &networks, &error) != VOXELD_OK) {
        voxeld_close(client);
        return ctl_failed("net list", &error);
    }
    print_list(networks, globals->json);
    voxeld_networks_free(networks);
    voxeld_close(client);
    return ctl_flush();
}

static int info(struct ctl_globals *globals, const struct net_args *args)
{
    struct voxeld_client *client = ctl_connect(globals);
    struct voxeld_networks *networks;
    struct voxeld_error error;

    if (client == NULL) {
        return CTL_FAILED;
    }
    if (voxeld_network_get(client, NULL, args->name, &networks, &error) != VOXELD_OK) {
        voxeld_close(client);
        return ctl_failed(args->name, &error);
    }
    if (globals->json) {
        print_json(&networks->networks[0]);
        (void)fputc('\n', stdout);
    } else {
        print_line(&networks->networks[0]);
        print_more(&networks->networks[0]);
    }
    voxeld_networks_free(networks);
    voxeld_close(client);
    return ctl_flush();
}

/* The daemon reads networks, clients cannot. */
static int check(struct ctl_globals *globals, const struct net_args *args)
{
    const char *const words[] = {"--check-network", args->name};

    return ctl_become_daemon(globals, "voxelctl net check", words, 2);
}

static int init(struct ctl_globals *globals, const struct net_args *args)
{
    const char *const words[] = {"--init-network", args->name, "--seed", args->seed,
                                 "--replace"};

    return ctl_become_daemon(globals, "voxelctl net init", words, args->replace ? 5 : 4);
}

#define BIT(option) (1u << ((option)-OPT_PRECISION))

static const struct sub subs[] = {
    {"load", true, BIT(OPT_PRECISION), load},
    {"unload", true, BIT(OPT_MISSING_OK), unload},
    {"list", false, 0, list},
    {"info", true, 0, info},
    {"check", true, 0, check},
    {"init", true, BIT(OPT_SEED) | BIT(OPT_REPLACE), init},
};

static int take_option(struct net_args *args, int id, const char *value)
{
    if (id == OPT_MISSING_OK) {
        args->missing_ok = true;
    } else if (id == OPT_REPLACE) {
        args->replace = true;
    } else if (id == OPT_SEED) {
        args->seed = value;
    } else {
        for (int i = VOXELD_FP32; i <= VOXELD_PRECISION_AUTO; i++) {
            if (strcmp(value, precisions[i]) == 0) {
                args->precision = (enum voxeld_precision)i;
                return CTL_OK;
            }
        }
        return ctl_usage("net", "--precision %s: fp32, tf32, fp16, bf16 or auto", value);
    }
    return CTL_OK;
}

/* Parses the command line: CTL_OK and *go_on, or the exit status. */
static int parse(struct ctl_globals *globals, const struct sub *sub, int argc,
                 char **argv, struct net_args *args, bool *go_on)
{
    static const struct option options[] = {
        CTL_GLOBAL_OPTIONS,
        {"precision", required_argument, NULL, OPT_PRECISION},
        {"missing-ok", no_argument, NULL, OPT_MISSING_OK},
        {"seed", required_argument, NULL, OPT_SEED},
        {"replace", no_argument, NULL, OPT_REPLACE},
        {NULL, 0, NULL, 0}};
    int n_words = sub->has_name ? 1 : 0;
    int result = CTL_OK;
    int id;

    *go_on = false;
    args->seed = "1";
    while ((id = ctl_next_option("net", argc, argv, options)) != -1) {
        if (id >= OPT_PRECISION && (sub->options & BIT(id)) == 0) {
            return ctl_usage("net", "net %s has no such option", sub->name);
        }
        if (id >= OPT_PRECISION) {
            result = take_option(args, id, optarg);
        } else if (ctl_common_option(globals, &ctl_net, id, optarg, &result)) {
            return result;
        }
        if (result != CTL_OK) {
            return result;
        }
    }
    if (argc - optind != n_words) {
        return ctl_usage("net", "net %s takes %d words, not %d", sub->name, n_words,
                         argc - optind);
    }
    args->name = sub->has_name ? argv[optind] : NULL;
    *go_on = true;
    return CTL_OK;
}

static int no_subcommand(const char *word)
{
    const char *names[sizeof subs / sizeof subs[0]];

    for (size_t i = 0; i < sizeof subs / sizeof subs[0]; i++) {
        names[i] = subs[i].name;
    }
    return ctl_no_subcommand("net", word, names, sizeof subs / sizeof subs[0]);
}

static int run(struct ctl_globals *globals, int argc, char **argv)
{
    struct net_args args = {0};
    const struct sub *sub = NULL;
    bool go_on;
    int result;

    if (argc < 2) {
        return ctl_usage("net", "no subcommand");
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        (void)fputs(ctl_net.help, stdout);
        return ctl_flush();
    }
    for (size_t i = 0; i < sizeof subs / sizeof subs[0]; i++) {
        if (strcmp(subs[i].name, argv[1]) == 0) {
            sub = &subs[i];
        }
    }
    if (sub == NULL) {
        return no_subcommand(argv[1]);
    }
    result = parse(globals, sub, argc - 1, argv + 1, &args, &go_on);
    return go_on ? sub->run(globals, &args) : result;
}

const struct ctl_command ctl_net = {
    .name = "net",
    .summary = "networks: load, unload, list, look at, check their files",
    .help =
        "voxelctl net - sparse convolution networks\n"
        "\n"
        "usage: voxelctl net SUBCOMMAND ... [OPTIONS]\n"
        "\n"
        "of the daemon, from its networks_dir\n"
        "  load NAME          loads a network, or loads it anew; where its files are "
        "faulty\n"
        "                     the old one stays\n"
        "      --precision P  fp32, tf32, fp16, bf16, or auto: fp16 on a GPU, else "
        "fp32;\n"
        "                     default: what its config says\n"
        "  unload NAME        forgets it (--missing-ok: no error where it is not "
        "loaded)\n"
        "  list               those loaded, and the names of those that may be\n"
        "  info NAME          fields it looks at, outputs, layers, times of the last "
        "run\n"
        "\n"
        "of files, without a daemon running (needs voxeld beside voxelctl)\n"
        "  check NAME.json    reads config and weights, builds the network and runs it "
        "once\n"
        "  init NAME.json     writes random weights for a config\n"
        "      --seed N       equal seeds, equal weights, everywhere; default 1\n"
        "      --replace      over a file that is there\n"
        "\n"
        "shared options: voxelctl --help\n"
        "\n"
        "examples\n"
        "  voxelctl net init networks/second.json --seed 7\n"
        "  voxelctl net load second --precision fp16\n"
        "  voxelctl infer second scan.bin --format kitti --output bev --out bev.npy\n",
    .run = run,
};
