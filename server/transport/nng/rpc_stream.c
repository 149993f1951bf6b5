// SPDX-License-Identifier: Apache-2.0
/* The bytes of a connection, in the clear or over TLS. A TLS session is used by one thread at a time:
 * the loop reads while others write, so both hold the connection's lock. */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/base/clock.h"
#include "server/observe/log/log.h"
#include "server/transport/nng/rpc_internal.h"

static void greet(struct vxd_rpc_connection *connection)
{
    uint8_t greeting[VXD_SP_GREETING_BYTES];

    vxd_sp_write_greeting(greeting, VXD_SP_REP);
    /* A fresh socket takes 8 bytes; where it does not, its peer has left, as reading shows. */
    (void)vxd_rpc_stream_send(connection, greeting, sizeof greeting);
    connection->phase = VXD_RPC_GREETING;
}

bool vxd_rpc_stream_create(struct vxd_rpc_connection *connection, bool is_tls)
{
    struct vxd_err err = {0};

    if (!is_tls) {
        greet(connection);
        return true;
    }
    connection->phase = VXD_RPC_HANDSHAKE;
    if (vxd_tls_session_create(connection->loop->rpc->server->tls, connection->fd,
                               &connection->tls, &err) != VXD_OK) {
        vxd_log(VXD_LOG_WARNING, "no connection can be accepted", "error", err.message);
        return false;
    }
    return true;
}

bool vxd_rpc_stream_shake_hands(struct vxd_rpc_connection *connection)
{
    const char *why;
    enum vxd_tls_progress progress;

    (void)pthread_mutex_lock(&connection->lock);
    progress = vxd_tls_session_handshake(connection->tls, &why);
    connection->wants_write = progress == VXD_TLS_WRITES;
    if (progress == VXD_TLS_DONE) {
        greet(connection);
    }
    (void)pthread_mutex_unlock(&connection->lock);
    connection->moved_ns = vxd_clock_ns();
    if (progress == VXD_TLS_FAILED) {
        vxd_log(VXD_LOG_INFO, "TLS handshake failed", "peer", connection->peer, "error",
                why);
    }
    return progress != VXD_TLS_FAILED;
}

bool vxd_rpc_stream_is_accepted(struct vxd_rpc_connection *connection)
{
    bool is_accepted = true;

    if (connection->tls != NULL) {
        (void)pthread_mutex_lock(&connection->lock);
        is_accepted = vxd_tls_session_judge(connection->tls, &connection->certified);
        (void)pthread_mutex_unlock(&connection->lock);
    }
    if (!is_accepted) {
        vxd_log(VXD_LOG_INFO, "connection ended: its certificate is no longer accepted",
                "peer", connection->peer);
    }
    return is_accepted;
}

ssize_t vxd_rpc_stream_recv(struct vxd_rpc_connection *connection, void *bytes,
                            size_t n_bytes)
{
    ssize_t n;
    int error;

    if (connection->tls == NULL) {
        return recv(connection->fd, bytes, n_bytes, 0);
    }
    (void)pthread_mutex_lock(&connection->lock);
    n = vxd_tls_session_recv(connection->tls, bytes, n_bytes);
    error = errno;
    (void)pthread_mutex_unlock(&connection->lock);
    errno = error;
    return n;
}

ssize_t vxd_rpc_stream_send(struct vxd_rpc_connection *connection, const void *bytes,
                            size_t n_bytes)
{
    return connection->tls == NULL
               ? send(connection->fd, bytes, n_bytes, MSG_NOSIGNAL | MSG_DONTWAIT)
               : vxd_tls_session_send(connection->tls, bytes, n_bytes);
}

bool vxd_rpc_stream_has_more(struct vxd_rpc_connection *connection)
{
    bool has_more = false;

    if (connection->tls != NULL && connection->phase != VXD_RPC_HANDSHAKE) {
        (void)pthread_mutex_lock(&connection->lock);
        has_more = vxd_tls_session_has_more(connection->tls);
        (void)pthread_mutex_unlock(&connection->lock);
    }
    return has_more;
}

void vxd_rpc_stream_close(struct vxd_rpc_connection *connection)
{
    vxd_tls_session_destroy(connection->tls);
    connection->tls = NULL;
    (void)close(connection->fd);
}
