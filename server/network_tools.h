// SPDX-License-Identifier: Apache-2.0
/* What voxeld does with a network's files instead of serving: voxelctl net check and net init. */
#ifndef VXD_SERVER_NETWORK_TOOLS_H
#define VXD_SERVER_NETWORK_TOOLS_H

#include <stdbool.h>
#include <stdint.h>

/* Reads PATH (a network's .json) and its weights as loading would, builds it on the CPU and
 * runs it once; prints what it is on standard output, or what is wrong on standard error.
 * Without its weights file the config is checked alone, with random weights, and that is said.
 * Returns the process's exit status: 0, or 2 where something is wrong. */
int vxd_network_tool_check(const char *path);

/* Writes the weights file that PATH names, with random weights of the seed; a file that is
 * there stays unless replace. Returns as above. */
int vxd_network_tool_init(const char *path, uint64_t seed, bool replace);

#endif
