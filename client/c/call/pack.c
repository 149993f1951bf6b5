// SPDX-License-Identifier: Apache-2.0
/* From a Request to its bytes: the header, and where the body goes. */
#include <stdalign.h>
#include <string.h>

#include "client/c/call/client_internal.h"

/* While the server's limit is not known, requests below this are sent without a check. */
#define SURELY_TAKEN_BYTES ((size_t)1 << 20)

/* protobuf-c wants strings that are not NULL, and only reads them when it packs. */
static char *text(const char *string)
{
    return (char *)(uintptr_t)(string != NULL ? string : "");
}

static void fill_header(const struct vxd_call *call, const struct voxeld_call *options,
                        Voxeld__V1__RequestHeader *header)
{
    const struct voxeld_client *client = call->client;

    voxeld__v1__request_header__init(header);
    header->request_id = text(call->request_id);
    /* The question for the server's limit is not to exceed it: the server's default is fine. */
    if (!call->asks_limit) {
        header->timeout_ms = call->server_ms;
    }
    header->token = client->token;
    header->client_id =
        options->client_id != NULL ? text(options->client_id) : client->client_id;
    header->stream = text(options->stream);
    header->keep_last = options->keep_last;
    header->max_age_ms = options->max_age_ms;
    header->sequence = options->sequence;
    header->traceparent = text(options->traceparent);
}

/* A field of the header that every parser skips. */
struct padding {
    ProtobufCMessageUnknownField field;
    uint8_t data[2 * VXD_DATA_ALIGN]; /* its length, then zeros */
};

/* Big data are aligned by bytes in front of them, so a body depends on where it
 * begins. A repeated request must have the body of the first one, whatever its header
 * says. Therefore the header is padded to a multiple of the alignment. */
static void pad_header(Voxeld__V1__RequestHeader *header, struct padding *padding)
{
    size_t n_header = protobuf_c_message_get_packed_size(&header->base);
    size_t n = 2; /* tag and length */

    while ((1 + vxd_wire_varint_bytes(n_header + n) + n_header + n) % VXD_DATA_ALIGN !=
           0) {
        n++;
    }
    memset(padding, 0, sizeof *padding);
    padding->data[0] = (uint8_t)(n - 2);
    padding->field.tag = VXD_WIRE_PADDING_FIELD;
    padding->field.wire_type = PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED;
    padding->field.data = padding->data;
    padding->field.len = n - 1;
    header->base.unknown_fields = &padding->field;
    header->base.n_unknown_fields = 1;
}

static enum vxd_status check_size(struct voxeld_client *client,
                                  const struct voxeld_call *options, size_t n_bytes,
                                  bool may_wait, struct vxd_err *err)
{
    uint64_t limit;

    if (may_wait && n_bytes > SURELY_TAKEN_BYTES) {
        vxd_client_learn_limit(client, options);
    }
    (void)pthread_mutex_lock(&client->mutex);
    limit = client->max_message_bytes;
    (void)pthread_mutex_unlock(&client->mutex);
    if (limit > 0 && n_bytes > limit) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                        "the request has %zu bytes, the server takes at most %llu",
                        n_bytes, (unsigned long long)limit);
    }
    return VXD_OK;
}

/* The pointer in a Request to its method's message. */
static ProtobufCMessage **method_of(Voxeld__V1__Request *request)
{
    const ProtobufCFieldDescriptor *field = protobuf_c_message_descriptor_get_field(
        request->base.descriptor, (unsigned)request->method_case);

    return (ProtobufCMessage **)(void *)((uint8_t *)request + field->offset);
}

/* Writes the body to shared memory, where the call gets a place there; the message then only
 * names the method. The body is the one that stands in a message otherwise, byte for byte, since
 * a repeated request may come the other way. */
static void share_body(struct vxd_call *call, Voxeld__V1__Request *request,
                       Voxeld__V1__SharedBody *shared, ProtobufCMessage *empty)
{
    ProtobufCMessage **method = method_of(request);
    uint64_t tag = (uint64_t)request->method_case << 3;
    struct vxd_encoder body = {
        .least_bytes = VXD_BIG_BLOCK_BYTES,
        .origin = (VXD_RPC_ORIGIN + vxd_wire_varint_bytes(tag) + VXD_WIRE_LENGTH_BYTES) %
                  VXD_DATA_ALIGN};
    struct vxd_shared_slot *slot;

    vxd_encode(&body, *method);
    slot = vxd_client_take_slot(call->client, request->method_case, body.origin + body.at,
                                call->timeout_ms);
    if (slot == NULL) {
        return;
    }
    call->slot = slot;
    shared->offset = slot->offset + body.origin;
    shared->n_bytes = body.at;
    shared->reply_offset = slot->offset + slot->n_bytes;
    shared->reply_bytes = slot->n_reply_bytes;
    shared->region.data = (uint8_t *)(uintptr_t)vxd_shared_id(slot->memory);
    shared->region.len = VXD_SHARED_ID_BYTES;
    body.out = vxd_shared_slot_request(slot) + body.origin;
    body.at = 0;
    vxd_encode(&body, *method);
    protobuf_c_message_init((*method)->descriptor, empty);
    *method = empty;
}

enum vxd_status vxd_call_pack(struct vxd_call *call, const struct voxeld_call *options,
                              Voxeld__V1__Request *request, bool may_wait, bool may_share,
                              struct vxd_err *err)
{
    Voxeld__V1__SharedBody shared = VOXELD__V1__SHARED_BODY__INIT;
    alignas(max_align_t) uint8_t empty[VXD_ENCODE_STRUCT_BYTES];
    ProtobufCMessage *method = *method_of(request);
    struct vxd_encoder measured = {.least_bytes = VXD_BIG_BLOCK_BYTES,
                                   .origin = VXD_RPC_ORIGIN};
    Voxeld__V1__RequestHeader header;
    struct padding padding;
    enum vxd_status status;

    fill_header(call, options, &header);
    if (header.sequence != 0) {
        pad_header(&header, &padding);
    }
    request->header = &header;
    vxd_encode(&measured, &request->base);
    status = check_size(call->client, options, measured.at, may_wait, err);
    if (status == VXD_OK && may_share) {
        share_body(call, request, &shared, (ProtobufCMessage *)empty);
    }
    if (call->slot != NULL) {
        header.shared = &shared;
        measured.at = 0;
        vxd_encode(&measured, &request->base);
    }
    if (status == VXD_OK) {
        status = vxd_packed_create(&request->base, measured.at, &call->packed, err);
    }
    *method_of(request) = method;
    request->header = NULL;
    return status;
}
