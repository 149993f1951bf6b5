// SPDX-License-Identifier: Apache-2.0
/* voxelctl scene repair: the daemon's program checks the directory, or mends it. */
#include "client/voxelctl/scene/scene_commands.h"

static int repair(struct voxeld_client *client, const struct ctl_globals *globals,
                  struct ctl_scene_args *args)
{
    bool only_looks = ctl_scene_has(args, CTL_SCENE_DRY_RUN);
    const char *const words[] = {only_looks ? "--check-data" : "--repair-data",
                                 args->words[0]};

    (void)client;
    return ctl_become_daemon(globals, "voxelctl scene repair", words, 2);
}

const struct ctl_scene_sub ctl_scene_repair = {
    .command =
        {.name = "scene repair",
         .help =
             "voxelctl scene repair - mends a data directory, or says what is wrong\n"
             "\n"
             "usage: voxelctl scene repair [--dry-run] DATA_DIR\n"
             "\n"
             "Of a directory that no daemon uses; needs none running. Damaged rows\n"
             "and files are set aside, never deleted. A database that cannot be\n"
             "read whole is made anew from what can be read and from snapshot files,\n"
             "and a start goes on from there. Prints what was done. Ends with 0,\n"
             "with 1 where something is lost, with 2 where it cannot be mended. Copy\n"
             "the directory before.\n"
             "\n"
             "  --dry-run  changes nothing; reads all of it (a backup, say) and\n"
             "             says what is wrong and what a start would do about it.\n"
             "             Ends with 1 where something would be lost, with 2 where\n"
             "             it cannot be read\n"
             "\n"
             "examples\n"
             "  voxelctl scene repair --dry-run /var/lib/voxeld/backups/monday\n"
             "  voxelctl scene repair /var/lib/voxeld\n"},
    .options = CTL_SCENE_BIT(CTL_SCENE_DRY_RUN),
    .n_min = 1,
    .n_max = 1,
    .is_local = true,
    .run = repair,
};
