// SPDX-License-Identifier: Apache-2.0
/* The bounded queue, the lanes that run it and the timer that answers what expires.
 *
 * A lane is a thread with a queue of the engine. One write lane, n_read_lanes read lanes,
 * the last of which takes only requests that are not bulk, so a long job never blocks a
 * small one. Between two stages of a request the lane gives it back and picks again: first
 * whose client was served longest ago, then first come. */
#ifndef VXD_SERVER_SCHEDULER_H
#define VXD_SERVER_SCHEDULER_H

#include "server/request.h"

struct vxd_scheduler;

struct vxd_scheduler_load {
    size_t n_queued;
    size_t queue_limit;
    size_t n_running;
};

/* errors  RESOURCE_EXHAUSTED, and what vxd_queue_create gives. Starts the threads. */
enum vxd_status vxd_scheduler_create(struct vxd_server *server, struct vxd_scheduler **out,
                                     struct vxd_err *err);

/* Queues a checked request; holds a reference of its own. Superseded requests of the same
 * client and stream are answered ABORTED.
 * errors  UNAVAILABLE  the queue is full; says its limit. */
enum vxd_status vxd_scheduler_push(struct vxd_scheduler *scheduler,
                                   struct vxd_request *request, struct vxd_err *err);

void vxd_scheduler_get_load(struct vxd_scheduler *scheduler,
                            struct vxd_scheduler_load *out);

/* Waits until nothing is queued or running, at most timeout_ms; what is left then is
 * answered UNAVAILABLE. True when all finished. */
bool vxd_scheduler_drain(struct vxd_scheduler *scheduler, uint32_t timeout_ms);

/* After drain; joins the threads. */
void vxd_scheduler_destroy(struct vxd_scheduler *scheduler);

#endif
