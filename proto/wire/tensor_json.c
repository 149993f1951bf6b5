// SPDX-License-Identifier: Apache-2.0
#include "proto/wire/tensor_json.h"
#include "proto/wire/text.h"

#include <math.h>
#include <string.h>

#define MAX_RANK 8

/* Whole numbers up to here, 2^53, are exact in a double. */
#define MAX_EXACT_INTEGER 9007199254740992

bool vxd_tensor_elements(const Voxeld__V1__Tensor *tensor, size_t *out)
{
    size_t n = 1;
    size_t n_bytes;

    if (tensor->n_shape > MAX_RANK) {
        return false;
    }
    for (size_t i = 0; i < tensor->n_shape; i++) {
        int64_t extent = tensor->shape[i];

        if (extent < 0 || (uint64_t)extent > SIZE_MAX ||
            !vxd_size_mul(n, (size_t)extent, &n)) {
            return false;
        }
    }
    *out = n;
    return vxd_dtype_bytes((enum vxd_dtype)tensor->dtype) > 0 &&
           vxd_size_mul(n, vxd_dtype_bytes((enum vxd_dtype)tensor->dtype), &n_bytes) &&
           n_bytes == tensor->data.len;
}

/* Reads the little-endian unsigned number of n_bytes at p. */
static uint64_t load(const uint8_t *p, size_t n_bytes)
{
    uint64_t value = 0;

    for (size_t i = 0; i < n_bytes; i++) {
        value |= (uint64_t)p[i] << (8 * i);
    }
    return value;
}

static float float_of_bits(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

static double double_of_bits(uint64_t bits)
{
    double value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Converts a half, which every float can hold. */
static float float_of_half(uint32_t half)
{
    uint32_t exponent = half >> 10 & 31;
    uint32_t mantissa = half & 1023;
    float value;

    if (exponent == 31) {
        value = mantissa != 0 ? NAN : INFINITY;
    } else if (exponent == 0) {
        value = ldexpf((float)mantissa, -24);
    } else {
        value = ldexpf((float)(mantissa + 1024), (int)exponent - 25);
    }
    return (half >> 15) != 0 ? -value : value;
}

static bool is_exact(uint64_t bits, enum vxd_dtype dtype)
{
    if (dtype == VXD_UINT64) {
        return bits <= MAX_EXACT_INTEGER;
    }
    if (dtype == VXD_INT64) {
        return (int64_t)bits <= MAX_EXACT_INTEGER && (int64_t)bits >= -MAX_EXACT_INTEGER;
    }
    return true;
}

bool vxd_tensor_fits_values(const Voxeld__V1__Tensor *tensor)
{
    enum vxd_dtype dtype = (enum vxd_dtype)tensor->dtype;
    size_t element_bytes = vxd_dtype_bytes(dtype);
    size_t n;

    if (!vxd_tensor_elements(tensor, &n) || n > VXD_JSON_MAX_VALUES ||
        tensor->n_values > 0) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        if (!is_exact(load(tensor->data.data + i * element_bytes, element_bytes),
                      dtype)) {
            return false;
        }
    }
    return true;
}

static void write_element(uint64_t bits, enum vxd_dtype dtype, struct vxd_text *text)
{
    switch (dtype) {
    case VXD_INT8:
        vxd_text_signed(text, (int8_t)(uint8_t)bits);
        break;
    case VXD_INT16:
        vxd_text_signed(text, (int16_t)(uint16_t)bits);
        break;
    case VXD_INT32:
        vxd_text_signed(text, (int32_t)(uint32_t)bits);
        break;
    case VXD_INT64:
        vxd_text_signed(text, (int64_t)bits);
        break;
    case VXD_FLOAT16:
        vxd_text_json_float(text, float_of_half((uint32_t)bits));
        break;
    case VXD_BFLOAT16:
        vxd_text_json_float(text, float_of_bits((uint32_t)bits << 16));
        break;
    case VXD_FLOAT32:
        vxd_text_json_float(text, float_of_bits((uint32_t)bits));
        break;
    case VXD_FLOAT64:
        vxd_text_json_double(text, double_of_bits(bits));
        break;
    default:
        vxd_text_unsigned(text, bits);
        break;
    }
}

void vxd_tensor_write_values(const Voxeld__V1__Tensor *tensor, struct vxd_text *text)
{
    enum vxd_dtype dtype = (enum vxd_dtype)tensor->dtype;
    size_t element_bytes = vxd_dtype_bytes(dtype);

    vxd_text_append(text, "[", 1);
    for (size_t at = 0; at < tensor->data.len && !text->failed; at += element_bytes) {
        if (at > 0) {
            vxd_text_append(text, ",", 1);
        }
        write_element(load(tensor->data.data + at, element_bytes), dtype, text);
    }
    vxd_text_append(text, "]", 1);
}
