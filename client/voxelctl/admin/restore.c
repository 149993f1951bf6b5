// SPDX-License-Identifier: Apache-2.0
/* voxelctl restore: the daemon's program makes a data directory of a backup and an archive. */
#include "client/voxelctl/admin/voxelctl_admin.h"

struct restore_args {
    const char *archive;
    const char *until;
};

enum {
    OPT_ARCHIVE = CTL_OPT_FIRST_OWN,
    OPT_UNTIL
};

static const struct ctl_own_option known[] = {
    {"archive", "a folder", false},
    {"until", "a time, SCENE@VERSION or end", false},
};

static bool take(void *args, int id, const char *value)
{
    struct restore_args *out = args;

    if (id == OPT_ARCHIVE) {
        out->archive = value;
    } else {
        out->until = value;
    }
    return true;
}

static int run(struct ctl_globals *globals, int argc, char **argv)
{
    struct restore_args args = {0};
    const struct ctl_own_options own = {.known = known,
                                        .n_known = sizeof known / sizeof known[0],
                                        .taken = 3,
                                        .n_min = 2,
                                        .n_max = 2,
                                        .take = take,
                                        .args = &args};
    int result;

    if (ctl_take_own_options(globals, &ctl_restore, &own, argc, argv, &result)) {
        return result;
    }
    if (args.archive == NULL || args.until == NULL) {
        return ctl_usage("restore", "--archive DIR and --until WHEN are needed");
    }
    {
        const char *const words[] = {"--restore-data", argv[optind],    "--archive",
                                     args.archive,     "--until",       args.until,
                                     "--to",           argv[optind + 1]};

        return ctl_become_daemon(globals, "voxelctl restore", words,
                                 sizeof words / sizeof words[0]);
    }
}

const struct ctl_command ctl_restore = {
    .name = "restore",
    .summary = "makes a data directory as of a moment, of a backup and the archive",
    .help =
        "voxelctl restore - makes a data directory as of a moment\n"
        "\n"
        "usage: voxelctl restore BACKUP DIR --archive ARCHIVE_DIR --until WHEN\n"
        "\n"
        "DIR, which must not exist, becomes what the data directory was then: the\n"
        "backup and the changes after it that the archive has (archive_dir in the\n"
        "daemon's configuration). Needs no daemon, and changes neither of them. Start\n"
        "the daemon with DIR as data_dir: everything has another generation then.\n"
        "Saved maps and loaded networks are those of the backup.\n"
        "\n"
        "  --archive ARCHIVE_DIR  the archive; files of other directories may be in it\n"
        "  --until WHEN           a time in UTC, 2026-11-27T10:15:00Z, with a fraction\n"
        "                         of a second where that matters: all that was changed\n"
        "                         until then. SCENE@VERSION: up to the change that made\n"
        "                         the version. end: all that the archive has\n"
        "\n"
        "Where files of the archive are missing or damaged, or it ends before WHEN,\n"
        "nothing is made; ends with 2 and says which, and until when it can be\n"
        "restored.\n"
        "\n"
        "examples\n"
        "  voxelctl restore backups/monday /var/lib/voxeld-restored \\\n"
        "           --archive /mnt/archive --until yard@412\n",
    .run = run,
};
