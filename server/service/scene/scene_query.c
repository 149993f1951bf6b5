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
    size_t n;
    size_t done;
    const int32_t *voxels; /* device */
    struct vxd_scene_output states;
    struct vxd_scene_output materials; /* scenes that have them */
    struct vxd_scene_output pinned;    /* with_pins */
};

enum vxd_status vxd_scene_values_check(struct vxd_request *request, struct vxd_err *err)
{
    const Voxeld__V1__SceneValuesRequest *input =
        (const Voxeld__V1__SceneValuesRequest *)request->input;
    struct values_job *job;
    enum vxd_status status;

    VXD_TRY(vxd_scene_begin_check(request, sizeof *job, input->name, err));
    job = request->state;
    VXD_TRY(vxd_scene_check_at(input->at, "at", err));
    VXD_TRY(vxd_scene_check_numbers(input->points, "points", 3, true, &job->n, err));
    request->bulk = job->n > request->server->config.bulk_points;
    request->cost_bytes = job->n * 16;
out:
    return status;
}

static enum vxd_status begin_values(struct vxd_request *request, struct vxd_queue *queue,
                                    struct vxd_err *err)
{
    const Voxeld__V1__SceneValuesRequest *input =
        (const Voxeld__V1__SceneValuesRequest *)request->input;
    struct values_job *job = request->state;
    struct vxd_scene_frame frame;
    const void *voxels;
    void *block;
    enum vxd_status status;

    VXD_TRY(vxd_scene_open(request, input->name, input->at, err));
    frame = vxd_scene_frame_of(&job->base.scene->spec, false);
    VXD_TRY(vxd_scene_take_host(request, job->n, 3 * sizeof(int32_t), &block, err));
    vxd_scene_read_voxels(input->points, &frame, block, NULL);
    VXD_TRY(vxd_scene_upload(request, queue, block, job->n * 3 * sizeof(int32_t), &voxels,
                             err));
    job->voxels = voxels;
    VXD_TRY(vxd_scene_reserve_output(request, queue, job->n, 1, &job->states, err));
    VXD_TRY(vxd_scene_reserve_materials(request, queue, job->n, &job->materials, err));
    if (input->with_pins) {
        status = vxd_scene_reserve_output(request, queue, job->n, 1, &job->pinned, err);
    }
out:
    return status;
}

enum vxd_status vxd_scene_values_submit(struct vxd_request *request,
                                        struct vxd_queue *queue, struct vxd_err *err)
{
    struct values_job *job = request->state;
    size_t first = job->done;
    size_t n;
    enum vxd_status status = VXD_OK;

    if (job->base.scene == NULL) {
        VXD_TRY(begin_values(request, queue, err));
    }
    n = vxd_scene_next_chunk(request, job->n, VALUES_PART, &job->done);
    if (n > 0) {
        VXD_TRY(vxd_svdag_values(
            queue, job->base.state.svdag, job->base.state.root, job->voxels + 3 * first,
            n, (uint8_t *)job->states.device + first,
            job->materials.device != NULL ? (uint16_t *)job->materials.device + first
                                          : NULL,
            err));
    }
    if (n > 0 && job->pinned.device != NULL) {
        VXD_TRY(vxd_svdag_values(queue, job->base.state.svdag, job->base.state.pins,
                                 job->voxels + 3 * first, n,
                                 (uint8_t *)job->pinned.device + first, NULL, err));
    }
    if (!request->more) {
        VXD_TRY(vxd_scene_fetch_output(request, queue, &job->pinned, err));
        VXD_TRY(vxd_scene_fetch_output(request, queue, &job->states, err));
        VXD_TRY(vxd_scene_fetch_output(request, queue, &job->materials, err));
    }
out:
    return status;
}

/* Shows 1 where a voxel is occupied among the pins. */
static enum vxd_status show_pins(struct vxd_request *request,
                                 Voxeld__V1__SceneValuesResponse *reply,
                                 struct vxd_err *err)
{
    const struct values_job *job = request->state;
    const uint8_t *states = job->pinned.bytes;
    uint8_t *pinned;
    void *block;
    enum vxd_status status;

    VXD_TRY(vxd_scene_take_host(request, job->n, 1, &block, err));
    pinned = block;
    for (size_t i = 0; i < job->n; i++) {
        pinned[i] = states[i] == VXD_SVDAG_OCCUPIED ? 1 : 0;
    }
    status = vxd_scene_show(request, VXD_UINT8, job->n, 0, pinned, &reply->pinned, err);
out:
    return status;
}

enum vxd_status vxd_scene_values_finish(struct vxd_request *request,
                                        struct vxd_queue *queue, struct vxd_err *err)
{
    const struct values_job *job = request->state;
    Voxeld__V1__SceneValuesResponse *reply = vxd_message_new(
        request->decoder, &voxeld__v1__scene_values_response__descriptor, err);
    enum vxd_status status;

    if (reply == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    VXD_TRY(vxd_scene_new_seen(request, &reply->seen, err));
    VXD_TRY(vxd_scene_show(request, VXD_UINT8, job->n, 0, job->states.bytes,
                           &reply->states, err));
    VXD_TRY(vxd_scene_show_materials(request, job->n, job->materials.bytes,
                                     &reply->materials, err));
    if (((const Voxeld__V1__SceneValuesRequest *)request->input)->with_pins) {
        VXD_TRY(show_pins(request, reply, err));
    }
    request->output = &reply->base;
    vxd_scene_close(request, queue);
out:
    return status;
}

/* --- nearest ------------------------------------------------------------------------------ */

struct nearest_job {
    struct vxd_scene_job base; /* first: request->state is both */
    size_t n;
    size_t done;
    const int64_t *points; /* device */
    const int64_t *radii;
    struct vxd_scene_output voxels;
    struct vxd_scene_output squares;
    struct vxd_scene_output materials; /* scenes that have them */
    float *distances;                  /* host */
};

enum vxd_status vxd_scene_nearest_check(struct vxd_request *request, struct vxd_err *err)
{
    const Voxeld__V1__SceneNearestRequest *input =
        (const Voxeld__V1__SceneNearestRequest *)request->input;
    struct nearest_job *job;
    enum vxd_status status;

    VXD_TRY(vxd_scene_begin_check(request, sizeof *job, input->name, err));
    job = request->state;
    VXD_TRY(vxd_scene_check_at(input->at, "at", err));
    VXD_TRY(vxd_scene_check_numbers(input->points, "points", 3, false, &job->n, err));
    if (!(input->radius_m > 0) || !isfinite(input->radius_m)) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "radius_m",
                         "is %g, it must be > 0 and finite", input->radius_m));
    }
    request->bulk = job->n > request->server->config.bulk_points;
    request->cost_bytes = job->n * 64;
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

static enum vxd_status begin_nearest(struct vxd_request *request, struct vxd_queue *queue,
                                     struct vxd_err *err)
{
    const Voxeld__V1__SceneNearestRequest *input =
        (const Voxeld__V1__SceneNearestRequest *)request->input;
    struct nearest_job *job = request->state;
    struct vxd_scene_frame frame;
    int64_t radius;
    const void *uploaded;
    void *points;
    void *radii;
    void *distances;
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
    VXD_TRY(vxd_scene_take_host(request, job->n, 3 * sizeof(int64_t), &points, err));
    VXD_TRY(vxd_scene_take_host(request, job->n, sizeof(int64_t), &radii, err));
    VXD_TRY(vxd_scene_take_host(request, job->n, sizeof(float), &distances, err));
    job->distances = distances;
    read_points(input->points, &frame, radius, points, radii);
    VXD_TRY(vxd_scene_upload(request, queue, points, job->n * 3 * sizeof(int64_t),
                             &uploaded, err));
    job->points = uploaded;
    VXD_TRY(vxd_scene_upload(request, queue, radii, job->n * sizeof(int64_t), &uploaded,
                             err));
    job->radii = uploaded;
    VXD_TRY(vxd_scene_reserve_output(request, queue, job->n, 3 * sizeof(int32_t),
                                     &job->voxels, err));
    VXD_TRY(vxd_scene_reserve_output(request, queue, job->n, sizeof(uint64_t),
                                     &job->squares, err));
    VXD_TRY(vxd_scene_reserve_materials(request, queue, job->n, &job->materials, err));
out:
    return status;
}

enum vxd_status vxd_scene_nearest_submit(struct vxd_request *request,
                                         struct vxd_queue *queue, struct vxd_err *err)
{
    struct nearest_job *job = request->state;
    size_t first = job->done;
    size_t n;
    enum vxd_status status = VXD_OK;

    if (job->base.scene == NULL) {
        VXD_TRY(begin_nearest(request, queue, err));
    }
    n = vxd_scene_next_chunk(request, job->n, NEAREST_PART, &job->done);
    if (n > 0) {
        VXD_TRY(vxd_svdag_nearest(
            queue, job->base.state.svdag, job->base.state.root, job->points + 3 * first,
            job->radii + first, n, (int32_t *)job->voxels.device + 3 * first,
            (uint64_t *)job->squares.device + first,
            job->materials.device != NULL ? (uint16_t *)job->materials.device + first
                                          : NULL,
            err));
    }
    if (!request->more) {
        VXD_TRY(vxd_scene_fetch_output(request, queue, &job->voxels, err));
        VXD_TRY(vxd_scene_fetch_output(request, queue, &job->squares, err));
        VXD_TRY(vxd_scene_fetch_output(request, queue, &job->materials, err));
    }
out:
    return status;
}

/* Converts units to metres; returns how many there are. */
static uint64_t set_distances(const struct nearest_job *job)
{
    double unit_m = job->base.scene->spec.voxel_size_m / VXD_SVDAG_UNIT;
    const int32_t *voxels = job->voxels.bytes;
    const uint64_t *squares = job->squares.bytes;
    uint64_t n_found = 0;

    for (size_t i = 0; i < job->n; i++) {
        bool found = voxels[3 * i] >= 0;

        job->distances[i] = found ? (float)(sqrt((double)squares[i]) * unit_m) : -1.0f;
        n_found += found ? 1 : 0;
    }
    return n_found;
}

enum vxd_status vxd_scene_nearest_finish(struct vxd_request *request,
                                         struct vxd_queue *queue, struct vxd_err *err)
{
    const struct nearest_job *job = request->state;
    Voxeld__V1__SceneNearestResponse *reply = vxd_message_new(
        request->decoder, &voxeld__v1__scene_nearest_response__descriptor, err);
    enum vxd_status status;

    if (reply == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    reply->n_found = set_distances(job);
    VXD_TRY(vxd_scene_new_seen(request, &reply->seen, err));
    VXD_TRY(vxd_scene_show(request, VXD_FLOAT32, job->n, 0, job->distances,
                           &reply->distances, err));
    VXD_TRY(vxd_scene_show(request, VXD_INT32, job->n, 3, job->voxels.bytes,
                           &reply->voxels, err));
    VXD_TRY(vxd_scene_show_materials(request, job->n, job->materials.bytes,
                                     &reply->materials, err));
    request->output = &reply->base;
    vxd_scene_close(request, queue);
out:
    return status;
}
