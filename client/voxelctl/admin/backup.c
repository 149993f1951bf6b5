// SPDX-License-Identifier: Apache-2.0
/* voxelctl backup: makes one, lists them, removes one. */
#include <inttypes.h>

#include "client/c/include/voxeld_backup.h"
#include "client/voxelctl/generated/admin_args.h"

int ctl_check_backup(const struct ctl_admin_args *args)
{
    bool lists = ctl_admin_has(args, CTL_ADMIN_LIST);

    if (args->n_words + lists + (args->drop != NULL) != 1) {
        return ctl_usage("backup", "a NAME, --list or --drop NAME");
    }
    return CTL_OK;
}

static void print_made(const struct voxeld_backup *backup)
{
    char database[32];
    char snapshots[32];

    (void)printf("%s: a database of %s bytes, %" PRIu64 " snapshot files of %s (%" PRIu64
                 " of them links); %.0f ms\n",
                 backup->path, ctl_thousands(backup->n_database_bytes, database),
                 backup->n_snapshots, ctl_thousands(backup->n_snapshot_bytes, snapshots),
                 backup->n_linked, backup->elapsed_ms);
}

static int make(struct voxeld_client *client, const struct ctl_globals *globals,
                const char *name)
{
    struct voxeld_backup *backup;
    struct voxeld_error error;

    if (voxeld_make_backup(client, NULL, name, &backup, &error) != VOXELD_OK) {
        return ctl_failed(name, &error);
    }
    if (globals->json) {
        ctl_admin_backup_json(backup);
    } else {
        print_made(backup);
    }
    voxeld_backup_free(backup);
    return ctl_flush();
}

static void print_table(const struct voxeld_backups *found)
{
    struct ctl_table table;
    char text[CTL_NUMBER_BYTES];
    char date[CTL_DATE_BYTES];

    ctl_table_begin(&table, "backup|made|>database|>snapshots|>files of them");
    for (size_t i = 0; i < found->n_backups; i++) {
        const struct voxeld_backup_info *backup = &found->backups[i];

        ctl_table_cell(&table, "%s", backup->name);
        ctl_table_cell(&table, "%s", ctl_date(backup->made_ns, date));
        ctl_table_cell(&table, "%s", ctl_bytes(backup->n_database_bytes, text));
        ctl_table_cell(&table, "%s", ctl_bytes(backup->n_snapshot_bytes, text));
        ctl_table_cell(&table, "%" PRIu64, backup->n_snapshots);
    }
    ctl_table_end(&table);
}

static int list(struct voxeld_client *client, const struct ctl_globals *globals)
{
    struct voxeld_backup_list_request request = {0};
    struct voxeld_backups *found;
    char n_free[32];
    struct voxeld_error error;

    if (voxeld_backup_list(client, &request, &found, &error) != VOXELD_OK) {
        return ctl_failed("backups", &error);
    }
    if (globals->json) {
        ctl_admin_backups_json(found);
    } else {
        if (found->n_backups > 0) {
            print_table(found);
        }
        (void)printf("%zu backups, %s bytes free\n", found->n_backups,
                     ctl_thousands(found->n_free_bytes, n_free));
    }
    voxeld_backups_free(found);
    return ctl_flush();
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

int ctl_run_backup(struct voxeld_client *client, const struct ctl_globals *globals,
                   const struct ctl_admin_args *args)
{
    if (args->drop != NULL) {
        return drop(client, globals, args->drop);
    }
    return args->n_words > 0 ? make(client, globals, args->words[0])
                             : list(client, globals);
}
