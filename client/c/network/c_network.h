// SPDX-License-Identifier: Apache-2.0
/* What running a network takes beside what is generated. */
#ifndef VXD_CLIENT_C_NETWORK_C_NETWORK_H
#define VXD_CLIENT_C_NETWORK_C_NETWORK_H

#include "client/c/call/call.h"
#include "client/c/include/voxeld_net.h"

/* Opens the outputs of the reply that *inference holds, whose items are there, and checks both
 * against each other and the request.
 * errors  INTERNAL            the reply contradicts itself or the request
 *         RESOURCE_EXHAUSTED */
enum vxd_status vxd_inference_outputs(const struct voxeld_infer_request *request,
                                      struct voxeld_inference *inference,
                                      struct vxd_err *err);

#endif
