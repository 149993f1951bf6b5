// SPDX-License-Identifier: Apache-2.0
/* PNG and JPEG pictures: files that Pillow and tests/data/images/make.py wrote, against the
 * patterns that they were made of; round trips; every truncation; every failing allocation. */
#include "client/files/image/files_image.h"
#include "tests/support/failing_alloc.h"
#include "tests/support/test.h"

enum {
    WIDTH = 13,
    HEIGHT = 7
};

static const struct vxd_image_limits large = {0, 0, 1 << 20};

static const char *const pngs[] = {"grey8.png",
                                   "rgb8.png",
                                   "rgba8.png",
                                   "grey_alpha8.png",
                                   "grey1.png",
                                   "grey16.png",
                                   "palette.png",
                                   "palette_alpha.png",
                                   "rgb16.png",
                                   "rgb8_interlaced.png",
                                   "grey16_interlaced.png"};
static const char *const jpegs[] = {"grey.jpg", "rgb.jpg", "progressive.jpg"};

/* Reads a file of tests/data/images; freed by the caller, NULL with a failed check. */
static uint8_t *read_file(const char *name, size_t *n_bytes)
{
    char path[256];
    uint8_t *bytes = malloc(65536);
    FILE *file;

    (void)snprintf(path, sizeof path, "%s/tests/data/images/%s", VOXELD_SOURCE_DIR, name);
    file = fopen(path, "rbe");
    CHECK(file != NULL && bytes != NULL);
    *n_bytes = 0;
    if (file != NULL) {
        *n_bytes = bytes != NULL ? fread(bytes, 1, 65536, file) : 0;
        (void)fclose(file);
    }
    CHECK(*n_bytes > 0);
    return bytes;
}

static bool decode_file(const char *name, struct vxd_image *image)
{
    struct vxd_err err = {0};
    size_t n_bytes = 0;
    uint8_t *bytes = read_file(name, &n_bytes);
    enum vxd_status status = vxd_image_decode(bytes, n_bytes, &large, image, &err);

    free(bytes);
    if (status != VXD_OK) {
        (void)fprintf(stderr, "%s: %s\n", name, err.message);
    }
    CHECK_INT(status, VXD_OK);
    return status == VXD_OK && image->width == WIDTH && image->height == HEIGHT;
}

static unsigned pattern(unsigned x, unsigned y, unsigned c)
{
    return (7 * x + 13 * y + 50 * c) % 256;
}

/* Counts samples that differ from the pattern; the last channel of grey with alpha is
 * the pattern's second. */
static unsigned count_wrong(const struct vxd_image *image, bool grey_alpha)
{
    const uint8_t *at = image->data;
    unsigned n_wrong = 0;

    for (unsigned y = 0; y < HEIGHT; y++) {
        for (unsigned x = 0; x < WIDTH; x++) {
            for (unsigned c = 0; c < image->n_channels; c++) {
                n_wrong += *at++ != pattern(x, y, grey_alpha ? c / 3 : c);
            }
        }
    }
    return n_wrong;
}

static void test_png_of_8_bits_has_the_samples_it_was_made_of(void)
{
    static const struct {
        const char *name;
        unsigned n_channels;
    } cases[] = {{"grey8.png", 1},       {"rgb8.png", 3},  {"rgba8.png", 4},
                 {"grey_alpha8.png", 4}, {"rgb16.png", 3}, {"rgb8_interlaced.png", 3}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct vxd_image image;

        REQUIRE(decode_file(cases[i].name, &image));
        CHECK_INT(image.n_channels, cases[i].n_channels);
        CHECK_INT(image.sample_bytes, 1);
        CHECK_INT(image.n_bytes, WIDTH * HEIGHT * cases[i].n_channels);
        CHECK_INT(count_wrong(&image, strcmp(cases[i].name, "grey_alpha8.png") == 0), 0);
        vxd_image_clear(&image);
        CHECK(image.data == NULL);
    }
}

static void test_png_of_16_bit_grey_becomes_native_samples(void)
{
    static const char *const names[] = {"grey16.png", "grey16_interlaced.png"};

    for (size_t i = 0; i < 2; i++) {
        struct vxd_image image;
        const uint16_t *at;
        unsigned n_wrong = 0;

        REQUIRE(decode_file(names[i], &image));
        CHECK_INT(image.n_channels, 1);
        REQUIRE(image.sample_bytes == 2);
        at = image.data;
        for (unsigned y = 0; y < HEIGHT; y++) {
            for (unsigned x = 0; x < WIDTH; x++) {
                n_wrong += *at++ != (257 * x + 4099 * y) % 65536;
            }
        }
        CHECK_INT(n_wrong, 0);
        vxd_image_clear(&image);
    }
}

static void test_png_of_few_bits_and_of_palettes_is_expanded(void)
{
    static const uint8_t alphas[4] = {255, 128, 0, 64};
    struct vxd_image grey;
    struct vxd_image rgb;
    struct vxd_image rgba;
    unsigned n_wrong = 0;

    REQUIRE(decode_file("grey1.png", &grey));
    REQUIRE(decode_file("palette.png", &rgb));
    REQUIRE(decode_file("palette_alpha.png", &rgba));
    CHECK_INT(grey.n_channels, 1);
    CHECK_INT(rgb.n_channels, 3);
    REQUIRE(rgba.n_channels == 4);
    for (unsigned i = 0; i < WIDTH * HEIGHT; i++) {
        unsigned k = (i % WIDTH + i / WIDTH) % 4;
        const uint8_t want[4] = {(uint8_t)(10 * k), (uint8_t)(20 * k + 5),
                                 (uint8_t)(255 - 30 * k), alphas[k]};

        n_wrong += ((const uint8_t *)grey.data)[i] != (k % 2 != 0 ? 255 : 0);
        n_wrong += memcmp((const uint8_t *)rgb.data + 3 * (size_t)i, want, 3) != 0;
        n_wrong += memcmp((const uint8_t *)rgba.data + 4 * (size_t)i, want, 4) != 0;
    }
    CHECK_INT(n_wrong, 0);
    vxd_image_clear(&grey);
    vxd_image_clear(&rgb);
    vxd_image_clear(&rgba);
}

static void test_jpeg_is_close_to_the_samples_it_was_made_of(void)
{
    for (size_t i = 0; i < sizeof jpegs / sizeof jpegs[0]; i++) {
        struct vxd_image image;
        const uint8_t *at;
        int largest = 0;

        REQUIRE(decode_file(jpegs[i], &image));
        CHECK_INT(image.n_channels, i == 0 ? 1 : 3);
        at = image.data;
        for (int y = 0; y < HEIGHT; y++) {
            for (int x = 0; x < WIDTH; x++) {
                for (int c = 0; c < (int)image.n_channels; c++) {
                    int difference = abs(*at++ - (4 * x + 3 * y + 20 * c));

                    largest = difference > largest ? difference : largest;
                }
            }
        }
        CHECK(largest <= 3);
        vxd_image_clear(&image);
    }
}

/* Decodes a copy of exactly so many bytes, so that sanitizers see a read beyond them. */
static enum vxd_status decode_copy(const uint8_t *bytes, size_t n_bytes,
                                   struct vxd_err *err)
{
    struct vxd_image image;
    uint8_t *copy = malloc(n_bytes > 0 ? n_bytes : 1);
    enum vxd_status status;

    memcpy(copy, bytes, n_bytes);
    status = vxd_image_decode(copy, n_bytes, &large, &image, err);
    CHECK((status == VXD_OK) == (image.data != NULL));
    vxd_image_clear(&image);
    free(copy);
    return status;
}

static void test_every_truncation_is_refused(void)
{
    for (size_t i = 0; i < sizeof pngs / sizeof pngs[0] + 3; i++) {
        size_t n_pngs = sizeof pngs / sizeof pngs[0];
        const char *name = i < n_pngs ? pngs[i] : jpegs[i - n_pngs];
        size_t n_bytes = 0;
        uint8_t *bytes = read_file(name, &n_bytes);

        for (size_t n = 0; n < n_bytes; n++) {
            struct vxd_err err = {0};
            enum vxd_status status = decode_copy(bytes, n, &err);

            CHECK_INT(status, VXD_INVALID_ARGUMENT);
            CHECK(err.code == status && err.message[0] != '\0');
            if (status != VXD_INVALID_ARGUMENT) {
                (void)fprintf(stderr, "%s cut to %zu bytes\n", name, n);
            }
        }
        CHECK_INT(decode_copy(bytes, n_bytes, NULL), VXD_OK);
        free(bytes);
    }
}

static void test_every_flipped_byte_gives_a_picture_or_an_error(void)
{
    for (size_t i = 0; i < sizeof pngs / sizeof pngs[0] + 3; i++) {
        size_t n_pngs = sizeof pngs / sizeof pngs[0];
        size_t n_bytes = 0;
        uint8_t *bytes = read_file(i < n_pngs ? pngs[i] : jpegs[i - n_pngs], &n_bytes);

        for (size_t at = 0; at < n_bytes; at++) {
            enum vxd_status status;

            bytes[at] ^= 0x55;
            status = decode_copy(bytes, n_bytes, NULL);
            CHECK(status == VXD_OK || status == VXD_INVALID_ARGUMENT ||
                  status == VXD_RESOURCE_EXHAUSTED);
            bytes[at] ^= 0x55;
        }
        free(bytes);
    }
}

static void test_picture_beyond_the_limits_is_refused_by_its_head(void)
{
    static const char *const names[] = {"rgb8.png", "rgb.jpg"};

    for (size_t i = 0; i < 2; i++) {
        const struct vxd_image_limits exact = {WIDTH, HEIGHT, WIDTH * HEIGHT * 3};
        struct vxd_image_limits less[3] = {exact, exact, exact};
        struct vxd_image image;
        struct vxd_err err = {0};
        size_t n_bytes = 0;
        uint8_t *bytes = read_file(names[i], &n_bytes);

        CHECK_INT(vxd_image_read_head(bytes, i == 0 ? 33 : n_bytes, &image, &err),
                  VXD_OK);
        CHECK(image.width == WIDTH && image.height == HEIGHT && image.n_channels == 3);
        CHECK(image.sample_bytes == 1 && image.data == NULL && image.n_bytes == 0);
        CHECK_INT(vxd_image_read_head(bytes, 12, &image, &err), VXD_INVALID_ARGUMENT);
        CHECK_INT(vxd_image_decode(bytes, n_bytes, &exact, &image, &err), VXD_OK);
        vxd_image_clear(&image);
        less[0].max_width--;
        less[1].max_height--;
        less[2].max_bytes--;
        for (size_t k = 0; k < 3; k++) {
            /* The head alone is enough to refuse it: nothing after it is looked at. */
            CHECK_INT(
                vxd_image_decode(bytes, i == 0 ? 33 : n_bytes, &less[k], &image, &err),
                VXD_RESOURCE_EXHAUSTED);
            CHECK(strstr(err.message, "13 x 7") != NULL);
            CHECK(image.data == NULL);
        }
        free(bytes);
    }
}

static void test_png_that_claims_billions_of_pixels_allocates_nothing(void)
{
    struct vxd_image image;
    struct vxd_err err = {0};
    size_t n_bytes = 0;
    uint8_t *bytes = read_file("grey8.png", &n_bytes);

    memcpy(bytes + 16, "\0\0\xff\xff\0\0\xff\xff", 8);
    fail_allocation(0);
    CHECK_INT(vxd_image_decode(bytes, n_bytes, &large, &image, &err),
              VXD_RESOURCE_EXHAUSTED);
    CHECK(strstr(err.message, "65535 x 65535") != NULL);
    CHECK(!stop_failing());
    memcpy(bytes + 16, "\0\0\0\0", 4);
    CHECK_INT(vxd_image_decode(bytes, n_bytes, &large, &image, &err),
              VXD_INVALID_ARGUMENT);
    memcpy(bytes + 16, "\xff\xff\xff\xff", 4);
    CHECK_INT(vxd_image_decode(bytes, n_bytes, &large, &image, &err),
              VXD_RESOURCE_EXHAUSTED);
    free(bytes);
}

static void test_other_files_are_refused_with_what_they_are_not(void)
{
    struct vxd_image image;
    struct vxd_err err = {0};
    size_t n_bytes = 0;
    uint8_t *bytes = read_file("cmyk.jpg", &n_bytes);

    CHECK_INT(vxd_image_decode(bytes, n_bytes, &large, &image, &err),
              VXD_INVALID_ARGUMENT);
    CHECK_STR(err.message, "jpeg: 4 components; 1 (grey) and 3 are read");
    CHECK_INT(vxd_png_decode(bytes, n_bytes, &large, &image, &err), VXD_INVALID_ARGUMENT);
    CHECK_INT(vxd_image_decode((const uint8_t *)"P5 13 7 255", 11, &large, &image, &err),
              VXD_INVALID_ARGUMENT);
    CHECK_STR(err.message, "11 bytes that begin like neither a PNG nor a JPEG file");
    CHECK_STR(err.field, "image");
    free(bytes);
}

static void fill(struct vxd_image *image, uint32_t width, uint32_t height,
                 uint32_t n_channels, uint32_t sample_bytes)
{
    uint32_t state = width * 31 + height;
    uint8_t *bytes;

    *image = (struct vxd_image){width, height, n_channels, sample_bytes, NULL, 0};
    image->n_bytes = (size_t)width * height * n_channels * sample_bytes;
    bytes = malloc(image->n_bytes);
    for (size_t i = 0; i < image->n_bytes; i++) {
        state = state * 1664525u + 1013904223u;
        bytes[i] = (uint8_t)(state >> 24);
    }
    image->data = bytes;
}

static void test_png_round_trip_of_noise_is_exact(void)
{
    static const struct {
        uint32_t width, height, n_channels, sample_bytes;
        int level;
    } cases[] = {{1, 1, 1, 1, 9},   {1, 1, 1, 2, 0},    {257, 3, 3, 1, 1},
                 {64, 64, 4, 1, 6}, {640, 48, 1, 2, 1}, {200, 300, 3, 1, 0}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct vxd_image image;
        struct vxd_image back;
        uint8_t *bytes;
        size_t n_bytes;

        fill(&image, cases[i].width, cases[i].height, cases[i].n_channels,
             cases[i].sample_bytes);
        REQUIRE(vxd_png_encode(&image, cases[i].level, &bytes, &n_bytes, NULL) == VXD_OK);
        CHECK_INT(vxd_image_format_of(bytes, n_bytes), VXD_IMAGE_PNG);
        REQUIRE(vxd_png_decode(bytes, n_bytes, &large, &back, NULL) == VXD_OK);
        CHECK_INT(back.n_channels, cases[i].n_channels);
        REQUIRE(back.n_bytes == image.n_bytes);
        CHECK(memcmp(back.data, image.data, image.n_bytes) == 0);
        free(bytes);
        vxd_image_clear(&back);
        vxd_image_clear(&image);
    }
}

/* In bands of seven rows, of which the last has fewer. */
static void test_png_in_bands_has_the_bytes_of_the_whole(void)
{
    for (uint32_t sample_bytes = 1; sample_bytes <= 2; sample_bytes++) {
        struct vxd_png_writer *writer = NULL;
        struct vxd_err err = {0};
        struct vxd_image image;
        uint8_t *whole;
        uint8_t *bytes;
        size_t n_whole;
        size_t n_bytes;
        size_t row_bytes;

        fill(&image, 61, 40, sample_bytes == 1 ? 3 : 1, sample_bytes);
        row_bytes = image.n_bytes / image.height;
        REQUIRE(vxd_png_encode(&image, 1, &whole, &n_whole, NULL) == VXD_OK);
        REQUIRE(vxd_png_begin(&image, 1, &writer, NULL) == VXD_OK);
        for (uint32_t y = 0; y < image.height; y += 7) {
            uint32_t n_rows = image.height - y < 7 ? image.height - y : 7;

            CHECK_INT(vxd_png_take_file(writer, &bytes, &n_bytes, &err),
                      VXD_INVALID_ARGUMENT);
            CHECK(bytes == NULL);
            REQUIRE(vxd_png_write_rows(writer,
                                       (const uint8_t *)image.data + y * row_bytes,
                                       n_rows, NULL) == VXD_OK);
        }
        CHECK_INT(vxd_png_write_rows(writer, image.data, 1, &err), VXD_INVALID_ARGUMENT);
        CHECK_STR(err.message, "png: 1 rows behind 40 of 40");
        REQUIRE(vxd_png_take_file(writer, &bytes, &n_bytes, NULL) == VXD_OK);
        REQUIRE(n_bytes == n_whole);
        CHECK(memcmp(bytes, whole, n_whole) == 0);
        vxd_png_destroy(writer);
        free(bytes);
        free(whole);
        vxd_image_clear(&image);
    }
}

static void test_jpeg_round_trip_of_a_ramp_is_close(void)
{
    for (uint32_t n_channels = 1; n_channels <= 3; n_channels += 2) {
        struct vxd_image image;
        struct vxd_image back;
        uint8_t *bytes;
        size_t n_bytes;
        int largest = 0;

        fill(&image, 120, 90, n_channels, 1);
        for (size_t i = 0; i < image.n_bytes; i++) {
            ((uint8_t *)image.data)[i] =
                (uint8_t)(i / n_channels % 120 + 20 * (i % n_channels));
        }
        REQUIRE(vxd_jpeg_encode(&image, 95, &bytes, &n_bytes, NULL) == VXD_OK);
        CHECK(n_bytes < image.n_bytes);
        REQUIRE(vxd_jpeg_decode(bytes, n_bytes, &large, &back, NULL) == VXD_OK);
        REQUIRE(back.n_bytes == image.n_bytes);
        for (size_t i = 0; i < image.n_bytes; i++) {
            int difference =
                abs(((const uint8_t *)back.data)[i] - ((const uint8_t *)image.data)[i]);

            largest = difference > largest ? difference : largest;
        }
        CHECK(largest <= 4);
        free(bytes);
        vxd_image_clear(&back);
        vxd_image_clear(&image);
    }
}

static void test_what_cannot_be_encoded_is_refused(void)
{
    struct vxd_image image;
    struct vxd_err err = {0};
    uint8_t *bytes;
    size_t n_bytes;

    fill(&image, 4, 4, 1, 2);
    CHECK_INT(vxd_jpeg_encode(&image, 80, &bytes, &n_bytes, &err), VXD_INVALID_ARGUMENT);
    CHECK_STR(err.message, "1 channels of 2 bytes; this format takes 1 or 3 of 1 byte");
    CHECK_INT(vxd_png_encode(&image, 10, &bytes, &n_bytes, &err), VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, "level");
    image.sample_bytes = 1;
    CHECK_INT(vxd_jpeg_encode(&image, 0, &bytes, &n_bytes, &err), VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, "quality");
    image.n_channels = 2;
    CHECK_INT(vxd_png_encode(&image, 1, &bytes, &n_bytes, &err), VXD_INVALID_ARGUMENT);
    image.n_channels = 1;
    image.width = 0;
    CHECK_INT(vxd_png_encode(&image, 1, &bytes, &n_bytes, &err), VXD_INVALID_ARGUMENT);
    CHECK(bytes == NULL);
    vxd_image_clear(&image);
}

/* Decodes and encodes with allocation k of ours failing; false once none fails. */
static bool fail_one(bool png, long k)
{
    struct vxd_image image;
    struct vxd_image back = {0};
    struct vxd_err err = {0};
    uint8_t *bytes = NULL;
    size_t n_bytes = 0;
    bool reached;
    enum vxd_status status;

    fill(&image, 300, 200, 3, 1);
    fail_allocation(k);
    status = png ? vxd_png_encode(&image, 1, &bytes, &n_bytes, &err)
                 : vxd_jpeg_encode(&image, 95, &bytes, &n_bytes, &err);
    if (status == VXD_OK) {
        status = vxd_image_decode(bytes, n_bytes, &large, &back, &err);
    }
    reached = stop_failing();
    CHECK_INT(status, reached ? VXD_RESOURCE_EXHAUSTED : VXD_OK);
    free(bytes);
    vxd_image_clear(&back);
    vxd_image_clear(&image);
    return reached;
}

static void test_every_failing_allocation_is_an_error_and_leaks_nothing(void)
{
    for (int png = 0; png < 2; png++) {
        long k = 0;

        while (fail_one(png != 0, k)) {
            k++;
        }
        CHECK(k >= 3); /* the file's memory grew, and the picture was allocated */
    }
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_png_of_8_bits_has_the_samples_it_was_made_of),
    VXD_TEST(test_png_of_16_bit_grey_becomes_native_samples),
    VXD_TEST(test_png_of_few_bits_and_of_palettes_is_expanded),
    VXD_TEST(test_jpeg_is_close_to_the_samples_it_was_made_of),
    VXD_TEST(test_every_truncation_is_refused),
    VXD_TEST(test_every_flipped_byte_gives_a_picture_or_an_error),
    VXD_TEST(test_picture_beyond_the_limits_is_refused_by_its_head),
    VXD_TEST(test_png_that_claims_billions_of_pixels_allocates_nothing),
    VXD_TEST(test_other_files_are_refused_with_what_they_are_not),
    VXD_TEST(test_png_round_trip_of_noise_is_exact),
    VXD_TEST(test_png_in_bands_has_the_bytes_of_the_whole),
    VXD_TEST(test_jpeg_round_trip_of_a_ramp_is_close),
    VXD_TEST(test_what_cannot_be_encoded_is_refused),
    VXD_TEST(test_every_failing_allocation_is_an_error_and_leaks_nothing),
};

VXD_TEST_MAIN(tests)
