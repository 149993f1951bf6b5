// SPDX-License-Identifier: Apache-2.0
/* What the files of the rpc transport share; nobody else includes this. */
#ifndef VXD_SERVER_TRANSPORT_NNG_RPC_INTERNAL_H
#define VXD_SERVER_TRANSPORT_NNG_RPC_INTERNAL_H

#include <nng/nng.h>

#include "proto/base/name.h"
#include "server/request/request.h"

/* One listener, made with its limits set and started.
 * in      url    one of config->rpc
 * out     bound  the URL with the port really bound, VXD_PATH_BYTES
 * errors  INVALID_ARGUMENT  the URL, or what stands at the socket's path is no socket
 *         UNAVAILABLE       in use, or cannot be bound; names it
 *         NOT_FOUND         the socket's directory cannot be made */
enum vxd_status vxd_rpc_listen(nng_socket socket, const struct vxd_config *config,
                               const char *url, char *bound, struct vxd_err *err);

/* Describes the other end: "ipc pid 4711" or "tcp 10.0.0.7:4242", and its uid (-1 where
 * the transport does not know it). False when the connection has ended meanwhile: whose
 * request it was is unknown then. */
bool vxd_rpc_peer(nng_pipe pipe, char name[VXD_NAME_BYTES], int64_t *uid);

/* What a reply says about its request. */
struct vxd_rpc_reply {
    const char *request_id;
    const struct vxd_err *err;      /* code VXD_OK, or why there is no output */
    const ProtobufCMessage *output; /* NULL unless OK */
    uint32_t tag;                   /* of the method, in Response */
    bool replayed;                  /* see ResponseHeader */
    bool arrays_dropped;
    double queue_ms;
    double total_ms;
    struct vxd_pool *pool; /* copies the output's big data; NULL without output */
};

/* Packs a Response into one message of exactly its size; NULL when memory ran out. */
nng_msg *vxd_rpc_pack(const struct vxd_rpc_reply *reply);

#endif
