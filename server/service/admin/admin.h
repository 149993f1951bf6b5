// SPDX-License-Identifier: Apache-2.0
/* What operators read beside the methods of admin.proto. */
#ifndef VXD_SERVER_SERVICE_ADMIN_ADMIN_H
#define VXD_SERVER_SERVICE_ADMIN_ADMIN_H

#include "proto/wire/wire.h"

struct vxd_server;

/* Appends the whole text exposition (version 0.0.4), with gauges read from the server. */
void vxd_metrics_write(struct vxd_server *server, struct vxd_text *text);

#endif
