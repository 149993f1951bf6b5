// SPDX-License-Identifier: Apache-2.0
#include "proto/wire/json_mapping.h"

#include <stdlib.h>
#include <string.h>

#include "proto/wire/text.h"
#include "proto/base/utf8.h"

enum {
    FIRST_CAPACITY = 256,
    PRINTF_BYTES = 256 /* what most calls need, formatted without touching the heap */
};

char *vxd_text_reserve(struct vxd_text *text, size_t n_bytes)
{
    size_t need;
    size_t capacity = text->capacity > 0 ? text->capacity : FIRST_CAPACITY;
    char *bytes;

    if (text->failed) {
        return NULL;
    }
    if (!vxd_size_add(text->n_bytes, n_bytes, &need) || !vxd_size_add(need, 1, &need)) {
        text->failed = true;
        return NULL;
    }
    if (need > text->capacity) {
        while (capacity < need) {
            if (!vxd_size_mul(capacity, 2, &capacity)) {
                text->failed = true;
                return NULL;
            }
        }
        bytes = realloc(text->bytes, capacity);
        if (bytes == NULL) {
            text->failed = true;
            return NULL;
        }
        text->bytes = bytes;
        text->capacity = capacity;
    }
    return text->bytes + text->n_bytes;
}

void vxd_text_append(struct vxd_text *text, const char *bytes, size_t n_bytes)
{
    char *at = vxd_text_reserve(text, n_bytes);

    if (at != NULL) {
        if (n_bytes > 0) {
            memcpy(at, bytes, n_bytes);
        }
        at[n_bytes] = '\0';
        text->n_bytes += n_bytes;
    }
}

static void append_digits(struct vxd_text *text, bool is_negative, uint64_t value)
{
    char number[24];
    char *at = number + sizeof number;
    const char *end = at;

    do {
        *--at = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    if (is_negative) {
        *--at = '-';
    }
    vxd_text_append(text, at, (size_t)(end - at));
}

void vxd_text_signed(struct vxd_text *text, int64_t value)
{
    append_digits(text, value < 0, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

void vxd_text_unsigned(struct vxd_text *text, uint64_t value)
{
    append_digits(text, false, value);
}

void vxd_text_printf(struct vxd_text *text, const char *format, ...)
{
    char local[PRINTF_BYTES];
    va_list args;
    va_list again;
    int length;

    va_start(args, format);
    va_copy(again, args);
    length = vsnprintf(local, sizeof local, format, args);
    va_end(args);
    if (length < 0) {
        text->failed = true;
    } else if ((size_t)length < sizeof local) {
        vxd_text_append(text, local, (size_t)length);
    } else {
        char *at = vxd_text_reserve(text, (size_t)length);

        if (at != NULL) {
            (void)vsnprintf(at, (size_t)length + 1, format, again);
            text->n_bytes += (size_t)length;
        }
    }
    va_end(again);
}

/* Returns the escape of a character that may not stand in a JSON string, NULL for all
 * others. */
static const char *short_escape(unsigned char c)
{
    switch (c) {
    case '"':
        return "\\\"";
    case '\\':
        return "\\\\";
    case '\b':
        return "\\b";
    case '\f':
        return "\\f";
    case '\n':
        return "\\n";
    case '\r':
        return "\\r";
    case '\t':
        return "\\t";
    default:
        return NULL;
    }
}

void vxd_text_json_string(struct vxd_text *text, const char *s, size_t n_bytes)
{
    size_t done = 0; /* s up to here is in the text */
    size_t i = 0;

    vxd_text_append(text, "\"", 1);
    while (i < n_bytes && !text->failed) {
        unsigned char c = (unsigned char)s[i];
        size_t n = vxd_utf8_char_bytes(s + i, n_bytes - i);
        const char *escape = short_escape(c);

        if (n > 0 && escape == NULL && c >= 0x20 && c != 0x7F) {
            i += n;
            continue;
        }
        vxd_text_append(text, s + done, i - done);
        if (n == 0) {
            vxd_text_append(text, "\xEF\xBF\xBD", 3);
        } else if (escape != NULL) {
            vxd_text_append(text, escape, 2);
        } else {
            vxd_text_printf(text, "\\u%04x", (unsigned)c);
        }
        i++;
        done = i;
    }
    vxd_text_append(text, s + done, i - done);
    vxd_text_append(text, "\"", 1);
}
