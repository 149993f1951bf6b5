// SPDX-License-Identifier: Apache-2.0
/* Fields of any message through their descriptors: what the JSON walker, the OpenAPI and
 * the safetensors writers share. Knows what our schema uses: proto3 without `optional`.
 */
#ifndef VXD_PROTO_WIRE_FIELDS_H
#define VXD_PROTO_WIRE_FIELDS_H

#include <string.h>

#include "proto/wire/json_mapping.h"

/* Field names are not longer (a test checks that). */
#define VXD_FIELD_NAME_BYTES 64

/* Makes lowerCamelCase as protoc does: underscores go, the letter after one becomes
 * upper case, all others stay. Returns out. */
static inline const char *vxd_field_json_name(const ProtobufCFieldDescriptor *field,
                                              char out[VXD_FIELD_NAME_BYTES])
{
    size_t n = 0;
    bool raise = false;

    for (const char *c = field->name; *c != '\0' && n < VXD_FIELD_NAME_BYTES - 1; c++) {
        if (*c == '_') {
            raise = true;
            continue;
        }
        out[n++] = raise && *c >= 'a' && *c <= 'z' ? (char)(*c - 'a' + 'A') : *c;
        raise = false;
    }
    out[n] = '\0';
    return out;
}

/* Returns the bytes of one value of the field in the C struct. */
static inline size_t vxd_field_value_bytes(const ProtobufCFieldDescriptor *field)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_FLOAT:
    case PROTOBUF_C_TYPE_ENUM:
        return 4;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return 8;
    case PROTOBUF_C_TYPE_BOOL:
        return sizeof(protobuf_c_boolean);
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_MESSAGE:
        return sizeof(void *);
    case PROTOBUF_C_TYPE_BYTES:
        break;
    }
    return sizeof(ProtobufCBinaryData);
}

/* Reads the pointer at `value`, which need not be of type void *. */
static inline void *vxd_field_pointer(const void *value)
{
    void *pointer;

    memcpy(&pointer, value, sizeof pointer);
    return pointer;
}

/* Returns the oneof case of a field that is in a oneof: the number of the member that
 * is set. */
static inline uint32_t vxd_field_oneof_case(const ProtobufCMessage *message,
                                            const ProtobufCFieldDescriptor *field)
{
    uint32_t set;

    memcpy(&set, (const uint8_t *)message + field->quantifier_offset, sizeof set);
    return set;
}

/* Gives the number of values and the first of them. A singular field outside of any
 * oneof always has one (its default where nothing was set), a submessage only when
 * present. */
static inline size_t vxd_field_values(const ProtobufCMessage *message,
                                      const ProtobufCFieldDescriptor *field,
                                      const uint8_t **values)
{
    const uint8_t *member = (const uint8_t *)message + field->offset;

    *values = member;
    if (field->label == PROTOBUF_C_LABEL_REPEATED) {
        size_t n;

        memcpy(&n, (const uint8_t *)message + field->quantifier_offset, sizeof n);
        *values = (const uint8_t *)vxd_field_pointer(member);
        return n;
    }
    if ((field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0 &&
        vxd_field_oneof_case(message, field) != field->id) {
        return 0;
    }
    if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
        return vxd_field_pointer(member) != NULL ? 1 : 0;
    }
    return 1;
}

/* Appends the field's value as JSON: an array where repeated. */
void vxd_json_write_field(const ProtobufCMessage *message,
                          const ProtobufCFieldDescriptor *field, struct vxd_text *text);

#endif
