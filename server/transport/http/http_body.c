// SPDX-License-Identifier: Apache-2.0
/* Reads what a request says about its body and about itself, before the body is read. */
#include "server/transport/http/http_internal.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "proto/base/name.h"

#define BEARER "Bearer "

enum content {
    CONTENT_NONE,
    CONTENT_JSON,
    CONTENT_PROTOBUF,
    CONTENT_FILE,
    CONTENT_FORM,  /* what curl --data-binary sends by default */
    CONTENT_PARTS, /* multipart/form-data: what curl -F sends, and a page's form can */
    CONTENT_TEXT   /* text and other multipart: what a page's form can send */
};

/* Decimal digits only, at most `limit`, which is above 9. */
static bool parse_number(const char *text, uint64_t limit, uint64_t *out)
{
    uint64_t value = 0;

    if (*text == '\0') {
        return false;
    }
    for (; *text != '\0'; text++) {
        unsigned digit = (unsigned)(*text - '0');

        if (*text < '0' || *text > '9' || value > (limit - digit) / 10) {
            return false;
        }
        value = value * 10 + digit;
    }
    *out = value;
    return true;
}

size_t vxd_http_body_bytes(const struct vxd_http_headers *headers)
{
    uint64_t n_bytes = 0;

    if (headers->content_length == NULL || headers->transfer_encoding != NULL ||
        !parse_number(headers->content_length, SIZE_MAX, &n_bytes)) {
        return 0;
    }
    return (size_t)n_bytes;
}

static enum content classify(const char *content_type)
{
    size_t n = content_type != NULL ? strcspn(content_type, "; \t") : 0;

    static const struct {
        const char *name;
        enum content content;
    } known[] = {
        {"application/json", CONTENT_JSON},
        {"application/x-protobuf", CONTENT_PROTOBUF},
        {"application/protobuf", CONTENT_PROTOBUF},
        {"application/x-www-form-urlencoded", CONTENT_FORM},
        {"multipart/form-data", CONTENT_PARTS},
    };

    if (n == 0) {
        return CONTENT_NONE;
    }
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (n == strlen(known[i].name) &&
            strncasecmp(content_type, known[i].name, n) == 0) {
            return known[i].content;
        }
    }
    return strncasecmp(content_type, "application/", 12) == 0 ||
                   strncasecmp(content_type, "image/", 6) == 0 ||
                   strncasecmp(content_type, "model/", 6) == 0
               ? CONTENT_FILE
               : CONTENT_TEXT;
}

struct query_reader {
    struct vxd_http_exchange *exchange;
    size_t n_bytes; /* of all strings with their ends */
    char *at;       /* second pass: where the next string goes */
    size_t n_items;
    const char *duplicate;
};

static enum MHD_Result measure_item(void *cls, enum MHD_ValueKind kind, const char *key,
                                    const char *value)
{
    struct query_reader *reader = cls;

    (void)kind;
    reader->n_items++;
    reader->n_bytes += strlen(key) + 1 + (value != NULL ? strlen(value) : 0) + 1;
    return MHD_YES;
}

static const char *keep(struct query_reader *reader, const char *text)
{
    size_t n_bytes = strlen(text) + 1;
    char *kept = reader->at;

    memcpy(kept, text, n_bytes);
    reader->at += n_bytes;
    return kept;
}

static enum MHD_Result keep_item(void *cls, enum MHD_ValueKind kind, const char *key,
                                 const char *value)
{
    struct query_reader *reader = cls;
    struct vxd_http_exchange *exchange = reader->exchange;
    bool is_format = strcmp(key, "format") == 0;

    (void)kind;
    for (size_t i = 0; i < exchange->n_query; i++) {
        if (strcmp(exchange->query[i].key, key) == 0) {
            reader->duplicate = exchange->query[i].key;
        }
    }
    if (is_format && exchange->format != NULL) {
        reader->duplicate = "format";
    }
    if (is_format) {
        exchange->format = keep(reader, value != NULL ? value : "");
    } else {
        struct vxd_query_item *item = &exchange->query[exchange->n_query++];

        item->key = keep(reader, key);
        item->value = keep(reader, value != NULL ? value : "");
    }
    return MHD_YES;
}

/* Copies the query string's items: they are used until the request ends, which may be
 * after the connection has. */
enum vxd_status vxd_http_read_query(struct vxd_http_exchange *exchange,
                                    struct vxd_err *err)
{
    struct query_reader reader = {.exchange = exchange};

    (void)MHD_get_connection_values(exchange->connection, MHD_GET_ARGUMENT_KIND,
                                    measure_item, &reader);
    if (reader.n_items == 0) {
        return VXD_OK;
    }
    if (reader.n_items > VXD_HTTP_MAX_QUERY) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "query",
                        "has %zu parameters; at most %d are possible", reader.n_items,
                        VXD_HTTP_MAX_QUERY);
    }
    exchange->query_text = malloc(reader.n_bytes);
    if (exchange->query_text == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "query", "no memory");
    }
    reader.at = exchange->query_text;
    (void)MHD_get_connection_values(exchange->connection, MHD_GET_ARGUMENT_KIND,
                                    keep_item, &reader);
    if (reader.duplicate != NULL) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, reader.duplicate,
                        "the parameter is given more than once");
    }
    return VXD_OK;
}

static enum vxd_status wrong_type(struct vxd_http_exchange *exchange, struct vxd_err *err)
{
    const char *type = exchange->headers.content_type;

    exchange->fixed_status = MHD_HTTP_UNSUPPORTED_MEDIA_TYPE;
    return vxd_fail(err, VXD_INVALID_ARGUMENT, "Content-Type",
                    "'%.80s' is not possible here; send application/json, "
                    "application/x-protobuf, or a file with ?format= as "
                    "application/octet-stream",
                    type != NULL ? type : "");
}

/* Forms in parts are for programs. Every browser says with each form where it comes from, so one
 * that says so is a page's, and is refused. */
static enum vxd_status check_parts(struct vxd_http_exchange *exchange,
                                   struct vxd_err *err)
{
    static const char *const of_pages[] = {"Origin", "Referer", "Cookie",
                                           "Sec-Fetch-Site"};

    if (!exchange->method->takes_parts) {
        return wrong_type(exchange, err);
    }
    for (size_t i = 0; i < sizeof of_pages / sizeof of_pages[0]; i++) {
        if (MHD_lookup_connection_value(exchange->connection, MHD_HEADER_KIND,
                                        of_pages[i]) != NULL) {
            exchange->fixed_status = MHD_HTTP_UNSUPPORTED_MEDIA_TYPE;
            return vxd_fail(err, VXD_INVALID_ARGUMENT, "Content-Type",
                            "multipart/form-data is not possible with %s, which pages "
                            "send; they send application/x-protobuf",
                            of_pages[i]);
        }
    }
    if (!vxd_multipart_boundary(exchange->headers.content_type, exchange->boundary)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "Content-Type",
                        "'%.80s' has no boundary of 1 to 70 allowed characters",
                        exchange->headers.content_type);
    }
    exchange->format = exchange->format != NULL ? exchange->format : "";
    exchange->body_kind = VXD_BODY_FILE;
    return VXD_OK;
}

/* A page of another site can send forms, texts and bodies without a type unasked; so these
 * never change anything, whatever Origin says. */
static enum vxd_status check_type(struct vxd_http_exchange *exchange, struct vxd_err *err)
{
    enum content content = classify(exchange->headers.content_type);
    bool changes = exchange->method->lane == VXD_LANE_WRITE;

    if (content == CONTENT_JSON || content == CONTENT_PROTOBUF) {
        if (exchange->format != NULL || exchange->n_query > 0) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT,
                            exchange->format != NULL ? "format" : exchange->query[0].key,
                            "parameters in the URL go with file bodies, not with %.60s",
                            exchange->headers.content_type);
        }
        exchange->body_kind = content == CONTENT_JSON ? VXD_BODY_JSON : VXD_BODY_PROTOBUF;
        return VXD_OK;
    }
    if (content == CONTENT_PARTS) {
        return check_parts(exchange, err);
    }
    if (exchange->format == NULL || content == CONTENT_TEXT ||
        (content != CONTENT_FILE && changes)) {
        return wrong_type(exchange, err);
    }
    if (exchange->method->from_file == NULL) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "format", "%s takes no files",
                        exchange->method->name);
    }
    exchange->body_kind = VXD_BODY_FILE;
    return VXD_OK;
}

static enum vxd_status too_large(struct vxd_http_exchange *exchange, const char *what,
                                 uint64_t limit, struct vxd_err *err)
{
    exchange->fixed_status = MHD_HTTP_CONTENT_TOO_LARGE;
    return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "Content-Length",
                    "the body has %.20s bytes; %s may have %llu",
                    exchange->headers.content_length, what, (unsigned long long)limit);
}

static enum vxd_status check_length(struct vxd_http_exchange *exchange,
                                    struct vxd_err *err)
{
    const struct vxd_http_headers *headers = &exchange->headers;
    uint64_t limit = exchange->http->server->config.max_message_bytes;

    if (headers->content_length == NULL || headers->transfer_encoding != NULL) {
        exchange->fixed_status = MHD_HTTP_LENGTH_REQUIRED;
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "Content-Length",
                        "the body's length is required; chunked bodies are not possible");
    }
    if (exchange->n_expected > limit) {
        return too_large(exchange, "a request", limit, err);
    }
    if (exchange->body_kind == VXD_BODY_JSON &&
        exchange->n_expected > VXD_JSON_MAX_BYTES) {
        return too_large(exchange, "JSON", VXD_JSON_MAX_BYTES, err);
    }
    return VXD_OK;
}

enum vxd_status vxd_http_check_body(struct vxd_http_exchange *exchange,
                                    struct vxd_err *err)
{
    const struct vxd_http_headers *headers = &exchange->headers;
    enum vxd_http_format fallback = VXD_HTTP_JSON;
    enum vxd_status status;

    if (strcmp(exchange->verb, MHD_HTTP_METHOD_POST) == 0) {
        VXD_TRY(vxd_http_read_query(exchange, err));
        VXD_TRY(check_type(exchange, err));
        VXD_TRY(check_length(exchange, err));
        if (exchange->body_kind == VXD_BODY_PROTOBUF) {
            fallback = VXD_HTTP_PROTOBUF;
        }
    } else {
        if (exchange->n_expected > 0 || headers->transfer_encoding != NULL) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, "Content-Length",
                            "%s goes without a body", exchange->verb);
        }
        exchange->body_kind = VXD_BODY_JSON;
        status = VXD_OK;
    }
    exchange->reply_format = vxd_http_accept(headers->accept, fallback);
out:
    return status;
}

enum vxd_status vxd_http_token(struct vxd_http_exchange *exchange, const char **token,
                               struct vxd_err *err)
{
    const char *value = exchange->headers.authorization;

    *token = NULL;
    if (value == NULL && exchange->headers.upgrade != NULL) {
        return vxd_http_socket_token(exchange, token, err);
    }
    if (value == NULL) {
        return vxd_http_cookie_token(exchange, token, err);
    }
    if (strncasecmp(value, BEARER, strlen(BEARER)) != 0) {
        return vxd_fail(err, VXD_UNAUTHENTICATED, "Authorization",
                        "must be: Bearer TOKEN");
    }
    *token = value + strlen(BEARER);
    return VXD_OK;
}

/* Reads one numeric header; where it is absent, *out stays as it is. */
static enum vxd_status read_number(const char *name, const char *text, uint64_t limit,
                                   uint64_t *out, struct vxd_err *err)
{
    if (text == NULL || parse_number(text, limit, out)) {
        return VXD_OK;
    }
    return vxd_fail(err, VXD_INVALID_ARGUMENT, name,
                    "'%.40s' is no whole number from 0 to %llu", text,
                    (unsigned long long)limit);
}

static enum vxd_status read_request_header(struct vxd_http_exchange *exchange,
                                           struct vxd_request_header *out,
                                           struct vxd_err *err)
{
    const struct vxd_http_headers *headers = &exchange->headers;
    uint64_t timeout_ms = 0;
    uint64_t keep_last = 0;
    uint64_t max_age_ms = 0;
    enum vxd_status status;

    out->idempotency_key = headers->idempotency_key;
    out->request_id = headers->request_id;
    out->client_id = headers->client_id;
    out->stream = headers->stream;
    out->traceparent = headers->traceparent;
    VXD_TRY(read_number("X-Voxeld-Timeout-Ms", headers->timeout_ms, UINT32_MAX,
                        &timeout_ms, err));
    VXD_TRY(read_number("X-Voxeld-Keep-Last", headers->keep_last, UINT32_MAX, &keep_last,
                        err));
    VXD_TRY(read_number("X-Voxeld-Max-Age-Ms", headers->max_age_ms, UINT32_MAX,
                        &max_age_ms, err));
    out->timeout_ms = (uint32_t)timeout_ms;
    out->keep_last = (uint32_t)keep_last;
    out->max_age_ms = (uint32_t)max_age_ms;
    status = vxd_http_token(exchange, &out->token, err);
out:
    return status;
}

/* The header's fields have other names over HTTP. */
static void rename_field(struct vxd_err *err)
{
    static const char *const names[][2] = {
        {"header.request_id", "X-Request-Id"},
        {"header.token", "Authorization"},
        {"header.client_id", "X-Voxeld-Client-Id"},
        {"header.idempotency_key", "Idempotency-Key"},
        {"header.stream", "X-Voxeld-Stream"},
        {"header.keep_last", "X-Voxeld-Keep-Last"},
        {"header.timeout_ms", "X-Voxeld-Timeout-Ms"},
        {"header.max_age_ms", "X-Voxeld-Max-Age-Ms"},
    };

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(err->field, names[i][0]) == 0) {
            (void)snprintf(err->field, sizeof err->field, "%s", names[i][1]);
        }
    }
}

void vxd_http_peer_name(const struct vxd_http_exchange *exchange,
                        char out[VXD_NAME_BYTES])
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(exchange->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    char host[INET6_ADDRSTRLEN] = "unknown";
    uint16_t port = 0;

    if (exchange->http->unix_path[0] != '\0') {
        (void)snprintf(out, VXD_NAME_BYTES, "http unix");
        return;
    }
    if (info != NULL && info->client_addr != NULL) {
        vxd_http_address(info->client_addr, host, sizeof host, &port);
    }
    (void)snprintf(out, VXD_NAME_BYTES, "http %s:%u", host, port);
}

enum vxd_status vxd_http_identify(const struct vxd_http_exchange *exchange,
                                  const char *token, struct vxd_principal *out,
                                  struct vxd_err *err)
{
    struct vxd_auth *auth = exchange->http->server->auth;
    const char *certified = vxd_http_certified(exchange);
    char name[VXD_NAME_BYTES];

    if ((token == NULL || token[0] == '\0') && certified[0] != '\0') {
        return vxd_auth_identify_certified(auth, certified, out, err);
    }
    vxd_http_peer_name(exchange, name);
    return vxd_auth_identify(auth, token, name, vxd_http_peer_uid(exchange), out, err);
}

enum vxd_status vxd_http_create_request(struct vxd_http_exchange *exchange,
                                        struct vxd_err *err)
{
    struct vxd_request_header header = {.peer_uid = vxd_http_peer_uid(exchange),
                                        .certified = vxd_http_certified(exchange)};
    struct vxd_err create_err = {0};
    char peer[VXD_NAME_BYTES];
    enum vxd_status status, create_status;

    vxd_http_peer_name(exchange, peer);
    header.peer = peer;
    status = read_request_header(exchange, &header, err);
    create_status = vxd_request_create(exchange->http->server, &header,
                                       &exchange->request, &create_err);
    if (status == VXD_OK && create_status != VXD_OK) {
        status = create_status;
        *err = create_err;
        rename_field(err);
    }
    return status;
}
