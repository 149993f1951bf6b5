// SPDX-License-Identifier: Apache-2.0
/* voxelctl volume clear, decay: of which part. */
#include "client/voxelctl/volume/volume_commands.h"

static int check_part(const char *command, const struct ctl_volume_args *args)
{
    int n = ctl_volume_has(args, CTL_VOLUME_ALL) + ctl_volume_has(args, CTL_VOLUME_BOX) +
            ctl_volume_has(args, CTL_VOLUME_OUTSIDE);

    return n == 1 ? CTL_OK
                  : ctl_usage(command, "one of --all, --box and --outside is needed");
}

int ctl_volume_check_clear(const struct ctl_volume_args *args)
{
    return check_part("volume clear", args);
}

int ctl_volume_check_decay(const struct ctl_volume_args *args)
{
    return check_part("volume decay", args);
}
