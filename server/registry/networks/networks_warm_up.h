// SPDX-License-Identifier: Apache-2.0
/* A network's first run. */
#ifndef VXD_SERVER_REGISTRY_NETWORKS_NETWORKS_WARM_UP_H
#define VXD_SERVER_REGISTRY_NETWORKS_NETWORKS_WARM_UP_H

#include "server/registry/networks/named_networks.h"

/* Runs the network once on a few voxels, so that no request waits for what the engine does
 * only once. Blocking.
 * errors  what the network's layers report: it cannot be used then */
enum vxd_status vxd_network_warm_up(struct vxd_network *network, struct vxd_queue *queue,
                                    struct vxd_err *err);

/* Measures how long a voxel takes, by a run on a few thousand of them, and notes it in
 * network->speed. Of networks that look at a small space nothing is measured. Blocking.
 * errors  what the network's layers report */
enum vxd_status vxd_network_measure(struct vxd_network *network, struct vxd_queue *queue,
                                    struct vxd_err *err);

#endif
