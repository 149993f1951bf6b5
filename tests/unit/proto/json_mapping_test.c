// SPDX-License-Identifier: Apache-2.0
/* What the golden file cannot show: our stricter rules, the words of errors, limits,
 * tensors, and the texts and base64 below them. */
#include <math.h>

#include "kinds.pb-c.h"
#include "proto/base/base64.h"
#include "proto/wire/tensor_json.h"
#include "proto/wire/wire.h"
#include "tests/support/test.h"
#include "voxeld/v1/rpc.pb-c.h"

#define MIB ((size_t)1024 * 1024)

static enum vxd_status read_text(const ProtobufCMessageDescriptor *descriptor,
                                 const char *text, size_t n_bytes, struct vxd_err *err)
{
    struct vxd_decoder *decoder = NULL;
    ProtobufCMessage *message = NULL;
    enum vxd_status status = vxd_decoder_create(MIB, NULL, &decoder, err);

    if (status == VXD_OK) {
        status = vxd_json_read(decoder, descriptor, text, n_bytes, &message, err);
    }
    vxd_decoder_destroy(decoder);
    return status;
}

static void check_error(const ProtobufCMessageDescriptor *descriptor, const char *text,
                        const char *field, const char *words)
{
    struct vxd_err err = {0};

    CHECK_INT(read_text(descriptor, text, strlen(text), &err), VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, field);
    if (strstr(err.message, words) == NULL) {
        (void)fprintf(stderr, "%s\nmessage: %s\n", text, err.message);
        CHECK(strstr(err.message, words) != NULL);
    }
}

static void test_json_error_names_the_path_as_written(void)
{
    const ProtobufCMessageDescriptor *d = &voxeld__v1__voxelize_request__descriptor;

    check_error(d, "{\"clouds\":[{},{\"fields\":[{},{},{\"offset\":-1}]}]}",
                "clouds[1].fields[2].offset",
                "is -1; expected an integer from 0 to 4294967295");
    check_error(d, "{\"max_points\":1.5}", "max_points", "is 1.5; expected an integer");
    check_error(d, "{\"maxPoints\":\"many\"}", "maxPoints", "is \"many\"");
    check_error(d, "{\"size\":{\"x\":0.1,\"q\":1}}", "size.q", "Vec3 has no such field");
    check_error(d, "{\"clouds\":[{\"TMapSensor\":{\"rotation\":{\"w\":\"one\"}}}]}",
                "clouds[0].TMapSensor.rotation.w", "expected a number");
    check_error(d, "{\"features\":[\"x\",7]}", "features[1]", "is 7; expected a string");
    check_error(d, "{\"clouds\":{}}", "clouds", "is an object; expected an array");
    check_error(d, "{\"size\":[]}", "size", "is an array; expected an object");
    check_error(d, "[]", "", "is an array; expected an object");
    check_error(d, "{\"no\xc3\xa4\":1}", "no??", "has no such field");
}

static void test_json_bad_text_names_line_and_column(void)
{
    const ProtobufCMessageDescriptor *d = &voxeld__v1__voxelize_request__descriptor;

    check_error(d, "{\n\"size\": }", "", "line 2, column");
    check_error(d, "", "", "bad JSON");
    check_error(d, "{} {}", "", "end of file expected");
    check_error(d, "{\"rule\":1,\"rule\":1}", "", "duplicate");
    check_error(d, "{\"features\":[\"\\u0000\"]}", "", "\\u0000");
    check_error(d, "{\"features\":[\"\xff\"]}", "", "unable to decode byte 0xff");
    check_error(d, "{\"maxPoints\":NaN}", "", "bad JSON");
    check_error(d, "{\"size\":{\"x\":1e999}}", "", "bad JSON");
}

static void test_json_key_under_both_names_is_refused(void)
{
    const ProtobufCMessageDescriptor *d = &voxeld__v1__voxelize_request__descriptor;

    check_error(d, "{\"maxPoints\":1,\"max_points\":1}", "maxPoints", "given twice");
    check_error(d, "{\"max_points\":null,\"maxPoints\":1}", "maxPoints", "given twice");
}

static void test_json_second_member_of_a_oneof_is_refused(void)
{
    check_error(&voxeld__v1__request__descriptor, "{\"status\":{},\"voxelize\":{}}",
                "voxelize", "beside \"status\"");
}

static void test_json_unknown_enum_value_is_refused_with_the_known_ones(void)
{
    const ProtobufCMessageDescriptor *d = &voxeld__v1__voxelize_request__descriptor;

    check_error(d, "{\"rule\":9}", "rule",
                "is 9; expected one of VOXEL_RULE_UNSPECIFIED, SPCONV, MINKOWSKI");
    check_error(d, "{\"rule\":\"spconv\"}", "rule", "is \"spconv\"; expected one of");
    check_error(d, "{\"rule\":-1}", "rule", "SPCONV");
    check_error(d, "{\"rule\":true}", "rule", "SPCONV");
    check_error(d, "{\"rule\":1.5}", "rule", "SPCONV");
    check_error(d, "{\"rule\":4294967297}", "rule", "SPCONV");
    check_error(d, "{\"reduce\":[\"REDUCE_MEAN\",\"\xf0\x9f\x99\x82\"]}", "reduce[1]",
                "is \"????\"");
}

static void test_json_values_of_another_kind_are_refused(void)
{
    const ProtobufCMessageDescriptor *d = &vxdtest__kinds__descriptor;

    check_error(d, "{\"dbl\":true}", "dbl", "is true");
    check_error(d, "{\"dbl\":\"nan\"}", "dbl", "expected a number");
    check_error(d, "{\"dbl\":\"inf\"}", "dbl", "expected a number");
    check_error(d, "{\"dbl\":\" 1\"}", "dbl", "expected a number");
    check_error(d, "{\"dbl\":\"+1\"}", "dbl", "expected a number");
    check_error(d, "{\"dbl\":\"1e999\"}", "dbl", "expected a number");
    check_error(d, "{\"dbl\":\"1.\"}", "dbl", "expected a number");
    check_error(d, "{\"dbl\":\"01\"}", "dbl", "expected a number");
    check_error(d, "{\"dbl\":\"1e\"}", "dbl", "expected a number");
    check_error(d, "{\"flt\":3.4028236e38}", "flt", "float32");
    check_error(d, "{\"flt\":\"-3.4028236e38\"}", "flt", "float32");
    check_error(d, "{\"i32\":\"+1\"}", "i32",
                "an integer from -2147483648 to 2147483647");
    check_error(d, "{\"u64\":\"18446744073709551616\"}", "u64", "18446744073709551615");
    check_error(d, "{\"u64\":1.8446744073709551616e19}", "u64", "expected an integer");
    check_error(d, "{\"manyI32\":[null]}", "manyI32[0]", "is null");
    check_error(d, "{\"manyLeaves\":[null]}", "manyLeaves[0]", "is null");
    check_error(d, "{\"truth\":1}", "truth", "expected true or false");
    check_error(d, "{\"data\":\"A\"}", "data", "base64");
    check_error(d, "{\"data\":\"AA=\"}", "data", "base64");
    check_error(d, "{\"data\":\"AA==AA==\"}", "data", "base64");
    check_error(d, "{\"data\":\"A A=\"}", "data", "base64");
    check_error(d, "{\"data\":\"====\"}", "data", "base64");
    check_error(d, "{\"data\":7}", "data", "is 7");
}

static void test_json_floats_up_to_flt_max_are_read(void)
{
    struct vxd_decoder *decoder = NULL;
    ProtobufCMessage *message = NULL;
    static const char text[] =
        "{\"flt\":3.4028235e38,\"manyFlt\":[-3.4028235e38,\"NaN\",\"-Infinity\",-0.0]}";

    REQUIRE(vxd_decoder_create(MIB, NULL, &decoder, NULL) == VXD_OK);
    REQUIRE(vxd_json_read(decoder, &vxdtest__kinds__descriptor, text, sizeof text - 1,
                          &message, NULL) == VXD_OK);
    CHECK(((Vxdtest__Kinds *)message)->flt == 3.40282346638528859812e38F);
    CHECK(((Vxdtest__Kinds *)message)->many_flt[0] == -3.40282346638528859812e38F);
    CHECK(isnan(((Vxdtest__Kinds *)message)->many_flt[1]));
    CHECK(((Vxdtest__Kinds *)message)->many_flt[2] == -INFINITY);
    CHECK(signbit(((Vxdtest__Kinds *)message)->many_flt[3]));
    vxd_decoder_destroy(decoder);
}

static void test_json_too_much_text_is_resource_exhausted(void)
{
    char *text = malloc(VXD_JSON_MAX_BYTES + 1);
    struct vxd_err err = {0};

    REQUIRE(text != NULL);
    memset(text, ' ', VXD_JSON_MAX_BYTES + 1);
    text[0] = '{';
    text[1] = '}';
    CHECK_INT(read_text(&voxeld__v1__vec3__descriptor, text, VXD_JSON_MAX_BYTES, &err),
              VXD_OK);
    CHECK_INT(
        read_text(&voxeld__v1__vec3__descriptor, text, VXD_JSON_MAX_BYTES + 1, &err),
        VXD_RESOURCE_EXHAUSTED);
    CHECK(strstr(err.message, "1048576") != NULL);
    free(text);
}

static void test_json_too_much_base64_is_resource_exhausted(void)
{
    size_t n_chars = vxd_base64_encoded_bytes(VXD_JSON_MAX_BASE64_BYTES + 1);
    struct vxd_text text = {0};
    struct vxd_err err = {0};

    vxd_text_printf(&text, "{\"data\":\"");
    for (size_t i = 0; i < n_chars; i++) {
        vxd_text_append(&text, "A", 1);
    }
    vxd_text_printf(&text, "\"}");
    REQUIRE(!text.failed);
    /* 65538 bytes, then 65536: two characters become padding. */
    CHECK_INT(read_text(&voxeld__v1__cloud__descriptor, text.bytes, text.n_bytes, &err),
              VXD_RESOURCE_EXHAUSTED);
    CHECK_STR(err.field, "data");
    memcpy(text.bytes + text.n_bytes - 4, "==\"}", 4);
    CHECK_INT(read_text(&voxeld__v1__cloud__descriptor, text.bytes, text.n_bytes, &err),
              VXD_OK);
    free(text.bytes);
}

/* jansson stops at 2048 levels, our walker at the schema's depth long before. */
static void test_json_deep_nesting_is_refused(void)
{
    struct vxd_text text = {0};
    struct vxd_err err = {0};

    for (int i = 0; i < 100000; i++) {
        vxd_text_printf(&text, "[");
    }
    CHECK_INT(read_text(&voxeld__v1__tensor__descriptor, text.bytes, text.n_bytes, &err),
              VXD_INVALID_ARGUMENT);
    CHECK(strstr(err.message, "depth") != NULL);
    free(text.bytes);
    check_error(&voxeld__v1__tensor__descriptor, "{\"values\":[[[[[[]]]]]]}", "values[0]",
                "is an array");
}

static void check_tensor(Voxeld__V1__Tensor *tensor, const char *expected)
{
    struct vxd_text text = {0};

    CHECK_INT(vxd_json_write(&tensor->base, &text, NULL), VXD_OK);
    CHECK_STR(text.bytes, expected);
    free(text.bytes);
}

static void set_data(Voxeld__V1__Tensor *tensor, Voxeld__V1__DType dtype, int64_t *n,
                     const void *data, size_t n_bytes)
{
    voxeld__v1__tensor__init(tensor);
    tensor->dtype = dtype;
    tensor->shape = n;
    tensor->n_shape = 1;
    tensor->data.data = (uint8_t *)data;
    tensor->data.len = n_bytes;
}

static void test_json_small_tensor_is_written_as_values(void)
{
    static const uint8_t halves[] = "\x00\x3c\x01\x00\x00\xfc\x00\x7e\x00\x80\xff\x7b";
    const float floats[] = {0.1F, 1e-45F, 3.40282347e38F, -2};
    const int32_t ints[] = {-1, INT32_MIN, 7};
    const double doubles[] = {0.1, 1.0 / 3};
    const int64_t exact[] = {9007199254740992, -9007199254740992};
    Voxeld__V1__Tensor t;
    int64_t n = 4;

    set_data(&t, VOXELD__V1__DTYPE__FLOAT32, &n, floats, sizeof floats);
    check_tensor(&t,
                 "{\"dtype\":\"FLOAT32\",\"shape\":[\"4\"],\"values\":[0.1,1.4013e-45,"
                 "3.4028235e+38,-2]}");
    n = 3;
    set_data(&t, VOXELD__V1__DTYPE__INT32, &n, ints, sizeof ints);
    check_tensor(&t, "{\"dtype\":\"INT32\",\"shape\":[\"3\"],\"values\":[-1,-2147483648,"
                     "7]}");
    n = 12;
    set_data(&t, VOXELD__V1__DTYPE__INT8, &n, ints, sizeof ints);
    check_tensor(&t,
                 "{\"dtype\":\"INT8\",\"shape\":[\"12\"],\"values\":[-1,-1,-1,-1,0,0,0"
                 ",-128,7,0,0,0]}");
    n = 6;
    set_data(&t, VOXELD__V1__DTYPE__UINT16, &n, ints, sizeof ints);
    check_tensor(&t, "{\"dtype\":\"UINT16\",\"shape\":[\"6\"],\"values\":[65535,65535,0,"
                     "32768,7,0]}");
    set_data(&t, VOXELD__V1__DTYPE__FLOAT16, &n, halves, sizeof halves - 1);
    check_tensor(&t,
                 "{\"dtype\":\"FLOAT16\",\"shape\":[\"6\"],\"values\":[1,5.9604645e-08,"
                 "\"-Infinity\",\"NaN\",-0.0,65504]}");
    n = 2;
    set_data(&t, VOXELD__V1__DTYPE__BFLOAT16, &n, "\xc0\x3f\x80\xff", 4);
    check_tensor(&t, "{\"dtype\":\"BFLOAT16\",\"shape\":[\"2\"],\"values\":[1.5,"
                     "\"-Infinity\"]}");
    set_data(&t, VOXELD__V1__DTYPE__FLOAT64, &n, doubles, sizeof doubles);
    check_tensor(&t, "{\"dtype\":\"FLOAT64\",\"shape\":[\"2\"],\"values\":[0.1,"
                     "0.3333333333333333]}");
    set_data(&t, VOXELD__V1__DTYPE__INT64, &n, exact, sizeof exact);
    check_tensor(&t,
                 "{\"dtype\":\"INT64\",\"shape\":[\"2\"],\"values\":[9007199254740992,"
                 "-9007199254740992]}");
    t.n_shape = 0;
    t.data.len = 8;
    check_tensor(&t, "{\"dtype\":\"INT64\",\"values\":[9007199254740992]}");
}

static void test_json_tensor_that_values_cannot_hold_is_written_as_data(void)
{
    const uint64_t inexact[] = {UINT64_MAX, 1};
    Voxeld__V1__Tensor t;
    int64_t n = 2;
    uint8_t *zeros = calloc(4097, 1);
    struct vxd_text text = {0};

    REQUIRE(zeros != NULL);
    set_data(&t, VOXELD__V1__DTYPE__UINT64, &n, inexact, sizeof inexact);
    check_tensor(&t, "{\"dtype\":\"UINT64\",\"shape\":[\"2\"],\"data\":"
                     "\"//////////8BAAAAAAAAAA==\"}");
    n = 3; /* does not fit */
    check_tensor(&t, "{\"dtype\":\"UINT64\",\"shape\":[\"3\"],\"data\":"
                     "\"//////////8BAAAAAAAAAA==\"}");
    n = INT64_MAX;
    check_tensor(&t, "{\"dtype\":\"UINT64\",\"shape\":[\"9223372036854775807\"],\"data\":"
                     "\"//////////8BAAAAAAAAAA==\"}");
    n = 0;
    set_data(&t, VOXELD__V1__DTYPE__UINT8, &n, zeros, 0);
    check_tensor(&t, "{\"dtype\":\"UINT8\",\"shape\":[\"0\"]}");
    n = 4096;
    set_data(&t, VOXELD__V1__DTYPE__UINT8, &n, zeros, 4096);
    CHECK_INT(vxd_json_write(&t.base, &text, NULL), VXD_OK);
    CHECK(strstr(text.bytes, "\"values\":[0,0") != NULL);
    text.n_bytes = 0;
    n = 4097;
    t.data.len = 4097;
    CHECK_INT(vxd_json_write(&t.base, &text, NULL), VXD_OK);
    CHECK(strstr(text.bytes, "\"data\":\"AAAA") != NULL);
    free(text.bytes);
    free(zeros);
}

/* A text without memory has failed, whatever is appended after. */
static void test_json_write_into_a_failed_text_is_resource_exhausted(void)
{
    Voxeld__V1__Vec3 v = VOXELD__V1__VEC3__INIT;
    struct vxd_text text = {.failed = true};
    struct vxd_err err = {0};

    v.x = 1;
    CHECK_INT(vxd_json_write(&v.base, &text, &err), VXD_RESOURCE_EXHAUSTED);
    CHECK_INT(err.code, VXD_RESOURCE_EXHAUSTED);
    CHECK(text.bytes == NULL);
    text.failed = false;
    vxd_text_append(&text, "x", SIZE_MAX); /* never read: refused before */
    CHECK(text.failed);
    free(text.bytes);
}

static void test_text_string_escapes_what_json_forbids(void)
{
    struct vxd_text text = {0};
    static const char hostile[] = "a\"\\\b\f\n\r\t\x01\x7f\0/\xc3\xa4\xf0\x9f\x99\x82"
                                  "\xff\xc0\x80\xed\xa0\x80\xf4\x90\x80\x80\xe4\xb8";

    vxd_text_json_string(&text, hostile, sizeof hostile - 1);
    CHECK_STR(text.bytes, "\"a\\\"\\\\\\b\\f\\n\\r\\t\\u0001\\u007f\\u0000/\xc3\xa4"
                          "\xf0\x9f\x99\x82"
                          "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"
                          "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"
                          "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"
                          "\xef\xbf\xbd\xef\xbf\xbd\"");
    free(text.bytes);
}

static void test_text_printf_longer_than_its_buffer_is_whole(void)
{
    struct vxd_text text = {0};
    char long_string[1000];

    memset(long_string, 'q', sizeof long_string - 1);
    long_string[sizeof long_string - 1] = '\0';
    for (int i = 0; i < 10; i++) {
        vxd_text_printf(&text, "%s%d", long_string, i);
    }
    CHECK_INT(text.n_bytes, 10000);
    CHECK_INT(strlen(text.bytes), 10000);
    CHECK(text.bytes[9999] == '9');
    free(text.bytes);
}

static void test_base64_any_length_round_trips(void)
{
    uint8_t bytes[64];
    uint8_t back[64];
    char text[88];
    size_t n_back;

    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (uint8_t)(i * 37 + 200);
    }
    for (size_t n = 0; n <= sizeof bytes; n++) {
        size_t n_chars = vxd_base64_encoded_bytes(n);

        REQUIRE(n_chars <= sizeof text);
        vxd_base64_encode(bytes, n, text);
        CHECK(vxd_base64_decoded_bytes(text, n_chars, &n_back) && n_back == n);
        CHECK(vxd_base64_decode(text, n_chars, back) && memcmp(bytes, back, n) == 0);
        while (n_chars > 0 && text[n_chars - 1] == '=') {
            n_chars--;
        }
        CHECK(vxd_base64_decoded_bytes(text, n_chars, &n_back) && n_back == n);
        CHECK(vxd_base64_decode(text, n_chars, back) && memcmp(bytes, back, n) == 0);
    }
}

/* The shortest of 6 to 9 digits that read back as the same float, by the C library. */
static void check_float(float value)
{
    struct vxd_text text = {0};
    char expected[32];

    for (int digits = 6; digits <= 9; digits++) {
        (void)snprintf(expected, sizeof expected, "%.*g", digits, (double)value);
        if (strtof(expected, NULL) == value) {
            break;
        }
    }
    vxd_text_json_float(&text, value);
    CHECK_STR(text.bytes, expected);
    free(text.bytes);
}

static void test_json_floats_are_the_shortest_that_read_back(void)
{
    static const float some[] = {
        0,           1,         0.5F,      9.9999997e-5F, 1e-4F,      1.00000005e-4F,
        0.1F,        0.3F,      1e6F,      999999.9F,     999999.94F, 1e5F,
        99999.99F,   123456.7F, 8192,      8388608,       16384.5F,   2.5F,
        0.125F,      0.0625F,   1.5e-3F,   1e-3F,         1e-2F,      10,
        9.999999F,   9.5F,      1e30F,     1e-30F,        33554.432F, 0.000244140625F,
        0.00390625F, 100000.5F, 31.415926F};
    uint64_t state = 9;

    for (size_t i = 0; i < sizeof some / sizeof some[0]; i++) {
        check_float(some[i]);
        check_float(-some[i] - (some[i] == 0 ? 1.0F : 0.0F));
        check_float(nextafterf(some[i], 0) + (some[i] == 0 ? 1.0F : 0.0F));
        check_float(nextafterf(some[i], 1e30F));
    }
    for (int i = 0; i < 400000; i++) {
        uint32_t bits;
        float value;

        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        /* Exponents of 2^-16 to 2^22, or few digits, or powers of two. */
        bits = (111u + (uint32_t)(state >> 33) % 38u) << 23;
        bits |= i % 16 == 0 ? 0 : (uint32_t)(state >> 40) & 0x7fffff;
        memcpy(&value, &bits, sizeof value);
        check_float(i % 3 == 0 ? (float)((state >> 45) % 100000) / 1000 + 0.001F : value);
    }
}

static void test_base64_refuses_every_other_character(void)
{
    for (int c = 0; c < 256; c++) {
        for (int at = 0; at < 7; at++) {
            char text[] = "QUJDREU"; /* a whole group, and one of two bytes */
            uint8_t out[6];
            bool is_digit = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                            (c >= '0' && c <= '9') || c == '+' || c == '/' || c == '-' ||
                            c == '_';

            if (c == '=' && at >= 5) {
                continue; /* padding */
            }
            text[at] = (char)c;
            CHECK(vxd_base64_decode(text, 7, out) == is_digit);
        }
    }
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_json_error_names_the_path_as_written),
    VXD_TEST(test_json_bad_text_names_line_and_column),
    VXD_TEST(test_json_key_under_both_names_is_refused),
    VXD_TEST(test_json_second_member_of_a_oneof_is_refused),
    VXD_TEST(test_json_unknown_enum_value_is_refused_with_the_known_ones),
    VXD_TEST(test_json_values_of_another_kind_are_refused),
    VXD_TEST(test_json_floats_up_to_flt_max_are_read),
    VXD_TEST(test_json_floats_are_the_shortest_that_read_back),
    VXD_TEST(test_base64_refuses_every_other_character),
    VXD_TEST(test_json_too_much_text_is_resource_exhausted),
    VXD_TEST(test_json_too_much_base64_is_resource_exhausted),
    VXD_TEST(test_json_deep_nesting_is_refused),
    VXD_TEST(test_json_small_tensor_is_written_as_values),
    VXD_TEST(test_json_tensor_that_values_cannot_hold_is_written_as_data),
    VXD_TEST(test_json_write_into_a_failed_text_is_resource_exhausted),
    VXD_TEST(test_text_string_escapes_what_json_forbids),
    VXD_TEST(test_text_printf_longer_than_its_buffer_is_whole),
    VXD_TEST(test_base64_any_length_round_trips),
};

VXD_TEST_MAIN(tests)
