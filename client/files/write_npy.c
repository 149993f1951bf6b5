// SPDX-License-Identifier: Apache-2.0
/* Writes NumPy's .npy, version 1; npy.c describes it. */
#include <string.h>

#include "client/files/reader.h"
#include "client/files/writer.h"

enum {
    ALIGN = 64,
    PREFIX_BYTES = 10,
    /* Holds 64 fields, a name of 63 bytes and 12 more each. */
    MAX_DESCR = VXD_FILE_MAX_FIELDS * (VXD_FILE_NAME_BYTES + 16),
    MAX_HEADER = MAX_DESCR + 512,
    MAX_EXTENTS = 256
};

const char *vxd_npy_type(enum vxd_dtype dtype)
{
    switch (dtype) {
    case VXD_INT8:
        return "|i1";
    case VXD_UINT8:
        return "|u1";
    case VXD_INT16:
        return "<i2";
    case VXD_UINT16:
        return "<u2";
    case VXD_INT32:
        return "<i4";
    case VXD_UINT32:
        return "<u4";
    case VXD_INT64:
        return "<i8";
    case VXD_UINT64:
        return "<u8";
    case VXD_FLOAT16:
        return "<f2";
    case VXD_FLOAT32:
        return "<f4";
    case VXD_FLOAT64:
        return "<f8";
    default:
        return NULL;
    }
}

void vxd_npy_put_header(struct vxd_sink *sink, const char *descr, const size_t *shape,
                        size_t n_axes)
{
    char extents[MAX_EXTENTS] = "";
    char header[MAX_HEADER];
    size_t used = 0;
    size_t n_blanks;
    int n;

    /* A comma follows every extent, which is right for one axis, too. */
    for (size_t i = 0; i < n_axes; i++) {
        used += (size_t)snprintf(extents + used, sizeof extents - used, "%zu,", shape[i]);
    }
    n = snprintf(header, sizeof header,
                 "{'descr': %s, 'fortran_order': False, 'shape': (%s), }", descr,
                 extents);
    used = PREFIX_BYTES + (size_t)n + 1;
    /* The header is padded so that the elements begin at a multiple of 64, as numpy
     * does it. */
    n_blanks = (ALIGN - used % ALIGN) % ALIGN;
    vxd_sink_put(sink, "\x93NUMPY\x01\x00", 8);
    vxd_sink_put_u16(sink, (uint16_t)(used + n_blanks - PREFIX_BYTES));
    vxd_sink_put(sink, header, (size_t)n);
    for (size_t i = 0; i < n_blanks; i++) {
        vxd_sink_put(sink, " ", 1);
    }
    vxd_sink_put(sink, "\n", 1);
}

/* Whether a plain N x C array loses nothing: all fields have one type, and the names
 * that a reader gives to its columns. */
static bool is_plain(const struct vxd_table *table)
{
    static const char *const first[] = {"x", "y", "z", "intensity"};

    for (size_t i = 0; i < table->n_columns; i++) {
        char name[32];

        (void)snprintf(name, sizeof name, "c%zu", i);
        if (strcmp(table->columns[i].name, i < 4 ? first[i] : name) != 0 ||
            table->columns[i].to != table->columns[0].to) {
            return false;
        }
    }
    return true;
}

enum vxd_status vxd_npy_put(struct vxd_sink *sink, struct vxd_table *table,
                            struct vxd_err *err)
{
    const size_t shape[2] = {table->n_rows, table->n_columns};
    bool plain = is_plain(table);
    char descr[MAX_DESCR];
    size_t used = 0;

    (void)err;
    if (plain) {
        (void)snprintf(descr, sizeof descr, "'%s'", vxd_npy_type(table->columns[0].to));
    }
    for (size_t i = 0; !plain && i < table->n_columns; i++) {
        used += (size_t)snprintf(descr + used, sizeof descr - used, "%s('%s', '%s')%s",
                                 i == 0 ? "[" : ", ", table->columns[i].name,
                                 vxd_npy_type(table->columns[i].to),
                                 i + 1 == table->n_columns ? "]" : "");
    }
    vxd_npy_put_header(sink, descr, shape, plain ? 2 : 1);
    vxd_sink_put_rows(sink, table, false);
    return VXD_OK;
}
