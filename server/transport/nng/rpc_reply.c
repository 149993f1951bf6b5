// SPDX-License-Identifier: Apache-2.0
/* Writing a Response straight into an nng message: a reply of many megabytes is copied
 * once. */
#include "server/transport/nng/rpc_internal.h"

#include <string.h>

#include "gpu/core/core.h"
#include "proto/base/name.h"
#include "proto/wire/wire.h"
#include "proto/base/utf8.h"
#include "voxeld/v1/rpc.pb-c.h"

#define HEADER_FIELD 1u
#define COPY_PIECE_BYTES ((size_t)256 * 1024)

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

struct copy {
    uint8_t *to;
    const uint8_t *from;
};

static void copy_piece(void *args, size_t begin, size_t end)
{
    const struct copy *copy = args;

    memcpy(copy->to + begin, copy->from + begin, end - begin);
}

/* All cores may copy, since nothing else runs for this request meanwhile. */
static void copy_big(void *pool, void *to, const void *from, size_t n_bytes)
{
    struct copy copy = {to, from};

    vxd_parallel_for(pool, n_bytes, COPY_PIECE_BYTES, copy_piece, &copy);
}

static void encode(struct vxd_encoder *encoder, const Voxeld__V1__ResponseHeader *header,
                   const struct vxd_rpc_reply *reply)
{
    vxd_encode_member(encoder, HEADER_FIELD, &header->base);
    if (reply->output != NULL) {
        vxd_encode_member(encoder, reply->tag, reply->output);
    }
}

nng_msg *vxd_rpc_pack(const struct vxd_rpc_reply *reply)
{
    Voxeld__V1__ResponseHeader header = VOXELD__V1__RESPONSE_HEADER__INIT;
    char id[VXD_NAME_BYTES];
    char field[sizeof reply->err->field];
    char message[sizeof reply->err->message];
    struct vxd_encoder measured = {.least_bytes = VXD_BIG_BLOCK_BYTES,
                                   .origin = VXD_RPC_ORIGIN};
    struct vxd_encoder written = measured;
    nng_msg *msg = NULL;

    copy_utf8(id, sizeof id, reply->request_id);
    header.request_id = id;
    header.code = (Voxeld__V1__Code)reply->err->code;
    header.queue_ms = reply->queue_ms;
    header.total_ms = reply->total_ms;
    header.replayed = reply->replayed;
    header.arrays_dropped = reply->arrays_dropped;
    if (reply->err->code != VXD_OK) {
        copy_utf8(message, sizeof message, reply->err->message);
        copy_utf8(field, sizeof field, reply->err->field);
        header.message = message;
        header.field = field;
    }
    encode(&measured, &header, reply);
    if (nng_msg_alloc(&msg, measured.at) != 0) {
        return NULL;
    }
    written.out = nng_msg_body(msg);
    if (reply->pool != NULL) {
        written.copy = copy_big;
        written.copy_context = reply->pool;
    }
    encode(&written, &header, reply);
    return msg;
}
