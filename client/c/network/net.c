// SPDX-License-Identifier: Apache-2.0
/* Calls on networks: infer, load, unload, get and list. */
#include "client/c/network/net_call.h"

#include <string.h>

enum voxeld_status voxeld_infer(struct voxeld_client *client,
                                const struct voxeld_infer_request *request,
                                struct voxeld_inference **out, struct voxeld_error *error)
{
    Voxeld__V1__InferRequest body = VOXELD__V1__INFER_REQUEST__INIT;
    Voxeld__V1__Vec3 origin = VOXELD__V1__VEC3__INIT;
    struct vxd_exchange call;
    enum vxd_status status;

    *out = NULL;
    VXD_TRY(vxd_exchange_begin(&call, client, &request->call, false));
    VXD_TRY(vxd_request_clouds(call.arena, request->clouds, request->n_clouds,
                               &body.clouds, &call.err));
    body.n_clouds = request->n_clouds;
    VXD_TRY(vxd_exchange_names(&call, "outputs", request->outputs, request->n_outputs,
                               &body.outputs));
    body.n_outputs = request->n_outputs;
    body.network = vxd_text_or_empty(request->network);
    body.dtype = (Voxeld__V1__DType)request->dtype;
    body.expect_digest = vxd_text_or_empty(request->expect_digest);
    body.apply_pose = request->apply_pose;
    body.no_coords = request->no_coords;
    if (request->apply_pose) {
        origin.x = request->origin_m[0];
        origin.y = request->origin_m[1];
        origin.z = request->origin_m[2];
        body.origin = &origin;
    }
    call.request.method_case = VOXELD__V1__REQUEST__METHOD_INFER;
    call.request.infer = &body;
    VXD_TRY(vxd_exchange_send(&call));
    VXD_TRY(vxd_inference_open(&call, request, out));
out:
    return vxd_exchange_end(&call, status, error);
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

enum voxeld_status
voxeld_network_load(struct voxeld_client *client, const struct voxeld_call *options,
                    const char *network, enum voxeld_precision precision,
                    struct voxeld_networks **out, struct voxeld_error *error)
{
    Voxeld__V1__NetworkLoadRequest body = VOXELD__V1__NETWORK_LOAD_REQUEST__INIT;
    const Voxeld__V1__NetworkLoadResponse *response;
    struct vxd_exchange call;
    enum vxd_status status;

    if (out != NULL) {
        *out = NULL;
    }
    VXD_TRY(vxd_exchange_begin(&call, client, options, true));
    body.name = vxd_text_or_empty(network);
    body.precision = (Voxeld__V1__NetworkPrecision)precision;
    call.request.method_case = VOXELD__V1__REQUEST__METHOD_NETWORK_LOAD;
    call.request.network_load = &body;
    VXD_TRY(vxd_exchange_send(&call));
    if (out != NULL) {
        response = call.reply.response->network_load;
        VXD_TRY(vxd_networks_open(&call, &response->network, 1, out));
        (*out)->existed = response->existed;
        (*out)->was_replaced = response->replaced;
    }
out:
    return vxd_exchange_end(&call, status, error);
}

enum voxeld_status voxeld_network_unload(struct voxeld_client *client,
                                         const struct voxeld_call *options,
                                         const char *network, bool missing_ok,
                                         bool *existed, struct voxeld_error *error)
{
    Voxeld__V1__NetworkUnloadRequest body = VOXELD__V1__NETWORK_UNLOAD_REQUEST__INIT;
    struct vxd_exchange call;
    enum vxd_status status;

    VXD_TRY(vxd_exchange_begin(&call, client, options, true));
    body.name = vxd_text_or_empty(network);
    body.missing_ok = missing_ok;
    call.request.method_case = VOXELD__V1__REQUEST__METHOD_NETWORK_UNLOAD;
    call.request.network_unload = &body;
    VXD_TRY(vxd_exchange_send(&call));
    if (existed != NULL) {
        *existed = call.reply.response->network_unload->existed;
    }
out:
    return vxd_exchange_end(&call, status, error);
}

enum voxeld_status voxeld_network_get(struct voxeld_client *client,
                                      const struct voxeld_call *options,
                                      const char *network, struct voxeld_networks **out,
                                      struct voxeld_error *error)
{
    Voxeld__V1__NetworkGetRequest body = VOXELD__V1__NETWORK_GET_REQUEST__INIT;
    struct vxd_exchange call;
    enum vxd_status status;

    *out = NULL;
    VXD_TRY(vxd_exchange_begin(&call, client, options, false));
    body.name = vxd_text_or_empty(network);
    call.request.method_case = VOXELD__V1__REQUEST__METHOD_NETWORK_GET;
    call.request.network_get = &body;
    VXD_TRY(vxd_exchange_send(&call));
    VXD_TRY(vxd_networks_open(&call, &call.reply.response->network_get->network, 1, out));
out:
    return vxd_exchange_end(&call, status, error);
}

enum voxeld_status voxeld_network_list(struct voxeld_client *client,
                                       const struct voxeld_call *options,
                                       struct voxeld_networks **out,
                                       struct voxeld_error *error)
{
    Voxeld__V1__NetworkListRequest body = VOXELD__V1__NETWORK_LIST_REQUEST__INIT;
    const Voxeld__V1__NetworkListResponse *response;
    struct vxd_exchange call;
    enum vxd_status status;

    *out = NULL;
    VXD_TRY(vxd_exchange_begin(&call, client, options, false));
    call.request.method_case = VOXELD__V1__REQUEST__METHOD_NETWORK_LIST;
    call.request.network_list = &body;
    VXD_TRY(vxd_exchange_send(&call));
    response = call.reply.response->network_list;
    VXD_TRY(vxd_networks_open(&call, response->networks, response->n_networks, out));
    (*out)->n_bytes = response->n_bytes;
    (*out)->limit_bytes = response->limit_bytes;
    (*out)->available = (const char *const *)response->available;
    (*out)->n_available = response->n_available;
out:
    return vxd_exchange_end(&call, status, error);
}
