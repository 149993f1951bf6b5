// SPDX-License-Identifier: Apache-2.0
/* The reader of LAS against files that laspy wrote (and read back: tests/data/files/make.py)
 * and against those files broken. */
#include "tests/support/test.h"
#include "tests/support/client/cloud_files.h"

enum {
    N_POINTS = 5
};

struct las_file {
    const char *name;
    size_t point_step;
    bool has_time;
    bool has_colour;
    bool has_nir;
};

static const struct las_file files[] = {
    {"v2_f0", 20, false, false, false}, {"v2_f1", 28, true, false, false},
    {"v2_f2", 26, false, true, false},  {"v2_f3", 34, true, true, false},
    {"v3_f4", 57, true, false, false},  {"v3_f5", 63, true, true, false},
    {"v4_f0", 20, false, false, false}, {"v4_f1", 28, true, false, false},
    {"v4_f2", 26, false, true, false},  {"v4_f3", 34, true, true, false},
    {"v4_f4", 57, true, false, false},  {"v4_f5", 63, true, true, false},
    {"v4_f6", 30, true, false, false},  {"v4_f7", 36, true, true, false},
    {"v4_f8", 38, true, true, true},    {"v4_f9", 59, true, false, false},
    {"v4_f10", 67, true, true, true},   {"records", 44, true, true, false},
};

enum {
    N_FILES = sizeof files / sizeof files[0]
};

static uint8_t *load_las(const char *name, size_t *n_bytes)
{
    char path[512];

    (void)snprintf(path, sizeof path, FILES "%s.las", name);
    return load(path, n_bytes);
}

static void check_point(const struct las_file *e, const struct vxd_cloud_file *file,
                        size_t i)
{
    double n = (double)i;

    CHECK(value(file, i, "x") == n / 2 - 1);
    CHECK(value(file, i, "y") == n / 4);
    CHECK(value(file, i, "z") == -n);
    CHECK(value(file, i, "intensity") == 10 * n);
    CHECK(value(file, i, "classification") == 1 + n);
    CHECK(!e->has_time || value(file, i, "gps_time") == 1000 + n / 8);
    CHECK(!e->has_colour ||
          (value(file, i, "red") == 256 * n && value(file, i, "green") == 65535 - n &&
           value(file, i, "blue") == 3 * n));
    CHECK(!e->has_nir || value(file, i, "nir") == 1000 * n);
}

static void test_las_of_every_version_and_format_reads_as_laspy_does(void)
{
    for (size_t k = 0; k < N_FILES; k++) {
        const struct las_file *e = &files[k];
        size_t n_bytes;
        uint8_t *bytes = load_las(e->name, &n_bytes);
        struct vxd_cloud_file file;
        int failed = vxd_test_n_failed_checks;

        REQUIRE(bytes != NULL);
        /* Without a budget the reader copies nothing. */
        CHECK_INT(vxd_cloud_file_parse("las", bytes, n_bytes, 0, &file, NULL), VXD_OK);
        CHECK_INT(file.n_points, N_POINTS);
        CHECK_INT(file.point_step, e->point_step);
        CHECK(file.owned == NULL && file.data > bytes && file.data < bytes + n_bytes);
        CHECK_INT(file.n_fields,
                  5 + (e->has_time ? 1 : 0) + (e->has_colour ? 3 : 0) + e->has_nir);
        for (size_t i = 0; i < file.n_points; i++) {
            check_point(e, &file, i);
        }
        if (vxd_test_n_failed_checks != failed) {
            (void)fprintf(stderr, "in %s\n", e->name);
        }
        vxd_cloud_file_clear(&file);
        free(bytes);
    }
}

static void test_las_cut_before_its_last_point_is_refused(void)
{
    for (size_t k = 0; k < N_FILES; k++) {
        size_t n_bytes;
        uint8_t *bytes = load_las(files[k].name, &n_bytes);
        struct vxd_cloud_file file;
        size_t n_needed;

        REQUIRE(bytes != NULL);
        REQUIRE(vxd_cloud_file_parse("las", bytes, n_bytes, 0, &file, NULL) == VXD_OK);
        n_needed = (size_t)(file.data - bytes) + file.n_points * file.point_step;
        for (size_t n = 0; n <= n_needed; n++) {
            uint8_t *cut = malloc(n > 0 ? n : 1);

            REQUIRE(cut != NULL);
            memcpy(cut, bytes, n);
            CHECK((vxd_cloud_file_parse("las", cut, n, 0, &file, NULL) == VXD_OK) ==
                  (n == n_needed));
            free(cut);
        }
        free(bytes);
    }
}

static void test_las_with_a_changed_bit_never_crashes(void)
{
    for (size_t k = 0; k < N_FILES; k++) {
        size_t n_bytes;
        uint8_t *bytes = load_las(files[k].name, &n_bytes);

        REQUIRE(bytes != NULL);
        for (size_t n = 0; n < n_bytes * 8; n++) {
            struct vxd_cloud_file file;
            unsigned sum = 0;

            bytes[n / 8] = (uint8_t)(bytes[n / 8] ^ 1U << n % 8);
            if (vxd_cloud_file_parse("las", bytes, n_bytes, 0, &file, NULL) == VXD_OK) {
                for (size_t i = 0; i < file.n_points * file.point_step; i++) {
                    sum += file.data[i];
                }
                CHECK(sum < UINT32_MAX && file.point_step >= 20);
            }
            bytes[n / 8] = (uint8_t)(bytes[n / 8] ^ 1U << n % 8);
        }
        free(bytes);
    }
}

struct broken {
    const char *name;
    size_t at;
    const char *bytes; /* n of them put there */
    size_t n;
    const char *says;
};

static void test_las_malformed_names_the_byte(void)
{
    static const char ff[] = "\xff\xff\xff\xff\xff\xff\xff\xff";
    static const char zero[8] = {0};
    static const char nan[] = "\x00\x00\x00\x00\x00\x00\xf8\x7f";
    static const struct broken cases[] = {
        {"v2_f0", 0, "X", 1, "byte 0:"},
        {"v2_f0", 24, "\2", 1, "byte 24: version 2.2"},
        {"v2_f0", 25, "\1", 1, "byte 24: version 1.1"},
        {"v2_f0", 25, "\5", 1, "byte 24: version 1.5"},
        {"v2_f0", 25, "\3", 1, "byte 94: a header of 227 bytes; version 1.3 has"},
        {"v3_f4", 25, "\4", 1, "byte 94: a header of 235 bytes; version 1.4 has"},
        {"v2_f0", 94, "\xe2", 1, "byte 94: a header of 226 bytes"},
        {"v2_f0", 94, ff, 2, "byte 94: a header of 65535 bytes"},
        {"v2_f0", 96, "\xe2", 1, "byte 96: the points begin at byte 226"},
        {"v2_f0", 96, ff, 4, "byte 96: the points begin at byte 4294967295"},
        {"v2_f0", 100, "\1", 1, "byte 227: variable length record 0 of 1"},
        {"records", 100, ff, 4, "variable length record 3 of 4294967295"},
        {"records", 375 + 20, ff, 2, "byte 375: variable length record 0 of 3"},
        {"records", 375 + 2, "laszip encoded\0\0\xbc\x56", 18,
         "byte 375: the points are "
         "compressed (LAZ)"},
        {"v2_f0", 104, "\x80", 1, "byte 104: the points are compressed (LAZ)"},
        {"v2_f0", 104, "\x40", 1, "byte 104: the points are compressed (LAZ)"},
        {"v2_f0", 104, "\x0b", 1, "byte 104: point format 11"},
        {"v2_f0", 105, "\x13", 1, "byte 105: points of 19 bytes; those of format 0"},
        {"v2_f0", 105, zero, 2, "byte 105: points of 0 bytes"},
        {"v4_f10", 105, "\x42", 1, "byte 105: points of 66 bytes"},
        {"v2_f0", 105, ff, 2, "byte 107: 5 points of 65535 bytes"},
        {"v2_f0", 107, "\6", 1,
         "byte 107: 6 points of 20 bytes are announced, 100 bytes"},
        {"v2_f0", 107, ff, 4, "byte 107: 4294967295 points"},
        {"v4_f6", 247, "\6", 1, "byte 247: 6 points of 30 bytes are announced, 150"},
        {"v4_f6", 247, ff, 8, "byte 247: 18446744073709551615 points"},
        {"v4_f6", 107, "\4", 1,
         "byte 247: 5 points, but 4 by the legacy count at byte 107"},
        {"v2_f0", 131, zero, 8, "byte 131: the scale of x"},
        {"v2_f0", 147, nan, 8, "byte 147: the scale of z"},
        {"v2_f0", 163, nan, 8, "byte 163: the offset of y"},
    };

    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        size_t n_bytes;
        uint8_t *bytes = load_las(cases[k].name, &n_bytes);
        struct vxd_cloud_file file;
        struct vxd_err err = {0};

        REQUIRE(bytes != NULL);
        memcpy(bytes + cases[k].at, cases[k].bytes, cases[k].n);
        CHECK_INT(vxd_cloud_file_parse("las", bytes, n_bytes, BUDGET, &file, &err),
                  VXD_INVALID_ARGUMENT);
        if (strstr(err.message, cases[k].says) == NULL) {
            (void)fprintf(stderr, "case %zu: \"%s\" lacks \"%s\"\n", k, err.message,
                          cases[k].says);
            CHECK(strstr(err.message, cases[k].says) != NULL);
        }
        CHECK_STR(err.field, "file");
        free(bytes);
    }
}

static void test_las_of_1_4_with_equal_legacy_count_is_read(void)
{
    size_t n_bytes;
    uint8_t *bytes = load_las("v4_f0", &n_bytes);
    struct vxd_cloud_file file;

    REQUIRE(bytes != NULL);
    for (uint8_t legacy = 0; legacy <= N_POINTS; legacy = (uint8_t)(legacy + N_POINTS)) {
        bytes[107] = legacy;
        CHECK_INT(vxd_cloud_file_parse("las", bytes, n_bytes, 0, &file, NULL), VXD_OK);
        CHECK_INT(file.n_points, N_POINTS);
    }
    free(bytes);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_las_of_every_version_and_format_reads_as_laspy_does),
    VXD_TEST(test_las_cut_before_its_last_point_is_refused),
    VXD_TEST(test_las_with_a_changed_bit_never_crashes),
    VXD_TEST(test_las_malformed_names_the_byte),
    VXD_TEST(test_las_of_1_4_with_equal_legacy_count_is_read),
};

VXD_TEST_MAIN(tests)
