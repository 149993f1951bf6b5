// SPDX-License-Identifier: Apache-2.0
/* Named pose graphs. */
#ifndef VXD_SERVER_REGISTRY_POSEGRAPHS_POSEGRAPHS_H
#define VXD_SERVER_REGISTRY_POSEGRAPHS_POSEGRAPHS_H

#include "server/registry/posegraphs/named_posegraphs.h"

#endif
