// SPDX-License-Identifier: Apache-2.0
/* voxelctl net check, init: commands of files, which the daemon does. */
#include "client/voxelctl/generated/network_args.h"

/* The daemon reads networks, clients cannot. */
int ctl_network_check(const struct ctl_globals *globals,
                      const struct ctl_network_args *args)
{
    const char *const words[] = {"--check-network", args->words[0]};

    return ctl_become_daemon(globals, "voxelctl net check", words, 2);
}

int ctl_network_init(const struct ctl_globals *globals,
                     const struct ctl_network_args *args)
{
    bool replaces = ctl_network_has(args, CTL_NETWORK_REPLACE);
    const char *const words[] = {"--init-network", args->words[0], "--seed",
                                 args->seed != NULL ? args->seed : "1", "--replace"};

    return ctl_become_daemon(globals, "voxelctl net init", words, replaces ? 5 : 4);
}
