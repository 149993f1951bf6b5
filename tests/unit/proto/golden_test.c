// SPDX-License-Identifier: Apache-2.0
/* tests/data/proto_golden.txt holds what Google's protobuf says (proto_golden.py
 * describes how it was made and what the lines mean); our code must say the same. */
#include <jansson.h>

#include "kinds.pb-c.h"
#include "proto/wire/wire.h"
#include "tests/support/test.h"
#include "voxeld/v1/rpc.pb-c.h"

enum {
    MAX_LINE = 64 * 1024,
    BUDGET = 1024 * 1024
};

static const ProtobufCMessageDescriptor *const descriptors[] = {
    &voxeld__v1__request__descriptor,
    &voxeld__v1__response__descriptor,
    &voxeld__v1__server_info_request__descriptor,
    &voxeld__v1__status_response__descriptor,
    &voxeld__v1__self_test_response__descriptor,
    &voxeld__v1__voxelize_request__descriptor,
    &voxeld__v1__voxelize_response__descriptor,
    &voxeld__v1__voxelize_item__descriptor,
    &voxeld__v1__cloud__descriptor,
    &voxeld__v1__tensor__descriptor,
    &voxeld__v1__vec3__descriptor,
    &vxdtest__kinds__descriptor,
};

struct golden {
    const char *verb;
    const ProtobufCMessageDescriptor *descriptor;
    const char *json; /* "" where the verb has none */
    uint8_t wire[MAX_LINE / 2];
    size_t n_wire;
};

static const ProtobufCMessageDescriptor *find_descriptor(const char *name)
{
    for (size_t i = 0; i < sizeof descriptors / sizeof descriptors[0]; i++) {
        if (strcmp(descriptors[i]->short_name, name) == 0) {
            return descriptors[i];
        }
    }
    return NULL;
}

static int nibble(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c - 'a' + 10;
}

/* Splits the line in place. */
static bool parse_line(char *line, struct golden *g)
{
    char *parts[4] = {line, NULL, NULL, NULL};
    const char *hex;

    line[strcspn(line, "\n")] = '\0';
    for (int i = 1; i < 4; i++) {
        char *tab = strchr(parts[i - 1], '\t');

        if (tab == NULL) {
            break;
        }
        *tab = '\0';
        parts[i] = tab + 1;
    }
    if (parts[2] == NULL) {
        return false;
    }
    g->verb = parts[0];
    g->descriptor = find_descriptor(parts[1]);
    g->json = strcmp(g->verb, "garbage") != 0 ? parts[2] : "";
    hex = strcmp(g->verb, "garbage") == 0 ? parts[2] : parts[3];
    g->n_wire = 0;
    for (; hex != NULL && hex[0] != '\0' && hex[1] != '\0'; hex += 2) {
        g->wire[g->n_wire++] = (uint8_t)(nibble(hex[0]) * 16 + nibble(hex[1]));
    }
    return g->descriptor != NULL;
}

/* Whether two texts are equal as JSON: keys in any order, numbers by value (1 and 1.0
 * are one number). It calls itself as deep as the golden file's own objects. */
static bool is_same_json(const json_t *a, const json_t *b)
{
    const char *key;
    json_t *value;

    if (json_is_number(a) && json_is_number(b)) {
        double x = json_number_value(a);
        double y = json_number_value(b);

        return memcmp(&x, &y, sizeof x) == 0;
    }
    if (json_is_array(a) && json_is_array(b)) {
        for (size_t i = 0; i < json_array_size(a); i++) {
            if (!is_same_json(json_array_get(a, i), json_array_get(b, i))) {
                return false;
            }
        }
        return json_array_size(a) == json_array_size(b);
    }
    if (json_is_object(a) && json_is_object(b)) {
        json_object_foreach((json_t *)a, key, value)
        {
            if (!is_same_json(value, json_object_get(b, key))) {
                return false;
            }
        }
        return json_object_size(a) == json_object_size(b);
    }
    return json_equal(a, b) != 0;
}

static bool check_read(struct vxd_decoder *decoder, const struct golden *g)
{
    static uint8_t packed[MAX_LINE];
    ProtobufCMessage *message;
    struct vxd_err err = {0};

    if (vxd_json_read(decoder, g->descriptor, g->json, strlen(g->json), &message, &err) !=
        VXD_OK) {
        (void)fprintf(stderr, "%s: %s\n", err.field, err.message);
        return false;
    }
    if (protobuf_c_message_get_packed_size(message) > sizeof packed) {
        return false;
    }
    return protobuf_c_message_pack(message, packed) == g->n_wire &&
           memcmp(packed, g->wire, g->n_wire) == 0;
}

static bool check_write(struct vxd_decoder *decoder, const struct golden *g)
{
    ProtobufCMessage *message;
    struct vxd_text text = {0};
    struct vxd_err err = {0};
    json_t *ours = NULL;
    json_t *theirs;
    bool same;

    if (vxd_decode(decoder, g->descriptor, g->wire, g->n_wire, &message, &err) !=
            VXD_OK ||
        vxd_json_write(message, &text, &err) != VXD_OK) {
        (void)fprintf(stderr, "%s\n", err.message);
        free(text.bytes);
        return false;
    }
    ours = json_loadb(text.bytes, text.n_bytes, JSON_REJECT_DUPLICATES, NULL);
    theirs = json_loads(g->json, 0, NULL);
    same = ours != NULL && theirs != NULL && is_same_json(ours, theirs);
    if (!same) {
        (void)fprintf(stderr, "ours: %s\n", text.bytes);
    }
    json_decref(ours);
    json_decref(theirs);
    free(text.bytes);
    return same;
}

static bool check_refuse(struct vxd_decoder *decoder, const struct golden *g)
{
    ProtobufCMessage *message = NULL;
    struct vxd_err err = {0};

    return vxd_json_read(decoder, g->descriptor, g->json, strlen(g->json), &message,
                         &err) == VXD_INVALID_ARGUMENT &&
           err.code == VXD_INVALID_ARGUMENT && err.message[0] != '\0' && message == NULL;
}

static bool check_garbage(struct vxd_decoder *decoder, const struct golden *g)
{
    ProtobufCMessage *message = NULL;
    struct vxd_err err = {0};

    return vxd_decode(decoder, g->descriptor, g->wire, g->n_wire, &message, &err) ==
               VXD_INVALID_ARGUMENT &&
           err.code == VXD_INVALID_ARGUMENT && message == NULL;
}

/* Checks all lines of one verb; at least n_min, so that an empty file does not pass. */
static void check_all(const char *verb,
                      bool (*check)(struct vxd_decoder *, const struct golden *),
                      int n_min)
{
    static char line[MAX_LINE];
    static char original[MAX_LINE];
    static struct golden g;
    FILE *file = fopen(VOXELD_SOURCE_DIR "/tests/data/proto_golden.txt", "r");
    int n = 0;

    REQUIRE(file != NULL);
    while (fgets(line, sizeof line, file) != NULL) {
        struct vxd_decoder *decoder = NULL;

        if (line[0] == '#') {
            continue;
        }
        memcpy(original, line, strlen(line) + 1);
        CHECK(parse_line(line, &g));
        if (strcmp(g.verb, verb) != 0) {
            continue;
        }
        n++;
        if (vxd_decoder_create(BUDGET, NULL, &decoder, NULL) != VXD_OK ||
            !check(decoder, &g)) {
            (void)fprintf(stderr, "%s", original);
            CHECK(false);
        }
        vxd_decoder_destroy(decoder);
    }
    (void)fclose(file);
    CHECK(n >= n_min);
}

static void test_json_read_agrees_with_the_official_library(void)
{
    check_all("read", check_read, 150);
}

static void test_json_write_agrees_with_the_official_library(void)
{
    check_all("write", check_write, 100);
}

static void test_json_read_refuses_what_the_official_library_refuses(void)
{
    check_all("refuse", check_refuse, 80);
}

static void test_decode_refuses_what_the_official_library_refuses(void)
{
    check_all("garbage", check_garbage, 10);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_json_read_agrees_with_the_official_library),
    VXD_TEST(test_json_write_agrees_with_the_official_library),
    VXD_TEST(test_json_read_refuses_what_the_official_library_refuses),
    VXD_TEST(test_decode_refuses_what_the_official_library_refuses),
};

VXD_TEST_MAIN(tests)
