// SPDX-License-Identifier: Apache-2.0
/* Listeners of the rpc transport, and who is at the other end of a connection. */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "proto/wire/wire.h"
#include "server/observe/log/log.h"
#include "server/transport/nng/rpc_internal.h"

#define IPC_PREFIX "ipc://"
#define TCP_PREFIX "tcp://"
#define TLS_PREFIX "tls+tcp://"
#define DIRECTORY_MODE 0750
#define BACKLOG 128
#define PORT_BYTES 8

/* What the kernel may hold of a reply that its receiver has not read yet, a connection; it
 * takes the double of what is asked for, and asks less where net.core.wmem_max does. By
 * default it is 208 KiB, and a reply of megabytes crosses in twenty steps, each of which
 * wakes both sides. */
#define SEND_BUFFER_BYTES (2 * 1024 * 1024)

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
static bool is_listening(const struct sockaddr_un *address, int type)
{
    /* Whoever listens and accepts nothing would keep a blocking connect waiting; this one fails with
     * EAGAIN then. */
    int fd = socket(AF_UNIX, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
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
static enum vxd_status clear_path(const struct sockaddr_un *address, int type,
                                  struct vxd_err *err)
{
    const char *path = address->sun_path;
    struct stat info;

    if (lstat(path, &info) != 0) {
        return VXD_OK;
    }
    if (!S_ISSOCK(info.st_mode)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "listen.rpc",
                        "%s exists and is no socket; not touched", path);
    }
    if (is_listening(address, type)) {
        return vxd_fail(err, VXD_UNAVAILABLE, "listen.rpc",
                        "%s is in use by another process", path);
    }
    if (unlink(path) != 0) {
        return vxd_fail(err, VXD_UNAVAILABLE, "listen.rpc",
                        "cannot remove the stale socket %s: %s", path, strerror(errno));
    }
    return VXD_OK;
}

static enum vxd_status fail_listen(const char *where, struct vxd_err *err)
{
    return vxd_fail(err, VXD_UNAVAILABLE, "listen.rpc", "cannot listen on %s: %s", where,
                    strerror(errno));
}

/* type: SOCK_STREAM or SOCK_SEQPACKET. */
static enum vxd_status listen_unix(const struct vxd_config *config, const char *path,
                                   int type, struct vxd_rpc_listener *out,
                                   struct vxd_err *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t n_bytes = strlen(path);
    enum vxd_status status;

    if (n_bytes == 0 || n_bytes >= sizeof address.sun_path) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "listen.rpc",
                        "the socket path has %zu bytes; 1 to %zu are possible", n_bytes,
                        sizeof address.sun_path - 1);
    }
    memcpy(address.sun_path, path, n_bytes);
    VXD_TRY(make_directory(path, err));
    VXD_TRY(clear_path(&address, type, err));
    out->fd = socket(AF_UNIX, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    /* Linux gives the socket's own mode to the file, less the umask's bits, so that nobody
     * connects who may not before chmod has set it exactly. */
    if (out->fd < 0 || fchmod(out->fd, (mode_t)config->ipc_mode) != 0 ||
        bind(out->fd, (const struct sockaddr *)&address, sizeof address) != 0) {
        return fail_listen(path, err);
    }
    (void)snprintf(out->path, sizeof out->path, "%s", path);
    if (chmod(path, (mode_t)config->ipc_mode) != 0 || listen(out->fd, BACKLOG) != 0) {
        return fail_listen(path, err);
    }
out:
    return status;
}

/* "HOST:PORT", "[HOST]:PORT" or "*:PORT", which the configuration's check has accepted. */
static struct addrinfo *resolve(const char *address, char port[PORT_BYTES])
{
    const struct addrinfo hints = {.ai_flags = AI_PASSIVE | AI_NUMERICSERV,
                                   .ai_socktype = SOCK_STREAM};
    char host[VXD_PATH_BYTES];
    const char *colon = strrchr(address, ':');
    const char *begin = address;
    struct addrinfo *found = NULL;
    size_t n_host;

    if (colon == NULL) {
        return NULL;
    }
    n_host = (size_t)(colon - address);
    (void)snprintf(port, PORT_BYTES, "%s", colon + 1);
    if (n_host >= 2 && begin[0] == '[' && begin[n_host - 1] == ']') {
        begin++;
        n_host -= 2;
    }
    (void)snprintf(host, sizeof host, "%.*s", (int)n_host, begin);
    return getaddrinfo(host[0] == '\0' || strcmp(host, "*") == 0 ? NULL : host, port,
                       &hints, &found) == 0
               ? found
               : NULL;
}

static enum vxd_status listen_tcp(const char *url, struct vxd_rpc_listener *out,
                                  char *bound, struct vxd_err *err)
{
    char port[PORT_BYTES];
    const char *address = strstr(url, "://") + strlen("://");
    struct addrinfo *found = resolve(address, port);
    struct sockaddr_storage name = {0};
    socklen_t n_name = sizeof name;
    const int on = 1;
    enum vxd_status status = VXD_OK;

    if (found == NULL) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "listen.rpc",
                        "%s: no such host or port", url);
    }
    out->fd =
        socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
    if (out->fd < 0 ||
        setsockopt(out->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        bind(out->fd, found->ai_addr, found->ai_addrlen) != 0 ||
        listen(out->fd, BACKLOG) != 0 ||
        getsockname(out->fd, (struct sockaddr *)&name, &n_name) != 0) {
        status = fail_listen(url, err);
    } else {
        uint16_t number = name.ss_family == AF_INET6
                              ? ((const struct sockaddr_in6 *)&name)->sin6_port
                              : ((const struct sockaddr_in *)&name)->sin_port;

        (void)snprintf(bound, VXD_PATH_BYTES, "%.*s:%u", (int)(strrchr(url, ':') - url),
                       url, (unsigned)ntohs(number));
    }
    freeaddrinfo(found);
    return status;
}

enum vxd_status vxd_rpc_listen(const struct vxd_config *config, const char *url,
                               struct vxd_rpc_listener *out, char *bound,
                               struct vxd_err *err)
{
    enum vxd_status status;

    *out = (struct vxd_rpc_listener){.fd = -1};
    (void)snprintf(bound, VXD_PATH_BYTES, "%s", url);
    if (strncmp(url, IPC_PREFIX, strlen(IPC_PREFIX)) == 0) {
        out->is_ipc = true;
        status = listen_unix(config, url + strlen(IPC_PREFIX), SOCK_STREAM, out, err);
    } else if (strncmp(url, TCP_PREFIX, strlen(TCP_PREFIX)) == 0) {
        status = listen_tcp(url, out, bound, err);
    } else if (strncmp(url, TLS_PREFIX, strlen(TLS_PREFIX)) == 0) {
        out->is_tls = true;
        status = listen_tcp(url, out, bound, err);
    } else {
        status = vxd_fail(err, VXD_INVALID_ARGUMENT, "listen.rpc",
                          "%s must be ipc:///PATH, tcp://HOST:PORT or "
                          "tls+tcp://HOST:PORT",
                          url);
    }
    if (status != VXD_OK) {
        vxd_rpc_unlisten(out);
    }
    return status;
}

enum vxd_status vxd_rpc_listen_shared(const struct vxd_config *config, const char *url,
                                      struct vxd_rpc_listener *out, struct vxd_err *err)
{
    char path[VXD_PATH_BYTES + sizeof VXD_SHARED_SUFFIX];
    enum vxd_status status;

    *out = (struct vxd_rpc_listener){.fd = -1, .is_ipc = true};
    if (strncmp(url, IPC_PREFIX, strlen(IPC_PREFIX)) != 0) {
        return VXD_OK;
    }
    (void)snprintf(path, sizeof path, "%s%s", url + strlen(IPC_PREFIX),
                   VXD_SHARED_SUFFIX);
    if (strlen(path) >= sizeof((struct sockaddr_un *)0)->sun_path) {
        vxd_log(VXD_LOG_WARNING,
                "no shared memory: the path of its socket would be too long", "path",
                path);
        return VXD_OK;
    }
    status = listen_unix(config, path, SOCK_SEQPACKET, out, err);
    if (status != VXD_OK) {
        vxd_rpc_unlisten(out);
    }
    return status;
}

void vxd_rpc_unlisten(struct vxd_rpc_listener *listener)
{
    if (listener->fd >= 0) {
        (void)close(listener->fd);
        listener->fd = -1;
    }
    if (listener->path[0] != '\0') {
        (void)unlink(listener->path);
        listener->path[0] = '\0';
    }
}

static void greet_ipc(int fd, char name[VXD_NAME_BYTES], int64_t *uid)
{
    const int n_bytes = SEND_BUFFER_BYTES;
    struct ucred peer;
    socklen_t n_peer = sizeof peer;

    (void)snprintf(name, VXD_NAME_BYTES, "ipc");
    /* Failing costs only time. */
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &n_bytes, sizeof n_bytes);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n_peer) == 0) {
        *uid = (int64_t)peer.uid;
        (void)snprintf(name, VXD_NAME_BYTES, "ipc pid %lld", (long long)peer.pid);
    }
}

static void greet_tcp(int fd, char name[VXD_NAME_BYTES])
{
    struct sockaddr_storage address = {0};
    const struct sockaddr_in *ip4 = (const struct sockaddr_in *)&address;
    const struct sockaddr_in6 *ip6 = (const struct sockaddr_in6 *)&address;
    socklen_t n_address = sizeof address;
    char host[INET6_ADDRSTRLEN];
    const int on = 1;

    (void)snprintf(name, VXD_NAME_BYTES, "tcp");
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    /* A robot that lost its radio must not keep its connection for ever. */
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    if (getpeername(fd, (struct sockaddr *)&address, &n_address) != 0) {
        return;
    }
    if (address.ss_family == AF_INET &&
        inet_ntop(AF_INET, &ip4->sin_addr, host, sizeof host) != NULL) {
        (void)snprintf(name, VXD_NAME_BYTES, "tcp %s:%u", host, ntohs(ip4->sin_port));
    } else if (address.ss_family == AF_INET6 &&
               inet_ntop(AF_INET6, &ip6->sin6_addr, host, sizeof host) != NULL) {
        (void)snprintf(name, VXD_NAME_BYTES, "tcp [%s]:%u", host, ntohs(ip6->sin6_port));
    }
}

void vxd_rpc_set_up_peer(int fd, bool is_ipc, char name[VXD_NAME_BYTES], int64_t *uid)
{
    *uid = -1;
    if (is_ipc) {
        greet_ipc(fd, name, uid);
    } else {
        greet_tcp(fd, name);
    }
}
