// SPDX-License-Identifier: Apache-2.0
/* Reads elements of points as numbers, and converts them from one type into another. */
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <string.h>

#include "client/files/files.h"
#include "client/files/writer.h"

enum {
    MAX_ELEMENT_BYTES = 8
};

union raw {
    uint8_t bytes[MAX_ELEMENT_BYTES];
    int8_t i1;
    uint8_t u1;
    int16_t i2;
    uint16_t u2;
    int32_t i4;
    uint32_t u4;
    int64_t i8;
    uint64_t u8;
    float f4;
    double f8;
};

static double half_double(uint16_t bits)
{
    int exponent = bits >> 10 & 31;
    double mantissa = (double)(bits & 1023) / 1024;
    double value;

    if (exponent == 31) {
        value = mantissa > 0 ? (double)NAN : HUGE_VAL;
    } else if (exponent == 0) {
        value = ldexp(mantissa, -14);
    } else {
        value = ldexp(1 + mantissa, exponent - 15);
    }
    return bits >> 15 != 0 ? -value : value;
}

static double bfloat_double(uint16_t bits)
{
    union raw raw = {.u4 = (uint32_t)bits << 16};

    return (double)raw.f4;
}

static double raw_double(const union raw *raw, enum vxd_dtype dtype)
{
    switch (dtype) {
    case VXD_INT8:
        return raw->i1;
    case VXD_UINT8:
        return raw->u1;
    case VXD_INT16:
        return raw->i2;
    case VXD_UINT16:
        return raw->u2;
    case VXD_INT32:
        return raw->i4;
    case VXD_UINT32:
        return raw->u4;
    case VXD_INT64:
        return (double)raw->i8;
    case VXD_UINT64:
        return (double)raw->u8;
    case VXD_FLOAT16:
        return half_double(raw->u2);
    case VXD_BFLOAT16:
        return bfloat_double(raw->u2);
    case VXD_FLOAT32:
        return (double)raw->f4;
    case VXD_FLOAT64:
        return raw->f8;
    case VXD_DTYPE_UNSPECIFIED:
        break;
    }
    return 0;
}

static union raw load(const struct vxd_column *column, size_t row)
{
    union raw raw = {{0}};

    memcpy(raw.bytes, column->data + row * column->stride_bytes,
           vxd_dtype_bytes(column->from));
    return raw;
}

double vxd_file_field_double(const struct vxd_file_field *field, const uint8_t *record)
{
    const struct vxd_column column = {.data = record + field->offset,
                                      .from = field->dtype,
                                      .scale = field->scale,
                                      .bias = field->bias};

    return vxd_column_double(&column, 0);
}

static bool is_plain(const struct vxd_column *column)
{
    return column->scale == 1 && column->bias == 0;
}

double vxd_column_double(const struct vxd_column *column, size_t row)
{
    union raw raw = load(column, row);
    double value = raw_double(&raw, column->from);

    return is_plain(column) ? value : value * column->scale + column->bias;
}

void vxd_column_store(const struct vxd_column *column, size_t row, uint8_t *out)
{
    union raw raw;

    if (column->from == column->to && is_plain(column)) {
        memcpy(out, column->data + row * column->stride_bytes,
               vxd_dtype_bytes(column->to));
        return;
    }
    if (column->to == VXD_FLOAT32) {
        raw.f4 = (float)vxd_column_double(column, row);
    } else {
        raw.f8 = vxd_column_double(column, row);
    }
    memcpy(out, raw.bytes, vxd_dtype_bytes(column->to));
}

struct vxd_column *vxd_table_find(struct vxd_table *table, const char *name)
{
    for (size_t i = 0; i < table->n_columns; i++) {
        if (strcmp(table->columns[i].name, name) == 0) {
            table->columns[i].used = true;
            return &table->columns[i];
        }
    }
    return NULL;
}

size_t vxd_table_row_bytes(const struct vxd_table *table)
{
    size_t n = 0;

    for (size_t i = 0; i < table->n_columns; i++) {
        n += vxd_dtype_bytes(table->columns[i].to);
    }
    return n;
}

void vxd_sink_put_rows(struct vxd_sink *sink, const struct vxd_table *table,
                       bool big_endian)
{
    for (size_t row = 0; row < table->n_rows; row++) {
        for (size_t i = 0; i < table->n_columns; i++) {
            size_t n = vxd_dtype_bytes(table->columns[i].to);
            uint8_t bytes[MAX_ELEMENT_BYTES];
            uint8_t turned[MAX_ELEMENT_BYTES];

            vxd_column_store(&table->columns[i], row, bytes);
            for (size_t k = 0; big_endian && k < n; k++) {
                turned[k] = bytes[n - 1 - k];
            }
            vxd_sink_put(sink, big_endian ? turned : bytes, n);
        }
    }
}

static void put_text(struct vxd_sink *sink, const struct vxd_column *column, size_t row)
{
    union raw raw = {{0}};
    double value;

    vxd_column_store(column, row, raw.bytes);
    value = raw_double(&raw, column->to);
    if (column->to == VXD_INT64) {
        vxd_sink_print(sink, "%" PRId64, raw.i8);
    } else if (column->to == VXD_UINT64) {
        vxd_sink_print(sink, "%" PRIu64, raw.u8);
    } else if (isnan(value)) {
        vxd_sink_put(sink, "nan", 3); /* printf may write its sign */
    } else {
        vxd_sink_print(sink, column->to == VXD_FLOAT32 ? "%.9g" : "%.17g", value);
    }
}

enum vxd_status vxd_sink_put_text(struct vxd_sink *sink, const struct vxd_table *table,
                                  struct vxd_err *err)
{
    locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    locale_t before;

    if (c_locale == (locale_t)0) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "out", "no memory for a locale");
    }
    before = uselocale(c_locale); /* of this thread only */
    for (size_t row = 0; row < table->n_rows; row++) {
        for (size_t i = 0; i < table->n_columns; i++) {
            if (i > 0) {
                vxd_sink_put(sink, " ", 1);
            }
            put_text(sink, &table->columns[i], row);
        }
        vxd_sink_put(sink, "\n", 1);
    }
    (void)uselocale(before);
    freelocale(c_locale);
    return VXD_OK;
}
