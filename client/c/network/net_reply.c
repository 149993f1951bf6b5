// SPDX-License-Identifier: Apache-2.0
/* Turns the wire's reply to Infer into the public structs. The server is not
 * trusted: every length is checked against the counts before a pointer goes out. */
#include <string.h>

#include "client/c/network/net_call.h"

static enum vxd_status copy_items(struct voxeld_inference *inference,
                                  const struct voxeld_infer_request *request,
                                  size_t *n_points, struct vxd_err *err)
{
    const Voxeld__V1__InferResponse *in = vxd_result_reply(inference)->response->infer;
    struct voxeld_infer_item *list;

    *n_points = 0;
    if (in->n_items != request->n_clouds) {
        return vxd_reply_bad(err, "items", "not one for each cloud");
    }
    list = vxd_reply_alloc(vxd_result_reply(inference), in->n_items, sizeof *list);
    if (list == NULL) {
        return vxd_reply_no_memory(err);
    }
    for (size_t i = 0; i < in->n_items; i++) {
        const Voxeld__V1__InferItem *item = in->items[i];

        if (item->first_point != *n_points ||
            !vxd_size_add(*n_points, (size_t)item->n_points, n_points)) {
            return vxd_reply_bad(err, "items", "the points do not follow one another");
        }
        list[i] = (struct voxeld_infer_item){
            .code = (enum voxeld_status)item->code,
            .message = item->message,
            .stamp_ns = item->stamp_ns,
            .frame_id = item->frame_id,
            .n_points = item->n_points,
            .n_used = item->n_used,
            .n_non_finite = item->n_non_finite,
            .n_out_of_range = item->n_out_of_range,
            .n_over_max_voxels = item->n_over_max_voxels,
            .n_over_max_points = item->n_over_max_points,
            .n_not_picked = item->n_not_picked,
            .n_voxels = item->n_voxels,
            .first_point = (size_t)item->first_point,
        };
    }
    inference->items = list;
    inference->n_items = in->n_items;
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

static enum vxd_status copy_results(struct voxeld_inference *inference,
                                    const struct voxeld_infer_request *request,
                                    size_t n_points, struct vxd_err *err)
{
    const Voxeld__V1__InferResponse *in = vxd_result_reply(inference)->response->infer;
    struct voxeld_infer_output *list =
        vxd_reply_alloc(vxd_result_reply(inference), in->n_outputs, sizeof *list);
    enum vxd_status status = VXD_OK;

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

static void echo(struct voxeld_inference *out)
{
    const Voxeld__V1__ResponseHeader *header = vxd_result_reply(out)->response->header;
    const Voxeld__V1__InferResponse *in = vxd_result_reply(out)->response->infer;

    out->network = in->network;
    out->digest = in->digest;
    out->precision = (enum voxeld_precision)in->precision;
    vxd_reply_vec3(in->size, out->size_m);
    vxd_reply_vec3(in->origin, out->origin_m);
    vxd_reply_vec3(in->low, out->low_m);
    vxd_reply_timings(in->timings, &out->timings);
    out->n_run_items = in->n_run_items;
    out->engine_ms = in->engine_ms;
    out->queue_ms = header->queue_ms;
    out->total_ms = header->total_ms;
    out->request_id = header->request_id;
}

enum vxd_status vxd_inference_open(struct vxd_exchange *call,
                                   const struct voxeld_infer_request *request,
                                   struct voxeld_inference **out)
{
    struct voxeld_inference *inference =
        vxd_result_new(&call->reply, sizeof *inference, &call->err);
    size_t n_points;
    enum vxd_status status;

    if (inference == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    echo(inference);
    VXD_TRY(copy_items(inference, request, &n_points, &call->err));
    VXD_TRY(copy_results(inference, request, n_points, &call->err));
    *out = inference;
    return VXD_OK;
out:
    voxeld_inference_free(inference);
    return status;
}

void voxeld_inference_free(struct voxeld_inference *inference)
{
    vxd_result_free(inference);
}
