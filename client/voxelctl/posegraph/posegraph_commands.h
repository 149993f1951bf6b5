// SPDX-License-Identifier: Apache-2.0
/* What the subcommands of voxelctl posegraph share: each prints what its generated manual promises. */
#ifndef VXD_CLIENT_VOXELCTL_POSEGRAPH_POSEGRAPH_COMMANDS_H
#define VXD_CLIENT_VOXELCTL_POSEGRAPH_POSEGRAPH_COMMANDS_H

#include "client/voxelctl/generated/posegraph_args.h"

/* Runs one subcommand and returns the exit status. */
typedef int ctl_posegraph_run_fn(struct voxeld_client *client,
                                 const struct ctl_globals *globals,
                                 const struct ctl_posegraph_args *args);

ctl_posegraph_run_fn ctl_posegraph_create;
ctl_posegraph_run_fn ctl_posegraph_drop;
ctl_posegraph_run_fn ctl_posegraph_list;
ctl_posegraph_run_fn ctl_posegraph_info;
ctl_posegraph_run_fn ctl_posegraph_load;
ctl_posegraph_run_fn ctl_posegraph_optimize;
ctl_posegraph_run_fn ctl_posegraph_save;
ctl_posegraph_run_fn ctl_posegraph_keyframe;
ctl_posegraph_run_fn ctl_posegraph_relocalize;

#endif
