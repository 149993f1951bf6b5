// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>

#include "client/c/voxelize/c_voxelize.h"

/* Prepares a call, whose message is *body. Merging changes something. */
static enum vxd_status begin(struct vxd_exchange *call, struct voxeld_client *client,
                             const struct voxeld_voxelize_request *request,
                             Voxeld__V1__VoxelizeRequest *body)
{
    enum vxd_status status;

    voxeld__v1__voxelize_request__init(body);
    VXD_TRY(vxd_exchange_begin(call, client, &request->call, request->merge.map != NULL));
    VXD_TRY(vxd_exchange_build_voxelize(call, request, body));
    call->request.method_case = VOXELD__V1__REQUEST__METHOD_VOXELIZE;
    call->request.voxelize = body;
out:
    return status;
}

enum voxeld_status voxeld_voxelize(struct voxeld_client *client,
                                   const struct voxeld_voxelize_request *request,
                                   struct voxeld_voxels **out, struct voxeld_error *error)
{
    const struct vxd_voxelize_expect expect = vxd_voxelize_expect_of(request);
    Voxeld__V1__VoxelizeRequest body;
    struct vxd_exchange call;
    enum vxd_status status;

    *out = NULL;
    VXD_TRY(begin(&call, client, request, &body));
    VXD_TRY(vxd_exchange_send(&call));
    VXD_TRY(vxd_voxels_open(&call.reply, &expect, out, &call.err));
out:
    return vxd_exchange_end(&call, status, error);
}

/* What an asynchronous call needs at its end. */
struct voxelizing {
    struct vxd_voxelize_expect expect;
    voxeld_voxels_callback callback;
    void *context;
};

static void voxelize_ended(void *take_state, enum vxd_status status,
                           struct vxd_reply *reply, struct vxd_err *err,
                           const char *request_id, uint64_t sequence)
{
    const struct voxelizing *voxelizing = take_state;
    struct voxeld_voxels *voxels = NULL;
    struct voxeld_error error;

    if (status == VXD_OK) {
        status = vxd_voxels_open(reply, &voxelizing->expect, &voxels, err);
    }
    if (status != VXD_OK) {
        (void)vxd_client_change_error(err, request_id, sequence, &error);
    }
    voxelizing->callback(voxelizing->context, voxels, status != VXD_OK ? &error : NULL);
    free(take_state);
}

enum voxeld_status voxeld_voxelize_async(struct voxeld_client *client,
                                         const struct voxeld_voxelize_request *request,
                                         voxeld_voxels_callback callback, void *context,
                                         struct voxeld_error *error)
{
    Voxeld__V1__VoxelizeRequest body;
    struct voxelizing *voxelizing = NULL;
    struct vxd_exchange call;
    enum vxd_status status;

    VXD_TRY(begin(&call, client, request, &body));
    if (callback == NULL) {
        VXD_TRY(vxd_fail(&call.err, VXD_INVALID_ARGUMENT, "callback", "is NULL"));
    }
    voxelizing = calloc(1, sizeof *voxelizing);
    if (voxelizing == NULL) {
        VXD_TRY(
            vxd_fail(&call.err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a call"));
    }
    *voxelizing = (struct voxelizing){.expect = vxd_voxelize_expect_of(request),
                                      .callback = callback,
                                      .context = context};
    VXD_TRY(vxd_exchange_send_async(&call, voxelize_ended, voxelizing));
    voxelizing = NULL; /* the call's */
out:
    free(voxelizing);
    return vxd_exchange_end(&call, status, error);
}
