// SPDX-License-Identifier: Apache-2.0
/* JSON to a message, to JSON and back: what was accepted once must be accepted again and
 * mean the same. The first byte chooses the message. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "kinds.pb-c.h"
#include "proto/wire/wire.h"
#include "voxeld/v1/rpc.pb-c.h"

enum {
    BUDGET = 16 * 1024 * 1024
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const ProtobufCMessageDescriptor *const descriptors[] = {
    &voxeld__v1__request__descriptor,
    &voxeld__v1__voxelize_request__descriptor,
    &vxdtest__kinds__descriptor,
    /* Tensors from here on: data may come back as values. */
    &voxeld__v1__tensor__descriptor,
    &voxeld__v1__response__descriptor,
};

enum {
    FIRST_WITH_TENSOR = 3
};

struct packed {
    uint8_t *bytes;
    size_t n_bytes;
};

/* Reads json, packs it, writes it again; false where the JSON is refused. */
static bool go_round(const ProtobufCMessageDescriptor *descriptor, const char *json,
                     size_t n_bytes, struct packed *packed, struct vxd_text *text,
                     struct vxd_err *err)
{
    struct vxd_decoder *decoder = NULL;
    ProtobufCMessage *message = NULL;
    enum vxd_status status = vxd_decoder_create(BUDGET, NULL, &decoder, err);

    if (status == VXD_OK) {
        status = vxd_json_read(decoder, descriptor, json, n_bytes, &message, err);
    }
    if (status == VXD_OK) {
        packed->n_bytes = protobuf_c_message_get_packed_size(message);
        packed->bytes = malloc(packed->n_bytes + 1);
        if (packed->bytes == NULL) {
            abort();
        }
        (void)protobuf_c_message_pack(message, packed->bytes);
        status = vxd_json_write(message, text, err);
        assert(status == VXD_OK);
    } else {
        assert(err->code == status && err->message[0] != '\0');
    }
    vxd_decoder_destroy(decoder);
    return status == VXD_OK;
}

static bool is_equal(const struct packed *a, const struct packed *b)
{
    return a->n_bytes == b->n_bytes && memcmp(a->bytes, b->bytes, a->n_bytes) == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum {
        ROUNDS = 3
    };
    struct packed packed[ROUNDS] = {{0}};
    struct vxd_text texts[ROUNDS] = {{0}};
    struct vxd_err err = {0};
    size_t kind;
    int n = 0;

    if (size == 0) {
        return 0;
    }
    kind = data[0] % (sizeof descriptors / sizeof descriptors[0]);
    while (n < ROUNDS) {
        const char *json = n == 0 ? (const char *)data + 1 : texts[n - 1].bytes;
        size_t n_bytes = n == 0 ? size - 1 : texts[n - 1].n_bytes;

        if (!go_round(descriptors[kind], json, n_bytes, &packed[n], &texts[n], &err)) {
            /* Only the stranger's text is refused; ours may have grown too long. */
            assert(n == 0 || err.code == VXD_RESOURCE_EXHAUSTED);
            break;
        }
        n++;
    }
    if (n > 1 && kind < FIRST_WITH_TENSOR) {
        assert(is_equal(&packed[0], &packed[1]));
        assert(strcmp(texts[0].bytes, texts[1].bytes) == 0);
    }
    if (n == ROUNDS) {
        assert(is_equal(&packed[1], &packed[2]));
    }
    for (int i = 0; i < ROUNDS; i++) {
        free(packed[i].bytes);
        free(texts[i].bytes);
    }
    return 0;
}
