// SPDX-License-Identifier: Apache-2.0
/* What the operating system says about this process. */
#ifndef VXD_SERVER_OBSERVE_PROCESS_H
#define VXD_SERVER_OBSERVE_PROCESS_H

#include "proto/base/base.h"

struct vxd_process_usage {
    uint64_t resident_bytes;
    uint64_t virtual_bytes;
    double cpu_seconds;
    uint64_t n_open_fds;
};

/* Values that /proc does not show are 0. It lists all descriptors, which takes tens of microseconds. */
void vxd_process_get_usage(struct vxd_process_usage *out);

/* Its memory alone, in a few microseconds. */
void vxd_process_get_memory(uint64_t *resident_bytes, uint64_t *virtual_bytes);

/* Memory of malloc: handed out (the engine's kept blocks are part of it on a CPU), and free but held
 * for the next. 0 without glibc. It looks at every free piece, so it is for those who ask seldom. */
void vxd_process_get_heap(uint64_t *used_bytes, uint64_t *free_bytes);

#endif
