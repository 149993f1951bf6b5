// SPDX-License-Identifier: Apache-2.0
/* Connections that become WebSockets: who may, and the response after which the sockets' thread
 * has the connection. Host and Origin are checked as those of any request (http_guard.c). */
#include <string.h>
#include <strings.h>

#include "server/transport/http/http_internal.h"

#define PROTOCOLS "Sec-WebSocket-Protocol"

static void release(void *handle)
{
    (void)MHD_upgrade_action(handle, MHD_UPGRADE_ACTION_CLOSE);
}

/* MHD_UpgradeHandler. The exchange lasts until the connection is released. */
static void on_upgrade(void *cls, struct MHD_Connection *connection, void *context,
                       const char *early, size_t n_early, MHD_socket fd,
                       struct MHD_UpgradeResponseHandle *handle)
{
    struct vxd_http_exchange *exchange = cls;
    struct vxd_socket_options options = exchange->socket;
    struct vxd_err ignored = {0};

    (void)connection;
    (void)context;
    options.fd = fd;
    options.early = (const uint8_t *)early;
    options.n_early = n_early;
    options.release = release;
    options.handle = handle;
    if (vxd_sockets_add(exchange->http->sockets, &options, &ignored) != VXD_OK) {
        options.calls->closed(options.session);
        release(handle);
    }
}

enum vxd_status vxd_http_socket_token(struct vxd_http_exchange *exchange,
                                      const char **token, struct vxd_err *err)
{
    *token =
        MHD_lookup_connection_value(exchange->connection, MHD_GET_ARGUMENT_KIND, "token");
    if (*token != NULL && vxd_tickets_find(exchange->http->server->tickets, *token,
                                           exchange->cookie_token)) {
        *token = exchange->cookie_token;
        return VXD_OK;
    }
    if (*token != NULL) {
        exchange->has_url_token = true;
        return VXD_OK;
    }
    /* Browsers do not say Sec-Fetch-Site with every handshake, but always Origin. */
    return exchange->cors_origin == NULL ? vxd_http_cookie_token(exchange, token, err)
                                         : VXD_OK;
}

/* A token in a URL is seen by more than a header is: in histories, and in logs of proxies. So it
 * may do no more than read. A cookie goes with our own pages alone. */
static enum vxd_status check_token(struct vxd_http_exchange *exchange,
                                   struct vxd_principal *out, struct vxd_err *err)
{
    struct vxd_principal principal = {0};
    const char *token = NULL;
    enum vxd_status status;

    VXD_TRY(vxd_http_token(exchange, &token, err));
    VXD_TRY(vxd_http_identify(exchange, token, &principal, err));
    VXD_TRY(vxd_auth_require(&principal, VXD_SCOPE_READ, err));
    if (exchange->has_url_token &&
        vxd_auth_http_needs_token(exchange->http->server->auth) &&
        principal.scopes != VXD_SCOPE_READ) {
        VXD_TRY(vxd_fail(err, VXD_PERMISSION_DENIED, "token",
                         "a token in a URL may have the scope read alone, as URLs are "
                         "written down in many places; '%s' has others, so POST "
                         "/v1/session/ticket first",
                         principal.name));
    }
    *out = principal;
    principal = (struct vxd_principal){0};
out:
    vxd_principal_clear(&principal);
    return status;
}

enum vxd_status vxd_http_socket_check(struct vxd_http_exchange *exchange,
                                      struct vxd_principal *out, struct vxd_err *err)
{
    const struct vxd_http_headers *headers = &exchange->headers;
    const struct vxd_websocket_offer offer = {.upgrade = headers->upgrade,
                                              .connection = headers->http_connection,
                                              .version = headers->socket_version,
                                              .key = headers->socket_key};
    enum vxd_status status = vxd_websocket_check(&offer, exchange->socket_accept, err);

    if (status != VXD_OK) {
        exchange->fixed_status = status == VXD_UNIMPLEMENTED || headers->upgrade == NULL
                                     ? MHD_HTTP_UPGRADE_REQUIRED
                                     : MHD_HTTP_BAD_REQUEST;
        return status;
    }
    if (strcmp(exchange->verb, MHD_HTTP_METHOD_GET) != 0) {
        exchange->fixed_status = MHD_HTTP_BAD_REQUEST;
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "Upgrade", "goes with GET");
    }
    return check_token(exchange, out, err);
}

struct offered {
    const char *wanted;
    bool is_offered;
};

/* MHD_KeyValueIterator */
static enum MHD_Result find_protocol(void *cls, enum MHD_ValueKind kind, const char *name,
                                     const char *value)
{
    struct offered *offered = cls;

    (void)kind;
    if (strcasecmp(name, PROTOCOLS) == 0 && value != NULL &&
        vxd_websocket_list_has(value, offered->wanted)) {
        offered->is_offered = true;
    }
    return MHD_YES;
}

bool vxd_http_offers_protocol(const struct vxd_http_exchange *exchange,
                              const char *protocol)
{
    struct offered offered = {.wanted = protocol};

    (void)MHD_get_connection_values(exchange->connection, MHD_HEADER_KIND, find_protocol,
                                    &offered);
    return offered.is_offered;
}

enum vxd_status vxd_http_set_socket(struct vxd_http_exchange *exchange,
                                    const char *protocol,
                                    const struct vxd_socket_calls *calls, void *session,
                                    size_t max_message_bytes, struct vxd_err *err)
{
    struct MHD_Response *response = MHD_create_response_for_upgrade(on_upgrade, exchange);

    if (response == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a WebSocket");
    }
    exchange->socket = (struct vxd_socket_options){
        .calls = calls, .session = session, .max_message_bytes = max_message_bytes};
    exchange->response = response;
    exchange->status = MHD_HTTP_SWITCHING_PROTOCOLS;
    vxd_http_add_header(exchange, MHD_HTTP_HEADER_UPGRADE, "websocket");
    vxd_http_add_header(exchange, "Sec-WebSocket-Accept", exchange->socket_accept);
    if (protocol != NULL) {
        vxd_http_add_header(exchange, PROTOCOLS, protocol);
    }
    vxd_http_peer_is_served(exchange->http, vxd_http_peer_of(exchange->connection));
    return VXD_OK;
}
