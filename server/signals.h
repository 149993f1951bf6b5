// SPDX-License-Identifier: Apache-2.0
/* Signals as events. A thread takes them by sigwait and writes one byte for each into a
 * pipe, which main.c reads. The loss of the engine comes through the same pipe, by
 * vxd_server_stop. */
#ifndef VXD_SERVER_SIGNALS_H
#define VXD_SERVER_SIGNALS_H

#include "proto/base/base.h"

struct vxd_signals;

/* Blocks the signals in the calling thread and so in all made later: call it first. SIGPIPE
 * is ignored from here on. A second SIGTERM or SIGINT, and SIGALRM, end the process at once
 * with status 1. errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_signals_start(struct vxd_signals **out, struct vxd_err *err);
void vxd_signals_stop(struct vxd_signals *signals);

/* Returns the pipe's end for vxd_server.event_fd. */
int vxd_signals_fd(const struct vxd_signals *signals);

/* Blocks until the next event (enum vxd_event), at most timeout_ms (-1 = for ever); 0 when none came. */
int vxd_signals_wait(struct vxd_signals *signals, int timeout_ms);

#endif
