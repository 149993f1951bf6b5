// SPDX-License-Identifier: Apache-2.0
#include "proto/base/number.h"

#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_NUMBER_CHARS = 127,
    /* 10^22 is the largest power of ten that a double holds exactly. */
    MAX_EXACT_POWER = 22
};

static const double powers_of_ten[MAX_EXACT_POWER + 1] = {
    1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

/* The parts of a decimal number: mantissa * 10^exponent. */
struct decimal {
    bool negative;
    bool exact; /* all digits are in mantissa */
    uint64_t mantissa;
    int exponent;
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool equals_ignoring_case(const char *text, size_t n, const char *word)
{
    if (n != strlen(word)) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        if ((text[i] | 0x20) != word[i]) {
            return false;
        }
    }
    return true;
}

/* Parses digits and one point; false without any digit. *at is after them. */
static bool scan_digits(const char *text, size_t n, size_t *at, struct decimal *d)
{
    bool point = false;
    bool any = false;

    d->exact = true;
    for (; *at < n; (*at)++) {
        char c = text[*at];

        if (c == '.' && !point) {
            point = true;
            continue;
        }
        if (!is_digit(c)) {
            break;
        }
        any = true;
        if (d->mantissa > (UINT64_MAX - 9) / 10) {
            d->exact = false;
        } else {
            d->mantissa = d->mantissa * 10 + (uint64_t)(c - '0');
            d->exponent -= point ? 1 : 0;
        }
    }
    return any;
}

static bool scan_exponent(const char *text, size_t n, size_t at, struct decimal *d)
{
    bool negative = false;
    int value = 0;

    if (at == n) {
        return true;
    }
    if ((text[at] | 0x20) != 'e') {
        return false;
    }
    at++;
    if (at < n && (text[at] == '+' || text[at] == '-')) {
        negative = text[at] == '-';
        at++;
    }
    if (at == n) {
        return false;
    }
    for (; at < n; at++) {
        if (!is_digit(text[at])) {
            return false;
        }
        if (value < 100000) {
            value = value * 10 + (text[at] - '0');
        }
    }
    d->exponent += negative ? -value : value;
    return true;
}

/* Calls strtod in the "C" locale of this thread only; false when there is no such
 * locale. */
static bool slow_double(const char *text, size_t n, double *out)
{
    char copy[MAX_NUMBER_CHARS + 1];
    locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    locale_t previous;

    if (c_locale == (locale_t)0) {
        return false;
    }
    memcpy(copy, text, n);
    copy[n] = '\0';
    previous = uselocale(c_locale);
    *out = strtod(copy, NULL);
    (void)uselocale(previous);
    freelocale(c_locale);
    return true;
}

bool vxd_number_double(const char *text, size_t n, double *out)
{
    struct decimal d = {.exact = true};
    size_t at = 0;
    double value;

    if (n == 0 || n > MAX_NUMBER_CHARS) {
        return false;
    }
    if (text[0] == '+' || text[0] == '-') {
        d.negative = text[0] == '-';
        at = 1;
    }
    if (equals_ignoring_case(text + at, n - at, "nan")) {
        *out = (double)NAN;
        return true;
    }
    if (equals_ignoring_case(text + at, n - at, "inf") ||
        equals_ignoring_case(text + at, n - at, "infinity")) {
        *out = d.negative ? -(double)INFINITY : (double)INFINITY;
        return true;
    }
    if (!scan_digits(text, n, &at, &d) || !scan_exponent(text, n, at, &d)) {
        return false;
    }
    /* Both operands are exact, so one correctly rounded operation gives the right
     * double. */
    if (d.exact && d.mantissa <= (UINT64_C(1) << 53) && d.exponent >= -MAX_EXACT_POWER &&
        d.exponent <= MAX_EXACT_POWER) {
        value = (double)d.mantissa;
        value = d.exponent < 0 ? value / powers_of_ten[-d.exponent]
                               : value * powers_of_ten[d.exponent];
        *out = d.negative ? -value : value;
        return true;
    }
    return slow_double(text, n, out);
}

bool vxd_number_uint64(const char *text, size_t n, uint64_t *out)
{
    uint64_t value = 0;
    size_t at = n > 0 && text[0] == '+' ? 1 : 0;

    if (at == n) {
        return false;
    }
    for (; at < n; at++) {
        uint64_t digit;

        if (!is_digit(text[at])) {
            return false;
        }
        digit = (uint64_t)(text[at] - '0');
        if (value > (UINT64_MAX - digit) / 10) {
            return false;
        }
        value = value * 10 + digit;
    }
    *out = value;
    return true;
}

bool vxd_number_int64(const char *text, size_t n, int64_t *out)
{
    bool negative = n > 0 && text[0] == '-';
    uint64_t limit = (uint64_t)INT64_MAX + (negative ? 1 : 0);
    uint64_t value;

    if (negative) {
        text++;
        n--;
        if (n > 0 && text[0] == '+') {
            return false;
        }
    }
    if (!vxd_number_uint64(text, n, &value) || value > limit) {
        return false;
    }
    *out = negative ? (int64_t)(0 - value) : (int64_t)value;
    return true;
}

static void store_le(uint64_t bits, size_t n_bytes, uint8_t *out)
{
    for (size_t i = 0; i < n_bytes; i++) {
        out[i] = (uint8_t)(bits >> (8 * i));
    }
}

static bool store_signed(const char *text, size_t n, size_t n_bytes, uint8_t *out)
{
    int64_t high = (int64_t)(UINT64_MAX >> (65 - 8 * n_bytes));
    int64_t value;

    if (!vxd_number_int64(text, n, &value) || value > high || value < -high - 1) {
        return false;
    }
    store_le((uint64_t)value, n_bytes, out);
    return true;
}

static bool store_unsigned(const char *text, size_t n, size_t n_bytes, uint8_t *out)
{
    uint64_t value;

    if (!vxd_number_uint64(text, n, &value) || value > UINT64_MAX >> (64 - 8 * n_bytes)) {
        return false;
    }
    store_le(value, n_bytes, out);
    return true;
}

static bool store_float(const char *text, size_t n, size_t n_bytes, uint8_t *out)
{
    double value;
    uint64_t bits = 0;

    if (!vxd_number_double(text, n, &value)) {
        return false;
    }
    if (n_bytes == sizeof(float)) {
        float narrow = (float)value;
        uint32_t narrow_bits;

        memcpy(&narrow_bits, &narrow, sizeof narrow_bits);
        bits = narrow_bits;
    } else {
        memcpy(&bits, &value, sizeof bits);
    }
    store_le(bits, n_bytes, out);
    return true;
}

bool vxd_number_store(const char *text, size_t n, enum vxd_dtype dtype, uint8_t *out)
{
    size_t n_bytes = vxd_dtype_bytes(dtype);

    switch (dtype) {
    case VXD_INT8:
    case VXD_INT16:
    case VXD_INT32:
    case VXD_INT64:
        return store_signed(text, n, n_bytes, out);
    case VXD_UINT8:
    case VXD_UINT16:
    case VXD_UINT32:
    case VXD_UINT64:
        return store_unsigned(text, n, n_bytes, out);
    case VXD_FLOAT32:
    case VXD_FLOAT64:
        return store_float(text, n, n_bytes, out);
    case VXD_FLOAT16:
    case VXD_BFLOAT16:
    case VXD_DTYPE_UNSPECIFIED:
        break;
    }
    return false;
}
