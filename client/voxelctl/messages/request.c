// SPDX-License-Identifier: Apache-2.0
/* One call of any method, from a request in JSON to its reply in JSON, as over HTTP. */
#include <stdlib.h>

#include "client/c/call/call.h"
#include "client/voxelctl/messages/messages.h"

/* The pointer to a method's message, in a Request or a Response. */
static ProtobufCMessage **method_in(void *envelope, const ProtobufCFieldDescriptor *field)
{
    return (ProtobufCMessage **)(void *)((uint8_t *)envelope + field->offset);
}

/* Fills the request from the text, sends it, and writes its reply to *reply. */
static enum vxd_status call_method(struct vxd_exchange *call, const char *method,
                                   const char *request, size_t n_bytes,
                                   struct vxd_text *reply)
{
    const ProtobufCFieldDescriptor *in = protobuf_c_message_descriptor_get_field_by_name(
        &voxeld__v1__request__descriptor, method);
    const ProtobufCFieldDescriptor *out = protobuf_c_message_descriptor_get_field_by_name(
        &voxeld__v1__response__descriptor, method);
    enum vxd_status status;

    VXD_TRY(vxd_json_read(call->arena, in->descriptor, request, n_bytes,
                          method_in(&call->request, in), &call->err));
    call->request.method_case = (Voxeld__V1__Request__MethodCase)in->id;
    VXD_TRY(vxd_exchange_send(call));
    status = vxd_json_write(*method_in(call->reply.response, out), reply, &call->err);
out:
    return status;
}

int ctl_call_with_json(const struct ctl_globals *globals, const char *path,
                       const char *method, bool changes)
{
    struct vxd_text reply = {0};
    struct voxeld_error error;
    struct voxeld_client *client;
    struct vxd_exchange call;
    enum vxd_status status;
    uint8_t *bytes = NULL;
    size_t n_bytes = 0;
    int result = ctl_read_file(path, &bytes, &n_bytes);

    client = result == CTL_OK ? ctl_connect(globals) : NULL;
    if (client == NULL) {
        free(bytes);
        return CTL_FAILED;
    }
    VXD_TRY(vxd_exchange_begin(&call, client, NULL, changes));
    VXD_TRY(call_method(&call, method, (const char *)bytes, n_bytes, &reply));
out:
    if (vxd_exchange_end(&call, status, &error) == VOXELD_OK) {
        (void)printf("%s\n", reply.bytes);
        result = ctl_flush();
    } else {
        result = ctl_failed(path, &error);
    }
    free(reply.bytes);
    free(bytes);
    voxeld_close(client);
    return result;
}
