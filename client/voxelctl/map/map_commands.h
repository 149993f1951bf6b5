// SPDX-License-Identifier: Apache-2.0
/* What the subcommands of voxelctl map share: each prints what its generated manual promises. */
#ifndef VXD_CLIENT_VOXELCTL_MAP_MAP_COMMANDS_H
#define VXD_CLIENT_VOXELCTL_MAP_MAP_COMMANDS_H

#include "client/voxelctl/generated/map_args.h"

/* Runs one subcommand and returns the exit status. */
typedef int ctl_map_run(struct voxeld_client *client, const struct ctl_globals *globals,
                        const struct ctl_map_args *args);

ctl_map_run ctl_map_create;
ctl_map_run ctl_map_drop;
ctl_map_run ctl_map_list;
ctl_map_run ctl_map_info;
ctl_map_run ctl_map_insert;
ctl_map_run ctl_map_find;
ctl_map_run ctl_map_erase;
ctl_map_run ctl_map_update;
ctl_map_run ctl_map_export;
ctl_map_run ctl_map_save;
ctl_map_run ctl_map_load;
ctl_map_run ctl_map_merge;

/* Check what options cannot say: CTL_OK, or CTL_USAGE after a message. */
int ctl_map_check_erase(const struct ctl_map_args *args);
int ctl_map_check_export(const struct ctl_map_args *args);
int ctl_map_check_out(const struct ctl_map_args *args);

#endif
