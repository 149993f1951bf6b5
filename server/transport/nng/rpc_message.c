// SPDX-License-Identifier: Apache-2.0
/* From a message to its request, and from the request to its reply. */
#include <stdlib.h>
#include <string.h>

#include "proto/wire/wire.h"
#include "server/instance/instance.h"
#include "server/observe/observe.h"
#include "server/transport/nng/rpc_internal.h"
#include "voxeld/v1/rpc.pb-c.h"

#define HEADER_BUDGET_BYTES 65536
/* What stands behind the struct is aligned as memory of its own would be. */
#define BEHIND(type)                                                                     \
    ((sizeof(type) + VXD_DATA_ALIGN - 1) / VXD_DATA_ALIGN * VXD_DATA_ALIGN)

struct vxd_rpc_message *vxd_rpc_message_create(struct vxd_rpc_connection *connection,
                                               size_t n_bytes)
{
    struct vxd_server *server = connection->loop->rpc->server;
    bool is_small = n_bytes < VXD_BIG_BLOCK_BYTES;
    size_t behind = BEHIND(struct vxd_rpc_message);
    struct vxd_rpc_message *message = malloc(behind + (is_small ? n_bytes : 0));

    if (message == NULL) {
        return NULL;
    }
    *message = (struct vxd_rpc_message){
        .n_bytes = n_bytes, .server = server, .connection = connection};
    if (is_small) {
        message->bytes = (uint8_t *)message + behind;
    } else if (vxd_upload_memory_create(server, n_bytes, &message->memory, NULL) ==
               VXD_OK) {
        message->bytes = message->memory.bytes;
    } else {
        free(message);
        return NULL;
    }
    atomic_fetch_add(&connection->references, 1);
    return message;
}

void vxd_rpc_message_destroy(struct vxd_rpc_message *message)
{
    vxd_rpc_shared_close(message);
    vxd_upload_memory_destroy(message->server, &message->memory);
    vxd_rpc_connection_drop(message->connection);
    free(message);
}

void vxd_rpc_message_unlink(struct vxd_rpc_message *message)
{
    if (!message->is_open) {
        return;
    }
    if (message->previous != NULL) {
        message->previous->next = message->next;
    } else {
        message->connection->open = message->next;
    }
    if (message->next != NULL) {
        message->next->previous = message->previous;
    }
    message->is_open = false;
    message->next = NULL;
    message->previous = NULL;
}

static void link_open(struct vxd_rpc_message *message, struct vxd_request *request)
{
    struct vxd_rpc_connection *connection = message->connection;

    (void)pthread_mutex_lock(&connection->lock);
    message->request = request;
    message->is_open = true;
    message->next = connection->open;
    if (connection->open != NULL) {
        connection->open->previous = message;
    }
    connection->open = message;
    (void)pthread_mutex_unlock(&connection->lock);
}

struct vxd_rpc_reply *vxd_rpc_pack_error(struct vxd_rpc_connection *connection,
                                         const struct vxd_sp_route *route,
                                         const char *request_id,
                                         const struct vxd_err *why)
{
    struct vxd_rpc_answer answer = {.request_id = request_id, .err = why};

    return vxd_rpc_pack(connection->loop->rpc->server->context, connection->is_ipc, route,
                        &answer);
}

static void reply_to_request(struct vxd_request *request, const struct vxd_err *err,
                             const ProtobufCMessage *output)
{
    struct vxd_rpc_message *message = request->transport;
    struct vxd_rpc_connection *connection = message->connection;
    bool is_ok = err->code == VXD_OK;
    struct vxd_rpc_answer answer = {.request_id = request->id,
                                    .err = err,
                                    .output = output,
                                    .tag = message->tag,
                                    .queue_ms = request->queue_ms,
                                    .total_ms = request->total_ms,
                                    .stages = &request->stages,
                                    .trace = &request->trace,
                                    .replayed = is_ok && atomic_load(&request->replayed),
                                    .arrays_dropped =
                                        is_ok && atomic_load(&request->arrays_dropped)};
    struct vxd_rpc_reply *reply;
    struct vxd_err no_memory = {0};
    bool is_closed;

    (void)pthread_mutex_lock(&connection->lock);
    vxd_rpc_message_unlink(message);
    is_closed = connection->is_closed;
    (void)pthread_mutex_unlock(&connection->lock);
    if (is_closed) { /* nobody reads it */
        vxd_rpc_send(connection, NULL);
        return;
    }
    if (is_ok && output != NULL) {
        answer.shared_bytes = vxd_rpc_shared_reply(message, output);
    }
    reply = vxd_rpc_pack(request->server->context, connection->is_ipc, &message->route,
                         &answer);
    if (reply == NULL) {
        vxd_request_fail_reply(request, &no_memory);
        reply = vxd_rpc_pack_error(connection, &message->route, request->id, &no_memory);
    }
    vxd_rpc_send(connection, reply);
}

static void discard_request(struct vxd_request *request)
{
    vxd_rpc_message_destroy(request->transport);
    request->transport = NULL;
}

/* Finds the header of a message whose scan failed, or of which only the first bytes are there:
 * the schema puts the header first. */
static void find_header(const uint8_t *bytes, size_t n_bytes, struct vxd_envelope *out)
{
    size_t n_header = 0;
    size_t at = 1;
    unsigned shift = 0;

    if (n_bytes < 2 || bytes[0] != ((1u << 3) | 2u)) {
        return;
    }
    while (at < n_bytes && at < 5 && (bytes[at] & 0x80) != 0) {
        n_header |= (size_t)(bytes[at] & 0x7F) << shift;
        shift += 7;
        at++;
    }
    if (at < n_bytes && (bytes[at] & 0x80) == 0) {
        n_header |= (size_t)bytes[at] << shift;
        at++;
        if (n_header <= n_bytes - at) {
            out->header = bytes + at;
            out->header_bytes = n_header;
        }
    }
}

/* Decodes the envelope's header into *out, whose strings live in *decoder; so does *shared, NULL
 * where the body is in the message. */
static enum vxd_status read_header(const struct vxd_envelope *envelope,
                                   struct vxd_decoder **decoder,
                                   struct vxd_request_header *out,
                                   const Voxeld__V1__SharedBody **shared,
                                   struct vxd_err *err)
{
    ProtobufCMessage *message = NULL;
    const Voxeld__V1__RequestHeader *header;
    enum vxd_status status;

    if (envelope->header == NULL) {
        return VXD_OK;
    }
    VXD_TRY(vxd_decoder_create(HEADER_BUDGET_BYTES, NULL, decoder, err));
    VXD_TRY(vxd_decode(*decoder, &voxeld__v1__request_header__descriptor,
                       envelope->header, envelope->header_bytes, &message, err));
    header = (const Voxeld__V1__RequestHeader *)message;
    out->request_id = header->request_id;
    out->token = header->token;
    out->client_id = header->client_id;
    out->stream = header->stream;
    out->sequence = header->sequence;
    out->resends = true;
    out->timeout_ms = header->timeout_ms;
    out->keep_last = header->keep_last;
    out->max_age_ms = header->max_age_ms;
    out->traceparent = header->traceparent;
    *shared = header->shared;
    if (header->n_expect_digests > 0) {
        status = vxd_fail(err, VXD_INVALID_ARGUMENT, "header.expect_digests",
                          "has %zu entries; no method of this server takes any",
                          header->n_expect_digests);
    }
out:
    return status;
}

static enum vxd_status check_size(const struct vxd_server *server, size_t n_bytes,
                                  struct vxd_err *err)
{
    uint64_t limit = server->config.max_message_bytes;

    if (n_bytes <= limit + VXD_RPC_ENVELOPE_BYTES) {
        return VXD_OK;
    }
    vxd_metrics_count_rejected(server->metrics, "message_bytes");
    return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                    "the message has %zu bytes, limits.message_bytes is %llu", n_bytes,
                    (unsigned long long)limit);
}

enum vxd_status vxd_rpc_message_check(struct vxd_rpc_connection *connection,
                                      const uint8_t *body, size_t n_there, size_t n_bytes,
                                      char request_id[VXD_NAME_BYTES],
                                      struct vxd_err *err)
{
    struct vxd_server *server = connection->loop->rpc->server;
    struct vxd_request_header header = {0};
    struct vxd_envelope envelope = {0};
    struct vxd_decoder *decoder = NULL;
    const Voxeld__V1__SharedBody *shared = NULL;
    struct vxd_principal principal = {0};
    struct vxd_err header_err = {0};
    enum vxd_status status;

    find_header(body, n_there, &envelope);
    /* What is wrong with it is said once the message is there, as for a small one. */
    if (read_header(&envelope, &decoder, &header, &shared, &header_err) == VXD_OK &&
        header.request_id != NULL) {
        (void)snprintf(request_id, VXD_NAME_BYTES, "%s", header.request_id);
    }
    VXD_TRY(check_size(server, n_bytes, err));
    status =
        (header.token == NULL || header.token[0] == '\0') &&
                connection->certified.token_name[0] != '\0'
            ? vxd_auth_identify_certified(server->auth, connection->certified.token_name,
                                          &principal, err)
            : vxd_auth_identify(server->auth, header.token != NULL ? header.token : "",
                                connection->peer, connection->uid, &principal, err);
    if (status != VXD_OK) {
        vxd_metrics_count_rejected(
            server->metrics, status == VXD_UNAUTHENTICATED ? "token" : "failed_logins");
    }
    if (status != VXD_OK && envelope.header == NULL) {
        status = vxd_fail(err, VXD_UNAUTHENTICATED, "header.token",
                          "a message of more than %d bytes must begin with its header, "
                          "which has the token",
                          VXD_RPC_HEAD_BYTES);
    }
out:
    vxd_principal_clear(&principal);
    vxd_decoder_destroy(decoder);
    return status;
}

/* The method and its admission. */
static enum vxd_status admit(struct vxd_request *request,
                             const struct vxd_envelope *envelope, struct vxd_err *err)
{
    const struct vxd_method *method =
        vxd_method_by_tag(request->server->methods, envelope->method_tag);

    if (method == NULL) {
        return vxd_fail(err, VXD_UNIMPLEMENTED, "method",
                        "this server (" VXD_VERSION
                        ") has no method with field number %u",
                        (unsigned)envelope->method_tag);
    }
    return vxd_request_admit(request, method, envelope->body_bytes, err);
}

/* A request that is ready to be submitted, or failed: *err says why. NULL without memory. */
static struct vxd_request *make_request(struct vxd_rpc_message *message,
                                        struct vxd_envelope *envelope,
                                        struct vxd_err *err)
{
    struct vxd_rpc_connection *connection = message->connection;
    const uint8_t *bytes = message->bytes + message->route.n_bytes;
    size_t n_bytes = message->n_bytes - message->route.n_bytes;
    struct vxd_request_header header = {.peer_uid = connection->uid,
                                        .peer = connection->peer,
                                        .began_ns = message->began_ns,
                                        .certified = connection->certified.token_name};
    struct vxd_decoder *decoder = NULL;
    const Voxeld__V1__SharedBody *shared = NULL;
    struct vxd_request *request = NULL;
    struct vxd_err header_err = {0};
    enum vxd_status status = vxd_envelope_scan(bytes, n_bytes, envelope, err);
    enum vxd_status header_status;

    if (status != VXD_OK) {
        find_header(bytes, n_bytes, envelope);
    }
    header_status = read_header(envelope, &decoder, &header, &shared, &header_err);
    if (status == VXD_OK && header_status != VXD_OK) {
        status = header_status;
        *err = header_err;
    }
    if (status == VXD_OK) {
        status = vxd_rpc_shared_open(message, shared, envelope, err);
    }
    header_status =
        vxd_request_create(connection->loop->rpc->server, &header, &request, &header_err);
    vxd_decoder_destroy(decoder);
    if (header_status != VXD_OK && (status == VXD_OK || request == NULL)) {
        *err = header_err;
    }
    return request;
}

/* The message belongs to the request from its making on. */
void vxd_rpc_message_run(struct vxd_rpc_message *take_message)
{
    struct vxd_rpc_message *message = take_message;
    struct vxd_envelope envelope = {0};
    struct vxd_body body = {.kind = VXD_BODY_PROTOBUF,
                            .is_locked = message->memory.block.ptr != NULL};
    struct vxd_err err = {0};
    struct vxd_request *request = make_request(message, &envelope, &err);

    if (request == NULL) {
        vxd_rpc_send(message->connection,
                     vxd_rpc_pack_error(message->connection, &message->route, "", &err));
        vxd_rpc_message_destroy(message);
        return;
    }
    message->tag = envelope.method_tag;
    request->reply_fn = reply_to_request;
    request->discard_fn = discard_request;
    request->transport = message;
    if (err.code != VXD_OK || admit(request, &envelope, &err) != VXD_OK ||
        vxd_rpc_shared_copy(message, &envelope, &err) != VXD_OK) {
        vxd_request_fail(request, &err);
        return;
    }
    link_open(message, request);
    body.is_locked = body.is_locked || message->shared.body.block.ptr != NULL;
    body.bytes = envelope.body;
    body.n_bytes = envelope.body_bytes;
    vxd_request_submit(request, &body);
}
