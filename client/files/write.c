// SPDX-License-Identifier: Apache-2.0
#include "client/files/write.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    BUFFER_BYTES = 65536,
    MAX_AXES = 8,
    NPY_ALIGN = 64
};

static enum vxd_status write_failed(struct vxd_err *err)
{
    return vxd_fail(err, VXD_UNAVAILABLE, "out", "cannot write: %s", strerror(errno));
}

static const char *ply_type(enum vxd_dtype dtype)
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

static const char *npy_type(enum vxd_dtype dtype)
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

static enum vxd_status write_rows(FILE *stream, const struct vxd_write_column *columns,
                                  size_t n_columns, size_t n_rows, size_t step,
                                  uint8_t *buffer, struct vxd_err *err)
{
    size_t used = 0;

    for (size_t row = 0; row < n_rows; row++) {
        if (used + step > BUFFER_BYTES) {
            if (fwrite(buffer, 1, used, stream) != used) {
                return write_failed(err);
            }
            used = 0;
        }
        for (size_t i = 0; i < n_columns; i++) {
            size_t width = vxd_dtype_bytes(columns[i].dtype);

            memcpy(buffer + used,
                   (const uint8_t *)columns[i].data + row * columns[i].stride_bytes,
                   width);
            used += width;
        }
    }
    if (fwrite(buffer, 1, used, stream) != used || fflush(stream) != 0) {
        return write_failed(err);
    }
    return VXD_OK;
}

enum vxd_status vxd_ply_write(FILE *stream, const struct vxd_write_column *columns,
                              size_t n_columns, size_t n_rows, struct vxd_err *err)
{
    size_t step = 0;
    uint8_t *buffer;
    enum vxd_status status;

    if (fprintf(stream,
                "ply\nformat binary_little_endian 1.0\ncomment made by voxelctl\n"
                "element vertex %zu\n",
                n_rows) < 0) {
        return write_failed(err);
    }
    for (size_t i = 0; i < n_columns; i++) {
        const char *type = ply_type(columns[i].dtype);

        step += vxd_dtype_bytes(columns[i].dtype);
        if (type == NULL || step > BUFFER_BYTES) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, columns[i].name,
                            "a type that PLY does not have, or rows over %d bytes",
                            BUFFER_BYTES);
        }
        if (fprintf(stream, "property %s %s\n", type, columns[i].name) < 0) {
            return write_failed(err);
        }
    }
    if (fputs("end_header\n", stream) == EOF) {
        return write_failed(err);
    }
    buffer = malloc(BUFFER_BYTES);
    if (buffer == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "out", "no memory for %d bytes",
                        BUFFER_BYTES);
    }
    status = write_rows(stream, columns, n_columns, n_rows, step, buffer, err);
    free(buffer);
    return status;
}

enum vxd_status vxd_npy_write(FILE *stream, enum vxd_dtype dtype, const size_t *shape,
                              size_t n_axes, const void *data, struct vxd_err *err)
{
    char header[512] = "\x93NUMPY\x01";
    const char *type = npy_type(dtype);
    size_t n_bytes = vxd_dtype_bytes(dtype);
    size_t used = 10;
    size_t total;

    if (type == NULL || n_axes > MAX_AXES) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "out",
                        "a type that NumPy does not have, or more than %d axes",
                        MAX_AXES);
    }
    used += (size_t)snprintf(header + used, sizeof header - used,
                             "{'descr': '%s', 'fortran_order': False, 'shape': (", type);
    for (size_t i = 0; i < n_axes; i++) {
        /* A comma behind every extent: also right for one axis. */
        used += (size_t)snprintf(header + used, sizeof header - used, "%zu,", shape[i]);
        if (!vxd_size_mul(n_bytes, shape[i], &n_bytes)) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, "out", "the array is too large");
        }
    }
    used += (size_t)snprintf(header + used, sizeof header - used, "), }");
    /* Padded so that the elements begin at a multiple of 64, as numpy does it. */
    total = (used + 1 + NPY_ALIGN - 1) / NPY_ALIGN * NPY_ALIGN;
    memset(header + used, ' ', total - 1 - used);
    header[total - 1] = '\n';
    header[8] = (char)((total - 10) & 0xff);
    header[9] = (char)((total - 10) >> 8);
    if (fwrite(header, 1, total, stream) != total ||
        (n_bytes > 0 && fwrite(data, 1, n_bytes, stream) != n_bytes) ||
        fflush(stream) != 0) {
        return write_failed(err);
    }
    return VXD_OK;
}
