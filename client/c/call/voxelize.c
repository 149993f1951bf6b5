// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include "client/c/call/client_internal.h"

/* Creates an arena for the wire message of one request, which holds no points. */
static enum vxd_status build(const struct voxeld_voxelize_request *in,
                             struct vxd_decoder **arena, Voxeld__V1__Request *request,
                             struct vxd_voxelize_expect *expect, struct vxd_err *err)
{
    enum vxd_status status;

    voxeld__v1__request__init(request);
    request->method_case = VOXELD__V1__REQUEST__METHOD_VOXELIZE;
    *arena = NULL;
    VXD_TRY(vxd_decoder_create(SIZE_MAX, NULL, arena, err));
    VXD_TRY(vxd_voxelize_request_build(in, *arena, &request->voxelize, expect, err));
out:
    return status;
}

/* Merging changes something. */
static struct voxeld_call options_of(struct voxeld_client *client,
                                     const struct voxeld_voxelize_request *request)
{
    struct voxeld_call call = request->call;

    call.sequence = 0;
    return request->merge.map != NULL ? vxd_client_number(client, &request->call) : call;
}

enum voxeld_status voxeld_voxelize(struct voxeld_client *client,
                                   const struct voxeld_voxelize_request *request,
                                   struct voxeld_voxels **out, struct voxeld_error *error)
{
    Voxeld__V1__Request message;
    struct vxd_decoder *arena = NULL;
    struct vxd_voxelize_expect expect;
    struct vxd_reply reply = {0};
    struct vxd_err err = {0};
    char request_id[VXD_REQUEST_ID_BYTES] = "";
    struct voxeld_call call = options_of(client, request);
    enum vxd_status status;

    *out = NULL;
    VXD_TRY(build(request, &arena, &message, &expect, &err));
    VXD_TRY(vxd_client_call(client, &call, &message, request_id, &reply, &err));
    VXD_TRY(vxd_voxels_open(&reply, &expect, out, &err));
out:
    vxd_decoder_destroy(arena);
    return status == VXD_OK
               ? VOXELD_OK
               : vxd_client_change_error(&err, request_id, call.sequence, error);
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
    Voxeld__V1__Request message;
    struct vxd_decoder *arena = NULL;
    struct voxelizing *voxelizing = NULL;
    struct vxd_err err = {0};
    char request_id[VXD_REQUEST_ID_BYTES] = "";
    struct voxeld_call call = options_of(client, request);
    enum vxd_status status;

    if (callback == NULL) {
        (void)vxd_fail(&err, VXD_INVALID_ARGUMENT, "callback", "is NULL");
        return vxd_client_error(&err, request_id, error);
    }
    voxelizing = calloc(1, sizeof *voxelizing);
    if (voxelizing == NULL) {
        VXD_TRY(vxd_fail(&err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a call"));
    }
    voxelizing->callback = callback;
    voxelizing->context = context;
    VXD_TRY(build(request, &arena, &message, &voxelizing->expect, &err));
    VXD_TRY(vxd_client_call_async(client, &call, &message, voxelize_ended, voxelizing,
                                  request_id, &err));
    voxelizing = NULL; /* the call's */
out:
    free(voxelizing);
    vxd_decoder_destroy(arena);
    return status == VXD_OK
               ? VOXELD_OK
               : vxd_client_change_error(&err, request_id, call.sequence, error);
}
