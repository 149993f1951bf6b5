// SPDX-License-Identifier: Apache-2.0
/* The life of a request: who asks, which method runs, prerequisites, commits, and the
 * memory that makes requests take effect exactly once. */
#ifndef VXD_SERVER_REQUEST_REQUEST_H
#define VXD_SERVER_REQUEST_REQUEST_H

#include "server/request/commit.h"
#include "server/request/exactly_once.h"
#include "server/request/method.h"
#include "server/request/request_life.h"
#include "server/request/request_prerequisite.h"
#include "server/request/tickets.h"
#include "server/request/upload_memory.h"

#endif
