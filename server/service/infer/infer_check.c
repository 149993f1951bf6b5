// SPDX-License-Identifier: Apache-2.0
/* Everything that can be wrong with an Infer request is found here, on the transport's
 * thread. The network is found here as well and held until the request is gone, so that a
 * request runs with the network that had the name when it arrived. */
#include <math.h>

#include "server/instance/instance.h"
#include "server/schedule/schedule.h"
#include "server/service/noun/noun.h"
#include "server/service/infer/infer.h"
#include "server/service/existing/existing.h"
#include "server/service/network/network.h"
#include "server/service/service.h"

enum {
    BULK_POINT_BYTES = 512, /* as Voxelize */
    LEAST_DIGEST = 8,
    GPU_BATCH = 8
};

static enum vxd_status find_network(struct vxd_request *request,
                                    struct vxd_infer_job *job, struct vxd_err *err)
{
    const char *expected = job->input->expect_digest;
    size_t n = strlen(expected);
    enum vxd_status status = vxd_noun_check_name(job->input->network, "network", err);

    if (status != VXD_OK) {
        return status;
    }
    if (n > 0 && (n < LEAST_DIGEST || n >= VXD_MODEL_DIGEST_BYTES ||
                  strspn(expected, "0123456789abcdef") != n)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "expect_digest",
                        "\"%.70s\" must be %d to %d hexadecimal digits, in lower case",
                        expected, LEAST_DIGEST, VXD_MODEL_DIGEST_BYTES - 1);
    }
    job->network = vxd_networks_find(request->server->networks, job->input->network);
    if (job->network == NULL) {
        return vxd_missing_network(request, "network", job->input->network, err);
    }
    if (strncmp(vxd_model_digest(job->network->model), expected, n) != 0) {
        return vxd_fail(err, VXD_FAILED_PRECONDITION, "expect_digest",
                        "is %s, the network \"%s\" is %s", expected, job->input->network,
                        vxd_model_digest(job->network->model));
    }
    return VXD_OK;
}

static void list_outputs(const struct vxd_model *model, char *text, size_t n_bytes)
{
    size_t n = 0;

    text[0] = '\0';
    for (size_t i = 0; i < vxd_model_n_outputs(model) && n < n_bytes; i++) {
        n += (size_t)snprintf(text + n, n_bytes - n, "%s%s", i > 0 ? ", " : "",
                              vxd_model_output(model, i)->name);
    }
}

static enum vxd_status choose_output(struct vxd_infer_job *job, size_t index,
                                     struct vxd_err *err)
{
    const struct vxd_model *model = job->network->model;
    const char *name = job->input->outputs[index];
    bool is_all = strcmp(name, "*") == 0;
    bool found = is_all;
    char known[120];
    char field[40];

    for (size_t i = 0; i < vxd_model_n_outputs(model); i++) {
        bool is_it = strcmp(vxd_model_output(model, i)->name, name) == 0;

        job->outputs[i].is_selected = job->outputs[i].is_selected || is_all || is_it;
        found = found || is_it;
    }
    if (found) {
        return VXD_OK;
    }
    list_outputs(model, known, sizeof known);
    (void)snprintf(field, sizeof field, "outputs[%zu]", index);
    return vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                    "\"%.40s\" is no output of the network; known: %s", name, known);
}

static enum vxd_status choose_outputs(struct vxd_request *request,
                                      struct vxd_infer_job *job, struct vxd_err *err)
{
    const struct vxd_model *model = job->network->model;
    size_t n = vxd_model_n_outputs(model);
    enum vxd_status status = VXD_OK;

    job->outputs = vxd_message_array(request->decoder, n, sizeof *job->outputs, err);
    if (job->outputs == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    for (size_t i = 0; i < n; i++) {
        job->outputs[i].is_selected =
            job->input->n_outputs == 0 &&
            vxd_network_is_default_output(vxd_model_output(model, i));
    }
    for (size_t i = 0; i < job->input->n_outputs; i++) {
        VXD_TRY(choose_output(job, i, err));
    }
    switch ((int)job->input->dtype) {
    case VOXELD__V1__DTYPE__DTYPE_UNSPECIFIED:
    case VOXELD__V1__DTYPE__FLOAT32:
        job->dtype = VXD_FLOAT32;
        break;
    case VOXELD__V1__DTYPE__FLOAT16:
        job->dtype = VXD_FLOAT16;
        break;
    default:
        status = vxd_fail(err, VXD_INVALID_ARGUMENT, "dtype",
                          "is %d, it must be FLOAT32 or FLOAT16", (int)job->input->dtype);
    }
out:
    return status;
}

static bool has_labels(const struct vxd_model_output *output)
{
    return output->kind == VXD_MODEL_POINTS && output->argmax;
}

/* Counts the outputs of that name, or all, that are labels by point; *index is the last
 * one's. */
static size_t count_labels(const struct vxd_model *model, const char *name, size_t *index)
{
    size_t n = 0;

    for (size_t i = 0; i < vxd_model_n_outputs(model); i++) {
        const struct vxd_model_output *output = vxd_model_output(model, i);

        if (has_labels(output) && (name[0] == '\0' || strcmp(output->name, name) == 0)) {
            *index = i;
            n++;
        }
    }
    return n;
}

enum vxd_status vxd_infer_choose_labels(struct vxd_infer_job *job, const char *name,
                                        size_t *index, struct vxd_err *err)
{
    const struct vxd_model *model = job->network->model;
    size_t n = count_labels(model, name, index);
    char known[120];

    list_outputs(model, known, sizeof known);
    if (n == 0 && name[0] == '\0') {
        return vxd_fail(
            err, VXD_INVALID_ARGUMENT, "network",
            "\"%s\" has no output of labels by point (\"as\": \"points\" with "
            "\"argmax\"); its outputs: %s",
            job->input->network, known);
    }
    if (n == 0) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "output",
                        "\"%.40s\" is no output of labels by point; the network's: %s",
                        name, known);
    }
    if (n > 1) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "output",
                        "is empty, and the network has %zu outputs of labels by point: "
                        "name one of %s",
                        n, known);
    }
    for (size_t i = 0; i < vxd_model_n_outputs(model); i++) {
        job->outputs[i].is_selected = i == *index;
    }
    return VXD_OK;
}

static enum vxd_status read_frame(struct vxd_infer_job *job, struct vxd_err *err)
{
    const Voxeld__V1__Vec3 *origin = job->input->origin;

    job->clouds.in_sensor_frame = !job->input->apply_pose;
    if (origin == NULL) {
        return VXD_OK;
    }
    if (!job->input->apply_pose) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "origin", "needs apply_pose");
    }
    if (!isfinite(origin->x) || !isfinite(origin->y) || !isfinite(origin->z)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "origin", "(%g, %g, %g) is not finite",
                        origin->x, origin->y, origin->z);
    }
    job->clouds.origin[0] = origin->x;
    job->clouds.origin[1] = origin->y;
    job->clouds.origin[2] = origin->z;
    return VXD_OK;
}

/* Makes the columns to read of the clouds from the network's features. */
static void bind_features(struct vxd_infer_job *job)
{
    static const char *const axes[3] = {"x", "y", "z"};
    const struct vxd_model_input *input = vxd_model_input(job->network->model);

    job->clouds.n_channels = input->n_features;
    for (int i = 0; i < input->n_features; i++) {
        const struct vxd_model_feature *feature = &input->features[i];

        job->clouds.channels[i] = (struct vxd_cloud_channel){
            .name = feature->kind == VXD_CHANNEL_POSITION ? axes[feature->component]
                                                          : feature->name,
            .scale = feature->scale,
            .bias = feature->bias,
            .is_constant = feature->kind == VXD_CHANNEL_CONSTANT,
            .constant = feature->constant,
        };
    }
}

/* Estimates the engine memory that the request will take. */
static enum vxd_status check_cost(struct vxd_request *request,
                                  const struct vxd_infer_job *job, struct vxd_err *err)
{
    struct vxd_server *server = request->server;
    size_t n_points = job->clouds.n_points;
    size_t channel_bytes = (size_t)job->clouds.n_channels * sizeof(float);
    struct vxd_voxelize_args args;
    struct vxd_memory_usage memory;
    uint64_t cost;

    vxd_infer_voxelize_args(vxd_model_input(job->network->model), &args);
    args.n_channels = job->clouds.n_channels;
    args.n_points = n_points;
    args.batch_starts = job->clouds.starts;
    args.n_batch = (int)job->clouds.n_clouds;
    vxd_context_get_memory(server->context, &memory);
    /* Positions, features, inverse; then coordinates and features of voxels. */
    cost = vxd_voxelize_scratch_bytes(vxd_scheduler_probe(server->scheduler), &args);
    cost += n_points * (16 + channel_bytes);
    cost += vxd_voxelize_capacity(&args) * (16 + channel_bytes);
    cost += vxd_context_backend(server->context) == VXD_BACKEND_CUDA ? request->body_bytes
                                                                     : 0;
    if (cost > memory.device_budget_bytes) {
        return vxd_fail(
            err, VXD_RESOURCE_EXHAUSTED, NULL,
            "%zu points would take %llu bytes of the device before the network "
            "runs, its budget is %zu",
            n_points, (unsigned long long)cost, memory.device_budget_bytes);
    }
    cost += vxd_network_run_bytes(job->network, vxd_voxelize_capacity(&args));
    /* This is an estimate above what most requests take, so a request that runs alone may
     * try. */
    request->cost_bytes =
        cost < memory.device_budget_bytes ? cost : memory.device_budget_bytes;
    return VXD_OK;
}

/* An inference on the CPU takes long, and long requests stay off the lane for small ones. */
static void choose_schedule(struct vxd_request *request, const struct vxd_infer_job *job)
{
    const struct vxd_config *config = &request->server->config;
    bool is_cuda = vxd_context_backend(request->server->context) == VXD_BACKEND_CUDA;
    uint32_t max_batch = config->max_batch > 0 ? config->max_batch
                         : is_cuda             ? (uint32_t)GPU_BATCH
                                               : 1;

    request->n_points = job->clouds.n_points;
    request->bulk = !is_cuda || job->clouds.n_points > config->bulk_points ||
                    request->cost_bytes / BULK_POINT_BYTES > config->bulk_points;
    if (max_batch < 2 || job->network->info.whole_batch ||
        job->clouds.n_clouds >= max_batch) {
        return;
    }
    request->batch_key = job->network;
    request->batch_items = (uint32_t)job->clouds.n_clouds;
    request->batch_limit = max_batch;
    if (config->batch_delay_ms > 0) {
        request->ready_ns =
            request->received_ns + config->batch_delay_ms * INT64_C(1000000);
    }
}

enum vxd_status vxd_infer_check(struct vxd_request *request, struct vxd_err *err)
{
    struct vxd_infer_job *job = vxd_message_array(request->decoder, 1, sizeof *job, err);
    enum vxd_status status;

    if (job == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    request->state = job; /* forget frees what it holds */
    job->input = (const Voxeld__V1__InferRequest *)request->input;
    if (job->input->n_clouds < 1 || job->input->n_clouds > VXD_NETWORK_MAX_ITEMS) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "clouds",
                        "has %zu entries, it must have 1 to %d", job->input->n_clouds,
                        VXD_NETWORK_MAX_ITEMS);
    }
    VXD_TRY(find_network(request, job, err));
    VXD_TRY(choose_outputs(request, job, err));
    VXD_TRY(read_frame(job, err));
    bind_features(job);
    job->clouds.clouds = job->input->clouds;
    job->clouds.n_clouds = job->input->n_clouds;
    VXD_TRY(vxd_clouds_check(request, &job->clouds, err));
    VXD_TRY(check_cost(request, job, err));
    VXD_TRY(vxd_infer_check_time(
        request, job->network,
        &(struct vxd_network_work){.n_points = job->clouds.n_points}, err));
    choose_schedule(request, job);
out:
    return status;
}

void vxd_infer_forget(struct vxd_request *request)
{
    struct vxd_infer_job *job = request->state;

    vxd_network_drop(job->network);
    job->network = NULL;
}
