// SPDX-License-Identifier: Apache-2.0
/* voxelctl scene repair: the daemon's program looks at the directory. It mends what it can when
 * it starts, so that there is nothing else to do here. */
#include "client/voxelctl/scene.h"

static int check(const struct ctl_scene_args *args)
{
    return ctl_scene_has(args, CTL_SCENE_DRY_RUN)
               ? CTL_OK
               : ctl_usage("scene repair", "no --dry-run: what can be mended the daemon "
                                           "mends when it starts");
}

static int repair(struct voxeld_client *client, const struct ctl_globals *globals,
                  struct ctl_scene_args *args)
{
    static const char *const places[] = {"voxeld"};
    char *words[] = {(char *)"voxeld", (char *)"--check-data", (char *)args->words[0],
                     NULL};

    (void)client;
    (void)globals;
    if (ctl_become("voxelctl scene repair", places, 1, words) == CTL_OK) {
        (void)fputs("It is the daemon's, voxeld, which lies beside voxelctl where both "
                    "are installed.\n",
                    stderr);
    }
    return CTL_FAILED;
}

const struct ctl_scene_sub ctl_scene_repair = {
    .command =
        {.name = "scene repair",
         .help =
             "voxelctl scene repair - says what is wrong with a data directory\n"
             "\n"
             "usage: voxelctl scene repair --dry-run DATA_DIR\n"
             "\n"
             "Runs voxeld --check-data: reads all of a directory that no daemon uses "
             "(a\n"
             "backup, say), changes nothing, and prints what is wrong and what a start "
             "would\n"
             "do about it. Ends with 0 where nothing would be lost, with 1 where "
             "something\n"
             "would, with 2 where it cannot be read. Needs no daemon running.\n"
             "\n"
             "example\n"
             "  voxelctl scene repair --dry-run /var/lib/voxeld/backups/monday\n"},
    .options = CTL_SCENE_BIT(CTL_SCENE_DRY_RUN),
    .n_min = 1,
    .n_max = 1,
    .is_local = true,
    .check = check,
    .run = repair,
};
