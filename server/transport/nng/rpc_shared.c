// SPDX-License-Identifier: Apache-2.0
/* Bodies in memory that a client shares. What lies there may change at any time, so a body is
 * copied before anything of it is read; a reply's is only written. */
#include <string.h>

#include "gpu/core/core.h"
#include "proto/wire/wire.h"
#include "server/transport/nng/rpc_internal.h"
#include "server/transport/shared/shared.h"

static enum vxd_status refuse(struct vxd_rpc_message *message, const char *field,
                              uint64_t offset, uint64_t n_bytes, struct vxd_err *err)
{
    vxd_rpc_shared_close(message);
    return vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                    "%llu bytes at %llu do not lie within the region",
                    (unsigned long long)n_bytes, (unsigned long long)offset);
}

enum vxd_status vxd_rpc_shared_open(struct vxd_rpc_message *message,
                                    const Voxeld__V1__SharedBody *shared,
                                    struct vxd_envelope *envelope, struct vxd_err *err)
{
    struct vxd_rpc_connection *connection = message->connection;
    struct vxd_shared *all = connection->loop->rpc->shared;
    struct vxd_rpc_shared *s = &message->shared;
    enum vxd_status status;

    if (shared == NULL) {
        return VXD_OK;
    }
    if (!connection->is_ipc) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "header.shared",
                        "memory is shared over ipc only");
    }
    if (all == NULL) {
        return vxd_fail(err, VXD_FAILED_PRECONDITION, "header.shared",
                        "this server shares no memory (limits.shared_bytes)");
    }
    if (envelope->body_bytes > 0) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "header.shared",
                        "the method's field holds %zu bytes; it must be empty where the "
                        "body is in shared memory",
                        envelope->body_bytes);
    }
    status = vxd_shared_hold(all, shared->region.data, shared->region.len,
                             connection->uid, &s->region, err);
    if (status != VXD_OK) {
        return status;
    }
    s->offset = shared->offset;
    s->n_bytes = shared->n_bytes;
    s->reply_offset = shared->reply_offset;
    s->reply_bytes = shared->reply_bytes;
    if (vxd_shared_bytes(s->region, s->offset, s->n_bytes) == NULL) {
        return refuse(message, "header.shared.offset", s->offset, s->n_bytes, err);
    }
    if (vxd_shared_bytes(s->region, s->reply_offset, s->reply_bytes) == NULL) {
        return refuse(message, "header.shared.reply_offset", s->reply_offset,
                      s->reply_bytes, err);
    }
    envelope->body_bytes = (size_t)s->n_bytes;
    return VXD_OK;
}

enum vxd_status vxd_rpc_shared_copy(struct vxd_rpc_message *message,
                                    struct vxd_envelope *envelope, struct vxd_err *err)
{
    struct vxd_rpc_shared *s = &message->shared;
    struct vxd_server *server = message->server;
    /* Big data are aligned relative to the region, and stay so in the copy. */
    size_t misaligned = (size_t)(s->offset % VXD_DATA_ALIGN);
    enum vxd_status status;

    if (s->region == NULL || s->n_bytes == 0) {
        return VXD_OK;
    }
    status =
        vxd_upload_memory_create(server, misaligned + (size_t)s->n_bytes, &s->body, err);
    if (status != VXD_OK) {
        return status;
    }
    vxd_parallel_copy(vxd_context_pool(server->context), s->body.bytes + misaligned,
                      vxd_shared_bytes(s->region, s->offset, s->n_bytes),
                      (size_t)s->n_bytes);
    vxd_upload_memory_complete(server, &s->body);
    envelope->body = s->body.bytes + misaligned;
    return VXD_OK;
}

uint64_t vxd_rpc_shared_reply(struct vxd_rpc_message *message,
                              const ProtobufCMessage *output)
{
    const struct vxd_rpc_shared *s = &message->shared;
    size_t origin = (size_t)(s->reply_offset % VXD_DATA_ALIGN);
    struct vxd_encoder measured = {.least_bytes = VXD_BIG_BLOCK_BYTES, .origin = origin};
    struct vxd_encoder written = measured;

    if (s->region == NULL || s->reply_bytes < VXD_BIG_BLOCK_BYTES) {
        return 0;
    }
    vxd_encode(&measured, output);
    if (measured.at < VXD_BIG_BLOCK_BYTES || measured.at > s->reply_bytes) {
        return 0;
    }
    written.out = vxd_shared_bytes(s->region, s->reply_offset, measured.at);
    written.copy = vxd_parallel_copy;
    written.copy_context = vxd_context_pool(message->server->context);
    vxd_encode(&written, output);
    return measured.at;
}

void vxd_rpc_shared_close(struct vxd_rpc_message *message)
{
    vxd_upload_memory_destroy(message->server, &message->shared.body);
    vxd_shared_drop(message->shared.region);
    message->shared.region = NULL;
}
