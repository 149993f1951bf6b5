// SPDX-License-Identifier: Apache-2.0
/* Writes messages as JSON text. The walk calls itself for submessages: as deep as the
 * schema, which has no recursive message (a test checks that and bounds the depth),
 * whatever the content. */
#include "proto/wire/fields.h"

#include <math.h>
#include <stdlib.h>

#include "proto/base/base64.h"
#include "proto/wire/tensor_json.h"
#include "proto/wire/text.h"
#include "voxeld/v1/common.pb-c.h"

static void write_message(const ProtobufCMessage *message, struct vxd_text *text);

/* Writes a value for which JSON has no number, and -0, which readers would take for an
 * integer and lose the sign; false after that. True: the value is not written yet. */
static bool is_plain_number(double value, struct vxd_text *text)
{
    if (isnan(value)) {
        vxd_text_append(text, "\"NaN\"", 5);
    } else if (isinf(value)) {
        vxd_text_printf(text, value > 0 ? "\"Infinity\"" : "\"-Infinity\"");
    } else if (value == 0 && signbit(value)) {
        vxd_text_append(text, "-0.0", 4);
    } else {
        return true;
    }
    return false;
}

void vxd_text_json_double(struct vxd_text *text, double value)
{
    char number[32];

    if (!is_plain_number(value, text)) {
        return;
    }
    for (int digits = 15; digits <= 17; digits++) {
        (void)snprintf(number, sizeof number, "%.*g", digits, value);
        if (strtod(number, NULL) == value) {
            break;
        }
    }
    vxd_text_append(text, number, strlen(number));
}

/* A float above 1e-4 and below 1e6 as an integer: mantissa x 2^-shift. */
struct binary {
    uint64_t mantissa; /* below 2^24 */
    unsigned shift;    /* 4 to 37 */
    bool is_power;     /* of two: the float below is closer than the one above */
};

/* Rounds mantissa x 10^k / 2^shift, which has 9 digits at most, to an integer, ties to even. */
static uint64_t round_decimal(const struct binary *binary, uint64_t scale)
{
    const uint64_t exact = binary->mantissa * scale; /* below 2^64: scale <= 10^12 */
    const uint64_t half = (uint64_t)1 << (binary->shift - 1);
    const uint64_t rest = exact & (2 * half - 1);
    const uint64_t whole = exact >> binary->shift;

    return whole + (rest > half || (rest == half && (whole & 1) != 0) ? 1 : 0);
}

/* Whether reading digits / scale gives the float. */
static bool reads_back(const struct binary *binary, uint64_t digits, uint64_t scale)
{
    const uint64_t exact = binary->mantissa * scale;
    const uint64_t read = digits << binary->shift;
    const bool is_below = read < exact;
    const uint64_t twice = 2 * (is_below ? exact - read : read - exact);
    const uint64_t most = is_below && binary->is_power ? scale / 2 : scale;

    return twice < most || (twice == most && (binary->mantissa & 1) == 0);
}

/* Writes digits x 10^-k without zeros at the end. */
static void write_decimal(struct vxd_text *text, bool is_negative, uint64_t digits, int k)
{
    char number[32];
    char *at = number + sizeof number;
    const char *end = number + sizeof number;

    for (; k > 0 && digits % 10 == 0; k--) {
        digits /= 10;
    }
    for (int i = 0; i < k || digits > 0 || i == k; i++) {
        if (i == k && k > 0) {
            *--at = '.';
        }
        *--at = (char)('0' + digits % 10);
        digits /= 10;
    }
    if (is_negative) {
        *--at = '-';
    }
    vxd_text_append(text, at, (size_t)(end - at));
}

/* Writes what the loop of vxd_text_json_float writes, exactly, for most floats; false for the
 * others. */
static bool write_float(struct vxd_text *text, float value)
{
    const float size = fabsf(value);
    uint64_t scale = 100000; /* of 6 digits where the first one is that of ones */
    struct binary binary;
    uint32_t bits;
    float above = 10; /* powers of ten */
    double below = 1;
    int k = 5;

    if (!(size > 1e-4F && size < 1e6F)) {
        return false;
    }
    memcpy(&bits, &size, sizeof bits);
    binary.mantissa = (bits & 0x7fffff) | 0x800000;
    binary.shift = 150 - (bits >> 23);
    binary.is_power = binary.mantissa == 0x800000;
    while (size >= above) {
        scale /= 10;
        k--;
        above *= 10;
    }
    while ((double)size < below) {
        scale *= 10;
        k++;
        below /= 10;
    }
    for (int n_digits = 6; n_digits <= 9; n_digits++, scale *= 10, k++) {
        const uint64_t digits = round_decimal(&binary, scale);

        if (n_digits == 9 || reads_back(&binary, digits, scale)) {
            write_decimal(text, value < 0, digits, k);
            return true;
        }
    }
    return false;
}

void vxd_text_json_float(struct vxd_text *text, float value)
{
    char number[32];

    if (write_float(text, value)) {
        return;
    }

    if (!is_plain_number((double)value, text)) {
        return;
    }
    for (int digits = 6; digits <= 9; digits++) {
        (void)snprintf(number, sizeof number, "%.*g", digits, (double)value);
        if (strtof(number, NULL) == value) {
            break;
        }
    }
    vxd_text_append(text, number, strlen(number));
}

static void write_bytes(const ProtobufCBinaryData *bytes, struct vxd_text *text)
{
    size_t n_chars = vxd_base64_encoded_bytes(bytes->len);
    char *at;

    vxd_text_append(text, "\"", 1);
    at = vxd_text_reserve(text, n_chars);
    if (at != NULL) {
        vxd_base64_encode(bytes->data, bytes->len, at);
        text->n_bytes += n_chars;
    }
    vxd_text_append(text, "\"", 1);
}

static void write_enum(const ProtobufCEnumDescriptor *descriptor, int32_t number,
                       struct vxd_text *text)
{
    const ProtobufCEnumValue *value =
        protobuf_c_enum_descriptor_get_value(descriptor, number);

    if (value != NULL) {
        vxd_text_printf(text, "\"%s\"", value->name);
    } else {
        vxd_text_printf(text, "%ld", (long)number);
    }
}

/* Integers of 64 bits are strings, because readers in JavaScript have only doubles. */
static void write_integer(ProtobufCType type, const void *value, struct vxd_text *text)
{
    int32_t i32;
    uint32_t u32;
    int64_t i64;
    uint64_t u64;

    switch (type) {
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        memcpy(&u32, value, sizeof u32);
        vxd_text_printf(text, "%lu", (unsigned long)u32);
        break;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
        memcpy(&i64, value, sizeof i64);
        vxd_text_printf(text, "\"%lld\"", (long long)i64);
        break;
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        memcpy(&u64, value, sizeof u64);
        vxd_text_printf(text, "\"%llu\"", (unsigned long long)u64);
        break;
    default:
        memcpy(&i32, value, sizeof i32);
        vxd_text_printf(text, "%ld", (long)i32);
        break;
    }
}

static void write_value(const ProtobufCFieldDescriptor *field, const void *value,
                        struct vxd_text *text)
{
    protobuf_c_boolean truth;
    ProtobufCBinaryData bytes;
    const char *string;
    int32_t number;
    float f32;
    double f64;

    switch (field->type) {
    case PROTOBUF_C_TYPE_FLOAT:
        memcpy(&f32, value, sizeof f32);
        vxd_text_json_float(text, f32);
        break;
    case PROTOBUF_C_TYPE_DOUBLE:
        memcpy(&f64, value, sizeof f64);
        vxd_text_json_double(text, f64);
        break;
    case PROTOBUF_C_TYPE_BOOL:
        memcpy(&truth, value, sizeof truth);
        vxd_text_printf(text, truth ? "true" : "false");
        break;
    case PROTOBUF_C_TYPE_ENUM:
        memcpy(&number, value, sizeof number);
        write_enum(field->descriptor, number, text);
        break;
    case PROTOBUF_C_TYPE_STRING:
        string = vxd_field_pointer(value);
        string = string != NULL ? string : "";
        vxd_text_json_string(text, string, strlen(string));
        break;
    case PROTOBUF_C_TYPE_BYTES:
        memcpy(&bytes, value, sizeof bytes);
        write_bytes(&bytes, text);
        break;
    case PROTOBUF_C_TYPE_MESSAGE:
        write_message(vxd_field_pointer(value), text);
        break;
    default:
        write_integer(field->type, value, text);
        break;
    }
}

void vxd_json_write_field(const ProtobufCMessage *message,
                          const ProtobufCFieldDescriptor *field, struct vxd_text *text)
{
    const uint8_t *values;
    size_t n = vxd_field_values(message, field, &values);
    size_t value_bytes = vxd_field_value_bytes(field);

    if (field->label != PROTOBUF_C_LABEL_REPEATED) {
        write_value(field, values, text);
        return;
    }
    vxd_text_append(text, "[", 1);
    for (size_t i = 0; i < n && !text->failed; i++) {
        if (i > 0) {
            vxd_text_append(text, ",", 1);
        }
        write_value(field, values + i * value_bytes, text);
    }
    vxd_text_append(text, "]", 1);
}

/* Whether the mapping leaves the field out: proto3 knows no presence for plain scalars.
 */
static bool is_left_out(const ProtobufCMessage *message,
                        const ProtobufCFieldDescriptor *field)
{
    static const uint8_t zeros[8];
    const uint8_t *values;
    size_t n = vxd_field_values(message, field, &values);
    ProtobufCBinaryData bytes;
    const char *string;

    if (n == 0 || field->label == PROTOBUF_C_LABEL_REPEATED ||
        (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0) {
        return n == 0;
    }
    switch (field->type) {
    case PROTOBUF_C_TYPE_MESSAGE:
        return false;
    case PROTOBUF_C_TYPE_STRING:
        string = vxd_field_pointer(values);
        return string == NULL || string[0] == '\0';
    case PROTOBUF_C_TYPE_BYTES:
        memcpy(&bytes, values, sizeof bytes);
        return bytes.len == 0;
    default:
        return memcmp(values, zeros, vxd_field_value_bytes(field)) == 0;
    }
}

static void write_message(const ProtobufCMessage *message, struct vxd_text *text)
{
    const ProtobufCMessageDescriptor *descriptor = message->descriptor;
    const ProtobufCFieldDescriptor *as_values = NULL;
    char name[VXD_FIELD_NAME_BYTES];
    const char *comma = "";

    if (descriptor == &voxeld__v1__tensor__descriptor &&
        vxd_tensor_fits_values((const Voxeld__V1__Tensor *)message)) {
        as_values = protobuf_c_message_descriptor_get_field_by_name(descriptor, "data");
    }
    vxd_text_append(text, "{", 1);
    for (unsigned i = 0; i < descriptor->n_fields && !text->failed; i++) {
        const ProtobufCFieldDescriptor *field = &descriptor->fields[i];

        if (is_left_out(message, field)) {
            continue;
        }
        if (field == as_values) {
            vxd_text_printf(text, "%s\"values\":", comma);
            vxd_tensor_write_values((const Voxeld__V1__Tensor *)message, text);
        } else {
            vxd_text_printf(text, "%s\"%s\":", comma, vxd_field_json_name(field, name));
            vxd_json_write_field(message, field, text);
        }
        comma = ",";
    }
    vxd_text_append(text, "}", 1);
}

enum vxd_status vxd_json_write(const ProtobufCMessage *message, struct vxd_text *text,
                               struct vxd_err *err)
{
    write_message(message, text);
    if (text->failed) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                        "no memory for the JSON text (%zu bytes so far)", text->n_bytes);
    }
    return VXD_OK;
}
