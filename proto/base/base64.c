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

static int digit(char c)
{
    if (c >= 'A' && c <= 'Z') {
        return c - 'A';
    }
    if (c >= 'a' && c <= 'z') {
        return c - 'a' + 26;
    }
    if (c >= '0' && c <= '9') {
        return c - '0' + 52;
    }
    if (c == '+' || c == '-') {
        return 62;
    }
    return c == '/' || c == '_' ? 63 : -1;
}

bool vxd_base64_decode(const char *text, size_t n_chars, uint8_t *out)
{
    size_t n = strip(text, n_chars);
    uint32_t bits = 0;
    unsigned n_bits = 0;

    for (size_t i = 0; i < n; i++) {
        int value = digit(text[i]);

        if (value < 0) {
            return false;
        }
        bits = bits << 6 | (uint32_t)value;
        n_bits += 6;
        if (n_bits >= 8) {
            n_bits -= 8;
            *out++ = (uint8_t)(bits >> n_bits);
        }
    }
    return true;
}
