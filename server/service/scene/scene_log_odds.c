// SPDX-License-Identifier: Apache-2.0
/* Log-odds of voxels. A layer is the write lane's, and is of the newest version alone, so this
 * reads it there, in one stage between two changes. */
#include "server/instance/instance.h"
#include "server/service/service.h"
#include "server/service/scene/scene.h"
#include "voxeld/v1/scene_upkeep.pb-c.h"

enum {
    MAX_POINTS = 1 << 18, /* no change waits longer for a stage than for a scan */
    ROW_BYTES = 12 + 12 + 1
};

struct evidence_job {
    struct vxd_scene_job base; /* first: request->state is both */
    const int32_t *voxels;     /* device */
    struct vxd_column *steps;
};

enum vxd_status vxd_scene_log_odds_at_check(struct vxd_request *request,
                                            struct vxd_err *err)
{
    const Voxeld__V1__SceneLogOddsAtRequest *input =
        (const Voxeld__V1__SceneLogOddsAtRequest *)request->input;
    struct vxd_query *query;
    enum vxd_status status;

    VXD_TRY(vxd_noun_begin_check(request, sizeof(struct evidence_job), input->name, err));
    query = request->state;
    VXD_TRY(vxd_scene_check_numbers(input->points, "points", 3, true, &query->n, err));
    if (query->n > MAX_POINTS) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "points",
                         "has %zu rows, it must have at most %d", query->n, MAX_POINTS));
    }
    request->cost_bytes = query->n * ROW_BYTES;
out:
    return status;
}

static enum vxd_status begin(struct vxd_request *request, struct vxd_queue *queue,
                             struct vxd_err *err)
{
    const Voxeld__V1__SceneLogOddsAtRequest *input =
        (const Voxeld__V1__SceneLogOddsAtRequest *)request->input;
    struct evidence_job *job = request->state;
    Voxeld__V1__SceneLogOddsAtResponse *reply =
        (Voxeld__V1__SceneLogOddsAtResponse *)job->base.query.reply;
    enum vxd_status status;

    VXD_TRY(vxd_scene_open(request, input->name, NULL, err));
    VXD_TRY(vxd_scene_need_log_odds(job->base.scene, err));
    vxd_scene_unpin(request->server->scenes, &job->base.state, queue);
    vxd_scene_pin_last(job->base.scene, &job->base.state);
    VXD_TRY(vxd_scene_upload_voxels(request, queue, input->points, &job->voxels, err));
    status =
        vxd_query_reserve(request, queue, VXD_INT8, 0, &reply->steps, &job->steps, err);
out:
    return status;
}

/* Waits, since the layer is its own between the two calls that a change begins and ends with: what is to
 * be forgotten is forgotten, and no copy is made. */
static enum vxd_status run(struct vxd_request *request, struct vxd_queue *queue,
                           size_t first, size_t n, struct vxd_err *err)
{
    const struct evidence_job *job = request->state;
    struct vxd_scene *scene = job->base.scene;
    enum vxd_status status;

    VXD_TRY(vxd_scene_begin_fusing(scene, queue, err));
    status = vxd_occupancy_values(queue, scene->log_odds.layer, job->base.state.svdag,
                                  job->base.state.root, job->voxels + 3 * first, n,
                                  vxd_scene_row(job->steps, first, 1), err);
    if (status == VXD_OK) {
        status = vxd_queue_wait(queue, err);
    }
    vxd_scene_end_fusing(scene);
out:
    return status;
}

static enum vxd_status end(struct vxd_request *request, struct vxd_queue *queue,
                           struct vxd_err *err)
{
    const struct vxd_scene_job *job = request->state;
    const struct vxd_scene *scene = job->scene;
    Voxeld__V1__SceneLogOddsAtResponse *reply =
        (Voxeld__V1__SceneLogOddsAtResponse *)job->query.reply;

    (void)queue;
    (void)err;
    reply->version = job->state.version;
    reply->generation = scene->generation;
    reply->engine_ms = (double)request->engine_ns / 1e6;
    reply->step = scene->spec.rule.step;
    reply->occupied_steps = scene->spec.rule.occupied;
    return VXD_OK;
}

const struct vxd_query_calls vxd_scene_log_odds_at_query = {
    .begin = begin, .run = run, .end = end, .close = vxd_scene_close};
