// SPDX-License-Identifier: Apache-2.0
/* What the methods on networks share: parts of their replies, in a request's decoder. */
#ifndef VXD_SERVER_SERVICE_NETWORK_NETWORK_H
#define VXD_SERVER_SERVICE_NETWORK_NETWORK_H

#include "server/registry/networks/networks.h"
#include "voxeld/v1/network.pb-c.h"

Voxeld__V1__NetworkPrecision vxd_network_wire_precision(enum vxd_net_precision precision);
Voxeld__V1__NetworkOutputKind vxd_network_wire_kind(enum vxd_model_output_kind kind);
bool vxd_network_is_default_output(const struct vxd_model_output *output);
/* Describes a network; and adds its layers.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_network_new_info(struct vxd_decoder *decoder,
                                     const struct vxd_network *network,
                                     Voxeld__V1__NetworkInfo **out, struct vxd_err *err);
enum vxd_status vxd_network_add_layers(struct vxd_decoder *decoder,
                                       const struct vxd_model *model,
                                       Voxeld__V1__NetworkInfo *info,
                                       struct vxd_err *err);
/* NULL after an error: RESOURCE_EXHAUSTED. */
Voxeld__V1__NetworkTimings *
vxd_network_new_timings(struct vxd_decoder *decoder,
                        const struct vxd_network_timings *timings, struct vxd_err *err);
Voxeld__V1__Vec3 *vxd_network_new_vector(struct vxd_decoder *decoder, double x, double y,
                                         double z, struct vxd_err *err);

#endif
