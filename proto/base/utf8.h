// SPDX-License-Identifier: Apache-2.0
/* UTF-8 as RFC 3629 defines it: no overlong forms, no surrogates, nothing above
 * U+10FFFF. */
#ifndef VXD_PROTO_BASE_UTF8_H
#define VXD_PROTO_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns the length of the character that s begins with, 0 when it begins with none.
 * n_bytes > 0. */
static inline size_t vxd_utf8_char_bytes(const char *s, size_t n_bytes)
{
    const uint8_t *u = (const uint8_t *)s;
    uint8_t low = 0x80; /* bounds of the second byte, which excludes the exceptions */
    uint8_t high = 0xBF;
    size_t n;

    if (u[0] < 0x80) {
        return 1;
    }
    if (u[0] >= 0xC2 && u[0] <= 0xDF) {
        n = 2;
    } else if (u[0] >= 0xE0 && u[0] <= 0xEF) {
        n = 3;
        low = u[0] == 0xE0 ? 0xA0 : 0x80;
        high = u[0] == 0xED ? 0x9F : 0xBF;
    } else if (u[0] >= 0xF0 && u[0] <= 0xF4) {
        n = 4;
        low = u[0] == 0xF0 ? 0x90 : 0x80;
        high = u[0] == 0xF4 ? 0x8F : 0xBF;
    } else {
        return 0;
    }
    if (n_bytes < n || u[1] < low || u[1] > high) {
        return 0;
    }
    for (size_t i = 2; i < n; i++) {
        if ((u[i] & 0xC0) != 0x80) {
            return 0;
        }
    }
    return n;
}

static inline bool vxd_utf8_is_valid(const char *s, size_t n_bytes)
{
    size_t i = 0;

    while (i < n_bytes) {
        size_t n = vxd_utf8_char_bytes(s + i, n_bytes - i);

        if (n == 0) {
            return false;
        }
        i += n;
    }
    return true;
}

#endif
