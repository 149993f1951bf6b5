// SPDX-License-Identifier: Apache-2.0
/* Notes why a request was refused or took long, for whoever asks later (method why). */
#include "server/request/request_why.h"

#include <string.h>

#include "proto/base/clock.h"
#include "server/instance/instance.h"
#include "server/observe/observe.h"

/* What takes less and succeeds needs no explanation; as for the slow log. */
#define WHY_MS VXD_SLOWLOG_MS

/* The key that is to blame. By convention an error that a limit causes names its key. */
static const char *find_key(const struct vxd_request *request)
{
    const char *key = vxd_config_key_in(request->err.message);

    if (key != NULL) {
        return key;
    }
    switch (request->err.code) {
    case VXD_OK:
        return request->lane == VXD_LANE_READ &&
                       request->stages.wait_ms > request->total_ms / 2
                   ? "engine.read_lanes"
                   : "";
    case VXD_DEADLINE_EXCEEDED:
        return request->has_own_timeout ? "" : "limits.timeout_ms";
    case VXD_RESOURCE_EXHAUSTED: /* a token's quota says so */
        return strstr(request->err.message, "(tokens file)") != NULL ? "auth.tokens_file"
                                                                     : "";
    case VXD_UNAUTHENTICATED:
    case VXD_PERMISSION_DENIED:
        return "auth.tokens_file";
    default:
        return "";
    }
}

/* As it is now, since some of them change at a reload. */
static bool find_limit(const struct vxd_server *server, const char *key, uint64_t *out)
{
    if (strcmp(key, "limits.queue") == 0) {
        *out = atomic_load(&server->limits.queue);
        return true;
    }
    if (strcmp(key, "limits.timeout_ms") == 0) {
        *out = atomic_load(&server->limits.default_timeout_ms);
        return true;
    }
    if (strcmp(key, "limits.max_timeout_ms") == 0) {
        *out = atomic_load(&server->limits.max_timeout_ms);
        return true;
    }
    return vxd_config_number(&server->config, key, out);
}

void vxd_request_note_why(const struct vxd_request *request)
{
    const struct vxd_server *server = request->server;
    struct vxd_why_entry entry;

    if (request->err.code == VXD_OK && request->total_ms < WHY_MS) {
        return;
    }
    entry = (struct vxd_why_entry){
        .method = request->method != NULL ? request->method->name : "unknown",
        .state = VXD_WHY_ANSWERED,
        .err = request->err,
        .key = find_key(request),
        .receive_ms = request->stages.receive_ms,
        .decode_ms = request->stages.decode_ms,
        .wait_ms = request->stages.wait_ms,
        .engine_ms = request->stages.engine_ms,
        .commit_ms = request->stages.commit_ms,
        .total_ms = request->total_ms,
        .finished_unix_ns =
            server->started_unix_ns + (vxd_clock_ns() - server->started_ns),
    };
    entry.has_limit = find_limit(server, entry.key, &entry.limit);
    memcpy(entry.request_id, request->id, sizeof entry.request_id);
    memcpy(entry.token, request->principal.name, sizeof entry.token);
    memcpy(entry.trace_id, request->trace.trace_id, sizeof entry.trace_id);
    /* A deadline may answer while another thread queues it. */
    entry.has_queue = atomic_load(&request->has_seen_queue);
    if (entry.has_queue) {
        entry.queue = request->queue_seen;
    }
    vxd_whys_add(server->whys, &entry);
}
