// SPDX-License-Identifier: Apache-2.0
/* Notifies systemd of what the daemon does, without libsystemd. */
#ifndef VXD_SERVER_NOTIFY_H
#define VXD_SERVER_NOTIFY_H

#include "proto/base/base.h"

/* Sends "READY=1" and the like to $NOTIFY_SOCKET; does nothing where it is not set. A
 * failure is logged and changes nothing else. */
void vxd_notify(const char *state);

#endif
