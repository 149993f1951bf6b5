// SPDX-License-Identifier: Apache-2.0
/* Pages that are no methods: health, metrics, the API's description. */
#include "server/transport/http/http_internal.h"

#include <stdlib.h>
#include <string.h>

#include "proto/base/clock.h"
#include "proto/wire/wire.h"
#include "server/durable/journal/journal.h"
#include "server/observe/observe.h"
#include "server/registry/registry.h"
#include "server/service/admin/admin.h"

#define TYPE_JSON "application/json"
#define TYPE_METRICS "text/plain; version=0.0.4; charset=utf-8"

static const char *state_name(int state)
{
    switch (state) {
    case VXD_STATE_RECOVERING:
    case VXD_STATE_STARTING:
        return "starting";
    case VXD_STATE_SERVING:
        return "serving";
    case VXD_STATE_DRAINING:
    case VXD_STATE_REFUSING:
        return "draining";
    default:
        return "lost";
    }
}

static void set_text(struct vxd_http_exchange *exchange, unsigned status,
                     const char *content_type, struct vxd_text *take_text)
{
    if (take_text->failed) {
        free(take_text->bytes);
        return;
    }
    vxd_http_set_bytes(exchange, status, content_type, take_text->bytes,
                       take_text->n_bytes);
}

static void write_live(struct vxd_http_exchange *exchange)
{
    static const char body[] = "{\"live\":true}\n";

    vxd_http_set_static(exchange, MHD_HTTP_OK, TYPE_JSON, body, sizeof body - 1);
}

static bool can_write(struct vxd_server *server)
{
    struct vxd_journal *journal = vxd_registry_get_journal(server->registry);
    struct vxd_journal_stats stats;

    if (journal == NULL) {
        return true;
    }
    vxd_journal_get_stats(journal, &stats);
    return stats.is_available;
}

/* Whether the archive takes changes, or there is none. Changes wait for it and are answered. */
static bool can_archive(const struct vxd_server *server)
{
    struct vxd_archive *archive = vxd_registry_get_archive(server->registry);
    struct vxd_archive_stats stats = {.is_available = true};

    if (archive != NULL) {
        vxd_archive_get_stats(archive, &stats);
    }
    return stats.is_available;
}

/* What does not work, as a member of the answer. */
static const char *degraded(bool is_serving, bool is_degraded, struct vxd_server *server)
{
    bool is_archive = is_serving && !can_archive(server);

    if (is_degraded) {
        return is_archive ? ",\"degraded\":[\"journal\",\"archive\"]"
                          : ",\"degraded\":[\"journal\"]";
    }
    return is_archive ? ",\"degraded\":[\"archive\"]" : "";
}

/* Ready is who can serve reads; with "?for=write", who can write as well. */
static void write_ready(struct vxd_http_exchange *exchange)
{
    struct vxd_server *server = exchange->http->server;
    int state = atomic_load(&server->state);
    bool is_serving = state == VXD_STATE_SERVING;
    bool is_degraded = is_serving && !can_write(server);
    const char *purpose =
        MHD_lookup_connection_value(exchange->connection, MHD_GET_ARGUMENT_KIND, "for");
    bool is_ready =
        is_serving && !(is_degraded && purpose != NULL && strcmp(purpose, "write") == 0);
    struct vxd_text text = {0};

    vxd_text_printf(&text, "{\"ready\":%s,\"state\":\"%s\"%s}\n",
                    is_ready ? "true" : "false", state_name(state),
                    degraded(is_serving, is_degraded, server));
    set_text(exchange, is_ready ? MHD_HTTP_OK : MHD_HTTP_SERVICE_UNAVAILABLE, TYPE_JSON,
             &text);
}

enum vxd_status vxd_http_check_read(struct vxd_http_exchange *exchange,
                                    const char *method, const char *scene,
                                    struct vxd_err *err)
{
    struct vxd_principal principal = {0};
    const char *token = NULL;
    enum vxd_status status;

    VXD_TRY(vxd_http_token(exchange, &token, err));
    VXD_TRY(vxd_http_identify(exchange, token, &principal, err));
    VXD_TRY(vxd_auth_require(&principal, VXD_SCOPE_READ, err));
    VXD_TRY(vxd_auth_require_method(&principal, method, err));
    if (scene != NULL) {
        VXD_TRY(vxd_auth_require_name(&principal, VXD_NOUN_SCENE, scene, "name", err));
    }
out:
    vxd_principal_clear(&principal);
    return status;
}

/* A rule may name it as it names methods. */
static enum vxd_status check_metrics(struct vxd_http_exchange *exchange,
                                     struct vxd_err *err)
{
    return vxd_http_check_read(exchange, "metrics", NULL, err);
}

static void write_metrics(struct vxd_http_exchange *exchange)
{
    struct vxd_text text = {0};

    vxd_metrics_write(exchange->http->server, &text);
    set_text(exchange, MHD_HTTP_OK, TYPE_METRICS, &text);
}

static void write_openapi(struct vxd_http_exchange *exchange)
{
    vxd_http_set_static(exchange, MHD_HTTP_OK, TYPE_JSON, vxd_openapi_json,
                        vxd_openapi_json_bytes);
}

static const struct vxd_http_view views[] = {
    {"/v1/health/live", true, NULL, write_live, NULL},
    {"/v1/health/ready", true, NULL, write_ready, NULL},
    {"/metrics", false, check_metrics, write_metrics, NULL},
    {"/foxglove", false, vxd_http_foxglove_check, vxd_http_foxglove_write, NULL},
    {"/v1/openapi.json", false, NULL, write_openapi, NULL},
    {"/v1/session", false, vxd_http_session_check, vxd_http_session_get,
     vxd_http_session_post},
    {"/v1/session/ticket", false, NULL, NULL, vxd_http_ticket_post},
};

static const struct vxd_http_view file_view = {NULL, false, NULL, vxd_http_write_static,
                                               NULL};

const struct vxd_http_view *vxd_http_view_find(const char *path)
{
    for (size_t i = 0; i < sizeof views / sizeof views[0]; i++) {
        if (strcmp(path, views[i].path) == 0) {
            return &views[i];
        }
    }
    return vxd_http_is_static(path) ? &file_view : NULL;
}
