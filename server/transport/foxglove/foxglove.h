// SPDX-License-Identifier: Apache-2.0
/* The Foxglove WebSocket protocol: what one connected viewer sees of scenes and volumes. It is a
 * client of the methods, as HTTP is: each look is a request that is admitted anew, with the token
 * of the handshake, and the watch on all scenes says when to look again.
 *
 * A connection has one request for data under way at most, and the next one begins when its
 * message has left. So a slow viewer costs one message, and gets the newest version with the next
 * one. */
#ifndef VXD_SERVER_TRANSPORT_FOXGLOVE_FOXGLOVE_H
#define VXD_SERVER_TRANSPORT_FOXGLOVE_FOXGLOVE_H

#include "server/request/request.h"
#include "server/transport/websocket/websocket.h"

struct vxd_foxglove;

/* What a client may send at most in one message. */
#define VXD_FOXGLOVE_MESSAGE_BYTES 65536

/* The bytes of data in one message, unless the client says another number. */
#define VXD_FOXGLOVE_DEFAULT_BYTES ((size_t)2 << 20)
#define VXD_FOXGLOVE_LEAST_BYTES ((size_t)4 << 10)
#define VXD_FOXGLOVE_MOST_BYTES ((size_t)16 << 20)

/* The subprotocols that we speak, the preferred one first; NULL after the last. */
extern const char *const vxd_foxglove_protocols[];

/* Who is at the other end, as a request's header says it. */
struct vxd_foxglove_peer {
    const char *name;
    const char *token;       /* of the handshake; "" = none */
    const char *certified;   /* the token that its certificate stands for; "" = none */
    const char *traceparent; /* of the handshake; NULL: none */
    int64_t uid;             /* at the other end of a unix socket; -1 */
};

/* A viewer with a place among the watchers; what it borrows is copied.
 * errors  RESOURCE_EXHAUSTED  limits.watchers, limits.watchers_per_client */
enum vxd_status vxd_foxglove_create(struct vxd_server *server,
                                    const struct vxd_principal *principal,
                                    const struct vxd_foxglove_peer *peer,
                                    size_t max_bytes, struct vxd_foxglove **out,
                                    struct vxd_err *err);

/* Its socket's calls; the session is the viewer. */
extern const struct vxd_socket_calls vxd_foxglove_calls;

/* The handshake failed, or the socket is closed. NULL is fine. */
void vxd_foxglove_drop(struct vxd_foxglove *viewer);

#endif
