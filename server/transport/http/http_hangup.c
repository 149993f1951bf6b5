// SPDX-License-Identifier: Apache-2.0
/* Peers that hang up while their request waits or runs. The library does not look at a suspended
 * connection, so work would go on although nobody waits for it. A thread does with an epoll of its
 * own, over the suspended connections alone: it sleeps until one ends. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "server/transport/http/http_internal.h"

/* A connection whose request waits. */
struct waiting {
    int fd;
    uint32_t number;             /* descriptors are used again, numbers are not */
    struct vxd_request *request; /* held */
    struct waiting *next;
};

struct vxd_http_hangups {
    int epoll_fd;
    int stop_fd;
    pthread_t thread;
    bool is_running;
    pthread_mutex_t lock; /* guards the rest */
    struct waiting *first;
    uint32_t last_number;
};

static int fd_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);

    return info != NULL ? info->connect_fd : -1;
}

static uint64_t key_of(const struct waiting *waiting)
{
    return (uint64_t)waiting->number << 32 | (uint32_t)waiting->fd;
}

/* Takes the one of this key out of the list, or, with a key of 0, the one of this descriptor;
 * NULL where it is not in it. */
static struct vxd_request *take(struct vxd_http_hangups *hangups, uint64_t key, int fd)
{
    struct vxd_request *request = NULL;

    (void)pthread_mutex_lock(&hangups->lock);
    for (struct waiting **at = &hangups->first; *at != NULL; at = &(*at)->next) {
        struct waiting *found = *at;

        if (key != 0 ? key_of(found) == key : found->fd == fd) {
            *at = found->next;
            request = found->request;
            (void)epoll_ctl(hangups->epoll_fd, EPOLL_CTL_DEL, found->fd, NULL);
            free(found);
            break;
        }
    }
    (void)pthread_mutex_unlock(&hangups->lock);
    return request;
}

static void *run(void *argument)
{
    struct vxd_http_hangups *hangups = argument;
    struct epoll_event event;

    for (;;) {
        struct vxd_request *request;
        int n = epoll_wait(hangups->epoll_fd, &event, 1, -1);

        if (n < 0 && errno != EINTR) {
            break;
        }
        if (n != 1) {
            continue;
        }
        if (event.data.u64 == 0) {
            break;
        }
        request = take(hangups, event.data.u64, -1);
        if (request != NULL) {
            vxd_request_cancel(request);
            vxd_request_drop(request);
        }
    }
    return NULL;
}

enum vxd_status vxd_http_hangups_start(struct vxd_http *http, struct vxd_err *err)
{
    struct vxd_http_hangups *hangups = calloc(1, sizeof *hangups);
    struct epoll_event event = {.events = EPOLLIN};

    if (hangups == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for the transport");
    }
    http->hangups = hangups;
    (void)pthread_mutex_init(&hangups->lock, NULL);
    hangups->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    hangups->stop_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (hangups->epoll_fd < 0 || hangups->stop_fd < 0 ||
        epoll_ctl(hangups->epoll_fd, EPOLL_CTL_ADD, hangups->stop_fd, &event) != 0 ||
        pthread_create(&hangups->thread, NULL, run, hangups) != 0) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "listen.http",
                        "cannot watch connections: %s", strerror(errno));
    }
    hangups->is_running = true;
    return VXD_OK;
}

void vxd_http_hangups_stop(struct vxd_http *http)
{
    struct vxd_http_hangups *hangups = http->hangups;
    const uint64_t one = 1;

    if (hangups == NULL) {
        return;
    }
    if (hangups->is_running) {
        while (write(hangups->stop_fd, &one, sizeof one) < 0 && errno == EINTR) {
        }
        (void)pthread_join(hangups->thread, NULL);
    }
    while (hangups->first != NULL) {
        struct waiting *next = hangups->first->next;

        vxd_request_drop(hangups->first->request);
        free(hangups->first);
        hangups->first = next;
    }
    if (hangups->epoll_fd >= 0) {
        (void)close(hangups->epoll_fd);
    }
    if (hangups->stop_fd >= 0) {
        (void)close(hangups->stop_fd);
    }
    (void)pthread_mutex_destroy(&hangups->lock);
    free(hangups);
    http->hangups = NULL;
}

void vxd_http_hangup_watch(struct vxd_http *http, struct MHD_Connection *connection,
                           struct vxd_request *request)
{
    struct vxd_http_hangups *hangups = http->hangups;
    struct waiting *waiting = calloc(1, sizeof *waiting);
    struct epoll_event event = {.events = EPOLLRDHUP | EPOLLONESHOT};

    /* Without memory for this record the request waits for its time. */
    if (waiting == NULL) {
        return;
    }
    waiting->fd = fd_of(connection);
    waiting->request = request;
    vxd_request_hold(request);
    (void)pthread_mutex_lock(&hangups->lock);
    hangups->last_number = hangups->last_number + 1 > 0 ? hangups->last_number + 1 : 1;
    waiting->number = hangups->last_number;
    waiting->next = hangups->first;
    hangups->first = waiting;
    event.data.u64 = key_of(waiting);
    (void)epoll_ctl(hangups->epoll_fd, EPOLL_CTL_ADD, waiting->fd, &event);
    (void)pthread_mutex_unlock(&hangups->lock);
}

void vxd_http_hangup_forget(struct vxd_http *http, struct MHD_Connection *connection)
{
    struct vxd_request *request = take(http->hangups, 0, fd_of(connection));

    if (request != NULL) {
        vxd_request_drop(request);
    }
}
