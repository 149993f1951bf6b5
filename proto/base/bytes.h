// SPDX-License-Identifier: Apache-2.0
/* A growing buffer that records are written to, and a bounded one that they are read
 * from. Numbers are little-endian base 128 (seven bits a byte, the high bit says that
 * more follow), signed ones zigzag; only the shortest form of a number is accepted. */
#ifndef VXD_PROTO_BASE_BYTES_H
#define VXD_PROTO_BASE_BYTES_H

#include <stdlib.h>
#include <string.h>

#include "proto/base/base.h"

/* Zero-initialised = empty; the owner frees `bytes`. After memory ran out nothing is
 * added, and only the end needs to check for it. */
struct vxd_bytes_out {
    uint8_t *bytes;
    size_t n;
    size_t capacity;
    bool is_out_of_memory;
};

/* Reserves n_more bytes; NULL when memory has run out. */
static inline uint8_t *vxd_bytes_reserve(struct vxd_bytes_out *out, size_t n_more)
{
    size_t needed;

    if (out->is_out_of_memory || !vxd_size_add(out->n, n_more, &needed)) {
        out->is_out_of_memory = true;
        return NULL;
    }
    if (needed > out->capacity || out->bytes == NULL) {
        size_t capacity = needed < 128 ? 256 : needed + needed / 2;
        uint8_t *bytes = (uint8_t *)realloc(out->bytes, capacity);

        if (bytes == NULL) {
            out->is_out_of_memory = true;
            return NULL;
        }
        out->bytes = bytes;
        out->capacity = capacity;
    }
    return out->bytes + out->n;
}

static inline void vxd_bytes_put(struct vxd_bytes_out *out, const void *from, size_t n)
{
    uint8_t *to = vxd_bytes_reserve(out, n);

    if (to != NULL && n > 0) {
        memcpy(to, from, n);
        out->n += n;
    }
}

static inline void vxd_bytes_put8(struct vxd_bytes_out *out, unsigned value)
{
    uint8_t byte = (uint8_t)value;

    vxd_bytes_put(out, &byte, 1);
}

static inline void vxd_bytes_put_number(struct vxd_bytes_out *out, uint64_t value)
{
    uint8_t *to = vxd_bytes_reserve(out, 10);

    if (to == NULL) {
        return;
    }
    for (; value >= 128; value >>= 7) {
        *to++ = (uint8_t)(value | 128);
        out->n++;
    }
    *to = (uint8_t)value;
    out->n++;
}

static inline uint64_t vxd_zigzag(int64_t value)
{
    return (uint64_t)value << 1 ^ (value < 0 ? UINT64_MAX : 0);
}

static inline int64_t vxd_unzigzag(uint64_t value)
{
    return (int64_t)(value >> 1 ^ (0 - (value & 1)));
}

static inline void vxd_bytes_put_signed(struct vxd_bytes_out *out, int64_t value)
{
    vxd_bytes_put_number(out, vxd_zigzag(value));
}

/* After an error `is_bad` stays set, and all later reads give 0. */
struct vxd_bytes_in {
    const uint8_t *bytes;
    size_t n;
    size_t at;
    bool is_bad;
};

/* Takes the next n bytes; NULL where there are fewer. */
static inline const uint8_t *vxd_bytes_get(struct vxd_bytes_in *in, size_t n)
{
    const uint8_t *from = in->bytes + in->at;

    if (in->is_bad || n > in->n - in->at) {
        in->is_bad = true;
        return NULL;
    }
    in->at += n;
    return from;
}

static inline unsigned vxd_bytes_get8(struct vxd_bytes_in *in)
{
    const uint8_t *from = vxd_bytes_get(in, 1);

    return from != NULL ? *from : 0;
}

static inline uint64_t vxd_bytes_get_number(struct vxd_bytes_in *in)
{
    uint64_t value = 0;

    for (int shift = 0; shift < 64; shift += 7) {
        unsigned byte = vxd_bytes_get8(in);

        if (in->is_bad || (shift == 63 && byte > 1) || (shift > 0 && byte == 0)) {
            break;
        }
        value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) {
            return value;
        }
    }
    in->is_bad = true;
    return 0;
}

static inline int64_t vxd_bytes_get_signed(struct vxd_bytes_in *in)
{
    return vxd_unzigzag(vxd_bytes_get_number(in));
}

#endif
