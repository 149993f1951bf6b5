// SPDX-License-Identifier: Apache-2.0
/* Networks as wholes: load, unload, list, get. Loading runs on a read lane that takes
 * long requests, so that writes to maps need not wait for files and weights. The other
 * three need no lane. */
#include "server/observe/log/log.h"
#include "server/instance/instance.h"
#include "server/service/existing/existing.h"
#include "server/service/network/network.h"
#include "server/service/service.h"

bool vxd_network_changes(const struct vxd_request *request)
{
    (void)request;
    return true;
}

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
    VXD_TRY(vxd_network_check_name(input->name, "name", err));
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
        vxd_network_new_info(request, job->network, false, &job->reply->network, err));
    request->output = &job->reply->base;
out:
    return status;
}

enum vxd_status vxd_network_load_finish(struct vxd_request *request,
                                        struct vxd_queue *queue, struct vxd_err *err)
{
    struct load_job *job = request->state;

    (void)queue;
    (void)err;
    job->reply->replaced = vxd_networks_publish(request->server->networks, job->network);
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

/* --- unload ---------------------------------------------------------------------------- */

enum vxd_status vxd_network_unload_check(struct vxd_request *request, struct vxd_err *err)
{
    const Voxeld__V1__NetworkUnloadRequest *input =
        (const Voxeld__V1__NetworkUnloadRequest *)request->input;
    Voxeld__V1__NetworkUnloadResponse *reply = vxd_message_new(
        request->decoder, &voxeld__v1__network_unload_response__descriptor, err);

    request->state = reply;
    return reply != NULL ? vxd_network_check_name(input->name, "name", err)
                         : VXD_RESOURCE_EXHAUSTED;
}

enum vxd_status vxd_network_unload_submit(struct vxd_request *request,
                                          struct vxd_queue *queue, struct vxd_err *err)
{
    const Voxeld__V1__NetworkUnloadRequest *input =
        (const Voxeld__V1__NetworkUnloadRequest *)request->input;
    Voxeld__V1__NetworkUnloadResponse *reply = request->state;

    (void)queue;
    reply->existed = vxd_networks_remove(request->server->networks, input->name);
    if (!reply->existed && !input->missing_ok) {
        return vxd_missing_network(request, "name", input->name, err);
    }
    if (reply->existed) {
        vxd_networks_keep(request->server->networks);
        vxd_log(VXD_LOG_INFO, "network unloaded", "network", input->name, "by",
                request->principal.name);
    }
    request->output = &reply->base;
    return VXD_OK;
}

/* The reply was complete before the queue ran. */
enum vxd_status vxd_network_unload_finish(struct vxd_request *request,
                                          struct vxd_queue *queue, struct vxd_err *err)
{
    (void)request;
    (void)queue;
    (void)err;
    return VXD_OK;
}

/* --- list ------------------------------------------------------------------------------ */

static enum vxd_status set_available(struct vxd_request *request,
                                     Voxeld__V1__NetworkListResponse *reply,
                                     struct vxd_err *err)
{
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

enum vxd_status vxd_network_list_check(struct vxd_request *request, struct vxd_err *err)
{
    struct vxd_networks *networks = request->server->networks;
    Voxeld__V1__NetworkListResponse *reply = vxd_message_new(
        request->decoder, &voxeld__v1__network_list_response__descriptor, err);
    struct vxd_network **held =
        vxd_message_pointers(request->decoder, VXD_NETWORKS_MAX, err);
    struct vxd_networks_usage usage;
    size_t n;
    enum vxd_status status = VXD_OK;

    if (reply == NULL || held == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    reply->networks = vxd_message_pointers(request->decoder, VXD_NETWORKS_MAX, err);
    if (reply->networks == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    n = vxd_networks_list(networks, held);
    for (size_t i = 0; i < n; i++) {
        if (status == VXD_OK) {
            status =
                vxd_network_new_info(request, held[i], false, &reply->networks[i], err);
        }
        vxd_network_drop(held[i]);
    }
    VXD_TRY(status);
    reply->n_networks = n;
    vxd_networks_get_usage(networks, &usage);
    reply->n_bytes = usage.n_bytes;
    reply->limit_bytes = usage.limit_bytes;
    VXD_TRY(set_available(request, reply, err));
    request->output = &reply->base;
out:
    return status;
}

/* --- get ------------------------------------------------------------------------------- */

enum vxd_status vxd_network_get_check(struct vxd_request *request, struct vxd_err *err)
{
    const Voxeld__V1__NetworkGetRequest *input =
        (const Voxeld__V1__NetworkGetRequest *)request->input;
    Voxeld__V1__NetworkGetResponse *reply = vxd_message_new(
        request->decoder, &voxeld__v1__network_get_response__descriptor, err);
    struct vxd_network *network = NULL;
    enum vxd_status status;

    if (reply == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    VXD_TRY(vxd_network_check_name(input->name, "name", err));
    network = vxd_networks_find(request->server->networks, input->name);
    if (network == NULL) {
        VXD_TRY(vxd_missing_network(request, "name", input->name, err));
    }
    VXD_TRY(vxd_network_new_info(request, network, true, &reply->network, err));
    request->output = &reply->base;
out:
    vxd_network_drop(network);
    return status;
}
