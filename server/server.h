// SPDX-License-Identifier: Apache-2.0
/* Makes the daemon's parts in order and tears them down in reverse: for main.c and tests. */
#ifndef VXD_SERVER_SERVER_H
#define VXD_SERVER_SERVER_H

#include "server/instance/instance.h"

/* Makes the parts between the log and the transports: engine context (backend "auto" takes
 * a GPU where one answers, else the CPU, and says which), tokens, metrics, slow log, scheduler.
 * *config is copied, *methods must outlive the server; the state is VXD_STATE_STARTING.
 * errors  what the parts give; then nothing is left to close */
enum vxd_status vxd_server_open(struct vxd_server *server,
                                const struct vxd_config *config,
                                const struct vxd_method_table *methods,
                                struct vxd_err *err);

/* The reverse; no transport may run and every request must be gone. */
void vxd_server_close(struct vxd_server *server);

/* Swaps in what may change at run time, once all of it is found valid, the tokens included.
 * errors  INVALID_ARGUMENT, NOT_FOUND; then nothing has changed */
enum vxd_status vxd_server_reload(struct vxd_server *server,
                                  const struct vxd_config *config, struct vxd_err *err);

#endif
