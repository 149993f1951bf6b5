// SPDX-License-Identifier: Apache-2.0
/* What the files of watches that go on share: server-sent events and WebSockets. */
#ifndef VXD_SERVER_TRANSPORT_HTTP_HTTP_EVENTS_INTERNAL_H
#define VXD_SERVER_TRANSPORT_HTTP_HTTP_EVENTS_INTERNAL_H

#include "server/service/watch/watch.h"
#include "server/transport/http/http_internal.h"
#include "server/transport/websocket/websocket.h"

#define VXD_HTTP_EVENTS_BODY_BYTES 768

struct vxd_http_events {
    struct vxd_http *http;
    struct MHD_Connection *connection;
    atomic_int references; /* of the exchange, the response and the watch under way */
    /* What is asked, and by whom. */
    enum vxd_watch_noun noun;
    char name[VXD_NAME_BYTES];                    /* "" = all of them */
    char options[VXD_HTTP_EVENTS_BODY_BYTES / 2]; /* members of the request, as JSON */
    Voxeld__V1__WatchPoint after;
    bool has_after;
    char token[VXD_TOKEN_BYTES];
    char certified[VXD_NAME_BYTES]; /* see vxd_request_header */
    char traceparent
        [VXD_TRACEPARENT_BYTES]; /* of the first watch, which the others follow */
    int64_t peer_uid;
    char client_id[VXD_NAME_BYTES];
    char peer[VXD_NAME_BYTES];
    struct vxd_watch_place place;
    bool is_socket; /* a WebSocket instead of a response without an end */

    pthread_mutex_t lock; /* guards what follows */
    char body[VXD_HTTP_EVENTS_BODY_BYTES];
    struct vxd_text text; /* the event under way */
    size_t n_sent;
    struct vxd_request *poll; /* held: the watch under way */
    bool is_suspended;
    bool has_ended;            /* after the text */
    bool is_gone;              /* the connection has ended */
    struct vxd_socket *socket; /* held; NULL before it is open */
};

/* http_events_query.c: the method that watches one noun. */
const struct vxd_method *vxd_http_events_method(const struct vxd_http *http,
                                                enum vxd_watch_noun noun);

/* http_events_query.c: the request of the next watch, into events->body. */
void vxd_http_events_write_body(struct vxd_http_events *events, uint32_t wait_ms);

/* http_events_query.c: the point that the id of an event says, as it comes back in Last-Event-ID:
 * "7-3", or within a change "7-3-5-1000": generation, version, to_version, first. False: it is none. */
bool vxd_http_events_read_id(const char *text, Voxeld__V1__WatchPoint *out);

/* What a reply says of the event that it becomes. */
struct vxd_http_event {
    const char *name; /* NULL: nothing has changed */
    const Voxeld__V1__WatchPoint *next;
};

/* http_events.c: reads a reply to scene_watch or volume_watch. */
struct vxd_http_event vxd_http_events_read(const ProtobufCMessage *reply);
/* The id of the event that has this point next. */
void vxd_http_events_write_id(struct vxd_text *text, const Voxeld__V1__WatchPoint *next);
/* Creates the next watch and submits it; its reply goes to take_reply. False: there is no memory
 * for it. */
bool vxd_http_events_submit(struct vxd_http_events *events,
                            void (*take_reply)(struct vxd_request *request,
                                               const struct vxd_err *err,
                                               const ProtobufCMessage *output));
/* Forgets the watch under way, which is answered; with the lock held. */
void vxd_http_events_end_poll(struct vxd_http_events *events,
                              struct vxd_request *request);
/* The connection has ended: cancels the watch under way. */
void vxd_http_events_cancel(struct vxd_http_events *events);
void vxd_http_events_drop(struct vxd_http_events *events);

/* http_events_socket.c: the response that makes the connection a WebSocket, whose first message is
 * of this output.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_http_events_begin_socket(struct vxd_http_exchange *exchange,
                                             const ProtobufCMessage *reply,
                                             struct vxd_err *err);

#endif
