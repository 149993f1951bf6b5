// SPDX-License-Identifier: Apache-2.0
/* Writes the OpenAPI document in one go: head, paths, then the schemas of every
 * message and enum that the methods refer to. */
#include "proto/wire/openapi.h"

#include <stdlib.h>

#include "proto/wire/fields.h"
#include "voxeld/v1/common.pb-c.h"

/* The descriptors to describe, each once, in the order they were found; those already
 * written come first. */
struct worklist {
    const void **items;
    size_t n;
    size_t capacity;
    bool failed;
};

static void add(struct worklist *list, const void *descriptor)
{
    for (size_t i = 0; i < list->n; i++) {
        if (list->items[i] == descriptor) {
            return;
        }
    }
    if (list->n == list->capacity) {
        size_t capacity = list->capacity > 0 ? 2 * list->capacity : 32;
        const void **items = realloc(list->items, capacity * sizeof *items);

        if (items == NULL) {
            list->failed = true;
            return;
        }
        list->items = items;
        list->capacity = capacity;
    }
    list->items[list->n++] = descriptor;
}

static void write_head(const char *version, struct vxd_text *text)
{
    vxd_text_printf(text,
                    "{\"openapi\":\"3.0.3\",\"info\":{\"title\":\"voxeld\",\"version\":");
    vxd_text_json_string(text, version, strlen(version));
    vxd_text_printf(
        text,
        ",\"license\":{\"name\":\"Apache-2.0\"},\"description\":\"Bodies are JSON (the "
        "proto3 mapping: lowerCamelCase or original names, 64-bit integers as strings, "
        "bytes as base64) or application/x-protobuf. Fields at their default are left "
        "out of replies; unknown fields in requests are refused. Positions are metres, "
        "frames right-handed, quaternions (x, y, z, w), times nanoseconds since the Unix "
        "epoch.\"},\"servers\":[{\"url\":\"/\"}],\"security\":[{\"bearer\":[]}]");
}

static void write_header_parameter(const char *name, const char *schema,
                                   const char *description, const char *comma,
                                   struct vxd_text *text)
{
    vxd_text_printf(text,
                    "%s\"%s\":{\"name\":\"%s\",\"in\":\"header\",\"required\":false,"
                    "\"description\":\"%s\",\"schema\":{%s}}",
                    comma, name, name, description, schema);
}

static void write_parameters(struct vxd_text *text)
{
    vxd_text_printf(text, "\"parameters\":{");
    write_header_parameter("X-Request-Id", "\"type\":\"string\",\"maxLength\":63",
                           "Echoed in reply, log and errors; made when absent.", "",
                           text);
    write_header_parameter("X-Voxeld-Timeout-Ms", "\"type\":\"integer\",\"minimum\":0",
                           "From arrival to reply; absent or 0 = the server's default.",
                           ",", text);
    write_header_parameter("X-Voxeld-Client-Id", "\"type\":\"string\",\"maxLength\":63",
                           "Who sends, for fairness and exactly-once.", ",", text);
    write_header_parameter("X-Voxeld-Stream", "\"type\":\"string\",\"maxLength\":63",
                           "Sensor stream whose newest requests matter.", ",", text);
    write_header_parameter("X-Voxeld-Keep-Last", "\"type\":\"integer\",\"minimum\":0",
                           "Requests of the stream that may wait; older ones are "
                           "answered ABORTED.",
                           ",", text);
    write_header_parameter("X-Voxeld-Max-Age-Ms", "\"type\":\"integer\",\"minimum\":0",
                           "Not started when it has waited longer; 0 = no limit.", ",",
                           text);
    write_header_parameter("Idempotency-Key", "\"type\":\"string\"",
                           "1 to 63 printable ASCII characters; a request that changes "
                           "something and is repeated with its key gets the first one's "
                           "outcome.",
                           ",", text);
    vxd_text_append(text, "}", 1);
}

static void write_content(const ProtobufCMessageDescriptor *message,
                          struct vxd_text *text)
{
    vxd_text_printf(
        text,
        "\"content\":{\"application/json\":{\"schema\":{\"$ref\":"
        "\"#/components/schemas/%s\"}},\"application/x-protobuf\":{\"schema\":"
        "{\"type\":\"string\",\"format\":\"binary\",\"description\":"
        "\"a serialized %s\"}}}",
        message->short_name, message->name);
}

static void write_method(const struct vxd_openapi_method *method, const char *comma,
                         struct vxd_text *text)
{
    static const char *const parameters[] = {
        "X-Request-Id",    "X-Voxeld-Timeout-Ms", "X-Voxeld-Client-Id",
        "X-Voxeld-Stream", "X-Voxeld-Keep-Last",  "X-Voxeld-Max-Age-Ms",
        "Idempotency-Key",
    };

    vxd_text_printf(text,
                    "%s\"/v1/%s\":{\"post\":{\"operationId\":\"%s\",\"summary\":", comma,
                    method->name, method->name);
    vxd_text_json_string(text, method->summary, strlen(method->summary));
    vxd_text_printf(text, ",\"description\":\"Scope: %s.\",\"x-voxeld-scope\":\"%s\"",
                    method->scope, method->scope);
    vxd_text_printf(text, ",\"parameters\":[");
    for (size_t i = 0; i < sizeof parameters / sizeof parameters[0]; i++) {
        vxd_text_printf(text, "%s{\"$ref\":\"#/components/parameters/%s\"}",
                        i > 0 ? "," : "", parameters[i]);
    }
    vxd_text_printf(text, "],\"requestBody\":{\"required\":true,");
    write_content(method->request, text);
    vxd_text_printf(text, "},\"responses\":{\"200\":{\"description\":\"OK\",");
    write_content(method->response, text);
    vxd_text_printf(text, "},\"default\":{\"$ref\":\"#/components/responses/Error\"}}}}");
}

static void write_enum(const ProtobufCEnumDescriptor *descriptor, struct vxd_text *text)
{
    vxd_text_printf(text, "\"%s\":{\"type\":\"string\",\"enum\":[",
                    descriptor->short_name);
    for (unsigned i = 0; i < descriptor->n_values; i++) {
        vxd_text_printf(text, "%s\"%s\"", i > 0 ? "," : "", descriptor->values[i].name);
    }
    vxd_text_append(text, "]}", 2);
}

static const char *scalar_schema(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
        return "{\"type\":\"integer\",\"format\":\"int32\"}";
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        return "{\"type\":\"integer\",\"format\":\"int64\",\"minimum\":0,"
               "\"maximum\":4294967295}";
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
        return "{\"type\":\"string\",\"format\":\"int64\"}";
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        return "{\"type\":\"string\",\"format\":\"uint64\"}";
    case PROTOBUF_C_TYPE_FLOAT:
        return "{\"type\":\"number\",\"format\":\"float\"}";
    case PROTOBUF_C_TYPE_DOUBLE:
        return "{\"type\":\"number\",\"format\":\"double\"}";
    case PROTOBUF_C_TYPE_BOOL:
        return "{\"type\":\"boolean\"}";
    case PROTOBUF_C_TYPE_BYTES:
        return "{\"type\":\"string\",\"format\":\"byte\"}";
    default:
        return "{\"type\":\"string\"}";
    }
}

/* Writes the schema of one value, and queues the descriptor that it refers to. */
static void write_type(const ProtobufCFieldDescriptor *field, struct worklist *list,
                       struct vxd_text *text)
{
    const char *name;

    if (field->type == PROTOBUF_C_TYPE_ENUM) {
        name = ((const ProtobufCEnumDescriptor *)field->descriptor)->short_name;
    } else if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
        name = ((const ProtobufCMessageDescriptor *)field->descriptor)->short_name;
    } else {
        vxd_text_printf(text, "%s", scalar_schema(field->type));
        return;
    }
    add(list, field->descriptor);
    vxd_text_printf(text, "{\"$ref\":\"#/components/schemas/%s\"}", name);
}

static void write_message(const ProtobufCMessageDescriptor *descriptor,
                          struct worklist *list, struct vxd_text *text)
{
    char name[VXD_FIELD_NAME_BYTES];

    vxd_text_printf(text, "\"%s\":{\"type\":\"object\"", descriptor->short_name);
    if (descriptor == &voxeld__v1__tensor__descriptor) {
        vxd_text_printf(
            text, ",\"description\":\"A dense array. shape: extents, slowest axis first, "
                  "at most 8; empty = a scalar. data: the elements, little-endian, "
                  "row-major, exactly product(shape) * size(dtype) bytes. values: the "
                  "same as numbers, instead of data; replies use it where there are at "
                  "most 4096 elements.\"");
    }
    vxd_text_printf(text, ",\"properties\":{");
    for (unsigned i = 0; i < descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &descriptor->fields[i];
        bool repeated = field->label == PROTOBUF_C_LABEL_REPEATED;

        vxd_text_printf(text, "%s\"%s\":%s", i > 0 ? "," : "",
                        vxd_field_json_name(field, name),
                        repeated ? "{\"type\":\"array\",\"items\":" : "");
        write_type(field, list, text);
        vxd_text_printf(text, repeated ? "}" : "");
    }
    vxd_text_append(text, "}}", 2);
}

/* Writes the schema of HTTP errors, which are not a message of the schema. */
static void write_error(struct worklist *list, struct vxd_text *text)
{
    add(list, &voxeld__v1__code__descriptor);
    vxd_text_printf(
        text,
        "\"Error\":{\"type\":\"object\",\"required\":[\"code\",\"message\",\"field\","
        "\"request_id\"],\"properties\":{\"code\":{\"$ref\":"
        "\"#/components/schemas/Code\"},\"message\":{\"type\":\"string\",\"description\":"
        "\"what was wrong and what would be right\"},\"field\":{\"type\":\"string\","
        "\"description\":\"the offending field as written, empty where no single field "
        "is to blame\"},\"request_id\":{\"type\":\"string\"}}}");
}

static void write_components(struct worklist *list, struct vxd_text *text)
{
    vxd_text_printf(
        text, "\"components\":{\"securitySchemes\":{\"bearer\":{\"type\":\"http\","
              "\"scheme\":\"bearer\",\"description\":\"A token, where the server asks "
              "for one.\"}},\"responses\":{\"Error\":{\"description\":\"The request "
              "failed; the HTTP status follows from the code.\",\"content\":"
              "{\"application/json\":{\"schema\":{\"$ref\":"
              "\"#/components/schemas/Error\"}}}}},");
    write_parameters(text);
    vxd_text_printf(text, ",\"schemas\":{");
    write_error(list, text);
    for (size_t i = 0; i < list->n; i++) {
        const void *descriptor = list->items[i];
        uint32_t magic;

        memcpy(&magic, descriptor, sizeof magic); /* both kinds begin with it */
        vxd_text_append(text, ",", 1);
        if (magic == PROTOBUF_C__ENUM_DESCRIPTOR_MAGIC) {
            write_enum(descriptor, text);
        } else {
            write_message(descriptor, list, text);
        }
    }
    vxd_text_append(text, "}}", 2);
}

enum vxd_status vxd_openapi_write(const struct vxd_openapi_method *methods,
                                  size_t n_methods, const char *version,
                                  struct vxd_text *text, struct vxd_err *err)
{
    struct worklist list = {0};
    enum vxd_status status = VXD_OK;

    write_head(version, text);
    vxd_text_printf(text, ",\"paths\":{");
    for (size_t i = 0; i < n_methods; i++) {
        add(&list, methods[i].request);
        add(&list, methods[i].response);
        write_method(&methods[i], i > 0 ? "," : "", text);
    }
    vxd_text_printf(text, "},");
    write_components(&list, text);
    vxd_text_append(text, "}", 1);
    if (list.failed || text->failed) {
        status = vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                          "no memory for the OpenAPI document");
    }
    free(list.items);
    return status;
}
