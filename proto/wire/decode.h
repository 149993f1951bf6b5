// SPDX-License-Identifier: Apache-2.0
/* Reading messages that a stranger sent: a bounded scan of the envelope before anything
 * is unpacked, and an allocator with a budget for the unpacking itself.
 *
 * protobuf-c has no recursion limit (our schema has no recursive message, which a test
 * checks) and turns 8 MiB of empty submessages into 470 MB: the budget stops that. */
#ifndef VXD_PROTO_WIRE_DECODE_H
#define VXD_PROTO_WIRE_DECODE_H

#include <protobuf-c/protobuf-c.h>

#include "proto/base/base.h"

/* The parts of a serialized Request; the pointers go into the message. */
struct vxd_envelope {
    const uint8_t *header; /* NULL when absent */
    size_t header_bytes;
    uint32_t method_tag; /* field number in the oneof */
    const uint8_t *body; /* the method's own message; may be empty, never NULL */
    size_t body_bytes;
};

/* Scans the top level of a Request; touches only tags and lengths, never allocates.
 *
 * errors  INVALID_ARGUMENT  truncated or overlong varint, length past the end, wrong wire
 *                           type, group, field number 0, a second header or method, no
 * method, more than 64 top-level fields Unknown fields other than length-delimited ones
 * are skipped, as protobuf does; an unknown length-delimited field >= 10 is taken for the
 * method (a newer client's): the caller looks method_tag up and answers UNIMPLEMENTED. */
enum vxd_status vxd_envelope_scan(const uint8_t *message, size_t n_bytes,
                                  struct vxd_envelope *out, struct vxd_err *err);

/* Blocks of at least this size come from `big_alloc`, where given. */
#define VXD_BIG_BLOCK_BYTES 65536

/* The memory of big fields (the server gives page-locked memory, so protobuf-c's own
 * copy is the staging copy). alloc returns NULL when there is none; free takes what
 * alloc gave.
 */
struct vxd_big_alloc {
    void *(*alloc)(void *context, size_t n_bytes);
    void (*free)(void *context, void *block);
    void *context;
};

/* An arena for one message: small blocks are carved from chunks and freed all at once. */
struct vxd_decoder;

/* budget_bytes bounds everything the decoder hands out, big blocks included. big may be
 * NULL (then malloc). The struct *big is copied.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_decoder_create(size_t budget_bytes, const struct vxd_big_alloc *big,
                                   struct vxd_decoder **out, struct vxd_err *err);

/* Frees the decoder and every message it decoded. NULL is fine. */
void vxd_decoder_destroy(struct vxd_decoder *decoder);

/* The arena as a ProtobufCAllocator, for building other messages in it. */
ProtobufCAllocator *vxd_decoder_allocator(struct vxd_decoder *decoder);

/* Allocates n_bytes from the arena, aligned to 16, not cleared; they live until the
 * decoder is destroyed. NULL when there are none (RESOURCE_EXHAUSTED in *err, which
 * names the budget). */
void *vxd_decoder_alloc(struct vxd_decoder *decoder, size_t n_bytes, struct vxd_err *err);

/* Bytes handed out so far, each block rounded up to 16. */
size_t vxd_decoder_used_bytes(const struct vxd_decoder *decoder);

/* Unpacks; the message lives until the decoder is destroyed (never free it yourself).
 * errors  INVALID_ARGUMENT    not a message of this type, or a string that is not UTF-8
 *                             (err.field is its name)
 *         RESOURCE_EXHAUSTED  over the budget, which the message names */
enum vxd_status vxd_decode(struct vxd_decoder *decoder,
                           const ProtobufCMessageDescriptor *descriptor,
                           const uint8_t *bytes, size_t n_bytes, ProtobufCMessage **out,
                           struct vxd_err *err);

/* The largest alignment of any array element. The arena's blocks are aligned so, and
 * so are big data in messages that proto/wire/encode.h wrote. */
#define VXD_DATA_ALIGN 16

/* A message type with more fields than this is copied; the schema has none (a test
 * checks that). */
#define VXD_BORROW_FIELDS 128

/* Which bytes fields need no copy: those of at least so many bytes (> 0) that stand at a
 * multiple of align in the input. Others are copied; so are repeated ones, members of oneofs,
 * and all of a message that gives a singular submessage or bytes field twice. */
struct vxd_borrow {
    size_t least_bytes;
    size_t align;
    bool is_live; /* another process may write there: all but such fields is copied before
                   * protobuf-c reads it, which may go over bytes twice */
};

/* As vxd_decode, with the same result and the same errors, but the data of such fields point
 * into `bytes`, which then must stay as long as the message is used; *n_borrowed says how
 * many bytes do (0: `bytes` may go at once). */
enum vxd_status vxd_decode_borrowing(struct vxd_decoder *decoder,
                                     const struct vxd_borrow *borrow,
                                     const ProtobufCMessageDescriptor *descriptor,
                                     const uint8_t *bytes, size_t n_bytes,
                                     ProtobufCMessage **out, size_t *n_borrowed,
                                     struct vxd_err *err);

#endif
