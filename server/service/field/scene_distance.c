// SPDX-License-Identifier: Apache-2.0
/* Distances at points. */
#include <math.h>

#include "server/instance/instance.h"
#include "server/service/field/service_field.h"
#include "server/service/service.h"

enum {
    /* Points of one stage, so that other requests may run in between. */
    POINTS_PART = 1 << 16,
    SURFACE_PART = 1 << 12,
    GPU_PART = 1 << 22,
    GPU_SURFACE_PART = 1 << 19,
    ROW_BYTES = 24 + 4 + 12 + 12
};

struct distance_job {
    struct vxd_field_job field; /* first: request->state is both */
    enum vxd_field_mode mode;
    uint64_t n_outside;
    const double *points; /* device */
    struct vxd_column *distances;
    struct vxd_column *gradients;
    struct vxd_column *voxels;
};

static enum vxd_status read_mode(const Voxeld__V1__SceneDistanceRequest *input,
                                 enum vxd_field_mode *mode, struct vxd_err *err)
{
    bool is_surface = input->to == VOXELD__V1__FIELD_TO__FIELD_TO_SURFACE;
    bool is_trilinear =
        input->interpolation == VOXELD__V1__FIELD_INTERPOLATION__FIELD_TRILINEAR;

    if (is_surface && is_trilinear) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "interpolation",
                        "is FIELD_TRILINEAR, but distances to surfaces are exact at the "
                        "points themselves: leave it out");
    }
    *mode = is_surface     ? VXD_FIELD_SURFACE
            : is_trilinear ? VXD_FIELD_TRILINEAR
                           : VXD_FIELD_NEAREST;
    return VXD_OK;
}

enum vxd_status vxd_scene_distance_check(struct vxd_request *request, struct vxd_err *err)
{
    const Voxeld__V1__SceneDistanceRequest *input =
        (const Voxeld__V1__SceneDistanceRequest *)request->input;
    struct distance_job *job;
    struct vxd_query *query;
    enum vxd_status status;

    VXD_TRY(vxd_noun_begin_check(request, sizeof *job, input->name, err));
    job = request->state;
    query = request->state;
    VXD_TRY(vxd_scene_check_at(input->at, "at", err));
    VXD_TRY(vxd_scene_check_numbers(input->points, "points", 3, false, &query->n, err));
    VXD_TRY(read_mode(input, &job->mode, err));
    VXD_TRY(vxd_scene_check_reply(query->n, ROW_BYTES, err));
    job->field.asked_by = "points";
    if (job->mode == VXD_FIELD_SURFACE) {
        query->part_rows = vxd_field_on_gpu(request) ? GPU_SURFACE_PART : SURFACE_PART;
    } else {
        query->part_rows = vxd_field_on_gpu(request) ? GPU_PART : POINTS_PART;
    }
    request->bulk = query->n > request->server->config.bulk_points;
    request->cost_bytes = query->n * ROW_BYTES;
out:
    return status;
}

/* Points in voxels from the scene's low corner; those outside of it, or not finite, become NaN.
 * Returns the box around the others. */
static struct vxd_field_box read_points(struct distance_job *job,
                                        const Voxeld__V1__Tensor *tensor, double *points)
{
    const struct vxd_scene_spec *spec = &job->field.base.scene->spec;
    double side = (double)((int64_t)1 << spec->format.depth);
    struct vxd_field_box box = vxd_field_box_empty();

    for (size_t i = 0; i < job->field.base.query.n; i++) {
        double *p = points + 3 * i;
        bool is_inside = true;

        for (size_t axis = 0; axis < 3; axis++) {
            p[axis] = (vxd_scene_number(tensor, 3 * i + axis) - spec->origin_m[axis]) /
                      spec->voxel_size_m;
            is_inside = is_inside && p[axis] >= 0 && p[axis] < side;
        }
        if (is_inside) {
            vxd_field_box_add(&box, p, 0);
        } else {
            p[0] = NAN;
            job->n_outside++;
        }
    }
    return box;
}

/* What distances need beyond their reach. */
static int spare_of(const struct distance_job *job)
{
    return job->mode == VXD_FIELD_SURFACE ? VXD_FIELD_SURFACE_SPARE : 0;
}

static enum vxd_status begin(struct vxd_request *request, struct vxd_queue *queue,
                             struct vxd_err *err)
{
    const Voxeld__V1__SceneDistanceRequest *input =
        (const Voxeld__V1__SceneDistanceRequest *)request->input;
    struct distance_job *job = request->state;
    const struct vxd_query *query = request->state;
    Voxeld__V1__SceneDistanceResponse *reply =
        (Voxeld__V1__SceneDistanceResponse *)query->reply;
    struct vxd_field_box box;
    const void *points;
    void *block;
    enum vxd_status status;

    VXD_TRY(vxd_scene_open(request, input->name, input->at, err));
    VXD_TRY(vxd_field_set_terms(&job->field, input->unknown, input->max_distance_m, 0,
                                spare_of(job), "max_distance_m", err));
    VXD_TRY(vxd_scene_take_host(request, query->n, 3 * sizeof(double), &block, err));
    box = read_points(job, input->points, block);
    vxd_field_set_box(&job->field, &box);
    VXD_TRY(vxd_scene_upload(request, queue, block, query->n * 3 * sizeof(double),
                             &points, err));
    job->points = points;
    VXD_TRY(vxd_query_reserve(request, queue, VXD_FLOAT32, 0, &reply->distances,
                              &job->distances, err));
    VXD_TRY(vxd_query_reserve(request, queue, VXD_FLOAT32, 3, &reply->gradients,
                              &job->gradients, err));
    VXD_TRY(vxd_query_reserve(request, queue, VXD_INT32, 3, &reply->voxels, &job->voxels,
                              err));
out:
    return status;
}

static enum vxd_status run(struct vxd_request *request, struct vxd_queue *queue,
                           size_t first, size_t n, struct vxd_err *err)
{
    const struct distance_job *job = request->state;

    return vxd_field_query(queue, vxd_field_of(&job->field), job->points + 3 * first, n,
                           job->mode, vxd_scene_row(job->distances, first, 4),
                           vxd_scene_row(job->gradients, first, 12),
                           vxd_scene_row(job->voxels, first, 12), err);
}

static enum vxd_status end(struct vxd_request *request, struct vxd_queue *queue,
                           struct vxd_err *err)
{
    const struct distance_job *job = request->state;
    Voxeld__V1__SceneDistanceResponse *reply =
        (Voxeld__V1__SceneDistanceResponse *)job->field.base.query.reply;

    (void)queue;
    reply->max_distance_m = vxd_field_reach_m(&job->field, spare_of(job));
    reply->n_outside = job->n_outside;
    return vxd_scene_new_seen(request, &reply->seen, err);
}

const struct vxd_query_calls vxd_scene_distance_query = {.begin = begin,
                                                         .prepare = vxd_field_prepare,
                                                         .run = run,
                                                         .end = end,
                                                         .close = vxd_field_close};
