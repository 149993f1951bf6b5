// SPDX-License-Identifier: Apache-2.0
/* Exactly-once: what became of the requests that changed something, so that a repeated one
 * gets the first one's outcome instead of a second effect. The rules are RequestHeader's in
 * rpc.proto; who repeats whom is decided by (token's name, client_id, sequence), or
 * Idempotency-Key instead of a sequence.
 *
 *   enter    first of its number: a record is made, with room for the reply, before it runs
 *            while the first one runs: it waits
 *            when that has ended: the outcome
 *   finish   it ran: success is kept, an error forgotten; who waits gets the same
 *   abandon  it never began: forgotten, and the first of those who wait takes its place
 *
 * Memory is bounded: VXD_ONCE_OUTCOMES a client, and limits.replay_* in all; whole clients
 * go first that were silent longest. Of each that went its highest sequence stays, and all up to
 * that are refused, since what they did is not known any more; of VXD_ONCE_WATERMARKS clients, those
 * that went last. Beyond that, and of keys, which have no order, a repeated request that was
 * forgotten is a new one. The disk has of all this what changed a durable thing, and no more.
 * Thread-safe; no reply is given with the lock held. */
#ifndef VXD_SERVER_REQUEST_EXACTLY_ONCE_H
#define VXD_SERVER_REQUEST_EXACTLY_ONCE_H

#include "proto/base/name.h"
#include "server/request/request_life.h"

enum {
    VXD_ONCE_OUTCOMES = 64,      /* remembered a client */
    VXD_ONCE_WATERMARKS = 65536, /* clients that went; some 100 bytes each */
    VXD_ONCE_REPLY_BYTES = 4096, /* larger replies lose their arrays */
    VXD_ONCE_MAX_WAITING = 64,   /* repeated requests that wait, of all clients */
    VXD_ONCE_DIGEST_BYTES = 16
};

struct vxd_once;

struct vxd_once_usage {
    size_t n_clients;
    size_t n_outcomes; /* running ones included */
    size_t n_waiting;
    uint64_t n_bytes;
};

/* errors  RESOURCE_EXHAUSTED, INTERNAL (no random numbers) */
enum vxd_status vxd_once_create(uint64_t max_bytes, uint32_t max_clients,
                                struct vxd_once **out, struct vxd_err *err);

/* No request may be in it any more. NULL is fine. */
void vxd_once_destroy(struct vxd_once *once);

/* The key of digests from now on, of which the first 16 bytes count: one that outlives the process
 * makes outcomes known to the next one. Before any request. */
void vxd_once_set_key(struct vxd_once *once, const uint8_t *key);

enum {
    VXD_ONCE_CLIENT_BYTES = 3 * VXD_NAME_BYTES
};

/* exactly_once_disk.c. How a request that is filed is known: who asked (and by which key, then the
 * sequence is 0), which of its requests, and its digest. Its outcome counts as on the disk from
 * now on: when it is forgotten, the disk is told. */
void vxd_once_describe(const struct vxd_request *request,
                       uint8_t client[VXD_ONCE_CLIENT_BYTES], size_t *n_client_bytes,
                       uint64_t *sequence, uint8_t digest[VXD_ONCE_DIGEST_BYTES]);

struct vxd_journal_txn;

/* Adds to a transaction that the disk forgets what was forgotten since the last one. To be called
 * behind vxd_once_describe and before the request's own outcome is put: a client that is known
 * again may have a number that it had.
 * errors  RESOURCE_EXHAUSTED; then the next one has it */
enum vxd_status vxd_once_put_forgotten(struct vxd_once *once, int64_t unix_ns,
                                       struct vxd_journal_txn *txn, struct vxd_err *err);

/* Adds what a request that is filed is answered, so that it is known after a start; its output stays
 * as it is. Harmless where it is not filed.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_once_put_outcome(struct vxd_request *request, int64_t unix_ns,
                                     struct vxd_journal_txn *txn, struct vxd_err *err);

/* The outcome of a request of an earlier process, by its description, or a client's watermark, also of
 * one that went; in the order of their times. What does not fit the limits is left out, and
 * forgotten by the disk too. Before any request.
 * errors  DATA_LOSS           a description that is none
 *         RESOURCE_EXHAUSTED  no memory */
enum vxd_status vxd_once_restore(struct vxd_once *once, const uint8_t *client,
                                 size_t n_client_bytes, uint64_t sequence,
                                 const uint8_t *digest, const void *reply,
                                 size_t n_reply_bytes, struct vxd_err *err);

/* A digest of what a request asks for: its method and its body as it came. Keyed by a secret
 * of this process, so nobody can make two bodies of one digest. */
void vxd_once_digest(const struct vxd_once *once, const struct vxd_method *method,
                     const struct vxd_body *body, uint8_t out[VXD_ONCE_DIGEST_BYTES]);

enum vxd_once_role {
    VXD_ONCE_FIRST,   /* run it: request->once is set */
    VXD_ONCE_WAITING, /* it will be answered; holds a reference of its own */
    VXD_ONCE_DONE     /* request->output is the outcome (in its decoder) */
};

/* Files a decoded request that changes something and has a number.
 * errors  INVALID_ARGUMENT     another body or method had this number
 *         FAILED_PRECONDITION  the sequence is below all that are remembered, or not above one that
 *                              was forgotten
 *         UNAVAILABLE          too many of its client run, or too many repeated ones wait
 *         RESOURCE_EXHAUSTED   no memory to remember it */
enum vxd_status vxd_once_enter(struct vxd_once *once, struct vxd_request *request,
                               const uint8_t digest[VXD_ONCE_DIGEST_BYTES],
                               enum vxd_once_role *role, struct vxd_err *err);

/* request->once ran to its end and was answered, or expired meanwhile. err NULL = OK, and
 * output is the reply: it loses its arrays here where it is large, so nobody may read it
 * afterwards. Cannot fail: what it needs was reserved. */
void vxd_once_finish(struct vxd_request *request, const struct vxd_err *err,
                     ProtobufCMessage *output);

/* request->once never began. May queue one of those who wait. */
void vxd_once_abandon(struct vxd_request *request);

/* Of those who wait, one that is not answered, with a reference for the caller; NULL when
 * there is none. For a drain that ran out of time. */
struct vxd_request *vxd_once_find_waiting(struct vxd_once *once);

void vxd_once_get_usage(struct vxd_once *once, struct vxd_once_usage *out);

/* exactly_once_reply.c: packs a reply into at most VXD_ONCE_REPLY_BYTES at `out`, without its
 * tensors' elements and bytes fields where it is larger, without repeated fields and strings
 * where it still is. True when something was dropped. */
bool vxd_once_pack(ProtobufCMessage *reply, uint8_t out[VXD_ONCE_REPLY_BYTES],
                   size_t *n_bytes);

enum {
    VXD_ONCE_COPY_BYTES = VXD_ONCE_REPLY_BYTES + 1
};

/* The same for the disk, without changing the reply: behind a byte 0, which begins no message,
 * where something was dropped. */
void vxd_once_pack_copy(ProtobufCMessage *reply, uint8_t out[VXD_ONCE_COPY_BYTES],
                        size_t *n_bytes);

#endif
