// SPDX-License-Identifier: Apache-2.0
/* Makes a reply small enough to keep. Only the descriptor says which fields there are. */
#include <stdlib.h>
#include <string.h>

#include "proto/wire/wire.h"
#include "server/request/exactly_once.h"
#include "voxeld/v1/common.pb-c.h"

enum {
    MAX_DEPTH = 12 /* no reply is deeper (a test of the schema looks) */
};

enum strip {
    STRIP_ARRAYS,  /* tensors' elements, bytes fields */
    STRIP_REPEATED /* repeated fields and strings as well */
};

/* What a field was before it was cleared. */
struct cleared {
    uint8_t *member;
    size_t n_bytes;
    uint8_t bytes[sizeof(ProtobufCBinaryData)];
};

/* All fields that were cleared, to be put back. */
struct undo_list {
    struct cleared *fields;
    size_t n;
    size_t capacity;
};

/* Notes a field before it is cleared; with undo NULL it is not to be put back. False: it
 * must not be cleared. */
static bool note_field(struct undo_list *undo, void *member, size_t n_bytes)
{
    if (undo == NULL) {
        return true;
    }
    if (undo->n == undo->capacity) {
        size_t capacity = 2 * undo->capacity + 32;
        struct cleared *fields = realloc(undo->fields, capacity * sizeof *fields);

        if (fields == NULL) {
            return false; /* then the kept reply has less in it */
        }
        undo->fields = fields;
        undo->capacity = capacity;
    }
    undo->fields[undo->n].member = member;
    undo->fields[undo->n].n_bytes = n_bytes;
    memcpy(undo->fields[undo->n].bytes, member, n_bytes);
    undo->n++;
    return true;
}

static void put_back(struct undo_list *undo)
{
    while (undo->n > 0) {
        const struct cleared *field = &undo->fields[--undo->n];

        memcpy(field->member, field->bytes, field->n_bytes);
    }
    free(undo->fields);
}

static void clear_field(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
                        struct undo_list *undo)
{
    uint8_t *member = (uint8_t *)message + field->offset;
    size_t none = 0;

    if (field->label == PROTOBUF_C_LABEL_REPEATED) {
        member = (uint8_t *)message + field->quantifier_offset;
        if (note_field(undo, member, sizeof none)) {
            memcpy(member, &none, sizeof none);
        }
    } else if (field->type == PROTOBUF_C_TYPE_STRING) {
        const char *empty = protobuf_c_empty_string;

        if (note_field(undo, member, sizeof empty)) {
            memcpy(member, &empty, sizeof empty);
        }
    } else if (note_field(undo, member, sizeof(ProtobufCBinaryData))) {
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

/* Goes over the submessages depth first, with a stack of its own. */
static void strip_message(ProtobufCMessage *reply, enum strip strip,
                          struct undo_list *undo)
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
            clear_field(message, field, undo);
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

static bool pack(ProtobufCMessage *reply, struct undo_list *undo,
                 uint8_t out[VXD_ONCE_REPLY_BYTES], size_t *n_bytes)
{
    bool dropped = false;

    for (int strip = STRIP_ARRAYS; strip <= STRIP_REPEATED; strip++) {
        if (protobuf_c_message_get_packed_size(reply) <= VXD_ONCE_REPLY_BYTES) {
            break;
        }
        strip_message(reply, (enum strip)strip, undo);
        dropped = true;
    }
    *n_bytes = protobuf_c_message_get_packed_size(reply);
    if (*n_bytes > VXD_ONCE_REPLY_BYTES) {
        *n_bytes = 0; /* an empty message says that it was done, and no more */
    } else {
        (void)protobuf_c_message_pack(reply, out);
    }
    return dropped;
}

bool vxd_once_pack(ProtobufCMessage *reply, uint8_t out[VXD_ONCE_REPLY_BYTES],
                   size_t *n_bytes)
{
    return pack(reply, NULL, out, n_bytes);
}

void vxd_once_pack_copy(ProtobufCMessage *reply, uint8_t out[VXD_ONCE_COPY_BYTES],
                        size_t *n_bytes)
{
    struct undo_list undo = {0};

    out[0] = 0;
    if (pack(reply, &undo, out + 1, n_bytes)) {
        *n_bytes += 1; /* with the byte that marks it */
    } else {
        memmove(out, out + 1, *n_bytes);
    }
    put_back(&undo);
}
