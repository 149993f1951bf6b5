// SPDX-License-Identifier: Apache-2.0
#include "server/request/method.h"

#include <stdlib.h>
#include <string.h>

const struct vxd_method *vxd_method_by_tag(const struct vxd_method_table *table,
                                           uint32_t tag)
{
    for (size_t i = 0; i < table->n_methods; i++) {
        if (table->methods[i].tag == tag) {
            return &table->methods[i];
        }
    }
    return NULL;
}

const struct vxd_method *vxd_method_by_name(const struct vxd_method_table *table,
                                            const char *name)
{
    for (size_t i = 0; i < table->n_methods; i++) {
        if (strcmp(table->methods[i].name, name) == 0) {
            return &table->methods[i];
        }
    }
    return NULL;
}

/* A method that only a test has counts as an unknown one. */
size_t vxd_method_index(const struct vxd_method_table *table,
                        const struct vxd_method *method)
{
    for (size_t i = 0; i < table->n_methods; i++) {
        if (method == &table->methods[i]) {
            return i;
        }
    }
    return SIZE_MAX;
}

enum vxd_status vxd_method_names_make(const struct vxd_method_table *table,
                                      struct vxd_method_names *out, struct vxd_err *err)
{
    const char **names = calloc(table->n_methods + 1, sizeof *names);

    if (names == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for the methods");
    }
    for (size_t i = 0; i < table->n_methods; i++) {
        names[i] = table->methods[i].name;
    }
    names[table->n_methods] = "metrics";
    *out = (struct vxd_method_names){names, table->n_methods + 1};
    return VXD_OK;
}

void vxd_method_names_free(struct vxd_method_names *names)
{
    free((void *)(uintptr_t)names->names);
    *names = (struct vxd_method_names){NULL, 0};
}
