// SPDX-License-Identifier: Apache-2.0
/* The query of a URL whose body is a file: its items become fields of the method's message. */
#include <errno.h>
#include <stdlib.h>

#include "server/service/clouds/clouds.h"
#include "server/service/service.h"

/* --- values ------------------------------------------------------------------------------- */

enum vxd_status vxd_query_fail(struct vxd_err *err, const struct vxd_query_item *item,
                               const char *expected)
{
    return vxd_fail(err, VXD_INVALID_ARGUMENT, item->key, "is \"%.60s\", it must be %s",
                    item->value, expected);
}

size_t vxd_query_numbers(const char *text, double *out, size_t most)
{
    for (size_t n = 0; n < most; n++) {
        char *end;

        out[n] = strtod(text, &end);
        if (end == text) {
            return 0;
        }
        if (*end == '\0') {
            return n + 1;
        }
        if (*end != ',') {
            return 0;
        }
        text = end + 1;
    }
    return 0;
}

enum vxd_status vxd_query_text(struct vxd_decoder *decoder,
                               const struct vxd_query_item *item, char **out,
                               struct vxd_err *err)
{
    *out = vxd_message_text(decoder, item->value, strlen(item->value), err);
    return *out != NULL ? VXD_OK : VXD_RESOURCE_EXHAUSTED;
}

enum vxd_status vxd_query_names(struct vxd_decoder *decoder,
                                const struct vxd_query_item *item, size_t most,
                                const char *expected, char ***out, size_t *n,
                                struct vxd_err *err)
{
    const char *text = item->value;

    *out = vxd_message_pointers(decoder, most, err);
    if (*out == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    for (*n = 0;;) {
        size_t n_bytes = strcspn(text, ",");
        char *name;

        if (n_bytes == 0 || *n == most) {
            return vxd_query_fail(err, item, expected);
        }
        name = vxd_message_text(decoder, text, n_bytes, err);
        if (name == NULL) {
            return VXD_RESOURCE_EXHAUSTED;
        }
        (*out)[(*n)++] = name;
        if (text[n_bytes] == '\0') {
            return VXD_OK;
        }
        text += n_bytes + 1;
    }
}

static enum vxd_status take_number(const struct vxd_query_item *item, double *out,
                                   struct vxd_err *err)
{
    return vxd_query_numbers(item->value, out, 1) == 1
               ? VXD_OK
               : vxd_query_fail(err, item, "a number");
}

static enum vxd_status take_truth(const struct vxd_query_item *item,
                                  protobuf_c_boolean *out, struct vxd_err *err)
{
    *out = strcmp(item->value, "true") == 0;
    return *out || strcmp(item->value, "false") == 0
               ? VXD_OK
               : vxd_query_fail(err, item, "true or false");
}

static enum vxd_status take_whole(const struct vxd_query_item *item, uint64_t most,
                                  const char *expected, uint64_t *out,
                                  struct vxd_err *err)
{
    char *end;

    errno = 0;
    *out = strtoull(item->value, &end, 10);
    return item->value[0] >= '0' && item->value[0] <= '9' && *end == '\0' && errno == 0 &&
                   *out <= most
               ? VXD_OK
               : vxd_query_fail(err, item, expected);
}

static enum vxd_status take_vec3(struct vxd_decoder *decoder,
                                 const struct vxd_query_item *item,
                                 Voxeld__V1__Vec3 **out, struct vxd_err *err)
{
    double v[3];

    if (vxd_query_numbers(item->value, v, 3) != 3) {
        return vxd_query_fail(err, item, "three numbers in metres: x,y,z");
    }
    *out = vxd_message_new(decoder, &voxeld__v1__vec3__descriptor, err);
    if (*out == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    (*out)->x = v[0];
    (*out)->y = v[1];
    (*out)->z = v[2];
    return VXD_OK;
}

/* --- fields ------------------------------------------------------------------------------- */

static enum vxd_status set_field(struct vxd_decoder *decoder,
                                 const ProtobufCFieldDescriptor *field, void *at,
                                 const struct vxd_query_item *item, struct vxd_err *err)
{
    uint64_t number = 0;
    enum vxd_status status;

    switch ((int)field->type) {
    case PROTOBUF_C_TYPE_STRING:
        return vxd_query_text(decoder, item, at, err);
    case PROTOBUF_C_TYPE_BOOL:
        return take_truth(item, at, err);
    case PROTOBUF_C_TYPE_DOUBLE:
        return take_number(item, at, err);
    case PROTOBUF_C_TYPE_UINT32:
        status =
            take_whole(item, UINT32_MAX, "a whole number, 0 to 4294967295", &number, err);
        *(uint32_t *)at = (uint32_t)number;
        return status;
    case PROTOBUF_C_TYPE_UINT64:
        return take_whole(item, UINT64_MAX, "a whole number from 0 on", at, err);
    default:
        return field->descriptor == &voxeld__v1__pose__descriptor
                   ? vxd_volume_query_pose(decoder, item, at, err)
                   : take_vec3(decoder, item, at, err);
    }
}

/* Sets the field at the end of a path; the messages on the way are made where they are missing. */
static enum vxd_status set_path(struct vxd_decoder *decoder, ProtobufCMessage *message,
                                const char *path, const struct vxd_query_item *item,
                                struct vxd_err *err)
{
    for (;;) {
        size_t n = strcspn(path, ".");
        char name[64];
        const ProtobufCFieldDescriptor *field;
        ProtobufCMessage **inner;
        void *at;

        (void)snprintf(name, sizeof name, "%.*s", (int)n, path);
        field =
            protobuf_c_message_descriptor_get_field_by_name(message->descriptor, name);
        at = (char *)message + field->offset;
        if (path[n] == '\0') {
            return set_field(decoder, field, at, item, err);
        }
        inner = at;
        if (*inner == NULL) {
            *inner = vxd_message_new(decoder, field->descriptor, err);
        }
        if (*inner == NULL) {
            return VXD_RESOURCE_EXHAUSTED;
        }
        message = *inner;
        path += n + 1;
    }
}

/* --- items -------------------------------------------------------------------------------- */

enum vxd_status vxd_query_refuse(const struct vxd_query_keys *keys, const char *more,
                                 const struct vxd_query_item *item, struct vxd_err *err)
{
    char known[sizeof err->message] = "";
    size_t n = 0;

    for (size_t i = 0; i < keys->n_fields + keys->n_keys && n < sizeof known; i++) {
        const char *key =
            i < keys->n_fields ? keys->fields[i].key : keys->keys[i - keys->n_fields].key;

        n += (size_t)snprintf(known + n, sizeof known - n, ", %s", key);
    }
    return vxd_fail(err, VXD_INVALID_ARGUMENT, item->key,
                    "is no key of the query; known: format%s%s", known, more);
}

enum vxd_status vxd_query_take(struct vxd_decoder *decoder, const struct vxd_body *body,
                               size_t index, const struct vxd_query_keys *keys,
                               bool *is_known, struct vxd_err *err)
{
    const struct vxd_query_item *item = &body->query[index];

    *is_known = true;
    /* The transport has used this key already. */
    if (strcmp(item->key, "format") == 0) {
        return VXD_OK;
    }
    for (size_t i = 0; i < index; i++) {
        if (strcmp(body->query[i].key, item->key) == 0) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, item->key, "is given twice");
        }
    }
    for (size_t i = 0; i < keys->n_fields; i++) {
        if (strcmp(keys->fields[i].key, item->key) == 0) {
            return set_path(decoder, keys->message, keys->fields[i].field, item, err);
        }
    }
    for (size_t i = 0; i < keys->n_keys; i++) {
        if (strcmp(keys->keys[i].key, item->key) == 0) {
            return keys->keys[i].take(keys->query, item);
        }
    }
    *is_known = false;
    return VXD_OK;
}

enum vxd_status vxd_query_take_all(struct vxd_decoder *decoder,
                                   const struct vxd_body *body,
                                   const struct vxd_query_keys *keys, struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    for (size_t i = 0; i < body->n_query; i++) {
        bool is_known;

        VXD_TRY(vxd_query_take(decoder, body, i, keys, &is_known, err));
        if (!is_known) {
            VXD_TRY(vxd_query_refuse(keys, "", &body->query[i], err));
        }
    }
out:
    return status;
}
