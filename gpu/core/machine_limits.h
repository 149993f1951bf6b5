// SPDX-License-Identifier: Apache-2.0
/* How much of the machine this process may use. Read once, when a context is created. */
#ifndef VXD_GPU_CORE_MACHINE_LIMITS_H
#define VXD_GPU_CORE_MACHINE_LIMITS_H

#include "proto/base/base.h"

/* Bytes of the machine's memory, or what the process's control groups leave of it (a
 * container's limit); 1 GiB where neither is known. */
size_t vxd_machine_bytes(void);

/* Least memory.max of the version 2 control group named in the file `membership`
 * ("/proc/self/cgroup") and of the groups above it, below the directory `mount`
 * ("/sys/fs/cgroup"); SIZE_MAX where nothing limits. */
size_t vxd_cgroup_limit_bytes(const char *membership, const char *mount);

/* CPUs that are online, or as many as the control groups' quota keeps busy, rounded up; 1 or
 * more. */
int vxd_machine_cpus(void);

/* Least quota of the same groups (cpu.max), and of those of version 1's controller "cpu"
 * (cpu.cfs_quota_us, below mount/cpu); INT_MAX where nothing limits. */
int vxd_cgroup_limit_cpus(const char *membership, const char *mount);

#endif
