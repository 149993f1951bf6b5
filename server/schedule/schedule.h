// SPDX-License-Identifier: Apache-2.0
/* The bounded queue, the lanes that run it and the timer that answers what expires.
 *
 * A lane is a thread with a queue of the engine. Some write lanes, of which one at a time is the writer
 * (scheduler_turn.c), and n_read_lanes read lanes, the last of which takes only requests that are not
 * bulk, so a long job never blocks a small one. Between two stages of a request the lane gives it back and picks again, so that senders
 * (tokens, users, addresses) get equal shares of the lanes' time, by weight, and so do the clients
 * of one sender; of one client what came first. */
#ifndef VXD_SERVER_SCHEDULE_SCHEDULE_H
#define VXD_SERVER_SCHEDULE_SCHEDULE_H

#include "server/request/request.h"

struct vxd_scheduler;

struct vxd_scheduler_load {
    size_t n_queued;
    size_t queue_limit;
    size_t n_running;
};

/* Starts the threads and gives the server its calls (struct vxd_schedule_calls of
 * request_life.h).
 * errors  RESOURCE_EXHAUSTED, and what vxd_queue_create gives */
enum vxd_status vxd_scheduler_create(struct vxd_server *server,
                                     struct vxd_scheduler **out, struct vxd_err *err);

/* Returns a queue of the context, for asking operations how much scratch they take;
 * nothing may be queued on it. Any thread. */
const struct vxd_queue *vxd_scheduler_probe(const struct vxd_scheduler *scheduler);

void vxd_scheduler_get_load(struct vxd_scheduler *scheduler,
                            struct vxd_scheduler_load *out);

/* Says where a request stands that waits or runs, by its id; token NULL: of any token. False: there is
 * none. */
bool vxd_scheduler_explain(struct vxd_scheduler *scheduler, const char *request_id,
                           const char *token, struct vxd_why_entry *out);

enum vxd_scheduler_stage {
    VXD_STAGE_WAITS,  /* for its turn */
    VXD_STAGE_RUNS,   /* or is between two stages */
    VXD_STAGE_COMMITS /* it waits for the journal */
};

/* A request that waits or runs. */
struct vxd_scheduler_entry {
    char request_id[VXD_NAME_BYTES];
    char client_id[VXD_NAME_BYTES];
    char token[VXD_NAME_BYTES];
    const char *method; /* of the method table */
    enum vxd_scheduler_stage stage;
    double total_ms, engine_ms;
    double wait_ms; /* of total_ms, until its turn came first */
    double left_ms; /* until its deadline; 0: it is over */
};

/* Copies up to n_most of those that run, then of those that wait for the journal, and then of those that
 * wait for their turn, in the order in which they are taken; token NULL: of any token. Returns how many. */
size_t vxd_scheduler_list(struct vxd_scheduler *scheduler, const char *token,
                          struct vxd_scheduler_entry *out, size_t n_most);

/* Waits until every request is answered and nothing runs, at most timeout_ms; what is queued
 * or running then is answered UNAVAILABLE, and so is what is pushed later. True when all
 * finished in time. */
bool vxd_scheduler_drain(struct vxd_scheduler *scheduler, uint32_t timeout_ms);

/* Joins the threads; to be called after drain. */
void vxd_scheduler_destroy(struct vxd_scheduler *scheduler);

#endif
