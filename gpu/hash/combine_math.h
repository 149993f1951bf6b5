// SPDX-License-Identifier: Apache-2.0
/* The arithmetic of vxd_hashmap_update, element by element; compiled by both gcc and nvcc.
 *
 * The dtype of an array decides in which of three forms its elements are combined: integers as
 * 128-bit two's complement (2^31 rows of 64 bits and the old value never overflow it), float32,
 * float16 and bfloat16 as float, float64 as double. Loading is exact; only storing rounds or
 * clamps. The rows of one entry are added in blocks of VXD_COMBINE_BLOCK. A block's sum starts as
 * its first row and the total as its first block's sum, not as zero, so that -0 survives. */
#ifndef VXD_GPU_HASH_COMBINE_MATH_H
#define VXD_GPU_HASH_COMBINE_MATH_H

#include <string.h>

#include "gpu/core/core_math.h"
#include "gpu/hash/hash.h"

#define VXD_COMBINE_BLOCK 1024

enum vxd_combine_form {
    VXD_FORM_INT = 0,
    VXD_FORM_FLOAT = 1,
    VXD_FORM_DOUBLE = 2
};

/* 128 bits, two's complement. */
struct vxd_wide_int {
    uint64_t low;
    uint64_t high;
};

VXD_HD enum vxd_combine_form vxd_combine_form_of(enum vxd_dtype array_dtype)
{
    switch (array_dtype) {
    case VXD_FLOAT32:
    case VXD_FLOAT16:
    case VXD_BFLOAT16:
        return VXD_FORM_FLOAT;
    case VXD_FLOAT64:
        return VXD_FORM_DOUBLE;
    default:
        return VXD_FORM_INT;
    }
}

/* vxd_dtype_bytes, for device code too. */
VXD_HD int vxd_element_bytes(enum vxd_dtype dtype)
{
    switch (dtype) {
    case VXD_INT8:
    case VXD_UINT8:
        return 1;
    case VXD_INT16:
    case VXD_UINT16:
    case VXD_FLOAT16:
    case VXD_BFLOAT16:
        return 2;
    case VXD_INT32:
    case VXD_UINT32:
    case VXD_FLOAT32:
        return 4;
    default:
        return 8;
    }
}

VXD_HD double vxd_double_of_bits(uint64_t bits)
{
    double value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

VXD_HD double vxd_canonical_nand(double a)
{
    return a != a ? vxd_double_of_bits(0x7ff8000000000000ULL) : a;
}

VXD_HD struct vxd_wide_int vxd_wide_of_int64(int64_t value)
{
    struct vxd_wide_int wide;

    wide.low = (uint64_t)value;
    wide.high = value < 0 ? ~(uint64_t)0 : 0;
    return wide;
}

VXD_HD struct vxd_wide_int vxd_wide_of_uint64(uint64_t value)
{
    struct vxd_wide_int wide;

    wide.low = value;
    wide.high = 0;
    return wide;
}

VXD_HD struct vxd_wide_int vxd_wide_add(struct vxd_wide_int a, struct vxd_wide_int b)
{
    struct vxd_wide_int sum;

    sum.low = a.low + b.low;
    sum.high = a.high + b.high + (sum.low < a.low ? 1 : 0);
    return sum;
}

VXD_HD bool vxd_wide_less(struct vxd_wide_int a, struct vxd_wide_int b)
{
    uint64_t sign = (uint64_t)1 << 63;

    return a.high != b.high ? (a.high ^ sign) < (b.high ^ sign) : a.low < b.low;
}

/* Clamped to the dtype's 64 bits. */
VXD_HD int64_t vxd_wide_to_int64(struct vxd_wide_int a)
{
    if (a.high == (a.low >> 63 != 0 ? ~(uint64_t)0 : 0)) {
        return (int64_t)a.low;
    }
    return a.high >> 63 != 0 ? INT64_MIN : INT64_MAX;
}

VXD_HD uint64_t vxd_wide_to_uint64(struct vxd_wide_int a)
{
    if (a.high == 0) {
        return a.low;
    }
    return a.high >> 63 != 0 ? 0 : UINT64_MAX;
}

VXD_HD int64_t vxd_clamp_int64(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

/* Element i of integers of this dtype. */
VXD_HD struct vxd_wide_int vxd_int_load(enum vxd_dtype dtype, const void *from, size_t i)
{
    switch (dtype) {
    case VXD_INT8:
        return vxd_wide_of_int64(((const int8_t *)from)[i]);
    case VXD_UINT8:
        return vxd_wide_of_uint64(((const uint8_t *)from)[i]);
    case VXD_INT16:
        return vxd_wide_of_int64(((const int16_t *)from)[i]);
    case VXD_UINT16:
        return vxd_wide_of_uint64(((const uint16_t *)from)[i]);
    case VXD_INT32:
        return vxd_wide_of_int64(((const int32_t *)from)[i]);
    case VXD_UINT32:
        return vxd_wide_of_uint64(((const uint32_t *)from)[i]);
    case VXD_INT64:
        return vxd_wide_of_int64(((const int64_t *)from)[i]);
    default:
        return vxd_wide_of_uint64(((const uint64_t *)from)[i]);
    }
}

/* Clamps to the dtype's range. */
VXD_HD void vxd_int_store(enum vxd_dtype dtype, void *to, size_t i,
                          struct vxd_wide_int value)
{
    int64_t low = vxd_wide_to_int64(value);

    switch (dtype) {
    case VXD_INT8:
        ((int8_t *)to)[i] = (int8_t)vxd_clamp_int64(low, INT8_MIN, INT8_MAX);
        break;
    case VXD_UINT8:
        ((uint8_t *)to)[i] = (uint8_t)vxd_clamp_int64(low, 0, UINT8_MAX);
        break;
    case VXD_INT16:
        ((int16_t *)to)[i] = (int16_t)vxd_clamp_int64(low, INT16_MIN, INT16_MAX);
        break;
    case VXD_UINT16:
        ((uint16_t *)to)[i] = (uint16_t)vxd_clamp_int64(low, 0, UINT16_MAX);
        break;
    case VXD_INT32:
        ((int32_t *)to)[i] = (int32_t)vxd_clamp_int64(low, INT32_MIN, INT32_MAX);
        break;
    case VXD_UINT32:
        ((uint32_t *)to)[i] = (uint32_t)vxd_clamp_int64(low, 0, UINT32_MAX);
        break;
    case VXD_INT64:
        ((int64_t *)to)[i] = low;
        break;
    default:
        ((uint64_t *)to)[i] = vxd_wide_to_uint64(value);
        break;
    }
}

/* Element i of float32, float16 or bfloat16. */
VXD_HD float vxd_float_load(enum vxd_dtype dtype, const void *from, size_t i)
{
    switch (dtype) {
    case VXD_FLOAT16:
        return vxd_float_of_half(((const uint16_t *)from)[i]);
    case VXD_BFLOAT16:
        return vxd_float_of_bfloat(((const uint16_t *)from)[i]);
    default:
        return ((const float *)from)[i];
    }
}

/* Rounds to nearest even; NaN becomes the dtype's quiet NaN. */
VXD_HD void vxd_float_store(enum vxd_dtype dtype, void *to, size_t i, float value)
{
    switch (dtype) {
    case VXD_FLOAT16:
        ((uint16_t *)to)[i] = vxd_half_of_float(value);
        break;
    case VXD_BFLOAT16:
        ((uint16_t *)to)[i] = vxd_bfloat_of_float(value);
        break;
    default:
        ((float *)to)[i] = vxd_canonical_nanf(value);
        break;
    }
}

/* Element i of float64, or of float32 widened. A NaN becomes the quiet NaN when it is
 * widened, because the payload that the hardware keeps depends on the device. */
VXD_HD double vxd_double_load(enum vxd_dtype dtype, const void *from, size_t i)
{
    if (dtype == VXD_FLOAT32) {
        return vxd_canonical_nand((double)((const float *)from)[i]);
    }
    return ((const double *)from)[i];
}

VXD_HD void vxd_double_store(void *to, size_t i, double value)
{
    ((double *)to)[i] = vxd_canonical_nand(value);
}

/* Whether element i of `from` replaces element j of `to` under MIN (MAX): it is
 * smaller (larger). Never true where one of them is NaN. */
VXD_HD bool vxd_element_wins(enum vxd_hash_combine combine, enum vxd_dtype from_dtype,
                             const void *from, size_t i, enum vxd_dtype to_dtype,
                             const void *to, size_t j)
{
    bool is_min = combine == VXD_COMBINE_MIN;

    switch (vxd_combine_form_of(to_dtype)) {
    case VXD_FORM_FLOAT: {
        float a = vxd_float_load(from_dtype, from, i);
        float b = vxd_float_load(to_dtype, to, j);

        return is_min ? a < b : a > b;
    }
    case VXD_FORM_DOUBLE: {
        double a = vxd_double_load(from_dtype, from, i);
        double b = vxd_double_load(to_dtype, to, j);

        return is_min ? a < b : a > b;
    }
    default: {
        struct vxd_wide_int a = vxd_int_load(from_dtype, from, i);
        struct vxd_wide_int b = vxd_int_load(to_dtype, to, j);

        return is_min ? vxd_wide_less(a, b) : vxd_wide_less(b, a);
    }
    }
}

/* Whether row element i, the later one, replaces row element j, for rows of one dtype
 * that are compared before the old value is looked at. Every number replaces a NaN, so
 * the outcome does not depend on how the rows were divided among threads. The row that
 * remains is written only if it wins against the old value (vxd_element_wins). */
VXD_HD bool vxd_element_supersedes(enum vxd_hash_combine combine, enum vxd_dtype dtype,
                                   const void *rows, size_t i, size_t j)
{
    switch (vxd_combine_form_of(dtype)) {
    case VXD_FORM_FLOAT: {
        float b = vxd_float_load(dtype, rows, j);

        if (b != b) {
            return true;
        }
        break;
    }
    case VXD_FORM_DOUBLE: {
        double b = vxd_double_load(dtype, rows, j);

        if (b != b) {
            return true;
        }
        break;
    }
    default:
        break;
    }
    return vxd_element_wins(combine, dtype, rows, i, dtype, rows, j);
}

/* Copies one element, widening UINT32 to UINT64 and FLOAT32 to FLOAT64; all else keeps its
 * bits. */
VXD_HD void vxd_element_copy(enum vxd_dtype to_dtype, void *to, size_t i,
                             enum vxd_dtype from_dtype, const void *from, size_t j)
{
    if (to_dtype != from_dtype) {
        if (to_dtype == VXD_FLOAT64) {
            ((double *)to)[i] = vxd_double_load(from_dtype, from, j);
        } else {
            ((uint64_t *)to)[i] = ((const uint32_t *)from)[j];
        }
        return;
    }
    switch (vxd_element_bytes(to_dtype)) {
    case 1:
        ((uint8_t *)to)[i] = ((const uint8_t *)from)[j];
        break;
    case 2:
        ((uint16_t *)to)[i] = ((const uint16_t *)from)[j];
        break;
    case 4:
        ((uint32_t *)to)[i] = ((const uint32_t *)from)[j];
        break;
    default:
        ((uint64_t *)to)[i] = ((const uint64_t *)from)[j];
        break;
    }
}

#endif
