// SPDX-License-Identifier: Apache-2.0
/* Protobuf's official JSON mapping (proto3 rules), one walker over the descriptors.
 *
 * Reading goes through jansson: duplicate keys refused, 1 MiB at most. Both
 * lowerCamelCase and original field names are read; lowerCamelCase is written. Enums by
 * name or number, 64-bit integers as strings or numbers, bytes as base64 (standard or
 * URL-safe, padding optional), "NaN", "Infinity", "-Infinity"; null = absent; unknown
 * fields are refused. Integers of 2^63 and more must come as strings (jansson reads them
 * no other way). Writing never goes through jansson (big arrays would take seconds):
 * text is appended directly; float32 with 9, float64 with 17 significant digits, fewer
 * where they suffice to read the same value back. Fields at their default are left out,
 * as the mapping says. */
#ifndef VXD_PROTO_WIRE_JSON_MAPPING_H
#define VXD_PROTO_WIRE_JSON_MAPPING_H

#include "proto/wire/decode.h"

#define VXD_JSON_MAX_BYTES 1048576
#define VXD_JSON_MAX_BASE64_BYTES 65536 /* decoded, one field */

/* Reads into the decoder's arena; the message lives until it is destroyed. Never goes
 * deeper into the text than the schema does. Unknown enum values (proto3 would keep them)
 * are refused.
 *
 * errors  INVALID_ARGUMENT    bad JSON (line and column), a key unknown or given twice, a
 *                             value of the wrong kind or out of its type's range;
 *                             err.field is the path as written: "clouds[0].fields[2].offset"
 *         RESOURCE_EXHAUSTED  over VXD_JSON_MAX_BYTES, VXD_JSON_MAX_BASE64_BYTES in one
 *                             bytes field, or the decoder's budget */
enum vxd_status vxd_json_read(struct vxd_decoder *decoder,
                              const ProtobufCMessageDescriptor *descriptor,
                              const char *text, size_t n_bytes, ProtobufCMessage **out,
                              struct vxd_err *err);

/* A growing text; zero-initialised = empty. Freed by free(text.bytes). */
struct vxd_text {
    char *bytes; /* NUL-terminated once anything was appended */
    size_t n_bytes;
    size_t capacity;
    bool failed; /* out of memory: appends are ignored from then on */
};

/* Appends; sets text->failed when memory runs out. */
void vxd_text_append(struct vxd_text *text, const char *bytes, size_t n_bytes);
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
void vxd_text_printf(struct vxd_text *text, const char *format, ...);

/* Appends s as a JSON string with quotes; invalid UTF-8 becomes U+FFFD. */
void vxd_text_json_string(struct vxd_text *text, const char *s, size_t n_bytes);

/* Appends the message as one JSON object. A Tensor (voxeld.v1.Tensor) of at most 4096
 * elements is written with `values` instead of `data`, unless its data do not fit its
 * shape or hold an integer beyond 2^53, which a reader's double would round.
 * errors  RESOURCE_EXHAUSTED  no memory; *text is then to be freed, not read */
enum vxd_status vxd_json_write(const ProtobufCMessage *message, struct vxd_text *text,
                               struct vxd_err *err);

#endif
