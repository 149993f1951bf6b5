// SPDX-License-Identifier: Apache-2.0
/* Named pose graphs: the list of them, and how durable ones are journalled. */
#ifndef VXD_SERVER_REGISTRY_POSEGRAPHS_POSEGRAPHS_H
#define VXD_SERVER_REGISTRY_POSEGRAPHS_POSEGRAPHS_H

#include "server/registry/posegraphs/named_posegraphs.h"
#include "server/registry/posegraphs/posegraphs_journal.h"

#endif
