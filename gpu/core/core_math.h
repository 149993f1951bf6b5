// SPDX-License-Identifier: Apache-2.0
/* Arithmetic that gives the same bits under gcc and nvcc; compiled as C11 and as CUDA C++.
 *
 * nvcc contracts a*b+c into a fused multiply-add, which moves points across voxel borders;
 * gcc does so too on some machines. Code that decides an integer result therefore uses the
 * functions below, which round each operation once, to nearest. Host code is compiled with
 * -ffp-contract=off besides. Every *_math.h includes this file. */
#ifndef VXD_GPU_CORE_CORE_MATH_H
#define VXD_GPU_CORE_CORE_MATH_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#if defined(__CUDACC__)
#define VXD_HD static __host__ __device__ __forceinline__
#else
#define VXD_HD static inline
#endif

/* In front of a short loop over an array that must stay in registers. */
#if defined(__CUDA_ARCH__)
#define VXD_UNROLL _Pragma("unroll")
#else
#define VXD_UNROLL
#endif

VXD_HD float vxd_addf(float a, float b)
{
#if defined(__CUDA_ARCH__)
    return __fadd_rn(a, b);
#else
    return a + b;
#endif
}

VXD_HD float vxd_subf(float a, float b)
{
#if defined(__CUDA_ARCH__)
    return __fsub_rn(a, b);
#else
    return a - b;
#endif
}

VXD_HD float vxd_mulf(float a, float b)
{
#if defined(__CUDA_ARCH__)
    return __fmul_rn(a, b);
#else
    return a * b;
#endif
}

VXD_HD float vxd_divf(float a, float b)
{
#if defined(__CUDA_ARCH__)
    return __fdiv_rn(a, b);
#else
    return a / b;
#endif
}

VXD_HD double vxd_divd(double a, double b)
{
#if defined(__CUDA_ARCH__)
    return __ddiv_rn(a, b);
#else
    return a / b;
#endif
}

VXD_HD double vxd_addd(double a, double b)
{
#if defined(__CUDA_ARCH__)
    return __dadd_rn(a, b);
#else
    return a + b;
#endif
}

VXD_HD double vxd_muld(double a, double b)
{
#if defined(__CUDA_ARCH__)
    return __dmul_rn(a, b);
#else
    return a * b;
#endif
}

/* A NaN's sign and payload depend on the device that made it, so results contain only
 * one NaN, 0x7fc00000. Applied to everything computed; values that are merely copied
 * keep their bits. */
VXD_HD float vxd_canonical_nanf(float a)
{
#if defined(__CUDA_ARCH__)
    return a != a ? __uint_as_float(0x7fc00000u) : a;
#else
    return a != a ? NAN : a;
#endif
}

/* Spreads the low 21 bits of v to every third bit: bit i goes to bit 3i. */
VXD_HD uint64_t vxd_spread3(uint64_t v)
{
    v &= 0x1fffffULL;
    v = (v | v << 32) & 0x001f00000000ffffULL;
    v = (v | v << 16) & 0x001f0000ff0000ffULL;
    v = (v | v << 8) & 0x100f00f00f00f00fULL;
    v = (v | v << 4) & 0x10c30c30c30c30c3ULL;
    v = (v | v << 2) & 0x1249249249249249ULL;
    return v;
}

/* Inverse of vxd_spread3: gathers bits 0, 3, 6, ... of v into the low 21 bits. */
VXD_HD uint64_t vxd_gather3(uint64_t v)
{
    v &= 0x1249249249249249ULL;
    v = (v | v >> 2) & 0x10c30c30c30c30c3ULL;
    v = (v | v >> 4) & 0x100f00f00f00f00fULL;
    v = (v | v >> 8) & 0x001f0000ff0000ffULL;
    v = (v | v >> 16) & 0x001f00000000ffffULL;
    v = (v | v >> 32) & 0x00000000001fffffULL;
    return v;
}

/* float16 and bfloat16 as bits. Widening is exact, narrowing rounds once. */

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
