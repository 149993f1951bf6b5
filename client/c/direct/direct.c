// SPDX-License-Identifier: Apache-2.0
#include "client/c/direct/direct.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "client/c/direct/direct_internal.h"
#include "proto/wire/wire.h"

enum {
    MAX_CONNECTIONS = 4,
    RETRY_MS = 1000, /* after the server did not take one more connection */
    /* What is read at once in front of a reply's own memory: a small reply is whole in it. */
    HEAD_BYTES = 16384,
    /* Two pieces around each part, the head and the rest. */
    MAX_PIECES = 2 * VXD_MAX_PARTS + 2
};

#define REQUEST_ID_BIT 0x80000000u

struct vxd_direct_connection {
    struct vxd_direct_connection *next; /* idle, for longer */
    nng_time idle_since;
    int fd;
    uint8_t head[HEAD_BYTES];
};

struct vxd_direct {
    struct vxd_direct_address address;
    size_t max_reply_bytes;

    pthread_mutex_t mutex; /* guards the rest */
    struct vxd_direct_connection *idle;
    size_t n_connections;
    nng_time retry_at;
    uint32_t last_id;
};

/* A call's place in its bytes and its time. */
struct exchange {
    struct vxd_direct_connection *connection;
    const struct vxd_direct_watch *watch;
    nng_time deadline;
    bool is_ipc;
    size_t max_bytes; /* of the reply */
};

enum vxd_status vxd_direct_create(const char *url, size_t max_reply_bytes,
                                  struct vxd_direct **out, struct vxd_err *err)
{
    const char *transport = getenv(VXD_TRANSPORT_VARIABLE);
    struct vxd_direct_address address;
    struct vxd_direct *direct;

    *out = NULL;
    if ((transport != NULL && strcmp(transport, "nng") == 0) ||
        !vxd_direct_read_url(url, &address)) {
        return VXD_OK;
    }
    direct = calloc(1, sizeof *direct);
    if (direct == NULL || pthread_mutex_init(&direct->mutex, NULL) != 0) {
        free(direct);
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                        "no memory or mutex for connections");
    }
    direct->address = address;
    direct->max_reply_bytes = max_reply_bytes;
    direct->last_id = nng_random();
    *out = direct;
    return VXD_OK;
}

static void close_connection(struct vxd_direct_connection *connection)
{
    (void)close(connection->fd);
    free(connection);
}

void vxd_direct_destroy(struct vxd_direct *direct)
{
    if (direct == NULL) {
        return;
    }
    while (direct->idle != NULL) {
        struct vxd_direct_connection *next = direct->idle->next;

        close_connection(direct->idle);
        direct->idle = next;
    }
    (void)pthread_mutex_destroy(&direct->mutex);
    free(direct);
}

/* Whether the other end is still there and has said nothing, as between calls it does not. */
static bool is_quiet(const struct vxd_direct_connection *connection)
{
    uint8_t byte;

    return recv(connection->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 &&
           (errno == EAGAIN || errno == EWOULDBLOCK);
}

static void count_closed(struct vxd_direct *direct, bool was_refused)
{
    (void)pthread_mutex_lock(&direct->mutex);
    direct->n_connections--;
    if (was_refused) {
        direct->retry_at = nng_clock() + RETRY_MS;
    }
    (void)pthread_mutex_unlock(&direct->mutex);
}

void vxd_direct_close_idle(struct vxd_direct *direct, nng_time now)
{
    struct vxd_direct_connection *old = NULL;

    (void)pthread_mutex_lock(&direct->mutex);
    if (direct->idle != NULL) {
        struct vxd_direct_connection **link = &direct->idle->next;

        /* The list is by their times, the latest first. */
        while (*link != NULL && (*link)->idle_since + VXD_DIRECT_IDLE_MS > now) {
            link = &(*link)->next;
        }
        old = *link;
        *link = NULL;
        for (struct vxd_direct_connection *c = old; c != NULL; c = c->next) {
            direct->n_connections--;
        }
    }
    (void)pthread_mutex_unlock(&direct->mutex);
    while (old != NULL) {
        struct vxd_direct_connection *next = old->next;

        close_connection(old);
        old = next;
    }
}

struct vxd_direct_connection *vxd_direct_take(struct vxd_direct *direct,
                                              nng_time deadline)
{
    struct vxd_direct_connection *connection;
    bool may_open;

    if (direct == NULL) {
        return NULL;
    }
    vxd_direct_close_idle(direct, nng_clock());
    for (;;) {
        (void)pthread_mutex_lock(&direct->mutex);
        connection = direct->idle;
        if (connection != NULL) {
            direct->idle = connection->next;
        }
        may_open = connection == NULL && direct->n_connections < MAX_CONNECTIONS &&
                   nng_clock() >= direct->retry_at;
        direct->n_connections += may_open ? 1 : 0;
        (void)pthread_mutex_unlock(&direct->mutex);
        if (connection == NULL) {
            break;
        }
        if (is_quiet(connection)) {
            return connection;
        }
        close_connection(connection);
        count_closed(direct, false);
    }
    if (!may_open) {
        return NULL;
    }
    connection = malloc(sizeof *connection);
    if (connection != NULL) {
        connection->next = NULL;
        connection->fd = vxd_direct_dial(&direct->address, deadline);
    }
    if (connection == NULL || connection->fd < 0) {
        free(connection);
        count_closed(direct, true);
        return NULL;
    }
    return connection;
}

void vxd_direct_give(struct vxd_direct *direct,
                     struct vxd_direct_connection *take_connection, bool is_usable)
{
    if (!is_usable) {
        close_connection(take_connection);
        count_closed(direct, false);
        return;
    }
    (void)pthread_mutex_lock(&direct->mutex);
    take_connection->idle_since = nng_clock();
    take_connection->next = direct->idle;
    direct->idle = take_connection;
    (void)pthread_mutex_unlock(&direct->mutex);
    vxd_direct_close_idle(direct, nng_clock());
}

/* Waits until the socket is ready, or for the deadline. */
static int await(const struct exchange *e, short events)
{
    for (;;) {
        struct pollfd polled = {.fd = e->connection->fd, .events = events};
        nng_time now = nng_clock();
        nng_time left = e->deadline > now ? e->deadline - now : 0;
        bool is_watched = e->watch->waits != NULL && left > e->watch->every_ms;
        int n = poll(&polled, 1, is_watched ? (int)e->watch->every_ms : (int)left);

        if (n > 0) {
            return 0;
        }
        if (n < 0 && errno != EINTR) {
            return NNG_ECONNRESET;
        }
        if (n == 0 && !is_watched) {
            return NNG_ETIMEDOUT;
        }
        if (n == 0) {
            e->watch->waits(e->watch->user);
        }
    }
}

static size_t add_piece(struct iovec *pieces, size_t n, const void *bytes, size_t n_bytes)
{
    if (n_bytes > 0) {
        pieces[n++] =
            (struct iovec){.iov_base = (void *)(uintptr_t)bytes, .iov_len = n_bytes};
    }
    return n;
}

/* Where all the bytes of a request lie, in their order. */
static size_t list_pieces(const struct vxd_packed *request, const uint8_t *head,
                          size_t n_head, struct iovec *pieces)
{
    size_t n = add_piece(pieces, 0, head, n_head);
    size_t at = 0;

    for (size_t i = 0; i < request->n_parts; i++) {
        n = add_piece(pieces, n, request->bytes + at, request->parts[i].at - at);
        n = add_piece(pieces, n, request->parts[i].data, request->parts[i].n_bytes);
        at = request->parts[i].at + request->parts[i].n_bytes;
    }
    return add_piece(pieces, n, request->bytes + at, request->n_bytes - at);
}

static int send_pieces(const struct exchange *e, struct iovec *pieces, size_t n_pieces,
                       bool *sent)
{
    struct msghdr message = {.msg_iov = pieces, .msg_iovlen = n_pieces};

    while (message.msg_iovlen > 0) {
        ssize_t n = sendmsg(e->connection->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        int result = 0;

        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            result = await(e, POLLOUT);
        } else if (n < 0 && errno != EINTR) {
            result = NNG_ECONNRESET;
        }
        if (result != 0) {
            return result;
        }
        *sent = *sent || n > 0;
        while (n > 0) {
            size_t n_whole = message.msg_iov->iov_len;

            if ((size_t)n < n_whole) {
                message.msg_iov->iov_base = (uint8_t *)message.msg_iov->iov_base + n;
                message.msg_iov->iov_len = n_whole - (size_t)n;
                break;
            }
            n -= (ssize_t)n_whole;
            message.msg_iov++;
            message.msg_iovlen--;
        }
    }
    return 0;
}

/* Receives at least n_least bytes into a place for n_most. */
static int receive(const struct exchange *e, uint8_t *out, size_t n_least, size_t n_most,
                   size_t *n_there)
{
    *n_there = 0;
    while (*n_there < n_least) {
        ssize_t n =
            recv(e->connection->fd, out + *n_there, n_most - *n_there, MSG_DONTWAIT);
        int result = 0;

        if (n > 0) {
            *n_there += (size_t)n;
        } else if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            result = await(e, POLLIN);
        } else if (n == 0 || errno != EINTR) {
            result = NNG_ECONNRESET;
        }
        if (result != 0) {
            return result;
        }
    }
    return 0;
}

/* Receives the reply to the request of this route. A connection has one call, so whatever else
 * comes is no reply of a server's. */
static int receive_reply(const struct exchange *e, const uint8_t *route,
                         struct vxd_reply_memory *memory, struct vxd_message *reply)
{
    uint8_t *head = e->connection->head;
    size_t n_head = vxd_sp_head_bytes(e->is_ipc);
    size_t n_first = n_head + VXD_SP_WORD_BYTES;
    uint64_t n_message = 0;
    size_t n_there;
    size_t n_rest;
    int result = receive(e, head, n_first, HEAD_BYTES, &n_there);

    if (result != 0) {
        return result;
    }
    if (vxd_sp_read_head(head, n_there, e->is_ipc, &n_message) != VXD_SP_OK ||
        n_message < VXD_SP_WORD_BYTES ||
        memcmp(head + n_head, route, VXD_SP_WORD_BYTES) != 0) {
        return NNG_EPROTO;
    }
    if (n_message > e->max_bytes) {
        return NNG_EMSGSIZE;
    }
    n_message -= VXD_SP_WORD_BYTES;
    n_there -= n_first;
    if (n_there > n_message) {
        return NNG_EPROTO;
    }
    if (!vxd_message_create(memory, (size_t)n_message, reply)) {
        return NNG_ENOMEM;
    }
    memcpy(reply->body, head + n_first, n_there);
    n_rest = (size_t)n_message - n_there;
    result = receive(e, reply->body + n_there, n_rest, n_rest, &n_there);
    if (result != 0) {
        vxd_message_free(reply);
    }
    return result;
}

/* Ids of one connection differ, as nng's do; the highest bit ends the route. */
static void write_route(struct vxd_direct *direct, uint8_t out[VXD_SP_WORD_BYTES])
{
    uint32_t id;

    (void)pthread_mutex_lock(&direct->mutex);
    id = ++direct->last_id | REQUEST_ID_BIT;
    (void)pthread_mutex_unlock(&direct->mutex);
    for (int i = 0; i < VXD_SP_WORD_BYTES; i++) {
        out[i] = (uint8_t)(id >> (24 - 8 * i));
    }
}

int vxd_direct_exchange(struct vxd_direct *direct,
                        struct vxd_direct_connection *connection,
                        const struct vxd_packed *request, nng_time deadline,
                        const struct vxd_direct_watch *watch,
                        struct vxd_reply_memory *memory, bool *sent,
                        struct vxd_message *reply)
{
    const struct exchange e = {.connection = connection,
                               .watch = watch,
                               .deadline = deadline,
                               .is_ipc = direct->address.is_ipc,
                               .max_bytes = direct->max_reply_bytes};
    uint8_t head[VXD_SP_MAX_HEAD_BYTES + VXD_SP_WORD_BYTES];
    struct iovec pieces[MAX_PIECES];
    size_t n_head =
        vxd_sp_write_head(head, e.is_ipc, VXD_SP_WORD_BYTES + request->n_bytes);
    int result;

    *sent = false;
    *reply = (struct vxd_message){0};
    write_route(direct, head + n_head);
    result = send_pieces(
        &e, pieces, list_pieces(request, head, n_head + VXD_SP_WORD_BYTES, pieces), sent);
    if (result != 0) {
        return result;
    }
    return receive_reply(&e, head + n_head, memory, reply);
}
