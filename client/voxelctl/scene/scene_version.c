// SPDX-License-Identifier: Apache-2.0
/* voxelctl scene log, snapshot, branch, verify, collect. */
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "client/voxelctl/scene/scene_commands.h"

/* Log ----------------------------------------------------------------------------------- */

static const char *kind_name(enum voxeld_scene_version_kind kind)
{
    static const char *const names[] = {"made",   "edited", "integrated",
                                        "undone", "redone", "decayed"};

    return (size_t)kind < sizeof names / sizeof names[0] ? names[kind] : "?";
}

/* Prints 2026-11-21T22:10:23Z; text has at least 32 bytes. Returns text. */
static const char *time_text(int64_t ns, char *text)
{
    time_t seconds = (time_t)(ns / 1000000000);
    struct tm utc;

    text[0] = '\0';
    if (gmtime_r(&seconds, &utc) != NULL) {
        (void)strftime(text, 32, "%Y-%m-%dT%H:%M:%SZ", &utc);
    }
    return text;
}

static void add_version(struct ctl_table *table,
                        const struct voxeld_scene_version *version)
{
    char text[32];

    ctl_table_cell(table, "%" PRIu64, version->version);
    ctl_table_cell(table, "%s", time_text(version->stamp_ns, text));
    if (version->of_version > 0) {
        ctl_table_cell(table, "%s %" PRIu64, kind_name(version->kind),
                       version->of_version);
    } else if (version->undone_by > 0) {
        ctl_table_cell(table, "%s, undone by %" PRIu64, kind_name(version->kind),
                       version->undone_by);
    } else {
        ctl_table_cell(table, "%s", kind_name(version->kind));
    }
    ctl_table_cell(table, "%s", ctl_thousands(version->n_added, text));
    ctl_table_cell(table, "%s", ctl_thousands(version->n_removed, text));
    ctl_table_cell(table, "%s", ctl_thousands(version->n_changed, text));
    ctl_table_cell(table, "%s", ctl_thousands(version->n_freed, text));
    ctl_table_cell(table, "%s", version->by);
    ctl_table_cell(table, "%s", version->client_id);
}

static void print_snapshots(const struct voxeld_scene_log *log)
{
    struct ctl_table table;
    char text[32];

    ctl_table_begin(&table, "snapshot|>version|of");
    for (size_t i = 0; i < log->n_snapshots; i++) {
        ctl_table_cell(&table, "%s", log->snapshots[i].name);
        ctl_table_cell(&table, "%" PRIu64, log->snapshots[i].version);
        ctl_table_cell(&table, "%s", time_text(log->snapshots[i].version_ns, text));
    }
    ctl_table_end(&table);
}

void ctl_scene_print_log(const struct ctl_scene_args *args,
                         const struct voxeld_scene_log *log)
{
    struct ctl_table table;

    ctl_table_begin(&table,
                    ">version|time|kind|>added|>removed|>changed|>freed|by|client");
    for (size_t i = 0; i < log->n_versions; i++) {
        add_version(&table, &log->versions[i]);
    }
    ctl_table_end(&table);
    if (log->n_snapshots > 0) {
        (void)putchar('\n');
        print_snapshots(log);
        (void)putchar('\n');
    }
    (void)printf("%s: version %" PRIu64 "; kept from %" PRIu64 " on\n", args->words[0],
                 log->version, log->oldest);
}

/* Snapshots ----------------------------------------------------------------------------- */

int ctl_scene_check_snapshot(const struct ctl_scene_args *args)
{
    if (ctl_scene_has(args, CTL_SCENE_DROP) &&
        (ctl_scene_has(args, CTL_SCENE_AT) || ctl_scene_has(args, CTL_SCENE_REPLACE))) {
        return ctl_usage("scene snapshot", "--drop goes without --at and --replace");
    }
    return CTL_OK;
}

static int drop_snapshot(struct voxeld_client *client, const struct ctl_globals *globals,
                         const struct ctl_scene_args *args)
{
    const char *scene = args->words[0];
    const char *snapshot = args->words[1];
    struct voxeld_error error;

    if (voxeld_scene_drop_snapshot(client, NULL, scene, snapshot, &error) != VOXELD_OK) {
        return ctl_failed(snapshot, &error);
    }
    if (globals->json) {
        (void)fputc('{', stdout);
        ctl_json_member_string(stdout, true, "dropped", snapshot);
        (void)fputs("}\n", stdout);
    } else {
        (void)printf("dropped %s@%s\n", scene, snapshot);
    }
    return ctl_flush();
}

int ctl_scene_snapshot(struct voxeld_client *client, const struct ctl_globals *globals,
                       const struct ctl_scene_args *args)
{
    struct voxeld_scene_snapshot_request request = {0};
    struct voxeld_scene_snapshot_taken taken;
    struct voxeld_error error;

    if (ctl_scene_has(args, CTL_SCENE_DROP)) {
        return drop_snapshot(client, globals, args);
    }
    ctl_scene_snapshot_request(args, &request);
    if (voxeld_scene_take_snapshot(client, &request, &taken, &error) != VOXELD_OK) {
        return ctl_failed(request.snapshot, &error);
    }
    if (globals->json) {
        (void)fputc('{', stdout);
        ctl_json_member_string(stdout, true, "name", request.snapshot);
        ctl_json_member_count(stdout, false, "version", taken.version);
        (void)printf(", \"version_ns\": %" PRId64 ", \"taken_ns\": %" PRId64 "}\n",
                     taken.version_ns, taken.taken_ns);
    } else {
        (void)printf("%s@%s is version %" PRIu64 "\n", request.scene, request.snapshot,
                     taken.version);
    }
    return ctl_flush();
}

/* Branches ------------------------------------------------------------------------------ */

int ctl_scene_branch(struct voxeld_client *client, const struct ctl_globals *globals,
                     const struct ctl_scene_args *args)
{
    struct voxeld_scene_branch_request request = {0};
    struct voxeld_scenes *scenes;
    struct voxeld_error error;
    uint64_t of_version = 0;

    ctl_scene_branch_request(args, &request);
    if (voxeld_scene_branch(client, &request, &scenes, &of_version, &error) !=
        VOXELD_OK) {
        return ctl_failed(request.scene, &error);
    }
    if (globals->json) {
        (void)printf("{\"of_version\": %" PRIu64 ", \"scene\": ", of_version);
        ctl_scene_print_json(&scenes->scenes[0]);
        (void)fputs("}\n", stdout);
    } else {
        (void)printf("of %s@%" PRIu64 ": ", request.scene, of_version);
        ctl_scene_print_line(&scenes->scenes[0]);
    }
    voxeld_scenes_free(scenes);
    return ctl_flush();
}

/* Care ---------------------------------------------------------------------------------- */

void ctl_scene_print_verified(const struct ctl_scene_args *args,
                              const struct voxeld_scene_verified *verified)
{
    char nodes[32];

    (void)printf("%s: sound; %" PRIu64 " versions, %" PRIu64
                 " different roots, %s nodes below them; digest %s\n",
                 args->words[0], verified->n_versions, verified->n_roots,
                 ctl_thousands(verified->n_nodes, nodes), verified->digest);
}

void ctl_scene_print_collected(const struct ctl_scene_args *args,
                               const struct voxeld_scene_collected *done)
{
    char text[4][32];

    (void)printf("%s: %s bytes of %s are left, %s nodes of %s; %" PRIu32
                 " slices, the longest %.2f ms\n",
                 args->words[0], ctl_thousands(done->n_bytes_after, text[0]),
                 ctl_thousands(done->n_bytes_before, text[1]),
                 ctl_thousands(done->n_nodes_after, text[2]),
                 ctl_thousands(done->n_nodes_before, text[3]), done->n_slices,
                 done->longest_slice_ms);
}
