// SPDX-License-Identifier: Apache-2.0
/* Lists of operations that grow. */
#include <stdlib.h>
#include <string.h>

#include "client/c/include/voxeld_scene.h"
#include "proto/base/base.h"

enum {
    FIRST_CAPACITY = 16
};

struct voxeld_scene_operation *voxeld_scene_add(struct voxeld_scene_operations *list,
                                                enum voxeld_scene_shape shape)
{
    struct voxeld_scene_operation *operation;

    if (list->n == list->capacity) {
        size_t capacity = list->capacity > 0 ? list->capacity : FIRST_CAPACITY / 2;
        size_t n_bytes;
        struct voxeld_scene_operation *grown = NULL;

        if (vxd_size_mul(capacity, 2 * sizeof *grown, &n_bytes)) {
            grown = realloc(list->operations, n_bytes);
        }
        if (grown == NULL) {
            return NULL;
        }
        list->operations = grown;
        list->capacity = 2 * capacity;
    }
    operation = &list->operations[list->n++];
    memset(operation, 0, sizeof *operation);
    operation->shape = shape;
    return operation;
}

void voxeld_scene_clear(struct voxeld_scene_operations *list)
{
    free(list->operations);
    *list = (struct voxeld_scene_operations){0};
}
