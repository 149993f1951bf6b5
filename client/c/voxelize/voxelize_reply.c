// SPDX-License-Identifier: Apache-2.0
/* Turns the wire's reply into the public struct. The server is not trusted: every
 * length is checked against the counts, every index against its array, before a
 * pointer goes out. */
#include "client/c/voxelize/c_voxelize.h"

enum {
    MAX_AXES = 3
};

/* requested: a missing tensor is an error; else *out may become NULL. */
static enum vxd_status tensor(const Voxeld__V1__Tensor *t, const char *name,
                              bool requested, Voxeld__V1__DType dtype,
                              const size_t *shape, size_t n_axes, const void **out,
                              struct vxd_err *err)
{
    *out = NULL;
    return requested ? vxd_reply_tensor(t, name, dtype, shape, n_axes, out, err) : VXD_OK;
}

static enum vxd_status items(struct voxeld_voxels *v,
                             const struct vxd_voxelize_expect *expect,
                             struct vxd_err *err)
{
    const Voxeld__V1__VoxelizeResponse *in = vxd_result_reply(v)->response->voxelize;
    struct voxeld_item *list;

    if (in->n_items != expect->n_clouds) {
        return vxd_reply_bad(err, "items", "not one for each cloud");
    }
    list = vxd_reply_alloc(vxd_result_reply(v), in->n_items, sizeof *list);
    if (list == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for the result");
    }
    for (size_t i = 0; i < in->n_items; i++) {
        const Voxeld__V1__VoxelizeItem *item = in->items[i];

        if (item->first_voxel > in->n_voxels ||
            item->n_voxels > in->n_voxels - item->first_voxel) {
            return vxd_reply_bad(err, "items", "voxels outside the array");
        }
        if (item->first_point != v->n_points ||
            !vxd_size_add(v->n_points, (size_t)item->n_points, &v->n_points)) {
            return vxd_reply_bad(err, "items", "the points do not follow one another");
        }
        list[i] = (struct voxeld_item){
            .stamp_ns = item->stamp_ns,
            .frame_id = item->frame_id,
            .n_points = item->n_points,
            .n_used = item->n_used,
            .n_non_finite = item->n_non_finite,
            .n_out_of_range = item->n_out_of_range,
            .n_over_max_voxels = item->n_over_max_voxels,
            .n_over_max_points = item->n_over_max_points,
            .first_voxel = (size_t)item->first_voxel,
            .n_voxels = (size_t)item->n_voxels,
            .first_point = (size_t)item->first_point,
        };
    }
    v->items = list;
    v->n_items = in->n_items;
    return VXD_OK;
}

static enum vxd_status integers(struct voxeld_voxels *v, uint32_t outputs,
                                struct vxd_err *err)
{
    const Voxeld__V1__VoxelizeResponse *in = vxd_result_reply(v)->response->voxelize;
    const size_t rows[2] = {v->n_voxels, 4};
    const void *coords;
    const void *counts;
    const void *inverse;
    const void *first_index;
    enum vxd_status status;

    VXD_TRY(tensor(in->coords, "coords", (outputs & VOXELD_OUTPUT_COORDS) != 0,
                   VOXELD__V1__DTYPE__INT32, rows, 2, &coords, err));
    VXD_TRY(tensor(in->counts, "counts", (outputs & VOXELD_OUTPUT_COUNTS) != 0,
                   VOXELD__V1__DTYPE__UINT32, rows, 1, &counts, err));
    VXD_TRY(tensor(in->inverse, "inverse", (outputs & VOXELD_OUTPUT_INVERSE) != 0,
                   VOXELD__V1__DTYPE__INT32, &v->n_points, 1, &inverse, err));
    VXD_TRY(tensor(in->first_index, "first_index",
                   (outputs & VOXELD_OUTPUT_FIRST_INDEX) != 0, VOXELD__V1__DTYPE__UINT32,
                   rows, 1, &first_index, err));
    v->coords = coords;
    v->counts = counts;
    v->inverse = inverse;
    v->first_index = first_index;
    for (size_t i = 0; inverse != NULL && i < v->n_points; i++) {
        if (v->inverse[i] < -1 ||
            (v->inverse[i] >= 0 && (size_t)v->inverse[i] >= v->n_voxels)) {
            return vxd_reply_bad(err, "inverse", "a voxel that does not exist");
        }
    }
out:
    return status;
}

static enum vxd_status features(struct voxeld_voxels *v,
                                const struct vxd_voxelize_expect *expect,
                                struct vxd_err *err)
{
    const Voxeld__V1__VoxelizeResponse *in = vxd_result_reply(v)->response->voxelize;
    const struct {
        const Voxeld__V1__Tensor *tensor;
        const char *name;
        uint32_t bit;
        const float **out;
    } reductions[] = {
        {in->mean, "mean", VOXELD_REDUCE_MEAN, &v->mean},
        {in->sum, "sum", VOXELD_REDUCE_SUM, &v->sum},
        {in->min, "min", VOXELD_REDUCE_MIN, &v->min},
        {in->max, "max", VOXELD_REDUCE_MAX, &v->max},
        {in->first, "first", VOXELD_REDUCE_FIRST, &v->first},
    };
    const size_t rows[2] = {v->n_voxels, in->n_features};
    const size_t padded[MAX_AXES] = {v->n_voxels, expect->max_points, in->n_features};
    const void *data;
    enum vxd_status status;

    v->features = (const char *const *)in->features;
    v->n_channels = in->n_features;
    for (size_t i = 0; i < sizeof reductions / sizeof reductions[0]; i++) {
        VXD_TRY(tensor(reductions[i].tensor, reductions[i].name,
                       (expect->reduce & reductions[i].bit) != 0,
                       VOXELD__V1__DTYPE__FLOAT32, rows, 2, &data, err));
        *reductions[i].out = data;
    }
    VXD_TRY(tensor(in->points, "points", (expect->outputs & VOXELD_OUTPUT_POINTS) != 0,
                   VOXELD__V1__DTYPE__FLOAT32, padded, MAX_AXES, &data, err));
    v->points = data;
    v->max_points = data != NULL ? expect->max_points : 0;
out:
    return status;
}

static enum vxd_status echo(struct voxeld_voxels *v, struct vxd_err *err)
{
    const Voxeld__V1__Response *response = vxd_result_reply(v)->response;
    const Voxeld__V1__VoxelizeResponse *in = response->voxelize;

    if (in->n_grid != 0 && in->n_grid != 3) {
        return vxd_reply_bad(err, "grid", "not three numbers");
    }
    for (size_t i = 0; i < in->n_grid; i++) {
        v->grid[i] = in->grid[i];
    }
    vxd_reply_vec3(in->size, v->size_m);
    vxd_reply_vec3(in->origin, v->origin_m);
    vxd_reply_vec3(in->low, v->low_m);
    v->rule = (enum voxeld_rule)in->rule;
    v->engine_ms = in->engine_ms;
    v->queue_ms = response->header->queue_ms;
    v->total_ms = response->header->total_ms;
    v->request_id = response->header->request_id;
    if (in->merged != NULL) {
        v->n_merged = in->merged->n_new;
        v->n_map_entries = in->merged->n_entries;
    }
    v->replayed = response->header->replayed;
    v->arrays_dropped = response->header->arrays_dropped;
    return VXD_OK;
}

struct vxd_voxelize_expect
vxd_voxelize_expect_of(const struct voxeld_voxelize_request *request)
{
    struct vxd_voxelize_expect expect = {
        .n_clouds = request->n_clouds,
        .outputs = request->outputs,
        .reduce = request->reduce,
        .max_points = request->max_points,
        .merges = request->merge.map != NULL,
    };

    if (expect.outputs == 0) {
        expect.outputs = (uint32_t)VOXELD_OUTPUT_COORDS | VOXELD_OUTPUT_COUNTS;
    }
    if (request->no_features) {
        expect.reduce = 0;
    } else if (expect.reduce == 0) {
        expect.reduce = VOXELD_REDUCE_MEAN;
    }
    return expect;
}

enum vxd_status vxd_voxels_open(struct vxd_reply *take_reply,
                                const struct vxd_voxelize_expect *expect,
                                struct voxeld_voxels **out, struct vxd_err *err)
{
    struct voxeld_voxels *voxels = vxd_result_new(take_reply, sizeof *voxels, err);
    const Voxeld__V1__Response *response;
    enum vxd_status status;

    if (voxels == NULL) {
        vxd_reply_close(take_reply);
        return VXD_RESOURCE_EXHAUSTED;
    }
    response = vxd_result_reply(voxels)->response;
    if (response->voxelize->n_voxels > INT32_MAX) {
        /* This is also the largest index that an int32 inverse map can hold. */
        status = vxd_reply_bad(err, "n_voxels", "more than 2^31 - 1");
        goto out;
    }
    voxels->n_voxels = (size_t)response->voxelize->n_voxels;
    VXD_TRY(echo(voxels, err));
    if (!voxels->arrays_dropped || response->voxelize->n_items > 0) {
        VXD_TRY(items(voxels, expect, err));
    }
    if (!voxels->arrays_dropped) {
        VXD_TRY(integers(voxels, expect->outputs, err));
        VXD_TRY(features(voxels, expect, err));
    }
    if (expect->merges && response->voxelize->merged == NULL) {
        VXD_TRY(vxd_reply_bad(err, "merged", "requested, but missing"));
    }
    *out = voxels;
    return VXD_OK;
out:
    voxeld_voxels_free(voxels);
    return status;
}

void voxeld_voxels_free(struct voxeld_voxels *voxels)
{
    vxd_result_free(voxels);
}
