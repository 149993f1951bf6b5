// SPDX-License-Identifier: Apache-2.0
/* Who looks at the dashboard. A page cannot give a token to an EventSource or a picture, so it
 * may hand its token in once, as `POST /v1/session` with Authorization, and get it back as a
 * cookie that no script can read. A cookie is less than a header, since a browser sends it by
 * itself: SameSite keeps pages of other sites from using it, and as other ports of this host are
 * the same site, requests that have it alone must also say that they come from our own page. */
#include <stdlib.h>
#include <string.h>

#include "proto/wire/wire.h"
#include "server/transport/http/http_internal.h"

#define COOKIE_BYTES 32

/* Of this port: other daemons of the host have theirs. */
static void name_cookie(const struct vxd_http *http, char out[COOKIE_BYTES])
{
    (void)snprintf(out, COOKIE_BYTES, "voxeld_%u", http->port);
}

static int digit_of(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool vxd_http_cookie_decode(const char *text, char *out, size_t capacity)
{
    size_t n = strlen(text) / 2;

    if (n == 0 || n >= capacity || strlen(text) % 2 != 0) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        int high = digit_of(text[2 * i]);
        int low = digit_of(text[2 * i + 1]);

        if (high < 0 || low < 0 || high + low == 0) {
            return false;
        }
        out[i] = (char)(16 * high + low);
    }
    out[n] = '\0';
    return true;
}

/* Browsers that know cookies' SameSite say where a request comes from. */
static bool is_own_page(const struct vxd_http_exchange *exchange)
{
    const char *site = exchange->headers.fetch_site;

    return site == NULL || strcmp(site, "same-origin") == 0 || strcmp(site, "none") == 0;
}

enum vxd_status vxd_http_cookie_token(struct vxd_http_exchange *exchange,
                                      const char **token, struct vxd_err *err)
{
    char name[COOKIE_BYTES];
    const char *value;

    name_cookie(exchange->http, name);
    value = MHD_lookup_connection_value(exchange->connection, MHD_COOKIE_KIND, name);
    *token = NULL;
    if (value == NULL) {
        return VXD_OK;
    }
    if (!is_own_page(exchange)) {
        return vxd_fail(
            err, VXD_PERMISSION_DENIED, "Cookie",
            "goes with requests of this server's own pages, not with those of "
            "'%.40s' ones",
            exchange->headers.fetch_site);
    }
    if (!vxd_http_cookie_decode(value, exchange->cookie_token,
                                sizeof exchange->cookie_token)) {
        return VXD_OK; /* none of ours */
    }
    *token = exchange->cookie_token;
    return VXD_OK;
}

static enum vxd_status identify(struct vxd_http_exchange *exchange,
                                struct vxd_principal *out, const char **token,
                                struct vxd_err *err)
{
    enum vxd_status status = vxd_http_token(exchange, token, err);

    return status == VXD_OK ? vxd_http_identify(exchange, *token, out, err) : status;
}

static void set_cookie(struct vxd_http_exchange *exchange, const char *token)
{
    char name[COOKIE_BYTES];
    struct vxd_text text = {0};

    name_cookie(exchange->http, name);
    vxd_text_printf(&text, "%s=", name);
    for (const char *s = token; s != NULL && *s != '\0'; s++) {
        vxd_text_printf(&text, "%02x", (unsigned)(unsigned char)*s);
    }
    vxd_text_printf(&text, "; Path=/; HttpOnly; SameSite=Strict%s%s",
                    exchange->http->is_tls ? "; Secure" : "",
                    token == NULL ? "; Max-Age=0" : "");
    vxd_text_append(&text, "", 1);
    if (!text.failed) {
        vxd_http_add_header(exchange, MHD_HTTP_HEADER_SET_COOKIE, text.bytes);
    }
    free(text.bytes);
}

static void write_principal(struct vxd_http_exchange *exchange,
                            const struct vxd_principal *principal)
{
    static const struct {
        enum vxd_scope scope;
        const char *name;
    } scopes[] = {
        {VXD_SCOPE_READ, "read"}, {VXD_SCOPE_WRITE, "write"}, {VXD_SCOPE_ADMIN, "admin"}};
    const struct vxd_server *server = exchange->http->server;
    struct vxd_text text = {0};
    const char *comma = "";

    vxd_text_printf(&text, "{\"name\":");
    vxd_text_json_string(&text, principal->name, strlen(principal->name));
    vxd_text_printf(&text, ",\"version\":\"%s\",\"tokens\":%s,\"scopes\":[", VXD_VERSION,
                    vxd_auth_http_needs_token(server->auth) ? "true" : "false");
    for (size_t i = 0; i < sizeof scopes / sizeof scopes[0]; i++) {
        if ((principal->scopes & (uint32_t)scopes[i].scope) != 0) {
            vxd_text_printf(&text, "%s\"%s\"", comma, scopes[i].name);
            comma = ",";
        }
    }
    vxd_text_append(&text, "]}\n", 3);
    if (text.failed) {
        free(text.bytes);
        return;
    }
    vxd_http_set_bytes(exchange, MHD_HTTP_OK, "application/json", text.bytes,
                       text.n_bytes);
}

enum vxd_status vxd_http_session_check(struct vxd_http_exchange *exchange,
                                       struct vxd_err *err)
{
    struct vxd_principal principal = {0};
    const char *token;
    enum vxd_status status;

    status = identify(exchange, &principal, &token, err);
    vxd_principal_clear(&principal);
    return status;
}

void vxd_http_session_get(struct vxd_http_exchange *exchange)
{
    struct vxd_principal principal = {0};
    struct vxd_err ignored = {0};
    const char *token;

    if (identify(exchange, &principal, &token, &ignored) == VXD_OK) {
        write_principal(exchange, &principal);
    }
    vxd_principal_clear(&principal);
}

enum vxd_status vxd_http_ticket_post(struct vxd_http_exchange *exchange,
                                     struct vxd_err *err)
{
    struct vxd_principal principal = {0};
    struct vxd_text text = {0};
    const char *token = NULL;
    char ticket[VXD_TICKET_BYTES];
    enum vxd_status status;

    VXD_TRY(identify(exchange, &principal, &token, err));
    VXD_TRY(vxd_auth_require(&principal, VXD_SCOPE_READ, err));
    VXD_TRY(vxd_tickets_issue(exchange->http->server->tickets, token != NULL ? token : "",
                              ticket, err));
    vxd_text_printf(&text, "{\"ticket\":\"%s\",\"expires_s\":%d}\n", ticket,
                    VXD_TICKET_S);
    if (text.failed) {
        free(text.bytes);
        VXD_TRY(vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a ticket"));
    }
    vxd_http_set_bytes(exchange, MHD_HTTP_OK, "application/json", text.bytes,
                       text.n_bytes);
out:
    vxd_principal_clear(&principal);
    return status;
}

enum vxd_status vxd_http_session_post(struct vxd_http_exchange *exchange,
                                      struct vxd_err *err)
{
    struct vxd_principal principal = {0};
    const char *token = NULL;
    enum vxd_status status;

    if (exchange->headers.authorization == NULL) {
        vxd_http_set_static(exchange, MHD_HTTP_OK, "application/json", "{}\n", 3);
        set_cookie(exchange, NULL);
        return VXD_OK;
    }
    status = identify(exchange, &principal, &token, err);
    if (status == VXD_OK) {
        write_principal(exchange, &principal);
        set_cookie(exchange, token);
    }
    vxd_principal_clear(&principal);
    return status;
}
