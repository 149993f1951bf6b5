// SPDX-License-Identifier: Apache-2.0
/* Pages that are no methods: index, health, metrics, the API's description. */
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
#define TYPE_HTML "text/html; charset=utf-8"
#define TYPE_CSS "text/css; charset=utf-8"
#define TYPE_METRICS "text/plain; version=0.0.4; charset=utf-8"

/* The page loads nothing but its own style sheet and runs nothing. */
#define INDEX_POLICY                                                                     \
    "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; "        \
    "frame-ancestors 'none'"

static const char style[] =
    "body{font:16px/1.5 system-ui,sans-serif;max-width:46rem;margin:2rem auto;"
    "padding:0 1rem;color:#222;background:#fff}\n"
    "code,td:first-child{font-family:ui-monospace,monospace}\n"
    "table{border-collapse:collapse;width:100%}\n"
    "td{border-top:1px solid #ddd;padding:.3rem .6rem .3rem 0;vertical-align:top}\n"
    "@media(prefers-color-scheme:dark){body{color:#ddd;background:#181818}"
    "a{color:#8bf}td{border-color:#444}}\n";

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

static const char *scope_name(enum vxd_scope scope)
{
    switch (scope) {
    case VXD_SCOPE_READ:
        return "read";
    case VXD_SCOPE_WRITE:
        return "write";
    case VXD_SCOPE_ADMIN:
        break;
    }
    return "admin";
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

/* Writes only what anybody may know: figures of the engine need the scope read. */
static void write_index(struct vxd_http_exchange *exchange)
{
    const struct vxd_server *server = exchange->http->server;
    struct vxd_text text = {0};
    const struct vxd_method *methods = server->methods->methods;
    size_t n_methods = server->methods->n_methods;

    vxd_text_printf(&text,
                    "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
                    "<meta name=\"viewport\" content=\"width=device-width\">\n"
                    "<title>voxeld</title><link rel=\"stylesheet\" href=\"/style.css\">\n"
                    "</head><body>\n<h1>voxeld</h1>\n"
                    "<p>Version %s, %s for %lld s.</p>\n",
                    VXD_VERSION, state_name(atomic_load(&server->state)),
                    (long long)((vxd_clock_ns() - server->started_ns) / 1000000000));
    vxd_text_printf(&text, "<p><a href=\"/v1/status\">status</a> · "
                           "<a href=\"/v1/server_info\">server info</a> · "
                           "<a href=\"/v1/health/ready\">health</a> · "
                           "<a href=\"/metrics\">metrics</a> · "
                           "<a href=\"/v1/openapi.json\">OpenAPI</a></p>\n"
                           "<h2>Methods</h2>\n<table>\n");
    for (size_t i = 0; i < n_methods; i++) {
        vxd_text_printf(&text, "<tr><td>POST /v1/%s</td><td>%s</td><td>%s</td></tr>\n",
                        methods[i].name, methods[i].summary,
                        scope_name(methods[i].scope));
    }
    vxd_text_printf(&text, "</table>\n</body></html>\n");
    set_text(exchange, MHD_HTTP_OK, TYPE_HTML, &text);
    vxd_http_add_header(exchange, "Content-Security-Policy", INDEX_POLICY);
    vxd_http_add_header(exchange, "Referrer-Policy", "no-referrer");
}

static void write_style(struct vxd_http_exchange *exchange)
{
    vxd_http_set_static(exchange, MHD_HTTP_OK, TYPE_CSS, style, sizeof style - 1);
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
                    is_degraded ? ",\"degraded\":[\"journal\"]" : "");
    set_text(exchange, is_ready ? MHD_HTTP_OK : MHD_HTTP_SERVICE_UNAVAILABLE, TYPE_JSON,
             &text);
}

enum vxd_status vxd_http_check_read(struct vxd_http_exchange *exchange,
                                    struct vxd_err *err)
{
    struct vxd_principal principal = {0};
    const char *token = NULL;
    enum vxd_status status;

    VXD_TRY(vxd_http_token(exchange, &token, err));
    VXD_TRY(vxd_auth_identify(exchange->http->server->auth, token, -1, &principal, err));
    VXD_TRY(vxd_auth_require(&principal, VXD_SCOPE_READ, err));
out:
    return status;
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
    {"/", false, NULL, write_index},
    {"/style.css", false, NULL, write_style},
    {"/v1/health/live", true, NULL, write_live},
    {"/v1/health/ready", true, NULL, write_ready},
    {"/metrics", false, vxd_http_check_read, write_metrics},
    {"/v1/openapi.json", false, NULL, write_openapi},
};

const struct vxd_http_view *vxd_http_view_find(const char *path)
{
    for (size_t i = 0; i < sizeof views / sizeof views[0]; i++) {
        if (strcmp(path, views[i].path) == 0) {
            return &views[i];
        }
    }
    return NULL;
}
