// SPDX-License-Identifier: Apache-2.0
/* Named networks and their versions, and warming them up. */
#ifndef VXD_SERVER_REGISTRY_NETWORKS_NETWORKS_H
#define VXD_SERVER_REGISTRY_NETWORKS_NETWORKS_H

#include "server/registry/networks/named_networks.h"
#include "server/registry/networks/networks_warm_up.h"

#endif
