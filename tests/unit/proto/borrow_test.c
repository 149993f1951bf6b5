// SPDX-License-Identifier: Apache-2.0
/* Big data that are not copied: decoding in place gives what decoding by protobuf-c
 * gives, for valid messages and for all similar ones, and the encoder writes the same
 * message with its data aligned. */
#include "kinds.pb-c.h"
#include "proto/wire/wire.h"
#include "tests/support/test.h"
#include "voxeld/v1/rpc.pb-c.h"

#define MIB ((size_t)1024 * 1024)

static const struct vxd_borrow everything = {.least_bytes = 1, .align = 1};
static const struct vxd_borrow as_served = {VXD_BIG_BLOCK_BYTES, VXD_DATA_ALIGN, false};

/* A message in a block of its own, at the address that nng would give it. */
struct wire {
    uint8_t *block;
    uint8_t *bytes;
    size_t n_bytes;
};

static bool wire_create(struct wire *wire, const ProtobufCMessage *message,
                        size_t least_bytes)
{
    struct vxd_encoder e = {.least_bytes = least_bytes, .origin = VXD_RPC_ORIGIN};

    vxd_encode(&e, message);
    wire->n_bytes = e.at;
    wire->block = malloc(VXD_RPC_ORIGIN + e.at + 1);
    if (wire->block == NULL) {
        return false;
    }
    wire->bytes = wire->block + VXD_RPC_ORIGIN;
    e.at = 0;
    e.out = wire->bytes;
    vxd_encode(&e, message);
    CHECK_INT(e.at, wire->n_bytes);
    return true;
}

/* Packs again what protobuf-c decoded; malloc'd, NULL when that is no message. */
static uint8_t *repack(const ProtobufCMessage *message, size_t *n_bytes)
{
    uint8_t *bytes;

    *n_bytes = protobuf_c_message_get_packed_size(message);
    bytes = malloc(*n_bytes + 1);
    if (bytes != NULL) {
        (void)protobuf_c_message_pack(message, bytes);
    }
    return bytes;
}

/* Decodes in both ways, with one outcome. Returns the bytes that were borrowed. */
static size_t check_same_way(const struct vxd_borrow *borrow,
                             const ProtobufCMessageDescriptor *descriptor,
                             const uint8_t *bytes, size_t n_bytes)
{
    struct vxd_decoder *decoders[2] = {NULL, NULL};
    ProtobufCMessage *messages[2] = {NULL, NULL};
    uint8_t *packed[2] = {NULL, NULL};
    size_t n_packed[2] = {0, 0};
    struct vxd_err errors[2] = {{0}, {0}};
    size_t n_borrowed = 0;

    for (int i = 0; i < 2; i++) {
        enum vxd_status status = vxd_decoder_create(64 * MIB, NULL, &decoders[i], NULL);

        CHECK_INT(status, VXD_OK);
        if (status != VXD_OK) {
            goto out;
        }
    }
    (void)vxd_decode(decoders[0], descriptor, bytes, n_bytes, &messages[0], &errors[0]);
    (void)vxd_decode_borrowing(decoders[1], borrow, descriptor, bytes, n_bytes,
                               &messages[1], &n_borrowed, &errors[1]);
    CHECK_INT(errors[1].code, errors[0].code);
    CHECK_STR(errors[1].message, errors[0].message);
    CHECK_STR(errors[1].field, errors[0].field);
    if (messages[0] != NULL && messages[1] != NULL) {
        for (int i = 0; i < 2; i++) {
            packed[i] = repack(messages[i], &n_packed[i]);
        }
        CHECK_INT(n_packed[1], n_packed[0]);
        CHECK(packed[0] != NULL && packed[1] != NULL && n_packed[0] == n_packed[1] &&
              memcmp(packed[0], packed[1], n_packed[0]) == 0);
    }
out:
    for (int i = 0; i < 2; i++) {
        free(packed[i]);
        vxd_decoder_destroy(decoders[i]);
    }
    return n_borrowed;
}

/* Likewise, of bytes that stay as they are and of those that may change. */
static size_t check_same(const struct vxd_borrow *borrow,
                         const ProtobufCMessageDescriptor *descriptor,
                         const uint8_t *bytes, size_t n_bytes)
{
    const struct vxd_borrow live = {borrow->least_bytes, borrow->align, true};
    size_t n_borrowed = check_same_way(borrow, descriptor, bytes, n_bytes);

    CHECK_INT(check_same_way(&live, descriptor, bytes, n_bytes), n_borrowed);
    return n_borrowed;
}

/* Makes two clouds with sweeps; each of the five has n_data bytes. */
struct clouds {
    Voxeld__V1__Sweep sweeps[2];
    Voxeld__V1__Sweep *sweep_list[2];
    Voxeld__V1__Field field;
    Voxeld__V1__Field *field_list[1];
    Voxeld__V1__Cloud clouds[3];
    Voxeld__V1__Cloud *cloud_list[3];
    Voxeld__V1__VoxelizeRequest request;
};

static void clouds_init(struct clouds *c, uint8_t *data, size_t n_data)
{
    const ProtobufCBinaryData points = {n_data, data};

    voxeld__v1__voxelize_request__init(&c->request);
    voxeld__v1__field__init(&c->field);
    c->field.name = (char *)"intensity";
    c->field.offset = 12;
    c->field_list[0] = &c->field;
    for (size_t i = 0; i < 2; i++) {
        voxeld__v1__sweep__init(&c->sweeps[i]);
        c->sweeps[i].data = points;
        c->sweeps[i].dt_s = 0.1 * (double)i;
        c->sweep_list[i] = &c->sweeps[i];
    }
    for (size_t i = 0; i < 3; i++) {
        voxeld__v1__cloud__init(&c->clouds[i]);
        c->clouds[i].fields = c->field_list;
        c->clouds[i].n_fields = 1;
        c->clouds[i].data = points;
        c->clouds[i].frame_id = (char *)"lidar_top";
        c->clouds[i].stamp_ns = (int64_t)i;
        c->cloud_list[i] = &c->clouds[i];
    }
    c->clouds[1].sweeps = c->sweep_list;
    c->clouds[1].n_sweeps = 2;
    c->request.clouds = c->cloud_list;
    c->request.n_clouds = 3;
    c->request.max_points = 5;
}

static void test_encoded_big_data_are_borrowed_from_where_they_stand(void)
{
    enum {
        N_DATA = 70001
    };
    static uint8_t data[N_DATA];
    struct clouds c;
    struct wire wire;
    struct vxd_decoder *decoder = NULL;
    ProtobufCMessage *message = NULL;
    const Voxeld__V1__VoxelizeRequest *request;
    size_t n_borrowed = 0;

    for (size_t i = 0; i < N_DATA; i++) {
        data[i] = (uint8_t)(i * 7);
    }
    clouds_init(&c, data, N_DATA);
    c.clouds[2].data.len = 100; /* a small one among them */
    REQUIRE(wire_create(&wire, &c.request.base, VXD_BIG_BLOCK_BYTES));
    CHECK_INT((uintptr_t)wire.block % VXD_DATA_ALIGN, 0);
    REQUIRE(vxd_decoder_create(MIB, NULL, &decoder, NULL) == VXD_OK);
    REQUIRE(vxd_decode_borrowing(decoder, &as_served, c.request.base.descriptor,
                                 wire.bytes, wire.n_bytes, &message, &n_borrowed,
                                 NULL) == VXD_OK);
    CHECK_INT(n_borrowed, 4 * N_DATA);
    CHECK(vxd_decoder_used_bytes(decoder) < 8192);
    request = (const Voxeld__V1__VoxelizeRequest *)message;
    REQUIRE(request->n_clouds == 3 && request->clouds[1]->n_sweeps == 2);
    CHECK_INT(request->max_points, 5);
    CHECK_STR(request->clouds[1]->frame_id, "lidar_top");
    for (size_t i = 0; i < 4; i++) {
        const ProtobufCBinaryData *points =
            i < 2 ? &request->clouds[i]->data : &request->clouds[1]->sweeps[i - 2]->data;

        CHECK(points->data > wire.bytes && points->data < wire.bytes + wire.n_bytes);
        CHECK_INT((uintptr_t)points->data % VXD_DATA_ALIGN, 0);
        REQUIRE(points->len == N_DATA);
        CHECK(memcmp(points->data, data, N_DATA) == 0);
    }
    CHECK_INT(request->clouds[2]->data.len, 100);
    CHECK(memcmp(request->clouds[2]->data.data, data, 100) == 0);
    vxd_decoder_destroy(decoder);
    free(wire.block);
}

static void test_data_that_are_misaligned_are_copied(void)
{
    static uint8_t data[VXD_BIG_BLOCK_BYTES];
    struct clouds c;
    struct wire wire;

    clouds_init(&c, data, sizeof data);
    REQUIRE(wire_create(&wire, &c.request.base, VXD_BIG_BLOCK_BYTES));
    CHECK_INT(check_same(&as_served, c.request.base.descriptor, wire.bytes, wire.n_bytes),
              5 * sizeof data);
    /* The same bytes lie one address further. */
    memmove(wire.bytes + 1, wire.bytes, wire.n_bytes);
    CHECK_INT(
        check_same(&as_served, c.request.base.descriptor, wire.bytes + 1, wire.n_bytes),
        0);
    free(wire.block);
}

/* The sizes lie around every width of a length. */
static void test_encoded_message_of_any_size_is_the_same_message(void)
{
    static const size_t sizes[] = {0,     1,     15,      16,      17,     127,
                                   128,   129,   16383,   16384,   16385,  65535,
                                   65536, 65537, 2097151, 2097152, 2097153};
    uint8_t *data = calloc(2097153, 1);
    struct clouds c;

    REQUIRE(data != NULL);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        Voxeld__V1__Request request = VOXELD__V1__REQUEST__INIT;
        struct wire wire;
        size_t n_borrowed;

        clouds_init(&c, data, sizes[i]);
        request.method_case = VOXELD__V1__REQUEST__METHOD_VOXELIZE;
        request.voxelize = &c.request;
        REQUIRE(wire_create(&wire, &request.base, 1));
        n_borrowed = check_same(&(struct vxd_borrow){1, VXD_DATA_ALIGN, false},
                                request.base.descriptor, wire.bytes, wire.n_bytes);
        CHECK_INT(n_borrowed, 5 * sizes[i]);
        CHECK(wire.n_bytes < 5 * sizes[i] + 400);
        free(wire.block);
    }
    free(data);
}

/* Data of every kind of field are left to protobuf-c or borrowed, never lost. */
static void test_encoded_kinds_keep_every_field(void)
{
    static uint8_t data[40];
    ProtobufCBinaryData many[2] = {{sizeof data, data}, {3, data}};
    Vxdtest__Leaf leaf = VXDTEST__LEAF__INIT;
    Vxdtest__Leaf *leaves[1] = {&leaf};
    Vxdtest__Kinds kinds = VXDTEST__KINDS__INIT;
    struct wire wire;

    leaf.name = (char *)"leaf";
    kinds.i32 = -5;
    kinds.data.data = data;
    kinds.data.len = sizeof data;
    kinds.many_data = many;
    kinds.n_many_data = 2;
    kinds.leaf = &leaf;
    kinds.many_leaves = leaves;
    kinds.n_many_leaves = 1;
    kinds.choice_case = VXDTEST__KINDS__CHOICE_PICK_DATA;
    kinds.pick_data = many[0];
    REQUIRE(wire_create(&wire, &kinds.base, 8));
    CHECK_INT(check_same(&everything, kinds.base.descriptor, wire.bytes, wire.n_bytes),
              sizeof data);
    free(wire.block);
}

/* protobuf merges what is given twice; of a oneof the last member wins. */
static void test_messages_given_twice_decode_as_ever(void)
{
    static const struct {
        const char *bytes;
        size_t n_bytes;
        size_t n_borrowed;
    } cases[] = {
        /* coords { data "abc" } coords { shape 5 } */
        {"\x1a\x05\x1a\x03"
         "abc\x1a\x02\x10\x05",
         11, 0},
        /* coords { data "abc" data "xy" } */
        {"\x1a\x09\x1a\x03"
         "abc\x1a\x02xy",
         11, 0},
        /* coords { data "abc" } */
        {"\x1a\x05\x1a\x03"
         "abc",
         7, 3},
    };
    /* voxelize { clouds { data "abc" } } status {}, and the other way round */
    static const char last_wins[] = "\xa2\x01\x07\x0a\x05\x1a\x03"
                                    "abc\x5a\x00";
    static const char first_loses[] = "\x5a\x00\xa2\x01\x07\x0a\x05\x1a\x03"
                                      "abc";
    const ProtobufCMessageDescriptor *response =
        &voxeld__v1__voxelize_response__descriptor;
    const ProtobufCMessageDescriptor *request = &voxeld__v1__request__descriptor;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CHECK_INT(check_same(&everything, response, (const uint8_t *)cases[i].bytes,
                             cases[i].n_bytes),
                  cases[i].n_borrowed);
    }
    (void)check_same(&everything, request, (const uint8_t *)last_wins,
                     sizeof last_wins - 1);
    (void)check_same(&everything, request, (const uint8_t *)first_loses,
                     sizeof first_loses - 1);
}

/* Decodes a message cut short anywhere, and one with any byte changed. */
static void test_near_misses_of_a_message_decode_as_ever(void)
{
    static uint8_t data[21] = "\x0a\x02 is no field\x1a\xff\xff";
    static const uint8_t values[] = {0x00, 0x01, 0x7f, 0x80, 0xff, 0x1a, 0x0b};
    Voxeld__V1__Request request = VOXELD__V1__REQUEST__INIT;
    Voxeld__V1__RequestHeader header = VOXELD__V1__REQUEST_HEADER__INIT;
    struct clouds c;
    struct wire wire;

    clouds_init(&c, data, sizeof data);
    header.request_id = (char *)"r1";
    request.header = &header;
    request.method_case = VOXELD__V1__REQUEST__METHOD_VOXELIZE;
    request.voxelize = &c.request;
    REQUIRE(wire_create(&wire, &request.base, 1));
    for (size_t n = 0; n <= wire.n_bytes; n++) {
        (void)check_same(&everything, request.base.descriptor, wire.bytes, n);
    }
    for (size_t at = 0; at < wire.n_bytes; at++) {
        uint8_t before = wire.bytes[at];

        for (size_t i = 0; i < sizeof values; i++) {
            wire.bytes[at] = values[i];
            (void)check_same(&everything, request.base.descriptor, wire.bytes,
                             wire.n_bytes);
        }
        wire.bytes[at] = before;
    }
    free(wire.block);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_encoded_big_data_are_borrowed_from_where_they_stand),
    VXD_TEST(test_data_that_are_misaligned_are_copied),
    VXD_TEST(test_encoded_message_of_any_size_is_the_same_message),
    VXD_TEST(test_encoded_kinds_keep_every_field),
    VXD_TEST(test_messages_given_twice_decode_as_ever),
    VXD_TEST(test_near_misses_of_a_message_decode_as_ever),
};

VXD_TEST_MAIN(tests)
