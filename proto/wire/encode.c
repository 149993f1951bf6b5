// SPDX-License-Identifier: Apache-2.0
#include "proto/wire/encode.h"

#include <stdalign.h>

#include "proto/wire/decode.h"
#include "proto/wire/fields.h"
#include "proto/wire/wire_format.h"

enum {
    MAX_PADDING_BYTES = VXD_DATA_ALIGN + 1
};

static bool holds_big(const struct vxd_encoder *e, const ProtobufCMessage *message);

/* Whether this file writes the field, after everything that protobuf-c writes. */
static bool is_deferred(const struct vxd_encoder *e, const ProtobufCMessage *message,
                        const ProtobufCFieldDescriptor *field)
{
    const uint8_t *values;
    ProtobufCBinaryData data;
    size_t n;

    if (field->type == PROTOBUF_C_TYPE_BYTES) {
        if (field->label == PROTOBUF_C_LABEL_REPEATED ||
            vxd_field_values(message, field, &values) == 0) {
            return false;
        }
        memcpy(&data, values, sizeof data);
        return data.len >= e->least_bytes;
    }
    if (field->type != PROTOBUF_C_TYPE_MESSAGE) {
        return false;
    }
    n = vxd_field_values(message, field, &values);
    for (size_t i = 0; i < n; i++) {
        if (holds_big(e, vxd_field_pointer(values + i * sizeof(void *)))) {
            return true;
        }
    }
    return false;
}

static bool holds_big(const struct vxd_encoder *e, const ProtobufCMessage *message)
{
    const ProtobufCMessageDescriptor *descriptor = message->descriptor;

    if (descriptor->sizeof_message > VXD_ENCODE_STRUCT_BYTES) {
        return false;
    }
    for (unsigned i = 0; i < descriptor->n_fields; i++) {
        if (is_deferred(e, message, &descriptor->fields[i])) {
            return true;
        }
    }
    return false;
}

static void write_varint(struct vxd_encoder *e, uint64_t value, size_t n_bytes)
{
    if (e->out != NULL) {
        vxd_wire_write_varint(e->out + e->at, value, n_bytes);
    }
    e->at += n_bytes;
}

static void write_tag(struct vxd_encoder *e, uint32_t field)
{
    uint64_t tag = (uint64_t)field << 3 | PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED;

    write_varint(e, tag, vxd_wire_varint_bytes(tag));
}

static void write_plain(struct vxd_encoder *e, const ProtobufCMessage *message)
{
    e->at += e->out != NULL ? protobuf_c_message_pack(message, e->out + e->at)
                            : protobuf_c_message_get_packed_size(message);
}

/* Pads, so that the bytes that follow n_before_data bytes later are aligned. */
static void write_padding(struct vxd_encoder *e, size_t n_before_data)
{
    static const uint8_t zeros[MAX_PADDING_BYTES];
    size_t misaligned = (e->origin + e->at + n_before_data) % VXD_DATA_ALIGN;
    size_t n = misaligned > 0 ? VXD_DATA_ALIGN - misaligned : 0;

    if (n == 0) {
        return;
    }
    if (n == 1) { /* a field takes two bytes at least: tag and length */
        n += VXD_DATA_ALIGN;
    }
    write_tag(e, VXD_WIRE_PADDING_FIELD);
    write_varint(e, n - 2, 1);
    if (e->out != NULL) {
        memcpy(e->out + e->at, zeros, n - 2);
    }
    e->at += n - 2;
}

static void write_data(struct vxd_encoder *e, uint32_t field,
                       const ProtobufCBinaryData *data)
{
    size_t n_length = vxd_wire_varint_bytes(data->len);
    size_t n_tag = vxd_wire_varint_bytes((uint64_t)field << 3);

    write_padding(e, n_tag + n_length);
    write_tag(e, field);
    write_varint(e, data->len, n_length);
    if (e->out != NULL && e->copy != NULL) {
        e->copy(e->copy_context, e->out + e->at, data->data, data->len);
    } else if (e->out != NULL) {
        memcpy(e->out + e->at, data->data, data->len);
    }
    e->at += data->len;
}

static void write_deferred(struct vxd_encoder *e, const ProtobufCMessage *message,
                           const ProtobufCFieldDescriptor *field)
{
    const uint8_t *values;
    size_t n = vxd_field_values(message, field, &values);

    if (field->type == PROTOBUF_C_TYPE_BYTES) {
        ProtobufCBinaryData data;

        memcpy(&data, values, sizeof data);
        write_data(e, field->id, &data);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        vxd_encode_member(e, field->id, vxd_field_pointer(values + i * sizeof(void *)));
    }
}

/* Removes the field from the copy of a message. */
static void leave_out(uint8_t *copy, const ProtobufCFieldDescriptor *field)
{
    if (field->label == PROTOBUF_C_LABEL_REPEATED) {
        memset(copy + field->quantifier_offset, 0, sizeof(size_t));
    } else if ((field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0) {
        memset(copy + field->quantifier_offset, 0, sizeof(uint32_t));
    } else {
        memset(copy + field->offset, 0, vxd_field_value_bytes(field));
    }
}

void vxd_encode(struct vxd_encoder *encoder, const ProtobufCMessage *message)
{
    const ProtobufCMessageDescriptor *descriptor = message->descriptor;
    alignas(max_align_t) uint8_t copy[VXD_ENCODE_STRUCT_BYTES];

    if (!holds_big(encoder, message)) {
        write_plain(encoder, message);
        return;
    }
    memcpy(copy, message, descriptor->sizeof_message);
    for (unsigned i = 0; i < descriptor->n_fields; i++) {
        if (is_deferred(encoder, message, &descriptor->fields[i])) {
            leave_out(copy, &descriptor->fields[i]);
        }
    }
    write_plain(encoder, (const ProtobufCMessage *)copy);
    for (unsigned i = 0; i < descriptor->n_fields; i++) {
        if (is_deferred(encoder, message, &descriptor->fields[i])) {
            write_deferred(encoder, message, &descriptor->fields[i]);
        }
    }
}

void vxd_encode_member(struct vxd_encoder *encoder, uint32_t field,
                       const ProtobufCMessage *message)
{
    size_t n_bytes;
    size_t begin;

    write_tag(encoder, field);
    if (!holds_big(encoder, message)) {
        n_bytes = protobuf_c_message_get_packed_size(message);
        write_varint(encoder, n_bytes, vxd_wire_varint_bytes(n_bytes));
        if (encoder->out != NULL) {
            (void)protobuf_c_message_pack(message, encoder->out + encoder->at);
        }
        encoder->at += n_bytes;
        return;
    }
    /* The content's position decides about its padding, and so about its length.
     * Therefore the length is written afterwards, always in as many bytes. */
    begin = encoder->at + VXD_WIRE_LENGTH_BYTES;
    write_varint(encoder, 0, VXD_WIRE_LENGTH_BYTES);
    vxd_encode(encoder, message);
    if (encoder->out != NULL) {
        vxd_wire_write_varint(encoder->out + begin - VXD_WIRE_LENGTH_BYTES,
                              encoder->at - begin, VXD_WIRE_LENGTH_BYTES);
    }
}
