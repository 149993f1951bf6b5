// SPDX-License-Identifier: Apache-2.0
/* An edit. Lists of voxels are made of the points first, then all operations run as one.
 * It is one stage, since nobody waits for a turn in between on the write lane. */
#include <stdlib.h>

#include "server/instance/instance.h"
#include "server/service/service.h"
#include "server/service/scene/scene.h"

/* One operation while it is prepared. */
struct item {
    struct vxd_svdag_voxel_list list; /* of points */
    uint64_t n_outside; /* of the points, including those that are not finite */
    uint64_t n_non_finite;
    size_t n_points;
    bool outside;
};

struct edit_job {
    struct vxd_scene_job base; /* first: request->state is both */
    struct vxd_scene_frame frame;
    struct item *items;
    struct vxd_svdag_op
        *ops; /* as given; then those that edit the scene, then the pins */
    size_t n_ops;
    struct vxd_svdag_edit_result result;
    Voxeld__V1__SceneEditResponse *reply;
};

static bool is_edit(const Voxeld__V1__SceneOperation *operation)
{
    return operation->action != VOXELD__V1__SCENE_ACTION__SCENE_KEEP;
}

static bool is_pin(const Voxeld__V1__SceneOperation *operation)
{
    return operation->pin != VOXELD__V1__SCENE_PIN__SCENE_PIN_UNCHANGED;
}

/* Operations of the engine. */
static size_t count_ops(const Voxeld__V1__SceneOperation *operation)
{
    return (is_edit(operation) ? 1u : 0u) + (is_pin(operation) ? 1u : 0u);
}

enum vxd_status vxd_scene_edit_check(struct vxd_request *request, struct vxd_err *err)
{
    const Voxeld__V1__SceneEditRequest *input =
        (const Voxeld__V1__SceneEditRequest *)request->input;
    size_t n_ops = 0;
    enum vxd_status status;

    VXD_TRY(vxd_noun_begin_check(request, sizeof(struct edit_job), input->name, err));
    if (input->n_operations < 1 || input->n_operations > VXD_SVDAG_MAX_OPS) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "operations",
                         "has %zu entries, it must have 1 to %d", input->n_operations,
                         VXD_SVDAG_MAX_OPS));
    }
    for (size_t i = 0; i < input->n_operations; i++) {
        VXD_TRY(vxd_scene_check_operation(input->operations[i], i, err));
        n_ops += count_ops(input->operations[i]);
    }
    if (n_ops > VXD_SVDAG_MAX_OPS) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "operations",
                         "count as %zu with those that pin, it must be at most %d", n_ops,
                         VXD_SVDAG_MAX_OPS));
    }
    request->cost_bytes = 4 * request->body_bytes;
out:
    return status;
}

/* Queues the list of the i-th operation's voxels. */
static enum vxd_status list_points(struct vxd_request *request, struct vxd_queue *queue,
                                   size_t i, struct vxd_err *err)
{
    const Voxeld__V1__SceneEditRequest *input =
        (const Voxeld__V1__SceneEditRequest *)request->input;
    const Voxeld__V1__ScenePoints *points = input->operations[i]->points;
    struct edit_job *job = request->state;
    const struct vxd_svdag_format *format = &job->base.scene->spec.format;
    struct item *item = &job->items[i];
    char path[VXD_SCENE_PATH_BYTES];
    const void *voxels;
    const void *materials = NULL;
    void *block;
    enum vxd_status status;

    item->n_points = (size_t)points->points->shape[0];
    VXD_TRY(
        vxd_scene_take_host(request, item->n_points, 3 * sizeof(int32_t), &block, err));
    vxd_scene_read_voxels(points->points, &job->frame, block, &item->n_non_finite);
    VXD_TRY(vxd_scene_upload(request, queue, block, item->n_points * 3 * sizeof(int32_t),
                             &voxels, err));
    if (points->materials != NULL && item->n_points > 0) {
        (void)snprintf(path, sizeof path, "operations[%zu].points.materials", i);
        VXD_TRY(
            vxd_scene_take_host(request, item->n_points, sizeof(uint16_t), &block, err));
        VXD_TRY(vxd_scene_read_materials(points->materials, path,
                                         vxd_svdag_n_materials(format), block, err));
        VXD_TRY(vxd_scene_upload(request, queue, block, item->n_points * sizeof(uint16_t),
                                 &materials, err));
    }
    status = vxd_svdag_list_voxels(queue, format, voxels, materials, item->n_points,
                                   &item->list, &item->n_outside, err);
out:
    return status;
}

static enum vxd_status read_operation(struct vxd_request *request,
                                      struct vxd_queue *queue, size_t i,
                                      struct vxd_err *err)
{
    const Voxeld__V1__SceneEditRequest *input =
        (const Voxeld__V1__SceneEditRequest *)request->input;
    const Voxeld__V1__SceneOperation *operation = input->operations[i];
    struct edit_job *job = request->state;
    char path[VXD_SCENE_PATH_BYTES];
    enum vxd_status status;

    VXD_TRY(vxd_scene_read_operation(job->base.scene, &job->frame, operation, i,
                                     &job->ops[i], &job->items[i].outside, err));
    if (operation->shape_case == VOXELD__V1__SCENE_OPERATION__SHAPE_POINTS) {
        VXD_TRY(list_points(request, queue, i, err));
    }
    if (operation->shape_case == VOXELD__V1__SCENE_OPERATION__SHAPE_HEIGHTFIELD) {
        (void)snprintf(path, sizeof path, "operations[%zu].heightfield", i);
        VXD_TRY(vxd_scene_read_heights(request, &job->frame, operation->heightfield, path,
                                       &job->ops[i], &job->items[i].outside, err));
    }
out:
    return status;
}

/* The lists are complete now. */
static enum vxd_status take_lists(struct edit_job *job, size_t n, struct vxd_err *err)
{
    bool all_outside = true;

    for (size_t i = 0; i < n; i++) {
        struct item *item = &job->items[i];

        if (job->ops[i].shape.kind == VXD_SVDAG_VOXELS) {
            job->ops[i].shape.voxels = item->list.voxels;
            item->outside = item->n_points > 0 && item->n_outside == item->n_points;
            job->reply->n_outside += item->n_outside - item->n_non_finite;
            job->reply->n_non_finite += item->n_non_finite;
        }
        all_outside = all_outside && item->outside;
    }
    return !all_outside ? VXD_OK
                        : vxd_fail(err, VXD_OUT_OF_RANGE, "operations",
                                   n == 1 ? "its shape lies outside the scene"
                                          : "all shapes lie outside the scene");
}

/* Whether the scene can have pins, if one is asked for. */
static enum vxd_status check_pins(const Voxeld__V1__SceneEditRequest *input,
                                  const struct vxd_scene *scene, struct vxd_err *err)
{
    char field[VXD_SCENE_PATH_BYTES];

    for (size_t i = 0; i < input->n_operations; i++) {
        if (is_pin(input->operations[i]) && !vxd_scene_fuses(scene)) {
            (void)snprintf(field, sizeof field, "operations[%zu].pin", i);
            return vxd_fail(err, VXD_FAILED_PRECONDITION, field,
                            "is given, but the scene \"%s\" does not fuse scans by "
                            "log-odds: its fusion is SCENE_FUSION_LAST",
                            scene->terms.name);
        }
    }
    return VXD_OK;
}

/* Puts the operations that edit the scene first, and those on its pins behind them: both keep
 * their order. Returns what kind of change it is. */
static enum vxd_status split_pins(const Voxeld__V1__SceneEditRequest *input,
                                  struct edit_job *job, enum vxd_record_kind *kind,
                                  struct vxd_err *err)
{
    struct vxd_svdag_op *pins = calloc(input->n_operations, sizeof *pins);
    size_t n_pins = 0;

    if (pins == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for an edit");
    }
    for (size_t i = 0; i < input->n_operations; i++) {
        const Voxeld__V1__SceneOperation *operation = input->operations[i];
        const struct vxd_svdag_op op = job->ops[i];

        if (is_pin(operation)) {
            pins[n_pins].shape = op.shape;
            pins[n_pins].shape.voxels.values = NULL;
            pins[n_pins].shape.voxels.first_value = NULL;
            pins[n_pins++].action = operation->pin == VOXELD__V1__SCENE_PIN__SCENE_PINNED
                                        ? VXD_SVDAG_FILL
                                        : VXD_SVDAG_ERASE;
        }
        if (is_edit(operation)) {
            job->ops[job->n_ops++] = op;
        }
    }
    memcpy(job->ops + job->n_ops, pins, n_pins * sizeof *pins);
    free(pins);
    job->n_ops += n_pins;
    job->base.commit.entry.n_pin_ops = n_pins;
    *kind = n_pins > 0 ? VXD_RECORD_PIN : VXD_RECORD_EDIT;
    return VXD_OK;
}

enum vxd_status vxd_scene_edit_submit(struct vxd_request *request,
                                      struct vxd_queue *queue, struct vxd_err *err)
{
    const Voxeld__V1__SceneEditRequest *input =
        (const Voxeld__V1__SceneEditRequest *)request->input;
    struct edit_job *job = request->state;
    enum vxd_record_kind kind;
    enum vxd_status status;

    job->reply = vxd_message_new(request->decoder,
                                 &voxeld__v1__scene_edit_response__descriptor, err);
    if (job->reply == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    job->reply->change =
        vxd_message_new(request->decoder, &voxeld__v1__scene_change__descriptor, err);
    if (job->reply->change == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    VXD_TRY(vxd_scene_open(request, input->name, NULL, err));
    VXD_TRY(vxd_scene_check_version(&job->base, input->if_version, err));
    VXD_TRY(check_pins(input, job->base.scene, err));
    job->frame = vxd_scene_frame_of(&job->base.scene->spec, input->in_voxels);
    job->items = calloc(input->n_operations, sizeof *job->items);
    job->ops = calloc(2 * input->n_operations, sizeof *job->ops);
    if (job->items == NULL || job->ops == NULL) {
        VXD_TRY(vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for an edit"));
    }
    for (size_t i = 0; i < input->n_operations; i++) {
        VXD_TRY(read_operation(request, queue, i, err));
    }
    VXD_TRY(vxd_queue_wait(queue, err));
    VXD_TRY(take_lists(job, input->n_operations, err));
    VXD_TRY(split_pins(input, job, &kind, err));
    status =
        vxd_scene_apply(request, queue, kind, job->ops, job->n_ops, &job->result, err);
    request->output = &job->reply->base;
out:
    return status;
}

enum vxd_status vxd_scene_edit_finish(struct vxd_request *request,
                                      struct vxd_queue *queue, struct vxd_err *err)
{
    const struct edit_job *job = request->state;

    (void)queue;
    (void)err;
    vxd_scene_publish(request, &job->result, VXD_SCENE_EDITED, 0, job->reply->change);
    job->reply->engine_ms = (double)request->engine_ns / 1e6;
    return VXD_OK;
}

void vxd_scene_edit_release(struct vxd_request *request, struct vxd_queue *queue)
{
    const Voxeld__V1__SceneEditRequest *input =
        (const Voxeld__V1__SceneEditRequest *)request->input;
    struct edit_job *job = request->state;

    for (size_t i = 0; job->items != NULL && i < input->n_operations; i++) {
        vxd_svdag_voxel_list_free(queue, &job->items[i].list);
    }
    free(job->items);
    free(job->ops);
    job->items = NULL;
    job->ops = NULL;
    vxd_scene_release(request, queue);
}
