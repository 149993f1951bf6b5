// SPDX-License-Identifier: Apache-2.0
/* Runs networks. */
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
