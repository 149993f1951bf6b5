// SPDX-License-Identifier: Apache-2.0
/* The reader of JSON files: every kind of value, and documents that are invalid. */
#include <stdbool.h>
#include <stdint.h>

#include "proto/base/json_file.h"
#include "tests/support/test.h"

static enum vxd_status parse(const char *text, struct vxd_json_file *out,
                             struct vxd_err *err)
{
    return vxd_json_file_parse((const uint8_t *)text, strlen(text), out, err);
}

static void test_json_file_every_value_is_a_node(void)
{
    struct vxd_json_file file;
    const struct vxd_json_node *n;

    REQUIRE(parse(" {\"a\\u00e9\" : [1, -2.5e3,\ttrue, false, null, [], {}],\n"
                  "\"\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\ud83d\\ude00\\u20ac\"}\n",
                  &file, NULL) == VXD_OK);
    CHECK_INT(file.n_nodes, 10);
    n = &file.nodes[0];
    CHECK(n->kind == VXD_JSON_OBJECT && n->n_children == 2 && n->key == NULL);
    CHECK(n->next == 0 && n->first == 1);
    n = &file.nodes[1];
    CHECK(n->kind == VXD_JSON_ARRAY && n->n_children == 7);
    CHECK_STR(n->key, "a\xc3\xa9");
    for (size_t i = 2; i < 8; i++) {
        CHECK_INT(file.nodes[i].next, i + 1);
        CHECK(file.nodes[i].key == NULL);
    }
    CHECK(file.nodes[8].next == 0 && n->next == 9 && file.nodes[9].next == 0);
    CHECK(file.nodes[2].kind == VXD_JSON_NUMBER && file.nodes[2].n_text == 1);
    CHECK(file.nodes[3].n_text == 6 && memcmp(file.nodes[3].text, "-2.5e3", 6) == 0);
    CHECK_INT(file.nodes[4].kind, VXD_JSON_TRUE);
    CHECK_INT(file.nodes[5].kind, VXD_JSON_FALSE);
    CHECK_INT(file.nodes[6].kind, VXD_JSON_NULL);
    CHECK(file.nodes[7].kind == VXD_JSON_ARRAY && file.nodes[7].n_children == 0);
    CHECK(file.nodes[8].kind == VXD_JSON_OBJECT && file.nodes[8].first == 0);
    n = &file.nodes[9];
    CHECK_STR(n->key, "");
    CHECK_STR(n->text, "\"\\/\b\f\n\r\t\xf0\x9f\x98\x80\xe2\x82\xac");
    CHECK_INT(n->n_text, strlen(n->text));
    vxd_json_file_clear(&file);
    REQUIRE(parse("7", &file, NULL) == VXD_OK);
    CHECK_INT(file.n_nodes, 1);
    vxd_json_file_clear(&file);
}

static void test_json_file_many_nodes_are_linked_in_order(void)
{
    enum {
        N = 5000
    };
    static char text[2 * N + 2];
    struct vxd_json_file file;

    text[0] = '[';
    for (size_t i = 0; i < N; i++) {
        text[1 + 2 * i] = (char)('0' + i % 10);
        text[2 + 2 * i] = i + 1 < N ? ',' : ']';
    }
    REQUIRE(parse(text, &file, NULL) == VXD_OK);
    CHECK_INT(file.n_nodes, N + 1);
    CHECK_INT(file.nodes[0].n_children, N);
    for (size_t i = 1; i <= N; i++) {
        CHECK(file.nodes[i].text[0] == (char)('0' + (i - 1) % 10));
        CHECK_INT(file.nodes[i].next, i < N ? i + 1 : 0);
    }
    vxd_json_file_clear(&file);
}

static void test_json_file_malformed_is_refused_with_its_line(void)
{
    static const struct {
        const char *text;
        const char *says;
    } cases[] = {
        {"", "line 1: a value is missing"},
        {"\n\n", "line 3: a value is missing"},
        {"nul", "a value is missing"},
        {"+1", "a value is missing"},
        {".5", "a value is missing"},
        {"-", "a malformed number"},
        {"1.2.3", "a malformed number"},
        {"1e", "a malformed number"},
        {"1 2", "something follows the end"},
        {"[1,\n2\n", "line 3: a comma or a closing bracket is missing"},
        {"[1,]", "a value is missing"},
        {"[1}", "a comma or a closing bracket is missing"},
        {"{1: 2}", "the name of a member is missing"},
        {"{\"a\": 1,}", "the name of a member is missing"},
        {"{\"a\", 1}", "a colon is missing"},
        {"\"a", "a string without an end"},
        {"\"a\nb\"", "a string without an end"},
        {"\"\\", "no such escape"},
        {"\"\\x\"", "no such escape"},
        {"\"\\u12\"", "no such escape"},
        {"\"\\u0000\"", "no such escape"},
        {"\"\\ud800\"", "half a surrogate pair"},
        {"\"\\ud800\\u0041\"", "half a surrogate pair"},
        {"\"\\udc00\\ud800\"", "half a surrogate pair"},
        {"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]",
         "too many brackets"},
    };
    struct vxd_json_file file;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct vxd_err err = {0};

        CHECK_INT(parse(cases[i].text, &file, &err), VXD_INVALID_ARGUMENT);
        CHECK(file.bytes == NULL && file.nodes == NULL && file.n_nodes == 0);
        if (strstr(err.message, cases[i].says) == NULL) {
            CHECK_STR(err.message, cases[i].says);
        }
    }
    CHECK_INT(vxd_json_file_parse((const uint8_t *)"[1]\0", 4, &file, NULL),
              VXD_INVALID_ARGUMENT);
    CHECK_INT(vxd_json_file_parse((const uint8_t *)"[1\0]", 4, &file, NULL),
              VXD_INVALID_ARGUMENT);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_json_file_every_value_is_a_node),
    VXD_TEST(test_json_file_many_nodes_are_linked_in_order),
    VXD_TEST(test_json_file_malformed_is_refused_with_its_line),
};

VXD_TEST_MAIN(tests)
