// SPDX-License-Identifier: Apache-2.0
/* What the daemon reports about itself. These methods never enter the queue, so they
 * answer however busy the engine is. */
#include <stdlib.h>

#include "gpu/core/core.h"
#include "proto/base/clock.h"
#include "proto/wire/wire.h"
#include "server/observe/log/log.h"
#include "server/registry/maps/maps.h"
#include "server/registry/networks/networks.h"
#include "server/observe/observe.h"
#include "server/registry/scenes/scenes.h"
#include "server/instance/instance.h"
#include "server/schedule/schedule.h"
#include "server/service/admin/admin.h"
#include "server/service/service.h"
#include "voxeld/v1/admin.pb-c.h"

enum {
    MOST_CURRENT = 64 /* requests of a status */
};

static char *copy_text(struct vxd_request *request, const char *text, struct vxd_err *err)
{
    return vxd_message_text(request->decoder, text, strlen(text), err);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static enum vxd_status set_methods(struct vxd_request *request,
                                   Voxeld__V1__ServerInfoResponse *reply,
                                   struct vxd_err *err)
{
    const struct vxd_method *methods = request->server->methods->methods;
    size_t n = request->server->methods->n_methods;

    reply->methods = vxd_message_pointers(request->decoder, n, err);
    if (reply->methods == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    for (size_t i = 0; i < n; i++) {
        reply->methods[i] = copy_text(request, methods[i].name, err);
        if (reply->methods[i] == NULL) {
            return VXD_RESOURCE_EXHAUSTED;
        }
    }
    qsort(reply->methods, n, sizeof *reply->methods, compare_names);
    reply->n_methods = n;
    return VXD_OK;
}

/* Of an address that HTTP listens on; "" has none, and needs none. */
static bool has_scheme(const char *bound)
{
    return bound[0] == '\0' || strncmp(bound, "unix:", 5) == 0 ||
           strncmp(bound, VXD_CONFIG_HTTPS, strlen(VXD_CONFIG_HTTPS)) == 0;
}

enum vxd_status vxd_server_info_check(struct vxd_request *request, struct vxd_err *err)
{
    struct vxd_server *server = request->server;
    Voxeld__V1__ServerInfoResponse *reply = vxd_message_new(
        request->decoder, &voxeld__v1__server_info_response__descriptor, err);
    struct vxd_context_info info;
    char backend[32];
    char http[VXD_PATH_BYTES + 8];

    if (reply == NULL || set_methods(request, reply, err) != VXD_OK) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    vxd_context_get_info(server->context, &info);
    vxd_server_backend_name(server, backend, sizeof backend);
    reply->version = copy_text(request, VXD_VERSION, err);
    reply->backend = copy_text(request, backend, err);
    reply->device = copy_text(request, info.name, err);
    reply->instance_id = copy_text(request, server->instance_id, err);
    (void)snprintf(http, sizeof http, "%s%s",
                   has_scheme(server->http_bound) ? "" : "http://", server->http_bound);
    reply->http = copy_text(request, http, err);
    if (reply->version == NULL || reply->backend == NULL || reply->device == NULL ||
        reply->instance_id == NULL || reply->http == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    reply->max_message_bytes = server->config.max_message_bytes;
    reply->max_json_bytes = VXD_JSON_MAX_BYTES;
    reply->default_timeout_ms = atomic_load(&server->limits.default_timeout_ms);
    reply->max_timeout_ms = atomic_load(&server->limits.max_timeout_ms);
    reply->started_ns = server->started_unix_ns;
    request->output = &reply->base;
    return VXD_OK;
}

static enum vxd_status set_totals(struct vxd_request *request,
                                  Voxeld__V1__StatusResponse *reply, struct vxd_err *err)
{
    const struct vxd_method *methods = request->server->methods->methods;
    size_t n = request->server->methods->n_methods;

    reply->methods = vxd_message_pointers(request->decoder, n, err);
    if (reply->methods == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    for (size_t i = 0; i < n; i++) {
        Voxeld__V1__MethodStatus *method = vxd_message_new(
            request->decoder, &voxeld__v1__method_status__descriptor, err);

        if (method == NULL) {
            return VXD_RESOURCE_EXHAUSTED;
        }
        method->name = (char *)(uintptr_t)methods[i].name; /* a literal, only read */
        vxd_metrics_method(request->server->metrics, i, &method->n_ok, &method->n_failed,
                           &method->mean_ms);
        reply->methods[i] = method;
    }
    reply->n_methods = n;
    return VXD_OK;
}

static enum vxd_status set_slow_requests(struct vxd_request *request,
                                         Voxeld__V1__StatusResponse *reply,
                                         struct vxd_err *err)
{
    struct vxd_slow_entry *entries =
        vxd_message_array(request->decoder, VXD_SLOWLOG_ENTRIES, sizeof *entries, err);
    size_t n;

    if (entries == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    n = vxd_slowlog_read(request->server->slowlog, entries);
    reply->slow = vxd_message_pointers(request->decoder, n, err);
    if (reply->slow == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    for (size_t i = 0; i < n; i++) {
        Voxeld__V1__SlowRequest *slow =
            vxd_message_new(request->decoder, &voxeld__v1__slow_request__descriptor, err);

        if (slow == NULL) {
            return VXD_RESOURCE_EXHAUSTED;
        }
        slow->request_id = entries[i].request_id;
        slow->client_id = entries[i].client_id;
        slow->method = copy_text(request, entries[i].method, err);
        if (slow->method == NULL) {
            return VXD_RESOURCE_EXHAUSTED;
        }
        slow->code = (Voxeld__V1__Code)entries[i].code;
        slow->queue_ms = entries[i].queue_ms;
        slow->total_ms = entries[i].total_ms;
        slow->finished_ns = entries[i].finished_unix_ns;
        reply->slow[i] = slow;
    }
    reply->n_slow = n;
    return VXD_OK;
}

/* What waits and runs, of the token alone unless it may administer. */
static enum vxd_status set_current(struct vxd_request *request,
                                   Voxeld__V1__StatusResponse *reply, struct vxd_err *err)
{
    static const char *const stages[] = {[VXD_STAGE_WAITS] = "waits",
                                         [VXD_STAGE_RUNS] = "runs",
                                         [VXD_STAGE_COMMITS] = "commits"};
    bool is_admin = (request->principal.scopes & VXD_SCOPE_ADMIN) != 0;
    struct vxd_scheduler_entry *entries =
        vxd_message_array(request->decoder, MOST_CURRENT, sizeof *entries, err);
    size_t n;

    if (entries == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    n = vxd_scheduler_list(request->server->scheduler,
                           is_admin ? NULL : request->principal.name, entries,
                           MOST_CURRENT);
    reply->current = vxd_message_pointers(request->decoder, n, err);
    for (size_t i = 0; reply->current != NULL && i < n; i++) {
        Voxeld__V1__CurrentRequest *current = vxd_message_new(
            request->decoder, &voxeld__v1__current_request__descriptor, err);

        if (current == NULL) {
            return VXD_RESOURCE_EXHAUSTED;
        }
        current->method = copy_text(request, entries[i].method, err);
        current->stage = copy_text(request, stages[entries[i].stage], err);
        if (current->method == NULL || current->stage == NULL) {
            return VXD_RESOURCE_EXHAUSTED;
        }
        current->request_id = entries[i].request_id;
        current->client_id = entries[i].client_id;
        current->by = entries[i].token;
        current->is_running = entries[i].stage != VXD_STAGE_WAITS;
        current->total_ms = entries[i].total_ms;
        current->engine_ms = entries[i].engine_ms;
        current->wait_ms = entries[i].wait_ms;
        current->left_ms = entries[i].left_ms;
        reply->current[reply->n_current++] = current;
    }
    return reply->current != NULL ? VXD_OK : VXD_RESOURCE_EXHAUSTED;
}

enum vxd_status vxd_status_check(struct vxd_request *request, struct vxd_err *err)
{
    struct vxd_server *server = request->server;
    Voxeld__V1__StatusResponse *reply =
        vxd_message_new(request->decoder, &voxeld__v1__status_response__descriptor, err);
    struct vxd_scheduler_load load;
    struct vxd_memory_usage memory;
    uint64_t virtual_bytes;
    struct vxd_names_usage maps;
    struct vxd_names_usage networks;
    struct vxd_scenes_usage scenes;
    enum vxd_status status;

    if (reply == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    vxd_scheduler_get_load(server->scheduler, &load);
    vxd_context_get_memory(server->context, &memory);
    reply->state = copy_text(request, vxd_server_state_name(server), err);
    if (reply->state == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    reply->uptime_s = (double)(vxd_clock_ns() - server->started_ns) / 1e9;
    reply->queue_depth = load.n_queued;
    reply->queue_limit = load.queue_limit;
    reply->running = load.n_running;
    /* The status request itself does not count, so an idle server shows none. */
    reply->inflight_bytes =
        atomic_load(&server->inflight_bytes) - request->reserved_bytes;
    reply->inflight_limit_bytes = server->config.inflight_bytes;
    reply->device_bytes = memory.device_bytes;
    reply->device_budget_bytes = memory.device_budget_bytes;
    reply->host_bytes = memory.host_bytes;
    reply->host_budget_bytes = memory.host_budget_bytes;
    vxd_process_get_memory(&reply->resident_bytes, &virtual_bytes);
    vxd_names_get_usage(server->maps, &maps);
    reply->n_maps = maps.n;
    reply->map_bytes = maps.n_bytes;
    reply->map_limit_bytes = maps.limit_bytes;
    reply->n_durable_maps = maps.n_durable;
    vxd_names_get_usage(server->networks, &networks);
    reply->n_networks = networks.n;
    reply->network_bytes = networks.n_bytes;
    reply->network_limit_bytes = networks.limit_bytes;
    vxd_scenes_get_usage(server->scenes, &scenes);
    reply->n_scenes = scenes.n_scenes;
    reply->scene_bytes = scenes.n_bytes;
    reply->scene_limit_bytes = scenes.limit_bytes;
    VXD_TRY(vxd_status_set_memory(request, memory.device_bytes, reply, err));
    VXD_TRY(set_totals(request, reply, err));
    VXD_TRY(set_slow_requests(request, reply, err));
    VXD_TRY(set_current(request, reply, err));
    request->output = &reply->base;
out:
    return status;
}

enum vxd_status vxd_set_log_level_check(struct vxd_request *request, struct vxd_err *err)
{
    const Voxeld__V1__SetLogLevelRequest *input =
        (const Voxeld__V1__SetLogLevelRequest *)request->input;
    Voxeld__V1__SetLogLevelResponse *reply = vxd_message_new(
        request->decoder, &voxeld__v1__set_log_level_response__descriptor, err);
    enum vxd_log_level level;

    if (reply == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    reply->previous = copy_text(request, vxd_log_level_name(vxd_log_get_level()), err);
    if (reply->previous == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    if (vxd_log_level_parse(input->level, &level, err) != VXD_OK) {
        (void)snprintf(err->field, sizeof err->field, "level");
        return VXD_INVALID_ARGUMENT;
    }
    vxd_log_set_level(level);
    vxd_log(VXD_LOG_INFO, "log level changed", "to", input->level, "by",
            request->principal.name);
    request->output = &reply->base;
    return VXD_OK;
}
