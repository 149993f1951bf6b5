// SPDX-License-Identifier: Apache-2.0
/* Server-sent events: a watch over HTTP that goes on. A stream is a response without an end, made
 * of one scene_watch or volume_watch after the other:
 *
 *   GET       the first watch waits for nothing, so what is wrong is an answer of its own; then
 *             the response begins with its event
 *   read      the library wants bytes: those of the event that is there; when they have gone, the
 *             connection is suspended and the next watch, from that event on, submitted
 *   reply     the next event is there, and the connection resumed
 *
 * So a reader that is slow holds one event of at most max_bytes, and gets the changes of all the
 * time since with the next one. A watch that ends without a change becomes a comment, which shows
 * proxies and both ends that the other is there. Each watch is admitted anew: a token that is
 * taken away ends its streams. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "server/transport/http/http_events_internal.h"

#define TYPE_EVENTS "text/event-stream"
/* Between two comments. */
#define WAIT_MS 15000u
#define WAIT_SPARE_MS 1000u
#define BLOCK_BYTES 16384u
/* A browser begins anew after so long. */
#define RETRY "retry: 1000\n"

void vxd_http_events_drop(struct vxd_http_events *events)
{
    if (atomic_fetch_sub(&events->references, 1) != 1) {
        return;
    }
    vxd_watch_give_place(events->http->server->watch, &events->place);
    memset(events->token, 0, sizeof events->token);
    (void)pthread_mutex_destroy(&events->lock);
    if (events->socket != NULL) {
        vxd_socket_drop(events->socket);
    }
    free(events->text.bytes);
    free(events);
}

/* --- events ------------------------------------------------------------------------------- */

struct vxd_http_event vxd_http_events_read(const ProtobufCMessage *reply)
{
    static const struct {
        Voxeld__V1__WatchKind kind;
        const char *name;
    } names[] = {
        {VOXELD__V1__WATCH_KIND__WATCH_CELLS, "cells"},
        {VOXELD__V1__WATCH_KIND__WATCH_BLOCKS, "blocks"},
        {VOXELD__V1__WATCH_KIND__WATCH_RESYNC, "resync"},
        {VOXELD__V1__WATCH_KIND__WATCH_DROPPED, "dropped"},
        {VOXELD__V1__WATCH_KIND__WATCH_CREATED, "created"},
        {VOXELD__V1__WATCH_KIND__WATCH_HEADS, "heads"},
    };
    bool is_volume = reply->descriptor == &voxeld__v1__volume_watch_response__descriptor;
    const Voxeld__V1__SceneWatchResponse *scene =
        (const Voxeld__V1__SceneWatchResponse *)reply;
    const Voxeld__V1__VolumeWatchResponse *volume =
        (const Voxeld__V1__VolumeWatchResponse *)reply;
    Voxeld__V1__WatchKind kind = is_volume ? volume->kind : scene->kind;
    struct vxd_http_event event = {.next = is_volume ? volume->next : scene->next};

    for (size_t i = 0; i < sizeof names / sizeof names[0] && event.next != NULL; i++) {
        event.name = names[i].kind == kind ? names[i].name : event.name;
    }
    return event;
}

void vxd_http_events_write_id(struct vxd_text *text, const Voxeld__V1__WatchPoint *next)
{
    vxd_text_printf(text, "%" PRIu64 "-%" PRIu64, next->generation, next->version);
    if (next->to_version > 0) {
        vxd_text_printf(text, "-%" PRIu64 "-%" PRIu64, next->to_version, next->first);
    }
}

/* Appends one event and moves on, with the lock held or before the stream is one. */
static enum vxd_status write_event(struct vxd_http_events *events,
                                   const ProtobufCMessage *reply, struct vxd_err *err)
{
    const struct vxd_http_event event = vxd_http_events_read(reply);
    struct vxd_text *text = &events->text;
    enum vxd_status status;

    if (event.name == NULL) {
        vxd_text_append(text, ":\n\n", 3);
        return VXD_OK;
    }
    events->after = *event.next;
    events->has_after = true;
    vxd_text_append(text, "id: ", 4);
    vxd_http_events_write_id(text, event.next);
    vxd_text_printf(text, "\nevent: %s\ndata: ", event.name);
    status = vxd_json_write(reply, text, err);
    if (status == VXD_OK) {
        while (text->n_bytes > 0 && text->bytes[text->n_bytes - 1] == '\n') {
            text->n_bytes--;
        }
        vxd_text_append(text, "\n\n", 2);
    }
    return status;
}

/* The last event, after which the stream ends: with the lock held. */
static void write_error(struct vxd_http_events *events, const struct vxd_err *why)
{
    struct vxd_text *text = &events->text;

    free(text->bytes);
    *text = (struct vxd_text){0};
    vxd_text_printf(text, "event: error\ndata: {\"code\":\"%s\",\"message\":",
                    vxd_status_name(why->code));
    vxd_text_json_string(text, why->message, strlen(why->message));
    vxd_text_append(text, "}\n\n", 3);
    events->has_ended = true;
}

/* --- the stream --------------------------------------------------------------------------- */

void vxd_http_events_end_poll(struct vxd_http_events *events, struct vxd_request *request)
{
    if (events->poll == request) {
        events->poll = NULL;
        vxd_request_drop(request); /* who answers it holds it, too */
    }
}

/* The reply_fn of the watches after the first. */
static void take_reply(struct vxd_request *request, const struct vxd_err *err,
                       const ProtobufCMessage *output)
{
    struct vxd_http_events *events = request->transport;
    struct vxd_err why = *err;

    (void)pthread_mutex_lock(&events->lock);
    vxd_http_events_end_poll(events, request);
    if (!events->is_gone) {
        if (err->code != VXD_OK || write_event(events, output, &why) != VXD_OK) {
            write_error(events, &why);
        }
        events->has_ended = events->has_ended || events->text.failed;
        if (events->is_suspended) {
            events->is_suspended = false;
            vxd_http_hangup_forget(events->http, events->connection);
            MHD_resume_connection(events->connection);
        }
    }
    (void)pthread_mutex_unlock(&events->lock);
}

static void discard(struct vxd_request *request)
{
    vxd_http_events_drop(request->transport);
}

bool vxd_http_events_submit(struct vxd_http_events *events,
                            void (*reply_fn)(struct vxd_request *request,
                                             const struct vxd_err *err,
                                             const ProtobufCMessage *output))
{
    struct vxd_server *server = events->http->server;
    uint32_t most_ms = atomic_load(&server->limits.max_timeout_ms);
    uint32_t wait_ms =
        WAIT_MS + WAIT_SPARE_MS < most_ms ? WAIT_MS : most_ms - most_ms / 8;
    const struct vxd_request_header header = {
        .token = events->token,
        .certified = events->certified,
        .traceparent = events->traceparent,
        .client_id = events->client_id,
        .peer = events->peer,
        .peer_uid = events->peer_uid,
        .timeout_ms =
            WAIT_MS + WAIT_SPARE_MS < most_ms ? WAIT_MS + WAIT_SPARE_MS : most_ms};
    struct vxd_body body = {.kind = VXD_BODY_JSON};
    struct vxd_request *request = NULL;
    struct vxd_err err = {0};
    enum vxd_status status;

    vxd_http_events_write_body(events, wait_ms);
    body.bytes = (const uint8_t *)events->body;
    body.n_bytes = strlen(events->body);
    status = vxd_request_create(server, &header, &request, &err);
    if (request == NULL) {
        return false;
    }
    request->transport = events;
    request->reply_fn = reply_fn;
    request->discard_fn = discard;
    request->holds_place = true;
    atomic_fetch_add(&events->references, 1);
    (void)pthread_mutex_lock(&events->lock);
    vxd_request_hold(request);
    events->poll = request;
    (void)pthread_mutex_unlock(&events->lock);
    if (status == VXD_OK) {
        status =
            vxd_request_admit(request, vxd_http_events_method(events->http, events->noun),
                              body.n_bytes, &err);
    }
    if (status != VXD_OK) {
        vxd_request_fail(request, &err);
    } else {
        /* Not before: whoever ends a request reads what its admission writes. */
        if (!events->is_socket) {
            vxd_http_hangup_watch(events->http, events->connection, request);
        }
        vxd_request_submit(request, &body);
    }
    return true;
}

/* Submits the next watch. The connection is suspended, so only its reply goes on with it. */
static void submit_next(struct vxd_http_events *events)
{
    if (!vxd_http_events_submit(events, take_reply)) {
        (void)pthread_mutex_lock(&events->lock);
        events->has_ended = true;
        events->is_suspended = false;
        MHD_resume_connection(events->connection);
        (void)pthread_mutex_unlock(&events->lock);
    }
}

/* MHD_ContentReaderCallback */
static ssize_t read_events(void *cls, uint64_t position, char *out, size_t capacity)
{
    struct vxd_http_events *events = cls;
    size_t left;
    bool is_over;

    (void)position;
    (void)pthread_mutex_lock(&events->lock);
    left = events->text.n_bytes - events->n_sent;
    if (left > 0 && !events->text.failed) {
        left = left < capacity ? left : capacity;
        memcpy(out, events->text.bytes + events->n_sent, left);
        events->n_sent += left;
        (void)pthread_mutex_unlock(&events->lock);
        return (ssize_t)left;
    }
    free(events->text.bytes);
    events->text = (struct vxd_text){0};
    events->n_sent = 0;
    is_over = events->has_ended;
    if (!is_over) {
        events->is_suspended = true;
        MHD_suspend_connection(events->connection);
    }
    (void)pthread_mutex_unlock(&events->lock);
    if (is_over) {
        return MHD_CONTENT_READER_END_OF_STREAM;
    }
    submit_next(events);
    return 0;
}

static void free_events(void *cls)
{
    vxd_http_events_drop(cls);
}

enum vxd_status vxd_http_take_stream(struct vxd_http_exchange *exchange,
                                     struct vxd_err *err)
{
    struct vxd_http *http = exchange->http;
    size_t limit = http->server->config.max_connections / 2;

    if (atomic_fetch_add(&http->n_events, 1) < limit) {
        exchange->counts_events = true;
        return VXD_OK;
    }
    atomic_fetch_sub(&http->n_events, 1);
    return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                    "%zu connections watch already, half of limits.connections", limit);
}

enum vxd_status vxd_http_events_begin(struct vxd_http_exchange *exchange,
                                      const struct vxd_request *request,
                                      const ProtobufCMessage *output, struct vxd_err *err)
{
    struct vxd_http_events *events = exchange->events;
    struct MHD_Response *response;
    const char *token = NULL;
    enum vxd_status status;

    VXD_TRY(vxd_http_take_stream(exchange, err));
    VXD_TRY(vxd_watch_take_place(exchange->http->server->watch, &request->principal,
                                 request->peer, &events->place, err));
    VXD_TRY(vxd_http_token(exchange, &token, err));
    (void)snprintf(events->token, sizeof events->token, "%s", token != NULL ? token : "");
    events->peer_uid = request->peer_uid;
    (void)snprintf(events->certified, sizeof events->certified, "%s",
                   vxd_http_certified(exchange));
    vxd_trace_write(&request->trace, events->traceparent);
    memcpy(events->peer, request->peer, sizeof events->peer);
    memcpy(events->client_id, request->client_id, sizeof events->client_id);
    if (events->is_socket) {
        VXD_TRY(vxd_http_events_begin_socket(exchange, output, err));
        goto out;
    }
    vxd_text_append(&events->text, RETRY, sizeof RETRY - 1);
    VXD_TRY(write_event(events, output, err));
    response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK_BYTES,
                                                 read_events, events, free_events);
    if (response == NULL) {
        VXD_TRY(vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a stream"));
    }
    atomic_fetch_add(&events->references, 1);
    vxd_http_set_stream(exchange, TYPE_EVENTS, response);
    vxd_http_add_header(exchange, "X-Accel-Buffering", "no");
out:
    return status;
}

void vxd_http_events_cancel(struct vxd_http_events *events)
{
    struct vxd_request *poll;
    struct vxd_err err = {0};

    (void)pthread_mutex_lock(&events->lock);
    events->is_gone = true;
    poll = events->poll;
    events->poll = NULL;
    (void)pthread_mutex_unlock(&events->lock);
    if (poll != NULL) {
        (void)vxd_fail(&err, VXD_CANCELLED, NULL, "the connection ended");
        (void)vxd_request_answer(poll, &err, NULL);
        vxd_request_drop(poll);
    }
}

void vxd_http_events_end(struct vxd_http_exchange *exchange)
{
    struct vxd_http_events *events = exchange->events;

    if (exchange->counts_events) {
        atomic_fetch_sub(&exchange->http->n_events, 1);
    }
    if (events == NULL) {
        return;
    }
    exchange->events = NULL;
    vxd_http_events_cancel(events);
    vxd_http_events_drop(events);
}
