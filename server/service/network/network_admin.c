// SPDX-License-Identifier: Apache-2.0
/* Networks as wholes: load, unload, list, get. Loading runs on a read lane that takes
 * long requests, so that writes to maps need not wait for files and weights. List
 * and get need no lane. */
#include "server/observe/log/log.h"
#include "server/instance/instance.h"
#include "server/service/existing/existing.h"
#include "server/service/network/network.h"
#include "server/service/noun/noun.h"
#include "server/service/service.h"

/* --- load ------------------------------------------------------------------------------ */

struct load_job {
    int precision;
    struct vxd_network *network; /* held */
    Voxeld__V1__NetworkLoadResponse *reply;
};

static enum vxd_status read_precision(Voxeld__V1__NetworkPrecision precision, int *out,
                                      struct vxd_err *err)
{
    switch ((int)precision) {
    case VOXELD__V1__NETWORK_PRECISION__NETWORK_PRECISION_UNSPECIFIED:
        *out = VXD_MODEL_ITS_PRECISION;
        return VXD_OK;
    case VOXELD__V1__NETWORK_PRECISION__FP32:
        *out = VXD_NET_FP32;
        return VXD_OK;
    case VOXELD__V1__NETWORK_PRECISION__TF32:
        *out = VXD_NET_TF32;
        return VXD_OK;
    case VOXELD__V1__NETWORK_PRECISION__FP16:
        *out = VXD_NET_FP16;
        return VXD_OK;
    case VOXELD__V1__NETWORK_PRECISION__BF16:
        *out = VXD_NET_BF16;
        return VXD_OK;
    case VOXELD__V1__NETWORK_PRECISION__NETWORK_PRECISION_AUTO:
        *out = VXD_MODEL_AUTO_PRECISION;
        return VXD_OK;
    default:
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "precision",
                        "is %d; known: FP32, TF32, FP16, BF16, "
                        "NETWORK_PRECISION_AUTO",
                        (int)precision);
    }
}

enum vxd_status vxd_network_load_check(struct vxd_request *request, struct vxd_err *err)
{
    const Voxeld__V1__NetworkLoadRequest *input =
        (const Voxeld__V1__NetworkLoadRequest *)request->input;
    struct load_job *job = vxd_message_array(request->decoder, 1, sizeof *job, err);
    enum vxd_status status;

    if (job == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    VXD_TRY(vxd_noun_check_name(input->name, "name", err));
    VXD_TRY(read_precision(input->precision, &job->precision, err));
    request->bulk = true;
    request->state = job;
out:
    return status;
}

/* Does everything that can fail; only finish gives the network its name. */
enum vxd_status vxd_network_load_submit(struct vxd_request *request,
                                        struct vxd_queue *queue, struct vxd_err *err)
{
    const Voxeld__V1__NetworkLoadRequest *input =
        (const Voxeld__V1__NetworkLoadRequest *)request->input;
    struct load_job *job = request->state;
    bool existed;
    enum vxd_status status;

    job->reply = vxd_message_new(request->decoder,
                                 &voxeld__v1__network_load_response__descriptor, err);
    if (job->reply == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    VXD_TRY(vxd_missing_network_file(request, "name", input->name, err));
    VXD_TRY(vxd_networks_load(request->server->networks, queue, input->name,
                              job->precision, request->principal.name, &existed,
                              &job->network, err));
    job->reply->existed = existed;
    VXD_TRY(
        vxd_network_new_info(request->decoder, job->network, &job->reply->network, err));
    request->output = &job->reply->base;
out:
    return status;
}

enum vxd_status vxd_network_load_finish(struct vxd_request *request,
                                        struct vxd_queue *queue, struct vxd_err *err)
{
    struct load_job *job = request->state;

    (void)err;
    job->reply->replaced = vxd_named_replace(&job->network->named, queue);
    vxd_networks_keep(request->server->networks);
    vxd_log(VXD_LOG_INFO, "network loaded", "network",
            vxd_model_name(job->network->model), "digest",
            vxd_model_digest(job->network->model), "by", request->principal.name);
    return VXD_OK;
}

void vxd_network_load_release(struct vxd_request *request, struct vxd_queue *queue)
{
    struct load_job *job = request->state;

    (void)queue;
    vxd_network_drop(job->network);
    job->network = NULL;
}

/* --- list, get, unload ------------------------------------------------------------------ */

/* The names that networks_dir has. */
static enum vxd_status add_available(struct vxd_request *request,
                                     ProtobufCMessage *message, struct vxd_err *err)
{
    Voxeld__V1__NetworkListResponse *reply = (Voxeld__V1__NetworkListResponse *)message;
    const char *directory = request->server->config.networks_dir;
    char **names = NULL;
    size_t n = 0;
    enum vxd_status status = VXD_OK;

    if (directory[0] == '\0') {
        return VXD_OK;
    }
    VXD_TRY(vxd_model_names(directory, &names, &n, err));
    reply->available = vxd_message_pointers(request->decoder, n, err);
    if (reply->available == NULL) {
        status = VXD_RESOURCE_EXHAUSTED;
        goto out;
    }
    for (size_t i = 0; i < n; i++) {
        reply->available[i] =
            vxd_message_text(request->decoder, names[i], strlen(names[i]), err);
        if (reply->available[i] == NULL) {
            status = VXD_RESOURCE_EXHAUSTED;
            goto out;
        }
        reply->n_available = i + 1;
    }
out:
    vxd_model_names_free(names, n);
    return status;
}

static struct vxd_names *get_names(const struct vxd_server *server)
{
    return server->networks;
}

static enum vxd_status new_info(struct vxd_request *request, struct vxd_decoder *arena,
                                const struct vxd_named *named, ProtobufCMessage **out,
                                struct vxd_err *err)
{
    Voxeld__V1__NetworkInfo *info = NULL;
    enum vxd_status status =
        vxd_network_new_info(arena, (const struct vxd_network *)named, &info, err);

    (void)request;
    *out = (ProtobufCMessage *)info;
    return status;
}

static enum vxd_status add_layers(struct vxd_request *request, struct vxd_queue *queue,
                                  const struct vxd_named *named, ProtobufCMessage *info,
                                  struct vxd_err *err)
{
    (void)queue;
    return vxd_network_add_layers(request->decoder,
                                  ((const struct vxd_network *)named)->model,
                                  (Voxeld__V1__NetworkInfo *)info, err);
}

static void note_unloaded(const struct vxd_request *request,
                          const struct vxd_named *named)
{
    vxd_networks_keep(request->server->networks);
    vxd_log(VXD_LOG_INFO, "network unloaded", "network", named->terms.name, "by",
            request->principal.name);
}

const struct vxd_noun_service vxd_network_service = {.names = get_names,
                                                     .list_field = "networks",
                                                     .info_field = "network",
                                                     .new_info = new_info,
                                                     .add_details = add_layers,
                                                     .add_to_list = add_available,
                                                     .dropped = note_unloaded,
                                                     .missing = vxd_missing_network};
