// SPDX-License-Identifier: Apache-2.0
/* Writing replies. Whoever has a small one writes it at once; large ones and what the socket
 * does not take are left to the loop, so that no lane of the engine copies into sockets. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/clock.h"
#include "server/transport/nng/rpc_internal.h"

/* Larger replies take longer to copy into the socket than it takes to wake the loop. */
#define AT_ONCE_BYTES ((size_t)128 * 1024)
/* Most that is written of one connection before the others have their turn; its lock, which
 * whoever has a reply for it needs, is held meanwhile. */
#define FLUSH_SHARE_BYTES ((size_t)1 << 20)

void vxd_rpc_reply_free(struct vxd_rpc_reply *reply)
{
    if (reply != NULL) {
        vxd_host_free(reply->context, &reply->block);
        free(reply);
    }
}

/* The first reply is out: its request is over. */
static void end_reply(struct vxd_rpc_connection *connection)
{
    struct vxd_rpc_reply *reply = connection->replies;

    connection->replies = reply->next;
    if (connection->replies == NULL) {
        connection->last_reply = &connection->replies;
    }
    connection->n_open--;
    vxd_rpc_reply_free(reply);
}

bool vxd_rpc_flush(struct vxd_rpc_connection *connection)
{
    struct vxd_rpc *rpc = connection->loop->rpc;

    size_t n_flushed = 0;

    while (connection->replies != NULL && !connection->is_broken &&
           n_flushed < FLUSH_SHARE_BYTES) {
        struct vxd_rpc_reply *reply = connection->replies;
        size_t n_left = reply->n_bytes - reply->n_sent;
        ssize_t n =
            vxd_rpc_stream_send(connection, reply->bytes + reply->n_sent,
                                n_left < FLUSH_SHARE_BYTES ? n_left : FLUSH_SHARE_BYTES);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            connection->is_broken = errno != EAGAIN && errno != EWOULDBLOCK;
            return !connection->is_broken;
        }
        reply->n_sent += (size_t)n;
        connection->unsent_bytes -= (size_t)n;
        connection->n_sent += (size_t)n;
        n_flushed += (size_t)n;
        atomic_fetch_sub(&rpc->unsent_bytes, (size_t)n);
        connection->unsent_since_ns = vxd_clock_ns();
        if (reply->n_sent == reply->n_bytes) {
            end_reply(connection);
            atomic_fetch_sub(&rpc->n_open, 1);
        }
    }
    return !connection->is_broken;
}

void vxd_rpc_send(struct vxd_rpc_connection *connection, struct vxd_rpc_reply *take_reply)
{
    struct vxd_rpc *rpc = connection->loop->rpc;
    bool is_first;

    (void)pthread_mutex_lock(&connection->lock);
    if (connection->is_closed || take_reply == NULL) {
        connection->n_open--;
        connection->is_broken = true;
        vxd_rpc_reply_free(take_reply);
        vxd_rpc_note(connection);
        (void)pthread_mutex_unlock(&connection->lock);
        atomic_fetch_sub(&rpc->n_open, 1);
        atomic_fetch_sub(&rpc->n_unanswered, 1);
        return;
    }
    is_first = connection->replies == NULL;
    take_reply->next = NULL;
    *connection->last_reply = take_reply;
    connection->last_reply = &take_reply->next;
    connection->unsent_bytes += take_reply->n_bytes;
    atomic_fetch_add(&rpc->unsent_bytes, take_reply->n_bytes);
    if (is_first) {
        connection->unsent_since_ns = vxd_clock_ns();
        connection->unsent_began_ns = connection->unsent_since_ns;
        connection->n_sent = 0;
        if (take_reply->n_bytes <= AT_ONCE_BYTES) {
            (void)vxd_rpc_flush(connection);
        }
    }
    if (connection->replies != NULL || connection->is_broken ||
        connection->waits_for_replies) {
        vxd_rpc_note(connection);
    }
    (void)pthread_mutex_unlock(&connection->lock);
    atomic_fetch_sub(&rpc->n_unanswered, 1);
}
