// SPDX-License-Identifier: Apache-2.0
/* Queries by points: the values there, and the nearest voxel. */
#include <inttypes.h>
#include <math.h>

#include "gpu/svdag/query/query.h"
#include "server/instance/instance.h"
#include "server/service/service.h"
#include "server/service/scene/scene.h"

enum {
    /* Rows of one stage, so that other requests may run in between. */
    VALUES_PART = 1 << 18,
    NEAREST_PART = 1 << 14,
    MAX_RADIUS = 1 << 30 /* units: the engine's */
};

/* --- values ------------------------------------------------------------------------------- */

struct values_job {
    struct vxd_scene_job base; /* first: request->state is both */
    const int32_t *voxels;     /* device */
    struct vxd_column *states;
    struct vxd_column *materials; /* NULL: the scene has none */
    struct vxd_column *pinned;    /* NULL: without pins */
};

enum vxd_status vxd_scene_values_check(struct vxd_request *request, struct vxd_err *err)
{
    const Voxeld__V1__SceneValuesRequest *input =
        (const Voxeld__V1__SceneValuesRequest *)request->input;
    struct vxd_query *query;
    enum vxd_status status;

    VXD_TRY(vxd_noun_begin_check(request, sizeof(struct values_job), input->name, err));
    query = request->state;
    VXD_TRY(vxd_scene_check_at(input->at, "at", err));
    VXD_TRY(vxd_scene_check_numbers(input->points, "points", 3, true, &query->n, err));
    query->part_rows = VALUES_PART;
    request->bulk = query->n > request->server->config.bulk_points;
    request->cost_bytes = query->n * 16;
out:
    return status;
}

static enum vxd_status begin_values(struct vxd_request *request, struct vxd_queue *queue,
                                    struct vxd_err *err)
{
    const Voxeld__V1__SceneValuesRequest *input =
        (const Voxeld__V1__SceneValuesRequest *)request->input;
    struct values_job *job = request->state;
    Voxeld__V1__SceneValuesResponse *reply =
        (Voxeld__V1__SceneValuesResponse *)job->base.query.reply;
    enum vxd_status status;

    VXD_TRY(vxd_scene_open(request, input->name, input->at, err));
    VXD_TRY(vxd_scene_upload_voxels(request, queue, input->points, &job->voxels, err));
    VXD_TRY(vxd_query_reserve(request, queue, VXD_UINT8, 0, &reply->states, &job->states,
                              err));
    VXD_TRY(vxd_scene_reserve_materials(request, queue, &reply->materials,
                                        &job->materials, err));
    if (input->with_pins) {
        status = vxd_query_reserve(request, queue, VXD_UINT8, 0, &reply->pinned,
                                   &job->pinned, err);
    }
out:
    return status;
}

static enum vxd_status run_values(struct vxd_request *request, struct vxd_queue *queue,
                                  size_t first, size_t n, struct vxd_err *err)
{
    const struct values_job *job = request->state;
    const struct vxd_scene_state *state = &job->base.state;
    const int32_t *voxels = job->voxels + 3 * first;
    enum vxd_status status;

    VXD_TRY(vxd_svdag_values(
        queue, state->svdag, state->root, voxels, n, vxd_scene_row(job->states, first, 1),
        vxd_scene_row(job->materials, first, sizeof(uint16_t)), err));
    if (job->pinned != NULL) {
        VXD_TRY(vxd_svdag_values(queue, state->svdag, state->pins, voxels, n,
                                 vxd_scene_row(job->pinned, first, 1), NULL, err));
    }
out:
    return status;
}

/* Says 1 where a voxel is occupied among the pins. */
static enum vxd_status end_values(struct vxd_request *request, struct vxd_queue *queue,
                                  struct vxd_err *err)
{
    const struct values_job *job = request->state;
    uint8_t *pinned = job->pinned != NULL ? job->pinned->bytes : NULL;

    (void)queue;
    for (size_t i = 0; pinned != NULL && i < job->base.query.n; i++) {
        pinned[i] = pinned[i] == VXD_SVDAG_OCCUPIED ? 1 : 0;
    }
    return vxd_scene_new_seen(
        request, &((Voxeld__V1__SceneValuesResponse *)job->base.query.reply)->seen, err);
}

const struct vxd_query_calls vxd_scene_values_query = {.begin = begin_values,
                                                       .run = run_values,
                                                       .end = end_values,
                                                       .close = vxd_scene_close};

/* --- nearest ------------------------------------------------------------------------------ */

struct nearest_job {
    struct vxd_scene_job base; /* first: request->state is both */
    const int64_t *points;     /* device */
    const int64_t *radii;
    struct vxd_column *voxels;
    struct vxd_column *squares;
    struct vxd_column *materials; /* NULL: the scene has none */
    struct vxd_column *distances; /* made of the squares */
};

enum vxd_status vxd_scene_nearest_check(struct vxd_request *request, struct vxd_err *err)
{
    const Voxeld__V1__SceneNearestRequest *input =
        (const Voxeld__V1__SceneNearestRequest *)request->input;
    struct vxd_query *query;
    enum vxd_status status;

    VXD_TRY(vxd_noun_begin_check(request, sizeof(struct nearest_job), input->name, err));
    query = request->state;
    VXD_TRY(vxd_scene_check_at(input->at, "at", err));
    VXD_TRY(vxd_scene_check_numbers(input->points, "points", 3, false, &query->n, err));
    query->part_rows = NEAREST_PART;
    request->bulk = query->n > request->server->config.bulk_points;
    request->cost_bytes = query->n * 64;
out:
    return status;
}

/* A point that is not finite, or farther away than the engine looks, has nothing near. */
static void read_points(const Voxeld__V1__Tensor *tensor,
                        const struct vxd_scene_frame *frame, int64_t radius,
                        int64_t *points, int64_t *radii)
{
    size_t n = (size_t)tensor->shape[0];

    for (size_t i = 0; i < n; i++) {
        radii[i] = radius;
        for (int axis = 0; axis < 3; axis++) {
            double p = vxd_scene_number(tensor, 3 * i + (size_t)axis);
            int64_t units = vxd_scene_coordinate(frame, axis, p);

            if (units <= -VXD_SCENE_FAR || units >= VXD_SCENE_FAR) {
                units = -VXD_SCENE_FAR;
                radii[i] = 0;
            }
            points[3 * i + (size_t)axis] = units;
        }
    }
}

/* Uploads the points in units, and how far each looks. */
static enum vxd_status upload_points(struct vxd_request *request, struct vxd_queue *queue,
                                     const struct vxd_scene_frame *frame, int64_t radius,
                                     struct vxd_err *err)
{
    const Voxeld__V1__SceneNearestRequest *input =
        (const Voxeld__V1__SceneNearestRequest *)request->input;
    struct nearest_job *job = request->state;
    size_t n = job->base.query.n;
    const void *uploaded;
    void *points;
    void *radii;
    enum vxd_status status;

    VXD_TRY(vxd_scene_take_host(request, n, 3 * sizeof(int64_t), &points, err));
    VXD_TRY(vxd_scene_take_host(request, n, sizeof(int64_t), &radii, err));
    read_points(input->points, frame, radius, points, radii);
    VXD_TRY(vxd_scene_upload(request, queue, points, n * 3 * sizeof(int64_t), &uploaded,
                             err));
    job->points = uploaded;
    VXD_TRY(vxd_scene_upload(request, queue, radii, n * sizeof(int64_t), &uploaded, err));
    job->radii = uploaded;
out:
    return status;
}

static enum vxd_status begin_nearest(struct vxd_request *request, struct vxd_queue *queue,
                                     struct vxd_err *err)
{
    const Voxeld__V1__SceneNearestRequest *input =
        (const Voxeld__V1__SceneNearestRequest *)request->input;
    struct nearest_job *job = request->state;
    Voxeld__V1__SceneNearestResponse *reply =
        (Voxeld__V1__SceneNearestResponse *)job->base.query.reply;
    struct vxd_scene_frame frame;
    int64_t radius;
    enum vxd_status status;

    VXD_TRY(vxd_scene_open(request, input->name, input->at, err));
    frame = vxd_scene_frame_of(&job->base.scene->spec, false);
    radius = vxd_scene_length(&frame, input->radius_m);
    if (radius > MAX_RADIUS) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "radius_m",
                         "is %g, of this scene's voxels at most %g (%d) are possible",
                         input->radius_m,
                         (double)MAX_RADIUS / VXD_SVDAG_UNIT * frame.size,
                         MAX_RADIUS / VXD_SVDAG_UNIT));
    }
    VXD_TRY(upload_points(request, queue, &frame, radius, err));
    VXD_TRY(vxd_query_reserve_made(request, VXD_FLOAT32, 0, &reply->distances,
                                   &job->distances, err));
    VXD_TRY(vxd_query_reserve(request, queue, VXD_INT32, 3, &reply->voxels, &job->voxels,
                              err));
    VXD_TRY(vxd_query_reserve(request, queue, VXD_UINT64, 0, NULL, &job->squares, err));
    VXD_TRY(vxd_scene_reserve_materials(request, queue, &reply->materials,
                                        &job->materials, err));
out:
    return status;
}

static enum vxd_status run_nearest(struct vxd_request *request, struct vxd_queue *queue,
                                   size_t first, size_t n, struct vxd_err *err)
{
    const struct nearest_job *job = request->state;

    return vxd_svdag_nearest(queue, job->base.state.svdag, job->base.state.root,
                             job->points + 3 * first, job->radii + first, n,
                             vxd_scene_row(job->voxels, first, 3 * sizeof(int32_t)),
                             vxd_scene_row(job->squares, first, sizeof(uint64_t)),
                             vxd_scene_row(job->materials, first, sizeof(uint16_t)), err);
}

/* Converts units to metres, and counts what there is. */
static enum vxd_status end_nearest(struct vxd_request *request, struct vxd_queue *queue,
                                   struct vxd_err *err)
{
    const struct nearest_job *job = request->state;
    Voxeld__V1__SceneNearestResponse *reply =
        (Voxeld__V1__SceneNearestResponse *)job->base.query.reply;
    double unit_m = job->base.scene->spec.voxel_size_m / VXD_SVDAG_UNIT;
    const int32_t *voxels = job->voxels->bytes;
    const uint64_t *squares = job->squares->bytes;
    float *distances = job->distances->bytes;

    (void)queue;
    for (size_t i = 0; i < job->base.query.n; i++) {
        bool found = voxels[3 * i] >= 0;

        distances[i] = found ? (float)(sqrt((double)squares[i]) * unit_m) : -1.0f;
        reply->n_found += found ? 1 : 0;
    }
    return vxd_scene_new_seen(request, &reply->seen, err);
}

const struct vxd_query_calls vxd_scene_nearest_query = {.begin = begin_nearest,
                                                        .run = run_nearest,
                                                        .end = end_nearest,
                                                        .close = vxd_scene_close};
