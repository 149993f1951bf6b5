// SPDX-License-Identifier: Apache-2.0
/* The end of serving: requests that have begun or wait get some time, and then an answer. */
#include <time.h>

#include "proto/base/clock.h"
#include "server/request/request.h"
#include "server/schedule/scheduler_internal.h"

enum {
    DRAIN_STEP_MS = 2
};

static bool is_idle(struct vxd_scheduler *scheduler)
{
    struct vxd_scheduler_load load;

    vxd_scheduler_get_load(scheduler, &load);
    return load.n_queued == 0 && load.n_running == 0 &&
           atomic_load(&scheduler->server->n_open) == 0;
}

/* Finds a request that is not answered, among this one and its companions; NULL when all
 * are. */
static struct vxd_request *find_unanswered(struct vxd_request *leader)
{
    struct vxd_request *r = leader;

    while (r != NULL && atomic_load(&r->answered) != 0) {
        r = r == leader ? leader->companions : r->next_companion;
    }
    return r;
}

/* Finds a request that waits for the disk and is not answered; NULL where there is none. */
static struct vxd_request *find_committing(const struct vxd_scheduler *scheduler)
{
    struct vxd_request *r = scheduler->committing;

    while (r != NULL && atomic_load(&r->answered) != 0) {
        r = r->commit->next_handed_over;
    }
    return r;
}

/* Finds a request that has begun and is not answered, on a lane, between two stages or on
 * its way to the disk, and takes a reference for the caller; NULL when there is none. */
static struct vxd_request *find_begun(struct vxd_scheduler *scheduler)
{
    struct vxd_request *found = NULL;

    (void)pthread_mutex_lock(&scheduler->mutex);
    for (size_t i = 0; i < scheduler->n_lanes && found == NULL; i++) {
        found = find_unanswered(scheduler->lanes[i].running);
    }
    found = found != NULL ? found : find_committing(scheduler);
    for (struct vxd_request *r = scheduler->first; r != NULL && found == NULL;
         r = r->next) {
        found = find_unanswered(r);
    }
    if (found != NULL) {
        vxd_request_hold(found);
    }
    (void)pthread_mutex_unlock(&scheduler->mutex);
    return found;
}

/* Answers what is left when the time is over: requests that have not begun are taken out
 * of the list; those that have begun are answered now, and their lane releases them
 * later. */
static void abandon(struct vxd_scheduler *scheduler)
{
    struct vxd_err err = {0};
    struct vxd_request *waiting = NULL;
    struct vxd_request *before = NULL;
    struct vxd_request *next;
    struct vxd_request *begun;

    (void)vxd_fail(&err, VXD_UNAVAILABLE, NULL,
                   "the server shut down before it was done");
    (void)pthread_mutex_lock(&scheduler->mutex);
    scheduler->refusing = true;
    for (struct vxd_request *r = scheduler->first; r != NULL; r = next) {
        next = r->next;
        if (r->submitted) {
            before = r;
            continue;
        }
        vxd_scheduler_unlink(scheduler, before, r);
        r->next = waiting;
        waiting = r;
    }
    (void)pthread_mutex_unlock(&scheduler->mutex);
    vxd_scheduler_answer_all(waiting, &err);
    while ((begun = find_begun(scheduler)) != NULL) {
        (void)vxd_request_answer(begun, &err, NULL);
        vxd_request_drop(begun);
    }
    while ((begun = vxd_once_find_waiting(scheduler->server->once)) != NULL) {
        (void)vxd_request_answer(begun, &err, NULL);
        vxd_request_drop(begun);
    }
}

bool vxd_scheduler_drain(struct vxd_scheduler *scheduler, uint32_t timeout_ms)
{
    const struct timespec step = {.tv_nsec = DRAIN_STEP_MS * 1000000L};
    int64_t end = vxd_clock_ns() + timeout_ms * INT64_C(1000000);
    bool done = is_idle(scheduler);

    while (!done && vxd_clock_ns() < end) {
        (void)nanosleep(&step, NULL);
        done = is_idle(scheduler);
    }
    abandon(scheduler);
    return done;
}
