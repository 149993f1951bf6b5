// SPDX-License-Identifier: Apache-2.0
/* The daemon's parts, made in order by main.c and torn down in reverse. */
#ifndef VXD_SERVER_SERVER_H
#define VXD_SERVER_SERVER_H

#include <stdatomic.h>

#include "server/auth.h"
#include "server/config.h"
#include "server/metrics.h"
#include "server/scheduler.h"

#define VXD_VERSION "0.1.0"

enum vxd_server_state {
    VXD_STATE_STARTING = 0,
    VXD_STATE_SERVING = 1,
    VXD_STATE_DRAINING = 2, /* not ready, still answering until the grace is over */
    VXD_STATE_REFUSING = 3, /* new work is answered UNAVAILABLE */
    VXD_STATE_LOST = 4      /* the GPU failed; the process is about to end with 70 */
};

struct vxd_slowlog;

struct vxd_server {
    struct vxd_config config;
    struct vxd_auth *auth;
    struct vxd_metrics *metrics;
    struct vxd_slowlog *slowlog;
    struct vxd_context *context;
    struct vxd_scheduler *scheduler;
    atomic_int state; /* enum vxd_server_state */
    _Atomic uint64_t inflight_bytes;
    char instance_id[33];
    int64_t started_ns;      /* monotonic */
    int64_t started_unix_ns; /* wall clock */
    /* What the listeners are really bound to, for the log, status and tests. */
    char rpc_bound[VXD_CONFIG_MAX_LISTEN][VXD_PATH_BYTES];
    char http_bound[VXD_PATH_BYTES];
};

/* Monotonic nanoseconds, the clock of all deadlines. */
int64_t vxd_clock_ns(void);

/* Wakes main.c to begin draining, as SIGTERM does; `lost` = the engine is lost. Any thread. */
void vxd_server_stop(struct vxd_server *server, bool lost);

#endif
