// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>

#include "client/voxelctl/admin/voxelctl_admin.h"

static void print(const struct voxeld_backup *backup, bool json)
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

static int run(struct ctl_globals *globals, int argc, char **argv)
{
    struct voxeld_client *client;
    struct voxeld_backup *backup = NULL;
    struct voxeld_error error;
    const char *name;
    int result = CTL_OK;

    if (ctl_plain_options(globals, &ctl_backup, argc, argv, 1, 1, &result)) {
        return result;
    }
    name = argv[optind];
    client = ctl_connect(globals);
    if (client == NULL) {
        return CTL_FAILED;
    }
    if (voxeld_make_backup(client, NULL, name, &backup, &error) != VOXELD_OK) {
        result = ctl_failed(name, &error);
    } else {
        print(backup, globals->json);
        result = ctl_flush();
    }
    voxeld_backup_free(backup);
    voxeld_close(client);
    return result;
}

const struct ctl_command ctl_backup = {
    .name = "backup",
    .summary = "copies the daemon's data directory while it runs",
    .help =
        "voxelctl backup - copies the daemon's data directory while it runs\n"
        "\n"
        "usage: voxelctl backup NAME [--json] [OPTIONS]\n"
        "\n"
        "The copy is backups/NAME in that directory, on the daemon's machine, and has\n"
        "all that was answered before. It is a data directory itself: to restore it,\n"
        "stop the daemon and name it as data_dir, or put it in the old one's place.\n"
        "Needs a token with the scope admin.\n"
        "\n"
        "The shared options: voxelctl --help. --timeout is to be as long as it takes.\n"
        "\n"
        "examples\n"
        "  voxelctl backup monday --timeout 60\n"
        "  voxelctl scene repair --dry-run /var/lib/voxeld/backups/monday\n",
    .run = run,
};
