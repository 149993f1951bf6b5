// SPDX-License-Identifier: Apache-2.0
/* Listeners and peers of the rpc transport, and workarounds for nng: functions below
 * replace those of libc and of nng for the whole process, since nng gives nobody its
 * sockets. */
#include "server/transport/nng/rpc_internal.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "proto/base/name.h"

/* What the kernel may hold of a reply that its receiver has not read yet, a connection; it
 * takes the double of what is asked for, and asks less where net.core.wmem_max does. By
 * default it is 208 KiB, and a reply of megabytes crosses in twenty steps, each of which
 * wakes both sides. */
#define SEND_BUFFER_BYTES (2 * 1024 * 1024)
#define GREETING_BYTES 8

/* nng's first message on every connection: a zero, "SP", a zero, its protocol. */
static bool is_greeting(const struct msghdr *message)
{
    return message->msg_iovlen == 1 && message->msg_iov[0].iov_len == GREETING_BYTES &&
           memcmp(message->msg_iov[0].iov_base, "\0SP", 4) == 0;
}

/* For Unix sockets; TCP sizes its buffers better by itself. A failure only costs time. */
static void widen(int fd)
{
    const int n_bytes = SEND_BUFFER_BYTES;
    struct sockaddr_un address = {.sun_family = AF_UNSPEC};
    socklen_t n_address = sizeof address;

    if (getsockname(fd, (struct sockaddr *)&address, &n_address) == 0 &&
        address.sun_family == AF_UNIX) {
        (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &n_bytes, sizeof n_bytes);
    }
}

/* nng 1.5.2 greets a new connection, and when the peer has left already it takes the
 * EPIPE for the end of its own listener: after one connect() and close() on the ipc
 * socket nobody is ever accepted again (nng issue 1518, fixed in 1.6). A peer that has
 * left is just as well a reset connection, which nng survives; to all other callers both
 * errors mean the same. */
ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    ssize_t n_bytes;

    if (is_greeting(message)) {
        widen(fd);
    }
    n_bytes = (ssize_t)syscall(SYS_sendmsg, fd, message, flags);
    if (n_bytes < 0 && errno == EPIPE) {
        errno = ECONNRESET;
    }
    return n_bytes;
}

/* nng moves a message in steps, and the end of one begins the next. When its connection is
 * closed between the two, nng 1.5.2 refuses the next one without a callback: the message is
 * never over, and the one thread that clears connections away waits for it for ever. From
 * then on none is cleared away, until limits.connections of them are left over and nobody is
 * let in. A client that dies while a large reply is on its way, or with requests on theirs,
 * is enough. So a step that was refused is ended here. */
static atomic_bool is_refusal_silent;

static void count_callback(void *arg)
{
    atomic_fetch_add((atomic_int *)arg, 1);
}

/* Asks this nng whether it refuses without a callback: later ones may do otherwise. Without
 * memory it counts as one that does not. */
static void learn_refusal(void)
{
    atomic_int n_callbacks;
    nng_aio *aio = NULL;

    atomic_init(&n_callbacks, 0);
    if (nng_aio_alloc(&aio, count_callback, &n_callbacks) != 0) {
        return;
    }
    nng_aio_stop(aio);
    nng_sleep_aio(0, aio);
    nng_aio_wait(aio);
    atomic_store(&is_refusal_silent, atomic_load(&n_callbacks) == 0);
    nng_aio_free(aio);
}

/* Calls nng's own function of this name, which is kept in *found. nng holds the connection's
 * lock meanwhile, so the step's callback, where there is one, has not run yet; and it cancels
 * no step of a living connection, so that only a refusal has this result. */
static void step(const char *name, _Atomic(void *) *found, nng_stream *stream,
                 nng_aio *aio)
{
    void *symbol = atomic_load(found);
    void (*function)(nng_stream *, nng_aio *);

    if (symbol == NULL) {
        symbol = dlsym(RTLD_NEXT, name);
        atomic_store(found, symbol);
    }
    if (symbol ==
        NULL) { /* there is no libnng behind this one; a static one would not link */
        nng_aio_finish(aio, NNG_ENOTSUP);
        return;
    }
    memcpy(&function, &symbol, sizeof function);
    function(stream, aio);
    if (atomic_load(&is_refusal_silent) && nng_aio_result(aio) == NNG_ECANCELED) {
        nng_aio_finish(aio, NNG_ECANCELED);
    }
}

void nng_stream_send(nng_stream *stream, nng_aio *aio)
{
    static _Atomic(void *) found;

    step("nng_stream_send", &found, stream, aio);
}

void nng_stream_recv(nng_stream *stream, nng_aio *aio)
{
    static _Atomic(void *) found;

    step("nng_stream_recv", &found, stream, aio);
}

#define IPC_PREFIX "ipc://"
#define TCP_PREFIX "tcp"
/* The envelope's header comes on top of the largest body. */
#define ENVELOPE_BYTES 65536u
#define DIRECTORY_MODE 0750

/* Makes the directory of a socket, the last step only: a missing parent is a mistake in
 * the configuration, not ours to create. */
static enum vxd_status make_directory(const char *path, struct vxd_err *err)
{
    char directory[VXD_PATH_BYTES];
    const char *slash = strrchr(path, '/');
    size_t n_bytes = slash != NULL ? (size_t)(slash - path) : 0;

    if (n_bytes == 0) {
        return VXD_OK;
    }
    memcpy(directory, path, n_bytes);
    directory[n_bytes] = '\0';
    if (mkdir(directory, DIRECTORY_MODE) != 0 && errno != EEXIST) {
        return vxd_fail(err, VXD_NOT_FOUND, "listen.rpc", "cannot create %s: %s",
                        directory, strerror(errno));
    }
    return VXD_OK;
}

/* True when a process accepts connections at this address. */
static bool is_listening(const struct sockaddr_un *address)
{
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    bool answered;

    if (fd < 0) {
        return true; /* unknown: better to refuse than to take a living socket away */
    }
    answered = connect(fd, (const struct sockaddr *)address, sizeof *address) == 0 ||
               errno != ECONNREFUSED;
    (void)close(fd);
    return answered;
}

/* A daemon that was killed leaves its socket behind. It is removed only when nobody
 * listens, and only when it is a socket: connect() to a plain file is refused as well. */
static enum vxd_status clear_path(const char *path, struct vxd_err *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct stat info;
    size_t n_bytes = strlen(path);

    if (n_bytes == 0 || n_bytes >= sizeof address.sun_path) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "listen.rpc",
                        "the socket path has %zu bytes; 1 to %zu are possible", n_bytes,
                        sizeof address.sun_path - 1);
    }
    memcpy(address.sun_path, path, n_bytes);
    if (lstat(path, &info) != 0) {
        return VXD_OK;
    }
    if (!S_ISSOCK(info.st_mode)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "listen.rpc",
                        "%s exists and is no socket; not touched", path);
    }
    if (is_listening(&address)) {
        return vxd_fail(err, VXD_UNAVAILABLE, "listen.rpc",
                        "%s is in use by another process", path);
    }
    if (unlink(path) != 0) {
        return vxd_fail(err, VXD_UNAVAILABLE, "listen.rpc",
                        "cannot remove the stale socket %s: %s", path, strerror(errno));
    }
    return VXD_OK;
}

/* The URL with the port that was bound in place of the one asked for. */
static void describe(nng_listener listener, const char *url, char *bound)
{
    const char *colon = strrchr(url, ':');
    int port = 0;

    if (strncmp(url, TCP_PREFIX, strlen(TCP_PREFIX)) == 0 && colon != NULL &&
        nng_listener_get_int(listener, NNG_OPT_TCP_BOUND_PORT, &port) == 0) {
        (void)snprintf(bound, VXD_PATH_BYTES, "%.*s:%d", (int)(colon - url), url, port);
    } else {
        (void)snprintf(bound, VXD_PATH_BYTES, "%s", url);
    }
}

enum vxd_status vxd_rpc_listen(nng_socket socket, const struct vxd_config *config,
                               const char *url, char *bound, struct vxd_err *err)
{
    bool is_ipc = strncmp(url, IPC_PREFIX, strlen(IPC_PREFIX)) == 0;
    bool is_tcp = strncmp(url, TCP_PREFIX, strlen(TCP_PREFIX)) == 0;
    nng_listener listener;
    enum vxd_status status = VXD_OK;
    int result;

    learn_refusal();
    if (is_ipc) {
        VXD_TRY(make_directory(url + strlen(IPC_PREFIX), err));
        VXD_TRY(clear_path(url + strlen(IPC_PREFIX), err));
    }
    result = nng_listener_create(&listener, socket, url);
    if (result != 0) {
        status = vxd_fail(err, VXD_INVALID_ARGUMENT, "listen.rpc", "%s: %s", url,
                          nng_strerror(result));
        goto out;
    }
    /* nng allocates what a peer claims, before a byte of it has arrived. */
    result = nng_listener_set_size(listener, NNG_OPT_RECVMAXSZ,
                                   (size_t)config->max_message_bytes + ENVELOPE_BYTES);
    if (result == 0 && is_ipc) {
        result = nng_listener_set_int(listener, NNG_OPT_IPC_PERMISSIONS,
                                      (int)config->ipc_mode);
    }
    if (result == 0 && is_tcp) {
        /* A robot that lost its radio link must not keep its connection for ever. */
        result = nng_listener_set_bool(listener, NNG_OPT_TCP_KEEPALIVE, true);
    }
    if (result == 0) {
        result = nng_listener_start(listener, 0);
    }
    if (result != 0) {
        (void)nng_listener_close(listener);
        status = vxd_fail(err, VXD_UNAVAILABLE, "listen.rpc", "cannot listen on %s: %s",
                          url, nng_strerror(result));
        goto out;
    }
    describe(listener, url, bound);
out:
    return status;
}

bool vxd_rpc_peer(nng_pipe pipe, char name[VXD_NAME_BYTES], int64_t *uid)
{
    nng_sockaddr address;
    char host[INET6_ADDRSTRLEN];
    uint64_t value;

    *uid = -1;
    (void)snprintf(name, VXD_NAME_BYTES, "rpc");
    if (nng_pipe_get_uint64(pipe, NNG_OPT_IPC_PEER_UID, &value) == 0) {
        *uid = (int64_t)value;
        if (nng_pipe_get_uint64(pipe, NNG_OPT_IPC_PEER_PID, &value) == 0) {
            (void)snprintf(name, VXD_NAME_BYTES, "ipc pid %llu",
                           (unsigned long long)value);
        } else {
            (void)snprintf(name, VXD_NAME_BYTES, "ipc");
        }
    } else if (nng_pipe_get_addr(pipe, NNG_OPT_REMADDR, &address) == 0) {
        if (address.s_family == NNG_AF_INET &&
            inet_ntop(AF_INET, &address.s_in.sa_addr, host, sizeof host) != NULL) {
            (void)snprintf(name, VXD_NAME_BYTES, "tcp %s:%u", host,
                           ntohs(address.s_in.sa_port));
        } else if (address.s_family == NNG_AF_INET6 &&
                   inet_ntop(AF_INET6, address.s_in6.sa_addr, host, sizeof host) !=
                       NULL) {
            (void)snprintf(name, VXD_NAME_BYTES, "tcp [%s]:%u", host,
                           ntohs(address.s_in6.sa_port));
        }
    } else {
        return false;
    }
    return true;
}
