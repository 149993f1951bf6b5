// SPDX-License-Identifier: Apache-2.0
/* Distances of points to the surface of a volume, by a field of it that is kept between requests
 * and updated by what changed. */
#include <math.h>

#include "gpu/volume/volume_math.h"
#include "server/instance/instance.h"
#include "server/registry/fields/registry_fields.h"
#include "server/service/field/service_field.h"
#include "server/service/scene/scene.h"
#include "server/service/service.h"
#include "server/service/volume/volume_service.h"

#define DEFAULT_DISTANCE_M 2.0

enum {
    BOX_STEP = 32, /* boxes of fields end at multiples of this */
    SPARE = 2,     /* what distances to surfaces need beyond their reach */
    FIELD_PARTS_GPU = 16,
    POINTS_PART_CPU = 1 << 14, /* of one stage */
    POINTS_PART_CUDA = 1 << 22,
    ROW_BYTES = 24 + 4 + 12
};

struct distance_job {
    struct vxd_volume_job base; /* first: request->state is both */
    uint64_t version;
    uint64_t n_outside;
    struct vxd_kept_field *field;
    struct vxd_field_want want;
    bool is_ready;
    size_t next_part;
    struct vxd_buffer host_points;
    struct vxd_buffer device_points;
    const double *points; /* device */
    struct vxd_column *distances;
    struct vxd_column *gradients;
};

static const Voxeld__V1__VolumeDistanceRequest *
input_of(const struct vxd_request *request)
{
    return (const Voxeld__V1__VolumeDistanceRequest *)request->input;
}

enum vxd_status vxd_volume_distance_check(struct vxd_request *request,
                                          struct vxd_err *err)
{
    const Voxeld__V1__VolumeDistanceRequest *input = input_of(request);
    struct vxd_query *query;
    enum vxd_status status;

    VXD_TRY(vxd_noun_begin_check(request, sizeof(struct distance_job), input->name, err));
    query = request->state;
    if (input->points == NULL) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "points", "is required"));
    }
    VXD_TRY(vxd_scene_check_numbers(input->points, "points", 3, false, &query->n, err));
    VXD_TRY(vxd_scene_check_reply(query->n, ROW_BYTES, err));
    query->part_rows = vxd_field_on_gpu(request) ? POINTS_PART_CUDA : POINTS_PART_CPU;
    request->bulk = query->n > request->server->config.bulk_points;
    request->cost_bytes = query->n * ROW_BYTES;
out:
    return status;
}

/* --- the beginning -------------------------------------------------------------------------- */

/* How far the field reaches.
 * errors  INVALID_ARGUMENT  more than a field does */
static enum vxd_status set_reach(struct vxd_request *request, struct vxd_err *err)
{
    struct distance_job *job = request->state;
    double wished = input_of(request)->max_distance_m;
    double size = job->base.volume->spec.voxel_size_m;
    int most = VXD_FIELD_MAX_DISTANCE - SPARE;
    double voxels = wished / size;

    if (wished == 0) {
        voxels = fmin(DEFAULT_DISTANCE_M / size, most);
    }
    voxels = fmax(ceil(voxels - 1e-6), 1);
    if (voxels > most) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "max_distance_m",
                        "needs distances of %.0f voxels; at voxels of %g m at most %g m "
                        "(%d voxels) are possible",
                        voxels, size, most * size, most);
    }
    job->want.spec.max_distance = (int)voxels + SPARE;
    return VXD_OK;
}

/* Points in voxels from the volume's origin, those that no block may hold as NaN; and the box of
 * the field around the others. */
static void read_points(struct vxd_request *request, double *points)
{
    const Voxeld__V1__VolumeDistanceRequest *input = input_of(request);
    struct distance_job *job = request->state;
    const struct vxd_volume_spec *spec = &job->base.volume->spec;
    double most = (double)VXD_BLOCK_LIMIT * spec->block_edge;
    double low[3] = {INFINITY, INFINITY, INFINITY};
    double high[3] = {-INFINITY, -INFINITY, -INFINITY};

    for (size_t i = 0; i < job->base.query.n; i++) {
        double *p = points + 3 * i;
        bool is_inside = true;

        for (size_t axis = 0; axis < 3; axis++) {
            p[axis] =
                (vxd_scene_number(input->points, 3 * i + axis) - spec->origin_m[axis]) /
                spec->voxel_size_m;
            is_inside = is_inside && fabs(p[axis]) < most;
        }
        if (!is_inside) {
            p[0] = (double)NAN;
            job->n_outside++;
        }
        for (size_t axis = 0; axis < 3 && is_inside; axis++) {
            low[axis] = fmin(low[axis], p[axis]);
            high[axis] = fmax(high[axis], p[axis]);
        }
    }
    for (int axis = 0; axis < 3; axis++) {
        double around = job->want.spec.max_distance + 1;
        bool is_empty = !(low[axis] <= high[axis]);
        double from = is_empty ? 0 : low[axis] - around;
        double to = is_empty ? 1 : high[axis] + 1 + around;

        job->want.spec.low[axis] = (int32_t)floor(from / BOX_STEP) * BOX_STEP;
        job->want.spec.high[axis] = (int32_t)ceil(to / BOX_STEP) * BOX_STEP;
    }
}

/* Fields of volumes are kept beside those of scenes: their generations have the highest bit. A
 * field of another least weight is another version: stamps of a volume count up one by one, so they
 * do not reach into the upper half, where the weight is. */
static void set_version(struct vxd_request *request)
{
    struct distance_job *job = request->state;
    float min_weight = (float)input_of(request)->min_weight;
    uint32_t bits;

    memcpy(&bits, &min_weight, sizeof bits);
    job->want.generation = VXD_VOLUME_FIELDS | job->base.volume->named.generation;
    job->want.version = job->version ^ (uint64_t)bits << 32;
    job->want.spec.unknown = (enum vxd_field_unknown)input_of(request)->unknown;
    job->want.spec.voxel_size_m = job->base.volume->spec.voxel_size_m;
}

static enum vxd_status begin(struct vxd_request *request, struct vxd_queue *queue,
                             struct vxd_err *err)
{
    struct distance_job *job = request->state;
    Voxeld__V1__VolumeDistanceResponse *reply =
        (Voxeld__V1__VolumeDistanceResponse *)job->base.query.reply;
    struct vxd_volume_info info;
    size_t n_bytes = job->base.query.n * 3 * sizeof(double);
    const void *points;
    enum vxd_status status;

    VXD_TRY(vxd_volume_open(request, input_of(request)->name, err));
    vxd_volume_get_info(job->base.volume->state.volume, &info);
    job->version = info.version;
    VXD_TRY(set_reach(request, err));
    VXD_TRY(vxd_host_alloc(vxd_queue_context(queue), n_bytes, &job->host_points, err));
    read_points(request, job->host_points.ptr);
    set_version(request);
    VXD_TRY(vxd_upload(queue, job->host_points.ptr, n_bytes, &job->device_points, &points,
                       err));
    job->points = points;
    VXD_TRY(vxd_query_reserve(request, queue, VXD_FLOAT32, 0, &reply->distances,
                              &job->distances, err));
    VXD_TRY(vxd_query_reserve(request, queue, VXD_FLOAT32, 3, &reply->gradients,
                              &job->gradients, err));
out:
    return status;
}

/* --- stages ---------------------------------------------------------------------------------- */

/* errors  ABORTED  the volume is another one than in the first stage */
static enum vxd_status check_unchanged(const struct distance_job *job,
                                       struct vxd_err *err)
{
    struct vxd_volume_info info;

    vxd_volume_get_info(job->base.volume->state.volume, &info);
    return info.version == job->version
               ? VXD_OK
               : vxd_fail(err, VXD_ABORTED, NULL,
                          "the volume \"%s\" was changed while its field was made; ask "
                          "again, or for fewer points, which take fewer stages",
                          job->base.volume->named.terms.name);
}

/* One stage on the way to the field. */
static enum vxd_status prepare_field(struct vxd_request *request, struct vxd_queue *queue,
                                     struct vxd_err *err)
{
    struct distance_job *job = request->state;
    struct vxd_fields *fields = request->server->fields;
    enum vxd_field_claim claim = VXD_FIELD_STALE;
    size_t left;
    size_t now;
    enum vxd_status status = VXD_OK;

    if (job->field == NULL) {
        VXD_TRY(vxd_fields_claim(fields, queue, &job->want, "points", &job->field, &claim,
                                 err));
        job->is_ready = claim == VXD_FIELD_READY;
        request->is_waiting = claim == VXD_FIELD_BUSY;
        if (claim != VXD_FIELD_STALE) {
            return VXD_OK;
        }
    }
    left = vxd_field_n_parts(vxd_fields_get(job->field)) - job->next_part;
    now = vxd_field_on_gpu(request) ? FIELD_PARTS_GPU : 1;
    now = now < left ? now : left;
    if (left == 0) {
        vxd_fields_set_ready(fields, job->field, job->want.version);
        job->is_ready = true;
        return VXD_OK;
    }
    status = vxd_field_update_volume(
        queue, vxd_fields_get(job->field), job->base.volume->state.volume,
        input_of(request)->min_weight, job->next_part, now, err);
    job->next_part += now;
out:
    return status;
}

/* The points come in the stage after the one that has made the field. */
static enum vxd_status prepare(struct vxd_request *request, struct vxd_queue *queue,
                               bool *is_ready, struct vxd_err *err)
{
    const struct distance_job *job = request->state;
    enum vxd_status status;

    VXD_TRY(check_unchanged(job, err));
    *is_ready = job->is_ready;
    if (!job->is_ready) {
        VXD_TRY(prepare_field(request, queue, err));
    }
out:
    return status;
}

static enum vxd_status run(struct vxd_request *request, struct vxd_queue *queue,
                           size_t first, size_t n, struct vxd_err *err)
{
    const struct distance_job *job = request->state;

    return vxd_field_query_volume(queue, vxd_fields_get(job->field),
                                  job->base.volume->state.volume,
                                  input_of(request)->min_weight, job->points + 3 * first,
                                  n, (float *)job->distances->device + first,
                                  (float *)job->gradients->device + 3 * first, err);
}

static enum vxd_status end(struct vxd_request *request, struct vxd_queue *queue,
                           struct vxd_err *err)
{
    const struct distance_job *job = request->state;
    Voxeld__V1__VolumeDistanceResponse *reply =
        (Voxeld__V1__VolumeDistanceResponse *)job->base.query.reply;

    (void)queue;
    (void)err;
    reply->max_distance_m =
        (job->want.spec.max_distance - SPARE) * job->want.spec.voxel_size_m;
    reply->n_outside = job->n_outside;
    reply->stamp = job->version;
    reply->engine_ms = (double)request->engine_ns / 1e6;
    return VXD_OK;
}

const struct vxd_query_calls vxd_volume_distance_query = {
    .begin = begin, .prepare = prepare, .run = run, .end = end};

void vxd_volume_distance_release(struct vxd_request *request, struct vxd_queue *queue)
{
    struct distance_job *job = request->state;

    vxd_fields_release(request->server->fields, queue, job->field);
    job->field = NULL;
    vxd_device_free(queue, &job->device_points);
    vxd_host_free(vxd_queue_context(queue), &job->host_points);
    vxd_volume_release(request, queue);
}
