// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "client/c/include/voxeld_backup.h"
#include "client/voxelctl/admin/voxelctl_admin.h"

struct backup_args {
    bool lists;
    const char *dropped; /* NULL: none */
};

enum {
    OPT_LIST = CTL_OPT_FIRST_OWN,
    OPT_DROP
};

static const struct ctl_own_option known[] = {
    {"list", "", true},
    {"drop", "a name", false},
};

static bool take(void *args, int id, const char *value)
{
    struct backup_args *out = args;

    if (id == OPT_LIST) {
        out->lists = true;
    } else {
        out->dropped = value;
    }
    return true;
}

static void print_made(const struct voxeld_backup *backup, bool json)
{
    char database[32];
    char snapshots[32];

    if (json) {
        (void)fputc('{', stdout);
        ctl_json_member_string(stdout, true, "path", backup->path);
        ctl_json_member_count(stdout, false, "n_database_bytes",
                              backup->n_database_bytes);
        ctl_json_member_count(stdout, false, "n_snapshot_bytes",
                              backup->n_snapshot_bytes);
        ctl_json_member_count(stdout, false, "n_snapshots", backup->n_snapshots);
        ctl_json_member_count(stdout, false, "n_linked", backup->n_linked);
        ctl_json_member_number(stdout, false, "elapsed_ms", backup->elapsed_ms);
        (void)fputs("}\n", stdout);
        return;
    }
    (void)printf("%s: a database of %s bytes, %" PRIu64 " snapshot files of %s (%" PRIu64
                 " of them links); %.0f ms\n",
                 backup->path, ctl_thousands(backup->n_database_bytes, database),
                 backup->n_snapshots, ctl_thousands(backup->n_snapshot_bytes, snapshots),
                 backup->n_linked, backup->elapsed_ms);
}

static int make(struct voxeld_client *client, const struct ctl_globals *globals,
                const char *name)
{
    struct voxeld_backup *backup = NULL;
    struct voxeld_error error;
    int result;

    if (voxeld_make_backup(client, NULL, name, &backup, &error) != VOXELD_OK) {
        return ctl_failed(name, &error);
    }
    print_made(backup, globals->json);
    result = ctl_flush();
    voxeld_backup_free(backup);
    return result;
}

static void print_one(const struct voxeld_backup_info *backup, bool json, bool is_first)
{
    time_t made = (time_t)(backup->made_ns / 1000000000);
    char date[32] = "?";
    char n_bytes[32];
    struct tm parts;

    if (gmtime_r(&made, &parts) != NULL) {
        (void)strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", &parts);
    }
    if (!json) {
        (void)printf("%-24s %s %18s bytes\n", backup->name, date,
                     ctl_thousands(backup->n_database_bytes + backup->n_snapshot_bytes +
                                       backup->n_file_bytes,
                                   n_bytes));
        return;
    }
    (void)fputs(is_first ? "{" : ",{", stdout);
    ctl_json_member_string(stdout, true, "name", backup->name);
    ctl_json_member_string(stdout, false, "path", backup->path);
    ctl_json_member_string(stdout, false, "made", date);
    ctl_json_member_count(stdout, false, "n_database_bytes", backup->n_database_bytes);
    ctl_json_member_count(stdout, false, "n_snapshot_bytes", backup->n_snapshot_bytes);
    ctl_json_member_count(stdout, false, "n_snapshots", backup->n_snapshots);
    ctl_json_member_count(stdout, false, "n_file_bytes", backup->n_file_bytes);
    ctl_json_member_count(stdout, false, "n_files", backup->n_files);
    (void)fputc('}', stdout);
}

static int list(struct voxeld_client *client, const struct ctl_globals *globals)
{
    struct voxeld_backup_list_request request = {0};
    struct voxeld_backups *found = NULL;
    struct voxeld_error error;
    int result;

    if (voxeld_backup_list(client, &request, &found, &error) != VOXELD_OK) {
        return ctl_failed("backups", &error);
    }
    if (globals->json) {
        (void)fputs("{\"backups\":[", stdout);
    }
    for (size_t i = 0; i < found->n_backups; i++) {
        print_one(&found->backups[i], globals->json, i == 0);
    }
    if (globals->json) {
        (void)fputc(']', stdout);
        ctl_json_member_count(stdout, false, "n_free_bytes", found->n_free_bytes);
        (void)fputs("}\n", stdout);
    } else {
        char n_free[32];

        (void)printf("%zu backups, %s bytes free\n", found->n_backups,
                     ctl_thousands(found->n_free_bytes, n_free));
    }
    result = ctl_flush();
    voxeld_backups_free(found);
    return result;
}

static int drop(struct voxeld_client *client, const struct ctl_globals *globals,
                const char *name)
{
    struct voxeld_backup_drop_request request = {.name = name};
    struct voxeld_backup_dropped *dropped = NULL;
    struct voxeld_error error;

    if (voxeld_backup_drop(client, &request, &dropped, &error) != VOXELD_OK) {
        return ctl_failed(name, &error);
    }
    ctl_print_dropped(globals, dropped->existed, name);
    voxeld_backup_dropped_free(dropped);
    return ctl_flush();
}

static int run(struct ctl_globals *globals, int argc, char **argv)
{
    struct backup_args args = {0};
    const struct ctl_own_options own = {.known = known,
                                        .n_known = sizeof known / sizeof known[0],
                                        .taken = 3,
                                        .n_min = 0,
                                        .n_max = 1,
                                        .take = take,
                                        .args = &args};
    struct voxeld_client *client;
    int result;

    if (ctl_take_own_options(globals, &ctl_backup, &own, argc, argv, &result)) {
        return result;
    }
    if ((optind < argc) + args.lists + (args.dropped != NULL) != 1) {
        return ctl_usage("backup", "a NAME, --list or --drop NAME");
    }
    client = ctl_connect(globals);
    if (client == NULL) {
        return CTL_FAILED;
    }
    if (args.lists) {
        result = list(client, globals);
    } else if (args.dropped != NULL) {
        result = drop(client, globals, args.dropped);
    } else {
        result = make(client, globals, argv[optind]);
    }
    voxeld_close(client);
    return result;
}

const struct ctl_command ctl_backup = {
    .name = "backup",
    .summary = "copies the daemon's data directory while it runs",
    .help =
        "voxelctl backup - copies the daemon's data directory while it runs\n"
        "\n"
        "usage: voxelctl backup NAME | --list | --drop NAME [--json] [OPTIONS]\n"
        "\n"
        "The copy is backups/NAME in that directory, on the daemon's machine, and has\n"
        "all that was answered before. It is a data directory itself: to restore it,\n"
        "stop the daemon and name it as data_dir, or put it in the old one's place.\n"
        "\n"
        "  --list       lists the backups, when they were made and how large they are\n"
        "  --drop NAME  removes one\n"
        "\n"
        "Needs a token with the scope admin.\n"
        "\n"
        "The shared options: voxelctl --help. --timeout is to be as long as it takes.\n"
        "\n"
        "examples\n"
        "  voxelctl backup monday --timeout 60\n"
        "  voxelctl backup --list\n"
        "  voxelctl backup --drop monday\n"
        "  voxelctl scene repair --dry-run /var/lib/voxeld/backups/monday\n",
    .run = run,
};
