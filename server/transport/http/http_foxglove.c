// SPDX-License-Identifier: Apache-2.0
/* GET /foxglove: the handshake of a viewer that speaks the Foxglove WebSocket protocol. */
#include <stdlib.h>
#include <string.h>

#include "server/transport/foxglove/foxglove.h"
#include "server/transport/http/http_internal.h"

static enum vxd_status read_max_bytes(struct vxd_http_exchange *exchange, size_t *out,
                                      struct vxd_err *err)
{
    const char *text = MHD_lookup_connection_value(exchange->connection,
                                                   MHD_GET_ARGUMENT_KIND, "max_bytes");
    unsigned long long value = VXD_FOXGLOVE_DEFAULT_BYTES;
    char *end = NULL;

    if (text != NULL) {
        value = strtoull(text, &end, 10);
    }
    if (text != NULL &&
        (*text < '0' || *text > '9' || *end != '\0' || value < VXD_FOXGLOVE_LEAST_BYTES ||
         value > VXD_FOXGLOVE_MOST_BYTES)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "max_bytes",
                        "'%.20s' is no whole number from %zu to %zu", text,
                        VXD_FOXGLOVE_LEAST_BYTES, VXD_FOXGLOVE_MOST_BYTES);
    }
    *out = (size_t)value;
    return VXD_OK;
}

static const char *choose_protocol(const struct vxd_http_exchange *exchange)
{
    for (size_t i = 0; vxd_foxglove_protocols[i] != NULL; i++) {
        if (vxd_http_offers_protocol(exchange, vxd_foxglove_protocols[i])) {
            return vxd_foxglove_protocols[i];
        }
    }
    return NULL;
}

enum vxd_status vxd_http_foxglove_check(struct vxd_http_exchange *exchange,
                                        struct vxd_err *err)
{
    struct vxd_principal principal = {0};
    struct vxd_foxglove_peer about;
    const char *protocol = NULL;
    const char *token = NULL;
    char peer[VXD_NAME_BYTES];
    size_t max_bytes = 0;
    enum vxd_status status;

    VXD_TRY(vxd_http_socket_check(exchange, &principal, err));
    protocol = choose_protocol(exchange);
    if (protocol == NULL) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "Sec-WebSocket-Protocol",
                         "must offer %s or %s", vxd_foxglove_protocols[0],
                         vxd_foxglove_protocols[1]));
    }
    VXD_TRY(read_max_bytes(exchange, &max_bytes, err));
    VXD_TRY(vxd_http_token(exchange, &token, err));
    vxd_http_peer_name(exchange, peer);
    VXD_TRY(vxd_http_take_stream(exchange, err));
    about = (struct vxd_foxglove_peer){.name = peer,
                                       .token = token != NULL ? token : "",
                                       .certified = vxd_http_certified(exchange),
                                       .traceparent = exchange->headers.traceparent,
                                       .uid = vxd_http_peer_uid(exchange)};
    VXD_TRY(vxd_foxglove_create(exchange->http->server, &principal, &about, max_bytes,
                                &exchange->foxglove, err));
    VXD_TRY(vxd_http_set_socket(exchange, protocol, &vxd_foxglove_calls,
                                exchange->foxglove, VXD_FOXGLOVE_MESSAGE_BYTES, err));
out:
    vxd_principal_clear(&principal);
    return status;
}

void vxd_http_foxglove_write(struct vxd_http_exchange *exchange)
{
    (void)exchange; /* the check has made the response, or the error */
}
