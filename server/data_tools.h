// SPDX-License-Identifier: Apache-2.0
/* What voxeld does with a data directory instead of serving: voxelctl scene repair.
 * With `json` they print JSON (server/tool_report.h). */
#ifndef VXD_SERVER_DATA_TOOLS_H
#define VXD_SERVER_DATA_TOOLS_H

#include <stdbool.h>

/* Checks all that a data directory holds without changing it. It prints each problem,
 * with what a start would do about it, and a summary on standard output. Returns the
 * process's exit status: 0, 1 where a start would lose something, or 2 where the
 * directory cannot be checked. */
int vxd_data_tool_check(const char *path, bool json);

/* Repairs a data directory (server/durable/maintenance/repair.h); prints each thing done
 * and a summary. Returns the process's exit status: 0, 1 where something is lost, or 2
 * where it cannot be repaired. */
int vxd_data_tool_repair(const char *path, bool json);

/* Makes the data directory `to` from a backup and an archive, as of `until` (vxd_restore_parse), and
 * prints what it is; 0, or 2 and how far it can be restored. */
int vxd_data_tool_restore(const char *backup, const char *archive, const char *until,
                          const char *to, bool json);

#endif
