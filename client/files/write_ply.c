// SPDX-License-Identifier: Apache-2.0
/* Writes PLY with one element "vertex"; ply.c describes the format. */
#include "client/files/writer.h"

static const char *type_of(enum vxd_dtype dtype)
{
    switch (dtype) {
    case VXD_INT8:
        return "char";
    case VXD_UINT8:
        return "uchar";
    case VXD_INT16:
        return "short";
    case VXD_UINT16:
        return "ushort";
    case VXD_INT32:
        return "int";
    case VXD_UINT32:
        return "uint";
    case VXD_FLOAT32:
        return "float";
    case VXD_FLOAT64:
        return "double";
    default:
        return NULL;
    }
}

static enum vxd_status put_header(struct vxd_sink *sink, const struct vxd_table *table,
                                  const char *encoding, struct vxd_err *err)
{
    vxd_sink_print(sink,
                   "ply\nformat %s 1.0\ncomment made by voxelctl\nelement vertex %zu\n",
                   encoding, table->n_rows);
    for (size_t i = 0; i < table->n_columns; i++) {
        const char *type = type_of(table->columns[i].to);

        if (type == NULL) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, "out",
                            "the field \"%.64s\" has a type that PLY does not have",
                            table->columns[i].name);
        }
        vxd_sink_print(sink, "property %s %s\n", type, table->columns[i].name);
    }
    vxd_sink_print(sink, "end_header\n");
    return VXD_OK;
}

enum vxd_status vxd_ply_put_ascii(struct vxd_sink *sink, struct vxd_table *table,
                                  struct vxd_err *err)
{
    enum vxd_status status = put_header(sink, table, "ascii", err);

    return status == VXD_OK ? vxd_sink_put_text(sink, table, err) : status;
}

enum vxd_status vxd_ply_put_little(struct vxd_sink *sink, struct vxd_table *table,
                                   struct vxd_err *err)
{
    enum vxd_status status = put_header(sink, table, "binary_little_endian", err);

    if (status == VXD_OK) {
        vxd_sink_put_rows(sink, table, false);
    }
    return status;
}

enum vxd_status vxd_ply_put_big(struct vxd_sink *sink, struct vxd_table *table,
                                struct vxd_err *err)
{
    enum vxd_status status = put_header(sink, table, "binary_big_endian", err);

    if (status == VXD_OK) {
        vxd_sink_put_rows(sink, table, true);
    }
    return status;
}
