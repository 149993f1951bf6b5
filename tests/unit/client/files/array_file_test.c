// SPDX-License-Identifier: Apache-2.0
/* Arrays in files: text and .npy are read, .npy and .npz are written, and errors are
 * reported. */
#include <stdint.h>

#include "client/files/files.h"
#include "tests/support/test.h"

static enum vxd_status parse_text(const char *text, enum vxd_dtype dtype,
                                  struct vxd_array_file *out, struct vxd_err *err)
{
    return vxd_text_parse_array((const uint8_t *)text, strlen(text), dtype, out, err);
}

static void test_text_rows_become_an_array(void)
{
    static const char *const texts[] = {
        "1 2 -3\n4 5 6\n",
        "1,2,-3\n4,5,6",
        "x,y,z\r\n1, 2, -3\r\n\r\n4;5\t6\r\n",
        "# keys\n\n\"x\" \"y\" \"z\"\n 1  2 -3 \n4 ,5 , 6,\n",
    };
    static const int64_t expected[] = {1, 2, -3, 4, 5, 6};
    struct vxd_array_file file;
    struct vxd_err err = {0};

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        REQUIRE(parse_text(texts[i], VXD_INT64, &file, &err) == VXD_OK);
        CHECK_INT(file.n, 2);
        CHECK_INT(file.n_elements, 3);
        CHECK(file.n == 2 && memcmp(file.data, expected, sizeof expected) == 0);
        vxd_array_file_clear(&file);
    }
    REQUIRE(parse_text("", VXD_INT64, &file, &err) == VXD_OK);
    CHECK(file.n == 0 && file.n_elements == 1);
    vxd_array_file_clear(&file);
    REQUIRE(parse_text("nan\n1e3\n", VXD_FLOAT32, &file, &err) == VXD_OK);
    CHECK(file.n == 2 && file.n_elements == 1);
    vxd_array_file_clear(&file);
}

static void test_many_text_rows_grow(void)
{
    enum {
        N = 20000
    };
    char *text = malloc(N * 8);
    size_t used = 0;
    struct vxd_array_file file;
    uint16_t last;

    REQUIRE(text != NULL);
    for (int i = 0; i < N; i++) {
        used += (size_t)snprintf(text + used, 8, "%d\n", i);
    }
    CHECK_INT(vxd_text_parse_array((const uint8_t *)text, used, VXD_UINT16, &file, NULL),
              VXD_OK);
    CHECK_INT(file.n, N);
    memcpy(&last, file.data + 2 * (N - 1), sizeof last);
    CHECK_INT(last, N - 1);
    vxd_array_file_clear(&file);
    free(text);
}

static void test_wrong_text_says_which_line(void)
{
    static const struct {
        const char *text;
        const char *says;
    } cases[] = {
        {"1 2 3\n1 2\n", "line 2 has 2 numbers"},
        {"1 2 3\n\n1 x 3\n", "line 3: \"x\""},
        {"1x 2 3\n", "line 1: \"1x\""},
        {"1 2.5 3\n", "line 1: \"2.5\""},
        {"1,,3\n", "line 1: \"\""},
        {"x y z\na b c\n", "line 2: \"a\""},
        {"9223372036854775808\n", "line 1"},
    };
    struct vxd_array_file file;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct vxd_err err = {0};

        CHECK_INT(parse_text(cases[i].text, VXD_INT64, &file, &err),
                  VXD_INVALID_ARGUMENT);
        CHECK(strstr(err.message, cases[i].says) != NULL);
        CHECK(file.data == NULL && file.owned == NULL);
    }
    CHECK_INT(parse_text("1\n", VXD_FLOAT16, &file, NULL), VXD_INVALID_ARGUMENT);
}

/* Makes a file in memory of what `write` writes. */
static uint8_t *written(enum vxd_status (*write)(FILE *file, struct vxd_err *err),
                        size_t *n_bytes)
{
    char *bytes = NULL;
    FILE *file = open_memstream(&bytes, n_bytes);
    struct vxd_err err = {0};

    if (file == NULL) {
        return NULL;
    }
    CHECK_INT(write(file, &err), VXD_OK);
    (void)fclose(file);
    return (uint8_t *)bytes;
}

static const int16_t numbers[6] = {1, -2, 3, 4, 5, 32767};

static enum vxd_status write_npy(FILE *file, struct vxd_err *err)
{
    static const size_t shape[] = {2, 3};

    return vxd_npy_write(file, VXD_INT16, shape, 2, numbers, err);
}

static void test_npy_arrays_are_read_back(void)
{
    struct vxd_array_file file = {0};
    size_t n_bytes = 0;
    uint8_t *bytes = written(write_npy, &n_bytes);

    REQUIRE(bytes != NULL);
    CHECK_INT(vxd_npy_parse_array(bytes, n_bytes, &file, NULL), VXD_OK);
    CHECK(file.n == 2 && file.n_elements == 3 && file.dtype == VXD_INT16);
    CHECK(memcmp(file.data, numbers, sizeof numbers) == 0 && file.owned == NULL);
    vxd_array_file_clear(&file);
    for (size_t n = 0; n < n_bytes; n++) {
        CHECK_INT(vxd_npy_parse_array(bytes, n, &file, NULL), VXD_INVALID_ARGUMENT);
    }
    free(bytes);
}

static enum vxd_status write_npz(FILE *file, struct vxd_err *err)
{
    const struct vxd_write_array arrays[] = {
        {"keys", VXD_INT16, {2, 3}, 2, numbers},
        {"empty", VXD_FLOAT64, {0}, 1, numbers},
        {"count", VXD_INT16, {6}, 1, numbers},
    };

    return vxd_npz_write(file, arrays, 3, err);
}

/* tests/integration/map/test_map_tools.py checks that NumPy reads it. */
static void test_npz_holds_every_member_at_its_place(void)
{
    static const char *const names[] = {"keys.npy", "empty.npy", "count.npy"};
    size_t n_bytes = 0;
    uint8_t *bytes = written(write_npz, &n_bytes);
    size_t at = 0;

    REQUIRE(bytes != NULL && n_bytes > 100);
    for (size_t i = 0; i < 3; i++) {
        struct vxd_array_file file = {0};
        uint32_t member_bytes;

        REQUIRE(at + 30 + strlen(names[i]) < n_bytes);
        CHECK(memcmp(bytes + at, "PK\x03\x04", 4) == 0);
        memcpy(&member_bytes, bytes + at + 18, sizeof member_bytes);
        CHECK(memcmp(bytes + at + 30, names[i], strlen(names[i])) == 0);
        at += 30 + strlen(names[i]);
        REQUIRE(at + member_bytes < n_bytes);
        CHECK_INT(vxd_npy_parse_array(bytes + at, member_bytes, &file, NULL), VXD_OK);
        CHECK_INT(file.n, i == 0 ? 2 : i == 1 ? 0 : 6);
        at += member_bytes;
    }
    CHECK(memcmp(bytes + at, "PK\x01\x02", 4) == 0);
    CHECK(memcmp(bytes + n_bytes - 22, "PK\x05\x06", 4) == 0);
    free(bytes);
}

static void test_npz_of_a_type_that_numpy_lacks_is_refused(void)
{
    const struct vxd_write_array array = {"a", VXD_BFLOAT16, {6}, 1, numbers};
    FILE *file = fopen("/dev/null", "wbe");

    REQUIRE(file != NULL);
    CHECK_INT(vxd_npz_write(file, &array, 1, NULL), VXD_INVALID_ARGUMENT);
    (void)fclose(file);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_text_rows_become_an_array),
    VXD_TEST(test_many_text_rows_grow),
    VXD_TEST(test_wrong_text_says_which_line),
    VXD_TEST(test_npy_arrays_are_read_back),
    VXD_TEST(test_npz_holds_every_member_at_its_place),
    VXD_TEST(test_npz_of_a_type_that_numpy_lacks_is_refused),
};

VXD_TEST_MAIN(tests)
