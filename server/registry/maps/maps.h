// SPDX-License-Identifier: Apache-2.0
/* Named hash maps, how they are journalled, and their files. */
#ifndef VXD_SERVER_REGISTRY_MAPS_MAPS_H
#define VXD_SERVER_REGISTRY_MAPS_MAPS_H

#include "server/registry/maps/map_file.h"
#include "server/registry/maps/maps_journal.h"
#include "server/registry/maps/named_maps.h"

#endif
