// SPDX-License-Identifier: Apache-2.0
/* Which voxels are in a shape, computed with integers, so that all backends agree.
 *
 * A cube is given by the extent of its voxels' centres, a leaf by the three rows of four
 * centres along its axes. Boxes, balls and half-spaces are separable: each axis adds a
 * term, so the mask of a leaf costs 12 terms and 64 comparisons. Noise, capsules and
 * heightfields have headers of their own.
 *
 * Ranges (brush.h; vxd_svdag_edit checks them): coordinates of shapes are at most 2^31 in
 * magnitude and those of centres below 2^29, so a difference is below 2^31.33 and its
 * square below 2^62.7. The sum of three such squares does not fit 64 bits. Squares are
 * therefore clamped to the limit they are compared with plus 1; the limit is at most
 * 2^62. */
#ifndef VXD_GPU_SVDAG_BRUSH_SHAPE_MATH_H
#define VXD_GPU_SVDAG_BRUSH_SHAPE_MATH_H

#include "gpu/svdag/node/node_math.h"
#include "gpu/svdag/brush/brush.h"

#if defined(__SSE2__) && !defined(__CUDACC__)
#define VXD_SVDAG_HAS_LANES 1
#include <emmintrin.h>
#else
#define VXD_SVDAG_HAS_LANES 0
#endif

/* How a cube lies to a shape. PARTIAL may also be answered for a cube that is wholly
 * inside or outside: this costs a visit to its children and does not change the
 * result. */
enum vxd_svdag_relation {
    VXD_SVDAG_OUTSIDE = 0,
    VXD_SVDAG_PARTIAL = 1,
    VXD_SVDAG_INSIDE = 2
};

/* The centres of a cube's voxels, from low to high, both included; units. */
struct vxd_svdag_extent {
    int64_t low[3];
    int64_t high[3];
};

VXD_HD int64_t vxd_svdag_centre(uint32_t voxel)
{
    return (int64_t)voxel * VXD_SVDAG_UNIT + VXD_SVDAG_UNIT / 2;
}

VXD_HD struct vxd_svdag_extent vxd_svdag_extent_of(uint32_t x, uint32_t y, uint32_t z,
                                                   int height)
{
    int64_t across = (((int64_t)1 << height) - 1) * VXD_SVDAG_UNIT;
    struct vxd_svdag_extent extent;

    extent.low[0] = vxd_svdag_centre(x);
    extent.low[1] = vxd_svdag_centre(y);
    extent.low[2] = vxd_svdag_centre(z);
    for (int axis = 0; axis < 3; axis++) {
        extent.high[axis] = extent.low[axis] + across;
    }
    return extent;
}

/* Centre of the k-th voxel along an axis. */
VXD_HD int64_t vxd_svdag_nth_centre(const struct vxd_svdag_extent *extent, int axis,
                                    int k)
{
    return extent->low[axis] + (int64_t)k * VXD_SVDAG_UNIT;
}

/* Voxels of a leaf whose index along an axis is k, 0 to 3. */
VXD_HD uint64_t vxd_svdag_leaf_plane(int axis, int k)
{
    return axis == 0   ? (uint64_t)0x000000000f0f0f0fULL << ((k >> 1) * 32 + (k & 1) * 4)
           : axis == 1 ? (uint64_t)0x0000333300003333ULL << ((k >> 1) * 16 + (k & 1) * 2)
                       : (uint64_t)0x0055005500550055ULL << ((k >> 1) * 8 + (k & 1));
}

/* Bit of the voxel (i, j, k) of a leaf. */
VXD_HD int vxd_svdag_leaf_index(int i, int j, int k)
{
    return (i >> 1) << 5 | (j >> 1) << 4 | (k >> 1) << 3 | (i & 1) << 2 | (j & 1) << 1 |
           (k & 1);
}

/* The voxels of a leaf whose terms, one for each axis, sum up to at most `limit`. Sums
 * must fit 64 bits. */
VXD_HD uint64_t vxd_svdag_leaf_sums(const uint64_t terms[3][4], uint64_t limit)
{
    const uint64_t *z = terms[2];
    uint64_t mask = 0;

    for (int i = 0; i < 4; i++) {
        for (int j = 0; j < 4; j++) {
            uint64_t sum = terms[0][i] + terms[1][j];
            uint64_t row = (uint64_t)(sum + z[0] <= limit) |
                           (uint64_t)(sum + z[1] <= limit) << 1 |
                           (uint64_t)(sum + z[2] <= limit) << 8 |
                           (uint64_t)(sum + z[3] <= limit) << 9;

            mask |= row << vxd_svdag_leaf_index(i, j, 0);
        }
    }
    return mask;
}

/* Box: low <= c < high ------------------------------------------------------------------- */

/* The first voxel centre at or above c. */
VXD_HD int64_t vxd_svdag_next_centre(int64_t c)
{
    const int64_t unit = VXD_SVDAG_UNIT;

    return ((c + unit / 2 - 1) & -unit) + unit / 2;
}

/* The voxel of that centre, which may lie outside the scene. */
VXD_HD int64_t vxd_svdag_voxel_from(int64_t c)
{
    return (vxd_svdag_next_centre(c) - VXD_SVDAG_UNIT / 2) / VXD_SVDAG_UNIT;
}

VXD_HD enum vxd_svdag_relation
vxd_svdag_box_relation(const struct vxd_svdag_shape *shape,
                       const struct vxd_svdag_extent *extent)
{
    bool is_inside = true;

    for (int axis = 0; axis < 3; axis++) {
        int64_t low = vxd_svdag_next_centre(shape->low[axis]);
        int64_t high = shape->high[axis];

        /* A box that lies between two rows of centres has no voxel, although cubes
         * intersect it. */
        if (low >= high || extent->high[axis] < low || extent->low[axis] >= high) {
            return VXD_SVDAG_OUTSIDE;
        }
        is_inside = is_inside && extent->low[axis] >= low && extent->high[axis] < high;
    }
    return is_inside ? VXD_SVDAG_INSIDE : VXD_SVDAG_PARTIAL;
}

VXD_HD uint64_t vxd_svdag_box_mask(const struct vxd_svdag_shape *shape,
                                   const struct vxd_svdag_extent *extent)
{
    uint64_t mask = ~(uint64_t)0;

    for (int axis = 0; axis < 3; axis++) {
        uint64_t planes = 0;

        for (int k = 0; k < 4; k++) {
            int64_t c = vxd_svdag_nth_centre(extent, axis, k);

            if (c >= shape->low[axis] && c < shape->high[axis]) {
                planes |= vxd_svdag_leaf_plane(axis, k);
            }
        }
        mask &= planes;
    }
    return mask;
}

/* Ball: |c - a| <= r --------------------------------------------------------------------- */

/* The square of a difference, clamped to limit + 1, so that three of them can be
 * added. */
VXD_HD uint64_t vxd_svdag_square_cut(int64_t difference, uint64_t limit)
{
    uint64_t square = (uint64_t)(difference * difference);

    return square > limit ? limit + 1 : square;
}

VXD_HD uint64_t vxd_svdag_square(int64_t r)
{
    return (uint64_t)r * (uint64_t)r;
}

/* The terms of one axis in the squared distances from a ball's centre to the nearest and
 * the farthest voxel centre of a cube. The first and last centres of the cube on this
 * axis are `low` and `high` units from the ball's centre. Each term is clamped to limit +
 * 1. */
VXD_HD void vxd_svdag_ball_axis(int64_t low, int64_t high, uint64_t limit,
                                uint64_t *nearest, uint64_t *farthest)
{
    int64_t gap = low > 0 ? low : high < 0 ? high : 0;

    *nearest = vxd_svdag_square_cut(gap, limit);
    *farthest = vxd_svdag_square_cut(low + high > 0 ? high : low, limit);
}

/* Squared distances from a to the nearest and the farthest point of the extent's hull. A
 * result above `limit` may be any value above it. */
VXD_HD void vxd_svdag_ball_span(const int64_t a[3], uint64_t limit,
                                const struct vxd_svdag_extent *extent, uint64_t *nearest,
                                uint64_t *farthest)
{
    *nearest = 0;
    *farthest = 0;
    for (int axis = 0; axis < 3; axis++) {
        uint64_t near;
        uint64_t far;

        vxd_svdag_ball_axis(extent->low[axis] - a[axis], extent->high[axis] - a[axis],
                            limit, &near, &far);
        *nearest += near;
        *farthest += far;
    }
}

VXD_HD enum vxd_svdag_relation
vxd_svdag_ball_relation(const struct vxd_svdag_shape *shape,
                        const struct vxd_svdag_extent *extent)
{
    uint64_t limit = vxd_svdag_square(shape->r);
    uint64_t nearest;
    uint64_t farthest;

    vxd_svdag_ball_span(shape->a, limit, extent, &nearest, &farthest);
    return nearest > limit     ? VXD_SVDAG_OUTSIDE
           : farthest <= limit ? VXD_SVDAG_INSIDE
                               : VXD_SVDAG_PARTIAL;
}

/* Squared distances to a along each axis, clamped to limit + 1. */
VXD_HD void vxd_svdag_ball_terms(const int64_t a[3], uint64_t limit,
                                 const struct vxd_svdag_extent *extent,
                                 uint64_t terms[3][4])
{
    for (int axis = 0; axis < 3; axis++) {
        for (int k = 0; k < 4; k++) {
            terms[axis][k] = vxd_svdag_square_cut(
                vxd_svdag_nth_centre(extent, axis, k) - a[axis], limit);
        }
    }
}

/* Classifies the eight children of a cube against two concentric balls of squared radii
 * `outer` and `inner` <= `outer`: masks of the children with no voxel in the outer ball,
 * and of those with all voxels in the inner one. Four children share each term of an
 * axis. */
VXD_HD void vxd_svdag_balls_children(const int64_t a[3], uint64_t outer, uint64_t inner,
                                     const struct vxd_svdag_extent *extent, int height,
                                     unsigned *outside, unsigned *inside)
{
    int64_t side = (int64_t)VXD_SVDAG_UNIT << (height - 1);
    uint64_t nearest[3][2];
    uint64_t farthest[3][2];

    for (int axis = 0; axis < 3; axis++) {
        for (int half = 0; half < 2; half++) {
            int64_t low = extent->low[axis] - a[axis] + half * side;

            vxd_svdag_ball_axis(low, low + side - VXD_SVDAG_UNIT, outer,
                                &nearest[axis][half], &farthest[axis][half]);
        }
    }
    *outside = 0;
    *inside = 0;
    for (int i = 0; i < 8; i++) {
        uint64_t near = nearest[0][i >> 2] + nearest[1][i >> 1 & 1] + nearest[2][i & 1];
        uint64_t far = farthest[0][i >> 2] + farthest[1][i >> 1 & 1] + farthest[2][i & 1];

        *outside |= (unsigned)(near > outer) << i;
        *inside |= (unsigned)(far <= inner) << i;
    }
}

/* The answers of vxd_svdag_ball_relation for the eight children. */
VXD_HD void vxd_svdag_ball_children(const struct vxd_svdag_shape *shape,
                                    const struct vxd_svdag_extent *extent, int height,
                                    unsigned *outside, unsigned *inside)
{
    uint64_t limit = vxd_svdag_square(shape->r);

    vxd_svdag_balls_children(shape->a, limit, limit, extent, height, outside, inside);
}

#if VXD_SVDAG_HAS_LANES
/* The voxels of a leaf whose three terms, one for each axis, sum up to at most a limit.
 * `most` is the limit less the terms of the x axis, so a voxel qualifies where y + z <=
 * most[x]. Sums and bounds fit 32 bits. */
static inline uint64_t vxd_svdag_lane_sums(const int32_t most[4], const int32_t y[4],
                                           const int32_t z[4])
{
    __m128i z_low = _mm_setr_epi32(z[0], z[1], z[0], z[1]);
    __m128i z_high = _mm_setr_epi32(z[2], z[3], z[2], z[3]);
    __m128i y_low = _mm_setr_epi32(y[0], y[0], y[1], y[1]);
    __m128i y_high = _mm_setr_epi32(y[2], y[2], y[3], y[3]);
    /* By the bits y1 and z1 of a voxel's index in Morton order; the lanes are y0 and
     * z0. */
    __m128i sums[4] = {_mm_add_epi32(y_low, z_low), _mm_add_epi32(y_low, z_high),
                       _mm_add_epi32(y_high, z_low), _mm_add_epi32(y_high, z_high)};
    uint64_t above = 0;

    for (int x = 0; x < 4; x += 2) {
        __m128i even = _mm_set1_epi32(most[x]);
        __m128i odd = _mm_set1_epi32(most[x + 1]);
        __m128i bytes[4];
        unsigned low;
        unsigned high;

        for (int i = 0; i < 4; i++) {
            bytes[i] = _mm_packs_epi32(_mm_cmpgt_epi32(sums[i], even),
                                       _mm_cmpgt_epi32(sums[i], odd));
        }
        low = (unsigned)_mm_movemask_epi8(_mm_packs_epi16(bytes[0], bytes[1]));
        high = (unsigned)_mm_movemask_epi8(_mm_packs_epi16(bytes[2], bytes[3]));
        above |= (uint64_t)(high << 16 | low) << (16 * x);
    }
    return ~above;
}
#else
/* Shifts the sign bit of a number into the low end of `bits`. */
VXD_HD uint32_t vxd_svdag_shift_in(uint32_t bits, int32_t number)
{
#if defined(__CUDA_ARCH__)
    return __funnelshift_l((uint32_t)number, bits, 1);
#else
    return bits << 1 | (uint32_t)number >> 31;
#endif
}

/* The same without SSE; two instructions a voxel on a device. */
VXD_HD uint64_t vxd_svdag_lane_sums(const int32_t most[4], const int32_t y[4],
                                    const int32_t z[4])
{
    uint32_t halves[2] = {0, 0}; /* by the bit x1 of a voxel's index */

    /* The arrays stay in registers only if the loop is unrolled. */
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
    for (int i = 63; i >= 0; i--) {
        const int32_t yz =
            y[(i >> 4 & 1) << 1 | (i >> 1 & 1)] + z[(i >> 3 & 1) << 1 | (i & 1)];

        halves[i >> 5] = vxd_svdag_shift_in(halves[i >> 5],
                                            yz - most[(i >> 5) << 1 | (i >> 2 & 1)] - 1);
    }
    return (uint64_t)halves[1] << 32 | halves[0];
}
#endif

/* Finds the mask of a leaf in 32-bit arithmetic; false where the leaf is too far from the
 * ball's centre. With d from a to the first voxel of an axis, the square of the k-th is
 * d^2 + 512 (d k + 128 k^2). So the limit less the squares of the first voxel is compared
 * with sums of d k + 128 k^2. */
VXD_HD bool vxd_svdag_ball_mask_near(const struct vxd_svdag_shape *shape,
                                     const struct vxd_svdag_extent *extent,
                                     uint64_t *mask)
{
    const int64_t far = (int64_t)1 << 26;
    const int64_t bound = (int64_t)1 << 30;
    int64_t left = (int64_t)vxd_svdag_square(shape->r);
    int32_t terms[3][4];
    int32_t most[4];

    for (int axis = 0; axis < 3; axis++) {
        int64_t d = extent->low[axis] - shape->a[axis];

        if (d <= -far || d >= far) {
            return false;
        }
        left -= d * d;
        for (int32_t k = 0; k < 4; k++) {
            terms[axis][k] = (int32_t)d * k + VXD_SVDAG_UNIT / 2 * k * k;
        }
    }
    left >>= 9; /* rounds down, as the comparison needs */
    for (int k = 0; k < 4; k++) {
        int64_t rest = left - terms[0][k];

        /* Sums of two terms are smaller, and differences fit. */
        most[k] = (int32_t)(rest < -bound ? -bound : rest > bound ? bound : rest);
    }
    *mask = vxd_svdag_lane_sums(most, terms[1], terms[2]);
    return true;
}

/* The same in 64-bit arithmetic, for a leaf far from the ball's centre. */
VXD_SVDAG_RARE uint64_t vxd_svdag_ball_mask_far(const struct vxd_svdag_shape *shape,
                                                const struct vxd_svdag_extent *extent)
{
    uint64_t limit = vxd_svdag_square(shape->r);
    uint64_t terms[3][4];

    vxd_svdag_ball_terms(shape->a, limit, extent, terms);
    return vxd_svdag_leaf_sums(terms, limit);
}

VXD_HD uint64_t vxd_svdag_ball_mask(const struct vxd_svdag_shape *shape,
                                    const struct vxd_svdag_extent *extent)
{
    uint64_t mask;

    return vxd_svdag_ball_mask_near(shape, extent, &mask)
               ? mask
               : vxd_svdag_ball_mask_far(shape, extent);
}

/* Half-space: n . c <= d ------------------------------------------------------------------
 * Each product is below 2^60, so sums fit; sums of masks are unsigned, by 2^61 a term. */

VXD_HD enum vxd_svdag_relation
vxd_svdag_half_space_relation(const struct vxd_svdag_shape *shape,
                              const struct vxd_svdag_extent *extent)
{
    int64_t least = 0;
    int64_t most = 0;

    for (int axis = 0; axis < 3; axis++) {
        int64_t low = shape->n[axis] * extent->low[axis];
        int64_t high = shape->n[axis] * extent->high[axis];

        least += low < high ? low : high;
        most += low < high ? high : low;
    }
    return least > shape->d   ? VXD_SVDAG_OUTSIDE
           : most <= shape->d ? VXD_SVDAG_INSIDE
                              : VXD_SVDAG_PARTIAL;
}

VXD_SVDAG_RARE uint64_t vxd_svdag_half_space_mask(const struct vxd_svdag_shape *shape,
                                                  const struct vxd_svdag_extent *extent)
{
    const uint64_t bias = (uint64_t)1 << 61;
    uint64_t terms[3][4];

    for (int axis = 0; axis < 3; axis++) {
        for (int k = 0; k < 4; k++) {
            int64_t c = vxd_svdag_nth_centre(extent, axis, k);

            terms[axis][k] = (uint64_t)(shape->n[axis] * c) + bias;
        }
    }
    return vxd_svdag_leaf_sums(terms, (uint64_t)shape->d + 3 * bias);
}

#endif
