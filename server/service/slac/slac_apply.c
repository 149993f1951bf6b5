// SPDX-License-Identifier: Apache-2.0
/* Points and volumes that a control grid moves. */
#include <math.h>

#include "server/instance/instance.h"
#include "server/service/service.h"
#include "server/service/slac/slac_service.h"

#define POINT_BYTES 64 /* of engine memory, with normals */

/* --- points ------------------------------------------------------------------------------ */

struct apply_job {
    struct vxd_map_job base; /* first: request->state is both */
    struct vxd_deform_apply_args args;
    struct vxd_deform *deform;
    struct vxd_column *points;
    struct vxd_column *normals;
    struct vxd_column *inside;
};

static enum vxd_status check_rows(const Voxeld__V1__Tensor *tensor, const char *field,
                                  size_t *n, struct vxd_err *err)
{
    enum vxd_status status;

    VXD_TRY(vxd_map_check_tensor(tensor, field, n, err));
    if (tensor->n_shape != 2 || tensor->shape[1] != 3) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                         "must be n x 3: x, y and z of each point"));
    }
    if (tensor->n_values == 0 && (enum vxd_dtype)tensor->dtype != VXD_FLOAT32) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                         "has the dtype %d, must have %d (FLOAT32)", (int)tensor->dtype,
                         (int)VXD_FLOAT32));
    }
out:
    return status;
}

enum vxd_status vxd_slac_apply_check(struct vxd_request *request, struct vxd_err *err)
{
    const Voxeld__V1__SlacApplyRequest *input =
        (const Voxeld__V1__SlacApplyRequest *)request->input;
    struct apply_job *job = vxd_message_array(request->decoder, 1, sizeof *job, err);
    struct vxd_query *query = &job->base.query;
    size_t n_normals = 0;
    enum vxd_status status;

    if (job == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    request->state = job;
    VXD_TRY(vxd_noun_check_name(input->name, "name", err));
    VXD_TRY(check_rows(input->points, "points", &query->n, err));
    if (input->normals != NULL) {
        VXD_TRY(check_rows(input->normals, "normals", &n_normals, err));
    }
    if (input->normals != NULL && n_normals != query->n) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "normals",
                         "are %zu, there are %zu points", n_normals, query->n));
    }
    VXD_TRY(vxd_slac_read_pose(input->t_grid_points, "T_grid_points",
                               &job->args.T_grid_in, err));
    VXD_TRY(
        vxd_slac_read_pose(input->t_out_grid, "T_out_grid", &job->args.T_out_grid, err));
    job->args.is_inverse = input->inverse;
    job->args.n = query->n;
    request->n_points = query->n;
    request->cost_bytes = (uint64_t)query->n * POINT_BYTES;
    request->bulk = query->n > request->server->config.bulk_points;
out:
    return status;
}

static enum vxd_status upload_rows(struct vxd_queue *queue, struct apply_job *job,
                                   const Voxeld__V1__Tensor *tensor, const char *field,
                                   const float **out, struct vxd_err *err)
{
    size_t n = job->base.query.n;
    enum vxd_dtype dtype = VXD_FLOAT32;
    const void *host = NULL;
    const void *device = NULL;
    enum vxd_status status;

    VXD_TRY(vxd_map_read_rows(&job->base, queue, tensor, field, n, 3, false, &dtype,
                              &host, err));
    VXD_TRY(vxd_map_upload(&job->base, queue, host, n * 12, &device, err));
    *out = device;
out:
    return status;
}

static enum vxd_status reserve(struct vxd_request *request, struct vxd_queue *queue,
                               struct vxd_err *err)
{
    struct apply_job *job = request->state;
    struct vxd_query *query = request->state;
    Voxeld__V1__SlacApplyResponse *reply = (Voxeld__V1__SlacApplyResponse *)query->reply;
    size_t n_normals = job->args.normals != NULL ? query->n : 0;
    enum vxd_status status;

    VXD_TRY(vxd_query_reserve(request, queue, VXD_FLOAT32, 3, &reply->points,
                              &job->points, err));
    VXD_TRY(vxd_query_reserve(request, queue, VXD_UINT8, 0, NULL, &job->inside, err));
    VXD_TRY(vxd_columns_reserve_shown(request, &query->columns, queue, VXD_FLOAT32,
                                      n_normals, 3, &reply->normals, &job->normals, err));
    job->args.out_points = job->points->device;
    job->args.out_normals = job->normals->device;
    job->args.is_inside = job->inside->device;
    reply->n_normals = n_normals;
out:
    return status;
}

static enum vxd_status begin(struct vxd_request *request, struct vxd_queue *queue,
                             struct vxd_err *err)
{
    const Voxeld__V1__SlacApplyRequest *input =
        (const Voxeld__V1__SlacApplyRequest *)request->input;
    struct apply_job *job = request->state;
    bool has_rows = job->base.query.n > 0;
    enum vxd_status status;

    VXD_TRY(vxd_map_open(request, input->name, err));
    VXD_TRY(vxd_slac_open_grid(queue, job->base.map, "name", &job->deform, err));
    if (has_rows) {
        VXD_TRY(upload_rows(queue, job, input->points, "points", &job->args.points, err));
    }
    if (input->normals != NULL && has_rows) {
        VXD_TRY(
            upload_rows(queue, job, input->normals, "normals", &job->args.normals, err));
    }
    status = reserve(request, queue, err);
out:
    return status;
}

static enum vxd_status run(struct vxd_request *request, struct vxd_queue *queue,
                           size_t first, size_t n, struct vxd_err *err)
{
    struct apply_job *job = request->state;

    (void)first; /* all rows are of one stage */
    (void)n;
    return vxd_deform_apply(queue, job->deform, &job->args, err);
}

static enum vxd_status end(struct vxd_request *request, struct vxd_queue *queue,
                           struct vxd_err *err)
{
    struct apply_job *job = request->state;
    Voxeld__V1__SlacApplyResponse *reply =
        (Voxeld__V1__SlacApplyResponse *)job->base.query.reply;

    (void)queue;
    (void)err;
    reply->n_points = job->base.query.n;
    reply->n_inside = vxd_column_count(job->inside, job->base.query.n);
    reply->engine_ms = (double)request->engine_ns / 1e6;
    vxd_map_conclude(request, &job->base.commit, job->base.map, VXD_NAMED_READ);
    return VXD_OK;
}

const struct vxd_query_calls vxd_slac_apply_query = {
    .begin = begin, .run = run, .end = end};

void vxd_slac_apply_release(struct vxd_request *request, struct vxd_queue *queue)
{
    struct apply_job *job = request->state;

    vxd_deform_destroy(queue, job->deform);
    job->deform = NULL;
    vxd_map_release(request, queue);
}

/* --- volumes ------------------------------------------------------------------------------ */

struct deform_job {
    struct vxd_map_job base;         /* first: request->state is both */
    struct vxd_named_volume *volume; /* held */
    struct vxd_named_volume *made;   /* held */
    struct vxd_named_terms terms;
    struct vxd_deform *deform;
    Voxeld__V1__SlacDeformVolumeResponse *reply;
};

enum vxd_status vxd_slac_deform_volume_check(struct vxd_request *request,
                                             struct vxd_err *err)
{
    const Voxeld__V1__SlacDeformVolumeRequest *input =
        (const Voxeld__V1__SlacDeformVolumeRequest *)request->input;
    struct deform_job *job = vxd_message_array(request->decoder, 1, sizeof *job, err);
    enum vxd_status status;

    if (job == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    request->state = job;
    VXD_TRY(vxd_noun_check_name(input->name, "name", err));
    VXD_TRY(vxd_noun_check_name(input->volume, "volume", err));
    VXD_TRY(vxd_noun_check_name(input->to, "to", err));
    (void)snprintf(job->terms.name, sizeof job->terms.name, "%s", input->to);
    (void)snprintf(job->terms.owner, sizeof job->terms.owner, "%s",
                   request->principal.name);
    job->terms.ttl_ns = (int64_t)ceil(input->ttl_s * 1e9);
out:
    return status;
}

static enum vxd_status find_volume(struct vxd_request *request, const char *name,
                                   struct vxd_err *err)
{
    struct deform_job *job = request->state;
    struct vxd_names *volumes = request->server->volumes;
    enum vxd_status status;

    job->volume = vxd_volumes_find(volumes, name);
    if (job->volume == NULL) {
        return vxd_fail(err, VXD_NOT_FOUND, "volume", "there is no volume \"%s\"", name);
    }
    vxd_named_hold(&job->volume->named);
    VXD_TRY(vxd_named_check_visible(&job->volume->named, err));
    if (vxd_volumes_find(volumes, job->terms.name) != NULL) {
        VXD_TRY(vxd_fail(err, VXD_ALREADY_EXISTS, "to",
                         "there is a volume \"%s\" already", job->terms.name));
    }
out:
    return status;
}

enum vxd_status vxd_slac_deform_volume_submit(struct vxd_request *request,
                                              struct vxd_queue *queue,
                                              struct vxd_err *err)
{
    const Voxeld__V1__SlacDeformVolumeRequest *input =
        (const Voxeld__V1__SlacDeformVolumeRequest *)request->input;
    struct deform_job *job = request->state;
    struct vxd_names *volumes = request->server->volumes;
    struct vxd_volume *volume = NULL;
    struct vxd_volume_info info;
    enum vxd_status status;

    job->reply = vxd_message_new(
        request->decoder, &voxeld__v1__slac_deform_volume_response__descriptor, err);
    if (job->reply == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    if (job->volume == NULL) {
        VXD_TRY(find_volume(request, input->volume, err));
    }
    if (vxd_named_is_waiting(volumes, &job->volume->named)) { /* for the disk */
        request->is_waiting = true;
        request->more = true;
        return VXD_OK;
    }
    VXD_TRY(vxd_map_open(request, input->name, err));
    VXD_TRY(vxd_slac_open_grid(queue, job->base.map, "name", &job->deform, err));
    job->terms.max_bytes = job->volume->named.terms.max_bytes;
    vxd_volume_get_info(job->volume->state.volume, &info);
    VXD_TRY(vxd_names_check_copy(volumes, &job->terms, info.n_bytes, err));
    VXD_TRY(vxd_slac_deform_volume(queue, job->volume->state.volume, job->deform, &volume,
                                   err));
    VXD_TRY(vxd_named_volume_new(volumes, queue, &job->terms, &job->volume->spec, volume,
                                 &job->made, err));
    vxd_volume_get_info(job->made->state.volume, &info);
    job->reply->n_blocks = info.n_blocks;
    job->reply->stamp = info.version;
    request->output = &job->reply->base;
out:
    return status;
}

enum vxd_status vxd_slac_deform_volume_finish(struct vxd_request *request,
                                              struct vxd_queue *queue,
                                              struct vxd_err *err)
{
    struct deform_job *job = request->state;

    (void)queue;
    (void)err;
    job->reply->engine_ms = (double)request->engine_ns / 1e6;
    vxd_named_publish(&job->made->named);
    return VXD_OK;
}

void vxd_slac_deform_volume_release(struct vxd_request *request, struct vxd_queue *queue)
{
    struct deform_job *job = request->state;

    vxd_deform_destroy(queue, job->deform);
    job->deform = NULL;
    if (job->made != NULL) {
        vxd_named_drop(&job->made->named, queue);
        job->made = NULL;
    }
    if (job->volume != NULL) {
        vxd_named_drop(&job->volume->named, queue);
        job->volume = NULL;
    }
    vxd_map_release(request, queue);
}
