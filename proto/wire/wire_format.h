// SPDX-License-Identifier: Apache-2.0
/* The part of protobuf's wire format that is needed to read and write messages without
 * protobuf-c:
 *
 *   tag   varint, field number << 3 | wire type, at most 5 bytes and 32 bits
 *   then  wire type 0  varint, at most 10 bytes
 *                   1  8 bytes
 *                   2  length (varint), then that many bytes
 *                   5  4 bytes
 *                   3, 4, 6, 7  groups and unknown types: never ours
 */
#ifndef VXD_PROTO_WIRE_WIRE_FORMAT_H
#define VXD_PROTO_WIRE_WIRE_FORMAT_H

#include <protobuf-c/protobuf-c.h>

#include "proto/base/base.h"

enum {
    VXD_WIRE_TAG_BYTES = 5,
    VXD_WIRE_LENGTH_BYTES = 5, /* of a length, as all parsers take it */
    VXD_WIRE_VARINT_BYTES = 10
};

/* A field that every message leaves free (a test checks that), with bytes that mean
 * nothing and that parsers skip. The encoder puts some in front of big data, so that
 * those are aligned where they arrive. */
#define VXD_WIRE_PADDING_FIELD 15u

struct vxd_wire_reader {
    const uint8_t *at;
    const uint8_t *end;
};

/* Reads a varint; false when truncated, longer than max_bytes, or above 64 bits. */
static inline bool vxd_wire_read_varint(struct vxd_wire_reader *r, int max_bytes,
                                        uint64_t *out)
{
    uint64_t value = 0;

    for (int i = 0; i < max_bytes && r->at < r->end; i++) {
        uint8_t byte = *r->at++;

        if (i == VXD_WIRE_VARINT_BYTES - 1 && byte > 1) {
            return false;
        }
        value |= (uint64_t)(byte & 0x7F) << (7 * i);
        if ((byte & 0x80) == 0) {
            *out = value;
            return true;
        }
    }
    return false;
}

/* Reads a tag; false where no field begins, also for number 0. */
static inline bool vxd_wire_read_tag(struct vxd_wire_reader *r, uint32_t *field,
                                     unsigned *wire_type)
{
    uint64_t tag;

    if (!vxd_wire_read_varint(r, VXD_WIRE_TAG_BYTES, &tag) || tag > UINT32_MAX ||
        tag >> 3 == 0) {
        return false;
    }
    *field = (uint32_t)(tag >> 3);
    *wire_type = (unsigned)(tag & 7);
    return true;
}

/* Skips n bytes; false when there are fewer. */
static inline bool vxd_wire_skip(struct vxd_wire_reader *r, uint64_t n_bytes)
{
    if (n_bytes > (uint64_t)(r->end - r->at)) {
        return false;
    }
    r->at += n_bytes;
    return true;
}

static inline size_t vxd_wire_varint_bytes(uint64_t value)
{
    size_t n = 1;

    while (value >= 0x80) {
        value >>= 7;
        n++;
    }
    return n;
}

/* Writes a varint in n_bytes, no fewer than vxd_wire_varint_bytes(value). A longer
 * form of the number is valid for all parsers. */
static inline void vxd_wire_write_varint(uint8_t *at, uint64_t value, size_t n_bytes)
{
    for (size_t i = 0; i < n_bytes; i++) {
        at[i] = (uint8_t)((value & 0x7F) | (i + 1 < n_bytes ? 0x80 : 0));
        value >>= 7;
    }
}

#endif
