// SPDX-License-Identifier: Apache-2.0
#include "tests/support/server/server_helpers.h"

#include <time.h>

#include "proto/base/clock.h"
#include "server/method_table.h"
#include "server/observe/log/log.h"
#include "server/schedule/schedule.h"
#include "server/server.h"
#include "tests/support/server/server_checks.h"

void wait_ms(long ms)
{
    struct timespec duration = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

    (void)nanosleep(&duration, NULL);
}

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool holds;
    int n_held;
} gate = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void set_gate(bool holds)
{
    (void)pthread_mutex_lock(&gate.mutex);
    gate.holds = holds;
    (void)pthread_cond_broadcast(&gate.changed);
    (void)pthread_mutex_unlock(&gate.mutex);
}

void hold_jobs(void)
{
    set_gate(true);
}

void let_jobs_go(void)
{
    set_gate(false);
}

int n_held(void)
{
    int n;

    (void)pthread_mutex_lock(&gate.mutex);
    n = gate.n_held;
    (void)pthread_mutex_unlock(&gate.mutex);
    return n;
}

bool await_held(int n)
{
    for (int i = 0; i < 30000 && n_held() < n; i++) {
        wait_ms(1);
    }
    return n_held() >= n;
}

static void be_held(void)
{
    (void)pthread_mutex_lock(&gate.mutex);
    gate.n_held++;
    while (gate.holds) {
        (void)pthread_cond_wait(&gate.changed, &gate.mutex);
    }
    gate.n_held--;
    (void)pthread_mutex_unlock(&gate.mutex);
}

static enum vxd_status sleep_job(struct vxd_pool *pool, const void *args,
                                 struct vxd_err *err)
{
    uint32_t ms;

    (void)pool;
    (void)err;
    memcpy(&ms, args, sizeof ms);
    if (ms == HELD_MS) {
        be_held();
    } else {
        wait_ms((long)ms);
    }
    return VXD_OK;
}

enum vxd_status push_sleep(struct vxd_queue *queue, uint32_t ms, struct vxd_err *err)
{
    return vxd_queue_push(queue, sleep_job, &ms, sizeof ms, err);
}

struct vxd_server *server_start(const struct server_setup *setup)
{
    struct vxd_server *server = calloc(1, sizeof *server);
    struct vxd_config *config = calloc(1, sizeof *config);
    struct vxd_err err = {0};
    enum vxd_status status;

    if (server == NULL || config == NULL) {
        abort();
    }
    vxd_config_default(config);
    (void)snprintf(config->backend, sizeof config->backend, "cpu");
    (void)snprintf(config->log_level, sizeof config->log_level, "error");
    config->networks_dir[0] = '\0';
    config->n_threads = 2;
    config->queue_limit = setup->queue_limit > 0 ? setup->queue_limit : 64;
    config->n_read_lanes = setup->n_read_lanes > 0 ? setup->n_read_lanes : 2;
    config->inflight_bytes = setup->inflight_bytes > 0 ? setup->inflight_bytes : 1 << 30;
    config->max_message_bytes =
        setup->max_message_bytes > 0 ? setup->max_message_bytes : 1 << 26;
    config->device_bytes = setup->device_bytes;
    config->bulk_points = setup->bulk_points > 0 ? setup->bulk_points : 1000000;
    if (setup->replay_clients > 0) {
        config->replay_clients = setup->replay_clients;
        config->replay_seconds = 0;
    }
    config->max_timeout_ms = 60000;
    config->default_timeout_ms = 60000;
    if (setup->tokens_file != NULL) {
        (void)snprintf(config->tokens_file, sizeof config->tokens_file, "%s",
                       setup->tokens_file);
    }
    if (setup->networks_dir != NULL) {
        (void)snprintf(config->networks_dir, sizeof config->networks_dir, "%s",
                       setup->networks_dir);
    }
    status = vxd_server_open(server, config, vxd_method_table(), &err);
    free(config);
    if (status != VXD_OK) {
        vxd_test_note_failure("server_start", err.message);
        free(server);
        return NULL;
    }
    atomic_store(&server->state, VXD_STATE_SERVING);
    return server;
}

void server_finish(struct vxd_server *server)
{
    struct vxd_memory_usage memory;

    if (!vxd_scheduler_drain(server->scheduler, 60000)) {
        vxd_test_note_failure("server_finish", "requests are left");
    }
    /* Replies come before the lanes let go of the last request. */
    for (int i = 0; i < 30000 && atomic_load(&server->inflight_bytes) != 0; i++) {
        wait_ms(1);
    }
    if (atomic_load(&server->inflight_bytes) != 0) {
        vxd_test_note_failure("server_finish", "bytes are left in flight");
    }
    vxd_context_get_memory(server->context, &memory);
    if (memory.device_bytes != 0 || memory.host_bytes != 0) {
        vxd_test_note_failure("server_finish", "engine memory is left");
    }
    vxd_server_close(server);
    free(server);
}

void call_begin(struct call *call)
{
    memset(call, 0, sizeof *call);
    (void)pthread_mutex_init(&call->mutex, NULL);
    (void)pthread_cond_init(&call->changed, NULL);
}

static void on_reply(struct vxd_request *request, const struct vxd_err *err,
                     const ProtobufCMessage *output)
{
    struct call *call = request->transport;

    (void)pthread_mutex_lock(&call->mutex);
    call->n_replies++;
    call->err = *err;
    call->queue_ms = request->queue_ms;
    call->replied_ns = vxd_clock_ns();
    if (output != NULL && call->packed == NULL) {
        call->n_packed = protobuf_c_message_get_packed_size(output);
        call->packed = malloc(call->n_packed + 1);
        if (call->packed != NULL) {
            (void)protobuf_c_message_pack(output, call->packed);
        }
    }
    (void)pthread_cond_broadcast(&call->changed);
    (void)pthread_mutex_unlock(&call->mutex);
}

static void on_discard(struct vxd_request *request)
{
    struct call *call = request->transport;

    (void)pthread_mutex_lock(&call->mutex);
    call->n_discards++;
    (void)pthread_cond_broadcast(&call->changed);
    (void)pthread_mutex_unlock(&call->mutex);
}

void call_adopt(struct call *call, struct vxd_request *request)
{
    request->reply_fn = on_reply;
    request->discard_fn = on_discard;
    request->transport = call;
    (void)snprintf(call->id, sizeof call->id, "%s", request->id);
}

void call_send(struct call *call, struct vxd_server *server,
               const struct vxd_method *method, const struct vxd_request_header *header,
               const struct vxd_body *body)
{
    static const struct vxd_request_header none = {.peer = "test", .peer_uid = -1};
    struct vxd_request *request = NULL;
    struct vxd_err err = {0};
    enum vxd_status status;

    call->sent_ns = vxd_clock_ns();
    status = vxd_request_create(server, header != NULL ? header : &none, &request, &err);
    if (request == NULL) {
        abort();
    }
    call_adopt(call, request);
    if (status == VXD_OK) {
        status = vxd_request_admit(request, method, body->n_bytes, &err);
    }
    if (status == VXD_OK) {
        vxd_request_submit(request, body);
    } else {
        vxd_request_fail(request, &err);
    }
}

void call_json(struct call *call, struct vxd_server *server,
               const struct vxd_method *method, const struct vxd_request_header *header,
               const char *json)
{
    const struct vxd_body body = {
        .kind = VXD_BODY_JSON, .bytes = (const uint8_t *)json, .n_bytes = strlen(json)};

    call_send(call, server, method, header, &body);
}

/* The counter reaches 1 within a minute; the mutex is held. */
static bool wait_for(struct call *call, const int *counter)
{
    struct timespec until;

    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 60;
    while (*counter == 0) {
        if (pthread_cond_timedwait(&call->changed, &call->mutex, &until) != 0) {
            return false;
        }
    }
    return true;
}

enum vxd_status call_wait(struct call *call)
{
    enum vxd_status code = VXD_UNKNOWN;

    (void)pthread_mutex_lock(&call->mutex);
    if (wait_for(call, &call->n_replies)) {
        code = call->err.code;
    } else {
        vxd_test_note_failure("call_wait", "no reply");
    }
    (void)pthread_mutex_unlock(&call->mutex);
    return code;
}

bool call_is_answered(struct call *call)
{
    bool answered;

    (void)pthread_mutex_lock(&call->mutex);
    answered = call->n_replies > 0;
    (void)pthread_mutex_unlock(&call->mutex);
    return answered;
}

void call_finish(struct call *call)
{
    (void)pthread_mutex_lock(&call->mutex);
    if (!wait_for(call, &call->n_discards)) {
        vxd_test_note_failure("call_finish", "the body was never given back");
    }
    if (call->n_replies != 1 || call->n_discards != 1) {
        vxd_test_note_failure("call_finish", "not one reply and one discard");
    }
    (void)pthread_mutex_unlock(&call->mutex);
    free(call->packed);
    (void)pthread_mutex_destroy(&call->mutex);
    (void)pthread_cond_destroy(&call->changed);
}

double call_ms(const struct call *call)
{
    return (double)(call->replied_ns - call->sent_ns) / 1e6;
}
