// SPDX-License-Identifier: Apache-2.0
/* Which voxels are in a shape, in integers alone: the same on every backend.
 *
 * Cubes are told by the extent of their voxels' centres, leaves by the three rows of four
 * centres along their axes. Boxes, balls and half-spaces come apart by axis: a leaf's mask
 * costs 12 terms and 64 comparisons. Noise, capsules and heights have headers of their own.
 *
 * Ranges (edit.h; vxd_dag_edit checks them): coordinates of shapes are at most 2^31 in
 * magnitude, those of centres below 2^29, so a difference is below 2^31.33 and its square
 * below 2^62.7. Three such do not fit into 64 bits; squares are therefore cut at one more
 * than the limit they are compared with, which is at most 2^62. */
#ifndef VXD_GPU_DAG_SHAPE_MATH_H
#define VXD_GPU_DAG_SHAPE_MATH_H

#include "gpu/dag/dag_math.h"
#include "gpu/dag/edit.h"

/* How a cube lies to a shape. PARTIAL may be said of one that is wholly in or out: it costs a
 * closer look and changes nothing. */
enum vxd_dag_relation {
    VXD_DAG_OUTSIDE = 0,
    VXD_DAG_PARTIAL = 1,
    VXD_DAG_INSIDE = 2
};

/* Centres of a cube's voxels: from low to high, both included, units. */
struct vxd_dag_extent {
    int64_t low[3];
    int64_t high[3];
};

VXD_HD int64_t vxd_dag_centre(uint32_t voxel)
{
    return (int64_t)voxel * VXD_DAG_UNIT + VXD_DAG_UNIT / 2;
}

VXD_HD struct vxd_dag_extent vxd_dag_extent_of(uint32_t x, uint32_t y, uint32_t z,
                                               int height)
{
    int64_t across = (((int64_t)1 << height) - 1) * VXD_DAG_UNIT;
    struct vxd_dag_extent extent;

    extent.low[0] = vxd_dag_centre(x);
    extent.low[1] = vxd_dag_centre(y);
    extent.low[2] = vxd_dag_centre(z);
    for (int axis = 0; axis < 3; axis++) {
        extent.high[axis] = extent.low[axis] + across;
    }
    return extent;
}

/* Centre of the k-th voxel along an axis. */
VXD_HD int64_t vxd_dag_nth_centre(const struct vxd_dag_extent *extent, int axis, int k)
{
    return extent->low[axis] + (int64_t)k * VXD_DAG_UNIT;
}

/* Voxels of a leaf whose index along an axis is k, 0 to 3. */
VXD_HD uint64_t vxd_dag_leaf_plane(int axis, int k)
{
    return axis == 0   ? (uint64_t)0x000000000f0f0f0fULL << ((k >> 1) * 32 + (k & 1) * 4)
           : axis == 1 ? (uint64_t)0x0000333300003333ULL << ((k >> 1) * 16 + (k & 1) * 2)
                       : (uint64_t)0x0055005500550055ULL << ((k >> 1) * 8 + (k & 1));
}

/* Bit of the voxel (i, j, k) of a leaf. */
VXD_HD int vxd_dag_leaf_index(int i, int j, int k)
{
    return (i >> 1) << 5 | (j >> 1) << 4 | (k >> 1) << 3 | (i & 1) << 2 | (j & 1) << 1 |
           (k & 1);
}

/* Voxels of a leaf whose terms, one an axis, add up to at most limit. Sums must fit. */
VXD_HD uint64_t vxd_dag_leaf_sums(const uint64_t terms[3][4], uint64_t limit)
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

            mask |= row << vxd_dag_leaf_index(i, j, 0);
        }
    }
    return mask;
}

/* Box: low <= c < high ------------------------------------------------------------------- */

/* The first centre that is not below c. */
VXD_HD int64_t vxd_dag_next_centre(int64_t c)
{
    const int64_t unit = VXD_DAG_UNIT;

    return ((c + unit / 2 - 1) & -unit) + unit / 2;
}

VXD_HD enum vxd_dag_relation vxd_dag_box_relation(const struct vxd_dag_shape *shape,
                                                  const struct vxd_dag_extent *extent)
{
    bool is_inside = true;

    for (int axis = 0; axis < 3; axis++) {
        int64_t low = vxd_dag_next_centre(shape->low[axis]);
        int64_t high = shape->high[axis];

        /* A box between centres has no voxel, however many cubes it goes through. */
        if (low >= high || extent->high[axis] < low || extent->low[axis] >= high) {
            return VXD_DAG_OUTSIDE;
        }
        is_inside = is_inside && extent->low[axis] >= low && extent->high[axis] < high;
    }
    return is_inside ? VXD_DAG_INSIDE : VXD_DAG_PARTIAL;
}

VXD_HD uint64_t vxd_dag_box_mask(const struct vxd_dag_shape *shape,
                                 const struct vxd_dag_extent *extent)
{
    uint64_t mask = ~(uint64_t)0;

    for (int axis = 0; axis < 3; axis++) {
        uint64_t planes = 0;

        for (int k = 0; k < 4; k++) {
            int64_t c = vxd_dag_nth_centre(extent, axis, k);

            if (c >= shape->low[axis] && c < shape->high[axis]) {
                planes |= vxd_dag_leaf_plane(axis, k);
            }
        }
        mask &= planes;
    }
    return mask;
}

/* Ball: |c - a| <= r --------------------------------------------------------------------- */

/* The square of a difference, at most limit + 1: so that three of them can be added. */
VXD_HD uint64_t vxd_dag_square_cut(int64_t difference, uint64_t limit)
{
    uint64_t square = (uint64_t)(difference * difference);

    return square > limit ? limit + 1 : square;
}

VXD_HD uint64_t vxd_dag_square(int64_t r)
{
    return (uint64_t)r * (uint64_t)r;
}

/* Squares of the distances from a to the nearest point of the extent's hull and to its
 * farthest; those above limit may be any that are. */
VXD_HD void vxd_dag_ball_span(const int64_t a[3], uint64_t limit,
                              const struct vxd_dag_extent *extent, uint64_t *nearest,
                              uint64_t *farthest)
{
    *nearest = 0;
    *farthest = 0;
    for (int axis = 0; axis < 3; axis++) {
        int64_t low = extent->low[axis] - a[axis];
        int64_t high = extent->high[axis] - a[axis];
        int64_t gap = low > 0 ? low : high < 0 ? high : 0;

        *nearest += vxd_dag_square_cut(gap, limit);
        *farthest += vxd_dag_square_cut(low + high > 0 ? high : low, limit);
    }
}

VXD_HD enum vxd_dag_relation vxd_dag_ball_relation(const struct vxd_dag_shape *shape,
                                                   const struct vxd_dag_extent *extent)
{
    uint64_t limit = vxd_dag_square(shape->r);
    uint64_t nearest;
    uint64_t farthest;

    vxd_dag_ball_span(shape->a, limit, extent, &nearest, &farthest);
    return nearest > limit     ? VXD_DAG_OUTSIDE
           : farthest <= limit ? VXD_DAG_INSIDE
                               : VXD_DAG_PARTIAL;
}

/* Squares of the distances to a along each axis, cut at limit + 1. */
VXD_HD void vxd_dag_ball_terms(const int64_t a[3], uint64_t limit,
                               const struct vxd_dag_extent *extent, uint64_t terms[3][4])
{
    for (int axis = 0; axis < 3; axis++) {
        for (int k = 0; k < 4; k++) {
            terms[axis][k] =
                vxd_dag_square_cut(vxd_dag_nth_centre(extent, axis, k) - a[axis], limit);
        }
    }
}

VXD_HD uint64_t vxd_dag_ball_mask(const struct vxd_dag_shape *shape,
                                  const struct vxd_dag_extent *extent)
{
    uint64_t limit = vxd_dag_square(shape->r);
    uint64_t terms[3][4];

    vxd_dag_ball_terms(shape->a, limit, extent, terms);
    return vxd_dag_leaf_sums(terms, limit);
}

/* Half-space: n . c <= d ------------------------------------------------------------------
 * Each product is below 2^60, so sums fit; sums of masks are unsigned, by 2^61 a term. */

VXD_HD enum vxd_dag_relation
vxd_dag_half_space_relation(const struct vxd_dag_shape *shape,
                            const struct vxd_dag_extent *extent)
{
    int64_t least = 0;
    int64_t most = 0;

    for (int axis = 0; axis < 3; axis++) {
        int64_t low = shape->n[axis] * extent->low[axis];
        int64_t high = shape->n[axis] * extent->high[axis];

        least += low < high ? low : high;
        most += low < high ? high : low;
    }
    return least > shape->d   ? VXD_DAG_OUTSIDE
           : most <= shape->d ? VXD_DAG_INSIDE
                              : VXD_DAG_PARTIAL;
}

VXD_HD uint64_t vxd_dag_half_space_mask(const struct vxd_dag_shape *shape,
                                        const struct vxd_dag_extent *extent)
{
    const uint64_t bias = (uint64_t)1 << 61;
    uint64_t terms[3][4];

    for (int axis = 0; axis < 3; axis++) {
        for (int k = 0; k < 4; k++) {
            int64_t c = vxd_dag_nth_centre(extent, axis, k);

            terms[axis][k] = (uint64_t)(shape->n[axis] * c) + bias;
        }
    }
    return vxd_dag_leaf_sums(terms, (uint64_t)shape->d + 3 * bias);
}

#endif
