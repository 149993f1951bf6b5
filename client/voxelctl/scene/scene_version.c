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

static void print_version_json(const struct voxeld_scene_version *version)
{
    (void)fputc('{', stdout);
    ctl_json_member_count(stdout, true, "version", version->version);
    ctl_json_member_string(stdout, false, "kind", kind_name(version->kind));
    ctl_json_member_count(stdout, false, "of_version", version->of_version);
    (void)printf(", \"stamp_ns\": %" PRId64, version->stamp_ns);
    ctl_json_member_string(stdout, false, "by", version->by);
    ctl_json_member_string(stdout, false, "client_id", version->client_id);
    ctl_json_member_count(stdout, false, "n_added", version->n_added);
    ctl_json_member_count(stdout, false, "n_removed", version->n_removed);
    ctl_json_member_count(stdout, false, "n_changed", version->n_changed);
    ctl_json_member_count(stdout, false, "n_freed", version->n_freed);
    ctl_json_member_count(stdout, false, "undone_by", version->undone_by);
    (void)fputc('}', stdout);
}

static void print_log_json(const struct voxeld_scene_log *log)
{
    (void)fputs("{\"versions\": [", stdout);
    for (size_t i = 0; i < log->n_versions; i++) {
        (void)fputs(i > 0 ? ", " : "", stdout);
        print_version_json(&log->versions[i]);
    }
    (void)fputs("], \"snapshots\": [", stdout);
    for (size_t i = 0; i < log->n_snapshots; i++) {
        const struct voxeld_scene_snapshot *snapshot = &log->snapshots[i];

        (void)fputs(i > 0 ? ", {" : "{", stdout);
        ctl_json_member_string(stdout, true, "name", snapshot->name);
        ctl_json_member_count(stdout, false, "version", snapshot->version);
        (void)printf(", \"version_ns\": %" PRId64 ", \"taken_ns\": %" PRId64,
                     snapshot->version_ns, snapshot->taken_ns);
        ctl_json_member_string(stdout, false, "by", snapshot->by);
        (void)fputc('}', stdout);
    }
    (void)fputc(']', stdout);
    ctl_json_member_count(stdout, false, "version", log->version);
    ctl_json_member_count(stdout, false, "generation", log->generation);
    ctl_json_member_count(stdout, false, "oldest", log->oldest);
    ctl_json_member_count(stdout, false, "n_sharing", log->n_sharing);
    (void)fputs("}\n", stdout);
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

static void print_log(const struct voxeld_scene_log *log)
{
    struct ctl_table table;
    char text[32];

    ctl_table_begin(&table,
                    ">version|time|kind|>added|>removed|>changed|>freed|by|client");
    for (size_t i = 0; i < log->n_versions; i++) {
        add_version(&table, &log->versions[i]);
    }
    ctl_table_end(&table);
    if (log->n_snapshots == 0) {
        return;
    }
    (void)putchar('\n');
    ctl_table_begin(&table, "snapshot|>version|of");
    for (size_t i = 0; i < log->n_snapshots; i++) {
        ctl_table_cell(&table, "%s", log->snapshots[i].name);
        ctl_table_cell(&table, "%" PRIu64, log->snapshots[i].version);
        ctl_table_cell(&table, "%s", time_text(log->snapshots[i].version_ns, text));
    }
    ctl_table_end(&table);
    (void)putchar('\n');
}

static int log_of(struct voxeld_client *client, const struct ctl_globals *globals,
                  struct ctl_scene_args *args)
{
    const char *scene = args->words[0];
    struct voxeld_scene_log *log;
    struct voxeld_error error;

    if (voxeld_scene_get_log(client, NULL, scene, 0, args->limit, &log, &error) !=
        VOXELD_OK) {
        return ctl_failed(scene, &error);
    }
    if (globals->json) {
        print_log_json(log);
    } else {
        print_log(log);
        (void)printf("%s: version %" PRIu64 "; kept from %" PRIu64 " on\n", scene,
                     log->version, log->oldest);
    }
    voxeld_scene_log_free(log);
    return ctl_flush();
}

const struct ctl_scene_sub ctl_scene_log = {
    .command = {.name = "scene log",
                .help = "voxelctl scene log - versions and snapshots of a scene\n"
                        "\n"
                        "usage: voxelctl scene log NAME [--limit N] [--json] [OPTIONS]\n"
                        "\n"
                        "A line a version, newest first: when it was made (UTC) and how, "
                        "what it\n"
                        "changed in voxels, and by whom (token, client id).\n"
                        "\n"
                        "  --limit N          the newest N, 1 to 10000; default 100\n"
                        "\n"
                        "example\n"
                        "  voxelctl scene log yard --limit 10\n"},
    .options = CTL_SCENE_BIT(CTL_SCENE_LIMIT),
    .n_min = 1,
    .n_max = 1,
    .run = log_of,
};

/* Snapshots ----------------------------------------------------------------------------- */

static int check_snapshot(const struct ctl_scene_args *args)
{
    if (ctl_scene_has(args, CTL_SCENE_UNNAME) &&
        (ctl_scene_has(args, CTL_SCENE_AT) || ctl_scene_has(args, CTL_SCENE_MOVE))) {
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

static int snapshot(struct voxeld_client *client, const struct ctl_globals *globals,
                    struct ctl_scene_args *args)
{
    struct voxeld_scene_snapshot_request request = {
        .scene = args->words[0],
        .snapshot = args->words[1],
        .at = args->at,
        .replace = ctl_scene_has(args, CTL_SCENE_MOVE),
    };
    struct voxeld_scene_snapshot_taken taken;
    struct voxeld_error error;

    if (ctl_scene_has(args, CTL_SCENE_UNNAME)) {
        return drop_snapshot(client, globals, args);
    }
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

const struct ctl_scene_sub ctl_scene_snapshot = {
    .command =
        {.name = "scene snapshot",
         .help =
             "voxelctl scene snapshot - names a version, which keeps it\n"
             "\n"
             "usage: voxelctl scene snapshot NAME SNAP [OPTIONS]\n"
             "\n"
             "NAME@SNAP is the scene as it was then, in info, query and export. SNAP "
             "is\n"
             "[a-z0-9][a-z0-9._-]{0,62}; one of digits alone is found by --at only.\n"
             "\n"
             "  --at V             this version, or what this snapshot names; default: "
             "the\n"
             "                     newest version\n"
             "  --replace          move a name that is there already\n"
             "  --drop             forget the name instead\n"
             "\n"
             "examples\n"
             "  voxelctl scene snapshot yard monday\n"
             "  voxelctl scene export yard@monday monday.ply\n"},
    .options = CTL_SCENE_BIT(CTL_SCENE_AT) | CTL_SCENE_BIT(CTL_SCENE_MOVE) |
               CTL_SCENE_BIT(CTL_SCENE_UNNAME),
    .n_min = 2,
    .n_max = 2,
    .check = check_snapshot,
    .run = snapshot,
};

/* Branches ------------------------------------------------------------------------------ */

static int branch(struct voxeld_client *client, const struct ctl_globals *globals,
                  struct ctl_scene_args *args)
{
    struct voxeld_scene_branch_request request = {
        .scene = args->words[0], .new_scene = args->words[1], .at = args->at};
    struct voxeld_scenes *scenes;
    struct voxeld_error error;
    uint64_t of_version = 0;

    if (voxeld_scene_branch(client, &request, &scenes, &of_version, &error) !=
        VOXELD_OK) {
        return ctl_failed(request.scene, &error);
    }
    if (globals->json) {
        (void)printf("{\"of_version\": %" PRIu64 ", \"scene\": ", of_version);
        ctl_scene_print_json(&scenes->scenes[0], false);
        (void)fputs("}\n", stdout);
    } else {
        (void)printf("of %s@%" PRIu64 ": ", request.scene, of_version);
        ctl_scene_print_text(&scenes->scenes[0]);
    }
    voxeld_scenes_free(scenes);
    return ctl_flush();
}

const struct ctl_scene_sub ctl_scene_branch = {
    .command =
        {.name = "scene branch",
         .help = "voxelctl scene branch - makes a scene of a version of another one\n"
                 "\n"
                 "usage: voxelctl scene branch NAME NEW [--at V] [OPTIONS]\n"
                 "\n"
                 "NEW has the same space and palette, and versions of its own from 1 on. "
                 "The two\n"
                 "share the memory of what is equal in them, and either outlives the "
                 "other.\n"
                 "\n"
                 "  --at V             a version or a snapshot of NAME; default: the "
                 "newest\n"
                 "\n"
                 "example\n"
                 "  voxelctl scene branch yard what-if --at monday\n"},
    .options = CTL_SCENE_BIT(CTL_SCENE_AT),
    .n_min = 2,
    .n_max = 2,
    .run = branch,
};

/* Care ---------------------------------------------------------------------------------- */

static int verify(struct voxeld_client *client, const struct ctl_globals *globals,
                  struct ctl_scene_args *args)
{
    const char *scene = args->words[0];
    struct voxeld_scene_verified verified;
    struct voxeld_error error;
    char nodes[32];

    if (voxeld_scene_verify(client, NULL, scene, &verified, &error) != VOXELD_OK) {
        return ctl_failed(scene, &error);
    }
    if (globals->json) {
        (void)fputc('{', stdout);
        ctl_json_member_count(stdout, true, "n_versions", verified.n_versions);
        ctl_json_member_count(stdout, false, "n_roots", verified.n_roots);
        ctl_json_member_count(stdout, false, "n_nodes", verified.n_nodes);
        ctl_json_member_string(stdout, false, "digest", verified.digest);
        ctl_json_member_number(stdout, false, "engine_ms", verified.engine_ms);
        (void)fputs("}\n", stdout);
    } else {
        (void)printf("%s: sound; %" PRIu64 " versions, %" PRIu64
                     " different roots, %s nodes below them; digest %s\n",
                     scene, verified.n_versions, verified.n_roots,
                     ctl_thousands(verified.n_nodes, nodes), verified.digest);
    }
    return ctl_flush();
}

const struct ctl_scene_sub ctl_scene_verify = {
    .command = {.name = "scene verify",
                .help = "voxelctl scene verify - walks all that is kept of a scene\n"
                        "\n"
                        "usage: voxelctl scene verify NAME [--json] [OPTIONS]\n"
                        "\n"
                        "Ends with 1 and DATA_LOSS where a node breaks a rule. "
                        "--timeout is to be\n"
                        "as long as it takes.\n"
                        "\n"
                        "example\n"
                        "  voxelctl scene verify yard\n"},
    .n_min = 1,
    .n_max = 1,
    .run = verify,
};

static int collect(struct voxeld_client *client, const struct ctl_globals *globals,
                   struct ctl_scene_args *args)
{
    const char *scene = args->words[0];
    struct voxeld_scene_collected done;
    struct voxeld_error error;
    char text[4][32];

    if (voxeld_scene_collect(client, NULL, scene, &done, &error) != VOXELD_OK) {
        return ctl_failed(scene, &error);
    }
    if (globals->json) {
        (void)fputc('{', stdout);
        ctl_json_member_count(stdout, true, "n_bytes_before", done.n_bytes_before);
        ctl_json_member_count(stdout, false, "n_bytes_after", done.n_bytes_after);
        ctl_json_member_count(stdout, false, "n_nodes_before", done.n_nodes_before);
        ctl_json_member_count(stdout, false, "n_nodes_after", done.n_nodes_after);
        ctl_json_member_count(stdout, false, "n_slices", done.n_slices);
        ctl_json_member_number(stdout, false, "longest_slice_ms", done.longest_slice_ms);
        ctl_json_member_number(stdout, false, "engine_ms", done.engine_ms);
        (void)fputs("}\n", stdout);
    } else {
        (void)printf("%s: %s bytes of %s are left, %s nodes of %s; %" PRIu32
                     " slices, the longest %.2f ms\n",
                     scene, ctl_thousands(done.n_bytes_after, text[0]),
                     ctl_thousands(done.n_bytes_before, text[1]),
                     ctl_thousands(done.n_nodes_after, text[2]),
                     ctl_thousands(done.n_nodes_before, text[3]), done.n_slices,
                     done.longest_slice_ms);
    }
    return ctl_flush();
}

const struct ctl_scene_sub ctl_scene_collect = {
    .command =
        {.name = "scene collect",
         .help = "voxelctl scene collect - gives back the memory of what is not kept\n"
                 "\n"
                 "usage: voxelctl scene collect NAME [--json] [OPTIONS]\n"
                 "\n"
                 "It is done in short slices, between which other requests run, for the "
                 "scene and\n"
                 "those that share with it. The daemon also does it by itself\n"
                 "(limits.scene_collect_growth in its configuration).\n"
                 "\n"
                 "example\n"
                 "  voxelctl scene collect yard\n"},
    .n_min = 1,
    .n_max = 1,
    .run = collect,
};
