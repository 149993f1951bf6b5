// SPDX-License-Identifier: Apache-2.0
/* What voxeld does with a network's files instead of serving: voxelctl net check and net init.
 * With `json` they print JSON (server/tool_report.h). */
#ifndef VXD_SERVER_NETWORK_TOOLS_H
#define VXD_SERVER_NETWORK_TOOLS_H

#include <stdbool.h>
#include <stdint.h>

/* Reads PATH (a network's .json) and its weights as loading would, builds the network on
 * the CPU and runs it once. It prints what the network is on standard output, or what is
 * wrong on standard error. Where there is no weights file, only the config is checked,
 * with random weights, and the output says so. Returns the process's exit status: 0, or 2
 * where something is wrong. */
int vxd_network_tool_check(const char *path, bool json);

/* Writes the weights file that PATH names, with random weights of the seed; a file that is
 * there stays unless replace. Returns as above. */
int vxd_network_tool_init(const char *path, uint64_t seed, bool replace, bool json);

#endif
