// SPDX-License-Identifier: Apache-2.0
/* Writing a Response straight into an nng message: header and output are packed in place,
 * so a reply of many megabytes is copied once. */
#include "server/transport/rpc_internal.h"

#include <string.h>

#include "proto/utf8.h"
#include "voxeld/v1/rpc.pb-c.h"

#define HEADER_FIELD 1u
#define MAX_VARINT_BYTES 10

static size_t write_varint(uint8_t *at, uint64_t value)
{
    size_t n = 0;

    while (value >= 0x80) {
        at[n++] = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    at[n++] = (uint8_t)value;
    return n;
}

/* Tag and length of a submessage. */
static size_t write_prefix(uint8_t *at, uint32_t field, size_t n_bytes)
{
    size_t n = write_varint(at, ((uint64_t)field << 3) | 2);

    return n + write_varint(at + n, n_bytes);
}

/* Messages quote what a stranger sent and may be cut inside a character; a string field
 * that is not UTF-8 would make the whole reply unreadable. */
static void copy_utf8(char *out, size_t capacity, const char *s)
{
    size_t n_bytes = strlen(s);
    size_t at = 0;

    for (size_t i = 0; i < n_bytes && at + 1 < capacity;) {
        size_t n = vxd_utf8_char_bytes(s + i, n_bytes - i);

        if (n == 0) {
            out[at++] = '?';
            i++;
        } else if (at + n < capacity) {
            memcpy(out + at, s + i, n);
            at += n;
            i += n;
        } else {
            break;
        }
    }
    out[at] = '\0';
}

nng_msg *vxd_rpc_pack(const struct vxd_rpc_reply *reply)
{
    Voxeld__V1__ResponseHeader header = VOXELD__V1__RESPONSE_HEADER__INIT;
    char id[VXD_NAME_BYTES];
    char field[sizeof reply->err->field];
    char message[sizeof reply->err->message];
    uint8_t header_prefix[2 * MAX_VARINT_BYTES];
    uint8_t output_prefix[2 * MAX_VARINT_BYTES];
    size_t header_prefix_bytes, output_prefix_bytes = 0;
    size_t header_bytes, output_bytes = 0;
    nng_msg *msg = NULL;
    uint8_t *at;

    copy_utf8(id, sizeof id, reply->request_id);
    header.request_id = id;
    header.code = (Voxeld__V1__Code)reply->err->code;
    header.queue_ms = reply->queue_ms;
    header.total_ms = reply->total_ms;
    if (reply->err->code != VXD_OK) {
        copy_utf8(message, sizeof message, reply->err->message);
        copy_utf8(field, sizeof field, reply->err->field);
        header.message = message;
        header.field = field;
    }
    header_bytes = voxeld__v1__response_header__get_packed_size(&header);
    header_prefix_bytes = write_prefix(header_prefix, HEADER_FIELD, header_bytes);
    if (reply->output != NULL) {
        output_bytes = protobuf_c_message_get_packed_size(reply->output);
        output_prefix_bytes = write_prefix(output_prefix, reply->tag, output_bytes);
    }
    if (nng_msg_alloc(&msg, header_prefix_bytes + header_bytes + output_prefix_bytes +
                                output_bytes) != 0) {
        return NULL;
    }
    at = nng_msg_body(msg);
    memcpy(at, header_prefix, header_prefix_bytes);
    at += header_prefix_bytes;
    at += voxeld__v1__response_header__pack(&header, at);
    if (reply->output != NULL) {
        memcpy(at, output_prefix, output_prefix_bytes);
        at += output_prefix_bytes;
        (void)protobuf_c_message_pack(reply->output, at);
    }
    return msg;
}
