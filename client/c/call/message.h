// SPDX-License-Identifier: Apache-2.0
/* The bytes of requests and replies, whichever way they go. */
#ifndef VXD_CLIENT_C_CALL_MESSAGE_H
#define VXD_CLIENT_C_CALL_MESSAGE_H

#include <nng/nng.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/wire/wire.h"

/* Beyond so many big arrays, the rest is copied. */
#define VXD_MAX_PARTS 16

/* A packed request: n_bytes, of which the parts are not in `bytes`, but still where the caller has
 * them. What `bytes` has in their place is not set. */
struct vxd_packed {
    uint8_t *bytes;
    size_t n_bytes;
    size_t n_parts;
    struct vxd_packed_part {
        size_t at;
        const void *data;
        size_t n_bytes;
    } parts[VXD_MAX_PARTS];
};

/* Packs a message; its big data are borrowed until vxd_packed_free.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_packed_create(const ProtobufCMessage *message, size_t n_bytes,
                                  struct vxd_packed *out, struct vxd_err *err);
/* Copies all n_bytes to where they lie together. */
void vxd_packed_gather(const struct vxd_packed *packed, uint8_t *out);
void vxd_packed_free(struct vxd_packed *packed);

/* Memory for replies that a client uses again, since fresh pages cost as much as the copy into
 * them. It keeps one block, and lives as long as its client and all blocks. Any thread may use
 * it. */
struct vxd_reply_memory;
struct vxd_reply_memory *vxd_reply_memory_create(void); /* NULL: none */
/* The client's own reference; NULL is fine. */
void vxd_reply_memory_drop(struct vxd_reply_memory *memory);

/* A reply as it came; all zero: none. */
struct vxd_message {
    uint8_t *body; /* at VXD_RPC_ORIGIN, modulo VXD_DATA_ALIGN */
    size_t n_bytes;
    nng_msg *nng;            /* holds the body, */
    struct vxd_block *block; /* or this does */
};

/* Memory for a reply of so many bytes; false: none. */
bool vxd_message_create(struct vxd_reply_memory *memory, size_t n_bytes,
                        struct vxd_message *out);
struct vxd_message vxd_message_of_nng(nng_msg *take_message);
void vxd_message_free(struct vxd_message *message);

#endif
