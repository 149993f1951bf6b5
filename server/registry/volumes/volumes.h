// SPDX-License-Identifier: Apache-2.0
/* Named volumes. */
#ifndef VXD_SERVER_REGISTRY_VOLUMES_VOLUMES_H
#define VXD_SERVER_REGISTRY_VOLUMES_VOLUMES_H

#include "server/registry/volumes/named_volumes.h"

#endif
