// SPDX-License-Identifier: Apache-2.0
/* What the daemon does with a message from a stranger, and the client with a reply: scan,
 * decode header and body within a budget, write what came out as JSON. Decoding in place
 * must agree with protobuf-c about every input, and so must what our encoder writes. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "proto/wire/wire.h"
#include "voxeld/v1/rpc.pb-c.h"

enum {
    BUDGET = 4 * 1024 * 1024,
    LEAST_BYTES = 3 /* of data that are not copied; else inputs would have to be large */
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The message as protobuf-c packs it; malloc'd. */
static uint8_t *pack(const ProtobufCMessage *message, size_t *n_bytes)
{
    uint8_t *packed;

    *n_bytes = protobuf_c_message_get_packed_size(message);
    packed = malloc(*n_bytes + 1);
    if (packed == NULL) {
        abort();
    }
    (void)protobuf_c_message_pack(message, packed);
    return packed;
}

/* Decodes in place: has to give `expected`, NULL for a message that was refused. */
static void check_borrowing(const ProtobufCMessageDescriptor *descriptor,
                            const uint8_t *bytes, size_t n_bytes,
                            const ProtobufCMessage *expected)
{
    static const struct vxd_borrow borrow = {.least_bytes = LEAST_BYTES, .align = 1};
    struct vxd_decoder *decoder = NULL;
    ProtobufCMessage *message = NULL;
    struct vxd_err err = {0};
    size_t n_borrowed = 0;
    size_t n_packed[2];
    uint8_t *packed[2];
    enum vxd_status status;

    /* The walk's own notes need some memory more. */
    if (vxd_decoder_create((size_t)64 * BUDGET, NULL, &decoder, &err) != VXD_OK) {
        return;
    }
    status = vxd_decode_borrowing(decoder, &borrow, descriptor, bytes, n_bytes, &message,
                                  &n_borrowed, &err);
    assert((status == VXD_OK) == (expected != NULL));
    assert(n_borrowed <= n_bytes);
    if (expected != NULL) {
        packed[0] = pack(expected, &n_packed[0]);
        packed[1] = pack(message, &n_packed[1]);
        assert(n_packed[0] == n_packed[1] &&
               memcmp(packed[0], packed[1], n_packed[0]) == 0);
        free(packed[0]);
        free(packed[1]);
    }
    vxd_decoder_destroy(decoder);
}

/* What protobuf-c reads of what it packs itself, as JSON; false where it does not. */
static bool read_back(const ProtobufCMessage *message, struct vxd_text *text)
{
    size_t n_bytes;
    uint8_t *packed = pack(message, &n_bytes);
    ProtobufCMessage *again =
        protobuf_c_message_unpack(message->descriptor, NULL, n_bytes, packed);
    struct vxd_err err = {0};
    bool ok = again != NULL && vxd_json_write(again, text, &err) == VXD_OK;

    assert(ok == (again != NULL));
    protobuf_c_message_free_unpacked(again, NULL);
    free(packed);
    return ok;
}

/* What the encoder writes reads as what protobuf-c writes does (padding is an unknown field,
 * which JSON does not show), with its data in place. The message itself is no measure:
 * protobuf-c leaves out a negative zero, as it does a zero, and takes a field number 0 that
 * is written in two bytes, repeats it in one, and does not take that. */
static void check_encoding(const ProtobufCMessage *message)
{
    static const struct vxd_borrow borrow = {LEAST_BYTES, VXD_DATA_ALIGN, false};
    struct vxd_decoder *decoder = NULL;
    ProtobufCMessage *again = NULL;
    struct vxd_text expected = {0};
    struct vxd_text text = {0};
    struct vxd_err err = {0};
    size_t n_borrowed;
    struct vxd_encoder measured = {.least_bytes = LEAST_BYTES};
    struct vxd_encoder written = measured;
    bool readable = read_back(message, &expected);

    vxd_encode(&measured, message);
    written.out = malloc(measured.at + 1);
    if (written.out == NULL) {
        abort();
    }
    vxd_encode(&written, message);
    assert(written.at == measured.at);
    if (vxd_decoder_create((size_t)64 * BUDGET, NULL, &decoder, &err) == VXD_OK &&
        vxd_decode_borrowing(decoder, &borrow, message->descriptor, written.out,
                             written.at, &again, &n_borrowed, &err) == VXD_OK) {
        enum vxd_status status = vxd_json_write(again, &text, &err);

        assert(status == VXD_OK && text.n_bytes == expected.n_bytes &&
               memcmp(text.bytes, expected.bytes, text.n_bytes) == 0);
    } else {
        assert(!readable);
    }
    free(text.bytes);
    free(expected.bytes);
    vxd_decoder_destroy(decoder);
    free(written.out);
}

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
        check_encoding(message);
        check_borrowing(descriptor, bytes, n_bytes, message);
    } else {
        assert(err.code == status && err.message[0] != '\0');
        if (status == VXD_INVALID_ARGUMENT) {
            check_borrowing(descriptor, bytes, n_bytes, NULL);
        }
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
