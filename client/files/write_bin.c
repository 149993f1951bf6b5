// SPDX-License-Identifier: Apache-2.0
/* Writes the .bin files of KITTI and nuScenes; bin_records.c describes them. */
#include "client/files/writer.h"

enum {
    MAX_NAMES = 5
};

static enum vxd_status put_records(struct vxd_sink *sink, struct vxd_table *table,
                                   const char *const *names, size_t n_names,
                                   struct vxd_err *err)
{
    static const uint8_t zero[sizeof(float)] = {0};
    struct vxd_column columns[MAX_NAMES];
    struct vxd_table records = {
        .columns = columns, .n_columns = n_names, .n_rows = table->n_rows};

    for (size_t i = 0; i < n_names; i++) {
        const struct vxd_column *found = vxd_table_find(table, names[i]);

        if (found == NULL && i < 3) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, "out", "no field \"%s\"",
                            names[i]);
        }
        /* Fields that the points lack are zero. */
        columns[i] =
            found != NULL
                ? *found
                : (struct vxd_column){.from = VXD_FLOAT32, .data = zero, .scale = 1};
        columns[i].to = VXD_FLOAT32;
    }
    vxd_sink_put_rows(sink, &records, false);
    return VXD_OK;
}

enum vxd_status vxd_kitti_put(struct vxd_sink *sink, struct vxd_table *table,
                              struct vxd_err *err)
{
    static const char *const names[] = {"x", "y", "z", "intensity"};

    return put_records(sink, table, names, 4, err);
}

enum vxd_status vxd_nuscenes_put(struct vxd_sink *sink, struct vxd_table *table,
                                 struct vxd_err *err)
{
    static const char *const names[] = {"x", "y", "z", "intensity", "ring"};

    return put_records(sink, table, names, 5, err);
}
