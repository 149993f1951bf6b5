// SPDX-License-Identifier: Apache-2.0
/* Protobuf as it is written, without a tree of messages in memory: a scene has thousands of cubes
 * of six messages each. A message's length stands before it; it is set when its end is known. */
#include <string.h>

#include "server/transport/foxglove/foxglove_internal.h"

enum {
    VARINT = 0,
    FIXED64 = 1,
    BYTES = 2,
    FIXED32 = 5,
    VARINT_BYTES = 10
};

#define SECOND_NS INT64_C(1000000000)

static size_t write_varint(uint64_t value, char out[VARINT_BYTES])
{
    size_t n = 0;

    while (value >= 128) {
        out[n++] = (char)(unsigned char)(value | 128);
        value >>= 7;
    }
    out[n++] = (char)(unsigned char)value;
    return n;
}

static void append_varint(struct vxd_text *text, uint64_t value)
{
    char bytes[VARINT_BYTES];

    vxd_text_append(text, bytes, write_varint(value, bytes));
}

static void append_tag(struct vxd_text *text, uint32_t field, uint32_t type)
{
    append_varint(text, field << 3 | type);
}

/* Numbers are little-endian, as the machines that we run on (proto/wire checks that). */
void vxd_fox_double(struct vxd_text *text, uint32_t field, double value)
{
    append_tag(text, field, FIXED64);
    vxd_text_append(text, (const char *)&value, sizeof value);
}

void vxd_fox_fixed32(struct vxd_text *text, uint32_t field, uint32_t value)
{
    append_tag(text, field, FIXED32);
    vxd_text_append(text, (const char *)&value, sizeof value);
}

void vxd_fox_number(struct vxd_text *text, uint32_t field, uint64_t value)
{
    append_tag(text, field, VARINT);
    append_varint(text, value);
}

void vxd_fox_begin_bytes(struct vxd_text *text, uint32_t field, size_t n_bytes)
{
    append_tag(text, field, BYTES);
    append_varint(text, n_bytes);
}

void vxd_fox_bytes(struct vxd_text *text, uint32_t field, const void *bytes,
                   size_t n_bytes)
{
    vxd_fox_begin_bytes(text, field, n_bytes);
    vxd_text_append(text, bytes, n_bytes);
}

void vxd_fox_string(struct vxd_text *text, uint32_t field, const char *value)
{
    vxd_fox_bytes(text, field, value, strlen(value));
}

size_t vxd_fox_open(struct vxd_text *text, uint32_t field)
{
    append_tag(text, field, BYTES);
    vxd_text_append(text, "", 1); /* of most messages the length is one byte */
    return text->n_bytes;
}

void vxd_fox_close(struct vxd_text *text, size_t at)
{
    char length[VARINT_BYTES];
    size_t n_bytes = text->n_bytes - at;
    size_t n = write_varint(n_bytes, length);

    vxd_text_append(text, length, n - 1); /* room; the bytes move over it */
    if (text->failed) {
        return;
    }
    memmove(text->bytes + at + n - 1, text->bytes + at, n_bytes);
    memcpy(text->bytes + at - 1, length, n);
}

void vxd_fox_time(struct vxd_text *text, uint32_t field, int64_t unix_ns)
{
    size_t at = vxd_fox_open(text, field);

    vxd_fox_number(text, 1, (uint64_t)(unix_ns / SECOND_NS));
    vxd_fox_number(text, 2, (uint64_t)(unix_ns % SECOND_NS));
    vxd_fox_close(text, at);
}

void vxd_fox_vector(struct vxd_text *text, uint32_t field, double x, double y, double z)
{
    size_t at = vxd_fox_open(text, field);

    vxd_fox_double(text, 1, x);
    vxd_fox_double(text, 2, y);
    vxd_fox_double(text, 3, z);
    vxd_fox_close(text, at);
}

static void append_turn(struct vxd_text *text, uint32_t field, const double turn[4])
{
    size_t at = vxd_fox_open(text, field);

    for (uint32_t i = 0; i < 4; i++) {
        vxd_fox_double(text, i + 1, turn[i]);
    }
    vxd_fox_close(text, at);
}

void vxd_fox_turned_pose(struct vxd_text *text, uint32_t field, const double place[3],
                         const double turn[4])
{
    size_t at = vxd_fox_open(text, field);

    vxd_fox_vector(text, 1, place[0], place[1], place[2]);
    append_turn(text, 2, turn);
    vxd_fox_close(text, at);
}

void vxd_fox_pose(struct vxd_text *text, uint32_t field, double x, double y, double z)
{
    const double place[3] = {x, y, z};
    const double turn[4] = {0, 0, 0, 1};

    vxd_fox_turned_pose(text, field, place, turn);
}

void vxd_fox_colour(struct vxd_text *text, uint32_t field, double r, double g, double b,
                    double a)
{
    size_t at = vxd_fox_open(text, field);

    vxd_fox_double(text, 1, r);
    vxd_fox_double(text, 2, g);
    vxd_fox_double(text, 3, b);
    vxd_fox_double(text, 4, a);
    vxd_fox_close(text, at);
}

void vxd_fox_packed_field(struct vxd_text *text, uint32_t field, const char *name,
                          uint32_t offset, enum vxd_fox_type type)
{
    size_t at = vxd_fox_open(text, field);

    vxd_fox_string(text, 1, name);
    vxd_fox_fixed32(text, 2, offset);
    vxd_fox_number(text, 3, (uint64_t)type);
    vxd_fox_close(text, at);
}

void vxd_fox_packed_colour(struct vxd_text *text, uint32_t field, uint32_t offset)
{
    static const char *const names[4] = {"red", "green", "blue", "alpha"};

    for (uint32_t i = 0; i < 4; i++) {
        vxd_fox_packed_field(text, field, names[i], offset + i, VXD_FOX_UINT8);
    }
}

void vxd_fox_transform(struct vxd_text *text, const char *parent, const char *prefix,
                       const char *name, const double place[3], const double turn[4],
                       int64_t stamp_ns)
{
    size_t at = vxd_fox_open(text, 1);
    char child[VXD_NAME_BYTES + 16];

    (void)snprintf(child, sizeof child, "%s/%s", prefix, name);
    vxd_fox_time(text, 1, stamp_ns);
    vxd_fox_string(text, 2, parent);
    vxd_fox_string(text, 3, child);
    vxd_fox_vector(text, 4, place[0], place[1], place[2]);
    append_turn(text, 5, turn);
    vxd_fox_close(text, at);
}
