// SPDX-License-Identifier: Apache-2.0
/* The stages of a batch. Each is named after what it enqueues, and begins when the one
 * before has run. */
#include "server/service/infer/infer.h"

#include "server/instance/instance.h"
#include "server/service/service.h"

static bool wants_inverse(const struct vxd_infer_job *job)
{
    const struct vxd_model *model = job->network->model;

    for (size_t i = 0; i < vxd_model_n_outputs(model); i++) {
        if (job->outputs[i].is_selected &&
            vxd_model_output(model, i)->kind == VXD_MODEL_POINTS) {
            return true;
        }
    }
    return false;
}

/* Where each request's items and points begin, and the points' borders. */
static void number_items(struct vxd_request *leader, struct vxd_infer_batch *batch)
{
    size_t item = 0;

    for (struct vxd_request *r = leader; r != NULL; r = vxd_infer_next(leader, r)) {
        const struct vxd_infer_job *job = r->state;

        for (size_t i = 0; i < job->clouds.n_clouds; i++) {
            batch->starts[++item] =
                (uint32_t)job->first_point + job->clouds.starts[i + 1];
        }
    }
}

/* Memory is the leader's decoder's. */
static enum vxd_status make_batch(struct vxd_request *leader, struct vxd_err *err)
{
    struct vxd_decoder *decoder = leader->decoder;
    struct vxd_infer_job *job = leader->state;
    struct vxd_infer_batch *batch = vxd_message_array(decoder, 1, sizeof *batch, err);
    size_t n_outputs = vxd_model_n_outputs(job->network->model);

    if (batch == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    batch->network = job->network;
    batch->timed_ns = leader->engine_ns;
    for (struct vxd_request *r = leader; r != NULL; r = vxd_infer_next(leader, r)) {
        struct vxd_infer_job *member = r->state;

        member->first_item = batch->n_items;
        member->first_point = batch->n_points;
        batch->n_items += member->clouds.n_clouds;
        batch->n_points += member->clouds.n_points;
        batch->n_requests++;
        batch->wants_inverse = batch->wants_inverse || wants_inverse(member);
    }
    if (batch->n_points > INT32_MAX) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                        "%zu points are too many at once", batch->n_points);
    }
    vxd_infer_voxelize_args(vxd_model_input(job->network->model), &batch->args);
    batch->args.n_channels = job->clouds.n_channels;
    batch->args.n_batch = (int)batch->n_items;
    batch->starts =
        vxd_message_array(decoder, batch->n_items + 1, sizeof *batch->starts, err);
    batch->dropped =
        vxd_message_array(decoder, batch->n_items, sizeof *batch->dropped, err);
    batch->net_results =
        vxd_message_array(decoder, n_outputs, sizeof *batch->net_results, err);
    batch->row_starts_host =
        vxd_message_array(decoder, n_outputs, sizeof *batch->row_starts_host, err);
    batch->row_starts = vxd_message_pointers(decoder, n_outputs, err);
    if (batch->starts == NULL || batch->dropped == NULL || batch->net_results == NULL ||
        batch->row_starts_host == NULL || batch->row_starts == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    number_items(leader, batch);
    job->batch = batch;
    return VXD_OK;
}

/* The points' memory is given back first, since the network needs only the voxels. */
static void free_points(struct vxd_request *leader, struct vxd_queue *queue)
{
    struct vxd_infer_batch *batch = ((struct vxd_infer_job *)leader->state)->batch;
    struct vxd_context *context = vxd_queue_context(queue);

    for (struct vxd_request *r = leader; r != NULL; r = vxd_infer_next(leader, r)) {
        vxd_clouds_free(&((const struct vxd_infer_job *)r->state)->clouds, queue);
    }
    vxd_device_free(queue, &batch->work);
    vxd_device_free(queue, &batch->normal_device);
    vxd_host_free(context, &batch->raw_positions_host);
    vxd_host_free(context, &batch->raw_features_host);
}

static enum vxd_status begin_run(struct vxd_request *leader, struct vxd_queue *queue,
                                 struct vxd_err *err)
{
    struct vxd_infer_batch *batch = ((struct vxd_infer_job *)leader->state)->batch;
    const struct vxd_net_input input = {.coords = batch->voxels.coords,
                                        .features = batch->features,
                                        .n_rows = batch->voxel_starts[batch->n_items],
                                        .n_samples = (int)batch->n_items};
    bool more = false;
    enum vxd_status status;

    free_points(leader, queue);
    batch->timings.n_items = (uint32_t)batch->n_items;
    batch->timings.n_voxels = input.n_rows;
    if (input.n_rows > 0) {
        VXD_TRY(vxd_infer_check_time(leader, batch->network,
                                     &(struct vxd_network_work){.n_voxels = input.n_rows},
                                     err));
    }
    VXD_TRY(vxd_net_run_create(queue, batch->network->net, &input, &batch->run, err));
    VXD_TRY(vxd_net_run_step(queue, batch->run, &more, err));
    batch->stage = more ? VXD_INFER_LAYERS : VXD_INFER_COUNTS;
out:
    return status;
}

static enum vxd_status go_on(struct vxd_infer_batch *batch, struct vxd_queue *queue,
                             struct vxd_err *err)
{
    bool more = false;
    enum vxd_status status = vxd_net_run_step(queue, batch->run, &more, err);

    batch->stage = more ? VXD_INFER_LAYERS : VXD_INFER_COUNTS;
    return status;
}

/* Returns the time that the last enqueued stage took. */
static void take_time(const struct vxd_request *leader, struct vxd_infer_batch *batch,
                      int64_t *stage_ns)
{
    *stage_ns += leader->engine_ns - batch->timed_ns;
    batch->timed_ns = leader->engine_ns;
}

enum vxd_status vxd_infer_submit(struct vxd_request *request, struct vxd_queue *queue,
                                 struct vxd_err *err)
{
    struct vxd_infer_job *job = request->state;
    struct vxd_infer_batch *batch = job->batch;

    request->more = true;
    if (batch == NULL) {
        enum vxd_status status = make_batch(request, err);

        return status == VXD_OK ? vxd_infer_decode(request, queue, err) : status;
    }
    switch (batch->stage) {
    case VXD_INFER_DECODE:
    case VXD_INFER_NORMALIZE:
        return vxd_infer_normalize(request, queue, err);
    case VXD_INFER_MAPS:
        take_time(request, batch, &batch->timings.voxelize_ns);
        return begin_run(request, queue, err);
    case VXD_INFER_LAYERS:
        take_time(request, batch,
                  batch->timings.sets_ns == 0 ? &batch->timings.sets_ns
                                              : &batch->timings.layers_ns);
        return go_on(batch, queue, err);
    case VXD_INFER_COUNTS:
        take_time(request, batch, &batch->timings.layers_ns);
        batch->stage = VXD_INFER_OUTPUTS;
        return vxd_infer_fetch_counts(request, queue, err);
    case VXD_INFER_OUTPUTS:
        request->more = batch->network->precision == VXD_NET_FP16;
        batch->stage = VXD_INFER_JUDGE;
        return vxd_infer_fetch_outputs(request, queue, err);
    case VXD_INFER_JUDGE:
        request->more = !vxd_infer_all_finite(request);
        return request->more ? vxd_infer_begin_trace(request, queue, err) : VXD_OK;
    case VXD_INFER_TRACE:
        break;
    }
    return vxd_net_run_step(queue, batch->run, &request->more, err);
}

enum vxd_status vxd_infer_finish(struct vxd_request *request, struct vxd_queue *queue,
                                 struct vxd_err *err)
{
    const struct vxd_infer_job *job = request->state;
    struct vxd_infer_batch *batch = job->batch;
    enum vxd_status status = VXD_OK;

    take_time(request, batch, &batch->timings.outputs_ns);
    if (batch->stage == VXD_INFER_TRACE) {
        status = vxd_infer_end_trace(request, queue, err);
    }
    for (struct vxd_request *r = request; r != NULL && status == VXD_OK;
         r = vxd_infer_next(request, r)) {
        status = vxd_infer_reply(r, batch, err);
    }
    if (status == VXD_OK) {
        vxd_network_note_run(batch->network, batch->n_requests, batch->n_points,
                             &batch->timings);
    }
    return status;
}

void vxd_infer_release(struct vxd_request *request, struct vxd_queue *queue)
{
    struct vxd_infer_job *job = request->state;
    struct vxd_infer_batch *batch = job->batch;
    struct vxd_context *context = vxd_queue_context(queue);

    if (batch == NULL) {
        return;
    }
    if (batch->stage == VXD_INFER_LAYERS) { /* it was given up */
        vxd_network_note_expired(batch->network);
    }
    for (struct vxd_request *r = request; r != NULL; r = vxd_infer_next(request, r)) {
        vxd_infer_free_outputs(r, queue);
    }
    vxd_net_run_destroy(queue, batch->run);
    free_points(request, queue);
    vxd_device_free(queue, &batch->results);
    vxd_device_free(queue, &batch->inverse_device);
    for (size_t i = 0; i < vxd_model_n_outputs(batch->network->model); i++) {
        vxd_host_free(context, &batch->row_starts_host[i]);
    }
    vxd_host_free(context, &batch->totals_host);
    vxd_host_free(context, &batch->starts_host);
    vxd_host_free(context, &batch->normal_host);
    vxd_host_free(context, &batch->kept_inverse_host);
    vxd_host_free(context, &batch->inverse_host);
    job->batch = NULL;
}
