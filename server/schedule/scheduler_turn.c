// SPDX-License-Identifier: Apache-2.0
/* Which write lane writes. What is registered (maps, scenes, volumes, ...) belongs to one thread at a time,
 * which their headers call the write lane: of the lanes that write it is the scheduler's writer.
 *
 * A change of a scene that takes long does not keep the others waiting. It has the scene's family for
 * itself (is_alone), so its lane can leave the turn to another one while the engine works on the
 * family: it is apart. Meanwhile no request begins that names a scene of the family, so order holds there.
 * Then the lane waits for its turn, before all requests that have not begun.
 *
 * At most VXD_WRITE_LANES - 1 changes of scenes run at once, so that a lane is left for everything
 * else. */
#include "proto/base/clock.h"
#include "server/access/access.h"
#include "server/registry/scenes/scenes.h"
#include "server/schedule/scheduler_internal.h"

static bool is_write_lane(const struct vxd_lane *lane)
{
    return lane->kind == VXD_LANE_WRITE;
}

static bool anyone_returns(const struct vxd_scheduler *scheduler)
{
    for (size_t i = 0; i < scheduler->n_lanes; i++) {
        if (scheduler->lanes[i].is_returning) {
            return true;
        }
    }
    return false;
}

bool vxd_turn_take(struct vxd_lane *lane)
{
    struct vxd_scheduler *scheduler = lane->scheduler;

    if (scheduler->writer == lane) {
        return true;
    }
    if (scheduler->writer != NULL || (!lane->is_returning && anyone_returns(scheduler))) {
        return false;
    }
    scheduler->writer = lane;
    return true;
}

void vxd_turn_give(struct vxd_lane *lane)
{
    struct vxd_scheduler *scheduler = lane->scheduler;

    if (scheduler->writer != lane) {
        return;
    }
    scheduler->writer = NULL;
    for (size_t i = 0; i < scheduler->n_lanes; i++) {
        if (scheduler->lanes[i].is_returning) {
            (void)pthread_cond_signal(&scheduler->lanes[i].wake);
        }
    }
}

void vxd_turn_wake(struct vxd_scheduler *scheduler)
{
    if (scheduler->writer != NULL || anyone_returns(scheduler)) {
        return; /* it looks at the list before it waits */
    }
    for (size_t i = 0; i < scheduler->n_lanes; i++) {
        struct vxd_lane *lane = &scheduler->lanes[i];

        if (is_write_lane(lane) && lane->idle) {
            lane->idle = false;
            (void)pthread_cond_signal(&lane->wake);
            return;
        }
    }
}

static bool is_held(void *user, const char *name)
{
    return vxd_scenes_is_held(user, name);
}

static bool is_any(void *user, const char *name)
{
    (void)user;
    (void)name;
    return true;
}

static size_t count_apart(const struct vxd_scheduler *scheduler)
{
    size_t n = 0;

    for (size_t i = 0; i < scheduler->n_lanes; i++) {
        n += scheduler->lanes[i].is_apart || scheduler->lanes[i].is_returning ? 1 : 0;
    }
    return n;
}

bool vxd_turn_allows(const struct vxd_scheduler *scheduler,
                     const struct vxd_request *request)
{
    struct vxd_scenes *scenes = scheduler->server->scenes;

    if (request->lane != VXD_LANE_WRITE || request->is_alone ||
        !vxd_scenes_hold_any(scenes)) {
        return true;
    }
    if (vxd_objects_any(request->input, VXD_NOUN_SCENE, is_held, scenes)) {
        return false;
    }
    return request->submitted || !request->changes ||
           count_apart(scheduler) < VXD_WRITE_LANES - 1 ||
           !vxd_objects_any(request->input, VXD_NOUN_SCENE, is_any, NULL);
}

static struct vxd_lane *find_lane(struct vxd_scheduler *scheduler,
                                  const struct vxd_request *request)
{
    for (size_t i = 0; i < scheduler->n_lanes; i++) {
        if (scheduler->lanes[i].running == request) {
            return &scheduler->lanes[i];
        }
    }
    return NULL;
}

void vxd_turn_begin_apart(struct vxd_scheduler *scheduler, struct vxd_request *request)
{
    struct vxd_lane *lane;

    (void)pthread_mutex_lock(&scheduler->mutex);
    lane = find_lane(scheduler, request);
    if (lane != NULL && scheduler->writer == lane) {
        lane->is_apart = true;
        vxd_turn_give(lane);
        vxd_turn_wake(scheduler);
    }
    (void)pthread_mutex_unlock(&scheduler->mutex);
}

void vxd_turn_end_apart(struct vxd_scheduler *scheduler, struct vxd_request *request)
{
    int64_t begin_ns = vxd_clock_ns();
    struct vxd_lane *lane;

    (void)pthread_mutex_lock(&scheduler->mutex);
    lane = find_lane(scheduler, request);
    if (lane != NULL && lane->is_apart) {
        lane->is_returning = true;
        while (!vxd_turn_take(lane)) {
            (void)pthread_cond_wait(&lane->wake, &scheduler->mutex);
        }
        lane->is_returning = false;
        lane->is_apart = false;
    }
    (void)pthread_mutex_unlock(&scheduler->mutex);
    request->turn_wait_ns += vxd_clock_ns() - begin_ns;
}
