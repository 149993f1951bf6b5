// SPDX-License-Identifier: Apache-2.0
/* float16 and bfloat16 as bits, the same under gcc and nvcc. Widening is exact, narrowing
 * rounds once. */
#ifndef VXD_GPU_CORE_HALF_MATH_H
#define VXD_GPU_CORE_HALF_MATH_H

#include <string.h>

#include "gpu/core/exact_math.h"

VXD_HD uint32_t vxd_float_bits(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

VXD_HD float vxd_float_of_bits(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

VXD_HD float vxd_float_of_half(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
    uint32_t exponent = half >> 10 & 31u;
    uint32_t mantissa = half & 0x3ffu;

    if (exponent == 0) { /* zero or subnormal: units of 2^-24, exact */
        uint32_t bits = vxd_float_bits(vxd_mulf((float)mantissa, 5.9604644775390625e-8f));

        return vxd_float_of_bits(bits | sign);
    }
    if (exponent == 31) {
        return vxd_float_of_bits(sign | 0x7f800000u | mantissa << 13);
    }
    return vxd_float_of_bits(sign | (exponent + 112) << 23 | mantissa << 13);
}

/* To nearest, ties to even; NaN becomes 0x7e00. */
VXD_HD uint16_t vxd_half_of_float(float value)
{
    uint32_t bits = vxd_float_bits(value);
    uint32_t sign = bits >> 16 & 0x8000u;
    uint32_t magnitude = bits & 0x7fffffffu;
    uint32_t half;

    if (magnitude > 0x7f800000u) {
        return 0x7e00u;
    }
    if (magnitude >= 0x477ff000u) { /* 65520: rounds to infinity */
        return (uint16_t)(sign | 0x7c00u);
    }
    if (magnitude < 0x33000000u) { /* below 2^-25: rounds to zero */
        return (uint16_t)sign;
    }
    if (magnitude < 0x38800000u) { /* below 2^-14: subnormal */
        uint32_t shift = 126 - (magnitude >> 23);
        uint32_t mantissa = (magnitude & 0x7fffffu) | 0x800000u;
        uint32_t rest = mantissa & (((uint32_t)1 << shift) - 1);
        uint32_t middle = (uint32_t)1 << (shift - 1);

        half = mantissa >> shift;
        half += rest > middle || (rest == middle && (half & 1u) != 0) ? 1 : 0;
    } else {
        half = magnitude - 0x38000000u;
        half = (half + 0xfffu + (half >> 13 & 1u)) >> 13;
    }
    return (uint16_t)(sign | half);
}

VXD_HD float vxd_float_of_bfloat(uint16_t bfloat)
{
    return vxd_float_of_bits((uint32_t)bfloat << 16);
}

/* To nearest, ties to even; NaN becomes 0x7fc0. */
VXD_HD uint16_t vxd_bfloat_of_float(float value)
{
    uint32_t bits = vxd_float_bits(value);

    if ((bits & 0x7fffffffu) > 0x7f800000u) {
        return 0x7fc0u;
    }
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

#endif
