// SPDX-License-Identifier: Apache-2.0
/* What systemd and the daemon tell each other, without libsystemd: states, the watchdog, and a
 * socket that systemd listens on while no daemon runs. */
#ifndef VXD_SERVER_NOTIFY_H
#define VXD_SERVER_NOTIFY_H

#include "proto/base/base.h"

/* Sends "READY=1" and the like to $NOTIFY_SOCKET; does nothing where it is not set. A
 * failure is logged and changes nothing else. */
void vxd_notify(const char *state);

/* How often "WATCHDOG=1" is due, half of what $WATCHDOG_USEC allows; -1 = no watchdog waits. */
int vxd_notify_watchdog_ms(void);

/* Takes the TCP socket that systemd listens on for us (sd_listen_fds(3)): *out is the
 * descriptor, -1 where there is none, and `address` what it is bound to, as listen.http has
 * it. Descriptors beyond it are closed. Once, before threads.
 * errors  INVALID_ARGUMENT  what was passed is no TCP socket that listens */
enum vxd_status vxd_notify_take_listener(int *out, char *address, size_t n_bytes,
                                         struct vxd_err *err);

#endif
