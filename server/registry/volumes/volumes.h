// SPDX-License-Identifier: Apache-2.0
/* Named volumes: the list of them, and how durable ones are journalled. */
#ifndef VXD_SERVER_REGISTRY_VOLUMES_VOLUMES_H
#define VXD_SERVER_REGISTRY_VOLUMES_VOLUMES_H

#include "server/registry/volumes/named_volumes.h"
#include "server/registry/volumes/volumes_journal.h"

#endif
