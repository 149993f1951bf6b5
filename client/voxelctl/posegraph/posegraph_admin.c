// SPDX-License-Identifier: Apache-2.0
/* What voxelctl posegraph create, list, info, optimize and rebuild print for people. */
#include <inttypes.h>
#include <string.h>

#include "client/voxelctl/generated/posegraph_args.h"

void ctl_posegraph_print_line(const struct voxeld_posegraph_info *g)
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

void ctl_posegraph_print_info(const struct voxeld_posegraph_info *g)
{
    char number[32];

    ctl_posegraph_print_line(g);
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

void ctl_posegraph_print_list(const struct voxeld_posegraphs *graphs)
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

void ctl_posegraph_print_optimized(const struct ctl_posegraph_args *args,
                                   const struct voxeld_posegraph_change *change)
{
    (void)printf("%s: version %" PRIu64 ", cost %g to %g in %" PRIu32
                 " steps%s; moved by up to %.3f m, %" PRIu64
                 " outliers; %.2f ms in the engine\n",
                 args->words[0], change->version, change->initial_cost, change->cost,
                 change->n_iterations, change->converged ? "" : " (not converged)",
                 change->max_moved_m, change->n_outliers, change->engine_ms);
}

void ctl_posegraph_print_rebuilt(const struct ctl_posegraph_args *args,
                                 const struct voxeld_posegraph_rebuilt *r)
{
    char text[3][32];

    (void)printf("%s: %s keyframes at version %" PRIu64 ", %s of %s points used; ",
                 args->words[0], ctl_thousands(r->n_keyframes, text[0]), r->version,
                 ctl_thousands(r->n_used, text[1]), ctl_thousands(r->n_points, text[2]));
    if (r->scene_version > 0) {
        (void)printf("the scene is at version %" PRIu64
                     ": %s voxels more, %s fewer; %.2f ms in the engine\n",
                     r->scene_version, ctl_thousands(r->n_added, text[0]),
                     ctl_thousands(r->n_removed, text[1]), r->engine_ms);
    } else {
        (void)printf("the volume has %s blocks; %.2f ms in the engine\n",
                     ctl_thousands(r->n_blocks, text[0]), r->engine_ms);
    }
}

void ctl_posegraph_print_rebuild_status(const struct ctl_posegraph_args *args,
                                        const struct voxeld_posegraph_rebuild_status *r)
{
    if (r->running) {
        (void)printf("%s: %s %s is made anew by %s, %" PRIu64 " of %" PRIu64
                     " keyframes are in it\n",
                     args->words[0], r->scene[0] != '\0' ? "the scene" : "the volume",
                     r->scene[0] != '\0' ? r->scene : r->volume, r->request_id, r->n_done,
                     r->n_keyframes);
    } else {
        (void)printf("%s: no rebuild runs\n", args->words[0]);
    }
}

int ctl_posegraph_rebuild_cancel(struct voxeld_client *client,
                                 const struct ctl_globals *globals,
                                 const struct ctl_posegraph_args *args)
{
    const char *name = args->words[0];
    bool was_running = false;
    struct voxeld_error error;

    if (voxeld_posegraph_rebuild_cancel(client, NULL, name, &was_running, &error) !=
        VOXELD_OK) {
        return ctl_failed(name, &error);
    }
    if (globals->json) {
        (void)printf("{\"was_running\": %s}\n", was_running ? "true" : "false");
    } else {
        (void)printf("%s: %s\n", name,
                     was_running ? "the rebuild ends" : "no rebuild runs");
    }
    return ctl_flush();
}
