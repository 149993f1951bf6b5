// SPDX-License-Identifier: Apache-2.0
/* The decoding arena: its budget, the place of big fields, and that nothing leaks or
 * crashes when any allocation fails. */
#include "kinds.pb-c.h"
#include "proto/wire/wire.h"
#include "tests/support/test.h"
#include "voxeld/v1/rpc.pb-c.h"

#define MIB ((size_t)1024 * 1024)

/* A big allocator that counts, and fails after n_left blocks. */
struct counter {
    int n_left;
    int n_alive;
    size_t last_bytes;
};

static void *counter_alloc(void *context, size_t n_bytes)
{
    struct counter *c = context;
    void *block = c->n_left > 0 ? malloc(n_bytes) : NULL;

    if (block != NULL) {
        c->n_left--;
        c->n_alive++;
        c->last_bytes = n_bytes;
    }
    return block;
}

static void counter_free(void *context, void *block)
{
    struct counter *c = context;

    c->n_alive--;
    free(block);
}

/* Packs a cloud of n_data bytes in front of a name; malloc'd. */
static uint8_t *pack_cloud(size_t n_data, size_t *n_bytes)
{
    Voxeld__V1__Cloud cloud = VOXELD__V1__CLOUD__INIT;
    uint8_t *packed = NULL;

    cloud.data.data = calloc(n_data, 1);
    cloud.data.len = n_data;
    cloud.frame_id = (char *)"lidar_top";
    if (cloud.data.data != NULL) {
        *n_bytes = voxeld__v1__cloud__get_packed_size(&cloud);
        packed = malloc(*n_bytes);
        if (packed != NULL) {
            (void)voxeld__v1__cloud__pack(&cloud, packed);
        }
    }
    free(cloud.data.data);
    return packed;
}

static void test_decode_big_field_lands_in_the_big_allocator(void)
{
    struct counter counter = {.n_left = 1};
    struct vxd_big_alloc big = {counter_alloc, counter_free, &counter};
    struct vxd_decoder *decoder = NULL;
    ProtobufCMessage *message = NULL;
    size_t n_bytes = 0;
    uint8_t *packed = pack_cloud(MIB, &n_bytes);

    REQUIRE(packed != NULL);
    REQUIRE(vxd_decoder_create(2 * MIB, &big, &decoder, NULL) == VXD_OK);
    CHECK(vxd_decode(decoder, &voxeld__v1__cloud__descriptor, packed, n_bytes, &message,
                     NULL) == VXD_OK);
    CHECK_INT(counter.n_alive, 1);
    CHECK_INT(counter.last_bytes, MIB);
    REQUIRE(message != NULL);
    CHECK_INT(((Voxeld__V1__Cloud *)message)->data.len, MIB);
    CHECK_STR(((Voxeld__V1__Cloud *)message)->frame_id, "lidar_top");
    CHECK(vxd_decoder_used_bytes(decoder) > MIB);
    CHECK(vxd_decoder_used_bytes(decoder) < MIB + 4096);
    vxd_decoder_destroy(decoder);
    CHECK_INT(counter.n_alive, 0);
    free(packed);
}

static void test_decode_field_below_the_big_size_does_not(void)
{
    struct counter counter = {.n_left = 1};
    struct vxd_big_alloc big = {counter_alloc, counter_free, &counter};
    struct vxd_decoder *decoder = NULL;
    ProtobufCMessage *message = NULL;
    size_t n_bytes = 0;
    uint8_t *packed = pack_cloud(VXD_BIG_BLOCK_BYTES - 1, &n_bytes);

    REQUIRE(packed != NULL);
    REQUIRE(vxd_decoder_create(MIB, &big, &decoder, NULL) == VXD_OK);
    CHECK(vxd_decode(decoder, &voxeld__v1__cloud__descriptor, packed, n_bytes, &message,
                     NULL) == VXD_OK);
    CHECK_INT(counter.n_alive, 0);
    vxd_decoder_destroy(decoder);
    free(packed);
}

static void test_decode_big_allocator_empty_is_resource_exhausted(void)
{
    struct counter counter = {.n_left = 0};
    struct vxd_big_alloc big = {counter_alloc, counter_free, &counter};
    struct vxd_decoder *decoder = NULL;
    ProtobufCMessage *message = NULL;
    struct vxd_err err = {0};
    size_t n_bytes = 0;
    uint8_t *packed = pack_cloud(MIB, &n_bytes);

    REQUIRE(packed != NULL);
    REQUIRE(vxd_decoder_create(2 * MIB, &big, &decoder, NULL) == VXD_OK);
    CHECK_INT(vxd_decode(decoder, &voxeld__v1__cloud__descriptor, packed, n_bytes,
                         &message, &err),
              VXD_RESOURCE_EXHAUSTED);
    CHECK(strstr(err.message, "1048576") != NULL);
    CHECK(message == NULL);
    vxd_decoder_destroy(decoder);
    free(packed);
}

/* The message has 8 MiB of empty submessages, which take 470 MB with protobuf-c's own
 * allocator. */
static void test_decode_empty_submessages_run_into_the_budget(void)
{
    struct vxd_decoder *decoder = NULL;
    ProtobufCMessage *message = NULL;
    struct vxd_err err = {0};
    size_t n_bytes = 8 * MIB;
    uint8_t *bytes = malloc(n_bytes);

    REQUIRE(bytes != NULL);
    for (size_t i = 0; i < n_bytes; i += 2) {
        bytes[i] = 0x0a; /* clouds {} */
        bytes[i + 1] = 0;
    }
    REQUIRE(vxd_decoder_create(64 * MIB, NULL, &decoder, NULL) == VXD_OK);
    CHECK_INT(vxd_decode(decoder, &voxeld__v1__voxelize_request__descriptor, bytes,
                         n_bytes, &message, &err),
              VXD_RESOURCE_EXHAUSTED);
    CHECK(strstr(err.message, "67108864") != NULL);
    CHECK(vxd_decoder_used_bytes(decoder) <= 64 * MIB);
    vxd_decoder_destroy(decoder);
    free(bytes);
}

/* Nesting deeper than any message of ours is skipped as an unknown field or refused; the
 * stack does not grow with it. */
static void test_decode_deep_nesting_is_harmless(void)
{
    enum {
        DEPTH = 100000
    };
    uint8_t *bytes = malloc((size_t)DEPTH * 5);
    struct vxd_decoder *decoder = NULL;
    ProtobufCMessage *message = NULL;
    size_t at = (size_t)DEPTH * 5;
    size_t inner = 0;

    REQUIRE(bytes != NULL);
    /* Built from the inside out: each level is field 1, delimited. */
    for (int level = 0; level < DEPTH; level++) {
        size_t length = inner;

        bytes[at - 1] = (uint8_t)(length >> 21 & 0x7F);
        bytes[at - 2] = (uint8_t)(0x80 | (length >> 14 & 0x7F));
        bytes[at - 3] = (uint8_t)(0x80 | (length >> 7 & 0x7F));
        bytes[at - 4] = (uint8_t)(0x80 | (length & 0x7F));
        bytes[at - 5] = 0x0a;
        at -= 5;
        inner += 5;
    }
    REQUIRE(vxd_decoder_create(16 * MIB, NULL, &decoder, NULL) == VXD_OK);
    CHECK_INT(vxd_decode(decoder, &voxeld__v1__voxelize_request__descriptor, bytes, inner,
                         &message, NULL),
              VXD_INVALID_ARGUMENT);
    vxd_decoder_destroy(decoder);
    free(bytes);
}

/* A singular submessage given again and again makes protobuf-c merge, copying what came
 * before each time: the budget bounds that too. */
static void test_decode_repeated_merging_runs_into_the_budget(void)
{
    enum {
        ROUNDS = 20000
    };
    static const uint8_t coords[] = {0x1a, 0x06, 0x12, 0x04, 1, 2, 3, 4}; /* shape */
    uint8_t *bytes = malloc(sizeof coords * ROUNDS);
    struct vxd_decoder *decoder = NULL;
    ProtobufCMessage *message = NULL;

    REQUIRE(bytes != NULL);
    for (size_t i = 0; i < ROUNDS; i++) {
        memcpy(bytes + i * sizeof coords, coords, sizeof coords);
    }
    REQUIRE(vxd_decoder_create(16 * MIB, NULL, &decoder, NULL) == VXD_OK);
    CHECK_INT(vxd_decode(decoder, &voxeld__v1__voxelize_response__descriptor, bytes,
                         sizeof coords * ROUNDS, &message, NULL),
              VXD_RESOURCE_EXHAUSTED);
    vxd_decoder_destroy(decoder);
    free(bytes);
}

static void test_decode_string_that_is_not_utf8_is_refused_by_name(void)
{
    static const uint8_t bytes[] = "\x0a\x05\x2a\x03\xc3\x28z"; /* clouds { frame_id } */
    struct vxd_decoder *decoder = NULL;
    ProtobufCMessage *message = NULL;
    struct vxd_err err = {0};

    REQUIRE(vxd_decoder_create(MIB, NULL, &decoder, NULL) == VXD_OK);
    CHECK_INT(vxd_decode(decoder, &voxeld__v1__voxelize_request__descriptor, bytes,
                         sizeof bytes - 1, &message, &err),
              VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, "frame_id");
    vxd_decoder_destroy(decoder);
}

static void test_decoder_blocks_are_aligned_and_apart(void)
{
    struct vxd_decoder *decoder = NULL;
    ProtobufCAllocator *allocator;
    size_t total = 0;
    size_t n = 1;

    REQUIRE(vxd_decoder_create(SIZE_MAX, NULL, &decoder, NULL) == VXD_OK);
    allocator = vxd_decoder_allocator(decoder);
    for (int i = 0; i < 2000; i++) {
        uint8_t *block = allocator->alloc(allocator->allocator_data, n);

        REQUIRE(block != NULL);
        CHECK_INT((uintptr_t)block % 16, 0);
        memset(block, i & 0xFF, n); /* ASan sees what lies outside of chunks */
        allocator->free(allocator->allocator_data, block);
        total += (n + 15) / 16 * 16;
        n = n * 1103515245u % 70001;
        n = n > 0 ? n : 1;
    }
    CHECK_INT(vxd_decoder_used_bytes(decoder), total);
    CHECK(allocator->alloc(allocator->allocator_data, SIZE_MAX) == NULL);
    CHECK(allocator->alloc(allocator->allocator_data, SIZE_MAX - 15) == NULL);
    CHECK_INT(vxd_decoder_used_bytes(decoder), total);
    vxd_decoder_destroy(decoder);
    vxd_decoder_destroy(NULL);
}

static void test_decoder_budget_is_exact(void)
{
    struct vxd_decoder *decoder = NULL;
    struct vxd_err err = {0};

    REQUIRE(vxd_decoder_create(64, NULL, &decoder, NULL) == VXD_OK);
    CHECK(vxd_decoder_alloc(decoder, 33, &err) != NULL); /* 48 */
    CHECK(vxd_decoder_alloc(decoder, 17, &err) == NULL);
    CHECK_INT(err.code, VXD_RESOURCE_EXHAUSTED);
    CHECK(vxd_decoder_alloc(decoder, 0, &err) != NULL); /* 16 */
    CHECK(vxd_decoder_alloc(decoder, 0, &err) == NULL);
    CHECK_INT(vxd_decoder_used_bytes(decoder), 64);
    vxd_decoder_destroy(decoder);
}

/* The message has something of every kind, so that every allocation of protobuf-c and
 * of the JSON reader happens. */
static const char every_kind[] =
    "{\"text\":\"some text\",\"data\":\"AAECAwQFBgc=\",\"leaf\":{\"name\":\"n\"},"
    "\"manyI32\":[1,2,3],\"manyDbl\":[1.5],\"manyTexts\":[\"a\",\"bc\",\"\"],"
    "\"manyData\":[\"AA==\",\"\"],\"manyLeaves\":[{},{\"name\":\"x\"},{\"name\":\"y\"}],"
    "\"i32\":1,\"s32\":1,\"sf32\":1,\"u32\":1,\"f32\":1,\"i64\":1,\"s64\":1,\"sf64\":1,"
    "\"u64\":1,\"f64\":1,\"flt\":1,\"dbl\":1,\"truth\":true,\"aBC\":1,\"digit1x\":2,"
    "\"manyMoods\":[\"SAD\"],\"manyTruths\":[true],\"pickLeaf\":{\"name\":\"z\"}}";

/* Every budget from nothing to enough gives RESOURCE_EXHAUSTED, then success; the leak
 * checker sees what is lost. */
static void test_decode_any_failing_allocation_is_reported(void)
{
    struct vxd_decoder *decoder = NULL;
    ProtobufCMessage *message = NULL;
    uint8_t packed[1024];
    size_t n_bytes;
    size_t enough;
    size_t step = 16;

    REQUIRE(vxd_decoder_create(MIB, NULL, &decoder, NULL) == VXD_OK);
    REQUIRE(vxd_json_read(decoder, &vxdtest__kinds__descriptor, every_kind,
                          sizeof every_kind - 1, &message, NULL) == VXD_OK);
    enough = vxd_decoder_used_bytes(decoder);
    n_bytes = protobuf_c_message_get_packed_size(message);
    REQUIRE(n_bytes <= sizeof packed - 8);
    (void)protobuf_c_message_pack(message, packed);
    vxd_decoder_destroy(decoder);
    /* An unknown field, which protobuf-c keeps, and a second leaf, which it merges. */
    memcpy(packed + n_bytes, "\xfa\x07\x01u\x8a\x01\x00", 7);
    n_bytes += 7;
    for (size_t budget = 0; budget <= enough + 16384; budget += step) {
        enum vxd_status from_json;
        enum vxd_status from_wire;

        REQUIRE(vxd_decoder_create(budget, NULL, &decoder, NULL) == VXD_OK);
        from_json = vxd_json_read(decoder, &vxdtest__kinds__descriptor, every_kind,
                                  sizeof every_kind - 1, &message, NULL);
        CHECK_INT(from_json, budget < enough ? VXD_RESOURCE_EXHAUSTED : VXD_OK);
        vxd_decoder_destroy(decoder);
        REQUIRE(vxd_decoder_create(budget, NULL, &decoder, NULL) == VXD_OK);
        from_wire = vxd_decode(decoder, &vxdtest__kinds__descriptor, packed, n_bytes,
                               &message, NULL);
        CHECK(from_wire == VXD_OK || from_wire == VXD_RESOURCE_EXHAUSTED);
        CHECK(from_wire == VXD_OK || budget < enough + 16384);
        CHECK(vxd_decoder_used_bytes(decoder) <= budget);
        vxd_decoder_destroy(decoder);
    }
    REQUIRE(vxd_decoder_create(enough + 16384, NULL, &decoder, NULL) == VXD_OK);
    CHECK_INT(
        vxd_decode(decoder, &vxdtest__kinds__descriptor, packed, n_bytes, &message, NULL),
        VXD_OK);
    vxd_decoder_destroy(decoder);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_decode_big_field_lands_in_the_big_allocator),
    VXD_TEST(test_decode_field_below_the_big_size_does_not),
    VXD_TEST(test_decode_big_allocator_empty_is_resource_exhausted),
    VXD_TEST(test_decode_empty_submessages_run_into_the_budget),
    VXD_TEST(test_decode_deep_nesting_is_harmless),
    VXD_TEST(test_decode_repeated_merging_runs_into_the_budget),
    VXD_TEST(test_decode_string_that_is_not_utf8_is_refused_by_name),
    VXD_TEST(test_decoder_blocks_are_aligned_and_apart),
    VXD_TEST(test_decoder_budget_is_exact),
    VXD_TEST(test_decode_any_failing_allocation_is_reported),
};

VXD_TEST_MAIN(tests)
