// SPDX-License-Identifier: Apache-2.0
/* The envelope scanner against hand-made bytes: its results, and what it refuses. */
#include "proto/wire/wire.h"
#include "tests/support/test.h"

#define SCAN(text, out, err)                                                             \
    vxd_envelope_scan((const uint8_t *)(text), sizeof(text) - 1, (out), (err))

static void test_scan_header_and_method_finds_both(void)
{
    struct vxd_envelope e;
    struct vxd_err err = {0};

    /* header {request_id: "a"}, then voxelize (20) with 2 bytes */
    REQUIRE(SCAN("\x0a\x03\x0a\x01"
                 "a"
                 "\xa2\x01\x02\x48\x01",
                 &e, &err) == VXD_OK);
    CHECK_INT(e.header_bytes, 3);
    CHECK(memcmp(e.header, "\x0a\x01\x61", 3) == 0);
    CHECK_INT(e.method_tag, 20);
    CHECK_INT(e.body_bytes, 2);
    CHECK(memcmp(e.body, "\x48\x01", 2) == 0);
}

static void test_scan_empty_method_has_a_body_of_no_bytes(void)
{
    struct vxd_envelope e;

    REQUIRE(SCAN("\x52\x00", &e, NULL) == VXD_OK);
    CHECK(e.header == NULL);
    CHECK(e.body != NULL);
    CHECK_INT(e.body_bytes, 0);
    CHECK_INT(e.method_tag, 10);
}

static void test_scan_method_before_header_finds_both(void)
{
    struct vxd_envelope e;

    REQUIRE(SCAN("\x52\x00\x0a\x00", &e, NULL) == VXD_OK);
    CHECK(e.header != NULL);
    CHECK_INT(e.header_bytes, 0);
    CHECK_INT(e.method_tag, 10);
}

static void test_scan_unknown_method_is_left_to_the_caller(void)
{
    struct vxd_envelope e;

    REQUIRE(SCAN("\xda\x05\x01x", &e, NULL) == VXD_OK); /* field 91 */
    CHECK_INT(e.method_tag, 91);
    CHECK_INT(e.body_bytes, 1);
    /* The greatest field number. */
    REQUIRE(SCAN("\xfa\xff\xff\xff\x0f\x00", &e, NULL) == VXD_OK);
    CHECK_INT(e.method_tag, (1 << 29) - 1);
}

static void test_scan_unknown_scalars_are_skipped(void)
{
    struct vxd_envelope e;

    REQUIRE(SCAN("\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01" /* 2: varint, 10 bytes */
                 "\x19"
                 "12345678" /* 3: 8 bytes */
                 "\x25"
                 "1234"             /* 4: 4 bytes */
                 "\x2a\x02zz"       /* 5: delimited, below the methods */
                 "\xc0\x0c\x80\x00" /* 200: varint, not a method */
                 "\x5a\x00",
                 &e, NULL) == VXD_OK);
    CHECK_INT(e.method_tag, 11);
}

#define CHECK_REFUSED(text, words)                                                       \
    do {                                                                                 \
        struct vxd_envelope e_ = {.method_tag = 77};                                     \
        struct vxd_err err_ = {0};                                                       \
        CHECK_INT(SCAN(text, &e_, &err_), VXD_INVALID_ARGUMENT);                         \
        CHECK_INT(err_.code, VXD_INVALID_ARGUMENT);                                      \
        CHECK_INT(e_.method_tag, 77);                                                    \
        if (strstr(err_.message, words) == NULL) {                                       \
            (void)fprintf(stderr, "message: %s\n", err_.message);                        \
            CHECK(strstr(err_.message, words) != NULL);                                  \
        }                                                                                \
    } while (0)

static void test_scan_hostile_bytes_are_refused(void)
{
    CHECK_REFUSED("", "no method");
    CHECK_REFUSED("\x0a\x00", "no method");
    CHECK_REFUSED("\x2a\x00", "no method");
    CHECK_REFUSED("\x52", "cut short");
    CHECK_REFUSED("\x52\x80", "cut short");
    CHECK_REFUSED("\x52\x05zz", "claims 5 bytes, 2 are left");
    CHECK_REFUSED("\x52\xff\xff\xff\xff\x0f", "claims 4294967295 bytes");
    CHECK_REFUSED("\x52\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
                  "claims 1844674407370955");
    CHECK_REFUSED("\x52\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", "cut short");
    CHECK_REFUSED("\x52\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "cut short");
    CHECK_REFUSED("\x52\x00\x10", "cut short");
    CHECK_REFUSED("\x52\x00\x19"
                  "1234567",
                  "cut short");
    CHECK_REFUSED("\x52\x00\x25"
                  "123",
                  "cut short");
    CHECK_REFUSED("\x52\x00\x80", "begins no field");
    CHECK_REFUSED("\x52\x00\x80\x80\x80\x80\x80\x01", "begins no field");
    CHECK_REFUSED("\x52\x00\xff\xff\xff\xff\x1f", "begins no field");
    CHECK_REFUSED("\x02\x00", "begins no field");
    CHECK_REFUSED("\x52\x00\x13\x14", "wire type 3"); /* a group, and its end */
    CHECK_REFUSED("\x52\x00\x14", "wire type 4");
    CHECK_REFUSED("\x52\x00\x16", "wire type 6");
    CHECK_REFUSED("\x52\x00\x17", "wire type 7");
    CHECK_REFUSED("\x0a\x00\x0a\x00\x52\x00", "two headers");
    CHECK_REFUSED("\x52\x00\x5a\x00", "two methods, fields 10 and 11");
    CHECK_REFUSED("\x52\x00\x52\x00", "two methods");
    CHECK_REFUSED("\x52\x00\xda\x05\x00", "two methods, fields 10 and 91");
    CHECK_REFUSED("\x08\x01\x52\x00", "wire type 0");             /* header as a number */
    CHECK_REFUSED("\x55\x01\x02\x03\x04\x5a\x00", "wire type 5"); /* server_info too */
}

static void test_scan_field_count_is_bounded(void)
{
    uint8_t bytes[2 * 65];
    struct vxd_envelope e;
    struct vxd_err err = {0};

    for (size_t i = 0; i < sizeof bytes; i += 2) {
        bytes[i] = 0x10;
        bytes[i + 1] = 1;
    }
    bytes[2 * 63] = 0x52;
    bytes[2 * 63 + 1] = 0;
    CHECK(vxd_envelope_scan(bytes, (size_t)2 * 64, &e, &err) == VXD_OK);
    CHECK_INT(vxd_envelope_scan(bytes, sizeof bytes, &e, &err), VXD_INVALID_ARGUMENT);
    CHECK(strstr(err.message, "more than 64") != NULL);
}

/* Every prefix of a valid request is refused or valid itself, and the scanner never
 * reads beyond it: each lies in a heap block of its own, where ASan would see it. */
static void test_scan_every_truncation_stays_inside(void)
{
    static const uint8_t whole[] = "\x0a\x03\x0a\x01q\x10\x96\x01\xa2\x01\x03zzz";
    size_t n_whole = sizeof whole - 1;

    for (size_t n = 0; n <= n_whole; n++) {
        uint8_t *copy = malloc(n > 0 ? n : 1);
        struct vxd_envelope e;
        enum vxd_status status;

        REQUIRE(copy != NULL);
        memcpy(copy, whole, n);
        status = vxd_envelope_scan(copy, n, &e, NULL);
        CHECK_INT(status, n == n_whole ? VXD_OK : VXD_INVALID_ARGUMENT);
        free(copy);
    }
    CHECK_INT(vxd_envelope_scan(NULL, 0, &(struct vxd_envelope){0}, NULL),
              VXD_INVALID_ARGUMENT);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_scan_header_and_method_finds_both),
    VXD_TEST(test_scan_empty_method_has_a_body_of_no_bytes),
    VXD_TEST(test_scan_method_before_header_finds_both),
    VXD_TEST(test_scan_unknown_method_is_left_to_the_caller),
    VXD_TEST(test_scan_unknown_scalars_are_skipped),
    VXD_TEST(test_scan_hostile_bytes_are_refused),
    VXD_TEST(test_scan_field_count_is_bounded),
    VXD_TEST(test_scan_every_truncation_stays_inside),
};

VXD_TEST_MAIN(tests)
