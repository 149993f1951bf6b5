// SPDX-License-Identifier: Apache-2.0
/* What operators read beside the methods of admin.proto. */
#ifndef VXD_SERVER_SERVICE_ADMIN_ADMIN_H
#define VXD_SERVER_SERVICE_ADMIN_ADMIN_H

#include "proto/wire/wire.h"
#include "server/request/request.h"
#include "voxeld/v1/admin.pb-c.h"

struct vxd_server;

/* Appends the whole text exposition (version 0.0.4), with gauges read from the server. */
void vxd_metrics_write(struct vxd_server *server, struct vxd_text *text);

/* Sets who holds memory; device_bytes is what the engine has of the device in all.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_status_set_memory(struct vxd_request *request, uint64_t device_bytes,
                                      Voxeld__V1__StatusResponse *reply,
                                      struct vxd_err *err);

#endif
