// SPDX-License-Identifier: Apache-2.0
/* A real server on the CPU without transports, and a transport that only remembers. */
#ifndef VXD_TESTS_SUPPORT_SERVER_SERVER_HELPERS_H
#define VXD_TESTS_SUPPORT_SERVER_SERVER_HELPERS_H

#include <pthread.h>

#include "proto/base/name.h"
#include "server/instance/instance.h"
#include "server/request/request.h"

/* One request and what became of it. Every call must outlive the request: call_finish. */
struct call {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    int n_replies;
    int n_discards;
    struct vxd_err err;
    double queue_ms;
    int64_t sent_ns;
    int64_t replied_ns;
    uint8_t *packed; /* the reply's message; NULL when there was none */
    size_t n_packed;
    char id[VXD_NAME_BYTES];
};

/* What the tests change of the defaults; 0 = as it is. */
struct server_setup {
    uint32_t queue_limit;
    uint32_t n_read_lanes;
    uint64_t inflight_bytes;
    uint64_t max_message_bytes;
    uint64_t device_bytes;
    uint32_t bulk_points;
    uint32_t replay_clients;
    const char *tokens_file;
    const char *networks_dir;
};

/* NULL, and a failed check, when it cannot start. Its log is silent. */
struct vxd_server *server_start(const struct server_setup *setup);

/* Drains, closes, and checks that no bytes and no requests are left. */
void server_finish(struct vxd_server *server);

void call_begin(struct call *call);

/* Makes a request, fresh from vxd_request_create, this call's. */
void call_adopt(struct call *call, struct vxd_request *request);

/* Sends a body through create, admit and submit. header may be NULL. */
void call_send(struct call *call, struct vxd_server *server,
               const struct vxd_method *method, const struct vxd_request_header *header,
               const struct vxd_body *body);

/* The same with a JSON body. */
void call_json(struct call *call, struct vxd_server *server,
               const struct vxd_method *method, const struct vxd_request_header *header,
               const char *json);

/* Waits for the reply, at most a minute; its code. */
enum vxd_status call_wait(struct call *call);
bool call_is_answered(struct call *call);

/* Waits until the body was given back, checks that each happened once, frees. */
void call_finish(struct call *call);

/* Milliseconds from sending to the reply. */
double call_ms(const struct call *call);

/* Sleeps; and queues a job that does. One of HELD_MS is held until let_jobs_go: what a test
 * does meanwhile happens while a stage runs, however slow the machine. */
enum {
    HELD_MS = 60000
};
void wait_ms(long ms);
enum vxd_status push_sleep(struct vxd_queue *queue, uint32_t ms, struct vxd_err *err);

/* Jobs of HELD_MS end at once until hold_jobs. */
void hold_jobs(void);
void let_jobs_go(void);

/* Waits until n jobs are held; false after half a minute. */
bool await_held(int n);
int n_held(void);

#endif
