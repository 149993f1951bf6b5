// SPDX-License-Identifier: Apache-2.0
/* Writes messages that hold big data: each byte is copied once, and big data begin
 * where their receiver can use them in place (vxd_decode_borrowing in
 * proto/wire/decode.h).
 *
 * protobuf_c_message_pack moves the whole of every nested message once more when its
 * length turns out to need more than a byte. Here whatever holds a big bytes field is
 * written last in its message, after a length of fixed width; protobuf-c writes the
 * rest. The order of different fields is free in protobuf, so every parser reads the
 * same message. */
#ifndef VXD_PROTO_WIRE_ENCODE_H
#define VXD_PROTO_WIRE_ENCODE_H

#include <protobuf-c/protobuf-c.h>

#include "proto/base/base.h"

/* protobuf-c alone writes messages whose structs are above this size; the schema has
 * none (a test checks that). */
#define VXD_ENCODE_STRUCT_BYTES 512

/* The address at which a message begins that came through nng's request/reply
 * protocol, on both sides: nng allocates at a multiple of 16 and leaves its request
 * id, 4 bytes, in front. */
#define VXD_RPC_ORIGIN 4

/* A message that is being written. To measure one, write it with out NULL. */
struct vxd_encoder {
    size_t least_bytes; /* the size of a big bytes field, > 0: VXD_BIG_BLOCK_BYTES */
    size_t origin;      /* address, modulo VXD_DATA_ALIGN, at which the receiver will find
                         * the first byte */
    uint8_t *out;       /* NULL: nothing is written */
    size_t at;          /* bytes so far */
    /* Copies big data, as memcpy does, which it is when NULL. */
    void (*copy)(void *context, void *to, const void *from, size_t n_bytes);
    void *copy_context;
};

/* Appends the fields of the message. Its data are only read. The function calls itself
 * for submessages: as deep as the schema, which a test bounds. */
void vxd_encode(struct vxd_encoder *encoder, const ProtobufCMessage *message);

/* Appends the message as a field of another: tag, length, fields. */
void vxd_encode_member(struct vxd_encoder *encoder, uint32_t field,
                       const ProtobufCMessage *message);

#endif
