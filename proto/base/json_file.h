// SPDX-License-Identifier: Apache-2.0
/* Parses a JSON file into a list of nodes. */
#ifndef VXD_PROTO_BASE_JSON_FILE_H
#define VXD_PROTO_BASE_JSON_FILE_H

#include "proto/base/base.h"

enum vxd_json_kind {
    VXD_JSON_NULL,
    VXD_JSON_FALSE,
    VXD_JSON_TRUE,
    VXD_JSON_NUMBER,
    VXD_JSON_STRING,
    VXD_JSON_ARRAY,
    VXD_JSON_OBJECT
};

struct vxd_json_node {
    enum vxd_json_kind kind;
    const char *key;  /* of members of objects, else NULL */
    const char *text; /* of strings (ends with a zero) and numbers (does not) */
    size_t n_text;
    size_t first; /* number of the first child ... */
    size_t next;  /* ... and of the next node of one parent; 0 = none */
    size_t n_children;
};

/* The file owns this memory, including what the nodes point to. */
struct vxd_json_file {
    struct vxd_json_node *nodes; /* nodes[0] is the document */
    size_t n_nodes;
    size_t capacity; /* private */
    char *bytes;     /* private */
};

/* Parses a whole document with at most 32 nested brackets. Strings hold no zero; the
 * parser does not check that they are UTF-8, nor that an object's members differ.
 *
 * errors  INVALID_ARGUMENT    anything else: what, and in which line
 *         RESOURCE_EXHAUSTED  no memory
 * On error *out owns nothing. */
enum vxd_status vxd_json_file_parse(const uint8_t *bytes, size_t n_bytes,
                                    struct vxd_json_file *out, struct vxd_err *err);

void vxd_json_file_clear(struct vxd_json_file *file);

#endif
