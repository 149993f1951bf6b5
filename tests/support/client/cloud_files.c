// SPDX-License-Identifier: Apache-2.0
#include "tests/support/client/cloud_files.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint8_t *load(const char *path, size_t *n_bytes)
{
    FILE *file = fopen(path, "rb");
    uint8_t *bytes = NULL;
    long size;

    *n_bytes = 0;
    if (file == NULL) {
        return NULL;
    }
    if (fseek(file, 0, SEEK_END) == 0 && (size = ftell(file)) >= 0 &&
        fseek(file, 0, SEEK_SET) == 0) {
        bytes = malloc(size > 0 ? (size_t)size : 1);
        if (bytes != NULL && fread(bytes, 1, (size_t)size, file) == (size_t)size) {
            *n_bytes = (size_t)size;
        }
    }
    (void)fclose(file);
    return bytes;
}

const struct vxd_file_field *field(const struct vxd_cloud_file *file, const char *name)
{
    for (size_t i = 0; i < file->n_fields; i++) {
        if (strcmp(file->fields[i].name, name) == 0) {
            return &file->fields[i];
        }
    }
    return NULL;
}

static double half(uint16_t bits)
{
    int exponent = bits >> 10 & 31;
    double mantissa = (double)(bits & 1023) / 1024;
    double value =
        exponent == 0 ? ldexp(mantissa, -14) : ldexp(1 + mantissa, exponent - 15);

    if (exponent == 31) {
        value = mantissa > 0 ? (double)NAN : HUGE_VAL;
    }
    return bits >> 15 != 0 ? -value : value;
}

double value(const struct vxd_cloud_file *file, size_t point, const char *name)
{
    const struct vxd_file_field *f = field(file, name);
    union {
        uint8_t bytes[8];
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
    } raw = {{0}};
    double number = (double)NAN;

    if (f == NULL) {
        return number;
    }
    memcpy(raw.bytes, file->data + point * file->point_step + f->offset,
           vxd_dtype_bytes(f->dtype));
    switch (f->dtype) {
    case VXD_INT8:
        number = raw.i1;
        break;
    case VXD_UINT8:
        number = raw.u1;
        break;
    case VXD_INT16:
        number = raw.i2;
        break;
    case VXD_UINT16:
        number = raw.u2;
        break;
    case VXD_INT32:
        number = raw.i4;
        break;
    case VXD_UINT32:
        number = raw.u4;
        break;
    case VXD_INT64:
        number = (double)raw.i8;
        break;
    case VXD_UINT64:
        number = (double)raw.u8;
        break;
    case VXD_FLOAT16:
        number = half(raw.u2);
        break;
    case VXD_FLOAT32:
        number = (double)raw.f4;
        break;
    case VXD_FLOAT64:
        number = raw.f8;
        break;
    default:
        break;
    }
    return number * f->scale + f->bias;
}
