// SPDX-License-Identifier: Apache-2.0
/* GET /v1/scenes/NAME/costmap.png, costmap.pgm and costmap.yaml: the query becomes a request of
 * scene_grid, and the reply's file the answer. The entity tag is of the scene's generation, its
 * version and the request; a client that has that file gets 304 without its being made again. */
#include "server/transport/http/http_internal.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/number.h"
#include "proto/base/xxh64.h"
#include "server/registry/scenes/scenes.h"
#include "voxeld/v1/grid.pb-c.h"

#define FOLDER "/v1/scenes/"
#define MOST_NUMBERS 6

/* How a parameter's text becomes fields of the message. */
enum kind {
    KIND_NUMBER, /* finite */
    KIND_FLAG,   /* true or false */
    KIND_CHOICE,
    KIND_BOX,  /* x,y,z,x,y,z */
    KIND_BAND, /* low,high or, of a layer, low */
    KIND_AT,   /* a version's number, or a snapshot's name */
    KIND_TEXT
};

struct parameter {
    const char *key;
    enum kind kind;
    const char *field; /* of the message, as JSON has it */
    const char *const
        *choices; /* in the enumerators' order, from `first` on; NULL-terminated */
    int first;
};

static const char *const kinds[] = {"costmap", "projected", "height", "slice", NULL};
static const char *const unknowns[] = {"kept", "free", "lethal", NULL};

/* In this order they are written, so that equal requests are equal texts. */
static const struct parameter parameters[] = {
    {"kind", KIND_CHOICE, "kind", kinds, 0},
    {"box", KIND_BOX, "box", NULL, 0},
    {"in_voxels", KIND_FLAG, "inVoxels", NULL, 0},
    {"z", KIND_BAND, NULL, NULL, 0},
    {"unknown", KIND_CHOICE, "unknown", unknowns, 1},
    {"robot_radius_m", KIND_NUMBER, "robotRadiusM", NULL, 0},
    {"inflation_radius_m", KIND_NUMBER, "inflationRadiusM", NULL, 0},
    {"cost_scaling", KIND_NUMBER, "costScaling", NULL, 0},
    {"image", KIND_TEXT, "image", NULL, 0},
    {"at", KIND_AT, "at", NULL, 0},
};

static const struct {
    const char *name;
    const char *type;
    int format; /* of SceneGridRequest */
} files[] = {
    {"costmap.png", "image/png", VOXELD__V1__GRID_FORMAT__GRID_PNG},
    {"costmap.pgm", "image/x-portable-graymap", VOXELD__V1__GRID_FORMAT__GRID_PGM},
    {"costmap.yaml", "application/yaml", VOXELD__V1__GRID_FORMAT__GRID_YAML},
};

static enum vxd_status bad_value(const char *key, const char *value, const char *right,
                                 struct vxd_err *err)
{
    return vxd_fail(err, VXD_INVALID_ARGUMENT, key, "is '%.60s', it must be %s", value,
                    right);
}

/* Reads numbers between commas; returns how many, 0 where one is none or there are more than
 * `most`. */
static size_t read_numbers(const char *value, double *numbers, size_t most)
{
    for (size_t n = 0; n < most; n++) {
        size_t n_bytes = strcspn(value, ",");

        if (!vxd_number_double(value, n_bytes, &numbers[n]) || !isfinite(numbers[n])) {
            return 0;
        }
        if (value[n_bytes] == '\0') {
            return n + 1;
        }
        value += n_bytes + 1;
    }
    return 0;
}

static enum vxd_status write_choice(struct vxd_text *text,
                                    const struct parameter *parameter, const char *value,
                                    struct vxd_err *err)
{
    for (int i = 0; parameter->choices[i] != NULL; i++) {
        if (strcmp(value, parameter->choices[i]) == 0) {
            vxd_text_printf(text, ",\"%s\":%d", parameter->field, parameter->first + i);
            return VXD_OK;
        }
    }
    return bad_value(parameter->key, value,
                     parameter->choices == kinds
                         ? "costmap, projected or slice (height has no picture)"
                         : "kept, free or lethal",
                     err);
}

static enum vxd_status write_at(struct vxd_text *text, const char *value,
                                struct vxd_err *err)
{
    bool is_number = value[0] != '\0' && value[strspn(value, "0123456789")] == '\0';
    uint64_t version;

    if (vxd_number_uint64(value, strlen(value), &version)) {
        vxd_text_printf(text, ",\"at\":{\"version\":\"%" PRIu64 "\"}", version);
        return VXD_OK;
    }
    if (is_number || !vxd_is_name(value)) {
        return bad_value("at", value, "a version's number or a snapshot's name", err);
    }
    vxd_text_printf(text, ",\"at\":{\"snapshot\":\"%s\"}", value);
    return VXD_OK;
}

static enum vxd_status write_value(struct vxd_text *text,
                                   const struct parameter *parameter, const char *value,
                                   struct vxd_err *err)
{
    double v[MOST_NUMBERS];
    size_t n;

    switch (parameter->kind) {
    case KIND_NUMBER:
        if (read_numbers(value, v, 1) != 1) {
            return bad_value(parameter->key, value, "a finite number", err);
        }
        vxd_text_printf(text, ",\"%s\":%.17g", parameter->field, v[0]);
        return VXD_OK;
    case KIND_FLAG:
        if (strcmp(value, "true") != 0 && strcmp(value, "false") != 0) {
            return bad_value(parameter->key, value, "true or false", err);
        }
        vxd_text_printf(text, ",\"%s\":%s", parameter->field, value);
        return VXD_OK;
    case KIND_CHOICE:
        return write_choice(text, parameter, value, err);
    case KIND_BOX:
        if (read_numbers(value, v, 6) != 6) {
            return bad_value("box", value, "six numbers: the corners x,y,z,x,y,z", err);
        }
        vxd_text_printf(text,
                        ",\"box\":{\"low\":{\"x\":%.17g,\"y\":%.17g,\"z\":%.17g},"
                        "\"high\":{\"x\":%.17g,\"y\":%.17g,\"z\":%.17g}}",
                        v[0], v[1], v[2], v[3], v[4], v[5]);
        return VXD_OK;
    case KIND_BAND:
        n = read_numbers(value, v, 2);
        if (n == 0) {
            return bad_value("z", value, "two numbers, low,high, or one of a slice", err);
        }
        vxd_text_printf(text, ",\"zLow\":%.17g,\"zHigh\":%.17g", v[0], v[n - 1]);
        return VXD_OK;
    case KIND_AT:
        return write_at(text, value, err);
    case KIND_TEXT:
        break;
    }
    vxd_text_printf(text, ",\"%s\":", parameter->field);
    vxd_text_json_string(text, value, strlen(value));
    return VXD_OK;
}

static const char *find_item(const struct vxd_http_exchange *exchange, const char *key)
{
    for (size_t i = 0; i < exchange->n_query; i++) {
        if (strcmp(exchange->query[i].key, key) == 0) {
            return exchange->query[i].value;
        }
    }
    return NULL;
}

static enum vxd_status check_keys(const struct vxd_http_exchange *exchange,
                                  struct vxd_err *err)
{
    for (size_t i = 0; i < exchange->n_query; i++) {
        const char *key = exchange->query[i].key;
        bool is_known = false;

        for (size_t k = 0; k < sizeof parameters / sizeof parameters[0]; k++) {
            is_known = is_known || strcmp(key, parameters[k].key) == 0;
        }
        if (!is_known) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, key,
                            "a costmap has no such parameter");
        }
    }
    return exchange->format == NULL
               ? VXD_OK
               : vxd_fail(err, VXD_INVALID_ARGUMENT, "format",
                          "is what the path ends in: costmap.png, .pgm or .yaml");
}

static enum vxd_status write_body(struct vxd_http_exchange *exchange,
                                  struct vxd_text *text, struct vxd_err *err)
{
    enum vxd_status status;

    VXD_TRY(check_keys(exchange, err));
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        if (strcmp(exchange->costmap_type, files[i].type) == 0) {
            vxd_text_printf(text, "{\"name\":\"%s\",\"format\":%d",
                            exchange->costmap_scene, files[i].format);
        }
    }
    for (size_t i = 0; i < sizeof parameters / sizeof parameters[0]; i++) {
        const char *value = find_item(exchange, parameters[i].key);

        if (value != NULL) {
            VXD_TRY(write_value(text, &parameters[i], value, err));
        } else if (parameters[i].kind == KIND_TEXT) {
            /* The picture that lies beside the file when both are fetched by their names. */
            vxd_text_printf(text, ",\"image\":\"costmap.pgm\"");
        }
    }
    vxd_text_append(text, "}", 1);
    if (text->failed) {
        VXD_TRY(vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory"));
    }
out:
    return status;
}

static void write_tag(const struct vxd_http_exchange *exchange, uint64_t generation,
                      uint64_t version, char tag[VXD_HTTP_TAG_BYTES])
{
    (void)snprintf(tag, VXD_HTTP_TAG_BYTES, "\"%" PRIx64 "-%" PRIx64 "-%" PRIx64 "\"",
                   generation, version, exchange->costmap_digest);
}

static void add_cache_headers(struct vxd_http_exchange *exchange, const char *tag)
{
    if (exchange->response == NULL) {
        return;
    }
    /* A client may keep it, and has to ask each time. */
    (void)MHD_del_response_header(exchange->response, MHD_HTTP_HEADER_CACHE_CONTROL,
                                  "no-store");
    vxd_http_add_header(exchange, MHD_HTTP_HEADER_CACHE_CONTROL, "private, no-cache");
    vxd_http_add_header(exchange, MHD_HTTP_HEADER_ETAG, tag);
}

/* Answers 304 where the client has the file. Which version a snapshot names only the method
 * finds. */
static enum vxd_status answer_unchanged(struct vxd_http_exchange *exchange,
                                        struct vxd_err *err)
{
    const char *at = find_item(exchange, "at");
    char tag[VXD_HTTP_TAG_BYTES];
    uint64_t generation;
    uint64_t version;
    enum vxd_status status;

    VXD_TRY(vxd_http_check_read(exchange, err));
    if (!vxd_scenes_get_version(exchange->http->server->scenes, exchange->costmap_scene,
                                &generation, &version)) {
        return VXD_OK;
    }
    if (at != NULL && !vxd_number_uint64(at, strlen(at), &version)) {
        return VXD_OK;
    }
    write_tag(exchange, generation, version, tag);
    if (strstr(exchange->headers.if_none_match, tag) != NULL) {
        vxd_http_set_static(exchange, MHD_HTTP_NOT_MODIFIED, NULL, "", 0);
        add_cache_headers(exchange, tag);
    }
out:
    return status;
}

bool vxd_http_is_costmap(struct vxd_http_exchange *exchange, const char *url)
{
    const char *name = url + strlen(FOLDER);
    size_t n_name;

    if (strncmp(url, FOLDER, strlen(FOLDER)) != 0) {
        return false;
    }
    n_name = strcspn(name, "/");
    if (name[n_name] == '\0' || n_name >= sizeof exchange->costmap_scene) {
        return false;
    }
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        if (strcmp(name + n_name + 1, files[i].name) == 0) {
            memcpy(exchange->costmap_scene, name, n_name);
            exchange->costmap_scene[n_name] = '\0';
            exchange->costmap_type =
                vxd_is_name(exchange->costmap_scene) ? files[i].type : NULL;
            return exchange->costmap_type != NULL;
        }
    }
    return false;
}

enum vxd_status vxd_http_read_costmap(struct vxd_http_exchange *exchange,
                                      struct vxd_err *err)
{
    struct vxd_text text = {0};
    enum vxd_status status;

    VXD_TRY(vxd_http_read_query(exchange, err));
    VXD_TRY(write_body(exchange, &text, err));
    exchange->costmap_digest = vxd_sum_of(text.bytes, text.n_bytes);
    exchange->costmap_body = text.bytes;
    text.bytes = NULL;
    if (exchange->headers.if_none_match != NULL) {
        VXD_TRY(answer_unchanged(exchange, err));
    }
out:
    free(text.bytes);
    return status;
}

enum vxd_status vxd_http_set_costmap(struct vxd_http_exchange *exchange,
                                     const ProtobufCMessage *output, struct vxd_err *err)
{
    const Voxeld__V1__SceneGridResponse *reply =
        (const Voxeld__V1__SceneGridResponse *)output;
    char *bytes = malloc(reply->file.len > 0 ? reply->file.len : 1);
    char tag[VXD_HTTP_TAG_BYTES];

    if (bytes == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for the reply");
    }
    memcpy(bytes, reply->file.data, reply->file.len);
    vxd_http_set_bytes(exchange, MHD_HTTP_OK, exchange->costmap_type, bytes,
                       reply->file.len);
    write_tag(exchange, reply->generation, reply->version, tag);
    add_cache_headers(exchange, tag);
    return VXD_OK;
}
