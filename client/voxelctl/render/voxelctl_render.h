// SPDX-License-Identifier: Apache-2.0
/* Commands that draw scenes: voxelctl scene render and scene show. */
#ifndef VXD_CLIENT_VOXELCTL_RENDER_VOXELCTL_RENDER_H
#define VXD_CLIENT_VOXELCTL_RENDER_VOXELCTL_RENDER_H

#include "client/voxelctl/cli/cli.h"

/* argv[0] is "render" or "show". Returns what the process ends with. */
int ctl_render_run(struct ctl_globals *globals, int argc, char **argv);
int ctl_show_run(struct ctl_globals *globals, int argc, char **argv);

#endif
