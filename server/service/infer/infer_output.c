// SPDX-License-Identifier: Apache-2.0
/* Copies the network's results, which are the batch's, to the arrays of each request. */
#include <string.h>

#include "gpu/sparse/executor/executor.h"
#include "server/service/infer/infer.h"
#include "server/service/service.h"

/* What 2 GiB leave for the arrays beside all other fields. */
#define MAX_REPLY_BYTES ((size_t)INT32_MAX - ((size_t)1 << 20))

static bool is_selected_by_any(const struct vxd_request *leader, size_t i)
{
    for (const struct vxd_request *r = leader; r != NULL; r = vxd_infer_next(leader, r)) {
        if (((const struct vxd_infer_job *)r->state)->outputs[i].is_selected) {
            return true;
        }
    }
    return false;
}

/* Checks that the engine's results are what the model says. */
static enum vxd_status check_result(const struct vxd_infer_batch *batch,
                                    const struct vxd_model_output *output,
                                    const struct vxd_net_result *result,
                                    struct vxd_err *err)
{
    size_t n_voxels = batch->voxel_starts[batch->n_items];
    bool fits = true;

    switch (output->kind) {
    case VXD_MODEL_VOXELS:
        fits = result->coords != NULL || result->n_rows == 0;
        break;
    case VXD_MODEL_POINTS:
        fits = result->n_rows == n_voxels;
        break;
    case VXD_MODEL_DENSE:
        fits = result->dense_shape[0] == (int32_t)batch->n_items;
        break;
    case VXD_MODEL_VECTOR:
        fits = result->n_rows == batch->n_items;
        break;
    }
    if (fits && (!output->argmax || result->labels != NULL || result->n_rows == 0)) {
        return VXD_OK;
    }
    return vxd_fail(err, VXD_INTERNAL, NULL,
                    "the network's output \"%s\" has %zu rows, which is not what it must "
                    "have",
                    output->name, result->n_rows);
}

enum vxd_status vxd_infer_fetch_counts(struct vxd_request *leader,
                                       struct vxd_queue *queue, struct vxd_err *err)
{
    struct vxd_infer_batch *batch = ((struct vxd_infer_job *)leader->state)->batch;
    const struct vxd_model *model = batch->network->model;
    enum vxd_status status = VXD_OK;

    for (size_t i = 0; i < vxd_model_n_outputs(model); i++) {
        const struct vxd_model_output *output = vxd_model_output(model, i);
        struct vxd_net_result *result = &batch->net_results[i];
        const void *bytes = NULL;

        if (!is_selected_by_any(leader, i)) {
            continue;
        }
        VXD_TRY(vxd_net_run_result(batch->run, output->engine_output, result, err));
        VXD_TRY(check_result(batch, output, result, err));
        if (output->kind == VXD_MODEL_VOXELS) {
            VXD_TRY(vxd_download(queue, result->sample_starts,
                                 (batch->n_items + 1) * sizeof(uint32_t),
                                 &batch->row_starts_host[i], &bytes, err));
            batch->row_starts[i] = bytes;
        }
    }
out:
    return status;
}

/* Gathers one array and enqueues its way to the host. */
static enum vxd_status fetch_array(struct vxd_queue *queue, struct vxd_gather_args *args,
                                   struct vxd_infer_array *array, struct vxd_err *err)
{
    const void *bytes = NULL;
    enum vxd_status status;

    if (!vxd_size_mul(args->n, args->n_elements, &array->n_bytes) ||
        !vxd_size_mul(array->n_bytes, vxd_dtype_bytes(args->out_dtype),
                      &array->n_bytes)) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "%zu rows are too many",
                        args->n);
    }
    if (array->n_bytes == 0) {
        return VXD_OK;
    }
    VXD_TRY(vxd_device_alloc(queue, array->n_bytes, &array->device, err));
    args->out = array->device.ptr;
    VXD_TRY(vxd_rows_gather(queue, args, err));
    VXD_TRY(vxd_download(queue, array->device.ptr, array->n_bytes, &array->host, &bytes,
                         err));
    array->bytes = bytes;
out:
    return status;
}

/* Finds which rows of the result are the request's, and how many elements a row has. */
static void choose_rows(const struct vxd_infer_batch *batch,
                        const struct vxd_infer_job *job,
                        const struct vxd_model_output *model, size_t i,
                        struct vxd_infer_output *output, struct vxd_gather_args *args)
{
    const struct vxd_net_result *result = &batch->net_results[i];
    size_t n_items = job->clouds.n_clouds;

    args->n_in = result->n_rows;
    args->n_elements = model->argmax ? 1 : (size_t)result->n_channels;
    args->first = job->first_item;
    args->n = n_items;
    if (model->kind == VXD_MODEL_POINTS) {
        args->rows = batch->inverse + job->first_point;
        args->n = job->clouds.n_points;
    } else if (model->kind == VXD_MODEL_VOXELS) {
        args->first = batch->row_starts[i][job->first_item];
        args->n = batch->row_starts[i][job->first_item + n_items] - args->first;
    } else if (model->kind == VXD_MODEL_DENSE) {
        args->n_in = batch->n_items;
        args->n_elements = (size_t)result->dense_shape[1] *
                           (size_t)result->dense_shape[2] *
                           (size_t)result->dense_shape[3];
    }
    output->n_rows = args->n;
    output->shape[0] = (int64_t)args->n;
    output->shape[1] = result->n_channels;
    output->n_shape = model->argmax ? 1 : 2;
    if (model->kind == VXD_MODEL_DENSE) {
        for (int k = 1; k < 4; k++) {
            output->shape[k] = result->dense_shape[k];
        }
        output->n_shape = 4;
    }
}

/* Copies the rows' coordinates, with items counted from the request's first. */
static enum vxd_status fetch_coords(struct vxd_request *request, struct vxd_queue *queue,
                                    const struct vxd_infer_batch *batch, size_t i,
                                    struct vxd_err *err)
{
    struct vxd_infer_job *job = request->state;
    struct vxd_infer_output *output = &job->outputs[i];
    size_t first = batch->row_starts[i][job->first_item];
    size_t n_items = job->clouds.n_clouds;
    size_t n_bytes = output->n_rows * 4 * sizeof(int32_t);
    enum vxd_status status = VXD_OK;

    output->first_rows =
        vxd_message_array(request->decoder, n_items + 1, sizeof *output->first_rows, err);
    if (output->first_rows == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    for (size_t k = 0; k <= n_items; k++) {
        output->first_rows[k] = batch->row_starts[i][job->first_item + k] - first;
    }
    if (job->input->no_coords || n_bytes == 0) {
        return VXD_OK;
    }
    VXD_TRY(vxd_host_alloc(vxd_queue_context(queue), n_bytes, &output->coords, err));
    VXD_TRY(vxd_queue_copy(queue, output->coords.ptr,
                           batch->net_results[i].coords + 4 * first, n_bytes, err));
out:
    return status;
}

static enum vxd_status fetch_output(struct vxd_request *request, struct vxd_queue *queue,
                                    const struct vxd_infer_batch *batch, size_t i,
                                    size_t *n_bytes, struct vxd_err *err)
{
    struct vxd_infer_job *job = request->state;
    struct vxd_infer_output *output = &job->outputs[i];
    const struct vxd_model_output *model = vxd_model_output(batch->network->model, i);
    struct vxd_gather_args args = {.in = batch->net_results[i].values,
                                   .dtype = VXD_FLOAT32,
                                   .fill = model->argmax ? 0 : model->fill,
                                   .out_dtype = job->dtype};
    enum vxd_status status = VXD_OK;

    choose_rows(batch, job, model, i, output, &args);
    VXD_TRY(fetch_array(queue, &args, &output->values, err));
    if (model->argmax) {
        args.in = batch->net_results[i].labels;
        args.dtype = VXD_INT32;
        args.out_dtype = VXD_INT32;
        args.fill_integer = model->fill_label;
        VXD_TRY(fetch_array(queue, &args, &output->labels, err));
    }
    if (model->kind == VXD_MODEL_VOXELS) {
        VXD_TRY(fetch_coords(request, queue, batch, i, err));
    }
    *n_bytes += output->values.n_bytes + output->labels.n_bytes + output->coords.n_bytes;
    if (*n_bytes > MAX_REPLY_BYTES) {
        status = vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "outputs",
                          "the reply would have more than %zu bytes: ask for fewer "
                          "outputs, or FLOAT16",
                          MAX_REPLY_BYTES);
    }
out:
    return status;
}

enum vxd_status vxd_infer_fetch_outputs(struct vxd_request *leader,
                                        struct vxd_queue *queue, struct vxd_err *err)
{
    struct vxd_infer_batch *batch = ((struct vxd_infer_job *)leader->state)->batch;
    size_t n_outputs = vxd_model_n_outputs(batch->network->model);
    enum vxd_status status = VXD_OK;

    if (batch->wants_inverse && vxd_model_input(batch->network->model)->normalize.used) {
        VXD_TRY(vxd_infer_spread_inverse(leader, queue, err));
    }
    for (struct vxd_request *r = leader; r != NULL; r = vxd_infer_next(leader, r)) {
        const struct vxd_infer_job *job = r->state;
        size_t n_bytes = 0;

        for (size_t i = 0; i < n_outputs; i++) {
            if (job->outputs[i].is_selected) {
                VXD_TRY(fetch_output(r, queue, batch, i, &n_bytes, err));
            }
        }
    }
out:
    return status;
}

void vxd_infer_free_outputs(struct vxd_request *request, struct vxd_queue *queue)
{
    const struct vxd_infer_job *job = request->state;
    struct vxd_context *context = vxd_queue_context(queue);

    for (size_t i = 0; i < vxd_model_n_outputs(job->network->model); i++) {
        struct vxd_infer_output *output = &job->outputs[i];
        bool is_selected = output->is_selected;

        vxd_device_free(queue, &output->values.device);
        vxd_device_free(queue, &output->labels.device);
        vxd_host_free(context, &output->values.host);
        vxd_host_free(context, &output->labels.host);
        vxd_host_free(context, &output->coords);
        memset(output, 0, sizeof *output);
        output->is_selected = is_selected;
    }
}
