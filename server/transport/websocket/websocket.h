// SPDX-License-Identifier: Apache-2.0
/* WebSockets (RFC 6455): the handshake's checks, and one thread that serves all connections after
 * theirs. libwslay frames the messages; HTTP, who may connect, and what the messages mean are
 * others'.
 *
 * What a connection costs is bounded: a message that comes in is no larger than its limit and is
 * whole within a deadline, nothing is read while too much waits to be sent, and whoever sends is
 * asked for more (drained) only when all has left. A peer that is silent is pinged, and cut when
 * it stays silent. */
#ifndef VXD_SERVER_TRANSPORT_WEBSOCKET_WEBSOCKET_H
#define VXD_SERVER_TRANSPORT_WEBSOCKET_WEBSOCKET_H

#include "proto/base/base.h"

/* --- handshake.c ---------------------------------------------------------------------------- */

#define VXD_WEBSOCKET_ACCEPT_BYTES 29

/* The headers of a handshake, NULL where absent. */
struct vxd_websocket_offer {
    const char *upgrade;
    const char *connection;
    const char *version;
    const char *key;
};

/* Whether a comma list of tokens has this one, in any case. */
bool vxd_websocket_list_has(const char *list, const char *token);

/* Whether these headers are a handshake of version 13, and the proof that it was understood.
 * errors  INVALID_ARGUMENT  names the header
 *         UNIMPLEMENTED     another version */
enum vxd_status vxd_websocket_check(const struct vxd_websocket_offer *offer,
                                    char accept[VXD_WEBSOCKET_ACCEPT_BYTES],
                                    struct vxd_err *err);

/* --- sockets.c ------------------------------------------------------------------------------ */

struct vxd_sockets;
struct vxd_socket;

/* Why a connection is closed: RFC 6455, 7.4.1. */
enum vxd_socket_code {
    VXD_SOCKET_NORMAL = 1000,
    VXD_SOCKET_GOING_AWAY = 1001,
    VXD_SOCKET_REFUSED = 1008,
    VXD_SOCKET_FAULT = 1011
};

/* What somebody does with a connection; on the sockets' thread, one call at a time. */
struct vxd_socket_calls {
    /* The first call. The socket is valid until `closed`, and longer for who holds it. */
    void (*opened)(void *session, struct vxd_socket *socket);
    /* A whole message; its bytes are valid during the call. */
    void (*received)(void *session, bool is_text, const uint8_t *bytes, size_t n_bytes);
    /* All that was sent has left, or vxd_socket_wake was called meanwhile. */
    void (*drained)(void *session);
    /* The last call. */
    void (*closed)(void *session);
};

struct vxd_socket_options {
    int fd;               /* connected; the handshake is over */
    const uint8_t *early; /* what the peer sent after its handshake already; copied */
    size_t n_early;
    size_t max_message_bytes;
    const struct vxd_socket_calls *calls;
    void *session;
    void (*release)(void *handle); /* closes fd */
    void *handle;
};

/* Starts the thread. errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_sockets_start(struct vxd_sockets **out, struct vxd_err *err);

/* Closes all connections (GOING_AWAY), refuses others from then on, and ends the thread. Others may
 * still hold sockets, and send to them in vain. */
void vxd_sockets_stop(struct vxd_sockets *sockets);

/* Stops, where that was not done, and frees what nobody holds. NULL is fine. */
void vxd_sockets_destroy(struct vxd_sockets *sockets);

/* Serves a connection. On errors nothing was called, and fd is the caller's.
 * errors  RESOURCE_EXHAUSTED, UNAVAILABLE (stopped) */
enum vxd_status vxd_sockets_add(struct vxd_sockets *sockets,
                                const struct vxd_socket_options *options,
                                struct vxd_err *err);

/* Any thread may call these. */
void vxd_socket_hold(struct vxd_socket *socket);
void vxd_socket_drop(struct vxd_socket *socket);

/* Sends a message, in the order of the calls. Takes the bytes (malloc'ed), which are freed when the
 * peer has gone. */
void vxd_socket_send(struct vxd_socket *socket, bool is_text, char *take_bytes,
                     size_t n_bytes);

/* Closes it after what was sent; reason is at most 123 bytes. */
void vxd_socket_close(struct vxd_socket *socket, enum vxd_socket_code code,
                      const char *reason);

/* Asks for a call of drained, as soon as nothing waits to be sent. */
void vxd_socket_wake(struct vxd_socket *socket);

#endif
