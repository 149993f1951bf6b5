// SPDX-License-Identifier: Apache-2.0
/* Synchronous calls over sockets of our own, ipc and tcp. The bytes are those of nng's peers
 * (proto/wire/sp.h), so the other end cannot tell the difference. nng moves each piece of a message
 * from its polling thread to another one and from there to the caller, in memory that it zeroes
 * first; here the caller's thread writes from the caller's arrays and reads into memory that was
 * used before, and nobody else is woken.
 *
 * A connection has one call at a time. A client keeps a few; calls beyond them, asynchronous calls
 * and TLS go over the client's nng socket, which stands besides: it is what reconnects, and knows
 * whether the server is there. */
#ifndef VXD_CLIENT_C_DIRECT_DIRECT_H
#define VXD_CLIENT_C_DIRECT_DIRECT_H

#include <nng/nng.h>
#include <nng/supplemental/util/platform.h>

#include "proto/wire/wire.h"

/* The bytes of requests and replies, whichever way they go ------------------------------ */

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

/* Connections ---------------------------------------------------------------------------- */

struct vxd_direct;
struct vxd_direct_connection;

/* The environment's variable that has calls go over nng alone, where it is "nng". */
#define VXD_TRANSPORT_VARIABLE "VOXELD_TRANSPORT"

/* Prepares connections to the URL, and makes none yet. *out is NULL where calls are to go over
 * nng.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_direct_create(const char *url, size_t max_reply_bytes,
                                  struct vxd_direct **out, struct vxd_err *err);
/* No connection is taken any more; NULL is fine. */
void vxd_direct_destroy(struct vxd_direct *direct);

/* A connection for one call, made now where none is idle, which takes a second at most and ends at
 * the deadline (nng_clock()). NULL: use nng. direct may be NULL. */
struct vxd_direct_connection *vxd_direct_take(struct vxd_direct *direct,
                                              nng_time deadline);

/* Gives it back, and closes those that were idle for long, but for the last one. is_usable: its
 * last call got its whole reply, and no other is to come. */
void vxd_direct_give(struct vxd_direct *direct,
                     struct vxd_direct_connection *take_connection, bool is_usable);

/* Called about every `every_ms` while a call waits; NULL: nobody is. */
struct vxd_direct_watch {
    void (*waits)(void *user);
    void *user;
    uint32_t every_ms;
};

/* Sends a request and receives its reply.
 * in      deadline  nng_clock()
 * out     *sent     the server may have begun with it
 *         reply     empty unless this succeeds
 * gives   0, or nng's error: NNG_ETIMEDOUT, NNG_ECONNRESET, NNG_ENOMEM, NNG_EMSGSIZE (a reply
 *         above max_reply_bytes), NNG_EPROTO */
int vxd_direct_exchange(struct vxd_direct *direct,
                        struct vxd_direct_connection *connection,
                        const struct vxd_packed *request, nng_time deadline,
                        const struct vxd_direct_watch *watch,
                        struct vxd_reply_memory *memory, bool *sent,
                        struct vxd_message *reply);

#endif
