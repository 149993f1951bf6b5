// SPDX-License-Identifier: Apache-2.0
/* A prerequisite is a request that the server makes itself, and that has to run before a
 * client's request of another method: a network runs on a read lane, in a batch with
 * others, before its scan is integrated on the write lane. It has the sender, stream, age
 * and deadline of the request that waits for it. So whatever can happen to a waiting
 * request can happen to the prerequisite, and the client gets its answer. It is counted
 * and logged as a request of its own method. */
#ifndef VXD_SERVER_REQUEST_REQUEST_PREREQUISITE_H
#define VXD_SERVER_REQUEST_REQUEST_PREREQUISITE_H

#include "server/request/request_life.h"

/* Queues a checked request, or its prerequisite where it has one.
 * errors  as push of struct vxd_schedule_calls, and those of the prerequisite */
enum vxd_status vxd_request_queue(struct vxd_request *request, struct vxd_err *err);

/* Makes a prerequisite of `request`, which it holds: a request of that method, with a
 * decoder and without an input. The caller sets the input, which may point into that of
 * `request`, has method->check look at it, and submits or drops it.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_request_create_prerequisite(struct vxd_request *request,
                                                const struct vxd_method *method,
                                                struct vxd_request **out,
                                                struct vxd_err *err);

/* Queues the prerequisite. This consumes the caller's reference, also where it fails;
 * then `request` gets no answer from it.
 * errors  as push of struct vxd_schedule_calls */
enum vxd_status vxd_request_submit_prerequisite(struct vxd_request *prerequisite,
                                                struct vxd_err *err);

#endif
