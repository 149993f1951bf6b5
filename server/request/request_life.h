// SPDX-License-Identifier: Apache-2.0
/* The life of one request, the same for both transports:
 *
 *   create -> admit (before the body is read) -> submit (decode, check, queue)
 *          -> lane stages -> finish -> reply -> release
 *
 * A repeated request that changes something leaves this path before the queue: it waits for
 * the first one, or gets its outcome (exactly_once.h).
 *
 * Whatever happens, the transport's reply function is called exactly once: with the
 * result, with an error, or on the timer's thread when the deadline passes first. */
#ifndef VXD_SERVER_REQUEST_REQUEST_LIFE_H
#define VXD_SERVER_REQUEST_REQUEST_LIFE_H

#include <stdatomic.h>

#include "gpu/core/core.h"
#include "proto/base/name.h"
#include "proto/wire/wire.h"
#include "server/observe/observe.h"
#include "server/request/method.h"

struct vxd_scheduler;
struct vxd_server;

#define VXD_TOKEN_BYTES VXD_SIGNED_TOKEN_BYTES

/* What the envelope's header (rpc) or the HTTP headers say. vxd_request_create copies the
 * strings, which are empty or NULL where absent. */
struct vxd_request_header {
    const char *request_id;
    const char *token;
    const char *client_id;
    const char *stream;
    uint64_t sequence;
    const char *idempotency_key; /* instead of a sequence */
    bool
        resends; /* the transport may send a request twice by itself: one that changes something needs client_id and sequence */
    uint32_t timeout_ms;
    uint32_t keep_last;
    uint32_t max_age_ms;
    int64_t began_ns; /* when the first byte of the message came; 0: now */
    const char *peer; /* "ipc", "tcp 10.0.0.7:4242", "http 127.0.0.1:5555": for logs, and
                       * the fairness key where client_id is empty */
    int64_t peer_uid; /* -1 where unknown */
    /* The token that its connection's certificate stands for; empty or NULL: none. One in `token`
     * goes before it. */
    const char *certified;
    const char *traceparent; /* see server/observe/trace.h; NULL: none */
};

enum vxd_body_kind {
    VXD_BODY_PROTOBUF = 0,
    VXD_BODY_JSON = 1,
    VXD_BODY_FILE = 2
};

enum {
    VXD_BODY_MAX_PARTS = 8,
    VXD_BOUNDARY_BYTES = 72,
    VXD_PART_NAME_BYTES = 64
};

/* A part of a multipart body. */
struct vxd_body_part {
    char name[VXD_PART_NAME_BYTES];
    const uint8_t *bytes; /* in the body */
    size_t n_bytes;
};

struct vxd_body {
    enum vxd_body_kind kind;
    const uint8_t *bytes; /* must stay valid until the transport's reply_fn was called and
                           * `discard` (below) ran */
    size_t n_bytes;
    bool is_locked; /* in the engine's host memory: usable where it lies on a GPU, too */
    const char *format; /* VXD_BODY_FILE: ?format= */
    const struct vxd_query_item *query;
    size_t n_query;
    /* VXD_BODY_FILE as multipart/form-data: what separates its parts; NULL: it is one file.
     * from_file gets the parts. */
    const char *boundary;
    struct vxd_body_part parts[VXD_BODY_MAX_PARTS];
    size_t n_parts;
};

/* The boundary that a Content-Type names, without quotes; false where there is none, or one that
 * the standard does not allow. */
bool vxd_multipart_boundary(const char *content_type, char out[VXD_BOUNDARY_BYTES]);

/* Splits a multipart body (RFC 7578, RFC 2046) into its parts, whose bytes stay in it. What is
 * before the first boundary and after the last is skipped.
 * errors  INVALID_ARGUMENT  no or an unfinished part, more than VXD_BODY_MAX_PARTS, two of one
 *                           name, a head without a name or longer than 2048 bytes */
enum vxd_status vxd_multipart_split(const uint8_t *bytes, size_t n_bytes,
                                    const char *boundary,
                                    struct vxd_body_part parts[VXD_BODY_MAX_PARTS],
                                    size_t *n_parts, struct vxd_err *err);

/* Where a request's time went, for its reply. A stage that it has not reached is 0. */
struct vxd_stage_times {
    double receive_ms; /* from the first byte of the message to its last */
    double decode_ms;  /* unpacking and checking it */
    double wait_ms;    /* in the queue, until a lane took it */
    double engine_ms;  /* on lanes, in all stages together */
    double commit_ms;  /* a durable change's wait for the journal */
};

struct vxd_commit;
struct vxd_once_record;

struct vxd_request {
    struct vxd_server *server;
    const struct vxd_method *method;
    struct vxd_principal principal;
    char id[VXD_NAME_BYTES];
    char client_id[VXD_NAME_BYTES];
    char stream[VXD_NAME_BYTES];
    char peer[VXD_NAME_BYTES];
    char token[VXD_TOKEN_BYTES]; /* wiped by admit; never logged */
    char certified[VXD_NAME_BYTES];
    char idempotency_key[VXD_NAME_BYTES];
    int64_t peer_uid;
    uint64_t sequence;
    bool resends;
    bool is_counted;  /* among its sender's requests in flight */
    bool holds_place; /* a watch whose connection is counted among the watchers */
    uint32_t keep_last;
    int64_t began_ns; /* the first byte came; monotonic clock, like all *_ns here */
    int64_t received_ns;
    int64_t deadline_ns;
    int64_t max_age_ns;         /* absolute; INT64_MAX = none */
    _Atomic int64_t whole_ns;   /* the whole body was there; 0 before */
    _Atomic int64_t decoded_ns; /* decoded and checked; 0 before */
    _Atomic int64_t started_ns; /* first submit; 0 before */
    /* Waiting that the request itself asks for, until something happens: when it began (0: it
     * does not wait), and how long it took. It counts neither as queueing nor as running. */
    _Atomic int64_t waits_since_ns;
    _Atomic int64_t waited_ns;
    _Atomic int64_t
        engine_ns; /* spent in stages so far, submitting and waiting; finish reads it */
    _Atomic int64_t handed_over_ns; /* to the journal; 0 before */
    _Atomic int64_t decided_ns;     /* by the journal; 0 before */
    int64_t ran_ns; /* when the last stage had run, or the commit was decided */
    uint64_t body_bytes;
    uint64_t reserved_bytes; /* this request's share of the server's inflight_bytes */
    uint64_t decoder_bytes;  /* of these, the decoder's budget */

    struct vxd_decoder *decoder; /* owns input and whatever the service builds in it */
    ProtobufCMessage *input;

    _Atomic bool changes; /* decided once it is decoded */
    bool has_own_timeout; /* not the server's default */
    struct vxd_trace trace;
    /* Who was ahead of it when it came to the queue; to be read once has_seen_queue is set. */
    struct vxd_why_queue queue_seen;
    atomic_bool has_seen_queue;
    _Atomic(enum vxd_lane_kind) lane; /* the method's, unless its check wants another */

    /* Set by the method's functions. */
    bool bulk;
    bool more;
    /* With more and bulk, of a request that changes something: it has changed nothing yet. So others
     * run before its next stage, and it can be given up. */
    bool is_preparing;
    /* With more: it needs what another request makes. Others go first, and the next stage comes
     * after a moment. */
    bool is_waiting;
    /* It has what it changes for itself: no request that names it begins on a write lane. So it may
     * leave the writer's turn to others (vxd_request_begin_apart). */
    bool is_alone;
    uint64_t cost_bytes;
    uint64_t n_points; /* for the metrics */
    void *state;
    ProtobufCMessage *output; /* packed by the transport inside reply_fn */

    /* Requests that may run as one. check sets these where another request of the method
     * with the same key may run with this one, as long as their batch_items are at most
     * batch_limit together. The request then waits for others until ready_ns, or until
     * there are so many. */
    const void *batch_key;
    uint32_t batch_items;
    uint32_t batch_limit;
    int64_t ready_ns;
    /* Set by the scheduler: the requests that run with this one, linked by
     * next_companion. */
    struct vxd_request *companions;
    struct vxd_request *next_companion;

    /* Set by finish where the change has to be on disk before anybody sees it or its
     * reply. */
    struct vxd_commit *commit;

    /* Exactly-once (exactly_once.h). */
    struct vxd_once_record *once; /* the record this request must end or abandon */
    struct vxd_request *next_repeat;
    /* For the header of a reply that is OK. They are atomic, since the deadline may
     * answer at any time. */
    atomic_bool replayed;
    atomic_bool arrays_dropped;

    /* Result, valid inside reply_fn: err.code VXD_OK and output, or an error. */
    struct vxd_err err;
    double queue_ms;
    double total_ms;
    struct vxd_stage_times stages;

    /* Set by the transport. reply_fn packs and sends the reply; it may run on any thread,
     * must not block and must not touch the request after it returns. At a deadline it
     * runs while the method is still working: then err is set and output must not be
     * read. discard_fn runs last, when nobody uses the body's bytes any more; the request
     * is freed right after it. */
    void (*reply_fn)(struct vxd_request *request, const struct vxd_err *err,
                     const ProtobufCMessage *output);
    void (*discard_fn)(struct vxd_request *request);
    void *transport;

    /* Set by the scheduler. */
    uint16_t fair_sender; /* slots of who sends it */
    uint16_t fair_client;
    bool counts_as_bulk; /* among the bulk reads that have begun */
    int64_t charged_ns;  /* of engine_ns, what its sender's turns have been moved on by */
    atomic_int answered;
    atomic_bool is_cancelled; /* its sender has gone */
    atomic_bool is_apart;     /* its lane has left the writer's turn to others */
    int64_t turn_wait_ns;     /* how long it has waited to have that again */
    /* Set and cleared by methods that change something: it looks at vxd_request_is_over now. */
    atomic_bool ends_when_over;
    atomic_int references;
    struct vxd_request *next;
    size_t timer_slot; /* index in the timer's heap + 1; 0 = not in it */
    bool is_watched;   /* its clock runs */
    bool queued;       /* in the scheduler's list */
    bool submitted;
    bool is_released; /* on its lane's thread: what it held is given back */
    bool
        continues; /* its prerequisite has run, so it counts as begun for all but the lanes */
};

/* What requests ask of the scheduler. It hands these functions in (server->schedule), so that
 * nothing here includes it: the scheduler is built on requests. All are for any thread. */
struct vxd_schedule_calls {
    /* Whether the queue has capacity for this request, asked before its body is decoded:
     * refusing it then costs next to nothing, however large it is. Nothing is reserved; push
     * looks again.
     * errors  UNAVAILABLE  as push */
    enum vxd_status (*check_capacity)(struct vxd_scheduler *scheduler,
                                      struct vxd_request *request, struct vxd_err *err);

    /* Queues a checked request and holds a reference of its own. Superseded requests of the same
     * client and stream are answered ABORTED. Where the queue is full, a sender that has fewer places
     * than another gets one of the other's, whose request is answered UNAVAILABLE.
     * errors  UNAVAILABLE  the queue is full, says its limit; or the server shuts down
     *         ABORTED      superseded itself: keep_last of its stream that arrived later wait */
    enum vxd_status (*push)(struct vxd_scheduler *scheduler, struct vxd_request *request,
                            struct vxd_err *err);

    /* Queues a request whose prerequisite has run: it takes no capacity, and nothing supersedes
     * it.
     * errors  UNAVAILABLE  the server has shut down */
    enum vxd_status (*push_next)(struct vxd_scheduler *scheduler,
                                 struct vxd_request *request, struct vxd_err *err);

    /* Starts the request's clock: from then on it is answered DEADLINE_EXCEEDED when its
     * deadline passes, whatever it is doing.
     * errors  RESOURCE_EXHAUSTED */
    enum vxd_status (*watch)(struct vxd_scheduler *scheduler, struct vxd_request *request,
                             struct vxd_err *err);

    /* The request is answered: stops its clock. */
    void (*unwatch)(struct vxd_scheduler *scheduler, struct vxd_request *request);

    /* Takes a request that has not begun out of the queue, so that others may use its place; the
     * queue's reference is the caller's then. False where it does not wait there. */
    bool (*cancel)(struct vxd_scheduler *scheduler, struct vxd_request *request);

    /* vxd_request_begin_apart and _end_apart of a request that a write lane runs. */
    void (*begin_apart)(struct vxd_scheduler *scheduler, struct vxd_request *request);
    void (*end_apart)(struct vxd_scheduler *scheduler, struct vxd_request *request);
};

/* Makes a request with one reference and an id of its own where the header has none.
 * errors  RESOURCE_EXHAUSTED; INVALID_ARGUMENT for a malformed request_id (not 1-63
 *         printable ASCII), idempotency_key (likewise), client_id or stream (names:
 *         [a-z0-9][a-z0-9._-]{0,62}), keep_last without stream, timeout above the limit, a
 *         token of more than 255 bytes. Even then *out is a request
 *         that can be answered with vxd_request_fail, unless memory ran out (NULL). */
enum vxd_status vxd_request_create(struct vxd_server *server,
                                   const struct vxd_request_header *header,
                                   struct vxd_request **out, struct vxd_err *err);

/* Before the body is read: identifies the sender, checks scope and draining, the body's
 * size, and reserves its bytes. errors  UNAUTHENTICATED, PERMISSION_DENIED, UNAVAILABLE
 * (draining or the engine is lost), RESOURCE_EXHAUSTED (too large; no bytes left),
 * UNIMPLEMENTED (method is NULL). The caller then answers with vxd_request_fail. */
enum vxd_status vxd_request_admit(struct vxd_request *request,
                                  const struct vxd_method *method, size_t body_bytes,
                                  struct vxd_err *err);

/* The same for a body that is still to come: reserves nothing, and refuses it where its bytes would
 * not fit now, or where the queue is full. Its bytes are reserved by vxd_request_receive as they come.
 * errors  as vxd_request_admit; UNAVAILABLE (no place in the queue) */
enum vxd_status vxd_request_admit_upload(struct vxd_request *request,
                                         const struct vxd_method *method,
                                         size_t body_bytes, struct vxd_err *err);

/* Reserves n_bytes of the body, which have come.
 * errors  RESOURCE_EXHAUSTED  no bytes are left */
enum vxd_status vxd_request_receive(struct vxd_request *request, size_t n_bytes,
                                    struct vxd_err *err);

/* Starts the clock of a request that is about to be submitted on another thread: from now on it is answered
 * when its deadline passes. Where that has happened, vxd_request_submit only drops it.
 * errors  UNAVAILABLE, RESOURCE_EXHAUSTED */
enum vxd_status vxd_request_watch(struct vxd_request *request, struct vxd_err *err);

/* Decodes and checks the body, then queues the request (or answers it at once). Always ends in
 * reply_fn, perhaps before this returns. Consumes the caller's reference. */
void vxd_request_submit(struct vxd_request *request, const struct vxd_body *body);

/* Makes its decoder and reserves its share of the server's inflight bytes.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_request_open_decoder(struct vxd_request *request,
                                         struct vxd_err *err);

/* Answers with an error: logs, counts, calls reply_fn and then discard_fn. Consumes the
 * caller's reference. */
void vxd_request_fail(struct vxd_request *request, const struct vxd_err *err);

/* Answers the request; err is NULL where it succeeded. Only the first call does so; later
 * ones do nothing and return false. For the scheduler. */
bool vxd_request_answer(struct vxd_request *request, const struct vxd_err *err,
                        const ProtobufCMessage *output);
void vxd_request_hold(struct vxd_request *request);
void vxd_request_drop(struct vxd_request *request);

/* Its sender has gone: answers CANCELLED. A request that waits leaves the queue at once, one that
 * has begun stops at the next border of its stages. What changes something and has begun goes on to
 * its end, so that asking again gives the outcome, unless its method looks at vxd_request_is_over.
 * The caller holds a reference. Any thread. */
void vxd_request_cancel(struct vxd_request *request);

/* Whether nobody waits for the request any more, since it is answered (its deadline has passed) or
 * its sender has gone. A method whose change can be taken back may end as CANCELLED then: it has had
 * no effect, and whoever asks again runs it anew; it sets ends_when_over. Any thread. */
bool vxd_request_is_over(const struct vxd_request *request);

/* For a change that takes long and is_alone: another write lane may write while the engine works on
 * what this one has for itself, until vxd_request_end_apart, which waits for the writer's turn. In
 * between nothing of a registry may be touched, but what is for any thread. Both do nothing where
 * there is nothing to do; begin_apart may be called by any thread, while the lane is in the engine. */
void vxd_request_begin_apart(struct vxd_request *request);
void vxd_request_end_apart(struct vxd_request *request);

/* Whether a change goes on to its end although its deadline has passed, so that whoever asks again by
 * its sequence gets the outcome, instead of beginning anew what cannot be in time. Any thread. */
bool vxd_request_goes_on(const struct vxd_request *request);

/* Fills in the error that a transport sends instead of a reply that it has no memory for.
 * A request that changed something has done so by then: its sender gets UNAVAILABLE, and
 * asking again gives the outcome. */
void vxd_request_fail_reply(const struct vxd_request *request, struct vxd_err *err);

/* Returns the name by which lanes are shared fairly: the client_id, or else the peer. */
const char *vxd_request_client(const struct vxd_request *request);

/* Returns the HTTP status of a code (see Code in common.proto). */
int vxd_http_status(enum vxd_status code);

/* Returns the name of a code, for example "INVALID_ARGUMENT". */
const char *vxd_status_name(enum vxd_status code);

#endif
