// SPDX-License-Identifier: Apache-2.0
/* A lane takes a request, runs one stage of it, and either gives it back for the next
 * stage or finishes it. A request that was answered meanwhile, because its deadline
 * passed, is only released, unless it changes something and has begun: then it goes on to
 * its end, so that asking again gives the outcome. */
#include "server/request/request.h"
#include "proto/base/clock.h"
#include "server/observe/log/log.h"
#include "server/registry/maps/maps.h"
#include "server/registry/scenes/scenes.h"
#include "server/registry/odometries/odometries.h"
#include "server/registry/volumes/volumes.h"
#include "server/schedule/scheduler_internal.h"

static void release(struct vxd_lane *lane, struct vxd_request *request)
{
    if (request->submitted && !request->is_released && request->method->release != NULL) {
        request->method->release(request, lane->queue);
        /* Memory is given back in the queue's order; waiting makes that happen now and
         * not with the next request. A fault here can only be a lost device, which the
         * next stage reports. */
        (void)vxd_queue_wait(lane->queue, NULL);
    }
    request->is_released = true;
}

static void release_first(struct vxd_lane *lane, struct vxd_request *request)
{
    if (request->method->releases_first) {
        release(lane, request);
    }
}

/* Answers are given and memory freed outside the mutex. */
static void end_request(struct vxd_lane *lane, struct vxd_request *request)
{
    release(lane, request);
    vxd_scheduler_end(lane, request);
    vxd_scheduler_drop(request);
}

/* A stage has taken so long: its senders have used it up, those of a batch an equal share each. */
static void charge(struct vxd_request *request, int64_t stage_ns)
{
    int64_t n = 1;

    for (const struct vxd_request *r = request->companions; r != NULL;
         r = r->next_companion) {
        n++;
    }
    for (struct vxd_request *r = request; r != NULL;
         r = r == request ? request->companions : r->next_companion) {
        if (r->principal.account != NULL) {
            vxd_account_charge(r->principal.account, vxd_rules_quota(r->principal.rules),
                               stage_ns / n, request->ran_ns);
        }
    }
}

/* Submits a stage and waits for it; the queue is empty afterwards whatever happened. */
static enum vxd_status run_stage(struct vxd_lane *lane, struct vxd_request *request,
                                 struct vxd_err *err)
{
    struct vxd_err wait_err = {0};
    int64_t begin = vxd_clock_ns();
    enum vxd_status status;
    enum vxd_status wait_status;

    request->more = false;
    request->is_waiting = false;
    request->submitted = true;
    status = request->method->submit(request, lane->queue, err);
    vxd_request_end_apart(request); /* where a fault left it so */
    wait_status = vxd_queue_wait(lane->queue, &wait_err);
    request->ran_ns = vxd_clock_ns();
    begin += request->turn_wait_ns; /* waiting for the writer's turn is no work */
    request->turn_wait_ns = 0;
    request->engine_ns += request->ran_ns - begin;
    charge(request, request->ran_ns - begin);
    if (status == VXD_OK && wait_status != VXD_OK) {
        *err = wait_err;
        status = wait_status;
    }
    if (status != VXD_OK && vxd_context_is_lost(vxd_queue_context(lane->queue))) {
        vxd_log(VXD_LOG_ERROR, "the engine's device is lost", "error", err->message);
        vxd_server_stop(request->server, true);
        /* Whatever the engine reported, the sender may try again elsewhere or later. */
        status =
            vxd_fail(err, VXD_UNAVAILABLE, NULL, "the GPU failed; the server restarts");
    }
    return status;
}

enum vxd_status vxd_scheduler_check_age(const struct vxd_request *request,
                                        struct vxd_err *err)
{
    int64_t now = vxd_clock_ns();

    if (now < request->max_age_ns) {
        return VXD_OK;
    }
    return vxd_fail(err, VXD_ABORTED, "header.max_age_ms",
                    "waited %.1f ms, longer than max_age_ms",
                    (double)(now - request->received_ns) / 1e6);
}

/* Answers the request and those of its companions that waited longer than their senders
 * want; false when none is left. */
static bool begin_request(struct vxd_request *request)
{
    for (struct vxd_request *r = request; r != NULL;
         r = r == request ? request->companions : r->next_companion) {
        struct vxd_err err = {0};

        if (r->continues) {
            continue; /* it began with its prerequisite */
        }
        if (vxd_scheduler_check_age(r, &err) != VXD_OK) {
            (void)vxd_request_answer(r, &err, NULL);
        } else {
            atomic_store(&r->started_ns, vxd_clock_ns());
        }
    }
    return !vxd_scheduler_all_answered(request);
}

/* Whether the request and its companions can be given up. */
static bool is_given_up(const struct vxd_request *request)
{
    return vxd_scheduler_all_answered(request) &&
           !(request->changes && request->submitted && !request->is_preparing);
}

/* Keeps the outcome for those who wait for it and for those who ask later, then answers. */
static void end_once(struct vxd_request *request, const struct vxd_err *err)
{
    if (request->once != NULL) {
        vxd_once_finish(request, err, request->output);
    }
}

/* A batch has failed. Which request is at fault shows when each runs alone. */
static void separate(struct vxd_lane *lane, struct vxd_request *request,
                     const struct vxd_err *err)
{
    if (vxd_context_is_lost(vxd_queue_context(lane->queue))) {
        vxd_scheduler_answer(request, err);
        end_request(lane, request);
        return;
    }
    request->method->release(request, lane->queue);
    (void)vxd_queue_wait(lane->queue, NULL);
    vxd_scheduler_split(lane, request);
}

/* Moves a request to those that are decided; the mutex is held. Requests are decided in
 * the order in which they were handed over; the last one may have been refused. */
static void leave_committing(struct vxd_scheduler *scheduler,
                             const struct vxd_request *request)
{
    struct vxd_request **at = &scheduler->committing;

    while (*at != request) {
        at = &(*at)->commit->next_handed_over;
    }
    *at = request->commit->next_handed_over;
    scheduler->n_committing--;
}

/* Called on any thread: the writer returns to the change when it is free. Never waits. */
static void note_decided(struct vxd_request *request, const struct vxd_err *err)
{
    struct vxd_commit *commit = request->commit;
    struct vxd_scheduler *scheduler = commit->lane->scheduler;

    request->ran_ns = vxd_clock_ns();
    atomic_store(&request->decided_ns, request->ran_ns);
    commit->err = (struct vxd_err){0};
    if (err != NULL) {
        commit->err = *err;
    }
    (void)pthread_mutex_lock(&scheduler->mutex);
    commit->next = NULL;
    if (scheduler->decided == NULL) {
        scheduler->decided = request;
    } else {
        scheduler->last_decided->commit->next = request;
    }
    scheduler->last_decided = request;
    vxd_turn_wake(scheduler);
    (void)pthread_mutex_unlock(&scheduler->mutex);
}

/* Hands over a change that is made and whose reply is complete. end_committed returns to
 * it once it is decided. */
static enum vxd_status hand_over(struct vxd_lane *lane, struct vxd_request *request,
                                 struct vxd_err *err)
{
    struct vxd_scheduler *scheduler = lane->scheduler;
    struct vxd_request **at = &scheduler->committing;
    enum vxd_status status;

    request->commit->decide = note_decided;
    request->commit->lane = lane;
    (void)pthread_mutex_lock(&scheduler->mutex);
    while (*at != NULL) {
        at = &(*at)->commit->next_handed_over;
    }
    *at = request;
    request->commit->next_handed_over = NULL;
    lane->running = NULL;
    scheduler->n_committing++;
    (void)pthread_mutex_unlock(&scheduler->mutex);
    atomic_store(&request->handed_over_ns, vxd_clock_ns());
    status = request->commit->begin(request, err);
    if (status != VXD_OK) {
        (void)pthread_mutex_lock(&scheduler->mutex);
        leave_committing(scheduler, request);
        lane->running = request;
        (void)pthread_mutex_unlock(&scheduler->mutex);
        request->commit->end(request, false);
    }
    return status;
}

/* Takes the first request that was decided; NULL where there is none. The mutex is held. */
static struct vxd_request *take_decided(struct vxd_lane *lane)
{
    struct vxd_scheduler *scheduler = lane->scheduler;
    struct vxd_request *request =
        lane->kind == VXD_LANE_WRITE ? scheduler->decided : NULL;

    if (request != NULL) {
        scheduler->decided = request->commit->next;
        leave_committing(scheduler, request);
        lane->running = request;
    }
    return request;
}

/* Ends a request that was decided. The mutex is not held. */
static void end_committed(struct vxd_lane *lane, struct vxd_request *request)
{
    struct vxd_err decided = request->commit->err;
    bool committed = decided.code == VXD_OK;
    const struct vxd_err *err = committed ? NULL : &decided;

    request->commit->end(request, committed);
    release_first(lane, request);
    (void)vxd_request_answer(request, err, committed ? request->output : NULL);
    end_once(request, err);
    end_request(lane, request);
}

static void run_request(struct vxd_lane *lane, struct vxd_request *request)
{
    struct vxd_err err = {0};
    enum vxd_status status = VXD_OK;

    if (is_given_up(request) || (!request->submitted && !begin_request(request))) {
        end_request(lane, request);
        return;
    }
    VXD_TRY(run_stage(lane, request, &err));
    if (is_given_up(request)) {
        end_request(lane, request);
        return;
    }
    if (request->more) {
        vxd_scheduler_requeue(lane, request);
        return;
    }
    VXD_TRY(request->method->finish(request, lane->queue, &err));
    if (request->commit != NULL) {
        VXD_TRY(hand_over(lane, request, &err));
        return;
    }
    release_first(lane, request);
    (void)vxd_request_answer(request, NULL, request->output);
    for (struct vxd_request *r = request->companions; r != NULL; r = r->next_companion) {
        atomic_store(&r->engine_ns, atomic_load(&request->engine_ns));
        (void)vxd_request_answer(r, NULL, r->output);
    }
    end_once(request, NULL);
out:
    if (status != VXD_OK && request->companions != NULL) {
        separate(lane, request, &err);
        return;
    }
    if (status != VXD_OK) {
        (void)vxd_request_answer(request, &err, NULL);
    }
    if (status != VXD_OK && status != VXD_CANCELLED) {
        /* A change that was given up leaves its number to whoever asks again. */
        end_once(request, &err);
    }
    end_request(lane, request);
}

/* When the next map, volume or odometry's time is over. */
static int64_t next_reap_ns(const struct vxd_server *server)
{
    int64_t map_ns = vxd_names_next_reap_ns(server->maps);
    int64_t volume_ns = vxd_names_next_reap_ns(server->volumes);

    int64_t odometry_ns = vxd_odometries_next_reap_ns(server->odometries);
    int64_t least_ns = map_ns < volume_ns ? map_ns : volume_ns;

    return least_ns < odometry_ns ? least_ns : odometry_ns;
}

/* Drops the maps, volumes and odometries whose time was over at now_ns. The mutex is not held. */
static void reap(struct vxd_lane *lane, int64_t now_ns)
{
    struct vxd_server *server = lane->scheduler->server;

    if (now_ns >= next_reap_ns(server)) {
        vxd_names_reap(server->maps, lane->queue, now_ns);
        vxd_names_reap(server->volumes, lane->queue, now_ns);
        vxd_odometries_reap(server->odometries, lane->queue, now_ns);
        (void)vxd_queue_wait(lane->queue, NULL);
    }
}

/* Goes on with collections of scenes, after requests that took so long. The mutex is not
 * held. */
static void collect_scenes(struct vxd_lane *lane, int64_t requests_ns)
{
    if (vxd_scenes_collect_due(lane->scheduler->server->scenes, lane->queue,
                               requests_ns)) {
        (void)vxd_queue_wait(lane->queue, NULL);
    }
}

/* Waits until there may be something to do, which includes the end of a batch's waiting
 * for more requests. Write lanes also wake to drop maps and volumes when their time is over,
 * whether anybody asks or not. The mutex is held; the writer leaves its turn to others. */
static void wait_for_work(struct vxd_lane *lane)
{
    struct vxd_scheduler *scheduler = lane->scheduler;
    int64_t reap_ns =
        lane->kind == VXD_LANE_WRITE ? next_reap_ns(scheduler->server) : INT64_MAX;
    int64_t ready_ns = vxd_scheduler_next_ready_ns(lane);
    int64_t until_ns = reap_ns < ready_ns ? reap_ns : ready_ns;
    struct timespec until = {.tv_sec = (time_t)(until_ns / 1000000000),
                             .tv_nsec = (long)(until_ns % 1000000000)};

    if (lane->kind == VXD_LANE_WRITE && scheduler->decided != NULL) {
        return; /* it came while the mutex was not held */
    }
    if (reap_ns <= vxd_clock_ns()) {
        (void)pthread_mutex_unlock(&scheduler->mutex);
        reap(lane, vxd_clock_ns());
        (void)pthread_mutex_lock(&scheduler->mutex);
        return;
    }
    if (lane->kind == VXD_LANE_WRITE && vxd_scenes_are_due(scheduler->server->scenes)) {
        (void)pthread_mutex_unlock(&scheduler->mutex);
        collect_scenes(lane, 0);
        (void)pthread_mutex_lock(&scheduler->mutex);
        return;
    }
    vxd_turn_give(lane);
    lane->idle = true;
    if (until_ns == INT64_MAX) {
        (void)pthread_cond_wait(&lane->wake, &scheduler->mutex);
    } else {
        (void)pthread_cond_timedwait(&lane->wake, &scheduler->mutex, &until);
    }
    lane->idle = false;
}

/* Waits for the writer's turn, which others have, or until something is decided. The mutex is held. */
static void wait_for_turn(struct vxd_lane *lane)
{
    vxd_turn_give(lane);
    lane->idle = true;
    (void)pthread_cond_wait(&lane->wake, &lane->scheduler->mutex);
    lane->idle = false;
}

/* Whether the writer is to end what was handed over before it takes anything else. Each decision
 * wakes it, so it looks again. */
static bool drains(const struct vxd_lane *lane)
{
    return lane->kind == VXD_LANE_WRITE && lane->scheduler->n_committing > 0 &&
           vxd_scenes_want_copy(lane->scheduler->server->scenes);
}

/* The lane ends; the last commit has ended, so other write lanes end, too. The mutex is held. */
static void leave(struct vxd_lane *lane)
{
    struct vxd_scheduler *scheduler = lane->scheduler;

    vxd_turn_give(lane);
    for (size_t i = 0; i < scheduler->n_lanes; i++) {
        (void)pthread_cond_signal(&scheduler->lanes[i].wake);
    }
}

/* Runs a request that the lane has taken. The mutex is not held. */
static void run_taken(struct vxd_lane *lane, struct vxd_request *request)
{
    int64_t begin_ns;

    if (lane->kind != VXD_LANE_WRITE) {
        run_request(lane, request);
        return;
    }
    /* A request that arrived in time finds its map, however long it waited. */
    reap(lane, request->received_ns);
    begin_ns = vxd_clock_ns();
    run_request(lane, request);
    /* Collections go on where requests never cease, too. */
    collect_scenes(lane, vxd_clock_ns() - begin_ns);
}

static void *run(void *argument)
{
    struct vxd_lane *lane = argument;
    struct vxd_scheduler *scheduler = lane->scheduler;

    (void)pthread_mutex_lock(&scheduler->mutex);
    while (!scheduler->stopping ||
           (lane->kind == VXD_LANE_WRITE && scheduler->n_committing > 0)) {
        struct vxd_request *request;

        if (lane->kind == VXD_LANE_WRITE && !vxd_turn_take(lane)) {
            wait_for_turn(lane);
            continue;
        }
        request = take_decided(lane);
        if (request != NULL) {
            (void)pthread_mutex_unlock(&scheduler->mutex);
            end_committed(lane, request);
            (void)pthread_mutex_lock(&scheduler->mutex);
            continue;
        }
        if (drains(lane)) {
            wait_for_turn(lane);
            continue;
        }
        request = scheduler->stopping ? NULL : vxd_scheduler_take(lane);
        if (request == NULL) {
            wait_for_work(lane);
            continue;
        }
        (void)pthread_mutex_unlock(&scheduler->mutex);
        run_taken(lane, request);
        (void)pthread_mutex_lock(&scheduler->mutex);
    }
    leave(lane);
    (void)pthread_mutex_unlock(&scheduler->mutex);
    return NULL;
}

enum vxd_status vxd_lane_start(struct vxd_lane *lane, struct vxd_err *err)
{
    enum vxd_status status =
        vxd_queue_create(lane->scheduler->server->context, &lane->queue, err);

    if (status != VXD_OK) {
        return status;
    }
    if (!vxd_clock_init_condition(&lane->wake)) {
        vxd_queue_destroy(lane->queue);
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a lane");
    }
    if (pthread_create(&lane->thread, NULL, run, lane) != 0) {
        (void)pthread_cond_destroy(&lane->wake);
        vxd_queue_destroy(lane->queue);
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no thread for a lane");
    }
    return VXD_OK;
}

void vxd_lane_join(struct vxd_lane *lane)
{
    (void)pthread_join(lane->thread, NULL);
}

void vxd_lane_close(struct vxd_lane *lane)
{
    (void)pthread_cond_destroy(&lane->wake); /* other lanes wake it as they end */
    vxd_queue_destroy(lane->queue);
    lane->queue = NULL;
}
