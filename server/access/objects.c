// SPDX-License-Identifier: Apache-2.0
#include "server/access/objects.h"

#include <string.h>

/* What is at a field: one element, or those of a list. A message that is not there, and the other
 * members of a oneof, have none. */
struct elements {
    const ProtobufCFieldDescriptor *field;
    void **at;
    size_t *n_in_list; /* NULL: not a list */
    size_t n;
};

static struct elements elements_of(const ProtobufCMessage *message, uint32_t tag)
{
    struct elements e = {0};
    uint8_t *base = (uint8_t *)(uintptr_t)message;

    e.field = message != NULL
                  ? protobuf_c_message_descriptor_get_field(message->descriptor, tag)
                  : NULL;
    if (e.field == NULL) {
        return e;
    }
    e.at = (void **)(void *)(base + e.field->offset);
    if (e.field->label == PROTOBUF_C_LABEL_REPEATED) {
        e.n_in_list = (size_t *)(void *)(base + e.field->quantifier_offset);
        e.n = *e.n_in_list;
        e.at = *(void ***)(void *)e.at;
    } else if ((e.field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0) {
        e.n = *(const uint32_t *)(const void *)(base + e.field->quantifier_offset) == tag;
    } else {
        e.n = *e.at != NULL ? 1 : 0;
    }
    return e;
}

static enum vxd_status check_names(const struct vxd_principal *principal,
                                   const struct vxd_object_field *object,
                                   const ProtobufCMessage *message, uint32_t tag,
                                   const char *within, struct vxd_err *err)
{
    struct elements names = elements_of(message, tag);
    char field[96];

    if (names.field == NULL) {
        return VXD_OK;
    }
    (void)snprintf(field, sizeof field, "%s%s%s", within, within[0] != '\0' ? "." : "",
                   names.field->name);
    for (size_t i = 0; i < names.n; i++) {
        const char *name = names.at[i];
        enum vxd_status status;

        if (name[0] == '\0' && object->fallback != 0) {
            struct elements other = elements_of(message, object->fallback);

            name = other.n > 0 ? other.at[0] : name;
        }
        status = name[0] != '\0'
                     ? vxd_auth_require_name(principal, object->noun, name, field, err)
                     : VXD_OK;
        if (status != VXD_OK) {
            return status;
        }
    }
    return VXD_OK;
}

enum vxd_status vxd_objects_check(const struct vxd_principal *principal,
                                  const ProtobufCMessage *request, struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    for (size_t i = 0; principal->rules != NULL && i < vxd_n_request_objects; i++) {
        const struct vxd_object_field *object = &vxd_request_objects[i];
        struct elements messages;

        if (object->message != request->descriptor) {
            continue;
        }
        if (object->path[1] == 0) {
            VXD_TRY(check_names(principal, object, request, object->path[0], "", err));
            continue;
        }
        messages = elements_of(request, object->path[0]);
        for (size_t j = 0; j < messages.n; j++) {
            VXD_TRY(check_names(principal, object, messages.at[j], object->path[1],
                                messages.field->name, err));
        }
    }
out:
    return status;
}

static bool any_name(const struct vxd_object_field *object,
                     const ProtobufCMessage *message, uint32_t tag,
                     bool (*is)(void *user, const char *name), void *user)
{
    struct elements names = elements_of(message, tag);

    for (size_t i = 0; i < names.n; i++) {
        const char *name = names.at[i];

        if (name[0] == '\0' && object->fallback != 0) {
            struct elements other = elements_of(message, object->fallback);

            name = other.n > 0 ? other.at[0] : name;
        }
        if (name[0] != '\0' && is(user, name)) {
            return true;
        }
    }
    return false;
}

bool vxd_objects_any(const ProtobufCMessage *request, enum vxd_noun noun,
                     bool (*is)(void *user, const char *name), void *user)
{
    for (size_t i = 0; request != NULL && i < vxd_n_request_objects; i++) {
        const struct vxd_object_field *object = &vxd_request_objects[i];
        struct elements messages;

        if (object->message != request->descriptor || object->noun != noun) {
            continue;
        }
        if (object->path[1] == 0) {
            if (any_name(object, request, object->path[0], is, user)) {
                return true;
            }
            continue;
        }
        messages = elements_of(request, object->path[0]);
        for (size_t j = 0; j < messages.n; j++) {
            if (any_name(object, messages.at[j], object->path[1], is, user)) {
                return true;
            }
        }
    }
    return false;
}

static bool is_allowed(const struct vxd_principal *principal,
                       const struct vxd_object_field *object, const void *element)
{
    const char *name = element;

    if (object->path[1] != 0) {
        struct elements names = elements_of(element, object->path[1]);

        name = names.n > 0 ? names.at[0] : "";
    }
    return vxd_rules_allow_name(principal->rules, object->noun, name);
}

void vxd_objects_filter(const struct vxd_principal *principal, ProtobufCMessage *reply)
{
    for (size_t i = 0; principal->rules != NULL && i < vxd_n_reply_objects; i++) {
        const struct vxd_object_field *object = &vxd_reply_objects[i];
        struct elements list;
        size_t n_kept = 0;

        if (object->message != reply->descriptor) {
            continue;
        }
        list = elements_of(reply, object->path[0]);
        for (size_t j = 0; j < list.n; j++) {
            if (is_allowed(principal, object, list.at[j])) {
                list.at[n_kept++] = list.at[j];
            }
        }
        if (list.n_in_list != NULL) {
            *list.n_in_list = n_kept;
        }
    }
}
