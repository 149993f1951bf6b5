// SPDX-License-Identifier: Apache-2.0
/* Fails the k-th allocation, for every k, in all that proto/ does: each time the answer is
 * RESOURCE_EXHAUSTED, nothing leaks (the sanitizer builds look), and at last it succeeds.
 * The linker puts our malloc, calloc and realloc in front (--wrap). */
#include <jansson.h>

#include "kinds.pb-c.h"
#include "proto/wire/wire.h"
#include "tests/support/failing_alloc.h"
#include "tests/support/test.h"
#include "voxeld/v1/hashmap.pb-c.h"
#include "voxeld/v1/rpc.pb-c.h"

static void *jansson_malloc(size_t n_bytes)
{
    return malloc(n_bytes); /* wrapped */
}

static void *unwrapped_malloc(size_t n_bytes)
{
    return __real_malloc(n_bytes);
}

static const char json[] =
    "{\"clouds\":[{\"fields\":[{\"name\":\"x\",\"dtype\":7},{\"name\":\"y\"}],"
    "\"data\":\"AAAA\",\"frameId\":\"a frame with a name\",\"sweeps\":[{\"dtS\":0.5}]}],"
    "\"features\":[\"x\",\"y\",\"z\",\"a\",\"b\",\"c\"],\"size\":{\"x\":0.1},\"reduce\":["
    "1,2]}";

static enum vxd_status read_and_write(struct vxd_err *err)
{
    struct vxd_decoder *decoder = NULL;
    ProtobufCMessage *message = NULL;
    struct vxd_text text = {0};
    enum vxd_status status;

    VXD_TRY(vxd_decoder_create((size_t)1 << 20, NULL, &decoder, err));
    VXD_TRY(vxd_json_read(decoder, &voxeld__v1__voxelize_request__descriptor, json,
                          sizeof json - 1, &message, err));
    VXD_TRY(vxd_json_write(message, &text, err));
out:
    free(text.bytes);
    vxd_decoder_destroy(decoder);
    return status;
}

/* More than the decoder's first chunk, and a big block. */
static enum vxd_status decode_wire(bool borrows, struct vxd_err *err)
{
    static const struct vxd_borrow borrow = {VXD_BIG_BLOCK_BYTES, 1, false};
    static uint8_t bytes[3 + 4 + VXD_BIG_BLOCK_BYTES + 2 * 1000];
    const size_t n_bytes = 8 + VXD_BIG_BLOCK_BYTES + 2 * 900;
    const ProtobufCMessageDescriptor *descriptor =
        &voxeld__v1__voxelize_request__descriptor;
    struct vxd_decoder *decoder = NULL;
    ProtobufCMessage *message = NULL;
    size_t n_borrowed = 0;
    enum vxd_status status;

    /* clouds { data (65536 bytes) }, then a thousand empty clouds */
    memcpy(bytes, "\x0a\x84\x80\x04\x1a\x80\x80\x04", 8);
    for (size_t i = 8 + VXD_BIG_BLOCK_BYTES; i + 1 < sizeof bytes; i += 2) {
        bytes[i] = 0x0a;
        bytes[i + 1] = 0;
    }
    VXD_TRY(vxd_decoder_create((size_t)1 << 20, NULL, &decoder, err));
    if (borrows) {
        VXD_TRY(vxd_decode_borrowing(decoder, &borrow, descriptor, bytes, n_bytes,
                                     &message, &n_borrowed, err));
        CHECK_INT(n_borrowed, VXD_BIG_BLOCK_BYTES);
    } else {
        VXD_TRY(vxd_decode(decoder, descriptor, bytes, n_bytes, &message, err));
    }
    CHECK_INT(((Voxeld__V1__VoxelizeRequest *)message)->n_clouds, 901);
out:
    vxd_decoder_destroy(decoder);
    return status;
}

static enum vxd_status decode_copying(struct vxd_err *err)
{
    return decode_wire(false, err);
}

static enum vxd_status decode_borrowing(struct vxd_err *err)
{
    return decode_wire(true, err);
}

static enum vxd_status write_safetensors(struct vxd_err *err)
{
    static uint8_t data[24];
    Voxeld__V1__VoxelizeResponse reply = VOXELD__V1__VOXELIZE_RESPONSE__INIT;
    Voxeld__V1__Tensor tensor = VOXELD__V1__TENSOR__INIT;
    int64_t shape = 24;
    uint8_t *file = NULL;
    size_t n_bytes = 0;
    enum vxd_status status;

    tensor.dtype = VOXELD__V1__DTYPE__UINT8;
    tensor.shape = &shape;
    tensor.n_shape = 1;
    tensor.data.data = data;
    tensor.data.len = sizeof data;
    reply.coords = &tensor;
    status = vxd_safetensors_write(&reply.base, &file, &n_bytes, err);
    if (status == VXD_OK) {
        free(file);
    }
    return status;
}

/* Tensors within elements of a repeated field: the header is written from copies of those. */
static enum vxd_status write_safetensors_of_elements(struct vxd_err *err)
{
    static uint8_t data[4];
    static char names[2][4] = {"sum", "max"};
    Voxeld__V1__MapExportResponse reply = VOXELD__V1__MAP_EXPORT_RESPONSE__INIT;
    Voxeld__V1__Tensor tensor = VOXELD__V1__TENSOR__INIT;
    Voxeld__V1__MapRows rows[2] = {VOXELD__V1__MAP_ROWS__INIT,
                                   VOXELD__V1__MAP_ROWS__INIT};
    Voxeld__V1__MapRows *values[2] = {&rows[0], &rows[1]};
    int64_t shape = 4;
    uint8_t *file = NULL;
    size_t n_bytes = 0;
    enum vxd_status status;

    tensor.dtype = VOXELD__V1__DTYPE__UINT8;
    tensor.shape = &shape;
    tensor.n_shape = 1;
    tensor.data.data = data;
    tensor.data.len = sizeof data;
    for (int i = 0; i < 2; i++) {
        rows[i].name = names[i];
        rows[i].rows = &tensor;
    }
    reply.values = values;
    reply.n_values = 2;
    status = vxd_safetensors_write(&reply.base, &file, &n_bytes, err);
    if (status == VXD_OK) {
        free(file);
    }
    return status;
}

static void fail_each(enum vxd_status (*run)(struct vxd_err *err), long n_min)
{
    enum {
        ENOUGH = 10000
    };

    for (long k = 0; k < ENOUGH; k++) {
        struct vxd_err err = {0};
        enum vxd_status status;
        bool failed;

        fail_allocation(k);
        status = run(&err);
        failed = stop_failing();
        if (!failed) {
            CHECK_INT(status, VXD_OK);
            CHECK(k >= n_min);
            return;
        }
        CHECK_INT(status, VXD_RESOURCE_EXHAUSTED);
        CHECK_INT(err.code, status);
        CHECK(err.message[0] != '\0');
    }
    CHECK(false);
}

static void test_json_any_failing_allocation_is_resource_exhausted(void)
{
    fail_each(read_and_write, 2);
}

/* jansson 2.14 takes a string that it cannot copy for a bad token, and where its token
 * buffer cannot grow it drops a character in silence. That is beyond us: here only crashes
 * and leaks are looked for. */
static void test_json_any_failing_allocation_of_the_parser_is_survived(void)
{
    long k = -1;

    json_set_alloc_funcs(jansson_malloc, free);
    do {
        struct vxd_err err = {0};
        enum vxd_status status;

        fail_allocation(++k);
        status = read_and_write(&err);
        CHECK_INT(err.code, status);
    } while (stop_failing());
    json_set_alloc_funcs(unwrapped_malloc, free);
    CHECK(k > 50);
}

static void test_decode_any_failing_block_is_resource_exhausted(void)
{
    fail_each(decode_copying, 4);
    fail_each(decode_borrowing, 3);
}

static void test_safetensors_any_failing_allocation_is_resource_exhausted(void)
{
    fail_each(write_safetensors, 3);
    fail_each(write_safetensors_of_elements, 6);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_json_any_failing_allocation_is_resource_exhausted),
    VXD_TEST(test_json_any_failing_allocation_of_the_parser_is_survived),
    VXD_TEST(test_decode_any_failing_block_is_resource_exhausted),
    VXD_TEST(test_safetensors_any_failing_allocation_is_resource_exhausted),
};

VXD_TEST_MAIN(tests)
