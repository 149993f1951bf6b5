// SPDX-License-Identifier: Apache-2.0
/* Addresses and connections of sockets of our own; direct.c alone uses this. */
#ifndef VXD_CLIENT_C_DIRECT_DIRECT_INTERNAL_H
#define VXD_CLIENT_C_DIRECT_DIRECT_INTERNAL_H

#include <nng/nng.h>
#include <nng/supplemental/util/platform.h>
#include <stdbool.h>

struct vxd_direct;

enum {
    VXD_DIRECT_HOST_BYTES = 128 /* also of a socket's path */
};

struct vxd_direct_address {
    bool is_ipc;
    char host[VXD_DIRECT_HOST_BYTES]; /* or the path, on ipc */
    char port[8];
};

/* Reads ipc:///PATH and tcp://NUMBERS:PORT. False: another kind of address, or a host's name, which
 * nng may know. */
bool vxd_direct_read_url(const char *url, struct vxd_direct_address *out);

/* A connected socket that does not block, after both sides' greetings; -1 where there is none
 * within a second, nor by the deadline. */
int vxd_direct_dial(const struct vxd_direct_address *address, nng_time deadline);

enum {
    VXD_DIRECT_IDLE_MS = 10000
};

/* Closes what has been idle for so long at this time (nng_clock()), but for the connection that
 * was used last. */
void vxd_direct_close_idle(struct vxd_direct *direct, nng_time now);

#endif
