// SPDX-License-Identifier: Apache-2.0
/* Writes PCD 0.7 as PCL does; pcd.c describes the format. */
#include <stdlib.h>
#include <string.h>

#include "client/files/reader.h"
#include "client/files/writer.h"

static char type_of(enum vxd_dtype dtype)
{
    switch (dtype) {
    case VXD_INT8:
    case VXD_INT16:
    case VXD_INT32:
    case VXD_INT64:
        return 'I';
    case VXD_FLOAT32:
    case VXD_FLOAT64:
        return 'F';
    default:
        return 'U';
    }
}

static enum vxd_status put_header(struct vxd_sink *sink, const struct vxd_table *table,
                                  const char *data, struct vxd_err *err)
{
    vxd_sink_print(sink, "# .PCD v0.7 - Point Cloud Data file format\nVERSION 0.7\n");
    vxd_sink_print(sink, "FIELDS");
    for (size_t i = 0; i < table->n_columns; i++) {
        if (strcmp(table->columns[i].name, "_") == 0) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, "out",
                            "a field is called \"_\", which is padding in PCD files");
        }
        vxd_sink_print(sink, " %s", table->columns[i].name);
    }
    vxd_sink_print(sink, "\nSIZE");
    for (size_t i = 0; i < table->n_columns; i++) {
        vxd_sink_print(sink, " %zu", vxd_dtype_bytes(table->columns[i].to));
    }
    vxd_sink_print(sink, "\nTYPE");
    for (size_t i = 0; i < table->n_columns; i++) {
        vxd_sink_print(sink, " %c", type_of(table->columns[i].to));
    }
    vxd_sink_print(sink, "\nCOUNT");
    for (size_t i = 0; i < table->n_columns; i++) {
        vxd_sink_print(sink, " 1");
    }
    vxd_sink_print(
        sink, "\nWIDTH %zu\nHEIGHT 1\nVIEWPOINT 0 0 0 1 0 0 0\nPOINTS %zu\nDATA %s\n",
        table->n_rows, table->n_rows, data);
    return VXD_OK;
}

enum vxd_status vxd_pcd_put_ascii(struct vxd_sink *sink, struct vxd_table *table,
                                  struct vxd_err *err)
{
    enum vxd_status status = put_header(sink, table, "ascii", err);

    return status == VXD_OK ? vxd_sink_put_text(sink, table, err) : status;
}

enum vxd_status vxd_pcd_put_binary(struct vxd_sink *sink, struct vxd_table *table,
                                   struct vxd_err *err)
{
    enum vxd_status status = put_header(sink, table, "binary", err);

    if (status == VXD_OK) {
        vxd_sink_put_rows(sink, table, false);
    }
    return status;
}

/* The bytes are column after column, which packs well. */
static void gather(const struct vxd_table *table, uint8_t *out)
{
    for (size_t i = 0; i < table->n_columns; i++) {
        for (size_t row = 0; row < table->n_rows; row++) {
            vxd_column_store(&table->columns[i], row, out);
            out += vxd_dtype_bytes(table->columns[i].to);
        }
    }
}

enum vxd_status vxd_pcd_put_compressed(struct vxd_sink *sink, struct vxd_table *table,
                                       struct vxd_err *err)
{
    uint8_t *columns = NULL;
    uint8_t *packed = NULL;
    size_t n_bytes;
    size_t n_packed;
    enum vxd_status status;

    VXD_TRY(put_header(sink, table, "binary_compressed", err));
    if (!vxd_size_mul(table->n_rows, vxd_table_row_bytes(table), &n_bytes) ||
        VXD_LZF_BOUND((uint64_t)n_bytes) >= UINT32_MAX) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "out",
                        "compressed PCD files hold less than 4 GiB of points");
    }
    columns = malloc(n_bytes + 1);
    packed = malloc(VXD_LZF_BOUND(n_bytes));
    if (columns != NULL && packed != NULL) {
        gather(table, columns);
    }
    if (columns == NULL || packed == NULL ||
        !vxd_lzf_compress(columns, n_bytes, packed, &n_packed)) {
        status = vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "out", "no memory for %zu bytes",
                          2 * n_bytes);
        goto out;
    }
    vxd_sink_put_u32(sink, (uint32_t)n_packed);
    vxd_sink_put_u32(sink, (uint32_t)n_bytes);
    vxd_sink_put(sink, packed, n_packed);
out:
    free(packed);
    free(columns);
    return status;
}
