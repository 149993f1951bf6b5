// SPDX-License-Identifier: Apache-2.0
#include "server/model/json_value.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum vxd_status vxd_json_fail(const struct vxd_json *json, const char *path,
                              const char *format, ...)
{
    char message[sizeof json->err->message];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(message, sizeof message, format, args);
    va_end(args);
    return vxd_fail(json->err, VXD_INVALID_ARGUMENT, path, "%.70s: %s", json->file,
                    message);
}

enum vxd_status vxd_json_no_memory(const struct vxd_json *json)
{
    return vxd_fail(json->err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for %.70s",
                    json->file);
}

bool vxd_json_is_memory(const json_error_t *error)
{
    return error->text[0] == '\0' || json_error_code(error) == json_error_out_of_memory;
}

const char *vxd_json_kind(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "an array";
    case JSON_STRING:
        return "a string";
    case JSON_INTEGER:
    case JSON_REAL:
        return "a number";
    case JSON_TRUE:
    case JSON_FALSE:
        return "a boolean";
    case JSON_NULL:
        break;
    }
    return "null";
}

enum vxd_status vxd_json_fail_type(const struct vxd_json *json, const char *path,
                                   const char *expected, const json_t *value)
{
    return vxd_json_fail(json, path, "\"%s\" must be %s, not %s", path, expected,
                         vxd_json_kind(value));
}

void vxd_json_join(char out[VXD_JSON_PATH_BYTES], const char *path, const char *name)
{
    (void)snprintf(out, VXD_JSON_PATH_BYTES, "%s%s%.40s", path,
                   path[0] != '\0' ? "." : "", name);
}

enum vxd_status vxd_json_object(const struct vxd_json *json, const char *path,
                                const json_t *value, const struct vxd_json_key *keys,
                                size_t n_keys, void *to)
{
    const char *name;
    const json_t *member;
    json_t *object = (json_t *)(uintptr_t)value; /* iterating does not change it */

    if (!json_is_object(value)) {
        return path[0] != '\0'
                   ? vxd_json_fail_type(json, path, "an object", value)
                   : vxd_json_fail(json, path, "the file must be one object, not %s",
                                   vxd_json_kind(value));
    }
    json_object_foreach(object, name, member)
    {
        char at[VXD_JSON_PATH_BYTES];
        enum vxd_status status;
        size_t i = 0;

        vxd_json_join(at, path, name);
        while (i < n_keys && strcmp(keys[i].name, name) != 0) {
            i++;
        }
        if (i == n_keys) {
            return vxd_json_fail(json, at, "\"%s\" is no key that belongs here", at);
        }
        status = keys[i].read(json, at, member, to);
        if (status != VXD_OK) {
            return status;
        }
    }
    return VXD_OK;
}

enum vxd_status vxd_json_bool(const struct vxd_json *json, const char *path,
                              const json_t *value, bool *out)
{
    if (!json_is_boolean(value)) {
        return vxd_json_fail_type(json, path, "true or false", value);
    }
    *out = json_is_true(value);
    return VXD_OK;
}

enum vxd_status vxd_json_int(const struct vxd_json *json, const char *path,
                             const json_t *value, int64_t low, int64_t high, int *out)
{
    json_int_t number;

    if (!json_is_integer(value)) {
        return vxd_json_fail_type(json, path, "a whole number", value);
    }
    number = json_integer_value(value);
    if (number < low || number > high) {
        return vxd_json_fail(json, path,
                             "\"%s\" is %" JSON_INTEGER_FORMAT ", it must be %" PRId64
                             " to %" PRId64,
                             path, number, low, high);
    }
    *out = (int)number;
    return VXD_OK;
}

enum vxd_status vxd_json_number(const struct vxd_json *json, const char *path,
                                const json_t *value, double low, double high, double *out)
{
    double number;

    if (!json_is_number(value)) {
        return vxd_json_fail_type(json, path, "a number", value);
    }
    number = json_number_value(value);
    if (!isfinite(number) || number < low || number > high) {
        return vxd_json_fail(json, path, "\"%s\" is %g, it must be %g to %g", path,
                             number, low, high);
    }
    *out = number;
    return VXD_OK;
}

enum vxd_status vxd_json_text(const struct vxd_json *json, const char *path,
                              const json_t *value, char *out, size_t n_bytes)
{
    size_t n;

    if (!json_is_string(value)) {
        return vxd_json_fail_type(json, path, "a string", value);
    }
    /* jansson refuses \u0000, so the length is strlen's. */
    n = json_string_length(value);
    if (n < 1 || n >= n_bytes) {
        return vxd_json_fail(json, path, "\"%s\" has %zu bytes, it must have 1 to %zu",
                             path, n, n_bytes - 1);
    }
    memcpy(out, json_string_value(value), n + 1);
    return VXD_OK;
}

enum vxd_status vxd_json_choice(const struct vxd_json *json, const char *path,
                                const json_t *value, const char *const *names, int *out)
{
    const char *text = json_string_value(value);
    char known[160] = "";
    size_t n = 0;

    if (text == NULL) {
        return vxd_json_fail_type(json, path, "a string", value);
    }
    for (int i = 0; names[i] != NULL; i++) {
        if (strcmp(names[i], text) == 0) {
            *out = i;
            return VXD_OK;
        }
        (void)snprintf(known + n, sizeof known - n, "%s%s", i > 0 ? ", " : "", names[i]);
        n = strlen(known);
    }
    return vxd_json_fail(json, path, "\"%s\" is \"%.30s\", it must be one of: %s", path,
                         text, known);
}

enum vxd_status vxd_json_numbers(const struct vxd_json *json, const char *path,
                                 const json_t *value, size_t n, double low, double high,
                                 double *out)
{
    if (!json_is_array(value)) {
        return vxd_json_fail_type(json, path, "an array", value);
    }
    if (json_array_size(value) != n) {
        return vxd_json_fail(json, path, "\"%s\" has %zu items, it must have %zu", path,
                             json_array_size(value), n);
    }
    for (size_t i = 0; i < n; i++) {
        enum vxd_status status =
            vxd_json_number(json, path, json_array_get(value, i), low, high, &out[i]);

        if (status != VXD_OK) {
            return status;
        }
    }
    return VXD_OK;
}

enum vxd_status vxd_json_ints3(const struct vxd_json *json, const char *path,
                               const json_t *value, int low, int high, int out[3])
{
    if (!json_is_array(value)) {
        enum vxd_status status = vxd_json_int(json, path, value, low, high, &out[0]);

        out[1] = out[0];
        out[2] = out[0];
        return status;
    }
    if (json_array_size(value) != 3) {
        return vxd_json_fail(json, path,
                             "\"%s\" has %zu items, it must have 3, or be one number",
                             path, json_array_size(value));
    }
    for (size_t i = 0; i < 3; i++) {
        enum vxd_status status =
            vxd_json_int(json, path, json_array_get(value, i), low, high, &out[i]);

        if (status != VXD_OK) {
            return status;
        }
    }
    return VXD_OK;
}
