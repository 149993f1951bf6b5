// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "client/c/direct/direct_internal.h"
#include "proto/wire/wire.h"

enum {
    DIAL_MS = 1000,
    /* As much of a large request as the system allows lies in the socket at once. */
    SEND_BUFFER_BYTES = 2 << 20
};

_Static_assert(VXD_DIRECT_HOST_BYTES >= sizeof((struct sockaddr_un *)0)->sun_path,
               "a socket's path fits");

static bool starts(const char *s, const char *with)
{
    return strncmp(s, with, strlen(with)) == 0;
}

/* A name is nng's to look up, on a thread of its own: nobody says how long that takes. */
static bool is_number(const char *host)
{
    unsigned char bytes[sizeof(struct in6_addr)];

    return inet_pton(AF_INET, host, bytes) == 1 || inet_pton(AF_INET6, host, bytes) == 1;
}

bool vxd_direct_read_url(const char *url, struct vxd_direct_address *out)
{
    static const char ipc[] = "ipc://";
    static const char tcp[] = "tcp://";
    const char *rest = url + sizeof ipc - 1; /* both are as long */
    const char *colon;
    size_t n_host;
    int n;

    *out = (struct vxd_direct_address){.is_ipc = starts(url, ipc)};
    if (out->is_ipc) {
        n = snprintf(out->host, sizeof out->host, "%s", rest);
        return n > 0 && (size_t)n < sizeof((struct sockaddr_un *)0)->sun_path;
    }
    if (!starts(url, tcp) || (colon = strrchr(rest, ':')) == NULL) {
        return false;
    }
    n_host = (size_t)(colon - rest);
    if (rest[0] == '[' && n_host > 2 &&
        rest[n_host - 1] == ']') { /* an address of IPv6 */
        rest++;
        n_host -= 2;
    }
    n = snprintf(out->port, sizeof out->port, "%s", colon + 1);
    if (n_host == 0 || n_host >= sizeof out->host || n <= 0 ||
        (size_t)n >= sizeof out->port ||
        out->port[strspn(out->port, "0123456789")] != '\0') {
        return false;
    }
    memcpy(out->host, rest, n_host);
    return is_number(out->host);
}

/* Waits for an event of the socket; false when the time is over. */
static bool await(int fd, short events, nng_time deadline)
{
    for (;;) {
        struct pollfd polled = {.fd = fd, .events = events};
        nng_time now = nng_clock();
        int n = poll(&polled, 1, deadline > now ? (int)(deadline - now) : 0);

        if (n >= 0 || errno != EINTR) {
            return n > 0;
        }
    }
}

static int open_socket(int family)
{
    int fd = socket(family, SOCK_STREAM, 0);

    if (fd >= 0 &&
        (fcntl(fd, F_SETFD, FD_CLOEXEC) != 0 || fcntl(fd, F_SETFL, O_NONBLOCK) != 0)) {
        (void)close(fd);
        fd = -1;
    }
    return fd;
}

/* A Unix socket connects at once, or its listener's queue is full. */
static int connect_unix(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const int n_bytes = SEND_BUFFER_BYTES;
    int fd = open_socket(AF_UNIX);

    memcpy(address.sun_path, path,
           strlen(path)); /* vxd_direct_read_url has measured it */
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof address) != 0) {
        (void)close(fd);
        return -1;
    }
    if (fd >= 0) { /* failing costs only time */
        (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &n_bytes, sizeof n_bytes);
    }
    return fd;
}

static int connect_tcp_to(const struct addrinfo *to, nng_time deadline)
{
    int fd = open_socket(to->ai_family);
    const int on = 1;
    int error = 0;
    socklen_t n_error = sizeof error;

    if (fd < 0) {
        return -1;
    }
    if (connect(fd, to->ai_addr, to->ai_addrlen) != 0 &&
        (errno != EINPROGRESS || !await(fd, POLLOUT, deadline) ||
         getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &n_error) != 0 || error != 0)) {
        (void)close(fd);
        return -1;
    }
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    return fd;
}

static int connect_tcp(const struct vxd_direct_address *address, nng_time deadline)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC,
                                   .ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    int fd = -1;

    if (getaddrinfo(address->host, address->port, &hints, &found) != 0) {
        return -1;
    }
    for (const struct addrinfo *to = found; to != NULL && fd < 0; to = to->ai_next) {
        fd = connect_tcp_to(to, deadline);
    }
    freeaddrinfo(found);
    return fd;
}

/* Both sides greet. A server that takes no more connections closes this one instead. */
static bool greet(int fd, nng_time deadline)
{
    uint8_t ours[VXD_SP_GREETING_BYTES];
    uint8_t theirs[VXD_SP_GREETING_BYTES];
    size_t n_there = 0;

    vxd_sp_write_greeting(ours, VXD_SP_REQ);
    /* A fresh socket takes 8 bytes. */
    if (send(fd, ours, sizeof ours, MSG_NOSIGNAL) != (ssize_t)sizeof ours) {
        return false;
    }
    while (n_there < sizeof theirs) {
        ssize_t n = -1;

        if (await(fd, POLLIN, deadline)) {
            n = recv(fd, theirs + n_there, sizeof theirs - n_there, 0);
        }
        if (n <= 0) {
            return false;
        }
        n_there += (size_t)n;
    }
    return vxd_sp_check_greeting(theirs, n_there, VXD_SP_REP) == VXD_SP_OK;
}

int vxd_direct_dial(const struct vxd_direct_address *address, nng_time deadline)
{
    nng_time limit = nng_clock() + DIAL_MS;
    int fd;

    deadline = deadline < limit ? deadline : limit;
    fd = address->is_ipc ? connect_unix(address->host) : connect_tcp(address, deadline);
    if (fd >= 0 && !greet(fd, deadline)) {
        (void)close(fd);
        fd = -1;
    }
    return fd;
}
