// SPDX-License-Identifier: Apache-2.0
/* HTTP/1.1 by libmicrohttpd: JSON, protobuf and file bodies, views, health, metrics. */
#ifndef VXD_SERVER_TRANSPORT_HTTP_HTTP_H
#define VXD_SERVER_TRANSPORT_HTTP_HTTP_H

#include "server/instance/instance.h"

struct vxd_http;

/* Listens on server->config.http; fills server->http_bound ("127.0.0.1:8420").
 * errors  INVALID_ARGUMENT, UNAVAILABLE (address in use), RESOURCE_EXHAUSTED */
enum vxd_status vxd_http_start(struct vxd_server *server, struct vxd_http **out,
                               struct vxd_err *err);

/* Listens on server->config.foxglove, for viewers that speak the Foxglove protocol and nothing else;
 * fills server->foxglove_bound. errors  as vxd_http_start */
enum vxd_status vxd_http_start_foxglove(struct vxd_server *server, struct vxd_http **out,
                                        struct vxd_err *err);

/* Accepts no more connections; open ones go on. */
void vxd_http_refuse_new(struct vxd_http *http);

/* Resumes whatever is suspended, waits for replies to be sent (bounded), stops. */
void vxd_http_stop(struct vxd_http *http);

#endif
