// SPDX-License-Identifier: Apache-2.0
/* Names, and columns of integers: what records of maps and of volumes have in common. */
#include "server/durable/record/byte_planes.h"
#include "server/durable/record/record_internal.h"

static uint64_t mask_of(size_t width)
{
    return width == 8 ? UINT64_MAX : ((uint64_t)1 << (8 * width)) - 1;
}

static uint64_t load(const struct vxd_record_columns *columns, size_t row, size_t column)
{
    uint64_t value = 0;

    memcpy(&value, columns->bytes + (row * columns->n_columns + column) * columns->width,
           columns->width);
    return value;
}

/* --- writing ---------------------------------------------------------------------------- */

void vxd_record_put_name(struct vxd_bytes_out *out, const char *name)
{
    size_t n = strlen(name);

    vxd_bytes_put8(out, (unsigned)n);
    vxd_bytes_put(out, name, n);
}

/* The differences of one column, their bytes in planes one behind the other. */
static void split(const struct vxd_record_columns *columns, size_t column,
                  uint8_t *planes)
{
    uint64_t mask = mask_of(columns->width);
    size_t top = 8 * columns->width - 1;
    uint64_t before = 0;

    for (size_t i = 0; i < columns->n; i++) {
        uint64_t value = load(columns, i, column);
        uint64_t difference = (value - before) & mask;
        uint64_t sign = difference >> top != 0 ? mask : 0;
        uint64_t folded = ((difference << 1) & mask) ^ sign;

        for (size_t k = 0; k < columns->width; k++) {
            planes[k * columns->n + i] = (uint8_t)(folded >> (8 * k));
        }
        before = value;
    }
}

enum vxd_status vxd_record_put_columns(struct vxd_bytes_out *out,
                                       const struct vxd_record_columns *columns,
                                       struct vxd_err *err)
{
    uint8_t *planes;

    if (columns->n == 0) {
        return VXD_OK;
    }
    planes = calloc(columns->n, columns->width);
    if (planes == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a record");
    }
    for (size_t j = 0; j < columns->n_columns; j++) {
        split(columns, j, planes);
        for (size_t k = 0; k < columns->width; k++) {
            vxd_byte_plane_put(out, planes + k * columns->n, columns->n);
        }
    }
    free(planes);
    return VXD_OK;
}

/* --- reading ---------------------------------------------------------------------------- */

bool vxd_record_get_name(struct vxd_record_reader *reader,
                         char out[VXD_RECORD_NAME_BYTES])
{
    unsigned n = vxd_bytes_get8(&reader->in);
    const uint8_t *from =
        n < VXD_RECORD_NAME_BYTES ? vxd_bytes_get(&reader->in, n) : NULL;

    if (from == NULL || (n > 0 && memchr(from, 0, n) != NULL)) {
        return vxd_record_bad(reader, "not a name");
    }
    memcpy(out, from, n);
    out[n] = '\0';
    return true;
}

/* One column from its planes. */
static void join(const struct vxd_record_columns *columns, size_t column,
                 const uint8_t *planes)
{
    uint64_t mask = mask_of(columns->width);
    uint64_t before = 0;

    for (size_t i = 0; i < columns->n; i++) {
        uint64_t folded = 0;

        for (size_t k = 0; k < columns->width; k++) {
            folded |= (uint64_t)planes[k * columns->n + i] << (8 * k);
        }
        before += (folded >> 1) ^ ((folded & 1) != 0 ? mask : 0);
        before &= mask;
        memcpy(columns->bytes + (i * columns->n_columns + column) * columns->width,
               &before, columns->width);
    }
}

bool vxd_record_get_columns(struct vxd_record_reader *reader,
                            struct vxd_record_columns *columns)
{
    uint8_t *planes;

    columns->bytes = vxd_record_alloc(reader, (uint64_t)columns->n + 1,
                                      columns->n_columns * columns->width);
    planes = columns->bytes != NULL
                 ? vxd_record_alloc(reader, (uint64_t)columns->n + 1, columns->width)
                 : NULL;
    if (planes == NULL) {
        return false;
    }
    for (size_t j = 0; j < columns->n_columns && columns->n > 0; j++) {
        for (size_t k = 0; k < columns->width; k++) {
            if (!vxd_byte_plane_get(&reader->in, planes + k * columns->n, columns->n)) {
                return vxd_record_bad(reader, "not a plane of keys");
            }
        }
        join(columns, j, planes);
    }
    return true;
}
