// SPDX-License-Identifier: Apache-2.0
/* voxelctl scene create, drop, list, info. */
#include <inttypes.h>
#include <string.h>

#include "client/voxelctl/scene/scene_commands.h"

static void print_palette_json(const struct voxeld_scene_info *scene)
{
    (void)fputs(", \"palette\": [", stdout);
    for (size_t i = 0; i < scene->n_palette; i++) {
        (void)fputs(i > 0 ? ", {" : "{", stdout);
        ctl_json_member_string(stdout, true, "name", scene->palette[i].name);
        (void)printf(", \"rgb\": \"%06" PRIx32 "\"}", scene->palette[i].rgb);
    }
    (void)fputc(']', stdout);
}

static const char *fsync_name(enum voxeld_scene_fsync fsync)
{
    static const char *const names[] = {"always", "everysec", "off"};

    return (size_t)fsync < sizeof names / sizeof names[0] ? names[fsync] : "?";
}

/* Prints how long versions are kept, and where the scene is kept. */
static void print_keeping_json(const struct voxeld_scene_info *scene)
{
    ctl_json_member_count(stdout, false, "keep_versions", scene->keep_versions);
    ctl_json_member_count(stdout, false, "keep_seconds", scene->keep_seconds);
    ctl_json_member_count(stdout, false, "oldest_version", scene->oldest_version);
    ctl_json_member_count(stdout, false, "n_snapshots", scene->n_snapshots);
    ctl_json_member_count(stdout, false, "n_sharing", scene->n_sharing);
    if (scene->durable) {
        ctl_json_member_string(stdout, false, "durable", fsync_name(scene->fsync));
        ctl_json_member_count(stdout, false, "journal_max_bytes",
                              scene->journal_max_bytes);
    } else {
        (void)fputs(", \"durable\": null", stdout);
    }
}

static void print_fusion_json(const struct voxeld_scene_info *scene)
{
    const struct voxeld_scene_log_odds *odds = &scene->log_odds;

    if (scene->fusion != VOXELD_FUSION_LOG_ODDS) {
        (void)fputs(", \"fusion\": \"last\", \"log_odds\": null", stdout);
        return;
    }
    (void)fputs(", \"fusion\": \"log-odds\", \"log_odds\": {", stdout);
    ctl_json_member_number(stdout, true, "hit", odds->hit);
    ctl_json_member_number(stdout, false, "miss", odds->miss);
    ctl_json_member_number(stdout, false, "clamp_low", odds->clamp_low);
    ctl_json_member_number(stdout, false, "clamp_high", odds->clamp_high);
    ctl_json_member_number(stdout, false, "occupied", odds->occupied);
    ctl_json_member_number(stdout, false, "step", odds->step);
    ctl_json_member_number(stdout, false, "error", odds->error);
    ctl_json_member_count(stdout, false, "label_votes", odds->label_votes);
    (void)fputc('}', stdout);
    ctl_json_member_count(stdout, false, "log_odds_bytes", scene->log_odds_bytes);
    ctl_json_member_count(stdout, false, "vote_bytes", scene->vote_bytes);
    ctl_json_member_count(stdout, false, "n_pinned", scene->n_pinned);
}

/* counted: set by info, which alone counts the voxels. */
void ctl_scene_print_json(const struct voxeld_scene_info *scene, bool counted)
{
    (void)fputc('{', stdout);
    ctl_json_member_string(stdout, true, "name", scene->name);
    ctl_json_member_number(stdout, false, "voxel_size_m", scene->voxel_size_m);
    ctl_json_member_count(stdout, false, "depth", scene->depth);
    ctl_json_member_count(stdout, false, "material_bits", scene->material_bits);
    (void)printf(", \"track_free\": %s, \"origin_m\": [",
                 scene->track_free ? "true" : "false");
    for (size_t i = 0; i < 3; i++) {
        (void)fputs(i > 0 ? ", " : "", stdout);
        ctl_json_number(stdout, scene->origin_m[i]);
    }
    (void)fputc(']', stdout);
    print_fusion_json(scene);
    ctl_json_member_string(stdout, false, "frame_id", scene->frame_id);
    print_palette_json(scene);
    ctl_json_member_count(stdout, false, "version", scene->version);
    ctl_json_member_count(stdout, false, "generation", scene->generation);
    ctl_json_member_count(stdout, false, "n_bytes", scene->n_bytes);
    ctl_json_member_count(stdout, false, "max_bytes", scene->max_bytes);
    ctl_json_member_count(stdout, false, "node_bytes", scene->node_bytes);
    ctl_json_member_count(stdout, false, "n_nodes", scene->n_nodes);
    print_keeping_json(scene);
    if (counted) {
        ctl_json_member_count(stdout, false, "n_occupied", scene->n_occupied);
        ctl_json_member_count(stdout, false, "n_free", scene->n_free);
        ctl_json_member_count(stdout, false, "live_node_bytes", scene->live_node_bytes);
        ctl_json_member_string(stdout, false, "digest", scene->digest);
        if (scene->n_occupied > 0) {
            ctl_json_member_vec3(stdout, false, "occupied_low_m", scene->occupied_low_m);
            ctl_json_member_vec3(stdout, false, "occupied_high_m",
                                 scene->occupied_high_m);
        }
    }
    ctl_json_member_string(stdout, false, "owner", scene->owner);
    (void)printf(", \"created_ns\": %" PRId64 ", \"changed_ns\": %" PRId64 "}",
                 scene->created_ns, scene->changed_ns);
}

void ctl_scene_print_text(const struct voxeld_scene_info *scene)
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

static void print_more(const struct voxeld_scene_info *scene)
{
    const double *low = scene->origin_m;
    char number[32];

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

struct voxeld_scene_create_request
ctl_scene_create_request(const struct ctl_scene_args *args, const char *name)
{
    struct voxeld_scene_create_request request = {
        .scene = name,
        .voxel_size_m = args->size_m,
        .depth = args->depth,
        .material_bits = args->material_bits,
        .track_free = ctl_scene_has(args, CTL_SCENE_TRACK_FREE),
        .has_origin = ctl_scene_has(args, CTL_SCENE_ORIGIN),
        .frame_id = args->frame_id,
        .palette = args->palette,
        .n_palette = args->n_palette,
        .max_bytes = args->max_bytes,
        .keep_versions = args->keep_versions,
        .keep_seconds = args->keep_seconds,
        .fusion = args->fusion,
        .log_odds = {.hit = args->log_odds[0],
                     .miss = args->log_odds[1],
                     .clamp_low = args->log_odds[2],
                     .clamp_high = args->log_odds[3],
                     .occupied = args->log_odds[4],
                     .label_votes = args->label_votes},
        .durable = ctl_scene_has(args, CTL_SCENE_DURABLE),
        .fsync = args->fsync,
        .journal_max_bytes = args->journal_max_bytes,
    };

    memcpy(request.origin_m, args->origin_m, sizeof request.origin_m);
    return request;
}

static int check_create(const struct ctl_scene_args *args)
{
    if (!ctl_scene_has(args, CTL_SCENE_SIZE)) {
        return ctl_usage("scene create", "no --size: the edge of a voxel in metres, > 0");
    }
    if (ctl_scene_has(args, CTL_SCENE_JOURNAL_BYTES) &&
        !ctl_scene_has(args, CTL_SCENE_DURABLE)) {
        return ctl_usage("scene create", "--journal-max-bytes goes with --durable");
    }
    return CTL_OK;
}

static int create(struct voxeld_client *client, const struct ctl_globals *globals,
                  struct ctl_scene_args *args)
{
    struct voxeld_scene_create_request request =
        ctl_scene_create_request(args, args->words[0]);
    struct voxeld_scenes *scenes;
    struct voxeld_error error;

    if (voxeld_scene_create(client, &request, &scenes, &error) != VOXELD_OK) {
        return ctl_failed(request.scene, &error);
    }
    if (globals->json) {
        (void)printf("{\"existed\": %s, \"scene\": ", scenes->existed ? "true" : "false");
        ctl_scene_print_json(&scenes->scenes[0], false);
        (void)fputs("}\n", stdout);
    } else {
        (void)fputs(scenes->existed ? "there already: " : "made ", stdout);
        ctl_scene_print_text(&scenes->scenes[0]);
    }
    voxeld_scenes_free(scenes);
    return ctl_flush();
}

const struct ctl_scene_sub ctl_scene_create = {
    .command =
        {.name = "scene create",
         .help =
             "voxelctl scene create - makes an empty scene\n"
             "\n"
             "usage: voxelctl scene create NAME --size METRES [OPTIONS]\n"
             "\n"
             "Where the scene is there already, made with the same options, that is "
             "fine.\n"
             "\n"
             "  --size METRES      edge of a voxel\n"
             "  --depth N          2^N voxels a side, 4 to 21; default 17\n"
             "  --material-bits N  0 (default), 4, 8 or 16 bits of material a voxel\n"
             "  --palette NAME:RRGGBB\n"
             "                     the next material, from 0: its name (may be empty) "
             "and\n"
             "                     colour; up to 256 times. semantickitti: its 19 "
             "classes\n"
             "  --track-free       track free and unknown voxels apart; takes the "
             "highest\n"
             "                     material\n"
             "  --fusion NAME      how scans meet what is there: last (the last word "
             "counts)\n"
             "                     or log-odds (OctoMap's rules; default with "
             "--track-free)\n"
             "  --log-odds H,M,L,U,O\n"
             "                     probabilities of a hit, a miss, the clamps, and from "
             "which\n"
             "                     on a voxel is occupied; 0: 0.7, 0.4, 0.1192, 0.971, "
             "0.5\n"
             "  --label-votes N    the material is that of most of the last N hits, 2 to "
             "4\n"
             "  --origin X,Y,Z     low corner, metres; default: the centre lies at "
             "0,0,0\n"
             "  --frame NAME       the map frame\n"
             "  --max-bytes N      device memory it may take\n"
             "  --keep N           keep the newest N versions, 1 to 4096; default 64\n"
             "  --keep-seconds S   ... that are younger than S seconds\n"
             "  --durable WHEN     keep it on the server's disk: a change that was "
             "answered\n"
             "                     outlives a loss of power (always), the server's "
             "process,\n"
             "                     and a second later a loss of power (everysec), or "
             "when the\n"
             "                     system has written it (off)\n"
             "  --journal-max-bytes N\n"
             "                     write a snapshot file after N bytes of journal; "
             "default\n"
             "                     256 MiB\n"
             "\n"
             "example\n"
             "  voxelctl scene create yard --size 0.1 --material-bits 4 --track-free \\\n"
             "      --palette ground:7f6f5f --palette wall:c0c0c0\n"},
    .options = CTL_SCENE_BIT(CTL_SCENE_SIZE) | CTL_SCENE_CREATE_BITS,
    .n_min = 1,
    .n_max = 1,
    .check = check_create,
    .run = create,
};

static int drop(struct voxeld_client *client, const struct ctl_globals *globals,
                struct ctl_scene_args *args)
{
    const char *name = args->words[0];
    bool existed = false;
    struct voxeld_error error;

    if (voxeld_scene_drop(client, NULL, name, ctl_scene_has(args, CTL_SCENE_MISSING_OK),
                          &existed, &error) != VOXELD_OK) {
        return ctl_failed(name, &error);
    }
    ctl_print_dropped(globals, existed, name);
    return ctl_flush();
}

const struct ctl_scene_sub ctl_scene_drop = {
    .command = {.name = "scene drop",
                .help = "voxelctl scene drop - forgets a scene\n"
                        "\n"
                        "usage: voxelctl scene drop NAME [--missing-ok] [OPTIONS]\n"
                        "\n"
                        "  --missing-ok       no error where there is no such scene\n"
                        "\n"
                        "example\n"
                        "  voxelctl scene drop yard\n"},
    .options = CTL_SCENE_BIT(CTL_SCENE_MISSING_OK),
    .n_min = 1,
    .n_max = 1,
    .run = drop,
};

static void print_table(const struct voxeld_scenes *scenes)
{
    struct ctl_table table;
    char bytes[CTL_NUMBER_BYTES];

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

static int list(struct voxeld_client *client, const struct ctl_globals *globals,
                struct ctl_scene_args *args)
{
    struct voxeld_scenes *scenes;
    struct voxeld_error error;

    (void)args;
    if (voxeld_scene_list(client, NULL, &scenes, &error) != VOXELD_OK) {
        return ctl_failed("scene list", &error);
    }
    if (globals->json) {
        (void)fputs("{\"scenes\": [", stdout);
    }
    for (size_t i = 0; i < scenes->n_scenes && globals->json; i++) {
        (void)fputs(i > 0 ? ", " : "", stdout);
        ctl_scene_print_json(&scenes->scenes[i], false);
    }
    if (!globals->json && scenes->n_scenes > 0) {
        print_table(scenes);
    }
    ctl_print_total(globals, scenes->n_scenes, "scenes", scenes->n_bytes,
                    scenes->limit_bytes);
    voxeld_scenes_free(scenes);
    return ctl_flush();
}

const struct ctl_scene_sub ctl_scene_list = {
    .command = {.name = "scene list",
                .help = "voxelctl scene list - all scenes, and the memory they take\n"
                        "\n"
                        "usage: voxelctl scene list [--json] [OPTIONS]\n"
                        "\n"
                        "example\n"
                        "  voxelctl scene list --json\n"},
    .run = list,
};

static int info(struct voxeld_client *client, const struct ctl_globals *globals,
                struct ctl_scene_args *args)
{
    struct voxeld_scenes *scenes;
    struct voxeld_error error;

    if (voxeld_scene_get(client, NULL, args->words[0], &scenes, &error) != VOXELD_OK) {
        return ctl_failed(args->words[0], &error);
    }
    if (globals->json) {
        ctl_scene_print_json(&scenes->scenes[0], true);
        (void)fputc('\n', stdout);
    } else {
        ctl_scene_print_text(&scenes->scenes[0]);
        print_more(&scenes->scenes[0]);
    }
    voxeld_scenes_free(scenes);
    return ctl_flush();
}

const struct ctl_scene_sub ctl_scene_info = {
    .command = {.name = "scene info",
                .help =
                    "voxelctl scene info - what a scene is, and how many voxels it has\n"
                    "\n"
                    "usage: voxelctl scene info NAME[@V] [--json] [OPTIONS]\n"
                    "\n"
                    "V is a version that is kept, or a snapshot; without it the newest.\n"
                    "The digest is equal for equal voxels.\n"
                    "\n"
                    "example\n"
                    "  voxelctl scene info yard\n"},
    .n_min = 1,
    .n_max = 1,
    .run = info,
};
