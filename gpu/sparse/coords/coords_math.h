// SPDX-License-Identifier: Apache-2.0
/* What decides the integer results of coordinate sets and kernel maps; compiled by both gcc
 * and nvcc. */
#ifndef VXD_GPU_SPARSE_COORDS_COORDS_MATH_H
#define VXD_GPU_SPARSE_COORDS_COORDS_MATH_H

#include "gpu/core/core_math.h"
#include "gpu/sparse/coords/coords.h"

#define VXD_SPARSE_COORD_BIAS ((int32_t)1 << (VXD_SPARSE_COORD_BITS - 1))
#define VXD_SPARSE_KEY_SAMPLE_BIT (3 * VXD_SPARSE_COORD_BITS)
/* A key that no row has, because there is no sample 1023. It sorts last. */
#define VXD_SPARSE_NO_KEY UINT64_MAX

VXD_HD bool vxd_sparse_in_range(int32_t c)
{
    return c >= -VXD_SPARSE_COORD_BIAS && c < VXD_SPARSE_COORD_BIAS;
}

/* Whether a coordinate is within a tensor of that many cells on its axis; 0 =
 * unbounded. */
VXD_HD bool vxd_sparse_in_shape(int32_t shape, int32_t c)
{
    return shape == 0 || (c >= 0 && c < shape);
}

/* An axis's part of a key; a key is the bitwise or of the parts of x, y, z and the
 * sample. c is in range; axis 0 = x. */
VXD_HD uint64_t vxd_sparse_key_axis(int axis, int32_t c)
{
    return vxd_spread3((uint64_t)(uint32_t)(c + VXD_SPARSE_COORD_BIAS)) << (2 - axis);
}

VXD_HD uint64_t vxd_sparse_key_sample(int32_t sample)
{
    return (uint64_t)(uint32_t)sample << VXD_SPARSE_KEY_SAMPLE_BIT;
}

/* c is (sample, x, y, z). */
VXD_HD uint64_t vxd_sparse_key(const int32_t c[4])
{
    return vxd_sparse_key_sample(c[0]) | vxd_sparse_key_axis(0, c[1]) |
           vxd_sparse_key_axis(1, c[2]) | vxd_sparse_key_axis(2, c[3]);
}

/* The sample's part alone. */
VXD_HD uint64_t vxd_sparse_key_sample_part(uint64_t key)
{
    return key >> VXD_SPARSE_KEY_SAMPLE_BIT << VXD_SPARSE_KEY_SAMPLE_BIT;
}

VXD_HD int32_t vxd_sparse_key_coord(uint64_t key, int axis)
{
    uint64_t mask = ((uint64_t)1 << VXD_SPARSE_KEY_SAMPLE_BIT) - 1;

    return (int32_t)vxd_gather3((key & mask) >> (2 - axis)) - VXD_SPARSE_COORD_BIAS;
}

/* Inverse of vxd_sparse_key. */
VXD_HD void vxd_sparse_from_key(uint64_t key, int32_t c[4])
{
    c[0] = (int32_t)(key >> VXD_SPARSE_KEY_SAMPLE_BIT);
    for (int axis = 0; axis < 3; axis++) {
        c[1 + axis] = vxd_sparse_key_coord(key, axis);
    }
}

/* Quotient rounded towards minus infinity; b > 0. */
VXD_HD int32_t vxd_sparse_floor_div(int32_t a, int32_t b)
{
    return a >= 0 ? a / b : -1 - (-1 - a) / b;
}

/* Key of floor(c / 2^levels) on each axis, levels 0 to VXD_SPARSE_COORD_BITS - 1.
 * Ascending keys stay in order: dividing biased codes drops `levels` octants at their
 * end, and the correction of the bias, 2^17 - 2^(17 - levels), inserts as many octants
 * behind the first, each its complement. */
VXD_HD uint64_t vxd_sparse_key_floor(uint64_t key, int levels)
{
    int kept =
        VXD_SPARSE_KEY_SAMPLE_BIT - 3 - 3 * levels; /* bits below the first octant */
    uint64_t code =
        (key & (((uint64_t)1 << VXD_SPARSE_KEY_SAMPLE_BIT) - 1)) >> 3 * levels;
    uint64_t first = code >> kept;
    uint64_t out = vxd_sparse_key_sample_part(key) | first << (kept + 3 * levels) |
                   (code & (((uint64_t)1 << kept) - 1));

    for (int i = 0; i < levels; i++) {
        out |= (first ^ 7) << (kept + 3 * i);
    }
    return out;
}

/* Key of 2c on each axis; false where a set cannot hold that. */
VXD_HD bool vxd_sparse_key_double(uint64_t key, uint64_t *out)
{
    int low = VXD_SPARSE_KEY_SAMPLE_BIT - 6; /* bits below the first two octants */
    uint64_t first = key >> (low + 3) & 7;
    uint64_t second = key >> low & 7;

    *out = vxd_sparse_key_sample_part(key) | first << (low + 3) |
           (key & (((uint64_t)1 << low) - 1)) << 3;
    return (first ^ second) == 7;
}

/* coarse * stride - padding + tap * dilation: the fine cell that a tap connects with a
 * coarse one. The coarse cell is a convolution's output, or a transposed convolution's
 * input. */
VXD_HD int32_t vxd_sparse_fine(const struct vxd_sparse_geometry *geometry, int axis,
                               int32_t coarse, int tap)
{
    return coarse * geometry->stride[axis] - geometry->padding[axis] +
           tap * geometry->dilation[axis];
}

/* Inverse of it; false where the tap connects no coarse cell with this fine one. */
VXD_HD bool vxd_sparse_coarse(const struct vxd_sparse_geometry *geometry, int axis,
                              int32_t fine, int tap, int32_t *coarse)
{
    int32_t scaled = fine + geometry->padding[axis] - tap * geometry->dilation[axis];

    *coarse = vxd_sparse_floor_div(scaled, geometry->stride[axis]);
    return *coarse * geometry->stride[axis] == scaled;
}

/* The input cell that a tap reads for an output cell, for one axis; false where there
 * is none, or where a set cannot hold it. */
VXD_HD bool vxd_sparse_tap_input(const struct vxd_sparse_geometry *geometry, int axis,
                                 int32_t output, int tap, int32_t *input)
{
    if (geometry->transposed) {
        return vxd_sparse_coarse(geometry, axis, output, tap, input) &&
               vxd_sparse_in_range(*input);
    }
    *input = vxd_sparse_fine(geometry, axis, output, tap);
    return vxd_sparse_in_range(*input);
}

/* The output cells that taps connect with an input cell, for one axis: at most
 * VXD_SPARSE_MAX_KERNEL, all different. Sets *out_of_range where an unbounded set
 * could not hold one. */
VXD_HD int vxd_sparse_tap_outputs(const struct vxd_sparse_geometry *geometry, int axis,
                                  int32_t input, int32_t shape,
                                  int32_t outputs[VXD_SPARSE_MAX_KERNEL],
                                  bool *out_of_range)
{
    int n = 0;

    for (int tap = 0; tap < geometry->kernel[axis]; tap++) {
        int32_t output;

        if (geometry->transposed) {
            output = vxd_sparse_fine(geometry, axis, input, tap);
        } else if (!vxd_sparse_coarse(geometry, axis, input, tap, &output)) {
            continue;
        }
        if (!vxd_sparse_in_shape(shape, output)) {
            continue;
        }
        if (!vxd_sparse_in_range(output)) {
            *out_of_range = true;
            continue;
        }
        outputs[n++] = output;
    }
    return n;
}

VXD_HD int vxd_sparse_n_taps(const struct vxd_sparse_geometry *geometry)
{
    return geometry->kernel[0] * geometry->kernel[1] * geometry->kernel[2];
}

/* Hash of a block's name, for the backends' tables. */
VXD_HD uint64_t vxd_sparse_block_hash(uint64_t block)
{
    block ^= block >> 31;
    block *= 0x9e3779b97f4a7c15ULL;
    return block ^ block >> 32;
}

VXD_HD int vxd_sparse_popcount(uint64_t bits)
{
#if defined(__CUDA_ARCH__)
    return __popcll(bits);
#else
    return __builtin_popcountll(bits);
#endif
}

/* Row of a cell of a block that has it. */
VXD_HD uint32_t vxd_sparse_block_cell_row(uint64_t mask, uint32_t block_row, int cell)
{
    return block_row + (uint32_t)vxd_sparse_popcount(mask & (((uint64_t)1 << cell) - 1));
}

#endif
