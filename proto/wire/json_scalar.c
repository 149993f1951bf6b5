// SPDX-License-Identifier: Apache-2.0
#include "proto/wire/json_scalar.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/base64.h"

/* Prints the value of the text, short enough for a message. */
static void describe(const json_t *json, char out[48])
{
    const char *string = json_string_value(json);
    size_t n = 0;

    switch (json_typeof(json)) {
    case JSON_OBJECT:
        (void)snprintf(out, 48, "an object");
        break;
    case JSON_ARRAY:
        (void)snprintf(out, 48, "an array");
        break;
    case JSON_STRING:
        out[n++] = '"';
        for (; *string != '\0' && n < 40; string++) {
            out[n++] = vxd_json_printable(*string);
        }
        (void)snprintf(out + n, 48 - n, "%s\"", *string != '\0' ? "..." : "");
        break;
    case JSON_INTEGER:
        (void)snprintf(out, 48, "%lld", (long long)json_integer_value(json));
        break;
    case JSON_REAL:
        (void)snprintf(out, 48, "%.17g", json_real_value(json));
        break;
    case JSON_TRUE:
        (void)snprintf(out, 48, "true");
        break;
    case JSON_FALSE:
        (void)snprintf(out, 48, "false");
        break;
    case JSON_NULL:
        (void)snprintf(out, 48, "null");
        break;
    }
}

enum vxd_status vxd_json_fail_kind(struct vxd_json_reader *r, const json_t *json,
                                   const char *expected)
{
    char got[48];

    describe(json, got);
    return vxd_fail(r->err, VXD_INVALID_ARGUMENT, r->path, "is %s; expected %s", got,
                    expected);
}

static const char *skip_digits(const char *s)
{
    while (*s >= '0' && *s <= '9') {
        s++;
    }
    return s;
}

/* Whether s is one JSON number: strtod alone would take hex, "inf", blanks and a plus. */
static bool is_number_text(const char *s)
{
    const char *digits = s + (*s == '-');

    s = skip_digits(digits);
    if (s == digits || (*digits == '0' && s > digits + 1)) {
        return false;
    }
    if (*s == '.') {
        digits = s + 1;
        s = skip_digits(digits);
        if (s == digits) {
            return false;
        }
    }
    if (*s == 'e' || *s == 'E') {
        digits = s + 1;
        digits += *digits == '+' || *digits == '-';
        s = skip_digits(digits);
        if (s == digits) {
            return false;
        }
    }
    return *s == '\0';
}

struct integer {
    bool is_negative;
    uint64_t magnitude;
};

/* Converts to an integer; false for fractions, NaN and what 64 bits cannot hold. */
static bool integer_of_double(double value, struct integer *out)
{
    double magnitude = fabs(value);

    if (!(magnitude < 18446744073709551616.0) || trunc(magnitude) != magnitude) {
        return false;
    }
    out->is_negative = value < 0;
    out->magnitude = (uint64_t)magnitude;
    return true;
}

static bool integer_of_text(const char *s, struct integer *out)
{
    const char *digits = s + (*s == '-');
    uint64_t magnitude = 0;

    if (!is_number_text(s)) {
        return false;
    }
    if (*skip_digits(digits) != '\0') {
        return integer_of_double(strtod(s, NULL), out); /* "1.0", "1e2" */
    }
    for (const char *c = digits; *c != '\0'; c++) {
        if (__builtin_mul_overflow(magnitude, 10, &magnitude) ||
            __builtin_add_overflow(magnitude, (uint64_t)(*c - '0'), &magnitude)) {
            return false;
        }
    }
    out->is_negative = *s == '-' && magnitude > 0;
    out->magnitude = magnitude;
    return true;
}

static bool integer_of_json(const json_t *json, struct integer *out)
{
    json_int_t value = json_integer_value(json);

    if (json_is_integer(json)) {
        out->is_negative = value < 0;
        out->magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
        return true;
    }
    if (json_is_real(json)) {
        return integer_of_double(json_real_value(json), out);
    }
    return json_is_string(json) && integer_of_text(json_string_value(json), out);
}

/* min_magnitude is how far below zero the type reaches. */
static enum vxd_status read_integer(struct vxd_json_reader *r, const json_t *json,
                                    uint64_t min_magnitude, uint64_t max, void *slot,
                                    size_t slot_bytes)
{
    struct integer value;
    uint64_t bits;
    uint32_t low_bits;
    char expected[80];

    if (!integer_of_json(json, &value) ||
        value.magnitude > (value.is_negative ? min_magnitude : max)) {
        (void)snprintf(expected, sizeof expected, "an integer from %s%llu to %llu",
                       min_magnitude > 0 ? "-" : "", (unsigned long long)min_magnitude,
                       (unsigned long long)max);
        return vxd_json_fail_kind(r, json, expected);
    }
    bits = value.is_negative ? 0 - value.magnitude : value.magnitude;
    if (slot_bytes == sizeof low_bits) {
        low_bits = (uint32_t)(bits & UINT32_MAX);
        memcpy(slot, &low_bits, sizeof low_bits);
    } else {
        memcpy(slot, &bits, sizeof bits);
    }
    return VXD_OK;
}

static bool double_of_json(const json_t *json, double *out)
{
    const char *string = json_string_value(json);

    if (json_is_number(json)) {
        *out = json_number_value(json);
        return true;
    }
    if (string == NULL) {
        return false;
    }
    if (strcmp(string, "NaN") == 0) {
        *out = (double)NAN;
    } else if (strcmp(string, "Infinity") == 0) {
        *out = (double)INFINITY;
    } else if (strcmp(string, "-Infinity") == 0) {
        *out = -(double)INFINITY;
    } else {
        *out = is_number_text(string) ? strtod(string, NULL) : (double)INFINITY;
        return !isinf(*out);
    }
    return true;
}

static enum vxd_status read_double(struct vxd_json_reader *r, const json_t *json,
                                   void *slot)
{
    double value;

    if (!double_of_json(json, &value)) {
        return vxd_json_fail_kind(r, json,
                                  "a number, \"NaN\", \"Infinity\" or \"-Infinity\"");
    }
    memcpy(slot, &value, sizeof value);
    return VXD_OK;
}

static enum vxd_status read_float(struct vxd_json_reader *r, const json_t *json,
                                  void *slot)
{
    /* Up to halfway to the next power of two everything rounds to FLT_MAX. */
    const double limit = (double)FLT_MAX + ldexp(1, 103);
    double value;
    float rounded;

    if (!double_of_json(json, &value) || (!isinf(value) && fabs(value) >= limit)) {
        return vxd_json_fail_kind(
            r, json, "a number within float32, \"NaN\", \"Infinity\" or \"-Infinity\"");
    }
    rounded = (float)value;
    memcpy(slot, &rounded, sizeof rounded);
    return VXD_OK;
}

static enum vxd_status fail_enum(struct vxd_json_reader *r,
                                 const ProtobufCEnumDescriptor *descriptor,
                                 const json_t *json)
{
    char expected[200] = "";
    size_t n = 0;

    for (unsigned i = 0; i < descriptor->n_values && n < sizeof expected; i++) {
        int added = snprintf(expected + n, sizeof expected - n, "%s%s",
                             i > 0 ? ", " : "one of ", descriptor->values[i].name);

        n += added > 0 ? (size_t)added : 0;
    }
    return vxd_json_fail_kind(r, json, expected);
}

/* Proto3 would keep unknown numbers. No method of ours can handle one, so the reader
 * refuses it and names it. */
static enum vxd_status read_enum(struct vxd_json_reader *r,
                                 const ProtobufCEnumDescriptor *descriptor,
                                 const json_t *json, void *slot)
{
    const ProtobufCEnumValue *value = NULL;
    struct integer number;
    int32_t n;

    if (json_is_string(json)) {
        value = protobuf_c_enum_descriptor_get_value_by_name(descriptor,
                                                             json_string_value(json));
    } else if (integer_of_json(json, &number) && number.magnitude <= INT32_MAX) {
        n = (int32_t)number.magnitude;
        value =
            protobuf_c_enum_descriptor_get_value(descriptor, number.is_negative ? -n : n);
    }
    if (value == NULL) {
        return fail_enum(r, descriptor, json);
    }
    n = value->value;
    memcpy(slot, &n, sizeof n);
    return VXD_OK;
}

static enum vxd_status read_string(struct vxd_json_reader *r, const json_t *json,
                                   void *slot)
{
    size_t n = json_string_length(json); /* no NUL among them: jansson refuses \u0000 */
    char *copy;

    if (!json_is_string(json)) {
        return vxd_json_fail_kind(r, json, "a string");
    }
    copy = vxd_decoder_alloc(r->decoder, n + 1, r->err);
    if (copy == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    memcpy(copy, json_string_value(json), n + 1);
    memcpy(slot, &copy, sizeof copy);
    return VXD_OK;
}

static enum vxd_status read_bytes(struct vxd_json_reader *r, const json_t *json,
                                  void *slot)
{
    const char *text = json_string_value(json);
    size_t n_chars = json_string_length(json);
    ProtobufCBinaryData bytes = {0};

    if (text == NULL || !vxd_base64_decoded_bytes(text, n_chars, &bytes.len)) {
        return vxd_json_fail_kind(r, json, "base64");
    }
    if (bytes.len > VXD_JSON_MAX_BASE64_BYTES) {
        return vxd_fail(r->err, VXD_RESOURCE_EXHAUSTED, r->path,
                        "%zu bytes as base64, at most %d are read; send them as protobuf "
                        "or as a file",
                        bytes.len, VXD_JSON_MAX_BASE64_BYTES);
    }
    if (bytes.len > 0) {
        bytes.data = vxd_decoder_alloc(r->decoder, bytes.len, r->err);
        if (bytes.data == NULL) {
            return VXD_RESOURCE_EXHAUSTED;
        }
        if (!vxd_base64_decode(text, n_chars, bytes.data)) {
            return vxd_json_fail_kind(r, json, "base64");
        }
    }
    memcpy(slot, &bytes, sizeof bytes);
    return VXD_OK;
}

enum vxd_status vxd_json_read_scalar(struct vxd_json_reader *r,
                                     const ProtobufCFieldDescriptor *field,
                                     const json_t *json, void *slot)
{
    protobuf_c_boolean truth = json_is_true(json);

    switch (field->type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
        return read_integer(r, json, (uint64_t)INT32_MAX + 1, INT32_MAX, slot, 4);
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        return read_integer(r, json, 0, UINT32_MAX, slot, 4);
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
        return read_integer(r, json, (uint64_t)INT64_MAX + 1, INT64_MAX, slot, 8);
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        return read_integer(r, json, 0, UINT64_MAX, slot, 8);
    case PROTOBUF_C_TYPE_FLOAT:
        return read_float(r, json, slot);
    case PROTOBUF_C_TYPE_DOUBLE:
        return read_double(r, json, slot);
    case PROTOBUF_C_TYPE_BOOL:
        if (!json_is_boolean(json)) {
            return vxd_json_fail_kind(r, json, "true or false");
        }
        memcpy(slot, &truth, sizeof truth);
        return VXD_OK;
    case PROTOBUF_C_TYPE_ENUM:
        return read_enum(r, field->descriptor, json, slot);
    case PROTOBUF_C_TYPE_STRING:
        return read_string(r, json, slot);
    case PROTOBUF_C_TYPE_BYTES:
        return read_bytes(r, json, slot);
    case PROTOBUF_C_TYPE_MESSAGE:
        break;
    }
    return vxd_fail(r->err, VXD_INTERNAL, r->path, "a message is no scalar");
}
