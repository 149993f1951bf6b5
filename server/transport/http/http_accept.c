// SPDX-License-Identifier: Apache-2.0
/* New connections. The library's threads accept for themselves, so whichever wakes first gets a
 * burst of connections and the others none, and requests wait behind each other while threads
 * sleep. Here one thread accepts and hands the connections out in turn. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/observe/log/log.h"
#include "server/transport/http/http.h"
#include "server/transport/http/http_internal.h"

enum {
    /* Pause where no more may be taken: new ones wait in the listener's queue. */
    PAUSE_MS = 10,
    /* Likewise where the process has no descriptors left. */
    NONE_LEFT_MS = 100,
    /* Pauses after which a connection that the library has not begun counts no more: it had no
     * memory for it. */
    MOST_PAUSES = 100
};

/* One connection. False where there is none, or none can be taken now. */
static bool accept_one(struct vxd_http *http, int *pause_ms)
{
    struct sockaddr_storage address = {0};
    socklen_t n_bytes = sizeof address;
    int fd = accept4(http->listen_fd, (struct sockaddr *)&address, &n_bytes,
                     SOCK_NONBLOCK | SOCK_CLOEXEC);

    if (fd < 0) {
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            vxd_log(VXD_LOG_WARNING, "no connection can be accepted", "error",
                    strerror(errno));
            *pause_ms = NONE_LEFT_MS;
        }
        return errno == EINTR || errno == ECONNABORTED;
    }
    /* It chooses the thread by the descriptor's number, of which successive ones differ, and closes
     * the connection where it cannot take it. */
    atomic_fetch_add(&http->n_fresh, 1);
    if (MHD_add_connection(http->daemon, fd, (const struct sockaddr *)&address,
                           n_bytes) != MHD_YES) {
        atomic_fetch_sub(&http->n_fresh, 1);
    }
    return true;
}

/* Whether no more may be taken. Its threads count a connection when they come to it. */
static bool is_full(struct vxd_http *http)
{
    long n_fresh = atomic_load(&http->n_fresh);
    size_t n = vxd_http_count_connections(http) + (n_fresh > 0 ? (size_t)n_fresh : 0);

    return n >= http->server->config.max_connections;
}

static void *run(void *argument)
{
    struct vxd_http *http = argument;
    int pause_ms = 0;
    int n_pauses = 0;

    for (;;) {
        struct pollfd polled[] = {{.fd = http->accept_stop_fd, .events = POLLIN},
                                  {.fd = http->listen_fd, .events = POLLIN}};
        int n_ready = poll(polled, pause_ms > 0 ? 1 : 2, pause_ms > 0 ? pause_ms : -1);

        if (polled[0].revents != 0 || (n_ready < 0 && errno != EINTR)) {
            return NULL;
        }
        n_pauses = pause_ms > 0 ? n_pauses + 1 : 0;
        if (n_pauses > MOST_PAUSES) {
            atomic_store(&http->n_fresh, 0);
        }
        pause_ms = 0;
        do {
            if (is_full(http)) {
                pause_ms = PAUSE_MS;
            }
        } while (pause_ms == 0 && accept_one(http, &pause_ms));
    }
}

enum vxd_status vxd_http_accept_start(struct vxd_http *http, struct vxd_err *err)
{
    http->accept_stop_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (http->accept_stop_fd < 0 || fcntl(http->listen_fd, F_SETFL, O_NONBLOCK) != 0 ||
        pthread_create(&http->acceptor, NULL, run, http) != 0) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, http->field,
                        "no thread for new connections");
    }
    http->accepts = true;
    return VXD_OK;
}

void vxd_http_accept_stop(struct vxd_http *http)
{
    const uint64_t one = 1;

    if (http->accepts) {
        while (write(http->accept_stop_fd, &one, sizeof one) < 0 && errno == EINTR) {
        }
        (void)pthread_join(http->acceptor, NULL);
        http->accepts = false;
    }
    if (http->accept_stop_fd >= 0) {
        (void)close(http->accept_stop_fd);
        http->accept_stop_fd = -1;
    }
}
