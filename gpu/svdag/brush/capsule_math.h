// SPDX-License-Identifier: Apache-2.0
/* Capsules: the voxels whose centre is within r of a segment.
 *
 * With d = b - a and v = c - a, an end of the segment is the nearest point where v . d <=
 * 0 or v . d >= d . d, and the test is that of a ball. In between, the distance to the
 * line is |v x d| / |d|, so the test is |v x d|^2 <= r^2 (d . d). It needs 128 bits: |d|
 * is at most 2^32 on each axis and r at most 2^31, so the right side is below 2^127.6.
 * The left side may be larger, so its terms are subtracted from the right side one by
 * one.
 *
 * Nearly all capsules are brushes of a few hundred voxels, for which 64 bits are enough:
 * |v x d|^2 is (v . v) (d . d) - (v . d)^2, so the test is (v . d)^2 >= (d . d) (v . v -
 * r^2). */
#ifndef VXD_GPU_SVDAG_BRUSH_CAPSULE_MATH_H
#define VXD_GPU_SVDAG_BRUSH_CAPSULE_MATH_H

#include "gpu/svdag/brush/shape_math.h"

__extension__ typedef __int128 vxd_int128;
__extension__ typedef unsigned __int128 vxd_uint128;

/* Subtracts w^2 from *left; false where *left is smaller. */
VXD_HD bool vxd_svdag_take_square(vxd_int128 w, vxd_uint128 *left)
{
    vxd_uint128 size = w < 0 ? (vxd_uint128)-w : (vxd_uint128)w;

    if (size >> 64 != 0 || size * size > *left) {
        return false;
    }
    *left -= size * size;
    return true;
}

/* |c - a| <= r, r at most 2^31. */
VXD_HD bool vxd_svdag_is_within(const int64_t c[3], const int64_t a[3], int64_t r)
{
    uint64_t limit = vxd_svdag_square(r);

    return vxd_svdag_square_cut(c[0] - a[0], limit) +
               vxd_svdag_square_cut(c[1] - a[1], limit) +
               vxd_svdag_square_cut(c[2] - a[2], limit) <=
           limit;
}

/* The 1-norm of v. */
VXD_HD int64_t vxd_svdag_length_1(const int64_t v[3])
{
    int64_t sum = 0;

    for (int axis = 0; axis < 3; axis++) {
        sum += v[axis] < 0 ? -v[axis] : v[axis];
    }
    return sum;
}

/* True where 64 bits are enough for d and a v of this 1-norm: then v . d is at most 2^31,
 * and (d . d) (v . v) at most 2^62. */
VXD_HD bool vxd_svdag_capsule_fits_64(const int64_t d[3], int64_t v_1)
{
    int64_t d_1 = vxd_svdag_length_1(d);

    return d_1 < (int64_t)1 << 31 && v_1 < (int64_t)1 << 31 &&
           (uint64_t)d_1 * (uint64_t)v_1 <= (uint64_t)1 << 31;
}

/* In 64 bits: whether a centre is within r of the segment, by v . d, v . v and d . d. */
VXD_HD bool vxd_svdag_is_near_segment_64(int64_t along, int64_t square, int64_t length,
                                         int64_t r_square)
{
    return along <= 0 ? square <= r_square
           : along >= length
               ? square - 2 * along + length <= r_square
               : square <= r_square || along * along >= length * (square - r_square);
}

/* In 128 bits: whether the distance from c to the segment from a to b is at most r; r is
 * at most 2^31. */
VXD_SVDAG_RARE bool vxd_svdag_is_near_line(const int64_t c[3], const int64_t a[3],
                                           const int64_t b[3], int64_t r)
{
    int64_t d[3] = {b[0] - a[0], b[1] - a[1], b[2] - a[2]};
    int64_t v[3] = {c[0] - a[0], c[1] - a[1], c[2] - a[2]};
    vxd_int128 along = 0;
    vxd_int128 length = 0;
    vxd_uint128 left;

    for (int axis = 0; axis < 3; axis++) {
        along += (vxd_int128)v[axis] * d[axis];
        length += (vxd_int128)d[axis] * d[axis];
    }
    if (along <= 0) {
        return vxd_svdag_is_within(c, a, r);
    }
    if (along >= length) {
        return vxd_svdag_is_within(c, b, r);
    }
    left = (vxd_uint128)length * vxd_svdag_square(r);
    for (int axis = 0; axis < 3; axis++) {
        int next = axis == 2 ? 0 : axis + 1;
        int last = axis == 0 ? 2 : axis - 1;

        if (!vxd_svdag_take_square(
                (vxd_int128)v[next] * d[last] - (vxd_int128)v[last] * d[next], &left)) {
            return false;
        }
    }
    return true;
}

/* The same. Most centres are outside the bounding box of the capsule, or 64 bits are
 * enough. */
VXD_HD bool vxd_svdag_is_near_segment(const int64_t c[3], const int64_t a[3],
                                      const int64_t b[3], int64_t r)
{
    int64_t along = 0;
    int64_t square = 0;
    int64_t length = 0;
    int64_t d[3];
    int64_t v[3];

    for (int axis = 0; axis < 3; axis++) {
        d[axis] = b[axis] - a[axis];
        v[axis] = c[axis] - a[axis];
        if (v[axis] < (d[axis] < 0 ? d[axis] : 0) - r ||
            v[axis] > (d[axis] > 0 ? d[axis] : 0) + r) {
            return false;
        }
    }
    if (!vxd_svdag_capsule_fits_64(d, vxd_svdag_length_1(v))) {
        return vxd_svdag_is_near_line(c, a, b, r);
    }
    for (int axis = 0; axis < 3; axis++) {
        along += v[axis] * d[axis];
        square += v[axis] * v[axis];
        length += d[axis] * d[axis];
    }
    return vxd_svdag_is_near_segment_64(along, square, length,
                                        (int64_t)vxd_svdag_square(r));
}

/* Radius of a ball that holds all centres of a cube, whose extent along an axis is 2
 * half: half the diagonal. 1774 / 1024 is slightly above the root of 3. */
VXD_HD int64_t vxd_svdag_capsule_around(int64_t half)
{
    return (half * 1774 >> 10) + 1;
}

VXD_HD enum vxd_svdag_relation
vxd_svdag_capsule_relation(const struct vxd_svdag_shape *shape,
                           const struct vxd_svdag_extent *extent)
{
    int64_t half = (extent->high[0] - extent->low[0]) / 2;
    int64_t around = vxd_svdag_capsule_around(half);
    int64_t centre[3];

    for (int axis = 0; axis < 3; axis++) {
        centre[axis] = extent->low[axis] + half;
    }
    if (shape->r + around <= VXD_SVDAG_MAX_COORDINATE &&
        !vxd_svdag_is_near_segment(centre, shape->a, shape->b, shape->r + around)) {
        return VXD_SVDAG_OUTSIDE;
    }
    if (shape->r >= around &&
        vxd_svdag_is_near_segment(centre, shape->a, shape->b, shape->r - around)) {
        return VXD_SVDAG_INSIDE;
    }
    return VXD_SVDAG_PARTIAL;
}

/* The mask of a leaf where 64 bits are enough for all its voxels; false where they are
 * not. The terms of the test are separable by axis. */
VXD_HD bool vxd_svdag_capsule_mask_near(const struct vxd_svdag_shape *shape,
                                        const struct vxd_svdag_extent *extent,
                                        uint64_t *mask)
{
    int64_t along[3][4];
    int64_t square[3][4];
    int64_t length = 0;
    int64_t d[3];
    int64_t v[3];

    for (int axis = 0; axis < 3; axis++) {
        d[axis] = shape->b[axis] - shape->a[axis];
        v[axis] = extent->low[axis] - shape->a[axis];
    }
    if (!vxd_svdag_capsule_fits_64(d,
                                   vxd_svdag_length_1(v) + (int64_t)9 * VXD_SVDAG_UNIT)) {
        return false;
    }
    for (int axis = 0; axis < 3; axis++) {
        length += d[axis] * d[axis];
        for (int k = 0; k < 4; k++) {
            const int64_t at = v[axis] + (int64_t)k * VXD_SVDAG_UNIT;

            along[axis][k] = at * d[axis];
            square[axis][k] = at * at;
        }
    }
    *mask = 0;
    for (int row = 0; row < 16; row++) {
        const int i = row >> 2;
        const int j = row & 3;
        uint64_t bits = 0;

        for (int k = 0; k < 4; k++) {
            bits |= (uint64_t)vxd_svdag_is_near_segment_64(
                        along[0][i] + along[1][j] + along[2][k],
                        square[0][i] + square[1][j] + square[2][k], length,
                        (int64_t)vxd_svdag_square(shape->r))
                    << vxd_svdag_leaf_index(0, 0, k);
        }
        *mask |= bits << vxd_svdag_leaf_index(i, j, 0);
    }
    return true;
}

/* Capsules are convex, so the voxels of a row along z that are inside are consecutive.
 * Only voxels before the first and after the last of them are tested. */
VXD_SVDAG_RARE uint64_t vxd_svdag_capsule_mask_far(const struct vxd_svdag_shape *shape,
                                                   const struct vxd_svdag_extent *extent)
{
    uint64_t mask = 0;

    for (int row = 0; row < 16; row++) {
        int64_t c[3] = {vxd_svdag_nth_centre(extent, 0, row >> 2),
                        vxd_svdag_nth_centre(extent, 1, row & 3), 0};
        int first = 0;
        int last = 3;

        for (; first < 4; first++) {
            c[2] = vxd_svdag_nth_centre(extent, 2, first);
            if (vxd_svdag_is_near_line(c, shape->a, shape->b, shape->r)) {
                break;
            }
        }
        for (; last > first; last--) {
            c[2] = vxd_svdag_nth_centre(extent, 2, last);
            if (vxd_svdag_is_near_line(c, shape->a, shape->b, shape->r)) {
                break;
            }
        }
        for (int k = first; k <= last; k++) {
            mask |= (uint64_t)1 << vxd_svdag_leaf_index(row >> 2, row & 3, k);
        }
    }
    return mask;
}

VXD_HD uint64_t vxd_svdag_capsule_mask(const struct vxd_svdag_shape *shape,
                                       const struct vxd_svdag_extent *extent)
{
    uint64_t mask;

    return vxd_svdag_capsule_mask_near(shape, extent, &mask)
               ? mask
               : vxd_svdag_capsule_mask_far(shape, extent);
}

#endif
