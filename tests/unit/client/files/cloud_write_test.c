// SPDX-License-Identifier: Apache-2.0
/* The writers: what each wrote is read back, equal within what write.h states of the format.
 * Other programs read the same files: tests/data/files/check_writers.py. */
#include <errno.h>
#include <locale.h>
#include <math.h>

#include "client/files/reader.h"
#include "client/files/files.h"
#include "tests/support/test.h"
#include "tests/support/client/cloud_files.h"

/* Writes points in a format to memory. The caller frees *bytes. */
static enum vxd_status write_bytes(const char *format, const struct vxd_cloud_file *file,
                                   uint8_t **bytes, size_t *n_bytes,
                                   struct vxd_write_result *result, struct vxd_err *err)
{
    char *memory = NULL;
    FILE *stream = open_memstream(&memory, n_bytes);
    enum vxd_status status;

    *bytes = NULL;
    if (stream == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    status = vxd_cloud_file_write(stream, format, file, result, err);
    (void)fclose(stream);
    *bytes = (uint8_t *)memory;
    return status;
}

/* "pcd-ascii" is read as "pcd". */
static const char *reader_of(const char *format)
{
    return strncmp(format, "pcd", 3) == 0   ? "pcd"
           : strncmp(format, "ply", 3) == 0 ? "ply"
                                            : format;
}

static bool holds_all(const char *format)
{
    return strcmp(format, "las") != 0 && strcmp(format, "kitti") != 0 &&
           strcmp(format, "nuscenes") != 0;
}

/* Returns how far a value may be from what was written. */
static double tolerance(const char *format, double was)
{
    if (strcmp(format, "las") == 0) {
        return 0.5e-6 + fabs(was) * 1e-15;
    }
    return holds_all(format) ? 0 : fabs(was) * 6e-8;
}

/* LAS scales fractions to 16 bits. */
static double unit_of(const char *format, const struct vxd_cloud_file *was,
                      const char *name)
{
    double high = 0;

    if (strcmp(format, "las") != 0 || strcmp(name, "intensity") != 0 ||
        field(was, name)->dtype != VXD_FLOAT32) {
        return 1;
    }
    for (size_t i = 0; i < was->n_points; i++) {
        high = fmax(high, value(was, i, name));
    }
    return high <= 1 ? 65535 : 1;
}

static void check_same(const char *format, const struct vxd_cloud_file *was,
                       const struct vxd_cloud_file *is,
                       const struct vxd_write_result *result)
{
    CHECK_INT(is->n_points, was->n_points);
    CHECK_INT(result->n_points, was->n_points);
    for (size_t k = 0; k < was->n_fields; k++) {
        const char *name = was->fields[k].name;
        double unit = unit_of(format, was, name);

        CHECK(result->kept[k] || !holds_all(format));
        for (size_t i = 0; result->kept[k] && i < was->n_points; i++) {
            double raw = value(was, i, name) * unit;
            double a = unit > 1 ? floor(raw + 0.5) : raw;
            double b = value(is, i, name);

            /* A file may hold NaN; no writer may make one. */
            if (!(fabs(a - b) <= tolerance(format, a)) && !(isnan(a) && isnan(b)) &&
                a != b) {
                (void)fprintf(stderr, "%s, point %zu: %s was %.17g, is %.17g\n", format,
                              i, name, a, b);
                CHECK(a == b);
                return;
            }
        }
    }
}

static void check_all_formats(const char *name, const struct vxd_cloud_file *was)
{
    const char *format;

    for (size_t i = 0; (format = vxd_cloud_file_write_format(i)) != NULL; i++) {
        int failed = vxd_test_n_failed_checks;
        struct vxd_write_result result;
        struct vxd_cloud_file is;
        struct vxd_err err = {0};
        uint8_t *bytes;
        size_t n_bytes;

        CHECK_INT(write_bytes(format, was, &bytes, &n_bytes, &result, &err), VXD_OK);
        CHECK_INT(
            vxd_cloud_file_parse(reader_of(format), bytes, n_bytes, BUDGET, &is, &err),
            VXD_OK);
        if (err.code == VXD_OK) {
            check_same(format, was, &is, &result);
        }
        if (vxd_test_n_failed_checks != failed) {
            (void)fprintf(stderr, "%s as %s: %s\n", name, format, err.message);
        }
        vxd_cloud_file_clear(&is);
        free(bytes);
    }
}

static bool check_file(const char *path, const char *format)
{
    size_t n_bytes;
    uint8_t *bytes = load(path, &n_bytes);
    struct vxd_cloud_file file;

    if (bytes == NULL) {
        return false;
    }
    CHECK_INT(vxd_cloud_file_parse(format, bytes, n_bytes, BUDGET, &file, NULL), VXD_OK);
    check_all_formats(path, &file);
    vxd_cloud_file_clear(&file);
    free(bytes);
    return true;
}

static void test_file_written_in_every_format_is_read_back(void)
{
    static const char *const names[][2] = {
        {"ascii.pcd", "pcd"},
        {"ascii.ply", "ply"},
        {"big.ply", "ply"},
        {"compressed.pcd", "pcd"},
        {"deflated.npz", "npz"},
        {"empty.npy", "npy"},
        {"fortran_f4_big.npy", "npy"},
        {"kitti.bin", "kitti"},
        {"nuscenes.bin", "nuscenes"},
        {"plain_f2.npy", "npy"},
        {"quarters_i2.npy", "npy"},
        {"wide_f4.npy", "npy"},
        {"quarters_i8_big.npy", "npy"},
        {"records.npy", "npy"},
        {"records_padded.npy", "npy"},
        {"v2_f3.las", "las"},
        {"v3_f5.las", "las"},
        {"v4_f10.las", "las"},
        {"v4_f6.las", "las"},
    };

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[512];

        (void)snprintf(path, sizeof path, FILES "%s", names[i][0]);
        CHECK(check_file(path, names[i][1]));
    }
}

static void test_real_scans_written_in_every_format_are_read_back(void)
{
    if (!check_file(SHARED "lidar/kitti_object_000001.bin", "kitti")) {
        SKIP("the shared data are not here");
    }
    CHECK(check_file(SHARED "lidar/sfnd_street_0000000073.pcd", "pcd"));
    CHECK(check_file(SHARED "mesh/bunny.ply", "ply"));
}

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525U + 1013904223U;
    return *state >> 8;
}

/* Packs lengths around the limits of literals and matches, with bytes from random to
 * all equal. */
static void test_lzf_packed_is_unpacked_within_its_bound(void)
{
    enum {
        MAX = 20000
    };
    static const size_t lengths[] = {0,   1,   2,   3,   4,   31,  32,   33,   64,   65,
                                     263, 264, 265, 266, 267, 530, 8191, 8192, 8193, MAX};
    static const uint32_t alphabets[] = {1, 2, 3, 17, 256};
    uint8_t *in = malloc(MAX);
    uint8_t *out = malloc(MAX);
    uint32_t state = 7;

    REQUIRE(in != NULL && out != NULL);
    for (size_t a = 0; a < sizeof alphabets / sizeof alphabets[0]; a++) {
        for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++) {
            size_t n = lengths[k];
            /* The block has exactly the bound's size, so that ASan sees a write beyond
             * it. */
            uint8_t *packed = malloc(VXD_LZF_BOUND(n));
            size_t n_packed;

            REQUIRE(packed != NULL);
            for (size_t i = 0; i < n; i++) {
                in[i] = (uint8_t)(next_random(&state) % alphabets[a]);
            }
            CHECK(vxd_lzf_compress(in, n, packed, &n_packed));
            CHECK(n_packed <= VXD_LZF_BOUND(n));
            CHECK(alphabets[a] > 1 || n < 1000 || n_packed * 50 < n);
            memset(out, 0xaa, MAX);
            CHECK(vxd_lzf_decompress(packed, n_packed, out, n));
            CHECK(memcmp(in, out, n) == 0);
            free(packed);
        }
    }
    free(out);
    free(in);
}

/* Makes one field of each type, with extreme values. */
struct extreme {
    float x;
    float y;
    double z;
    int64_t i8;
    uint64_t u8;
    int32_t i4;
    uint32_t u4;
    int16_t i2;
    uint16_t f2;
    int8_t i1;
    uint8_t u1;
};

static struct vxd_cloud_file extremes(const struct extreme *points, size_t n)
{
    static const struct vxd_file_field fields[] = {
        {"x", offsetof(struct extreme, x), VXD_FLOAT32, 1, 0},
        {"y", offsetof(struct extreme, y), VXD_FLOAT32, 1, 0},
        {"z", offsetof(struct extreme, z), VXD_FLOAT64, 1, 0},
        {"i8", offsetof(struct extreme, i8), VXD_INT64, 1, 0},
        {"u8", offsetof(struct extreme, u8), VXD_UINT64, 1, 0},
        {"i4", offsetof(struct extreme, i4), VXD_INT32, 1, 0},
        {"u4", offsetof(struct extreme, u4), VXD_UINT32, 1, 0},
        {"i2", offsetof(struct extreme, i2), VXD_INT16, 1, 0},
        {"f2", offsetof(struct extreme, f2), VXD_FLOAT16, 1, 0},
        {"i1", offsetof(struct extreme, i1), VXD_INT8, 1, 0},
        {"a 'name\\", offsetof(struct extreme, u1), VXD_UINT8, 0.5, -3},
    };
    struct vxd_cloud_file file = {.n_fields = sizeof fields / sizeof fields[0],
                                  .point_step = sizeof *points,
                                  .n_points = n,
                                  .data = (const uint8_t *)points};

    memcpy(file.fields, fields, sizeof fields);
    return file;
}

static void test_extreme_values_are_read_back_exactly(void)
{
    const struct extreme points[3] = {
        {1.17549435e-38F, -3.40282347e38F, 1.7976931348623157e308, INT64_MIN, UINT64_MAX,
         INT32_MIN, UINT32_MAX, INT16_MIN, 0x7bff, INT8_MIN, 255},
        {1e-45F, 0.1F, 5e-324, INT64_MAX, 1, INT32_MAX, 1, INT16_MAX, 0x0001, INT8_MAX,
         1},
        {(float)NAN, -HUGE_VALF, (double)NAN, -1, 0, -1, 0, -1, 0xfc00, -1, 0}};
    const struct vxd_cloud_file was = extremes(points, 3);
    const char *format;

    for (size_t i = 0; (format = vxd_cloud_file_write_format(i)) != NULL; i++) {
        struct vxd_write_result result;
        struct vxd_cloud_file is;
        uint8_t *bytes;
        size_t n_bytes;
        int64_t whole;

        if (!holds_all(format)) {
            continue;
        }
        CHECK_INT(write_bytes(format, &was, &bytes, &n_bytes, &result, NULL), VXD_OK);
        REQUIRE(vxd_cloud_file_parse(reader_of(format), bytes, n_bytes, BUDGET, &is,
                                     NULL) == VXD_OK);
        CHECK_INT(is.n_fields, was.n_fields);
        CHECK_STR(is.fields[10].name, "a__name_");
        CHECK(value(&is, 0, "a__name_") == 124.5 && value(&is, 2, "a__name_") == -3);
        is.fields[10] = was.fields[10]; /* the name; its values were checked */
        is.fields[10].dtype = VXD_DTYPE_UNSPECIFIED;
        for (size_t k = 0; k < 10; k++) {
            for (size_t p = 0; p < 3; p++) {
                double a = value(&was, p, was.fields[k].name);
                double b = value(&is, p, was.fields[k].name);

                if (a != b && !(isnan(a) && isnan(b))) {
                    (void)fprintf(stderr, "%s: %s was %.17g, is %.17g\n", format,
                                  was.fields[k].name, a, b);
                    CHECK(a == b);
                }
            }
        }
        if (is.fields[3].dtype == VXD_INT64) { /* beyond 2^53 */
            memcpy(&whole, is.data + is.point_step + is.fields[3].offset, sizeof whole);
            CHECK(whole == INT64_MAX);
        }
        vxd_cloud_file_clear(&is);
        free(bytes);
    }
}

struct scan_point {
    float x, y, z, intensity;
    uint8_t red, green, blue;
    uint8_t classification;
    double gps_time;
    float nir;
};

static struct vxd_cloud_file scan(const struct scan_point *points, size_t n,
                                  size_t n_fields)
{
    static const struct vxd_file_field fields[] = {
        {"x", 0, VXD_FLOAT32, 1, 0},
        {"y", 4, VXD_FLOAT32, 1, 0},
        {"z", 8, VXD_FLOAT32, 1, 0},
        {"intensity", 12, VXD_FLOAT32, 1, 0},
        {"classification", 19, VXD_UINT8, 1, 0},
        {"red", 16, VXD_UINT8, 1, 0},
        {"green", 17, VXD_UINT8, 1, 0},
        {"blue", 18, VXD_UINT8, 1, 0},
        {"gps_time", offsetof(struct scan_point, gps_time), VXD_FLOAT64, 1, 0},
        {"nir", offsetof(struct scan_point, nir), VXD_FLOAT32, 1, 0},
    };
    struct vxd_cloud_file file = {.n_fields = n_fields,
                                  .point_step = sizeof *points,
                                  .n_points = n,
                                  .data = (const uint8_t *)points};

    memcpy(file.fields, fields, sizeof fields);
    return file;
}

static void test_las_takes_the_smallest_format_that_holds_the_fields(void)
{
    static const struct {
        size_t n_fields;
        uint8_t classification;
        uint8_t minor;
        uint8_t format;
    } cases[] = {{4, 0, 2, 0},  {5, 31, 2, 0}, {5, 32, 4, 6}, {8, 31, 2, 2},
                 {8, 32, 4, 7}, {9, 31, 2, 3}, {9, 32, 4, 7}, {10, 0, 4, 8}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct scan_point points[2] = {
            {1, 2, 3, 0.5F, 255, 128, 0, cases[i].classification, 1e9 + 0.25, 1},
            {-1, -2, -3, 1, 1, 2, 3, 4, -5, 0}};
        const struct vxd_cloud_file was = scan(points, 2, cases[i].n_fields);
        struct vxd_write_result result;
        struct vxd_cloud_file is;
        uint8_t *bytes;
        size_t n_bytes;

        CHECK_INT(write_bytes("las", &was, &bytes, &n_bytes, &result, NULL), VXD_OK);
        CHECK(bytes[24] == 1 && bytes[25] == cases[i].minor);
        CHECK_INT(bytes[104], cases[i].format);
        REQUIRE(vxd_cloud_file_parse("las", bytes, n_bytes, 0, &is, NULL) == VXD_OK);
        for (size_t k = 0; k < was.n_fields; k++) {
            CHECK(result.kept[k]);
        }
        /* Fractions are scaled to 16 bits, and so are the bytes of colours. */
        CHECK(value(&is, 0, "intensity") == 32768 && value(&is, 1, "intensity") == 65535);
        CHECK(value(&is, 0, "x") == 1 && value(&is, 1, "z") == -3);
        CHECK(cases[i].n_fields < 8 ||
              (value(&is, 0, "red") == 65535 && value(&is, 0, "green") == 128 * 257));
        CHECK(cases[i].n_fields < 9 || value(&is, 0, "gps_time") == 1e9 + 0.25);
        CHECK(cases[i].n_fields < 10 || value(&is, 0, "nir") == 65535);
        vxd_cloud_file_clear(&is);
        free(bytes);
    }
}

static void test_las_leaves_out_points_that_are_not_finite(void)
{
    const struct scan_point points[4] = {
        {.x = 1}, {.y = (float)NAN}, {.z = HUGE_VALF}, {.x = 7, .intensity = (float)NAN}};
    const struct vxd_cloud_file was = scan(points, 4, 4);
    struct vxd_write_result result;
    struct vxd_cloud_file is;
    uint8_t *bytes;
    size_t n_bytes;

    CHECK_INT(write_bytes("las", &was, &bytes, &n_bytes, &result, NULL), VXD_OK);
    CHECK_INT(result.n_points, 2);
    REQUIRE(vxd_cloud_file_parse("las", bytes, n_bytes, 0, &is, NULL) == VXD_OK);
    CHECK_INT(is.n_points, 2);
    CHECK(value(&is, 1, "x") == 7 && value(&is, 1, "intensity") == 0);
    vxd_cloud_file_clear(&is);
    free(bytes);
}

static void test_las_of_a_wide_extent_is_rounded_coarser(void)
{
    static const float extents[] = {2000, 2200, 1e6F, 3e9F, 1e30F, 3e38F};
    static const double scales[] = {1e-6, 1e-5, 1e-3, 10, 1e21, 1e30};

    for (size_t i = 0; i < sizeof extents / sizeof extents[0]; i++) {
        const struct scan_point points[2] = {{.x = 0},
                                             {.x = extents[i], .intensity = 400}};
        const struct vxd_cloud_file was = scan(points, 2, 4);
        struct vxd_write_result result;
        struct vxd_cloud_file is;
        uint8_t *bytes;
        size_t n_bytes;

        CHECK_INT(write_bytes("las", &was, &bytes, &n_bytes, &result, NULL), VXD_OK);
        REQUIRE(vxd_cloud_file_parse("las", bytes, n_bytes, 0, &is, NULL) == VXD_OK);
        CHECK(fabs(is.fields[0].scale / scales[i] - 1) < 1e-12);
        CHECK(fabs(value(&is, 1, "x") - (double)extents[i]) <= 0.51 * scales[i]);
        CHECK(value(&is, 1, "intensity") == 400);
        vxd_cloud_file_clear(&is);
        free(bytes);
    }
}

static void test_write_that_cannot_be_says_why(void)
{
    const struct scan_point points[1] = {{.x = 1}};
    struct vxd_cloud_file file = scan(points, 1, 5);
    struct vxd_write_result result;
    struct vxd_err err = {0};
    uint8_t *bytes;
    size_t n_bytes;

    CHECK_INT(write_bytes("laz", &file, &bytes, &n_bytes, &result, &err),
              VXD_INVALID_ARGUMENT);
    CHECK(strstr(err.message, "\"laz\"") != NULL && strstr(err.message, "las") != NULL);
    free(bytes);
    (void)snprintf(file.fields[3].name, sizeof file.fields[3].name, "a b");
    (void)snprintf(file.fields[4].name, sizeof file.fields[4].name, "a_b");
    CHECK_INT(write_bytes("ply", &file, &bytes, &n_bytes, &result, &err),
              VXD_INVALID_ARGUMENT);
    CHECK(strstr(err.message, "\"a_b\"") != NULL);
    free(bytes);
    (void)snprintf(file.fields[3].name, sizeof file.fields[3].name, "_");
    CHECK_INT(write_bytes("pcd", &file, &bytes, &n_bytes, &result, &err),
              VXD_INVALID_ARGUMENT);
    CHECK(strstr(err.message, "padding") != NULL);
    free(bytes);
}

static void test_write_to_a_full_disk_is_unavailable(void)
{
    const struct scan_point points[3] = {{.x = 1}};
    const struct vxd_cloud_file file = scan(points, 3, 4);
    const char *format;

    for (size_t i = 0; (format = vxd_cloud_file_write_format(i)) != NULL; i++) {
        FILE *full = fopen("/dev/full", "wbe");
        struct vxd_write_result result;
        struct vxd_err err = {0};

        if (full == NULL) {
            SKIP("no /dev/full here");
        }
        CHECK_INT(vxd_cloud_file_write(full, format, &file, &result, &err),
                  VXD_UNAVAILABLE);
        CHECK(strstr(err.message, strerror(ENOSPC)) != NULL);
        (void)fclose(full);
    }
}

/* Decimal commas in the process must not reach the writers. */
static void test_numbers_in_a_comma_locale_are_written_the_same(void)
{
    const struct scan_point points[1] = {{.x = 1.5F}};
    const struct vxd_cloud_file file = scan(points, 1, 3);
    locale_t comma = newlocale(LC_ALL_MASK, "de_DE.UTF-8", (locale_t)0);
    struct vxd_write_result result;
    locale_t before;
    uint8_t *bytes;
    size_t n_bytes;

    if (comma == (locale_t)0) {
        SKIP("no locale de_DE.UTF-8 here");
    }
    before = uselocale(comma);
    CHECK_INT(write_bytes("ply-ascii", &file, &bytes, &n_bytes, &result, NULL), VXD_OK);
    (void)uselocale(before);
    freelocale(comma);
    CHECK(n_bytes > 8 && memcmp(bytes + n_bytes - 8, "1.5 0 0\n", 8) == 0);
    free(bytes);
}

static void test_ply_of_columns_is_read_back(void)
{
    const double xyz[6] = {1, 2, 3, -1.5, 1e9, 0.125};
    const uint32_t counts[2] = {7, 4000000000U};
    const struct vxd_write_column columns[4] = {{"x", VXD_FLOAT64, xyz, 24},
                                                {"y", VXD_FLOAT64, xyz + 1, 24},
                                                {"z", VXD_FLOAT64, xyz + 2, 24},
                                                {"count", VXD_UINT32, counts, 4}};
    uint8_t bytes[1024];
    size_t n_bytes;
    FILE *stream = tmpfile();
    struct vxd_cloud_file file;
    const struct vxd_file_field *count;
    uint32_t second;

    REQUIRE(stream != NULL);
    CHECK_INT(vxd_ply_write(stream, columns, 4, 2, NULL), VXD_OK);
    rewind(stream);
    n_bytes = fread(bytes, 1, sizeof bytes, stream);
    (void)fclose(stream);
    REQUIRE(vxd_cloud_file_parse("ply", bytes, n_bytes, 0, &file, NULL) == VXD_OK);
    CHECK_INT(file.n_points, 2);
    CHECK(value(&file, 1, "y") == 1e9 && value(&file, 0, "z") == 3);
    count = field(&file, "count");
    REQUIRE(count != NULL && count->dtype == VXD_UINT32);
    memcpy(&second, file.data + file.point_step + count->offset, sizeof second);
    CHECK(second == 4000000000U);
}

static void test_npy_of_an_array_is_read_back(void)
{
    const float rows[6] = {1, 2, 3, 4, 5, 6};
    const size_t shape[2] = {2, 3};
    uint8_t bytes[1024];
    size_t n_bytes;
    FILE *stream = tmpfile();
    struct vxd_cloud_file file;

    REQUIRE(stream != NULL);
    CHECK_INT(vxd_npy_write(stream, VXD_FLOAT32, shape, 2, rows, NULL), VXD_OK);
    CHECK_INT(vxd_npy_write(stream, VXD_BFLOAT16, shape, 2, rows, NULL),
              VXD_INVALID_ARGUMENT);
    rewind(stream);
    n_bytes = fread(bytes, 1, sizeof bytes, stream);
    (void)fclose(stream);
    CHECK_INT(n_bytes, 128 + sizeof rows);
    REQUIRE(vxd_cloud_file_parse("npy", bytes, n_bytes, 0, &file, NULL) == VXD_OK);
    CHECK(file.n_points == 2 && value(&file, 1, "z") == 6);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_file_written_in_every_format_is_read_back),
    VXD_TEST(test_real_scans_written_in_every_format_are_read_back),
    VXD_TEST(test_lzf_packed_is_unpacked_within_its_bound),
    VXD_TEST(test_extreme_values_are_read_back_exactly),
    VXD_TEST(test_las_takes_the_smallest_format_that_holds_the_fields),
    VXD_TEST(test_las_leaves_out_points_that_are_not_finite),
    VXD_TEST(test_las_of_a_wide_extent_is_rounded_coarser),
    VXD_TEST(test_write_that_cannot_be_says_why),
    VXD_TEST(test_write_to_a_full_disk_is_unavailable),
    VXD_TEST(test_numbers_in_a_comma_locale_are_written_the_same),
    VXD_TEST(test_ply_of_columns_is_read_back),
    VXD_TEST(test_npy_of_an_array_is_read_back),
};

VXD_TEST_MAIN(tests)
