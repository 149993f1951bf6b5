// SPDX-License-Identifier: Apache-2.0
/* JSON text to messages: jansson parses (its depth limit is 2048), a walker over the
 * descriptors fills the message. The walker calls itself for submessages only, so it goes
 * as deep as the schema, which has no recursive message (a test checks that and bounds
 * the depth), however deep the text is.
 * Scalars: json_scalar.c.
 *
 * Known limit: where jansson 2.14 cannot grow its token buffer it drops a character in
 * silence, so without memory a string may come out short. */
#include "proto/wire/fields.h"

#include <jansson.h>

#include "proto/wire/json_scalar.h"

static enum vxd_status read_message(struct vxd_json_reader *r,
                                    const ProtobufCMessageDescriptor *descriptor,
                                    const json_t *json, ProtobufCMessage **out);

static size_t path_push_key(struct vxd_json_reader *r, const char *key)
{
    size_t before = r->path_chars;
    size_t at = before;

    if (at > 0 && at < sizeof r->path - 1) {
        r->path[at++] = '.';
    }
    for (; *key != '\0' && at < sizeof r->path - 1; key++) {
        r->path[at++] = vxd_json_printable(*key);
    }
    r->path[at] = '\0';
    r->path_chars = at;
    return before;
}

static size_t path_push_index(struct vxd_json_reader *r, size_t index)
{
    size_t before = r->path_chars;
    size_t n_free = sizeof r->path - before;
    int n = snprintf(r->path + before, n_free, "[%zu]", index);

    if (n > 0) {
        r->path_chars += (size_t)n < n_free ? (size_t)n : n_free - 1;
    }
    return before;
}

static void path_pop(struct vxd_json_reader *r, size_t before)
{
    r->path_chars = before;
    r->path[before] = '\0';
}

/* Reads one value, in an array or alone, into its place in the C struct. */
static enum vxd_status read_value(struct vxd_json_reader *r,
                                  const ProtobufCFieldDescriptor *field,
                                  const json_t *json, uint8_t *slot)
{
    ProtobufCMessage *message = NULL;
    enum vxd_status status;

    if (field->type != PROTOBUF_C_TYPE_MESSAGE) {
        return vxd_json_read_scalar(r, field, json, slot);
    }
    status = read_message(r, field->descriptor, json, &message);
    if (status == VXD_OK) {
        void *pointer = message;

        memcpy(slot, &pointer, sizeof pointer);
    }
    return status;
}

static enum vxd_status read_array(struct vxd_json_reader *r,
                                  const ProtobufCFieldDescriptor *field,
                                  const json_t *json, ProtobufCMessage *message)
{
    size_t value_bytes = vxd_field_value_bytes(field);
    size_t n = json_array_size(json);
    uint8_t *values;

    if (!json_is_array(json)) {
        return vxd_json_fail_kind(r, json, "an array");
    }
    if (n == 0) {
        return VXD_OK;
    }
    /* This does not overflow: the text is 1 MiB at most. */
    values = vxd_decoder_alloc(r->decoder, n * value_bytes, r->err);
    if (values == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    for (size_t i = 0; i < n; i++) {
        size_t before = path_push_index(r, i);
        enum vxd_status status =
            read_value(r, field, json_array_get(json, i), values + i * value_bytes);

        if (status != VXD_OK) {
            return status;
        }
        path_pop(r, before);
    }
    memcpy((uint8_t *)message + field->offset, &values, sizeof values);
    memcpy((uint8_t *)message + field->quantifier_offset, &n, sizeof n);
    return VXD_OK;
}

static enum vxd_status set_oneof_case(struct vxd_json_reader *r,
                                      const ProtobufCFieldDescriptor *field,
                                      ProtobufCMessage *message)
{
    uint32_t set = vxd_field_oneof_case(message, field);
    uint32_t id = field->id;

    if (set != 0) {
        const ProtobufCFieldDescriptor *other =
            protobuf_c_message_descriptor_get_field(message->descriptor, set);

        return vxd_fail(r->err, VXD_INVALID_ARGUMENT, r->path,
                        "given beside \"%s\"; only one of them may be", other->name);
    }
    memcpy((uint8_t *)message + field->quantifier_offset, &id, sizeof id);
    return VXD_OK;
}

/* Finds a field by its lowerCamelCase or original name; NULL when there is none. */
static const ProtobufCFieldDescriptor *
find_field(const ProtobufCMessageDescriptor *descriptor, const char *key)
{
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field_by_name(descriptor, key);
    char name[VXD_FIELD_NAME_BYTES];

    for (unsigned i = 0; i < descriptor->n_fields && field == NULL; i++) {
        if (strcmp(vxd_field_json_name(&descriptor->fields[i], name), key) == 0) {
            field = &descriptor->fields[i];
        }
    }
    return field;
}

static enum vxd_status read_member(struct vxd_json_reader *r, const json_t *object,
                                   const char *key, const json_t *json,
                                   ProtobufCMessage *message)
{
    const ProtobufCFieldDescriptor *field = find_field(message->descriptor, key);
    enum vxd_status status = VXD_OK;

    if (field == NULL) {
        return vxd_fail(r->err, VXD_INVALID_ARGUMENT, r->path, "%s has no such field",
                        message->descriptor->short_name);
    }
    if (strcmp(key, field->name) != 0 && json_object_get(object, field->name) != NULL) {
        return vxd_fail(r->err, VXD_INVALID_ARGUMENT, r->path,
                        "given twice, also as \"%s\"", field->name);
    }
    if (json_is_null(json)) {
        return VXD_OK;
    }
    if (field->label == PROTOBUF_C_LABEL_REPEATED) {
        return read_array(r, field, json, message);
    }
    if ((field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0) {
        status = set_oneof_case(r, field, message);
    }
    if (status == VXD_OK) {
        status = read_value(r, field, json, (uint8_t *)message + field->offset);
    }
    return status;
}

static enum vxd_status read_message(struct vxd_json_reader *r,
                                    const ProtobufCMessageDescriptor *descriptor,
                                    const json_t *json, ProtobufCMessage **out)
{
    ProtobufCMessage *message;
    json_t *object = (json_t *)json; /* jansson's iterators take no const; none writes */

    if (!json_is_object(json)) {
        return vxd_json_fail_kind(r, json, "an object");
    }
    message = vxd_decoder_alloc(r->decoder, descriptor->sizeof_message, r->err);
    if (message == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    protobuf_c_message_init(descriptor, message);
    for (void *at = json_object_iter(object); at != NULL;
         at = json_object_iter_next(object, at)) {
        const char *key = json_object_iter_key(at);
        size_t before = path_push_key(r, key);
        enum vxd_status status =
            read_member(r, object, key, json_object_iter_value(at), message);

        if (status != VXD_OK) {
            return status;
        }
        path_pop(r, before);
    }
    *out = message;
    return VXD_OK;
}

static enum vxd_status fail_parse(const json_error_t *error, struct vxd_err *err)
{
    char text[JSON_ERROR_TEXT_LENGTH];
    size_t n = 0;

    /* jansson describes what is wrong with a text, but nothing when it got no memory. */
    if (error->text[0] == '\0' || json_error_code(error) == json_error_out_of_memory) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory to parse the JSON");
    }
    for (; n < sizeof text - 1 && error->text[n] != '\0'; n++) {
        text[n] = vxd_json_printable(error->text[n]);
    }
    text[n] = '\0';
    return vxd_fail(err, VXD_INVALID_ARGUMENT, NULL, "bad JSON, line %d, column %d: %s",
                    error->line, error->column, text);
}

enum vxd_status vxd_json_read(struct vxd_decoder *decoder,
                              const ProtobufCMessageDescriptor *descriptor,
                              const char *text, size_t n_bytes, ProtobufCMessage **out,
                              struct vxd_err *err)
{
    struct vxd_json_reader r = {.decoder = decoder, .err = err};
    enum vxd_status status;
    json_error_t error;
    json_t *root;

    if (n_bytes > VXD_JSON_MAX_BYTES) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                        "%zu bytes of JSON, at most %d are read; send big arrays as "
                        "protobuf or as a file",
                        n_bytes, VXD_JSON_MAX_BYTES);
    }
    root = json_loadb(n_bytes > 0 ? text : "", n_bytes, JSON_REJECT_DUPLICATES, &error);
    if (root == NULL) {
        return fail_parse(&error, err);
    }
    status = read_message(&r, descriptor, root, out);
    json_decref(root);
    return status;
}
