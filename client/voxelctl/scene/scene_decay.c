// SPDX-License-Identifier: Apache-2.0
/* voxelctl scene decay: lets the log-odds of a scene fade. */
#include <inttypes.h>

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

void ctl_scene_print_decayed(const struct ctl_scene_args *args,
                             const struct voxeld_scene_decayed *done)
{
    (void)printf("%s: version %" PRIu64 ", log-odds times %.6g less %.6g; %" PRIu64
                 " occupied voxels became unknown; %.2f ms in the engine\n",
                 args->words[0], done->version, done->factor, done->step, done->n_removed,
                 done->engine_ms);
}
