// SPDX-License-Identifier: Apache-2.0
/* The list of waiting requests is one linked list under one mutex: it is short (bounded by
 * limits.queue), and a lane looks through it once a stage. Replies are never given with the
 * mutex held. */
#include "server/schedule/schedule.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/clock.h"
#include "server/observe/observe.h"
#include "server/registry/fields/registry_fields.h"
#include "server/registry/maps/maps.h"
#include "server/registry/networks/networks.h"
#include "server/registry/scenes/scenes.h"
#include "server/registry/odometries/odometries.h"
#include "server/registry/volumes/volumes.h"
#include "server/schedule/scheduler_internal.h"

/* Between two stages of a request that waits for another. */
#define RETRY_NS 1000000

static void append(struct vxd_scheduler *scheduler, struct vxd_request *request)
{
    request->next = NULL;
    request->queued = true;
    if (scheduler->last != NULL) {
        scheduler->last->next = request;
    } else {
        scheduler->first = request;
    }
    scheduler->last = request;
}

void vxd_scheduler_unlink(struct vxd_scheduler *scheduler, struct vxd_request *before,
                          struct vxd_request *request)
{
    if (before != NULL) {
        before->next = request->next;
    } else {
        scheduler->first = request->next;
    }
    if (scheduler->last == request) {
        scheduler->last = before;
    }
    request->next = NULL;
    request->queued = false;
    if ((!request->submitted || request->is_waiting) && !request->method->waits_apart) {
        scheduler->n_queued--;
    }
}

bool vxd_lane_takes(const struct vxd_lane *lane, const struct vxd_request *request)
{
    return request->lane == lane->kind && (lane->takes_bulk || !request->bulk);
}

static bool is_bulk_read(const struct vxd_request *request)
{
    return request->bulk && request->lane == VXD_LANE_READ;
}

/* A request that has begun holds engine memory and no place in the queue. So a lane ends
 * small requests before it begins others, and begins only a few bulk ones. */
static bool may_begin(const struct vxd_scheduler *scheduler,
                      const struct vxd_request *request)
{
    size_t n_small = VXD_WRITE_LANES + 1; /* lanes that take no bulk reads */
    size_t n_bulk_lanes = scheduler->n_lanes > n_small ? scheduler->n_lanes - n_small : 1;
    size_t most = n_bulk_lanes > VXD_BEGUN_BULK ? n_bulk_lanes : VXD_BEGUN_BULK;

    return !is_bulk_read(request) || scheduler->n_running_bulk < most;
}

/* How many bytes a request has too few, beside those of fields, maps, networks, scenes, volumes,
 * odometries and begun requests. */
static uint64_t missing_bytes(const struct vxd_scheduler *scheduler,
                              const struct vxd_request *request)
{
    struct vxd_fields_usage fields;
    struct vxd_names_usage maps;
    struct vxd_names_usage networks;
    struct vxd_scenes_usage scenes;
    struct vxd_names_usage volumes;
    struct vxd_names_usage odometries;
    uint64_t taken;

    vxd_fields_get_usage(scheduler->server->fields, &fields);
    vxd_names_get_usage(scheduler->server->maps, &maps);
    vxd_names_get_usage(scheduler->server->networks, &networks);
    vxd_scenes_get_usage(scheduler->server->scenes, &scenes);
    vxd_names_get_usage(scheduler->server->volumes, &volumes);
    vxd_odometries_get_usage(scheduler->server->odometries, &odometries);
    taken = scheduler->begun_bytes + fields.n_bytes + maps.n_bytes + networks.n_bytes +
            scenes.n_bytes + volumes.n_bytes + odometries.n_bytes + request->cost_bytes;
    return taken > scheduler->memory_bytes ? taken - scheduler->memory_bytes : 0;
}

/* Whether one request alone fits was checked before. */
bool vxd_scheduler_fits(const struct vxd_scheduler *scheduler,
                        const struct vxd_request *request)
{
    return scheduler->n_running == 0 || missing_bytes(scheduler, request) == 0;
}

/* Gives fields up that are kept only for speed, where a request that would begin has too little
 * memory. The mutex is held; where something was freed it was released meanwhile. */
static bool free_memory_for(struct vxd_lane *lane, const struct vxd_request *request)
{
    struct vxd_scheduler *scheduler = lane->scheduler;
    uint64_t missing = missing_bytes(scheduler, request);

    if (missing == 0 ||
        vxd_fields_trim(scheduler->server->fields, lane->queue, missing) == 0) {
        return false;
    }
    (void)pthread_mutex_unlock(&scheduler->mutex);
    (void)vxd_queue_wait(lane->queue, NULL);
    (void)pthread_mutex_lock(&scheduler->mutex);
    return true;
}

/* What comes before all turns: what ends soon since it has begun, and what was answered, which only
 * has memory to give back. A change whose steps run on a read lane takes turns there. */
static bool is_first(const struct vxd_request *request)
{
    bool ends_soon = !request->bulk && !request->is_waiting;

    return request->submitted && (ends_soon ||
                                  (request->changes && request->lane == VXD_LANE_WRITE &&
                                   !request->is_preparing) ||
                                  atomic_load(&request->answered) != 0);
}

static struct vxd_request *find_next(const struct vxd_lane *lane, bool only_begun,
                                     struct vxd_request **before_best)
{
    const struct vxd_scheduler *scheduler = lane->scheduler;
    struct vxd_request *best = NULL;
    struct vxd_request *before = NULL;
    struct vxd_fair_turn best_turn = {0};
    int64_t now =
        0; /* read only where a request waits for companions, or another's work */

    for (struct vxd_request *r = scheduler->first; r != NULL; before = r, r = r->next) {
        struct vxd_fair_turn turn;

        if (!vxd_lane_takes(lane, r) ||
            (!r->submitted && (only_begun || !may_begin(scheduler, r))) ||
            !vxd_turn_allows(scheduler, r)) {
            continue;
        }
        if (r->ready_ns > 0) {
            now = now != 0 ? now : vxd_clock_ns();
            if (r->ready_ns > now) {
                continue;
            }
        }
        turn = vxd_fair_turn_of(&scheduler->fair, r);
        if (is_first(r) || best == NULL || vxd_fair_is_before(turn, best_turn)) {
            best = r;
            *before_best = before;
            best_turn = turn;
        }
        if (is_first(r)) {
            break;
        }
    }
    return best;
}

/* Lanes that take small requests only come last and are asked first, so that the others
 * stay free for what only they can run. */
static void wake_lane(struct vxd_scheduler *scheduler, const struct vxd_request *request)
{
    if (request->lane == VXD_LANE_WRITE) {
        vxd_turn_wake(scheduler);
        return;
    }
    for (size_t i = scheduler->n_lanes; i-- > 0;) {
        struct vxd_lane *lane = &scheduler->lanes[i];

        if (lane->idle && vxd_lane_takes(lane, request)) {
            lane->idle = false; /* so that the next request wakes another */
            (void)pthread_cond_signal(&lane->wake);
            return;
        }
    }
}

/* A lane may take another request than the one it was woken for, and what had to wait for
 * memory may fit now. */
void vxd_scheduler_wake_lanes(struct vxd_scheduler *scheduler)
{
    for (const struct vxd_request *r = scheduler->first; r != NULL; r = r->next) {
        wake_lane(scheduler, r);
    }
}

/* Its lane may be another one when it ends. */
void vxd_scheduler_count_begun(struct vxd_scheduler *scheduler,
                               struct vxd_request *request)
{
    request->counts_as_bulk = is_bulk_read(request);
    scheduler->n_running++;
    scheduler->n_running_bulk += request->counts_as_bulk ? 1 : 0;
    scheduler->begun_bytes += request->cost_bytes;
}

void vxd_scheduler_count_ended(struct vxd_scheduler *scheduler,
                               const struct vxd_request *request)
{
    scheduler->n_running--;
    scheduler->n_running_bulk -= request->counts_as_bulk ? 1 : 0;
    scheduler->begun_bytes -= request->cost_bytes;
}

struct vxd_request *vxd_scheduler_take(struct vxd_lane *lane)
{
    struct vxd_scheduler *scheduler = lane->scheduler;
    struct vxd_request *before = NULL;
    struct vxd_request *next = find_next(lane, false, &before);

    while (next != NULL && !next->submitted && free_memory_for(lane, next)) {
        next = find_next(lane, false, &before);
    }
    /* No other request begins meanwhile, or small ones would keep a large one out for
     * ever. */
    if (next != NULL && !next->submitted && !vxd_scheduler_fits(scheduler, next)) {
        next = find_next(lane, true, &before);
    }
    if (next == NULL) {
        return NULL;
    }
    vxd_scheduler_unlink(scheduler, before, next);
    vxd_fair_take(&scheduler->fair, next);
    if (!next->submitted) {
        vxd_scheduler_count_begun(scheduler, next);
        vxd_scheduler_collect(lane, next);
    }
    lane->running = next;
    vxd_scheduler_wake_lanes(scheduler);
    return next;
}

void vxd_scheduler_end(struct vxd_lane *lane, struct vxd_request *request)
{
    struct vxd_scheduler *scheduler = lane->scheduler;

    (void)pthread_mutex_lock(&scheduler->mutex);
    lane->running = NULL;
    vxd_fair_charge(&scheduler->fair, request);
    vxd_scheduler_count_ended(scheduler, request);
    for (const struct vxd_request *r = request->companions; r != NULL;
         r = r->next_companion) {
        vxd_scheduler_count_ended(scheduler, r);
    }
    vxd_scheduler_wake_lanes(scheduler);
    (void)pthread_mutex_unlock(&scheduler->mutex);
}

void vxd_scheduler_requeue(struct vxd_lane *lane, struct vxd_request *request)
{
    struct vxd_scheduler *scheduler = lane->scheduler;

    (void)pthread_mutex_lock(&scheduler->mutex);
    lane->running = NULL;
    vxd_fair_charge(&scheduler->fair, request);
    /* Lanes with nothing but requests that wait for others are idle in between. */
    request->ready_ns = request->is_waiting ? request->ran_ns + RETRY_NS : 0;
    scheduler->n_queued += request->is_waiting && !request->method->waits_apart ? 1 : 0;
    if (lane->kind == VXD_LANE_WRITE &&
        ((request->changes && !request->is_preparing) || !request->bulk)) {
        request->next = scheduler->first;
        request->queued = true;
        scheduler->first = request;
        if (scheduler->last == NULL) {
            scheduler->last = request;
        }
    } else {
        append(scheduler, request);
    }
    if (request->lane != lane->kind) {
        /* It goes on with lanes of another kind, which may sleep. */
        if (!request->counts_as_bulk && is_bulk_read(request)) {
            request->counts_as_bulk = true;
            scheduler->n_running_bulk++;
        }
        wake_lane(scheduler, request);
    }
    (void)pthread_mutex_unlock(&scheduler->mutex);
}

static bool same_stream(const struct vxd_request *a, const struct vxd_request *b)
{
    return strcmp(a->stream, b->stream) == 0 &&
           strcmp(vxd_request_client(a), vxd_request_client(b)) == 0 &&
           strcmp(a->principal.name, b->principal.name) == 0;
}

static bool waits_in_stream(const struct vxd_request *waiting,
                            const struct vxd_request *request)
{
    return !waiting->submitted && !waiting->continues && same_stream(waiting, request);
}

/* Finds the newest waiting request of the stream, when at least keep_last of them arrived
 * after `request`: they were decoded faster, on another thread, and so came into the list
 * before it. */
static const struct vxd_request *find_superseding(const struct vxd_scheduler *scheduler,
                                                  const struct vxd_request *request)
{
    const struct vxd_request *newest = NULL;
    size_t n_newer = 0;

    for (const struct vxd_request *r = scheduler->first; r != NULL; r = r->next) {
        if (waits_in_stream(r, request) && r->received_ns > request->received_ns) {
            n_newer++;
            newest = newest == NULL || r->received_ns > newest->received_ns ? r : newest;
        }
    }
    return n_newer >= request->keep_last ? newest : NULL;
}

/* Takes the request of the stream that arrived first out of the list. */
static struct vxd_request *take_oldest(struct vxd_scheduler *scheduler,
                                       const struct vxd_request *request)
{
    struct vxd_request *before = NULL;
    struct vxd_request *before_oldest = NULL;
    struct vxd_request *oldest = NULL;

    for (struct vxd_request *r = scheduler->first; r != NULL; before = r, r = r->next) {
        if (waits_in_stream(r, request) &&
            (oldest == NULL || r->received_ns < oldest->received_ns)) {
            oldest = r;
            before_oldest = before;
        }
    }
    if (oldest != NULL) {
        vxd_scheduler_unlink(scheduler, before_oldest, oldest);
    }
    return oldest;
}

/* Takes from the list what `request` supersedes; returns them linked. */
static struct vxd_request *take_superseded(struct vxd_scheduler *scheduler,
                                           const struct vxd_request *request)
{
    struct vxd_request *taken = NULL;
    size_t n_waiting = 1; /* the new one */

    for (const struct vxd_request *r = scheduler->first; r != NULL; r = r->next) {
        n_waiting += waits_in_stream(r, request) ? 1 : 0;
    }
    for (; n_waiting > request->keep_last; n_waiting--) {
        struct vxd_request *oldest = take_oldest(scheduler, request);

        if (oldest == NULL) {
            break;
        }
        oldest->next = taken;
        taken = oldest;
    }
    return taken;
}

void vxd_scheduler_answer_all(struct vxd_request *requests, const struct vxd_err *err)
{
    struct vxd_request *next;

    for (struct vxd_request *r = requests; r != NULL; r = next) {
        next = r->next;
        r->next = NULL;
        (void)vxd_request_answer(r, err, NULL);
        vxd_request_drop(r);
    }
}

static void answer_superseded(struct vxd_scheduler *scheduler, struct vxd_request *taken,
                              const char *id)
{
    struct vxd_err err = {0};

    for (const struct vxd_request *r = taken; r != NULL; r = r->next) {
        vxd_metrics_count_superseded(scheduler->server->metrics);
    }
    (void)vxd_fail(&err, VXD_ABORTED, NULL, "superseded by %s", id);
    vxd_scheduler_answer_all(taken, &err);
}

/* Checks that the list has capacity for one more, or that another gives its place, which *giver is
 * then, with the one before it. The mutex is held. */
static enum vxd_status find_capacity(struct vxd_scheduler *scheduler,
                                     struct vxd_request *request,
                                     struct vxd_request **giver,
                                     struct vxd_request **before, struct vxd_err *err)
{
    struct vxd_metrics *metrics = scheduler->server->metrics;
    uint32_t limit = atomic_load(&scheduler->server->limits.queue);

    *giver = NULL;
    if (scheduler->refusing) {
        vxd_metrics_count_rejected(metrics, "draining");
        return vxd_fail(err, VXD_UNAVAILABLE, NULL, "the server is shutting down");
    }
    if (scheduler->n_queued < limit) {
        return VXD_OK;
    }
    *giver = vxd_fair_find_place(scheduler, request, before);
    if (*giver != NULL) {
        return VXD_OK;
    }
    vxd_metrics_count_rejected(metrics, "queue_full");
    vxd_scheduler_note_ahead(scheduler, request, true);
    vxd_account_refuse(request->principal.account, VXD_REFUSED_QUEUE);
    return vxd_fail(err, VXD_UNAVAILABLE, NULL,
                    "the queue is full: %zu requests wait, limits.queue is %u; try "
                    "again later",
                    scheduler->n_queued, limit);
}

static enum vxd_status check_capacity(struct vxd_scheduler *scheduler,
                                      struct vxd_request *request, struct vxd_err *err)
{
    struct vxd_request *giver;
    struct vxd_request *before = NULL;
    enum vxd_status status;

    vxd_fair_name(request);
    (void)pthread_mutex_lock(&scheduler->mutex);
    status = find_capacity(scheduler, request, &giver, &before, err);
    (void)pthread_mutex_unlock(&scheduler->mutex);
    return status;
}

/* A request that waited has given its place to another sender's. */
static void answer_giver(struct vxd_scheduler *scheduler, struct vxd_request *giver)
{
    struct vxd_err err = {0};

    if (giver == NULL) {
        return;
    }
    vxd_metrics_count_rejected(scheduler->server->metrics, "queue_full");
    vxd_account_refuse(giver->principal.account, VXD_REFUSED_QUEUE);
    (void)vxd_fail(&err, VXD_UNAVAILABLE, NULL,
                   "the queue is full, limits.queue is %u, and another sender had fewer "
                   "places in it, so it got this one; try again later",
                   atomic_load(&scheduler->server->limits.queue));
    vxd_scheduler_answer_all(giver, &err);
}

static enum vxd_status push(struct vxd_scheduler *scheduler, struct vxd_request *request,
                            struct vxd_err *err)
{
    bool replaces = request->stream[0] != '\0' && request->keep_last > 0;
    const struct vxd_request *newer;
    struct vxd_request *superseded = NULL;
    struct vxd_request *giver = NULL;
    struct vxd_request *before = NULL;
    enum vxd_status status = vxd_scheduler_check_age(request, err);

    if (status != VXD_OK) {
        return status;
    }
    vxd_fair_name(request);
    (void)pthread_mutex_lock(&scheduler->mutex);
    newer = replaces ? find_superseding(scheduler, request) : NULL;
    if (newer != NULL) {
        vxd_metrics_count_superseded(scheduler->server->metrics);
        status = vxd_fail(err, VXD_ABORTED, NULL, "superseded by %s", newer->id);
    } else {
        superseded = replaces ? take_superseded(scheduler, request) : NULL;
        /* A request that takes another's place needs no capacity of its own. */
        status = superseded != NULL
                     ? VXD_OK
                     : find_capacity(scheduler, request, &giver, &before, err);
    }
    if (giver != NULL) {
        vxd_scheduler_unlink(scheduler, before, giver);
    }
    if (status == VXD_OK) {
        vxd_scheduler_note_ahead(scheduler, request, false);
        vxd_request_hold(request);
        vxd_fair_enter(&scheduler->fair, request);
        append(scheduler, request);
        scheduler->n_queued++;
        vxd_scheduler_note_queued(scheduler, request);
        wake_lane(scheduler, request);
    }
    (void)pthread_mutex_unlock(&scheduler->mutex);
    answer_giver(scheduler, giver);
    answer_superseded(scheduler, superseded, request->id);
    return status;
}

static enum vxd_status push_next(struct vxd_scheduler *scheduler,
                                 struct vxd_request *request, struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    (void)pthread_mutex_lock(&scheduler->mutex);
    if (scheduler->refusing) {
        status = vxd_fail(err, VXD_UNAVAILABLE, NULL,
                          "the server shut down before it was done");
    } else {
        vxd_request_hold(request);
        request->continues = true;
        vxd_fair_name(request);
        vxd_fair_enter(&scheduler->fair, request);
        append(scheduler, request);
        scheduler->n_queued += request->method->waits_apart ? 0 : 1;
        wake_lane(scheduler, request);
    }
    (void)pthread_mutex_unlock(&scheduler->mutex);
    return status;
}

/* Takes a request that has not begun out of the list; the caller then owns the list's
 * reference. Before its deadline only a request that may be too old is taken. */
static bool take_waiting(struct vxd_scheduler *scheduler, struct vxd_request *request,
                         bool late)
{
    struct vxd_request *before = NULL;
    bool taken = false;

    (void)pthread_mutex_lock(&scheduler->mutex);
    if (request->queued && !request->submitted && (late || !request->continues)) {
        for (struct vxd_request *r = scheduler->first; r != request; r = r->next) {
            before = r;
        }
        vxd_scheduler_unlink(scheduler, before, request);
        vxd_scheduler_wake_lanes(scheduler); /* others may have waited behind it */
        taken = true;
    }
    (void)pthread_mutex_unlock(&scheduler->mutex);
    return taken;
}

static bool cancel(struct vxd_scheduler *scheduler, struct vxd_request *request)
{
    return take_waiting(scheduler, request, true);
}

static int64_t first_limit_ns(const struct vxd_request *request)
{
    return request->max_age_ns < request->deadline_ns ? request->max_age_ns
                                                      : request->deadline_ns;
}

/* Says how a later end of the waiting is asked for, or, where the request waited as long as any may,
 * which key allows more. */
static void fail_late(const struct vxd_request *request, struct vxd_err *err)
{
    int64_t waited_ms = (request->deadline_ns - request->received_ns) / 1000000;
    uint32_t most_ms = atomic_load(&request->server->limits.max_timeout_ms);
    bool goes_on = vxd_request_goes_on(request);
    bool has_begun = atomic_load(&request->started_ns) != 0;
    const char *field = goes_on ? NULL : "header.timeout_ms";
    const char *state = goes_on
                            ? "it goes on, and its outcome can be asked for by the same "
                              "sequence"
                        : has_begun ? "it was running"
                                    : "it had not begun";

    if (waited_ms < most_ms) {
        (void)vxd_fail(err, VXD_DEADLINE_EXCEEDED, field,
                       "not done within %" PRId64 " ms (%s); header.timeout_ms, which is "
                       "X-Voxeld-Timeout-Ms over HTTP, may be up to %" PRIu32,
                       waited_ms, state, most_ms);
    } else {
        (void)vxd_fail(err, VXD_DEADLINE_EXCEEDED, field,
                       "not done within %" PRId64 " ms (%s), which is as long as "
                       "limits.max_timeout_ms of the daemon's config allows",
                       waited_ms, state);
    }
}

/* On the timer's thread: the deadline or max_age is over. */
static void expire(void *context, struct vxd_request *request)
{
    struct vxd_scheduler *scheduler = context;
    int64_t now = vxd_clock_ns();
    bool late = now >= request->deadline_ns;
    bool waiting = take_waiting(scheduler, request, late);
    struct vxd_err err = {0};

    if (late) {
        fail_late(request, &err);
        (void)vxd_request_answer(request, &err, NULL);
    } else if (waiting) {
        (void)vxd_scheduler_check_age(request, &err);
        (void)vxd_request_answer(request, &err, NULL);
    } else if (vxd_timer_add(scheduler->timer, request, request->deadline_ns, &err) !=
               VXD_OK) {
        (void)vxd_request_answer(request, &err, NULL);
    } else if (atomic_load(&request->answered) != 0) {
        /* It was answered meanwhile, perhaps before the clock was set again. */
        vxd_timer_remove(scheduler->timer, request);
    }
    if (waiting) {
        vxd_request_drop(request);
    }
    vxd_request_drop(request);
}

static enum vxd_status watch(struct vxd_scheduler *scheduler, struct vxd_request *request,
                             struct vxd_err *err)
{
    enum vxd_status status =
        vxd_timer_add(scheduler->timer, request, first_limit_ns(request), err);

    if (status == VXD_OK && atomic_load(&request->answered) != 0) {
        /* Its connection ended before its clock began. */
        vxd_timer_remove(scheduler->timer, request);
    }
    return status;
}

static void unwatch(struct vxd_scheduler *scheduler, struct vxd_request *request)
{
    vxd_timer_remove(scheduler->timer, request);
}

static const struct vxd_schedule_calls calls = {
    check_capacity,    push, push_next, watch, unwatch, cancel, vxd_turn_begin_apart,
    vxd_turn_end_apart};

const struct vxd_queue *vxd_scheduler_probe(const struct vxd_scheduler *scheduler)
{
    return scheduler->lanes[0].queue;
}

void vxd_scheduler_get_load(struct vxd_scheduler *scheduler,
                            struct vxd_scheduler_load *out)
{
    (void)pthread_mutex_lock(&scheduler->mutex);
    out->n_queued = scheduler->n_queued;
    out->n_running = scheduler->n_running;
    (void)pthread_mutex_unlock(&scheduler->mutex);
    out->queue_limit = atomic_load(&scheduler->server->limits.queue);
}

static size_t lane_count(const struct vxd_server *server)
{
    return (size_t)server->config.n_read_lanes + VXD_WRITE_LANES;
}

enum vxd_status vxd_scheduler_create(struct vxd_server *server,
                                     struct vxd_scheduler **out, struct vxd_err *err)
{
    struct vxd_scheduler *scheduler = calloc(1, sizeof *scheduler);
    size_t n_lanes = lane_count(server);
    struct vxd_memory_usage memory;
    enum vxd_status status = VXD_OK;

    if (scheduler == NULL || pthread_mutex_init(&scheduler->mutex, NULL) != 0) {
        free(scheduler);
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for the scheduler");
    }
    scheduler->server = server;
    server->schedule = &calls;
    vxd_context_get_memory(server->context, &memory);
    scheduler->memory_bytes = memory.device_budget_bytes;
    if (n_lanes > VXD_MAX_LANES) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "engine.read_lanes",
                         "%u lanes, at most %d are supported",
                         server->config.n_read_lanes, VXD_MAX_LANES - VXD_WRITE_LANES));
    }
    VXD_TRY(vxd_timer_create(expire, scheduler, &scheduler->timer, err));
    for (size_t i = 0; i < n_lanes; i++) {
        struct vxd_lane *lane = &scheduler->lanes[i];

        /* The write lanes first, then the read lanes; the last takes no bulk. */
        lane->scheduler = scheduler;
        lane->kind = i < VXD_WRITE_LANES ? VXD_LANE_WRITE : VXD_LANE_READ;
        lane->takes_bulk = i + 1 < n_lanes;
        VXD_TRY(vxd_lane_start(lane, err));
        (void)pthread_mutex_lock(&scheduler->mutex);
        scheduler->n_lanes = i + 1;
        (void)pthread_mutex_unlock(&scheduler->mutex);
    }
    *out = scheduler;
    scheduler = NULL;
out:
    vxd_scheduler_destroy(scheduler);
    return status;
}

/* Releases requests that a lane had between two stages when it stopped, so that their
 * engine memory goes back. */
static void release_rest(struct vxd_scheduler *scheduler)
{
    struct vxd_err err = {0};
    struct vxd_request *next;

    (void)vxd_fail(&err, VXD_UNAVAILABLE, NULL,
                   "the server shut down before it was done");
    for (struct vxd_request *r = scheduler->first; r != NULL; r = next) {
        next = r->next;
        vxd_scheduler_answer(r, &err);
        if (r->submitted && r->method->release != NULL) {
            r->method->release(r, scheduler->lanes[0].queue);
        }
        vxd_scheduler_drop(r);
    }
    scheduler->first = NULL;
    scheduler->last = NULL;
}

void vxd_scheduler_destroy(struct vxd_scheduler *scheduler)
{
    if (scheduler == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&scheduler->mutex);
    scheduler->stopping = true;
    for (size_t i = 0; i < scheduler->n_lanes; i++) {
        (void)pthread_cond_signal(&scheduler->lanes[i].wake);
    }
    (void)pthread_mutex_unlock(&scheduler->mutex);
    for (size_t i = 0; i < scheduler->n_lanes; i++) {
        vxd_lane_join(&scheduler->lanes[i]);
    }
    release_rest(scheduler);
    for (size_t i = 0; i < scheduler->n_lanes; i++) {
        vxd_lane_close(&scheduler->lanes[i]);
    }
    vxd_timer_destroy(scheduler->timer);
    (void)pthread_mutex_destroy(&scheduler->mutex);
    free(scheduler);
}
