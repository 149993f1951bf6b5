// SPDX-License-Identifier: Apache-2.0
/* The reply of one request of a batch: its tensors point at the arrays, so no row is copied
 * before the transport packs the message. */
#include "server/service/infer/infer.h"
#include "server/service/network/network.h"
#include "server/service/service.h"

static enum vxd_status new_tensor(struct vxd_request *request, enum vxd_dtype dtype,
                                  const int64_t *shape, size_t n_shape, const void *bytes,
                                  size_t n_bytes, Voxeld__V1__Tensor **out,
                                  struct vxd_err *err)
{
    Voxeld__V1__Tensor *tensor =
        vxd_message_new(request->decoder, &voxeld__v1__tensor__descriptor, err);

    if (tensor == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    tensor->shape = vxd_message_array(request->decoder, n_shape, sizeof *shape, err);
    if (tensor->shape == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    memcpy(tensor->shape, shape, n_shape * sizeof *shape);
    tensor->n_shape = n_shape;
    tensor->dtype = (Voxeld__V1__DType)dtype;
    tensor->data.len = n_bytes;
    /* The wire reads, the field's type does not say so. */
    tensor->data.data = n_bytes > 0 ? (uint8_t *)(uintptr_t)bytes : NULL;
    *out = tensor;
    return VXD_OK;
}

/* Items are counted from the request's first; the array is the request's own. */
static void rebase_coords(struct vxd_infer_output *output, size_t first_item)
{
    int32_t *coords = output->coords.ptr;

    for (size_t i = 0; first_item > 0 && i < output->coords.n_bytes / 16; i++) {
        coords[4 * i] -= (int32_t)first_item;
    }
}

static enum vxd_status set_output(struct vxd_request *request,
                                  const struct vxd_model_output *model,
                                  struct vxd_infer_output *output,
                                  Voxeld__V1__InferOutput *out, struct vxd_err *err)
{
    const struct vxd_infer_job *job = request->state;
    const int64_t coords_shape[2] = {(int64_t)output->n_rows, 4};
    enum vxd_status status;

    out->name = vxd_message_text(request->decoder, model->name, strlen(model->name), err);
    out->stride = vxd_message_array(request->decoder, 3, sizeof *out->stride, err);
    if (out->name == NULL || out->stride == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    out->kind = vxd_network_wire_kind(model->kind);
    memcpy(out->stride, model->stride, 3 * sizeof *out->stride);
    out->n_stride = 3;
    VXD_TRY(new_tensor(request, job->dtype, output->shape, output->n_shape,
                       output->values.bytes, output->values.n_bytes, &out->values, err));
    if (model->argmax) {
        VXD_TRY(new_tensor(request, VXD_INT32, output->shape, output->n_shape,
                           output->labels.bytes, output->labels.n_bytes, &out->labels,
                           err));
    }
    if (model->kind == VXD_MODEL_VOXELS) {
        out->first_rows = output->first_rows;
        out->n_first_rows = job->clouds.n_clouds + 1;
    }
    if (model->kind == VXD_MODEL_VOXELS && !job->input->no_coords) {
        rebase_coords(output, job->first_item);
        VXD_TRY(new_tensor(request, VXD_INT32, coords_shape, 2, output->coords.ptr,
                           output->coords.n_bytes, &out->coords, err));
    }
out:
    return status;
}

static enum vxd_status set_outputs(struct vxd_request *request,
                                   Voxeld__V1__InferResponse *reply, struct vxd_err *err)
{
    const struct vxd_infer_job *job = request->state;
    const struct vxd_model *model = job->network->model;
    enum vxd_status status = VXD_OK;

    reply->outputs =
        vxd_message_pointers(request->decoder, vxd_model_n_outputs(model), err);
    if (reply->outputs == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    for (size_t i = 0; i < vxd_model_n_outputs(model); i++) {
        Voxeld__V1__InferOutput *output;

        if (!job->outputs[i].is_selected) {
            continue;
        }
        output =
            vxd_message_new(request->decoder, &voxeld__v1__infer_output__descriptor, err);
        if (output == NULL) {
            return VXD_RESOURCE_EXHAUSTED;
        }
        VXD_TRY(set_output(request, vxd_model_output(model, i), &job->outputs[i], output,
                           err));
        reply->outputs[reply->n_outputs++] = output;
    }
out:
    return status;
}

/* Returns why an item's rows are invalid; NULL where they are valid. */
static const char *judge(const struct vxd_model_input *input,
                         const Voxeld__V1__InferItem *item, Voxeld__V1__Code *code)
{
    if (item->n_points == 0) {
        *code = VOXELD__V1__CODE__INVALID_ARGUMENT;
        return "the cloud has no points";
    }
    if (item->n_voxels == 0) {
        *code = VOXELD__V1__CODE__OUT_OF_RANGE;
        return "no point lies in the network's range";
    }
    if (item->n_over_max_voxels > 0 && input->overflow == VXD_MODEL_ERROR) {
        *code = VOXELD__V1__CODE__RESOURCE_EXHAUSTED;
        return "it has more voxels than the network takes";
    }
    return NULL;
}

static const char *describe_overflow(const struct vxd_infer_batch *batch, char *text,
                                     size_t n_bytes)
{
    if (batch->overflow_layer != NULL) {
        (void)snprintf(
            text, n_bytes,
            "values are not finite from the layer \"%.48s\" on: it overflows fp16; "
            "load the network as bf16 or fp32",
            batch->overflow_layer);
    } else {
        (void)snprintf(text, n_bytes,
                       "values are not finite as FLOAT16: ask for FLOAT32");
    }
    return text;
}

static enum vxd_status set_item(struct vxd_request *request,
                                const struct vxd_infer_batch *batch, size_t i,
                                Voxeld__V1__InferItem *item, struct vxd_err *err)
{
    const struct vxd_infer_job *job = request->state;
    const struct vxd_model_input *input = vxd_model_input(job->network->model);
    const Voxeld__V1__Cloud *cloud = job->input->clouds[i];
    const struct vxd_voxel_totals *totals = &batch->totals[job->first_item + i];
    const struct vxd_infer_dropped *dropped = &batch->dropped[job->first_item + i];
    char overflow[160];
    const char *why;

    item->stamp_ns = cloud->stamp_ns;
    item->frame_id = cloud->frame_id;
    item->first_point = job->clouds.starts[i];
    item->n_points = job->clouds.starts[i + 1] - job->clouds.starts[i];
    item->n_used = totals->n_used;
    item->n_non_finite = totals->n_non_finite + dropped->n_non_finite;
    item->n_out_of_range = totals->n_out_of_range + dropped->n_out_of_range;
    item->n_over_max_voxels = totals->n_over_max_voxels;
    item->n_over_max_points = totals->n_over_max_points;
    item->n_not_picked = dropped->n_not_picked;
    item->n_voxels = totals->n_voxels;
    why = judge(input, item, &item->code);
    if (why == NULL && batch->overflows && !vxd_infer_is_finite(job, (int)i)) {
        item->code = VOXELD__V1__CODE__DATA_LOSS;
        why = describe_overflow(batch, overflow, sizeof overflow);
    }
    if (why != NULL) {
        item->message = vxd_message_text(request->decoder, why, strlen(why), err);
        return item->message != NULL ? VXD_OK : VXD_RESOURCE_EXHAUSTED;
    }
    return VXD_OK;
}

static enum vxd_status set_items(struct vxd_request *request,
                                 const struct vxd_infer_batch *batch,
                                 Voxeld__V1__InferResponse *reply, struct vxd_err *err)
{
    const struct vxd_infer_job *job = request->state;
    size_t n = job->clouds.n_clouds;

    reply->items = vxd_message_pointers(request->decoder, n, err);
    if (reply->items == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    for (size_t i = 0; i < n; i++) {
        reply->items[i] =
            vxd_message_new(request->decoder, &voxeld__v1__infer_item__descriptor, err);
        if (reply->items[i] == NULL ||
            set_item(request, batch, i, reply->items[i], err) != VXD_OK) {
            return VXD_RESOURCE_EXHAUSTED;
        }
        reply->n_items = i + 1;
    }
    return VXD_OK;
}

/* What coordinates mean. */
static enum vxd_status set_lattice(struct vxd_request *request,
                                   Voxeld__V1__InferResponse *reply, struct vxd_err *err)
{
    const struct vxd_infer_job *job = request->state;
    const struct vxd_model_input *input = vxd_model_input(job->network->model);
    const struct vxd_voxelize_args *args = &input->voxelize;
    bool has_low = args->rule == VXD_RULE_SPCONV;

    if (input->normalize.used) {
        return VXD_OK;
    }
    reply->size =
        vxd_network_new_vector(request->decoder, (double)args->size_m[0],
                               (double)args->size_m[1], (double)args->size_m[2], err);
    reply->origin =
        vxd_network_new_vector(request->decoder, job->clouds.origin[0],
                               job->clouds.origin[1], job->clouds.origin[2], err);
    reply->low = vxd_network_new_vector(request->decoder,
                                        has_low ? (double)args->range_lo_m[0] : 0,
                                        has_low ? (double)args->range_lo_m[1] : 0,
                                        has_low ? (double)args->range_lo_m[2] : 0, err);
    return reply->size != NULL && reply->origin != NULL && reply->low != NULL
               ? VXD_OK
               : VXD_RESOURCE_EXHAUSTED;
}

enum vxd_status vxd_infer_reply(struct vxd_request *request,
                                const struct vxd_infer_batch *batch, struct vxd_err *err)
{
    const struct vxd_infer_job *job = request->state;
    const struct vxd_model *model = job->network->model;
    Voxeld__V1__InferResponse *reply =
        vxd_message_new(request->decoder, &voxeld__v1__infer_response__descriptor, err);
    const char *digest = vxd_model_digest(model);
    enum vxd_status status;

    if (reply == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    reply->network = job->input->network;
    reply->digest = vxd_message_text(request->decoder, digest, strlen(digest), err);
    if (reply->digest == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    reply->precision = vxd_network_wire_precision(job->network->precision);
    reply->n_run_items = (uint32_t)batch->n_items;
    reply->timings = vxd_network_new_timings(request->decoder, &batch->timings, err);
    if (reply->timings == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    reply->engine_ms = reply->timings->voxelize_ms + reply->timings->sets_ms +
                       reply->timings->layers_ms + reply->timings->outputs_ms;
    VXD_TRY(set_items(request, batch, reply, err));
    VXD_TRY(set_outputs(request, reply, err));
    VXD_TRY(set_lattice(request, reply, err));
    request->output = &reply->base;
out:
    return status;
}
