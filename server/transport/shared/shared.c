// SPDX-License-Identifier: Apache-2.0
/* The regions by id, and the thread that waits for clients. A connection has one region at most;
 * whatever its client sends after the hello ends it, as does its closing. */
#include "server/transport/shared/shared.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "proto/base/clock.h"
#include "server/observe/log/log.h"
#include "server/request/request.h"

enum {
    MAX_CONNECTIONS = 256,
    MAX_FDS = 4, /* of one message; one is right */
    HELLO_TIMEOUT_MS = 5000,
    PAUSE_MS = 100, /* before the next try when descriptors are short */
    SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL
};

struct vxd_shared_region {
    struct vxd_shared *shared;
    atomic_int references; /* of its connection and of requests */
    uint8_t id[VXD_SHARED_ID_BYTES];
    int64_t uid;
    uint8_t *bytes;
    size_t n_bytes;
    struct vxd_shared_region *next; /* of all; guarded by the mutex */
};

struct connection {
    int fd;
    int64_t uid;
    int64_t accepted_ns;
    struct vxd_shared_region *region; /* NULL before the hello; guarded by the mutex */
};

struct vxd_shared {
    struct vxd_server *server;
    pthread_t thread;
    atomic_int references; /* of the transport and of regions */
    atomic_bool stopping;
    int wake_fd;
    int listeners[VXD_CONFIG_MAX_LISTEN];
    size_t n_listeners;
    pthread_mutex_t mutex;
    /* Those of closed connections, too, as long as requests hold them. */
    struct vxd_shared_region *regions;
    struct connection
        connections[MAX_CONNECTIONS]; /* its thread's, but for the regions */
    size_t n_connections;
};

static void drop_shared(struct vxd_shared *shared)
{
    if (atomic_fetch_sub(&shared->references, 1) == 1) {
        (void)pthread_mutex_destroy(&shared->mutex);
        free(shared);
    }
}

void vxd_shared_drop(struct vxd_shared_region *region)
{
    struct vxd_shared_region **at;

    if (region == NULL || atomic_fetch_sub(&region->references, 1) != 1) {
        return;
    }
    (void)pthread_mutex_lock(&region->shared->mutex);
    at = &region->shared->regions;
    while (*at != region) {
        at = &(*at)->next;
    }
    *at = region->next;
    (void)pthread_mutex_unlock(&region->shared->mutex);
    (void)munmap(region->bytes, region->n_bytes);
    atomic_fetch_sub(&region->shared->server->shared_bytes, region->n_bytes);
    drop_shared(region->shared);
    free(region);
}

/* Reserves the bytes of a region, at most the half of the limit for one user other than the
 * daemon's own. The mutex is held. */
static enum vxd_status reserve_bytes(struct vxd_shared *shared, int64_t uid,
                                     uint64_t n_bytes, struct vxd_err *err)
{
    uint64_t limit = shared->server->config.shared_bytes;
    uint64_t used = atomic_load(&shared->server->shared_bytes);
    uint64_t of_user = 0;

    for (const struct vxd_shared_region *r = shared->regions; r != NULL; r = r->next) {
        of_user += r->uid == uid ? r->n_bytes : 0;
    }
    if (used > limit || n_bytes > limit - used) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "shared_bytes",
                        "%llu bytes beside %llu that are shared already; "
                        "limits.shared_bytes is %llu",
                        (unsigned long long)n_bytes, (unsigned long long)used,
                        (unsigned long long)limit);
    }
    if (uid != (int64_t)getuid() && of_user + n_bytes > limit / 2) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "shared_bytes",
                        "%llu bytes beside %llu of the same user, who may share half of "
                        "limits.shared_bytes, %llu",
                        (unsigned long long)n_bytes, (unsigned long long)of_user,
                        (unsigned long long)limit);
    }
    atomic_fetch_add(&shared->server->shared_bytes, n_bytes);
    return VXD_OK;
}

/* Whether the descriptor is what a client may share. The seals come first: what is sealed keeps
 * its size. */
static enum vxd_status check_file(int fd, uint64_t n_bytes, struct vxd_err *err)
{
    struct statfs system;
    struct stat info;
    int seals = fcntl(fd, F_GET_SEALS);

    if (seals < 0 || fstatfs(fd, &system) != 0 || system.f_type != TMPFS_MAGIC) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "shared_bytes",
                        "the descriptor is no memfd of plain pages");
    }
    if ((seals & SEALS) != SEALS) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "shared_bytes",
                        "the memfd has the seals %#x; F_SEAL_SHRINK, F_SEAL_GROW and "
                        "F_SEAL_SEAL are needed",
                        (unsigned)seals);
    }
    if (fstat(fd, &info) != 0 || info.st_size < 0 || (uint64_t)info.st_size != n_bytes) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "shared_bytes",
                        "the memfd has %lld bytes, not %llu", (long long)info.st_size,
                        (unsigned long long)n_bytes);
    }
    if ((uint64_t)info.st_blocks * 512 < n_bytes) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "shared_bytes",
                        "only %llu of the memfd's %llu bytes are allocated; fallocate "
                        "gives it all of them",
                        (unsigned long long)info.st_blocks * 512,
                        (unsigned long long)n_bytes);
    }
    return VXD_OK;
}

/* Maps the client's memory. The descriptor stays the caller's. */
static enum vxd_status region_create(struct vxd_shared *shared,
                                     struct connection *connection, int fd,
                                     uint64_t n_bytes, struct vxd_err *err)
{
    struct vxd_shared_region *region = NULL;
    void *bytes = MAP_FAILED;
    enum vxd_status status = check_file(fd, n_bytes, err);

    if (status != VXD_OK) {
        return status;
    }
    (void)pthread_mutex_lock(&shared->mutex);
    status = reserve_bytes(shared, connection->uid, n_bytes, err);
    (void)pthread_mutex_unlock(&shared->mutex);
    if (status != VXD_OK) {
        return status;
    }
    region = calloc(1, sizeof *region);
    if (region != NULL &&
        getrandom(region->id, sizeof region->id, 0) == (ssize_t)sizeof region->id) {
        bytes = mmap(NULL, (size_t)n_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    }
    if (bytes == MAP_FAILED) {
        atomic_fetch_sub(&shared->server->shared_bytes, n_bytes);
        free(region);
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "shared_bytes",
                        "cannot map %llu bytes: %s", (unsigned long long)n_bytes,
                        strerror(errno));
    }
    region->shared = shared;
    region->uid = connection->uid;
    region->bytes = bytes;
    region->n_bytes = (size_t)n_bytes;
    atomic_init(&region->references, 1);
    atomic_fetch_add(&shared->references, 1);
    (void)pthread_mutex_lock(&shared->mutex);
    connection->region = region;
    region->next = shared->regions;
    shared->regions = region;
    (void)pthread_mutex_unlock(&shared->mutex);
    return VXD_OK;
}

static enum vxd_status take_hello(struct vxd_shared *shared,
                                  struct connection *connection,
                                  const struct vxd_shared_hello *hello, size_t n_hello,
                                  const int *fds, size_t n_fds, struct vxd_err *err)
{
    struct vxd_principal principal = {0};
    uint64_t limit = shared->server->config.shared_bytes;
    enum vxd_status status;

    if (n_hello != sizeof *hello ||
        memcmp(hello->magic, VXD_SHARED_MAGIC, sizeof hello->magic) != 0 ||
        memchr(hello->token, '\0', sizeof hello->token) == NULL || n_fds != 1) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, NULL,
                        "no hello of this protocol: %zu bytes and %zu descriptors; %zu "
                        "and one are right",
                        n_hello, n_fds, sizeof *hello);
    }
    VXD_TRY(vxd_auth_identify(shared->server->auth, hello->token, "ipc", connection->uid,
                              &principal, err));
    if (hello->n_bytes == 0 || hello->n_bytes % VXD_SHARED_PAGE_BYTES != 0 ||
        hello->n_bytes > limit) {
        return vxd_fail(
            err, VXD_INVALID_ARGUMENT, "shared_bytes",
            "%llu; multiples of %d up to limits.shared_bytes, %llu, are right",
            (unsigned long long)hello->n_bytes, VXD_SHARED_PAGE_BYTES,
            (unsigned long long)limit);
    }
    VXD_TRY(region_create(shared, connection, fds[0], hello->n_bytes, err));
out:
    vxd_principal_clear(&principal);
    return status;
}

/* Receives a message and up to MAX_FDS descriptors; more are closed by the kernel. */
static ssize_t receive(int fd, struct vxd_shared_hello *hello, int *fds, size_t *n_fds)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(MAX_FDS * sizeof(int))];
    } control;
    struct iovec part = {.iov_base = hello, .iov_len = sizeof *hello};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    ssize_t n = recvmsg(fd, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);

    *n_fds = 0;
    if (n < 0) {
        return n;
    }
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c != NULL;
         c = CMSG_NXTHDR(&message, c)) {
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
            size_t n_here = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

            for (size_t i = 0; i < n_here && *n_fds < MAX_FDS; i++) {
                memcpy(&fds[(*n_fds)++], CMSG_DATA(c) + i * sizeof(int), sizeof(int));
            }
        }
    }
    return (message.msg_flags & MSG_TRUNC) != 0 ? n + 1 : n;
}

/* False: the connection is over. */
static bool read_connection(struct vxd_shared *shared, struct connection *connection)
{
    struct vxd_shared_hello hello = {0};
    struct vxd_shared_answer answer = {0};
    struct vxd_err err = {0};
    int fds[MAX_FDS];
    size_t n_fds;
    ssize_t n = receive(connection->fd, &hello, fds, &n_fds);
    bool is_first = connection->region == NULL;

    if (n < 0) {
        return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
    }
    if (n > 0 && is_first) {
        answer.code =
            (uint32_t)take_hello(shared, connection, &hello, (size_t)n, fds, n_fds, &err);
    }
    for (size_t i = 0; i < n_fds; i++) {
        (void)close(fds[i]);
    }
    if (n == 0 || !is_first) {
        return false;
    }
    if (answer.code == VXD_OK) {
        memcpy(answer.id, connection->region->id, sizeof answer.id);
    } else {
        (void)snprintf(answer.message, sizeof answer.message, "%s", err.message);
        vxd_log(VXD_LOG_INFO, "shared memory refused", "error", err.message);
    }
    return send(connection->fd, &answer, sizeof answer, MSG_NOSIGNAL | MSG_DONTWAIT) ==
               (ssize_t)sizeof answer &&
           answer.code == VXD_OK;
}

static void close_connection(struct vxd_shared *shared, size_t at)
{
    struct connection *connection = &shared->connections[at];
    struct vxd_shared_region *region = connection->region;

    (void)close(connection->fd);
    (void)pthread_mutex_lock(&shared->mutex);
    *connection = shared->connections[--shared->n_connections];
    (void)pthread_mutex_unlock(&shared->mutex);
    vxd_shared_drop(region);
}

/* Whether a user may have one more connection: any but the daemon's own has half of them. */
static bool may_connect(const struct vxd_shared *shared, int64_t uid)
{
    size_t n = 0;

    for (size_t i = 0; i < shared->n_connections; i++) {
        n += shared->connections[i].uid == uid ? 1 : 0;
    }
    return shared->n_connections < MAX_CONNECTIONS &&
           (uid == (int64_t)getuid() || n < MAX_CONNECTIONS / 2);
}

static void accept_connection(struct vxd_shared *shared, int listener)
{
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    struct ucred peer;
    socklen_t n_peer = sizeof peer;
    const struct timespec pause = {.tv_nsec = PAUSE_MS * 1000000L};

    if (fd < 0) {
        if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
            (void)nanosleep(&pause, NULL); /* else this thread would spin */
        }
        return;
    }
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n_peer) != 0 ||
        !may_connect(shared, (int64_t)peer.uid)) {
        (void)close(fd); /* its client goes on without shared memory */
        return;
    }
    (void)pthread_mutex_lock(&shared->mutex);
    shared->connections[shared->n_connections++] = (struct connection){
        .fd = fd, .uid = (int64_t)peer.uid, .accepted_ns = vxd_clock_ns()};
    (void)pthread_mutex_unlock(&shared->mutex);
}

/* Closes connections whose hello does not come. Returns for how long the thread may sleep, -1 for
 * ever. */
static int close_silent(struct vxd_shared *shared)
{
    int64_t now = vxd_clock_ns();
    int timeout_ms = -1;

    for (size_t i = shared->n_connections; i > 0; i--) {
        const struct connection *connection = &shared->connections[i - 1];
        int64_t age_ms = (now - connection->accepted_ns) / 1000000;

        if (connection->region != NULL) {
            continue;
        }
        if (age_ms >= HELLO_TIMEOUT_MS) {
            close_connection(shared, i - 1);
        } else {
            timeout_ms = HELLO_TIMEOUT_MS;
        }
    }
    return timeout_ms;
}

static void *run(void *argument)
{
    struct vxd_shared *shared = argument;
    struct pollfd polled[1 + VXD_CONFIG_MAX_LISTEN + MAX_CONNECTIONS];

    while (!atomic_load(&shared->stopping)) {
        int timeout_ms = close_silent(shared);
        size_t first = 1 + shared->n_listeners;
        size_t n = shared->n_connections;

        polled[0] = (struct pollfd){.fd = shared->wake_fd, .events = POLLIN};
        for (size_t i = 0; i < shared->n_listeners; i++) {
            polled[1 + i] = (struct pollfd){.fd = shared->listeners[i], .events = POLLIN};
        }
        for (size_t i = 0; i < n; i++) {
            polled[first + i] =
                (struct pollfd){.fd = shared->connections[i].fd, .events = POLLIN};
        }
        if (poll(polled, first + n, timeout_ms) <= 0) {
            continue;
        }
        /* From the last on: closing one moves the last one to its place. */
        for (size_t i = n; i > 0; i--) {
            if (polled[first + i - 1].revents != 0 &&
                !read_connection(shared, &shared->connections[i - 1])) {
                close_connection(shared, i - 1);
            }
        }
        for (size_t i = 0; i < shared->n_listeners; i++) {
            if (polled[1 + i].revents != 0) {
                accept_connection(shared, shared->listeners[i]);
            }
        }
    }
    while (shared->n_connections > 0) {
        close_connection(shared, shared->n_connections - 1);
    }
    return NULL;
}

static void close_sockets(const int *fds, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        (void)close(fds[i]);
    }
}

enum vxd_status vxd_shared_start(struct vxd_server *server, const int *take_fds, size_t n,
                                 struct vxd_shared **out, struct vxd_err *err)
{
    struct vxd_shared *shared = calloc(1, sizeof *shared);

    *out = NULL;
    if (shared == NULL) {
        close_sockets(take_fds, n);
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for shared memory");
    }
    shared->server = server;
    atomic_init(&shared->references, 1);
    memcpy(shared->listeners, take_fds, n * sizeof take_fds[0]);
    shared->n_listeners = n;
    shared->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (shared->wake_fd < 0 || pthread_mutex_init(&shared->mutex, NULL) != 0) {
        close_sockets(take_fds, n);
        if (shared->wake_fd >= 0) {
            (void)close(shared->wake_fd);
        }
        free(shared);
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                        "no descriptor or mutex for shared memory");
    }
    if (pthread_create(&shared->thread, NULL, run, shared) != 0) {
        close_sockets(take_fds, n);
        (void)close(shared->wake_fd);
        drop_shared(shared);
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no thread for shared memory");
    }
    *out = shared;
    return VXD_OK;
}

void vxd_shared_stop(struct vxd_shared *shared)
{
    const uint64_t one = 1;

    if (shared == NULL) {
        return;
    }
    atomic_store(&shared->stopping, true);
    while (write(shared->wake_fd, &one, sizeof one) < 0 && errno == EINTR) {
    }
    (void)pthread_join(shared->thread, NULL);
    close_sockets(shared->listeners, shared->n_listeners);
    (void)close(shared->wake_fd);
    drop_shared(shared);
}

enum vxd_status vxd_shared_hold(struct vxd_shared *shared, const uint8_t *id,
                                size_t n_id_bytes, int64_t uid,
                                struct vxd_shared_region **out, struct vxd_err *err)
{
    *out = NULL;
    (void)pthread_mutex_lock(&shared->mutex);
    for (size_t i = 0; i < shared->n_connections && *out == NULL; i++) {
        struct vxd_shared_region *region = shared->connections[i].region;

        if (region != NULL && region->uid == uid && n_id_bytes == sizeof region->id &&
            memcmp(region->id, id, n_id_bytes) == 0) {
            atomic_fetch_add(&region->references, 1);
            *out = region;
        }
    }
    (void)pthread_mutex_unlock(&shared->mutex);
    return *out != NULL
               ? VXD_OK
               : vxd_fail(err, VXD_FAILED_PRECONDITION, "header.shared.region",
                          "this user has registered no such region on the daemon's "
                          "sockets PATH" VXD_SHARED_SUFFIX
                          ", or has closed that connection");
}

uint8_t *vxd_shared_bytes(const struct vxd_shared_region *region, uint64_t offset,
                          uint64_t n_bytes)
{
    return offset <= region->n_bytes && n_bytes <= region->n_bytes - offset
               ? region->bytes + offset
               : NULL;
}
