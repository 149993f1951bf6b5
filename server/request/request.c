// SPDX-License-Identifier: Apache-2.0
/* A request has references of the caller (a transport, until it calls submit or fail), of
 * the scheduler while the request is in its list or on a lane, and of the timer while it
 * is watched. The last one to go frees the decoded message, gives the bytes back and lets
 * the transport discard the body. */
#include "server/request/request_life.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/clock.h"
#include "proto/base/name.h"
#include "proto/wire/wire.h"
#include "server/request/exactly_once.h"
#include "server/request/ranges/ranges.h"
#include "server/observe/log/log.h"
#include "server/request/request_prerequisite.h"
#include "server/request/request_why.h"
#include "server/instance/instance.h"
#include "server/observe/observe.h"

enum {
    DECODER_FACTOR =
        4, /* decoded messages may be larger than their bytes, up to this factor */
    DECODER_BASE_BYTES = 1024 * 1024,
    DECODER_LEAST_BYTES = 64 * 1024,
    REPLY_BYTES = 256 * 1024, /* of the decoder, for all of a reply but its arrays */
    BLOCK_HEAD_BYTES = 256,   /* what follows it keeps the engine's alignment */
    SLOW_MS = 1000
};

static bool is_name_or_empty(const char *text)
{
    return text[0] == '\0' || vxd_is_name(text);
}

static bool is_printable(const char *text)
{
    size_t n = 0;

    for (; text[n] != '\0'; n++) {
        if (text[n] < 0x20 || text[n] > 0x7e || n >= VXD_NAME_BYTES - 1) {
            return false;
        }
    }
    return true;
}

static void copy_text(char out[VXD_NAME_BYTES], const char *text)
{
    (void)snprintf(out, VXD_NAME_BYTES, "%s", text != NULL ? text : "");
}

/* Copies what is well-formed, so that the request can be answered whatever the header
 * says. */
static enum vxd_status take_header(struct vxd_request *request,
                                   const struct vxd_request_header *header,
                                   struct vxd_err *err)
{
    const char *id = header->request_id != NULL ? header->request_id : "";
    const char *client = header->client_id != NULL ? header->client_id : "";
    const char *stream = header->stream != NULL ? header->stream : "";
    const char *token = header->token != NULL ? header->token : "";
    const char *key = header->idempotency_key;
    uint32_t max_timeout_ms = atomic_load(&request->server->limits.max_timeout_ms);

    if (!is_printable(id)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "header.request_id",
                        "must be at most %d printable ASCII characters",
                        VXD_NAME_BYTES - 1);
    }
    if (id[0] != '\0') {
        copy_text(request->id, id);
    }
    if (strlen(token) >= VXD_TOKEN_BYTES) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "header.token",
                        "has %zu bytes, at most %d are allowed", strlen(token),
                        VXD_TOKEN_BYTES - 1);
    }
    (void)snprintf(request->token, sizeof request->token, "%s", token);
    if (!is_name_or_empty(client)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "header.client_id",
                        "must be [a-z0-9][a-z0-9._-]{0,62}");
    }
    copy_text(request->client_id, client);
    if (!is_name_or_empty(stream)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "header.stream",
                        "must be [a-z0-9][a-z0-9._-]{0,62}");
    }
    copy_text(request->stream, stream);
    if (key != NULL && (key[0] == '\0' || !is_printable(key))) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "header.idempotency_key",
                        "must be 1 to %d printable ASCII characters", VXD_NAME_BYTES - 1);
    }
    copy_text(request->idempotency_key, key);
    if (header->keep_last > 0 && stream[0] == '\0') {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "header.keep_last",
                        "is %u, but it needs a stream", header->keep_last);
    }
    request->keep_last = header->keep_last;
    request->sequence = header->sequence;
    request->resends = header->resends;
    if (header->timeout_ms > max_timeout_ms) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "header.timeout_ms",
                        "is %u, at most %u is allowed (limits.max_timeout_ms)",
                        header->timeout_ms, max_timeout_ms);
    }
    request->has_own_timeout = header->timeout_ms > 0;
    if (header->timeout_ms > 0) {
        request->deadline_ns =
            request->received_ns + header->timeout_ms * INT64_C(1000000);
    }
    if (header->max_age_ms > 0) {
        request->max_age_ns =
            request->received_ns + header->max_age_ms * INT64_C(1000000);
    }
    return VXD_OK;
}

/* Of no other request, of this process or another one. */
static uint64_t span_number(const char *instance_id, uint64_t number)
{
    char digits[17];

    (void)snprintf(digits, sizeof digits, "%.16s", instance_id);
    return strtoull(digits, NULL, 16) + number;
}

enum vxd_status vxd_request_create(struct vxd_server *server,
                                   const struct vxd_request_header *header,
                                   struct vxd_request **out, struct vxd_err *err)
{
    struct vxd_request *request = calloc(1, sizeof *request);
    uint64_t number = atomic_fetch_add(&server->n_requests, 1) + 1;

    *out = request;
    if (request == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a request");
    }
    request->server = server;
    request->peer_uid = header->peer_uid;
    request->received_ns = vxd_clock_ns();
    request->began_ns = header->began_ns > 0 ? header->began_ns : request->received_ns;
    request->deadline_ns =
        request->received_ns +
        atomic_load(&server->limits.default_timeout_ms) * INT64_C(1000000);
    request->max_age_ns = INT64_MAX;
    (void)snprintf(request->id, sizeof request->id, "%.8s-%" PRIx64, server->instance_id,
                   number);
    copy_text(request->peer, header->peer);
    copy_text(request->certified, header->certified);
    (void)vxd_trace_read(header->traceparent, span_number(server->instance_id, number),
                         &request->trace);
    copy_text(request->principal.name, "unknown");
    atomic_init(&request->references, 1);
    atomic_fetch_add(&server->n_open, 1);
    return take_header(request, header, err);
}

/* Whether the sender's quota has place for the request, which counts as in flight from then on. */
static enum vxd_status begin_account(struct vxd_request *request, struct vxd_err *err)
{
    const struct vxd_principal *principal = &request->principal;
    enum vxd_status status = vxd_account_begin(
        principal->account, vxd_rules_quota(principal->rules), vxd_clock_ns(), err);

    request->is_counted = status == VXD_OK;
    if (status != VXD_OK) {
        vxd_metrics_count_rejected(request->server->metrics, "quota");
    }
    return status;
}

static void end_account(struct vxd_request *request)
{
    if (request->is_counted) {
        vxd_account_end(request->principal.account);
        request->is_counted = false;
    }
}

/* Reserves up to `most` and no less than `least` of the server's inflight bytes. */
static bool reserve(struct vxd_server *server, uint64_t least, uint64_t most,
                    uint64_t *taken)
{
    uint64_t limit = server->config.inflight_bytes;
    uint64_t used = atomic_load(&server->inflight_bytes);

    do {
        uint64_t left = used < limit ? limit - used : 0;

        if (left < least) {
            return false;
        }
        *taken = left < most ? left : most;
    } while (
        !atomic_compare_exchange_weak(&server->inflight_bytes, &used, used + *taken));
    return true;
}

static enum vxd_status fail_reserve(struct vxd_server *server, uint64_t n_bytes,
                                    struct vxd_err *err)
{
    vxd_metrics_count_rejected(server->metrics, "inflight_bytes");
    return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                    "%" PRIu64 " bytes more would exceed limits.inflight_bytes, %" PRIu64
                    "; try again later",
                    n_bytes, server->config.inflight_bytes);
}

/* Checks that new work is accepted at all. */
static enum vxd_status check_state(struct vxd_server *server, struct vxd_err *err)
{
    switch (atomic_load(&server->state)) {
    case VXD_STATE_RECOVERING:
        return vxd_fail(err, VXD_UNAVAILABLE, NULL,
                        "the server is starting: its data come back");
    case VXD_STATE_REFUSING:
        vxd_metrics_count_rejected(server->metrics, "draining");
        return vxd_fail(err, VXD_UNAVAILABLE, NULL, "the server is shutting down");
    case VXD_STATE_LOST:
        vxd_metrics_count_rejected(server->metrics, "lost");
        return vxd_fail(err, VXD_UNAVAILABLE, NULL,
                        "the GPU failed; the server restarts");
    default:
        return VXD_OK;
    }
}

/* Everything about an admission but the reservation of its bytes. */
static enum vxd_status check_admission(struct vxd_request *request,
                                       const struct vxd_method *method, size_t body_bytes,
                                       struct vxd_err *err)
{
    struct vxd_server *server = request->server;
    enum vxd_status status;

    request->method = method;
    request->lane = method != NULL ? method->lane : VXD_LANE_NONE;
    request->body_bytes = body_bytes;
    status = request->token[0] == '\0' && request->certified[0] != '\0'
                 ? vxd_auth_identify_certified(server->auth, request->certified,
                                               &request->principal, err)
                 : vxd_auth_identify(server->auth, request->token, request->peer,
                                     request->peer_uid, &request->principal, err);
    memset(request->token, 0, sizeof request->token);
    if (status != VXD_OK) {
        vxd_metrics_count_rejected(
            server->metrics, status == VXD_UNAUTHENTICATED ? "token" : "failed_logins");
        return status;
    }
    if (method == NULL) {
        return vxd_fail(err, VXD_UNIMPLEMENTED, NULL,
                        "this server, version " VXD_VERSION ", has no such method");
    }
    status = vxd_auth_require(&request->principal, method->scope, err);
    if (status == VXD_OK) {
        status = vxd_auth_require_method(&request->principal, method->name, err);
    }
    if (status != VXD_OK) {
        vxd_metrics_count_rejected(server->metrics, "permission_denied");
        return status;
    }
    status = check_state(server, err);
    if (status == VXD_OK) {
        status = begin_account(request, err);
    }
    if (status != VXD_OK) {
        return status;
    }
    if (body_bytes > server->config.max_message_bytes) {
        vxd_metrics_count_rejected(server->metrics, "message_bytes");
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                        "the message has %zu bytes, limits.message_bytes is %" PRIu64,
                        body_bytes, server->config.max_message_bytes);
    }
    return VXD_OK;
}

enum vxd_status vxd_request_admit(struct vxd_request *request,
                                  const struct vxd_method *method, size_t body_bytes,
                                  struct vxd_err *err)
{
    enum vxd_status status = check_admission(request, method, body_bytes, err);

    return status == VXD_OK ? vxd_request_receive(request, body_bytes, err) : status;
}

static bool has_number(const struct vxd_request *request)
{
    return request->idempotency_key[0] != '\0' ||
           (request->client_id[0] != '\0' && request->sequence > 0);
}

/* A full queue refuses a request before anything of it is decoded, since under overload
 * nearly every request ends here. Exempt are requests that supersede another, whose place
 * they take, those that repeat a request that ran or runs, and those that wait elsewhere. */
static enum vxd_status check_queue(struct vxd_request *request, struct vxd_err *err)
{
    const struct vxd_server *server = request->server;
    bool replaces = request->stream[0] != '\0' && request->keep_last > 0;
    bool may_repeat = request->method->changes != NULL && has_number(request);
    enum vxd_status status = VXD_OK;

    if (request->lane != VXD_LANE_NONE && !request->method->waits_apart && !replaces) {
        status = server->schedule->check_capacity(server->scheduler, request, err);
    }
    return status != VXD_OK && may_repeat && vxd_once_is_known(server->once, request)
               ? VXD_OK
               : status;
}

enum vxd_status vxd_request_admit_upload(struct vxd_request *request,
                                         const struct vxd_method *method,
                                         size_t body_bytes, struct vxd_err *err)
{
    struct vxd_server *server = request->server;
    uint64_t used = atomic_load(&server->inflight_bytes);
    enum vxd_status status = check_admission(request, method, body_bytes, err);

    if (status == VXD_OK && (used > server->config.inflight_bytes ||
                             body_bytes > server->config.inflight_bytes - used)) {
        return fail_reserve(server, body_bytes, err);
    }
    return status == VXD_OK ? check_queue(request, err) : status;
}

enum vxd_status vxd_request_receive(struct vxd_request *request, size_t n_bytes,
                                    struct vxd_err *err)
{
    uint64_t taken;

    if (!reserve(request->server, n_bytes, n_bytes, &taken)) {
        return fail_reserve(request->server, n_bytes, err);
    }
    request->reserved_bytes += taken;
    return VXD_OK;
}

/* Blocks of the decoder from the engine's host memory, so that on a GPU protobuf-c's own
 * copy lands in page-locked memory. The record of the block lies in front of it. */
static void *big_alloc(void *context, size_t n_bytes)
{
    struct vxd_buffer buffer;
    size_t n;

    if (!vxd_size_add(n_bytes, BLOCK_HEAD_BYTES, &n) ||
        vxd_host_alloc(context, n, &buffer, NULL) != VXD_OK) {
        return NULL;
    }
    memcpy(buffer.ptr, &buffer, sizeof buffer);
    return (uint8_t *)buffer.ptr + BLOCK_HEAD_BYTES;
}

static void big_free(void *context, void *block)
{
    struct vxd_buffer buffer;

    memcpy(&buffer, (uint8_t *)block - BLOCK_HEAD_BYTES, sizeof buffer);
    vxd_host_free(context, &buffer);
}

enum vxd_status vxd_request_open_decoder(struct vxd_request *request, struct vxd_err *err)
{
    struct vxd_server *server = request->server;
    const struct vxd_big_alloc big = {big_alloc, big_free, server->context};
    uint64_t least = request->body_bytes + DECODER_LEAST_BYTES;
    uint64_t most = DECODER_FACTOR * request->body_bytes + DECODER_BASE_BYTES;
    uint64_t taken;

    if (!reserve(server, least, most, &taken)) {
        return fail_reserve(server, least, err);
    }
    request->reserved_bytes += taken;
    request->decoder_bytes = taken;
    return vxd_decoder_create((size_t)taken, &big, &request->decoder, err);
}

/* Gives back the bytes that decoding did not need, except for those of the reply that is
 * to come. */
static void shrink_reserve(struct vxd_request *request)
{
    uint64_t keep = vxd_decoder_used_bytes(request->decoder) + REPLY_BYTES;

    if (keep < request->decoder_bytes) {
        request->reserved_bytes -= request->decoder_bytes - keep;
        atomic_fetch_sub(&request->server->inflight_bytes, request->decoder_bytes - keep);
        request->decoder_bytes = keep;
    }
}

/* Big arrays stay in the body, since it lives as long as the request. A GPU needs them in
 * page-locked memory: from a body elsewhere they are copied there (big_alloc above). */
static enum vxd_status decode_protobuf(struct vxd_request *request,
                                       const struct vxd_body *body, struct vxd_err *err)
{
    static const struct vxd_borrow borrow = {VXD_BIG_BLOCK_BYTES, VXD_DATA_ALIGN, false};
    const ProtobufCMessageDescriptor *descriptor = request->method->input;
    size_t n_borrowed;

    if (body->is_locked ||
        vxd_context_backend(request->server->context) == VXD_BACKEND_CPU) {
        return vxd_decode_borrowing(request->decoder, &borrow, descriptor, body->bytes,
                                    body->n_bytes, &request->input, &n_borrowed, err);
    }
    return vxd_decode(request->decoder, descriptor, body->bytes, body->n_bytes,
                      &request->input, err);
}

static enum vxd_status decode_body(struct vxd_request *request,
                                   const struct vxd_body *body, struct vxd_err *err)
{
    const struct vxd_method *method = request->method;

    switch (body->kind) {
    case VXD_BODY_JSON:
        if (body->n_bytes == 0) {
            break; /* an empty message, as in protobuf */
        }
        return vxd_json_read(request->decoder, method->input, (const char *)body->bytes,
                             body->n_bytes, &request->input, err);
    case VXD_BODY_FILE:
        if (method->from_file == NULL) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, "format",
                            "%s takes no files as a body", method->name);
        }
        if (body->boundary != NULL) {
            struct vxd_body parts = *body;
            enum vxd_status status =
                vxd_multipart_split(body->bytes, body->n_bytes, body->boundary,
                                    parts.parts, &parts.n_parts, err);

            return status == VXD_OK ? method->from_file(request, &parts, err) : status;
        }
        return method->from_file(request, body, err);
    case VXD_BODY_PROTOBUF:
        break;
    }
    return decode_protobuf(request, body, err);
}

/* Finds out whether the request changes something. If so, its sender must be allowed to,
 * and must say which of its requests this is. */
static enum vxd_status check_change(struct vxd_request *request, struct vxd_err *err)
{
    const struct vxd_method *method = request->method;
    enum vxd_status status;

    request->changes = method->changes != NULL && method->changes(request);
    if (!request->changes) {
        return VXD_OK;
    }
    status = vxd_auth_require(&request->principal, VXD_SCOPE_WRITE, err);
    if (status != VXD_OK) {
        vxd_metrics_count_rejected(request->server->metrics, "permission_denied");
        return status;
    }
    if (request->resends && request->client_id[0] == '\0') {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "header.client_id",
                        "is required: the request changes something, and the socket may "
                        "send it twice");
    }
    if (request->resends && request->sequence == 0) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "header.sequence",
                        "is required, from 1 on: the request changes something, and the "
                        "socket may send it twice");
    }
    return VXD_OK;
}

/* Whatever a request names, and whatever it would give a name, must be its sender's to use. */
static enum vxd_status check_objects(struct vxd_request *request, struct vxd_err *err)
{
    enum vxd_status status = vxd_objects_check(&request->principal, request->input, err);

    if (status != VXD_OK) {
        vxd_metrics_count_rejected(request->server->metrics, "permission_denied");
    }
    return status;
}

static enum vxd_status decode_and_check(struct vxd_request *request,
                                        const struct vxd_body *body, struct vxd_err *err)
{
    enum vxd_status status;

    VXD_TRY(vxd_request_open_decoder(request, err));
    VXD_TRY(decode_body(request, body, err));
    VXD_TRY(check_objects(request, err));
    VXD_TRY(check_change(request, err));
    VXD_TRY(vxd_ranges_check(request->input, err));
    VXD_TRY(request->method->check(request, err));
    shrink_reserve(request);
out:
    return status;
}

/* Queues the request, unless it repeats one that runs or ran. */
static enum vxd_status run_once(struct vxd_request *request, const struct vxd_body *body,
                                struct vxd_err *err)
{
    struct vxd_server *server = request->server;
    enum vxd_once_role role = VXD_ONCE_FIRST;
    enum vxd_status status;

    if (request->changes && has_number(request)) {
        uint8_t digest[VXD_ONCE_DIGEST_BYTES];

        vxd_once_digest(server->once, request->method, body, digest);
        VXD_TRY(vxd_once_enter(server->once, request, digest, &role, err));
    }
    if (role == VXD_ONCE_DONE) {
        (void)vxd_request_answer(request, NULL, request->output);
    }
    status = role == VXD_ONCE_FIRST ? vxd_request_queue(request, err) : VXD_OK;
out:
    return status;
}

enum vxd_status vxd_request_watch(struct vxd_request *request, struct vxd_err *err)
{
    const struct vxd_server *server = request->server;
    enum vxd_status status;

    atomic_store(&request->whole_ns, vxd_clock_ns());
    VXD_TRY(check_queue(request, err));
    VXD_TRY(server->schedule->watch(server->scheduler, request, err));
    request->is_watched = true;
out:
    return status;
}

void vxd_request_submit(struct vxd_request *request, const struct vxd_body *body)
{
    struct vxd_err err = {0};
    enum vxd_status status = VXD_OK;

    if (request->is_watched && vxd_request_is_over(request)) {
        goto out;
    }
    if (!request->is_watched) {
        VXD_TRY(vxd_request_watch(request, &err));
    }
    VXD_TRY(decode_and_check(request, body, &err));
    atomic_store(&request->decoded_ns, vxd_clock_ns());
    if (request->lane == VXD_LANE_NONE) {
        (void)vxd_request_answer(request, NULL, request->output);
    } else if (atomic_load(&request->answered) == 0) {
        VXD_TRY(run_once(request, body, &err));
    }
out:
    if (status != VXD_OK) {
        (void)vxd_request_answer(request, &err, NULL);
    }
    vxd_request_drop(request);
}

void vxd_request_fail(struct vxd_request *request, const struct vxd_err *err)
{
    (void)vxd_request_answer(request, err, NULL);
    vxd_request_drop(request);
}

void vxd_request_cancel(struct vxd_request *request)
{
    struct vxd_server *server = request->server;
    struct vxd_err gone = {0};
    bool has_waited;

    atomic_store(&request->is_cancelled, true);
    has_waited = server->schedule->cancel(server->scheduler, request);
    (void)vxd_fail(&gone, VXD_CANCELLED, NULL, "the connection has ended");
    if (has_waited || !request->changes) {
        (void)vxd_request_answer(request, &gone, NULL);
    }
    if (has_waited) {
        vxd_request_drop(request);
    }
}

bool vxd_request_is_over(const struct vxd_request *request)
{
    return atomic_load(&request->answered) != 0 || atomic_load(&request->is_cancelled);
}

void vxd_request_begin_apart(struct vxd_request *request)
{
    struct vxd_server *server = request->server;

    if (request->is_alone && request->lane == VXD_LANE_WRITE &&
        !atomic_exchange(&request->is_apart, true)) {
        server->schedule->begin_apart(server->scheduler, request);
    }
}

void vxd_request_end_apart(struct vxd_request *request)
{
    struct vxd_server *server = request->server;

    if (atomic_exchange(&request->is_apart, false)) {
        server->schedule->end_apart(server->scheduler, request);
    }
}

bool vxd_request_goes_on(const struct vxd_request *request)
{
    if (!request->changes) {
        return false;
    }
    if (atomic_load(&request->started_ns) == 0) {
        return atomic_load(&request->replayed) &&
               vxd_once_goes_on(request->server->once, request);
    }
    return atomic_load(&request->handed_over_ns) != 0 ||
           !atomic_load(&request->ends_when_over);
}

void vxd_request_fail_reply(const struct vxd_request *request, struct vxd_err *err)
{
    if (request->changes) {
        (void)vxd_fail(err, VXD_UNAVAILABLE, NULL,
                       "it was done, but there is no memory for the reply: ask again, "
                       "with the same number");
    } else {
        (void)vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for the reply");
    }
}

const char *vxd_request_client(const struct vxd_request *request)
{
    return request->client_id[0] != '\0' ? request->client_id : request->peer;
}

static const char *op_name(const struct vxd_request *request)
{
    return request->method != NULL ? request->method->name : "unknown";
}

static enum vxd_log_level log_level_of(const struct vxd_request *request)
{
    switch (request->err.code) {
    case VXD_OK:
        return request->total_ms < SLOW_MS ? VXD_LOG_DEBUG : VXD_LOG_INFO;
    case VXD_UNKNOWN:
    case VXD_INTERNAL:
    case VXD_DATA_LOSS:
        return VXD_LOG_ERROR;
    default:
        return VXD_LOG_INFO;
    }
}

static void log_request(const struct vxd_request *request)
{
    struct vxd_log_number queue_ms;
    struct vxd_log_number dur_ms;
    struct vxd_log_number n_bytes;
    enum vxd_log_level level = log_level_of(request);
    const char *error = request->err.code != VXD_OK ? "error" : NULL;
    const char *trace_id =
        request->trace.trace_id[0] != '\0' ? request->trace.trace_id : NULL;

    if (level < vxd_log_get_level()) {
        return;
    }
    vxd_log(level, "request", "request_id", request->id, "op", op_name(request), "client",
            request->client_id[0] != '\0' ? request->client_id : request->principal.name,
            "peer", request->peer, "code", vxd_status_name(request->err.code), "queue_ms",
            vxd_log_real(&queue_ms, request->queue_ms), "dur_ms",
            vxd_log_real(&dur_ms, request->total_ms), "bytes",
            vxd_log_int(&n_bytes, (int64_t)request->body_bytes), "trace_id", trace_id,
            "span_id", trace_id != NULL ? request->trace.span_id : NULL, "parent_span_id",
            trace_id != NULL ? request->trace.parent_id : NULL, error,
            request->err.message, request->err.field[0] != '\0' ? "field" : NULL,
            request->err.field);
}

/* What a message is about: its field "name", or that of the map or network that it names, perhaps in
 * a message of it. */
static const char *object_of(const ProtobufCMessage *message, bool goes_deeper)
{
    static const char *const names[] = {"name", "map", "network"};
    const ProtobufCMessageDescriptor *descriptor =
        message != NULL ? message->descriptor : NULL;
    const char *object = "";

    for (size_t i = 0; descriptor != NULL && object[0] == '\0' && i < 3; i++) {
        const ProtobufCFieldDescriptor *field =
            protobuf_c_message_descriptor_get_field_by_name(descriptor, names[i]);

        if (field != NULL && field->type == PROTOBUF_C_TYPE_STRING &&
            field->label != PROTOBUF_C_LABEL_REPEATED) {
            object = *(const char *const *)((const uint8_t *)message + field->offset);
        }
    }
    for (unsigned i = 0; goes_deeper && descriptor != NULL && object[0] == '\0' &&
                         i < descriptor->n_fields;
         i++) {
        const ProtobufCFieldDescriptor *field = &descriptor->fields[i];

        if (field->type == PROTOBUF_C_TYPE_MESSAGE &&
            field->label == PROTOBUF_C_LABEL_NONE &&
            (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) == 0) {
            object =
                object_of(*(const ProtobufCMessage *const *)((const uint8_t *)message +
                                                             field->offset),
                          false);
        }
    }
    return object;
}

/* Who changed what, or was refused. A change whose sender was answered before its end has two
 * lines: the later one says what became of it. */
static void audit(const struct vxd_request *request, const struct vxd_err *err)
{
    enum vxd_status code = err != NULL ? err->code : VXD_OK;
    bool is_refused = code == VXD_UNAUTHENTICATED || code == VXD_PERMISSION_DENIED;
    /* A deadline may answer while another thread decodes the request. */
    bool is_change = atomic_load(&request->decoded_ns) != 0 && request->changes;
    char issued[16] = "";

    if (!vxd_audit_is_open() || !(is_change || is_refused)) {
        return;
    }
    if (request->principal.issued_id != 0) {
        (void)snprintf(issued, sizeof issued, "%08" PRIx32, request->principal.issued_id);
    }
    vxd_audit("request_id", request->id, "token", request->principal.name, "issued",
              issued, "claimed_client", request->client_id, "peer", request->peer,
              "method", op_name(request), "object", object_of(request->input, true),
              "outcome", vxd_status_name(code), "trace_id",
              request->trace.trace_id[0] != '\0' ? request->trace.trace_id : NULL,
              code != VXD_OK ? "error" : NULL, err != NULL ? err->message : "");
}

static void note_slow(const struct vxd_request *request)
{
    struct vxd_server *server = request->server;
    struct vxd_slow_entry entry = {
        .method = op_name(request),
        .code = request->err.code,
        .queue_ms = request->queue_ms,
        .total_ms = request->total_ms,
        .finished_unix_ns =
            server->started_unix_ns + (vxd_clock_ns() - server->started_ns),
    };

    memcpy(entry.request_id, request->id, sizeof entry.request_id);
    copy_text(entry.client_id, vxd_request_client(request));
    vxd_slowlog_add(server->slowlog, &entry);
}

static int64_t waited_ns(const struct vxd_request *request, int64_t now)
{
    int64_t since = atomic_load(&request->waits_since_ns);

    return atomic_load(&request->waited_ns) + (since != 0 ? now - since : 0);
}

/* Milliseconds between two times, 0 where one of them is not known. */
static double span_ms(int64_t from_ns, int64_t to_ns)
{
    return from_ns > 0 && to_ns > from_ns ? (double)(to_ns - from_ns) / 1e6 : 0;
}

/* The deadline may answer while the request is at any of its stages: what is not over yet
 * counts until now. */
static void set_stages(struct vxd_request *request, int64_t now, int64_t waited)
{
    int64_t whole = atomic_load(&request->whole_ns);
    int64_t decoded = atomic_load(&request->decoded_ns);
    int64_t started = atomic_load(&request->started_ns);
    int64_t handed_over = atomic_load(&request->handed_over_ns);
    int64_t decided = atomic_load(&request->decided_ns);
    bool queues = request->lane != VXD_LANE_NONE;

    request->stages = (struct vxd_stage_times){
        .receive_ms = span_ms(request->began_ns, whole),
        .decode_ms = span_ms(whole, decoded != 0 ? decoded : now),
        .wait_ms = queues ? span_ms(decoded + waited, started != 0 ? started : now) : 0,
        .engine_ms = (double)atomic_load(&request->engine_ns) / 1e6,
        .commit_ms = span_ms(handed_over, decided != 0 ? decided : now),
    };
}

bool vxd_request_answer(struct vxd_request *request, const struct vxd_err *err,
                        const ProtobufCMessage *output)
{
    struct vxd_server *server = request->server;
    int64_t now = vxd_clock_ns();
    int64_t started = atomic_load(&request->started_ns);
    int64_t waited = waited_ns(request, now);
    bool queues = request->lane != VXD_LANE_NONE;

    if (atomic_exchange(&request->answered, 1) != 0) {
        if (err == NULL) {
            audit(request, NULL); /* a change that went on to its end */
        }
        return false;
    }
    server->schedule->unwatch(server->scheduler, request);
    if (queues) {
        request->queue_ms =
            (double)((started != 0 ? started : now) - request->received_ns - waited) /
            1e6;
    }
    request->total_ms = (double)(now - request->began_ns - waited) / 1e6;
    set_stages(request, now, waited);
    if (err != NULL) {
        request->err = *err;
    }
    vxd_metrics_count_request(server->metrics,
                              request->method != NULL
                                  ? vxd_method_index(server->methods, request->method)
                                  : VXD_METRICS_MAX_METHODS - 1,
                              request->err.code, queues ? request->queue_ms / 1e3 : -1,
                              request->total_ms / 1e3);
    vxd_metrics_count_token(server->metrics, request->principal.name, request->err.code,
                            request->total_ms / 1e3);
    if (output != NULL) {
        vxd_metrics_count_points(server->metrics, request->n_points);
    }
    if (err == NULL && request->output != NULL) {
        vxd_objects_filter(&request->principal, request->output);
    }
    end_account(request);
    /* Both before anybody has an answer: whoever has it may ask why at once. */
    audit(request, err);
    vxd_request_note_why(request);
    request->reply_fn(request, &request->err, output);
    if (request->method != NULL && request->method->unpark != NULL &&
        atomic_load(&request->waits_since_ns) != 0) {
        request->method->unpark(request);
    }
    log_request(request);
    note_slow(request);
    atomic_fetch_sub(&server->n_open, 1);
    return true;
}

void vxd_request_hold(struct vxd_request *request)
{
    atomic_fetch_add_explicit(&request->references, 1, memory_order_relaxed);
}

void vxd_request_drop(struct vxd_request *request)
{
    struct vxd_server *server = request->server;

    if (atomic_fetch_sub_explicit(&request->references, 1, memory_order_acq_rel) != 1) {
        return;
    }
    if (atomic_load(&request->answered) == 0) {
        atomic_fetch_sub(&server->n_open,
                         1); /* the transport gave it up without an answer */
    }
    if (request->once != NULL) {
        vxd_once_abandon(request);
    }
    end_account(request);
    if (request->state != NULL && request->method->forget != NULL) {
        request->method->forget(request);
    }
    vxd_principal_clear(&request->principal);
    vxd_decoder_destroy(request->decoder);
    atomic_fetch_sub(&server->inflight_bytes, request->reserved_bytes);
    if (request->discard_fn != NULL) {
        request->discard_fn(request);
    }
    free(request);
}
