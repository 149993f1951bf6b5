// SPDX-License-Identifier: Apache-2.0
/* The list of loaded networks in a data directory. */
#ifndef VXD_SERVER_REGISTRY_NETWORKS_NETWORKS_KEPT_H
#define VXD_SERVER_REGISTRY_NETWORKS_NETWORKS_KEPT_H

#include "server/registry/networks/named_networks.h"

/* Writes which networks are loaded; only one thread at a time.
 * errors  as vxd_file_fail */
enum vxd_status vxd_networks_write_list(struct vxd_names *networks,
                                        const struct vxd_data_dir *dir,
                                        struct vxd_err *err);

/* Loads those that the list names and that are not loaded; logs what cannot be loaded.
 * errors  as vxd_file_fail; DATA_LOSS: the file is another; what vxd_queue_create gives */
enum vxd_status vxd_networks_read_list(struct vxd_names *networks,
                                       const struct vxd_data_dir *dir,
                                       struct vxd_err *err);

#endif
