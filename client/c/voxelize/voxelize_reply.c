// SPDX-License-Identifier: Apache-2.0
/* The arrays of a reply to Voxelize as the public struct has them. The server is not trusted: every
 * length is checked against the counts, every index against its array, before a pointer goes out. */
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

/* What a reply must hold to answer its request. */
struct expect {
    uint32_t outputs;
    uint32_t reduce; /* 0: no features */
    uint32_t max_points;
};

static struct expect expect_of(const struct voxeld_voxelize_request *request)
{
    struct expect expect = {.outputs = request->outputs,
                            .reduce = request->reduce,
                            .max_points = request->max_points};

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

/* Checks the items against the request and the voxels, and counts the points of all. */
static enum vxd_status items(struct voxeld_voxels *v, size_t n_clouds,
                             struct vxd_err *err)
{
    if (v->n_items != n_clouds) {
        return vxd_reply_bad(err, "items", "not one for each cloud");
    }
    for (size_t i = 0; i < v->n_items; i++) {
        const struct voxeld_item *item = &v->items[i];

        if (item->first_voxel > v->n_voxels ||
            item->n_voxels > v->n_voxels - item->first_voxel) {
            return vxd_reply_bad(err, "items", "voxels outside the array");
        }
        if (item->first_point != v->n_points ||
            !vxd_size_add(v->n_points, (size_t)item->n_points, &v->n_points)) {
            return vxd_reply_bad(err, "items", "the points do not follow one another");
        }
    }
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

static enum vxd_status features(struct voxeld_voxels *v, const struct expect *expect,
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

static enum vxd_status grid(struct voxeld_voxels *v, struct vxd_err *err)
{
    const Voxeld__V1__VoxelizeResponse *in = vxd_result_reply(v)->response->voxelize;

    return in->n_grid == 0
               ? VXD_OK
               : vxd_reply_int32s(in->grid, in->n_grid, "grid", 3, v->grid, err);
}

static enum vxd_status merged(struct voxeld_voxels *v, bool merges, struct vxd_err *err)
{
    const Voxeld__V1__VoxelizeMerged *in =
        vxd_result_reply(v)->response->voxelize->merged;

    if (in == NULL) {
        return merges ? vxd_reply_bad(err, "merged", "requested, but missing") : VXD_OK;
    }
    v->n_merged = in->n_new;
    v->n_map_entries = in->n_entries;
    return VXD_OK;
}

enum vxd_status vxd_voxels_check(const struct voxeld_voxelize_request *request,
                                 struct voxeld_voxels *voxels, struct vxd_err *err)
{
    const struct expect expect = expect_of(request);
    enum vxd_status status;

    if (voxels->n_voxels > INT32_MAX) {
        /* This is also the largest index that an int32 inverse map can hold. */
        return vxd_reply_bad(err, "n_voxels", "more than 2^31 - 1");
    }
    VXD_TRY(grid(voxels, err));
    if (!voxels->arrays_dropped || voxels->n_items > 0) {
        VXD_TRY(items(voxels, request->n_clouds, err));
    }
    if (!voxels->arrays_dropped) {
        VXD_TRY(integers(voxels, expect.outputs, err));
        VXD_TRY(features(voxels, &expect, err));
    }
    status = merged(voxels, request->merge.map != NULL, err);
out:
    return status;
}
