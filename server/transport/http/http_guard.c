// SPDX-License-Identifier: Apache-2.0
/* Who may talk to us: reads the headers and checks Host and Origin.
 *
 * A page from the web can make a browser send requests to 127.0.0.1. It cannot forge two
 * things: Origin names the page's site, and Host is the name that led here, which for DNS
 * rebinding is the attacker's. An address literal in Host cannot be rebound, so the
 * address that a connection arrived at is always ours; and so is, over TLS, a name that our
 * certificate is for, since the browser has compared them. */
#include "server/transport/http/http_internal.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#define HTTP_PORT 80
#define HTTPS_PORT 443

struct known_header {
    const char *name;
    size_t offset; /* of its pointer in struct vxd_http_headers */
};

#define KNOWN(name, member)                                                              \
    {                                                                                    \
        name, offsetof(struct vxd_http_headers, member)                                  \
    }

static const struct known_header known_headers[] = {
    KNOWN("Host", host),
    KNOWN("Origin", origin),
    KNOWN("Content-Type", content_type),
    KNOWN("Content-Length", content_length),
    KNOWN("Transfer-Encoding", transfer_encoding),
    KNOWN("Expect", expect),
    KNOWN("Accept", accept),
    KNOWN("Authorization", authorization),
    KNOWN("X-Request-Id", request_id),
    KNOWN("X-Voxeld-Timeout-Ms", timeout_ms),
    KNOWN("X-Voxeld-Client-Id", client_id),
    KNOWN("Idempotency-Key", idempotency_key),
    KNOWN("X-Voxeld-Stream", stream),
    KNOWN("X-Voxeld-Keep-Last", keep_last),
    KNOWN("X-Voxeld-Max-Age-Ms", max_age_ms),
    KNOWN("Last-Event-ID", last_event_id),
    KNOWN("Sec-Fetch-Site", fetch_site),
    KNOWN("If-None-Match", if_none_match),
    KNOWN("traceparent", traceparent),
    KNOWN("Upgrade", upgrade),
    KNOWN("Connection", http_connection),
    KNOWN("Sec-WebSocket-Version", socket_version),
    KNOWN("Sec-WebSocket-Key", socket_key),
};

static enum MHD_Result take_header(void *cls, enum MHD_ValueKind kind, const char *name,
                                   const char *value)
{
    struct vxd_http_headers *headers = cls;

    (void)kind;
    if (strpbrk(name, " \t") != NULL) {
        headers->malformed = name;
    }
    for (size_t i = 0; i < sizeof known_headers / sizeof known_headers[0]; i++) {
        const char **slot =
            (const char **)(void *)((char *)headers + known_headers[i].offset);

        if (strcasecmp(name, known_headers[i].name) != 0) {
            continue;
        }
        /* Accept and Connection are lists that may come in several lines; only the first line
         * is read. */
        if (*slot != NULL && slot == &headers->traceparent) {
            *slot = "";
        } else if (*slot != NULL && slot != &headers->accept &&
                   slot != &headers->http_connection) {
            headers->duplicate = known_headers[i].name;
        } else if (*slot == NULL) {
            *slot = value != NULL ? value : "";
        }
        break;
    }
    return MHD_YES;
}

void vxd_http_read_headers(struct vxd_http_exchange *exchange)
{
    (void)MHD_get_connection_values(exchange->connection, MHD_HEADER_KIND, take_header,
                                    &exchange->headers);
}

/* True for an IPv4 or bracketed IPv6 literal equal to the address that the connection
 * arrived at. */
static bool is_local_address(struct vxd_http_exchange *exchange, const char *host)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(exchange->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct sockaddr_storage address = {0};
    socklen_t n_bytes = sizeof address;
    char local[INET6_ADDRSTRLEN];
    char bracketed[INET6_ADDRSTRLEN + 2];
    uint16_t port;

    if (info == NULL ||
        getsockname(info->connect_fd, (struct sockaddr *)&address, &n_bytes) != 0) {
        return false;
    }
    vxd_http_address((const struct sockaddr *)&address, local, sizeof local, &port);
    (void)snprintf(bracketed, sizeof bracketed, "[%s]", local);
    return strcasecmp(host, local) == 0 || strcasecmp(host, bracketed) == 0;
}

/* True when "host" or "host:port" is one of our own names. */
static bool is_ours(struct vxd_http_exchange *exchange, const char *authority)
{
    const struct vxd_http *http = exchange->http;
    const struct vxd_config *config = &http->server->config;
    const char *bracket = strrchr(authority, ']');
    const char *colon = strrchr(bracket != NULL ? bracket : authority, ':');
    size_t n_host = colon != NULL ? (size_t)(colon - authority) : strlen(authority);
    char host[VXD_PATH_BYTES];
    char port[8];

    for (size_t i = 0; i < config->n_allowed_hosts; i++) {
        if (strcasecmp(authority, config->allowed_hosts[i]) == 0) {
            return true;
        }
    }
    if (n_host == 0 || n_host >= sizeof host) {
        return false;
    }
    (void)snprintf(port, sizeof port, "%u", http->port);
    if (colon != NULL ? strcmp(colon + 1, port) != 0
                      : http->port != (http->is_tls ? HTTPS_PORT : HTTP_PORT)) {
        return false;
    }
    memcpy(host, authority, n_host);
    host[n_host] = '\0';
    return strcasecmp(host, "localhost") == 0 || strcmp(host, "127.0.0.1") == 0 ||
           strcmp(host, "[::1]") == 0 ||
           (http->host[0] != '\0' && strcasecmp(host, http->host) == 0) ||
           (http->is_tls && vxd_tls_is_our_host(http->server->tls, host)) ||
           is_local_address(exchange, host);
}

static enum vxd_status check_origin(struct vxd_http_exchange *exchange,
                                    struct vxd_err *err)
{
    const struct vxd_config *config = &exchange->http->server->config;
    const char *origin = exchange->headers.origin;

    if (origin == NULL) {
        return VXD_OK;
    }
    for (size_t i = 0; i < config->n_allowed_origins; i++) {
        if (strcmp(origin, config->allowed_origins[i]) == 0) {
            exchange->cors_origin = origin;
            return VXD_OK;
        }
    }
    if ((strncmp(origin, "http://", 7) == 0 && is_ours(exchange, origin + 7)) ||
        (strncmp(origin, "https://", 8) == 0 && is_ours(exchange, origin + 8))) {
        return VXD_OK;
    }
    return vxd_fail(err, VXD_PERMISSION_DENIED, "Origin",
                    "'%.100s' is not this server; allow it with http.allowed_origins",
                    origin);
}

enum vxd_status vxd_http_guard(struct vxd_http_exchange *exchange, const char *version,
                               struct vxd_err *err)
{
    const struct vxd_http_headers *headers = &exchange->headers;

    if (headers->duplicate != NULL) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, headers->duplicate,
                        "the header came more than once");
    }
    if (headers->host == NULL && strcmp(version, MHD_HTTP_VERSION_1_0) != 0) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "Host",
                        "HTTP/1.1 requires this header");
    }
    /* No name leads to a unix socket, so none can be rebound to it. */
    if (headers->host != NULL && exchange->http->unix_path[0] == '\0' &&
        !is_ours(exchange, headers->host)) {
        return vxd_fail(err, VXD_PERMISSION_DENIED, "Host",
                        "'%.100s' is not this server; allow it with http.allowed_hosts",
                        headers->host);
    }
    return check_origin(exchange, err);
}
