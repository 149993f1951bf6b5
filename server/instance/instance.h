// SPDX-License-Identifier: Apache-2.0
/* The daemon's parts, as all of its code finds them: configuration, limits, state, and a
 * pointer to each module's own object. It knows the modules by name only; server/server.h
 * makes them. */
#ifndef VXD_SERVER_INSTANCE_INSTANCE_H
#define VXD_SERVER_INSTANCE_INSTANCE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/access/access.h"
#include "server/config/config.h"

#define VXD_VERSION "0.3.0"

enum vxd_server_state {
    VXD_STATE_RECOVERING = -1, /* scenes and maps come back; only health is answered */
    VXD_STATE_STARTING = 0,
    VXD_STATE_SERVING = 1,
    VXD_STATE_DRAINING = 2, /* not ready, still answering until the grace is over */
    VXD_STATE_REFUSING = 3, /* new work is answered UNAVAILABLE */
    VXD_STATE_LOST = 4      /* the GPU failed; the process is about to end with 70 */
};

/* What goes through event_fd, a byte each. */
enum vxd_event {
    VXD_EVENT_STOP = 'S',   /* SIGTERM, SIGINT, vxd_server_stop */
    VXD_EVENT_RELOAD = 'R', /* SIGHUP */
    VXD_EVENT_LOST = 'L',   /* vxd_server_stop(lost) */
    VXD_EVENT_DATA = 'D'    /* main.c: the data directory is open, or will not be */
};

struct vxd_auth;
struct vxd_context;
struct vxd_fields;
struct vxd_names;
struct vxd_method_table;
struct vxd_metrics;
struct vxd_once;
struct vxd_registry;
struct vxd_scenes;
struct vxd_schedule_calls;
struct vxd_scheduler;
struct vxd_slac_jobs;
struct vxd_slowlog;
struct vxd_tls;
struct vxd_tickets;
struct vxd_names;
struct vxd_names;
struct vxd_odometries;
struct vxd_watch;
struct vxd_whys;

/* What SIGHUP may change while requests run; everything else in config stays as it was at
 * the start. */
struct vxd_limits {
    _Atomic uint32_t queue;
    _Atomic uint32_t default_timeout_ms;
    _Atomic uint32_t max_timeout_ms;
};

struct vxd_server {
    struct vxd_config config;
    const struct vxd_method_table *methods; /* borrowed */
    struct vxd_method_names method_names;   /* what rules of tokens may name */
    struct vxd_limits limits;
    struct vxd_auth *auth;
    struct vxd_tls *tls;         /* NULL = no listener speaks it */
    struct vxd_tickets *tickets; /* of browsers, for WebSockets */
    struct vxd_metrics *metrics;
    struct vxd_slowlog *slowlog;
    struct vxd_whys *whys;
    struct vxd_once *once;
    struct vxd_context *context;
    struct vxd_registry *registry; /* what keeps durable things on disk */
    struct vxd_names *maps;
    struct vxd_names *networks;
    struct vxd_scenes *scenes;
    struct vxd_names *volumes;
    struct vxd_names *posegraphs;
    struct vxd_odometries *odometries;
    struct vxd_fields *fields;  /* distance fields of scenes, kept between requests */
    struct vxd_slac_jobs *slac; /* alignments that run, and the last ones */
    struct vxd_watch *watch;    /* who waits for changes of scenes */
    struct vxd_scheduler *scheduler;
    const struct vxd_schedule_calls *schedule; /* what requests ask of it; it sets this */
    atomic_int state;                          /* enum vxd_server_state */
    _Atomic uint64_t inflight_bytes;
    _Atomic uint64_t arriving_block_bytes; /* of messages that are not complete */
    atomic_uint_fast64_t shared_bytes; /* of regions that clients share with the daemon */
    _Atomic uint64_t n_open;           /* requests made and not answered yet */
    _Atomic uint64_t n_requests;       /* made since the start, for their ids */
    int event_fd; /* where vxd_server_stop writes; -1 = nowhere (tests) */
    char instance_id[33];
    int64_t started_ns;      /* monotonic */
    int64_t started_unix_ns; /* wall clock */
    _Atomic int64_t
        ready_ns; /* when its data were back and it began to serve; 0 before */
    /* What the listeners are really bound to, for the log, status and tests. */
    char rpc_bound[VXD_CONFIG_MAX_LISTEN][VXD_PATH_BYTES];
    char http_bound[VXD_PATH_BYTES];
    char foxglove_bound[VXD_PATH_BYTES];
};

/* Enters another state, unless the engine is lost, which is the last state. Any thread. */
void vxd_server_set_state(struct vxd_server *server, enum vxd_server_state state);

/* Returns "serving", "draining", ..., as in StatusResponse.state. */
const char *vxd_server_state_name(const struct vxd_server *server);

/* Writes "cpu" or "cuda:N". */
void vxd_server_backend_name(const struct vxd_server *server, char *out, size_t n_bytes);

/* Wakes main.c to begin draining, as SIGTERM does; `lost` = the engine is lost. Any thread. */
void vxd_server_stop(struct vxd_server *server, bool lost);

#endif
