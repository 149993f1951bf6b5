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
    size_t n;
    struct vxd_scene_output steps;
};

enum vxd_status vxd_scene_log_odds_at_check(struct vxd_request *request,
                                            struct vxd_err *err)
{
    const Voxeld__V1__SceneLogOddsAtRequest *input =
        (const Voxeld__V1__SceneLogOddsAtRequest *)request->input;
    struct evidence_job *job;
    enum vxd_status status;

    VXD_TRY(vxd_scene_begin_check(request, sizeof *job, input->name, err));
    job = request->state;
    VXD_TRY(vxd_scene_check_numbers(input->points, "points", 3, true, &job->n, err));
    if (job->n > MAX_POINTS) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "points",
                         "has %zu rows, it must have at most %d", job->n, MAX_POINTS));
    }
    request->cost_bytes = job->n * ROW_BYTES;
out:
    return status;
}

/* Reads the layer of the newest version, which *state pins. Waits. */
static enum vxd_status read_layer(struct vxd_request *request, struct vxd_queue *queue,
                                  struct vxd_err *err)
{
    const Voxeld__V1__SceneLogOddsAtRequest *input =
        (const Voxeld__V1__SceneLogOddsAtRequest *)request->input;
    struct evidence_job *job = request->state;
    struct vxd_scene *scene = job->base.scene;
    struct vxd_scene_frame frame = vxd_scene_frame_of(&scene->spec, false);
    const void *voxels;
    void *block;
    enum vxd_status status;

    VXD_TRY(vxd_scene_take_host(request, job->n, 3 * sizeof(int32_t), &block, err));
    vxd_scene_read_voxels(input->points, &frame, block, NULL);
    VXD_TRY(vxd_scene_upload(request, queue, block, job->n * 3 * sizeof(int32_t), &voxels,
                             err));
    VXD_TRY(vxd_scene_reserve_output(request, queue, job->n, 1, &job->steps, err));
    VXD_TRY(vxd_occupancy_values(queue, scene->log_odds.layer, job->base.state.svdag,
                                 job->base.state.root, voxels, job->n, job->steps.device,
                                 err));
    VXD_TRY(vxd_scene_fetch_output(request, queue, &job->steps, err));
    status = vxd_queue_wait(queue, err);
out:
    return status;
}

enum vxd_status vxd_scene_log_odds_at_submit(struct vxd_request *request,
                                             struct vxd_queue *queue, struct vxd_err *err)
{
    const Voxeld__V1__SceneLogOddsAtRequest *input =
        (const Voxeld__V1__SceneLogOddsAtRequest *)request->input;
    struct evidence_job *job = request->state;
    enum vxd_status status;

    VXD_TRY(vxd_scene_open(request, input->name, NULL, err));
    VXD_TRY(vxd_scene_need_log_odds(job->base.scene, err));
    vxd_scene_unpin(request->server->scenes, &job->base.state, queue);
    vxd_scene_pin_last(job->base.scene, &job->base.state);
    /* As a change begins: what is to be forgotten is forgotten, and no copy is made. */
    VXD_TRY(vxd_scene_begin_fusing(job->base.scene, queue, err));
    status = read_layer(request, queue, err);
    vxd_scene_end_fusing(job->base.scene);
out:
    return status;
}

enum vxd_status vxd_scene_log_odds_at_finish(struct vxd_request *request,
                                             struct vxd_queue *queue, struct vxd_err *err)
{
    const struct evidence_job *job = request->state;
    const struct vxd_scene *scene = job->base.scene;
    Voxeld__V1__SceneLogOddsAtResponse *reply = vxd_message_new(
        request->decoder, &voxeld__v1__scene_log_odds_at_response__descriptor, err);
    enum vxd_status status;

    if (reply == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    reply->version = job->base.state.version;
    reply->generation = scene->generation;
    reply->engine_ms = (double)request->engine_ns / 1e6;
    reply->step = scene->spec.rule.step;
    reply->occupied_steps = scene->spec.rule.occupied;
    VXD_TRY(vxd_scene_show(request, VXD_INT8, job->n, 0, job->steps.bytes, &reply->steps,
                           err));
    request->output = &reply->base;
    vxd_scene_close(request, queue);
out:
    return status;
}
