// SPDX-License-Identifier: Apache-2.0
/* What the calls on networks share. */
#ifndef VXD_CLIENT_C_NETWORK_NET_CALL_H
#define VXD_CLIENT_C_NETWORK_NET_CALL_H

#include "client/c/call/call.h"
#include "client/c/include/voxeld_net.h"

/* net_reply.c opens replies. Both functions take call->reply, on failure too.
 * errors  INTERNAL            the reply contradicts itself or the request
 *         RESOURCE_EXHAUSTED */
enum vxd_status vxd_networks_open(struct vxd_exchange *call,
                                  Voxeld__V1__NetworkInfo *const *networks, size_t n,
                                  struct voxeld_networks **out);
enum vxd_status vxd_inference_open(struct vxd_exchange *call,
                                   const struct voxeld_infer_request *request,
                                   struct voxeld_inference **out);

#endif
