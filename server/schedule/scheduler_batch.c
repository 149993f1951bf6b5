// SPDX-License-Identifier: Apache-2.0
/* Requests that run as one. When the first of them begins, waiting requests with the same
 * key become its companions, as many as the batch and the engine's memory take. */
#include "server/schedule/scheduler_internal.h"

static bool waits_for(const struct vxd_request *waiting, const struct vxd_request *other)
{
    return !waiting->submitted && waiting->method == other->method &&
           waiting->batch_key == other->batch_key;
}

void vxd_scheduler_collect(const struct vxd_lane *lane, struct vxd_request *leader)
{
    struct vxd_scheduler *scheduler = lane->scheduler;
    struct vxd_request **end = &leader->companions;
    uint32_t n_items = leader->batch_items;
    struct vxd_request *before = NULL;
    struct vxd_request *next;

    if (leader->batch_key == NULL) {
        return;
    }
    for (struct vxd_request *r = scheduler->first; r != NULL; r = next) {
        next = r->next;
        if (!waits_for(r, leader) || !vxd_lane_takes(lane, r) ||
            atomic_load(&r->answered) != 0 || n_items >= leader->batch_limit ||
            r->batch_items > leader->batch_limit - n_items ||
            !vxd_scheduler_fits(scheduler, r)) {
            before = r;
            continue;
        }
        vxd_scheduler_unlink(scheduler, before, r);
        vxd_scheduler_count_begun(scheduler, r);
        n_items += r->batch_items;
        *end = r;
        end = &r->next_companion;
    }
}

void vxd_scheduler_note_queued(struct vxd_scheduler *scheduler,
                               const struct vxd_request *request)
{
    uint64_t n_items = 0;

    if (request->batch_key == NULL) {
        return;
    }
    for (const struct vxd_request *r = scheduler->first; r != NULL; r = r->next) {
        n_items += waits_for(r, request) ? r->batch_items : 0;
    }
    for (struct vxd_request *r = scheduler->first;
         r != NULL && n_items >= request->batch_limit; r = r->next) {
        r->ready_ns = waits_for(r, request) ? 0 : r->ready_ns;
    }
}

int64_t vxd_scheduler_next_ready_ns(const struct vxd_lane *lane)
{
    int64_t ready_ns = INT64_MAX;

    for (const struct vxd_request *r = lane->scheduler->first; r != NULL; r = r->next) {
        if (r->ready_ns > 0 && r->ready_ns < ready_ns && vxd_lane_takes(lane, r)) {
            ready_ns = r->ready_ns;
        }
    }
    return ready_ns;
}

bool vxd_scheduler_all_answered(const struct vxd_request *leader)
{
    bool all = atomic_load(&leader->answered) != 0;

    for (const struct vxd_request *r = leader->companions; r != NULL && all;
         r = r->next_companion) {
        all = atomic_load(&r->answered) != 0;
    }
    return all;
}

void vxd_scheduler_answer(struct vxd_request *leader, const struct vxd_err *err)
{
    (void)vxd_request_answer(leader, err, NULL);
    for (struct vxd_request *r = leader->companions; r != NULL; r = r->next_companion) {
        (void)vxd_request_answer(r, err, NULL);
    }
}

void vxd_scheduler_drop(struct vxd_request *leader)
{
    struct vxd_request *next;

    for (struct vxd_request *r = leader->companions; r != NULL; r = next) {
        next = r->next_companion;
        r->next_companion = NULL;
        vxd_request_drop(r);
    }
    leader->companions = NULL;
    vxd_request_drop(leader);
}

/* Puts them in front of the list, since they have waited already. The mutex is held. */
static void put_back(struct vxd_scheduler *scheduler, struct vxd_request *request)
{
    request->submitted = false;
    request->batch_key = NULL;
    request->ready_ns = 0;
    request->next_companion = NULL;
    request->next = scheduler->first;
    request->queued = true;
    scheduler->first = request;
    if (scheduler->last == NULL) {
        scheduler->last = request;
    }
    scheduler->n_queued++;
}

void vxd_scheduler_split(struct vxd_lane *lane, struct vxd_request *leader)
{
    struct vxd_scheduler *scheduler = lane->scheduler;
    struct vxd_request *left = NULL;
    struct vxd_request *next;

    (void)pthread_mutex_lock(&scheduler->mutex);
    lane->running = NULL;
    leader->next_companion = leader->companions;
    leader->companions = NULL;
    for (struct vxd_request *r = leader; r != NULL; r = next) {
        next = r->next_companion;
        vxd_scheduler_count_ended(scheduler, r);
        if (atomic_load(&r->answered) == 0 && !scheduler->refusing) {
            put_back(scheduler, r);
        } else {
            r->next = left;
            left = r;
        }
    }
    vxd_scheduler_wake_lanes(scheduler);
    (void)pthread_mutex_unlock(&scheduler->mutex);
    if (left != NULL) {
        struct vxd_err err = {0};

        (void)vxd_fail(&err, VXD_UNAVAILABLE, NULL,
                       "the server shut down before it was done");
        vxd_scheduler_answer_all(left, &err);
    }
}
