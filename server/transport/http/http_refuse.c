// SPDX-License-Identifier: Apache-2.0
/* Answers to refused bodies while they are still being sent. libmicrohttpd answers before
 * the body or after it. Before it, the library closes the connection at once, and a
 * sender that has not finished gets a reset instead of the answer. After it, the answer
 * comes when all was sent. So the answer is written here, around the library, and for a
 * while whatever still comes is read and dropped. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "proto/base/clock.h"
#include "server/transport/http/http_internal.h"

/* How long a sender may take to notice. */
#define LINGER_S 2u

static enum MHD_Result append_header(void *cls, enum MHD_ValueKind kind, const char *name,
                                     const char *value)
{
    struct vxd_text *text = cls;

    (void)kind;
    if (strcasecmp(name, MHD_HTTP_HEADER_CONNECTION) != 0) {
        vxd_text_printf(text, "%s: %s\r\n", name, value);
    }
    return MHD_YES;
}

/* A small answer fits into the socket's buffer as a whole, since nothing of it was sent
 * yet. */
static bool send_all(const struct vxd_http_exchange *exchange, int fd,
                     const struct vxd_text *text)
{
    gnutls_session_t tls = vxd_http_tls_of(exchange->http, exchange->connection);
    bool is_sent = tls != NULL
                       ? vxd_tls_send_last(tls, text->bytes, text->n_bytes)
                       : send(fd, text->bytes, text->n_bytes,
                              MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)text->n_bytes;

    return is_sent && shutdown(fd, SHUT_WR) == 0;
}

enum MHD_Result vxd_http_refuse_body(struct vxd_http_exchange *exchange)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(exchange->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct vxd_text text = {0};
    bool sent;

    if (exchange->response == NULL || info == NULL) {
        return MHD_NO; /* no memory even for an error: closes the connection */
    }
    vxd_text_printf(
        &text, "HTTP/1.1 %u %s\r\nConnection: close\r\nContent-Length: %zu\r\n",
        exchange->status, MHD_get_reason_phrase_for(exchange->status), exchange->n_bytes);
    (void)MHD_get_response_headers(exchange->response, append_header, &text);
    vxd_text_append(&text, "\r\n", 2);
    vxd_text_append(&text, exchange->bytes, exchange->n_bytes);
    sent = !text.failed && send_all(exchange, info->connect_fd, &text);
    free(text.bytes);
    exchange->linger_until_ns = vxd_clock_ns() + LINGER_S * INT64_C(1000000000);
    (void)MHD_set_connection_option(exchange->connection, MHD_CONNECTION_OPTION_TIMEOUT,
                                    LINGER_S);
    return sent ? MHD_YES : MHD_NO;
}
