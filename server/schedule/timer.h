// SPDX-License-Identifier: Apache-2.0
/* A thread that calls back when a request's time is over: a min-heap of (time, request). */
#ifndef VXD_SERVER_SCHEDULE_TIMER_H
#define VXD_SERVER_SCHEDULE_TIMER_H

#include "server/request/request.h"

struct vxd_timer;

/* Called on the timer's thread with the timer's reference, which it consumes. */
typedef void (*vxd_timer_fn)(void *context, struct vxd_request *request);

/* errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_timer_create(vxd_timer_fn fire, void *context, struct vxd_timer **out,
                                 struct vxd_err *err);

/* Joins the thread; requests still watched lose the timer's reference without a call. */
void vxd_timer_destroy(struct vxd_timer *timer);

/* Watches the request until at_ns (monotonic); it must not be watched already. Takes a
 * reference. errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_timer_add(struct vxd_timer *timer, struct vxd_request *request,
                              int64_t at_ns, struct vxd_err *err);

/* Does nothing for a request that is not watched (any more). */
void vxd_timer_remove(struct vxd_timer *timer, struct vxd_request *request);

#endif
