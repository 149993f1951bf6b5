// SPDX-License-Identifier: Apache-2.0
/* Undo and redo: a change like an edit, computed from three versions. */
#include "gpu/svdag/edit/edit.h"
#include "server/instance/instance.h"
#include "server/service/service.h"
#include "server/service/scene/scene.h"
#include "voxeld/v1/scene_version.pb-c.h"

struct undo_job {
    struct vxd_scene_job base; /* first: request->state is both */
    struct vxd_scene_undoing undoing;
    struct vxd_svdag_edit_result result;
    /* The change in the reply, whichever of the two methods it is. */
    Voxeld__V1__SceneChange *change;
    uint64_t *of_version;
    double *engine_ms;
};

enum vxd_status vxd_scene_undo_check(struct vxd_request *request, struct vxd_err *err)
{
    return vxd_noun_begin_check(
        request, sizeof(struct undo_job),
        ((const Voxeld__V1__SceneUndoRequest *)request->input)->name, err);
}

enum vxd_status vxd_scene_redo_check(struct vxd_request *request, struct vxd_err *err)
{
    return vxd_noun_begin_check(
        request, sizeof(struct undo_job),
        ((const Voxeld__V1__SceneRedoRequest *)request->input)->name, err);
}

static enum vxd_status submit(struct vxd_request *request, struct vxd_queue *queue,
                              const char *name, bool redo, uint64_t of_version,
                              uint64_t if_version, struct vxd_err *err)
{
    struct undo_job *job = request->state;
    enum vxd_status status;

    job->change =
        vxd_message_new(request->decoder, &voxeld__v1__scene_change__descriptor, err);
    if (job->change == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    VXD_TRY(vxd_scene_open(request, name, NULL, err));
    VXD_TRY(vxd_scene_begin_change(request, queue, if_version, err));
    status = vxd_scene_find_undoing(job->base.scene, redo, of_version, request,
                                    &job->undoing, err);
    if (status == VXD_OK) {
        status = vxd_svdag_undo_wait(queue, job->base.state.svdag, job->base.state.root,
                                     job->undoing.before, job->undoing.after,
                                     &job->result, err);
    }
    VXD_TRY(vxd_scene_end_change(request, status, err));
    VXD_TRY(vxd_scene_prepare(request, queue, redo ? VXD_RECORD_REDO : VXD_RECORD_UNDO,
                              job->undoing.of, err));
    status = vxd_scene_follow(request, queue, job->result.root, err);
out:
    return status;
}

enum vxd_status vxd_scene_undo_submit(struct vxd_request *request,
                                      struct vxd_queue *queue, struct vxd_err *err)
{
    const Voxeld__V1__SceneUndoRequest *input =
        (const Voxeld__V1__SceneUndoRequest *)request->input;
    struct undo_job *job = request->state;
    Voxeld__V1__SceneUndoResponse *reply = vxd_message_new(
        request->decoder, &voxeld__v1__scene_undo_response__descriptor, err);
    enum vxd_status status;

    if (reply == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    status = submit(request, queue, input->name, false, input->of_version,
                    input->if_version, err);
    reply->change = job->change;
    job->of_version = &reply->of_version;
    job->engine_ms = &reply->engine_ms;
    request->output = &reply->base;
    return status;
}

enum vxd_status vxd_scene_redo_submit(struct vxd_request *request,
                                      struct vxd_queue *queue, struct vxd_err *err)
{
    const Voxeld__V1__SceneRedoRequest *input =
        (const Voxeld__V1__SceneRedoRequest *)request->input;
    struct undo_job *job = request->state;
    Voxeld__V1__SceneRedoResponse *reply = vxd_message_new(
        request->decoder, &voxeld__v1__scene_redo_response__descriptor, err);
    enum vxd_status status;

    if (reply == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    status = submit(request, queue, input->name, true, input->of_version,
                    input->if_version, err);
    reply->change = job->change;
    job->of_version = &reply->of_version;
    job->engine_ms = &reply->engine_ms;
    request->output = &reply->base;
    return status;
}

static void finish(struct vxd_request *request, enum vxd_scene_made_by kind)
{
    struct undo_job *job = request->state;

    vxd_scene_publish(request, &job->result, kind, job->undoing.of, job->change);
    *job->of_version = job->undoing.of;
    *job->engine_ms = (double)request->engine_ns / 1e6;
}

enum vxd_status vxd_scene_undo_finish(struct vxd_request *request,
                                      struct vxd_queue *queue, struct vxd_err *err)
{
    (void)queue;
    (void)err;
    finish(request, VXD_SCENE_UNDONE);
    return VXD_OK;
}

enum vxd_status vxd_scene_redo_finish(struct vxd_request *request,
                                      struct vxd_queue *queue, struct vxd_err *err)
{
    (void)queue;
    (void)err;
    finish(request, VXD_SCENE_REDONE);
    return VXD_OK;
}
