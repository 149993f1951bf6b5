// SPDX-License-Identifier: Apache-2.0
/* What the files of libvoxeld share. Inside, errors are struct vxd_err; the public
 * functions turn them into struct voxeld_error. */
#ifndef VXD_CLIENT_C_CALL_CLIENT_INTERNAL_H
#define VXD_CLIENT_C_CALL_CLIENT_INTERNAL_H

#include <nng/nng.h>
#include <nng/protocol/reqrep0/req.h>
#include <nng/supplemental/util/platform.h>
#include <pthread.h>

#include "client/c/direct/direct.h"
#include "client/c/call/shared_slots.h"
#include "client/c/include/voxeld.h"
#include "proto/base/base.h"
#include "proto/wire/wire.h"
#include "voxeld/v1/rpc.pb-c.h"

#define VXD_REQUEST_ID_BYTES 64
/* Above any method's number. */
#define VXD_SHARED_METHODS 256

struct vxd_call;

/* Shared memory as the calls of a client use it. */
struct vxd_client_shared {
    pthread_mutex_t mutex; /* guards all but is_on and is_automatic */
    bool is_on;            /* else the client shares none */
    bool
        is_automatic; /* the client chooses n_bytes, and begins with its second large call */
    bool is_opening; /* a thread registers a region, without the mutex */
    size_t n_bytes;  /* of the region, the last one where there is none */
    size_t n_large;  /* calls that would have used it */
    struct vxd_shared_memory *memory; /* NULL: none now */
    nng_time retry_at;                /* not before is it asked for again */
    /* The largest reply's bytes, by the method's number: how much a call reserves for its own. */
    size_t n_reply_bytes[VXD_SHARED_METHODS];
};

struct voxeld_client {
    /* Constant once connected. */
    nng_socket socket;
    char *url;
    char *token;
    char *client_id;
    uint32_t timeout_ms; /* 0 = as long as the server allows */
    void (*waiting)(void *user, uint32_t waited_ms, uint32_t timeout_ms);
    void *waiting_user;
    uint32_t max_in_flight;
    uint32_t id_prefix; /* random; makes our request ids differ from other clients' */
    size_t max_reply_bytes;
    struct vxd_direct *direct; /* NULL: all calls go over nng */
    struct vxd_reply_memory *reply_memory;
    struct vxd_client_shared shared;
    int fds[2]; /* a pipe with one byte in it while `done` is not empty */

    pthread_mutex_t mutex;
    pthread_cond_t changed;   /* n_connections, running or done; on CLOCK_MONOTONIC */
    uint32_t n_connections;   /* standing now */
    uint64_t connection_no;   /* rises with each */
    uint64_t limit_known_for; /* connection_no whose limit is known; 0 = none */
    uint64_t max_message_bytes;
    uint64_t max_timeout_ms; /* 0 = not known */
    uint64_t n_ids;
    uint64_t last_sequence;
    struct voxeld_timings timings; /* of the last call that succeeded */
    bool has_timings;
    bool closing;
    bool closed;              /* nng_close has returned */
    bool abandoned;           /* nobody waits for `closed` any more */
    uint32_t n_in_flight;     /* counted until the callback or the synchronous return */
    struct vxd_call *sending; /* a list by sends_next: nng has not taken their requests
                               * yet */
    struct vxd_call *running;
    struct vxd_call *done;
    struct vxd_call **done_end;
};

struct vxd_reply;

/* What an asynchronous call of a method does at its end, on the thread of voxeld_dispatch: opens
 * the reply (to be closed), or reports `err` where `status` is not OK, and frees its state. The
 * call's place in flight is free again. */
typedef void vxd_call_ended(void *take_state, enum vxd_status status,
                            struct vxd_reply *reply, struct vxd_err *err,
                            const char *request_id, uint64_t sequence);

/* A request in flight, created and freed by call.c. */
struct vxd_call {
    struct voxeld_client *client;
    nng_ctx ctx;
    nng_aio *aio;
    nng_msg *message;                         /* the request over nng, until it is sent */
    struct vxd_direct_connection *connection; /* NULL: the call goes over nng */
    struct vxd_packed packed;                 /* the request, until it is nng's */
    struct vxd_message reply;
    bool sent;
    bool shown; /* that it takes long */
    bool
        asks_limit; /* it asks for what the server allows, within the server's default time */
    bool
        step_ended; /* guarded by the client's mutex: the aio's callback has come (watched calls) */
    nng_time deadline;   /* nng_clock() */
    uint32_t timeout_ms; /* how long the caller waits */
    uint32_t server_ms;  /* the deadline that the server is given */
    int result;          /* nng's error */
    Voxeld__V1__Request__MethodCase method;
    char request_id[VXD_REQUEST_ID_BYTES];
    uint64_t sequence;            /* 0: it changes nothing */
    struct vxd_shared_slot *slot; /* NULL: the bodies are in the messages */

    struct vxd_call *sends_next;
    struct vxd_call **sends_link; /* the pointer to this one while it is sent */

    /* The rest is for asynchronous calls only. */
    vxd_call_ended *ended;
    void *state;
    struct vxd_call *next;
    struct vxd_call **link; /* the pointer to this one while it is running */
};

/* An unpacked reply with code OK and the method's message set. */
struct vxd_reply {
    struct vxd_decoder *decoder;
    struct vxd_message message; /* if big arrays were left in it; else empty */
    struct vxd_decoder *outer;  /* the envelope's, where the body was in shared memory */
    struct vxd_shared_slot *slot; /* likewise, if big arrays were left there */
    Voxeld__V1__Response *response;
};

/* error.c: fills the public record (NULL is fine) and returns the code. The second
 * function is for calls that change something. */
enum voxeld_status vxd_client_error(const struct vxd_err *err, const char *request_id,
                                    struct voxeld_error *error);
enum voxeld_status vxd_client_change_error(const struct vxd_err *err,
                                           const char *request_id, uint64_t sequence,
                                           struct voxeld_error *error);
/* Translates an error of nng; `what` says what was tried. */
enum vxd_status vxd_client_nng_error(int result, const char *what, struct vxd_err *err);

#define VXD_CLIENT_NO_TLS                                                                \
    "this program's nng library was built without TLS: use one that has it (Debian's "   \
    "and "                                                                               \
    "Ubuntu's libnng1 do), or HTTPS with an HTTP client: curl --cacert CA.pem "          \
    "https://..."

/* client_tls.c: prepares a dialer for tls+tcp.
 * errors  INVALID_ARGUMENT  a file that is missing or cannot be used; nng without TLS */
enum vxd_status vxd_client_set_tls(nng_dialer dialer, const char *url,
                                   const struct voxeld_options *options,
                                   struct vxd_err *err);

/* change.c: returns the options of a call that changes something: *options (NULL:
 * defaults), with the client's next sequence unless it names one. */
struct voxeld_call vxd_client_number(struct voxeld_client *client,
                                     const struct voxeld_call *options);

/* pack.c: packs *request with its header into call->packed, and into the call's slot where it gets
 * one. may_share: a call that waits, over memory that it may share.
 * errors  RESOURCE_EXHAUSTED  no memory, or more than the server takes */
enum vxd_status vxd_call_pack(struct vxd_call *call, const struct voxeld_call *options,
                              Voxeld__V1__Request *request, bool may_wait, bool may_share,
                              struct vxd_err *err);

/* call.c: sends *request, whose method the caller has set (the header is filled here), and
 * waits for the reply; request_id gets the id used. */
enum vxd_status vxd_client_call(struct voxeld_client *client,
                                const struct voxeld_call *options,
                                Voxeld__V1__Request *request,
                                char request_id[VXD_REQUEST_ID_BYTES],
                                struct vxd_reply *reply, struct vxd_err *err);

/* How long a call may take whose options name no timeout. It asks the server for its limit where that
 * is not known and the call may wait. */
uint32_t vxd_client_timeout_ms(struct voxeld_client *client,
                               const struct voxeld_call *options, bool may_wait);

/* Asks for the server's limits on messages and timeouts unless it is known for this connection. A failure
 * changes nothing, because the server checks as well. The question itself is far below any limit,
 * so vxd_client_call does not ask again for it. */
void vxd_client_learn_limit(struct voxeld_client *client,
                            const struct voxeld_call *options);

/* Asks for the server's info and keeps its limit on messages for the checks of later requests. */
enum vxd_status vxd_client_get_info(struct voxeld_client *client,
                                    const struct voxeld_call *call,
                                    char request_id[VXD_REQUEST_ID_BYTES],
                                    struct vxd_reply *reply, struct vxd_err *err);

/* Sends a request in the same way without waiting. Where that works `ended` follows once, with the
 * state; otherwise never. */
enum vxd_status vxd_client_call_async(struct voxeld_client *client,
                                      const struct voxeld_call *options,
                                      Voxeld__V1__Request *request, vxd_call_ended *ended,
                                      void *state, char request_id[VXD_REQUEST_ID_BYTES],
                                      struct vxd_err *err);

/* Without a connection, aborts the requests that wait for one: nng would keep them
 * until their time is over. The caller holds the mutex. */
void vxd_client_abort_sends(struct voxeld_client *client);

/* Gives up every asynchronous call in flight: all are in `done` afterwards, and new
 * calls are refused. */
void vxd_client_abort_calls(struct voxeld_client *client);

/* reply.c: unpacks and checks a reply; takes the message, which is empty afterwards. On failure
 * *reply is empty. */
enum vxd_status vxd_reply_open(struct vxd_message *take_message,
                               Voxeld__V1__Request__MethodCase method,
                               struct vxd_reply *reply, struct vxd_err *err);
/* Opens the body of a reply that was written to a call's slot, if it was; *take_slot is NULL
 * then where the reply keeps the slot. On failure *reply is empty. */
enum vxd_status vxd_reply_open_shared(struct vxd_reply *reply,
                                      Voxeld__V1__Request__MethodCase method,
                                      struct vxd_shared_slot **take_slot,
                                      struct vxd_err *err);
void vxd_reply_close(struct vxd_reply *reply);

/* client_shared.c: n_bytes as the options have it: 0 = automatic over ipc. */
void vxd_client_set_shared(struct voxeld_client *client, size_t n_bytes);
/* A place in shared memory for a call of so much time whose request has n_bytes, registering
 * the client's region first where that is due; NULL where the call goes without. */
struct vxd_shared_slot *vxd_client_take_slot(struct voxeld_client *client,
                                             Voxeld__V1__Request__MethodCase method,
                                             size_t n_bytes, uint32_t timeout_ms);
/* Notes how large a reply to this method was. */
void vxd_client_note_reply(struct voxeld_client *client,
                           Voxeld__V1__Request__MethodCase method, size_t n_bytes);
/* Gives the region up: the next call makes another. `memory` NULL: whichever it has. */
void vxd_client_drop_shared(struct voxeld_client *client,
                            const struct vxd_shared_memory *memory, bool waits);

/* Fails with INTERNAL: the reply contradicts itself or the request; says what and
 * where. */
enum vxd_status vxd_reply_bad(struct vxd_err *err, const char *field, const char *what);

/* The elements of a tensor that must be of this type and shape; never NULL, also where there
 * are none.
 * errors  INTERNAL */
enum vxd_status vxd_reply_tensor(const Voxeld__V1__Tensor *tensor, const char *name,
                                 Voxeld__V1__DType dtype, const size_t *shape,
                                 size_t n_axes, const void **out, struct vxd_err *err);

/* Allocates zeroed memory that is freed with the reply; NULL when there is none. */
void *vxd_reply_alloc(struct vxd_reply *reply, size_t n, size_t n_bytes);

/* Allocates the zeroed result that a call gives its user. Its pointers may go into the
 * reply, which lives as long. Returns NULL, and RESOURCE_EXHAUSTED in *err, where
 * there is no memory; then the reply is not taken. */
void *vxd_result_new(struct vxd_reply *take_reply, size_t n_bytes, struct vxd_err *err);
struct vxd_reply *vxd_result_reply(void *held);
/* Frees a result with its reply; NULL is fine. */
void vxd_result_free(void *held);

/* Copies three numbers; NULL leaves *out as it is. */
void vxd_reply_vec3(const Voxeld__V1__Vec3 *in, double *out);

/* Copies a pose; NULL leaves *out as it is. */
void vxd_reply_pose(const Voxeld__V1__Pose *in, struct voxeld_pose *out);

/* Copies how long the stages of an inference took; NULL leaves *out as it is. */
struct voxeld_network_timings;
void vxd_reply_timings(const Voxeld__V1__NetworkTimings *in,
                       struct voxeld_network_timings *out);

/* Fails with RESOURCE_EXHAUSTED: there is no memory for the result. */
enum vxd_status vxd_reply_no_memory(struct vxd_err *err);

#endif
