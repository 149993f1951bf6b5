// SPDX-License-Identifier: Apache-2.0
/* Journal records of scenes and of maps: from edits to bytes and back. */
#ifndef VXD_SERVER_DURABLE_RECORD_RECORD_H
#define VXD_SERVER_DURABLE_RECORD_RECORD_H

#include "server/durable/record/map_record.h"
#include "server/durable/record/scene_record.h"

#endif
