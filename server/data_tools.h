// SPDX-License-Identifier: Apache-2.0
/* What voxeld does with a data directory instead of serving: voxelctl scene repair. */
#ifndef VXD_SERVER_DATA_TOOLS_H
#define VXD_SERVER_DATA_TOOLS_H

/* Looks at all that a data directory holds without changing it; prints each problem, with what a
 * start would do about it, and a summary on standard output. Returns the process's exit status:
 * 0, 1 where a start would lose something, or 2 where it cannot be looked at. */
int vxd_data_tool_check(const char *path);

/* Mends it (durable/repair.h); prints each thing done and a summary. Returns the process's exit
 * status: 0, 1 where something is lost, or 2 where it cannot be mended. */
int vxd_data_tool_repair(const char *path);

#endif
