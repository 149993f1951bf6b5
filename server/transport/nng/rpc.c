// SPDX-License-Identifier: Apache-2.0
/* The rpc transport: a REP socket and a set of slots, each a context with one aio that
 * goes
 *
 *   RECEIVING -> (request runs) -> SENDING -> RECEIVING
 *
 * A slot is free again once its reply was handed over; the message it answered lives on
 * until the request lets go of it, so an expired job may keep its bytes while its slot
 * already serves another request. There are more slots than requests that can wait or
 * run: one is always receiving, and overload is answered instead of stalling. */
#include "server/transport/nng/nng.h"

#include <nng/nng.h>
#include <nng/protocol/reqrep0/rep.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "proto/base/clock.h"
#include "proto/base/name.h"
#include "proto/wire/wire.h"
#include "server/observe/observe.h"
#include "server/request/request.h"
#include "server/observe/log/log.h"
#include "server/transport/nng/rpc_internal.h"
#include "voxeld/v1/rpc.pb-c.h"

#define SPARE_SLOTS 8
#define HEADER_BUDGET_BYTES 65536
/* Longest wait for a peer that does not read its replies; then its connection is cut. */
#define SEND_TIMEOUT_MS 30000
/* Pause after a receive that failed for want of memory. */
#define RETRY_MS 50
/* Most that stopping waits for replies on their way. */
#define FLUSH_TIMEOUT_MS 5000
#define FLUSH_STEP_MS 5
/* Most that closing may take once everything was sent. */
#define CLOSE_TIMEOUT_MS 3000

enum slot_state {
    SLOT_RECEIVING,
    SLOT_SENDING,
    SLOT_PAUSING
};

struct slot {
    struct vxd_rpc *rpc;
    nng_ctx ctx;
    nng_aio *aio;
    enum slot_state state;
    nng_pipe pipe; /* that the request in work came from */
};

struct vxd_rpc {
    struct vxd_server *server;
    nng_socket socket;
    struct slot *slots;
    size_t n_slots;
    atomic_bool refusing;
    atomic_bool stopping; /* the server's parts may be gone */
    atomic_bool closed;
    atomic_size_t n_connections;
    atomic_size_t n_callbacks; /* threads of nng inside on_operation */
    /* Slots between a request's arrival and its reply's departure. */
    atomic_size_t n_busy;
};

/* What a request keeps of the transport. */
struct call {
    struct slot *slot; /* valid until the reply was given */
    nng_msg *msg;      /* the request; its body is the request's body */
    uint32_t tag;
};

static void slot_receive(struct slot *slot)
{
    slot->state = SLOT_RECEIVING;
    nng_aio_set_timeout(slot->aio, NNG_DURATION_INFINITE);
    nng_ctx_recv(slot->ctx, slot->aio);
}

/* Sends without waiting; the slot must not be touched afterwards. NULL (no memory even
 * for an error) gives the request up, and its sender runs into its own timeout. */
static void slot_send(struct slot *slot, nng_msg *msg)
{
    if (msg == NULL) {
        atomic_fetch_sub(&slot->rpc->n_busy, 1);
        slot_receive(slot);
        return;
    }
    slot->state = SLOT_SENDING;
    nng_aio_set_timeout(slot->aio, SEND_TIMEOUT_MS);
    nng_aio_set_msg(slot->aio, msg);
    nng_ctx_send(slot->ctx, slot->aio);
}

static void send_error(struct slot *slot, const char *request_id,
                       const struct vxd_err *err)
{
    struct vxd_rpc_reply reply = {.request_id = request_id, .err = err};

    slot_send(slot, vxd_rpc_pack(&reply));
}

static void reply_to_request(struct vxd_request *request, const struct vxd_err *err,
                             const ProtobufCMessage *output)
{
    struct call *call = request->transport;
    struct slot *slot = call->slot;
    bool is_ok = err->code == VXD_OK;
    struct vxd_rpc_reply reply = {.request_id = request->id,
                                  .err = err,
                                  .output = output,
                                  .pool = vxd_context_pool(request->server->context),
                                  .tag = call->tag,
                                  .queue_ms = request->queue_ms,
                                  .total_ms = request->total_ms,
                                  .replayed = is_ok && atomic_load(&request->replayed),
                                  .arrays_dropped =
                                      is_ok && atomic_load(&request->arrays_dropped)};
    nng_msg *msg = vxd_rpc_pack(&reply);
    struct vxd_err no_memory = {0};

    call->slot = NULL;
    if (msg != NULL) {
        slot_send(slot, msg);
        return;
    }
    vxd_request_fail_reply(request, &no_memory);
    send_error(slot, request->id, &no_memory);
}

static void discard_request(struct vxd_request *request)
{
    struct call *call = request->transport;

    nng_msg_free(call->msg);
    free(call);
    request->transport = NULL;
}

/* Finds the header of a message whose scan failed further on, so that the answer can
 * still name the request: the schema puts the header first. */
static void find_header(const uint8_t *bytes, size_t n_bytes, struct vxd_envelope *out)
{
    size_t n_header = 0;
    size_t at = 1;
    unsigned shift = 0;

    if (n_bytes < 2 || bytes[0] != ((1u << 3) | 2u)) {
        return;
    }
    while (at < n_bytes && at < 5 && (bytes[at] & 0x80) != 0) {
        n_header |= (size_t)(bytes[at] & 0x7F) << shift;
        shift += 7;
        at++;
    }
    if (at < n_bytes && (bytes[at] & 0x80) == 0) {
        n_header |= (size_t)bytes[at] << shift;
        at++;
        if (n_header <= n_bytes - at) {
            out->header = bytes + at;
            out->header_bytes = n_header;
        }
    }
}

/* Decodes the envelope's header into *out, whose strings live in *decoder. */
static enum vxd_status read_header(const struct vxd_envelope *envelope,
                                   struct vxd_decoder **decoder,
                                   struct vxd_request_header *out, struct vxd_err *err)
{
    ProtobufCMessage *message = NULL;
    const Voxeld__V1__RequestHeader *header;
    enum vxd_status status;

    if (envelope->header == NULL) {
        return VXD_OK;
    }
    VXD_TRY(vxd_decoder_create(HEADER_BUDGET_BYTES, NULL, decoder, err));
    VXD_TRY(vxd_decode(*decoder, &voxeld__v1__request_header__descriptor,
                       envelope->header, envelope->header_bytes, &message, err));
    header = (const Voxeld__V1__RequestHeader *)message;
    out->request_id = header->request_id;
    out->token = header->token;
    out->client_id = header->client_id;
    out->stream = header->stream;
    out->sequence = header->sequence;
    out->resends = true;
    out->timeout_ms = header->timeout_ms;
    out->keep_last = header->keep_last;
    out->max_age_ms = header->max_age_ms;
    if (header->n_expect_digests > 0) {
        status = vxd_fail(err, VXD_INVALID_ARGUMENT, "header.expect_digests",
                          "has %zu entries; no method of this server takes any",
                          header->n_expect_digests);
    }
out:
    return status;
}

/* Finds the method and admits the request. */
static enum vxd_status admit(struct vxd_request *request,
                             const struct vxd_envelope *envelope, struct vxd_err *err)
{
    const struct vxd_method *method =
        vxd_method_by_tag(request->server->methods, envelope->method_tag);

    if (method == NULL) {
        return vxd_fail(err, VXD_UNIMPLEMENTED, "method",
                        "this server (" VXD_VERSION
                        ") has no method with field number %u",
                        (unsigned)envelope->method_tag);
    }
    return vxd_request_admit(request, method, envelope->body_bytes, err);
}

/* Runs the message of a slot. The slot belongs to the reply from vxd_request_submit on.
 */
static void run_message(struct slot *slot, struct call *call)
{
    const uint8_t *bytes = nng_msg_body(call->msg);
    size_t n_bytes = nng_msg_len(call->msg);
    struct vxd_request_header header = {.peer_uid = -1};
    struct vxd_envelope envelope = {0};
    struct vxd_decoder *decoder = NULL;
    struct vxd_request *request = NULL;
    struct vxd_body body = {.kind = VXD_BODY_PROTOBUF};
    struct vxd_err err = {0};
    struct vxd_err header_err = {0};
    char peer[VXD_NAME_BYTES];
    enum vxd_status status = vxd_envelope_scan(bytes, n_bytes, &envelope, &err);
    enum vxd_status header_status;
    bool is_there;

    if (status != VXD_OK) {
        find_header(bytes, n_bytes, &envelope);
    }
    header_status = read_header(&envelope, &decoder, &header, &header_err);
    is_there = vxd_rpc_peer(slot->pipe, peer, &header.peer_uid);
    header.peer = peer;
    if (status == VXD_OK && header_status != VXD_OK) {
        status = header_status;
        err = header_err;
    }
    /* As another sender's request it might take effect twice. */
    if (status == VXD_OK && !is_there) {
        status = vxd_fail(&err, VXD_UNAVAILABLE, NULL, "the connection has ended");
    }
    header_status = vxd_request_create(slot->rpc->server, &header, &request, &header_err);
    vxd_decoder_destroy(decoder);
    if (request == NULL) {
        nng_msg_free(call->msg);
        free(call);
        send_error(slot, "", &header_err);
        return;
    }
    if (status == VXD_OK && header_status != VXD_OK) {
        status = header_status;
        err = header_err;
    }
    call->tag = envelope.method_tag;
    request->reply_fn = reply_to_request;
    request->discard_fn = discard_request;
    request->transport = call;
    if (status == VXD_OK) {
        status = admit(request, &envelope, &err);
    }
    if (status != VXD_OK) {
        vxd_request_fail(request, &err);
        return;
    }
    body.bytes = envelope.body;
    body.n_bytes = envelope.body_bytes;
    vxd_request_submit(request, &body);
}

static void take_message(struct slot *slot)
{
    nng_msg *msg = nng_aio_get_msg(slot->aio);
    struct call *call = calloc(1, sizeof *call);
    struct vxd_err err = {0};

    nng_aio_set_msg(slot->aio, NULL);
    slot->pipe = nng_msg_get_pipe(msg);
    atomic_fetch_add(&slot->rpc->n_busy, 1);
    if (call == NULL) {
        nng_msg_free(msg);
        (void)vxd_fail(&err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for the request");
        send_error(slot, "", &err);
        return;
    }
    call->slot = slot;
    call->msg = msg;
    run_message(slot, call);
}

/* The operation of slot->state is over. */
static void slot_advance(struct slot *slot)
{
    int result = nng_aio_result(slot->aio);
    bool is_stopping = result == NNG_ECLOSED || result == NNG_ECANCELED;

    switch (slot->state) {
    case SLOT_RECEIVING:
        if (result == 0) {
            take_message(slot);
            return;
        }
        break;
    case SLOT_SENDING:
        if (result != 0) {
            nng_msg_free(nng_aio_get_msg(slot->aio));
            nng_aio_set_msg(slot->aio, NULL);
        }
        if (result == NNG_ETIMEDOUT) {
            (void)nng_pipe_close(slot->pipe);
        }
        atomic_fetch_sub(&slot->rpc->n_busy, 1);
        if (!is_stopping) {
            slot_receive(slot);
        }
        return;
    case SLOT_PAUSING:
        if (!is_stopping) {
            slot_receive(slot);
        }
        return;
    }
    if (!is_stopping) {
        slot->state = SLOT_PAUSING;
        nng_sleep_aio(RETRY_MS, slot->aio);
    }
}

/* The callback of an aio. */
static void on_operation(void *arg)
{
    struct slot *slot = arg;
    struct vxd_rpc *rpc = slot->rpc;

    atomic_fetch_add(&rpc->n_callbacks, 1);
    slot_advance(slot);
    atomic_fetch_sub(&rpc->n_callbacks, 1);
}

/* Counts connections and refuses those above the limit, or all of them while draining.
 * This happens before the pipe is added, so nothing of it is ever read. */
static void on_connection(nng_pipe pipe, nng_pipe_ev event, void *arg)
{
    struct vxd_rpc *rpc = arg;
    size_t n_before;

    if (event == NNG_PIPE_EV_REM_POST) {
        atomic_fetch_sub(&rpc->n_connections, 1);
        return;
    }
    n_before = atomic_fetch_add(&rpc->n_connections, 1);
    if (atomic_load(&rpc->stopping)) {
        (void)nng_pipe_close(pipe);
    } else if (atomic_load(&rpc->refusing)) {
        vxd_metrics_count_rejected(rpc->server->metrics, "draining");
        (void)nng_pipe_close(pipe);
    } else if (n_before >= rpc->server->config.max_connections) {
        vxd_metrics_count_rejected(rpc->server->metrics, "connections");
        vxd_log(VXD_LOG_DEBUG, "connection refused: limits.connections reached");
        (void)nng_pipe_close(pipe);
    }
}

static enum vxd_status open_slots(struct vxd_rpc *rpc, struct vxd_err *err)
{
    const struct vxd_config *config = &rpc->server->config;
    /* queued; on the write lane and the read lanes, each of which may have one more waiting
     * between two stages; repeated ones that wait; and the spare ones */
    size_t n = (size_t)config->queue_limit + 1 + 2 * (size_t)config->n_read_lanes +
               VXD_ONCE_MAX_WAITING + SPARE_SLOTS;

    rpc->slots = calloc(n, sizeof *rpc->slots);
    if (rpc->slots == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "limits.queue",
                        "no memory for %zu slots", n);
    }
    for (; rpc->n_slots < n; rpc->n_slots++) {
        struct slot *slot = &rpc->slots[rpc->n_slots];
        int result;

        slot->rpc = rpc;
        result = nng_ctx_open(&slot->ctx, rpc->socket);
        if (result == 0) {
            result = nng_aio_alloc(&slot->aio, on_operation, slot);
            if (result != 0) {
                (void)nng_ctx_close(slot->ctx);
            }
        }
        if (result != 0) {
            return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "limits.queue",
                            "cannot open context %zu of %zu: %s", rpc->n_slots, n,
                            nng_strerror(result));
        }
    }
    return VXD_OK;
}

/* First every operation, then the contexts, the socket last: nng 1.5.2 can deadlock when
 * it closes what is still in use. */
static void close_all(struct vxd_rpc *rpc)
{
    for (size_t i = 0; i < rpc->n_slots; i++) {
        nng_aio_stop(rpc->slots[i].aio);
    }
    for (size_t i = 0; i < rpc->n_slots; i++) {
        (void)nng_ctx_close(rpc->slots[i].ctx);
    }
    (void)nng_close(rpc->socket);
    for (size_t i = 0; i < rpc->n_slots; i++) {
        nng_msg *unsent = nng_aio_get_msg(rpc->slots[i].aio);

        /* A stopped aio refuses a reply without a callback, so the reply is still ours. */
        if (unsent != NULL) {
            nng_msg_free(unsent);
        }
        nng_aio_free(rpc->slots[i].aio);
    }
}

static void destroy(struct vxd_rpc *rpc)
{
    free(rpc->slots);
    free(rpc);
}

static enum vxd_status open_socket(struct vxd_rpc *rpc, struct vxd_err *err)
{
    int result = nng_rep0_open(&rpc->socket);

    if (result != 0) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "listen.rpc",
                        "cannot open a socket: %s", nng_strerror(result));
    }
    result = nng_pipe_notify(rpc->socket, NNG_PIPE_EV_ADD_PRE, on_connection, rpc);
    if (result == 0) {
        result = nng_pipe_notify(rpc->socket, NNG_PIPE_EV_REM_POST, on_connection, rpc);
    }
    if (result != 0) {
        (void)nng_close(rpc->socket);
        return vxd_fail(err, VXD_INTERNAL, "listen.rpc", "cannot watch connections: %s",
                        nng_strerror(result));
    }
    return VXD_OK;
}

enum vxd_status vxd_rpc_start(struct vxd_server *server, struct vxd_rpc **out,
                              struct vxd_err *err)
{
    struct vxd_rpc *rpc = calloc(1, sizeof *rpc);
    enum vxd_status status;

    if (rpc == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for the transport");
    }
    rpc->server = server;
    status = open_socket(rpc, err);
    if (status != VXD_OK) {
        free(rpc);
        return status;
    }
    VXD_TRY(open_slots(rpc, err));
    for (size_t i = 0; i < rpc->n_slots; i++) {
        slot_receive(&rpc->slots[i]);
    }
    for (size_t i = 0; i < server->config.n_rpc; i++) {
        VXD_TRY(vxd_rpc_listen(rpc->socket, &server->config, server->config.rpc[i],
                               server->rpc_bound[i], err));
    }
    *out = rpc;
out:
    if (status != VXD_OK) {
        close_all(rpc);
        destroy(rpc);
    }
    return status;
}

void vxd_rpc_refuse_new(struct vxd_rpc *rpc)
{
    atomic_store(&rpc->refusing, true);
}

/* True while a connection has received more messages than it has written replies. A send
 * completes when the pipe takes the message, not when it was written; only nng's own
 * counters show that, and closing too early would cut a long reply short. */
static bool has_unwritten_replies(void)
{
    nng_stat *root = NULL;
    bool found = false;

    if (nng_stats_get(&root) != 0) {
        return false;
    }
    for (nng_stat *scope = nng_stat_child(root); scope != NULL && !found;
         scope = nng_stat_next(scope)) {
        nng_stat *received, *written;

        if (strcmp(nng_stat_name(scope), "pipe") != 0) {
            continue;
        }
        received = nng_stat_find(scope, "rx_msgs");
        written = nng_stat_find(scope, "tx_msgs");
        found = received != NULL && written != NULL &&
                nng_stat_value(received) > nng_stat_value(written);
    }
    nng_stats_free(root);
    return found;
}

/* Waits in small steps until the condition holds, at most timeout_ms; false when it still
 * does not. */
static bool wait_for(bool (*holds)(struct vxd_rpc *rpc), struct vxd_rpc *rpc,
                     int timeout_ms)
{
    const struct timespec step = {.tv_nsec = FLUSH_STEP_MS * 1000000L};
    int64_t until_ns = vxd_clock_ns() + timeout_ms * INT64_C(1000000);

    while (!holds(rpc)) {
        if (vxd_clock_ns() >= until_ns) {
            return false;
        }
        (void)nanosleep(&step, NULL);
    }
    return true;
}

static bool is_flushed(struct vxd_rpc *rpc)
{
    return atomic_load(&rpc->n_busy) == 0 && !has_unwritten_replies();
}

static bool is_closed(struct vxd_rpc *rpc)
{
    return atomic_load(&rpc->closed);
}

static bool is_quiet(struct vxd_rpc *rpc)
{
    return atomic_load(&rpc->n_callbacks) == 0;
}

static void *run_close(void *arg)
{
    struct vxd_rpc *rpc = arg;

    if (!wait_for(is_flushed, rpc, FLUSH_TIMEOUT_MS)) {
        vxd_log(VXD_LOG_WARNING, "some rpc peers do not read their replies");
    }
    close_all(rpc);
    atomic_store(&rpc->closed, true);
    return NULL;
}

void vxd_rpc_stop(struct vxd_rpc *rpc)
{
    pthread_t closer;

    if (pthread_create(&closer, NULL, run_close, rpc) != 0) {
        (void)run_close(rpc);
        destroy(rpc);
        return;
    }
    if (wait_for(is_closed, rpc, FLUSH_TIMEOUT_MS + CLOSE_TIMEOUT_MS)) {
        (void)pthread_join(closer, NULL);
        destroy(rpc);
        return;
    }
    atomic_store(&rpc->stopping, true);
    (void)wait_for(is_quiet, rpc, CLOSE_TIMEOUT_MS);
    /* nng before 1.7 sometimes closes for ever (its issues 1543 and 1813). All replies are
     * out and the process is about to end: what is left goes with it. */
    vxd_log(VXD_LOG_WARNING, "nng does not close; going on without it");
    (void)pthread_detach(closer);
}
