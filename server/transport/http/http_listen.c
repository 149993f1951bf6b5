// SPDX-License-Identifier: Apache-2.0
/* The listening socket of the HTTP transport. It is made here rather than by the library,
 * so that port 0, IPv6 and a clear message when an address is taken all work; or the
 * supervisor passed it. */
#include "server/transport/http/http_internal.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 128

void vxd_http_address(const struct sockaddr *address, char *host, size_t capacity,
                      uint16_t *port)
{
    const char *text = NULL;

    *port = 0;
    if (address->sa_family == AF_INET) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)address;

        text = inet_ntop(AF_INET, &v4->sin_addr, host, (socklen_t)capacity);
        *port = ntohs(v4->sin_port);
    } else if (address->sa_family == AF_INET6) {
        const struct sockaddr_in6 *v6 =
            (const struct sockaddr_in6 *)(const void *)address;
        const uint8_t *bytes = v6->sin6_addr.s6_addr;

        /* An IPv4 peer of a socket that serves both families. */
        text = IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr)
                   ? inet_ntop(AF_INET, bytes + 12, host, (socklen_t)capacity)
                   : inet_ntop(AF_INET6, bytes, host, (socklen_t)capacity);
        *port = ntohs(v6->sin6_port);
    }
    if (text == NULL) {
        (void)snprintf(host, capacity, "unknown");
    }
}

/* Splits "host:port" or "[v6]:port". */
static enum vxd_status split_address(const char *field, const char *address,
                                     char host[VXD_PATH_BYTES], char port[8],
                                     struct vxd_err *err)
{
    const char *colon = strrchr(address, ':');
    size_t n_host = colon != NULL ? (size_t)(colon - address) : 0;

    if (colon == NULL || strlen(colon + 1) == 0 || strlen(colon + 1) > 5 ||
        strspn(colon + 1, "0123456789") != strlen(colon + 1)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                        "'%.150s' is not HOST:PORT or [IPV6]:PORT", address);
    }
    if (n_host >= 2 && address[0] == '[' && address[n_host - 1] == ']') {
        address++;
        n_host -= 2;
    }
    memcpy(host, address, n_host);
    host[n_host] = '\0';
    (void)snprintf(port, 8, "%s", colon + 1);
    return VXD_OK;
}

static int open_socket(const struct addrinfo *info)
{
    int fd = socket(info->ai_family, info->ai_socktype, info->ai_protocol);
    int on = 1;
    int saved;

    if (fd < 0) {
        return -1;
    }
    if (fcntl(fd, F_SETFD, FD_CLOEXEC) == 0 && fcntl(fd, F_SETFL, O_NONBLOCK) == 0 &&
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
        bind(fd, info->ai_addr, info->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0) {
        return fd;
    }
    saved = errno;
    (void)close(fd);
    errno = saved;
    return -1;
}

/* Reads back what was bound. */
static void describe(struct vxd_http *http)
{
    struct sockaddr_storage address = {0};
    socklen_t n_bytes = sizeof address;
    char host[INET6_ADDRSTRLEN];
    bool is_v6;

    (void)getsockname(http->listen_fd, (struct sockaddr *)&address, &n_bytes);
    vxd_http_address((const struct sockaddr *)&address, host, sizeof host, &http->port);
    is_v6 = strchr(host, ':') != NULL;
    (void)snprintf(http->bound, VXD_PATH_BYTES, "%s%s%s%s:%u",
                   http->is_tls ? VXD_CONFIG_HTTPS : "", is_v6 ? "[" : "", host,
                   is_v6 ? "]" : "", http->port);
}

static enum vxd_status fail_unix(const char *path, struct vxd_err *err)
{
    return vxd_fail(err, VXD_UNAVAILABLE, "listen.http",
                    "cannot listen on unix:%.150s: %s", path, strerror(errno));
}

/* Removes what a daemon that was killed has left there. */
static enum vxd_status clear_path(const struct sockaddr_un *address, struct vxd_err *err)
{
    struct stat about;
    int fd;
    bool answers;

    if (lstat(address->sun_path, &about) != 0) {
        return VXD_OK; /* if it is there all the same, bind says so */
    }
    if (!S_ISSOCK(about.st_mode)) {
        errno = EEXIST;
        return fail_unix(address->sun_path, err);
    }
    fd = socket(AF_UNIX, SOCK_STREAM, 0);
    answers = fd >= 0 && connect(fd, (const struct sockaddr *)(const void *)address,
                                 sizeof *address) == 0;
    if (fd >= 0) {
        (void)close(fd);
    }
    if (answers) {
        errno = EADDRINUSE;
        return fail_unix(address->sun_path, err);
    }
    (void)unlink(address->sun_path);
    return VXD_OK;
}

static enum vxd_status listen_unix(struct vxd_http *http, const char *path,
                                   struct vxd_err *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    mode_t mode = (mode_t)http->server->config.ipc_mode;
    enum vxd_status status;

    if (strlen(path) >= sizeof address.sun_path) {
        errno = ENAMETOOLONG;
        return fail_unix(path, err);
    }
    memcpy(address.sun_path, path, strlen(path));
    VXD_TRY(clear_path(&address, err));
    http->listen_fd = socket(AF_UNIX, SOCK_STREAM, 0);
    /* The file gets the socket's own mode, so nobody connects before who may not. */
    if (http->listen_fd < 0 || fcntl(http->listen_fd, F_SETFD, FD_CLOEXEC) != 0 ||
        fcntl(http->listen_fd, F_SETFL, O_NONBLOCK) != 0 ||
        fchmod(http->listen_fd, mode) != 0 ||
        bind(http->listen_fd, (const struct sockaddr *)&address, sizeof address) != 0) {
        return fail_unix(path, err);
    }
    (void)snprintf(http->unix_path, sizeof http->unix_path, "%s", path);
    if (chmod(path, mode) != 0 || listen(http->listen_fd, BACKLOG) != 0) {
        return fail_unix(path, err);
    }
    (void)snprintf(http->server->http_bound, sizeof http->server->http_bound, "unix:%s",
                   path);
out:
    return status;
}

int64_t vxd_http_peer_uid(const struct vxd_http_exchange *exchange)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(exchange->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct ucred peer;
    socklen_t n_bytes = sizeof peer;

    if (exchange->http->unix_path[0] == '\0' || info == NULL ||
        getsockopt(info->connect_fd, SOL_SOCKET, SO_PEERCRED, &peer, &n_bytes) != 0) {
        return -1;
    }
    return (int64_t)peer.uid;
}

enum vxd_status vxd_http_listen(struct vxd_http *http, struct vxd_err *err)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC,
                                   .ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    const char *configured = vxd_config_http_address(http->address);
    struct addrinfo *found = NULL;
    char port[8];
    enum vxd_status status;
    int result;
    int last_error = 0;

    if (strncmp(configured, "unix:", 5) == 0) {
        return listen_unix(http, configured + 5, err);
    }
    VXD_TRY(split_address(http->field, configured, http->host, port, err));
    if (http->is_passed) {
        describe(http);
        return VXD_OK;
    }
    result = getaddrinfo(http->host[0] != '\0' ? http->host : NULL, port, &hints, &found);
    if (result != 0) {
        status = vxd_fail(err, VXD_INVALID_ARGUMENT, http->field, "'%.150s': %s",
                          configured, gai_strerror(result));
        goto out;
    }
    for (const struct addrinfo *info = found; info != NULL && http->listen_fd < 0;
         info = info->ai_next) {
        http->listen_fd = open_socket(info);
        last_error = errno;
    }
    if (http->listen_fd < 0) {
        status =
            vxd_fail(err, VXD_UNAVAILABLE, http->field, "cannot listen on %.150s: %s",
                     configured, strerror(last_error));
        goto out;
    }
    describe(http);
out:
    if (found != NULL) {
        freeaddrinfo(found);
    }
    return status;
}
