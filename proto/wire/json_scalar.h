// SPDX-License-Identifier: Apache-2.0
/* The reader's state, and the values that are no messages. */
#ifndef VXD_PROTO_WIRE_JSON_SCALAR_H
#define VXD_PROTO_WIRE_JSON_SCALAR_H

#include <jansson.h>

#include "proto/wire/json_mapping.h"

struct vxd_json_reader {
    struct vxd_decoder *decoder;
    struct vxd_err *err;
    char path[96]; /* of the value being read, as written; cut when longer */
    size_t path_chars;
};

/* Returns the character, '?' for what is not printable ASCII: errors quote input,
 * travel in protobuf strings and may be cut anywhere, which would break a longer UTF-8
 * character.
 */
static inline char vxd_json_printable(char c)
{
    return c >= 0x20 && c < 0x7F ? c : '?';
}

/* Reads one singular value of a field that is no message into slot, its place in the C
 * struct; strings and bytes go to the reader's decoder.
 * errors  INVALID_ARGUMENT    wrong kind, out of range, unknown enum value, bad base64
 *         RESOURCE_EXHAUSTED  over the budget or VXD_JSON_MAX_BASE64_BYTES */
enum vxd_status vxd_json_read_scalar(struct vxd_json_reader *r,
                                     const ProtobufCFieldDescriptor *field,
                                     const json_t *json, void *slot);

/* Fails with INVALID_ARGUMENT at the current path, and says what the text has and what
 * is expected. */
enum vxd_status vxd_json_fail_kind(struct vxd_json_reader *r, const json_t *json,
                                   const char *expected);

#endif
