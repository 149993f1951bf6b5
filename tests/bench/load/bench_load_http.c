// SPDX-License-Identifier: Apache-2.0
/* The part of HTTP/1.1 that loading a server needs: POST with a protobuf body over a
 * kept connection, a reply with Content-Length. Every wait ends at the request's
 * deadline. A server may refuse while the body is still being sent; then the rest is
 * not sent, and the next request takes a new connection. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "proto/base/number.h"
#include "client/c/call/call.h"
#include "tests/bench/load/bench_load_target.h"

enum {
    HEAD_BYTES = 16384,
    HOST_BYTES = 256,
    PORT_BYTES = 8,
    /* The server answers at the deadline; its answer may take a moment to arrive. */
    GRACE_MS = 200
};

#define MAX_REPLY_BYTES ((size_t)1 << 30)

struct load_http {
    const struct load_work *work;
    char authority[HOST_BYTES]; /* as in the URL: the Host header */
    char host[HOST_BYTES];
    char port[PORT_BYTES];
    int fd; /* -1: not connected */
    int64_t deadline_ms;
    char head[HEAD_BYTES]; /* the reply's header, and the part of its body that came with
                            * it */
    uint8_t *body;
    size_t n_capacity;
};

/* The reply's first lines. */
struct http_head {
    unsigned status;
    size_t n_head_bytes;
    size_t n_body_bytes;
    bool keeps;
};

static int64_t now_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void disconnect(struct load_http *http)
{
    if (http->fd >= 0) {
        (void)close(http->fd);
        http->fd = -1;
    }
}

/* Waits for any of the events. False at the deadline. */
static bool wait_for(struct load_http *http, short events, short *got)
{
    for (;;) {
        struct pollfd entry = {.fd = http->fd, .events = events};
        int64_t left = http->deadline_ms - now_ms();
        int n;

        if (left < 0) {
            return false;
        }
        n = poll(&entry, 1, left < INT_MAX ? (int)left : INT_MAX);
        if (n > 0) {
            *got = entry.revents;
            return true;
        }
        if (n < 0 && errno != EINTR) {
            return false;
        }
    }
}

static enum voxeld_status late(struct voxeld_error *error)
{
    return load_fail(error, VOXELD_DEADLINE_EXCEEDED, "no answer within the timeout");
}

/* Connects to one address of the host. *result keeps errno of the failure. */
static bool connect_to(struct load_http *http, const struct addrinfo *address,
                       int *result)
{
    static const int on = 1;
    socklen_t n = sizeof *result;
    short got;

    http->fd = socket(address->ai_family, address->ai_socktype, address->ai_protocol);
    *result = errno;
    if (http->fd < 0) {
        return false;
    }
    (void)setsockopt(http->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    *result = 0;
    if (fcntl(http->fd, F_SETFD, FD_CLOEXEC) != 0 ||
        fcntl(http->fd, F_SETFL, O_NONBLOCK) != 0 ||
        (connect(http->fd, address->ai_addr, address->ai_addrlen) != 0 &&
         errno != EINPROGRESS)) {
        *result = errno;
    } else if (!wait_for(http, POLLOUT, &got)) {
        *result = ETIMEDOUT;
    } else if (getsockopt(http->fd, SOL_SOCKET, SO_ERROR, result, &n) != 0) {
        *result = errno;
    }
    if (*result != 0) {
        disconnect(http);
        return false;
    }
    return true;
}

static enum voxeld_status connect_host(struct load_http *http, struct voxeld_error *error)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *list = NULL;
    int result = getaddrinfo(http->host, http->port, &hints, &list);

    if (result != 0) {
        return load_fail(error, VOXELD_UNAVAILABLE, "%s: %s", http->host,
                         gai_strerror(result));
    }
    for (const struct addrinfo *at = list; at != NULL; at = at->ai_next) {
        if (connect_to(http, at, &result)) {
            break;
        }
    }
    freeaddrinfo(list);
    if (http->fd < 0) {
        return load_fail(error, VOXELD_UNAVAILABLE, "connecting to %s: %s",
                         http->authority, strerror(result));
    }
    return VOXELD_OK;
}

/* The server may have closed a kept connection meanwhile. */
static void drop_stale(struct load_http *http)
{
    struct pollfd entry = {.fd = http->fd, .events = POLLIN};

    if (http->fd >= 0 && poll(&entry, 1, 0) != 0) {
        disconnect(http);
    }
}

/* Sends all unless the server answers first, which sets *answered. */
static enum voxeld_status send_all(struct load_http *http, const void *bytes, size_t n,
                                   bool *answered, struct voxeld_error *error)
{
    const uint8_t *at = bytes;

    while (n > 0 && !*answered) {
        ssize_t sent = send(http->fd, at, n, MSG_NOSIGNAL);
        short got = 0;

        if (sent >= 0) {
            at += sent;
            n -= (size_t)sent;
        } else if (errno == EPIPE || errno == ECONNRESET) {
            *answered = true; /* it may have answered before it closed */
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            if (!wait_for(http, POLLOUT | POLLIN, &got)) {
                return late(error);
            }
            *answered = (got & POLLIN) != 0;
        } else if (errno != EINTR) {
            return load_fail(error, VOXELD_UNAVAILABLE, "sending: %s", strerror(errno));
        }
    }
    return VOXELD_OK;
}

/* Reads up to n bytes, at least one. */
static enum voxeld_status receive(struct load_http *http, void *out, size_t n,
                                  size_t *n_received, struct voxeld_error *error)
{
    for (;;) {
        ssize_t received = recv(http->fd, out, n, 0);
        short got;

        if (received > 0) {
            *n_received = (size_t)received;
            return VOXELD_OK;
        }
        if (received == 0) {
            return load_fail(error, VOXELD_UNAVAILABLE, "the server closed");
        }
        if (errno == EAGAIN || errno == EWOULDBLOCK) {
            if (!wait_for(http, POLLIN, &got)) {
                return late(error);
            }
        } else if (errno != EINTR) {
            return load_fail(error, VOXELD_UNAVAILABLE, "receiving: %s", strerror(errno));
        }
    }
}

/* Finds the value of a header line, NULL where the reply has none. *n gets its length. */
static const char *find_header(const char *head, const char *name, size_t *n)
{
    size_t n_name = strlen(name);

    for (const char *line = strstr(head, "\r\n"); line != NULL;
         line = strstr(line, "\r\n")) {
        line += 2;
        if (strncasecmp(line, name, n_name) == 0 && line[n_name] == ':') {
            line += n_name + 1;
            line += strspn(line, " \t");
            *n = strcspn(line, "\r");
            return line;
        }
    }
    return NULL;
}

/* Reads the milliseconds of a metric, "engine;dur=" and a number. False where it is not there. */
static bool read_metric(const char *line, size_t n, const char *metric, double *out)
{
    size_t n_metric = strlen(metric);

    for (size_t i = 0; i + n_metric <= n; i++) {
        if (strncmp(line + i, metric, n_metric) == 0) {
            const char *number = line + i + n_metric;

            return vxd_number_double(number, strcspn(number, ", \r"), out);
        }
    }
    return false;
}

static void read_timings(const char *head, struct load_reply *reply)
{
    struct voxeld_timings *t = &reply->timings;
    size_t n = 0;
    const char *line = find_header(head, "Server-Timing", &n);

    reply->has_timings = line != NULL &&
                         read_metric(line, n, "receive;dur=", &t->receive_ms) &&
                         read_metric(line, n, "decode;dur=", &t->decode_ms) &&
                         read_metric(line, n, "wait;dur=", &t->wait_ms) &&
                         read_metric(line, n, "engine;dur=", &t->engine_ms) &&
                         read_metric(line, n, "commit;dur=", &t->commit_ms) &&
                         read_metric(line, n, "total;dur=", &t->total_ms);
}

/* Parses the head, which ends with its empty line. */
static bool parse_head(const char *head, struct http_head *out)
{
    uint64_t status;
    uint64_t n_body_bytes;
    size_t n;
    const char *value;

    if (strncmp(head, "HTTP/1.1 ", 9) != 0 || !vxd_number_uint64(head + 9, 3, &status)) {
        return false;
    }
    value = find_header(head, "Content-Length", &n);
    if (value == NULL || !vxd_number_uint64(value, n, &n_body_bytes) ||
        n_body_bytes > MAX_REPLY_BYTES) {
        return false;
    }
    value = find_header(head, "Connection", &n);
    out->keeps = value == NULL || n != 5 || strncasecmp(value, "close", 5) != 0;
    out->status = (unsigned)status;
    out->n_body_bytes = (size_t)n_body_bytes;
    return true;
}

/* Reads the reply into http->body. */
static enum voxeld_status receive_reply(struct load_http *http, struct http_head *head,
                                        struct voxeld_error *error)
{
    const char *end = NULL;
    size_t n = 0;
    size_t n_early;

    while (end == NULL) {
        size_t more = 0;
        enum voxeld_status status =
            n + 1 == sizeof http->head
                ? load_fail(error, VOXELD_INTERNAL, "the reply's head is too long")
                : receive(http, http->head + n, sizeof http->head - 1 - n, &more, error);

        if (status != VOXELD_OK) {
            return status;
        }
        n += more;
        http->head[n] = '\0';
        end = strstr(http->head, "\r\n\r\n");
    }
    head->n_head_bytes = (size_t)(end - http->head) + 4;
    http->head[head->n_head_bytes - 2] = '\0'; /* no header is looked for in the body */
    if (!parse_head(http->head, head)) {
        return load_fail(error, VOXELD_INTERNAL,
                         "a reply that is not HTTP/1.1 with a "
                         "Content-Length");
    }
    if (http->n_capacity <= head->n_body_bytes) {
        uint8_t *grown = realloc(http->body, head->n_body_bytes + 1);

        if (grown == NULL) {
            return load_fail(error, VOXELD_RESOURCE_EXHAUSTED, "no memory for the reply");
        }
        http->body = grown;
        http->n_capacity = head->n_body_bytes + 1;
    }
    n_early = n - head->n_head_bytes;
    if (n_early > head->n_body_bytes) {
        return load_fail(error, VOXELD_INTERNAL, "more than one reply");
    }
    memcpy(http->body, http->head + head->n_head_bytes, n_early);
    for (size_t more = 0; n_early < head->n_body_bytes; n_early += more) {
        enum voxeld_status status = receive(http, http->body + n_early,
                                            head->n_body_bytes - n_early, &more, error);

        if (status != VOXELD_OK) {
            return status;
        }
    }
    http->body[n_early] = '\0';
    return VOXELD_OK;
}

/* The text of a member of an error; "" where it has none. */
static const char *error_member(const json_t *json, const char *name)
{
    const char *text = json_string_value(json_object_get(json, name));

    return text != NULL ? text : "";
}

static enum voxeld_status error_reply(const struct load_http *http, unsigned status,
                                      struct voxeld_error *error)
{
    json_t *json = json_loads((const char *)http->body, 0, NULL);
    enum voxeld_status code = VOXELD_UNKNOWN;

    for (int i = VOXELD_CANCELLED; i <= VOXELD_UNAUTHENTICATED; i++) {
        if (strcmp(voxeld_status_name((enum voxeld_status)i),
                   error_member(json, "code")) == 0) {
            code = (enum voxeld_status)i;
        }
    }
    code = load_fail(error, code, "%s (HTTP %u)", error_member(json, "message"), status);
    json_decref(json);
    return code;
}

static void take_voxels(const ProtobufCMessage *message, struct load_reply *reply)
{
    const Voxeld__V1__VoxelizeResponse *response =
        (const Voxeld__V1__VoxelizeResponse *)(const void *)message;

    reply->n_voxels = response->n_voxels;
    reply->engine_ms = response->engine_ms;
    for (size_t i = 0; i < response->n_items; i++) {
        reply->n_points += response->items[i]->n_points;
    }
}

static void take_scan(const ProtobufCMessage *message, struct load_reply *reply)
{
    const Voxeld__V1__SceneIntegrateResponse *response =
        (const Voxeld__V1__SceneIntegrateResponse *)(const void *)message;

    reply->n_points = response->n_points;
    reply->n_voxels = response->n_hit_voxels;
    reply->engine_ms = response->engine_ms;
}

/* Reads what --check needs from a reply; it unpacks the whole message, as every user
 * of it would. Arrays stay in the body, as in libvoxeld's replies. */
static enum voxeld_status read_reply(const struct load_http *http,
                                     enum load_method method, size_t n_bytes,
                                     struct load_reply *reply)
{
    bool is_scan = method == LOAD_SCENE_INTEGRATE;
    const ProtobufCMessageDescriptor *descriptor =
        is_scan ? &voxeld__v1__scene_integrate_response__descriptor
                : &voxeld__v1__voxelize_response__descriptor;
    static const struct vxd_borrow borrow = {VXD_BIG_BLOCK_BYTES, VXD_DATA_ALIGN, false};
    struct vxd_decoder *decoder = NULL;
    ProtobufCMessage *message;
    size_t n_borrowed;
    struct vxd_err err = {0};
    enum vxd_status status;

    VXD_TRY(vxd_decoder_create(MAX_REPLY_BYTES, NULL, &decoder, &err));
    VXD_TRY(vxd_decode_borrowing(decoder, &borrow, descriptor, http->body, n_bytes,
                                 &message, &n_borrowed, &err));
    (is_scan ? take_scan : take_voxels)(message, reply);
out:
    vxd_decoder_destroy(decoder);
    return status == VXD_OK ? VOXELD_OK
                            : load_fail(&reply->error, (enum voxeld_status)err.code, "%s",
                                        err.message);
}

static enum voxeld_status exchange(struct load_http *http, enum load_method method,
                                   struct http_head *head, struct load_reply *reply)
{
    const struct load_options *options = http->work->options;
    size_t n_body_bytes = http->work->n_body_bytes[method];
    char request[HEAD_BYTES];
    bool early = false;
    enum voxeld_status status = VOXELD_OK;
    int n = snprintf(
        request, sizeof request,
        "POST /v1/%s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/x-protobuf\r\n"
        "Accept: application/x-protobuf\r\nContent-Length: %zu\r\n"
        "X-Voxeld-Timeout-Ms: %u\r\n%s%s%s\r\n",
        load_method_name(method), http->authority, n_body_bytes, options->timeout_ms,
        options->token != NULL ? "Authorization: Bearer " : "",
        options->token != NULL ? options->token : "",
        options->token != NULL ? "\r\n" : "");

    if (n < 0 || (size_t)n >= sizeof request) {
        return load_fail(&reply->error, VOXELD_INVALID_ARGUMENT, "a token that long");
    }
    if (http->fd < 0) {
        status = connect_host(http, &reply->error);
    }
    if (status == VOXELD_OK) {
        status = send_all(http, request, (size_t)n, &early, &reply->error);
    }
    if (status == VOXELD_OK) {
        status = send_all(http, http->work->bodies[method], n_body_bytes, &early,
                          &reply->error);
    }
    if (status == VOXELD_OK) {
        status = receive_reply(http, head, &reply->error);
    }
    head->keeps = head->keeps && !early && status == VOXELD_OK;
    return status;
}

void load_http_call(struct load_http *http, enum load_method method,
                    struct load_reply *reply)
{
    struct http_head head = {0};

    http->deadline_ms = now_ms() + (int64_t)http->work->options->timeout_ms + GRACE_MS;
    drop_stale(http);
    if (exchange(http, method, &head, reply) == VOXELD_OK) {
        reply->answered = true;
        read_timings(http->head, reply);
        if (head.status != 200) {
            (void)error_reply(http, head.status, &reply->error);
        } else if (load_sends_cloud(method)) {
            (void)read_reply(http, method, head.n_body_bytes, reply);
        }
    }
    if (!head.keeps) {
        disconnect(http);
    }
}

/* Parses "http://host[:port][/]"; host may be an IPv6 address in brackets. */
static bool parse_url(const char *url, struct load_http *http)
{
    const char *authority = url + strlen("http://");
    size_t n = strcspn(authority, "/");
    bool bracketed = authority[0] == '[';
    const char *host = authority + (bracketed ? 1 : 0);
    size_t n_host = strcspn(host, bracketed ? "]/" : ":/");
    const char *port = host + n_host + (bracketed && host[n_host] == ']' ? 1 : 0);
    uint64_t number;

    if (n_host == 0 || n >= sizeof http->authority ||
        authority[n + strspn(authority + n, "/")] != '\0') {
        return false;
    }
    (void)snprintf(http->authority, sizeof http->authority, "%.*s", (int)n, authority);
    (void)snprintf(http->host, sizeof http->host, "%.*s", (int)n_host, host);
    if (port == authority + n) {
        (void)snprintf(http->port, sizeof http->port, "80");
        return true;
    }
    if (port[0] != ':' ||
        !vxd_number_uint64(port + 1, (size_t)(authority + n - port) - 1, &number) ||
        number == 0 || number > UINT16_MAX) {
        return false;
    }
    (void)snprintf(http->port, sizeof http->port, "%u", (unsigned)number);
    return true;
}

enum voxeld_status load_http_open(const struct load_work *work, struct load_http **out,
                                  struct voxeld_error *error)
{
    struct load_http *http = calloc(1, sizeof *http);
    enum voxeld_status status;

    *out = NULL;
    if (http == NULL) {
        return load_fail(error, VOXELD_RESOURCE_EXHAUSTED, "no memory for a connection");
    }
    http->work = work;
    http->fd = -1;
    http->deadline_ms = now_ms() + (int64_t)work->options->timeout_ms;
    status = parse_url(work->options->url, http)
                 ? connect_host(http, error)
                 : load_fail(error, VOXELD_INVALID_ARGUMENT, "%s is not http://host:port",
                             work->options->url);
    if (status != VOXELD_OK) {
        load_http_close(http);
        return status;
    }
    *out = http;
    return VOXELD_OK;
}

void load_http_close(struct load_http *http)
{
    if (http != NULL) {
        disconnect(http);
        free(http->body);
        free(http);
    }
}
