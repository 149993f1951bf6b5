// SPDX-License-Identifier: Apache-2.0
/* A scene or a volume made anew from a graph's keyframes. What is made lies beside what is there until the
 * last stage, so all stages before it leave the turn to others, and a rebuild can be given up in between. */
#include <math.h>
#include <stdlib.h>

#include "proto/base/clock.h"
#include "server/instance/instance.h"
#include "server/service/posegraph/posegraph_rebuild.h"
#include "server/service/service.h"

/* --- check -------------------------------------------------------------------------------------- */

static enum vxd_status check_target(const Voxeld__V1__PosegraphRebuildRequest *input,
                                    struct vxd_err *err)
{
    bool is_scene = input->scene[0] != '\0';
    const char *of_scene = input->material != 0 ? "material"
                           : input->carve       ? "carve"
                                                : NULL;
    const char *of_volume = input->carve_m != 0  ? "carve_m"
                            : input->weight != 0 ? "weight"
                                                 : NULL;
    enum vxd_status status;

    if (is_scene == (input->volume[0] != '\0')) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, is_scene ? "volume" : "scene",
                        is_scene
                            ? "is given beside scene: one of the two is made anew"
                            : "is empty, and so is volume: one of the two is needed");
    }
    VXD_TRY(vxd_noun_check_name(is_scene ? input->scene : input->volume,
                                is_scene ? "scene" : "volume", err));
    if (!is_scene && of_scene != NULL) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, of_scene, "goes with scene");
    }
    if (is_scene && of_volume != NULL) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, of_volume, "goes with volume");
    }
out:
    return status;
}

enum vxd_status vxd_posegraph_rebuild_check(struct vxd_request *request,
                                            struct vxd_err *err)
{
    const Voxeld__V1__PosegraphRebuildRequest *input = vxd_rebuild_input(request);
    struct vxd_rebuild_job *job;
    enum vxd_status status;

    VXD_TRY(vxd_noun_begin_check(request, sizeof *job, input->name, err));
    job = request->state;
    job->number = -1;
    VXD_TRY(check_target(input, err));
    job->is_scene = input->scene[0] != '\0';
    if (input->range_max_m > 0 && input->range_min_m >= input->range_max_m) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "range_min_m",
                         "is %g, must be below range_max_m, %g", input->range_min_m,
                         input->range_max_m));
    }
    request->bulk = true;
out:
    return status;
}

/* --- OPEN --------------------------------------------------------------------------------------- */

void vxd_rebuild_pose(const struct vxd_rigid *pose, struct vxd_volume_pose *out)
{
    const double *q = pose->q;
    double norm = sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
    double x = q[0] / norm, y = q[1] / norm, z = q[2] / norm, w = q[3] / norm;
    const double rotation[9] = {
        1 - 2 * (y * y + z * z), 2 * (x * y - z * w),     2 * (x * z + y * w),
        2 * (x * y + z * w),     1 - 2 * (x * x + z * z), 2 * (y * z - x * w),
        2 * (x * z - y * w),     2 * (y * z + x * w),     1 - 2 * (x * x + y * y)};

    memcpy(out->rotation, rotation, sizeof rotation);
    memcpy(out->translation, pose->t_m, sizeof out->translation);
}

/* Holds all keyframes of the version's nodes, in the order of those. */
static enum vxd_status hold_keyframes(struct vxd_request *request,
                                      const struct vxd_posegraph_content *content,
                                      struct vxd_err *err)
{
    const Voxeld__V1__PosegraphRebuildRequest *input = vxd_rebuild_input(request);
    struct vxd_rebuild_job *job = request->state;
    const struct vxd_posegraph_version *version =
        vxd_posegraph_find_version(content, input->version);

    if (version == NULL && input->version != 0) {
        return vxd_fail(err, VXD_NOT_FOUND, "version",
                        "%llu of the pose graph \"%s\" is not there (any more)",
                        (unsigned long long)input->version, input->name);
    }
    job->keyframes = malloc((content->n_keyframes + 1) * sizeof *job->keyframes);
    if (job->keyframes == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for %zu keyframes",
                        content->n_keyframes);
    }
    for (size_t i = 0; version != NULL && i < version->n; i++) {
        if (content->nodes[i].keyframe != NULL) {
            job->keyframes[job->n_keyframes++] = (struct vxd_rebuild_keyframe){
                .keyframe = vxd_keyframe_hold(content->nodes[i].keyframe),
                .T_map_node = version->poses[i]};
        }
    }
    /* An older version may have none of them, since it ends before their nodes. */
    if (job->n_keyframes == 0) {
        return vxd_fail(err, VXD_FAILED_PRECONDITION, "name",
                        "the pose graph \"%s\" has no keyframes at version %llu",
                        input->name,
                        version != NULL ? (unsigned long long)version->version : 0);
    }
    job->reply->version = version->version;
    job->reply->n_keyframes = job->n_keyframes;
    return VXD_OK;
}

static enum vxd_status list_rebuild(struct vxd_request *request,
                                    const struct vxd_named_posegraph *graph,
                                    struct vxd_err *err)
{
    const Voxeld__V1__PosegraphRebuildRequest *input = vxd_rebuild_input(request);
    struct vxd_rebuild_job *job = request->state;
    struct vxd_posegraph_rebuild rebuild = {.generation = graph->named.generation,
                                            .n_keyframes = job->n_keyframes,
                                            .started_unix_ns = vxd_clock_unix_ns()};

    (void)snprintf(rebuild.name, sizeof rebuild.name, "%s", input->name);
    (void)snprintf(rebuild.request_id, sizeof rebuild.request_id, "%s", request->id);
    (void)snprintf(rebuild.scene, sizeof rebuild.scene, "%s", input->scene);
    (void)snprintf(rebuild.volume, sizeof rebuild.volume, "%s", input->volume);
    return vxd_posegraphs_begin_rebuild(request->server->posegraphs, &rebuild,
                                        &job->number, err);
}

static enum vxd_status open_rebuild(struct vxd_request *request, struct vxd_queue *queue,
                                    struct vxd_err *err)
{
    const Voxeld__V1__PosegraphRebuildRequest *input = vxd_rebuild_input(request);
    struct vxd_rebuild_job *job = request->state;
    const struct vxd_named_posegraph *graph;
    enum vxd_status status;

    VXD_TRY(vxd_posegraph_peek(request, input->name, &graph, err));
    if (graph == NULL) {
        return VXD_OK; /* its changes are not decided yet: this stage comes again */
    }
    job->reply = vxd_message_new(
        request->decoder, &voxeld__v1__posegraph_rebuild_response__descriptor, err);
    if (job->reply == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    VXD_TRY(hold_keyframes(request, &graph->content, err));
    VXD_TRY(list_rebuild(request, graph, err));
    VXD_TRY(job->is_scene ? vxd_rebuild_open_scene(request, queue, err)
                          : vxd_rebuild_open_volume(request, queue, err));
    job->stage = VXD_REBUILD_SCAN;
out:
    return status;
}

/* --- the stages --------------------------------------------------------------------------------- */

static enum vxd_status check_end(const struct vxd_request *request, struct vxd_err *err)
{
    const struct vxd_rebuild_job *job = request->state;

    if (vxd_request_is_over(request)) {
        return vxd_fail(err, VXD_CANCELLED, NULL,
                        "nobody waits for the rebuild any more");
    }
    if (job->number >= 0 &&
        vxd_posegraphs_is_cancelled(request->server->posegraphs, job->number)) {
        return vxd_fail(err, VXD_ABORTED, NULL,
                        "the rebuild was cancelled after %zu of %zu keyframes; nothing "
                        "has changed",
                        job->n_done, job->n_keyframes);
    }
    return VXD_OK;
}

/* A keyframe is in what is made. */
static void count_keyframe(struct vxd_request *request)
{
    struct vxd_rebuild_job *job = request->state;

    job->reply->n_points += job->keyframes[job->n_done].keyframe->n_points;
    vxd_keyframe_drop(job->keyframes[job->n_done].keyframe);
    job->keyframes[job->n_done].keyframe = NULL;
    job->n_done++;
    vxd_posegraphs_note_rebuild(request->server->posegraphs, job->number, job->n_done);
}

static enum vxd_status scan(struct vxd_request *request, struct vxd_queue *queue,
                            struct vxd_err *err)
{
    struct vxd_rebuild_job *job = request->state;
    bool is_done = false;
    enum vxd_status status;

    if (job->is_scene) {
        VXD_TRY(vxd_rebuild_scan(request, queue, &is_done, err));
        job->stage = is_done ? VXD_REBUILD_EDIT : VXD_REBUILD_SCAN;
    } else {
        VXD_TRY(vxd_rebuild_integrate(request, queue, err));
        count_keyframe(request);
        job->stage =
            job->n_done < job->n_keyframes ? VXD_REBUILD_SCAN : VXD_REBUILD_REPLACE;
    }
out:
    return status;
}

static enum vxd_status edit(struct vxd_request *request, struct vxd_queue *queue,
                            struct vxd_err *err)
{
    struct vxd_rebuild_job *job = request->state;
    enum vxd_status status;

    VXD_TRY(vxd_rebuild_edit(request, queue, err));
    count_keyframe(request);
    job->stage = job->n_done < job->n_keyframes ? VXD_REBUILD_SCAN : VXD_REBUILD_LIST;
out:
    return status;
}

static enum vxd_status list(struct vxd_request *request, struct vxd_queue *queue,
                            struct vxd_err *err)
{
    struct vxd_rebuild_job *job = request->state;
    bool is_done = false;
    enum vxd_status status;

    VXD_TRY(vxd_rebuild_list(request, queue, &is_done, err));
    job->stage = is_done ? VXD_REBUILD_REPLACE : VXD_REBUILD_LIST;
out:
    return status;
}

static enum vxd_status replace(struct vxd_request *request, struct vxd_queue *queue,
                               struct vxd_err *err)
{
    struct vxd_rebuild_job *job = request->state;
    enum vxd_status status;

    request->is_preparing = false;
    VXD_TRY(job->is_scene ? vxd_rebuild_replace_scene(request, queue, err)
                          : vxd_rebuild_replace_volume(request, queue, err));
    request->output = &job->reply->base;
out:
    return status;
}

static enum vxd_status run_stage(struct vxd_request *request, struct vxd_queue *queue,
                                 struct vxd_err *err)
{
    struct vxd_rebuild_job *job = request->state;
    bool is_read;
    enum vxd_status status;

    atomic_store(&request->ends_when_over, true);
    VXD_TRY(check_end(request, err));
    request->is_preparing = true;
    switch (job->stage) {
    case VXD_REBUILD_OPEN:
        VXD_TRY(open_rebuild(request, queue, err));
        break;
    case VXD_REBUILD_SCAN:
        VXD_TRY(scan(request, queue, err));
        break;
    case VXD_REBUILD_EDIT:
        VXD_TRY(edit(request, queue, err));
        break;
    case VXD_REBUILD_LIST:
        VXD_TRY(list(request, queue, err));
        break;
    case VXD_REBUILD_REPLACE:
        return replace(request, queue, err);
    }
    is_read = job->stage == VXD_REBUILD_SCAN || job->stage == VXD_REBUILD_LIST;
    atomic_store(&request->lane, is_read ? VXD_LANE_READ : VXD_LANE_WRITE);
    request->more = true;
out:
    return status;
}

static void end_rebuild(const struct vxd_request *request)
{
    struct vxd_rebuild_job *job = request->state;

    if (job->number >= 0) {
        vxd_posegraphs_end_rebuild(request->server->posegraphs, job->number);
        job->number = -1;
    }
}

enum vxd_status vxd_posegraph_rebuild_submit(struct vxd_request *request,
                                             struct vxd_queue *queue, struct vxd_err *err)
{
    enum vxd_status status = run_stage(request, queue, err);

    if (status != VXD_OK) {
        end_rebuild(request); /* before the answer, after which another one may begin */
    }
    return status;
}

enum vxd_status vxd_posegraph_rebuild_finish(struct vxd_request *request,
                                             struct vxd_queue *queue, struct vxd_err *err)
{
    struct vxd_rebuild_job *job = request->state;

    (void)queue;
    (void)err;
    if (job->is_scene) {
        vxd_rebuild_publish_scene(request);
    }
    job->reply->engine_ms = (double)request->engine_ns / 1e6;
    return VXD_OK;
}

void vxd_posegraph_rebuild_release(struct vxd_request *request, struct vxd_queue *queue)
{
    struct vxd_rebuild_job *job = request->state;

    end_rebuild(request);
    for (size_t i = 0; i < job->n_keyframes; i++) {
        vxd_keyframe_drop(job->keyframes[i].keyframe);
    }
    free(job->keyframes);
    job->keyframes = NULL;
    job->n_keyframes = 0;
    free(job->kept);
    job->kept = NULL;
    if (job->is_scene) {
        vxd_rebuild_release_scene(request, queue);
    } else {
        vxd_rebuild_release_volume(request, queue);
    }
}

/* --- how far it is, and its end ----------------------------------------------------------------- */

enum vxd_status vxd_posegraph_rebuild_status_check(struct vxd_request *request,
                                                   struct vxd_err *err)
{
    return vxd_noun_begin_check(
        request, sizeof(struct vxd_posegraph_job),
        ((const Voxeld__V1__PosegraphRebuildStatusRequest *)request->input)->name, err);
}

static char *copy_text(struct vxd_request *request, const char *text, struct vxd_err *err)
{
    return vxd_message_text(request->decoder, text, strlen(text), err);
}

enum vxd_status vxd_posegraph_rebuild_status_submit(struct vxd_request *request,
                                                    struct vxd_queue *queue,
                                                    struct vxd_err *err)
{
    const Voxeld__V1__PosegraphRebuildStatusRequest *input =
        (const Voxeld__V1__PosegraphRebuildStatusRequest *)request->input;
    Voxeld__V1__PosegraphRebuildStatusResponse *reply =
        vxd_message_new(request->decoder,
                        &voxeld__v1__posegraph_rebuild_status_response__descriptor, err);
    struct vxd_posegraph_rebuild rebuild = {.n_done = 0};
    enum vxd_status status;

    (void)queue;
    if (reply == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    VXD_TRY(vxd_posegraph_open(request, input->name, err));
    reply->running = vxd_posegraphs_find_rebuild(
        request->server->posegraphs, ((struct vxd_posegraph_job *)request->state)->graph,
        false, &rebuild);
    reply->request_id = copy_text(request, rebuild.request_id, err);
    reply->scene = copy_text(request, rebuild.scene, err);
    reply->volume = copy_text(request, rebuild.volume, err);
    if (reply->request_id == NULL || reply->scene == NULL || reply->volume == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    reply->n_done = rebuild.n_done;
    reply->n_keyframes = rebuild.n_keyframes;
    reply->started_ns = rebuild.started_unix_ns;
    request->output = &reply->base;
out:
    return status;
}

enum vxd_status vxd_posegraph_rebuild_cancel_check(struct vxd_request *request,
                                                   struct vxd_err *err)
{
    return vxd_noun_begin_check(
        request, sizeof(struct vxd_posegraph_job),
        ((const Voxeld__V1__PosegraphRebuildCancelRequest *)request->input)->name, err);
}

enum vxd_status vxd_posegraph_rebuild_cancel_submit(struct vxd_request *request,
                                                    struct vxd_queue *queue,
                                                    struct vxd_err *err)
{
    const Voxeld__V1__PosegraphRebuildCancelRequest *input =
        (const Voxeld__V1__PosegraphRebuildCancelRequest *)request->input;
    Voxeld__V1__PosegraphRebuildCancelResponse *reply =
        vxd_message_new(request->decoder,
                        &voxeld__v1__posegraph_rebuild_cancel_response__descriptor, err);
    struct vxd_posegraph_rebuild rebuild;
    enum vxd_status status;

    (void)queue;
    if (reply == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    VXD_TRY(vxd_posegraph_open(request, input->name, err));
    reply->was_running = vxd_posegraphs_find_rebuild(
        request->server->posegraphs, ((struct vxd_posegraph_job *)request->state)->graph,
        true, &rebuild);
    request->output = &reply->base;
out:
    return status;
}
