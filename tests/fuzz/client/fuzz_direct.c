// SPDX-License-Identifier: Apache-2.0
/* What a server sends to libvoxeld's own sockets: a greeting and replies, in pieces as large as the
 * input's first byte says. Where its second byte is odd, the greeting is right and the id of the
 * first reply is the request's. Whatever comes, the call ends, and a reply that is taken has the
 * bytes that were sent. */
#include <nng/nng.h>
#include <nng/supplemental/util/platform.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "client/c/direct/direct.h"

enum {
    HEAD_BYTES = 13,
    REQUEST_BYTES = 40,
    MAX_REPLY_BYTES = 1 << 20,
    CALL_MS = 2000
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Lives as long as the process: libFuzzer passes nothing along. */
static struct {
    int listener;
    char url[64];
    struct vxd_reply_memory *memory;
    uint8_t *bytes; /* of this input, as they are sent */
    size_t n_bytes;
    size_t n_piece;
    bool is_polite;
} server;

static void set_up(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    (void)snprintf(address.sun_path, sizeof address.sun_path, "/tmp/fuzz-direct-%d",
                   (int)getpid());
    (void)unlink(address.sun_path);
    (void)snprintf(server.url, sizeof server.url, "ipc://%.50s", address.sun_path);
    server.listener = socket(AF_UNIX, SOCK_STREAM, 0);
    server.memory = vxd_reply_memory_create();
    if (server.memory == NULL || server.listener < 0 ||
        bind(server.listener, (const struct sockaddr *)&address, sizeof address) != 0 ||
        listen(server.listener, 4) != 0) {
        abort();
    }
}

static void send_all(int fd, const uint8_t *bytes, size_t n_bytes)
{
    for (size_t at = 0; at < n_bytes;) {
        size_t n_left = n_bytes - at;
        ssize_t n = send(fd, bytes + at,
                         n_left < server.n_piece ? n_left : server.n_piece, MSG_NOSIGNAL);

        if (n <= 0) {
            return;
        }
        at += (size_t)n;
    }
}

static void *serve(void *arg)
{
    static const uint8_t greeting[8] = {0, 'S', 'P', 0, 0, 0x31, 0, 0};
    uint8_t request[8 + HEAD_BYTES + REQUEST_BYTES];
    size_t n_request = server.is_polite ? sizeof request : 8;
    int fd = accept(server.listener, NULL, NULL);

    (void)arg;
    if (server.is_polite) {
        send_all(fd, greeting, sizeof greeting);
    }
    if (recv(fd, request, n_request, MSG_WAITALL) == (ssize_t)n_request) {
        if (server.is_polite && server.n_bytes >= HEAD_BYTES) {
            memcpy(server.bytes + 9, request + 8 + 9, 4);
        }
        send_all(fd, server.bytes, server.n_bytes);
    }
    (void)shutdown(fd, SHUT_WR);
    while (recv(fd, request, sizeof request, 0) > 0) {
    }
    (void)close(fd);
    return NULL;
}

static void call(struct vxd_direct *direct)
{
    static const struct vxd_direct_watch nobody;
    static uint8_t bytes[REQUEST_BYTES];
    const struct vxd_packed request = {.bytes = bytes, .n_bytes = sizeof bytes};
    nng_time deadline = nng_clock() + CALL_MS;
    struct vxd_direct_connection *connection = vxd_direct_take(direct, deadline);
    struct vxd_message reply;
    bool sent;
    int result;

    if (connection == NULL) {
        return;
    }
    result = vxd_direct_exchange(direct, connection, &request, deadline, &nobody,
                                 server.memory, &sent, &reply);
    if (result == NNG_ETIMEDOUT || (result != 0) != (reply.body == NULL)) {
        abort(); /* the server ends at once */
    }
    if (result == 0 && server.is_polite &&
        (reply.n_bytes > server.n_bytes - HEAD_BYTES ||
         memcmp(reply.body, server.bytes + HEAD_BYTES, reply.n_bytes) != 0)) {
        abort();
    }
    vxd_message_free(&reply);
    vxd_direct_give(direct, connection, result == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct vxd_direct *direct = NULL;
    pthread_t thread;

    if (size < 2) {
        return 0;
    }
    if (server.memory == NULL) {
        set_up();
    }
    server.n_piece = (size_t)data[0] * 16 + 1;
    server.is_polite = (data[1] & 1) != 0;
    server.n_bytes = size - 2;
    server.bytes = malloc(server.n_bytes > 0 ? server.n_bytes : 1);
    if (server.bytes == NULL ||
        vxd_direct_create(server.url, MAX_REPLY_BYTES, &direct, NULL) != VXD_OK ||
        direct == NULL || pthread_create(&thread, NULL, serve, NULL) != 0) {
        abort();
    }
    memcpy(server.bytes, data + 2, server.n_bytes);
    call(direct);
    vxd_direct_destroy(direct);
    (void)pthread_join(thread, NULL);
    free(server.bytes);
    return 0;
}
