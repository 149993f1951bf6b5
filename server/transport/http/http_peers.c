// SPDX-License-Identifier: Apache-2.0
/* Connections whose peer has the word: before a request, within its headers or within its body.
 * A peer may take its time, but when such connections hold most of limits.connections, whoever
 * has been silent for longest is cut, so that the next one, a health probe say, finds a place. */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "server/observe/log/log.h"
#include "server/observe/observe.h"
#include "server/transport/http/http_internal.h"

/* Of limits.connections, what such connections may hold; the rest is for requests that run. */
#define WAITING_SHARE_NUMERATOR 3
#define WAITING_SHARE_DENOMINATOR 4

static void unlink_peer(struct vxd_http *http, struct vxd_http_peer *peer)
{
    if (!peer->is_waiting) {
        return;
    }
    if (peer->previous != NULL) {
        peer->previous->next = peer->next;
    } else {
        http->first_waiting = peer->next;
    }
    if (peer->next != NULL) {
        peer->next->previous = peer->previous;
    } else {
        http->last_waiting = peer->previous;
    }
    peer->is_waiting = false;
    http->n_waiting--;
}

static void append_peer(struct vxd_http *http, struct vxd_http_peer *peer)
{
    peer->next = NULL;
    peer->previous = http->last_waiting;
    if (http->last_waiting != NULL) {
        http->last_waiting->next = peer;
    } else {
        http->first_waiting = peer;
    }
    http->last_waiting = peer;
    peer->is_waiting = true;
    http->n_waiting++;
}

/* Cuts whoever is silent for longest. The library sees the end and cleans up. */
static void cut_first(struct vxd_http *http)
{
    struct vxd_http_peer *peer = http->first_waiting;

    unlink_peer(http, peer);
    (void)shutdown(peer->fd, SHUT_RDWR);
    vxd_metrics_count_rejected(http->server->metrics, "connections");
    vxd_log(VXD_LOG_DEBUG, "connection cut: most of limits.connections are silent");
}

void vxd_http_peer_waits(struct vxd_http *http, struct vxd_http_peer *peer)
{
    size_t limit = (size_t)http->server->config.max_connections *
                   WAITING_SHARE_NUMERATOR / WAITING_SHARE_DENOMINATOR;

    if (peer == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&http->peers_lock);
    unlink_peer(http, peer);
    append_peer(http, peer);
    if (http->n_waiting > limit && http->n_waiting > 1) {
        cut_first(http);
    }
    (void)pthread_mutex_unlock(&http->peers_lock);
}

void vxd_http_peer_is_served(struct vxd_http *http, struct vxd_http_peer *peer)
{
    if (peer == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&http->peers_lock);
    unlink_peer(http, peer);
    (void)pthread_mutex_unlock(&http->peers_lock);
}

struct vxd_http_peer *vxd_http_peer_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

    return info != NULL ? info->socket_context : NULL;
}

const char *vxd_http_certified(const struct vxd_http_exchange *exchange)
{
    const struct vxd_http_peer *peer = vxd_http_peer_of(exchange->connection);

    return peer != NULL ? peer->certified.token_name : "";
}

gnutls_session_t vxd_http_tls_of(const struct vxd_http *http,
                                 struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        http->is_tls
            ? MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION)
            : NULL;

    return info != NULL ? info->tls_session : NULL;
}

bool vxd_http_is_accepted(struct vxd_http *http, struct MHD_Connection *connection)
{
    struct vxd_http_peer *peer = vxd_http_peer_of(connection);

    if (!http->is_tls) {
        return true;
    }
    if (peer == NULL) { /* there was no memory to note who it is */
        return false;
    }
    peer->has_begun = true;
    if (!vxd_tls_judge(http->server->tls, vxd_http_tls_of(http, connection),
                       &peer->certified)) {
        vxd_log(VXD_LOG_INFO, "connection ended: its certificate is no longer accepted");
        return false;
    }
    return true;
}

/* The acceptor forgets the fresh ones that it has waited for in vain, which may begin after all. */
static void count_begun(struct vxd_http *http)
{
    long n = atomic_load(&http->n_fresh);

    while (n > 0 && !atomic_compare_exchange_weak(&http->n_fresh, &n, n - 1)) {
    }
}

void vxd_http_on_connection(void *cls, struct MHD_Connection *connection, void **context,
                            enum MHD_ConnectionNotificationCode code)
{
    struct vxd_http *http = cls;
    struct vxd_http_peer *peer = *context;

    if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
        if (http->is_tls && peer != NULL && !peer->has_begun) {
            vxd_tls_count_failed(http->server->tls);
        }
        vxd_http_peer_is_served(http, peer);
        free(peer);
        *context = NULL;
        return;
    }
    count_begun(http);
    if (http->is_tls) {
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        const int on = 1;

        /* GnuTLS writes a flight of its handshake in pieces; without this the kernel would keep
         * the second one until the peer has acknowledged the first, 40 ms later. */
        if (info != NULL) {
            (void)setsockopt(info->connect_fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        }
        vxd_tls_attach(http->server->tls, vxd_http_tls_of(http, connection));
    }
    /* Without memory for this record a connection in the clear is served all the same. */
    peer = calloc(1, sizeof *peer);
    *context = peer;
    if (peer != NULL) {
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);

        peer->fd = info != NULL ? info->connect_fd : -1;
        vxd_http_peer_waits(http, peer);
    }
}
