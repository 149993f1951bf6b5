// SPDX-License-Identifier: Apache-2.0
/* One call reserves a place in flight, packs its request, sends it, receives and unpacks the
 * reply.
 *
 * Synchronous calls go over a socket of their own where they can (direct.h), else over nng on a
 * context of their own, and wait on its aio. Asynchronous
 * ones are driven by the aio's callback on nng's threads, which only moves bytes and
 * puts the call into `done`; unpacking and the user's callback happen in
 * voxeld_dispatch, on the user's thread.
 *
 * nng 1.5.2 crashes when a receive is cancelled while its send still waits, so the
 * receive starts only after the send has ended. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client/c/call/client_internal.h"
#include "proto/wire/wire.h"

enum {
    /* The server is to answer before the client gives up, since it can say more. */
    MOST_ANSWER_MS = 100,
    SHOW_AFTER_MS = 1000,
    SHOW_EVERY_MS = 250
};

static void on_aio(void *arg);
static void on_watched(void *arg);

/* Reserves one of the places in flight. */
static enum vxd_status reserve(struct voxeld_client *client, uint64_t *id,
                               struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    (void)pthread_mutex_lock(&client->mutex);
    if (client->closing) {
        status = vxd_fail(err, VXD_CANCELLED, NULL, "the client is being closed");
    } else if (client->n_connections == 0) {
        status = vxd_fail(err, VXD_UNAVAILABLE, NULL, "no connection to %s", client->url);
    } else if (client->n_in_flight >= client->max_in_flight) {
        status = vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                          "%u calls are in flight already, max_in_flight allows no more",
                          (unsigned)client->n_in_flight);
    } else {
        client->n_in_flight++;
        *id = ++client->n_ids;
    }
    (void)pthread_mutex_unlock(&client->mutex);
    return status;
}

static void release(struct voxeld_client *client)
{
    (void)pthread_mutex_lock(&client->mutex);
    client->n_in_flight--;
    (void)pthread_mutex_unlock(&client->mutex);
}

/* Takes the call out of the list of calls that are sent. The caller does not hold the
 * mutex. */
static void leave_sending(struct vxd_call *call)
{
    (void)pthread_mutex_lock(&call->client->mutex);
    if (call->sends_link != NULL) {
        *call->sends_link = call->sends_next;
        if (call->sends_next != NULL) {
            call->sends_next->sends_link = call->sends_link;
        }
        call->sends_link = NULL;
    }
    (void)pthread_mutex_unlock(&call->client->mutex);
}

/* Gives back the call's place in shared memory. The daemon may still write its reply there where
 * the request was sent and none came. */
static void leave_slot(struct vxd_call *call)
{
    if (call->slot != NULL && call->sent && call->result != 0) {
        vxd_client_drop_shared(call->client, call->slot->memory, false);
        vxd_shared_slot_abandon(call->slot);
    } else {
        vxd_shared_slot_give(call->slot);
    }
    call->slot = NULL;
}

static void call_destroy(struct vxd_call *call)
{
    leave_sending(call); /* nng may have dropped the send without a callback */
    if (call->aio != NULL) {
        nng_aio_free(call->aio); /* waits for its callback to have returned */
    }
    if (nng_ctx_id(call->ctx) > 0) {
        /* This also makes nng forget a request whose reply may still come. */
        (void)nng_ctx_close(call->ctx);
    }
    if (call->message != NULL) {
        nng_msg_free(call->message);
    }
    vxd_packed_free(&call->packed);
    vxd_message_free(&call->reply);
    leave_slot(call);
    release(call->client);
    free(call);
}

/* The server's answer that the time is over comes before the caller's own end: of a time that the
 * caller named, a part is left for it, and after the longest that the server allows the caller waits
 * so much longer. */
static void set_timeout(struct vxd_call *call, const struct voxeld_call *options,
                        uint32_t default_timeout_ms)
{
    bool is_named = options->timeout_ms > 0 || call->client->timeout_ms > 0;
    uint32_t ms = options->timeout_ms > 0 ? options->timeout_ms : default_timeout_ms;
    uint32_t answer_ms = ms / 20 < MOST_ANSWER_MS ? ms / 20 : MOST_ANSWER_MS;

    call->timeout_ms = is_named ? ms : ms + answer_ms;
    call->server_ms = is_named ? ms - answer_ms : ms;
}

/* Makes the call one of nng's. */
static enum vxd_status use_nng(struct vxd_call *call, bool asynchronous,
                               struct vxd_err *err)
{
    struct voxeld_client *client = call->client;
    int result = nng_ctx_open(&call->ctx, client->socket);

    if (result == 0) {
        result = nng_aio_alloc(&call->aio,
                               asynchronous              ? on_aio
                               : client->waiting != NULL ? on_watched
                                                         : NULL,
                               call);
    }
    if (result == 0) {
        result = nng_msg_alloc(&call->message, call->packed.n_bytes);
    }
    if (result != 0) {
        return vxd_client_nng_error(result, "making a call", err);
    }
    vxd_packed_gather(&call->packed, nng_msg_body(call->message));
    vxd_packed_free(&call->packed);
    return VXD_OK;
}

static enum vxd_status call_create(struct voxeld_client *client,
                                   const struct voxeld_call *options,
                                   uint32_t default_timeout_ms, bool asynchronous,
                                   bool may_share, Voxeld__V1__Request *request,
                                   struct vxd_call **out, struct vxd_err *err)
{
    struct vxd_call *call;
    uint64_t id = 0;
    enum vxd_status status = reserve(client, &id, err);

    if (status != VXD_OK) {
        return status;
    }
    call = calloc(1, sizeof *call);
    if (call == NULL) {
        release(client);
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a call");
    }
    call->client = client;
    call->method = request->method_case;
    call->sequence = options->sequence;
    call->asks_limit = options->timeout_ms == 0 && client->timeout_ms == 0 &&
                       call->method == VOXELD__V1__REQUEST__METHOD_SERVER_INFO;
    set_timeout(call, options, default_timeout_ms);
    if (call->timeout_ms > INT32_MAX) {
        status = vxd_fail(err, VXD_INVALID_ARGUMENT, "call.timeout_ms", "%u; at most %d",
                          (unsigned)call->timeout_ms, INT32_MAX);
        goto out;
    }
    call->deadline = nng_clock() + call->timeout_ms;
    if (options->request_id != NULL) {
        if (strlen(options->request_id) >= sizeof call->request_id) {
            status = vxd_fail(err, VXD_INVALID_ARGUMENT, "call.request_id",
                              "longer than %zu bytes", sizeof call->request_id - 1);
            goto out;
        }
        (void)snprintf(call->request_id, sizeof call->request_id, "%s",
                       options->request_id);
    } else {
        (void)snprintf(call->request_id, sizeof call->request_id, "%08x-%llu",
                       (unsigned)client->id_prefix, (unsigned long long)id);
    }
    VXD_TRY(vxd_call_pack(call, options, request, !asynchronous, may_share, err));
    if (!asynchronous) {
        call->connection = vxd_direct_take(client->direct, call->deadline);
    }
    if (call->connection == NULL) {
        VXD_TRY(use_nng(call, asynchronous, err));
    }
    *out = call;
    return VXD_OK;
out:
    call_destroy(call);
    return status;
}

void vxd_client_abort_sends(struct voxeld_client *client)
{
    if (client->n_connections > 0) {
        return;
    }
    /* nng aborts them later, on its own thread, and leaves those alone that end just
     * now. */
    for (struct vxd_call *call = client->sending; call != NULL; call = call->sends_next) {
        nng_aio_abort(call->aio, NNG_ECONNRESET);
    }
}

/* An asynchronous call may be gone when this returns. */
static void start_send(struct vxd_call *call)
{
    struct voxeld_client *client = call->client;
    nng_time now = nng_clock();

    nng_aio_set_timeout(call->aio,
                        now < call->deadline ? (nng_duration)(call->deadline - now) : 0);
    nng_aio_set_msg(call->aio, call->message);
    (void)pthread_mutex_lock(&client->mutex);
    call->sends_next = client->sending;
    call->sends_link = &client->sending;
    if (call->sends_next != NULL) {
        call->sends_next->sends_link = &call->sends_next;
    }
    client->sending = call;
    (void)pthread_mutex_unlock(&client->mutex);
    nng_ctx_send(call->ctx, call->aio);
    /* The connection may have ended before there was anything to abort. */
    (void)pthread_mutex_lock(&client->mutex);
    vxd_client_abort_sends(client);
    (void)pthread_mutex_unlock(&client->mutex);
}

/* Records how the send ended; true when the receive is to start. */
static bool end_send(struct vxd_call *call)
{
    leave_sending(call);
    call->result = nng_aio_result(call->aio);
    if (call->result != 0) {
        nng_aio_set_msg(call->aio, NULL); /* call->message is still ours */
        return false;
    }
    call->message = NULL;
    call->sent = true;
    return true;
}

static void start_receive(struct vxd_call *call)
{
    nng_time now = nng_clock();

    nng_aio_set_timeout(call->aio,
                        now < call->deadline ? (nng_duration)(call->deadline - now) : 0);
    nng_ctx_recv(call->ctx, call->aio);
}

static void end_receive(struct vxd_call *call)
{
    call->result = nng_aio_result(call->aio);
    if (call->result == 0) {
        call->reply = vxd_message_of_nng(nng_aio_get_msg(call->aio));
    }
}

/* Keeps where the time of a call went, for voxeld_last_timings. */
static void keep_timings(struct voxeld_client *client,
                         const Voxeld__V1__ResponseHeader *header)
{
    const Voxeld__V1__StageTimes *stages = header->stages;
    struct voxeld_timings timings = {0};

    if (stages != NULL) {
        timings = (struct voxeld_timings){.receive_ms = stages->receive_ms,
                                          .decode_ms = stages->decode_ms,
                                          .wait_ms = stages->wait_ms,
                                          .engine_ms = stages->engine_ms,
                                          .commit_ms = stages->commit_ms,
                                          .total_ms = header->total_ms};
    }
    (void)pthread_mutex_lock(&client->mutex);
    client->timings = timings;
    client->has_timings = stages != NULL;
    (void)pthread_mutex_unlock(&client->mutex);
}

/* Opens the reply of a call that has ended. */
static enum vxd_status finish(struct vxd_call *call, struct vxd_reply *reply,
                              struct vxd_err *err)
{
    size_t n_bytes = call->reply.n_bytes;
    enum vxd_status status;

    if (call->result == NNG_ETIMEDOUT) {
        return vxd_fail(err, VXD_DEADLINE_EXCEEDED, NULL, "no reply within %u ms",
                        (unsigned)call->timeout_ms);
    }
    if (call->result == NNG_EMSGSIZE) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                        "the reply has more than the client's max_reply_bytes, %zu",
                        call->client->max_reply_bytes);
    }
    if (call->result != 0) {
        return vxd_client_nng_error(
            call->result, call->sent ? "waiting for the reply" : "sending the request",
            err);
    }
    status = vxd_reply_open(&call->reply, call->method, reply, err);
    if (status == VXD_OK) {
        n_bytes += (size_t)reply->response->header->shared_bytes;
        status = vxd_reply_open_shared(reply, call->method, &call->slot, err);
    }
    if (status == VXD_OK) {
        keep_timings(call->client, reply->response->header);
        vxd_client_note_reply(call->client, call->method, n_bytes);
    }
    return status;
}

/* Whether the daemon does not have the region, so that nothing has happened. */
static bool is_region_refused(const struct vxd_call *call, const struct vxd_err *err)
{
    static const char field[] = "header.shared";

    return call->slot != NULL && strncmp(err->field, field, sizeof field - 1) == 0;
}

/* On nng's thread: a step of a synchronous call that is watched has ended. */
static void on_watched(void *arg)
{
    struct vxd_call *call = arg;

    (void)pthread_mutex_lock(&call->client->mutex);
    call->step_ended = true;
    (void)pthread_cond_broadcast(&call->client->changed);
    (void)pthread_mutex_unlock(&call->client->mutex);
}

/* Waits at most ms for the step to end. */
static bool wait_ended(struct vxd_call *call, uint32_t ms)
{
    struct voxeld_client *client = call->client;
    struct timespec until;
    int waited = 0;
    bool ended;

    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += (long)ms * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    (void)pthread_mutex_lock(&client->mutex);
    while (!call->step_ended && waited == 0) {
        waited = pthread_cond_timedwait(&client->changed, &client->mutex, &until);
    }
    ended = call->step_ended;
    (void)pthread_mutex_unlock(&client->mutex);
    return ended;
}

/* Shows that a call takes long. */
static void show_wait(void *arg)
{
    struct vxd_call *call = arg;
    const struct voxeld_client *client = call->client;
    nng_time began = call->deadline - call->timeout_ms;
    nng_time waited_ms = nng_clock() - began;

    if (waited_ms >= SHOW_AFTER_MS) {
        client->waiting(client->waiting_user, (uint32_t)waited_ms, call->timeout_ms);
        call->shown = true;
    }
}

static void end_show(struct vxd_call *call)
{
    if (call->shown) {
        call->client->waiting(call->client->waiting_user, 0, call->timeout_ms);
        call->shown = false;
    }
}

static void wait_for(struct vxd_call *call)
{
    while (call->client->waiting != NULL && !wait_ended(call, SHOW_EVERY_MS)) {
        show_wait(call);
    }
    end_show(call);
    nng_aio_wait(call->aio);
}

static void run_nng(struct vxd_call *call)
{
    start_send(call);
    wait_for(call);
    if (end_send(call)) {
        call->step_ended = false;
        start_receive(call);
        wait_for(call);
        end_receive(call);
    }
}

static void run_direct(struct vxd_call *call)
{
    struct voxeld_client *client = call->client;
    const struct vxd_direct_watch watch = {.waits =
                                               client->waiting != NULL ? show_wait : NULL,
                                           .user = call,
                                           .every_ms = SHOW_EVERY_MS};

    call->result = vxd_direct_exchange(client->direct, call->connection, &call->packed,
                                       call->deadline, &watch, client->reply_memory,
                                       &call->sent, &call->reply);
    end_show(call);
    vxd_direct_give(client->direct, call->connection, call->result == 0);
    call->connection = NULL;
}

/* *refused: the same call can be made without shared memory. */
static enum vxd_status
call_once(struct voxeld_client *client, const struct voxeld_call *options,
          uint32_t default_timeout_ms, bool may_share, Voxeld__V1__Request *request,
          char request_id[VXD_REQUEST_ID_BYTES], struct vxd_reply *reply, bool *refused,
          struct vxd_err *err)
{
    struct vxd_call *call = NULL;
    enum vxd_status status = call_create(client, options, default_timeout_ms, false,
                                         may_share, request, &call, err);

    if (call == NULL) {
        return status;
    }
    memcpy(request_id, call->request_id, VXD_REQUEST_ID_BYTES);
    if (call->connection != NULL) {
        run_direct(call);
    } else {
        run_nng(call);
    }
    status = finish(call, reply, err);
    *refused = status != VXD_OK && is_region_refused(call, err);
    if (*refused) {
        vxd_client_drop_shared(client, call->slot->memory, true);
    }
    call_destroy(call);
    return status;
}

enum vxd_status vxd_client_call(struct voxeld_client *client,
                                const struct voxeld_call *options,
                                Voxeld__V1__Request *request,
                                char request_id[VXD_REQUEST_ID_BYTES],
                                struct vxd_reply *reply, struct vxd_err *err)
{
    static const struct voxeld_call defaults;
    uint32_t default_timeout_ms = 0;
    struct vxd_err own = {0};
    bool refused = false;
    enum vxd_status status;

    request_id[0] = '\0';
    options = options != NULL ? options : &defaults;
    err = err != NULL ? err : &own;
    if (options->timeout_ms == 0) {
        bool asks_itself =
            request->method_case == VOXELD__V1__REQUEST__METHOD_SERVER_INFO;

        default_timeout_ms = vxd_client_timeout_ms(client, options, !asks_itself);
    }
    status = call_once(client, options, default_timeout_ms, true, request, request_id,
                       reply, &refused, err);
    if (refused) {
        *err = (struct vxd_err){0};
        status = call_once(client, options, default_timeout_ms, false, request,
                           request_id, reply, &refused, err);
    }
    return status;
}

/* Asynchronous calls --------------------------------------------------------------------- */

/* Moves the call from `running` to `done`. The caller holds the mutex. */
static void move_to_done(struct vxd_call *call)
{
    struct voxeld_client *client = call->client;
    bool was_empty = client->done == NULL;
    ssize_t n;

    *call->link = call->next;
    if (call->next != NULL) {
        call->next->link = call->link;
    }
    call->next = NULL;
    call->link = NULL;
    *client->done_end = call;
    client->done_end = &call->next;
    if (was_empty) {
        /* The pipe is empty when `done` is, so the byte fits. */
        do {
            n = write(client->fds[1], "", 1);
        } while (n < 0 && errno == EINTR);
    }
    (void)pthread_cond_broadcast(&client->changed);
}

/* nng calls this on a thread of its own, after the send and after the receive. */
static void on_aio(void *arg)
{
    struct vxd_call *call = arg;
    struct voxeld_client *client = call->client;

    if (!call->sent) {
        if (end_send(call)) {
            start_receive(call);
            return;
        }
    } else {
        end_receive(call);
    }
    (void)pthread_mutex_lock(&client->mutex);
    move_to_done(call);
    (void)pthread_mutex_unlock(&client->mutex);
}

enum vxd_status vxd_client_call_async(struct voxeld_client *client,
                                      const struct voxeld_call *options,
                                      Voxeld__V1__Request *request, vxd_call_ended *ended,
                                      void *state, char request_id[VXD_REQUEST_ID_BYTES],
                                      struct vxd_err *err)
{
    struct vxd_call *call = NULL;
    enum vxd_status status;

    request_id[0] = '\0';
    status = call_create(client, options, vxd_client_timeout_ms(client, options, false),
                         true, false, request, &call, err);
    if (call == NULL) {
        return status;
    }
    memcpy(request_id, call->request_id, VXD_REQUEST_ID_BYTES);
    call->ended = ended;
    call->state = state;
    (void)pthread_mutex_lock(&client->mutex);
    call->next = client->running;
    call->link = &client->running;
    if (call->next != NULL) {
        call->next->link = &call->next;
    }
    client->running = call;
    (void)pthread_mutex_unlock(&client->mutex);
    start_send(call);
    return VXD_OK;
}

void vxd_client_abort_calls(struct voxeld_client *client)
{
    struct vxd_call *call;

    (void)pthread_mutex_lock(&client->mutex);
    client->closing = true;
    while ((call = client->running) != NULL) {
        /* The callback takes the mutex, and stopping waits for the callback. A stopped aio
         * drops what is started on it without a callback, so a call that was between its
         * send and its receive is still here afterwards. */
        (void)pthread_mutex_unlock(&client->mutex);
        nng_aio_stop(call->aio);
        (void)pthread_mutex_lock(&client->mutex);
        if (client->running == call) {
            call->result = NNG_ECANCELED;
            move_to_done(call);
        }
    }
    (void)pthread_mutex_unlock(&client->mutex);
}

static void deliver(struct vxd_call *call)
{
    struct vxd_reply reply = {0};
    struct vxd_err err = {0};
    vxd_call_ended *ended = call->ended;
    void *state = call->state;
    char request_id[VXD_REQUEST_ID_BYTES];
    uint64_t sequence = call->sequence;
    enum vxd_status status = finish(call, &reply, &err);

    memcpy(request_id, call->request_id, sizeof request_id);
    /* The call goes before the callback, which may then use its place in flight. */
    call_destroy(call);
    ended(state, status, &reply, &err, request_id, sequence);
}

/* Takes all calls out of `done`, after waiting for the first one as asked. */
static struct vxd_call *take_done(struct voxeld_client *client, int timeout_ms)
{
    struct vxd_call *first;
    struct timespec until;
    int waited = 0;
    char byte;
    ssize_t n;

    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    if (timeout_ms > 0) {
        until.tv_sec += timeout_ms / 1000;
        until.tv_nsec += (long)(timeout_ms % 1000) * 1000000L;
        until.tv_sec += until.tv_nsec / 1000000000L;
        until.tv_nsec %= 1000000000L;
    }
    (void)pthread_mutex_lock(&client->mutex);
    while (client->done == NULL && client->running != NULL && timeout_ms != 0 &&
           waited == 0) {
        waited = timeout_ms > 0
                     ? pthread_cond_timedwait(&client->changed, &client->mutex, &until)
                     : pthread_cond_wait(&client->changed, &client->mutex);
    }
    first = client->done;
    client->done = NULL;
    client->done_end = &client->done;
    if (first != NULL) {
        do {
            n = read(client->fds[0], &byte, 1);
        } while (n < 0 && errno == EINTR);
    }
    (void)pthread_mutex_unlock(&client->mutex);
    return first;
}

size_t voxeld_dispatch(struct voxeld_client *client, int timeout_ms)
{
    struct vxd_call *call = take_done(client, timeout_ms);
    size_t n = 0;

    while (call != NULL) {
        struct vxd_call *next = call->next;

        deliver(call);
        call = next;
        n++;
    }
    return n;
}
