// SPDX-License-Identifier: Apache-2.0
/* Turns the wire's replies about networks into the public structs. The server is not
 * trusted: every length is checked against the counts before a pointer goes out. */
#include <string.h>

#include "client/c/network/net_call.h"

static enum vxd_status copy_stride(const int32_t *in, size_t n, int32_t out[3],
                                   struct vxd_err *err)
{
    if (n != 3) {
        return vxd_reply_bad(err, "stride", "not three numbers");
    }
    memcpy(out, in, 3 * sizeof *out);
    return VXD_OK;
}

/* Networks ------------------------------------------------------------------------------ */

static enum vxd_status copy_outputs(struct vxd_reply *reply,
                                    const Voxeld__V1__NetworkInfo *in,
                                    struct voxeld_network_info *out, struct vxd_err *err)
{
    struct voxeld_network_output *list =
        vxd_reply_alloc(reply, in->n_outputs, sizeof *list);
    enum vxd_status status = VXD_OK;

    if (list == NULL) {
        return vxd_reply_no_memory(err);
    }
    for (size_t i = 0; i < in->n_outputs; i++) {
        const Voxeld__V1__NetworkOutput *output = in->outputs[i];

        list[i] = (struct voxeld_network_output){
            .name = output->name,
            .kind = (enum voxeld_output_kind)output->kind,
            .argmax = output->argmax,
            .n_channels = output->n_channels,
            .labels = (const char *const *)output->labels,
            .n_labels = output->n_labels,
            .by_default = output->by_default,
        };
        VXD_TRY(copy_stride(output->stride, output->n_stride, list[i].stride, err));
    }
    out->outputs = list;
    out->n_outputs = in->n_outputs;
out:
    return status;
}

static enum vxd_status copy_layers(struct vxd_reply *reply,
                                   const Voxeld__V1__NetworkInfo *in,
                                   struct voxeld_network_info *out, struct vxd_err *err)
{
    struct voxeld_network_feature *features =
        vxd_reply_alloc(reply, in->n_features, sizeof *features);
    struct voxeld_network_layer *layers =
        vxd_reply_alloc(reply, in->n_layers, sizeof *layers);

    if (features == NULL || layers == NULL) {
        return vxd_reply_no_memory(err);
    }
    for (size_t i = 0; i < in->n_features; i++) {
        features[i] = (struct voxeld_network_feature){
            .name = in->features[i]->name,
            .scale = in->features[i]->scale,
            .bias = in->features[i]->bias,
        };
    }
    for (size_t i = 0; i < in->n_layers; i++) {
        layers[i] = (struct voxeld_network_layer){
            .name = in->layers[i]->name,
            .op = in->layers[i]->op,
            .n_in = in->layers[i]->n_in,
            .n_out = in->layers[i]->n_out,
            .n_parameters = in->layers[i]->n_parameters,
        };
    }
    out->features = features;
    out->n_features = in->n_features;
    out->layers = layers;
    out->n_layers = in->n_layers;
    return VXD_OK;
}

static enum vxd_status copy_info(struct vxd_reply *reply,
                                 const Voxeld__V1__NetworkInfo *in,
                                 struct voxeld_network_info *out, struct vxd_err *err)
{
    enum vxd_status status;

    if (in == NULL) {
        return vxd_reply_bad(err, "network", "a network without its description");
    }
    *out = (struct voxeld_network_info){
        .name = in->name,
        .digest = in->digest,
        .precision = (enum voxeld_precision)in->precision,
        .n_parameters = in->n_parameters,
        .n_bytes = in->n_bytes,
        .n_sets = in->n_sets,
        .n_maps = in->n_maps,
        .rule = (enum voxeld_rule)in->rule,
        .max_points = in->max_points,
        .max_voxels = in->max_voxels,
        .normalizes = in->normalizes,
        .loaded_ns = in->loaded_ns,
        .n_requests = in->n_requests,
    };
    vxd_reply_vec3(in->size, out->size_m);
    vxd_reply_timings(in->last, &out->last);
    if (in->range != NULL) {
        out->has_range = true;
        vxd_reply_vec3(in->range->low, out->range_low_m);
        vxd_reply_vec3(in->range->high, out->range_high_m);
    }
    VXD_TRY(copy_outputs(reply, in, out, err));
    VXD_TRY(copy_layers(reply, in, out, err));
out:
    return status;
}

enum vxd_status vxd_networks_open(struct vxd_exchange *call,
                                  Voxeld__V1__NetworkInfo *const *in, size_t n,
                                  struct voxeld_networks **out)
{
    struct voxeld_networks *networks =
        vxd_result_new(&call->reply, sizeof *networks, &call->err);
    struct voxeld_network_info *list;
    enum vxd_status status = VXD_OK;

    if (networks == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    list = vxd_reply_alloc(vxd_result_reply(networks), n, sizeof *list);
    if (list == NULL) {
        status = vxd_reply_no_memory(&call->err);
        goto out;
    }
    for (size_t i = 0; i < n; i++) {
        VXD_TRY(copy_info(vxd_result_reply(networks), in[i], &list[i], &call->err));
    }
    networks->networks = list;
    networks->n_networks = n;
    networks->replayed = vxd_result_reply(networks)->response->header->replayed;
    *out = networks;
    return VXD_OK;
out:
    voxeld_networks_free(networks);
    return status;
}

void voxeld_networks_free(struct voxeld_networks *networks)
{
    vxd_result_free(networks);
}

/* Inference ----------------------------------------------------------------------------- */

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
    VXD_TRY(copy_stride(in->stride, in->n_stride, out->stride, err));
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
