// SPDX-License-Identifier: Apache-2.0
/* GET /v1/scenes/NAME/image.png and image.jpg: the query becomes a request of scene_render, and the
 * reply's file the answer. The entity tag is of the scene's generation, which its palette belongs
 * to, its version, and the request; a client that has that picture gets 304 without its being
 * drawn again. */
#include "server/transport/http/http_internal.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/number.h"
#include "proto/base/xxh64.h"
#include "server/registry/scenes/scenes.h"
#include "voxeld/v1/render.pb-c.h"

#define FOLDER "/v1/scenes/"
#define TYPE_PNG "image/png"
#define TYPE_JPEG "image/jpeg"

/* How a parameter's text becomes the value of a field. */
enum kind {
    KIND_NUMBER, /* finite */
    KIND_COUNT,  /* a whole number */
    KIND_FLAG,   /* true or false */
    KIND_VECTOR, /* x,y,z */
    KIND_CAMERA,
    KIND_MODE
};

struct parameter {
    const char *key;
    enum kind kind;
    const char *field; /* of the message, as JSON has it; of its view where is_view */
    bool is_view;
};

static const struct parameter parameters[] = {
    {"eye", KIND_VECTOR, "eye", true},
    {"look", KIND_VECTOR, "target", true},
    {"up", KIND_VECTOR, "up", true},
    {"fov", KIND_NUMBER, "fovYDeg", false},
    {"camera", KIND_CAMERA, "camera", false},
    {"mode", KIND_MODE, "mode", false},
    {"view_height_m", KIND_NUMBER, "viewHeightM", false},
    {"samples", KIND_COUNT, "samples", false},
    {"ao_samples", KIND_COUNT, "aoSamples", false},
    {"ao_radius_m", KIND_NUMBER, "aoRadiusM", false},
    {"bounces", KIND_COUNT, "bounces", false},
    {"seed", KIND_COUNT, "seed", false},
    {"no_shadows", KIND_FLAG, "noShadows", false},
    {"sun_direction", KIND_VECTOR, "sunDirection", false},
    {"sun", KIND_NUMBER, "sun", false},
    {"ambient", KIND_NUMBER, "ambient", false},
    {"variation", KIND_NUMBER, "variation", false},
    {"z_low_m", KIND_NUMBER, "zLowM", false},
    {"z_high_m", KIND_NUMBER, "zHighM", false},
    {"detail", KIND_NUMBER, "detail", false},
    {"quality", KIND_COUNT, "quality", false},
};

static const char *const cameras[] = {"pinhole", "orthographic", "equirectangular"};
static const char *const modes[] = {"colour",   "height", "depth", "normal",
                                    "material", "ao",     "path"};

static enum vxd_status bad_value(const char *key, const char *value, const char *right,
                                 struct vxd_err *err)
{
    return vxd_fail(err, VXD_INVALID_ARGUMENT, key, "is '%.60s', it must be %s", value,
                    right);
}

static bool read_number(const char *text, size_t n_bytes, double *out)
{
    return vxd_number_double(text, n_bytes, out) && isfinite(*out);
}

static enum vxd_status write_vector(struct vxd_text *text, const char *key,
                                    const char *value, struct vxd_err *err)
{
    const char *at = value;
    double v[3];

    for (int i = 0; i < 3; i++) {
        size_t n_bytes = strcspn(at, ",");

        if (!read_number(at, n_bytes, &v[i]) || (at[n_bytes] == ',') != (i < 2)) {
            return bad_value(key, value, "three numbers: x,y,z", err);
        }
        at += n_bytes + (i < 2 ? 1 : 0);
    }
    vxd_text_printf(text, "{\"x\":%.17g,\"y\":%.17g,\"z\":%.17g}", v[0], v[1], v[2]);
    return VXD_OK;
}

static enum vxd_status write_choice(struct vxd_text *text, const char *key,
                                    const char *value, const char *const *names, size_t n,
                                    const char *right, struct vxd_err *err)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(value, names[i]) == 0) {
            vxd_text_printf(text, "%zu", i);
            return VXD_OK;
        }
    }
    return bad_value(key, value, right, err);
}

static enum vxd_status write_value(struct vxd_text *text,
                                   const struct parameter *parameter, const char *value,
                                   struct vxd_err *err)
{
    const char *key = parameter->key;
    double number;
    uint64_t count;

    switch (parameter->kind) {
    case KIND_NUMBER:
        if (!read_number(value, strlen(value), &number)) {
            return bad_value(key, value, "a finite number", err);
        }
        vxd_text_printf(text, "%.17g", number);
        return VXD_OK;
    case KIND_COUNT:
        if (!vxd_number_uint64(value, strlen(value), &count) || count > UINT32_MAX) {
            return bad_value(key, value, "a whole number", err);
        }
        vxd_text_printf(text, "%" PRIu64, count);
        return VXD_OK;
    case KIND_FLAG:
        if (strcmp(value, "true") != 0 && strcmp(value, "false") != 0) {
            return bad_value(key, value, "true or false", err);
        }
        vxd_text_printf(text, "%s", value);
        return VXD_OK;
    case KIND_VECTOR:
        return write_vector(text, key, value, err);
    case KIND_CAMERA:
        return write_choice(text, key, value, cameras, sizeof cameras / sizeof cameras[0],
                            "pinhole, orthographic or equirectangular", err);
    case KIND_MODE:
        break;
    }
    return write_choice(text, key, value, modes, sizeof modes / sizeof modes[0],
                        "colour, height, depth, normal, material, ao or path", err);
}

/* "1280x720" */
static enum vxd_status write_size(struct vxd_text *text, const char *value,
                                  struct vxd_err *err)
{
    size_t n_bytes = strcspn(value, "x");
    uint64_t width;
    uint64_t height;

    if (value[n_bytes] != 'x' || !vxd_number_uint64(value, n_bytes, &width) ||
        !vxd_number_uint64(value + n_bytes + 1, strlen(value + n_bytes + 1), &height) ||
        width < 1 || height < 1 || width > UINT32_MAX || height > UINT32_MAX) {
        return bad_value("size", value, "WIDTHxHEIGHT, such as 640x360", err);
    }
    vxd_text_printf(text, ",\"width\":%" PRIu64 ",\"height\":%" PRIu64, width, height);
    return VXD_OK;
}

/* A version's number, or a snapshot's name. */
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
        bool is_known = strcmp(key, "size") == 0 || strcmp(key, "at") == 0;

        for (size_t k = 0; k < sizeof parameters / sizeof parameters[0]; k++) {
            is_known = is_known || strcmp(key, parameters[k].key) == 0;
        }
        if (!is_known) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, key,
                            "a picture has no such parameter");
        }
    }
    return exchange->format == NULL
               ? VXD_OK
               : vxd_fail(err, VXD_INVALID_ARGUMENT, "format",
                          "is what the path ends in: image.png or image.jpg");
}

/* The parameters as a message, of fields in the table's order, so that equal requests are equal
 * texts. */
static enum vxd_status write_body(struct vxd_http_exchange *exchange,
                                  struct vxd_text *text, struct vxd_err *err)
{
    const char *size = find_item(exchange, "size");
    const char *at = find_item(exchange, "at");
    enum vxd_status status;

    VXD_TRY(check_keys(exchange, err));
    vxd_text_printf(text, "{\"name\":\"%s\",\"encode\":%d,\"view\":{",
                    exchange->picture_scene,
                    strcmp(exchange->picture_type, TYPE_PNG) == 0
                        ? VOXELD__V1__RENDER_ENCODE__RENDER_PNG
                        : VOXELD__V1__RENDER_ENCODE__RENDER_JPEG);
    for (int is_view = 1; is_view >= 0; is_view--) {
        const char *comma = is_view == 1 ? "" : ",";

        for (size_t i = 0; i < sizeof parameters / sizeof parameters[0]; i++) {
            const char *value = find_item(exchange, parameters[i].key);

            if (value != NULL && parameters[i].is_view == (is_view == 1)) {
                vxd_text_printf(text, "%s\"%s\":", comma, parameters[i].field);
                VXD_TRY(write_value(text, &parameters[i], value, err));
                comma = ",";
            }
        }
        if (is_view == 1) {
            vxd_text_append(text, "}", 1);
        }
    }
    if (size != NULL) {
        VXD_TRY(write_size(text, size, err));
    }
    if (at != NULL) {
        VXD_TRY(write_at(text, at, err));
    }
    vxd_text_append(text, "}", 1);
    if (text->failed) {
        VXD_TRY(vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory"));
    }
    status = VXD_OK;
out:
    return status;
}

static void write_tag(const struct vxd_http_exchange *exchange, uint64_t generation,
                      uint64_t version, char tag[VXD_HTTP_TAG_BYTES])
{
    (void)snprintf(tag, VXD_HTTP_TAG_BYTES, "\"%" PRIx64 "-%" PRIx64 "-%" PRIx64 "\"",
                   generation, version, exchange->picture_digest);
}

static void add_cache_headers(struct vxd_http_exchange *exchange, const char *tag)
{
    if (exchange->response == NULL) {
        return;
    }
    /* A browser may keep it, and has to ask each time. */
    (void)MHD_del_response_header(exchange->response, MHD_HTTP_HEADER_CACHE_CONTROL,
                                  "no-store");
    vxd_http_add_header(exchange, MHD_HTTP_HEADER_CACHE_CONTROL, "private, no-cache");
    vxd_http_add_header(exchange, MHD_HTTP_HEADER_ETAG, tag);
}

/* Answers 304 where the client has the picture. Which version a snapshot names only the method
 * finds. */
static enum vxd_status answer_unchanged(struct vxd_http_exchange *exchange,
                                        struct vxd_err *err)
{
    const char *known = exchange->headers.if_none_match;
    const char *at = find_item(exchange, "at");
    char tag[VXD_HTTP_TAG_BYTES];
    uint64_t generation;
    uint64_t version;
    enum vxd_status status;

    VXD_TRY(vxd_http_check_read(exchange, err));
    if (!vxd_scenes_get_version(exchange->http->server->scenes, exchange->picture_scene,
                                &generation, &version)) {
        return VXD_OK;
    }
    if (at != NULL && !vxd_number_uint64(at, strlen(at), &version)) {
        return VXD_OK;
    }
    write_tag(exchange, generation, version, tag);
    if (strstr(known, tag) != NULL) {
        vxd_http_set_static(exchange, MHD_HTTP_NOT_MODIFIED, NULL, "", 0);
        add_cache_headers(exchange, tag);
    }
out:
    return status;
}

bool vxd_http_is_picture(struct vxd_http_exchange *exchange, const char *url)
{
    static const char *const files[][2] = {
        {"image.png", TYPE_PNG}, {"image.jpg", TYPE_JPEG}, {"image.jpeg", TYPE_JPEG}};
    const char *name = url + strlen(FOLDER);
    size_t n_name;

    if (strncmp(url, FOLDER, strlen(FOLDER)) != 0) {
        return false;
    }
    n_name = strcspn(name, "/");
    if (name[n_name] == '\0' || n_name >= sizeof exchange->picture_scene) {
        return false;
    }
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        if (strcmp(name + n_name + 1, files[i][0]) == 0) {
            memcpy(exchange->picture_scene, name, n_name);
            exchange->picture_scene[n_name] = '\0';
            exchange->picture_type =
                vxd_is_name(exchange->picture_scene) ? files[i][1] : NULL;
            return exchange->picture_type != NULL;
        }
    }
    return false;
}

enum vxd_status vxd_http_read_picture(struct vxd_http_exchange *exchange,
                                      struct vxd_err *err)
{
    struct vxd_text text = {0};
    enum vxd_status status;

    VXD_TRY(vxd_http_read_query(exchange, err));
    VXD_TRY(write_body(exchange, &text, err));
    exchange->picture_digest = vxd_sum_of(text.bytes, text.n_bytes);
    exchange->picture_body = text.bytes;
    text.bytes = NULL;
    if (exchange->headers.if_none_match != NULL) {
        VXD_TRY(answer_unchanged(exchange, err));
    }
out:
    free(text.bytes);
    return status;
}

enum vxd_status vxd_http_set_picture(struct vxd_http_exchange *exchange,
                                     const ProtobufCMessage *output, struct vxd_err *err)
{
    const Voxeld__V1__SceneRenderResponse *reply =
        (const Voxeld__V1__SceneRenderResponse *)output;
    char *bytes = malloc(reply->image.len > 0 ? reply->image.len : 1);
    char tag[VXD_HTTP_TAG_BYTES];

    if (bytes == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for the reply");
    }
    memcpy(bytes, reply->image.data, reply->image.len);
    vxd_http_set_bytes(exchange, MHD_HTTP_OK, exchange->picture_type, bytes,
                       reply->image.len);
    write_tag(exchange, reply->generation, reply->version, tag);
    add_cache_headers(exchange, tag);
    return VXD_OK;
}
