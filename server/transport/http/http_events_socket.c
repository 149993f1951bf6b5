// SPDX-License-Identifier: Apache-2.0
/* A watch over a WebSocket: the events of http_events.c, each a text message of JSON:
 *
 *   {"event": "cells", "id": "7-4", "data": {the reply}}
 *
 * The next watch is submitted when the last event has left, so a slow reader holds one event, and
 * gets the changes of all the time since with the next one. A watcher has nothing to say. */
#include <stdlib.h>
#include <string.h>

#include "server/transport/http/http_events_internal.h"

#define MOST_MESSAGE_BYTES 125

/* Makes the event of a reply, and moves on, with the lock held or before the socket is open; the
 * text is empty where nothing has changed. */
static enum vxd_status write_event(struct vxd_http_events *events,
                                   const ProtobufCMessage *reply, struct vxd_text *text,
                                   struct vxd_err *err)
{
    const struct vxd_http_event event = vxd_http_events_read(reply);
    enum vxd_status status;

    if (event.name == NULL) {
        return VXD_OK;
    }
    events->after = *event.next;
    events->has_after = true;
    vxd_text_printf(text, "{\"event\":\"%s\",\"id\":\"", event.name);
    vxd_http_events_write_id(text, event.next);
    vxd_text_append(text, "\",\"data\":", 9);
    status = vxd_json_write(reply, text, err);
    while (text->n_bytes > 0 && text->bytes[text->n_bytes - 1] == '\n') {
        text->n_bytes--;
    }
    vxd_text_append(text, "}", 1);
    if (status == VXD_OK && text->failed) {
        status = vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for an event");
    }
    return status;
}

/* The last message says why, as the close frame does in fewer bytes. */
static void send_error(struct vxd_http_events *events, const struct vxd_err *why)
{
    struct vxd_text text = {0};
    char reason[124];

    vxd_text_printf(&text, "{\"event\":\"error\",\"data\":{\"code\":\"%s\",\"message\":",
                    vxd_status_name(why->code));
    vxd_text_json_string(&text, why->message, strlen(why->message));
    vxd_text_append(&text, "}}", 2);
    if (!text.failed) {
        vxd_socket_send(events->socket, true, text.bytes, text.n_bytes);
    } else {
        free(text.bytes);
    }
    (void)snprintf(reason, sizeof reason, "%s", vxd_status_name(why->code));
    vxd_socket_close(events->socket,
                     why->code == VXD_UNAVAILABLE ? VXD_SOCKET_GOING_AWAY
                                                  : VXD_SOCKET_REFUSED,
                     reason);
}

/* The reply_fn of the watches after the first. */
static void take_reply(struct vxd_request *request, const struct vxd_err *err,
                       const ProtobufCMessage *output)
{
    struct vxd_http_events *events = request->transport;
    struct vxd_err why = *err;
    struct vxd_text text = {0};

    (void)pthread_mutex_lock(&events->lock);
    vxd_http_events_end_poll(events, request);
    if (!events->is_gone) {
        if (err->code == VXD_OK && write_event(events, output, &text, &why) == VXD_OK) {
            if (text.n_bytes > 0) {
                vxd_socket_send(events->socket, true, text.bytes, text.n_bytes);
                text = (struct vxd_text){0};
            } else {
                vxd_socket_wake(events->socket);
            }
        } else {
            send_error(events, &why);
        }
    }
    (void)pthread_mutex_unlock(&events->lock);
    free(text.bytes);
}

static void on_opened(void *session, struct vxd_socket *socket)
{
    struct vxd_http_events *events = session;
    struct vxd_text text = events->text;

    events->text = (struct vxd_text){0};
    vxd_socket_hold(socket);
    events->socket = socket;
    if (text.n_bytes > 0) {
        vxd_socket_send(socket, true, text.bytes, text.n_bytes);
    }
}

static void on_received(void *session, bool is_text, const uint8_t *bytes, size_t n_bytes)
{
    struct vxd_http_events *events = session;

    (void)is_text;
    (void)bytes;
    (void)n_bytes;
    vxd_socket_close(events->socket, VXD_SOCKET_REFUSED, "a watcher sends no messages");
}

static void on_drained(void *session)
{
    struct vxd_http_events *events = session;
    bool is_idle;

    (void)pthread_mutex_lock(&events->lock);
    is_idle = events->poll == NULL && !events->is_gone;
    (void)pthread_mutex_unlock(&events->lock);
    if (is_idle && !vxd_http_events_submit(events, take_reply)) {
        vxd_socket_close(events->socket, VXD_SOCKET_FAULT, "no memory");
    }
}

static void on_closed(void *session)
{
    vxd_http_events_cancel(session);
}

enum vxd_status vxd_http_events_begin_socket(struct vxd_http_exchange *exchange,
                                             const ProtobufCMessage *reply,
                                             struct vxd_err *err)
{
    static const struct vxd_socket_calls calls = {on_opened, on_received, on_drained,
                                                  on_closed};
    struct vxd_http_events *events = exchange->events;
    enum vxd_status status = write_event(events, reply, &events->text, err);

    if (status == VXD_OK) {
        status =
            vxd_http_set_socket(exchange, NULL, &calls, events, MOST_MESSAGE_BYTES, err);
    }
    return status;
}
