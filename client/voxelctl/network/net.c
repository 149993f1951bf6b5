// SPDX-License-Identifier: Apache-2.0
/* voxelctl net: what is printed for people, and the commands of files. */
#include <inttypes.h>

#include "client/voxelctl/generated/network_args.h"

static const char *precision_name(enum voxeld_precision precision)
{
    static const char *const names[] = {"?", "fp32", "tf32", "fp16", "bf16"};

    return (size_t)precision < sizeof names / sizeof names[0] ? names[precision] : "?";
}

void ctl_network_print_line(const struct voxeld_network_info *network)
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

void ctl_network_print_info(const struct voxeld_network_info *network)
{
    const struct voxeld_network_timings *last = &network->last;
    char voxels[32];

    ctl_network_print_line(network);
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

void ctl_network_print_list(const struct voxeld_networks *networks)
{
    if (networks->n_networks > 0) {
        print_table(networks);
    }
    (void)fputs("available:", stdout);
    for (size_t i = 0; i < networks->n_available; i++) {
        (void)printf(" %s", networks->available[i]);
    }
    (void)fputc('\n', stdout);
}

/* The daemon reads networks, clients cannot. */
int ctl_network_check(const struct ctl_globals *globals,
                      const struct ctl_network_args *args)
{
    const char *const words[] = {"--check-network", args->words[0]};

    return ctl_become_daemon(globals, "voxelctl net check", words, 2);
}

int ctl_network_init(const struct ctl_globals *globals,
                     const struct ctl_network_args *args)
{
    bool replaces = ctl_network_has(args, CTL_NETWORK_REPLACE);
    const char *const words[] = {"--init-network", args->words[0], "--seed",
                                 args->seed != NULL ? args->seed : "1", "--replace"};

    return ctl_become_daemon(globals, "voxelctl net init", words, replaces ? 5 : 4);
}
