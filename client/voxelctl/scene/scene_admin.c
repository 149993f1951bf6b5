// SPDX-License-Identifier: Apache-2.0
/* What voxelctl scene create, list and info print; voxelctl scene repair. */
#include <inttypes.h>
#include <string.h>

#include "client/voxelctl/scene/scene_commands.h"

static const char *fsync_name(enum voxeld_scene_fsync fsync)
{
    static const char *const names[] = {"always", "everysec", "off"};

    return (size_t)fsync < sizeof names / sizeof names[0] ? names[fsync] : "?";
}

void ctl_scene_print_line(const struct voxeld_scene_info *scene)
{
    char nodes[32];
    char bytes[32];

    (void)printf("%s: version %" PRIu64 ", %" PRIu64 "^3 voxels of %g m, %" PRIu32
                 " bits of material%s%s; %s nodes, %s bytes\n",
                 scene->name, scene->version, UINT64_C(1) << (scene->depth & 63),
                 scene->voxel_size_m, scene->material_bits,
                 scene->track_free ? ", free space" : "",
                 scene->durable ? ", durable" : "", ctl_thousands(scene->n_nodes, nodes),
                 ctl_thousands(scene->n_bytes, bytes));
}

static void print_keeping(const struct voxeld_scene_info *scene)
{
    char number[32];

    (void)printf("kept        versions from %" PRIu64 " on, %" PRIu32
                 " snapshots; the newest %" PRIu32,
                 scene->oldest_version, scene->n_snapshots, scene->keep_versions);
    if (scene->keep_seconds > 0) {
        (void)printf(" of the last %" PRIu64 " s", scene->keep_seconds);
    }
    (void)fputs(" stay\n", stdout);
    if (scene->n_sharing > 1) {
        (void)printf("shared      with %" PRIu32 " other scenes\n", scene->n_sharing - 1);
    }
    if (scene->durable) {
        (void)printf("durable     fsync %s; a snapshot file every %s bytes of journal\n",
                     fsync_name(scene->fsync),
                     ctl_thousands(scene->journal_max_bytes, number));
    }
}

void ctl_scene_print_all(const struct voxeld_scene_info *scene)
{
    const double *low = scene->origin_m;
    char number[32];

    ctl_scene_print_line(scene);
    (void)printf("occupied    %s voxels\n", ctl_thousands(scene->n_occupied, number));
    if (scene->n_occupied > 0) {
        const double *from = scene->occupied_low_m;
        const double *to = scene->occupied_high_m;

        (void)printf("box         %g, %g, %g to %g, %g, %g m\n", from[0], from[1],
                     from[2], to[0], to[1], to[2]);
    }
    if (scene->track_free) {
        (void)printf("free        %s voxels\n", ctl_thousands(scene->n_free, number));
    }
    (void)printf("nodes       %s bytes", ctl_thousands(scene->live_node_bytes, number));
    (void)printf(" in this version, %s in all\n",
                 ctl_thousands(scene->node_bytes, number));
    if (scene->max_bytes > 0) {
        (void)printf("limit       %s bytes\n", ctl_thousands(scene->max_bytes, number));
    }
    if (scene->fusion == VOXELD_FUSION_LOG_ODDS) {
        (void)printf("log-odds    %s bytes; hit %g, miss %g, clamps %g and %g, occupied "
                     "from %g on (within %.2g %%)\n",
                     ctl_thousands(scene->log_odds_bytes, number), scene->log_odds.hit,
                     scene->log_odds.miss, scene->log_odds.clamp_low,
                     scene->log_odds.clamp_high, scene->log_odds.occupied,
                     100 * scene->log_odds.error);
        if (scene->log_odds.label_votes > 0) {
            (void)printf("votes       of the last %" PRIu32 " scans; %s of these bytes\n",
                         scene->log_odds.label_votes,
                         ctl_thousands(scene->vote_bytes, number));
        }
    }
    print_keeping(scene);
    (void)printf("low corner  %g, %g, %g%s%s\n", low[0], low[1], low[2],
                 scene->frame_id[0] != '\0' ? ", frame " : "", scene->frame_id);
    for (size_t i = 0; i < scene->n_palette; i++) {
        (void)printf("material    %zu: #%06" PRIx32 " %s\n", i, scene->palette[i].rgb,
                     scene->palette[i].name);
    }
    (void)printf("digest      %s\n", scene->digest);
    (void)printf("owner       %s\n", scene->owner[0] != '\0' ? scene->owner : "nobody");
}

void ctl_scene_print_table(const struct voxeld_scenes *scenes)
{
    struct ctl_table table;
    char bytes[CTL_NUMBER_BYTES];

    if (scenes->n_scenes == 0) {
        return;
    }
    ctl_table_begin(&table, "scene|>version|>voxel m|>side m|keeps|>memory|owner");
    for (size_t i = 0; i < scenes->n_scenes; i++) {
        const struct voxeld_scene_info *scene = &scenes->scenes[i];

        ctl_table_cell(&table, "%s", scene->name);
        ctl_table_cell(&table, "%" PRIu64, scene->version);
        ctl_table_cell(&table, "%g", scene->voxel_size_m);
        ctl_table_cell(&table, "%g",
                       scene->voxel_size_m *
                           (double)(UINT64_C(1) << (scene->depth & 63)));
        ctl_table_cell(&table, "%" PRIu32 " bits%s%s", scene->material_bits,
                       scene->track_free ? ", free" : "",
                       scene->durable ? ", durable" : "");
        ctl_table_cell(&table, "%s", ctl_bytes(scene->n_bytes, bytes));
        ctl_table_cell(&table, "%s", scene->owner);
    }
    ctl_table_end(&table);
}

int ctl_scene_repair(const struct ctl_globals *globals, const struct ctl_scene_args *args)
{
    bool only_looks = ctl_scene_has(args, CTL_SCENE_DRY_RUN);
    const char *const words[] = {only_looks ? "--check-data" : "--repair-data",
                                 args->words[0]};

    return ctl_become_daemon(globals, "voxelctl scene repair", words, 2);
}
