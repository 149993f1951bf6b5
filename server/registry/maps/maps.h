// SPDX-License-Identifier: Apache-2.0
/* Named hash maps, and their files. */
#ifndef VXD_SERVER_REGISTRY_MAPS_MAPS_H
#define VXD_SERVER_REGISTRY_MAPS_MAPS_H

#include "server/registry/maps/map_file.h"
#include "server/registry/maps/named_maps.h"

#endif
