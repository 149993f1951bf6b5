// SPDX-License-Identifier: Apache-2.0
/* protobuf over nng: the server of nng's request/reply protocol for its peers over ipc and tcp. A
 * connection may have many requests under way; each is answered when it is done. */
#ifndef VXD_SERVER_TRANSPORT_NNG_NNG_H
#define VXD_SERVER_TRANSPORT_NNG_NNG_H

#include "server/instance/instance.h"

struct vxd_rpc;

/* Opens every listener of server->config; fills server->rpc_bound.
 * errors  INVALID_ARGUMENT, UNAVAILABLE (address in use; names it), RESOURCE_EXHAUSTED */
enum vxd_status vxd_rpc_start(struct vxd_server *server, struct vxd_rpc **out,
                              struct vxd_err *err);

/* From now on new connections are refused; standing ones go on. */
void vxd_rpc_refuse_new(struct vxd_rpc *rpc);

/* Waits until replies in flight were sent (bounded), then closes. No request of this
 * transport may be unanswered. */
void vxd_rpc_stop(struct vxd_rpc *rpc);

#endif
