// SPDX-License-Identifier: Apache-2.0
/* What the daemon does with a message from a stranger, and the client with a reply: scan,
 * decode header and body within a budget, write what came out as JSON. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "proto/json.h"
#include "voxeld/v1/rpc.pb-c.h"

enum {
    BUDGET = 4 * 1024 * 1024
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Decodes; a message that was accepted can be packed and written. */
static void decode(const ProtobufCMessageDescriptor *descriptor, const uint8_t *bytes,
                   size_t n_bytes)
{
    struct vxd_decoder *decoder = NULL;
    ProtobufCMessage *message = NULL;
    struct vxd_text text = {0};
    struct vxd_err err = {0};
    enum vxd_status status;

    if (vxd_decoder_create(BUDGET, NULL, &decoder, &err) != VXD_OK) {
        return;
    }
    status = vxd_decode(decoder, descriptor, bytes, n_bytes, &message, &err);
    assert(vxd_decoder_used_bytes(decoder) <= BUDGET);
    if (status == VXD_OK) {
        assert(message->descriptor == descriptor);
        (void)protobuf_c_message_get_packed_size(message);
        status = vxd_json_write(message, &text, &err);
        assert(status == VXD_OK && text.bytes[text.n_bytes] == '\0');
        assert(strlen(text.bytes) == text.n_bytes);
    } else {
        assert(err.code == status && err.message[0] != '\0');
    }
    free(text.bytes);
    vxd_decoder_destroy(decoder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct vxd_envelope e = {0};
    struct vxd_err err = {0};
    enum vxd_status status = vxd_envelope_scan(data, size, &e, &err);

    if (status == VXD_OK) {
        const ProtobufCFieldDescriptor *method = protobuf_c_message_descriptor_get_field(
            &voxeld__v1__request__descriptor, e.method_tag);

        assert(e.body != NULL && e.body >= data && e.body + e.body_bytes <= data + size);
        if (e.header != NULL) {
            assert(e.header >= data && e.header + e.header_bytes <= data + size);
            decode(&voxeld__v1__request_header__descriptor, e.header, e.header_bytes);
        }
        if (method != NULL) {
            decode(method->descriptor, e.body, e.body_bytes);
        }
    } else {
        assert(status == VXD_INVALID_ARGUMENT && err.code == status);
    }
    decode(&voxeld__v1__response__descriptor, data, size);
    return 0;
}
