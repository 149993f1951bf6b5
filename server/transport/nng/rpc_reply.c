// SPDX-License-Identifier: Apache-2.0
/* Writing a Response straight into the bytes that go to the socket: a reply of many megabytes is
 * copied once. */
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/core/core.h"
#include "proto/base/name.h"
#include "proto/wire/wire.h"
#include "proto/base/utf8.h"
#include "server/transport/nng/rpc_internal.h"
#include "voxeld/v1/rpc.pb-c.h"

#define HEADER_FIELD 1u

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

static void encode(struct vxd_encoder *encoder, const Voxeld__V1__ResponseHeader *header,
                   const struct vxd_rpc_answer *answer)
{
    vxd_encode_member(encoder, HEADER_FIELD, &header->base);
    if (answer->output != NULL && answer->shared_bytes > 0) {
        const ProtobufCMessageDescriptor *descriptor = answer->output->descriptor;
        alignas(max_align_t) uint8_t empty[VXD_ENCODE_STRUCT_BYTES];

        protobuf_c_message_init(descriptor, empty);
        vxd_encode_member(encoder, answer->tag, (const ProtobufCMessage *)empty);
    } else if (answer->output != NULL) {
        vxd_encode_member(encoder, answer->tag, answer->output);
    }
}

/* Memory for a reply of so many bytes: of the engine's host blocks where it is large, since these
 * have their pages already. */
static struct vxd_rpc_reply *reply_create(struct vxd_context *context, size_t n_bytes)
{
    bool is_small = n_bytes < VXD_BIG_BLOCK_BYTES;
    struct vxd_rpc_reply *reply = malloc(sizeof *reply + (is_small ? n_bytes : 0));

    if (reply == NULL) {
        return NULL;
    }
    *reply = (struct vxd_rpc_reply){.n_bytes = n_bytes, .context = context};
    if (is_small) {
        reply->bytes = (uint8_t *)(reply + 1);
        return reply;
    }
    if (vxd_host_alloc(context, n_bytes, &reply->block, NULL) != VXD_OK) {
        free(reply);
        return NULL;
    }
    reply->bytes = reply->block.ptr;
    return reply;
}

struct vxd_rpc_reply *vxd_rpc_pack(struct vxd_context *context, bool is_ipc,
                                   const struct vxd_sp_route *route,
                                   const struct vxd_rpc_answer *answer)
{
    Voxeld__V1__ResponseHeader header = VOXELD__V1__RESPONSE_HEADER__INIT;
    Voxeld__V1__StageTimes stages = VOXELD__V1__STAGE_TIMES__INIT;
    char id[VXD_NAME_BYTES];
    char traceparent[VXD_TRACEPARENT_BYTES];
    char field[sizeof answer->err->field];
    char message[sizeof answer->err->message];
    struct vxd_encoder measured = {.least_bytes = VXD_BIG_BLOCK_BYTES,
                                   .origin = VXD_RPC_ORIGIN};
    struct vxd_encoder written = measured;
    struct vxd_rpc_reply *reply;
    size_t at = vxd_sp_head_bytes(is_ipc) + route->n_bytes;

    copy_utf8(id, sizeof id, answer->request_id);
    header.request_id = id;
    header.code = (Voxeld__V1__Code)answer->err->code;
    header.queue_ms = answer->queue_ms;
    header.total_ms = answer->total_ms;
    if (answer->stages != NULL) {
        stages.receive_ms = answer->stages->receive_ms;
        stages.decode_ms = answer->stages->decode_ms;
        stages.wait_ms = answer->stages->wait_ms;
        stages.engine_ms = answer->stages->engine_ms;
        stages.commit_ms = answer->stages->commit_ms;
        header.stages = &stages;
    }
    if (answer->trace != NULL) {
        vxd_trace_write(answer->trace, traceparent);
        header.traceparent = traceparent;
    }
    header.shared_bytes = answer->shared_bytes;
    header.replayed = answer->replayed;
    header.arrays_dropped = answer->arrays_dropped;
    if (answer->err->code != VXD_OK) {
        copy_utf8(message, sizeof message, answer->err->message);
        copy_utf8(field, sizeof field, answer->err->field);
        header.message = message;
        header.field = field;
    }
    encode(&measured, &header, answer);
    reply = reply_create(context, at + measured.at);
    if (reply == NULL) {
        return NULL;
    }
    (void)vxd_sp_write_head(reply->bytes, is_ipc, route->n_bytes + measured.at);
    memcpy(reply->bytes + at - route->n_bytes, route->bytes, route->n_bytes);
    written.out = reply->bytes + at;
    if (answer->output != NULL) {
        written.copy = vxd_parallel_copy; /* nothing else runs for this request */
        written.copy_context = vxd_context_pool(context);
    }
    encode(&written, &header, answer);
    return reply;
}
