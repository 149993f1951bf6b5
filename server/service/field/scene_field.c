// SPDX-License-Identifier: Apache-2.0
/* A box of a distance field as an array. */
#include <inttypes.h>

#include "server/instance/instance.h"
#include "server/service/field/service_field.h"
#include "server/service/service.h"

enum {
    PART_VOXELS = 1 << 20, /* of one stage on a CPU */
    GPU_PART_VOXELS = 1 << 26,
    COST_BYTES = 1 << 24 /* of an array whose size is not known yet */
};

struct field_job {
    struct vxd_field_job field; /* first: request->state is both */
    int32_t low[3], high[3];    /* voxels of the scene; a row is a slice of one x */
    size_t n_slice;             /* voxels of one */
    struct vxd_column *distances;
};

enum vxd_status vxd_scene_field_check(struct vxd_request *request, struct vxd_err *err)
{
    const Voxeld__V1__SceneFieldRequest *input =
        (const Voxeld__V1__SceneFieldRequest *)request->input;
    enum vxd_status status;

    VXD_TRY(vxd_noun_begin_check(request, sizeof(struct field_job), input->name, err));
    VXD_TRY(vxd_scene_check_at(input->at, "at", err));
    if (input->box != NULL) {
        VXD_TRY(vxd_scene_check_box(input->box, "box", err));
    }
    ((struct field_job *)request->state)->field.asked_by = "box";
    request->bulk = true;
    request->cost_bytes = COST_BYTES;
out:
    return status;
}

/* The voxels whose centres are in the box; all of the scene without one. */
static enum vxd_status read_box(const Voxeld__V1__SceneFieldRequest *input,
                                struct field_job *job, struct vxd_err *err)
{
    const struct vxd_scene_spec *spec = &job->field.base.scene->spec;
    int64_t side = (int64_t)1 << spec->format.depth;
    int64_t low[3];
    int64_t high[3];

    vxd_scene_voxels_in(spec, input->in_voxels, input->box, low, high);
    for (int axis = 0; axis < 3; axis++) {
        if (high[axis] <= low[axis]) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, "box",
                            "holds the centre of no voxel along %c", 'x' + axis);
        }
        if (low[axis] < -VXD_FIELD_OUTSIDE || high[axis] > side + VXD_FIELD_OUTSIDE) {
            return vxd_fail(err, VXD_OUT_OF_RANGE, "box",
                            "reaches more than %d voxels out of the scene, from voxel "
                            "%" PRId64 " to %" PRId64 " of %" PRId64 " along %c",
                            VXD_FIELD_OUTSIDE, low[axis], high[axis], side, 'x' + axis);
        }
        job->low[axis] = (int32_t)low[axis];
        job->high[axis] = (int32_t)high[axis];
    }
    return VXD_OK;
}

/* Reserves the array, of n_x x n_y x n_z distances. */
static enum vxd_status reserve(struct vxd_request *request, struct vxd_queue *queue,
                               struct vxd_err *err)
{
    struct field_job *job = request->state;
    struct vxd_query *query = request->state;
    Voxeld__V1__SceneFieldResponse *reply =
        (Voxeld__V1__SceneFieldResponse *)query->reply;
    const int64_t extents[3] = {job->high[0] - job->low[0], job->high[1] - job->low[1],
                                job->high[2] - job->low[2]};
    size_t part = vxd_field_on_gpu(request) ? GPU_PART_VOXELS : PART_VOXELS;
    size_t n;
    enum vxd_status status;

    /* Each side is below 2^22, so the product of two fits. */
    job->n_slice = (size_t)(extents[1] * extents[2]);
    if (!vxd_size_mul(job->n_slice, (size_t)extents[0], &n)) {
        n = SIZE_MAX;
    }
    VXD_TRY(vxd_scene_check_reply(n, sizeof(float), err));
    query->n = (size_t)extents[0];
    query->part_rows = job->n_slice < part ? part / job->n_slice : 1;
    VXD_TRY(vxd_columns_reserve_shown(request, &query->columns, queue, VXD_FLOAT32, n, 0,
                                      &reply->distances, &job->distances, err));
    status = vxd_column_set_box(request, reply->distances, extents, err);
out:
    return status;
}

static enum vxd_status begin(struct vxd_request *request, struct vxd_queue *queue,
                             struct vxd_err *err)
{
    const Voxeld__V1__SceneFieldRequest *input =
        (const Voxeld__V1__SceneFieldRequest *)request->input;
    struct field_job *job = request->state;
    struct vxd_field_box box = vxd_field_box_empty();
    enum vxd_status status;

    VXD_TRY(vxd_scene_open(request, input->name, input->at, err));
    VXD_TRY(vxd_field_set_terms(&job->field, input->unknown, input->max_distance_m, 0, 0,
                                "max_distance_m", err));
    VXD_TRY(read_box(input, job, err));
    for (int axis = 0; axis < 3; axis++) {
        box.low[axis] = job->low[axis];
        box.high[axis] = job->high[axis] - 1;
    }
    vxd_field_set_box(&job->field, &box);
    status = reserve(request, queue, err);
out:
    return status;
}

static enum vxd_status run(struct vxd_request *request, struct vxd_queue *queue,
                           size_t first, size_t n, struct vxd_err *err)
{
    const struct field_job *job = request->state;
    const int32_t low[3] = {job->low[0] + (int32_t)first, job->low[1], job->low[2]};
    const int32_t high[3] = {low[0] + (int32_t)n, job->high[1], job->high[2]};
    const struct vxd_field_arrays out = {
        .distances = vxd_scene_row(job->distances, first, job->n_slice * sizeof(float))};

    return vxd_field_read(queue, vxd_field_of(&job->field), low, high, &out, err);
}

static enum vxd_status end(struct vxd_request *request, struct vxd_queue *queue,
                           struct vxd_err *err)
{
    const struct field_job *job = request->state;
    const struct vxd_scene_spec *spec = &job->field.base.scene->spec;
    Voxeld__V1__SceneFieldResponse *reply =
        (Voxeld__V1__SceneFieldResponse *)job->field.base.query.reply;

    (void)queue;
    reply->origin = vxd_message_new(request->decoder, &voxeld__v1__vec3__descriptor, err);
    if (reply->origin == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    reply->origin->x = spec->origin_m[0] + job->low[0] * spec->voxel_size_m;
    reply->origin->y = spec->origin_m[1] + job->low[1] * spec->voxel_size_m;
    reply->origin->z = spec->origin_m[2] + job->low[2] * spec->voxel_size_m;
    reply->voxel_size_m = spec->voxel_size_m;
    reply->max_distance_m = vxd_field_reach_m(&job->field, 0);
    reply->n_x = (uint32_t)(job->high[0] - job->low[0]);
    reply->n_y = (uint32_t)(job->high[1] - job->low[1]);
    reply->n_z = (uint32_t)(job->high[2] - job->low[2]);
    return vxd_scene_new_seen(request, &reply->seen, err);
}

const struct vxd_query_calls vxd_scene_field_query = {.begin = begin,
                                                      .prepare = vxd_field_prepare,
                                                      .run = run,
                                                      .end = end,
                                                      .close = vxd_field_close};
