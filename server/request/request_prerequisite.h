// SPDX-License-Identifier: Apache-2.0
/* Requests of the server's own, of one method, that run ahead of a client's request of
 * another: a network on a read lane, in a batch with others, before its scan is integrated on
 * the write lane. Such a request has the sender, stream, age and deadline of the one that
 * waits, so all that can happen to a waiting request happens to it; what it is answered then
 * is what the client gets. It is counted and logged as a request of its method. */
#ifndef VXD_SERVER_REQUEST_REQUEST_PREREQUISITE_H
#define VXD_SERVER_REQUEST_REQUEST_PREREQUISITE_H

#include "server/request/request_life.h"

/* Queues a checked request, or what has to run ahead of it.
 * errors  as push of struct vxd_schedule_calls, and those of what runs ahead */
enum vxd_status vxd_request_queue(struct vxd_request *request, struct vxd_err *err);

/* A request that will run ahead of `request`, which it holds: of that method, with a decoder,
 * without an input. The caller sets the input, which may point into that of `request`, has
 * method->check look at it and submits it, or drops it.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_request_create_prerequisite(struct vxd_request *request,
                                                const struct vxd_method *method,
                                                struct vxd_request **out,
                                                struct vxd_err *err);

/* Queues it. Consumes the caller's reference, also where it fails; then `request` gets no
 * answer from it. errors  as push of struct vxd_schedule_calls */
enum vxd_status vxd_request_submit_prerequisite(struct vxd_request *prerequisite,
                                                struct vxd_err *err);

#endif
