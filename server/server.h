// SPDX-License-Identifier: Apache-2.0
/* Makes the daemon's parts in order and tears them down in reverse: for main.c and tests. */
#ifndef VXD_SERVER_SERVER_H
#define VXD_SERVER_SERVER_H

#include "server/instance/instance.h"

/* Makes the parts between the log and the transports: engine context (backend "auto" uses
 * a GPU where one works, otherwise the CPU, and logs which), tokens, metrics, slow log,
 * registries, scheduler. *config is copied, *methods must outlive the server; the state
 * is VXD_STATE_STARTING.
 * errors  those of the parts; then nothing is left to close */
enum vxd_status vxd_server_open(struct vxd_server *server,
                                const struct vxd_config *config,
                                const struct vxd_method_table *methods,
                                struct vxd_err *err);

/* Tears the parts down in reverse. No transport may run, and every request must be gone. */
void vxd_server_close(struct vxd_server *server);

/* Replaces what may change at run time, once all of it was found valid, the tokens
 * included.
 * errors  INVALID_ARGUMENT, NOT_FOUND; then nothing has changed */
enum vxd_status vxd_server_reload(struct vxd_server *server,
                                  const struct vxd_config *config, struct vxd_err *err);

#endif
