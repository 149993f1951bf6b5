// SPDX-License-Identifier: Apache-2.0
/* Value noise in integers, and balls whose radius it modulates.
 *
 * The lattice has a point every 2^cell_bits voxels, the first at the scene's low corner.
 * Each point has a 16-bit value, a hash of its indices and the seed. Between points the
 * value is interpolated along x, then y, then z, each time as
 *     (a (65536 - s) + b s) / 65536, rounded down,
 * where s = f^2 (196608 - 2 f) / 2^32, rounded down, smooths f, the position between a
 * and b in 1/65536 (rounded down where the lattice is finer than that). A value u, 0 to
 * 65535, becomes amplitude (2 u - 65535) / 65535 units, rounded to zero: from -amplitude
 * to amplitude, both included. */
#ifndef VXD_GPU_SVDAG_BRUSH_NOISE_MATH_H
#define VXD_GPU_SVDAG_BRUSH_NOISE_MATH_H

#include "gpu/svdag/brush/shape_math.h"

/* Value of a lattice point, 0 to 65535: the finalizer of MurmurHash3 over 64 bits, twice. */
VXD_HD uint32_t vxd_svdag_noise_value(uint32_t seed, uint32_t i, uint32_t j, uint32_t k)
{
    uint64_t hash = (uint64_t)seed << 32 | i;

    for (int round = 0; round < 2; round++) {
        hash ^= hash >> 33;
        hash *= 0xff51afd7ed558ccdULL;
        hash ^= hash >> 33;
        hash *= 0xc4ceb9fe1a85ec53ULL;
        hash ^= hash >> 33;
        hash += round == 0 ? (uint64_t)j << 32 | k : 0;
    }
    return (uint32_t)(hash >> 48);
}

/* Smoothed position of a coordinate (units, not negative) between two lattice points, 0
 * to 65535. */
VXD_HD uint32_t vxd_svdag_noise_weight(int64_t c, int cell_bits)
{
    int bits = cell_bits + 8;
    uint64_t f = (uint64_t)c & (((uint64_t)1 << bits) - 1);

    f = bits > 16 ? f >> (bits - 16) : f << (16 - bits);
    return (uint32_t)(f * f * (196608 - 2 * f) >> 32);
}

VXD_HD uint32_t vxd_svdag_noise_mix(uint32_t a, uint32_t b, uint32_t weight)
{
    return (uint32_t)(((uint64_t)a * (65536 - weight) + (uint64_t)b * weight) >> 16);
}

VXD_HD int64_t vxd_svdag_noise_units(uint32_t value, int64_t amplitude)
{
    return amplitude * (2 * (int64_t)value - 65535) / 65535;
}

/* Values at the corners of the lattice cell that holds a point, by octant. */
VXD_HD void vxd_svdag_noise_corners(uint32_t seed, int cell_bits, const int64_t c[3],
                                    uint32_t corners[8])
{
    int bits = cell_bits + 8;

    for (uint32_t octant = 0; octant < 8; octant++) {
        corners[octant] =
            vxd_svdag_noise_value(seed, (uint32_t)(c[0] >> bits) + (octant >> 2),
                                  (uint32_t)(c[1] >> bits) + (octant >> 1 & 1),
                                  (uint32_t)(c[2] >> bits) + (octant & 1));
    }
}

/* Value at a point (units, no coordinate negative) of the lattice cell with these
 * corners. */
VXD_HD uint32_t vxd_svdag_noise_between(const uint32_t corners[8], int cell_bits,
                                        const int64_t c[3])
{
    uint32_t weight[3];
    uint32_t v[4];

    for (int axis = 0; axis < 3; axis++) {
        weight[axis] = vxd_svdag_noise_weight(c[axis], cell_bits);
    }
    for (int i = 0; i < 4; i++) {
        v[i] = vxd_svdag_noise_mix(corners[i], corners[i + 4], weight[0]);
    }
    for (int i = 0; i < 2; i++) {
        v[i] = vxd_svdag_noise_mix(v[i], v[i + 2], weight[1]);
    }
    return vxd_svdag_noise_mix(v[0], v[1], weight[2]);
}

/* Noise at a point, units. */
VXD_HD int64_t vxd_svdag_noise(uint32_t seed, int cell_bits, int64_t amplitude,
                               const int64_t c[3])
{
    uint32_t corners[8];

    vxd_svdag_noise_corners(seed, cell_bits, c, corners);
    return vxd_svdag_noise_units(vxd_svdag_noise_between(corners, cell_bits, c),
                                 amplitude);
}

/* Noise of the voxels of a leaf that lies in one lattice cell (cell_bits at least 2). The
 * numbers are those of vxd_svdag_noise; what rows share is computed once. */
VXD_HD void vxd_svdag_noise_leaf(const struct vxd_svdag_shape *shape,
                                 const struct vxd_svdag_extent *extent,
                                 int64_t noise[4][4][4])
{
    uint32_t weight[3][4];
    uint32_t v[8];

    vxd_svdag_noise_corners(shape->seed, shape->cell_bits, extent->low, v);
    for (int axis = 0; axis < 3; axis++) {
        for (int k = 0; k < 4; k++) {
            weight[axis][k] = vxd_svdag_noise_weight(
                vxd_svdag_nth_centre(extent, axis, k), shape->cell_bits);
        }
    }
    for (int i = 0; i < 4; i++) {
        uint32_t x[4];

        for (int p = 0; p < 4; p++) {
            x[p] = vxd_svdag_noise_mix(v[p], v[p + 4], weight[0][i]);
        }
        for (int j = 0; j < 4; j++) {
            uint32_t low = vxd_svdag_noise_mix(x[0], x[2], weight[1][j]);
            uint32_t high = vxd_svdag_noise_mix(x[1], x[3], weight[1][j]);

            for (int k = 0; k < 4; k++) {
                noise[i][j][k] = vxd_svdag_noise_units(
                    vxd_svdag_noise_mix(low, high, weight[2][k]), shape->amplitude);
            }
        }
    }
}

/* Bounds of the noise of a cube's voxels. Where the cube does not lie in one lattice cell
 * they are -amplitude and amplitude. Inside a cell the noise lies between the values of
 * its corners, which are the bounds where the cube is the cell. In a smaller cube the
 * extremes are at its corners, because before rounding the noise is linear in the weight
 * of each axis; the bounds are widened by three, one for each rounding. */
VXD_HD void vxd_svdag_noise_bounds(const struct vxd_svdag_shape *shape,
                                   const struct vxd_svdag_extent *extent, int64_t *least,
                                   int64_t *most)
{
    int bits = shape->cell_bits + 8;
    bool is_cell = extent->high[0] - extent->low[0] + VXD_SVDAG_UNIT == (int64_t)1
                                                                            << bits;
    uint32_t low = 65535;
    uint32_t high = 0;
    uint32_t v[8];

    *least = -shape->amplitude;
    *most = shape->amplitude;
    if (extent->low[0] >> bits != extent->high[0] >> bits ||
        extent->low[1] >> bits != extent->high[1] >> bits ||
        extent->low[2] >> bits != extent->high[2] >> bits) {
        return;
    }
    vxd_svdag_noise_corners(shape->seed, shape->cell_bits, extent->low, v);
    for (int corner = 0; corner < 8; corner++) {
        int64_t c[3] = {(corner & 4) == 0 ? extent->low[0] : extent->high[0],
                        (corner & 2) == 0 ? extent->low[1] : extent->high[1],
                        (corner & 1) == 0 ? extent->low[2] : extent->high[2]};
        uint32_t value =
            is_cell ? v[corner] : vxd_svdag_noise_between(v, shape->cell_bits, c);

        low = value < low ? value : low;
        high = value > high ? value : high;
    }
    if (!is_cell) {
        low = low > 3 ? low - 3 : 0;
        high = high < 65532 ? high + 3 : 65535;
    }
    *least = vxd_svdag_noise_units(low, shape->amplitude);
    *most = vxd_svdag_noise_units(high, shape->amplitude);
}

VXD_HD enum vxd_svdag_relation
vxd_svdag_noise_ball_relation(const struct vxd_svdag_shape *shape,
                              const struct vxd_svdag_extent *extent)
{
    uint64_t limit = vxd_svdag_square(shape->r + shape->amplitude);
    int64_t least = -shape->amplitude;
    int64_t most = shape->amplitude;
    uint64_t nearest;
    uint64_t farthest;

    vxd_svdag_ball_span(shape->a, limit, extent, &nearest, &farthest);
    for (int round = 0; round < 2; round++) {
        if (shape->r + most < 0 || nearest > vxd_svdag_square(shape->r + most)) {
            return VXD_SVDAG_OUTSIDE;
        }
        if (shape->r + least >= 0 && farthest <= vxd_svdag_square(shape->r + least)) {
            return VXD_SVDAG_INSIDE;
        }
        if (round == 0) {
            vxd_svdag_noise_bounds(shape, extent, &least, &most);
        }
    }
    return VXD_SVDAG_PARTIAL;
}

#if !defined(__CUDACC__)
#ifdef __cplusplus
extern "C" {
#endif
/* noise_cpu.c. The mask of a leaf where vxd_svdag_noise_is_small is true, several voxels
 * at a time. */
uint64_t vxd_svdag_noise_mask_small(const struct vxd_svdag_shape *shape,
                                    const struct vxd_svdag_extent *extent);
#ifdef __cplusplus
}
#endif

/* True where leaves lie in one lattice cell and the ball is so small that 32 bits are
 * enough: the sum of three clamped squares is below 2^30. */
VXD_HD bool vxd_svdag_noise_is_small(const struct vxd_svdag_shape *shape)
{
    const int64_t most = 1 << 14; /* units */

    return shape->cell_bits >= VXD_SVDAG_LEAF_HEIGHT && shape->r < most &&
           shape->r + shape->amplitude < most;
}
#endif

VXD_HD uint64_t vxd_svdag_noise_ball_mask(const struct vxd_svdag_shape *shape,
                                          const struct vxd_svdag_extent *extent)
{
    bool is_one_cell = shape->cell_bits >= VXD_SVDAG_LEAF_HEIGHT;
    uint64_t terms[3][4];
    int64_t noise[4][4][4];
    uint64_t mask = 0;

#if !defined(__CUDACC__)
    if (vxd_svdag_noise_is_small(shape)) {
        return vxd_svdag_noise_mask_small(shape, extent);
    }
#endif
    vxd_svdag_ball_terms(shape->a, vxd_svdag_square(shape->r + shape->amplitude), extent,
                         terms);
    if (is_one_cell) {
        vxd_svdag_noise_leaf(shape, extent, noise);
    }
    for (int voxel = 0; voxel < 64; voxel++) {
        int i = voxel >> 4;
        int j = voxel >> 2 & 3;
        int k = voxel & 3;
        int64_t c[3] = {vxd_svdag_nth_centre(extent, 0, i),
                        vxd_svdag_nth_centre(extent, 1, j),
                        vxd_svdag_nth_centre(extent, 2, k)};
        int64_t r =
            shape->r + (is_one_cell ? noise[i][j][k]
                                    : vxd_svdag_noise(shape->seed, shape->cell_bits,
                                                      shape->amplitude, c));

        if (r >= 0 && terms[0][i] + terms[1][j] + terms[2][k] <= vxd_svdag_square(r)) {
            mask |= (uint64_t)1 << vxd_svdag_leaf_index(i, j, k);
        }
    }
    return mask;
}

#endif
