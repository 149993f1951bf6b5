// SPDX-License-Identifier: Apache-2.0
/* How much of the machine this process may use. A context reads it once, when it is
 * created. */
#ifndef VXD_GPU_CORE_MACHINE_LIMITS_H
#define VXD_GPU_CORE_MACHINE_LIMITS_H

#include "proto/base/base.h"

/* Bytes of the machine's memory, or of the limit of the process's control groups (a
 * container's) if that is less; 1 GiB where neither is known. */
size_t vxd_machine_bytes(void);

/* The least memory.max of the version 2 control group that the file `membership` names
 * ("/proc/self/cgroup") and of its ancestors, in the directory `mount`
 * ("/sys/fs/cgroup"); SIZE_MAX without a limit. */
size_t vxd_cgroup_limit_bytes(const char *membership, const char *mount);

/* CPUs that are online, or the number that the control groups' quota allows, rounded
 * up; 1 or more. */
int vxd_machine_cpus(void);

/* The least quota of the same groups (cpu.max) and of those of version 1's controller
 * "cpu" (cpu.cfs_quota_us, in mount/cpu); INT_MAX without a limit. */
int vxd_cgroup_limit_cpus(const char *membership, const char *mount);

#endif
