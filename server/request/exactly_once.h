// SPDX-License-Identifier: Apache-2.0
/* Exactly-once: the outcomes of requests that changed something are remembered, so that a
 * repeated request gets the first one's outcome instead of a second effect. The rules are
 * those of RequestHeader in rpc.proto. A request repeats another one that has the same
 * token's name, client_id and sequence, or the same Idempotency-Key instead of a
 * sequence.
 *
 *   enter    first of its number: a record is made, with capacity for the reply, before it runs
 *            while the first one runs: the repeated one waits
 *            when the first one has ended: the repeated one gets its outcome
 *   finish   it ran: a success is kept, an error is forgotten; waiting requests get the same
 *   abandon  it never began: it is forgotten, and the first waiting request takes its place
 *
 * Memory is bounded by VXD_ONCE_OUTCOMES for a client and by limits.replay_* for a token (or a user
 * without one), so that nobody's memory is pushed out by another. The token's clients that have
 * been silent longest are forgotten first, as wholes, but for those of the last limits.replay_seconds:
 * rather than them a new client is refused. Of each forgotten client its highest sequence stays as a
 * watermark, and requests up to it are refused, since it is unknown what they did.
 * VXD_ONCE_WATERMARKS of a token's are kept, the latest ones. Beyond that, and for keys, which have no order, a repeated request that was
 * forgotten counts as a new one. The disk keeps outcomes of changes of durable things,
 * and no others. All functions are thread-safe; no reply is given with the lock held. */
#ifndef VXD_SERVER_REQUEST_EXACTLY_ONCE_H
#define VXD_SERVER_REQUEST_EXACTLY_ONCE_H

#include "proto/base/name.h"
#include "server/request/request_life.h"

enum {
    VXD_ONCE_OUTCOMES = 64,      /* of one client */
    VXD_ONCE_WATERMARKS = 65536, /* forgotten clients of a token; some 100 bytes each */
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

/* No client is forgotten for another one so soon after its last request; 0 before. */
void vxd_once_set_life(struct vxd_once *once, uint32_t seconds);

/* No request may use it any more. NULL is fine. */
void vxd_once_destroy(struct vxd_once *once);

/* Sets the key of digests, of which the first 16 bytes count. A key that outlives the
 * process lets the next process recognise outcomes. To be called before any request. */
void vxd_once_set_key(struct vxd_once *once, const uint8_t *key);

enum {
    VXD_ONCE_CLIENT_BYTES = 3 * VXD_NAME_BYTES
};

/* exactly_once_disk.c. Describes a request that has a record: who asked (and by which
 * key; then the sequence is 0), which of the client's requests it is, and its digest.
 * From now on its outcome counts as being on the disk: when it is forgotten, the disk
 * forgets it, too. */
void vxd_once_describe(const struct vxd_request *request,
                       uint8_t client[VXD_ONCE_CLIENT_BYTES], size_t *n_client_bytes,
                       uint64_t *sequence, uint8_t digest[VXD_ONCE_DIGEST_BYTES]);

struct vxd_journal_txn;

/* Adds to a transaction that the disk forgets what memory has forgotten since the last
 * one. To be called after vxd_once_describe and before the request's own outcome is put,
 * because a client that is known again may reuse a number.
 * errors  RESOURCE_EXHAUSTED; then the next transaction has it */
enum vxd_status vxd_once_put_forgotten(struct vxd_once *once, int64_t unix_ns,
                                       struct vxd_journal_txn *txn, struct vxd_err *err);

/* Adds the outcome of a request that has a record to a transaction, so that it is known
 * after a start. The request's output stays as it is. Does nothing where the request has
 * no record.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_once_put_outcome(struct vxd_request *request, int64_t unix_ns,
                                     struct vxd_journal_txn *txn, struct vxd_err *err);

/* Restores the outcome of a request of an earlier process by its description, or a
 * client's watermark, in the order of their times. What exceeds the limits is left out,
 * and the disk forgets it. To be called before any request.
 * errors  DATA_LOSS           the description is none
 *         RESOURCE_EXHAUSTED  no memory */
enum vxd_status vxd_once_restore(struct vxd_once *once, const uint8_t *client,
                                 size_t n_client_bytes, uint64_t sequence,
                                 const uint8_t *digest, const void *reply,
                                 size_t n_reply_bytes, struct vxd_err *err);

/* Computes a digest of what a request asks for: its method and its body as it came. A
 * secret key of this process keeps anybody from making two bodies with one digest. */
void vxd_once_digest(const struct vxd_once *once, const struct vxd_method *method,
                     const struct vxd_body *body, uint8_t out[VXD_ONCE_DIGEST_BYTES]);

enum vxd_once_role {
    VXD_ONCE_FIRST,   /* it is to run; request->once is set */
    VXD_ONCE_WAITING, /* it will be answered; holds a reference of its own */
    VXD_ONCE_DONE     /* request->output is the outcome (in its decoder) */
};

/* Looks up a decoded request that changes something and has a number, and makes a record
 * of it where it is the first.
 * errors  INVALID_ARGUMENT     another body or method had this number
 *         FAILED_PRECONDITION  the sequence is below all that are remembered, or not above one that
 *                              was forgotten
 *         UNAVAILABLE          too many of its client run, or too many repeated ones wait
 *         RESOURCE_EXHAUSTED   no memory to remember it */
enum vxd_status vxd_once_enter(struct vxd_once *once, struct vxd_request *request,
                               const uint8_t digest[VXD_ONCE_DIGEST_BYTES],
                               enum vxd_once_role *role, struct vxd_err *err);

/* Whether a request that has a number, decoded or not, repeats one that ran or runs. */
bool vxd_once_is_known(struct vxd_once *once, const struct vxd_request *request);

/* Whether the one that the request repeats has ended with an outcome, or goes on to its end
 * (vxd_request_goes_on). Not for that one itself. */
bool vxd_once_goes_on(struct vxd_once *once, const struct vxd_request *request);

/* Ends the record of a request that ran to its end and was answered, or expired
 * meanwhile. err is NULL where it succeeded, and then output is the reply; a large one
 * loses its arrays here, so nobody may read it afterwards. It cannot fail, because what
 * it needs was reserved. */
void vxd_once_finish(struct vxd_request *request, const struct vxd_err *err,
                     ProtobufCMessage *output);

/* Gives up the record of a request that never began. This may queue a waiting request. */
void vxd_once_abandon(struct vxd_request *request);

/* Finds a waiting request that is not answered, and takes a reference for the caller;
 * NULL when there is none. For a drain that ran out of time. */
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

/* Does the same for the disk, without changing the reply. Where something was dropped, a
 * byte 0 comes first, which begins no message. */
void vxd_once_pack_copy(ProtobufCMessage *reply, uint8_t out[VXD_ONCE_COPY_BYTES],
                        size_t *n_bytes);

#endif
