// SPDX-License-Identifier: Apache-2.0
#include "proto/base/base64.h"

static const char alphabet[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

size_t vxd_base64_encoded_bytes(size_t n_bytes)
{
    return (n_bytes / 3 + (n_bytes % 3 != 0)) * 4;
}

void vxd_base64_encode(const uint8_t *bytes, size_t n_bytes, char *out)
{
    size_t i = 0;

    for (; n_bytes - i >= 3; i += 3) {
        uint32_t group =
            (uint32_t)bytes[i] << 16 | (uint32_t)bytes[i + 1] << 8 | bytes[i + 2];

        *out++ = alphabet[group >> 18];
        *out++ = alphabet[group >> 12 & 63];
        *out++ = alphabet[group >> 6 & 63];
        *out++ = alphabet[group & 63];
    }
    if (i < n_bytes) {
        bool two = n_bytes - i == 2;
        uint32_t group =
            (uint32_t)bytes[i] << 16 | (two ? (uint32_t)bytes[i + 1] << 8 : 0);

        *out++ = alphabet[group >> 18];
        *out++ = alphabet[group >> 12 & 63];
        *out++ = two ? alphabet[group >> 6 & 63] : '=';
        *out = '=';
    }
}

/* Counts the characters before the padding. */
static size_t strip(const char *text, size_t n_chars)
{
    size_t n = n_chars;

    while (n > 0 && n_chars - n < 2 && text[n - 1] == '=') {
        n--;
    }
    return n;
}

bool vxd_base64_decoded_bytes(const char *text, size_t n_chars, size_t *out_bytes)
{
    size_t n = strip(text, n_chars);

    /* One character of a group holds no byte; padding, where given, must complete it. */
    if (n % 4 == 1 || (n != n_chars && n_chars % 4 != 0)) {
        return false;
    }
    *out_bytes = n / 4 * 3 + (n % 4 != 0 ? n % 4 - 1 : 0);
    return true;
}

/* The values of the characters from '+' to 'z', -1 for those of neither alphabet. */
static const signed char digits['z' - '+' + 1] = {
    62, -1, 62, -1, 63,                     /* + , - . / */
    52, 53, 54, 55, 56, 57, 58, 59, 60, 61, /* 0 to 9 */
    -1, -1, -1, -1, -1, -1, -1,             /* : to @ */
    0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12,
    13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, /* A to Z */
    -1, -1, -1, -1, 63, -1,                             /* [ \ ] ^ _ ` */
    26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38,
    39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51}; /* a to z */

/* The value of a character; the high bits are set where it has none. */
static uint32_t digit(char c)
{
    unsigned at = (unsigned)(unsigned char)c - '+';

    return at < sizeof digits ? (uint32_t)digits[at] : UINT32_MAX;
}

/* Decodes whole groups of four characters; false where one is no digit. */
static bool decode_groups(const char *text, size_t n_groups, uint8_t *out)
{
    uint32_t wrong = 0;

    for (size_t i = 0; i < n_groups; i++) {
        const uint32_t a = digit(text[4 * i]);
        const uint32_t b = digit(text[4 * i + 1]);
        const uint32_t c = digit(text[4 * i + 2]);
        const uint32_t d = digit(text[4 * i + 3]);
        const uint32_t group = a << 18 | b << 12 | c << 6 | d;

        wrong |= a | b | c | d;
        out[3 * i] = (uint8_t)(group >> 16);
        out[3 * i + 1] = (uint8_t)(group >> 8);
        out[3 * i + 2] = (uint8_t)group;
    }
    return wrong < 64;
}

bool vxd_base64_decode(const char *text, size_t n_chars, uint8_t *out)
{
    size_t n = strip(text, n_chars);
    size_t n_groups = n / 4;
    uint32_t bits = 0;
    unsigned n_bits = 0;

    if (!decode_groups(text, n_groups, out)) {
        return false;
    }
    out += 3 * n_groups;
    for (size_t i = 4 * n_groups; i < n; i++) {
        uint32_t value = digit(text[i]);

        if (value >= 64) {
            return false;
        }
        bits = bits << 6 | value;
        n_bits += 6;
        if (n_bits >= 8) {
            n_bits -= 8;
            *out++ = (uint8_t)(bits >> n_bits);
        }
    }
    return true;
}
