// SPDX-License-Identifier: Apache-2.0
/* Online backup, restoration as of a moment, and what voxeld checks and mends in a data directory. */
#ifndef VXD_SERVER_DURABLE_MAINTENANCE_MAINTENANCE_H
#define VXD_SERVER_DURABLE_MAINTENANCE_MAINTENANCE_H

#include "server/durable/maintenance/backup.h"
#include "server/durable/maintenance/repair.h"
#include "server/durable/maintenance/restore.h"
#include "server/durable/maintenance/verify.h"

#endif
