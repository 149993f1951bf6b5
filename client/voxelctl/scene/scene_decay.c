// SPDX-License-Identifier: Apache-2.0
/* voxelctl scene decay: one law, by which the log-odds of a scene fade. */
#include "client/voxelctl/scene/scene_commands.h"

int ctl_scene_check_decay(const struct ctl_scene_args *args)
{
    int n_laws = ctl_scene_has(args, CTL_SCENE_HALF_LIFE) +
                 ctl_scene_has(args, CTL_SCENE_FACTOR) +
                 ctl_scene_has(args, CTL_SCENE_STEP);

    return n_laws == 1 ? CTL_OK
                       : ctl_usage("scene decay",
                                   "%d of --half-life, --factor and "
                                   "--step are given, it must be one",
                                   n_laws);
}
