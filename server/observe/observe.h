// SPDX-License-Identifier: Apache-2.0
/* What operators see: metrics, the process's own figures, and the log of slow requests. */
#ifndef VXD_SERVER_OBSERVE_OBSERVE_H
#define VXD_SERVER_OBSERVE_OBSERVE_H

#include "server/observe/metrics.h"
#include "server/observe/process.h"
#include "server/observe/slowlog.h"
#include "server/observe/trace.h"
#include "server/observe/why.h"

#endif
