// SPDX-License-Identifier: Apache-2.0
/* Arrays of requests and replies. Integers are converted with their range checked; floats
 * are taken as they are, or made of JSON's numbers. */
#include <inttypes.h>
#include <math.h>

#include "proto/wire/wire.h"
#include "server/service/map/map.h"
#include "server/service/service.h"

enum {
    MAX_JSON_VALUES = 65536 /* Tensor.values in common.proto */
};

/* Whole numbers below are exact in a double; what is written beyond may have been another. */
#define TWO_53 9007199254740992.0

static const char *dtype_name(enum vxd_dtype dtype)
{
    const ProtobufCEnumValue *value =
        protobuf_c_enum_descriptor_get_value(&voxeld__v1__dtype__descriptor, (int)dtype);

    return value != NULL ? value->name : "unknown";
}

static enum vxd_status check_shape(const Voxeld__V1__Tensor *tensor, const char *field,
                                   size_t *n, struct vxd_err *err)
{
    *n = 1;
    if (tensor->n_shape < 1 || tensor->n_shape > 2) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                        "has %zu extents, it must have 1 or 2: rows, and elements a row",
                        tensor->n_shape);
    }
    for (size_t i = 0; i < tensor->n_shape; i++) {
        if (tensor->shape[i] < 0 || tensor->shape[i] > INT32_MAX ||
            !vxd_size_mul(*n, (size_t)tensor->shape[i], n)) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                            "extent %zu is %" PRId64 ", it must be 0 to %d", i,
                            tensor->shape[i], INT32_MAX);
        }
    }
    return VXD_OK;
}

enum vxd_status vxd_map_check_tensor(const Voxeld__V1__Tensor *tensor, const char *field,
                                     size_t *n_rows, struct vxd_err *err)
{
    size_t n;
    size_t n_sound;
    enum vxd_status status;

    if (tensor == NULL) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, field, "is required");
    }
    status = check_shape(tensor, field, &n, err);
    if (status != VXD_OK) {
        return status;
    }
    *n_rows = (size_t)tensor->shape[0];
    if (tensor->n_values == 0) {
        if (!vxd_tensor_elements(tensor, &n_sound)) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                            "its %zu bytes of data are not %zu elements of its dtype, %d",
                            tensor->data.len, n, (int)tensor->dtype);
        }
        return VXD_OK;
    }
    if (tensor->data.len > 0) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, field, "has both data and values");
    }
    if (tensor->n_values != n || n > MAX_JSON_VALUES) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                        "has %zu values for a shape of %zu elements, at most %d are "
                        "possible",
                        tensor->n_values, n, MAX_JSON_VALUES);
    }
    return VXD_OK;
}

/* Checks the numbers of rows and of elements in a row; n x 1 may be given as n. */
static enum vxd_status check_rows(const Voxeld__V1__Tensor *tensor, const char *field,
                                  size_t n, size_t n_elements, struct vxd_err *err)
{
    size_t n_given = tensor->n_shape == 2 ? (size_t)tensor->shape[1] : 1;

    if ((size_t)tensor->shape[0] != n) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                        "has %" PRId64 " rows, there must be %zu", tensor->shape[0], n);
    }
    if (n_given != n_elements) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                        "has %zu elements a row, the map has %zu", n_given, n_elements);
    }
    return VXD_OK;
}

static int64_t load_signed(const void *data, enum vxd_dtype dtype, size_t i)
{
    switch (dtype) {
    case VXD_INT8:
        return ((const int8_t *)data)[i];
    case VXD_UINT8:
        return ((const uint8_t *)data)[i];
    case VXD_INT16:
        return ((const int16_t *)data)[i];
    case VXD_UINT16:
        return ((const uint16_t *)data)[i];
    case VXD_INT32:
        return ((const int32_t *)data)[i];
    case VXD_UINT32:
        return ((const uint32_t *)data)[i];
    default:
        return ((const int64_t *)data)[i];
    }
}

static enum vxd_status fail_range(const Voxeld__V1__Tensor *tensor, const char *field,
                                  enum vxd_dtype dtype, size_t i, double value,
                                  struct vxd_err *err)
{
    size_t n_elements = tensor->n_shape == 2 ? (size_t)tensor->shape[1] : 1;
    bool inexact = tensor->n_values > 0 && fabs(value) >= TWO_53 &&
                   dtype != VXD_FLOAT32 && isfinite(value);

    return vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                    "row %zu, element %zu is %.17g, which the map's type, %s, does not "
                    "hold%s",
                    i / n_elements, i % n_elements, value, dtype_name(dtype),
                    inexact ? "; whole numbers from 2^53 on go as data, not as values"
                            : "");
}

static bool is_integer(enum vxd_dtype dtype)
{
    return (dtype >= VXD_INT8 && dtype <= VXD_UINT32) || dtype == VXD_INT64 ||
           dtype == VXD_UINT64;
}

/* Reads element i as a whole number; false where it is none, beyond int64 or not exact. */
static bool load_integer(const Voxeld__V1__Tensor *tensor, size_t i, int64_t *out)
{
    if (tensor->n_values > 0) {
        double value = tensor->values[i];

        /* NaN fails every comparison. */
        if (!(fabs(value) < TWO_53) || floor(value) != value) {
            return false;
        }
        *out = (int64_t)value;
        return true;
    }
    *out = load_signed(tensor->data.data, (enum vxd_dtype)tensor->dtype, i);
    return tensor->dtype != VOXELD__V1__DTYPE__UINT64 || *out >= 0;
}

static double element_double(const Voxeld__V1__Tensor *tensor, size_t i)
{
    int64_t value;

    if (tensor->n_values > 0) {
        return tensor->values[i];
    }
    value = load_signed(tensor->data.data, (enum vxd_dtype)tensor->dtype, i);
    return tensor->dtype == VOXELD__V1__DTYPE__UINT64 ? (double)(uint64_t)value
                                                      : (double)value;
}

static enum vxd_status convert_integers(const Voxeld__V1__Tensor *tensor,
                                        const char *field, enum vxd_dtype dtype, size_t n,
                                        void *out, struct vxd_err *err)
{
    int64_t low = dtype == VXD_INT16   ? INT16_MIN
                  : dtype == VXD_INT32 ? INT32_MIN
                                       : INT64_MIN;
    int64_t high = dtype == VXD_INT16   ? INT16_MAX
                   : dtype == VXD_INT32 ? INT32_MAX
                                        : INT64_MAX;

    for (size_t i = 0; i < n; i++) {
        int64_t value = 0;

        if (!load_integer(tensor, i, &value) || value < low || value > high) {
            return fail_range(tensor, field, dtype, i, element_double(tensor, i), err);
        }
        if (dtype == VXD_INT16) {
            ((int16_t *)out)[i] = (int16_t)value;
        } else if (dtype == VXD_INT32) {
            ((int32_t *)out)[i] = (int32_t)value;
        } else {
            ((int64_t *)out)[i] = value;
        }
    }
    return VXD_OK;
}

enum vxd_status vxd_map_read_integers(struct vxd_map_job *job, struct vxd_queue *queue,
                                      const Voxeld__V1__Tensor *tensor, const char *field,
                                      enum vxd_dtype dtype, size_t n_elements,
                                      const void **out, struct vxd_err *err)
{
    size_t n_rows = (size_t)tensor->shape[0];
    size_t n = n_rows * n_elements;
    void *converted = NULL;
    enum vxd_status status;

    VXD_TRY(check_rows(tensor, field, n_rows, n_elements, err));
    if (tensor->n_values == 0 && tensor->dtype == (Voxeld__V1__DType)dtype) {
        *out = tensor->data.data;
        return VXD_OK;
    }
    if (tensor->n_values == 0 && !is_integer((enum vxd_dtype)tensor->dtype)) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                         "has the dtype %s, it must be one of integers",
                         dtype_name((enum vxd_dtype)tensor->dtype)));
    }
    VXD_TRY(vxd_map_take_host(job, queue, n * vxd_dtype_bytes(dtype), &converted, err));
    VXD_TRY(convert_integers(tensor, field, dtype, n, converted, err));
    *out = converted;
out:
    return status;
}

/* Stores a JSON number as an element; false where the type does not hold it. */
static bool store_number(double value, enum vxd_dtype dtype, void *out, size_t i)
{
    static const struct {
        double low;
        double end;
    } ranges[] = {
        [VXD_INT8] = {-128.0, 128.0},
        [VXD_UINT8] = {0.0, 256.0},
        [VXD_INT16] = {-32768.0, 32768.0},
        [VXD_UINT16] = {0.0, 65536.0},
        [VXD_INT32] = {-2147483648.0, 2147483648.0},
        [VXD_UINT32] = {0.0, 4294967296.0},
        [VXD_INT64] = {1.0 - TWO_53, TWO_53},
        [VXD_UINT64] = {0.0, TWO_53},
    };

    if (dtype == VXD_FLOAT32) {
        if (isfinite(value) && !isfinite((float)value)) {
            return false;
        }
        ((float *)out)[i] = (float)value;
        return true;
    }
    if (dtype == VXD_FLOAT64) {
        ((double *)out)[i] = value;
        return true;
    }
    if (!(value >= ranges[dtype].low && value < ranges[dtype].end) ||
        floor(value) != value) {
        return false;
    }
    if (vxd_dtype_bytes(dtype) == 8) {
        ((int64_t *)out)[i] = (int64_t)value;
    } else {
        int64_t whole = (int64_t)value; /* little-endian: its low bytes */

        memcpy((uint8_t *)out + i * vxd_dtype_bytes(dtype), &whole,
               vxd_dtype_bytes(dtype));
    }
    return true;
}

static bool may_widen(enum vxd_dtype from, enum vxd_dtype to)
{
    return (from == VXD_UINT32 && to == VXD_UINT64) ||
           (from == VXD_FLOAT32 && to == VXD_FLOAT64);
}

enum vxd_status vxd_map_read_rows(struct vxd_map_job *job, struct vxd_queue *queue,
                                  const Voxeld__V1__Tensor *tensor, const char *field,
                                  size_t n, size_t n_elements, bool widens,
                                  enum vxd_dtype *dtype, const void **out,
                                  struct vxd_err *err)
{
    enum vxd_dtype given = (enum vxd_dtype)tensor->dtype;
    void *converted = NULL;
    enum vxd_status status;

    VXD_TRY(check_rows(tensor, field, n, n_elements, err));
    if (tensor->n_values == 0) {
        if (given != *dtype && !(widens && may_widen(given, *dtype))) {
            VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                             "has the dtype %s, the map's array has %s",
                             dtype_name(given), dtype_name(*dtype)));
        }
        *dtype = given;
        *out = tensor->data.data;
        return VXD_OK;
    }
    if (*dtype == VXD_FLOAT16 || *dtype == VXD_BFLOAT16) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                         "the map's array has 16-bit floats: send data, not values"));
    }
    VXD_TRY(vxd_map_take_host(job, queue, n * n_elements * vxd_dtype_bytes(*dtype),
                              &converted, err));
    for (size_t i = 0; i < n * n_elements; i++) {
        if (!store_number(tensor->values[i], *dtype, converted, i)) {
            VXD_TRY(fail_range(tensor, field, *dtype, i, tensor->values[i], err));
        }
    }
    *out = converted;
out:
    return status;
}
