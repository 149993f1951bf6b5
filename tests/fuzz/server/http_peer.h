// SPDX-License-Identifier: Apache-2.0
/* The other end of an HTTP connection: one that stands, request after request, as long as
 * the server lets it. What the server sends must be HTTP/1.1 with a length. */
#ifndef VXD_TESTS_FUZZ_SERVER_HTTP_PEER_H
#define VXD_TESTS_FUZZ_SERVER_HTTP_PEER_H

#include "proto/base/base.h"

struct fuzz_peer {
    uint16_t port; /* on 127.0.0.1 */
    int fd;        /* -1 = not connected */
    int64_t sent_ns;
};

struct fuzz_response {
    int status;
    char content_type[64];
    bool closes;   /* the server ends the connection */
    uint8_t *body; /* malloc's, with a NUL behind it */
    size_t n_bytes;
};

/* Sends the request and receives its response; connects where it must. has_body: a response
 * to this verb has one. The process ends when there is none, or a second. */
void fuzz_peer_call(struct fuzz_peer *peer, const char *bytes, size_t n_bytes,
                    bool has_body, struct fuzz_response *out);

/* Nothing has come that was not asked for. */
void fuzz_peer_expect_silence(struct fuzz_peer *peer);

void fuzz_peer_close(struct fuzz_peer *peer);

#endif
