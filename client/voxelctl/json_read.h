// SPDX-License-Identifier: Apache-2.0
/* JSON files that voxelctl reads: a small document, as a list of nodes. */
#ifndef VXD_VOXELCTL_JSON_READ_H
#define VXD_VOXELCTL_JSON_READ_H

#include "client/voxelctl/commands.h"

enum ctl_json_kind {
    CTL_JSON_NULL,
    CTL_JSON_FALSE,
    CTL_JSON_TRUE,
    CTL_JSON_NUMBER,
    CTL_JSON_STRING,
    CTL_JSON_ARRAY,
    CTL_JSON_OBJECT
};

struct ctl_json_node {
    enum ctl_json_kind kind;
    const char *key;  /* of members of objects, else NULL */
    const char *text; /* of strings (ends with a zero) and numbers (does not) */
    size_t n_text;
    size_t first; /* number of the first child ... */
    size_t next;  /* ... and of the next node of one parent; 0 = none */
    size_t n_children;
};

struct ctl_json {
    char *bytes;
    struct ctl_json_node *nodes; /* nodes[0] is the document */
    size_t n_nodes;
    size_t capacity; /* private */
};

/* Reads a file ("-": standard input). CTL_FAILED after a message that says in which line; to
 * be cleared in either case. */
int ctl_json_read(const char *path, struct ctl_json *out);
void ctl_json_clear(struct ctl_json *json);

#endif
