// SPDX-License-Identifier: Apache-2.0
/* Brings the clouds of all requests of a batch to the voxels that go into the network. */
#include <math.h>

#include "server/service/infer/infer.h"
#include "server/service/service.h"

/* Cells from the origin that a network counts to, less what its layers may add. */
#define MAX_CELLS ((1 << (VXD_SPARSE_COORD_BITS - 1)) - 4096)

void vxd_infer_voxelize_args(const struct vxd_model_input *input,
                             struct vxd_voxelize_args *out)
{
    *out = input->voxelize;
    if (out->rule == VXD_RULE_SPCONV) {
        return; /* bounded by its shape */
    }
    for (int i = 0; i < 3; i++) {
        float reach_m = (float)MAX_CELLS * out->size_m[i];

        if (!out->has_range || out->range_lo_m[i] < -reach_m) {
            out->range_lo_m[i] = -reach_m;
        }
        if (!out->has_range || out->range_hi_m[i] > reach_m) {
            out->range_hi_m[i] = reach_m;
        }
    }
    out->has_range = true;
}

static enum vxd_status allocate(struct vxd_infer_batch *batch, struct vxd_queue *queue,
                                struct vxd_err *err)
{
    const struct vxd_model_input *input = vxd_model_input(batch->network->model);
    size_t n_features = (size_t)input->n_features;
    size_t capacity = vxd_voxelize_capacity(&batch->args);
    size_t n_bytes = 0;
    size_t offsets[5];
    uint8_t *block;
    float **reduced[] = {[VXD_MODEL_MEAN] = &batch->voxels.mean,
                         [VXD_MODEL_FIRST] = &batch->voxels.first,
                         [VXD_MODEL_MAX] = &batch->voxels.max,
                         [VXD_MODEL_SUM] = &batch->voxels.sum};
    enum vxd_status status;

    if (!vxd_layout_add(&n_bytes, batch->n_items, sizeof(struct vxd_voxel_totals),
                        &offsets[0]) ||
        !vxd_layout_add(&n_bytes, batch->n_items + 1, sizeof(uint32_t), &offsets[1]) ||
        !vxd_layout_add(&n_bytes, capacity, 4 * sizeof(int32_t), &offsets[2]) ||
        !vxd_layout_add(&n_bytes, capacity, n_features * sizeof(float), &offsets[3]) ||
        !vxd_layout_add(&n_bytes, batch->wants_inverse ? batch->args.n_points : 0,
                        sizeof(int32_t), &offsets[4])) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "%zu points are too many",
                        batch->args.n_points);
    }
    status = vxd_device_alloc(queue, n_bytes, &batch->results, err);
    if (status != VXD_OK) {
        return status;
    }
    block = batch->results.ptr;
    batch->voxels.capacity = capacity;
    batch->voxels.totals = (struct vxd_voxel_totals *)(void *)(block + offsets[0]);
    batch->voxels.starts = (uint32_t *)(void *)(block + offsets[1]);
    batch->voxels.coords = (int32_t *)(void *)(block + offsets[2]);
    batch->features = (float *)(void *)(block + offsets[3]);
    *reduced[input->reduce] = batch->features;
    if (batch->wants_inverse) {
        batch->voxels.inverse = (int32_t *)(void *)(block + offsets[4]);
        batch->inverse = batch->voxels.inverse;
    }
    return VXD_OK;
}

/* Groups the points that batch->args names. */
static enum vxd_status group(struct vxd_infer_batch *batch, struct vxd_queue *queue,
                             struct vxd_err *err)
{
    enum vxd_status status;
    const void *totals = NULL;
    const void *starts = NULL;

    VXD_TRY(allocate(batch, queue, err));
    VXD_TRY(vxd_voxelize(queue, &batch->args, &batch->voxels, err));
    VXD_TRY(vxd_download(queue, batch->voxels.totals,
                         batch->n_items * sizeof(struct vxd_voxel_totals),
                         &batch->totals_host, &totals, err));
    VXD_TRY(vxd_download(queue, batch->voxels.starts,
                         (batch->n_items + 1) * sizeof(uint32_t), &batch->starts_host,
                         &starts, err));
    batch->totals = totals;
    batch->voxel_starts = starts;
out:
    return status;
}

static enum vxd_status decode_members(struct vxd_request *leader, struct vxd_queue *queue,
                                      float *positions, float *features,
                                      struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    for (struct vxd_request *r = leader; r != NULL && status == VXD_OK;
         r = vxd_infer_next(leader, r)) {
        const struct vxd_infer_job *job = r->state;

        status = vxd_clouds_decode(
            &job->clouds, queue, positions + 3 * job->first_point,
            features + (size_t)job->clouds.n_channels * job->first_point, err);
    }
    return status;
}

/* For networks that normalize, the points go to the host next. */
static enum vxd_status fetch_raw(struct vxd_infer_batch *batch, struct vxd_queue *queue,
                                 const float *positions, const float *features,
                                 struct vxd_err *err)
{
    size_t n_features = (size_t)batch->args.n_channels;
    const void *bytes = NULL;
    enum vxd_status status = VXD_OK;

    if (batch->n_points > 0) {
        VXD_TRY(vxd_download(queue, positions, batch->n_points * 3 * sizeof(float),
                             &batch->raw_positions_host, &bytes, err));
        batch->raw_positions = bytes;
        VXD_TRY(vxd_download(queue, features,
                             batch->n_points * n_features * sizeof(float),
                             &batch->raw_features_host, &bytes, err));
        batch->raw_features = bytes;
    }
    batch->stage = VXD_INFER_NORMALIZE;
out:
    return status;
}

enum vxd_status vxd_infer_decode(struct vxd_request *leader, struct vxd_queue *queue,
                                 struct vxd_err *err)
{
    struct vxd_infer_batch *batch = ((struct vxd_infer_job *)leader->state)->batch;
    const struct vxd_model_input *input = vxd_model_input(batch->network->model);
    size_t n_bytes = 0;
    size_t offset;
    float *positions;
    float *features;
    enum vxd_status status;

    if (!vxd_layout_add(&n_bytes, batch->n_points, 3 * sizeof(float), &offset) ||
        !vxd_layout_add(&n_bytes, batch->n_points,
                        (size_t)input->n_features * sizeof(float),
                        &batch->features_offset)) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "%zu points are too many",
                        batch->n_points);
    }
    VXD_TRY(vxd_device_alloc(queue, n_bytes > 0 ? n_bytes : 1, &batch->work, err));
    positions = batch->work.ptr;
    features = (float *)(void *)((uint8_t *)batch->work.ptr + batch->features_offset);
    VXD_TRY(decode_members(leader, queue, positions, features, err));
    if (input->normalize.used) {
        return fetch_raw(batch, queue, positions, features, err);
    }
    batch->args.positions = positions;
    batch->args.features = features;
    batch->args.n_points = batch->n_points;
    batch->args.batch_starts = batch->starts;
    batch->stage = VXD_INFER_MAPS;
    VXD_TRY(group(batch, queue, err));
out:
    return status;
}

enum vxd_status vxd_infer_normalize(struct vxd_request *leader, struct vxd_queue *queue,
                                    struct vxd_err *err)
{
    struct vxd_infer_batch *batch = ((struct vxd_infer_job *)leader->state)->batch;
    size_t n = 0;
    const void *bytes = NULL;
    enum vxd_status status;

    VXD_TRY(vxd_infer_pick(leader, queue, err));
    n = batch->starts[batch->n_items];
    batch->args.n_points = n;
    batch->args.batch_starts = batch->starts;
    if (n > 0) {
        size_t n_floats = n * (3 + (size_t)batch->args.n_channels);

        VXD_TRY(vxd_upload(queue, batch->normal_host.ptr, n_floats * sizeof(float),
                           &batch->normal_device, &bytes, err));
        batch->args.positions = bytes;
        batch->args.features = batch->args.positions + 3 * n;
    }
    batch->stage = VXD_INFER_MAPS;
    VXD_TRY(group(batch, queue, err));
    if (batch->wants_inverse && n > 0) {
        VXD_TRY(vxd_download(queue, batch->voxels.inverse, n * sizeof(int32_t),
                             &batch->kept_inverse_host, &bytes, err));
        batch->kept_inverse = bytes;
    }
out:
    return status;
}
