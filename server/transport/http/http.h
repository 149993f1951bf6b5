// SPDX-License-Identifier: Apache-2.0
/* HTTP/1.1 by libmicrohttpd: JSON, protobuf and file bodies, views, health, metrics. */
#ifndef VXD_SERVER_TRANSPORT_HTTP_HTTP_H
#define VXD_SERVER_TRANSPORT_HTTP_HTTP_H

#include "server/instance/instance.h"

struct vxd_http;

/* Listens on server->config.http; fills server->http_bound ("127.0.0.1:8420"). passed_fd is a
 * socket that listens there already and that the supervisor goes on holding, -1 = none. It is
 * closed at the end or where this fails.
 * errors  INVALID_ARGUMENT, UNAVAILABLE (address in use), RESOURCE_EXHAUSTED */
enum vxd_status vxd_http_start(struct vxd_server *server, int passed_fd,
                               struct vxd_http **out, struct vxd_err *err);

/* Listens on server->config.foxglove, for viewers that speak the Foxglove protocol and nothing else;
 * fills server->foxglove_bound. errors  as vxd_http_start */
enum vxd_status vxd_http_start_foxglove(struct vxd_server *server, struct vxd_http **out,
                                        struct vxd_err *err);

/* Accepts no more connections; open ones go on. The kernel refuses what comes, but for a socket that
 * was passed: there connections wait for the next daemon. */
void vxd_http_refuse_new(struct vxd_http *http);

/* Connections that are open. */
size_t vxd_http_count_connections(const struct vxd_http *http);

/* Resumes whatever is suspended, waits for replies to be sent (bounded), stops. */
void vxd_http_stop(struct vxd_http *http);

#endif
