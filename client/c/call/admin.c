// SPDX-License-Identifier: Apache-2.0
/* Calls about the daemon itself: server info, status, self test, log level, backup. */
#include <stdlib.h>
#include <string.h>

#include "client/c/call/client_internal.h"

/* The public struct comes first in each of these, so that freeing it frees the whole. */
struct info_owner {
    struct voxeld_server_info info;
    struct vxd_reply reply;
};

struct status_owner {
    struct voxeld_server_status status;
    struct vxd_reply reply;
};

struct backup_owner {
    struct voxeld_backup backup;
    struct vxd_reply reply;
};

enum voxeld_status voxeld_get_server_info(struct voxeld_client *client,
                                          const struct voxeld_call *call,
                                          struct voxeld_server_info **out,
                                          struct voxeld_error *error)
{
    char request_id[VXD_REQUEST_ID_BYTES];
    struct vxd_err err = {0};
    struct vxd_reply reply = {0};
    const Voxeld__V1__ServerInfoResponse *in;
    struct info_owner *owner;
    enum vxd_status status = vxd_client_get_info(client, call, request_id, &reply, &err);

    *out = NULL;
    if (status != VXD_OK) {
        return vxd_client_error(&err, request_id, error);
    }
    owner = calloc(1, sizeof *owner);
    if (owner == NULL) {
        vxd_reply_close(&reply);
        (void)vxd_fail(&err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for the result");
        return vxd_client_error(&err, request_id, error);
    }
    in = reply.response->server_info;
    owner->reply = reply;
    owner->info = (struct voxeld_server_info){
        .version = in->version,
        .backend = in->backend,
        .device = in->device,
        .methods = (const char *const *)in->methods,
        .n_methods = in->n_methods,
        .max_message_bytes = in->max_message_bytes,
        .max_json_bytes = in->max_json_bytes,
        .default_timeout_ms = in->default_timeout_ms,
        .max_timeout_ms = in->max_timeout_ms,
        .instance_id = in->instance_id,
        .started_ns = in->started_ns,
        .http = in->http,
    };
    *out = &owner->info;
    return VOXELD_OK;
}

void voxeld_server_info_free(struct voxeld_server_info *info)
{
    struct info_owner *owner = (struct info_owner *)info;

    if (owner != NULL) {
        vxd_reply_close(&owner->reply);
        free(owner);
    }
}

static enum vxd_status convert_lists(struct vxd_reply *reply,
                                     struct voxeld_server_status *out,
                                     struct vxd_err *err)
{
    const Voxeld__V1__StatusResponse *in = reply->response->status;
    struct voxeld_method_status *methods =
        vxd_reply_alloc(reply, in->n_methods, sizeof *methods);
    struct voxeld_slow_request *slow = vxd_reply_alloc(reply, in->n_slow, sizeof *slow);
    struct voxeld_memory_owner *memory =
        vxd_reply_alloc(reply, in->n_memory, sizeof *memory);

    if (methods == NULL || slow == NULL || memory == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for the result");
    }
    for (size_t i = 0; i < in->n_methods; i++) {
        methods[i].name = in->methods[i]->name;
        methods[i].n_ok = in->methods[i]->n_ok;
        methods[i].n_failed = in->methods[i]->n_failed;
        methods[i].mean_ms = in->methods[i]->mean_ms;
    }
    for (size_t i = 0; i < in->n_slow; i++) {
        slow[i].request_id = in->slow[i]->request_id;
        slow[i].method = in->slow[i]->method;
        slow[i].client_id = in->slow[i]->client_id;
        slow[i].code = (enum voxeld_status)in->slow[i]->code;
        slow[i].queue_ms = in->slow[i]->queue_ms;
        slow[i].total_ms = in->slow[i]->total_ms;
        slow[i].finished_ns = in->slow[i]->finished_ns;
    }
    for (size_t i = 0; i < in->n_memory; i++) {
        memory[i] = (struct voxeld_memory_owner){
            .name = in->memory[i]->name,
            .n = in->memory[i]->n,
            .n_bytes = in->memory[i]->n_bytes,
            .limit_bytes = in->memory[i]->limit_bytes,
            .on_device = in->memory[i]->on_device != 0,
        };
    }
    out->memory = memory;
    out->n_memory = in->n_memory;
    out->methods = methods;
    out->n_methods = in->n_methods;
    out->slow = slow;
    out->n_slow = in->n_slow;
    return VXD_OK;
}

enum voxeld_status voxeld_get_status(struct voxeld_client *client,
                                     const struct voxeld_call *call,
                                     struct voxeld_server_status **out,
                                     struct voxeld_error *error)
{
    Voxeld__V1__Request request = VOXELD__V1__REQUEST__INIT;
    Voxeld__V1__StatusRequest body = VOXELD__V1__STATUS_REQUEST__INIT;
    char request_id[VXD_REQUEST_ID_BYTES] = "";
    struct vxd_err err = {0};
    struct status_owner *owner = calloc(1, sizeof *owner);
    const Voxeld__V1__StatusResponse *in;
    enum vxd_status status;

    *out = NULL;
    if (owner == NULL) {
        (void)vxd_fail(&err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for the result");
        return vxd_client_error(&err, request_id, error);
    }
    request.method_case = VOXELD__V1__REQUEST__METHOD_STATUS;
    request.status = &body;
    VXD_TRY(vxd_client_call(client, call, 0, &request, request_id, &owner->reply, &err));
    in = owner->reply.response->status;
    owner->status = (struct voxeld_server_status){
        .state = in->state,
        .uptime_s = in->uptime_s,
        .queue_depth = in->queue_depth,
        .queue_limit = in->queue_limit,
        .running = in->running,
        .inflight_bytes = in->inflight_bytes,
        .inflight_limit_bytes = in->inflight_limit_bytes,
        .device_bytes = in->device_bytes,
        .device_budget_bytes = in->device_budget_bytes,
        .host_bytes = in->host_bytes,
        .host_budget_bytes = in->host_budget_bytes,
        .resident_bytes = in->resident_bytes,
        .n_maps = in->n_maps,
        .map_bytes = in->map_bytes,
        .map_limit_bytes = in->map_limit_bytes,
        .n_networks = in->n_networks,
        .network_bytes = in->network_bytes,
        .network_limit_bytes = in->network_limit_bytes,
        .n_scenes = in->n_scenes,
        .scene_bytes = in->scene_bytes,
        .scene_limit_bytes = in->scene_limit_bytes,
    };
    VXD_TRY(convert_lists(&owner->reply, &owner->status, &err));
    *out = &owner->status;
    return VOXELD_OK;
out:
    vxd_reply_close(&owner->reply);
    free(owner);
    return vxd_client_error(&err, request_id, error);
}

void voxeld_server_status_free(struct voxeld_server_status *status)
{
    struct status_owner *owner = (struct status_owner *)status;

    if (owner != NULL) {
        vxd_reply_close(&owner->reply);
        free(owner);
    }
}

enum voxeld_status voxeld_run_self_test(struct voxeld_client *client,
                                        const struct voxeld_call *call,
                                        uint32_t duration_ms, uint32_t n_points,
                                        struct voxeld_self_test *out,
                                        struct voxeld_error *error)
{
    enum {
        DEFAULT_DURATION_MS = 1000,
        DEFAULT_MARGIN_MS = 5000
    };
    Voxeld__V1__Request request = VOXELD__V1__REQUEST__INIT;
    Voxeld__V1__SelfTestRequest body = VOXELD__V1__SELF_TEST_REQUEST__INIT;
    char request_id[VXD_REQUEST_ID_BYTES];
    struct vxd_err err = {0};
    struct vxd_reply reply = {0};
    uint32_t expected_ms = duration_ms > 0 ? duration_ms : DEFAULT_DURATION_MS;
    uint32_t margin_ms = client->timeout_ms > 0 ? client->timeout_ms : DEFAULT_MARGIN_MS;
    uint32_t timeout_ms;
    enum vxd_status status;

    memset(out, 0, sizeof *out);
    if (__builtin_add_overflow(expected_ms, margin_ms, &timeout_ms) ||
        timeout_ms > INT32_MAX) {
        timeout_ms = INT32_MAX;
    }
    body.duration_ms = duration_ms;
    body.n_points = n_points;
    request.method_case = VOXELD__V1__REQUEST__METHOD_SELF_TEST;
    request.self_test = &body;
    status =
        vxd_client_call(client, call, timeout_ms, &request, request_id, &reply, &err);
    if (status != VXD_OK) {
        return vxd_client_error(&err, request_id, error);
    }
    out->n_stages = reply.response->self_test->n_stages;
    out->digest = reply.response->self_test->digest;
    out->elapsed_ms = reply.response->self_test->elapsed_ms;
    vxd_reply_close(&reply);
    return VOXELD_OK;
}

enum voxeld_status voxeld_set_log_level(struct voxeld_client *client,
                                        const struct voxeld_call *call, const char *level,
                                        char *previous, size_t n_previous,
                                        struct voxeld_error *error)
{
    Voxeld__V1__Request request = VOXELD__V1__REQUEST__INIT;
    Voxeld__V1__SetLogLevelRequest body = VOXELD__V1__SET_LOG_LEVEL_REQUEST__INIT;
    char request_id[VXD_REQUEST_ID_BYTES];
    struct vxd_err err = {0};
    struct vxd_reply reply = {0};
    enum vxd_status status;

    body.level = (char *)(uintptr_t)(level != NULL ? level : "");
    request.method_case = VOXELD__V1__REQUEST__METHOD_SET_LOG_LEVEL;
    request.set_log_level = &body;
    status = vxd_client_call(client, call, 0, &request, request_id, &reply, &err);
    if (status != VXD_OK) {
        return vxd_client_error(&err, request_id, error);
    }
    if (previous != NULL && n_previous > 0) {
        (void)snprintf(previous, n_previous, "%s",
                       reply.response->set_log_level->previous);
    }
    vxd_reply_close(&reply);
    return VOXELD_OK;
}

enum voxeld_status voxeld_make_backup(struct voxeld_client *client,
                                      const struct voxeld_call *call, const char *name,
                                      struct voxeld_backup **out,
                                      struct voxeld_error *error)
{
    Voxeld__V1__Request request = VOXELD__V1__REQUEST__INIT;
    Voxeld__V1__BackupRequest body = VOXELD__V1__BACKUP_REQUEST__INIT;
    char request_id[VXD_REQUEST_ID_BYTES] = "";
    struct vxd_err err = {0};
    struct backup_owner *owner = calloc(1, sizeof *owner);
    const Voxeld__V1__BackupResponse *in;
    enum vxd_status status;

    *out = NULL;
    if (owner == NULL) {
        (void)vxd_fail(&err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for the result");
        return vxd_client_error(&err, request_id, error);
    }
    body.name = (char *)(uintptr_t)(name != NULL ? name : "");
    request.method_case = VOXELD__V1__REQUEST__METHOD_BACKUP;
    request.backup = &body;
    VXD_TRY(vxd_client_call(client, call, 0, &request, request_id, &owner->reply, &err));
    in = owner->reply.response->backup;
    owner->backup = (struct voxeld_backup){
        .path = in->path,
        .n_database_bytes = in->n_database_bytes,
        .n_snapshot_bytes = in->n_snapshot_bytes,
        .n_snapshots = in->n_snapshots,
        .n_linked = in->n_linked,
        .elapsed_ms = in->elapsed_ms,
    };
    *out = &owner->backup;
    return VOXELD_OK;
out:
    free(owner);
    return vxd_client_error(&err, request_id, error);
}

void voxeld_backup_free(struct voxeld_backup *backup)
{
    struct backup_owner *owner = (struct backup_owner *)backup;

    if (owner != NULL) {
        vxd_reply_close(&owner->reply);
        free(owner);
    }
}
