// SPDX-License-Identifier: Apache-2.0
/* The reply: its tensors point at the engine's arrays, so no row is copied before the
 * transport packs the message. */
#include "server/service/service.h"
#include "server/service/voxelize/voxelize_job.h"

#define MAX_EXTENTS 3

static enum vxd_status set_tensor(struct vxd_request *request, enum vxd_result i,
                                  Voxeld__V1__DType dtype, const int64_t *shape,
                                  size_t n_shape, Voxeld__V1__Tensor **out,
                                  struct vxd_err *err)
{
    const struct vxd_voxelize_job *job = request->state;
    const struct vxd_result_array *result = &job->results[i];
    Voxeld__V1__Tensor *tensor;

    if (!result->sent) {
        return VXD_OK;
    }
    tensor = vxd_message_new(request->decoder, &voxeld__v1__tensor__descriptor, err);
    if (tensor == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    tensor->shape = vxd_message_array(request->decoder, n_shape, sizeof *shape, err);
    if (tensor->shape == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    memcpy(tensor->shape, shape, n_shape * sizeof *shape);
    tensor->n_shape = n_shape;
    tensor->dtype = dtype;
    tensor->data.len = (size_t)shape[0] * result->row_bytes;
    /* The wire reads, the field's type does not say so. */
    tensor->data.data = tensor->data.len > 0 ? (uint8_t *)(uintptr_t)result->bytes : NULL;
    *out = tensor;
    return VXD_OK;
}

static enum vxd_status set_tensors(struct vxd_request *request,
                                   Voxeld__V1__VoxelizeResponse *reply,
                                   struct vxd_err *err)
{
    const struct vxd_voxelize_job *job = request->state;
    const int64_t m = (int64_t)vxd_voxelize_n_voxels(job);
    const int64_t c = job->args.n_channels;
    const int64_t coords[] = {m, 4};
    const int64_t rows[] = {m};
    const int64_t points[] = {(int64_t)job->args.n_points};
    const int64_t channels[] = {m, c};
    const int64_t hard[MAX_EXTENTS] = {m, job->args.max_points, c};
    const struct {
        enum vxd_result result;
        Voxeld__V1__DType dtype;
        const int64_t *shape;
        size_t n_shape;
        Voxeld__V1__Tensor **to;
    } tensors[] = {
        {VXD_RESULT_COORDS, VOXELD__V1__DTYPE__INT32, coords, 2, &reply->coords},
        {VXD_RESULT_COUNTS, VOXELD__V1__DTYPE__UINT32, rows, 1, &reply->counts},
        {VXD_RESULT_INVERSE, VOXELD__V1__DTYPE__INT32, points, 1, &reply->inverse},
        {VXD_RESULT_FIRST_POINT, VOXELD__V1__DTYPE__UINT32, rows, 1, &reply->first_index},
        {VXD_RESULT_MEAN, VOXELD__V1__DTYPE__FLOAT32, channels, 2, &reply->mean},
        {VXD_RESULT_SUM, VOXELD__V1__DTYPE__FLOAT32, channels, 2, &reply->sum},
        {VXD_RESULT_MIN, VOXELD__V1__DTYPE__FLOAT32, channels, 2, &reply->min},
        {VXD_RESULT_MAX, VOXELD__V1__DTYPE__FLOAT32, channels, 2, &reply->max},
        {VXD_RESULT_FIRST, VOXELD__V1__DTYPE__FLOAT32, channels, 2, &reply->first},
        {VXD_RESULT_POINTS, VOXELD__V1__DTYPE__FLOAT32, hard, 3, &reply->points},
    };

    for (size_t i = 0; i < sizeof tensors / sizeof tensors[0]; i++) {
        enum vxd_status status =
            set_tensor(request, tensors[i].result, tensors[i].dtype, tensors[i].shape,
                       tensors[i].n_shape, tensors[i].to, err);

        if (status != VXD_OK) {
            return status;
        }
    }
    return VXD_OK;
}

static enum vxd_status set_items(struct vxd_request *request,
                                 Voxeld__V1__VoxelizeResponse *reply, struct vxd_err *err)
{
    const struct vxd_voxelize_job *job = request->state;
    const struct vxd_voxel_totals *totals = job->results[VXD_RESULT_TOTALS].bytes;
    const uint32_t *starts = job->results[VXD_RESULT_STARTS].bytes;
    size_t n = job->input->n_clouds;

    reply->items = vxd_message_pointers(request->decoder, n, err);
    if (reply->items == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    for (size_t i = 0; i < n; i++) {
        Voxeld__V1__VoxelizeItem *item = vxd_message_new(
            request->decoder, &voxeld__v1__voxelize_item__descriptor, err);

        if (item == NULL) {
            return VXD_RESOURCE_EXHAUSTED;
        }
        item->stamp_ns = job->input->clouds[i]->stamp_ns;
        item->frame_id = job->input->clouds[i]->frame_id;
        item->n_points = job->clouds.starts[i + 1] - job->clouds.starts[i];
        item->n_used = totals[i].n_used;
        item->n_non_finite = totals[i].n_non_finite;
        item->n_out_of_range = totals[i].n_out_of_range;
        item->n_over_max_voxels = totals[i].n_over_max_voxels;
        item->n_over_max_points = totals[i].n_over_max_points;
        item->first_voxel = starts[i];
        item->n_voxels = totals[i].n_voxels;
        item->first_point = job->clouds.starts[i];
        reply->items[i] = item;
    }
    reply->n_items = n;
    return VXD_OK;
}

static Voxeld__V1__Vec3 *new_vector(struct vxd_request *request, double x, double y,
                                    double z, struct vxd_err *err)
{
    Voxeld__V1__Vec3 *v =
        vxd_message_new(request->decoder, &voxeld__v1__vec3__descriptor, err);

    if (v != NULL) {
        v->x = x;
        v->y = y;
        v->z = z;
    }
    return v;
}

/* What the coordinates mean. */
static enum vxd_status set_lattice(struct vxd_request *request,
                                   Voxeld__V1__VoxelizeResponse *reply,
                                   struct vxd_err *err)
{
    const struct vxd_voxelize_job *job = request->state;
    const Voxeld__V1__Vec3 *size = job->input->size;
    bool is_spconv = job->rule == VOXELD__V1__VOXEL_RULE__SPCONV;
    const Voxeld__V1__Vec3 *low = is_spconv ? job->input->range->low : NULL;
    const double *origin = job->clouds.origin;
    const char *frame =
        origin[0] == 0 && origin[1] == 0 && origin[2] == 0 ? "map" : "origin";

    reply->size = new_vector(request, size->x, size->y, size->z, err);
    reply->origin = new_vector(request, job->clouds.origin[0], job->clouds.origin[1],
                               job->clouds.origin[2], err);
    reply->low = new_vector(request, low != NULL ? low->x : 0, low != NULL ? low->y : 0,
                            low != NULL ? low->z : 0, err);
    reply->axes = vxd_message_text(request->decoder, "xyz", 3, err);
    reply->frame = vxd_message_text(request->decoder, frame, strlen(frame), err);
    if (reply->size == NULL || reply->origin == NULL || reply->low == NULL ||
        reply->axes == NULL || reply->frame == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    reply->rule = job->rule;
    if (is_spconv) {
        reply->grid = vxd_message_array(request->decoder, 3, sizeof *reply->grid, err);
        if (reply->grid == NULL) {
            return VXD_RESOURCE_EXHAUSTED;
        }
        memcpy(reply->grid, job->grid, sizeof job->grid);
        reply->n_grid = 3;
    }
    return VXD_OK;
}

static enum vxd_status set_features(struct vxd_request *request,
                                    Voxeld__V1__VoxelizeResponse *reply,
                                    struct vxd_err *err)
{
    const struct vxd_voxelize_job *job = request->state;
    size_t n = (size_t)job->args.n_channels;

    reply->features = vxd_message_pointers(request->decoder, n, err);
    if (reply->features == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    for (size_t i = 0; i < n; i++) {
        reply->features[i] =
            vxd_message_text(request->decoder, job->clouds.channels[i].name,
                             strlen(job->clouds.channels[i].name), err);
        if (reply->features[i] == NULL) {
            return VXD_RESOURCE_EXHAUSTED;
        }
    }
    reply->n_features = n;
    return VXD_OK;
}

enum vxd_status vxd_voxelize_reply(struct vxd_request *request, struct vxd_err *err)
{
    const struct vxd_voxelize_job *job = request->state;
    Voxeld__V1__VoxelizeResponse *reply = vxd_message_new(
        request->decoder, &voxeld__v1__voxelize_response__descriptor, err);
    enum vxd_status status;

    if (reply == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    reply->n_voxels = vxd_voxelize_n_voxels(job);
    reply->engine_ms = (double)request->engine_ns / 1e6;
    VXD_TRY(set_items(request, reply, err));
    VXD_TRY(set_tensors(request, reply, err));
    VXD_TRY(set_lattice(request, reply, err));
    VXD_TRY(set_features(request, reply, err));
    request->output = &reply->base;
out:
    return status;
}
