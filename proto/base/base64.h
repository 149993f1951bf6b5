// SPDX-License-Identifier: Apache-2.0
/* Base64 as the JSON mapping requires: RFC 4648, written in the standard alphabet with
 * padding; read in the standard or the URL-safe alphabet, with optional padding. */
#ifndef VXD_PROTO_BASE_BASE64_H
#define VXD_PROTO_BASE_BASE64_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns the number of characters for n_bytes, padding included; n_bytes <= SIZE_MAX
 * / 2. */
size_t vxd_base64_encoded_bytes(size_t n_bytes);

/* Writes exactly vxd_base64_encoded_bytes(n_bytes) characters, no NUL. */
void vxd_base64_encode(const uint8_t *bytes, size_t n_bytes, char *out);

/* Finds out how many bytes the text holds. False when its length or its padding fits
 * no encoding; vxd_base64_decode checks the characters. */
bool vxd_base64_decoded_bytes(const char *text, size_t n_chars, size_t *out_bytes);

/* Writes exactly the bytes that vxd_base64_decoded_bytes found, for a text that it
 * accepted. False on a character of neither alphabet; then *out must not be used. */
bool vxd_base64_decode(const char *text, size_t n_chars, uint8_t *out);

#endif
