// SPDX-License-Identifier: Apache-2.0
/* Arithmetic that must give the same bits under gcc and nvcc.
 *
 * nvcc contracts a*b+c into a fused multiply-add, which moves points across voxel
 * borders; gcc on other machines may too. Whatever decides an integer result is written
 * with these (round to nearest, one rounding an operation); hosts are compiled with
 * -ffp-contract=off besides. Included by every *_math.h, compiled as C11 and CUDA C++. */
#ifndef VXD_GPU_CORE_EXACT_MATH_H
#define VXD_GPU_CORE_EXACT_MATH_H

#include <math.h>
#include <stdint.h>

#if defined(__CUDACC__)
#define VXD_HD static __host__ __device__ __forceinline__
#else
#define VXD_HD static inline
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

/* A NaN's sign and payload depend on the device that made it; results carry one NaN only,
 * 0x7fc00000. For everything computed; values that are merely copied keep their bits. */
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

#endif
