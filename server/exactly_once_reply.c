// SPDX-License-Identifier: Apache-2.0
/* Making a reply small enough to keep, through its descriptor alone. */
#include "proto/fields.h"
#include "server/exactly_once.h"
#include "voxeld/v1/common.pb-c.h"

enum {
    MAX_DEPTH = 12 /* no reply is deeper (a test of the schema looks) */
};

enum strip {
    STRIP_ARRAYS,  /* tensors' elements, bytes fields */
    STRIP_REPEATED /* what is repeated, and strings, as well */
};

static void clear_field(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    uint8_t *member = (uint8_t *)message + field->offset;
    size_t none = 0;

    if (field->label == PROTOBUF_C_LABEL_REPEATED) {
        memcpy((uint8_t *)message + field->quantifier_offset, &none, sizeof none);
    } else if (field->type == PROTOBUF_C_TYPE_STRING) {
        const char *empty = protobuf_c_empty_string;

        memcpy(member, &empty, sizeof empty);
    } else {
        memset(member, 0, sizeof(ProtobufCBinaryData));
    }
}

static bool is_dropped(const ProtobufCMessage *message,
                       const ProtobufCFieldDescriptor *field, enum strip strip)
{
    bool repeated = field->label == PROTOBUF_C_LABEL_REPEATED;

    if (field->type == PROTOBUF_C_TYPE_BYTES ||
        (message->descriptor == &voxeld__v1__tensor__descriptor &&
         field->type == PROTOBUF_C_TYPE_DOUBLE)) {
        return true;
    }
    return strip == STRIP_REPEATED && (repeated || field->type == PROTOBUF_C_TYPE_STRING);
}

/* Depth-first over the submessages, with a stack of our own. */
static void strip_message(ProtobufCMessage *reply, enum strip strip)
{
    struct {
        ProtobufCMessage *message;
        unsigned field;
        size_t item;
    } stack[MAX_DEPTH] = {{reply, 0, 0}};
    size_t depth = 1;

    while (depth > 0) {
        ProtobufCMessage *message = stack[depth - 1].message;
        const ProtobufCFieldDescriptor *field;
        const uint8_t *values;
        size_t n;

        if (stack[depth - 1].field == message->descriptor->n_fields) {
            depth--;
            continue;
        }
        field = &message->descriptor->fields[stack[depth - 1].field];
        n = vxd_field_values(message, field, &values);
        if (is_dropped(message, field, strip)) {
            clear_field(message, field);
        } else if (field->type == PROTOBUF_C_TYPE_MESSAGE && depth < MAX_DEPTH &&
                   stack[depth - 1].item < n) {
            stack[depth].message =
                vxd_field_pointer(values + stack[depth - 1].item++ * sizeof(void *));
            stack[depth].field = 0;
            stack[depth].item = 0;
            depth++;
            continue;
        }
        stack[depth - 1].field++;
        stack[depth - 1].item = 0;
    }
}

bool vxd_once_pack(ProtobufCMessage *reply, uint8_t out[VXD_ONCE_REPLY_BYTES],
                   size_t *n_bytes)
{
    bool dropped = false;

    for (int strip = STRIP_ARRAYS; strip <= STRIP_REPEATED; strip++) {
        if (protobuf_c_message_get_packed_size(reply) <= VXD_ONCE_REPLY_BYTES) {
            break;
        }
        strip_message(reply, (enum strip)strip);
        dropped = true;
    }
    *n_bytes = protobuf_c_message_get_packed_size(reply);
    if (*n_bytes > VXD_ONCE_REPLY_BYTES) {
        *n_bytes = 0; /* an empty message: it happened, and no more is known */
    } else {
        (void)protobuf_c_message_pack(reply, out);
    }
    return dropped;
}
