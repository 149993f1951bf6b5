// SPDX-License-Identifier: Apache-2.0
/* What voxeld does with a configuration instead of serving: it checks it.
 * With `json` it prints JSON (server/tool_report.h). */
#ifndef VXD_SERVER_CONFIG_TOOL_H
#define VXD_SERVER_CONFIG_TOOL_H

#include <stdbool.h>

/* Checks a configuration file, and that the files and folders that it names exist and can be used by
 * whoever runs this; changes nothing. Prints "ok", or the key's path and the reason.
 * Returns the process's exit status: 0, or 2 where a daemon would not start with it. */
int vxd_config_tool_check(const char *path, bool json);

#endif
