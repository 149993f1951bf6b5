// SPDX-License-Identifier: Apache-2.0
/* Who is ahead of a request, and what waits and runs. */
#include <string.h>

#include "proto/base/clock.h"
#include "server/schedule/scheduler_internal.h"

/* So many of the list are looked at, since whoever queues a request waits for it. */
#define MOST_LOOKED_AT 256

static void count(struct vxd_why_queue *queue, const struct vxd_request *request,
                  bool is_running)
{
    vxd_why_count(queue, request->method->name, request->principal.name, is_running);
}

/* Ahead of `request` in the list, or of one that would come last where it is not in it; of its lanes
 * alone unless is_full. The mutex is held. */
static void look(const struct vxd_scheduler *scheduler, const struct vxd_request *request,
                 bool is_full, struct vxd_why_queue *out)
{
    size_t n_looked_at = 0;

    *out = (struct vxd_why_queue){0};
    for (size_t i = 0; i < scheduler->n_lanes; i++) {
        const struct vxd_lane *lane = &scheduler->lanes[i];

        if (lane->running != NULL && lane->running != request &&
            (is_full || lane->kind == request->lane)) {
            count(out, lane->running, true);
        }
    }
    for (const struct vxd_request *r = scheduler->first;
         r != NULL && r != request && n_looked_at < MOST_LOOKED_AT;
         r = r->next, n_looked_at++) {
        if (is_full || r->lane == request->lane) {
            bool has_begun = r->submitted && !r->is_waiting;

            count(out, r, has_begun);
            out->position += has_begun ? 0 : 1;
        }
    }
}

void vxd_scheduler_note_ahead(const struct vxd_scheduler *scheduler,
                              struct vxd_request *request, bool is_full)
{
    if (!atomic_load(&request->has_seen_queue)) {
        look(scheduler, request, is_full, &request->queue_seen);
        atomic_store(&request->has_seen_queue, true);
    }
}

static bool is_it(const struct vxd_request *request, const char *id, const char *token)
{
    return request != NULL && strcmp(request->id, id) == 0 &&
           (token == NULL || strcmp(request->principal.name, token) == 0) &&
           atomic_load(&request->answered) == 0;
}

static const struct vxd_request *find(const struct vxd_scheduler *scheduler,
                                      const char *id, const char *token, bool *is_running)
{
    for (size_t i = 0; i < scheduler->n_lanes; i++) {
        const struct vxd_request *running = scheduler->lanes[i].running;

        *is_running = true;
        for (const struct vxd_request *r = running; r != NULL;
             r = r == running ? running->companions : r->next_companion) {
            if (is_it(r, id, token)) {
                return r;
            }
        }
    }
    for (const struct vxd_request *r = scheduler->first; r != NULL; r = r->next) {
        if (is_it(r, id, token)) {
            *is_running = r->submitted && !r->is_waiting;
            return r;
        }
    }
    return NULL;
}

bool vxd_scheduler_explain(struct vxd_scheduler *scheduler, const char *request_id,
                           const char *token, struct vxd_why_entry *out)
{
    const struct vxd_request *request;
    bool is_running = false;

    (void)pthread_mutex_lock(&scheduler->mutex);
    request = find(scheduler, request_id, token, &is_running);
    if (request != NULL) {
        *out = (struct vxd_why_entry){.method = request->method->name,
                                      .state = is_running ? VXD_WHY_RUNS : VXD_WHY_WAITS,
                                      .key = "",
                                      .has_queue = true,
                                      .trace_id = ""};
        memcpy(out->request_id, request->id, sizeof out->request_id);
        memcpy(out->token, request->principal.name, sizeof out->token);
        memcpy(out->trace_id, request->trace.trace_id, sizeof out->trace_id);
        out->total_ms = (double)(vxd_clock_ns() - request->began_ns) / 1e6;
        out->engine_ms = (double)atomic_load(&request->engine_ns) / 1e6;
        if (!is_running) {
            look(scheduler, request, false, &out->queue);
            out->key = request->lane == VXD_LANE_READ ? "engine.read_lanes" : "";
            out->has_limit =
                vxd_config_number(&scheduler->server->config, out->key, &out->limit);
        } else {
            out->queue = (struct vxd_why_queue){0};
        }
    }
    (void)pthread_mutex_unlock(&scheduler->mutex);
    return request != NULL;
}

static void copy_entry(const struct vxd_request *request, enum vxd_scheduler_stage stage,
                       struct vxd_scheduler_entry *out)
{
    int64_t now_ns = vxd_clock_ns();
    int64_t started_ns = atomic_load(&request->started_ns);
    int64_t turn_ns = started_ns > 0 ? started_ns : now_ns;
    int64_t left_ns = request->deadline_ns - now_ns;

    *out = (struct vxd_scheduler_entry){.method = request->method->name, .stage = stage};
    memcpy(out->request_id, request->id, sizeof out->request_id);
    memcpy(out->client_id, request->client_id, sizeof out->client_id);
    memcpy(out->token, request->principal.name, sizeof out->token);
    out->total_ms = (double)(now_ns - request->began_ns) / 1e6;
    out->engine_ms = (double)atomic_load(&request->engine_ns) / 1e6;
    out->wait_ms = (double)(turn_ns - request->began_ns) / 1e6;
    out->left_ms = left_ns > 0 ? (double)left_ns / 1e6 : 0;
}

static bool is_listed(const struct vxd_request *request, const char *token)
{
    return (token == NULL || strcmp(request->principal.name, token) == 0) &&
           atomic_load(&request->answered) == 0;
}

/* A list that is being made. */
struct listing {
    const char *token;
    struct vxd_scheduler_entry *out;
    size_t n_most;
    size_t n;
};

static void list_one(struct listing *listing, const struct vxd_request *request,
                     enum vxd_scheduler_stage stage)
{
    if (listing->n < listing->n_most && is_listed(request, listing->token)) {
        copy_entry(request, stage, &listing->out[listing->n++]);
    }
}

/* Of the scheduler's list those that have begun, or have not. */
static void list_queue(const struct vxd_scheduler *scheduler, struct listing *listing,
                       bool have_begun)
{
    size_t n_looked_at = 0;

    for (const struct vxd_request *r = scheduler->first;
         r != NULL && n_looked_at < MOST_LOOKED_AT; r = r->next, n_looked_at++) {
        if ((r->submitted && !r->is_waiting) == have_begun) {
            list_one(listing, r, have_begun ? VXD_STAGE_RUNS : VXD_STAGE_WAITS);
        }
    }
}

size_t vxd_scheduler_list(struct vxd_scheduler *scheduler, const char *token,
                          struct vxd_scheduler_entry *out, size_t n_most)
{
    struct listing listing = {.token = token, .out = out, .n_most = n_most};
    size_t n_looked_at = 0;

    (void)pthread_mutex_lock(&scheduler->mutex);
    for (size_t i = 0; i < scheduler->n_lanes; i++) {
        const struct vxd_request *running = scheduler->lanes[i].running;

        for (const struct vxd_request *r = running; r != NULL;
             r = r == running ? running->companions : r->next_companion) {
            list_one(&listing, r, VXD_STAGE_RUNS);
        }
    }
    list_queue(scheduler, &listing, true);
    for (const struct vxd_request *r = scheduler->committing;
         r != NULL && n_looked_at < MOST_LOOKED_AT;
         r = r->commit->next_handed_over, n_looked_at++) {
        list_one(&listing, r, VXD_STAGE_COMMITS);
    }
    list_queue(scheduler, &listing, false);
    (void)pthread_mutex_unlock(&scheduler->mutex);
    return listing.n;
}
