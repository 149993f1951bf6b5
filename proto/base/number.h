// SPDX-License-Identifier: Apache-2.0
/* Reads numbers from text the same way whatever locale the process runs in (the
 * library lives in other people's programs, and some of those call setlocale). */
#ifndef VXD_PROTO_BASE_NUMBER_H
#define VXD_PROTO_BASE_NUMBER_H

#include "proto/base/base.h"

/* Reads all of text[0..n) as a decimal number, correctly rounded: digits, one point,
 * an exponent, a sign; "nan", "inf", "infinity" in any case. No hexadecimal, no
 * spaces, at most 127 characters. False for anything else, and then *out is untouched.
 * Values too large become infinite, too small ones zero, as with strtod. */
bool vxd_number_double(const char *text, size_t n, double *out);

/* Reads whole decimal numbers in the same way; false also where the value does not
 * fit. */
bool vxd_number_int64(const char *text, size_t n, int64_t *out);
bool vxd_number_uint64(const char *text, size_t n, uint64_t *out);

/* Reads a token as a dtype and stores it little-endian, unaligned. False where it is
 * no number or out of the type's range; float16 and bfloat16 are not supported. */
bool vxd_number_store(const char *text, size_t n, enum vxd_dtype dtype, uint8_t *out);

#endif
