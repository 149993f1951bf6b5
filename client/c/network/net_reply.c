// SPDX-License-Identifier: Apache-2.0
/* The outputs of a reply to Infer as the public structs. The server is not
 * trusted: every length is checked against the counts before a pointer goes out. */
#include <string.h>

#include "client/c/network/c_network.h"

/* The points of all items follow one another. */
static enum vxd_status check_items(const struct voxeld_infer_request *request,
                                   const struct voxeld_inference *in, size_t *n_points,
                                   struct vxd_err *err)
{
    *n_points = 0;
    if (in->n_items != request->n_clouds) {
        return vxd_reply_bad(err, "items", "not one for each cloud");
    }
    for (size_t i = 0; i < in->n_items; i++) {
        if (in->items[i].first_point != *n_points ||
            !vxd_size_add(*n_points, (size_t)in->items[i].n_points, n_points)) {
            return vxd_reply_bad(err, "items", "the points do not follow one another");
        }
    }
    return VXD_OK;
}

/* Copies the axes of the values; the first one must be n_rows (SIZE_MAX: any). */
static enum vxd_status copy_shape(const Voxeld__V1__Tensor *values, size_t n_rows,
                                  size_t n_axes, struct voxeld_infer_output *out,
                                  struct vxd_err *err)
{
    if (values == NULL || values->n_shape != n_axes) {
        return vxd_reply_bad(err, "values", "missing, or with another number of axes");
    }
    for (size_t i = 0; i < n_axes; i++) {
        if (values->shape[i] < 0) {
            return vxd_reply_bad(err, "values", "a shape below zero");
        }
        out->shape[i] = (size_t)values->shape[i];
    }
    if (n_rows != SIZE_MAX && out->shape[0] != n_rows) {
        return vxd_reply_bad(err, "values", "not a row for each point or item");
    }
    out->n_axes = n_axes;
    return VXD_OK;
}

/* Checks the first row of each item: these rise from 0 to the number of rows. */
static enum vxd_status copy_first_rows(const Voxeld__V1__InferOutput *in, size_t n_items,
                                       struct voxeld_infer_output *out,
                                       struct vxd_err *err)
{
    bool good = in->n_first_rows == n_items + 1 && in->first_rows[0] == 0 &&
                in->first_rows[n_items] == out->shape[0];

    for (size_t i = 0; i < n_items && good; i++) {
        good = in->first_rows[i] <= in->first_rows[i + 1];
    }
    if (!good) {
        return vxd_reply_bad(err, "first_rows", "they do not follow one another");
    }
    out->first_rows = in->first_rows;
    return VXD_OK;
}

static enum vxd_status copy_output(const Voxeld__V1__InferOutput *in,
                                   const struct voxeld_infer_request *request,
                                   size_t n_points, struct voxeld_infer_output *out,
                                   struct vxd_err *err)
{
    Voxeld__V1__DType dtype = request->dtype == VOXELD_FLOAT16
                                  ? VOXELD__V1__DTYPE__FLOAT16
                                  : VOXELD__V1__DTYPE__FLOAT32;
    size_t n_rows = in->kind == VOXELD__V1__NETWORK_OUTPUT_KIND__NETWORK_VOXELS ? SIZE_MAX
                    : in->kind == VOXELD__V1__NETWORK_OUTPUT_KIND__NETWORK_POINTS
                        ? n_points
                        : request->n_clouds;
    size_t n_axes = in->kind == VOXELD__V1__NETWORK_OUTPUT_KIND__NETWORK_DENSE ? 4
                    : in->labels != NULL                                       ? 1
                                                                               : 2;
    size_t coords_shape[2] = {0, 4};
    const void *bytes = NULL;
    enum vxd_status status;

    out->name = in->name;
    out->kind = (enum voxeld_output_kind)in->kind;
    out->dtype = (enum voxeld_dtype)dtype;
    VXD_TRY(vxd_reply_int32s(in->stride, in->n_stride, "stride", 3, out->stride, err));
    VXD_TRY(copy_shape(in->values, n_rows, n_axes, out, err));
    VXD_TRY(vxd_reply_tensor(in->values, "values", dtype, out->shape, n_axes,
                             &out->values, err));
    if (in->labels != NULL) {
        VXD_TRY(vxd_reply_tensor(in->labels, "labels", VOXELD__V1__DTYPE__INT32,
                                 out->shape, 1, &bytes, err));
        out->labels = bytes;
    }
    if (out->kind == VOXELD_KIND_VOXELS) {
        VXD_TRY(copy_first_rows(in, request->n_clouds, out, err));
    }
    if (out->kind == VOXELD_KIND_VOXELS && !request->no_coords) {
        coords_shape[0] = out->shape[0];
        VXD_TRY(vxd_reply_tensor(in->coords, "coords", VOXELD__V1__DTYPE__INT32,
                                 coords_shape, 2, &bytes, err));
        out->coords = bytes;
    }
out:
    return status;
}

enum vxd_status vxd_inference_outputs(const struct voxeld_infer_request *request,
                                      struct voxeld_inference *inference,
                                      struct vxd_err *err)
{
    struct vxd_reply *reply = vxd_result_reply(inference);
    const Voxeld__V1__InferResponse *in = reply->response->infer;
    struct voxeld_infer_output *list =
        vxd_reply_alloc(reply, in->n_outputs, sizeof *list);
    size_t n_points;
    enum vxd_status status;

    VXD_TRY(check_items(request, inference, &n_points, err));
    if (list == NULL) {
        return vxd_reply_no_memory(err);
    }
    for (size_t i = 0; i < in->n_outputs; i++) {
        VXD_TRY(copy_output(in->outputs[i], request, n_points, &list[i], err));
    }
    inference->outputs = list;
    inference->n_outputs = in->n_outputs;
out:
    return status;
}

const struct voxeld_infer_output *
voxeld_inference_output(const struct voxeld_inference *inference, const char *name)
{
    for (size_t i = 0; i < inference->n_outputs; i++) {
        if (strcmp(inference->outputs[i].name, name) == 0) {
            return &inference->outputs[i];
        }
    }
    return NULL;
}
