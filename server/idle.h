// SPDX-License-Identifier: Apache-2.0
/* Gives memory back to the system that the daemon has not used for a while. */
#ifndef VXD_SERVER_IDLE_H
#define VXD_SERVER_IDLE_H

#include "server/instance/instance.h"

struct vxd_idle {
    /* The least since malloc last gave memory back; 0 = not looked at. */
    uint64_t resident_bytes;
    uint64_t free_bytes;
    int64_t trimmed_ns; /* when it last looked; 0 = never */
};

/* Frees the engine's blocks that nobody took since it last did so, and has malloc give back what
 * it holds, where much more is resident than was. While a request runs it does so once a minute
 * only, since on a GPU that may wait for what runs there. To be called every few seconds, by one
 * thread. */
void vxd_idle_tick(struct vxd_server *server, struct vxd_idle *idle);

#endif
