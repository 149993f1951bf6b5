// SPDX-License-Identifier: Apache-2.0
/* What the files of the HTTP transport share; nobody else includes this. */
#ifndef VXD_SERVER_TRANSPORT_HTTP_HTTP_INTERNAL_H
#define VXD_SERVER_TRANSPORT_HTTP_HTTP_INTERNAL_H

#include <microhttpd.h>
#include <pthread.h>

#include "proto/base/name.h"
#include "proto/wire/wire.h"
#include "server/request/request.h"
#include "server/instance/instance.h"
#include "server/service/watch/watch.h"
#include "server/transport/tls/tls.h"
#include "server/transport/websocket/websocket.h"

#define VXD_HTTP_MAX_QUERY 32
#define VXD_HTTP_TAG_BYTES 56

/* A connection, for as long as it lasts. */
struct vxd_http_peer {
    int fd;
    bool is_waiting;               /* in the list of those whose peer has the word */
    bool has_begun;                /* a request came, so its handshake is over */
    struct vxd_tls_peer certified; /* who its certificate says it is */
    struct vxd_http_peer *next;
    struct vxd_http_peer *previous;
};

struct vxd_http {
    struct vxd_server *server;
    struct MHD_Daemon *daemon;
    int listen_fd;
    char unix_path[VXD_PATH_BYTES]; /* of its file; "": it listens on an address */
    bool is_tls;
    bool is_passed; /* the supervisor has the socket, too */
    bool accepts;   /* its thread runs */
    pthread_t acceptor;
    int accept_stop_fd;  /* an eventfd; -1: none */
    atomic_long n_fresh; /* accepted, and not yet counted by the library */
    bool is_foxglove;    /* for such viewers alone */
    const char *field;   /* of the configuration */
    const char *address; /* as configured */
    char *bound;         /* VXD_PATH_BYTES of the server's, where it really listens */
    char host[VXD_PATH_BYTES]; /* of the address, without brackets */
    uint16_t port;             /* really bound */
    atomic_size_t n_exchanges;
    atomic_size_t n_events; /* connections of server-sent events and WebSockets */
    struct vxd_sockets *sockets;
    struct vxd_http_hangups *hangups;
    struct vxd_http_decoders *decoders;
    atomic_bool stopping;                /* the time of uploads is over */
    pthread_mutex_t peers_lock;          /* guards the rest */
    struct vxd_http_peer *first_waiting; /* silent for longest */
    struct vxd_http_peer *last_waiting;
    size_t n_waiting;
};

/* The request headers that are read, NULL where absent. They live in the connection's
 * memory until its completion callback. */
struct vxd_http_headers {
    const char *host;
    const char *origin;
    const char *content_type;
    const char *content_length;
    const char *transfer_encoding;
    const char *expect;
    const char *accept;
    const char *authorization;
    const char *request_id;
    const char *timeout_ms;
    const char *client_id;
    const char *idempotency_key;
    const char *stream;
    const char *keep_last;
    const char *max_age_ms;
    const char *last_event_id;
    const char *fetch_site;
    const char *if_none_match;
    const char *traceparent; /* "" where there were two, which counts as none */
    const char *upgrade;
    const char *http_connection;
    const char *socket_version;
    const char *socket_key;
    const char *malformed; /* a name with a space, which others may read without it */
    const char *duplicate; /* name of one of these that came twice */
};

enum vxd_http_format {
    VXD_HTTP_JSON = 0,
    VXD_HTTP_PROTOBUF = 1,
    VXD_HTTP_SAFETENSORS = 2
};

/* One request of a connection and its answer. Two may hold it: microhttpd until the
 * completion callback, and the vxd_request until its discard_fn. */
struct vxd_http_exchange {
    struct vxd_http *http;
    struct MHD_Connection *connection;
    atomic_int references;
    const char *verb;
    const char *url;
    struct vxd_http_headers headers;
    const char *cors_origin; /* an allowed foreign origin, else NULL */

    const struct vxd_method *method;
    struct vxd_request *request; /* ours until it is submitted or failed */
    bool must_close;             /* it is uncertain where its next request would begin */
    bool suspended;              /* the reply must resume the connection */
    bool abandoned; /* the connection ended before the request was complete */

    enum vxd_body_kind body_kind;
    struct vxd_upload_memory body;
    size_t n_expected; /* Content-Length */
    size_t n_received;
    const char *format;                /* of a file body, in query_text */
    char boundary[VXD_BOUNDARY_BYTES]; /* of a file body in parts; "" = it is one file */
    char
        get_body[VXD_NAME_BYTES + 16]; /* what a GET's path says, as JSON; "" = nothing */
    /* A file of a scene or a volume (http_files.c); NULL = the URL is none. */
    const struct vxd_http_file_of *file;
    char file_object[VXD_NAME_BYTES];
    char *file_body; /* JSON, malloc'ed */
    uint64_t file_digest;
    struct vxd_query_item query[VXD_HTTP_MAX_QUERY];
    size_t n_query;
    char *query_text; /* owns the strings above: they outlive the connection's */

    /* The answer. fixed_status and allow go with errors that HTTP has a status of its own
     * for (404, 405, 411, 413, 415); 0 and NULL otherwise. */
    unsigned fixed_status;
    const char *allow;
    enum vxd_http_format reply_format;
    struct MHD_Response *response;
    unsigned status;
    const char *bytes; /* the response's */
    size_t n_bytes;
    char cookie_token[VXD_TOKEN_BYTES];
    bool is_events; /* a stream of events of this scene or volume, "" = all */
    enum vxd_watch_noun events_noun;
    bool counts_events;
    bool has_url_token; /* of a WebSocket's handshake */
    char socket_accept[VXD_WEBSOCKET_ACCEPT_BYTES];
    char events_name[VXD_NAME_BYTES];
    struct vxd_http_events *events;
    /* Of a connection that becomes a WebSocket (http_socket.c). */
    struct vxd_socket_options socket;
    struct vxd_foxglove *foxglove;
    int64_t linger_until_ns; /* answered; until then what comes is dropped. 0 = not yet */
};

void vxd_http_exchange_drop(struct vxd_http_exchange *exchange);

/* http_listen.c: a bound, listening socket for http->address; fills host, port and *bound of *http.
 * errors  INVALID_ARGUMENT, UNAVAILABLE */
enum vxd_status vxd_http_listen(struct vxd_http *http, struct vxd_err *err);

/* The user at the other end of a unix socket; -1 of other connections. */
int64_t vxd_http_peer_uid(const struct vxd_http_exchange *exchange);

/* The numeric address of one end of a connection and its port. */
void vxd_http_address(const struct sockaddr *address, char *host, size_t capacity,
                      uint16_t *port);

/* http_guard.c: reads the known headers of the connection. */
void vxd_http_read_headers(struct vxd_http_exchange *exchange);

/* Who may talk to us at all: the Host is ours, the Origin absent, ours or allowed (then
 * cors_origin is set). errors  PERMISSION_DENIED, INVALID_ARGUMENT (no or two Hosts) */
enum vxd_status vxd_http_guard(struct vxd_http_exchange *exchange, const char *version,
                               struct vxd_err *err);

/* http_body.c: the announced size of the body, 0 when there is none or nobody knows. */
size_t vxd_http_body_bytes(const struct vxd_http_headers *headers);

/* What the body is and whether its size is acceptable: fills body_kind,
 * format, query and reply_format; sets fixed_status on 411, 413 and 415.
 * errors  INVALID_ARGUMENT, RESOURCE_EXHAUSTED */
enum vxd_status vxd_http_check_body(struct vxd_http_exchange *exchange,
                                    struct vxd_err *err);

/* Copies the query string's items to exchange->query, and format.
 * errors  INVALID_ARGUMENT (too many, or one twice), RESOURCE_EXHAUSTED */
enum vxd_status vxd_http_read_query(struct vxd_http_exchange *exchange,
                                    struct vxd_err *err);

/* Makes exchange->request from the headers. On errors the request is there too, to be
 * failed, unless memory ran out.
 * errors  INVALID_ARGUMENT (names the header), UNAUTHENTICATED, RESOURCE_EXHAUSTED */
enum vxd_status vxd_http_create_request(struct vxd_http_exchange *exchange,
                                        struct vxd_err *err);

/* Who is at the other end, as a request's peer. */
void vxd_http_peer_name(const struct vxd_http_exchange *exchange,
                        char out[VXD_NAME_BYTES]);

/* The bearer token, or without Authorization that of our own cookie; NULL when there is neither.
 * errors  UNAUTHENTICATED, PERMISSION_DENIED (the cookie comes from a page that is not ours) */
enum vxd_status vxd_http_token(struct vxd_http_exchange *exchange, const char **token,
                               struct vxd_err *err);

/* Who sends a request of this connection with this token, NULL where there is none: then who its
 * certificate says it is. errors  as vxd_auth_identify */
enum vxd_status vxd_http_identify(const struct vxd_http_exchange *exchange,
                                  const char *token, struct vxd_principal *out,
                                  struct vxd_err *err);

/* http_reply.c: how the answer is to be written, from Accept; fallback where Accept is
 * absent or names nothing we have. */
enum vxd_http_format vxd_http_accept(const char *accept, enum vxd_http_format fallback);

/* Each of these makes exchange->response; none when memory runs out (then the connection
 * is closed). */
void vxd_http_set_bytes(struct vxd_http_exchange *exchange, unsigned status,
                        const char *content_type, char *take_bytes, size_t n_bytes);
void vxd_http_set_static(struct vxd_http_exchange *exchange, unsigned status,
                         const char *content_type, const char *bytes, size_t n_bytes);
void vxd_http_set_error(struct vxd_http_exchange *exchange, const char *request_id,
                        const struct vxd_err *err);

/* Takes a response that is read from a callback. */
void vxd_http_set_stream(struct vxd_http_exchange *exchange, const char *content_type,
                         struct MHD_Response *take_response);

/* This is the reply_fn of HTTP requests. */
void vxd_http_reply(struct vxd_request *request, const struct vxd_err *err,
                    const ProtobufCMessage *output);

/* Adds a header to the response, if there is a response. */
void vxd_http_add_header(struct vxd_http_exchange *exchange, const char *name,
                         const char *value);

/* http_refuse.c: sends the response although the body is still coming; the body is
 * dropped from then on. MHD_NO where that is not possible: then the connection has to be
 * closed. */
enum MHD_Result vxd_http_refuse_body(struct vxd_http_exchange *exchange);

/* http_peers.c: the peer of a connection has the word (again), or its request runs. NULL is a
 * connection that is not watched. */
void vxd_http_peer_waits(struct vxd_http *http, struct vxd_http_peer *peer);
void vxd_http_peer_is_served(struct vxd_http *http, struct vxd_http_peer *peer);
struct vxd_http_peer *vxd_http_peer_of(struct MHD_Connection *connection);
/* Whether the certificate of a connection whose handshake is over is accepted by the files of now. */
bool vxd_http_is_accepted(struct vxd_http *http, struct MHD_Connection *connection);
/* The token that the certificate of its connection stands for; "" = none. */
const char *vxd_http_certified(const struct vxd_http_exchange *exchange);
/* NULL: it is in the clear. */
gnutls_session_t vxd_http_tls_of(const struct vxd_http *http,
                                 struct MHD_Connection *connection);
/* MHD_NotifyConnectionCallback */
void vxd_http_on_connection(void *cls, struct MHD_Connection *connection, void **context,
                            enum MHD_ConnectionNotificationCode code);

/* http_events.c: finds the method behind a stream of events, and sets exchange->is_events; NULL
 * where the URL is none. */
const struct vxd_method *vxd_http_find_events(struct vxd_http_exchange *exchange,
                                              const char *url);
/* Reads what is to be watched, and makes exchange->events.
 * errors  INVALID_ARGUMENT, RESOURCE_EXHAUSTED */
enum vxd_status vxd_http_events_open(struct vxd_http_exchange *exchange,
                                     struct vxd_err *err);
/* The body of its first request. */
const char *vxd_http_events_body(const struct vxd_http_events *events);
/* Begins the response with the first request's output.
 * errors  RESOURCE_EXHAUSTED  limits.watchers, limits.watchers_per_client, or half of
 *                             limits.connections */
enum vxd_status vxd_http_events_begin(struct vxd_http_exchange *exchange,
                                      const struct vxd_request *request,
                                      const ProtobufCMessage *output,
                                      struct vxd_err *err);
/* Counts the exchange among the connections that watch.
 * errors  RESOURCE_EXHAUSTED  half of limits.connections */
enum vxd_status vxd_http_take_stream(struct vxd_http_exchange *exchange,
                                     struct vxd_err *err);
/* The exchange is over. */
void vxd_http_events_end(struct vxd_http_exchange *exchange);

/* http_accept.c: takes new connections from now on, and no more. The second one is harmless where
 * nothing was started. */
enum vxd_status vxd_http_accept_start(struct vxd_http *http, struct vxd_err *err);
void vxd_http_accept_stop(struct vxd_http *http);

/* http_hangup.c: cancels a request when its connection ends. It is forgotten before its
 * connection is resumed. */
enum vxd_status vxd_http_hangups_start(struct vxd_http *http, struct vxd_err *err);
void vxd_http_hangups_stop(struct vxd_http *http);
void vxd_http_hangup_watch(struct vxd_http *http, struct MHD_Connection *connection,
                           struct vxd_request *request);
void vxd_http_hangup_forget(struct vxd_http *http, struct MHD_Connection *connection);

/* http_socket.c: the token of a handshake without Authorization, which browsers cannot send: of the
 * URL, or of our cookie; NULL when there is none. errors  PERMISSION_DENIED */
enum vxd_status vxd_http_socket_token(struct vxd_http_exchange *exchange,
                                      const char **token, struct vxd_err *err);
/* Checks a handshake and who sends it; *out is that, vxd_principal_clear ends it.
 * errors  INVALID_ARGUMENT, UNIMPLEMENTED, UNAUTHENTICATED, PERMISSION_DENIED */
enum vxd_status vxd_http_socket_check(struct vxd_http_exchange *exchange,
                                      struct vxd_principal *out, struct vxd_err *err);
/* Whether the handshake offers this subprotocol. */
bool vxd_http_offers_protocol(const struct vxd_http_exchange *exchange,
                              const char *protocol);
/* Makes the response after which the connection is a WebSocket. The session is the exchange's, and
 * lasts until after `closed`. protocol NULL = none. errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_http_set_socket(struct vxd_http_exchange *exchange,
                                    const char *protocol,
                                    const struct vxd_socket_calls *calls, void *session,
                                    size_t max_message_bytes, struct vxd_err *err);

/* http_foxglove.c: the view at /foxglove. Its check makes the response.
 * errors  as vxd_http_socket_check; RESOURCE_EXHAUSTED  the limits of watchers */
enum vxd_status vxd_http_foxglove_check(struct vxd_http_exchange *exchange,
                                        struct vxd_err *err);
void vxd_http_foxglove_write(struct vxd_http_exchange *exchange);

/* http_session.c: the token that a cookie's value is, which is any text as lower-case hexadecimal.
 * False: it is none of ours, or longer than the capacity less one. */
bool vxd_http_cookie_decode(const char *text, char *out, size_t capacity);

/* http_session.c: the token of our cookie, NULL when there is none.
 * errors  PERMISSION_DENIED */
enum vxd_status vxd_http_cookie_token(struct vxd_http_exchange *exchange,
                                      const char **token, struct vxd_err *err);
/* GET says who is there; POST takes a token, or without one forgets it. */
enum vxd_status vxd_http_session_check(struct vxd_http_exchange *exchange,
                                       struct vxd_err *err);
void vxd_http_session_get(struct vxd_http_exchange *exchange);
enum vxd_status vxd_http_session_post(struct vxd_http_exchange *exchange,
                                      struct vxd_err *err);

/* Makes a ticket for who asks (server/request/tickets.h).
 * errors  UNAUTHENTICATED, PERMISSION_DENIED */
enum vxd_status vxd_http_ticket_post(struct vxd_http_exchange *exchange,
                                     struct vxd_err *err);

/* http_static.c: the dashboard's files. */
bool vxd_http_is_static(const char *path);
void vxd_http_write_static(struct vxd_http_exchange *exchange);

/* http_views.c: a page that is no method. */
struct vxd_http_view {
    const char *path; /* NULL: of the dashboard's files */
    bool is_public;   /* answered whatever Host and Origin say: health probes */
    /* Who may see it; NULL = everybody. errors  UNAUTHENTICATED, PERMISSION_DENIED */
    enum vxd_status (*check)(struct vxd_http_exchange *exchange, struct vxd_err *err);
    /* What GET does; NULL = it is not possible. */
    void (*write)(struct vxd_http_exchange *exchange);
    /* What POST without a body does; NULL = it is not possible. */
    enum vxd_status (*post)(struct vxd_http_exchange *exchange, struct vxd_err *err);
};

/* NULL when there is none at this path. */
const struct vxd_http_view *vxd_http_view_find(const char *path);

/* Requires the scope read, as the methods that return the same do, and that the sender may call
 * `method` and, unless it is NULL, use the scene.
 * errors  UNAUTHENTICATED, PERMISSION_DENIED */
enum vxd_status vxd_http_check_read(struct vxd_http_exchange *exchange,
                                    const char *method, const char *scene,
                                    struct vxd_err *err);

/* http_files.c: returns the method of a URL that is a file of a scene or a volume, and sets
 * file and file_object; NULL: it is none. */
const char *vxd_http_find_file(struct vxd_http_exchange *exchange, const char *url);

/* Makes file_body from the query, or the response where the client has the file.
 * errors  INVALID_ARGUMENT (names the parameter), UNAUTHENTICATED, PERMISSION_DENIED,
 *         RESOURCE_EXHAUSTED */
enum vxd_status vxd_http_read_file(struct vxd_http_exchange *exchange,
                                   struct vxd_err *err);

/* Makes the response of a reply. errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_http_set_file(struct vxd_http_exchange *exchange,
                                  const ProtobufCMessage *output, struct vxd_err *err);

/* http_decode.c: uploaded files are decoded on threads of their own.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_http_decoders_start(uint32_t n_threads,
                                        struct vxd_http_decoders **out,
                                        struct vxd_err *err);
/* Runs what waits and joins the threads; what comes later runs where it comes. NULL is fine. */
void vxd_http_decoders_stop(struct vxd_http_decoders *decoders);
/* NULL is fine. */
void vxd_http_decoders_destroy(struct vxd_http_decoders *decoders);
/* vxd_request_submit on such a thread; what `body` points to, but for its bytes and boundary, is copied. */
void vxd_http_decode(struct vxd_http_decoders *decoders, struct vxd_request *request,
                     const struct vxd_body *body);

#endif
