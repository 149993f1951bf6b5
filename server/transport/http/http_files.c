// SPDX-License-Identifier: Apache-2.0
/* Files of scenes and volumes by GET: /v1/scenes/NAME/image.png and image.jpg are pictures,
 * costmap.png, costmap.pgm and costmap.yaml costmaps; /v1/volumes/NAME/image.png and image.jpg
 * pictures of volumes. The query becomes a request of scene_render, scene_grid or volume_render, and
 * the reply's file the answer. The entity tag of a scene's is of its generation, which its palette
 * belongs to, its version, and the request; a client that has that file gets 304 without its being
 * made again. Volumes change in place, and pictures with them are not kept. */
#include "server/transport/http/http_internal.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/number.h"
#include "proto/base/xxh64.h"
#include "server/registry/scenes/scenes.h"
#include "voxeld/v1/grid.pb-c.h"
#include "voxeld/v1/render.pb-c.h"
#include "voxeld/v1/volume.pb-c.h"

#define MOST_NUMBERS 6
#define MOST_CHOICES 10

/* How a parameter's text becomes the value of a field, or two fields. */
enum value_kind {
    KIND_NUMBER, /* finite */
    KIND_COUNT,  /* a whole number */
    KIND_FLAG,   /* true or false */
    KIND_CHOICE,
    KIND_SWITCH, /* false or true: the first or the second choice */
    KIND_VECTOR, /* x,y,z */
    KIND_BOX,    /* x,y,z,x,y,z */
    KIND_BAND,   /* low,high or, of a layer, low */
    KIND_SIZE,   /* WIDTHxHEIGHT */
    KIND_AT,     /* a version's number, or a snapshot's name */
    KIND_TEXT,
    KIND_NAMES /* A,B,... */
};

struct choices {
    const char *right;                     /* what would be right, for the error */
    int first;                             /* the first one's number */
    const char *const names[MOST_CHOICES]; /* in the enumerators' order */
};

struct parameter {
    const char *key;
    enum value_kind kind;
    const char
        *field; /* of the message, as JSON has it; of BAND and SIZE the second one */
    const struct choices *choices;
    const char
        *absent; /* the field's JSON where there is no such parameter; NULL = none */
};

static const struct choices cameras = {"pinhole, orthographic or equirectangular",
                                       0,
                                       {"pinhole", "orthographic", "equirectangular"}};
static const struct choices modes = {
    "colour, height, depth, normal, material, ao, path, age or label",
    0,
    {"colour", "height", "depth", "normal", "material", "ao", "path", "age", "label"}};
static const struct choices volume_cameras = {
    "pinhole or panorama", 0, {"pinhole", "panorama"}};
static const struct choices volume_modes = {
    "colour, height, normal, label or depth",
    0,
    {"colour", "height", "normal", "label", "depth"}};
static const struct choices kinds = {
    "costmap, projected or slice (height has no picture)",
    0,
    {"costmap", "projected", "height", "slice"}};
static const struct choices unknowns = {
    "kept, free or lethal", 1, {"kept", "free", "lethal"}};

/* In this order they are written, so that equal requests are equal texts. */
static const struct parameter of_pictures[] = {
    {"eye", KIND_VECTOR, "eye", NULL, NULL}, /* these three are of the view */
    {"look", KIND_VECTOR, "target", NULL, NULL},
    {"up", KIND_VECTOR, "up", NULL, NULL},
    {"fov", KIND_NUMBER, "fovYDeg", NULL, NULL},
    {"camera", KIND_CHOICE, "camera", &cameras, NULL},
    {"mode", KIND_CHOICE, "mode", &modes, NULL},
    {"view_height_m", KIND_NUMBER, "viewHeightM", NULL, NULL},
    {"samples", KIND_COUNT, "samples", NULL, NULL},
    {"ao_samples", KIND_COUNT, "aoSamples", NULL, NULL},
    {"ao_radius_m", KIND_NUMBER, "aoRadiusM", NULL, NULL},
    {"bounces", KIND_COUNT, "bounces", NULL, NULL},
    {"seed", KIND_COUNT, "seed", NULL, NULL},
    {"no_shadows", KIND_FLAG, "noShadows", NULL, NULL},
    {"sun_direction", KIND_VECTOR, "sunDirection", NULL, NULL},
    {"sun", KIND_NUMBER, "sun", NULL, NULL},
    {"ambient", KIND_NUMBER, "ambient", NULL, NULL},
    {"variation", KIND_NUMBER, "variation", NULL, NULL},
    {"z_low_m", KIND_NUMBER, "zLowM", NULL, NULL},
    {"z_high_m", KIND_NUMBER, "zHighM", NULL, NULL},
    {"detail", KIND_NUMBER, "detail", NULL, NULL},
    {"clip", KIND_BOX, "clip", NULL, NULL},
    {"volumes", KIND_NAMES, "volumes", NULL, NULL},
    {"min_weight", KIND_NUMBER, "minWeight", NULL, NULL},
    {"quality", KIND_COUNT, "quality", NULL, NULL},
    {"size", KIND_SIZE, "height", NULL, NULL},
    {"at", KIND_AT, "at", NULL, NULL},
};

static const struct parameter of_volumes[] = {
    {"eye", KIND_VECTOR, "eye", NULL, NULL},
    {"look", KIND_VECTOR, "target", NULL, NULL},
    {"up", KIND_VECTOR, "up", NULL, NULL},
    {"fov", KIND_NUMBER, "fovYDeg", NULL, NULL},
    {"camera", KIND_SWITCH, "panorama", &volume_cameras, NULL},
    {"mode", KIND_CHOICE, "show", &volume_modes, NULL},
    {"sun_direction", KIND_VECTOR, "sunDirection", NULL, NULL},
    {"sun", KIND_NUMBER, "sun", NULL, NULL},
    {"ambient", KIND_NUMBER, "ambient", NULL, NULL},
    {"z_low_m", KIND_NUMBER, "zLowM", NULL, NULL},
    {"z_high_m", KIND_NUMBER, "zHighM", NULL, NULL},
    {"min_weight", KIND_NUMBER, "minWeight", NULL, NULL},
    {"depth_max_m", KIND_NUMBER, "depthMaxM", NULL, NULL},
    {"quality", KIND_COUNT, "quality", NULL, NULL},
    {"size", KIND_SIZE, "height", NULL, NULL},
};

static const struct parameter of_costmaps[] = {
    {"kind", KIND_CHOICE, "kind", &kinds, NULL},
    {"box", KIND_BOX, "box", NULL, NULL},
    {"in_voxels", KIND_FLAG, "inVoxels", NULL, NULL},
    {"z", KIND_BAND, "zHigh", NULL, NULL},
    {"unknown", KIND_CHOICE, "unknown", &unknowns, NULL},
    {"robot_radius_m", KIND_NUMBER, "robotRadiusM", NULL, NULL},
    {"inflation_radius_m", KIND_NUMBER, "inflationRadiusM", NULL, NULL},
    {"cost_scaling", KIND_NUMBER, "costScaling", NULL, NULL},
    /* The picture that lies beside the file when both are fetched by their names. */
    {"image", KIND_TEXT, "image", NULL, "\"costmap.pgm\""},
    {"at", KIND_AT, "at", NULL, NULL},
};

/* What the files of a method share. */
struct method_files {
    const char *folder; /* of the objects that the files are of */
    const char *method;
    const char *what;    /* one is */
    const char *endings; /* of the paths */
    const char *format;  /* the message's field of a file's format */
    const struct parameter *parameters;
    size_t n;
    size_t n_view; /* the first ones are of the message's view, which is there then */
};

static const struct method_files pictures = {"/v1/scenes/",
                                             "scene_render",
                                             "picture",
                                             "image.png or image.jpg",
                                             "encode",
                                             of_pictures,
                                             sizeof of_pictures / sizeof of_pictures[0],
                                             3};
static const struct method_files volume_pictures = {"/v1/volumes/",
                                                    "volume_render",
                                                    "picture",
                                                    "image.png or image.jpg",
                                                    "encode",
                                                    of_volumes,
                                                    sizeof of_volumes /
                                                        sizeof of_volumes[0],
                                                    0};
static const struct method_files costmaps = {"/v1/scenes/",
                                             "scene_grid",
                                             "costmap",
                                             "costmap.png, .pgm or .yaml",
                                             "format",
                                             of_costmaps,
                                             sizeof of_costmaps / sizeof of_costmaps[0],
                                             0};

struct vxd_http_file_of {
    const char *name;
    const char *type;
    const struct method_files *of;
    int format;
};

static const struct vxd_http_file_of files[] = {
    {"image.png", "image/png", &pictures, VOXELD__V1__RENDER_ENCODE__RENDER_PNG},
    {"image.jpg", "image/jpeg", &pictures, VOXELD__V1__RENDER_ENCODE__RENDER_JPEG},
    {"image.jpeg", "image/jpeg", &pictures, VOXELD__V1__RENDER_ENCODE__RENDER_JPEG},
    {"image.png", "image/png", &volume_pictures, VOXELD__V1__VOLUME_ENCODE__VOLUME_PNG},
    {"image.jpg", "image/jpeg", &volume_pictures, VOXELD__V1__VOLUME_ENCODE__VOLUME_JPEG},
    {"image.jpeg", "image/jpeg", &volume_pictures,
     VOXELD__V1__VOLUME_ENCODE__VOLUME_JPEG},
    {"costmap.png", "image/png", &costmaps, VOXELD__V1__GRID_FORMAT__GRID_PNG},
    {"costmap.pgm", "image/x-portable-graymap", &costmaps,
     VOXELD__V1__GRID_FORMAT__GRID_PGM},
    {"costmap.yaml", "application/yaml", &costmaps, VOXELD__V1__GRID_FORMAT__GRID_YAML},
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

static void write_vector(struct vxd_text *text, const double v[3])
{
    vxd_text_printf(text, "{\"x\":%.17g,\"y\":%.17g,\"z\":%.17g}", v[0], v[1], v[2]);
}

static enum vxd_status write_choice(struct vxd_text *text,
                                    const struct parameter *parameter, const char *value,
                                    struct vxd_err *err)
{
    const struct choices *choices = parameter->choices;

    for (int i = 0; i < MOST_CHOICES && choices->names[i] != NULL; i++) {
        if (strcmp(value, choices->names[i]) == 0) {
            if (parameter->kind == KIND_SWITCH) {
                vxd_text_printf(text, "%s", i > 0 ? "true" : "false");
            } else {
                vxd_text_printf(text, "%d", choices->first + i);
            }
            return VXD_OK;
        }
    }
    return bad_value(parameter->key, value, choices->right, err);
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
    vxd_text_printf(text, "%" PRIu64 ",\"width\":%" PRIu64, height, width);
    return VXD_OK;
}

static enum vxd_status write_at(struct vxd_text *text, const char *value,
                                struct vxd_err *err)
{
    bool is_number = value[0] != '\0' && value[strspn(value, "0123456789")] == '\0';
    uint64_t version;

    if (vxd_number_uint64(value, strlen(value), &version)) {
        vxd_text_printf(text, "{\"version\":\"%" PRIu64 "\"}", version);
        return VXD_OK;
    }
    if (is_number || !vxd_is_name(value)) {
        return bad_value("at", value, "a version's number or a snapshot's name", err);
    }
    vxd_text_printf(text, "{\"snapshot\":\"%s\"}", value);
    return VXD_OK;
}

/* "A,B,..." */
static void write_names(struct vxd_text *text, const char *value)
{
    const char *comma = "[";

    for (;;) {
        size_t n_bytes = strcspn(value, ",");

        vxd_text_printf(text, "%s", comma);
        vxd_text_json_string(text, value, n_bytes);
        if (value[n_bytes] == '\0') {
            break;
        }
        value += n_bytes + 1;
        comma = ",";
    }
    vxd_text_append(text, "]", 1);
}

/* Writes what is made of numbers. */
static enum vxd_status write_numbers(struct vxd_text *text,
                                     const struct parameter *parameter, const char *value,
                                     struct vxd_err *err)
{
    const char *key = parameter->key;
    double v[MOST_NUMBERS];
    size_t n = read_numbers(value, v, MOST_NUMBERS);

    switch (parameter->kind) {
    case KIND_VECTOR:
        if (n != 3) {
            return bad_value(key, value, "three numbers: x,y,z", err);
        }
        write_vector(text, v);
        return VXD_OK;
    case KIND_BOX:
        if (n != 6) {
            return bad_value(key, value, "six numbers: the corners x,y,z,x,y,z", err);
        }
        vxd_text_printf(text, "{\"low\":");
        write_vector(text, v);
        vxd_text_printf(text, ",\"high\":");
        write_vector(text, v + 3);
        vxd_text_append(text, "}", 1);
        return VXD_OK;
    case KIND_BAND:
        if (n != 1 && n != 2) {
            return bad_value(key, value, "two numbers, low,high, or one of a slice", err);
        }
        vxd_text_printf(text, "%.17g,\"zLow\":%.17g", v[n - 1], v[0]);
        return VXD_OK;
    default:
        break;
    }
    if (n != 1) {
        return bad_value(key, value, "a finite number", err);
    }
    vxd_text_printf(text, "%.17g", v[0]);
    return VXD_OK;
}

static enum vxd_status write_value(struct vxd_text *text,
                                   const struct parameter *parameter, const char *value,
                                   struct vxd_err *err)
{
    const char *key = parameter->key;
    uint64_t count;

    switch (parameter->kind) {
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
    case KIND_CHOICE:
    case KIND_SWITCH:
        return write_choice(text, parameter, value, err);
    case KIND_SIZE:
        return write_size(text, value, err);
    case KIND_AT:
        return write_at(text, value, err);
    case KIND_TEXT:
        vxd_text_json_string(text, value, strlen(value));
        return VXD_OK;
    case KIND_NAMES:
        write_names(text, value);
        return VXD_OK;
    default:
        break;
    }
    return write_numbers(text, parameter, value, err);
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

/* Whether volumes are in the file, which change in place. */
static bool has_volumes(const struct vxd_http_exchange *exchange)
{
    return exchange->file->of == &volume_pictures ||
           find_item(exchange, "volumes") != NULL;
}

static enum vxd_status check_keys(const struct vxd_http_exchange *exchange,
                                  struct vxd_err *err)
{
    const struct method_files *of = exchange->file->of;

    for (size_t i = 0; i < exchange->n_query; i++) {
        const char *key = exchange->query[i].key;
        bool is_known = false;

        for (size_t k = 0; k < of->n; k++) {
            is_known = is_known || strcmp(key, of->parameters[k].key) == 0;
        }
        if (!is_known) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, key, "a %s has no such parameter",
                            of->what);
        }
    }
    return exchange->format == NULL
               ? VXD_OK
               : vxd_fail(err, VXD_INVALID_ARGUMENT, "format",
                          "is what the path ends in: %s", of->endings);
}

/* Writes the fields of parameters begin .. end - 1: the first behind `comma`, the others one. */
static enum vxd_status write_fields(const struct vxd_http_exchange *exchange,
                                    struct vxd_text *text, size_t begin, size_t end,
                                    const char *comma, struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    for (size_t i = begin; i < end; i++) {
        const struct parameter *parameter = &exchange->file->of->parameters[i];
        const char *value = find_item(exchange, parameter->key);

        if (value == NULL && parameter->absent == NULL) {
            continue;
        }
        vxd_text_printf(text, "%s\"%s\":", comma, parameter->field);
        if (value != NULL) {
            VXD_TRY(write_value(text, parameter, value, err));
        } else {
            vxd_text_printf(text, "%s", parameter->absent);
        }
        comma = ",";
    }
out:
    return status;
}

static enum vxd_status write_body(struct vxd_http_exchange *exchange,
                                  struct vxd_text *text, struct vxd_err *err)
{
    const struct method_files *of = exchange->file->of;
    enum vxd_status status;

    VXD_TRY(check_keys(exchange, err));
    vxd_text_printf(text, "{\"name\":\"%s\",\"%s\":%d", exchange->file_object, of->format,
                    exchange->file->format);
    if (of->n_view > 0) {
        vxd_text_printf(text, ",\"view\":{");
        VXD_TRY(write_fields(exchange, text, 0, of->n_view, "", err));
        vxd_text_append(text, "}", 1);
    }
    VXD_TRY(write_fields(exchange, text, of->n_view, of->n, ",", err));
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
                   generation, version, exchange->file_digest);
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

    VXD_TRY(vxd_http_check_read(exchange, exchange->method->name, exchange->file_object,
                                err));
    if (has_volumes(exchange)) {
        return VXD_OK;
    }
    if (!vxd_scenes_get_version(exchange->http->server->scenes, exchange->file_object,
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

/* Sets the object that a path of this folder is of; returns the file's name, NULL: there is none. */
static const char *read_object(struct vxd_http_exchange *exchange, const char *folder,
                               const char *url)
{
    const char *name = url + strlen(folder);
    size_t n_name;

    if (strncmp(url, folder, strlen(folder)) != 0) {
        return NULL;
    }
    n_name = strcspn(name, "/");
    if (name[n_name] == '\0' || n_name >= sizeof exchange->file_object) {
        return NULL;
    }
    memcpy(exchange->file_object, name, n_name);
    exchange->file_object[n_name] = '\0';
    return vxd_is_name(exchange->file_object) ? name + n_name + 1 : NULL;
}

const char *vxd_http_find_file(struct vxd_http_exchange *exchange, const char *url)
{
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        const char *name = read_object(exchange, files[i].of->folder, url);

        if (name != NULL && strcmp(name, files[i].name) == 0) {
            exchange->file = &files[i];
            return files[i].of->method;
        }
    }
    return NULL;
}

enum vxd_status vxd_http_read_file(struct vxd_http_exchange *exchange,
                                   struct vxd_err *err)
{
    struct vxd_text text = {0};
    enum vxd_status status;

    VXD_TRY(vxd_http_read_query(exchange, err));
    VXD_TRY(write_body(exchange, &text, err));
    exchange->file_digest = vxd_sum_of(text.bytes, text.n_bytes);
    exchange->file_body = text.bytes;
    text.bytes = NULL;
    if (exchange->headers.if_none_match != NULL) {
        VXD_TRY(answer_unchanged(exchange, err));
    }
out:
    free(text.bytes);
    return status;
}

static enum vxd_status set_file(struct vxd_http_exchange *exchange,
                                const ProtobufCBinaryData *file, struct vxd_err *err)
{
    char *bytes = malloc(file->len > 0 ? file->len : 1);

    if (bytes == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for the reply");
    }
    memcpy(bytes, file->data, file->len);
    vxd_http_set_bytes(exchange, MHD_HTTP_OK, exchange->file->type, bytes, file->len);
    return VXD_OK;
}

static enum vxd_status set_kept_file(struct vxd_http_exchange *exchange,
                                     const ProtobufCBinaryData *file, uint64_t generation,
                                     uint64_t version, struct vxd_err *err)
{
    char tag[VXD_HTTP_TAG_BYTES];
    enum vxd_status status = set_file(exchange, file, err);

    if (status == VXD_OK) {
        write_tag(exchange, generation, version, tag);
        add_cache_headers(exchange, tag);
    }
    return status;
}

enum vxd_status vxd_http_set_file(struct vxd_http_exchange *exchange,
                                  const ProtobufCMessage *output, struct vxd_err *err)
{
    const Voxeld__V1__SceneGridResponse *grid =
        (const Voxeld__V1__SceneGridResponse *)output;
    const Voxeld__V1__SceneRenderResponse *render =
        (const Voxeld__V1__SceneRenderResponse *)output;
    const Voxeld__V1__VolumeRenderResponse *volume =
        (const Voxeld__V1__VolumeRenderResponse *)output;

    if (exchange->file->of == &volume_pictures) {
        return set_file(exchange, &volume->image, err);
    }
    if (has_volumes(exchange)) {
        return set_file(exchange, &render->image, err);
    }
    return exchange->file->of == &costmaps
               ? set_kept_file(exchange, &grid->file, grid->generation, grid->version,
                               err)
               : set_kept_file(exchange, &render->image, render->generation,
                               render->version, err);
}
