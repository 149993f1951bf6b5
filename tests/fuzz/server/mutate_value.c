// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/server/mutate_value.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "proto/wire/wire.h"

enum {
    ROOM_BYTES = 256,   /* most that one mutation adds to a text or an array of bytes */
    LONG_BYTES = 70000, /* past every limit on names, and one on bytes */
};

uint64_t fuzz_random_next(struct fuzz_random *random)
{
    uint64_t z = (random->state += UINT64_C(0x9E3779B97F4A7C15));

    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

size_t fuzz_random_below(struct fuzz_random *random, size_t n)
{
    return (size_t)(fuzz_random_next(random) % n);
}

void *fuzz_alloc(size_t n_bytes)
{
    void *block = malloc(n_bytes > 0 ? n_bytes : 1);

    if (block == NULL) {
        abort();
    }
    return block;
}

ProtobufCMessage *fuzz_copy_message(const ProtobufCMessage *message)
{
    size_t n_bytes = protobuf_c_message_get_packed_size(message);
    uint8_t *bytes = fuzz_alloc(n_bytes);
    ProtobufCMessage *copy;

    (void)protobuf_c_message_pack(message, bytes);
    copy = protobuf_c_message_unpack(message->descriptor, NULL, n_bytes, bytes);
    free(bytes);
    if (copy == NULL) {
        abort();
    }
    return copy;
}

/* The first n_bytes of `from` and a NUL. */
static char *copy_text(const char *from, size_t n_bytes)
{
    char *text = fuzz_alloc(n_bytes + 1);

    memcpy(text, from, n_bytes);
    text[n_bytes] = '\0';
    return text;
}

void fuzz_value_clear(const ProtobufCFieldDescriptor *field, void *value)
{
    void *pointer;
    ProtobufCBinaryData bytes;

    switch (field->type) {
    case PROTOBUF_C_TYPE_STRING:
        pointer = vxd_field_pointer(value);
        if (pointer != field->default_value) {
            free(pointer);
        }
        break;
    case PROTOBUF_C_TYPE_BYTES:
        memcpy(&bytes, value, sizeof bytes);
        free(bytes.data);
        break;
    case PROTOBUF_C_TYPE_MESSAGE:
        protobuf_c_message_free_unpacked(vxd_field_pointer(value), NULL);
        break;
    default:
        break;
    }
}

void fuzz_value_copy(const ProtobufCFieldDescriptor *field, void *value, const void *from)
{
    void *pointer;
    ProtobufCBinaryData bytes;

    switch (field->type) {
    case PROTOBUF_C_TYPE_STRING:
        pointer = vxd_field_pointer(from);
        pointer = copy_text(pointer != NULL ? pointer : "",
                            pointer != NULL ? strlen(pointer) : 0);
        memcpy(value, &pointer, sizeof pointer);
        break;
    case PROTOBUF_C_TYPE_BYTES:
        memcpy(&bytes, from, sizeof bytes);
        pointer = fuzz_alloc(bytes.len);
        if (bytes.len > 0) {
            memcpy(pointer, bytes.data, bytes.len);
        }
        bytes.data = pointer;
        memcpy(value, &bytes, sizeof bytes);
        break;
    case PROTOBUF_C_TYPE_MESSAGE:
        pointer = fuzz_copy_message(vxd_field_pointer(from));
        memcpy(value, &pointer, sizeof pointer);
        break;
    default:
        memcpy(value, from, vxd_field_value_bytes(field));
        break;
    }
}

static const uint64_t integers[] = {
    0,
    1,
    2,
    3,
    4,
    7,
    8,
    16,
    63,
    64,
    65,
    100,
    255,
    256,
    1000,
    1024,
    4096,
    65535,
    65536,
    1000000,
    1u << 20,
    (1u << 20) + 1,
    1u << 21,
    INT32_MAX,
    (uint64_t)INT32_MAX + 1,
    UINT32_MAX,
    (uint64_t)UINT32_MAX + 1,
    UINT64_C(1) << 33, /* sizes that overflow once multiplied */
    UINT64_C(1) << 61,
    UINT64_C(1) << 62,
    UINT64_C(6148914691236517206), /* 2^64 / 3, rounded up */
    INT64_MAX,
    (uint64_t)INT64_MAX + 1,
    UINT64_MAX - 1,
    UINT64_MAX,
};

static const double reals[] = {
    0.0,        -0.0,       1.0,          -1.0,      0.5,
    0.1,        1e-3,       1e-10,        0x1p-126,  0x1p-149,
    0x1p-1074,  0x1p-1022,  1e10,         1048576.0, 1048577.0,
    -1048576.0, 1e38,       3.5e38,       0x1p1023,  -1e308,
    1e300,      2147483647, 4294967296.0, 9.3e18,    0.7071067811865476,
    0.99999999, 1.0000001,  16777217.0,
};

static uint64_t change_integer(struct fuzz_random *random, uint64_t value)
{
    switch (fuzz_random_below(random, 5)) {
    case 0:
        return value + fuzz_random_below(random, 9) - 4;
    case 1:
        return value ^ UINT64_C(1) << fuzz_random_below(random, 64);
    case 2:
        return fuzz_random_next(random) >> fuzz_random_below(random, 64);
    default:
        value = integers[fuzz_random_below(random, sizeof integers / sizeof integers[0])];
        return fuzz_random_below(random, 4) == 0 ? 0 - value : value;
    }
}

static double change_real(struct fuzz_random *random, double value)
{
    uint64_t bits;

    switch (fuzz_random_below(random, 8)) {
    case 0:
        return value * 2;
    case 1:
        return -value;
    case 2:
        return value + (double)fuzz_random_below(random, 9) - 4;
    case 3:
        memcpy(&bits, &value, sizeof bits);
        bits ^= UINT64_C(1) << fuzz_random_below(random, 64);
        memcpy(&value, &bits, sizeof value);
        return value;
    case 4:
        return (double)NAN;
    case 5:
        return fuzz_random_below(random, 2) == 0 ? (double)INFINITY : (double)-INFINITY;
    default:
        return reals[fuzz_random_below(random, sizeof reals / sizeof reals[0])];
    }
}

static int32_t change_enum(struct fuzz_random *random,
                           const ProtobufCEnumDescriptor *descriptor)
{
    static const int32_t unknown[] = {-1, 255, INT32_MIN, INT32_MAX};
    int32_t last = descriptor->values[descriptor->n_values - 1].value;
    size_t choice = fuzz_random_below(random, 12);

    if (choice < sizeof unknown / sizeof unknown[0]) {
        return unknown[choice];
    }
    if (choice == sizeof unknown / sizeof unknown[0]) {
        return last + 1;
    }
    return descriptor->values[fuzz_random_below(random, descriptor->n_values)].value;
}

static const char *const texts[] = {
    "",
    "x",
    "y",
    "z",
    "dt",
    "a",
    "warning",
    "0",
    "-1",
    "1e999",
    "NaN",
    "Infinity",
    "null",
    "true",
    "{}",
    "[]",
    "\"\"",
    "..",
    "../../etc",
    "a/b",
    "A B",
    "%s%n",
    "\x01",
    "\xc3\xa9",
    "\xff",
    "\xc3",
    "\xed\xa0\x80",
    "?",
    "&",
    "=",
    "%00",
    "%",
    "\\u0000",
    "\"",
    "18446744073709551615",
    "18446744073709551616",
    "-9223372036854775809",
    "\xf0\x9f\xa6\x84",
    "a.b-c_d",
    "size",
    "format",
    "application/json",
    "application/x-protobuf",
    "application/x-safetensors",
    "application/octet-stream",
};

static const char *any_text(struct fuzz_random *random)
{
    return texts[fuzz_random_below(random, sizeof texts / sizeof texts[0])];
}

/* A text of one repeated character, as long as limits on names and fields are. */
static char *long_text(struct fuzz_random *random)
{
    static const size_t lengths[] = {62,  63,  64,  65,   127,
                                     255, 256, 257, 1000, LONG_BYTES};
    size_t n = lengths[fuzz_random_below(random, sizeof lengths / sizeof lengths[0])];
    char *text = fuzz_alloc(n + 1);

    memset(text, fuzz_random_below(random, 2) == 0 ? 'a' : '"', n);
    text[n] = '\0';
    return text;
}

/* One of the texts in place of some characters of another. */
static char *splice_text(struct fuzz_random *random, const char *text)
{
    const char *piece = any_text(random);
    size_t n_text = strlen(text);
    size_t n_piece = strlen(piece);
    size_t at = fuzz_random_below(random, n_text + 1);
    size_t n_cut = fuzz_random_below(random, n_text - at + 1);
    size_t n_rest = n_text - at - n_cut;
    char *result = fuzz_alloc(n_text + n_piece + 1);

    memcpy(result, text, at);
    memcpy(result + at, piece, n_piece);
    memcpy(result + at + n_piece, text + at + n_cut, n_rest);
    result[at + n_piece + n_rest] = '\0';
    return result;
}

static char *mutate_text(const char *text)
{
    size_t n = strlen(text);
    char *result = fuzz_alloc(n + ROOM_BYTES + 1);

    memcpy(result, text, n);
    n = LLVMFuzzerMutate((uint8_t *)result, n, n + ROOM_BYTES);
    for (size_t i = 0; i < n; i++) {
        result[i] = result[i] == '\0' ? '0' : result[i];
    }
    result[n] = '\0';
    return result;
}

static void change_text(struct fuzz_random *random, const ProtobufCFieldDescriptor *field,
                        void *value)
{
    void *pointer = vxd_field_pointer(value);
    const char *old = pointer != NULL ? pointer : "";
    const char *other = any_text(random);
    char *text;

    switch (fuzz_random_below(random, 8)) {
    case 0:
        text = long_text(random);
        break;
    case 1:
        text = copy_text(other, strlen(other));
        break;
    case 2:
    case 3:
        text = splice_text(random, old);
        break;
    default:
        text = mutate_text(old);
        break;
    }
    fuzz_value_clear(field, value);
    memcpy(value, &text, sizeof text);
}

/* Puts a number at a multiple of its size. */
static void poke(struct fuzz_random *random, ProtobufCBinaryData *bytes)
{
    double real = change_real(random, 1);
    float single = (float)real;
    uint64_t integer = change_integer(random, 0);
    size_t choice = fuzz_random_below(random, 4);
    const void *from = choice == 0   ? (const void *)&real
                       : choice == 1 ? (const void *)&single
                                     : (const void *)&integer;
    size_t n = choice == 1 ? 4 : choice == 2 ? 2 : 8;

    if (bytes->len >= n) {
        memcpy(bytes->data + n * fuzz_random_below(random, bytes->len / n), from, n);
    }
}

static void resize(struct fuzz_random *random, ProtobufCBinaryData *bytes)
{
    static const size_t steps[] = {1, 2, 4, 8, 12, 16, 64};
    size_t step = steps[fuzz_random_below(random, sizeof steps / sizeof steps[0])];

    switch (fuzz_random_below(random, 4)) {
    case 0:
        bytes->len = 0;
        break;
    case 1:
        bytes->len -= step < bytes->len ? step : bytes->len;
        break;
    default:
        for (size_t i = 0; i < step; i++) {
            bytes->data[bytes->len + i] = i < bytes->len ? bytes->data[i] : 0;
        }
        bytes->len += step;
        break;
    }
}

static void change_bytes(struct fuzz_random *random, void *value)
{
    ProtobufCBinaryData bytes;
    uint8_t *data;

    memcpy(&bytes, value, sizeof bytes);
    data = fuzz_alloc(bytes.len + ROOM_BYTES);
    if (bytes.len > 0) {
        memcpy(data, bytes.data, bytes.len);
    }
    free(bytes.data);
    bytes.data = data;
    switch (fuzz_random_below(random, 4)) {
    case 0:
        resize(random, &bytes);
        break;
    case 1:
        poke(random, &bytes);
        break;
    default:
        bytes.len = LLVMFuzzerMutate(bytes.data, bytes.len, bytes.len + ROOM_BYTES);
        break;
    }
    memcpy(value, &bytes, sizeof bytes);
}

void fuzz_value_change(struct fuzz_random *random, const ProtobufCFieldDescriptor *field,
                       void *value)
{
    uint64_t integer = 0;
    int32_t enumerator;
    double real;
    float single;

    switch (field->type) {
    case PROTOBUF_C_TYPE_STRING:
        change_text(random, field, value);
        return;
    case PROTOBUF_C_TYPE_BYTES:
        change_bytes(random, value);
        return;
    case PROTOBUF_C_TYPE_MESSAGE:
        return;
    case PROTOBUF_C_TYPE_DOUBLE:
        memcpy(&real, value, sizeof real);
        real = change_real(random, real);
        memcpy(value, &real, sizeof real);
        return;
    case PROTOBUF_C_TYPE_FLOAT:
        memcpy(&single, value, sizeof single);
        single = (float)change_real(random, (double)single);
        memcpy(value, &single, sizeof single);
        return;
    case PROTOBUF_C_TYPE_ENUM:
        enumerator = change_enum(random, field->descriptor);
        memcpy(value, &enumerator, sizeof enumerator);
        return;
    case PROTOBUF_C_TYPE_BOOL:
        *(protobuf_c_boolean *)value = !*(protobuf_c_boolean *)value;
        return;
    default: /* integers, little-endian as the machine is */
        memcpy(&integer, value, vxd_field_value_bytes(field));
        integer = change_integer(random, integer);
        memcpy(value, &integer, vxd_field_value_bytes(field));
        return;
    }
}

void fuzz_value_make(struct fuzz_random *random, const ProtobufCFieldDescriptor *field,
                     void *value)
{
    const ProtobufCMessageDescriptor *descriptor = field->descriptor;
    ProtobufCMessage *message;

    memset(value, 0, vxd_field_value_bytes(field));
    if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
        message = fuzz_alloc(descriptor->sizeof_message);
        protobuf_c_message_init(descriptor, message);
        memcpy(value, &message, sizeof message);
        return;
    }
    fuzz_value_change(random, field, value);
}
