// SPDX-License-Identifier: Apache-2.0
/* Multipart bodies, composed here part by part: what is split is what was put together, and what
 * breaks a rule of RFC 2046 or 7578 is refused. Each body lies alone in memory, so that a byte read
 * beside it is seen by a sanitizer. */
#include "server/request/request_life.h"

#include <stdlib.h>
#include <string.h>

#include "tests/support/test.h"

#define HEAD "Content-Disposition: form-data; name="
#define BOUNDARY "b(1)"
#define OPEN "--" BOUNDARY "\r\n"
#define NEXT "\r\n--" BOUNDARY "\r\n"
#define CLOSE "\r\n--" BOUNDARY "--"

struct split {
    struct vxd_body_part parts[VXD_BODY_MAX_PARTS];
    size_t n;
    uint8_t *bytes; /* freed by the caller */
    struct vxd_err err;
};

static enum vxd_status split(struct split *split, const char *bytes, size_t n_bytes)
{
    memset(split, 0, sizeof *split);
    split->bytes = malloc(n_bytes > 0 ? n_bytes : 1);
    memcpy(split->bytes, bytes, n_bytes);
    return vxd_multipart_split(split->bytes, n_bytes, BOUNDARY, split->parts, &split->n,
                               &split->err);
}

static bool holds(const struct split *split, size_t i, const char *name,
                  const void *bytes, size_t n_bytes)
{
    return i < split->n && strcmp(split->parts[i].name, name) == 0 &&
           split->parts[i].n_bytes == n_bytes &&
           memcmp(split->parts[i].bytes, bytes, n_bytes) == 0;
}

static void check_refused(const char *body, const char *field)
{
    struct split refused;

    CHECK_INT(split(&refused, body, strlen(body)), VXD_INVALID_ARGUMENT);
    CHECK(refused.n <= VXD_BODY_MAX_PARTS);
    if (strstr(refused.err.message, field) == NULL) {
        CHECK_STR(refused.err.message, field);
    }
    free(refused.bytes);
}

static void test_boundary_of_a_type_is_what_it_names_or_none(void)
{
    static const struct {
        const char *type;
        const char *boundary; /* NULL: there is none */
    } cases[] = {
        {"multipart/form-data; boundary=abc", "abc"},
        {"multipart/form-data;boundary=abc;charset=x", "abc"},
        {"multipart/form-data; boundary=abc\tcharset=x", "abc"},
        {"multipart/form-data; charset=x; \tBounDary=\"a b'()+_,-./:=?AZz09\"",
         "a b'()+_,-./:=?AZz09"},
        {"multipart/form-data; xboundary=abc", NULL},
        {"multipart/form-data", NULL},
        {"multipart/form-data; boundary=", NULL},
        {"multipart/form-data; boundary=\"\"", NULL},
        {"multipart/form-data; boundary=\"abc", NULL},
        {"multipart/form-data; boundary=\"abc \"", NULL},
        {"multipart/form-data; boundary=a\"b", NULL},
        {"multipart/form-data; boundary=a@b", NULL},
        {"multipart/form-data; boundary=@b", NULL},
        {"multipart/form-data; boundary=a[b", NULL},
        {"multipart/form-data; boundary=a`b", NULL},
        {"multipart/form-data; boundary=a{b", NULL},
        {"multipart/form-data; boundary=a;boundary=b", "a"},
    };
    char out[VXD_BOUNDARY_BYTES];
    char type[128];

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bool is_found = vxd_multipart_boundary(cases[i].type, out);

        CHECK_INT(is_found, cases[i].boundary != NULL);
        if (is_found && cases[i].boundary != NULL) {
            CHECK_STR(out, cases[i].boundary);
        }
    }
    /* 70 characters are the most that the standard allows. */
    for (int n = 69; n <= 71; n++) {
        int head = snprintf(type, sizeof type, "multipart/form-data; boundary=");

        memset(type + head, 'x', (size_t)n);
        type[head + n] = '\0';
        CHECK_INT(vxd_multipart_boundary(type, out), n <= 70);
        if (n <= 70) {
            CHECK_STR(out, type + head);
        }
    }
}

/* Bytes that look like much of a delimiter, in parts of all small sizes. */
static void test_parts_are_those_that_were_composed(void)
{
    static const char some[] = "\r\n--b(1-\r\n-\r\n--b(\0-b(1)\r\n\r\n\r";
    const size_t n_some = sizeof some - 1;
    struct split found;
    char body[4096];

    for (size_t first = 0; first <= n_some; first++) {
        for (int preamble = 0; preamble < 2; preamble++) {
            size_t second = (7 * first) % (n_some + 1);
            size_t n =
                (size_t)snprintf(body, sizeof body, "%s", preamble ? "-so\r\n" : "");

            n +=
                (size_t)snprintf(body + n, sizeof body - n,
                                 OPEN HEAD "\"a\"\r\ncontent-transfer-encoding:\t8BIT\r\n"
                                           "Content-Type: x/y\r\n\r\n");
            memcpy(body + n, some, first);
            n += first;
            n += (size_t)snprintf(
                body + n, sizeof body - n,
                "\r\n--" BOUNDARY " \t \r\n"
                "content-disposition: form-data; size=9; filename=\"c\"; "
                "name=b\r\n\r\n");
            memcpy(body + n, some + n_some - second, second);
            n += second;
            n += (size_t)snprintf(body + n, sizeof body - n, CLOSE "%s",
                                  preamble ? "\r\nand after" : "");
            CHECK_INT(split(&found, body, n), VXD_OK);
            CHECK_INT(found.n, 2);
            CHECK(holds(&found, 0, "a", some, first));
            CHECK(holds(&found, 1, "b", some + n_some - second, second));
            free(found.bytes);
        }
    }
}

static void test_empty_parts_are_parts(void)
{
    static const char without_bytes[] =
        OPEN HEAD "\"a\"\r\n\r\n" NEXT HEAD "\"b\"\r\n\r\n" CLOSE;
    /* The line break of the empty line is that of the boundary. */
    static const char without_break[] = OPEN HEAD "\"a\"\r\n\r\n--" BOUNDARY "--";
    struct split found;

    CHECK_INT(split(&found, without_bytes, sizeof without_bytes - 1), VXD_OK);
    CHECK_INT(found.n, 2);
    CHECK(holds(&found, 0, "a", "", 0) && holds(&found, 1, "b", "", 0));
    free(found.bytes);
    CHECK_INT(split(&found, without_break, sizeof without_break - 1), VXD_OK);
    CHECK(found.n == 1 && holds(&found, 0, "a", "", 0));
    free(found.bytes);
}

static void test_body_cut_anywhere_is_refused(void)
{
    static const char whole[] =
        "before" NEXT HEAD "\"a\"\r\n\r\n12" NEXT HEAD "\"b\"\r\n\r\n3" CLOSE;
    struct split found;

    for (size_t n = 0; n < sizeof whole; n++) {
        bool is_whole = n == sizeof whole - 1;

        CHECK_INT(split(&found, whole, n), is_whole ? VXD_OK : VXD_INVALID_ARGUMENT);
        CHECK(is_whole || found.err.message[0] != '\0');
        free(found.bytes);
    }
}

static void test_body_against_the_rules_is_refused(void)
{
    check_refused("", "no part");
    check_refused("--" BOUNDARY, "end of its line");
    check_refused("--" BOUNDARY "\r\n", "does not end within 2048");
    check_refused("--" BOUNDARY "--", "no part");
    check_refused("\n--" BOUNDARY "\r\n" HEAD "\"a\"\r\n\r\n" CLOSE "x", "no part");
    check_refused("--" BOUNDARY "x\r\n" HEAD "\"a\"\r\n\r\n" CLOSE, "end of its line");
    check_refused("--" BOUNDARY "-\r\n" HEAD "\"a\"\r\n\r\n" CLOSE, "end of its line");
    check_refused("--" BOUNDARY "\n" HEAD "\"a\"\r\n\r\n" CLOSE, "end of its line");
    check_refused(OPEN "Content-Type: x/y\r\n\r\n1" CLOSE, "is missing");
    check_refused(OPEN "\r\n1" CLOSE, "is missing");
    check_refused(OPEN HEAD "\"\"\r\n\r\n1" CLOSE, "name=");
    check_refused(OPEN HEAD "\"a\"\r\n\r\n1" NEXT HEAD "\"b\"\r\n\r\n1" NEXT HEAD
                            "\"b\"\r\n\r\n2" CLOSE,
                  "two parts");
    check_refused(OPEN HEAD "\"\"\r\n\r\n1" CLOSE, "1 to 63 bytes");
    check_refused(OPEN "Content-Disposition: form-data\r\n\r\n1" CLOSE, "name=");
    check_refused(OPEN "Content-Disposition: form-data; filename=\"a\"\r\n\r\n1" CLOSE,
                  "name=");
    check_refused(OPEN HEAD "\"a\"\r\nContent-Transfer-Encoding: base64\r\n\r\n1" CLOSE,
                  "base64");
    check_refused(OPEN HEAD "\"a\"\r\n\r\n1" NEXT HEAD "\"a\"\r\n\r\n2" CLOSE,
                  "two parts");
    check_refused(OPEN HEAD "\"a\"\r\n\r\n1" NEXT HEAD "\"b\"\r\n\r\n1" NEXT HEAD
                            "\"a\"\r\n\r\n2" CLOSE,
                  "two parts");
    check_refused(OPEN HEAD "\"a\"\r\n\r\n1\r\n--" BOUNDARY "x", "end of its line");
    check_refused(OPEN HEAD "\"a\"\r\n\r\n1\r\n--b(2)--", "does not end");
}

static void test_parts_names_and_heads_are_limited(void)
{
    static char body[8192];
    struct split found;
    size_t n;

    for (int n_parts = 7; n_parts <= 9; n_parts++) {
        n = 0;
        for (int i = 0; i < n_parts; i++) {
            n +=
                (size_t)snprintf(body + n, sizeof body - n, "%s" HEAD "\"p%d\"\r\n\r\n%d",
                                 i > 0 ? NEXT : OPEN, i, i);
        }
        n += (size_t)snprintf(body + n, sizeof body - n, CLOSE);
        CHECK_INT(split(&found, body, n),
                  n_parts <= VXD_BODY_MAX_PARTS ? VXD_OK : VXD_INVALID_ARGUMENT);
        for (int i = 0; n_parts <= VXD_BODY_MAX_PARTS && i < n_parts; i++) {
            char name[16];

            (void)snprintf(name, sizeof name, "p%d", i);
            CHECK(holds(&found, (size_t)i, name, name + 1, 1));
        }
        free(found.bytes);
    }
    for (int n_name = VXD_PART_NAME_BYTES - 2; n_name <= VXD_PART_NAME_BYTES; n_name++) {
        char name[VXD_PART_NAME_BYTES + 1];

        memset(name, 'n', (size_t)n_name);
        name[n_name] = '\0';
        n = (size_t)snprintf(body, sizeof body, OPEN HEAD "\"%s\"\r\n\r\n1" CLOSE, name);
        CHECK_INT(split(&found, body, n),
                  n_name < VXD_PART_NAME_BYTES ? VXD_OK : VXD_INVALID_ARGUMENT);
        CHECK(n_name == VXD_PART_NAME_BYTES || holds(&found, 0, name, "1", 1));
        free(found.bytes);
    }
    /* All of a head, with its empty line, is at most 2048 bytes; and a NUL is in none. */
    for (int n_head = 2047; n_head <= 2049; n_head++) {
        int n_fill = n_head - (int)strlen(HEAD "\"a\"\r\n\r\nX: \r\n");

        n = (size_t)snprintf(body, sizeof body,
                             OPEN HEAD "\"a\"\r\nX: %*s\r\n\r\n%s" CLOSE, n_fill, "x",
                             "bytes");
        CHECK_INT(split(&found, body, n), n_head <= 2048 ? VXD_OK : VXD_INVALID_ARGUMENT);
        CHECK(n_head > 2048 || holds(&found, 0, "a", "bytes", 5));
        free(found.bytes);
    }
    n = (size_t)snprintf(body, sizeof body, OPEN HEAD "\"a\"\r\nX: x\r\n\r\n1" CLOSE);
    *strstr(body, "X: x") = '\0';
    CHECK_INT(split(&found, body, n), VXD_INVALID_ARGUMENT);
    free(found.bytes);
}

static void test_longest_boundary_parts_a_body(void)
{
    char longest[71];
    char body[512];
    struct vxd_body_part parts[VXD_BODY_MAX_PARTS];
    struct vxd_err err;
    size_t n_parts = 0;
    int n;

    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    n = snprintf(body, sizeof body,
                 "--%s\r\n" HEAD "\"a\"\r\n\r\n1\r\n--%.69s-2\r\n--%s--", longest,
                 longest, longest);
    CHECK_INT(vxd_multipart_split((const uint8_t *)body, (size_t)n, longest, parts,
                                  &n_parts, &err),
              VXD_OK);
    CHECK_INT(n_parts, 1);
    CHECK_INT(parts[0].n_bytes, 1 + 4 + 69 + 2);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_boundary_of_a_type_is_what_it_names_or_none),
    VXD_TEST(test_parts_are_those_that_were_composed),
    VXD_TEST(test_longest_boundary_parts_a_body),
    VXD_TEST(test_empty_parts_are_parts),
    VXD_TEST(test_body_cut_anywhere_is_refused),
    VXD_TEST(test_body_against_the_rules_is_refused),
    VXD_TEST(test_parts_names_and_heads_are_limited),
};

VXD_TEST_MAIN(tests)
