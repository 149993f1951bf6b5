// SPDX-License-Identifier: Apache-2.0
/* What fields of requests may be, each for itself: the table is generated from the schema, so that the
 * documents, the clients and the server say the same. What several fields are together, and what a thing of
 * the server allows, is checked by the methods. */
#ifndef VXD_SERVER_REQUEST_RANGES_RANGES_H
#define VXD_SERVER_REQUEST_RANGES_RANGES_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/base.h"

enum vxd_range_kind {
    VXD_RANGE_DOUBLE,
    VXD_RANGE_FLOAT,
    VXD_RANGE_UINT32,
    VXD_RANGE_UINT64,
    VXD_RANGE_ENUM,
    VXD_RANGE_MESSAGE,
    VXD_RANGE_MESSAGES /* a list of them */
};

struct vxd_message_ranges;

/* One field. */
struct vxd_field_range {
    enum vxd_range_kind kind;
    const char *name;
    size_t offset;
    size_t count_offset; /* MESSAGES */
    double low;
    double high; /* HUGE_VAL: any finite one */
    bool without_low;
    bool without_high;
    const uint32_t *numbers; /* UINT32: those that there are; NULL: low to high */
    size_t n_numbers;
    const char *right;                      /* the same in words, for the error */
    const ProtobufCEnumDescriptor *words;   /* ENUM */
    const struct vxd_message_ranges *inner; /* MESSAGE, MESSAGES */
};

/* The fields of a message that may not be anything. */
struct vxd_message_ranges {
    const struct vxd_field_range *fields;
    size_t n;
};

/* field_ranges.c */
struct vxd_request_ranges {
    const ProtobufCMessageDescriptor *message;
    const struct vxd_message_ranges *ranges;
};
extern const struct vxd_request_ranges vxd_request_ranges[];
extern const size_t vxd_n_request_ranges;

/* Checks all fields of a request that the table has.
 * errors  INVALID_ARGUMENT  names the field by its path, and says what is right */
enum vxd_status vxd_ranges_check(const ProtobufCMessage *request, struct vxd_err *err);

#endif
