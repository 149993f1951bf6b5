// SPDX-License-Identifier: Apache-2.0
/* What running a network takes. */
#ifndef VXD_CLIENT_C_NETWORK_NET_CALL_H
#define VXD_CLIENT_C_NETWORK_NET_CALL_H

#include "client/c/call/call.h"
#include "client/c/include/voxeld_net.h"

/* net_reply.c: opens the reply. Takes call->reply, on failure too.
 * errors  INTERNAL            the reply contradicts itself or the request
 *         RESOURCE_EXHAUSTED */
enum vxd_status vxd_inference_open(struct vxd_exchange *call,
                                   const struct voxeld_infer_request *request,
                                   struct voxeld_inference **out);

#endif
