// SPDX-License-Identifier: Apache-2.0
/* The daemon's parts, made in order by main.c and torn down in reverse. */
#ifndef VXD_SERVER_INSTANCE_INSTANCE_H
#define VXD_SERVER_INSTANCE_INSTANCE_H

#include <stdatomic.h>

#include "server/request/request.h"
#include "server/config/config.h"
#include "server/observe/observe.h"
#include "server/schedule/schedule.h"

#define VXD_VERSION "0.1.0"

enum vxd_server_state {
    VXD_STATE_STARTING = 0,
    VXD_STATE_SERVING = 1,
    VXD_STATE_DRAINING = 2, /* not ready, still answering until the grace is over */
    VXD_STATE_REFUSING = 3, /* new work is answered UNAVAILABLE */
    VXD_STATE_LOST = 4      /* the GPU failed; the process is about to end with 70 */
};

struct vxd_maps;
struct vxd_networks;
struct vxd_once;
struct vxd_scenes;
struct vxd_slowlog;

/* What SIGHUP may change while requests run; everything else in config stays as it was at
 * the start. */
struct vxd_limits {
    _Atomic uint32_t queue;
    _Atomic uint32_t default_timeout_ms;
    _Atomic uint32_t max_timeout_ms;
};

struct vxd_server {
    struct vxd_config config;
    struct vxd_limits limits;
    struct vxd_auth *auth;
    struct vxd_metrics *metrics;
    struct vxd_slowlog *slowlog;
    struct vxd_once *once;
    struct vxd_context *context;
    struct vxd_maps *maps;
    struct vxd_networks *networks;
    struct vxd_scenes *scenes;
    struct vxd_scheduler *scheduler;
    atomic_int state; /* enum vxd_server_state */
    _Atomic uint64_t inflight_bytes;
    _Atomic uint64_t n_open;     /* requests made and not answered yet */
    _Atomic uint64_t n_requests; /* made since the start, for their ids */
    int event_fd;                /* where vxd_server_stop writes; -1 = nowhere (tests) */
    char instance_id[33];
    int64_t started_ns;      /* monotonic */
    int64_t started_unix_ns; /* wall clock */
    /* What the listeners are really bound to, for the log, status and tests. */
    char rpc_bound[VXD_CONFIG_MAX_LISTEN][VXD_PATH_BYTES];
    char http_bound[VXD_PATH_BYTES];
};

/* Makes the parts between the log and the transports: engine context (backend "auto" takes
 * a GPU where one answers, else the CPU, and says which), tokens, metrics, slow log, scheduler.
 * *config is copied; the state is VXD_STATE_STARTING.
 * errors  what the parts give; then nothing is left to close */
enum vxd_status vxd_server_open(struct vxd_server *server,
                                const struct vxd_config *config, struct vxd_err *err);

/* The reverse; no transport may run and every request must be gone. */
void vxd_server_close(struct vxd_server *server);

/* Swaps in what may change at run time, once all of it is found valid, the tokens included.
 * errors  INVALID_ARGUMENT, NOT_FOUND; then nothing has changed */
enum vxd_status vxd_server_reload(struct vxd_server *server,
                                  const struct vxd_config *config, struct vxd_err *err);

/* Moves on to another state, unless the engine is lost: that is the last one. Any thread. */
void vxd_server_set_state(struct vxd_server *server, enum vxd_server_state state);

/* "serving", "draining", ...: as StatusResponse.state. */
const char *vxd_server_state_name(const struct vxd_server *server);

/* "cpu" or "cuda:N". */
void vxd_server_backend_name(const struct vxd_server *server, char *out, size_t n_bytes);

/* Wakes main.c to begin draining, as SIGTERM does; `lost` = the engine is lost. Any thread. */
void vxd_server_stop(struct vxd_server *server, bool lost);

#endif
