// SPDX-License-Identifier: Apache-2.0
/* What the methods on networks share: names, and parts of their replies. A reply's parts live
 * as long as the request. */
#ifndef VXD_SERVER_SERVICE_NETWORK_NETWORK_H
#define VXD_SERVER_SERVICE_NETWORK_NETWORK_H

#include "server/registry/networks/networks.h"
#include "voxeld/v1/network.pb-c.h"

Voxeld__V1__NetworkPrecision vxd_network_wire_precision(enum vxd_net_precision precision);
Voxeld__V1__NetworkOutputKind vxd_network_wire_kind(enum vxd_model_output_kind kind);
bool vxd_network_is_default_output(const struct vxd_model_output *output);
/* errors  INVALID_ARGUMENT  err.field */
enum vxd_status vxd_network_check_name(const char *name, const char *field,
                                       struct vxd_err *err);
/* errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_network_new_info(struct vxd_request *request,
                                     const struct vxd_network *network, bool with_layers,
                                     Voxeld__V1__NetworkInfo **out, struct vxd_err *err);
Voxeld__V1__NetworkTimings *
vxd_network_new_timings(struct vxd_request *request,
                        const struct vxd_network_timings *timings, struct vxd_err *err);
Voxeld__V1__Vec3 *vxd_network_new_vector(struct vxd_request *request, double x, double y,
                                         double z, struct vxd_err *err);

#endif
