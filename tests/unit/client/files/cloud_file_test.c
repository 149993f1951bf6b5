// SPDX-License-Identifier: Apache-2.0
/* The readers against files that other programs wrote: NumPy's, PCL-style and PLY files by
 * tests/data/files/make.py, real scans where they are present. */
#include <locale.h>
#include <math.h>
#include <stdint.h>

#include "tests/support/test.h"
#include "tests/support/client/cloud_files.h"

enum {
    N_POINTS = 5
};

struct expected {
    const char *name;
    const char *format;
    bool borrowed; /* the records lie in the file's own bytes */
    bool has_intensity;
    bool has_ring;
    double unit; /* of x, y, z */
};

static const struct expected files[] = {
    {"plain_f4.npy", "npy", true, true, false, 1},
    {"plain_f2.npy", "npy", true, true, false, 1},
    {"plain_f8_big.npy", "npy", false, false, false, 1},
    {"fortran_f4.npy", "npy", false, true, false, 1},
    {"fortran_f4_big.npy", "npy", false, true, false, 1},
    {"quarters_i2.npy", "npy", true, false, false, 0.25},
    {"quarters_i8_big.npy", "npy", false, false, false, 0.25},
    {"records.npy", "npy", true, true, true, 1},
    {"records_big.npy", "npy", false, true, true, 1},
    {"records_padded.npy", "npy", true, true, true, 1},
    {"records_vectors.npy", "npy", true, false, false, 1},
    {"stored.npz", "npz", true, true, false, 1},
    {"deflated.npz", "npz", false, true, false, 1},
    {"fortran.npz", "npz", false, true, false, 1},
    {"kitti.bin", "kitti", true, true, false, 1},
    {"nuscenes.bin", "nuscenes", true, true, true, 1},
    {"ascii.ply", "ply", false, true, true, 1},
    {"little.ply", "ply", true, true, true, 1},
    {"big.ply", "ply", false, true, true, 1},
    {"ascii.pcd", "pcd", false, true, true, 1},
    {"binary.pcd", "pcd", true, true, true, 1},
    {"compressed.pcd", "pcd", false, true, true, 1},
    {"old.pcd", "pcd", false, false, false, 1},
};

static void check_points(const struct expected *e, const struct vxd_cloud_file *file)
{
    CHECK_INT(file->n_points, N_POINTS);
    CHECK((file->owned == NULL) == e->borrowed);
    CHECK((field(file, "intensity") != NULL) == e->has_intensity);
    CHECK((field(file, "ring") != NULL) == e->has_ring);
    CHECK(field(file, "_") == NULL && field(file, "normal") == NULL);
    for (size_t i = 0; i < file->n_points; i++) {
        double n = (double)i;

        CHECK(value(file, i, "x") * e->unit == n / 2 - 1);
        CHECK(value(file, i, "y") * e->unit == n / 4);
        CHECK(value(file, i, "z") * e->unit == -n);
        CHECK(!e->has_intensity || value(file, i, "intensity") == 10 * n);
        /* nuScenes calls its fifth column ring, whatever it holds. */
        CHECK(!e->has_ring || value(file, i, "ring") == 7 + n);
    }
}

static void test_file_of_every_kind_gives_the_same_points(void)
{
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char path[512];
        size_t n_bytes;
        uint8_t *bytes;
        struct vxd_cloud_file file;
        struct vxd_err err = {0};
        int failed = vxd_test_n_failed_checks;

        (void)snprintf(path, sizeof path, FILES "%s", files[i].name);
        bytes = load(path, &n_bytes);
        REQUIRE(bytes != NULL);
        CHECK_INT(
            vxd_cloud_file_parse(files[i].format, bytes, n_bytes, BUDGET, &file, &err),
            VXD_OK);
        check_points(&files[i], &file);
        if (vxd_test_n_failed_checks != failed) {
            (void)fprintf(stderr, "in %s: %s\n", files[i].name, err.message);
        }
        vxd_cloud_file_clear(&file);
        CHECK(file.n_points == 0 && file.owned == NULL);
        free(bytes);
    }
}

/* A file may end in the middle of a KITTI record or after a PLY's vertices. */
static bool may_end_at(const struct expected *e, size_t n, size_t n_whole)
{
    if (strcmp(e->format, "kitti") == 0) {
        return n % 16 == 0;
    }
    if (strcmp(e->format, "nuscenes") == 0) {
        return n % 20 == 0;
    }
    /* After the vertices of the PLY files come 13 bytes of a face ("3 0 1 2\n" as
     * text); a text file may lack its last line's end, or digits of its last number. */
    return (strcmp(e->format, "ply") == 0 || strcmp(e->format, "pcd") == 0) &&
           n + 13 >= n_whole;
}

static void test_file_cut_anywhere_is_refused(void)
{
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char path[512];
        size_t n_bytes;
        uint8_t *bytes;

        (void)snprintf(path, sizeof path, FILES "%s", files[i].name);
        bytes = load(path, &n_bytes);
        REQUIRE(bytes != NULL);
        for (size_t n = 0; n < n_bytes; n++) {
            uint8_t *cut = malloc(n > 0 ? n : 1);
            struct vxd_cloud_file file;
            struct vxd_err err = {0};
            enum vxd_status status;

            REQUIRE(cut != NULL);
            memcpy(cut, bytes, n);
            status = vxd_cloud_file_parse(files[i].format, cut, n, BUDGET, &file, &err);
            if (!may_end_at(&files[i], n, n_bytes) && status != VXD_INVALID_ARGUMENT) {
                (void)fprintf(stderr, "%s cut to %zu: %d\n", files[i].name, n,
                              (int)status);
                CHECK(status == VXD_INVALID_ARGUMENT);
            }
            CHECK(status == VXD_OK || (err.code == status && err.message[0] != '\0'));
            vxd_cloud_file_clear(&file);
            free(cut);
        }
        free(bytes);
    }
}

/* Any byte may change to anything: no crash, no leak, and points that lie where they
 * should. */
static void test_file_with_a_changed_byte_never_crashes(void)
{
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char path[512];
        size_t n_bytes;
        uint8_t *bytes;

        (void)snprintf(path, sizeof path, FILES "%s", files[i].name);
        bytes = load(path, &n_bytes);
        REQUIRE(bytes != NULL);
        for (size_t n = 0; n < n_bytes * 8; n++) {
            struct vxd_cloud_file file;
            uint8_t before = bytes[n / 8];
            unsigned sum = 0;

            bytes[n / 8] = (uint8_t)(before ^ 1U << n % 8);
            if (vxd_cloud_file_parse(files[i].format, bytes, n_bytes, BUDGET, &file,
                                     NULL) == VXD_OK) {
                for (size_t k = 0; k < file.n_points * file.point_step; k++) {
                    sum += file.data[k];
                }
                CHECK(file.n_points == 0 || file.point_step >= 3);
                CHECK(sum < UINT32_MAX);
            }
            vxd_cloud_file_clear(&file);
            bytes[n / 8] = before;
        }
        free(bytes);
    }
}

struct malformed {
    const char *format;
    const char *text;
    enum vxd_status code;
    const char *says; /* part of the message */
};

#define PLY "ply\nformat ascii 1.0\n"
#define XYZ "property float x\nproperty float y\nproperty float z\n"
#define PCD "VERSION .7\nFIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nCOUNT 1 1 1\n"
#define BIN "ply\nformat binary_little_endian 1.0\n"

static const struct malformed malformed_texts[] = {
    {"ply", "", VXD_INVALID_ARGUMENT, "line 1"},
    {"ply", "plyx\n", VXD_INVALID_ARGUMENT, "begin with"},
    {"ply", PLY "element vertex 2\n" XYZ "end_header\n1 2 3\n4 5\n", VXD_INVALID_ARGUMENT,
     "line 10, in point 1"},
    {"ply", PLY "element vertex 1\n" XYZ "end_header\n1 2 0x3\n", VXD_INVALID_ARGUMENT,
     "0x3"},
    {"ply", PLY "element vertex 1\n" XYZ "end_header\n1 2 3,5\n", VXD_INVALID_ARGUMENT,
     "3,5"},
    {"ply", PLY "element vertex 99999999999999\n" XYZ "end_header\n1 2 3\n",
     VXD_INVALID_ARGUMENT, "99999999999999"},
    {"ply", PLY "element vertex 99999999999999999999\n", VXD_INVALID_ARGUMENT, "line 3"},
    {"ply", PLY "element vertex -1\n", VXD_INVALID_ARGUMENT, "line 3"},
    {"ply", PLY "element vertex 1\nproperty list uchar int x\nend_header\n",
     VXD_INVALID_ARGUMENT, "lists"},
    {"ply", PLY "element vertex 1\nproperty float x\nproperty float x\nend_header\n",
     VXD_INVALID_ARGUMENT, "two fields"},
    {"ply", PLY "element vertex 1\nproperty float x\nproperty float y\nend_header\n1 2\n",
     VXD_INVALID_ARGUMENT, "\"z\""},
    {"ply", PLY "element vertex 1\nproperty long x\nend_header\n", VXD_INVALID_ARGUMENT,
     "type"},
    {"ply", PLY "property float x\n", VXD_INVALID_ARGUMENT, "before the first element"},
    {"ply", PLY "element face 1\nproperty float a\nend_header\n", VXD_INVALID_ARGUMENT,
     "vertex"},
    {"ply", PLY "element vertex 0\nelement vertex 0\n", VXD_INVALID_ARGUMENT, "second"},
    {"ply", "ply\nformat ascii 2.0\n", VXD_INVALID_ARGUMENT, "version"},
    {"ply", BIN "element vertex 18446744073709551615\n" XYZ "end_header\n",
     VXD_INVALID_ARGUMENT, "announced"},
    {"ply",
     BIN "element a 1099511627776\nproperty list uchar int b\nelement vertex 0\n" XYZ
         "end_header\n",
     VXD_INVALID_ARGUMENT, "broken record"},
    {"ply",
     PLY "element a 1\nproperty list uchar int b\nelement vertex 0\n" XYZ
         "end_header\n1099511627776 1\n",
     VXD_INVALID_ARGUMENT, "broken record"},
    {"pcd", "", VXD_INVALID_ARGUMENT, "DATA"},
    {"pcd", PCD "WIDTH 2\nHEIGHT 1\nPOINTS 3\nDATA ascii\n", VXD_INVALID_ARGUMENT,
     "is not WIDTH"},
    {"pcd", PCD "WIDTH 4294967296\nHEIGHT 4294967296\nDATA ascii\n", VXD_INVALID_ARGUMENT,
     "is not WIDTH"},
    {"pcd", PCD "POINTS 4611686018427387904\nDATA binary\n", VXD_INVALID_ARGUMENT,
     "too many"},
    {"pcd", PCD "POINTS 99999999\nDATA binary\n", VXD_INVALID_ARGUMENT, "announced"},
    {"pcd", PCD "POINTS 99999999\nDATA ascii\n1 2 3\n", VXD_INVALID_ARGUMENT,
     "cannot be"},
    {"pcd", PCD "POINTS 1\nDATA ascii\n1 2 z\n", VXD_INVALID_ARGUMENT, "line 8"},
    {"pcd", PCD "POINTS 1\nDATA utf8\n", VXD_INVALID_ARGUMENT, "DATA is not"},
    {"pcd", PCD "POINTS 1\nDATA binary_compressed\n", VXD_INVALID_ARGUMENT,
     "packed sizes"},
    {"pcd", PCD "POINTS 1\nDATA binary_compressed\n\x02zzz\x0czzzabc",
     VXD_INVALID_ARGUMENT, "unpacked"},
    {"pcd", "FIELDS x y z\nSIZE 4 4\n", VXD_INVALID_ARGUMENT, "fewer"},
    {"pcd", "FIELDS x y z\nSIZE 4 4 9\n", VXD_INVALID_ARGUMENT, "out of range"},
    {"pcd", "FIELDS x\nSIZE 3\nTYPE F\nPOINTS 0\nDATA ascii\n", VXD_INVALID_ARGUMENT,
     "no number known"},
    {"pcd", "FIELDS x\nSIZE 8\nTYPE F\nCOUNT 65536\n", VXD_INVALID_ARGUMENT, "range"},
    {"pcd", "FIELDS x y\nSIZE 8 8\nTYPE F F\nCOUNT 8000 8000\nPOINTS 0\nDATA ascii\n",
     VXD_INVALID_ARGUMENT, "bytes"},
    {"pcd", "SIZE 4\n", VXD_INVALID_ARGUMENT, "FIELDS"},
    {"pcd", "COLOUR 1\n", VXD_INVALID_ARGUMENT, "keyword"},
    {"npz", "", VXD_INVALID_ARGUMENT, "too few"},
    {"npz", "PK\x03\x04 and nothing more of a zip file", VXD_INVALID_ARGUMENT,
     "end record"},
    {"kitti", "12345678901234567", VXD_INVALID_ARGUMENT, "byte 16"},
    {"nuscenes", "1234567890123456", VXD_INVALID_ARGUMENT, "byte 0"},
    {"laz", "LASF", VXD_INVALID_ARGUMENT, "no known format"},
    {NULL, "", VXD_INVALID_ARGUMENT, "no known format"},
};

static void test_text_malformed_fails_and_says_where(void)
{
    for (size_t i = 0; i < sizeof malformed_texts / sizeof malformed_texts[0]; i++) {
        const struct malformed *m = &malformed_texts[i];
        struct vxd_cloud_file file;
        struct vxd_err err = {0};
        enum vxd_status status = vxd_cloud_file_parse(
            m->format, (const uint8_t *)m->text, strlen(m->text), BUDGET, &file, &err);

        CHECK_INT(status, m->code);
        if (strstr(err.message, m->says) == NULL) {
            (void)fprintf(stderr, "case %zu: \"%s\" lacks \"%s\"\n", i, err.message,
                          m->says);
            CHECK(strstr(err.message, m->says) != NULL);
        }
        CHECK(file.owned == NULL && file.n_points == 0 && file.data == NULL);
    }
}

static const struct malformed malformed_npy[] = {
    {NULL, "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), }",
     VXD_INVALID_ARGUMENT, "N x C"},
    {NULL, "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 65), }",
     VXD_INVALID_ARGUMENT, "N x C"},
    {NULL, "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }",
     VXD_INVALID_ARGUMENT, "N x C"},
    {NULL,
     "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4), }",
     VXD_INVALID_ARGUMENT, "announced"},
    {NULL,
     "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999, 4), }",
     VXD_INVALID_ARGUMENT, "shape"},
    {NULL, "{'descr': '<f4', 'fortran_order': False, 'shape': (-1, 4), }",
     VXD_INVALID_ARGUMENT, "shape"},
    {NULL, "{'descr': '<c8', 'fortran_order': False, 'shape': (1, 3), }",
     VXD_INVALID_ARGUMENT, "<c8"},
    {NULL, "{'descr': '|O', 'fortran_order': False, 'shape': (1, 3), }",
     VXD_INVALID_ARGUMENT, "not supported"},
    {NULL, "{'descr': '|V4', 'fortran_order': False, 'shape': (1, 3), }",
     VXD_INVALID_ARGUMENT, "void"},
    {NULL, "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (1, 3), }",
     VXD_INVALID_ARGUMENT, "True or False"},
    {NULL, "{'descr': '<f4', 'fortran_order': False, }", VXD_INVALID_ARGUMENT, "lacks"},
    {NULL, "{'descr': '<f4', 'descr': '<f4', }", VXD_INVALID_ARGUMENT, "once"},
    {NULL, "{'descr': [], 'fortran_order': False, 'shape': (0,), }", VXD_INVALID_ARGUMENT,
     "empty"},
    {NULL, "{'descr': [('x', [('y', '<f4')])], 'fortran_order': False, 'shape': (0,), }",
     VXD_INVALID_ARGUMENT, "nesting"},
    {NULL,
     "{'descr': [('x', '<f4'), ('y', '>f4'), ('z', '<f4')], 'fortran_order': False, "
     "'shape': (0,), }",
     VXD_INVALID_ARGUMENT, "mix"},
    {NULL, "{'descr': [('x', '<f4', (4294967296, 4294967296))], }", VXD_INVALID_ARGUMENT,
     "shape"},
    {NULL, "{'descr': [('x', '<f8', (9000,))], }", VXD_INVALID_ARGUMENT, "65535"},
    {NULL, "{'descr': 'f", VXD_INVALID_ARGUMENT, "byte"},
    {NULL, "", VXD_INVALID_ARGUMENT, "{"},
};

static void test_npy_malformed_header_fails_and_says_why(void)
{
    for (size_t i = 0; i < sizeof malformed_npy / sizeof malformed_npy[0]; i++) {
        const struct malformed *m = &malformed_npy[i];
        size_t n = strlen(m->text);
        uint8_t *bytes = malloc(10 + n);
        struct vxd_cloud_file file;
        struct vxd_err err = {0};

        REQUIRE(bytes != NULL);
        memcpy(bytes, "\x93NUMPY\x01", 8);
        bytes[8] = (uint8_t)n;
        bytes[9] = 0;
        memcpy(bytes + 10, m->text, n);
        CHECK_INT(vxd_cloud_file_parse("npy", bytes, 10 + n, BUDGET, &file, &err),
                  m->code);
        if (strstr(err.message, m->says) == NULL) {
            (void)fprintf(stderr, "case %zu: \"%s\" lacks \"%s\"\n", i, err.message,
                          m->says);
            CHECK(strstr(err.message, m->says) != NULL);
        }
        free(bytes);
    }
}

static void test_budget_too_small_is_resource_exhausted(void)
{
    static const char *const owned[][2] = {
        {"npz", "deflated.npz"}, {"npy", "fortran_f4.npy"}, {"npy", "plain_f8_big.npy"},
        {"pcd", "ascii.pcd"},    {"pcd", "compressed.pcd"}, {"ply", "big.ply"}};

    for (size_t i = 0; i < sizeof owned / sizeof owned[0]; i++) {
        char path[512];
        size_t n_bytes;
        uint8_t *bytes;
        struct vxd_cloud_file file;
        struct vxd_err err = {0};

        (void)snprintf(path, sizeof path, FILES "%s", owned[i][1]);
        bytes = load(path, &n_bytes);
        REQUIRE(bytes != NULL);
        CHECK_INT(vxd_cloud_file_parse(owned[i][0], bytes, n_bytes, 16, &file, &err),
                  VXD_RESOURCE_EXHAUSTED);
        CHECK(strstr(err.message, "16 are allowed") != NULL);
        CHECK(file.owned == NULL);
        free(bytes);
    }
}

/* 1000 bytes claim to unpack to 4 GB: they are refused before anything is allocated. */
static void put16(uint8_t *at, unsigned value)
{
    at[0] = (uint8_t)value;
    at[1] = (uint8_t)(value >> 8);
}

static void put32(uint8_t *at, uint32_t value)
{
    put16(at, value & 0xffff);
    put16(at + 2, value >> 16);
}

static uint32_t zip_crc(const uint8_t *bytes, size_t n)
{
    uint32_t crc = UINT32_MAX;

    for (size_t i = 0; i < n; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++) {
            crc = crc >> 1 ^ ((crc & 1) != 0 ? 0xedb88320u : 0);
        }
    }
    return ~crc;
}

enum {
    NPY_BYTES = 140,
    MEMBER_BYTES = 30 + 5 + NPY_BYTES,
    NPZ_ENTRY_BYTES = 46 + 5
};

/* A stored array of one float32, or of one point, as a member at `at`. */
static void put_npy(uint8_t *at, const char *shape)
{
    uint8_t *npy = at + 35;

    memset(at, 0, MEMBER_BYTES);
    memcpy(at, "PK\x03\x04", 4);
    put16(at + 26, 5);
    memcpy(at + 30, "a.npy", 5);
    memset(npy, ' ', 128);
    memcpy(npy, "\x93NUMPY\x01\x00", 8);
    put16(npy + 8, 118);
    (void)snprintf((char *)npy + 10, 118,
                   "{'descr': '<f4', 'fortran_order': False, 'shape': %s, }", shape);
    npy[10 + strlen((char *)npy + 10)] = ' ';
    npy[127] = '\n';
}

static void put_entry(uint8_t *at, const uint8_t *archive, size_t member)
{
    memset(at, 0, NPZ_ENTRY_BYTES);
    memcpy(at, "PK\x01\x02", 4);
    put32(at + 16, zip_crc(archive + member * MEMBER_BYTES + 35, NPY_BYTES));
    put32(at + 20, NPY_BYTES);
    put32(at + 24, NPY_BYTES);
    put16(at + 28, 5);
    put32(at + 42, (uint32_t)(member * MEMBER_BYTES));
    memcpy(at + 46, "a.npy", 5);
}

/* An array that is no points, as often as that, and one point behind it. */
static enum vxd_status parse_many(size_t n_others, struct vxd_err *err)
{
    size_t n_bytes = 2 * MEMBER_BYTES + (n_others + 1) * NPZ_ENTRY_BYTES + 22;
    uint8_t *bytes = calloc(1, n_bytes);
    struct vxd_cloud_file file;
    uint8_t *at;
    enum vxd_status status;

    if (bytes == NULL) {
        abort();
    }
    put_npy(bytes, "(1,)");
    put_npy(bytes + MEMBER_BYTES, "(1, 3)");
    at = bytes + 2 * MEMBER_BYTES;
    for (size_t i = 0; i <= n_others; i++, at += NPZ_ENTRY_BYTES) {
        put_entry(at, bytes, i == n_others);
    }
    memcpy(at, "PK\x05\x06", 4);
    put16(at + 10, (unsigned)n_others + 1);
    put32(at + 12, (uint32_t)((n_others + 1) * NPZ_ENTRY_BYTES));
    put32(at + 16, 2 * MEMBER_BYTES);
    status = vxd_cloud_file_parse("npz", bytes, n_bytes, SIZE_MAX, &file, err);
    if (status == VXD_OK) {
        CHECK_INT(file.n_points, 1);
    }
    vxd_cloud_file_clear(&file);
    free(bytes);
    return status;
}

/* A small file that says so much takes no longer than a large one. */
static void test_npz_of_very_many_members_is_refused(void)
{
    struct vxd_err err = {0};

    CHECK_INT(parse_many(0, &err), VXD_OK);
    CHECK_INT(parse_many(5000, &err), VXD_OK);
    CHECK_INT(parse_many(65533, &err), VXD_INVALID_ARGUMENT);
    CHECK(strstr(err.message, "takes too long") != NULL);
}

static void test_npz_bomb_is_refused_by_its_ratio(void)
{
    size_t n_bytes;
    uint8_t *bytes = load(FILES "deflated.npz", &n_bytes);
    struct vxd_cloud_file file;
    struct vxd_err err = {0};
    size_t n_changed = 0;

    REQUIRE(bytes != NULL);
    for (size_t i = 0; i + 46 < n_bytes; i++) {
        if (memcmp(bytes + i, "PK\x01\x02", 4) == 0) {
            memset(bytes + i + 24, 0x7f, 4); /* bytes unpacked */
            n_changed++;
        }
    }
    CHECK_INT(n_changed, 2);
    CHECK_INT(vxd_cloud_file_parse("npz", bytes, n_bytes, SIZE_MAX, &file, &err),
              VXD_INVALID_ARGUMENT);
    CHECK(strstr(err.message, "more than deflate can pack") != NULL);
    free(bytes);
}

static void test_format_of_a_name_is_its_ending_but_never_bin(void)
{
    CHECK_STR(vxd_cloud_file_format_of("a/b.PCD"), "pcd");
    CHECK_STR(vxd_cloud_file_format_of("scan.npz"), "npz");
    CHECK_STR(vxd_cloud_file_format_of("scan.Las"), "las");
    CHECK(vxd_cloud_file_format_of("scan.laz") == NULL);
    CHECK(vxd_cloud_file_format_of("000000.bin") == NULL);
    CHECK(vxd_cloud_file_format_of(".ply") == NULL);
    CHECK(vxd_cloud_file_format_of("ply") == NULL);
    CHECK_STR(vxd_cloud_file_formats()[0], "pcd");
}

/* Decimal commas in the process must not reach the readers. */
static void test_numbers_in_a_comma_locale_are_read_the_same(void)
{
    static const char text[] =
        PLY "element vertex 1\n" XYZ
            "end_header\n1.5 -2.25e-1 123456789.123456789012345e10\n";
    locale_t comma = newlocale(LC_ALL_MASK, "de_DE.UTF-8", (locale_t)0);
    locale_t before;
    struct vxd_cloud_file file;

    if (comma == (locale_t)0) {
        SKIP("no locale de_DE.UTF-8 here");
    }
    before = uselocale(comma);
    CHECK_INT(vxd_cloud_file_parse("ply", (const uint8_t *)text, sizeof text - 1, BUDGET,
                                   &file, NULL),
              VXD_OK);
    CHECK(value(&file, 0, "x") == 1.5 && value(&file, 0, "y") == -0.225f);
    CHECK(value(&file, 0, "z") == (double)1.23456789123456789e18f);
    vxd_cloud_file_clear(&file);
    (void)uselocale(before);
    freelocale(comma);
}

/* Bounds of real scans, as the catalogue states them. */
static void check_real(const char *path, const char *format, size_t n_points,
                       double low_x, double high_z)
{
    size_t n_bytes;
    uint8_t *bytes = load(path, &n_bytes);
    struct vxd_cloud_file file;
    double min_x = HUGE_VAL;
    double max_z = -HUGE_VAL;

    if (bytes == NULL) {
        return;
    }
    CHECK_INT(vxd_cloud_file_parse(format, bytes, n_bytes, BUDGET, &file, NULL), VXD_OK);
    CHECK_INT(file.n_points, n_points);
    for (size_t i = 0; i < file.n_points; i++) {
        min_x = fmin(min_x, value(&file, i, "x"));
        max_z = fmax(max_z, value(&file, i, "z"));
    }
    CHECK(fabs(min_x - low_x) < 1e-3 && fabs(max_z - high_z) < 1e-3);
    vxd_cloud_file_clear(&file);
    free(bytes);
}

static void test_real_scans_have_the_catalogued_bounds(void)
{
    FILE *catalogue = fopen(SHARED "CATALOGUE.md", "rb");

    check_real(VOXELD_SOURCE_DIR "/tests/data/spconv_benchmark_pc.npy", "npy", 198130,
               -74.1123, 5.94485);
    if (catalogue == NULL) {
        SKIP("the shared data are not here; only the committed scan was read");
    }
    (void)fclose(catalogue);
    check_real(SHARED "lidar/spconv_benchmark-pc.npz", "npz", 198130, -74.1123, 5.94485);
    check_real(SHARED "lidar/kitti_object_000001.bin", "kitti", 120268, -79.428, 2.904);
    check_real(SHARED "lidar/sfnd_street_0000000073.pcd", "pcd", 123773, -69.714, 2.911);
    check_real(SHARED "mesh/bunny.ply", "ply", 8171, -0.0945716, 0.0586895);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_file_of_every_kind_gives_the_same_points),
    VXD_TEST(test_file_cut_anywhere_is_refused),
    VXD_TEST(test_file_with_a_changed_byte_never_crashes),
    VXD_TEST(test_text_malformed_fails_and_says_where),
    VXD_TEST(test_npy_malformed_header_fails_and_says_why),
    VXD_TEST(test_budget_too_small_is_resource_exhausted),
    VXD_TEST(test_npz_bomb_is_refused_by_its_ratio),
    VXD_TEST(test_npz_of_very_many_members_is_refused),
    VXD_TEST(test_format_of_a_name_is_its_ending_but_never_bin),
    VXD_TEST(test_numbers_in_a_comma_locale_are_read_the_same),
    VXD_TEST(test_real_scans_have_the_catalogued_bounds),
};

VXD_TEST_MAIN(tests)
