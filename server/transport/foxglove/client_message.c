// SPDX-License-Identifier: Apache-2.0
/* Reads what a client says: a JSON object with `op`. We offer no capabilities, so a client has
 * subscriptions to make and to end, and nothing else. */
#include <jansson.h>
#include <string.h>

#include "server/transport/foxglove/foxglove_internal.h"

/* What needs a capability that we do not offer. */
static const struct {
    const char *op;
    const char *capability;
} not_offered[] = {
    {"advertise", "clientPublish"},
    {"unadvertise", "clientPublish"},
    {"getParameters", "parameters"},
    {"setParameters", "parameters"},
    {"subscribeParameterUpdates", "parametersSubscribe"},
    {"unsubscribeParameterUpdates", "parametersSubscribe"},
    {"subscribeConnectionGraph", "connectionGraph"},
    {"unsubscribeConnectionGraph", "connectionGraph"},
    {"fetchAsset", "assets"},
};

static bool read_id(const json_t *value, uint32_t *out)
{
    json_int_t number = json_integer_value(value);

    if (!json_is_integer(value) || number < 0 || number > UINT32_MAX) {
        return false;
    }
    *out = (uint32_t)number;
    return true;
}

static enum vxd_status check_list(const json_t *list, const char *field,
                                  struct vxd_err *err)
{
    if (!json_is_array(list)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, field, "is required, as an array");
    }
    if (json_array_size(list) > VXD_FOXGLOVE_MOST_SUBSCRIPTIONS) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, field, "has %zu items, at most %d",
                        json_array_size(list), VXD_FOXGLOVE_MOST_SUBSCRIPTIONS);
    }
    return VXD_OK;
}

static enum vxd_status read_subscribe(const json_t *object,
                                      struct vxd_foxglove_command *out,
                                      struct vxd_err *err)
{
    const json_t *list = json_object_get(object, "subscriptions");
    enum vxd_status status = check_list(list, "subscriptions", err);

    out->op = VXD_FOXGLOVE_SUBSCRIBE;
    for (size_t i = 0; status == VXD_OK && i < json_array_size(list); i++) {
        const json_t *item = json_array_get(list, i);

        if (!read_id(json_object_get(item, "id"), &out->ids[i]) ||
            !read_id(json_object_get(item, "channelId"), &out->channels[i])) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, "subscriptions",
                            "item %zu needs id and channelId, whole numbers below 2^32",
                            i);
        }
        out->n++;
    }
    return status;
}

static enum vxd_status read_unsubscribe(const json_t *object,
                                        struct vxd_foxglove_command *out,
                                        struct vxd_err *err)
{
    const json_t *list = json_object_get(object, "subscriptionIds");
    enum vxd_status status = check_list(list, "subscriptionIds", err);

    out->op = VXD_FOXGLOVE_UNSUBSCRIBE;
    for (size_t i = 0; status == VXD_OK && i < json_array_size(list); i++) {
        if (!read_id(json_array_get(list, i), &out->ids[i])) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, "subscriptionIds",
                            "item %zu is no whole number below 2^32", i);
        }
        out->n++;
    }
    return status;
}

static enum vxd_status read_op(const json_t *object, struct vxd_foxglove_command *out,
                               struct vxd_err *err)
{
    const char *op = json_string_value(json_object_get(object, "op"));

    if (op == NULL) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "op",
                        "a message is a JSON object with op, a string");
    }
    if (strcmp(op, "subscribe") == 0) {
        return read_subscribe(object, out, err);
    }
    if (strcmp(op, "unsubscribe") == 0) {
        return read_unsubscribe(object, out, err);
    }
    for (size_t i = 0; i < sizeof not_offered / sizeof not_offered[0]; i++) {
        if (strcmp(op, not_offered[i].op) == 0) {
            return vxd_fail(
                err, VXD_UNIMPLEMENTED, "op",
                "%s needs the capability %s, which this server does not offer", op,
                not_offered[i].capability);
        }
    }
    return vxd_fail(err, VXD_INVALID_ARGUMENT, "op",
                    "'%.40s' is not known; subscribe and unsubscribe are", op);
}

enum vxd_status vxd_foxglove_read(const uint8_t *bytes, size_t n_bytes,
                                  struct vxd_foxglove_command *out, struct vxd_err *err)
{
    json_error_t why;
    json_t *object =
        json_loadb((const char *)bytes, n_bytes, JSON_REJECT_DUPLICATES, &why);
    enum vxd_status status;

    out->n = 0;
    if (object == NULL) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, NULL, "a message is no JSON: %.100s",
                        why.text);
    }
    status = read_op(object, out, err);
    json_decref(object);
    return status;
}
