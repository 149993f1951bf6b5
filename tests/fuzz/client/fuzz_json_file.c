// SPDX-License-Identifier: Apache-2.0
/* The reader of JSON files: whatever the bytes, an error with a code and a message, or a tree
 * in which every node is reached once. */
#include <stdlib.h>
#include <string.h>

#include "proto/base/json_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition)
{
    if (!condition) {
        abort();
    }
}

static void check_node(const struct vxd_json_file *file, size_t i)
{
    const struct vxd_json_node *node = &file->nodes[i];
    size_t n = 0;

    for (size_t child = node->first; child != 0; child = file->nodes[child].next) {
        /* Parents stand before their children, and those in order: so nothing loops. */
        require(child > i && child < file->n_nodes);
        require(file->nodes[child].next == 0 || file->nodes[child].next > child);
        require((file->nodes[child].key != NULL) == (node->kind == VXD_JSON_OBJECT));
        n++;
    }
    require(n == node->n_children);
    require(n == 0 || node->kind == VXD_JSON_ARRAY || node->kind == VXD_JSON_OBJECT);
    if (node->kind == VXD_JSON_STRING) {
        require(strlen(node->text) == node->n_text);
    } else if (node->kind == VXD_JSON_NUMBER) {
        require(node->n_text > 0 && memchr(node->text, '\0', node->n_text) == NULL);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct vxd_json_file file;
    struct vxd_err err = {0};
    size_t n_children = 0;

    if (vxd_json_file_parse(data, size, &file, &err) != VXD_OK) {
        require(err.code != VXD_OK && err.message[0] != '\0');
        require(file.nodes == NULL && file.bytes == NULL);
        return 0;
    }
    require(file.n_nodes > 0 && file.nodes[0].key == NULL && file.nodes[0].next == 0);
    for (size_t i = 0; i < file.n_nodes; i++) {
        check_node(&file, i);
        n_children += file.nodes[i].n_children;
    }
    require(n_children == file.n_nodes - 1);
    vxd_json_file_clear(&file);
    return 0;
}
