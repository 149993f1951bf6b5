// SPDX-License-Identifier: Apache-2.0
/* One thread for all WebSockets. It alone touches libwslay and the descriptors; others leave what
 * they send in a socket's list and the socket in the list of those to look at, and wake it. */
#include "server/transport/websocket/websocket.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>
#include <wslay/wslay.h>

#include "proto/base/clock.h"

#define SECOND_NS INT64_C(1000000000)
/* Silence after which a peer is pinged, and after which it is cut; and how long a message or the
 * closing may take. */
#define PING_NS (15 * SECOND_NS)
#define SILENCE_NS (60 * SECOND_NS)
#define MESSAGE_NS (5 * SECOND_NS)
#define CLOSE_NS (2 * SECOND_NS)
#define TICK_MS 1000

enum {
    MOST_EVENTS = 64,
    READ_BYTES = 65536,  /* of one socket in a turn */
    QUEUE_BYTES = 65536, /* with so much to send, nothing is read */
    REASON_BYTES = 124
};

struct message {
    struct message *next;
    char *bytes;
    size_t n_bytes;
    bool is_text;
};

struct vxd_socket {
    struct vxd_sockets *sockets;
    struct vxd_socket_options options;
    atomic_int references; /* the thread's, and of who holds it */

    /* The thread's alone. */
    wslay_event_context_ptr context;
    uint8_t *early;
    size_t n_early;
    size_t at_early;
    size_t n_read; /* in this turn */
    uint32_t events;
    int64_t heard_ns;
    int64_t sent_ns;    /* some bytes left, or none waited */
    int64_t message_ns; /* the message that is coming began; 0 = none */
    int64_t close_ns;   /* its end began; 0 = not yet */
    bool in_message;    /* between two frames of one */
    bool is_pinged;
    bool has_failed;
    bool
        lingers; /* its close frame is out, not yet the peer's in: what comes is dropped */
    bool is_open;
    bool is_drained; /* drained is to be called */
    struct vxd_socket *next;

    /* Under the sockets' lock. */
    struct message *first;
    struct message *last;
    uint16_t close_code; /* 0 = no */
    char close_reason[REASON_BYTES];
    bool is_woken;
    bool is_gone;
    bool is_listed; /* among those to look at */
    struct vxd_socket *next_listed;
};

struct vxd_sockets {
    int epoll_fd;
    int wake_fd;
    pthread_t thread;
    atomic_int references;   /* its owner's and its sockets' */
    struct vxd_socket *open; /* the thread's */

    pthread_mutex_t lock; /* guards the rest */
    struct vxd_socket *listed;
    bool is_stopping;
};

static void wake(struct vxd_sockets *sockets)
{
    const uint64_t one = 1;

    while (write(sockets->wake_fd, &one, sizeof one) < 0 && errno == EINTR) {
    }
}

/* --- libwslay's calls ----------------------------------------------------------------------- */

static ssize_t recv_bytes(wslay_event_context_ptr context, uint8_t *out, size_t capacity,
                          int flags, void *user)
{
    struct vxd_socket *socket = user;
    size_t left = socket->n_early - socket->at_early;
    ssize_t n;

    (void)flags;
    if (socket->n_read >= READ_BYTES ||
        wslay_event_get_queued_msg_length(context) > QUEUE_BYTES) {
        wslay_event_set_error(context, WSLAY_ERR_WOULDBLOCK);
        return -1;
    }
    if (left > 0) {
        n = (ssize_t)(left < capacity ? left : capacity);
        memcpy(out, socket->early + socket->at_early, (size_t)n);
        socket->at_early += (size_t)n;
    } else {
        do {
            n = recv(socket->options.fd, out, capacity, MSG_DONTWAIT);
        } while (n < 0 && errno == EINTR);
    }
    if (n > 0) {
        socket->n_read += (size_t)n;
        socket->heard_ns = vxd_clock_ns();
        socket->is_pinged = false;
        return n;
    }
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
        wslay_event_set_error(context, WSLAY_ERR_WOULDBLOCK);
    } else {
        wslay_event_set_error(context, WSLAY_ERR_CALLBACK_FAILURE);
        socket->has_failed = true; /* the peer has gone */
    }
    return -1;
}

static ssize_t send_bytes(wslay_event_context_ptr context, const uint8_t *bytes,
                          size_t n_bytes, int flags, void *user)
{
    struct vxd_socket *socket = user;
    int more = (flags & WSLAY_MSG_MORE) != 0 ? MSG_MORE : 0;
    ssize_t n;

    do {
        n = send(socket->options.fd, bytes, n_bytes, MSG_NOSIGNAL | MSG_DONTWAIT | more);
    } while (n < 0 && errno == EINTR);
    if (n >= 0) {
        socket->sent_ns = vxd_clock_ns();
        return n;
    }
    wslay_event_set_error(context, errno == EAGAIN || errno == EWOULDBLOCK
                                       ? WSLAY_ERR_WOULDBLOCK
                                       : WSLAY_ERR_CALLBACK_FAILURE);
    return -1;
}

static void on_frame(wslay_event_context_ptr context,
                     const struct wslay_event_on_frame_recv_start_arg *frame, void *user)
{
    struct vxd_socket *socket = user;

    (void)context;
    if (socket->message_ns == 0) {
        socket->message_ns = vxd_clock_ns();
    }
    if (!wslay_is_ctrl_frame(frame->opcode)) {
        socket->in_message = true;
    }
}

static void on_message(wslay_event_context_ptr context,
                       const struct wslay_event_on_msg_recv_arg *message, void *user)
{
    struct vxd_socket *socket = user;
    bool is_control = wslay_is_ctrl_frame(message->opcode);

    (void)context;
    if (!is_control) {
        socket->in_message = false;
    }
    if (!socket->in_message) {
        socket->message_ns = 0;
    }
    if (!is_control && socket->close_ns == 0) {
        socket->options.calls->received(socket->options.session,
                                        message->opcode == WSLAY_TEXT_FRAME, message->msg,
                                        message->msg_length);
    }
}

/* --- a socket, on the thread ---------------------------------------------------------------- */

static void close_with(struct vxd_socket *socket, uint16_t code, const char *reason)
{
    if (socket->close_ns == 0) {
        socket->close_ns = vxd_clock_ns();
        if (wslay_event_queue_close(socket->context, code, (const uint8_t *)reason,
                                    strlen(reason)) != 0) {
            socket->has_failed = true;
        }
    }
}

/* Hands what others left to libwslay. */
static void take_messages(struct vxd_socket *socket)
{
    struct vxd_sockets *sockets = socket->sockets;
    struct message *first;
    char reason[REASON_BYTES];
    uint16_t code;

    (void)pthread_mutex_lock(&sockets->lock);
    first = socket->first;
    socket->first = socket->last = NULL;
    code = socket->close_code;
    memcpy(reason, socket->close_reason, sizeof reason);
    socket->is_drained = socket->is_drained || socket->is_woken;
    socket->is_woken = false;
    (void)pthread_mutex_unlock(&sockets->lock);
    while (first != NULL) {
        struct message *next = first->next;
        struct wslay_event_msg message = {.opcode = first->is_text ? WSLAY_TEXT_FRAME
                                                                   : WSLAY_BINARY_FRAME,
                                          .msg = (const uint8_t *)first->bytes,
                                          .msg_length = first->n_bytes};

        if (socket->close_ns == 0 &&
            wslay_event_queue_msg(socket->context, &message) == WSLAY_ERR_NOMEM) {
            socket->has_failed = true; /* what follows must not come without it */
        }
        socket->is_drained = true;
        free(first->bytes);
        free(first);
        first = next;
    }
    if (code != 0) {
        close_with(socket, code, reason);
    }
}

static bool wants_write(const struct vxd_socket *socket)
{
    return wslay_event_want_write(socket->context) != 0;
}

/* Whether nothing is left to do. A peer that broke a rule may still be sending: closing at once
 * would reset the connection, and our close frame, which says why, would be lost. */
static bool is_over(struct vxd_socket *socket)
{
    if (socket->has_failed) {
        return true;
    }
    if (wslay_event_want_read(socket->context) != 0 || wants_write(socket)) {
        return false;
    }
    if (wslay_event_get_close_received(socket->context) != 0) {
        return true;
    }
    if (!socket->lingers) {
        socket->lingers = true;
        socket->close_ns = vxd_clock_ns();
        (void)shutdown(socket->options.fd, SHUT_WR);
    }
    return false;
}

static void drop_bytes(struct vxd_socket *socket)
{
    char bytes[4096];
    ssize_t n = 1;

    for (size_t n_read = 0; n > 0 && n_read < READ_BYTES; n_read += (size_t)n) {
        n = recv(socket->options.fd, bytes, sizeof bytes, MSG_DONTWAIT);
        if (n == 0 ||
            (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) {
            socket->has_failed = true;
        }
    }
}

/* Asks epoll for what can go on now. */
static void set_events(struct vxd_socket *socket)
{
    bool is_full = wslay_event_get_queued_msg_length(socket->context) > QUEUE_BYTES;
    uint32_t events = (is_full ? 0 : (uint32_t)EPOLLIN) |
                      (wants_write(socket) ? (uint32_t)EPOLLOUT : 0);
    struct epoll_event event = {.events = events, .data.ptr = socket};

    if (events != socket->events) {
        socket->events = events;
        if (epoll_ctl(socket->sockets->epoll_fd, EPOLL_CTL_MOD, socket->options.fd,
                      &event) != 0) {
            socket->has_failed = true;
        }
    }
}

/* Sends, and asks for more when all has left, until the kernel takes no more. */
static void send_on(struct vxd_socket *socket)
{
    for (;;) {
        take_messages(socket);
        if (socket->has_failed) {
            return;
        }
        if (wants_write(socket) && wslay_event_send(socket->context) != 0) {
            socket->has_failed = true;
            return;
        }
        if (wants_write(socket) || socket->close_ns != 0 || !socket->is_drained) {
            break;
        }
        socket->sent_ns = vxd_clock_ns();
        socket->is_drained = false;
        socket->options.calls->drained(socket->options.session);
    }
    set_events(socket);
}

static void receive(struct vxd_socket *socket)
{
    socket->n_read = 0;
    if (socket->lingers) {
        drop_bytes(socket);
        return;
    }
    /* It fails where a frame is none, too: then it has queued a close frame. */
    if (wslay_event_want_read(socket->context) != 0 &&
        wslay_event_recv(socket->context) != 0 && !wants_write(socket)) {
        socket->has_failed = true;
    }
    if (wslay_event_get_close_received(socket->context) != 0 && socket->close_ns == 0) {
        socket->close_ns = vxd_clock_ns();
    }
}

/* Pings the silent, and ends what takes too long. */
static void check_times(struct vxd_socket *socket, int64_t now_ns)
{
    const struct wslay_event_msg ping = {.opcode = WSLAY_PING};
    bool is_waiting = wants_write(socket);

    if (!is_waiting) {
        socket->sent_ns = now_ns;
    }
    if ((socket->close_ns != 0 && now_ns - socket->close_ns > CLOSE_NS) ||
        now_ns - socket->sent_ns > SILENCE_NS ||
        (!is_waiting && now_ns - socket->heard_ns > SILENCE_NS)) {
        socket->has_failed = true;
    } else if (socket->message_ns != 0 && now_ns - socket->message_ns > MESSAGE_NS) {
        close_with(socket, VXD_SOCKET_REFUSED, "a message took longer than 5 s");
    } else if (!is_waiting && !socket->is_pinged && socket->close_ns == 0 &&
               now_ns - socket->heard_ns > PING_NS) {
        socket->is_pinged = true;
        if (wslay_event_queue_msg(socket->context, &ping) != 0) {
            socket->has_failed = true;
        }
    }
}

static void free_messages(struct message *first)
{
    while (first != NULL) {
        struct message *next = first->next;

        free(first->bytes);
        free(first);
        first = next;
    }
}

/* Ends it: from here on nothing is called, and what is sent is dropped. */
static void end(struct vxd_socket *socket)
{
    struct vxd_sockets *sockets = socket->sockets;
    struct vxd_socket **at = &sockets->open;
    struct message *first;

    while (*at != socket) {
        at = &(*at)->next;
    }
    *at = socket->next;
    (void)epoll_ctl(sockets->epoll_fd, EPOLL_CTL_DEL, socket->options.fd, NULL);
    (void)pthread_mutex_lock(&sockets->lock);
    socket->is_gone = true;
    first = socket->first;
    socket->first = socket->last = NULL;
    (void)pthread_mutex_unlock(&sockets->lock);
    free_messages(first);
    socket->options.calls->closed(socket->options.session);
    (void)shutdown(socket->options.fd, SHUT_RDWR);
    socket->options.release(socket->options.handle);
    vxd_socket_drop(socket);
}

static void serve(struct vxd_socket *socket, bool can_read)
{
    if (can_read || socket->at_early < socket->n_early) {
        receive(socket);
    }
    if (!socket->has_failed) {
        send_on(socket);
    }
    if (is_over(socket)) {
        end(socket);
    }
}

static void open_socket(struct vxd_socket *socket)
{
    struct vxd_sockets *sockets = socket->sockets;
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = socket};

    socket->is_open = true;
    socket->next = sockets->open;
    sockets->open = socket;
    socket->events = EPOLLIN;
    socket->heard_ns = socket->sent_ns = vxd_clock_ns();
    if (epoll_ctl(sockets->epoll_fd, EPOLL_CTL_ADD, socket->options.fd, &event) != 0) {
        socket->has_failed = true;
    }
    socket->is_drained = true;
    socket->options.calls->opened(socket->options.session, socket);
    serve(socket, true);
}

/* --- the thread ----------------------------------------------------------------------------- */

/* Takes one of those to look at, with the reference that the list had. */
static struct vxd_socket *take_listed(struct vxd_sockets *sockets, bool *is_stopping)
{
    struct vxd_socket *socket;

    (void)pthread_mutex_lock(&sockets->lock);
    socket = sockets->listed;
    if (socket != NULL) {
        sockets->listed = socket->next_listed;
        socket->is_listed = false;
    }
    *is_stopping = sockets->is_stopping;
    (void)pthread_mutex_unlock(&sockets->lock);
    return socket;
}

static bool is_gone(struct vxd_socket *socket)
{
    bool gone;

    (void)pthread_mutex_lock(&socket->sockets->lock);
    gone = socket->is_gone;
    (void)pthread_mutex_unlock(&socket->sockets->lock);
    return gone;
}

static bool look_at_listed(struct vxd_sockets *sockets)
{
    struct vxd_socket *socket;
    bool is_stopping;

    while ((socket = take_listed(sockets, &is_stopping)) != NULL) {
        if (!socket->is_open) {
            open_socket(socket);
        } else if (!is_gone(socket)) {
            serve(socket, false);
        }
        // NOLINTNEXTLINE(clang-analyzer-unix.Malloc): the list's own reference
        vxd_socket_drop(socket);
    }
    return is_stopping;
}

static void tick(struct vxd_sockets *sockets, bool is_stopping)
{
    int64_t now_ns = vxd_clock_ns();
    struct vxd_socket *next;

    for (struct vxd_socket *socket = sockets->open; socket != NULL; socket = next) {
        next = socket->next;
        if (is_stopping) {
            close_with(socket, VXD_SOCKET_GOING_AWAY, "the server shuts down");
        }
        check_times(socket, now_ns);
        serve(socket, false);
    }
}

static void *run(void *argument)
{
    struct vxd_sockets *sockets = argument;
    struct epoll_event events[MOST_EVENTS];
    int64_t tick_ns = 0;
    bool is_stopping = false;

    while (!is_stopping || sockets->open != NULL) {
        int n = epoll_wait(sockets->epoll_fd, events, MOST_EVENTS,
                           sockets->open != NULL ? TICK_MS : -1);
        int64_t now_ns = vxd_clock_ns();
        bool was_stopping = is_stopping;

        for (int i = 0; i < n; i++) {
            struct vxd_socket *socket = events[i].data.ptr;
            uint64_t ignored;

            if (socket == NULL) {
                (void)!read(sockets->wake_fd, &ignored, sizeof ignored);
            } else {
                serve(socket, (events[i].events & ~(uint32_t)EPOLLOUT) != 0);
            }
        }
        is_stopping = look_at_listed(sockets);
        if (is_stopping != was_stopping ||
            now_ns - tick_ns >= TICK_MS * INT64_C(1000000)) {
            tick_ns = now_ns;
            tick(sockets, is_stopping);
        }
    }
    return NULL;
}

/* --- its life ------------------------------------------------------------------------------- */

static void drop_sockets(struct vxd_sockets *sockets)
{
    if (atomic_fetch_sub(&sockets->references, 1) != 1) {
        return;
    }
    if (sockets->epoll_fd >= 0) {
        (void)close(sockets->epoll_fd);
    }
    if (sockets->wake_fd >= 0) {
        (void)close(sockets->wake_fd);
    }
    (void)pthread_mutex_destroy(&sockets->lock);
    free(sockets);
}

enum vxd_status vxd_sockets_start(struct vxd_sockets **out, struct vxd_err *err)
{
    struct vxd_sockets *sockets = calloc(1, sizeof *sockets);
    struct epoll_event event = {.events = EPOLLIN};

    if (sockets == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for WebSockets");
    }
    atomic_init(&sockets->references, 1);
    (void)pthread_mutex_init(&sockets->lock, NULL);
    sockets->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    sockets->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (sockets->epoll_fd < 0 || sockets->wake_fd < 0 ||
        epoll_ctl(sockets->epoll_fd, EPOLL_CTL_ADD, sockets->wake_fd, &event) != 0 ||
        pthread_create(&sockets->thread, NULL, run, sockets) != 0) {
        (void)vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "listen.http",
                       "cannot serve WebSockets: %s", strerror(errno));
        drop_sockets(sockets);
        return VXD_RESOURCE_EXHAUSTED;
    }
    *out = sockets;
    return VXD_OK;
}

void vxd_sockets_stop(struct vxd_sockets *sockets)
{
    struct vxd_socket *socket;
    bool was_stopping;

    (void)pthread_mutex_lock(&sockets->lock);
    was_stopping = sockets->is_stopping;
    sockets->is_stopping = true;
    (void)pthread_mutex_unlock(&sockets->lock);
    if (was_stopping) {
        return;
    }
    wake(sockets);
    (void)pthread_join(sockets->thread, NULL);
    while ((socket = take_listed(sockets, &was_stopping)) != NULL) {
        vxd_socket_drop(socket);
    }
}

void vxd_sockets_destroy(struct vxd_sockets *sockets)
{
    if (sockets != NULL) {
        vxd_sockets_stop(sockets);
        drop_sockets(sockets);
    }
}

/* Puts it among those to look at, with the lock held. Returns whether the thread has to be woken. */
static bool list(struct vxd_socket *socket)
{
    struct vxd_sockets *sockets = socket->sockets;
    bool was_empty = sockets->listed == NULL;

    if (socket->is_listed) {
        return false;
    }
    vxd_socket_hold(socket);
    socket->is_listed = true;
    socket->next_listed = sockets->listed;
    sockets->listed = socket;
    return was_empty;
}

static void unlock_and_wake(struct vxd_sockets *sockets, bool must_wake)
{
    (void)pthread_mutex_unlock(&sockets->lock);
    if (must_wake) {
        wake(sockets);
    }
}

static enum vxd_status make_socket(struct vxd_sockets *sockets,
                                   const struct vxd_socket_options *options,
                                   struct vxd_socket **out, struct vxd_err *err)
{
    static const struct wslay_event_callbacks callbacks = {
        .recv_callback = recv_bytes,
        .send_callback = send_bytes,
        .on_frame_recv_start_callback = on_frame,
        .on_msg_recv_callback = on_message};
    struct vxd_socket *socket = calloc(1, sizeof *socket);

    if (socket == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a WebSocket");
    }
    atomic_init(&socket->references, 1);
    socket->sockets = sockets;
    atomic_fetch_add(&sockets->references, 1);
    socket->options = *options;
    socket->n_early = options->n_early;
    socket->early = malloc(options->n_early > 0 ? options->n_early : 1);
    if (socket->early == NULL ||
        wslay_event_context_server_init(&socket->context, &callbacks, socket) != 0) {
        socket->context = NULL;
        vxd_socket_drop(socket);
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a WebSocket");
    }
    if (options->n_early > 0) {
        memcpy(socket->early, options->early, options->n_early);
    }
    wslay_event_config_set_max_recv_msg_length(socket->context,
                                               options->max_message_bytes);
    *out = socket;
    return VXD_OK;
}

enum vxd_status vxd_sockets_add(struct vxd_sockets *sockets,
                                const struct vxd_socket_options *options,
                                struct vxd_err *err)
{
    struct vxd_socket *socket = NULL;
    enum vxd_status status = make_socket(sockets, options, &socket, err);
    int flags = fcntl(options->fd, F_GETFL);
    const int on = 1;
    bool must_wake = false;
    bool is_stopping;

    if (status != VXD_OK) {
        return status;
    }
    (void)fcntl(options->fd, F_SETFL, flags | O_NONBLOCK);
    /* A small message must not wait for the acknowledgement of the one before. */
    (void)setsockopt(options->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    (void)pthread_mutex_lock(&sockets->lock);
    is_stopping = sockets->is_stopping;
    if (!is_stopping) {
        must_wake = list(socket);
    }
    unlock_and_wake(sockets, must_wake);
    if (is_stopping) {
        vxd_socket_drop(socket);
        return vxd_fail(err, VXD_UNAVAILABLE, NULL, "the server is shutting down");
    }
    return VXD_OK; /* its first reference is the thread's */
}

void vxd_socket_hold(struct vxd_socket *socket)
{
    atomic_fetch_add(&socket->references, 1);
}

void vxd_socket_drop(struct vxd_socket *socket)
{
    struct vxd_sockets *sockets = socket->sockets;

    if (atomic_fetch_sub(&socket->references, 1) != 1) {
        return;
    }
    if (socket->context != NULL) {
        wslay_event_context_free(socket->context);
    }
    free_messages(socket->first);
    free(socket->early);
    free(socket);
    drop_sockets(sockets);
}

void vxd_socket_send(struct vxd_socket *socket, bool is_text, char *take_bytes,
                     size_t n_bytes)
{
    struct vxd_sockets *sockets = socket->sockets;
    struct message *message = calloc(1, sizeof *message);
    bool must_wake = false;

    if (message == NULL) {
        free(take_bytes);
        vxd_socket_close(socket, VXD_SOCKET_FAULT, "no memory for a message");
        return;
    }
    *message =
        (struct message){.bytes = take_bytes, .n_bytes = n_bytes, .is_text = is_text};
    (void)pthread_mutex_lock(&sockets->lock);
    if (!socket->is_gone && socket->close_code == 0) {
        if (socket->last != NULL) {
            socket->last->next = message;
        } else {
            socket->first = message;
        }
        socket->last = message;
        message = NULL;
        must_wake = list(socket);
    }
    unlock_and_wake(sockets, must_wake);
    free_messages(message);
}

void vxd_socket_close(struct vxd_socket *socket, enum vxd_socket_code code,
                      const char *reason)
{
    struct vxd_sockets *sockets = socket->sockets;
    bool must_wake = false;

    (void)pthread_mutex_lock(&sockets->lock);
    if (!socket->is_gone && socket->close_code == 0) {
        socket->close_code = (uint16_t)code;
        (void)snprintf(socket->close_reason, sizeof socket->close_reason, "%s", reason);
        must_wake = list(socket);
    }
    unlock_and_wake(sockets, must_wake);
}

void vxd_socket_wake(struct vxd_socket *socket)
{
    struct vxd_sockets *sockets = socket->sockets;
    bool must_wake = false;

    (void)pthread_mutex_lock(&sockets->lock);
    if (!socket->is_gone) {
        socket->is_woken = true;
        must_wake = list(socket);
    }
    unlock_and_wake(sockets, must_wake);
}
