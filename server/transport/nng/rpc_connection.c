// SPDX-License-Identifier: Apache-2.0
/* Reading: greeting, then messages. A small message is run from the connection's head memory;
 * a large one gets memory of its own once its first bytes have shown who sends it, and its rest
 * is received there. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/base/clock.h"
#include "server/instance/instance.h"
#include "server/observe/observe.h"
#include "server/transport/nng/rpc_internal.h"

/* Most that is read of one connection before the others have their turn. */
#define SHARE_BYTES ((size_t)1 << 20)
/* So much of a refused message is read and forgotten, since closing at once would take the answer
 * from a peer that is still sending; then its connection ends. */
#define MOST_DISCARDED_BYTES (UINT64_C(1) << 30)
/* Most small messages that are run of one connection before the others have their turn. */
#define MESSAGES_A_TURN 64

struct vxd_rpc_connection *
vxd_rpc_connection_create(struct vxd_rpc_loop *loop, int take_fd,
                          const struct vxd_rpc_listener *listener)
{
    struct vxd_rpc_connection *connection = calloc(1, sizeof *connection);

    if (connection != NULL) {
        connection->head = malloc(VXD_RPC_HEAD_BYTES);
    }
    if (connection == NULL || connection->head == NULL) {
        free(connection);
        (void)close(take_fd);
        return NULL;
    }
    connection->loop = loop;
    connection->fd = take_fd;
    connection->is_ipc = listener->is_ipc;
    connection->began_ns = vxd_clock_ns();
    connection->moved_ns = connection->began_ns;
    connection->last_reply = &connection->replies;
    atomic_init(&connection->references, 1);
    (void)pthread_mutex_init(&connection->lock, NULL);
    vxd_rpc_set_up_peer(take_fd, listener->is_ipc, connection->peer, &connection->uid);
    if (!vxd_rpc_stream_create(connection, listener->is_tls)) {
        vxd_rpc_connection_drop(connection);
        (void)close(take_fd);
        return NULL;
    }
    return connection;
}

void vxd_rpc_connection_drop(struct vxd_rpc_connection *connection)
{
    if (atomic_fetch_sub(&connection->references, 1) != 1) {
        return;
    }
    (void)pthread_mutex_destroy(&connection->lock);
    free(connection->head);
    free(connection);
}

static void count_arrived(struct vxd_rpc_connection *connection, size_t n_bytes)
{
    connection->n_arrived += n_bytes;
    connection->moved_ns = vxd_clock_ns();
    atomic_fetch_add(&connection->loop->rpc->arriving_bytes, n_bytes);
}

/* The message under way is complete, or given up. */
static void end_arrival(struct vxd_rpc_connection *connection)
{
    atomic_fetch_sub(&connection->loop->rpc->arriving_bytes, connection->n_arrived);
    connection->n_arrived = 0;
    connection->n_discarded = 0;
    connection->began_ns = 0;
}

static void consume(struct vxd_rpc_connection *connection, size_t n_bytes)
{
    connection->n_head -= n_bytes;
    memmove(connection->head, connection->head + n_bytes, connection->n_head);
}

/* The rest of a message of n_left bytes is read and forgotten; it holds no memory. */
static void begin_discard(struct vxd_rpc_connection *connection, uint64_t n_left)
{
    size_t n = n_left < connection->n_head ? (size_t)n_left : connection->n_head;

    consume(connection, n);
    atomic_fetch_sub(&connection->loop->rpc->arriving_bytes, connection->n_arrived);
    connection->n_arrived = 0;
    connection->n_discarded = 0;
    connection->n_discard = n_left - n;
    connection->phase = connection->n_discard > 0 ? VXD_RPC_DISCARD : VXD_RPC_HEAD;
    if (connection->n_discard == 0) {
        end_arrival(connection);
    }
}

/* A reply is due: vxd_rpc_send ends it. */
static void count_open(struct vxd_rpc_connection *connection)
{
    struct vxd_rpc *rpc = connection->loop->rpc;

    (void)pthread_mutex_lock(&connection->lock);
    connection->n_open++;
    (void)pthread_mutex_unlock(&connection->lock);
    atomic_fetch_add(&rpc->n_open, 1);
    atomic_fetch_add(&rpc->n_unanswered, 1);
}

/* Answers a message, of which n_left bytes with its head are here or to come, and forgets it. */
static void refuse(struct vxd_rpc_connection *connection,
                   const struct vxd_sp_route *route, const char *request_id,
                   const struct vxd_err *why, uint64_t n_left)
{
    count_open(connection);
    vxd_rpc_send(connection, vxd_rpc_pack_error(connection, route, request_id, why));
    begin_discard(connection, n_left);
}

/* What arrives of all peers together is bounded by what may be in flight. */
static bool has_place_for_arrivals(const struct vxd_rpc *rpc, struct vxd_err *err)
{
    uint64_t limit = rpc->server->config.inflight_bytes;

    if (atomic_load(&rpc->arriving_bytes) <= limit) {
        return true;
    }
    vxd_metrics_count_rejected(rpc->server->metrics, "inflight_bytes");
    (void)vxd_fail(
        err, VXD_RESOURCE_EXHAUSTED, NULL,
        "messages that are still arriving hold limits.inflight_bytes, %llu; try "
        "again later",
        (unsigned long long)limit);
    return false;
}

/* Counts the message as under way and runs it. */
static void run_message(struct vxd_rpc_connection *connection,
                        struct vxd_rpc_message *take_message)
{
    struct vxd_rpc *rpc = connection->loop->rpc;

    vxd_upload_memory_complete(rpc->server, &take_message->memory);
    take_message->began_ns = connection->began_ns;
    end_arrival(connection);
    connection->n_turn++;
    count_open(connection);
    vxd_rpc_message_run(take_message);
}

/* The route and n_bytes of a message begin at head + n_head_bytes. Moves what is there of it
 * into memory of its own. */
static void begin_message(struct vxd_rpc_connection *connection,
                          const struct vxd_sp_route *route, size_t n_head_bytes,
                          size_t n_bytes)
{
    struct vxd_rpc_message *message = vxd_rpc_message_create(connection, n_bytes);
    size_t n_there = connection->n_head - n_head_bytes;
    struct vxd_err err = {0};

    if (message == NULL) {
        (void)vxd_fail(&err, VXD_RESOURCE_EXHAUSTED, NULL,
                       "no memory for a message of %zu bytes", n_bytes);
        refuse(connection, route, "", &err, n_head_bytes + n_bytes);
        return;
    }
    message->route = *route;
    n_there = n_there < n_bytes ? n_there : n_bytes;
    memcpy(message->bytes, connection->head + n_head_bytes, n_there);
    message->n_there = n_there;
    consume(connection, n_head_bytes + n_there);
    if (n_there == n_bytes) {
        run_message(connection, message);
        return;
    }
    connection->message = message;
    connection->phase = VXD_RPC_BODY;
}

/* The message that begins in the head memory, which holds all of it or is full: small ones are
 * run, large ones are begun or refused. */
static bool take_message(struct vxd_rpc_connection *connection, size_t n_head_bytes,
                         uint64_t n_bytes)
{
    const uint8_t *bytes = connection->head + n_head_bytes;
    size_t n_there = connection->n_head - n_head_bytes;
    char request_id[VXD_NAME_BYTES] = "";
    struct vxd_sp_route route;
    struct vxd_err err = {0};

    n_there = n_there < n_bytes ? n_there : (size_t)n_bytes;
    if (vxd_sp_read_route(bytes, n_there, &route) != VXD_SP_OK) {
        return false; /* no request, so nobody waits for an answer */
    }
    if (n_there < n_bytes &&
        (vxd_rpc_message_check(connection, bytes + route.n_bytes, n_there - route.n_bytes,
                               n_bytes - route.n_bytes, request_id, &err) != VXD_OK ||
         !has_place_for_arrivals(connection->loop->rpc, &err))) {
        refuse(connection, &route, request_id, &err, n_head_bytes + n_bytes);
    } else {
        begin_message(connection, &route, n_head_bytes, (size_t)n_bytes);
    }
    return true;
}

/* Whether requests of this one may still be taken, or it has to read its replies first. */
static bool may_take(struct vxd_rpc_connection *connection)
{
    const struct vxd_rpc *rpc = connection->loop->rpc;
    bool may;

    (void)pthread_mutex_lock(&connection->lock);
    may = connection->n_open < rpc->max_open &&
          connection->unsent_bytes <= rpc->server->config.max_message_bytes &&
          (connection->unsent_bytes == 0 ||
           atomic_load(&rpc->unsent_bytes) <= rpc->server->config.inflight_bytes);
    connection->waits_for_replies = !may;
    (void)pthread_mutex_unlock(&connection->lock);
    return may;
}

/* Runs what is complete in the head memory. */
static bool take_messages(struct vxd_rpc_connection *connection)
{
    while (connection->phase == VXD_RPC_HEAD && connection->n_head > 0) {
        size_t n_head_bytes = vxd_sp_head_bytes(connection->is_ipc);
        uint64_t n_bytes = 0;
        enum vxd_sp_result result;

        if (connection->began_ns == 0) {
            connection->began_ns = vxd_clock_ns();
            count_arrived(connection, connection->n_head);
        }
        result = vxd_sp_read_head(connection->head, connection->n_head,
                                  connection->is_ipc, &n_bytes);
        if (result != VXD_SP_OK) {
            return result == VXD_SP_MORE;
        }
        if (n_bytes > INT64_MAX) {
            return false; /* no peer means it, and sums with it would overflow */
        }
        if (n_bytes > VXD_RPC_HEAD_BYTES - n_head_bytes
                ? connection->n_head < VXD_RPC_HEAD_BYTES
                : connection->n_head - n_head_bytes < n_bytes) {
            return true;
        }
        if (!may_take(connection)) {
            return true;
        }
        if (connection->n_turn >= MESSAGES_A_TURN) {
            (void)pthread_mutex_lock(&connection->lock);
            connection->waits_for_turn = true;
            vxd_rpc_note(connection);
            (void)pthread_mutex_unlock(&connection->lock);
            return true;
        }
        if (!vxd_rpc_stream_is_accepted(connection) ||
            !take_message(connection, n_head_bytes, n_bytes)) {
            return false;
        }
    }
    return true;
}

static bool take_greeting(struct vxd_rpc_connection *connection)
{
    switch (vxd_sp_check_greeting(connection->head, connection->n_head, VXD_SP_REQ)) {
    case VXD_SP_OK:
        consume(connection, VXD_SP_GREETING_BYTES);
        connection->phase = VXD_RPC_HEAD;
        end_arrival(connection);
        return true;
    case VXD_SP_MORE:
        return true;
    default:
        return false;
    }
}

/* Refuses the message under way, of which too much has come for all. */
static void give_up_message(struct vxd_rpc_connection *connection,
                            const struct vxd_err *why)
{
    struct vxd_rpc_message *message = connection->message;
    const struct vxd_sp_route route = message->route;
    uint64_t n_left = message->n_bytes - message->n_there;

    connection->message = NULL;
    vxd_rpc_message_destroy(message);
    refuse(connection, &route, "", why, n_left);
}

/* n_bytes more have come to where next_place said. */
static bool on_bytes(struct vxd_rpc_connection *connection, size_t n_bytes)
{
    struct vxd_rpc_message *message = connection->message;
    struct vxd_err err = {0};

    if (connection->phase == VXD_RPC_DISCARD) {
        connection->n_discarded += n_bytes;
        connection->moved_ns = vxd_clock_ns();
    } else if (connection->began_ns != 0) {
        count_arrived(connection, n_bytes);
    }
    switch (connection->phase) {
    case VXD_RPC_BODY:
        message->n_there += n_bytes;
        if (message->n_there < message->n_bytes &&
            !has_place_for_arrivals(connection->loop->rpc, &err)) {
            give_up_message(connection, &err);
            return true;
        }
        if (message->n_there == message->n_bytes) {
            connection->message = NULL;
            connection->phase = VXD_RPC_HEAD;
            run_message(connection, message);
        }
        return true;
    case VXD_RPC_DISCARD:
        connection->n_discard -= n_bytes;
        if (connection->n_discard == 0) {
            connection->phase = VXD_RPC_HEAD;
            end_arrival(connection);
        }
        return connection->n_discarded <= MOST_DISCARDED_BYTES;
    default:
        connection->n_head += n_bytes;
        if (connection->phase == VXD_RPC_GREETING && !take_greeting(connection)) {
            return false;
        }
        return take_messages(connection);
    }
}

/* Where the next bytes belong; *n_bytes 0: nowhere, until replies have gone. */
static uint8_t *next_place(struct vxd_rpc_connection *connection, size_t *n_bytes)
{
    struct vxd_rpc_message *message = connection->message;

    switch (connection->phase) {
    case VXD_RPC_BODY:
        *n_bytes = message->n_bytes - message->n_there;
        return message->bytes + message->n_there;
    case VXD_RPC_DISCARD: /* the head memory is empty then */
        *n_bytes = connection->n_discard < VXD_RPC_HEAD_BYTES
                       ? (size_t)connection->n_discard
                       : VXD_RPC_HEAD_BYTES;
        return connection->head;
    default:
        *n_bytes = VXD_RPC_HEAD_BYTES - connection->n_head;
        return connection->head + connection->n_head;
    }
}

/* Bytes that TLS holds already do not wake the loop. */
static void note_more(struct vxd_rpc_connection *connection)
{
    if (vxd_rpc_stream_has_more(connection)) {
        (void)pthread_mutex_lock(&connection->lock);
        connection->waits_for_turn = true;
        vxd_rpc_note(connection);
        (void)pthread_mutex_unlock(&connection->lock);
    }
}

bool vxd_rpc_connection_read(struct vxd_rpc_connection *connection)
{
    size_t n_read = 0;

    if (connection->phase == VXD_RPC_HANDSHAKE &&
        !vxd_rpc_stream_shake_hands(connection)) {
        return false;
    }
    if (connection->phase == VXD_RPC_HANDSHAKE) {
        return true;
    }
    connection->n_turn = 0;
    while (n_read < SHARE_BYTES) {
        size_t n_wanted;
        uint8_t *place = next_place(connection, &n_wanted);
        ssize_t n;

        n_wanted = n_wanted < SHARE_BYTES ? n_wanted : SHARE_BYTES;
        if (n_wanted == 0) {
            return true;
        }
        n = vxd_rpc_stream_recv(connection, place, n_wanted);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
        }
        if (!on_bytes(connection, (size_t)n)) {
            return false;
        }
        n_read += (size_t)n;
        /* Less than asked for: the socket is empty, and asking again would only say so. TLS gives
         * no more than a record at a time. */
        if ((size_t)n < n_wanted && connection->tls == NULL) {
            return true;
        }
    }
    note_more(connection);
    return true;
}

bool vxd_rpc_connection_resume(struct vxd_rpc_connection *connection)
{
    bool is_alive;
    bool waits;

    if (connection->phase == VXD_RPC_HANDSHAKE) {
        return vxd_rpc_connection_read(connection);
    }
    connection->n_turn = 0;
    (void)pthread_mutex_lock(&connection->lock);
    is_alive = vxd_rpc_flush(connection);
    waits = connection->waits_for_replies || connection->waits_for_turn;
    connection->waits_for_turn = false;
    (void)pthread_mutex_unlock(&connection->lock);
    waits = is_alive && waits && may_take(connection);
    if (waits) {
        is_alive = take_messages(connection);
    }
    return is_alive && waits && vxd_rpc_stream_has_more(connection)
               ? vxd_rpc_connection_read(connection)
               : is_alive;
}

/* Nobody waits for the outcome any more. */
static void cancel_open(struct vxd_rpc_connection *connection)
{
    for (;;) {
        struct vxd_request *request = NULL;
        struct vxd_rpc_message *message;

        (void)pthread_mutex_lock(&connection->lock);
        message = connection->open;
        if (message != NULL) {
            vxd_rpc_message_unlink(message);
            request = message->request;
            vxd_request_hold(request);
        }
        (void)pthread_mutex_unlock(&connection->lock);
        if (message == NULL) {
            return;
        }
        vxd_request_cancel(request);
        vxd_request_drop(request);
    }
}

void vxd_rpc_connection_close(struct vxd_rpc_connection *connection)
{
    struct vxd_rpc *rpc = connection->loop->rpc;

    (void)pthread_mutex_lock(&connection->lock);
    connection->is_closed = true;
    vxd_rpc_stream_close(connection);
    while (connection->replies != NULL) {
        struct vxd_rpc_reply *reply = connection->replies;

        connection->replies = reply->next;
        connection->n_open--;
        atomic_fetch_sub(&rpc->n_open, 1);
        atomic_fetch_sub(&rpc->unsent_bytes, reply->n_bytes - reply->n_sent);
        vxd_rpc_reply_free(reply);
    }
    connection->last_reply = &connection->replies;
    (void)pthread_mutex_unlock(&connection->lock);
    if (connection->message != NULL) {
        vxd_rpc_message_destroy(connection->message);
        connection->message = NULL;
    }
    end_arrival(connection);
    cancel_open(connection);
}
