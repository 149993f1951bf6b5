// SPDX-License-Identifier: Apache-2.0
/* The bounded queue, the lanes that run it and the timer that answers what expires.
 *
 * A lane is a thread with a queue of the engine. One write lane, n_read_lanes read lanes,
 * the last of which takes only requests that are not bulk, so a long job never blocks a
 * small one. Between two stages of a request the lane gives it back and picks again: first
 * whose client was served longest ago, then first come. */
#ifndef VXD_SERVER_SCHEDULE_SCHEDULE_H
#define VXD_SERVER_SCHEDULE_SCHEDULE_H

#include "server/request/request.h"

struct vxd_scheduler;

struct vxd_scheduler_load {
    size_t n_queued;
    size_t queue_limit;
    size_t n_running;
};

/* errors  RESOURCE_EXHAUSTED, and what vxd_queue_create gives. Starts the threads. */
enum vxd_status vxd_scheduler_create(struct vxd_server *server,
                                     struct vxd_scheduler **out, struct vxd_err *err);

/* Whether there is room for a request that would have to wait, asked before its body is
 * decoded: refusing it then costs next to nothing, however large it is. The room is not
 * kept; vxd_scheduler_push looks again.
 * errors  UNAVAILABLE  as vxd_scheduler_push */
enum vxd_status vxd_scheduler_check_room(struct vxd_scheduler *scheduler,
                                         struct vxd_err *err);

/* Queues a checked request; holds a reference of its own. Superseded requests of the same
 * client and stream are answered ABORTED.
 * errors  UNAVAILABLE  the queue is full, says its limit; or the server shuts down
 *         ABORTED      superseded itself: keep_last of its stream that arrived later wait */
enum vxd_status vxd_scheduler_push(struct vxd_scheduler *scheduler,
                                   struct vxd_request *request, struct vxd_err *err);

/* Queues a request that another one has run ahead of: it takes no room, and nothing
 * supersedes it. errors  UNAVAILABLE  the server has shut down */
enum vxd_status vxd_scheduler_push_next(struct vxd_scheduler *scheduler,
                                        struct vxd_request *request, struct vxd_err *err);

/* Starts the request's clock: from now on it is answered DEADLINE_EXCEEDED when its deadline
 * passes, whatever it is doing. errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_scheduler_watch(struct vxd_scheduler *scheduler,
                                    struct vxd_request *request, struct vxd_err *err);

/* The request is answered: stops its clock. */
void vxd_scheduler_unwatch(struct vxd_scheduler *scheduler, struct vxd_request *request);

/* A queue of the context, for asking operations how much scratch they take; nothing may be
 * queued on it. Any thread. */
const struct vxd_queue *vxd_scheduler_probe(const struct vxd_scheduler *scheduler);

void vxd_scheduler_get_load(struct vxd_scheduler *scheduler,
                            struct vxd_scheduler_load *out);

/* Waits until every request is answered and nothing runs, at most timeout_ms; what is queued
 * or running then is answered UNAVAILABLE, and so is what is pushed later. True when all
 * finished in time. */
bool vxd_scheduler_drain(struct vxd_scheduler *scheduler, uint32_t timeout_ms);

/* After drain; joins the threads. */
void vxd_scheduler_destroy(struct vxd_scheduler *scheduler);

#endif
