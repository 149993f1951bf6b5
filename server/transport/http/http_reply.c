// SPDX-License-Identifier: Apache-2.0
/* Answers over HTTP: JSON, protobuf or safetensors, and errors, which are always JSON. */
#include "server/transport/http/http_internal.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "gpu/core/core.h"
#include "proto/wire/wire.h"

#define TYPE_JSON "application/json"
#define TYPE_PROTOBUF "application/x-protobuf"
#define TYPE_SAFETENSORS "application/x-safetensors"
#define FULL_QUALITY 1000

static const struct {
    const char *name;
    enum vxd_http_format format;
} known_types[] = {
    {TYPE_JSON, VXD_HTTP_JSON},
    {TYPE_PROTOBUF, VXD_HTTP_PROTOBUF},
    {"application/protobuf", VXD_HTTP_PROTOBUF},
    {TYPE_SAFETENSORS, VXD_HTTP_SAFETENSORS},
};

/* Reads "q=0.5" among the parameters of one media range, in thousandths. */
static int read_quality(const char *range, size_t n_bytes)
{
    for (size_t i = 0; i + 2 < n_bytes; i++) {
        int quality = 0;
        int scale = FULL_QUALITY;

        if (range[i] != ';') {
            continue;
        }
        i++;
        while (i < n_bytes && (range[i] == ' ' || range[i] == '\t')) {
            i++;
        }
        if (i + 2 >= n_bytes || (range[i] != 'q' && range[i] != 'Q') ||
            range[i + 1] != '=') {
            i--;
            continue;
        }
        for (i += 2; i < n_bytes && scale > 0; i++) {
            if (range[i] >= '0' && range[i] <= '9') {
                quality += (range[i] - '0') * scale;
                scale /= 10;
            } else if (range[i] != '.') {
                break;
            }
        }
        return quality < FULL_QUALITY ? quality : FULL_QUALITY;
    }
    return FULL_QUALITY;
}

enum vxd_http_format vxd_http_accept(const char *accept, enum vxd_http_format fallback)
{
    enum vxd_http_format best = fallback;
    int best_quality = 0;

    while (accept != NULL && *accept != '\0') {
        size_t n_bytes = strcspn(accept, ",");
        size_t skip = strspn(accept, " \t");
        const char *range = accept + (skip < n_bytes ? skip : n_bytes);
        size_t n_range = n_bytes - (size_t)(range - accept);
        size_t n_name = strcspn(range, "; \t,");
        int quality = read_quality(range, n_range);

        for (size_t i = 0; i < sizeof known_types / sizeof known_types[0]; i++) {
            if (n_name == strlen(known_types[i].name) &&
                strncasecmp(range, known_types[i].name, n_name) == 0 &&
                quality > best_quality) {
                best = known_types[i].format;
                best_quality = quality;
            }
        }
        if (quality > best_quality &&
            ((n_name == 3 && strncmp(range, "*/*", 3) == 0) ||
             (n_name == 13 && strncasecmp(range, "application/*", 13) == 0))) {
            best = fallback;
            best_quality = quality;
        }
        accept += n_bytes + (accept[n_bytes] == ',' ? 1 : 0);
    }
    return best;
}

void vxd_http_add_header(struct vxd_http_exchange *exchange, const char *name,
                         const char *value)
{
    if (exchange->response != NULL) {
        (void)MHD_add_response_header(exchange->response, name, value);
    }
}

/* Headers that every answer has. */
static void finish_response(struct vxd_http_exchange *exchange, unsigned status,
                            const char *content_type)
{
    const struct vxd_server *server = exchange->http->server;

    exchange->status = status;
    if (content_type != NULL) {
        vxd_http_add_header(exchange, MHD_HTTP_HEADER_CONTENT_TYPE, content_type);
    }
    vxd_http_add_header(exchange, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    vxd_http_add_header(exchange, "X-Content-Type-Options", "nosniff");
    if (server->config.n_allowed_origins > 0) {
        vxd_http_add_header(exchange, MHD_HTTP_HEADER_VARY, "Origin");
    }
    if (exchange->cors_origin != NULL) {
        vxd_http_add_header(exchange, "Access-Control-Allow-Origin",
                            exchange->cors_origin);
        vxd_http_add_header(exchange, "Access-Control-Allow-Methods", "GET, HEAD, POST");
        vxd_http_add_header(exchange, "Access-Control-Allow-Headers",
                            "Authorization, Content-Type, X-Request-Id, Idempotency-Key, "
                            "X-Voxeld-Timeout-Ms, X-Voxeld-Client-Id, X-Voxeld-Stream, "
                            "X-Voxeld-Keep-Last, X-Voxeld-Max-Age-Ms, "
                            "traceparent");
        vxd_http_add_header(exchange, "Access-Control-Expose-Headers",
                            "X-Request-Id, Retry-After, Server-Timing, traceparent");
        vxd_http_add_header(exchange, "Access-Control-Max-Age", "600");
    }
    if (status == MHD_HTTP_SERVICE_UNAVAILABLE || status == MHD_HTTP_TOO_MANY_REQUESTS) {
        vxd_http_add_header(exchange, MHD_HTTP_HEADER_RETRY_AFTER, "1");
    }
    if (atomic_load(&server->state) > VXD_STATE_SERVING) {
        vxd_http_add_header(exchange, MHD_HTTP_HEADER_CONNECTION, "close");
    }
}

void vxd_http_set_bytes(struct vxd_http_exchange *exchange, unsigned status,
                        const char *content_type, char *take_bytes, size_t n_bytes)
{
    exchange->response =
        MHD_create_response_from_buffer(n_bytes, take_bytes, MHD_RESPMEM_MUST_FREE);
    if (exchange->response == NULL) {
        free(take_bytes);
        return;
    }
    exchange->bytes = take_bytes;
    exchange->n_bytes = n_bytes;
    finish_response(exchange, status, content_type);
}

void vxd_http_set_static(struct vxd_http_exchange *exchange, unsigned status,
                         const char *content_type, const char *bytes, size_t n_bytes)
{
    /* The library takes a pointer to non-const, and does not write through it. */
    exchange->response = MHD_create_response_from_buffer(
        n_bytes, (void *)(uintptr_t)bytes, MHD_RESPMEM_PERSISTENT);
    exchange->bytes = bytes;
    exchange->n_bytes = n_bytes;
    finish_response(exchange, status, content_type);
}

void vxd_http_set_stream(struct vxd_http_exchange *exchange, const char *content_type,
                         struct MHD_Response *take_response)
{
    exchange->response = take_response;
    finish_response(exchange, MHD_HTTP_OK, content_type);
}

static void append_member(struct vxd_text *text, const char *name, const char *value)
{
    vxd_text_printf(text, "%s\"%s\":", text->n_bytes == 0 ? "{" : ",", name);
    vxd_text_json_string(text, value, strlen(value));
}

void vxd_http_set_error(struct vxd_http_exchange *exchange, const char *request_id,
                        const struct vxd_err *err)
{
    unsigned status = exchange->fixed_status != 0 ? exchange->fixed_status
                                                  : (unsigned)vxd_http_status(err->code);
    struct vxd_text text = {0};

    append_member(&text, "code", vxd_status_name(err->code));
    append_member(&text, "message", err->message);
    append_member(&text, "field", err->field);
    append_member(&text, "request_id", request_id);
    vxd_text_append(&text, "}\n", 2);
    if (text.failed) {
        free(text.bytes);
        return;
    }
    vxd_http_set_bytes(exchange, status, TYPE_JSON, text.bytes, text.n_bytes);
    if (request_id[0] != '\0') {
        vxd_http_add_header(exchange, "X-Request-Id", request_id);
    }
    if (err->code == VXD_UNAUTHENTICATED) {
        vxd_http_add_header(exchange, MHD_HTTP_HEADER_WWW_AUTHENTICATE,
                            "Bearer realm=\"voxeld\"");
    }
    if (exchange->allow != NULL) {
        vxd_http_add_header(exchange, MHD_HTTP_HEADER_ALLOW, exchange->allow);
    }
}

/* Memory of a large reply: one of the engine's host blocks, whose pages are there already. */
struct big_reply {
    struct vxd_context *context;
    struct vxd_buffer block;
};

/* The library is done with it; on a thread of its own. */
static void free_big(void *user)
{
    struct big_reply *big = user;

    vxd_host_free(big->context, &big->block);
    free(big);
}

/* Makes the response of a large message that was measured. */
static enum vxd_status set_big(struct vxd_http_exchange *exchange,
                               const ProtobufCMessage *output,
                               struct vxd_encoder *written, size_t n_bytes,
                               struct vxd_err *err)
{
    struct big_reply *big = calloc(1, sizeof *big);
    enum vxd_status status;

    if (big == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for the reply");
    }
    big->context = exchange->http->server->context;
    status = vxd_host_alloc(big->context, n_bytes, &big->block, err);
    if (status != VXD_OK) {
        free(big);
        return status;
    }
    written->out = big->block.ptr;
    written->copy = vxd_parallel_copy;
    written->copy_context = vxd_context_pool(big->context);
    vxd_encode(written, output);
    exchange->bytes = big->block.ptr;
    exchange->n_bytes = n_bytes;
    exchange->response = MHD_create_response_from_buffer_with_free_callback_cls(
        n_bytes, big->block.ptr, free_big, big);
    if (exchange->response == NULL) {
        free_big(big);
        return VXD_OK; /* the connection is closed */
    }
    finish_response(exchange, MHD_HTTP_OK, TYPE_PROTOBUF);
    return VXD_OK;
}

/* Large arrays are copied once, to where a receiver whose body lies at a multiple of 16 can use
 * them in place. */
static enum vxd_status set_protobuf(struct vxd_http_exchange *exchange,
                                    const ProtobufCMessage *output, struct vxd_err *err)
{
    struct vxd_encoder measured = {.least_bytes = VXD_BIG_BLOCK_BYTES};
    struct vxd_encoder written = measured;

    vxd_encode(&measured, output);
    if (measured.at >= VXD_BIG_BLOCK_BYTES) {
        return set_big(exchange, output, &written, measured.at, err);
    }
    written.out = malloc(measured.at > 0 ? measured.at : 1);
    if (written.out == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for the reply");
    }
    vxd_encode(&written, output);
    vxd_http_set_bytes(exchange, MHD_HTTP_OK, TYPE_PROTOBUF, (char *)written.out,
                       measured.at);
    return VXD_OK;
}

/* Writes the output in the format that the client accepts. */
static enum vxd_status set_output(struct vxd_http_exchange *exchange,
                                  const ProtobufCMessage *output, struct vxd_err *err)
{
    struct vxd_text text = {0};
    uint8_t *bytes = NULL;
    size_t n_bytes = 0;
    const char *type = TYPE_JSON;
    enum vxd_status status = VXD_OK;

    if (exchange->file != NULL) {
        return vxd_http_set_file(exchange, output, err);
    }
    switch (exchange->reply_format) {
    case VXD_HTTP_JSON:
        status = vxd_json_write(output, &text, err);
        if (status != VXD_OK) {
            free(text.bytes);
            return status;
        }
        bytes = (uint8_t *)text.bytes;
        n_bytes = text.n_bytes;
        break;
    case VXD_HTTP_PROTOBUF:
        return set_protobuf(exchange, output, err);
    case VXD_HTTP_SAFETENSORS:
        type = TYPE_SAFETENSORS;
        VXD_TRY(vxd_safetensors_write(output, &bytes, &n_bytes, err));
        break;
    }
    vxd_http_set_bytes(exchange, MHD_HTTP_OK, type, (char *)bytes, n_bytes);
out:
    return status;
}

static enum vxd_status set_reply(struct vxd_http_exchange *exchange,
                                 const struct vxd_request *request,
                                 const ProtobufCMessage *output, struct vxd_err *err)
{
    return exchange->events != NULL
               ? vxd_http_events_begin(exchange, request, output, err)
               : set_output(exchange, output, err);
}

static void add_replay_headers(struct vxd_http_exchange *exchange,
                               const struct vxd_request *request)
{
    if (request->err.code != VXD_OK) {
        return;
    }
    if (atomic_load(&request->replayed)) {
        vxd_http_add_header(exchange, "Idempotency-Replayed", "true");
    }
    if (atomic_load(&request->arrays_dropped)) {
        vxd_http_add_header(exchange, "X-Voxeld-Arrays-Dropped", "true");
    }
}

void vxd_http_reply(struct vxd_request *request, const struct vxd_err *err,
                    const ProtobufCMessage *output)
{
    struct vxd_http_exchange *exchange = request->transport;
    struct vxd_err reply_err = *err;
    char timing[192];
    char traceparent[VXD_TRACEPARENT_BYTES];
    const struct vxd_stage_times *stages = &request->stages;

    if (exchange->abandoned) {
        return;
    }
    if (err->code == VXD_OK &&
        set_reply(exchange, request, output, &reply_err) == VXD_OK) {
        vxd_http_add_header(exchange, "X-Request-Id", request->id);
        add_replay_headers(exchange, request);
    } else {
        if (reply_err.code == VXD_RESOURCE_EXHAUSTED && err->code == VXD_OK &&
            exchange->events == NULL) {
            vxd_request_fail_reply(request, &reply_err);
        }
        vxd_http_set_error(exchange, request->id, &reply_err);
    }
    (void)snprintf(timing, sizeof timing,
                   "receive;dur=%.3f, decode;dur=%.3f, wait;dur=%.3f, engine;dur=%.3f, "
                   "commit;dur=%.3f, queue;dur=%.3f, total;dur=%.3f",
                   stages->receive_ms, stages->decode_ms, stages->wait_ms,
                   stages->engine_ms, stages->commit_ms, request->queue_ms,
                   request->total_ms);
    vxd_http_add_header(exchange, "Server-Timing", timing);
    vxd_trace_write(&request->trace, traceparent);
    if (traceparent[0] != '\0') {
        vxd_http_add_header(exchange, "traceparent", traceparent);
    }
    if (exchange->suspended) {
        vxd_http_hangup_forget(exchange->http, exchange->connection);
        MHD_resume_connection(exchange->connection);
    }
}
