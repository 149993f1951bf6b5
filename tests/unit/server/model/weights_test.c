// SPDX-License-Identifier: Apache-2.0
/* Weights files: what claims more than is there is refused, element types are read exactly, and
 * each library's layout of taps becomes the engine's. */
#include "tests/support/test.h"

#include <math.h>

#include "server/model/weights.h"
#include "tests/support/server/model_files.h"

static enum vxd_status parse(const char *header, size_t n_data, struct vxd_err *err)
{
    size_t n_bytes;
    uint8_t *bytes = model_safetensors(header, n_data, &n_bytes);
    struct vxd_safetensors file;
    enum vxd_status status =
        vxd_safetensors_parse("w.safetensors", bytes, n_bytes, &file, err);

    vxd_safetensors_free(&file);
    free(bytes);
    return status;
}

#define F32(shape, begin, end)                                                           \
    "{\"dtype\":\"F32\",\"shape\":" shape ",\"data_offsets\":[" begin "," end "]}"

static void test_safetensors_that_lie_are_refused_by_tensor(void)
{
    static const struct {
        const char *header;
        size_t n_data;
        const char *field;
        const char *message;
    } cases[] = {
        {"", 0, "weights", "header"},
        {"[]", 0, "weights", "object"},
        {"{", 0, "weights", "header"},
        {"{\"a\":1}", 0, "weights[a]", "object"},
        {"{\"a\":{}}", 0, "weights[a]", "missing"},
        {"{\"\":" F32("[1]", "0", "4") "}", 4, "weights[]", "1 to 159"},
        {"{\"a\":" F32("[1]", "0", "4") ",\"a\":" F32("[1]", "4", "8") "}", 8, "weights",
         "duplicate"},
        {"{\"a\":{\"dtype\":\"F33\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4,
         "weights[a].dtype", "F33"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4],\"x\":1}}", 4,
         "weights[a].x", "no key"},
        {"{\"a\":" F32("[-1]", "0", "4") "}", 4, "weights[a].shape", "at least 0"},
        {"{\"a\":" F32("[1.5]", "0", "4") "}", 4, "weights[a].shape", "whole"},
        {"{\"a\":" F32("[1,1,1,1,1,1,1,1,1]", "0", "4") "}", 4, "weights[a].shape",
         "at most 8"},
        {"{\"a\":" F32("[4294967296,4294967296,2]", "0", "0") "}", 0, "weights[a].shape",
         "counted"},
        {"{\"a\":" F32("[4611686018427387904]", "0", "0") "}", 0, "weights[a]",
         "not the bytes"},
        {"{\"a\":" F32("[2]", "0", "4") "}", 8, "weights[a]", "not the bytes"},
        {"{\"a\":" F32("[1]", "4", "0") "}", 4, "weights[a]", "not the bytes"},
        {"{\"a\":" F32("[1]", "4", "8") "}", 4, "weights[a]", "byte 8 of 4"},
        {"{\"a\":" F32("[1]", "0", "4") ",\"b\":" F32("[1]", "0", "4") "}", 4,
         "weights[b]", "reaches past"},
        {"{\"a\":" F32("[2]", "0", "8") ",\"b\":" F32("[1]", "4", "8") "}", 8,
         "weights[b]", "reaches past"},
        {"{\"a\":" F32("[1]", "0", "4") ",\"b\":" F32("[1]", "8", "12") "}", 12,
         "weights[b]", "ends earlier"},
        {"{\"a\":" F32("[1]", "0", "4") "}", 6, "weights", "2 bytes"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4,8]}}", 4,
         "weights[a].data_offsets", "two"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct vxd_err err = {0};

        CHECK_INT(parse(cases[i].header, cases[i].n_data, &err), VXD_INVALID_ARGUMENT);
        if (strncmp(err.field, cases[i].field, strlen(cases[i].field)) != 0) {
            CHECK_STR(err.field, cases[i].field);
        }
        if (strstr(err.message, cases[i].message) == NULL) {
            CHECK_STR(err.message, cases[i].message);
        }
    }
    CHECK_INT(parse("{}", 0, NULL), VXD_OK);
    CHECK_INT(parse("{\"__metadata__\":{\"a\":\"b\"}}   ", 0, NULL), VXD_OK);
    CHECK_INT(parse("{\"e\":" F32("[0,7]", "0", "0") ",\"a\":" F32("[1]", "0", "4") "}",
                    4, NULL),
              VXD_OK);
}

/* Headers whose length is a lie; and every length of a good file. */
static void test_safetensors_of_any_length_never_read_past_their_end(void)
{
    static const char header[] = "{\"a\":" F32("[2]", "0", "8") "}";
    size_t n_bytes;
    uint8_t *bytes = model_safetensors(header, 8, &n_bytes);

    REQUIRE(bytes != NULL);
    for (size_t n = 0; n <= n_bytes; n++) {
        uint8_t *copy = malloc(n + 1); /* where sanitizers see its end */
        struct vxd_safetensors file;

        REQUIRE(copy != NULL);
        memcpy(copy, bytes, n);
        CHECK_INT(vxd_safetensors_parse("w", copy, n, &file, NULL),
                  n == n_bytes ? VXD_OK : VXD_INVALID_ARGUMENT);
        vxd_safetensors_free(&file);
        free(copy);
    }
    for (int bit = 0; bit < 64; bit++) {
        struct vxd_safetensors file;

        bytes[bit / 8] ^= (uint8_t)(1U << (bit % 8));
        CHECK_INT(vxd_safetensors_parse("w", bytes, n_bytes, &file, NULL),
                  VXD_INVALID_ARGUMENT);
        vxd_safetensors_free(&file);
        bytes[bit / 8] ^= (uint8_t)(1U << (bit % 8));
    }
    free(bytes);
}

static void test_elements_of_every_float_type_are_exact(void)
{
    static const char header[] =
        "{\"d\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[0,8]},"
        "\"f\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[8,12]},"
        "\"h\":{\"dtype\":\"F16\",\"shape\":[5],\"data_offsets\":[12,22]},"
        "\"b\":{\"dtype\":\"BF16\",\"shape\":[1],\"data_offsets\":[22,24]},"
        "\"i\":{\"dtype\":\"I32\",\"shape\":[1],\"data_offsets\":[24,28]}}";
    static const uint16_t halves[5] = {0x3c01, 0x8001, 0x7bff, 0x7c00, 0xc500};
    const double d = 0.1;
    const float f = -1.5F;
    const uint16_t b = 0x4049;
    size_t n_bytes;
    uint8_t *bytes = model_safetensors(header, 28, &n_bytes);
    struct vxd_safetensors file;
    const struct vxd_tensor *h;
    uint8_t *data = bytes + n_bytes - 28;

    REQUIRE(bytes != NULL);
    memcpy(data, &d, 8);
    memcpy(data + 8, &f, 4);
    memcpy(data + 12, halves, 10);
    memcpy(data + 22, &b, 2);
    REQUIRE(vxd_safetensors_parse("w", bytes, n_bytes, &file, NULL) == VXD_OK);
    h = vxd_safetensors_find(&file, "h");
    REQUIRE(h != NULL);
    CHECK(vxd_tensor_get(&file, vxd_safetensors_find(&file, "d"), 0) == 0.1);
    CHECK(vxd_tensor_get(&file, vxd_safetensors_find(&file, "f"), 0) == -1.5);
    CHECK(vxd_tensor_get(&file, vxd_safetensors_find(&file, "b"), 0) == 3.140625);
    CHECK(vxd_tensor_get(&file, h, 0) == 1 + 0x1p-10);
    CHECK(vxd_tensor_get(&file, h, 1) == -0x1p-24);
    CHECK(vxd_tensor_get(&file, h, 2) == 65504);
    CHECK(isinf(vxd_tensor_get(&file, h, 3)));
    CHECK(vxd_tensor_get(&file, h, 4) == -5);
    CHECK(!vxd_tensor_is_float(vxd_safetensors_find(&file, "i")));
    CHECK(vxd_safetensors_find(&file, "c") == NULL);
    vxd_safetensors_free(&file);
    free(bytes);
}

/* A weights file of one tensor w whose element i is the number i. */
static uint8_t *counting(const char *shape, size_t n, size_t *n_bytes)
{
    char header[160];
    uint8_t *bytes;

    (void)snprintf(header, sizeof header,
                   "{\"w\":{\"dtype\":\"F32\",\"shape\":%s,\"data_offsets\":[0,%zu]}}",
                   shape, 4 * n);
    bytes = model_safetensors(header, 4 * n, n_bytes);
    for (size_t i = 0; bytes != NULL && i < n; i++) {
        float value = (float)i;

        memcpy(bytes + *n_bytes - 4 * n + 4 * i, &value, sizeof value);
    }
    return bytes;
}

/* Where the library keeps the weight of a tap, an input and an output; taps along the axes of
 * the file, as their documents and sources say (research, 1; CATALOGUE, facts 1 and 2). */
struct place {
    int k[3]; /* kernel along the file's axes */
    int n_in;
    int n_out;
};

static int in_krsc(const struct place *p, const int r[3], int in, int out)
{
    return (((out * p->k[0] + r[0]) * p->k[1] + r[1]) * p->k[2] + r[2]) * p->n_in + in;
}

static int in_rsck(const struct place *p, const int r[3], int in, int out)
{
    return (((r[0] * p->k[1] + r[1]) * p->k[2] + r[2]) * p->n_in + in) * p->n_out + out;
}

/* x fastest: index = dx + kx * (dy + ky * dz). */
static int in_first_fastest(const struct place *p, const int r[3], int in, int out)
{
    return ((r[0] + p->k[0] * (r[1] + p->k[1] * r[2])) * p->n_in + in) * p->n_out + out;
}

static int in_torch(const struct place *p, const int r[3], int in, int out)
{
    return (((out * p->n_in + in) * p->k[0] + r[0]) * p->k[1] + r[1]) * p->k[2] + r[2];
}

static void check_layout(enum vxd_weight_layout layout, const char *shape,
                         const int axes[3], const int kernel[3],
                         int (*where)(const struct place *, const int[3], int, int))
{
    const struct vxd_conv_want want = {
        .tensor = "w",
        .path = "layers[l].w",
        .layout = layout,
        .axes = {axes[0], axes[1], axes[2]},
        .kernel = {kernel[0], kernel[1], kernel[2]},
        .n_in = 2,
        .n_out = 3,
    };
    const struct place place = {
        {kernel[axes[0]], kernel[axes[1]], kernel[axes[2]]}, want.n_in, want.n_out};
    size_t n = (size_t)(kernel[0] * kernel[1] * kernel[2] * want.n_in * want.n_out);
    struct vxd_tensors tensors = {.name = "w.safetensors"};
    struct vxd_safetensors file;
    struct vxd_err err = {0};
    float *weights = NULL;
    size_t n_weights = 0;
    size_t n_bytes;
    uint8_t *bytes = counting(shape, n, &n_bytes);

    REQUIRE(vxd_safetensors_parse("w", bytes, n_bytes, &file, NULL) == VXD_OK);
    tensors.file = &file;
    CHECK_INT(vxd_tensors_conv(&tensors, &want, &weights, &n_weights, &err), VXD_OK);
    CHECK_STR(err.message, "");
    CHECK_INT(n_weights, n);
    for (size_t i = 0; weights != NULL && i < n; i++) {
        int out = (int)i % want.n_out;
        int in = (int)i / want.n_out % want.n_in;
        int tap = (int)i / want.n_out / want.n_in;
        const int r[3] = {tap / kernel[2] / kernel[1], tap / kernel[2] % kernel[1],
                          tap % kernel[2]};
        const int along[3] = {r[axes[0]], r[axes[1]], r[axes[2]]};

        CHECK_INT(weights[i], where(&place, along, in, out));
    }
    free(weights);
    vxd_safetensors_free(&file);
    free(bytes);
}

static void test_weights_of_every_layout_become_tap_in_out(void)
{
    static const int xyz[3] = {0, 1, 2};
    static const int zyx[3] = {2, 1, 0};
    static const int yzx[3] = {1, 2, 0};
    static const int odd[3] = {5, 3, 1};
    static const int even[3] = {2, 4, 2};
    static const int one[3] = {1, 1, 1};

    check_layout(VXD_LAYOUT_KRSC, "[3,1,3,5,2]", zyx, odd, in_krsc);
    check_layout(VXD_LAYOUT_KRSC, "[3,3,1,5,2]", yzx, odd, in_krsc);
    check_layout(VXD_LAYOUT_RSCK, "[1,3,5,2,3]", zyx, odd, in_rsck);
    check_layout(VXD_LAYOUT_TORCH, "[3,2,2,4,2]", zyx, even, in_torch);
    check_layout(VXD_LAYOUT_TORCH, "[3,2,1]", zyx, one, in_torch);
    check_layout(VXD_LAYOUT_KIO, "[15,2,3]", xyz, odd, in_rsck);
    check_layout(VXD_LAYOUT_ME, "[15,2,3]", xyz, odd, in_first_fastest);
    check_layout(VXD_LAYOUT_ME, "[16,2,3]", xyz, even, in_first_fastest);
    check_layout(VXD_LAYOUT_ME, "[2,3]", xyz, one, in_first_fastest);
    check_layout(VXD_LAYOUT_TORCHSPARSE, "[15,2,3]", xyz, odd, in_first_fastest);
    check_layout(VXD_LAYOUT_TORCHSPARSE, "[16,2,3]", xyz, even, in_rsck);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_safetensors_that_lie_are_refused_by_tensor),
    VXD_TEST(test_safetensors_of_any_length_never_read_past_their_end),
    VXD_TEST(test_elements_of_every_float_type_are_exact),
    VXD_TEST(test_weights_of_every_layout_become_tap_in_out),
};

VXD_TEST_MAIN(tests)
