// SPDX-License-Identifier: Apache-2.0
/* The HTTP transport: libmicrohttpd calls on_request first with the headers, then with
 * each piece of the body, then once more without any.
 *
 *   headers  route, guard, admit; whatever is wrong is known before the body is read
 *   pieces   copied straight into one buffer of the body's size
 *   end      the connection is suspended, the request submitted; its reply, on whatever
 *            thread, stores the response and resumes the connection
 *   resumed  the response is queued
 *
 * Suspending comes before submitting: the reply may come before submit returns. */
#include "server/transport/http/http.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "proto/base/clock.h"
#include "proto/base/name.h"
#include "server/observe/log/log.h"
#include "server/transport/foxglove/foxglove.h"
#include "server/transport/http/http_internal.h"

#define CONNECTION_BYTES (256u * 1024u)
#define IDLE_TIMEOUT_S 60u
/* A refused body of at most this size is read and dropped, so that the connection can be
 * used again. A larger one is answered at once, and the connection ends. */
#define SWALLOW_BYTES 65536u
/* Larger files are decoded on other threads. */
#define SMALL_FILE_BYTES 65536u
#define STOP_TIMEOUT_MS 5000
#define STOP_STEP_MS 5

/* What may be done at a path, as the header Allow says it; compared by address. */
static const char allow_view[] = "GET, HEAD, OPTIONS";
static const char allow_method[] = "POST, OPTIONS";
static const char allow_both[] = "GET, HEAD, POST, OPTIONS";

void vxd_http_exchange_drop(struct vxd_http_exchange *exchange)
{
    if (atomic_fetch_sub(&exchange->references, 1) != 1) {
        return;
    }
    if (exchange->response != NULL) {
        MHD_destroy_response(exchange->response);
    }
    free(exchange->query_text);
    free(exchange->file_body);
    free(exchange);
}

static void discard_request(struct vxd_request *request)
{
    struct vxd_http_exchange *exchange = request->transport;

    vxd_upload_memory_destroy(request->server, &exchange->body);
    request->transport = NULL;
    vxd_http_exchange_drop(exchange);
}

/* Binds exchange->request to its exchange. */
static enum vxd_status create_request(struct vxd_http_exchange *exchange,
                                      struct vxd_err *err)
{
    enum vxd_status status = vxd_http_create_request(exchange, err);

    if (exchange->request != NULL) {
        exchange->request->transport = exchange;
        exchange->request->reply_fn = vxd_http_reply;
        exchange->request->discard_fn = discard_request;
        atomic_fetch_add(&exchange->references, 1);
    }
    return status;
}

/* Answers with an error through a request, so that the error is logged, counted and has
 * an id. */
static void fail(struct vxd_http_exchange *exchange, const struct vxd_err *err)
{
    struct vxd_request *request;
    struct vxd_err ignored;

    if (exchange->request == NULL) {
        (void)create_request(exchange, &ignored);
    }
    request = exchange->request;
    exchange->request = NULL;
    if (request != NULL) {
        vxd_request_fail(request, err);
    } else {
        vxd_http_set_error(exchange, "", err);
    }
}

static bool is_read(const char *verb)
{
    return strcmp(verb, MHD_HTTP_METHOD_GET) == 0 ||
           strcmp(verb, MHD_HTTP_METHOD_HEAD) == 0;
}

/* Whether GET may call the method by its own path, since it needs no body. */
static bool has_get(const struct vxd_method *method)
{
    return strcmp(method->name, "status") == 0 ||
           strcmp(method->name, "server_info") == 0;
}

/* Finds the methods behind a folder of the API, for example /v1/maps, and behind a name
 * in it; NULL where the URL is none of these. */
static const struct vxd_method *find_in_folder(struct vxd_http_exchange *exchange,
                                               const char *url, const char *folder,
                                               const char *list, const char *get)
{
    const char *rest = url + strlen(folder);

    if (strncmp(url, folder, strlen(folder)) != 0) {
        return NULL;
    }
    if (rest[0] == '\0') {
        return vxd_method_by_name(exchange->http->server->methods, list);
    }
    if (rest[0] != '/' || !vxd_is_name(rest + 1)) {
        return NULL;
    }
    (void)snprintf(exchange->get_body, sizeof exchange->get_body, "{\"name\":\"%s\"}",
                   rest + 1);
    return vxd_method_by_name(exchange->http->server->methods, get);
}

static const struct vxd_method *find_path(struct vxd_http_exchange *exchange,
                                          const char *url)
{
    const struct vxd_method *method =
        find_in_folder(exchange, url, "/v1/maps", "map_list", "map_get");

    if (method == NULL) {
        method = find_in_folder(exchange, url, "/v1/scenes", "scene_list", "scene_get");
    }
    if (method == NULL) {
        method =
            find_in_folder(exchange, url, "/v1/volumes", "volume_list", "volume_get");
    }
    if (method == NULL) {
        method = find_in_folder(exchange, url, "/v1/posegraphs", "posegraph_list",
                                "posegraph_get");
    }
    if (method == NULL) {
        method = find_in_folder(exchange, url, "/v1/odometries", "odometry_list",
                                "odometry_get");
    }
    return method != NULL ? method
                          : find_in_folder(exchange, url, "/v1/networks", "network_list",
                                           "network_get");
}

/* Finds the method of a URL, and what is allowed there. */
static const struct vxd_method *find_method(struct vxd_http_exchange *exchange,
                                            const char *url)
{
    const char *of_file = vxd_http_find_file(exchange, url);
    const struct vxd_method *method =
        of_file != NULL ? vxd_method_by_name(exchange->http->server->methods, of_file)
                        : find_path(exchange, url);

    exchange->allow = allow_view;
    method = method != NULL ? method : vxd_http_find_events(exchange, url);
    if (method == NULL && strncmp(url, "/v1/", 4) == 0) {
        method = vxd_method_by_name(exchange->http->server->methods, url + 4);
        exchange->allow = method != NULL && has_get(method) ? allow_both : allow_method;
    }
    return method;
}

/* On a port of their own, viewers find their page at its root, too, and nothing else is there. */
static const struct vxd_http_view *find_view(const struct vxd_http *http, const char *url)
{
    static const char foxglove[] = "/foxglove";

    if (!http->is_foxglove) {
        return vxd_http_view_find(url);
    }
    return strcmp(url, "/") == 0 || strcmp(url, foxglove) == 0
               ? vxd_http_view_find(foxglove)
               : NULL;
}

/* Finds the page or method of a URL; sets exchange->method or *view. */
static enum vxd_status route(struct vxd_http_exchange *exchange, const char *url,
                             const struct vxd_http_view **view, struct vxd_err *err)
{
    *view = find_view(exchange->http, url);
    exchange->allow = *view == NULL || (*view)->post == NULL ? allow_view
                      : (*view)->write != NULL               ? allow_both
                                                             : allow_method;
    if (*view == NULL) {
        exchange->method =
            exchange->http->is_foxglove ? NULL : find_method(exchange, url);
        if (exchange->method == NULL) {
            exchange->allow = NULL;
            exchange->fixed_status = MHD_HTTP_NOT_FOUND;
            return vxd_fail(err, VXD_NOT_FOUND, "path", "nothing is at %.150s", url);
        }
    }
    if (strcmp(exchange->verb, MHD_HTTP_METHOD_OPTIONS) == 0 ||
        (exchange->allow != allow_view &&
         strcmp(exchange->verb, MHD_HTTP_METHOD_POST) == 0) ||
        (exchange->allow != allow_method && is_read(exchange->verb))) {
        return VXD_OK;
    }
    exchange->fixed_status = MHD_HTTP_METHOD_NOT_ALLOWED;
    return vxd_fail(err, VXD_UNIMPLEMENTED, "method",
                    "%.40s is not possible here; %s are", exchange->verb,
                    exchange->allow);
}

/* Refuses two lengths, since they are two opinions on where the next request begins, and a
 * path with an escaped slash or zero, since it is another path to whoever decodes it again. */
static enum vxd_status check_framing(struct vxd_http_exchange *exchange, bool is_path_bad,
                                     struct vxd_err *err)
{
    const struct vxd_http_headers *headers = &exchange->headers;
    const char *twice = headers->duplicate;

    if (is_path_bad) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "path",
                        "%%2f, %%00 and incomplete escapes are not possible in a path");
    }
    if (headers->malformed != NULL) {
        exchange->must_close = true;
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "header",
                        "'%.60s' is no name of a header: it has a space",
                        headers->malformed);
    }
    if (headers->content_length != NULL && headers->transfer_encoding != NULL) {
        exchange->must_close = true;
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "Transfer-Encoding",
                        "goes without Content-Length");
    }
    if (twice != NULL && (strcmp(twice, MHD_HTTP_HEADER_CONTENT_LENGTH) == 0 ||
                          strcmp(twice, MHD_HTTP_HEADER_TRANSFER_ENCODING) == 0)) {
        exchange->must_close = true;
        return vxd_fail(err, VXD_INVALID_ARGUMENT, twice,
                        "the header came more than once");
    }
    return VXD_OK;
}

/* Answers a page that is no method. */
static enum vxd_status answer_view(struct vxd_http_exchange *exchange,
                                   const struct vxd_http_view *view, struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    if (!view->is_public &&
        atomic_load(&exchange->http->server->state) == VXD_STATE_RECOVERING) {
        return vxd_fail(err, VXD_UNAVAILABLE, NULL,
                        "the server is starting: its data come back");
    }
    if (!is_read(exchange->verb)) {
        return exchange->n_expected == 0 && exchange->headers.transfer_encoding == NULL
                   ? view->post(exchange, err)
                   : vxd_fail(err, VXD_INVALID_ARGUMENT, "Content-Length",
                              "this goes without a body");
    }
    VXD_TRY(vxd_http_check_body(exchange, err));
    if (view->check != NULL) {
        VXD_TRY(view->check(exchange, err));
    }
    view->write(exchange);
out:
    return status;
}

/* Does everything that the headers alone decide. On success either the response is there,
 * or the request is admitted and its buffer waits for the body. */
static enum vxd_status examine(struct vxd_http_exchange *exchange, const char *url,
                               const char *version, bool is_path_bad, struct vxd_err *err)
{
    const struct vxd_http_view *view = find_view(exchange->http, url);
    struct vxd_server *server = exchange->http->server;
    enum vxd_status status;

    vxd_http_read_headers(exchange);
    exchange->n_expected = vxd_http_body_bytes(&exchange->headers);
    VXD_TRY(check_framing(exchange, is_path_bad, err));
    if (view == NULL || !view->is_public) {
        VXD_TRY(vxd_http_guard(exchange, version, err));
    }
    VXD_TRY(route(exchange, url, &view, err));
    if (strcmp(exchange->verb, MHD_HTTP_METHOD_OPTIONS) == 0) {
        vxd_http_set_static(exchange, MHD_HTTP_NO_CONTENT, NULL, "", 0);
        vxd_http_add_header(exchange, MHD_HTTP_HEADER_ALLOW, exchange->allow);
        return VXD_OK;
    }
    exchange->allow = NULL;
    if (view != NULL) {
        return answer_view(exchange, view, err);
    }
    VXD_TRY(vxd_http_check_body(exchange, err));
    if (exchange->is_events) {
        VXD_TRY(vxd_http_events_open(exchange, err));
    }
    if (exchange->file != NULL) {
        VXD_TRY(vxd_http_read_file(exchange, err));
        if (exchange->response != NULL) {
            return VXD_OK;
        }
    }
    VXD_TRY(create_request(exchange, err));
    VXD_TRY(vxd_request_admit_upload(exchange->request, exchange->method,
                                     exchange->n_expected, err));
    VXD_TRY(vxd_upload_memory_create(server, exchange->n_expected, &exchange->body, err));
out:
    return status;
}

/* An upload may pause no longer than its request may take: its buffer is reserved. */
static void limit_pause(struct vxd_http_exchange *exchange)
{
    int64_t left_ns = exchange->request->deadline_ns - vxd_clock_ns();
    unsigned left_s = left_ns > 0 ? (unsigned)(left_ns / 1000000000) + 1 : 1;

    (void)MHD_set_connection_option(exchange->connection, MHD_CONNECTION_OPTION_TIMEOUT,
                                    left_s < IDLE_TIMEOUT_S ? left_s : IDLE_TIMEOUT_S);
}

/* True when the peer has closed and nothing of it is left to read. libmicrohttpd misses
 * an end that arrived before its last, partial read (its epoll is edge-triggered), and
 * would keep the buffer until the connection times out. */
static bool has_ended(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    char byte;

    return info != NULL && recv(info->connect_fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

static enum MHD_Result send_response(struct vxd_http_exchange *exchange)
{
    if (exchange->response == NULL) {
        return MHD_NO; /* no memory even for an error: closes the connection */
    }
    return MHD_queue_response(exchange->connection, exchange->status, exchange->response);
}

static enum MHD_Result begin(struct vxd_http *http, struct MHD_Connection *connection,
                             const char *url, const char *verb, const char *version,
                             bool is_path_bad, void **context)
{
    struct vxd_http_exchange *exchange =
        vxd_http_is_accepted(http, connection) ? calloc(1, sizeof *exchange) : NULL;
    struct vxd_err err = {0};

    *context = exchange;
    if (exchange == NULL) {
        return MHD_NO;
    }
    exchange->http = http;
    exchange->connection = connection;
    exchange->verb = verb;
    exchange->url = url;
    atomic_init(&exchange->references, 1);
    atomic_fetch_add(&http->n_exchanges, 1);
    if (examine(exchange, url, version, is_path_bad, &err) != VXD_OK) {
        fail(exchange, &err);
    }
    if (exchange->must_close) {
        vxd_http_add_header(exchange, MHD_HTTP_HEADER_CONNECTION, "close");
        return send_response(exchange);
    }
    if (exchange->request != NULL) {
        limit_pause(exchange);
        return MHD_YES;
    }
    if (exchange->headers.expect != NULL) {
        return send_response(exchange); /* so that the body is not sent */
    }
    /* An answer that is given here ends the connection; one after the body does not. */
    return exchange->n_expected <= SWALLOW_BYTES &&
                   exchange->headers.transfer_encoding == NULL
               ? MHD_YES
               : vxd_http_refuse_body(exchange);
}

/* An upload whose time is over, its own or the server's, is answered before it is
 * complete. */
static enum MHD_Result check_upload(struct vxd_http_exchange *exchange)
{
    struct vxd_err err = {0};

    if (vxd_clock_ns() > exchange->request->deadline_ns) {
        (void)vxd_fail(&err, VXD_DEADLINE_EXCEEDED, "header.timeout_ms",
                       "the time was over with %zu of %zu bytes received",
                       exchange->n_received, exchange->n_expected);
    } else if (atomic_load(&exchange->http->stopping)) {
        (void)vxd_fail(&err, VXD_UNAVAILABLE, NULL,
                       "the server shut down with %zu of %zu bytes received",
                       exchange->n_received, exchange->n_expected);
    } else {
        return MHD_YES;
    }
    fail(exchange, &err);
    return vxd_http_refuse_body(exchange);
}

static enum MHD_Result take_piece(struct vxd_http_exchange *exchange, const char *bytes,
                                  size_t *n_bytes)
{
    struct vxd_err err = {0};

    if (exchange->request != NULL && check_upload(exchange) != MHD_YES) {
        return MHD_NO;
    }
    if (exchange->linger_until_ns != 0) {
        *n_bytes = 0;
        return vxd_clock_ns() < exchange->linger_until_ns ? MHD_YES : MHD_NO;
    }
    if (*n_bytes > exchange->n_expected - exchange->n_received) {
        return MHD_NO;
    }
    if (exchange->request != NULL) {
        if (vxd_request_receive(exchange->request, *n_bytes, &err) != VXD_OK) {
            fail(exchange, &err);
            *n_bytes = 0;
            return vxd_http_refuse_body(exchange);
        }
        memcpy(exchange->body.bytes + exchange->n_received, bytes, *n_bytes);
    }
    vxd_http_peer_waits(exchange->http, vxd_http_peer_of(exchange->connection));
    exchange->n_received += *n_bytes;
    *n_bytes = 0;
    if (exchange->n_received < exchange->n_expected && has_ended(exchange->connection)) {
        return MHD_NO;
    }
    return MHD_YES;
}

static enum MHD_Result run_request(struct vxd_http_exchange *exchange)
{
    struct vxd_request *request = exchange->request;
    struct vxd_body body = {.kind = exchange->body_kind,
                            .bytes = exchange->body.bytes,
                            .n_bytes = exchange->n_received,
                            .is_locked = exchange->body.block.ptr != NULL,
                            .format = exchange->format,
                            .boundary =
                                exchange->boundary[0] != '\0' ? exchange->boundary : NULL,
                            .query = exchange->query,
                            .n_query = exchange->n_query};

    if (exchange->n_expected == 0) {
        bool is_json = exchange->body_kind == VXD_BODY_JSON;

        body.bytes = (const uint8_t *)(is_json ? "{}" : "");
        body.n_bytes = is_json ? 2 : 0;
        if (exchange->file_body != NULL) {
            body.bytes = (const uint8_t *)exchange->file_body;
            body.n_bytes = strlen(exchange->file_body);
        } else if (exchange->get_body[0] != '\0') {
            body.bytes = (const uint8_t *)exchange->get_body;
            body.n_bytes = strlen(exchange->get_body);
        }
        if (exchange->events != NULL) {
            body.bytes = (const uint8_t *)vxd_http_events_body(exchange->events);
            body.n_bytes = strlen(vxd_http_events_body(exchange->events));
        }
    }
    vxd_upload_memory_complete(request->server, &exchange->body);
    vxd_http_peer_is_served(exchange->http, vxd_http_peer_of(exchange->connection));
    (void)MHD_set_connection_option(exchange->connection, MHD_CONNECTION_OPTION_TIMEOUT,
                                    IDLE_TIMEOUT_S);
    exchange->request = NULL;
    exchange->suspended = true;
    MHD_suspend_connection(exchange->connection);
    if (request->lane != VXD_LANE_NONE) {
        vxd_http_hangup_watch(exchange->http, exchange->connection, request);
    }
    if (body.kind == VXD_BODY_FILE && body.n_bytes > SMALL_FILE_BYTES) {
        vxd_http_decode(exchange->http->decoders, request, &body);
    } else {
        vxd_request_submit(request, &body);
    }
    return MHD_YES;
}

/* The context of a request whose path must not be decoded; on_uri sets it. */
static char bad_path;

/* Looks at the path as it came, since the library shows it decoded. */
static void *on_uri(void *cls, const char *uri, struct MHD_Connection *connection)
{
    (void)cls;
    (void)connection;
    for (; *uri != '\0' && *uri != '?'; uri++) {
        if (*uri == '%' && (strspn(uri + 1, "0123456789abcdefABCDEF") < 2 ||
                            strncmp(uri, "%00", 3) == 0 || strncmp(uri, "%2f", 3) == 0 ||
                            strncmp(uri, "%2F", 3) == 0)) {
            return &bad_path;
        }
    }
    return NULL;
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *connection,
                                  const char *url, const char *verb, const char *version,
                                  const char *upload, size_t *upload_bytes,
                                  void **context)
{
    bool is_path_bad = *context == &bad_path;
    struct vxd_http_exchange *exchange = is_path_bad ? NULL : *context;

    if (exchange == NULL) {
        return begin(cls, connection, url, verb, version, is_path_bad, context);
    }
    if (*upload_bytes > 0) {
        return take_piece(exchange, upload, upload_bytes);
    }
    if (exchange->request != NULL) {
        return run_request(exchange);
    }
    return exchange->linger_until_ns == 0 ? send_response(exchange) : MHD_NO;
}

static void on_completed(void *cls, struct MHD_Connection *connection, void **context,
                         enum MHD_RequestTerminationCode reason)
{
    struct vxd_http_exchange *exchange = *context == &bad_path ? NULL : *context;
    struct vxd_http *http = cls;
    struct vxd_err err = {0};

    if (reason == MHD_REQUEST_TERMINATED_COMPLETED_OK) {
        vxd_http_peer_waits(http, vxd_http_peer_of(connection));
    } else {
        vxd_http_peer_is_served(http, vxd_http_peer_of(connection));
    }
    if (exchange == NULL) {
        return;
    }
    *context = NULL;
    if (exchange->request != NULL) {
        exchange->abandoned = true;
        (void)vxd_fail(&err, VXD_CANCELLED, NULL,
                       "the connection ended with %zu of %zu bytes received",
                       exchange->n_received, exchange->n_expected);
        fail(exchange, &err);
    }
    vxd_http_events_end(exchange);
    vxd_foxglove_drop(exchange->foxglove);
    exchange->foxglove = NULL;
    vxd_http_exchange_drop(exchange);
    atomic_fetch_sub(&http->n_exchanges, 1);
}

__attribute__((format(printf, 2, 0))) static void
on_library_log(void *cls, const char *format, va_list args)
{
    char line[256];
    size_t n_bytes;

    (void)cls;
    if (vxd_log_get_level() > VXD_LOG_DEBUG) {
        return;
    }
    (void)vsnprintf(line, sizeof line, format, args);
    n_bytes = strlen(line);
    while (n_bytes > 0 && line[n_bytes - 1] == '\n') {
        line[--n_bytes] = '\0';
    }
    vxd_log(VXD_LOG_DEBUG, line);
}

static enum vxd_status start_daemon(struct vxd_http *http, struct vxd_err *err)
{
    const struct vxd_config *config = &http->server->config;
    unsigned n_connections = config->max_connections;
    unsigned n_threads =
        config->http_threads < n_connections ? config->http_threads : n_connections;
    /* With epoll, the library asks a peer whose handshake is unfinished again and again, all of a
     * core's time; with poll it waits for its bytes. */
    unsigned flags = (http->is_tls ? MHD_USE_TLS | MHD_USE_POLL_INTERNAL_THREAD
                                   : MHD_USE_EPOLL_INTERNAL_THREAD) |
                     MHD_ALLOW_SUSPEND_RESUME | MHD_ALLOW_UPGRADE | MHD_USE_ERROR_LOG |
                     MHD_USE_NO_LISTEN_SOCKET | MHD_USE_ITC;
    /* Options that not every daemon has. */
    struct MHD_OptionItem others[4];
    size_t n_others = 0;

    if (n_threads >= 2) { /* one thread is the daemon's own */
        others[n_others++] = (struct MHD_OptionItem){MHD_OPTION_THREAD_POOL_SIZE,
                                                     (intptr_t)n_threads, NULL};
    }
    if (http->is_tls) {
        others[n_others++] = (struct MHD_OptionItem){
            MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)(uintptr_t)VXD_TLS_PRIORITIES};
        others[n_others++] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_CERT_CALLBACK2, 0,
                                                     (void *)(uintptr_t)vxd_tls_retrieve};
    }
    others[n_others] = (struct MHD_OptionItem){MHD_OPTION_END, 0, NULL};
    /* The library divides its limit among its threads, and closes what one of them has too many of; the
     * acceptor sees to the limit of all of them. */
    http->daemon = MHD_start_daemon(
        flags, 0, NULL, NULL, on_request, http, MHD_OPTION_EXTERNAL_LOGGER,
        on_library_log, NULL, MHD_OPTION_CONNECTION_LIMIT, n_connections * n_threads,
        MHD_OPTION_CONNECTION_TIMEOUT, IDLE_TIMEOUT_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)CONNECTION_BYTES, MHD_OPTION_NOTIFY_COMPLETED, on_completed, http,
        MHD_OPTION_NOTIFY_CONNECTION, vxd_http_on_connection, http,
        MHD_OPTION_URI_LOG_CALLBACK, on_uri, http, MHD_OPTION_STRICT_FOR_CLIENT, 1,
        MHD_OPTION_ARRAY, others, MHD_OPTION_END);
    if (http->daemon == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, http->field,
                        "cannot start %u HTTP threads", n_threads);
    }
    return VXD_OK;
}

static void destroy(struct vxd_http *http)
{
    if (http->unix_path[0] != '\0') {
        (void)unlink(http->unix_path);
    }
    if (http->listen_fd >= 0) {
        (void)close(http->listen_fd);
    }
    vxd_http_hangups_stop(http);
    vxd_http_decoders_destroy(http->decoders);
    vxd_sockets_destroy(http->sockets);
    (void)pthread_mutex_destroy(&http->peers_lock);
    free(http);
}

static enum vxd_status start(struct vxd_server *server, bool is_foxglove, int passed_fd,
                             struct vxd_http **out, struct vxd_err *err)
{
    struct vxd_http *http = calloc(1, sizeof *http);
    enum vxd_status status;

    if (http == NULL) {
        if (passed_fd >= 0) {
            (void)close(passed_fd);
        }
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for the transport");
    }
    http->server = server;
    http->is_foxglove = is_foxglove;
    http->field = is_foxglove ? "listen.foxglove" : "listen.http";
    http->address = is_foxglove ? server->config.foxglove : server->config.http;
    http->is_tls = vxd_config_http_is_tls(http->address);
    http->bound = is_foxglove ? server->foxglove_bound : server->http_bound;
    http->listen_fd = passed_fd;
    http->accept_stop_fd = -1;
    http->is_passed = passed_fd >= 0;
    (void)pthread_mutex_init(&http->peers_lock, NULL);
    VXD_TRY(vxd_http_listen(http, err));
    VXD_TRY(vxd_http_hangups_start(http, err));
    if (!is_foxglove) { /* whose viewers send no files */
        VXD_TRY(
            vxd_http_decoders_start(server->config.http_threads, &http->decoders, err));
    }
    VXD_TRY(vxd_sockets_start(&http->sockets, err));
    VXD_TRY(start_daemon(http, err));
    VXD_TRY(vxd_http_accept_start(http, err));
    *out = http;
out:
    if (status != VXD_OK) {
        vxd_http_accept_stop(http);
        if (http->daemon != NULL) {
            MHD_stop_daemon(http->daemon);
        }
        destroy(http);
    }
    return status;
}

enum vxd_status vxd_http_start(struct vxd_server *server, int passed_fd,
                               struct vxd_http **out, struct vxd_err *err)
{
    return start(server, false, passed_fd, out, err);
}

enum vxd_status vxd_http_start_foxglove(struct vxd_server *server, struct vxd_http **out,
                                        struct vxd_err *err)
{
    return start(server, true, -1, out, err);
}

void vxd_http_refuse_new(struct vxd_http *http)
{
    if (http->accepts) {
        vxd_http_accept_stop(http);
        /* The kernel refuses what would wait in its queue. */
        if (!http->is_passed) {
            (void)shutdown(http->listen_fd, SHUT_RDWR);
        }
    }
}

size_t vxd_http_count_connections(const struct vxd_http *http)
{
    const union MHD_DaemonInfo *info =
        MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS);

    return info != NULL ? info->num_connections : 0;
}

void vxd_http_stop(struct vxd_http *http)
{
    const struct timespec step = {.tv_nsec = STOP_STEP_MS * 1000000L};
    int64_t until_ns = vxd_clock_ns() + STOP_TIMEOUT_MS * INT64_C(1000000);

    vxd_http_refuse_new(http);
    atomic_store(&http->stopping, true);
    vxd_sockets_stop(http->sockets);
    vxd_http_decoders_stop(http->decoders);
    /* Every request has been answered, so nothing stays suspended; what is left are
     * replies on their way and bodies still coming. */
    while (atomic_load(&http->n_exchanges) > 0 && vxd_clock_ns() < until_ns) {
        (void)nanosleep(&step, NULL);
    }
    MHD_stop_daemon(http->daemon);
    destroy(http);
}
