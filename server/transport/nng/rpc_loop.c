// SPDX-License-Identifier: Apache-2.0
/* A loop: epoll over its connections, an eventfd by which other threads wake it, and, twice a
 * second while something is under way, a look at what takes too long. */
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/base/clock.h"
#include "server/instance/instance.h"
#include "server/observe/log/log.h"
#include "server/observe/observe.h"
#include "server/transport/nng/rpc_internal.h"

#define MAX_EVENTS 64
#define TICK_MS 500
#define ACCEPTS_A_TURN 64
/* A greeting or a message may stand still for so long, and must move so fast besides; then its
 * connection is cut, and its memory is free. */
#define ARRIVAL_GRACE_NS (10 * INT64_C(1000000000))
#define LEAST_BYTES_A_SECOND UINT64_C(65536)
/* Longest wait for a peer that does not read its replies, or reads them more slowly than that
 * later on; then its connection is cut. */
#define SEND_TIMEOUT_NS (30 * INT64_C(1000000000))
/* Pause of the listeners when the process has no descriptors left. */
#define ACCEPT_PAUSE_NS (100 * INT64_C(1000000))
/* Places kept for ipc, so that strangers on the network do not lock the operator out. */
#define IPC_RESERVE_SHARE 8
#define IPC_RESERVE_MOST 16

static void watch(struct vxd_rpc_connection *connection, uint32_t interest)
{
    struct epoll_event event = {.events = interest, .data.ptr = connection};

    if (interest != connection->interest) {
        (void)epoll_ctl(connection->loop->epoll_fd, EPOLL_CTL_MOD, connection->fd,
                        &event);
        connection->interest = interest;
    }
}

static void wake(struct vxd_rpc_loop *loop)
{
    const uint64_t one = 1;
    ssize_t n = write(loop->wake_fd, &one, sizeof one);

    (void)n; /* the counter is full: it is awake */
}

void vxd_rpc_note(struct vxd_rpc_connection *connection)
{
    struct vxd_rpc_loop *loop = connection->loop;

    if (connection->is_noted || connection->is_closed) {
        return;
    }
    connection->is_noted = true;
    atomic_fetch_add(&connection->references, 1);
    (void)pthread_mutex_lock(&loop->lock);
    connection->next_noted = loop->noted;
    loop->noted = connection;
    (void)pthread_mutex_unlock(&loop->lock);
    wake(loop);
}

static void close_connection(struct vxd_rpc_connection *connection)
{
    struct vxd_rpc_loop *loop = connection->loop;

    if (connection->previous != NULL) {
        connection->previous->next = connection->next;
    } else {
        loop->connections = connection->next;
    }
    if (connection->next != NULL) {
        connection->next->previous = connection->previous;
    }
    atomic_fetch_sub(&loop->rpc->n_connections, 1);
    vxd_rpc_connection_close(connection);
    vxd_rpc_connection_drop(connection);
}

/* Watches for what the connection can do next, or ends it. */
static void go_on(struct vxd_rpc_connection *connection, bool is_alive)
{
    uint32_t interest = 0;

    (void)pthread_mutex_lock(&connection->lock);
    is_alive = is_alive && !connection->is_broken;
    if (!connection->waits_for_replies) {
        interest |= EPOLLIN;
    }
    if (connection->replies != NULL || connection->wants_write) {
        interest |= EPOLLOUT;
    }
    (void)pthread_mutex_unlock(&connection->lock);
    if (is_alive) {
        watch(connection, interest);
    } else {
        close_connection(connection);
    }
}

static void add_connection(struct vxd_rpc_loop *loop,
                           struct vxd_rpc_connection *connection)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};

    connection->next = loop->connections;
    if (loop->connections != NULL) {
        loop->connections->previous = connection;
    }
    loop->connections = connection;
    connection->interest = EPOLLIN;
    if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, connection->fd, &event) != 0) {
        close_connection(connection);
    }
}

/* What other threads have left for this one. */
static void take_noted(struct vxd_rpc_loop *loop)
{
    struct vxd_rpc_connection *fresh, *noted;

    (void)pthread_mutex_lock(&loop->lock);
    fresh = loop->fresh;
    loop->fresh = NULL;
    noted = loop->noted;
    loop->noted = NULL;
    (void)pthread_mutex_unlock(&loop->lock);
    while (fresh != NULL) {
        struct vxd_rpc_connection *next = fresh->next_noted;

        add_connection(loop, fresh);
        fresh = next;
    }
    while (noted != NULL) {
        struct vxd_rpc_connection *connection = noted;
        bool is_closed;

        noted = connection->next_noted;
        (void)pthread_mutex_lock(&connection->lock);
        connection->is_noted = false;
        is_closed = connection->is_closed;
        (void)pthread_mutex_unlock(&connection->lock);
        if (!is_closed) {
            go_on(connection, vxd_rpc_connection_resume(connection));
        }
        vxd_rpc_connection_drop(connection);
    }
}

/* Whether one more may stay; logs and counts why not. */
static bool has_place(struct vxd_rpc *rpc, bool is_ipc)
{
    size_t limit = rpc->server->config.max_connections;
    size_t reserve = limit / IPC_RESERVE_SHARE;

    if (atomic_load(&rpc->refusing)) {
        vxd_metrics_count_rejected(rpc->server->metrics, "draining");
        return false;
    }
    if (!is_ipc) {
        limit -= reserve < IPC_RESERVE_MOST ? reserve : IPC_RESERVE_MOST;
    }
    if (atomic_load(&rpc->n_connections) >= limit) {
        vxd_metrics_count_rejected(rpc->server->metrics, "connections");
        vxd_log(VXD_LOG_DEBUG, "connection refused: limits.connections reached");
        return false;
    }
    return true;
}

static void give_to_loop(struct vxd_rpc_loop *loop, struct vxd_rpc_connection *connection)
{
    (void)pthread_mutex_lock(&loop->lock);
    connection->next_noted = loop->fresh;
    loop->fresh = connection;
    (void)pthread_mutex_unlock(&loop->lock);
    wake(loop);
}

static void watch_listeners(struct vxd_rpc_loop *loop, bool is_on)
{
    struct vxd_rpc *rpc = loop->rpc;

    for (size_t i = 0; i < rpc->n_listeners; i++) {
        struct epoll_event event = {.events = is_on ? EPOLLIN : 0,
                                    .data.ptr = &rpc->listeners[i]};

        (void)epoll_ctl(loop->epoll_fd, EPOLL_CTL_MOD, rpc->listeners[i].fd, &event);
    }
}

static void accept_all(struct vxd_rpc_loop *loop, const struct vxd_rpc_listener *listener)
{
    struct vxd_rpc *rpc = loop->rpc;

    for (int i = 0; i < ACCEPTS_A_TURN; i++) {
        struct vxd_rpc_connection *connection;
        int fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (fd < 0 && (errno == EINTR || errno == ECONNABORTED)) {
            continue;
        }
        if (fd < 0) {
            if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
                errno == ENOMEM) {
                vxd_log(VXD_LOG_WARNING, "no connection can be accepted", "error",
                        strerror(errno));
                loop->listeners_pause_until_ns = vxd_clock_ns() + ACCEPT_PAUSE_NS;
                watch_listeners(loop, false);
            }
            return;
        }
        if (!has_place(rpc, listener->is_ipc)) {
            (void)close(fd);
            continue;
        }
        rpc->next_loop = (rpc->next_loop + 1) % rpc->n_loops;
        connection = vxd_rpc_connection_create(&rpc->loops[rpc->next_loop], fd, listener);
        if (connection == NULL) {
            continue;
        }
        atomic_fetch_add(&rpc->n_connections, 1);
        if (connection->loop == loop) {
            add_connection(loop, connection);
        } else {
            give_to_loop(connection->loop, connection);
        }
    }
}

static const struct vxd_rpc_listener *as_listener(struct vxd_rpc *rpc, const void *ptr)
{
    for (size_t i = 0; i < rpc->n_listeners; i++) {
        if (ptr == &rpc->listeners[i]) {
            return &rpc->listeners[i];
        }
    }
    return NULL;
}

static void on_event(struct vxd_rpc_loop *loop, const struct epoll_event *event)
{
    const struct vxd_rpc_listener *listener = NULL;
    struct vxd_rpc_connection *connection = event->data.ptr;
    bool is_alive = true;

    if (connection == NULL) { /* the eventfd */
        uint64_t count;
        ssize_t n = read(loop->wake_fd, &count, sizeof count);

        (void)n;
        return;
    }
    if (loop->has_listeners) {
        listener = as_listener(loop->rpc, event->data.ptr);
    }
    if (listener != NULL) {
        accept_all(loop, listener);
        return;
    }
    if ((event->events & EPOLLOUT) != 0) {
        is_alive = vxd_rpc_connection_resume(connection);
    }
    /* One that waits for its replies is not read, so an end of the peer shows as this alone. */
    if (is_alive && (event->events & (EPOLLERR | EPOLLHUP)) != 0 &&
        (event->events & EPOLLIN) == 0) {
        is_alive = false;
    }
    if (is_alive && (event->events & EPOLLIN) != 0) {
        is_alive = vxd_rpc_connection_read(connection);
    }
    go_on(connection, is_alive);
}

/* Whether a connection is idle, late, or neither. */
static bool is_late(struct vxd_rpc_connection *connection, int64_t now_ns, bool *is_idle)
{
    uint64_t n_arrived = connection->n_arrived + connection->n_discarded;
    int64_t allowed_ns = ARRIVAL_GRACE_NS + (int64_t)(n_arrived / LEAST_BYTES_A_SECOND) *
                                                INT64_C(1000000000);
    bool is_arriving = connection->began_ns != 0;
    bool is_late = false;

    (void)pthread_mutex_lock(&connection->lock);
    *is_idle = !is_arriving && connection->replies == NULL;
    /* While we do not read, it is not the peer who is late. */
    if (is_arriving && connection->waits_for_replies) {
        connection->began_ns = now_ns;
        connection->moved_ns = now_ns;
    } else if (is_arriving) {
        is_late = now_ns - connection->began_ns > allowed_ns ||
                  now_ns - connection->moved_ns > ARRIVAL_GRACE_NS;
    }
    if (connection->replies != NULL) {
        int64_t sending_ns =
            SEND_TIMEOUT_NS +
            (int64_t)(connection->n_sent / LEAST_BYTES_A_SECOND) * INT64_C(1000000000);

        is_late = is_late || now_ns - connection->unsent_since_ns > SEND_TIMEOUT_NS ||
                  now_ns - connection->unsent_began_ns > sending_ns;
    }
    (void)pthread_mutex_unlock(&connection->lock);
    return is_late;
}

/* Cuts what is late; false when nothing is under way. */
static bool tick(struct vxd_rpc_loop *loop)
{
    int64_t now_ns = vxd_clock_ns();
    bool is_busy = false;

    for (struct vxd_rpc_connection *c = loop->connections, *next; c != NULL; c = next) {
        bool is_idle;

        next = c->next;
        if (is_late(c, now_ns, &is_idle)) {
            vxd_log(VXD_LOG_INFO, "connection cut: it stands still", "peer", c->peer);
            close_connection(c);
        }
        is_busy = is_busy || !is_idle;
    }
    if (loop->listeners_pause_until_ns != 0) {
        is_busy = true;
        if (now_ns >= loop->listeners_pause_until_ns) {
            loop->listeners_pause_until_ns = 0;
            watch_listeners(loop, true);
        }
    }
    return is_busy;
}

static void *run(void *arg)
{
    struct vxd_rpc_loop *loop = arg;
    struct epoll_event events[MAX_EVENTS];
    int64_t next_tick_ns = 0;
    int timeout_ms = TICK_MS;

    while (!atomic_load(&loop->rpc->stopping)) {
        int n = epoll_wait(loop->epoll_fd, events, MAX_EVENTS, timeout_ms);
        int64_t now_ns;

        for (int i = 0; i < n; i++) {
            on_event(loop, &events[i]);
        }
        take_noted(loop);
        now_ns = vxd_clock_ns();
        if (n > 0 && timeout_ms < 0) {
            timeout_ms = TICK_MS;
            next_tick_ns = now_ns + TICK_MS * INT64_C(1000000);
        } else if (now_ns >= next_tick_ns) {
            timeout_ms = tick(loop) ? TICK_MS : -1;
            next_tick_ns = now_ns + TICK_MS * INT64_C(1000000);
        }
    }
    return NULL;
}

static enum vxd_status open_loop(struct vxd_rpc_loop *loop, struct vxd_err *err)
{
    struct epoll_event event = {.events = EPOLLIN};

    loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    loop->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (loop->epoll_fd < 0 || loop->wake_fd < 0 ||
        epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, loop->wake_fd, &event) != 0) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "listen.rpc",
                        "cannot watch connections: %s", strerror(errno));
    }
    for (size_t i = 0; loop->has_listeners && i < loop->rpc->n_listeners; i++) {
        event.data.ptr = &loop->rpc->listeners[i];
        if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, loop->rpc->listeners[i].fd,
                      &event) != 0) {
            return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "listen.rpc",
                            "cannot watch a listener: %s", strerror(errno));
        }
    }
    return VXD_OK;
}

static void close_loop(struct vxd_rpc_loop *loop)
{
    if (loop->epoll_fd >= 0) {
        (void)close(loop->epoll_fd);
    }
    if (loop->wake_fd >= 0) {
        (void)close(loop->wake_fd);
    }
    (void)pthread_mutex_destroy(&loop->lock);
}

enum vxd_status vxd_rpc_loop_start(struct vxd_rpc_loop *loop, struct vxd_err *err)
{
    enum vxd_status status;

    (void)pthread_mutex_init(&loop->lock, NULL);
    status = open_loop(loop, err);
    if (status == VXD_OK && pthread_create(&loop->thread, NULL, run, loop) != 0) {
        status = vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "listen.rpc",
                          "no thread for the connections");
    }
    if (status != VXD_OK) {
        close_loop(loop);
        return status;
    }
    loop->is_running = true;
    return VXD_OK;
}

void vxd_rpc_loop_stop(struct vxd_rpc_loop *loop)
{
    if (!loop->is_running) {
        return;
    }
    atomic_store(&loop->rpc->stopping, true);
    wake(loop);
    (void)pthread_join(loop->thread, NULL);
    take_noted(loop);
    while (loop->connections != NULL) {
        close_connection(loop->connections);
    }
    close_loop(loop);
    loop->is_running = false;
}
