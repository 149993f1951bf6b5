// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/server/http_peer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "proto/base/clock.h"
#include "tests/fuzz/server/daemon.h"

enum {
    HEAD_BYTES = 65536
};

/* libFuzzer's clock interrupts system calls. */
static ssize_t receive(const struct fuzz_peer *peer, void *bytes, size_t n_bytes,
                       int flags)
{
    ssize_t n;

    do {
        n = recv(peer->fd, bytes, n_bytes, flags);
    } while (n < 0 && errno == EINTR);
    return n;
}

/* True once connected; an interrupted connect() goes on by itself. */
static bool finish_connect(int fd)
{
    struct pollfd wait = {.fd = fd, .events = POLLOUT};
    int error = errno;
    socklen_t n_bytes = sizeof error;

    if (error != EINTR) {
        return false;
    }
    while (poll(&wait, 1, FUZZ_REPLY_WAIT_MS) < 0 && errno == EINTR) {
    }
    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &n_bytes) == 0 && error == 0;
}

static void open_connection(struct fuzz_peer *peer)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(peer->port)};
    const struct timeval wait = {.tv_sec = FUZZ_REPLY_WAIT_MS / 1000};
    const int on = 1;

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    peer->fd = socket(AF_INET, SOCK_STREAM, 0);
    FUZZ_EXPECT(
        peer->fd >= 0 &&
            setsockopt(peer->fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait) == 0 &&
            setsockopt(peer->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0 &&
            (connect(peer->fd, (const struct sockaddr *)&address, sizeof address) == 0 ||
             finish_connect(peer->fd)),
        "cannot connect to port %u: %s", peer->port, strerror(errno));
}

/* Receives until the head is complete, behind the n bytes that came before; returns how many
 * bytes there are then, which may be more than the head. */
static size_t receive_head(const struct fuzz_peer *peer, char head[HEAD_BYTES], size_t n)
{
    head[n] = '\0';
    while (strstr(head, "\r\n\r\n") == NULL) {
        ssize_t got = receive(peer, head + n, HEAD_BYTES - 1 - n, 0);

        FUZZ_EXPECT(got > 0, "no response but %zu bytes, %s after %lld ms: %s", n,
                    got < 0 ? strerror(errno) : "the end",
                    (long long)(vxd_clock_ns() - peer->sent_ns) / 1000000, head);
        n += (size_t)got;
        head[n] = '\0';
    }
    return n;
}

static size_t head_bytes(const char *head)
{
    return (size_t)(strstr(head, "\r\n\r\n") - head) + 4;
}

/* The value of a header, NULL where there is none; ends at the next '\r'. */
static const char *find_header(const char *head, const char *name)
{
    size_t n_name = strlen(name);

    for (const char *line = strstr(head, "\r\n"); line != NULL;
         line = strstr(line + 2, "\r\n")) {
        if (strncasecmp(line + 2, name, n_name) == 0 && line[2 + n_name] == ':') {
            return line + 2 + n_name + 1 + strspn(line + 2 + n_name + 1, " ");
        }
    }
    return NULL;
}

static void read_head(const char *head, struct fuzz_response *out)
{
    const char *type = find_header(head, "Content-Type");
    const char *connection = find_header(head, "Connection");

    FUZZ_EXPECT(strncmp(head, "HTTP/1.1 ", 9) == 0, "no response: %s", head);
    out->status = (int)strtol(head + 9, NULL, 10);
    if (type != NULL) {
        (void)snprintf(out->content_type, sizeof out->content_type, "%.*s",
                       (int)strcspn(type, ";\r"), type);
    }
    out->closes = connection != NULL && strncasecmp(connection, "close", 5) == 0;
}

static void receive_response(const struct fuzz_peer *peer, bool has_body,
                             struct fuzz_response *out)
{
    char *head = malloc(HEAD_BYTES);
    const char *length;
    size_t n, n_head;

    FUZZ_EXPECT(head != NULL, "no memory");
    n = receive_head(peer, head, 0);
    n_head = head_bytes(head);
    if (strncmp(head, "HTTP/1.1 100", 12) == 0) {
        n -= n_head;
        memmove(head, head + n_head, n);
        n = receive_head(peer, head, n);
        n_head = head_bytes(head);
    }
    read_head(head, out);
    length = find_header(head, "Content-Length");
    has_body = has_body && out->status != 204;
    FUZZ_EXPECT(!has_body || length != NULL, "no length: %s", head);
    out->n_bytes = has_body ? strtoul(length, NULL, 10) : 0;
    out->body = malloc(out->n_bytes + 1);
    FUZZ_EXPECT(out->body != NULL && n - n_head <= out->n_bytes,
                "%zu bytes came, %zu were announced: %s", n - n_head, out->n_bytes, head);
    memcpy(out->body, head + n_head, n - n_head);
    free(head);
    for (n -= n_head; n < out->n_bytes;) {
        ssize_t got = receive(peer, out->body + n, out->n_bytes - n, 0);

        FUZZ_EXPECT(got > 0, "%zu of %zu bytes came", n, out->n_bytes);
        n += (size_t)got;
    }
    out->body[n] = '\0';
}

void fuzz_peer_call(struct fuzz_peer *peer, const char *bytes, size_t n_bytes,
                    bool has_body, struct fuzz_response *out)
{
    memset(out, 0, sizeof *out);
    if (peer->fd < 0) {
        open_connection(peer);
    }
    peer->sent_ns = vxd_clock_ns();
    while (n_bytes > 0) {
        ssize_t n = send(peer->fd, bytes, n_bytes, MSG_NOSIGNAL);

        FUZZ_EXPECT(n > 0 || errno == EINTR, "%zu bytes were not taken: %s", n_bytes,
                    strerror(errno));
        bytes += n > 0 ? n : 0;
        n_bytes -= n > 0 ? (size_t)n : 0;
    }
    receive_response(peer, has_body, out);
    if (out->closes) {
        fuzz_peer_close(peer);
    }
}

void fuzz_peer_expect_silence(struct fuzz_peer *peer)
{
    char bytes[256];
    ssize_t n = peer->fd >= 0 ? receive(peer, bytes, sizeof bytes, MSG_DONTWAIT) : -1;

    FUZZ_EXPECT(n<0, "unasked, or the end: %.*s", n> 0 ? (int)n : 0, bytes);
}

void fuzz_peer_close(struct fuzz_peer *peer)
{
    if (peer->fd >= 0) {
        (void)close(peer->fd);
        peer->fd = -1;
    }
}
