// SPDX-License-Identifier: Apache-2.0
/* What a watch that goes on asks: its URL, and the request of each of its watches. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "server/transport/http/http_events_internal.h"

#define WATCH "/watch"
#define DEFAULT_BYTES (256u << 10)
#define MOST_BYTES (4u << 20)
#define BODY_BYTES VXD_HTTP_EVENTS_BODY_BYTES

bool vxd_http_events_read_id(const char *text, Voxeld__V1__WatchPoint *out)
{
    uint64_t numbers[4] = {0};
    size_t n = 0;

    for (; n < 4; n++) {
        char *end;

        if (*text < '0' || *text > '9') {
            return false;
        }
        errno = 0;
        numbers[n] = strtoull(text, &end, 10);
        if (errno != 0) {
            return false; /* above 2^64 - 1 */
        }
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
    if (!vxd_http_events_read_id(text, &events->after)) {
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

/* Where things are watched, all of them, and what beside the box bounds it. */
struct watched {
    const char *method;
    const char *all;    /* URL */
    const char *prefix; /* of the URL of one */
    const char *known;  /* options, of errors */
};

static const struct watched watched[] = {
    [VXD_WATCH_SCENES] = {"scene_watch", "/v1/watch", "/v1/scenes/",
                          "level, in_voxels=true"},
    [VXD_WATCH_VOLUMES] = {"volume_watch", "/v1/watch/volumes", "/v1/volumes/",
                           "min_weight, points=true, albedo=true, keys_only=true"},
};

enum {
    N_WATCHED = sizeof watched / sizeof watched[0]
};

const struct vxd_method *vxd_http_events_method(const struct vxd_http *http,
                                                enum vxd_watch_noun noun)
{
    return vxd_method_by_name(http->server->methods, watched[noun].method);
}

/* An option that is true or false. */
static bool read_flag(struct vxd_http_events *events, const char *key, const char *value)
{
    static const struct {
        enum vxd_watch_noun noun;
        const char *key;
        const char *member;
    } flags[] = {{VXD_WATCH_SCENES, "in_voxels", "inVoxels"},
                 {VXD_WATCH_VOLUMES, "points", "points"},
                 {VXD_WATCH_VOLUMES, "albedo", "albedo"},
                 {VXD_WATCH_VOLUMES, "keys_only", "keysOnly"}};
    bool is_right = strcmp(value, "true") == 0 || strcmp(value, "false") == 0;

    for (size_t i = 0; i < sizeof flags / sizeof flags[0] && is_right; i++) {
        if (flags[i].noun == events->noun && strcmp(key, flags[i].key) == 0) {
            append(events->options, sizeof events->options, ",\"%s\":%s", flags[i].member,
                   value);
            return true;
        }
    }
    return false;
}

/* An option that is a number. */
static bool read_number(struct vxd_http_events *events, const char *key,
                        const char *value)
{
    char *options = events->options;
    size_t capacity = sizeof events->options;
    uint64_t level;
    double weight;
    char *end;

    if (events->noun == VXD_WATCH_SCENES && strcmp(key, "level") == 0 &&
        read_count(value, UINT32_MAX, &level)) {
        append(options, capacity, ",\"level\":%" PRIu64, level);
        return true;
    }
    if (events->noun == VXD_WATCH_VOLUMES && strcmp(key, "min_weight") == 0) {
        weight = strtod(value, &end);
        if (end != value && *end == '\0' && weight - weight == 0) {
            append(options, capacity, ",\"minWeight\":%.17g", weight);
            return true;
        }
    }
    return false;
}

static enum vxd_status read_option(struct vxd_http_events *events, const char *key,
                                   const char *value, uint64_t *n_bytes,
                                   struct vxd_err *err)
{
    double box[6];

    if (events->is_socket && strcmp(key, "token") == 0) {
        return VXD_OK; /* vxd_http_socket_check has read it */
    }
    if (strcmp(key, "after") == 0) {
        return events->has_after ? VXD_OK : read_after(events, key, value, err);
    }
    if ((strcmp(key, "max_bytes") == 0 && read_count(value, MOST_BYTES, n_bytes)) ||
        read_flag(events, key, value) || read_number(events, key, value)) {
        return VXD_OK;
    }
    if (strcmp(key, "box") == 0 && read_box(value, box)) {
        append(events->options, sizeof events->options,
               ",\"box\":{\"low\":{\"x\":%.17g,\"y\":%.17g,\"z\":%.17g},"
               "\"high\":{\"x\":%.17g,\"y\":%.17g,\"z\":%.17g}}",
               box[0], box[1], box[2], box[3], box[4], box[5]);
        return VXD_OK;
    }
    return vxd_fail(
        err, VXD_INVALID_ARGUMENT, key,
        "'%.60s' is not possible; known are box=X,Y,Z,X,Y,Z, %s, max_bytes (at "
        "most %u) and after",
        value, watched[events->noun].known, MOST_BYTES);
}

/* The request of the next watch. */
void vxd_http_events_write_body(struct vxd_http_events *events, uint32_t wait_ms)
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

/* The name in the URL of one thing; "" where it is that of all. */
static bool read_name(const struct watched *of, const char *url,
                      char name[VXD_NAME_BYTES])
{
    size_t n_prefix = strlen(of->prefix);
    size_t n_url = strlen(url);
    size_t n_name;

    name[0] = '\0';
    if (strcmp(url, of->all) == 0) {
        return true;
    }
    if (strncmp(url, of->prefix, n_prefix) != 0 || n_url < n_prefix + sizeof WATCH ||
        strcmp(url + n_url - (sizeof WATCH - 1), WATCH) != 0) {
        return false;
    }
    n_name = n_url - n_prefix - (sizeof WATCH - 1);
    if (n_name >= VXD_NAME_BYTES) {
        return false;
    }
    memcpy(name, url + n_prefix, n_name);
    name[n_name] = '\0';
    return vxd_is_name(name);
}

const struct vxd_method *vxd_http_find_events(struct vxd_http_exchange *exchange,
                                              const char *url)
{
    char name[VXD_NAME_BYTES];

    for (int noun = 0; noun < N_WATCHED; noun++) {
        if (read_name(&watched[noun], url, name)) {
            exchange->is_events = true;
            exchange->events_noun = (enum vxd_watch_noun)noun;
            memcpy(exchange->events_name, name, sizeof name);
            return vxd_http_events_method(exchange->http, exchange->events_noun);
        }
    }
    return NULL;
}

enum vxd_status vxd_http_events_open(struct vxd_http_exchange *exchange,
                                     struct vxd_err *err)
{
    struct vxd_http_events *events = calloc(1, sizeof *events);
    const struct vxd_http_headers *headers = &exchange->headers;
    struct vxd_principal principal = {0};
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
    events->noun = exchange->events_noun;
    memcpy(events->name, exchange->events_name, sizeof events->name);
    if (headers->upgrade != NULL) {
        events->is_socket = true;
        VXD_TRY(vxd_http_socket_check(exchange, &principal, err));
    }
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
    vxd_http_events_write_body(events, 0);
    status = VXD_OK;
out:
    vxd_principal_clear(&principal);
    return status;
}

const char *vxd_http_events_body(const struct vxd_http_events *events)
{
    return events->body;
}
