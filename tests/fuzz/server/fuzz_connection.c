// SPDX-License-Identifier: Apache-2.0
/* What a peer of nng's protocol sends, byte by byte, to the transport's socket: greeting, lengths,
 * routes and messages in any pieces. The first byte of an input says how large the pieces are.
 * Whatever comes, the connection ends, every reply is well formed, and the server is as before. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "proto/wire/wire.h"
#include "server/transport/nng/nng.h"
#include "tests/fuzz/server/daemon.h"

enum {
    REPLIES_BYTES = 8 << 20 /* more than what an input of this size can ask for */
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Lives as long as the process: libFuzzer passes nothing along. */
static struct {
    struct vxd_server *server;
    struct vxd_rpc *rpc;
    uint8_t *replies;
} target;

static void start(void)
{
    struct vxd_err err = {0};

    target.server = fuzz_server_start("");
    FUZZ_EXPECT(vxd_rpc_start(target.server, &target.rpc, &err) == VXD_OK, "%s",
                err.message);
    if (target.replies == NULL) {
        target.replies = malloc(REPLIES_BYTES);
    }
    FUZZ_EXPECT(target.replies != NULL, "no memory");
}

static void stop(void)
{
    vxd_rpc_stop(target.rpc);
    fuzz_server_stop(target.server);
    target.server = NULL;
}

static int connect_peer(void)
{
    const struct timeval patience = {.tv_sec = FUZZ_REPLY_WAIT_MS / 1000};
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s",
                   fuzz_url() + strlen(FUZZ_URL_PREFIX));
    FUZZ_EXPECT(fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience,
                                      sizeof patience) == 0,
                "no socket");
    while (connect(fd, (const struct sockaddr *)&address, sizeof address) != 0) {
        FUZZ_EXPECT(errno == EAGAIN || errno == EINTR, "cannot connect: %s",
                    strerror(errno));
    }
    return fd;
}

/* Until the server has ended the connection. */
static size_t read_all(int fd)
{
    size_t n_bytes = 0;

    for (;;) {
        ssize_t n = recv(fd, target.replies + n_bytes, REPLIES_BYTES - n_bytes, 0);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        FUZZ_EXPECT(n >= 0 || errno == ECONNRESET, "the connection does not end: %s",
                    strerror(errno));
        if (n <= 0) {
            return n_bytes;
        }
        n_bytes += (size_t)n;
    }
}

/* A connection may end within a reply, since its peer has left. */
static void check_replies(size_t n_bytes)
{
    const uint8_t *bytes = target.replies;
    size_t at = VXD_SP_GREETING_BYTES;

    FUZZ_EXPECT(n_bytes == 0 ||
                    vxd_sp_check_greeting(bytes, n_bytes, VXD_SP_REP) != VXD_SP_INVALID,
                "no greeting");
    while (at < n_bytes) {
        struct vxd_sp_route route;
        Voxeld__V1__Response *reply;
        uint64_t n_message;

        if (vxd_sp_read_head(bytes + at, n_bytes - at, true, &n_message) != VXD_SP_OK) {
            return;
        }
        at += VXD_SP_IPC_HEAD_BYTES;
        if (n_message > n_bytes - at) {
            return;
        }
        FUZZ_EXPECT(vxd_sp_read_route(bytes + at, (size_t)n_message, &route) == VXD_SP_OK,
                    "no route");
        reply = voxeld__v1__response__unpack(NULL, (size_t)n_message - route.n_bytes,
                                             bytes + at + route.n_bytes);
        FUZZ_EXPECT(reply != NULL && reply->header != NULL, "no reply");
        fuzz_expect_code((int)reply->header->code);
        fuzz_expect_sound(&reply->base);
        voxeld__v1__response__free_unpacked(reply, NULL);
        at += (size_t)n_message;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t piece = size > 0 && data[0] > 0 ? (size_t)data[0] * data[0] : size + 1;
    int fd;

    if (target.server == NULL) {
        start();
    }
    fd = connect_peer();
    for (size_t at = 1; at < size; at += piece) {
        size_t n = size - at < piece ? size - at : piece;

        ssize_t n_sent;

        do {
            n_sent = send(fd, data + at, n, MSG_NOSIGNAL);
        } while (n_sent < 0 && errno == EINTR);
        if (n_sent != (ssize_t)n) {
            break; /* it was cut */
        }
    }
    (void)shutdown(fd, SHUT_WR);
    check_replies(read_all(fd));
    (void)close(fd);
    if (!fuzz_server_settle(target.server, true)) {
        stop();
        start();
    }
    return 0;
}
