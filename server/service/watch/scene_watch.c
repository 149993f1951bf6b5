// SPDX-License-Identifier: Apache-2.0
/* Finds what a watcher does not know yet. A watch that has nothing to tell is parked before it is
 * queued; what woke it is looked at anew on the lane, so it does not matter why it was woken. */
#include <math.h>

#include "server/instance/instance.h"
#include "server/service/existing/existing.h"
#include "server/service/scene/scene.h"
#include "server/service/service.h"
#include "server/service/watch/watch.h"

#define DEFAULT_BYTES ((uint32_t)1 << 20)
/* A collection may swap the store between the two pins. */
#define PIN_TRIES 4

struct watch_job {
    struct vxd_scene_job base; /* first: request->state is both; the version `to` */
    struct vxd_scene_difference difference;
    struct vxd_watcher watcher;
    Voxeld__V1__WatchKind kind;
    struct vxd_scene_head head; /* the newest version, as it was looked at */
    bool counted;
};

static const Voxeld__V1__SceneWatchRequest *input_of(const struct vxd_request *request)
{
    return (const Voxeld__V1__SceneWatchRequest *)request->input;
}

static enum vxd_status check_ranges(const Voxeld__V1__SceneWatchRequest *input,
                                    struct vxd_err *err)
{
    enum vxd_status status = vxd_watch_check_point(input->after, err);

    return status == VXD_OK && input->box != NULL
               ? vxd_scene_check_box(input->box, "box", err)
               : status;
}

enum vxd_status vxd_scene_watch_check(struct vxd_request *request, struct vxd_err *err)
{
    const Voxeld__V1__SceneWatchRequest *input = input_of(request);
    enum vxd_status status = VXD_OK;

    request->state =
        vxd_message_array(request->decoder, 1, sizeof(struct watch_job), err);
    if (request->state == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    if (input->name[0] != '\0') {
        VXD_TRY(vxd_noun_check_name(input->name, "name", err));
    } else if (input->box != NULL || input->level > 0) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "name",
                         "is required with a box or a level: there are no cells of all "
                         "scenes"));
    }
    VXD_TRY(check_ranges(input, err));
    request->bulk = input->name[0] != '\0';
    request->cost_bytes = input->max_bytes > 0 ? input->max_bytes : DEFAULT_BYTES;
out:
    return status;
}

/* --- waiting ------------------------------------------------------------------------------ */

/* Whether a watcher would get something now. */
static bool is_newer(const struct vxd_request *request)
{
    const Voxeld__V1__SceneWatchRequest *input = input_of(request);
    const Voxeld__V1__WatchPoint *after = input->after;
    struct vxd_scene_head head;

    if (input->name[0] == '\0') {
        return vxd_watch_heads_are_newer(request->server, after->generation,
                                         after->version);
    }
    if (!vxd_scenes_get_head(request->server->scenes, input->name, &head)) {
        return after->version > 0;
    }
    return after->to_version > 0 || head.generation != after->generation ||
           head.version != after->version;
}

enum vxd_status vxd_scene_watch_prerequisite(struct vxd_request *request, bool *waits,
                                             struct vxd_err *err)
{
    const Voxeld__V1__SceneWatchRequest *input = input_of(request);
    const struct vxd_watch_terms terms = {.noun = VXD_WATCH_SCENES,
                                          .name = input->name,
                                          .has_after = input->after != NULL,
                                          .timeout_ms = input->timeout_ms,
                                          .is_newer = is_newer};
    struct watch_job *job = request->state;

    return vxd_watch_wait(request, &terms, &job->watcher, waits, err);
}

void vxd_scene_watch_forget(struct vxd_request *request)
{
    struct watch_job *job = request->state;

    vxd_watch_forget(request, &job->watcher);
}

/* --- looking ------------------------------------------------------------------------------ */

/* Pins a kept version of the scene that the watcher knows; false where there is none. */
static bool pin(struct vxd_scene *scene, uint64_t version, struct vxd_scene_state *out)
{
    const struct vxd_scene_at at = {.version = version};
    struct vxd_err ignored = {0};

    return vxd_scene_pin(scene, &at, out, &ignored) == VXD_OK;
}

/* Pins both versions in one store; false where one is not kept. The newer one stays pinned, and
 * with it the store. */
static bool pin_both(struct vxd_request *request, struct vxd_queue *queue)
{
    const Voxeld__V1__WatchPoint *after = input_of(request)->after;
    struct watch_job *job = request->state;
    struct vxd_scene_job *base = &job->base;
    struct vxd_scenes *scenes = request->server->scenes;
    struct vxd_scene_state from;
    bool is_same = false;

    for (int i = 0; i < PIN_TRIES && !is_same; i++) {
        vxd_scene_unpin(scenes, &base->state, queue);
        if (!pin(base->scene, after->to_version, &base->state) ||
            !pin(base->scene, after->version, &from)) {
            return false;
        }
        is_same = from.store == base->state.store;
        job->difference.from = from.root;
        vxd_scene_unpin(scenes, &from, queue);
    }
    return is_same && base->state.version > after->version;
}

/* Finds out what there is to tell. */
static enum vxd_status look(struct vxd_request *request, struct vxd_queue *queue,
                            struct vxd_err *err)
{
    const Voxeld__V1__SceneWatchRequest *input = input_of(request);
    const Voxeld__V1__WatchPoint *after = input->after;
    struct watch_job *job = request->state;
    bool is_there = vxd_scenes_get_head(request->server->scenes, input->name, &job->head);
    bool is_same; /* as the one that the watcher has seen */

    if (is_there) {
        job->base.scene = vxd_scenes_find(request->server->scenes, input->name);
        is_there = job->base.scene != NULL;
    }
    is_same = is_there && after != NULL && job->head.generation == after->generation &&
              job->base.scene->generation == after->generation;
    if (!is_there && after == NULL) {
        return vxd_missing_scene(request, "name", input->name, err);
    }
    if (!is_there) {
        job->head.generation = after->generation;
        job->head.version = 0;
        job->kind = after->version > 0 ? VOXELD__V1__WATCH_KIND__WATCH_DROPPED
                                       : VOXELD__V1__WATCH_KIND__WATCH_UNCHANGED;
    } else if (after != NULL && after->version == 0) {
        job->kind = VOXELD__V1__WATCH_KIND__WATCH_CREATED;
    } else if (is_same && after->to_version == 0 && job->head.version == after->version) {
        job->kind = VOXELD__V1__WATCH_KIND__WATCH_UNCHANGED;
    } else if (is_same && pin_both(request, queue)) {
        job->kind = VOXELD__V1__WATCH_KIND__WATCH_CELLS;
    } else {
        job->kind = VOXELD__V1__WATCH_KIND__WATCH_RESYNC;
    }
    return VXD_OK;
}

enum vxd_status vxd_scene_watch_submit(struct vxd_request *request,
                                       struct vxd_queue *queue, struct vxd_err *err)
{
    const Voxeld__V1__SceneWatchRequest *input = input_of(request);
    struct watch_job *job = request->state;
    uint32_t n_bytes = input->max_bytes > 0 ? input->max_bytes : DEFAULT_BYTES;
    uint32_t limit = n_bytes / (uint32_t)VXD_SCENE_DIFFERENCE_BYTES;
    enum vxd_status status;

    if (input->name[0] == '\0') {
        return VXD_OK;
    }
    if (job->counted) {
        return vxd_scene_difference_take(request, queue, &job->difference,
                                         input->after->first, limit > 0 ? limit : 1, err);
    }
    VXD_TRY(look(request, queue, err));
    if (job->kind == VOXELD__V1__WATCH_KIND__WATCH_CELLS) {
        VXD_TRY(vxd_scene_difference_box(&job->base.scene->spec, input->box,
                                         input->in_voxels, input->level,
                                         &job->difference.box, err));
        VXD_TRY(vxd_scene_difference_count(request, queue, &job->difference, err));
        job->counted = true;
        request->more = true;
    }
out:
    return status;
}

/* --- the reply ---------------------------------------------------------------------------- */

/* Where the watcher goes on. */
static void set_next(const struct vxd_request *request, Voxeld__V1__WatchPoint *next)
{
    const Voxeld__V1__WatchPoint *after = input_of(request)->after;
    const struct watch_job *job = request->state;
    const struct vxd_scene_difference *d = &job->difference;

    next->generation = job->head.generation;
    next->version = job->head.version;
    if (job->kind == VOXELD__V1__WATCH_KIND__WATCH_CELLS) {
        next->version = job->base.state.version;
        if (d->n > 0 && after->first + d->n < d->n_cells) {
            next->version = after->version;
            next->to_version = job->base.state.version;
            next->first = after->first + d->n;
        }
    }
}

static enum vxd_status show_place(struct vxd_request *request,
                                  Voxeld__V1__SceneWatchResponse *reply,
                                  struct vxd_err *err)
{
    const struct watch_job *job = request->state;
    const struct vxd_scene_spec *spec = &job->base.scene->spec;

    reply->origin = vxd_message_new(request->decoder, &voxeld__v1__vec3__descriptor, err);
    reply->frame_id =
        vxd_message_text(request->decoder, spec->frame_id, strlen(spec->frame_id), err);
    if (reply->origin == NULL || reply->frame_id == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    reply->origin->x = spec->origin_m[0];
    reply->origin->y = spec->origin_m[1];
    reply->origin->z = spec->origin_m[2];
    reply->cell_size_m = ldexp(spec->voxel_size_m, (int)input_of(request)->level);
    return VXD_OK;
}

enum vxd_status vxd_scene_watch_finish(struct vxd_request *request,
                                       struct vxd_queue *queue, struct vxd_err *err)
{
    struct watch_job *job = request->state;
    Voxeld__V1__SceneWatchResponse *reply;
    enum vxd_status status;

    if (input_of(request)->name[0] == '\0') {
        return vxd_watch_heads_reply(request, &job->base.arena, err);
    }
    reply = vxd_message_new(request->decoder,
                            &voxeld__v1__scene_watch_response__descriptor, err);
    if (reply == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    reply->next =
        vxd_message_new(request->decoder, &voxeld__v1__watch_point__descriptor, err);
    if (reply->next == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    VXD_TRY(vxd_scene_difference_show(request, &job->difference, &reply->cells,
                                      &reply->changes, err));
    if (job->base.scene != NULL) {
        VXD_TRY(show_place(request, reply, err));
    }
    reply->kind = job->kind;
    set_next(request, reply->next);
    if (job->kind == VOXELD__V1__WATCH_KIND__WATCH_CELLS) {
        reply->from_version = input_of(request)->after->version;
        reply->to_version = job->base.state.version;
        reply->n_cells = job->difference.n_cells;
    }
    reply->engine_ms = (double)request->engine_ns / 1e6;
    request->output = &reply->base;
    vxd_scene_close(request, queue);
out:
    return status;
}
