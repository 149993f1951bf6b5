// SPDX-License-Identifier: Apache-2.0
/* voxelctl posegraph create, drop, list, info, optimize. */
#include <inttypes.h>
#include <string.h>

#include "client/voxelctl/posegraph/posegraph_commands.h"

static void print_line(const struct voxeld_posegraph_info *g)
{
    char text[5][32];

    if (g->unavailable) {
        (void)printf(
            "%s: the disk lacks a change of it, and it could not be brought back\n",
            g->name);
        return;
    }
    (void)printf(
        "%s: %s nodes, %s edges, %s priors, %s keyframes, %s bytes; version "
        "%" PRIu64 "%s\n",
        g->name, ctl_thousands(g->n_nodes, text[0]), ctl_thousands(g->n_edges, text[1]),
        ctl_thousands(g->n_priors, text[2]), ctl_thousands(g->n_keyframes, text[3]),
        ctl_thousands(g->n_bytes, text[4]), g->version, g->durable ? ", durable" : "");
}

static void print_more(const struct voxeld_posegraph_info *g)
{
    char number[32];

    for (size_t i = 0; i < g->n_versions; i++) {
        (void)printf("version     %" PRIu64 ": %s nodes, cost %g\n",
                     g->versions[i].version,
                     ctl_thousands(g->versions[i].n_nodes, number), g->versions[i].cost);
    }
    for (size_t i = 0; i < g->n_running; i++) {
        (void)printf("running     %s: %" PRIu32 " steps, cost %g\n",
                     g->running[i].request_id, g->running[i].n_iterations,
                     g->running[i].cost);
    }
    if (g->max_bytes > 0) {
        (void)printf("limit       %s bytes\n", ctl_thousands(g->max_bytes, number));
    }
    if (g->durable) {
        static const char *const when[] = {"always", "everysec", "off"};

        (void)printf("durable     fsync %s; a snapshot file every %s bytes of journal\n",
                     when[g->fsync], ctl_thousands(g->journal_max_bytes, number));
    }
    (void)printf("owner       %s\n", g->owner[0] != '\0' ? g->owner : "nobody");
    (void)printf("generation  %" PRIu64 "\n", g->generation);
}

int ctl_posegraph_create(struct voxeld_client *client, const struct ctl_globals *globals,
                         const struct ctl_posegraph_args *args)
{
    struct voxeld_posegraph_create_request request = {0};
    struct voxeld_posegraphs *graphs;
    struct voxeld_error error;

    ctl_posegraph_create_request(args, &request);
    if (voxeld_posegraph_create(client, &request, &graphs, &error) != VOXELD_OK) {
        return ctl_failed(request.posegraph, &error);
    }
    if (globals->json) {
        (void)printf("{\"existed\": %s, \"posegraph\": ",
                     graphs->existed ? "true" : "false");
        ctl_posegraph_print_json(&graphs->posegraphs[0]);
        (void)fputs("}\n", stdout);
    } else {
        (void)printf("%s ", graphs->existed ? "there already:" : "made");
        print_line(&graphs->posegraphs[0]);
    }
    voxeld_posegraphs_free(graphs);
    return ctl_flush();
}

int ctl_posegraph_drop(struct voxeld_client *client, const struct ctl_globals *globals,
                       const struct ctl_posegraph_args *args)
{
    const char *name = args->words[0];
    bool existed = false;
    struct voxeld_error error;

    if (voxeld_posegraph_drop(client, NULL, name,
                              ctl_posegraph_has(args, CTL_POSEGRAPH_MISSING_OK), &existed,
                              &error) != VOXELD_OK) {
        return ctl_failed(name, &error);
    }
    ctl_print_dropped(globals, existed, name);
    return ctl_flush();
}

static void print_table(const struct voxeld_posegraphs *graphs)
{
    struct ctl_table table;
    char text[CTL_NUMBER_BYTES];

    ctl_table_begin(&table, "pose graph|>nodes|>edges|>priors|>keyframes|>version|kept|>"
                            "memory|owner");
    for (size_t i = 0; i < graphs->n_posegraphs; i++) {
        const struct voxeld_posegraph_info *g = &graphs->posegraphs[i];
        const uint64_t counts[] = {g->n_nodes, g->n_edges, g->n_priors, g->n_keyframes,
                                   g->version};

        ctl_table_cell(&table, "%s", g->name);
        for (size_t j = 0; j < sizeof counts / sizeof counts[0]; j++) {
            /* The disk has not brought it back where it is unavailable. */
            ctl_table_cell(&table, "%s",
                           g->unavailable ? "-" : ctl_thousands(counts[j], text));
        }
        ctl_table_cell(&table, "%s",
                       g->unavailable ? "unavailable"
                       : g->durable   ? "on disk"
                                      : "in memory");
        ctl_table_cell(&table, "%s", ctl_bytes(g->n_bytes, text));
        ctl_table_cell(&table, "%s", g->owner);
    }
    ctl_table_end(&table);
}

int ctl_posegraph_list(struct voxeld_client *client, const struct ctl_globals *globals,
                       const struct ctl_posegraph_args *args)
{
    struct voxeld_posegraphs *graphs;
    struct voxeld_error error;

    (void)args;
    if (voxeld_posegraph_list(client, NULL, &graphs, &error) != VOXELD_OK) {
        return ctl_failed("posegraph list", &error);
    }
    if (globals->json) {
        (void)fputs("{\"posegraphs\": [", stdout);
    }
    for (size_t i = 0; i < graphs->n_posegraphs && globals->json; i++) {
        (void)fputs(i > 0 ? ", " : "", stdout);
        ctl_posegraph_print_json(&graphs->posegraphs[i]);
    }
    if (!globals->json && graphs->n_posegraphs > 0) {
        print_table(graphs);
    }
    ctl_print_total(globals, graphs->n_posegraphs, "pose graphs", graphs->n_bytes,
                    graphs->limit_bytes);
    voxeld_posegraphs_free(graphs);
    return ctl_flush();
}

int ctl_posegraph_info(struct voxeld_client *client, const struct ctl_globals *globals,
                       const struct ctl_posegraph_args *args)
{
    struct voxeld_posegraphs *graphs;
    struct voxeld_error error;

    if (voxeld_posegraph_get(client, NULL, args->words[0], &graphs, &error) !=
        VOXELD_OK) {
        return ctl_failed(args->words[0], &error);
    }
    if (globals->json) {
        ctl_posegraph_print_json(&graphs->posegraphs[0]);
        (void)fputc('\n', stdout);
    } else {
        print_line(&graphs->posegraphs[0]);
        print_more(&graphs->posegraphs[0]);
    }
    voxeld_posegraphs_free(graphs);
    return ctl_flush();
}

int ctl_posegraph_optimize(struct voxeld_client *client,
                           const struct ctl_globals *globals,
                           const struct ctl_posegraph_args *args)
{
    struct voxeld_posegraph_optimize_request request = {0};
    struct voxeld_posegraph_change *change;
    struct voxeld_error error;

    ctl_posegraph_optimize_request(args, &request);
    if (voxeld_posegraph_optimize(client, &request, &change, &error) != VOXELD_OK) {
        return ctl_failed(request.posegraph, &error);
    }
    if (globals->json) {
        ctl_posegraph_optimize_json(change);
    } else {
        (void)printf("%s: version %" PRIu64 ", cost %g to %g in %" PRIu32
                     " steps%s; moved by up to %.3f m, %" PRIu64
                     " outliers; %.2f ms in the engine\n",
                     request.posegraph, change->version, change->initial_cost,
                     change->cost, change->n_iterations,
                     change->converged ? "" : " (not converged)", change->max_moved_m,
                     change->n_outliers, change->engine_ms);
    }
    voxeld_posegraph_change_free(change);
    return ctl_flush();
}
