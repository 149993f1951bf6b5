// SPDX-License-Identifier: Apache-2.0
/* Server-sent events: a watch over HTTP that goes on. A stream is a response without an end, made
 * of one scene_watch after the other:
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

#include "server/service/watch/watch.h"
#include "server/transport/http/http_internal.h"
#include "voxeld/v1/watch.pb-c.h"

#define TYPE_EVENTS "text/event-stream"
#define ALL_SCENES "/v1/watch"
#define SCENES "/v1/scenes/"
#define WATCH "/watch"
/* Between two comments. */
#define WAIT_MS 15000u
#define WAIT_SPARE_MS 1000u
#define DEFAULT_BYTES (256u << 10)
#define MOST_BYTES (4u << 20)
#define BLOCK_BYTES 16384u
#define BODY_BYTES 768
/* A browser begins anew after so long. */
#define RETRY "retry: 1000\n"

struct vxd_http_events {
    struct vxd_http *http;
    struct MHD_Connection *connection;
    atomic_int references; /* of the exchange, the response and the watch under way */
    /* What is asked, and by whom. */
    char name[VXD_NAME_BYTES];    /* "" = all scenes */
    char options[BODY_BYTES / 2]; /* members of the request, as JSON */
    Voxeld__V1__WatchPoint after;
    bool has_after;
    char token[VXD_TOKEN_BYTES];
    int64_t peer_uid;
    char client_id[VXD_NAME_BYTES];
    char peer[VXD_NAME_BYTES];
    struct vxd_watch_place place;

    pthread_mutex_t lock; /* guards what follows */
    char body[BODY_BYTES];
    struct vxd_text text; /* the event under way */
    size_t n_sent;
    struct vxd_request *poll; /* held: the watch under way */
    bool is_suspended;
    bool has_ended; /* after the text */
    bool is_gone;   /* the connection has ended */
};

static void drop(struct vxd_http_events *events)
{
    if (atomic_fetch_sub(&events->references, 1) != 1) {
        return;
    }
    vxd_watch_give_place(events->http->server->watch, &events->place);
    memset(events->token, 0, sizeof events->token);
    (void)pthread_mutex_destroy(&events->lock);
    free(events->text.bytes);
    free(events);
}

/* --- what is asked ------------------------------------------------------------------------ */

/* "7-3", or within a change "7-3-5-1000": generation, version, to_version, first. */
static bool read_point(const char *text, Voxeld__V1__WatchPoint *out)
{
    uint64_t numbers[4] = {0};
    size_t n = 0;

    for (; n < 4; n++) {
        char *end;

        if (*text < '0' || *text > '9') {
            return false;
        }
        numbers[n] = strtoull(text, &end, 10);
        if (*end == '\0') {
            break;
        }
        if (*end != '-') {
            return false;
        }
        text = end + 1;
    }
    out->generation = numbers[0];
    out->version = numbers[1];
    out->to_version = numbers[2];
    out->first = numbers[3];
    return n == 1 || n == 3;
}

static enum vxd_status read_after(struct vxd_http_events *events, const char *field,
                                  const char *text, struct vxd_err *err)
{
    if (!read_point(text, &events->after)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                        "'%.60s' is not the id of an event: GENERATION-VERSION", text);
    }
    events->has_after = true;
    return VXD_OK;
}

/* "0,0,0,1,1,0.5" */
static bool read_box(const char *text, double out[6])
{
    for (int i = 0; i < 6; i++) {
        char *end;

        out[i] = strtod(text, &end);
        if (end == text || *end != (i < 5 ? ',' : '\0') || !(out[i] - out[i] == 0)) {
            return false;
        }
        text = end + 1;
    }
    return true;
}

static bool read_count(const char *text, uint64_t limit, uint64_t *out)
{
    char *end;

    if (*text < '0' || *text > '9' || strlen(text) > 10) {
        return false;
    }
    *out = strtoull(text, &end, 10);
    return *end == '\0' && *out <= limit;
}

static void append(char *text, size_t capacity, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void append(char *text, size_t capacity, const char *format, ...)
{
    size_t n = strlen(text);
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(text + n, capacity - n, format, arguments);
    va_end(arguments);
}

static enum vxd_status read_option(struct vxd_http_events *events, const char *key,
                                   const char *value, uint64_t *n_bytes,
                                   struct vxd_err *err)
{
    char *options = events->options;
    size_t capacity = sizeof events->options;
    uint64_t level;
    double box[6];

    if (strcmp(key, "after") == 0) {
        return events->has_after ? VXD_OK : read_after(events, key, value, err);
    }
    if (strcmp(key, "max_bytes") == 0 && read_count(value, MOST_BYTES, n_bytes)) {
        return VXD_OK;
    }
    if (strcmp(key, "level") == 0 && read_count(value, UINT32_MAX, &level)) {
        append(options, capacity, ",\"level\":%" PRIu64, level);
        return VXD_OK;
    }
    if (strcmp(key, "in_voxels") == 0 &&
        (strcmp(value, "true") == 0 || strcmp(value, "false") == 0)) {
        append(options, capacity, ",\"inVoxels\":%s", value);
        return VXD_OK;
    }
    if (strcmp(key, "box") == 0 && read_box(value, box)) {
        append(options, capacity,
               ",\"box\":{\"low\":{\"x\":%.17g,\"y\":%.17g,\"z\":%.17g},"
               "\"high\":{\"x\":%.17g,\"y\":%.17g,\"z\":%.17g}}",
               box[0], box[1], box[2], box[3], box[4], box[5]);
        return VXD_OK;
    }
    return vxd_fail(err, VXD_INVALID_ARGUMENT, key,
                    "'%.60s' is not possible; known are level, box=X,Y,Z,X,Y,Z, "
                    "in_voxels=true, max_bytes (at most %u) and after",
                    value, MOST_BYTES);
}

/* The request of the next watch. */
static void write_body(struct vxd_http_events *events, uint32_t wait_ms)
{
    char *body = events->body;
    const Voxeld__V1__WatchPoint *after = &events->after;

    (void)snprintf(body, BODY_BYTES, "{\"name\":\"%s\",\"timeoutMs\":%u%s", events->name,
                   wait_ms, events->options);
    if (events->has_after) {
        append(body, BODY_BYTES,
               ",\"after\":{\"generation\":\"%" PRIu64 "\",\"version\":\"%" PRIu64
               "\",\"toVersion\":\"%" PRIu64 "\",\"first\":\"%" PRIu64 "\"}",
               after->generation, after->version, after->to_version, after->first);
    }
    append(body, BODY_BYTES, "}");
}

const struct vxd_method *vxd_http_find_events(struct vxd_http_exchange *exchange,
                                              const char *url)
{
    size_t n_scenes = sizeof SCENES - 1;
    size_t n_url = strlen(url);
    size_t n_name;
    char name[VXD_NAME_BYTES] = "";

    if (strcmp(url, ALL_SCENES) != 0) {
        if (strncmp(url, SCENES, n_scenes) != 0 || n_url < n_scenes + sizeof WATCH ||
            strcmp(url + n_url - (sizeof WATCH - 1), WATCH) != 0) {
            return NULL;
        }
        n_name = n_url - n_scenes - (sizeof WATCH - 1);
        if (n_name >= sizeof name) {
            return NULL;
        }
        memcpy(name, url + n_scenes, n_name);
        name[n_name] = '\0';
        if (!vxd_is_name(name)) {
            return NULL;
        }
    }
    exchange->is_events = true;
    memcpy(exchange->events_name, name, sizeof name);
    return vxd_method_by_name(exchange->http->server->methods, "scene_watch");
}

enum vxd_status vxd_http_events_open(struct vxd_http_exchange *exchange,
                                     struct vxd_err *err)
{
    struct vxd_http_events *events = calloc(1, sizeof *events);
    const struct vxd_http_headers *headers = &exchange->headers;
    uint64_t n_bytes = DEFAULT_BYTES;
    enum vxd_status status;

    if (events == NULL || pthread_mutex_init(&events->lock, NULL) != 0) {
        free(events);
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a stream");
    }
    exchange->events = events;
    events->http = exchange->http;
    events->connection = exchange->connection;
    atomic_init(&events->references, 1);
    voxeld__v1__watch_point__init(&events->after);
    memcpy(events->name, exchange->events_name, sizeof events->name);
    if (headers->last_event_id != NULL) {
        VXD_TRY(read_after(events, "Last-Event-ID", headers->last_event_id, err));
    }
    VXD_TRY(vxd_http_read_query(exchange, err));
    for (size_t i = 0; i < exchange->n_query; i++) {
        VXD_TRY(read_option(events, exchange->query[i].key, exchange->query[i].value,
                            &n_bytes, err));
    }
    if (exchange->format != NULL) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "format", "is not possible here"));
    }
    append(events->options, sizeof events->options, ",\"maxBytes\":%" PRIu64, n_bytes);
    write_body(events, 0);
    status = VXD_OK;
out:
    return status;
}

const char *vxd_http_events_body(const struct vxd_http_events *events)
{
    return events->body;
}

/* --- events ------------------------------------------------------------------------------- */

static const char *kind_name(Voxeld__V1__WatchKind kind)
{
    switch (kind) {
    case VOXELD__V1__WATCH_KIND__WATCH_CELLS:
        return "cells";
    case VOXELD__V1__WATCH_KIND__WATCH_RESYNC:
        return "resync";
    case VOXELD__V1__WATCH_KIND__WATCH_DROPPED:
        return "dropped";
    case VOXELD__V1__WATCH_KIND__WATCH_CREATED:
        return "created";
    case VOXELD__V1__WATCH_KIND__WATCH_HEADS:
        return "heads";
    default:
        return NULL;
    }
}

/* Appends one event and moves on, with the lock held or before the stream is one. */
static enum vxd_status write_event(struct vxd_http_events *events,
                                   const Voxeld__V1__SceneWatchResponse *reply,
                                   struct vxd_err *err)
{
    const char *kind = kind_name(reply->kind);
    struct vxd_text *text = &events->text;
    const Voxeld__V1__WatchPoint *next = reply->next;
    enum vxd_status status;

    if (next == NULL || kind == NULL) {
        vxd_text_append(text, ":\n\n", 3);
        return VXD_OK;
    }
    events->after = *next;
    events->has_after = true;
    vxd_text_printf(text, "id: %" PRIu64 "-%" PRIu64, next->generation, next->version);
    if (next->to_version > 0) {
        vxd_text_printf(text, "-%" PRIu64 "-%" PRIu64, next->to_version, next->first);
    }
    vxd_text_printf(text, "\nevent: %s\ndata: ", kind);
    status = vxd_json_write(&reply->base, text, err);
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

/* The reply_fn of the watches after the first. */
static void take_reply(struct vxd_request *request, const struct vxd_err *err,
                       const ProtobufCMessage *output)
{
    struct vxd_http_events *events = request->transport;
    struct vxd_err why = *err;

    (void)pthread_mutex_lock(&events->lock);
    if (events->poll == request) {
        events->poll = NULL;
        vxd_request_drop(request); /* who answers it holds it, too */
    }
    if (!events->is_gone) {
        if (err->code != VXD_OK ||
            write_event(events, (const Voxeld__V1__SceneWatchResponse *)output, &why) !=
                VXD_OK) {
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
    drop(request->transport);
}

/* Submits the next watch. The connection is suspended, so only its reply goes on with it. */
static void submit_next(struct vxd_http_events *events)
{
    struct vxd_server *server = events->http->server;
    uint32_t most_ms = atomic_load(&server->limits.max_timeout_ms);
    uint32_t wait_ms =
        WAIT_MS + WAIT_SPARE_MS < most_ms ? WAIT_MS : most_ms - most_ms / 8;
    const struct vxd_request_header header = {
        .token = events->token,
        .client_id = events->client_id,
        .peer = events->peer,
        .peer_uid = events->peer_uid,
        .timeout_ms =
            WAIT_MS + WAIT_SPARE_MS < most_ms ? WAIT_MS + WAIT_SPARE_MS : most_ms};
    struct vxd_body body = {.kind = VXD_BODY_JSON};
    struct vxd_request *request = NULL;
    struct vxd_err err = {0};
    enum vxd_status status;

    write_body(events, wait_ms);
    body.bytes = (const uint8_t *)events->body;
    body.n_bytes = strlen(events->body);
    status = vxd_request_create(server, &header, &request, &err);
    if (request == NULL) {
        (void)pthread_mutex_lock(&events->lock);
        events->has_ended = true;
        events->is_suspended = false;
        MHD_resume_connection(events->connection);
        (void)pthread_mutex_unlock(&events->lock);
        return;
    }
    request->transport = events;
    request->reply_fn = take_reply;
    request->discard_fn = discard;
    request->holds_place = true;
    atomic_fetch_add(&events->references, 1);
    (void)pthread_mutex_lock(&events->lock);
    vxd_request_hold(request);
    events->poll = request;
    (void)pthread_mutex_unlock(&events->lock);
    vxd_http_hangup_watch(events->http, events->connection, request);
    if (status == VXD_OK) {
        status =
            vxd_request_admit(request, vxd_method_by_name(server->methods, "scene_watch"),
                              body.n_bytes, &err);
    }
    if (status != VXD_OK) {
        vxd_request_fail(request, &err);
    } else {
        vxd_request_submit(request, &body);
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
    drop(cls);
}

/* So many connections are left for all others. */
static enum vxd_status take_stream(struct vxd_http *http, struct vxd_err *err)
{
    size_t limit = http->server->config.max_connections / 2;

    if (atomic_fetch_add(&http->n_events, 1) < limit) {
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

    VXD_TRY(take_stream(exchange->http, err));
    exchange->counts_events = true;
    VXD_TRY(vxd_watch_take_place(exchange->http->server->watch, &request->principal,
                                 request->peer, &events->place, err));
    VXD_TRY(vxd_http_token(exchange, &token, err));
    (void)snprintf(events->token, sizeof events->token, "%s", token != NULL ? token : "");
    events->peer_uid = request->peer_uid;
    memcpy(events->peer, request->peer, sizeof events->peer);
    memcpy(events->client_id, request->client_id, sizeof events->client_id);
    vxd_text_append(&events->text, RETRY, sizeof RETRY - 1);
    VXD_TRY(write_event(events, (const Voxeld__V1__SceneWatchResponse *)output, err));
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

void vxd_http_events_end(struct vxd_http_exchange *exchange)
{
    struct vxd_http_events *events = exchange->events;
    struct vxd_request *poll;
    struct vxd_err err = {0};

    if (exchange->counts_events) {
        atomic_fetch_sub(&exchange->http->n_events, 1);
    }
    if (events == NULL) {
        return;
    }
    exchange->events = NULL;
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
    drop(events);
}
