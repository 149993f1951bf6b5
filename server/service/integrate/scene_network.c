// SPDX-License-Identifier: Apache-2.0
/* Runs a scan through a network before it is integrated: an Infer request of the server's
 * own, with the very cloud that was sent, returns a label for each point. */
#include <string.h>

#include "gpu/sparse/executor/executor.h"
#include "server/request/request.h"
#include "server/instance/instance.h"
#include "server/service/noun/noun.h"
#include "server/service/infer/infer.h"
#include "server/service/network/network.h"
#include "server/service/service.h"
#include "server/service/integrate/integrate.h"
#include "server/service/scene/scene.h"

/* --- check -------------------------------------------------------------------------------- */

static enum vxd_status check_without(const Voxeld__V1__SceneIntegrateRequest *message,
                                     struct vxd_err *err)
{
    const char *field = message->n_label_to_material > 0    ? "label_to_material"
                        : message->expect_digest[0] != '\0' ? "expect_digest"
                        : message->output[0] != '\0'        ? "output"
                                                            : NULL;

    return field == NULL ? VXD_OK
                         : vxd_fail(err, VXD_INVALID_ARGUMENT, field, "needs a network");
}

enum vxd_status vxd_scene_network_check(struct vxd_request *request,
                                        const Voxeld__V1__SceneIntegrateRequest *message,
                                        struct vxd_scene_network *network,
                                        struct vxd_err *err)
{
    enum vxd_status status;

    if (message->network[0] == '\0') {
        return check_without(message, err);
    }
    VXD_TRY(vxd_noun_check_name(message->network, "network", err));
    if (message->rule != NULL) {
        VXD_TRY(
            vxd_fail(err, VXD_INVALID_ARGUMENT, "rule",
                     "is given beside network, which says what materials points take"));
    }
    network->message = message;
    VXD_TRY(vxd_scene_labels_check(request, network, err));
    /* It is allocated now, so that nothing fails for want of it after the network has
     * run. */
    network->digest = vxd_message_array(request->decoder, VXD_MODEL_DIGEST_BYTES, 1, err);
    network->timings =
        vxd_message_new(request->decoder, &voxeld__v1__network_timings__descriptor, err);
    status = network->digest != NULL && network->timings != NULL ? VXD_OK
                                                                 : VXD_RESOURCE_EXHAUSTED;
out:
    return status;
}

/* --- the run ------------------------------------------------------------------------------ */

/* Strings and cloud belong to the scan's request, which the prerequisite holds. */
static enum vxd_status new_input(struct vxd_request *prerequisite,
                                 const Voxeld__V1__SceneIntegrateRequest *message,
                                 struct vxd_err *err)
{
    Voxeld__V1__InferRequest *input = vxd_message_new(
        prerequisite->decoder, &voxeld__v1__infer_request__descriptor, err);

    if (input == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    input->clouds = vxd_message_pointers(prerequisite->decoder, 1, err);
    if (input->clouds == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    input->clouds[0] = message->cloud;
    input->n_clouds = 1;
    input->network = message->network;
    input->expect_digest = message->expect_digest;
    input->no_coords = true;
    prerequisite->input = &input->base;
    return VXD_OK;
}

struct looked_at {
    const struct vxd_scene_network *network;
    struct vxd_err *err;
    enum vxd_status status;
};

static void look_at(void *user, const struct vxd_scene_spec *spec)
{
    struct looked_at *looked_at = user;

    looked_at->status =
        vxd_scene_labels_check_materials(looked_at->network, spec, looked_at->err);
}

/* What a scene that exists does not have is refused before the network runs. One that is missing may
 * be made by a request that is still in the queue. */
static enum vxd_status check_materials(struct vxd_request *request,
                                       const struct vxd_scene_network *network,
                                       struct vxd_err *err)
{
    struct looked_at looked_at = {.network = network, .err = err, .status = VXD_OK};

    (void)vxd_scenes_look(request->server->scenes, network->message->name, look_at,
                          &looked_at);
    return looked_at.status;
}

enum vxd_status vxd_scene_network_run(struct vxd_request *request,
                                      struct vxd_scene_network *network,
                                      struct vxd_err *err)
{
    struct vxd_request *prerequisite = NULL;
    struct vxd_infer_job *job;
    size_t index = 0;
    enum vxd_status status;

    VXD_TRY(vxd_request_create_prerequisite(
        request, vxd_method_by_name(request->server->methods, "infer"), &prerequisite,
        err));
    VXD_TRY(new_input(prerequisite, network->message, err));
    prerequisite->body_bytes = request->body_bytes;
    VXD_TRY(prerequisite->method->check(prerequisite, err));
    prerequisite->n_points = 0; /* the scan counts them */
    job = prerequisite->state;
    VXD_TRY(vxd_infer_choose_labels(job, network->message->output, &index, err));
    VXD_TRY(vxd_scene_labels_bind(network, vxd_model_output(job->network->model, index),
                                  err));
    VXD_TRY(check_materials(request, network, err));
    return vxd_request_submit_prerequisite(prerequisite, err);
out:
    if (prerequisite != NULL) {
        vxd_request_drop(prerequisite);
    }
    return status;
}

enum vxd_status vxd_scene_network_take(struct vxd_request *request,
                                       const ProtobufCMessage *answer, size_t n_points,
                                       struct vxd_scene_network *network,
                                       struct vxd_err *err)
{
    const Voxeld__V1__InferResponse *reply = (const Voxeld__V1__InferResponse *)answer;
    const Voxeld__V1__Tensor *labels =
        reply->n_outputs == 1 ? reply->outputs[0]->labels : NULL;
    size_t n_bytes = n_points * sizeof(int32_t);
    Voxeld__V1__NetworkTimings *timings = network->timings;
    enum vxd_status status;

    if (reply->items[0]->code == VOXELD__V1__CODE__RESOURCE_EXHAUSTED) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "cloud", "%s",
                        reply->items[0]->message);
    }
    if (reply->items[0]->code == VOXELD__V1__CODE__DATA_LOSS) {
        return vxd_fail(err, VXD_FAILED_PRECONDITION, "network", "%s",
                        reply->items[0]->message);
    }
    if (labels == NULL || labels->data.len != n_bytes) {
        return vxd_fail(err, VXD_INTERNAL, NULL, "the network gave no labels");
    }
    status = vxd_host_alloc(request->server->context, n_bytes, &network->labels, err);
    if (status != VXD_OK) {
        return status;
    }
    if (n_bytes > 0) {
        memcpy(network->labels.ptr, labels->data.data, n_bytes);
    }
    (void)snprintf(network->digest, VXD_MODEL_DIGEST_BYTES, "%s", reply->digest);
    *timings = *reply->timings; /* numbers all */
    return VXD_OK;
}

void vxd_scene_network_free(struct vxd_request *request,
                            struct vxd_scene_network *network)
{
    vxd_host_free(request->server->context, &network->labels);
}

/* --- points by label ---------------------------------------------------------------------- */

static enum vxd_status take_rows(struct vxd_request *request, size_t n_points,
                                 size_t n_sources, struct vxd_scene_rows *rows,
                                 size_t **n_kept, struct vxd_err *err)
{
    void *block;
    enum vxd_status status;

    VXD_TRY(vxd_scene_take_host(request, n_points, sizeof *rows->kept, &block, err));
    rows->kept = block;
    VXD_TRY(vxd_scene_take_host(request, n_points, sizeof *rows->dropped, &block, err));
    rows->dropped = block;
    VXD_TRY(vxd_scene_take_host(request, n_points, sizeof *rows->values, &block, err));
    rows->values = block;
    VXD_TRY(vxd_scene_take_host(request, n_sources, sizeof **n_kept, &block, err));
    *n_kept = block;
out:
    return status;
}

static void sort_rows(const struct vxd_scene_network *network, const int32_t *table,
                      const size_t *n_of_source, size_t n_sources,
                      struct vxd_scene_rows *rows, size_t *n_kept)
{
    const int32_t *labels = network->labels.ptr;
    size_t row = 0;

    for (size_t i = 0; i < n_sources; i++) {
        size_t before = rows->n_kept;

        for (size_t end = row + n_of_source[i]; row < end; row++) {
            bool is_one = labels[row] >= 0 && labels[row] < network->n_labels;
            int32_t material = table[is_one ? labels[row] : network->n_labels];

            if (material == VXD_SCENE_NO_MATERIAL) {
                rows->dropped[rows->n_dropped++] = (int32_t)row;
            } else {
                rows->kept[rows->n_kept] = (int32_t)row;
                rows->values[rows->n_kept++] = (uint16_t)material;
            }
        }
        n_kept[i] = rows->n_kept - before;
    }
}

static enum vxd_status gather(struct vxd_request *request, struct vxd_queue *queue,
                              const float *positions, size_t n_points,
                              const int32_t *rows, size_t n, const float **out,
                              struct vxd_err *err)
{
    struct vxd_gather_args args = {.in = positions,
                                   .n_in = n_points,
                                   .dtype = VXD_FLOAT32,
                                   .n_elements = 3,
                                   .n = n,
                                   .out_dtype = VXD_FLOAT32};
    const void *device;
    enum vxd_status status;

    *out = NULL;
    if (n == 0) {
        return VXD_OK;
    }
    VXD_TRY(vxd_scene_upload(request, queue, rows, n * sizeof *rows, &device, err));
    args.rows = device;
    VXD_TRY(vxd_scene_take_device(request, queue, n, 3 * sizeof(float), &args.out, err));
    VXD_TRY(vxd_rows_gather(queue, &args, err));
    *out = args.out;
out:
    return status;
}

enum vxd_status vxd_scene_split_rows(struct vxd_request *request, struct vxd_queue *queue,
                                     size_t n_points, const struct vxd_scene_rows *rows,
                                     struct vxd_scene_split *split, struct vxd_err *err)
{
    const float *positions = split->positions;
    const float *origins = split->origins;
    const void *values;
    enum vxd_status status = VXD_OK;

    if (rows->n_kept > 0 && rows->values != NULL) {
        VXD_TRY(vxd_scene_upload(request, queue, rows->values,
                                 rows->n_kept * sizeof *rows->values, &values, err));
        split->values = values;
    }
    if (rows->n_dropped > 0 && origins != NULL) {
        VXD_TRY(gather(request, queue, origins, n_points, rows->kept, rows->n_kept,
                       &split->origins, err));
        VXD_TRY(gather(request, queue, origins, n_points, rows->dropped, rows->n_dropped,
                       &split->dropped_origins, err));
    }
    if (rows->n_dropped > 0) {
        VXD_TRY(gather(request, queue, positions, n_points, rows->kept, rows->n_kept,
                       &split->positions, err));
        VXD_TRY(gather(request, queue, positions, n_points, rows->dropped,
                       rows->n_dropped, &split->dropped, err));
    }
out:
    return status;
}

enum vxd_status vxd_scene_network_split(struct vxd_request *request,
                                        struct vxd_queue *queue,
                                        const struct vxd_scene_network *network,
                                        const struct vxd_scene_spec *spec,
                                        const float *positions, size_t n_points,
                                        const size_t *n_of_source, size_t n_sources,
                                        struct vxd_scene_split *out, struct vxd_err *err)
{
    struct vxd_scene_rows rows = {0};
    const int32_t *table;
    enum vxd_status status;

    VXD_TRY(vxd_scene_labels_table(request, network, spec, &table, err));
    VXD_TRY(take_rows(request, n_points, n_sources, &rows, &out->n_kept, err));
    sort_rows(network, table, n_of_source, n_sources, &rows, out->n_kept);
    out->positions = positions;
    status = vxd_scene_split_rows(request, queue, n_points, &rows, out, err);
out:
    return status;
}
